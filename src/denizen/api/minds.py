"""`denizen.minds`: inspect an agent: its inbox, its history, its cycles, and its recall.

With a `reader`, what comes from private spaces that they are not in is left out. Without one, everything is shown: the
operator of this program has the database anyway.
"""

from __future__ import annotations

from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.agents import managing, registry
from denizen.agents.inspection import Inspection, inspect, readable_event, readable_passages, readable_record
from denizen.api.arguments import number_of, text_of
from denizen.api.subject import AgentRef, PersonRef, SpaceRef, Subject, id_of, optional_id_of
from denizen.consciousness import log, privacy, replay
from denizen.consciousness.log import Entry
from denizen.consciousness.recall import embedding
from denizen.consciousness.recall.fetching import RecalledPassage as Recalled
from denizen.consciousness.replay import RebuiltRequest
from denizen.cycles.records import CycleRecord, cycles_of
from denizen.cycles.rethinking import NewAnswer, rethink
from denizen.errors import InvalidInput
from denizen.ids import AgentId, EntityId
from denizen.inbox import delivery
from denizen.inbox.events import Event
from denizen.models.embedders import NONE, Reader
from denizen.storage.database import Tx
from denizen.tools import privacy_guard
from denizen.tools.privacy_guard import Crossing
from denizen.tools.recalling import QUERY_CHARACTERS, Recall, look


class Minds(Subject):
    """The history, the inbox and the recall of an agent.

    ```python
    await denizen.spaces.post(kitchen, noor, "Good morning.")
    await denizen.run_until_idle()
    [cycle] = await denizen.minds.cycles(ada)
    assert cycle.outcome == "acted"
    ```
    """

    async def inspect(self, agent: AgentRef, *, reader: PersonRef | None = None) -> Inspection:
        """The state of the agent: its window, inbox, plans, and what it has used."""
        return await self._runtime.db.read(inspect, id_of(agent), optional_id_of(reader))

    async def inbox(self, agent: AgentRef, *, reader: PersonRef | None = None) -> list[Event]:
        """The events that wait for the agent, in the order in which it takes them.

        ```python
        await denizen.spaces.post(kitchen, noor, "Good morning.")
        assert [each.text for each in await denizen.minds.inbox(ada)] == ["Good morning."]
        ```
        """
        return await self._read_agent(agent, _inbox, optional_id_of(reader))

    async def dead_events(self, agent: AgentRef) -> list[Event]:
        """The events that failed too often and are no longer tried."""
        return await self._read_agent(agent, delivery.dead)

    async def requeue(self, agent: AgentRef, event_id: str, *, by: Requester = THIS_PROCESS) -> None:
        """Try a dead event again."""
        await self._runtime.db.write(managing.requeue, by, id_of(agent), event_id)

    async def mark_urgent(self, agent: AgentRef, event_id: str, *, by: Requester = THIS_PROCESS) -> None:
        """The event moves to the urgent lane."""
        await self._runtime.db.write(managing.mark_urgent, by, id_of(agent), event_id)

    async def cycles(self, agent: AgentRef, *, limit: int = 100, reader: PersonRef | None = None) -> list[CycleRecord]:
        """The agent's last cycles, oldest first."""
        most = number_of(limit, "limit", 1)
        return await self._read_agent(agent, _cycles, most, optional_id_of(reader))

    async def log(self, agent: AgentRef, *, first: int = 1, reader: PersonRef | None = None) -> list[Entry]:
        """What the agent saw and did, from the given number on."""
        return await self._read_agent(agent, _log, number_of(first, "first"), optional_id_of(reader))

    async def recall(
        self,
        agent: AgentRef,
        query: str,
        *,
        when: str | None = None,
        who: str | None = None,
        space: SpaceRef | None = None,
        reader: PersonRef | None = None,
    ) -> list[Recalled]:
        """Search the history of the agent, as its tool `recall` does, the best result first.

        What was said in a private space is found only if that space is named.
        """
        where = optional_id_of(space)
        if not 0 < len(text_of(query, "query")) <= QUERY_CHARACTERS:
            raise InvalidInput(f"`query` has {len(query):,} characters. Give 1 to {QUERY_CHARACTERS:,}.")
        when = None if when is None else text_of(when, "when")
        who = None if who is None else text_of(who, "who")
        wanted = Recall(query=query, when=when, who=who, space=where)
        found = await look(
            self._runtime.db, self._runtime.embedder, id_of(agent), wanted, frozenset(() if where is None else (where,))
        )
        return (
            found
            if reader is None
            else await self._runtime.db.read(_readable, id_of(agent), found, optional_id_of(reader))
        )

    async def replay(
        self, agent: AgentRef, cycle: int, *, step: int | None = None, reader: PersonRef | None = None
    ) -> list[RebuiltRequest]:
        """Each request of a past cycle, or that of one step, exactly as it was sent, and what came back."""
        which, person = number_of(cycle, "cycle"), optional_id_of(reader)
        if step is not None:
            return [await self._read_agent(agent, replay.request, which, number_of(step, "step"), person)]
        return await self._read_agent(agent, replay.requests, which, person)

    async def rethink(
        self, agent: AgentRef, cycle: int, *, model: str, step: int | None = None, reader: PersonRef | None = None
    ) -> list[NewAnswer]:
        """What another model answers to the same requests. No tool is run, and nothing is written."""
        who, asked = (
            await self._runtime.db.read(registry.get, id_of(agent)),
            await self.replay(agent, cycle, step=step, reader=reader),
        )
        name, other = await self._runtime.equipment().model_for(who, model)
        return [
            await rethink(
                self._runtime.db, each, other, name, who.id, clock=self._runtime.clock, prices=self._runtime.prices
            )
            for each in asked
        ]

    async def crossings(self, agent: AgentRef) -> list[Crossing]:
        """Messages of this agent that were stopped because they would have repeated private words elsewhere."""
        return await self._read_agent(agent, privacy_guard.crossings_of)

    async def reindex(self) -> int:
        """Compute the missing vectors of what agents can recall. Returns how many were computed.

        Inside `living()` this happens by itself. It can be stopped at any time and continues later.
        """
        return (
            0 if self._runtime.embedder is None else await embedding.reindex(self._runtime.db, self._runtime.embedder)
        )

    async def reindex_progress(self) -> embedding.Progress:
        """How many passages have their vector, of how many."""
        name = NONE if self._runtime.embedder is None else self._runtime.embedder.name
        return await self._runtime.db.read(embedding.progress, name, reads=isinstance(self._runtime.embedder, Reader))


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
