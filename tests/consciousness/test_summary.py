from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from denizen.consciousness.summary import Effect, derived_summary, exchange_summary, last_words


def sent(space: str, ok: bool = True) -> Effect:
    return Effect("send_message", {"space_name": space, "space_id": "s-1", "text": "Hello"}, ok)


def test_what_a_cycle_did_is_told_in_one_line():
    effects = [sent("Planning"), Effect("set_timer", {"seconds": 60}, ok=True), sent("Planning")]

    assert derived_summary(effects) == 'Sent 2 messages to "Planning". Set a timer. (No summary was written.)'


def test_every_kind_of_deed_has_its_words():
    effects = [
        sent("Family"),
        Effect("send_message", {"text": "no space told"}, ok=True),
        Effect("send_message", {"space_id": "s-9"}, ok=True),
        *[Effect("set_timer", {}, ok=True)] * 3,
        Effect("set_plans", {}, ok=True),
        *[Effect("set_goals", {}, ok=True)] * 2,
        Effect("set_memories", {}, ok=True),
        *[Effect("jira_search", {"query": "bug"}, ok=True)] * 2,
    ]

    assert derived_summary(effects) == (
        'Sent a message to "Family". Sent a message. Sent a message to "s-9". Set 3 timers. Changed its plans. '
        'Changed its goals 2 times. Changed its notes. Called "jira_search" 2 times. (No summary was written.)'
    )


def test_failures_are_told_apart_from_what_was_done():
    effects = [sent("Family", ok=False), sent("Family"), *[Effect("deploy", {}, ok=False)] * 2]

    assert derived_summary(effects) == (
        'Failed at "send_message" to "Family". Sent a message to "Family". Failed at "deploy" 2 times. '
        "(No summary was written.)"
    )


def test_a_cycle_without_effects_says_so():
    assert derived_summary([]) == "Did nothing. (No summary was written.)"


def test_many_different_deeds_are_counted_rather_than_listed():
    effects = [Effect(f"tool_{n}", {}, ok=True) for n in range(12)]

    assert derived_summary(effects) == (
        'Called "tool_0". Called "tool_1". Called "tool_2". Called "tool_3". Called "tool_4". Called "tool_5". '
        'Called "tool_6". And 5 other things. (No summary was written.)'
    )


def test_last_words_are_one_line():
    assert last_words("  Told Noor about\n\nthe deadline.\t Pending: none. ") == (
        "Told Noor about the deadline. Pending: none."
    )
    assert last_words("   \n ") == ""


def test_long_last_words_are_cut():
    assert last_words("word " * 200, limit=22) == "word word word word w…"
    assert last_words("word " * 200, limit=21) == "word word word word…"
    assert last_words("x" * 500) == "x" * 500
    assert last_words("x" * 501) == "x" * 499 + "…"


@given(st.text(), st.lists(st.builds(Effect, st.text(), st.fixed_dictionaries({"space": st.text()}), st.booleans())))
def test_a_summary_is_always_one_line_of_bounded_length(text: str, effects: list[Effect]):
    assert len(last_words(text, limit=40).splitlines()) <= 1
    assert len(last_words(text, limit=40)) <= 40
    assert len(derived_summary(effects).splitlines()) == 1
    assert len(derived_summary(effects)) <= 8 * 300


def test_an_exchange_is_told_by_its_first_messages_and_its_last_answers():
    heard = [(who, f"Question of {who}?") for who in ("Ada", "Bee", "Cy", "Dan")]
    told = exchange_summary(heard, ["One.", "Two.", "Three."])
    wrote = " ".join(f'{who} wrote: "Question of {who}?"' for who in ("Ada", "Bee", "Cy"))
    assert told == f'{wrote} Answered: "Two." Answered: "Three."'


def test_a_long_message_is_told_by_its_beginning():
    fits = "a" * 119 + "."
    assert exchange_summary([("Ada", fits)], []) == f'Ada wrote: "{fits}"'
    assert exchange_summary([("Ada", f"{fits}!")], []) == f'Ada wrote: "{fits[:119]}"…'
