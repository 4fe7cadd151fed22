"""How people feel, and what that amounts to: known sentences, five signals, a counter for each kind of turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.errors import InvalidInput
from denizen.reflection.sentiment import Sentiment, by_classifier, by_lexicon, checked, load_classifier
from denizen.reflection.settings import SentimentSettings
from denizen.reflection.signals import Counters, count, detect, errors_exceed, is_disengaged

USUAL = SentimentSettings(enabled=True)


def signals(*readings: Sentiment, characters: int = 100, by: SentimentSettings = USUAL) -> list[list[str]]:
    """The names of the signals, turn by turn."""
    counters, found = Counters(), []
    for reading in readings:
        counters = count(counters, reading, characters, by)
        found.append([each.name for each in detect(counters, reading, by)])
    return found


def test_the_lexicon_knows_known_sentences():
    """It once always scored 0, because of a language code."""
    assert by_lexicon("I hate this, it is terrible.").score < -0.6
    assert by_lexicon("I don\u2019t like it.").score == by_lexicon("I don't like it.").score < 0
    assert by_lexicon("This is wonderful, thank you so much!").score > 0.6
    assert by_lexicon("The meeting is at nine.").score == 0
    assert by_lexicon("").score == 0
    assert by_lexicon("I don't understand, this is unclear.").confusion == ("don't understand", "unclear")


def test_a_huge_message_is_looked_at_where_it_begins_and_where_it_ends():
    assert by_lexicon("I hate it. " + "word " * 100_000 + "Terrible, awful.").score < -0.6


@pytest.mark.parametrize(
    "text",
    [
        "I do not follow.",
        "You\u2019ve lost me there.",
        "I don't really get it.",
        "I'm not sure what to press.",
        "Wait, so it is the second one?",
        "I thought it was done?",
        "what??",
        "Could you please rephrase that?",
        "Explain it to me again.",
        "That does not make any sense.",
        "What am I supposed to do now?",
        "I am baffled.",
    ],
)
def test_confusion_keywords_tell_that_somebody_is_confused(text: str):
    assert by_lexicon(text).confusion


@pytest.mark.parametrize(
    "text",
    [
        "The nuclear plant is unclearly marked.",
        "I did not get the parcel.",
        "I thought it was lovely.",
        "Follow the river, then wait.",
        "I'm not sure I can come on Friday.",
        "What does the function return?",
        "Explain recursion.",
        "",
    ],
)
def test_what_only_looks_like_a_confusion_keyword_is_none(text: str):
    assert by_lexicon(text).confusion == ()


@given(st.text(max_size=700))
def test_the_lexicon_makes_a_reading_of_any_text(text: str):
    found = by_lexicon(text)
    assert -1 <= found.score <= 1
    assert found.intensity == abs(found.score)
    assert all(each and each == each.lower() for each in found.confusion)


# The five signals, at their boundaries


def test_user_frustrated_is_a_score_below_the_threshold_and_an_intensity_above_0_6():
    assert signals(Sentiment(-0.31, 0.61)) == [["user_frustrated"]]
    assert signals(Sentiment(-0.31, 0.6)) == [[]]
    assert signals(Sentiment(-0.3, 0.9)) == [[]]


def test_user_frustrated_is_also_consecutive_negative_turns_however_mild():
    assert signals(*[Sentiment(-0.31, 0.31)] * 2) == [[], ["user_frustrated"]]
    assert signals(*[Sentiment(-0.3, 0.3)] * 2) == [[], []]
    assert signals(Sentiment(-0.4, 0.4), Sentiment(0, 0), Sentiment(-0.4, 0.4)) == [[], [], []]


def test_user_satisfied_is_a_score_above_the_threshold_and_an_intensity_above_0_5():
    assert signals(Sentiment(0.31, 0.51)) == [["user_satisfied"]]
    assert signals(Sentiment(0.31, 0.5)) == [[]]
    assert signals(Sentiment(0.3, 0.9)) == [[]]


def test_user_satisfied_is_also_consecutive_positive_turns_however_mild():
    assert signals(*[Sentiment(0.31, 0.31)] * 2) == [[], ["user_satisfied"]]
    assert signals(*[Sentiment(0.3, 0.3)] * 2) == [[], []]
    assert signals(Sentiment(0.4, 0.4), Sentiment(-0.4, 0.4), Sentiment(0.4, 0.4)) == [[], [], []]


def test_user_confused_is_confusion_keywords_or_neutral_with_many_negative_words():
    assert signals(Sentiment(0, 0, 0, ("unclear",))) == [["user_confused"]]
    assert signals(Sentiment(0, 0, 2)) == [["user_confused"]]
    assert signals(Sentiment(0, 0, 1)) == [[]]
    assert signals(Sentiment(-0.3, 0.3, 2), Sentiment(0.3, 0.3, 2)) == [["user_confused"]] * 2
    assert signals(Sentiment(-0.31, 0.31, 3)) == [[]]


def test_low_engagement_is_four_or_more_consecutive_neutral_turns_of_less_than_50_characters_on_average():
    assert signals(*[Sentiment(0, 0)] * 5, characters=49) == [[], [], [], ["low_engagement"], ["low_engagement"]]
    assert signals(*[Sentiment(0, 0)] * 5, characters=50) == [[], [], [], [], []]
    lengths = (199, 0, 0, 0)
    counters = Counters()
    for characters in lengths:
        counters = count(counters, Sentiment(0, 0), characters, USUAL)
    assert [each.name for each in detect(counters, Sentiment(0, 0), USUAL)] == ["low_engagement"]
    assert is_disengaged(count(counters, Sentiment(0, 0), 51, USUAL)) is None


def test_error_threshold_exceeded_is_two_or_more_errors_in_the_last_ten_results():
    assert errors_exceed([True, False, True], 1) is not None
    assert errors_exceed([True, *[False] * 8, True], 1) is not None
    assert errors_exceed([True, *[False] * 9, True], 1) is None
    assert errors_exceed([True, False, False], 3) is None
    assert errors_exceed([False, True, True], 1) is None, "an old pair is a signal once"


def test_a_rule_is_a_signal_on_every_turn_on_which_it_holds():
    """There is no cool-down: "4+ consecutive neutral turns" are four, and five, and six."""
    assert signals(*[Sentiment(-0.9, 0.9)] * 3) == [["user_frustrated"]] * 3
    assert signals(*[Sentiment(0, 0)] * 6, characters=9)[3:] == [["low_engagement"]] * 3


def test_the_thresholds_are_those_of_the_settings():
    tutor = SentimentSettings(frustration_threshold=-0.2, satisfaction_threshold=0.2)
    assert signals(Sentiment(-0.21, 0.7), Sentiment(0.21, 0.7), by=tutor) == [["user_frustrated"], ["user_satisfied"]]
    assert signals(Sentiment(-0.2, 0.7), Sentiment(0.2, 0.7), by=tutor) == [[], []]


def test_neutral_turns_are_not_counted_as_confusion():
    """Elsewhere they were: there was one counter for both."""
    neutral = count(count(Counters(), Sentiment(0, 0), 10, USUAL), Sentiment(0, 0), 10, USUAL)
    assert (neutral.neutral, neutral.confusion, neutral.frustration, neutral.satisfaction) == (2, 0, 0, 0)
    confused = count(neutral, Sentiment(0, 0, 0, ("unclear",)), 10, USUAL)
    assert (confused.neutral, confused.confusion) == (0, 1)


def test_the_history_window_bounds_what_is_kept():
    counters = Counters()
    for number in range(9):
        counters = count(counters, Sentiment(number / 10, 0), number, SentimentSettings(history_window=3))
    assert (counters.scores, counters.lengths, counters.turns) == ((0.6, 0.7, 0.8), (6, 7, 8), 9)
    assert Counters.from_json(counters.to_json()) == counters


def test_consecutive_turns_for_trigger_is_exact_at_its_boundary():
    three = SentimentSettings(consecutive_turns_for_trigger=3)
    assert signals(*[Sentiment(-0.4, 0.4)] * 4, by=three) == [[], [], ["user_frustrated"], ["user_frustrated"]]


@given(st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 3), st.booleans()), max_size=30))
def test_counters_are_what_a_plain_count_of_the_last_turns_says(turns: list[tuple[float, int, bool]]):
    counters = Counters()
    kinds: list[set[str]] = []
    for score, words, confused in turns:
        counters = count(counters, Sentiment(score, abs(score), words, ("huh",) if confused else ()), 10, USUAL)
        kind = {"frustration"} if score < -0.3 else {"satisfaction"} if score > 0.3 else set[str]()
        if confused or (not kind and words >= 2):
            kind.add("confusion")
        kinds.append(kind or {"neutral"})
    for name in ("frustration", "satisfaction", "confusion", "neutral"):
        streak = 0
        while streak < len(kinds) and name in kinds[-1 - streak]:
            streak += 1
        assert getattr(counters, name) == streak


@pytest.mark.parametrize(
    "answer", [2, -1.5, None, "bad", True, float("nan"), {}, {"score": "x"}, {"score": 0, "intensity": 7}], ids=repr
)
def test_a_classifier_that_answers_nonsense_is_refused(answer: object):
    with pytest.raises(InvalidInput):
        checked(answer, "Hello.")


def test_a_trained_classifier_gives_a_score_or_a_mapping():
    assert by_classifier(lambda _: -0.5, "Hello.") == Sentiment(-0.5, 0.5)
    assert by_classifier(lambda _: {"score": 0.5, "intensity": 1}, "I'm lost.") == Sentiment(0.5, 1, 0, ("i'm lost",))
    assert load_classifier("math:sin") is not None
    with pytest.raises(InvalidInput, match="there is no function at 'math:nothing'"):
        load_classifier("math:nothing")
