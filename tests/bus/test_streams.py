"""What frames say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from denizen.bus.streams import (
    AgentAlert,
    AgentBudget,
    AgentStatus,
    CycleChanged,
    Freshness,
    MembershipChanged,
    MessageCreated,
    SpaceChanged,
    StanceChanged,
    StreamAborted,
    StreamDelta,
    StreamFrame,
    StreamStarted,
    agent_topic,
    entity_topic,
    from_payload,
    space_topic,
    wake_payload,
    wanted,
    wanted_payload,
    woken,
)
from denizen.ids import AgentId, CycleId, EntityId, MessageId, SpaceId

ADA = AgentId("ada")
BEA = AgentId("bea")
HALL = SpaceId("hall")

names = st.text(max_size=5)
numbers = st.integers(0, 2**63)
frames = st.one_of(
    st.builds(MessageCreated, names.map(SpaceId), numbers, names.map(MessageId), names.map(EntityId)),
    st.builds(
        StreamStarted,
        names.map(MessageId),
        names.map(AgentId),
        names.map(SpaceId),
        numbers,
        st.none() | names.map(MessageId),
        st.booleans(),
    ),
    st.builds(StreamDelta, names.map(MessageId), names.map(AgentId), numbers, numbers, st.text()),
    st.builds(StreamAborted, names.map(AgentId), numbers, st.none() | names.map(MessageId), names),
    st.builds(AgentStatus, names.map(AgentId), names, st.none() | numbers),
    st.builds(CycleChanged, names.map(AgentId), names.map(CycleId), names),
    st.builds(AgentBudget, names.map(AgentId), names, st.floats(0, 2), names),
    st.builds(AgentAlert, names.map(AgentId), names, names),
    st.builds(StanceChanged, names.map(AgentId), names.map(SpaceId)),
    st.builds(MembershipChanged, names.map(EntityId), names.map(SpaceId)),
    st.builds(SpaceChanged, names.map(SpaceId)),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def test_topics_are_told_apart():
    assert space_topic(HALL) == "space:hall"
    assert agent_topic(ADA) == "agent:ada"
    assert entity_topic(ADA) == "entity:ada"


def test_what_is_wanted_survives_the_bus():
    assert wanted(wanted_payload([HALL])) == (HALL,)
    assert wanted({"spaces": "hall"}) == wanted({}) == ()
    assert wanted({"spaces": [1, "hall", None]}) == (HALL,)
    assert woken(wake_payload([ADA, BEA])) == (ADA, BEA)


@given(st.dictionaries(st.just("agents"), json_values))
def test_a_strange_wake_up_wakes_nobody_strange(payload: dict[str, JsonValue]):
    assert all(isinstance(agent, str) for agent in woken(payload))


@given(frames)
def test_a_frame_survives_the_bus(frame: StreamFrame):
    assert from_payload(frame.to_payload()) == frame


@given(frames, st.data())
def test_a_damaged_frame_is_ignored(frame: StreamFrame, data: st.DataObject):
    """Whatever stands in one field, there is a well-formed frame or none."""
    payload = frame.to_payload()
    field = data.draw(st.sampled_from(sorted(payload)))
    payload[field] = data.draw(json_values)
    heard = from_payload(payload)
    assert heard is None or heard.to_payload() == payload


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"type": "tool.started", "id": "1"},
        {"type": 7},
        {"type": "stream.delta", "id": "1", "agent": "ada", "epoch": True, "offset": 0, "text": "x"},
        {"type": "stream.delta", "id": "1", "agent": "ada", "epoch": 1, "offset": -1, "text": "x"},
        {"type": "stream.delta", "id": "1", "agent": "ada", "epoch": 1, "text": "x"},
        {"type": "agent.status", "agent": "ada", "status": "alive", "epoch": "1"},
    ],
)
def test_what_we_do_not_know_is_ignored(payload: dict[str, JsonValue]):
    assert from_payload(payload) is None


def test_optional_fields_may_be_missing():
    assert from_payload({"type": "agent.status", "agent": "ada", "status": "alive"}) == AgentStatus(ADA, "alive")


@given(st.lists(st.tuples(st.sampled_from([ADA, BEA]), st.integers(0, 4))), st.integers(0, 4))
def test_a_frame_is_fresh_if_none_of_a_higher_epoch_came_before(heard: list[tuple[AgentId, int]], known: int):
    freshness = Freshness()
    assert freshness.admit(ADA, known)
    newest: dict[AgentId, int] = {ADA: known}
    for agent, epoch in heard:
        assert freshness.admit(agent, epoch) == (epoch >= newest.get(agent, 0))
        newest[agent] = max(epoch, newest.get(agent, 0))
