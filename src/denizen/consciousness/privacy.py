"""Access to parts of an agent's mind: a person may read a part if they may read every private space that it comes from.

`cycle_spaces` says from which spaces the text of each cycle comes: those of its events, those where it was, spoke or
read, and those of what it was shown of its own past. `plans/origins.py` says the same of goals, notes and plans. One
function decides, `may_read`; a `Reader` applies it for one person and one agent, on one snapshot. What may not be read
is replaced by a placeholder that says how many entries are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, literal, select, union_all

from denizen.consciousness import conversation_summaries, layers
from denizen.consciousness.log import Entry
from denizen.consciousness.system_prompt import OF_SPACES, Era, fact_in, surroundings
from denizen.ids import AgentId, CycleId, EntityId
from denizen.inbox.events import FROM_SPACES, Event
from denizen.models import codec
from denizen.plans import origins
from denizen.storage.database import Tx, equal, insert_ignore, select_where, statement, values
from denizen.storage.schema import agents, cycle_spaces, cycles, entities, memberships, openings, spaces

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

ELSEWHERE: Final = "*"
"""A private space that is not in this database: nobody may read what comes from it."""


def may_read(sources: Iterable[str], closed: Collection[str]) -> bool:
    """Whether text from these spaces may be read by someone to whom the `closed` ones are closed. The one rule."""
    return not any(space_id in closed for space_id in sources)


def stand_in(entries: int) -> str:
    """The placeholder for this many entries that may not be read."""
    return f"[private, {entries:,} {'entry' if entries == 1 else 'entries'}]"


# Sources

_add = insert_ignore(cycle_spaces, "cycle_id, space_id, agent_id")
_of_cycle = select_where(cycle_spaces, "space_id", "cycle_id")


def sources_of_event(event: Event) -> frozenset[str]:
    """The spaces that an event comes from: its own, or those in which its plan was made."""
    made_in = event.payload.get(FROM_SPACES)
    found = [event.space_id, *(made_in if isinstance(made_in, list) else [])]
    return frozenset(each for each in found if isinstance(each, str))


def add_sources(tx: Tx, agent_id: AgentId, cycle_id: CycleId, space_ids: Iterable[str]) -> None:
    """Record that the text of this cycle comes from these spaces as well."""
    rows = [{"cycle_id": cycle_id, "space_id": each, "agent_id": agent_id} for each in sorted(set(space_ids))]
    if rows:
        tx.many(_add, rows)


def sources_of(tx: Tx, cycle_id: str) -> frozenset[str]:
    """The spaces that the text of this cycle comes from."""
    return frozenset(values(tx, _of_cycle, cycle_id=cycle_id))


# Readers

_lived_there = (
    select(literal(1))
    .where(cycle_spaces.c.agent_id == bindparam("agent_id"), cycle_spaces.c.space_id == spaces.c.id)
    .exists()
)
_is_there = (
    select(literal(1))
    .where(memberships.c.space_id == spaces.c.id, memberships.c.entity_id == bindparam("agent_id"))
    .exists()
)
_reader_is_there = (
    select(literal(1))
    .where(memberships.c.space_id == spaces.c.id, memberships.c.entity_id == bindparam("reader"))
    .exists()
)
_reader_opened = (
    select(literal(1))
    .select_from(openings.join(entities, entities.c.id == openings.c.by_id))
    .where(
        openings.c.space_id == spaces.c.id,
        openings.c.by_id == bindparam("reader"),
        openings.c.until > bindparam("now"),
        entities.c.role == "owner",
        entities.c.left_at.is_(None),
    )
    .exists()
)
_closed = statement(
    union_all(
        select(spaces.c.id)
        .join(agents, agents.c.organization_id == spaces.c.organization_id)
        .where(
            agents.c.id == bindparam("agent_id"),
            spaces.c.private == 1,
            _lived_there | _is_there,
            ~_reader_is_there,
            ~_reader_opened,
        ),
        select(cycle_spaces.c.space_id)
        .where(cycle_spaces.c.agent_id == bindparam("agent_id"), cycle_spaces.c.space_id == ELSEWHERE)
        .limit(1)
        .subquery()
        .select(),
    )
)


_lived_between = statement(
    select(cycles.c.id)
    .join(cycle_spaces, cycle_spaces.c.cycle_id == cycles.c.id)
    .where(
        *equal(cycle_spaces, "agent_id, space_id"),
        cycles.c.number >= bindparam("first"),
        cycles.c.number <= bindparam("last"),
    )
    .limit(1)
)


@dataclass(slots=True)
class Reader:
    """What one person may read of one agent. `closed` is empty for a reader who may read everything."""

    tx: Tx
    agent_id: AgentId
    closed: frozenset[str]
    """The private spaces that the agent knows and this person may not read."""
    _known: dict[str, bool] = field(default_factory=dict[str, bool])
    _lines: frozenset[str] | None = None

    def hides_space(self, space_id: str | None) -> bool:
        return space_id is not None and not may_read([space_id], self.closed)

    def hides_cycle(self, cycle_id: str) -> bool:
        if not self.closed:
            return False
        if cycle_id not in self._known:
            self._known[cycle_id] = not may_read(sources_of(self.tx, cycle_id), self.closed)
        return self._known[cycle_id]

    def closed_sources(self, cycle_id: str) -> list[str]:
        """The private spaces because of which a cycle may not be read: those that an owner could open."""
        return sorted((sources_of(self.tx, cycle_id) & self.closed) - {ELSEWHERE}) if self.hides_cycle(cycle_id) else []

    def hides_event(self, event: Event) -> bool:
        return not may_read(sources_of_event(event), self.closed)

    def hides_any(self, first: int, last: int) -> bool:
        """Whether one of the cycles from number `first` to `last` may not be read."""
        where = {"agent_id": self.agent_id, "first": first, "last": last}
        return any(self.tx.one(_lived_between, **where, space_id=each) is not None for each in self.closed)

    def hidden_facts(self) -> frozenset[str]:
        """The keys of the goals, notes and plans that may not be read."""
        if not self.closed:
            return frozenset()
        found = origins.origins_of(self.tx, self.agent_id)
        return frozenset(fact for fact, sources in found.items() if not may_read(sources, self.closed))

    def self_of(self, era: Era) -> str:
        """The system prompt of an era, as far as it may be read."""
        return readable_self(era.text, self._readable_lines()) if self.closed else era.text

    def layers_of(self, era: Era) -> str | None:
        """The layers of an era, as far as they may be read."""
        if not self.closed or era.layers is None:
            return era.layers
        return readable_layers(era.layers, self._hides_number, self.hides_any)

    def entry(self, entry: Entry) -> Entry:
        """An entry of a readable cycle; the head of an inbox message is filtered, because it names other things."""
        if not self.closed or entry.kind != "inbox" or entry.message.kind != "request":
            return entry
        parts = [
            replace(part, content=readable_inbox(part.content, self._readable_lines()))
            if part.part_kind == "user-prompt" and isinstance(part.content, str)
            else part
            for part in entry.message.parts
        ]
        message = replace(entry.message, parts=parts)
        return replace(entry, message=message, encoded=codec.dump(message))

    def entries(self, entries: Iterable[Entry]) -> list[Entry]:
        """The entries, with one placeholder for each run of entries that may not be read."""
        return [_stand_in(run.entries) if run.hidden else self.entry(run.entries[0]) for run in self.runs(entries)]

    def runs(self, entries: Iterable[Entry]) -> list[Run]:
        """The entries, with consecutive unreadable ones combined."""
        return runs(entries, self.hides_cycle)

    def messages(self, entries: Iterable[Entry]) -> list[ModelMessage]:
        """The messages of consecutive entries, with placeholders for those that may not be read."""
        return [each.message for each in self.entries(entries)]

    def _hides_number(self, number: int) -> bool:
        return self.hides_any(number, number)

    def _readable_lines(self) -> frozenset[str]:
        """The lines about its surroundings that the agent would be shown now, as far as they may be read."""
        if self._lines is None:
            hidden = self.hidden_facts()
            facts = surroundings(self.tx, self.agent_id).facts
            self._lines = frozenset(
                line
                for key, line in facts.items()
                for kind, _, id in [key.partition(":")]
                if not (self.hides_space(id) if kind in OF_SPACES else key in hidden)
            )
        return self._lines


def reader(tx: Tx, agent_id: AgentId, person: EntityId | None) -> Reader:
    """What this person may read of the agent; None is the person who runs the server and has its files: everything."""
    if person is None:
        return Reader(tx, agent_id, frozenset())
    return Reader(tx, agent_id, frozenset(values(tx, _closed, agent_id=agent_id, reader=person, now=tx.now)))


def knows_private_spaces(tx: Tx, agent_id: AgentId) -> bool:
    """Whether the agent is or was in any private space."""
    # An empty id is in no space: every private space is closed to it.
    return bool(reader(tx, agent_id, EntityId("")).closed)


# Placeholders


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive entries of the log: one that may be read, or some that may not."""

    entries: tuple[Entry, ...]
    hidden: bool


def runs(entries: Iterable[Entry], hides: Callable[[str], bool]) -> list[Run]:
    """The entries, with consecutive unreadable ones combined."""
    found: list[Run] = []
    for entry in entries:
        hidden = hides(entry.cycle_id)
        if hidden and found and found[-1].hidden:
            found[-1] = Run((*found[-1].entries, entry), True)
        else:
            found.append(Run((entry,), hidden))
    return found


def stand_in_message(entries: int, *, response: bool = False) -> ModelMessage:
    """A placeholder message for this many entries."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

    text = stand_in(entries)
    return ModelResponse(parts=[TextPart(text)]) if response else ModelRequest(parts=[UserPromptPart(text)])


def _stand_in(entries: Sequence[Entry]) -> Entry:
    """One placeholder entry, at the position of the first of these."""
    message = stand_in_message(len(entries))
    first = entries[0]
    return Entry(first.seq, first.cycle_id, "note", message, sum(each.tokens for each in entries), codec.dump(message))


_NEXT: Final = re.compile(r"^(Next|Your next plans): .*$", re.MULTILINE)


def readable_inbox(text: str, lines: frozenset[str]) -> str:
    """An inbox message with the plans and news in its head reduced to the lines that may be read."""
    head, between, rest = text.partition("\n\n")
    head = _NEXT.sub(lambda found: f"{found[1]}: {stand_in(1)}", head)
    before, mark, changes = head.partition("\n[CHANGES]\n")
    if mark:
        head = before + mark + "\n".join(_readable(changes.split("\n"), lines, "- "))
    return head + between + rest


_SECTIONS: Final = ("YOUR SPACES:", "GOALS:", "MEMORIES:", "PLANS:", "HOW TO ANSWER:", "STATE OF MIND:")


def readable_self(text: str, lines: frozenset[str]) -> str:
    """A self without the lines of its lists that are not among `lines`."""
    sections = [
        "\n".join([head, *_readable(rest.split("\n"), lines, "  - ")]) if head in _SECTIONS and rest else section
        for section in text.split("\n\n")
        for head, _, rest in [section.partition("\n")]
    ]
    return "\n\n".join(sections)


def _readable(shown: Sequence[str], lines: frozenset[str], mark: str) -> list[str]:
    """The lines that may be read, and placeholders for the others."""
    found: list[str] = []
    left_out = 0
    for line in shown:
        said = line.removeprefix(mark)
        if line.startswith(mark) and lines.isdisjoint((said, fact_in(said))):
            left_out += 1
            continue
        if left_out:
            found.append(f"{mark}{stand_in(left_out)}")
            left_out = 0
        found.append(line)
    return [*found, f"{mark}{stand_in(left_out)}"] if left_out else found


_CYCLE_LINE: Final = re.compile(r"Cycle (\d+) ")


def readable_layers(text: str, hides: Callable[[int], bool], hides_any: Callable[[int, int], bool]) -> str:
    """The layers without the lines of unreadable cycles, and without digests of groups that contain one."""
    parts: list[str] = []
    for part in text.split("\n\n"):
        known = layers.blocks(part)
        if part.startswith(conversation_summaries.MARK) or not known:
            # A model's summary of conversations does not say which ones it is about: it may be any.
            parts.append(stand_in(1))
            continue
        header, _, rest = part.partition("\n")
        if hides_any(known[0].first, known[0].last):
            part = "\n".join([header, *_layer_lines(rest.split("\n"), hides)])
        parts.append(part)
    return "\n\n".join(parts)


def _layer_lines(lines: Sequence[str], hides: Callable[[int], bool]) -> list[str]:
    found: list[str] = []
    left_out = 0
    for line in lines:
        number = _CYCLE_LINE.match(line)
        # The head of a group counts people and places of all its cycles.
        if number is None or hides(int(number[1])):
            left_out += 1
            continue
        if left_out:
            found.append(stand_in(left_out))
            left_out = 0
        found.append(line)
    return [*found, stand_in(left_out)] if left_out else found
