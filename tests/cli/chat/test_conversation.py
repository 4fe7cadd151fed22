"""What there is to see of a space, whatever comes in whatever order."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from denizen.cli.chat.conversation import STATUS_SECONDS, Event, Presence, SpaceView, feed, thinking
from denizen.client import Agent, Author, Connected, Lost, Message
from tests.made import aborted, delta, made, started, status

ADA = Author(id="ada", kind="agent", name="Ada")


def message(seq: int, text: str = "") -> Message:
    at = datetime(2026, 1, 5, 9, tzinfo=UTC)
    return made(
        Message, id=f"m{seq}", space_id="kitchen", seq=seq, author=ADA, text=text or f"text {seq}", created_at=at
    )


def run(*events: Event, state: SpaceView | None = None) -> tuple[SpaceView, list[int]]:
    """The state in the end, and the numbers of the messages in the order in which they were shown."""
    state, shown = state or SpaceView(), []
    for event in events:
        state, messages = feed(state, event, now=0)
        shown += [each.seq for each in messages if isinstance(each, Message)]
    return state, shown


def texts(state: SpaceView) -> list[str]:
    return [each.text for each in state.writing.values()]


def test_text_grows_and_becomes_the_message() -> None:
    """While it is written it is live; when the message is there it is only that."""
    state, shown = run(started("m1", "ada"), delta("m1", "ada", 0, "Good "), delta("m1", "ada", 5, "day"))
    assert (texts(state), shown) == (["Good day"], [])

    state, shown = run(message(1, "Good day"), state=state)
    assert (texts(state), shown) == ([], [1])


def test_pieces_of_a_message_that_is_there_are_not_shown() -> None:
    """A frame that comes late does not bring the text back."""
    state, _ = run(message(1), delta("m1", "ada", 0, "te"), started("m1", "ada"))
    assert texts(state) == []


def test_overlapping_pieces_are_not_doubled() -> None:
    state, _ = run(delta("m1", "ada", 0, "Good"), delta("m1", "ada", 2, "od day"), delta("m1", "ada", 0, "Go"))
    assert texts(state) == ["Good day"]


def test_whoever_comes_in_the_middle_sees_the_rest() -> None:
    state, _ = run(delta("m1", "ada", 5, "day"))
    assert [(each.begin, each.text) for each in state.writing.values()] == [(5, "day")]


def test_starting_again_begins_anew() -> None:
    state, _ = run(
        started("m1", "ada"), delta("m1", "ada", 0, "Bad"), started("m1", "ada"), delta("m1", "ada", 0, "Go")
    )
    assert texts(state) == ["Go"]


def test_an_aborted_text_vanishes() -> None:
    state, _ = run(started("m1", "ada"), delta("m1", "ada", 0, "Well"), aborted("m1", "ada"))
    assert texts(state) == []


def test_losing_the_connection_ends_what_was_live() -> None:
    """The frame that would have ended it may be among those that were lost."""
    state, shown = run(message(1), status("ada", "alive"), delta("m2", "ada", 0, "Well"), Lost("gone"))
    assert (texts(state), thinking(state, 0), state.lost) == ([], (), True)

    state, more = run(Connected(), message(1), message(2), state=state)
    assert (shown, more, state.lost) == ([1], [2], False)


def test_thinking_begins_and_ends_with_the_status() -> None:
    state, _ = run(status("ada", "alive"))
    assert thinking(state, 0) == ("ada",)
    state, _ = run(status("ada", "sleeping"), state=state)
    assert thinking(state, 0) == ()


def test_one_sees_with_what_an_agent_is_busy() -> None:
    state, _ = run(status("ada", "alive"), status("ada", "alive", doing="oven"))
    assert dict(state.doing) == {"ada": "oven"}
    state, _ = run(status("ada", "alive"), state=state)
    assert dict(state.doing) == {}
    state, _ = run(status("ada", "alive", doing="oven"), status("ada", "sleeping"))
    assert (dict(state.doing), thinking(state, 0)) == ({}, ())


def test_one_sees_who_waits_for_an_answer() -> None:
    state, _ = run(status("ada", "alive"), status("ada", "paused"))
    assert (state.paused, thinking(state, 0)) == ({"ada"}, ())
    assert run(status("ada", "alive"), state=state)[0].paused == frozenset()
    assert run(Lost("gone"), state=state)[0].paused == frozenset()


def test_nobody_thinks_for_ever() -> None:
    """An agent of which nothing more is heard is not said to be thinking, unless it is known that it is."""
    alive = made(Agent, id="ada", handle="ada", name="Ada", status="alive", model="demo", about="")
    state, _ = run(status("ada", "alive"))
    assert thinking(state, STATUS_SECONDS - 1) == ("ada",)
    assert thinking(state, STATUS_SECONDS) == ()
    state, _ = feed(state, Presence((alive,)), STATUS_SECONDS)
    assert thinking(state, STATUS_SECONDS + 1) == ("ada",)
    state, _ = feed(state, Presence((alive.model_copy(update={"status": "sleeping"}),)), STATUS_SECONDS + 1)
    assert thinking(state, STATUS_SECONDS + 1) == ()


def test_history_is_not_shown_again() -> None:
    """A conversation that begins at a number shows what comes after it."""
    assert run(message(3), message(4), message(5), state=SpaceView(last=4))[1] == [5]


_frames = st.sampled_from(["m1", "m2", "m3", "m4", "m5"]).flatmap(
    lambda id_: st.one_of(
        st.just(started(id_, "ada")),
        st.builds(delta, st.just(id_), st.just("ada"), st.integers(0, 6), st.text("ab", max_size=4)),
        st.just(aborted(id_, "ada")),
        st.sampled_from([status("ada", "alive"), status("ada", "sleeping"), Connected(), Lost("gone")]),
    )
)


@given(st.data())
def test_any_interleaving_shows_each_message_once_and_in_order(data: st.DataObject) -> None:
    """However messages and frames come, late, twice or in disorder, nobody reads anything twice or out of place."""
    count = data.draw(st.integers(0, 5))
    messages = [message(seq) for seq in range(1, count + 1)]
    again = data.draw(st.lists(st.sampled_from(messages), max_size=5)) if messages else []
    frames = data.draw(st.lists(_frames, max_size=30))
    state, shown = SpaceView(), list[Message]()
    for event in data.draw(st.permutations([*messages, *again, *frames])):
        state, new = feed(state, event, 0)
        shown += [each for each in new if isinstance(each, Message)]
        assert not {each.id for each in shown} & state.writing.keys(), "a message stands beside its own live text"
    assert [each.seq for each in shown] == list(range(1, count + 1))


@given(st.text(min_size=1, max_size=40), st.data())
def test_live_text_is_always_the_beginning_of_the_message(text: str, data: st.DataObject) -> None:
    """Pieces that follow each other, some of them repeated, make the text and nothing else."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [
        delta("m1", "ada", begin, text[begin:end]) for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)
    ]
    state = SpaceView()
    for number, piece in enumerate(pieces):
        repeated = data.draw(st.sampled_from(pieces[: number + 1]))
        for each in (piece, repeated):
            state, _ = feed(state, each, 0)
            assert text.startswith(state.writing["m1"].text)
    assert state.writing["m1"].text == text
