"""Recalls long-term memories when a cycle opens: those about the people present that fit what they say.

This happens at intervals, and after a compaction. The search runs outside any writing transaction; which memories may
be shown is checked again in the transaction that opens the cycle, which only reads what was found.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pydantic import JsonValue

from denizen.consciousness import conversation_summaries, log
from denizen.consciousness.log import Entry
from denizen.consciousness.mind import Mind
from denizen.ids import AgentId, CycleId, SpaceId
from denizen.inbox import delivery
from denizen.inbox.events import Event
from denizen.inbox.format import entry_text, one_line
from denizen.inbox.sources import distinct
from denizen.inbox.statements import plain_statement, statements_in
from denizen.memory import items, permissions, rolling
from denizen.memory.items import MemoryItem
from denizen.memory.settings import Configuration
from denizen.memory.sinks import MemoryQuery, Retriever, retrieved
from denizen.shapes.vocabulary import RecallReason
from denizen.storage.database import Database, Tx, select_where, value
from denizen.storage.schema import cycles, memories

HEADER: Final = "[REMEMBERED — from long-term memory, what may matter to this inbox; it may be out of date]"
QUERY_CHARACTERS: Final = 2_000
_AGENTS_KNOWN: Final = 2_000
"""For how many agents we keep when they were last shown memories."""
_SPACES_KNOWN: Final = 100
"""In how many conversations of each."""
_TITLES: Final = {
    "conversation": "About this conversation",
    "user": "About the person you talk with",
    "persona": "Between you and this person",
    "organization": "About the organization",
}


@dataclass(frozen=True, slots=True)
class FoundReminders:
    """The memories found for the next cycle."""

    spaces: frozenset[str]
    """The spaces they are for: a cycle in other spaces is shown none of them."""
    found: tuple[MemoryItem, ...]
    characters: int
    reason: RecallReason
    """Why memories were searched."""
    looked_at: tuple[str, ...]
    """The scopes that were searched."""
    refused: dict[str, str]
    """The scopes that may not be searched, and why."""


@dataclass(frozen=True, slots=True)
class _Last:
    """The last time memories were recalled in a conversation."""

    turns: int
    """Turns since then, that one included."""
    layers: str | None
    """The layers before the window at that time."""
    shown: bool
    """Whether something was found."""
    next_seq: int
    """Where the agent's log ended before its last turn there."""
    reason: RecallReason
    """Why memories were recalled then."""
    compacted: bool = False
    """Whether the conversation was summarized since then."""

    def turns_now(self, mind: Mind) -> int:
        """Turns including the one about to begin, unless that was counted before and left no trace."""
        return self.turns + (mind.next_seq > self.next_seq)


@dataclass(frozen=True, slots=True)
class _Glance:
    """The waiting events, and whose memories may be shown."""

    spaces: frozenset[str]
    query: str
    readable: permissions.Readable


class Reminder:
    """Recalls memories for the agents of this process."""

    def __init__(self, db: Database, retriever: Retriever, configuration: Configuration) -> None:
        self._db = db
        self._retriever = retriever
        self._configuration = configuration
        self._last: OrderedDict[str, OrderedDict[frozenset[str], _Last]] = OrderedDict()
        """By agent and conversation, the most recent last."""

    def compacted(self, space_id: SpaceId) -> None:
        """Notes that a conversation was summarized: memories are recalled anew for its agents."""
        for known in self._last.values():
            for spaces, last in known.items():
                if space_id in spaces:
                    known[spaces] = replace(last, compacted=True)

    def is_due(self, mind: Mind, spaces: frozenset[str]) -> bool:
        """Returns whether memories have to be recalled before a cycle in this conversation.

        Asked while each cycle opens, by the thread that writes to the database: it reads only what is in memory.
        """
        if not self._configuration.now().long_term.enabled:
            return False
        last = self._known(mind.lease.agent_id).get(spaces)
        return last is None or self._why(mind, last) is not None

    def passed(self, mind: Mind, events: Iterable[Event]) -> None:
        """Notes that a cycle with these events was opened: it counts as a turn of that conversation."""
        known, spaces = self._known(mind.lease.agent_id), spaces_of(events)
        if (last := known.get(spaces)) is not None:
            known[spaces] = replace(last, turns=last.turns_now(mind), next_seq=mind.next_seq)

    async def before_cycle(self, mind: Mind) -> FoundReminders | None:
        """Finds the memories for the agent's next cycle; None if no recall is due."""
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
        found: Sequence[MemoryItem] = ()
        if owners:
            wanted = MemoryQuery(seen.query, owners, configured.long_term.top_k)
            found = await retrieved(self._retriever, wanted, agent=agent_id)
        known = shown_in(mind.past)
        new = [each for each in found if each.id not in known]
        self._remember(agent_id, spaces, mind, why, shown=bool(new))
        refused = {scope: each.read for scope, each in seen.readable.grant.decisions.items() if each.read != "yes"}
        looked_at = tuple(dict.fromkeys(each.scope for each in owners))
        characters = min(configured.long_term.max_characters, 2 * mind.budget.inbox)
        return FoundReminders(spaces, tuple(new), characters, why, looked_at, dict(refused))

    def _known(self, agent_id: AgentId) -> OrderedDict[frozenset[str], _Last]:
        return self._last.get(agent_id) or OrderedDict()

    def _why(self, mind: Mind, last: _Last) -> RecallReason | None:
        """Returns why a recall is due; None if it is not."""
        routing = self._configuration.now().routing
        if routing.on_compaction and (last.compacted or mind.era.layers != last.layers):
            return "compaction"
        if mind.next_seq <= last.next_seq and last.shown:
            return last.reason  # The cycle with the memories left no trace: show them again.
        # The first turn is the one with the memories: the next recall is due this many turns after it.
        return "cadence" if 0 < routing.every_turns < last.turns_now(mind) else None

    def _remember(
        self, agent_id: AgentId, spaces: frozenset[str], mind: Mind, reason: RecallReason, *, shown: bool
    ) -> None:
        known = self._last.setdefault(agent_id, OrderedDict())
        known[spaces] = _Last(1, mind.era.layers, shown, mind.next_seq, reason)
        known.move_to_end(spaces)
        self._last.move_to_end(agent_id)
        if len(known) > _SPACES_KNOWN:
            known.popitem(last=False)
        if len(self._last) > _AGENTS_KNOWN:
            self._last.popitem(last=False)


def _batch(tx: Tx, agent_id: AgentId) -> list[Event]:
    return list(delivery.next_batch(delivery.pending(tx, agent_id)))


def spaces_of(events: Iterable[Event]) -> frozenset[str]:
    """Returns the spaces of these events."""
    return frozenset(event.space_id for event in events if event.space_id is not None)


def _glance(tx: Tx, agent_id: AgentId, batch: Sequence[Event]) -> _Glance:
    spaces = spaces_of(batch)
    query = "\n".join(entry_text(event) for event in batch)[:QUERY_CHARACTERS]
    return _Glance(spaces, query, _readable(tx, agent_id, spaces, batch))


def _readable(tx: Tx, agent_id: AgentId, spaces: Iterable[str], batch: Sequence[Event]) -> permissions.Readable:
    said = [event.message_id for event in batch if event.message_id is not None]
    return permissions.readable(tx, agent_id, [SpaceId(each) for each in spaces], said)


def shown_in(entries: Iterable[Entry]) -> frozenset[str]:
    """Returns the ids of the memories shown in these entries."""
    return frozenset(
        id for each in entries if each.kind == "remembered" for id in json.loads(each.request or "{}").get("ids", ())
    )


_learned_in = select_where(memories, "space_id", "id")


def spaces_shown_in(tx: Tx, entries: Iterable[Entry]) -> frozenset[str]:
    """Returns the spaces in which the memories shown in these entries were learned."""
    found = (value(tx, _learned_in, id=each) for each in sorted(shown_in(entries)))
    return frozenset(filter(None, found))


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The result of a recall for one cycle."""

    retrieval: dict[str, JsonValue]
    """What clients see of it."""
    entry: Entry | None = None
    """The memories as the agent reads them, not yet written; None if there are none."""


@dataclass(frozen=True, slots=True)
class AlreadyShown:
    """What the agent sees in its next request before it is reminded: a fact in it is not told again."""

    layers: str | None = None
    """The layers before its window; they may have summaries of conversations."""
    recalled: Sequence[Entry] = ()
    """Passages of its past that were recalled for this cycle."""
    memories: frozenset[str] = frozenset()
    """The ids of the memories in its window."""


def remind(
    tx: Tx,
    agent_id: AgentId,
    cycle_id: CycleId,
    seq: int,
    events: Sequence[Event],
    occasion: FoundReminders,
    shown: AlreadyShown,
) -> RecallResult | None:
    """Builds an entry with the memories that those present may hear; None if they were found for other spaces.

    The events, and who is present, may have changed since the search: who may hear what is decided here.
    """
    spaces = spaces_of(events)
    if spaces != occasion.spaces:
        return None
    if not occasion.found:
        return RecallResult(diagnostics(occasion, ()))
    allowed = {each.key for each in _readable(tx, agent_id, spaces, events).owners}
    numbers = [each.number for each in occasion.found if each.number > 0]
    own = {each.number: each for each in items.find(tx, numbers)}
    # Memories from a custom retriever are not in our database: they are shown as given.
    there = [own.get(each.number) if each.number > 0 else each for each in occasion.found]
    allowed_now = [each for each in there if each is not None and each.owner in allowed]
    chosen = fitting(allowed_now, occasion.characters, _facts_shown(tx, spaces, allowed, shown))
    retrieval = diagnostics(occasion, chosen)
    if not chosen:
        return RecallResult(retrieval)
    items.used(tx, [each.number for each in chosen if each.number > 0])
    told = {"ids": [each.id for each in chosen]}
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    message = ModelRequest(parts=[UserPromptPart(f"{HEADER}\n\n{render(chosen)}")])
    outside = distinct(source for each in chosen if (source := each.source) is not None)
    entry = log.entry(seq, cycle_id, "remembered", message, request=json.dumps(told), outside=outside or None)
    return RecallResult(retrieval, entry)


def _facts_shown(tx: Tx, spaces: Iterable[str], allowed: Collection[str], shown: AlreadyShown) -> frozenset[str]:
    """Returns the facts that the agent sees already and that those present may hear.

    A fact that it knows only from elsewhere is told again: what it is told here, it may say here.
    """
    memories = items.of_ids(tx, sorted(shown.memories))
    facts = {plain_statement(each.text) for each in memories if each.owner in allowed}
    for entry in shown.recalled:
        facts |= statements_in(entry_content(entry))
    if shown.layers is not None and conversation_summaries.MARK in shown.layers:
        in_layers = statements_in(shown.layers)
        for space_id in spaces:
            state = rolling.find(tx, SpaceId(space_id))
            known = {plain_statement(each.text) for _, each in state.memory.items()}
            facts |= in_layers & (known | statements_in(state.summary))
    return frozenset(facts)


def entry_content(entry: Entry) -> str:
    """Returns the text of an entry that holds one message of ours."""
    from pydantic_ai.messages import UserPromptPart

    [part] = entry.message.parts
    return str(part.content) if isinstance(part, UserPromptPart) else ""


def diagnostics(occasion: FoundReminders, chosen: Sequence[MemoryItem]) -> dict[str, JsonValue]:
    """Returns what clients see about a recall: counts and refusals, never the texts."""
    counts: dict[str, JsonValue] = {scope: sum(each.scope == scope for each in chosen) for scope in occasion.looked_at}
    return {
        "reason": occasion.reason,
        "memories": counts,
        "characters": sum(len(each.text) for each in chosen),
        "refused": cast("dict[str, JsonValue]", occasion.refused),
    }


def fitting(found: Sequence[MemoryItem], characters: int, shown: Collection[str] = ()) -> list[MemoryItem]:
    """Returns as many memories as fit, the best of each scope first: a fact stored in two scopes once, and none that
    is `shown` already.
    """
    chosen: dict[str, MemoryItem] = {}
    for each in found:
        cost, fact = len(each.text) + 40, plain_statement(each.text)
        if cost <= characters and fact not in chosen and fact not in shown:
            chosen[fact] = each
            characters -= cost
    return list(chosen.values())


def render(chosen: Sequence[MemoryItem]) -> str:
    """Renders memories for a model: by scope, behind the gutter, because they are others' words."""
    lines: list[str] = []
    for scope in dict.fromkeys(each.scope for each in chosen):
        lines.append(f"{_TITLES[scope]}:")
        lines += [f"| {one_line(each.text)} ({each.category})" for each in chosen if each.scope == scope]
    return "\n".join(lines)


_told = select_where(cycles, "told", "id, agent_id")


def retrieval_of(tx: Tx, agent_id: AgentId, cycle_id: str) -> dict[str, Any] | None:
    """Returns the diagnostics of the recall in a cycle; None if there was no recall."""
    return json.loads(value(tx, _told, agent_id=agent_id, id=cycle_id) or "{}").get("retrieval")
