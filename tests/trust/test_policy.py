"""Which calls are made, which ask a person, which are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from denizen.trust.policy import Decision, EffectRule, EffectSettings, PlannedCall, PrivateWords, Speaker, decide
from denizen.trust.values import read_values

WORDS = EffectSettings()
STRICT = EffectSettings(after_outside_text="ask")
ADA = Speaker("ada", "member")


def attempt(tool: str = "send_email", said: str = "Write to bo@x.example.", **changes: Any) -> PlannedCall:
    given: dict[str, Any] = {
        "arguments": {"to": "bo@x.example", "body": "Hello"},
        "effect": True,
        "outside": ["get_page"],
        "trusted": read_values(said),
        "speakers": [ADA],
    }
    return PlannedCall(tool, **(given | changes))


def test_without_text_from_outside_everything_runs() -> None:
    assert decide(attempt(said="", outside=[], needs_trusted=True), STRICT).rule == "no_text_from_outside"


NINE = PrivateWords('De"n', 9)
LET_ALL = EffectSettings(after_outside_text="allow", rules=(EffectRule(do="allow"),))


@pytest.mark.parametrize(
    ("changes", "settings", "action", "rule"),
    [
        ({}, LET_ALL, "deny", "private_words"),
        ({"outside": []}, WORDS, "deny", "private_words"),
        ({"tells": "message"}, WORDS, "deny", "private_words"),
        ({"tells": "question"}, STRICT, "deny", "private_words"),
        ({"tells": "message", "private": None}, STRICT, "allow", "message_to_people"),
        (
            {"tells": "question", "private": None},
            EffectSettings(rules=(EffectRule(do="deny"),)),
            "allow",
            "message_to_people",
        ),
        ({"private": None}, LET_ALL, "allow", "allowed_by_rule"),
    ],
)
def test_private_words_are_refused_whatever_the_settings_say_and_nothing_else_stops_a_message(
    changes: dict[str, Any], settings: EffectSettings, action: str, rule: str
) -> None:
    given: dict[str, Any] = {"private": NINE} | changes
    found = decide(attempt(**given), settings)
    assert (found.action, found.rule) == (action, rule)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tells": "message"}, "Not sent: your message shares 9 consecutive words with something said in the private"),
        ({"tells": "question"}, "Not called: what you wrote for it shares 9 consecutive words with something said in"),
        ({}, "Not called: what you wrote for it shares 9 consecutive words with something said in the private space"),
        (
            {"tells": "message", "private": PrivateWords("Den", 9, remembered=True)},
            "Not sent: your message shares 9 consecutive words with something that you remember, and not everyone who",
        ),
    ],
)
def test_a_refusal_is_told_as_json_with_the_rule(changes: dict[str, Any], told: str) -> None:
    given: dict[str, Any] = {"private": NINE} | changes
    refused = json.loads(decide(attempt(**given), WORDS).told)
    assert (refused["success"], refused["error"]) == (False, "private_words")
    assert refused["message"].startswith(told)
    assert refused["message"].endswith("Say only what may be known here, in words of your own, or leave it out.")
    denied = json.loads(decide(attempt(), EffectSettings(rules=(EffectRule(do="deny"),))).told)
    assert (denied["success"], denied["error"]) == (False, "effect_refused")


def test_what_only_reads_runs() -> None:
    assert decide(attempt(said="", effect=False), STRICT) == Decision("allow", "only_reads")


def test_an_effect_whose_values_a_person_said_runs() -> None:
    assert decide(attempt(), WORDS) == Decision("allow", "in_persons_words")


def test_an_effect_with_another_value_asks_and_says_which() -> None:
    found = decide(attempt(arguments={"to": ["bo@x.example", "eve@evil.example"], "body": "Hello"}), WORDS)
    assert (found.action, found.rule) == ("ask", "not_in_words")
    assert found.why == (
        "to 'eve@evil.example' does not stand in a person's words, and may come from text from outside (get_page)."
    )


def test_an_address_that_looks_like_the_one_a_person_named_is_shown_with_its_other_letters() -> None:
    """Otherwise the person would see their own address, and approve."""
    found = decide(attempt(arguments={"to": "b\u043e@x.example", "body": "Hello"}), WORDS)
    assert (found.action, found.rule) == ("ask", "not_in_words")
    assert found.why.startswith(r"to 'b\u043e@x.example' does not stand in a person's words")
    found = decide(attempt(arguments={"to": "bo@x.example", "body": "See www.\u0435vil.example"}), WORDS)
    assert found.why.startswith(r"'www.\u0435vil.example' in body does not stand")
    found = decide(attempt(arguments={"to": "bo@x.example", "city": "\u0410\u0431\u0431\u0430"}), WORDS)
    assert found.why.startswith("city '\u0410\u0431\u0431\u0430' does not stand")


def test_a_link_in_a_text_that_nobody_wrote_asks() -> None:
    found = decide(attempt(arguments={"to": "bo@x.example", "body": "See www.evil.example"}), WORDS)
    assert (found.action, found.rule) == ("ask", "strange_address")
    assert "'www.evil.example' in body" in found.why


def test_a_text_too_long_to_look_at_asks() -> None:
    found = decide(attempt(arguments={"to": "bo@x.example", "body": "x " * 20_000}), WORDS)
    assert (found.action, found.rule) == ("ask", "too_long")


def test_an_effect_that_was_written_as_text_asks_whatever_was_read() -> None:
    assert decide(attempt(written_as_text=True, outside=[]), WORDS).rule == "written_as_text"
    assert decide(attempt(written_as_text=True, effect=False, outside=[]), WORDS).action == "allow"


def test_strict_asks_for_every_effect() -> None:
    assert decide(attempt(), STRICT).rule == "every_effect"


def test_allow_lets_every_effect_run() -> None:
    assert decide(attempt(said=""), EffectSettings(after_outside_text="allow")).action == "allow"


def test_a_tool_that_needs_trusted_text_asks_even_if_it_only_reads() -> None:
    assert decide(attempt(needs_trusted=True, effect=False), WORDS).rule == "needs_trusted"


def test_a_tool_that_was_not_named_asks() -> None:
    assert decide(attempt(declared={"post"}), WORDS).rule == "not_declared"
    assert decide(attempt(declared={"send_email"}), WORDS).action == "allow"


def test_text_alone_runs_only_if_the_tool_was_named_before_reading() -> None:
    alone: dict[str, Any] = {"arguments": {"text": "Hello", "quiet": True}}
    assert decide(attempt(**alone), WORDS).rule == "nothing_in_words"
    assert decide(attempt(declared={"send_email"}, **alone), WORDS).rule == "nothing_in_words"
    before = attempt(declared={"send_email"}, declared_before_reading=True, **alone)
    assert decide(before, WORDS).action == "allow"


def test_the_definition_of_a_tool_may_tell_kinds() -> None:
    arguments = {"to": "bo@x.example", "mood": "cheerful"}
    assert decide(attempt(arguments=arguments), WORDS).rule == "not_in_words"
    assert decide(attempt(arguments=arguments, kinds={"mood": "text"}), WORDS).action == "allow"


def test_what_an_effect_of_this_cycle_made_may_be_used_by_its_id() -> None:
    arguments = {"file_id": "26", "email": "bo@x.example"}
    assert decide(attempt(arguments=arguments), WORDS).rule == "not_in_words"
    assert decide(attempt(arguments=arguments, made={("file_id", "26")}), WORDS).action == "allow"
    assert decide(attempt(arguments=arguments, made={("event_id", "26")}), WORDS).action == "ask"


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        (EffectRule(tool="send_*", do="deny"), "deny"),
        (EffectRule(tool="send_email", do="ask"), "ask"),
        (EffectRule(tool="post", do="deny"), "allow"),
        (EffectRule(arguments={"to": "*@X.example"}, do="deny"), "deny"),
        (EffectRule(arguments={"to": "*@y.example"}, do="deny"), "allow"),
        (EffectRule(arguments={"cc": "*"}, do="deny"), "allow"),
        (EffectRule(spaces=("Team",), do="deny"), "deny"),
        (EffectRule(spaces=("Other",), do="deny"), "allow"),
        (EffectRule(speakers=("member",), do="deny"), "deny"),
        (EffectRule(speakers=("@ada",), do="deny"), "deny"),
        (EffectRule(speakers=("owner",), do="deny"), "allow"),
    ],
)
def test_the_first_rule_that_matches_decides(rule: EffectRule, action: str) -> None:
    settings = EffectSettings(rules=(rule, EffectRule(do="allow")))
    assert decide(attempt(space=("s1", "Team"), outside=[]), settings).action == action


def test_a_rule_for_speakers_needs_all_of_them() -> None:
    """Nobody gets a right by speaking beside somebody who has it."""
    settings = EffectSettings(rules=(EffectRule(speakers=("owner",), do="allow"),), after_outside_text="ask")
    boss = Speaker("cy", "owner")
    assert decide(attempt(speakers=[boss]), settings).action == "allow"
    assert decide(attempt(speakers=[boss, ADA]), settings).action == "ask"
    assert decide(attempt(speakers=[]), settings).action == "ask"


def test_a_rule_for_an_argument_needs_every_value_of_a_list() -> None:
    settings = EffectSettings(rules=(EffectRule(arguments={"to": "*@x.example"}, do="allow"),))
    to = ["bo@x.example", "eve@evil.example"]
    assert decide(attempt(arguments={"to": to}, said=""), settings).action == "ask"
    assert decide(attempt(arguments={"to": to[:1]}, said=""), settings).action == "allow"
    assert decide(attempt(arguments={"to": []}, said=""), settings).rule == "nothing_in_words"
