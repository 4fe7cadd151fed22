"""What can be said of events without asking a model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError

from denizen.cycles.conditions import Condition, holds
from denizen.inbox.events import Event

SAID = Event(
    number=1,
    id="e1",
    type="space_message",
    lane="normal",
    hop=0,
    wakes=True,
    attempts=0,
    created_at=0,
    text="Shall we plan the deploy?",
    space_id="s1",
    space_name="Kitchen",
    sender_kind="human",
)
MENTION = replace(SAID, type="mention")
SERVICE = replace(SAID, type="service_trigger", sender_kind=None, space_name=None, text="", payload={"data": ["red"]})


@pytest.mark.parametrize(
    ("condition", "event", "true"),
    [
        ({}, SAID, True),
        ({"types": ["mention"]}, SAID, False),
        ({"types": ["mention", "space_message"]}, SAID, True),
        ({"senders": ["human"]}, SAID, True),
        ({"senders": ["agent", "service"]}, SAID, False),
        ({"senders": ["service"]}, SERVICE, True),
        ({"mentioned": True}, MENTION, True),
        ({"mentioned": False}, MENTION, False),
        ({"mentioned": False}, SAID, True),
        ({"urgent": True}, SAID, False),
        ({"urgent": True}, replace(SAID, lane="urgent"), True),
        ({"words": ["DEPLOY", "no such"]}, SAID, True),
        ({"words": ["deploy?"]}, SAID, True),
        ({"words": ["lan"]}, SAID, False),  # "plan" is no lan
        ({"words": ["the deploy"]}, SAID, True),
        ({"words": ["red"]}, SERVICE, True),
        ({"shorter_than": 25}, SAID, False),
        ({"shorter_than": 26}, SAID, True),
        ({"longer_than": 25}, SAID, False),
        ({"longer_than": 24}, SAID, True),
        ({"spaces": ["Kitchen"]}, SAID, True),
        ({"spaces": ["kitchen"]}, SAID, False),
        ({"spaces": ["Kitchen"]}, SERVICE, False),
        ({"words": ["deploy"], "senders": ["agent"]}, SAID, False),
    ],
)
def test_all_that_is_said_must_be_true_of_an_event(condition: dict[str, object], event: Event, true: bool):
    assert Condition.model_validate(condition).holds_for(event) is true


def test_a_condition_holds_for_a_batch_if_it_does_for_each_event_that_wakes():
    """What only waits to be read along decides nothing."""
    plain = Condition(mentioned=False)
    assert holds(plain, [SAID, SAID])
    assert not holds(plain, [SAID, MENTION])
    assert holds(plain, [SAID, replace(MENTION, wakes=False)])


def test_nothing_holds_for_nothing():
    assert not holds(Condition(), [])
    assert not holds(Condition(), [replace(SAID, wakes=False)])


@pytest.mark.parametrize("wrong", [{"word": ["x"]}, {"types": ["mesage"]}, {"words": [""]}, {"shorter_than": 0}])
def test_a_condition_that_means_nothing_is_refused(wrong: dict[str, object]):
    with pytest.raises(ValidationError):
        Condition.model_validate(wrong)
