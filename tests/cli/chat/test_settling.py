"""When the agents of a space are done with what was said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from denizen.cli.chat.settling import LOOKS, Settling
from denizen.client import Agent, AgentStatus, Author, Member, Message
from tests.made import made, status

ADA = made(Member, id="ada", kind="agent", handle="ada", name="Ada")
BO = made(Member, id="bo", kind="agent", handle="bo", name="Bo", attention="mentions")
NOOR = made(Member, id="noor", kind="human", handle="noor", name="Noor")


def said(author: Member, *mentions: str) -> Message:
    by = Author(id=author.id, kind=author.kind, name=author.name)
    at = datetime(2026, 1, 5, 9, tzinfo=UTC)
    return made(Message, id="m", space_id="s", seq=1, author=by, text="Hello.", mentions=mentions, created_at=at)


def after(*events: Message | AgentStatus) -> Settling:
    settling = Settling([NOOR, ADA, BO])
    for event in events:
        settling.feed(event)
    return settling


def test_a_message_is_waited_for_until_the_agent_has_slept_on_it() -> None:
    assert after(said(NOOR)).waiting_for == [ADA]
    assert after(said(NOOR), status("ada", "alive")).waiting_for == [ADA]
    assert after(said(NOOR), status("ada", "alive"), status("ada", "sleeping")).settled


def test_only_those_it_is_for_are_waited_for() -> None:
    """Bo attends to mentions; nobody answers oneself."""
    assert after(said(NOOR, "bo")).waiting_for == [ADA, BO]
    assert after(said(ADA)).settled
    assert after(said(ADA, "bo")).waiting_for == [BO]


def test_what_is_said_during_a_thought_is_thought_about_next() -> None:
    """The cycle under way ends; the message that came in the meantime is still to be looked at."""
    events = (status("ada", "alive"), said(NOOR), status("ada", "sleeping"))
    assert after(*events).waiting_for == [ADA]
    assert after(*events, status("ada", "alive"), status("ada", "sleeping")).settled


def test_an_agent_that_waited_for_this_answer_is_waited_for() -> None:
    """The stream may tell that it waits after the message that is the answer."""
    events = (said(NOOR), status("ada", "paused"))
    assert after(*events).waiting_for == [ADA]
    assert after(*events, status("ada", "alive"), status("ada", "sleeping")).settled
    assert after(said(NOOR), status("ada", "alive"), status("ada", "paused")).settled


def test_whoever_is_suspended_is_not_waited_for() -> None:
    assert after(status("ada", "suspended"), said(NOOR)).settled
    assert after(said(NOOR), status("ada", "suspended")).settled


def found(ada: str, bo: str = "sleeping") -> list[Agent]:
    return [
        made(Agent, id=id_, handle=id_, name=id_, status=status, model="demo", about="")
        for id_, status in (("ada", ada), ("bo", bo), ("elsewhere", "alive"))
    ]


def test_after_a_quiet_while_only_those_who_are_awake_are_waited_for() -> None:
    """A message that wakes nobody, and one that was taken in the middle of a cycle, end here."""
    settling = after(said(ADA, "bo"), status("ada", "alive"), said(NOOR))
    assert settling.waiting_for == [ADA, BO]
    settling.excuse(found(ada="alive"))
    assert settling.waiting_for == [ADA]
    settling.excuse(found(ada="sleeping"))
    assert settling.settled


def test_whoever_slept_when_a_person_spoke_may_be_slow_to_wake() -> None:
    """On a busy machine nothing had been heard of it, and that was taken for its answer."""
    settling = after(said(NOOR))
    for _ in range(LOOKS - 1):
        settling.excuse(found(ada="sleeping"))
        assert settling.waiting_for == [ADA]
    settling.excuse(found(ada="sleeping"))
    assert settling.settled


@pytest.mark.parametrize("status", ["paused", "suspended", "dead"])
def test_whoever_will_not_wake_is_excused_at_once(status: str) -> None:
    settling = after(said(NOOR))
    settling.excuse(found(ada=status))
    assert settling.settled
