"""Whoever waits is answered, or told why: whatever people write and whatever goes wrong, in whatever order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from sqlalchemy import func, insert, select, update

from denizen import call, forever, reply
from denizen.agents.registry import Agent
from denizen.checker import check_deeply
from denizen.consciousness import log
from denizen.consciousness.lease import LEASE_SECONDS
from denizen.errors import (
    ContentRefused,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnreachable,
    ModelUnsuitable,
    RequestTooLarge,
)
from denizen.ids import AgentId, CycleId, new_id
from denizen.inbox import statuses
from denizen.models.scripted import Info, Piece, Turn
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import cycles, events, messages, space_statuses
from denizen.storage.schema import log as log_table
from tests.properties.house import delete_everything, unfinished
from tests.world import UNHURRIED, JumpingClock, World, as_text, open_world

EXAMPLES: Final = settings.default.max_examples if settings.default else 100
pytestmark = pytest.mark.timeout(900 if EXAMPLES <= 100 else 3600)

TROUBLES: Final[dict[str, Callable[[], Exception] | None]] = {
    "none": None,
    "key": lambda: ModelKeyRejected("401"),
    "model": lambda: ModelUnsuitable("404"),
    "refused": lambda: ContentRefused("no"),
    "too large": lambda: RequestTooLarge("413"),
    "overloaded": lambda: ModelOverloaded("429"),
    "unreachable": lambda: ModelUnreachable("500"),
    "rejected": lambda: ModelRejected("400"),
    "defect": lambda: ValueError("a defect"),
}

ACTIONS: Final = st.one_of(
    st.tuples(st.just("say"), st.integers(0, 3), st.sampled_from(["Hello", "poison"])),
    st.tuples(st.just("trouble"), st.sampled_from(list(TROUBLES)), st.sampled_from(["always", "poison", "late"])),
    st.tuples(st.sampled_from(["suspend", "resume", "edit", "try again", "restart", "kill", "delete"])),
    st.tuples(st.just("wait"), st.sampled_from([0, 1, 5, 20, 70, 700])),
    st.tuples(st.just("run")),
)


class Story:
    """Two people and an agent in spaces of two, in one of all three, and in one with another agent."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.trouble, self.when = "none", "always"
        self.suspended = False
        self.bo: Agent
        self.people: list[Entity]
        self.spaces: list[Space]
        self.said: list[tuple[str, Entity]] = []

    def decide(self, seen: list[ModelMessage], _info: Info) -> Turn:
        """Answer in every space that the inbox names; then say that it is done."""
        inbox = as_text(seen[-1]).startswith("[INBOX -")
        raises = TROUBLES[self.trouble]
        if raises is not None and (
            self.when == "always"
            or (self.when == "poison" and "poison" in as_text(seen[-1]))
            or (self.when == "late" and not inbox)
        ):
            return raises()
        if not inbox:
            return "Answered."
        named = [space for space in self.spaces if space.id in as_text(seen[-1])]
        pieces: list[Piece] = []
        for space in named:
            pieces += [call("enter_space", space_id=space.id), reply("Here.")]
        return pieces or "Nothing to say."

    async def begin(self) -> None:
        world = self.world
        self.people = [await world.person("Noor"), await world.person("Sam")]
        self.bo = await world.agent("Bo", model=forever(self.decide), cycle={"silent_reply": "ignore"})
        cy = await world.agent("Cy", model=forever(lambda *_: call("skip", reason="not mine")))
        noor, sam = self.people
        self.spaces = [
            await world.space("Noor and Bo", noor, self.bo),
            await world.space("Sam and Bo", sam, self.bo),
            await world.space("All", noor, sam, self.bo),
            await world.space("With Cy", noor, self.bo, cy),
        ]

    async def do(self, action: tuple[Any, ...]) -> None:
        world, denizen = self.world, self.world.denizen
        match action:
            case ("say", where, text):
                who = self.people[1 if where == 1 else 0]
                posted = await world.say(who, f"@bo {text}", self.spaces[where])
                self.said.append((posted.id, who))
            case ("trouble", what, when):
                self.trouble, self.when = what, when
            case ("suspend",) if not self.suspended:
                self.suspended = True
                await denizen.agents.suspend(self.bo)
            case ("resume",):
                self.suspended = False
                await denizen.agents.resume(self.bo)
            case ("edit",):
                await denizen.agents.edit(self.bo, instructions=f"Edited after {len(self.said)}.")
            case ("try again",):
                await denizen.agents.try_again(self.bo)
            case ("restart",):
                await world.restart()
            case ("kill",):
                await denizen.db.write(_begin_and_die, self.bo.id)
            case ("delete",) if self.said:
                message, who = self.said.pop()
                await denizen.spaces.delete_message(message, by=who)  # pyright: ignore[reportArgumentType]
            case ("wait", seconds):
                world.clock.advance(seconds)
            case ("run",):
                await self.run()
            case _:
                pass

    async def run(self) -> None:
        """Everyone does what there is to do; then whoever waits has an answer or sees why not."""
        await self.world.run()
        assert await self.world.denizen.db.read(_untold) == []
        assert await self.world.denizen.db.read(check_deeply) == []

    async def end(self) -> None:
        """All that was wrong is mended: everyone is answered, and nothing is shown any more."""
        self.trouble = "none"
        await self.world.denizen.agents.resume(self.bo)
        await self.world.denizen.agents.try_again(self.bo)
        await self.world.run_after(LEASE_SECONDS + 3600)
        assert await self.world.denizen.db.read(unfinished) == []
        assert await self.world.denizen.db.read(_unanswered) == []
        assert [await self.world.denizen.db.read(statuses.of_space, each.id) for each in self.spaces] == [[]] * 4
        assert await self.world.denizen.db.read(check_deeply) == []


_waiting = (
    select(events.c.state, messages.c.text, messages.c.seq)
    .join(messages, messages.c.id == events.c.message_id)
    .where(events.c.waits == 1, messages.c.deleted_at.is_(None))
)
_later = messages.alias("later")
_answered = (
    select(_later.c.id)
    .where(
        _later.c.space_id == messages.c.space_id,
        _later.c.seq > messages.c.seq,
        _later.c.author_id == events.c.agent_id,
    )
    .exists()
)
_went_on = (
    select(_later.c.id)
    .where(
        _later.c.space_id == messages.c.space_id,
        _later.c.seq > messages.c.seq,
        _later.c.author_id == messages.c.author_id,
    )
    .exists()
)
_shown = (
    select(space_statuses.c.cause)
    .where(
        space_statuses.c.space_id == events.c.space_id,
        space_statuses.c.agent_id == events.c.agent_id,
    )
    .exists()
)
_untold_rows = statement(
    _waiting.where(
        ((events.c.state == "pending") & ~_shown)
        | ((events.c.state == "taken") & ~_shown & ~_answered)
        | ((events.c.state == "dead") & ~_shown & ~_went_on)
        | ((events.c.state == "done") & ~_shown & ~_answered & ~_went_on)
    )
)
_unanswered_rows = statement(_waiting.where(~_answered))


def _untold(tx: Tx) -> list[Any]:
    """The messages for which somebody waits and neither has an answer nor sees why."""
    return tx.all(_untold_rows)


def _unanswered(tx: Tx) -> list[Any]:
    return tx.all(_unanswered_rows)


def _begin_and_die(tx: Tx, agent_id: AgentId) -> None:
    """As if a process had taken all that waits and was killed before the model answered, a lease ago."""
    row = tx.one(statement(select(func.count()).where(cycles.c.agent_id == agent_id, cycles.c.number.is_(None))))
    waiting = tx.all(
        statement(select(events.c.number).where(events.c.agent_id == agent_id, events.c.state == "pending"))
    )
    if (row and row[0]) or not waiting:
        return
    seq_row = tx.one(statement(select(func.max(log_table.c.seq)).where(log_table.c.agent_id == agent_id)))
    seq, cycle_id = ((seq_row[0] if seq_row else 0) or 0) + 1, CycleId(new_id())
    tx.run(
        statement(
            insert(cycles).values(id=cycle_id, agent_id=agent_id, first_seq=seq, started_at=tx.now, outcome="open")
        )
    )
    log.append(
        tx, agent_id, [log.entry(seq, cycle_id, "inbox", ModelRequest(parts=[UserPromptPart("[INBOX - killed]")]))]
    )
    tx.run(
        statement(
            update(events)
            .where(events.c.agent_id == agent_id, events.c.state == "pending")
            .values(state="taken", cycle_id=cycle_id)
        )
    )


async def tell(url: str, actions: list[tuple[Any, ...]]) -> None:
    async with open_world(url, clock=JumpingClock(), pace=UNHURRIED) as world:
        story = Story(world)
        await story.begin()
        for action in actions:
            await story.do(action)
        await story.run()
        await story.end()


def run(story: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner() as runner:
        runner.run(story)


@settings(max_examples=max(EXAMPLES // 4, 10), deadline=None)
@given(actions=st.lists(ACTIONS, max_size=25))
def test_whoever_waits_is_answered_or_told_why(fresh: Callable[[], str], actions: list[tuple[Any, ...]]) -> None:
    run(tell(fresh(), actions))


@settings(max_examples=max(EXAMPLES // 20, 3), deadline=None)
@given(actions=st.lists(ACTIONS, max_size=25))
def test_the_same_on_postgresql(used_postgres: str, actions: list[tuple[Any, ...]]) -> None:
    async def emptied() -> None:
        async with open_world(used_postgres) as world:
            await world.denizen.db.write(delete_everything)
        await tell(used_postgres, actions)

    run(emptied())
