"""What the lexicon makes of support talk, in English and German."""

from __future__ import annotations

import pytest

from bench.sentiment import agreement, support_sentences, verdict
from denizen.reflection.lexicon import language_of
from denizen.reflection.sentiment import by_lexicon
from denizen.reflection.settings import SentimentSettings


def label_of(text: str) -> str:
    """How a turn with this text is counted, with the default thresholds."""
    return verdict(by_lexicon(text), SentimentSettings())


@pytest.mark.parametrize(
    "text",
    [
        "It still does not work, bad.",
        "it doesn't work",
        "No, that is bad.",
        "I can't connect.",
        "The page is not loading.",
        "They never replied.",
        "I don't like it.",
        "Es funktioniert nicht.",
        "Die Seite lädt einfach nicht.",
        "Das hat nicht geholfen.",
        "Das war nicht gut.",
        "Die App war super, aber jetzt stürzt sie ab.",
    ],
)
def test_ordinary_frustration_is_negative(text: str) -> None:
    """A negated verb is a complaint, and a negation does not reach over a comma: "does not work, bad" scored +0.43."""
    assert label_of(text) == "negative"


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "Yes, please.",
        "ok",
        "No.",
        "Can you help me?",
        "Please save the file.",
        "I would like two licenses.",
        "I have not opened it yet.",
        "Please do not send it before May.",
        "The shop is not open on Sunday.",
        "The price does not change.",
        "The second call is on Monday.",
        "Let me know if it works.",
        "How does the export work?",
        "Ja.",
        "Nein, noch nicht.",
        "Wie funktioniert das?",
        "Ich habe das Paket noch nicht geöffnet.",
        "Die Rechnung war im Anhang.",
        "Das Büro hat bis acht Uhr geöffnet.",
    ],
)
def test_ordinary_requests_are_neutral(text: str) -> None:
    """VADER finds "yes", "please" and "help" positive, and in German "die" and "war" negative."""
    assert label_of(text) == "neutral"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The invoice is wrong.", "en"),
        ("Die Rechnung ist falsch.", "de"),
        ("Super, danke!", "de"),
        ("Super, thanks!", "en"),
        ("Niemand ruft zurück.", "de"),
        ("No funciona.", "en"),
        ("", "en"),
    ],
)
def test_german_is_told_from_everything_else(text: str, language: str) -> None:
    assert language_of(text) == language


def test_labels_of_the_sentences_it_was_developed_on() -> None:
    """So that a change to the word lists shows; how well it does with others, `bench.sentiment` says."""
    assert agreement(support_sentences()[::2]) >= 0.95
