"""What makes a line worth keeping."""

from __future__ import annotations

import pytest

from denizen.consciousness.line_weights import line_weight

CHAT = [
    "Talked with Noor about the weather; nothing pending.",
    "Answered Noor.",
    "Wished Bert a good morning and joked about the coffee machine; nothing is open.",
    "Noor hat vom Wochenende erzählt; nichts ist offen.",
]
NEEDED = [
    "GraphQL, not REST. Deploy Friday.",
    "Noor decided to drop the import of spreadsheets.",
    "Promised Bert the report by 2026-03-05.",
    "Noor's sister Mira is allergic to peanuts.",
    "The budget for the fair is 4,200 €.",
    "Told Noor that the key rotates on the 3rd.",
    "Waiting for Bert's answer about the lease.",
    "Noor hat entschieden: Wir nehmen PostgreSQL statt SQLite.",
    "Die Rechnung ist am Freitag fällig.",
]


@pytest.mark.parametrize("text", NEEDED)
def test_what_is_needed_again_outweighs_small_talk(text: str) -> None:
    assert line_weight(text, ["Noor", "Bert"]) > max(line_weight(each, ["Noor", "Bert"]) for each in CHAT)


def test_names_that_every_line_has_do_not_count() -> None:
    line = "Talked with Noor Haddad in the Kitchen."
    assert line_weight(line, ["Noor Haddad (@noor)", "Kitchen"]) == 0
    assert line_weight(line) > 0


def test_length_does_not_count() -> None:
    assert line_weight("we talked about this and that and more " * 50) == 0
