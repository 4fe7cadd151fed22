"""Which preset a turn has: rules, defaults and cadence, and a fuzz against a plain restatement of the rules."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.profiles.presets import Preset, Presets, Rule
from denizen.profiles.router import CachedChoice, PresetChoice, ProfileChoice, choose, occurs, panel_text, route

IDS = ("a", "b", "c")


def presets(*rules: Rule, **more: object) -> Presets:
    by_priority = tuple(sorted(rules, key=lambda rule: -rule.priority))
    known = {id: Preset(id, (id,)) for id in IDS}
    return Presets(known, by_priority, addons={id: f"Text of {id}." for id in IDS}, **more)  # pyright: ignore[reportArgumentType]


def turns(found: Presets, messages: list[str], *, compacted_before: int = 0) -> list[ProfileChoice]:
    """The choices of a conversation, turn by turn."""
    chosen: list[ProfileChoice] = []
    cached: CachedChoice | None = None
    for number, message in enumerate(messages, start=1):
        each = choose(found, "ada", message, cached)
        chosen.append(each)
        cached = CachedChoice(each.choice, each.turn, each.reviewed, asked=number + 1 == compacted_before)
    return chosen


@pytest.mark.parametrize("every", [1, 2, 5, 6])
def test_selection_is_cached_per_conversation_and_reviewed_every_n_turns_exactly(every: int):
    """\"Every 6 turns\" fired every 7 elsewhere."""
    found = presets(Rule("r", "a", any=("x",)), review_every=every, default="b")
    reviewed = [each.turn for each in turns(found, ["x"] * 20) if each.is_new]
    assert reviewed == list(range(1, 21, every))


def test_reviewed_every_0_turns_is_never():
    """Also where it was every second turn when the conversation began."""
    found = presets(Rule("r", "a", any=("x",)), review_every=0, default="b")
    assert [each.turn for each in turns(found, ["x"] * 20) if each.is_new] == [1]
    before = turns(replace(found, review_every=2), ["x", "x"])[-1]
    cached = CachedChoice(before.choice, before.turn, before.reviewed)
    assert choose(replace(found, review_every=2), "ada", "y", cached).is_new
    assert not choose(found, "ada", "y", cached).is_new


def test_between_reviews_the_choice_stays_whatever_is_said():
    found = presets(Rule("r", "a", any=("x",)), review_every=3, default="b")
    assert [each.choice.preset for each in turns(found, ["x", "y", "y", "y", "x", "x", "x"])] == list("aaabbba"[:7])


def test_compaction_forces_a_review_only_where_that_is_wanted():
    messages = ["x", "y", "y", "y"]
    wanted = presets(Rule("r", "a", any=("x",)), review_every=100, default="b")
    assert [each.choice.preset for each in turns(wanted, messages, compacted_before=3)] == ["a", "a", "b", "b"]
    unwanted = presets(Rule("r", "a", any=("x",)), review_every=100, default="b", review_on_compaction=False)
    assert [each.choice.preset for each in turns(unwanted, messages, compacted_before=3)] == ["a", "a", "a", "a"]


def test_a_choice_whose_preset_is_no_more_is_made_anew():
    chosen = choose(presets(default="a"), "ada", "", CachedChoice(PresetChoice("gone", ""), 2, 1))
    assert chosen == ProfileChoice(PresetChoice("a", "default (the preset is no more)"), 3, 3)


@pytest.mark.parametrize(
    ("keyword", "message", "found"),
    [
        ("plan", "an explanation", False),
        ("plan", "a Plan.", True),
        ("plan", "plan_b", False),
        ("in short", "Say it in\n  short!", True),
        ("in short", "in shorts", False),
        ("c++", "I like C++.", True),
        ("tl;dr", "TL;DR please", True),
        ("straße", "Die STRASSE", False),
        ("?", "Really?", True),
        (".net", "ASP.NET", True),
        (".net", "a.network", False),
    ],
    ids=["part", "word", "underscore", "phrase", "longer", "signs", "semicolon", "folding", "sign", "dot", "dotted"],
)
def test_keywords_are_whole_words_or_phrases(keyword: str, message: str, found: bool):
    assert occurs(keyword, message) is found


def test_rules_are_by_priority_then_as_they_stand():
    found = presets(Rule("low", "a"), Rule("first", "b", 5), Rule("second", "c", 5))
    assert route(found, "ada", "hello") == PresetChoice("b", "rule 'first'")


@pytest.mark.parametrize(
    ("rule", "message", "holds"),
    [
        (Rule("r", "a", least=5), "four", False),
        (Rule("r", "a", least=5), "fives", True),
        (Rule("r", "a", most=5), "fives", True),
        (Rule("r", "a", most=5), "sixsix", False),
        (Rule("r", "a", most=0), "", True),
        (Rule("r", "a", any=("plan", "steps")), "the steps", True),
        (Rule("r", "a", any=("plan", "steps")), "the step", False),
        (Rule("r", "a", all=("plan", "steps")), "the plan", False),
        (Rule("r", "a", all=("plan", "steps")), "steps of a plan", True),
        (Rule("r", "a", any=("now",), all=("plan",), least=8, most=8), "plan now", True),
        (Rule("r", "a"), "", True),
        (Rule("r", "a", modes=("ad",)), "", True),
        (Rule("r", "a", modes=("bea",)), "", False),
    ],
)
def test_rules_match_by_mode_length_and_keywords(rule: Rule, message: str, holds: bool):
    """Length at the boundary; any keyword or all of them; what is not said does not matter."""
    assert (route(presets(rule), "ada", message).preset == "a") is holds


@pytest.mark.parametrize(
    ("mode", "preset", "reason"),
    [
        ("coding", "a", "default of the mode 'coding'"),
        ("coding-interview", "b", "default of modes with 'interview'"),
        ("my-coding", "a", "default of modes with 'coding'"),
        ("cooking", "c", "default"),
    ],
)
def test_defaults_by_mode_are_exact_then_the_longest_pattern(mode: str, preset: str, reason: str):
    found = presets(default="c", by_mode={"coding": "a", "interview": "b", "code": "c"})
    assert route(found, mode, "") == PresetChoice(preset, reason)


def test_without_a_default_there_is_no_profile():
    assert route(presets(), "ada", "hello").preset is None


def test_a_panel_turn_has_the_text_of_its_profile():
    found = presets(Rule("r", "a", any=("x",)), review_every=2)
    chosen, text = panel_text(found, "advisor", "x", None)
    assert (chosen.choice.preset, chosen.turn, text) == ("a", 1, "Text of a.")
    again, text = panel_text(found, "advisor", "y", CachedChoice(chosen.choice, chosen.turn, chosen.reviewed))
    assert (again.is_new, text) == (False, "Text of a.")
    assert panel_text(found, "advisor", "y", CachedChoice(again.choice, again.turn, again.reviewed))[1] == ""


# The same rules, said plainly and slowly

WORDS = ("plan", "explain", "in short", "a", "x", "c++", "?", "#x")
MODES = ("ada", "coding", "coding-interview", "review")
rules = st.builds(
    Rule,
    id=st.sampled_from(["r1", "r2", "r3"]),
    preset=st.sampled_from(IDS),
    priority=st.integers(-2, 2),
    modes=st.lists(st.sampled_from([*MODES, "cod", "view"]), max_size=2).map(tuple),
    any=st.lists(st.sampled_from(WORDS), max_size=2).map(tuple),
    all=st.lists(st.sampled_from(WORDS), max_size=2).map(tuple),
    least=st.sampled_from([0, 0, 5, 20]),
    most=st.sampled_from([None, None, 10, 40]),
)
messages = st.lists(
    st.sampled_from([*WORDS, "explanation", "shorts", "IN  SHORT", "Plan!", ",", "C++17", "a?"]), max_size=6
).map(" ".join)


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text.lower())


def has(message: str, keyword: str) -> bool:
    said, wanted = words_of(message), words_of(keyword)
    return any(said[at : at + len(wanted)] == wanted for at in range(len(said)))


def plainly(found: Presets, mode: str, message: str) -> str | None:
    best: Rule | None = None
    for rule in found.rules:
        if rule.modes and not any(each in mode for each in rule.modes):
            continue
        if not rule.least <= len(message) <= (10**9 if rule.most is None else rule.most):
            continue
        if rule.any and not any(has(message, each) for each in rule.any):
            continue
        if not all(has(message, each) for each in rule.all):
            continue
        if best is None or rule.priority > best.priority:
            best = rule
    if best is not None:
        return best.preset
    if mode in found.by_mode:
        return found.by_mode[mode]
    patterns = sorted((key for key in found.by_mode if key in mode), key=len)
    return found.by_mode[patterns[-1]] if patterns else found.default


@given(
    st.lists(rules, max_size=5),
    st.dictionaries(st.sampled_from([*MODES, "cod", "inter"]), st.sampled_from(IDS), max_size=3),
    st.sampled_from([None, *IDS]),
    st.sampled_from(MODES),
    messages,
)
def test_the_router_does_what_its_rules_say(
    given_rules: list[Rule], by_mode: dict[str, str], default: str | None, mode: str, message: str
):
    found = presets(*given_rules, by_mode=by_mode, default=default)
    assert route(found, mode, message).preset == plainly(found, mode, message)


@given(st.integers(1, 9), st.lists(st.booleans(), min_size=1, max_size=40))
def test_the_cadence_is_what_it_says_with_compactions_in_between(every: int, compactions: list[bool]):
    """A review is due with the first turn, n turns after the last, and with the turn after a compaction."""
    found = presets(review_every=every, default="a")
    cached: CachedChoice | None = None
    last = 0
    for turn, compacted in enumerate(compactions, start=1):
        before = None if cached is None else CachedChoice(cached.choice, cached.turns, cached.reviewed, compacted)
        chosen = choose(found, "ada", "", before)
        due = turn == 1 or compacted or turn - last >= every
        assert (chosen.turn, chosen.is_new) == (turn, due)
        last = turn if due else last
        cached = CachedChoice(chosen.choice, chosen.turn, chosen.reviewed)
