"""Which of the waiting events a cycle takes."""

from __future__ import annotations

from typing import Any

from denizen.inbox.delivery import TRIED_ALONE_AFTER, next_batch
from denizen.inbox.events import ALONE, Event


def waiting(number: int, space_id: str | None = "home", **more: Any) -> Event:
    fields: dict[str, Any] = {"lane": "normal", "wakes": True, "attempts": 0, **more}
    return Event(number, f"e-{number}", "space_message", hop=0, created_at=0, text="", space_id=space_id, **fields)


def requested(number: int, space_id: str | None = "home", **more: Any) -> Event:
    return waiting(number, space_id, payload={ALONE: True}, **more)


def numbers(*events: Event) -> list[int]:
    return [event.number for event in next_batch(events)]


def test_of_the_requests_of_programs_in_one_space_a_cycle_takes_one() -> None:
    events = (requested(1), requested(2), requested(3, "hall"), requested(4, None), requested(5, None))
    assert numbers(*events) == [1, 3, 4, 5]


def test_a_request_is_taken_together_with_what_people_say_before_it() -> None:
    """What comes after the second request waits with it: events of a space are taken in order."""
    assert numbers(waiting(1), requested(2), waiting(3), requested(4), waiting(5), waiting(6, "hall")) == [1, 2, 3, 6]


def test_an_urgent_message_does_not_wait_behind_a_request() -> None:
    assert numbers(requested(1), requested(2), waiting(3, lane="urgent")) == [1, 3]


def test_an_event_that_failed_twice_holds_up_its_space_and_no_other() -> None:
    failed = waiting(2, attempts=TRIED_ALONE_AFTER)
    assert numbers(waiting(1), failed, waiting(3), waiting(4, "hall")) == [1, 4]
    assert numbers(failed, waiting(3), waiting(4, "hall")) == [2]


def test_events_that_do_not_wake_are_read_with_one_that_does() -> None:
    assert numbers(waiting(1, wakes=False)) == []
    assert numbers(waiting(1, wakes=False), waiting(2, "hall")) == [1, 2]
