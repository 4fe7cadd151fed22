"""What frames say, and the text that a reader makes of them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from denizen.bus.streams import (
    EARLY_PIECES,
    REMEMBERED_STREAMS,
    AgentAlert,
    AgentBudget,
    AgentStatus,
    CycleChanged,
    Freshness,
    LiveStream,
    LiveText,
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


def started(text_id: str, epoch: int = 1, agent: AgentId = ADA) -> StreamStarted:
    return StreamStarted(MessageId(text_id), agent, HALL, epoch)


def delta(text_id: str, offset: int, text: str, epoch: int = 1, agent: AgentId = ADA) -> StreamDelta:
    return StreamDelta(MessageId(text_id), agent, epoch, offset, text)


def created(text_id: str) -> MessageCreated:
    return MessageCreated(HALL, 1, MessageId(text_id), ADA)


def pieces_of(text: str, cuts: list[int], text_id: str, epoch: int) -> list[StreamDelta]:
    """The text as deltas, cut at these places."""
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [delta(text_id, a, text[a:b], epoch) for a, b in pairwise(places)]


def read(*fed: StreamFrame) -> dict[str, str]:
    """The texts that a reader of these frames sees."""
    live = LiveText()
    for frame in fed:
        live.feed(frame)
    return {stream.id: stream.text for stream in live.streams()}


@st.composite
def interleavings(draw: st.DrawFn, *sequences: list[StreamFrame]) -> list[StreamFrame]:
    """All frames, those of each sequence in their order."""
    order = draw(st.permutations([n for n, sequence in enumerate(sequences) for _ in sequence]))
    sources = [iter(sequence) for sequence in sequences]
    return [next(sources[n]) for n in order]


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
    freshness = Freshness({ADA: known})
    newest: dict[AgentId, int] = {ADA: known}
    for agent, epoch in heard:
        fresh = freshness.admit_payload({"agent": agent, "epoch": epoch})
        assert fresh == (epoch >= newest.get(agent, 0))
        newest[agent] = max(epoch, newest.get(agent, 0))
        assert freshness.newest(agent) == newest[agent]


def test_what_has_no_epoch_is_always_fresh_and_what_has_a_strange_one_never():
    freshness = Freshness({ADA: 3})
    assert freshness.admit_payload(created("1").to_payload())
    assert freshness.admit_payload({"agent": ADA, "epoch": None})
    assert not freshness.admit_payload({"agent": ADA, "epoch": "9"})
    assert not freshness.admit_payload({"agent": [], "epoch": 9})


@given(st.text(), st.lists(st.integers(0, 1000), max_size=8), st.data())
def test_pieces_make_the_text_in_any_order_and_any_number(text: str, cuts: list[int], data: st.DataObject):
    pieces = pieces_of(text, cuts, "1", epoch=1)
    more = pieces_of(text, data.draw(st.lists(st.integers(0, 1000), max_size=3)), "1", epoch=1)
    order = data.draw(st.permutations([*pieces, *pieces, *more]))
    assert read(started("1"), *order) == {"1": text}


@given(st.text(), st.lists(st.integers(0, 1000), max_size=8), st.data())
def test_what_is_shown_is_always_the_beginning_of_the_text(text: str, cuts: list[int], data: st.DataObject):
    order = data.draw(st.permutations(pieces_of(text, cuts, "1", epoch=1)))
    for count in range(len(order) + 1):
        (shown,) = read(started("1"), *order[:count]).values()
        assert text.startswith(shown)


@given(st.data(), st.text(min_size=1), st.text(min_size=1), st.booleans(), st.booleans())
def test_only_the_newer_holder_is_heard(data: st.DataObject, old: str, new: str, same_id: bool, announced: bool):
    """Whatever a former holder still says, and whenever it arrives, only the newer one's text stands."""
    cuts = data.draw(st.lists(st.integers(0, 1000), max_size=5))
    new_id = "1" if same_id else "2"
    before: list[StreamFrame] = [started("1", 1), *pieces_of(old, cuts, "1", 1)]
    if data.draw(st.booleans()):
        before.append(StreamAborted(ADA, 1, MessageId("1"), "cancelled"))
    after: list[StreamFrame] = [started(new_id, 2), *pieces_of(new, cuts, new_id, 2)]
    if announced:
        after.insert(0, StreamAborted(ADA, 2, None, "taken over"))
    assert read(*data.draw(interleavings(before, after))) == {new_id: new}


@given(st.data(), st.text(), st.lists(st.integers(0, 1000), max_size=5))
def test_a_created_message_streams_no_more(data: st.DataObject, text: str, cuts: list[int]):
    streamed: list[StreamFrame] = [started("1"), *pieces_of(text, cuts, "1", 1)]
    order = data.draw(interleavings(streamed, [created("1")]))
    late = data.draw(st.lists(st.sampled_from(streamed)))
    assert read(*order, *late) == {}


def test_an_aborted_stream_is_gone_with_its_late_pieces_until_it_starts_anew():
    """A holder whose provider failed tries again under the same epoch and the same id."""
    aborted = StreamAborted(ADA, 1, MessageId("1"), "provider failed")
    assert read(started("1"), delta("1", 0, "Hel"), aborted, delta("1", 3, "lo")) == {}
    assert read(started("1"), delta("1", 0, "Hel"), aborted, started("1"), delta("1", 0, "Good")) == {"1": "Good"}


def test_a_take_over_ends_all_streams_of_that_agent_and_of_no_other():
    takeover = StreamAborted(ADA, 2, None, "taken over")
    shown = read(
        started("1"), delta("1", 0, "a"), started("2"), started("3", agent=BEA), delta("3", 0, "b", agent=BEA), takeover
    )
    assert shown == {"3": "b"}


def test_a_status_with_a_higher_epoch_ends_older_streams():
    assert read(started("1"), AgentStatus(ADA, "alive", 2)) == {}
    assert read(started("1"), AgentStatus(ADA, "alive", None)) == {"1": ""}


def test_known_epochs_keep_former_holders_out():
    live = LiveText({ADA: 5})
    live.feed(started("1", epoch=4))
    assert live.streams() == ()
    assert live.text(MessageId("1")) is None


def test_who_comes_in_the_middle_sees_the_text_once_it_is_said_from_the_start():
    live = LiveText()
    live.feed(delta("1", 3, "lo"))
    assert live.streams() == (LiveStream(MessageId("1"), ADA, 1),)
    live.feed(delta("1", 0, "Hell"))
    assert live.text(MessageId("1")) == "Hello"


def test_what_a_reader_keeps_is_bounded():
    live = LiveText()
    for n in range(REMEMBERED_STREAMS + 50):
        live.feed(created(str(n)))
    for n in range(EARLY_PIECES + 50):
        live.feed(delta("hole", 1 + n, "x"))
    assert len(live._over) == REMEMBERED_STREAMS
    assert len(live._streams[MessageId("hole")].early) == EARLY_PIECES
