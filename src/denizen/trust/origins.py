"""The origins of the text in a request: the words of trusted people, and the sources of text from outside.

Text is from outside if a guest, a service or a bridged sender wrote it, or if an outside tool returned it and the
settings of the tool do not say that its results are trusted. Whatever an agent makes of a request that held such text
is marked as well: messages, notes, goals, plans, timers, and through them memories, summaries and others' requests.

`cycles.outside_from` is the number of the log entry from which on the requests of a cycle hold text from outside. It is
set in the transaction that brings the text in. When the cycle ends, the mark goes to `minds.outside` and stays: from
then on every window or layer of the agent holds the text, or something made from it. So the cost of marking does not
grow with the history. The sources are read only on demand (`held`), as far as the window goes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sqlalchemy import bindparam, select

from denizen.consciousness.log import Entry
from denizen.ids import AgentId, CycleId, EntityId, SpaceId
from denizen.inbox import sources
from denizen.inbox.events import Event
from denizen.inbox.sources import EARLIER, Source
from denizen.spaces.source_names import named
from denizen.storage.database import Tx, select_where, statement, update_where, value
from denizen.storage.schema import calls, cycles, entities, goals, log, messages, notes, passages, plans, selves

TRUSTED_ROLES: Final = ("member", "admin", "owner")
"""The roles of people whose words are trusted."""
MOST_WORDS: Final = 500
"""How many messages of the window are read, newest first."""

MOST_CHARACTERS: Final = 200_000
"""How many characters of people's words are read, newest first: the call waits for that, and every other write too."""


@dataclass(frozen=True, slots=True)
class TrustedWords:
    """Words of a trusted person in the request."""

    text: str
    speaker_id: EntityId
    role: str
    space_id: SpaceId | None
    message_id: str | None


@dataclass(frozen=True, slots=True)
class RequestOrigins:
    """The origins of a request's text."""

    trusted: tuple[TrustedWords, ...]
    outside: tuple[Source, ...]
    """The sources of its text from outside; empty if it holds none."""


class CycleInRequest(Protocol):
    """The parts of the cycle that makes a request that are needed here."""

    @property
    def id(self) -> CycleId: ...
    @property
    def events(self) -> Sequence[Event]: ...
    @property
    def active_space_id(self) -> SpaceId | None: ...


_mark = update_where(cycles, "id", cycles.c.outside_from.is_(None), set_="outside_from")


def mark_cycle(tx: Tx, cycle_id: CycleId, seq: int) -> None:
    """Mark the requests of this cycle as holding text from outside, from the entry of that number on."""
    tx.run(_mark, id=cycle_id, outside_from=seq)


# Origins of a request


def held(tx: Tx, agent_id: AgentId, cycle: CycleInRequest, response: Entry) -> RequestOrigins:
    """The origins of the request that this response of the cycle answers, in the transaction that is to act on it.

    Reads the entries of the window and the messages in it, nothing older.
    """
    made_of: dict[str, Any] = json.loads(response.request or "{}")
    first = made_of.get("from", response.seq)
    trusted = _trusted_words(tx, agent_id, cycle, first)
    return RequestOrigins(trusted, _outside(tx, agent_id, response, made_of, first))


_number_at = statement(
    select(cycles.c.number)
    .join(log, log.c.cycle_id == cycles.c.id)
    .where(log.c.agent_id == bindparam("agent_id"), log.c.seq == bindparam("seq"))
)
_said_in_window = statement(
    select(messages.c.text, messages.c.author_id, entities.c.role, messages.c.space_id, messages.c.id)
    .select_from(
        passages.join(messages, messages.c.id == passages.c.message_id).join(
            entities, entities.c.id == messages.c.author_id
        )
    )
    .where(
        passages.c.agent_id == bindparam("agent_id"),
        passages.c.cycle >= bindparam("first"),
        passages.c.kind == "heard",
        passages.c.start == 0,
        messages.c.outside == 0,
        messages.c.deleted_at.is_(None),
        entities.c.kind == "human",
    )
    .order_by(passages.c.number.desc())
    .limit(MOST_WORDS)
)
_answers = statement(
    select(calls.c.result, calls.c.settled_by, entities.c.role, calls.c.space_id)
    .join(entities, entities.c.id == calls.c.settled_by)
    .where(
        calls.c.cycle_id == bindparam("cycle_id"),
        calls.c.state == "answered",
        calls.c.result.is_not(None),
        entities.c.kind == "human",
    )
    .order_by(calls.c.step, calls.c.position)
)


def _trusted_words(tx: Tx, agent_id: AgentId, cycle: CycleInRequest, first: int) -> tuple[TrustedWords, ...]:
    """Newest last: those in the window from the same spaces, those of the cycle's events, answers to questions."""
    spaces = {event.space_id for event in cycle.events} | {cycle.active_space_id}
    now = {word.message_id: word for event in cycle.events if (word := _words_of(event)) is not None}
    number = tx.one(_number_at, agent_id=agent_id, seq=first)
    before: list[TrustedWords] = []
    if number is not None and number[0] is not None:
        rows = tx.all(_said_in_window, agent_id=agent_id, first=number[0])
        said = [TrustedWords(*row) for row in reversed(rows)]
        before = [each for each in said if each.space_id in spaces and each.message_id not in now]
    answers = [
        TrustedWords(text, EntityId(by), role, space_id, None)
        for text, by, role, space_id in tx.all(_answers, cycle_id=cycle.id)
    ]
    return _newest([each for each in (*before, *now.values(), *answers) if each.role in TRUSTED_ROLES])


def _newest(words: Sequence[TrustedWords]) -> tuple[TrustedWords, ...]:
    """The newest words, with at most `MOST_CHARACTERS` in total. Earlier words count as not said."""
    room, kept = MOST_CHARACTERS, 0
    for each in reversed(words):
        room -= len(each.text)
        if room < 0:
            break
        kept += 1
    return tuple(words[len(words) - kept :])


def _words_of(event: Event) -> TrustedWords | None:
    if event.outside or event.sender_kind != "human" or event.sender_id is None or event.message_id is None:
        return None
    space_id = None if event.space_id is None else SpaceId(event.space_id)
    return TrustedWords(event.text, EntityId(event.sender_id), event.sender_role or "", space_id, event.message_id)


_entries = select_where(
    log,
    "outside",
    "agent_id",
    log.c.seq >= bindparam("first"),
    log.c.seq < bindparam("end"),
    log.c.outside.is_not(None),
    order_by="seq",
)
_layers = select_where(selves, "outside", "agent_id, era")
_marked_notes = select_where(notes, "key", "agent_id", notes.c.outside == 1, order_by="key")
_marked_goals = select_where(goals, "number", "agent_id", goals.c.outside == 1, order_by="number")
_marked_plans = select_where(plans, "name, kind", "agent_id", plans.c.outside == 1, order_by="name")


def _outside(tx: Tx, agent_id: AgentId, response: Entry, made_of: dict[str, Any], first: int) -> tuple[Source, ...]:
    if response.outside is None:
        return ()
    rows = tx.all(_entries, agent_id=agent_id, first=first, end=response.seq)
    found = [source for (outside,) in rows for source in sources.load(outside) or ()]
    if made_of.get("layers", True) and value(tx, _layers, agent_id=agent_id, era=made_of.get("era", 0)):
        found.append(EARLIER)
    found += [Source("memory", key) for (key,) in tx.all(_marked_notes, agent_id=agent_id)]
    found += [Source("memory", f"goal {number}") for (number,) in tx.all(_marked_goals, agent_id=agent_id)]
    found += [Source("plan", name or kind) for name, kind in tx.all(_marked_plans, agent_id=agent_id)]
    # The marked text may have left the window, and the layers may not be shown: the agent's own words carry it.
    return named(tx, agent_id, found or [EARLIER])
