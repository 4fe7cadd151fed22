"""How far a chain of agents answering each other has come."""

from __future__ import annotations

from denizen.ids import SpaceId
from denizen.inbox.events import Event
from denizen.tools.hops import hop_of_send

HALL, ATTIC = SpaceId("hall"), SpaceId("attic")


def event(number: int, hop: int, space: SpaceId | None) -> Event:
    return Event(number, f"event-{number}", "space_message", "normal", hop, True, 0, 0, "", space_id=space)


def test_a_send_is_one_further_than_the_newest_event_from_its_space():
    assert hop_of_send([event(1, 4, HALL), event(2, 0, HALL), event(3, 5, ATTIC)], HALL) == 1
    assert hop_of_send([event(2, 0, HALL), event(1, 4, HALL)], HALL) == 1
    assert hop_of_send([event(1, 0, HALL), event(2, 4, HALL)], HALL) == 5


def test_where_nothing_came_from_that_space_the_whole_cycle_counts():
    assert hop_of_send([event(1, 4, HALL), event(2, 0, HALL)], ATTIC) == 5
    assert hop_of_send([event(1, 3, None)], ATTIC) == 4
    assert hop_of_send([], ATTIC) == 1
