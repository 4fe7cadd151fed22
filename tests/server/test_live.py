"""What a reader is told of texts that are being written: whatever the bus does, whole pieces in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from denizen.agents.registry import Presence
from denizen.bus.streams import AgentStatus, StreamAborted, StreamDelta, StreamStarted
from denizen.ids import AgentId, MessageId, SpaceId
from denizen.server.live import Live, LiveFrame, payload_of

ADA, KITCHEN, ID = AgentId("ada"), SpaceId("kitchen"), MessageId("m1")


def started(epoch: int = 1, id: MessageId = ID) -> StreamStarted:
    return StreamStarted(id, ADA, KITCHEN, epoch)


def delta(offset: int, text: str, epoch: int = 1, id: MessageId = ID) -> StreamDelta:
    return StreamDelta(id, ADA, epoch, offset, text)


def told(frames: Iterable[LiveFrame]) -> list[tuple]:
    """The events for these frames, in short."""
    payloads = [payload_of(each) for each in frames]
    shown = {"stream.started": "offset", "stream.delta": "text", "stream.aborted": "reason", "agent.status": "status"}
    return [(each["type"], each[shown[str(each["type"])]]) for each in payloads]


def hear(live: Live, *frames) -> list[tuple]:
    return [each for frame in frames for each in told(live.hear(frame))]


def test_a_stream_heard_from_its_start() -> None:
    live = Live(KITCHEN)
    assert hear(live, started(), delta(0, "Good "), delta(5, "morning")) == [
        ("stream.started", 0),
        ("stream.delta", "Good "),
        ("stream.delta", "morning"),
    ]


def test_who_comes_in_the_middle_asks_once_and_is_told_from_the_beginning() -> None:
    live = Live(KITCHEN)
    assert hear(live, delta(5, "mor")) == []
    assert live.wanted() == {KITCHEN}
    assert hear(live, delta(8, "n")) == []
    assert live.wanted() == set()
    again = replace(started(), again=True)
    assert hear(live, again, delta(0, "Good morn"), delta(9, "ing")) == [
        ("stream.started", 0),
        ("stream.delta", "Good morn"),
        ("stream.delta", "ing"),
    ]
    assert live.wanted() == set()


def test_what_is_told_again_for_another_is_not_told_twice() -> None:
    live = Live(KITCHEN)
    hear(live, started(), delta(0, "Good "))
    assert hear(live, replace(started(), again=True), delta(0, "Good "), delta(5, "morning")) == [
        ("stream.delta", "morning")
    ]


def test_a_lost_piece_is_asked_for_and_filled_in() -> None:
    live = Live(KITCHEN)
    hear(live, started(), delta(0, "Good "))
    assert hear(live, delta(8, "ning")) == []
    assert live.wanted() == {KITCHEN}
    assert hear(live, replace(started(), again=True), delta(0, "Good morning")) == [("stream.delta", "morning")]


def test_what_did_not_come_is_asked_for_again_after_the_next_look() -> None:
    live = Live(KITCHEN)
    for _ in range(2):
        hear(live, delta(5, "mor"))
        assert live.wanted() == {KITCHEN}
        live.seen([])


def test_pieces_that_overlap_or_come_twice_are_told_once() -> None:
    live = Live(KITCHEN)
    hear(live, started(), delta(0, "Good "))
    assert hear(live, delta(0, "Good "), delta(3, "d morning")) == [("stream.delta", "morning")]


def test_nothing_more_is_told_of_a_message_the_reader_has() -> None:
    """Its frames may have been on their way when it was read from the database."""
    live = Live(KITCHEN)
    hear(live, started(), delta(0, "Good "))
    live.said(ID)
    assert hear(live, started(), delta(5, "morning"), StreamAborted(ADA, 1, ID, "failed")) == []


def test_an_aborted_stream_may_start_again() -> None:
    live = Live(KITCHEN)
    hear(live, started(), delta(0, "Good "))
    assert hear(live, StreamAborted(ADA, 1, ID, "failed")) == [("stream.aborted", "failed")]
    assert hear(live, StreamAborted(ADA, 1, ID, "failed")) == []
    assert hear(live, started(), delta(0, "Well")) == [("stream.started", 0), ("stream.delta", "Well")]


def test_a_new_holder_ends_what_the_former_one_was_writing() -> None:
    """Whichever frame of its comes first; what the former one still says is void. Every end names its stream."""
    new = MessageId("m2")
    for frame in (
        StreamAborted(ADA, 2, None, "resumed"),
        AgentStatus(ADA, "alive", 2),
        started(2, new),
        delta(0, "", 2, new),
    ):
        live = Live(KITCHEN)
        hear(live, started(), delta(0, "Good "))
        first = payload_of(live.hear(frame)[0])
        assert (first["type"], first["id"], first["reason"]) == ("stream.aborted", ID, "resumed")
        assert hear(live, delta(5, "morning"), AgentStatus(ADA, "sleeping", 1)) == []


def test_epochs_from_the_database_count() -> None:
    live = Live(KITCHEN)
    live.seen([Presence(ADA, 3, "sleeping")])
    assert hear(live, started(2), delta(0, "Old", 2)) == []
    assert hear(live, started(3)) == [("stream.started", 0)]


def test_after_lost_frames_open_streams_end_and_go_on_anew() -> None:
    live = Live(KITCHEN)
    hear(live, started(), delta(0, "Good "))
    assert told(live.lost()) == [("stream.aborted", "interrupted")]
    assert hear(live, delta(9, "ing")) == []
    assert live.wanted() == {KITCHEN}
    assert hear(live, replace(started(), again=True), delta(0, "Good mor")) == [
        ("stream.started", 0),
        ("stream.delta", "Good mor"),
    ]
    assert Live(KITCHEN).lost() == []


def test_a_status_is_told_when_it_changes() -> None:
    live = Live(KITCHEN)
    assert told(live.seen([Presence(ADA, 1, "sleeping")])) == [("agent.status", "sleeping")]
    assert live.seen([Presence(ADA, 1, "sleeping")]) == []
    assert hear(live, AgentStatus(ADA, "alive", 2), AgentStatus(ADA, "alive", 2)) == [("agent.status", "alive")]
    assert live.seen([]) == []
    assert told(live.seen([Presence(ADA, 2, "alive")])) == [("agent.status", "alive")]


def test_half_a_surrogate_pair_can_be_told() -> None:
    live = Live(KITCHEN)
    live.hear(started())
    [piece] = live.hear(delta(0, "\ud83d"))
    assert payload_of(piece)["text"] == "\ufffd"


def test_a_stream_of_another_space_is_not_told() -> None:
    assert Live(SpaceId("hall")).hear(started()) == []


def test_one_reader_of_many_spaces_is_told_each() -> None:
    live, hall, other = Live(), SpaceId("hall"), MessageId("m2")
    assert told(live.hear(started(), KITCHEN)) == [("stream.started", 0)]
    assert told(live.hear(StreamStarted(other, ADA, hall, 1), hall)) == [("stream.started", 0)]
    live.left(hall)
    assert live.hear(delta(0, "Hi", id=other), hall) == []
    assert told(live.hear(delta(0, "Hi"), KITCHEN)) == [("stream.delta", "Hi")]


TEXT = "What an agent says while it is still saying it."


@given(
    st.lists(
        st.tuples(st.integers(0, len(TEXT)), st.integers(0, 8)).map(lambda at: delta(at[0], TEXT[at[0] : sum(at)]))
        | st.just(started())
        | st.just(replace(started(), again=True))
        | st.just(StreamAborted(ADA, 1, ID, "failed"))
    )
)
def test_whatever_comes_every_stream_told_is_a_piece_of_the_text(frames: list) -> None:
    """A reader that puts the deltas together after each start always holds how the text begins."""
    live, open_, text = Live(KITCHEN), False, ""
    for frame in frames:
        for payload in map(payload_of, live.hear(frame)):
            match payload:
                case {"type": "stream.started", "offset": 0}:
                    open_, text = True, ""
                case {"type": "stream.delta", "offset": int(at), "text": str(piece)}:
                    assert open_
                    assert at == len(text)
                    assert piece
                    text += piece
                case {"type": "stream.aborted"}:
                    assert open_
                    open_ = False
                case _:
                    raise AssertionError(payload)
            assert not open_ or TEXT.startswith(text)
