"""Summarizes conversations in the background: decides when a pass is due, runs it, and stores the result.

Hints say which conversations to check; lost hints are made up for by a scan at the start. A failed pass changes
nothing: the old summary stays, the messages after it are still shown, and the pass is retried later, with a longer wait
and fewer messages each time. The memories found by a pass are stored in the same transaction as its summary: a process
that dies leaves both or neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from pydantic_ai.models import Model
from sqlalchemy import bindparam, select

from denizen.clock import SECOND, Clock
from denizen.errors import InvalidInput, SettingsError, StorageError, explained
from denizen.ids import EntityId, SpaceId
from denizen.memory import asking, audience, documents, next_messages, owners, rolling, sinks
from denizen.memory.asking import MemoryUsage, ModelAnswer, RequestReservation
from denizen.memory.documents import PassResult
from denizen.memory.rolling import EVERYONE, ConversationInfo, Pass
from denizen.memory.settings import CompactionProfile, Configuration
from denizen.memory.sinks import PassMemories, Sink
from denizen.models.embedders import Embedder
from denizen.models.prices import Price, Usage
from denizen.storage.database import Database, Tx, statement
from denizen.storage.schema import entities, messages
from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)

Rolling = Literal["done", "off", "not due", "cooling down", "failed", "changed"]
"""The result of checking a conversation. `changed`: the input of the pass has changed since."""

ModelFor = Callable[[ConversationInfo, str], Awaitable[tuple[str, Model]]]
"""Returns the model with this name, paid by the first agent or the panel, and its full name."""
ReserveCall = Callable[[ConversationInfo, str, Model, Usage], Awaitable[RequestReservation]]
"""Reserves a call of the model in the budgets of the agent or panel that pays."""
Pay = Callable[[Tx, ConversationInfo, MemoryUsage | None, Sequence[str]], None]
"""Charges the usage to the first agent, or the panel, and releases these reservations."""
SummedUp = Callable[[Tx, ConversationInfo], None]
"""Called in the transaction that stores a summary."""

AT_ONCE: Final = 8
"""Conversations that are summarized at the same time, so that a slow model delays few others."""
_SPACES_KNOWN: Final = 50_000
"""How many conversations we keep the next due message of; others are checked when a message is posted."""
_RETRY_SECONDS: Final = 60
LEAST_BACK_OFF_MS: Final = 10_000
"""The shortest wait after a failed pass, even with a cool-down of zero."""
_MOST_DOUBLED: Final = 6
"""The wait doubles with each failure, up to this many times (a factor of 64)."""


def cooling_ms(profile: CompactionProfile, failures: int) -> int:
    """Returns how long after a pass the next may begin. Doubles with each failure."""
    if not failures:
        return profile.cooldown_ms
    return max(profile.cooldown_ms, LEAST_BACK_OFF_MS) << min(failures - 1, _MOST_DOUBLED)


@dataclass(frozen=True, slots=True)
class MemoryDeps:
    """What the summarizer works with."""

    db: Database
    clock: Clock
    configuration: Configuration
    model_for: ModelFor
    reserve: ReserveCall
    pay: Pay
    summed_up: SummedUp
    sink: Sink | None = None
    """Where memories are stored instead of our database; None: in our database."""
    embedder: Embedder | None = None
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    prompts: Path | None = None
    """The folder with the operator's own prompts."""


class Keeper:
    """The background summarizer of conversations."""

    def __init__(self, deps: MemoryDeps) -> None:
        self._with = deps
        self._next: dict[SpaceId, int] = {}
        """The number of the message at which the next pass of a conversation is due, where known."""
        self._heard: dict[SpaceId, int] = {}
        """The message at which a pass may have become due, until it has been checked."""
        self._waiting: dict[SpaceId, int] = {}
        """When to check each of these conversations."""
        self._something = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.compacted: list[Callable[[SpaceId], None]] = []
        """Called with each conversation that was summarized here."""

    def hint(self, space_id: SpaceId, seq: int) -> None:
        """Notes a new message. Costs nothing while no pass can be due."""
        if seq >= self._next.get(space_id, 0):
            self._heard[space_id] = seq
            self._look_at(space_id, 0)

    def hint_again(self, space_id: SpaceId) -> None:
        """Notes that the waiting messages of the conversation have been answered."""
        if space_id in self._heard:
            self._look_at(space_id, 0)

    def _look_at(self, space_id: SpaceId, at: int) -> None:
        if space_id not in self._waiting or at < self._waiting[space_id]:
            self._waiting[space_id] = at
            self._idle.clear()
            self._something.set()

    async def settled(self) -> None:
        """Returns when no conversation is left to check now."""
        await self._idle.wait()

    @asynccontextmanager
    async def following(self) -> AsyncGenerator[None]:
        """Summarizes conversations as they grow, inside the block."""
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
        """Checks the conversations that were waiting before this process started."""
        after, least = "", self._least()
        while found := await self._with.db.read(rolling.long_unsummed, least, after):
            for space_id in found:
                self._look_at(space_id, 0)
            after = found[-1]

    def _least(self) -> int:
        """The fewest messages at which any profile wants a pass."""
        return min(next_messages.due_at(0, each) for each in self._with.configuration.profiles())

    async def _follow(self) -> None:
        while True:
            now = self._with.clock.now()
            ready = [space_id for space_id, at in self._waiting.items() if at <= now][:AT_ONCE]
            if ready:
                await self._look_at_all(ready)
                continue
            self._idle.set()
            self._something.clear()
            soonest = min(self._waiting.values(), default=None)
            if soonest is None:
                await self._something.wait()
            else:
                await self._with.clock.wait(self._something, max((soonest - now) / SECOND, 0.001))

    async def _look_at_all(self, space_ids: Iterable[SpaceId]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for space_id in space_ids:
                del self._waiting[space_id]
                tasks.create_task(self._look(space_id), name=f"summing up {space_id}")

    async def _look(self, space_id: SpaceId) -> None:
        try:
            await self._roll_for_all(space_id)
        except (InvalidInput, SettingsError) as error:
            log_line.warning("conversation not summed up", space=space_id, problem=str(error))
        except Exception as error:  # noqa: BLE001  one conversation's misfortune shall not end the passes of others
            log_line.warning("conversation not summed up", space=space_id, error=repr(error))
            self._look_at(space_id, self._with.clock.now() + _RETRY_SECONDS * SECOND)

    # One conversation

    async def _roll_for_all(self, space_id: SpaceId) -> None:
        """Updates the conversation's summary, and in a panel that of each advisor."""
        place, profile = await self._profile_of(space_id)
        came = {await self._roll(space_id, EVERYONE, place, profile)}
        due = self._next.get(space_id, 0)
        for voice in () if place is None else place.advisors:
            came.add(await self._roll(space_id, voice, place, profile))
            due = min(due, self._next[space_id])
        self._expect(space_id, due)
        if self._heard.get(space_id, 0) < due or came == {"off"}:
            self._heard.pop(space_id, None)

    def _expect(self, space_id: SpaceId, seq: int) -> None:
        """Notes the message at which the next pass of the conversation is due."""
        self._next.pop(space_id, None)
        self._next[space_id] = seq
        if len(self._next) > _SPACES_KNOWN:
            del self._next[next(iter(self._next))]

    async def _profile_of(self, space_id: SpaceId) -> tuple[ConversationInfo | None, CompactionProfile]:
        """Returns the conversation, and the profile by which it is summarized."""
        place = await self._with.db.read(rolling.conversation_info, space_id)
        if place is None:
            return None, self._with.configuration.profile(())[1]
        own = await self._with.db.read(self._with.configuration.own_presets, place.organization_id)
        _, profile = self._with.configuration.profile(place.modes, own)
        return place, profile

    async def roll(self, space_id: SpaceId, reader_id: str = EVERYONE) -> Rolling:
        """Summarizes the conversation, as far as one pass goes, if a pass is due."""
        return await self._roll(space_id, reader_id, *await self._profile_of(space_id))

    async def _roll(
        self, space_id: SpaceId, reader_id: str, place: ConversationInfo | None, profile: CompactionProfile
    ) -> Rolling:
        if place is None or not self._has_readers(place) or not profile.enabled:
            self._expect(space_id, 0)
            return "off"
        state, made = await self._with.db.read(rolling.look, space_id, reader_id, profile)
        if reader_id == EVERYONE or place.advisors:
            self._expect(space_id, next_messages.due_at(state.upto, profile))
        if made is None:
            return "not due"
        cooling = cooling_ms(profile, state.failures)
        if not await self._with.db.write(rolling.claim, space_id, reader_id, cooling, asking.LONGEST_SECONDS):
            self._look_again(place, reader_id, state.tried_at + cooling * 1_000)
            return "cooling down"
        return await self._pass(place, made, profile)

    def _has_readers(self, place: ConversationInfo) -> bool:
        """Whether anything is done with a summary: a pass for nobody is not paid for."""
        long_term = self._with.configuration.now().long_term.enabled
        return place.in_prompts or (bool(place.agents) and place.is_remembered and long_term)

    def _look_again(self, place: ConversationInfo, reader_id: str, at: int) -> None:
        if reader_id == EVERYONE or reader_id in place.advisors:
            self._look_at(place.space_id, max(at, self._with.clock.now() + 1))

    async def _pass(self, place: ConversationInfo, made: Pass, profile: CompactionProfile) -> Rolling:
        space_id, reader_id = made.before.space_id, made.before.reader_id
        answered = await self._ask(place, made, profile)
        leaving = await self._leaving(made, answered)
        kept, left = await self._with.db.write(keep_pass, made, answered, place, self._with, leaving)
        failures = 0 if kept else made.before.failures + (answered.written is None)
        self._look_again(place, reader_id, self._with.clock.now() + cooling_ms(profile, failures) * 1_000)
        if answered.written is None:
            log_line.warning("conversation not summed up", space=space_id, problem=answered.problem)
            return "failed"
        if not kept:
            return "changed"
        log_line.info("conversation summed up", space=space_id, upto=made.last, messages=len(made.messages))
        for tell in self.compacted:
            tell(space_id)
        if reader_id == EVERYONE or place.advisors:
            self._expect(space_id, next_messages.due_at(made.last, profile))
        if left is not None and self._with.sink is not None:
            await self._hand_over(self._with.sink, left)
        return "done"

    async def _ask(self, place: ConversationInfo, made: Pass, profile: CompactionProfile) -> ModelAnswer[PassResult]:
        try:
            instructions = asking.prompt_text(profile.prompt, self._with.prompts)
            name, model = await self._with.model_for(place, profile.model)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  no such prompt, or no such model: what was known stays
            return ModelAnswer(None, MemoryUsage(profile.model), explained(error))

        async def reserve(need: Usage) -> RequestReservation:
            return await self._with.reserve(place, name, model, need)

        return await asking.ask(made, model, name, instructions, profile, self._with.prices, reserve)

    async def _leaving(self, made: Pass, answered: ModelAnswer[PassResult]) -> Leaving | None:
        """Prepares storing the memories of the pass; None if none are to be stored."""
        long_term = self._with.configuration.now().long_term.enabled
        if answered.written is None or made.before.reader_id != EVERYONE or not long_term:
            return None
        if self._with.sink is not None:
            return Leaving(elsewhere=True)
        embedder = self._with.embedder
        texts = [each.text for _, each in answered.written.memory_json.items()]
        vectors = await sinks.vectors_of(embedder, texts)
        return Leaving(vectors, "" if embedder is None else embedder.name)

    async def _hand_over(self, sink: Sink, batch: PassMemories) -> None:
        try:
            await sink.keep(batch)
        except Exception as error:  # noqa: BLE001  somebody's own sink: the next pass brings it again
            log_line.warning("memories not kept", space=batch.space_id, error=repr(error))


@dataclass(frozen=True, slots=True)
class Leaving:
    """How the memories of a pass are stored."""

    vectors: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """The vectors of the items, by text."""
    embedder: str = ""
    elsewhere: bool = False
    """Whether a custom sink stores them."""


def keep_pass(
    tx: Tx,
    made: Pass,
    answered: ModelAnswer[PassResult],
    place: ConversationInfo,
    deps: MemoryDeps,
    leaving: Leaving | None,
) -> tuple[bool, PassMemories | None]:
    """Stores the pass if it is still valid, with its memories, and charges its usage in any case.

    Returns whether it was stored, and which memories may be kept: permissions are checked here.
    """
    kept = None
    if answered.written is not None:
        kept = rolling.keep(tx, made, answered.written, answered.spent.model)
    if kept is None:
        rolling.give_up(tx, made, failed=answered.written is None)
    spent = answered.spent if answered.spent.input_tokens or answered.spent.output_tokens else None
    if spent is not None or answered.reserved:
        deps.pay(tx, place, spent, answered.reserved)
    if kept is not None:
        deps.summed_up(tx, place)
    if kept is None or leaving is None:
        return kept is not None, None
    batch = sinks.allowed(tx, _batch(tx, place, made, kept, answered.spent.model))
    if batch is not None and not leaving.elsewhere:
        sinks.keep_memories(tx, batch, leaving.vectors, leaving.embedder)
    return True, batch


_NUMBERS: Final = [f"n{at}" for at in range(60)]
_said = statement(
    select(messages.c.seq, messages.c.id, messages.c.author_id, entities.c.kind)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(
        messages.c.space_id == bindparam("space_id"),
        messages.c.seq.in_([bindparam(name, type_=messages.c.seq.type) for name in _NUMBERS]),
    )
)


def _sources(tx: Tx, space_id: SpaceId, written: PassResult) -> list[tuple[Any, ...]]:
    """Returns the messages that the memory is based on: number, id, author, and kind of author."""
    wanted = sorted({number for _, each in written.memory_json.items() for number in each.sources})
    rows: list[tuple[Any, ...]] = []
    for first in range(0, len(wanted), len(_NUMBERS)):
        some = wanted[first : first + len(_NUMBERS)]
        asked = {name: some[at] if at < len(some) else None for at, name in enumerate(_NUMBERS)}
        rows += tx.all(_said, space_id=space_id, **asked)
    return rows


def _batch(tx: Tx, place: ConversationInfo, made: Pass, written: PassResult, model: str) -> PassMemories:
    space_id = made.before.space_id
    rows = _sources(tx, space_id, written)
    candidates = owners.candidates(written.memory_json, {seq: id for seq, id, _, _ in rows})
    found = [replace(each, outside=made.outside) for each in candidates]
    here = audience.audience(tx, [space_id])
    people: frozenset[EntityId] = frozenset() if here is None else here.people
    said_by = {id: author_id for _, id, author_id, kind in rows if kind == "human"}
    agents = [agent_id for agent_id, _ in place.agents]
    shares = owners.shares(place.organization_id, space_id, found, said_by, people, agents)
    return PassMemories(
        place.organization_id,
        space_id,
        tuple(each.id for each in made.messages),
        written.summary_markdown,
        documents.dump(written.memory_json),
        tuple(shares),
        made.outside,
        model,
    )
