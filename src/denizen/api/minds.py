"""Looking into an agent, and answering what it asks."""

from __future__ import annotations

import asyncio

from pydantic import JsonValue

from denizen.agents.inspection import Inspection, inspect, readable_event, readable_passages, readable_record
from denizen.agents.registry import Agent
from denizen.api.wiring import ANSWERING, Who, Wiring, id_of
from denizen.consciousness import log, privacy, replay
from denizen.consciousness.log import Entry
from denizen.consciousness.recall import embedding
from denizen.consciousness.recall.fetching import Found as Recalled
from denizen.consciousness.replay import Rebuilt
from denizen.cycles.records import CycleRecord, cycles_of
from denizen.cycles.rethinking import Rethought, rethink
from denizen.errors import NotFound
from denizen.ids import AgentId, EntityId, SpaceId
from denizen.inbox import delivery
from denizen.inbox.events import Event
from denizen.models.embedders import NONE, Reader
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx
from denizen.tools import calls, grants, guard
from denizen.tools.calls import Call
from denizen.tools.functions import as_text
from denizen.tools.grants import Grant
from denizen.tools.guard import Crossing
from denizen.tools.recalling import Recall, look

Reading = Entity | EntityId | None
"""Who reads: what comes from private spaces that they are not in is left out. None: whoever runs this program, and has
its database: everything."""


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

    async def approvals(self, agent: Agent | AgentId, *, reader: Who | EntityId | None = None) -> list[Grant]:
        """What this agent may do again because people approved it: those that still count, the oldest first.

        With a reader, those that they gave or that were asked for in one of their spaces.
        """
        return await self.db.read(grants.visible_to, id_of(agent), None if reader is None else id_of(reader))

    async def revoke_approval(self, agent: Agent | AgentId, id: str, *, by: Who | EntityId) -> None:
        """The approval counts no longer. Raises `NotFound` where this person cannot see it."""
        await self.db.write(grants.revoke, id_of(agent), id, id_of(by))

    async def is_answer_address(self, call_id: str, key: str) -> bool:
        """Whether this is the key of the address at which a service may answer the call."""
        return await asyncio.to_thread(self.vault.signed, call_id, ANSWERING, key)

    async def answer_from_service(self, call_id: str, key: str, result: JsonValue) -> Call:
        """A service that was told `answer_address` answers. Raises `NotFound` where the key is not the address's."""
        if not await self.is_answer_address(call_id, key):
            raise NotFound("call", call_id)
        return await self.db.write(calls.answer, call_id, as_text(result))

    async def inbox(self, agent: Agent | AgentId, *, reader: Reading = None) -> list[Event]:
        """What waits for the agent, in the order in which it will be taken."""
        return await self.db.read(_inbox, id_of(agent), _id_of(reader))

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

    async def cycles(self, agent: Agent | AgentId, *, limit: int = 100, reader: Reading = None) -> list[CycleRecord]:
        """The agent's last cycles, oldest first."""
        return await self.db.read(_cycles, id_of(agent), limit, _id_of(reader))

    async def log(self, agent: Agent | AgentId, *, first: int = 1, reader: Reading = None) -> list[Entry]:
        """What the agent saw and did, from the given number on."""
        return await self.db.read(_log, id_of(agent), first, _id_of(reader))

    async def recall(
        self,
        agent: Agent | AgentId,
        query: str,
        *,
        when: str | None = None,
        who: str | None = None,
        space: Space | SpaceId | None = None,
        reader: Reading = None,
    ) -> list[Recalled]:
        """What the agent finds in its life on this question, the best first.

        As everywhere, what was said in a private space is found only there: name that space to find it.
        """
        where = None if space is None else id_of(space)
        wanted = Recall(query=query, when=when, who=who, space=where)
        found = await look(self.db, self.embedder, id_of(agent), wanted, frozenset(() if where is None else (where,)))
        return found if reader is None else await self.db.read(_readable, id_of(agent), found, _id_of(reader))

    async def replay(
        self, agent: Agent | AgentId, cycle: int, *, step: int | None = None, reader: Reading = None
    ) -> list[Rebuilt]:
        """Each request of a past cycle, or that of one step, exactly as it was sent, and what came back."""
        if step is not None:
            return [await self.db.read(replay.request, id_of(agent), cycle, step, _id_of(reader))]
        return await self.db.read(replay.requests, id_of(agent), cycle, _id_of(reader))

    async def rethink(
        self, agent: Agent | AgentId, cycle: int, *, model: str, step: int | None = None, reader: Reading = None
    ) -> list[Rethought]:
        """What another model answers to the same requests, as far as the reader may read them. No tool is run, and
        nothing is written."""
        who, asked = await self.get_agent(agent), await self.replay(agent, cycle, step=step, reader=reader)
        name, other = await self._equipment().model_for(who, model)
        return [await rethink(each, other, name, who.id, clock=self.clock, prices=self._prices) for each in asked]

    async def inspect(self, agent: Agent | AgentId, *, reader: Reading = None) -> Inspection:
        """How the agent is: what it has in mind, what waits for it, what it means to do, what it has used."""
        return await self.db.read(inspect, id_of(agent), _id_of(reader))


def _id_of(reader: Reading) -> EntityId | None:
    return None if reader is None else id_of(reader)


def _inbox(tx: Tx, agent_id: AgentId, person: EntityId | None) -> list[Event]:
    reader = privacy.reader(tx, agent_id, person)
    return [readable_event(each, reader) for each in delivery.pending(tx, agent_id)]


def _cycles(tx: Tx, agent_id: AgentId, limit: int, person: EntityId | None) -> list[CycleRecord]:
    reader = privacy.reader(tx, agent_id, person)
    return [readable_record(tx, each, reader)[0] for each in cycles_of(tx, agent_id, limit=limit)]


def _log(tx: Tx, agent_id: AgentId, first: int, person: EntityId | None) -> list[Entry]:
    return privacy.reader(tx, agent_id, person).entries(log.entries(tx, agent_id, first))


def _readable(tx: Tx, agent_id: AgentId, found: list[Recalled], person: EntityId | None) -> list[Recalled]:
    return readable_passages(tx, found, privacy.reader(tx, agent_id, person))
