"""Summing conversations up, in the background: when a pass is due, asking for it, keeping it, and what it leaves.

Hints say where to look, and lost ones are made up for by looking at the start. A pass that fails costs nothing but
itself: what was known stays, the messages after it are still shown, and it is tried again, later each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import structlog
from pydantic_ai.models import Model
from sqlalchemy import bindparam, select

from denizen.clock import SECOND, Clock
from denizen.errors import InvalidInput, SettingsError, StorageError
from denizen.ids import EntityId, SpaceId
from denizen.memory import asking, audience, documents, passing, rolling, sharing
from denizen.memory.asking import Answered, Spent
from denizen.memory.documents import Written
from denizen.memory.rolling import EVERYONE, House, Pass, Rolled
from denizen.memory.settings import CompactionProfile, Configuration
from denizen.memory.sinks import Batch, Sink
from denizen.models.prices import Price
from denizen.storage.database import Database, Tx, statement
from denizen.storage.schema import entities, messages

log_line = structlog.get_logger(__name__)

Rolling = Literal["done", "off", "not due", "cooling down", "failed", "changed"]
"""What came of looking at a conversation. `changed`: what the pass was made from is not so any more."""

ModelFor = Callable[[House, str], Awaitable[tuple[str, Model]]]
"""The model of a name, paid as the first agent's own is, or a panel's, with its real name."""
Pay = Callable[[Tx, House, Spent], None]
"""What was used goes to the account of the first agent, or of the panel."""

_RETRY_SECONDS: Final = 60
_MOST_DOUBLED: Final = 6
"""A pass that fails again and again waits twice as long each time, up to 64 times."""


@dataclass(frozen=True, slots=True)
class Means:
    """With what conversations are summed up."""

    db: Database
    clock: Clock
    configuration: Configuration
    model_for: ModelFor
    pay: Pay
    sink: Sink | None
    """None: nothing is remembered beyond the conversation."""
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    prompts: Path | None = None
    """The folder with prompts of one's own."""


class Keeper:
    """Keeps the memory of conversations."""

    def __init__(self, means: Means) -> None:
        self._with = means
        self._next: dict[SpaceId, int] = {}
        """The number of the message with which the next pass of a conversation is due, where that is known."""
        self._heard: dict[SpaceId, int] = {}
        """The message with which a pass may have become due, until there is none to make."""
        self._waiting: dict[SpaceId, int] = {}
        """When each of these is to be looked at."""
        self._something = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.compacted: list[Callable[[SpaceId], None]] = []
        """Who is told that a conversation was summed up here."""

    def hint(self, space_id: SpaceId, seq: int) -> None:
        """Something was said there. Costs nothing while no pass can be due."""
        if seq >= self._next.get(space_id, 0):
            self._heard[space_id] = seq
            self._look_at(space_id, 0)

    def hint_again(self, space_id: SpaceId) -> None:
        """What was said there is answered now."""
        if space_id in self._heard:
            self._look_at(space_id, 0)

    def _look_at(self, space_id: SpaceId, at: int) -> None:
        if space_id not in self._waiting or at < self._waiting[space_id]:
            self._waiting[space_id] = at
            self._idle.clear()
            self._something.set()

    async def settled(self) -> None:
        """Return when no conversation is to be looked at now."""
        await self._idle.wait()

    @asynccontextmanager
    async def following(self) -> AsyncGenerator[None]:
        """Inside, conversations are summed up as they grow."""
        self._idle.clear()
        task = asyncio.create_task(self._keep_following(), name="keeping memories")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _keep_following(self) -> None:
        looked = False
        while True:
            try:
                if not looked:
                    await self._look_around()
                    looked = True
                await self._follow()
            except Exception as error:  # noqa: BLE001  the loop's boundary: conversations go on, and are found later
                log_line.warning("keeping memories failed", error=repr(error))
                self._idle.set()
                await self._with.clock.sleep(_RETRY_SECONDS)

    async def _look_around(self) -> None:
        """What waits since before this process is looked at."""
        after, least = "", self._least()
        while found := await self._with.db.read(rolling.long_unsummed, least, after):
            for space_id in found:
                self._look_at(space_id, 0)
            after = found[-1]

    def _least(self) -> int:
        """With fewer messages than this, no profile wants a pass."""
        compaction = self._with.configuration.now().compaction
        profiles = [compaction.named(compaction.default_profile), *compaction.profiles.values()]
        return min(passing.due_at(0, each) for each in profiles)

    async def _follow(self) -> None:
        while True:
            now = self._with.clock.now()
            ready = [space_id for space_id, at in self._waiting.items() if at <= now]
            for space_id in ready:
                del self._waiting[space_id]
                await self._look(space_id)
            if ready:
                continue
            self._idle.set()
            self._something.clear()
            soonest = min(self._waiting.values(), default=None)
            if soonest is None:
                await self._something.wait()
            else:
                await self._with.clock.wait(self._something, max((soonest - now) / SECOND, 0.001))

    async def _look(self, space_id: SpaceId) -> None:
        try:
            await self._roll_for_all(space_id)
        except StorageError:
            self._look_at(space_id, self._with.clock.now() + _RETRY_SECONDS * SECOND)
            raise
        except (InvalidInput, SettingsError) as error:
            log_line.warning("conversation not summed up", space=space_id, problem=str(error))

    # One conversation

    async def _roll_for_all(self, space_id: SpaceId) -> None:
        """The conversation's own summary is as it should be, and in a panel that of each advisor."""
        place, profile = await self._profile_of(space_id)
        came = {await self._roll(space_id, EVERYONE, place, profile)}
        due = self._next.get(space_id, 0)
        for voice in () if place is None else place.advisors:
            came.add(await self._roll(space_id, voice, place, profile))
            due = min(due, self._next[space_id])
        self._next[space_id] = due
        if self._heard.get(space_id, 0) < due or came == {"off"}:
            self._heard.pop(space_id, None)

    async def _profile_of(self, space_id: SpaceId) -> tuple[House | None, CompactionProfile]:
        """The place of a conversation, and by which profile it is summed up."""
        place = await self._with.db.read(rolling.house, space_id)
        _, profile = self._with.configuration.profile(place.modes if place is not None else ())
        return place, profile

    async def roll(self, space_id: SpaceId, reader_id: str = EVERYONE) -> Rolling:
        """Sum the conversation up, as far as one pass goes, if that is due."""
        return await self._roll(space_id, reader_id, *await self._profile_of(space_id))

    async def _roll(
        self, space_id: SpaceId, reader_id: str, place: House | None, profile: CompactionProfile
    ) -> Rolling:
        if place is None or not place.has_readers or not profile.enabled:
            # Nobody in it would read the summary.
            self._next[space_id] = 0
            return "off"
        state, made = await self._with.db.read(rolling.look, space_id, reader_id, profile)
        if reader_id == EVERYONE or place.advisors:
            self._next[space_id] = passing.due_at(state.upto, profile)
        if made is None:
            return "not due"
        cooling = profile.cooldown_ms << min(max(state.failures - 1, 0), _MOST_DOUBLED)
        if not await self._with.db.write(rolling.claim, space_id, reader_id, cooling):
            self._look_again(place, reader_id, state.tried_at + cooling * 1_000)
            return "cooling down"
        return await self._pass(place, made, profile)

    def _look_again(self, place: House, reader_id: str, at: int) -> None:
        if reader_id == EVERYONE or reader_id in place.advisors:
            self._look_at(place.space_id, max(at, self._with.clock.now() + 1))

    async def _pass(self, place: House, made: Pass, profile: CompactionProfile) -> Rolling:
        space_id, reader_id = made.before.space_id, made.before.reader_id
        answered = await self._ask(place, made, profile)
        kept = await self._with.db.write(_keep_pass, made, answered, place, self._with.pay)
        self._look_again(place, reader_id, self._with.clock.now() + profile.cooldown_ms * 1_000)
        if answered.written is None:
            log_line.warning("conversation not summed up", space=space_id, problem=answered.problem)
            return "failed"
        if not kept:
            return "changed"
        log_line.info("conversation summed up", space=space_id, upto=made.last, messages=len(made.messages))
        for tell in self.compacted:
            tell(space_id)
        if reader_id == EVERYONE or place.advisors:
            self._next[space_id] = passing.due_at(made.last, profile)
        if reader_id == EVERYONE:
            await self._leave(place, made, answered.written)
        return "done"

    async def _ask(self, place: House, made: Pass, profile: CompactionProfile) -> Answered:
        instructions = asking.prompt_text(profile.prompt, self._with.prompts)
        try:
            name, model = await self._with.model_for(place, profile.model)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  a model that cannot be had: what was known stays
            return Answered(None, Spent(profile.model), f"{type(error).__name__}: {error}")
        return await asking.ask(made, model, name, instructions, profile, self._with.prices)

    async def _leave(self, place: House, made: Pass, written: Written) -> None:
        """What the pass found is remembered beyond the conversation, as far as that is allowed."""
        if self._with.sink is None or not self._with.configuration.now().long_term.enabled:
            return
        batch = await self._with.db.read(_batch, place, made, written)
        try:
            await self._with.sink.keep(batch)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  somebody's own sink: the next pass brings it again
            log_line.warning("memories not kept", space=batch.space_id, error=repr(error))


def _keep_pass(tx: Tx, made: Pass, answered: Answered, place: House, pay: Pay) -> bool:
    """The pass is kept, if it can be, and paid for in any case."""
    if answered.spent.input_tokens or answered.spent.output_tokens:
        pay(tx, place, answered.spent)
    return answered.written is not None and rolling.keep(tx, made, answered.written, answered.spent.model)


_ids = statement(
    select(messages.c.seq, messages.c.id, messages.c.author_id, entities.c.kind)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(messages.c.space_id == bindparam("space_id"), messages.c.seq == bindparam("seq"))
)


def _batch(tx: Tx, place: House, made: Pass, written: Written) -> Batch:
    space_id = made.before.space_id
    wanted = sorted({number for _, each in written.memory_json.items() for number in each.sources})
    rows = [row for number in wanted if (row := tx.one(_ids, space_id=space_id, seq=number)) is not None]
    found = sharing.candidates(made.before.memory, written.memory_json, {row[0]: row[1] for row in rows})
    here = audience.audience(tx, [space_id])
    people: frozenset[EntityId] = frozenset() if here is None else here.people
    said_by = {row[1]: row[2] for row in rows if row[3] == "human"}
    agents = [agent_id for agent_id, _ in place.agents]
    shares = sharing.shares(place.organization_id, space_id, found, said_by, people, agents)
    return Batch(
        place.organization_id,
        space_id,
        tuple(each.id for each in made.messages),
        written.summary_markdown,
        documents.dump(written.memory_json),
        tuple(shares),
    )


def told(state: Rolled) -> dict[str, object] | None:
    """What clients are told of a conversation's summary; None while there is none."""
    if not state.upto:
        return None
    return {
        "summary_markdown": state.summary,
        "memory_json": state.memory.model_dump(mode="json"),
        "upto": state.upto,
        "passes": state.passes,
    }
