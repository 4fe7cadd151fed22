"""Looking into an agent, and answering what it asks."""

from __future__ import annotations

import asyncio

from pydantic import JsonValue

from denizen.agents.inspection import Inspection, inspect
from denizen.agents.registry import Agent
from denizen.consciousness import log, replay
from denizen.consciousness.log import Entry
from denizen.consciousness.recall import embedding
from denizen.consciousness.recall.fetching import Found as Recalled
from denizen.consciousness.replay import Rebuilt
from denizen.cycles.records import CycleRecord, cycles_of
from denizen.cycles.rethinking import Rethought, rethink
from denizen.doors.wiring import ANSWERING, Who, Wiring, id_of
from denizen.errors import NotFound
from denizen.ids import AgentId, EntityId, SpaceId
from denizen.inbox import delivery
from denizen.inbox.events import Event
from denizen.models.embedders import NONE, Reader
from denizen.spaces.directory import Space
from denizen.tools import calls, guard
from denizen.tools.calls import Call
from denizen.tools.functions import as_text
from denizen.tools.guard import Crossing
from denizen.tools.recalling import Recall, look


class Minds(Wiring):
    """What waits for an agent, what it lived through, what it recalls, what it asks of people."""

    async def crossings(self, agent: Agent | AgentId) -> list[Crossing]:
        """The messages of this agent that were stopped, because they would have carried private words elsewhere."""
        return await self.db.read(guard.crossings_of, id_of(agent))

    async def waiting_calls(self, who: Who | EntityId) -> list[Call]:
        """The questions of agents that this person may answer, the oldest first."""
        return await self.db.read(calls.open_to, id_of(who))

    async def calls(self, space: Space | SpaceId) -> list[Call]:
        """The tool calls that the people in a space see, in order."""
        return await self.db.read(calls.in_space, id_of(space))

    async def answer(self, call: Call | str, result: JsonValue, *, by: Who | EntityId) -> Call:
        """Answer what an agent has asked. The first answer stands: a second one raises `AlreadySettled`."""
        return await self.db.write(calls.answer_as, id_of(call), as_text(result), id_of(by))

    async def is_answer_address(self, call_id: str, key: str) -> bool:
        """Whether this is the key of the address at which a service may answer the call."""
        return await asyncio.to_thread(self.vault.signed, call_id, ANSWERING, key)

    async def answer_from_service(self, call_id: str, key: str, result: JsonValue) -> Call:
        """A service that was told `answer_address` answers. Raises `NotFound` where the key is not the address's."""
        if not await self.is_answer_address(call_id, key):
            raise NotFound("call", call_id)
        return await self.db.write(calls.answer, call_id, as_text(result))

    async def inbox(self, agent: Agent | AgentId) -> list[Event]:
        """What waits for the agent, in the order in which it will be taken."""
        return await self.db.read(delivery.pending, id_of(agent))

    async def dead_events(self, agent: Agent | AgentId) -> list[Event]:
        return await self.db.read(delivery.dead, id_of(agent))

    async def requeue(self, agent: Agent | AgentId, event_id: str) -> None:
        """A dead event is tried again."""
        await self.db.write(delivery.requeue, id_of(agent), event_id)

    async def mark_urgent(self, agent: Agent | AgentId, event_id: str) -> None:
        await self.db.write(delivery.mark_urgent, id_of(agent), event_id)

    async def reindex(self) -> int:
        """Everything that agents can recall has a vector of this runtime's embedder; gives how many were made.

        Inside `living()` this happens by itself. It can be stopped at any time and goes on where it was.
        """
        return 0 if self.embedder is None else await embedding.reindex(self.db, self.embedder)

    async def reindexing(self) -> embedding.Progress:
        """How many passages have their vector, of how many."""
        name = NONE if self.embedder is None else self.embedder.name
        return await self.db.read(embedding.progress, name, reads=isinstance(self.embedder, Reader))

    async def cycles(self, agent: Agent | AgentId, *, limit: int = 100) -> list[CycleRecord]:
        """The agent's last cycles, oldest first."""
        return await self.db.read(cycles_of, id_of(agent), limit=limit)

    async def log(self, agent: Agent | AgentId, *, first: int = 1) -> list[Entry]:
        """What the agent saw and did, from the given number on."""
        return await self.db.read(log.entries, id_of(agent), first)

    async def recall(
        self,
        agent: Agent | AgentId,
        query: str,
        *,
        when: str | None = None,
        who: str | None = None,
        space: Space | SpaceId | None = None,
    ) -> list[Recalled]:
        """What the agent finds in its life on this question, the best first.

        As everywhere, what was said in a private space is found only there: name that space to find it.
        """
        where = None if space is None else id_of(space)
        wanted = Recall(query=query, when=when, who=who, space=where)
        return await look(self.db, self.embedder, id_of(agent), wanted, frozenset(() if where is None else (where,)))

    async def replay(self, agent: Agent | AgentId, cycle: int, *, step: int | None = None) -> list[Rebuilt]:
        """Each request of a past cycle, or that of one step, exactly as it was sent, and what came back."""
        if step is not None:
            return [await self.db.read(replay.request, id_of(agent), cycle, step)]
        return await self.db.read(replay.requests, id_of(agent), cycle)

    async def rethink(
        self, agent: Agent | AgentId, cycle: int, *, model: str, step: int | None = None
    ) -> list[Rethought]:
        """What another model answers to the same requests. No tool is run, and nothing is written."""
        who, asked = await self.get_agent(agent), await self.replay(agent, cycle, step=step)
        name, other = await self._equipment().model_for(who, model)
        return [await rethink(each, other, name, who.id, clock=self.clock, prices=self._prices) for each in asked]

    async def inspect(self, agent: Agent | AgentId) -> Inspection:
        """How the agent is: what it has in mind, what waits for it, what it means to do, what it has used."""
        return await self.db.read(inspect, id_of(agent))
