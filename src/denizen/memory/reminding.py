"""What an agent is reminded of when a cycle opens: what is remembered of those it is with, and fits what they say.

By cadence, and when something has been compacted. Searched outside any transaction that writes; whose memories may be
told is asked again in the transaction that opens the cycle, which only reads what was found.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pydantic import JsonValue
from pydantic_ai.messages import ModelRequest, UserPromptPart
from sqlalchemy import bindparam, select

from denizen.consciousness import log
from denizen.consciousness.log import Entry
from denizen.consciousness.mind import Mind
from denizen.ids import AgentId, CycleId, SpaceId
from denizen.inbox import delivery
from denizen.inbox.events import Event
from denizen.inbox.format import entry_text, one_line
from denizen.inbox.sources import distinct
from denizen.memory import granting, items
from denizen.memory.items import Remembered
from denizen.memory.settings import Configuration
from denizen.memory.sinks import Retriever, Wanted, retrieved
from denizen.storage.database import Database, Tx, statement
from denizen.storage.schema import cycles, memories
from denizen.storage.schema import log as log_rows

HEADER: Final = "[REMEMBERED — from long-term memory, what may matter to this inbox; it may be out of date]"
QUERY_CHARACTERS: Final = 2_000
_AGENTS_KNOWN: Final = 2_000
"""Of so many agents it is known when they were last reminded of something."""
_SPACES_KNOWN: Final = 100
"""In so many conversations of each."""
_TITLES: Final = {
    "conversation": "About this conversation",
    "user": "About the person you talk with",
    "persona": "Between you and this person",
    "organization": "About the organization",
}


@dataclass(frozen=True, slots=True)
class Occasion:
    """What was found for the next cycle."""

    spaces: frozenset[str]
    """For whom: where the cycle is elsewhere, nothing of it is told."""
    found: tuple[Remembered, ...]
    characters: int
    turn: str
    """Why it was looked for: `first`, `cadence`, `compaction`."""
    looked_at: tuple[str, ...]
    """The scopes."""
    refused: dict[str, str]
    """Those that may not be looked at, and why."""


@dataclass(frozen=True, slots=True)
class _Last:
    """When a conversation was last reminded."""

    turns: int
    """Since then, that one included."""
    layers: str | None
    """What stood before the window then."""
    shown: bool
    """Whether something was found."""
    next_seq: int
    """Where the agent's log ended before its last turn there."""

    def turns_now(self, mind: Mind) -> int:
        """With the one that is about to begin, unless that was counted before and left no trace."""
        return self.turns + (mind.next_seq > self.next_seq)


@dataclass(frozen=True, slots=True)
class _Glance:
    """What waits, and whose memories may be told to those who wait."""

    spaces: frozenset[str]
    query: str
    readable: granting.Readable


class Reminder:
    """Reminds agents."""

    def __init__(self, db: Database, retriever: Retriever, configuration: Configuration) -> None:
        self._db = db
        self._retriever = retriever
        self._configuration = configuration
        self._last: OrderedDict[str, OrderedDict[frozenset[str], _Last]] = OrderedDict()
        """By agent and conversation, those of late at the end."""

    def compacted(self, space_id: SpaceId) -> None:
        """A conversation was summed up: whoever is in it is reminded anew."""
        if self._configuration.now().routing.on_compaction:
            for known in self._last.values():
                for spaces in [each for each in known if space_id in each]:
                    del known[spaces]

    def not_yet(self, mind: Mind) -> frozenset[frozenset[str]] | None:
        """The conversations in which it is not time to remind the agent; None: in none is there anything to remind of.

        Asked before each cycle, and so without a look into the database.
        """
        if not self._configuration.now().long_term.enabled:
            return None
        known = self._known(mind.lease.agent_id).items()
        return frozenset(spaces for spaces, last in known if self._why(mind, last) is None)

    def passed(self, mind: Mind, events: Iterable[Event]) -> None:
        """A cycle of these events was opened: it is a turn of that conversation."""
        known, spaces = self._known(mind.lease.agent_id), spaces_of(events)
        if (last := known.get(spaces)) is not None:
            known[spaces] = replace(last, turns=last.turns_now(mind), next_seq=mind.next_seq)

    async def before_cycle(self, mind: Mind) -> Occasion | None:
        """What the agent may be reminded of when its next cycle opens; None where it is not time."""
        configured = self._configuration.now()
        agent_id = mind.lease.agent_id
        batch = await self._db.read(_batch, agent_id)
        spaces = spaces_of(batch)
        last = self._known(agent_id).get(spaces)
        why = "first" if last is None else self._why(mind, last)
        if not spaces or why is None:
            return None
        seen = await self._db.read(_glance, agent_id, batch)
        owners = seen.readable.owners
        found: Sequence[Remembered] = ()
        if owners:
            wanted = Wanted(seen.query, owners, configured.long_term.top_k)
            found = await retrieved(self._retriever, wanted, agent=agent_id)
        known = shown_in(mind.past)
        new = [each for each in found if each.id not in known]
        self._remember(agent_id, spaces, mind, shown=bool(new))
        refused = {scope: each.read for scope, each in seen.readable.grant.decisions.items() if each.read != "yes"}
        looked_at = tuple(dict.fromkeys(each.scope for each in owners))
        characters = min(configured.long_term.max_characters, 2 * mind.budget.inbox)
        return Occasion(spaces, tuple(new), characters, why, looked_at, dict(refused))

    def _known(self, agent_id: AgentId) -> OrderedDict[frozenset[str], _Last]:
        return self._last.get(agent_id) or OrderedDict()

    def _why(self, mind: Mind, last: _Last) -> str | None:
        """Why it is time to be reminded again; None if it is not."""
        routing = self._configuration.now().routing
        if mind.era.layers != last.layers and routing.on_compaction:
            return "compaction"
        if mind.next_seq <= last.next_seq and last.shown:
            return "first"  # the cycle that was reminded left no trace: it is told again
        # The first turn is the one that was reminded: the next is due so many turns after it.
        return "cadence" if 0 < routing.every_turns < last.turns_now(mind) else None

    def _remember(self, agent_id: AgentId, spaces: frozenset[str], mind: Mind, *, shown: bool) -> None:
        known = self._last.setdefault(agent_id, OrderedDict())
        known[spaces] = _Last(1, mind.era.layers, shown, mind.next_seq)
        known.move_to_end(spaces)
        self._last.move_to_end(agent_id)
        if len(known) > _SPACES_KNOWN:
            known.popitem(last=False)
        if len(self._last) > _AGENTS_KNOWN:
            self._last.popitem(last=False)


def _batch(tx: Tx, agent_id: AgentId) -> list[Event]:
    return list(delivery.next_batch(delivery.pending(tx, agent_id)))


def spaces_of(events: Iterable[Event]) -> frozenset[str]:
    """The conversation that these are of."""
    return frozenset(event.space_id for event in events if event.space_id is not None)


def _glance(tx: Tx, agent_id: AgentId, batch: Sequence[Event]) -> _Glance:
    spaces = spaces_of(batch)
    query = "\n".join(entry_text(event) for event in batch)[:QUERY_CHARACTERS]
    return _Glance(spaces, query, _readable(tx, agent_id, spaces, batch))


def _readable(tx: Tx, agent_id: AgentId, spaces: Iterable[str], batch: Sequence[Event]) -> granting.Readable:
    said = [event.message_id for event in batch if event.message_id is not None]
    return granting.readable(tx, agent_id, [SpaceId(each) for each in spaces], said)


def shown_in(entries: Iterable[Entry]) -> frozenset[str]:
    """The memories that these entries tell."""
    return frozenset(
        id for each in entries if each.kind == "remembered" for id in json.loads(each.request or "{}").get("ids", ())
    )


_learned_in = statement(select(memories.c.space_id).where(memories.c.id == bindparam("id")))


def spaces_shown_in(tx: Tx, entries: Iterable[Entry]) -> frozenset[str]:
    """The spaces in which the memories were learned that these entries tell."""
    found = [tx.one(_learned_in, id=each) for each in sorted(shown_in(entries))]
    return frozenset(row[0] for row in found if row is not None and row[0])


def remind(
    tx: Tx, agent_id: AgentId, cycle_id: CycleId, seq: int, events: Sequence[Event], occasion: Occasion
) -> Entry | None:
    """An entry, not yet written, with what those who are there may hear; None if there is nothing.

    Other events than those that were seen may have been taken, and others may be there: who may hear what is decided
    here.
    """
    spaces = spaces_of(events)
    if not occasion.found or spaces != occasion.spaces:
        return None
    allowed = {each.key for each in _readable(tx, agent_id, spaces, events).owners}
    numbers = [each.number for each in occasion.found if each.number > 0]
    own = {each.number: each for each in items.find(tx, numbers)}
    # What another retriever found is not in our database: it is told as it was given.
    there = [own.get(each.number) if each.number > 0 else each for each in occasion.found]
    chosen = fitting([each for each in there if each is not None and each.owner in allowed], occasion.characters)
    if not chosen:
        return None
    items.used(tx, [each.number for each in chosen if each.number > 0])
    told = {"ids": [each.id for each in chosen], "retrieval": diagnostics(occasion, chosen)}
    message = ModelRequest(parts=[UserPromptPart(f"{HEADER}\n\n{render(chosen)}")])
    outside = distinct(source for each in chosen if (source := each.source) is not None)
    return log.entry(seq, cycle_id, "remembered", message, request=json.dumps(told), outside=outside or None)


def diagnostics(occasion: Occasion, chosen: Sequence[Remembered]) -> dict[str, JsonValue]:
    """What clients are told of a retrieval: how many of what, and why not more; never what it said."""
    counts: dict[str, JsonValue] = {scope: sum(each.scope == scope for each in chosen) for scope in occasion.looked_at}
    return {
        "reason": occasion.turn,
        "memories": counts,
        "characters": sum(len(each.text) for each in chosen),
        "refused": cast("dict[str, JsonValue]", occasion.refused),
    }


def fitting(found: Sequence[Remembered], characters: int) -> list[Remembered]:
    """As many as have room, the best of each scope first. The same fact, kept in two scopes, is told once."""
    chosen: dict[str, Remembered] = {}
    for each in found:
        cost, fact = len(each.text) + 40, _plain_fact(each.text)
        if cost <= characters and fact not in chosen:
            chosen[fact] = each
            characters -= cost
    return list(chosen.values())


def _plain_fact(text: str) -> str:
    """What two memories have in common that say the same, apart from case, spaces and the full stop."""
    return one_line(text).casefold().rstrip(".! ")


def render(chosen: Sequence[Remembered]) -> str:
    """Memories as a model reads them: by scope, behind the gutter, because they are others' words."""
    lines: list[str] = []
    for scope in dict.fromkeys(each.scope for each in chosen):
        lines.append(f"{_TITLES[scope]}:")
        lines += [f"| {one_line(each.text)} ({each.category})" for each in chosen if each.scope == scope]
    return "\n".join(lines)


_retrieved = statement(
    select(log_rows.c.request)
    .join(cycles, cycles.c.id == log_rows.c.cycle_id)
    .where(
        cycles.c.id == bindparam("cycle_id"),
        log_rows.c.agent_id == bindparam("agent_id"),
        # At its beginning: after the inbox message, and what came to mind by itself.
        log_rows.c.seq > cycles.c.first_seq,
        log_rows.c.seq <= cycles.c.first_seq + 2,
        log_rows.c.kind == "remembered",
    )
)


def retrieval_of(tx: Tx, agent_id: AgentId, cycle_id: str) -> dict[str, Any] | None:
    """The diagnostics of what a cycle was reminded of; None if it was of nothing."""
    row = tx.one(_retrieved, agent_id=agent_id, cycle_id=cycle_id)
    return None if row is None else json.loads(row[0] or "{}").get("retrieval")
