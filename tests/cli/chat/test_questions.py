"""What agents ask, as one who reads along knows it: told once, numbered where there are several, answered by words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from denizen.cli.chat.questions import Ended, News, PendingQuestion, Questions, Used, concerns, hear, read_answer
from denizen.client import Call, Member, Space
from denizen.errors import InvalidInput
from tests.made import made

ADA = made(Member, id="ada", kind="agent", handle="ada", name="Ada")
OPS = made(Space, id="ops", name="Ops", private=False, last_seq=0, members=(ADA,))


def asked(id_: str, state: str = "waiting", *, mode: str = "pause", space: str | None = "ops") -> Call:
    at = datetime(2026, 1, 5, 9, tzinfo=UTC)
    arguments: JsonValue = {"question": f"{id_}?"}
    return made(Call,
        id=id_, agent_id="ada", space_id=space, tool="confirm", mode=mode, state=state, arguments=arguments,
        created_at=at,
    )  # fmt: skip


def heard(*calls: Call) -> tuple[Questions, list[News]]:
    state, told = Questions(), list[News]()
    for call in calls:
        state, news = hear(state, call)
        told += [] if news is None else [news]
    return state, told


def test_a_question_is_told_when_it_is_asked_and_when_it_is_answered() -> None:
    """However often one hears of it."""
    state, told = heard(asked("a"), asked("a"), asked("a", "answered"), asked("a", "answered"), asked("a"))
    assert told == [PendingQuestion(asked("a"), None, {}), Ended(asked("a", "answered"), None)]
    assert state.known == {}


def test_several_questions_have_numbers() -> None:
    state, told = heard(asked("a"), asked("b"), asked("a", "answered"))
    assert told[1:] == [PendingQuestion(asked("b"), 2, {1: asked("a")}), Ended(asked("a", "answered"), 1)]
    assert state.waiting == {2: asked("b")}


def test_no_number_is_given_twice() -> None:
    """What is typed for a question that has just been settled does not answer the next one."""
    state, told = heard(asked("a"), asked("b"), asked("a", "answered"), asked("b", "cancelled"), asked("c"))
    assert told[-1] == PendingQuestion(asked("c"), 3, {})
    with pytest.raises(InvalidInput, match="Question 1 no longer waits"):
        read_answer(state, "/answer", "1 egg")
    assert read_answer(state, "/answer", "3 1 egg") == (asked("c"), "1 egg")


def test_a_visible_call_is_told_when_it_has_its_result() -> None:
    calls = [asked("a", mode="visible"), asked("a", "answered", mode="visible")]
    assert heard(*calls)[1] == [Used(calls[1])]
    assert heard(*calls)[0].known == {}


def test_what_is_not_waited_for_can_still_be_answered() -> None:
    """As long as nothing else waits, and then once."""
    state, told = heard(asked("a"), asked("a", "interrupted"))
    assert told[1:] == [Ended(asked("a", "interrupted"), None)]
    assert read_answer(state, "/yes", "")[0].id == "a"
    assert read_answer(hear(state, asked("b"))[0], "/yes", "")[0].id == "b"
    assert hear(state, asked("a", "late")) == (Questions({}, 1, told={"a": 2}), Ended(asked("a", "late"), None))


@pytest.mark.parametrize(
    ("waiting", "command", "typed", "meant"),
    [
        ("a", "/answer", "in the morning", ("a", "in the morning")),
        ("a", "/answer", "1 egg", ("a", "1 egg")),
        ("a", "/yes", "", ("a", {"confirmed": True})),
        ("a", "/no", "1", ("a", {"confirmed": False})),
        ("ab", "/answer", "2 in the  morning", ("b", "in the  morning")),
        ("ab", "/yes", "1", ("a", {"confirmed": True})),
    ],
)
def test_answers_find_their_question(waiting: str, command: str, typed: str, meant: tuple[str, JsonValue]) -> None:
    call, result = read_answer(heard(*map(asked, waiting))[0], command, typed)
    assert (call.id, result) == meant


@pytest.mark.parametrize(
    ("waiting", "command", "typed", "sentence"),
    [
        ("", "/yes", "", "Nobody waits for an answer here."),
        ("a", "/yes", "please", "/yes stands for itself. To say more, write /answer and your own words."),
        ("ab", "/yes", "", r"Which one\? Write its number first, as in /yes 1: 1 \(a\?\), 2 \(b\?\)."),
        ("ab", "/answer", "in the morning", "Which one?"),
        ("ab", "/answer", "7 in the morning", "Which one?"),
        ("ab", "/answer", "2", "The answer is empty: write it after /answer."),
    ],
)
def test_answers_that_could_mean_anything_are_not_given(waiting: str, command: str, typed: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        read_answer(heard(*map(asked, waiting))[0], command, typed)


def of_server(**fields: JsonValue) -> Questions:
    form: JsonValue = {"type": "object", "properties": fields}
    question = asked("a", mode="elicitation").model_copy(
        update={"arguments": {"server": "shop", "message": "What?", "form": form}}
    )
    return heard(question)[0]


@pytest.mark.parametrize(
    ("fields", "typed", "content"),
    [
        ({"name": {"type": "string"}}, "Noor Ali", {"name": "Noor Ali"}),
        ({"guests": {"type": "integer"}}, "4", {"guests": 4}),
        (
            {"guests": {"type": "integer"}, "where": {"type": "string"}, "rain": {"type": "boolean"}},
            'guests=4 where="in the garden" rain=no',
            {"guests": 4, "where": "in the garden", "rain": False},
        ),
        ({"price": {"type": "number"}}, "price=cheap", {"price": "cheap"}),
    ],
)
def test_the_form_of_a_server_is_filled_in(fields: dict[str, JsonValue], typed: str, content: JsonValue) -> None:
    """What does not fit is sent as it is: the server says what is wrong with it."""
    assert read_answer(of_server(**fields), "/answer", typed)[1] == {"action": "accept", "content": content}


@pytest.mark.parametrize(
    ("fields", "typed", "sentence"),
    [
        ({}, "hello", "Write /yes, or /no."),
        ({"a": {}, "b": {}}, "hello", "Write /answer a=… b=…, or /no."),
        ({"a": {}}, "c=1", "Write /answer a=…, or /no."),
        ({"a": {}}, 'a="1', "Put a value with spaces into quotation marks."),
    ],
)
def test_values_for_no_field_are_not_sent(fields: dict[str, JsonValue], typed: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        read_answer(of_server(**fields), "/answer", typed)


def test_an_answer_to_a_number_that_is_settled_goes_to_no_other() -> None:
    """Somebody else was faster: what was meant for the first question does not answer the second."""
    state, _ = heard(asked("a"), asked("b"), asked("a", "answered"))
    for command, typed in (("/yes", "1"), ("/answer", "1 yes")):
        with pytest.raises(InvalidInput, match=r"Question 1 no longer waits for an answer. Waiting: 2 \(b\?\)."):
            read_answer(state, command, typed)
    assert read_answer(state, "/answer", "30 eggs") == (asked("b"), "30 eggs")


def test_a_question_asked_in_no_space_is_for_those_who_meet_the_agent() -> None:
    """Of the others only what waits for people: an `async` call may be a service's to answer."""
    assert concerns(asked("a"), OPS)
    assert not concerns(asked("a", space="elsewhere"), OPS)
    assert not concerns(asked("a", mode="visible"), OPS)
    assert concerns(asked("a", space=None), OPS)
    assert not concerns(asked("a", space=None, mode="async"), OPS)
    assert not concerns(asked("a", space=None).model_copy(update={"agent_id": "bo"}), OPS)
    assert not concerns(asked("a"), None)


_states = st.sampled_from(["waiting", "answered", "interrupted", "expired", "cancelled", "late"])


@given(st.lists(st.builds(asked, st.sampled_from("abc"), _states), max_size=30))
def test_whatever_is_heard_in_whatever_order_nothing_is_asked_twice(calls: list[Call]) -> None:
    """Neither after it was settled; and what is told to wait can be answered by its number."""
    state, told = heard(*calls)
    for id_ in "abc":
        of_it = [news for news in told if news.call.id == id_]
        assert sum(isinstance(each, PendingQuestion) for each in of_it) <= 1
        assert not any(isinstance(each, PendingQuestion) for each in of_it[1:])
    for number, call in state.waiting.items():
        assert read_answer(state, "/yes", str(number))[0] == call
