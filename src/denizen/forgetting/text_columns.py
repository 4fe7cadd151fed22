"""The list of all tables and columns that hold text written by people or agents, and paging through them.

A table that is added to the schema and holds such text must be added here. A test reads the whole schema and reports
missing ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Table, bindparam, null, select, tuple_, update

from denizen.storage.database import Params, Tx, statement
from denizen.storage.schema import (
    advisors,
    agents,
    alerts,
    bridges,
    calls,
    channels,
    contents,
    cycles,
    effects,
    entities,
    events,
    file_pages,
    files,
    goals,
    grants,
    layers,
    ledger,
    log,
    minds,
    notes,
    openings,
    organizations,
    outbox,
    overflow,
    panel_alerts,
    panels,
    plans,
    reflections,
    replies,
    rollings,
    rounds,
    selves,
    signals,
    space_statuses,
    spaces,
    stances,
    tokens,
    voice_reflections,
    voice_signals,
    voice_stances,
    webhooks,
)

PAGE: Final = 100
"""Rows that are in memory at once."""

How = Literal["text", "entry", "request"]
"""The format of a column: text, which may be JSON; an entry of the log; the parts of a request."""

_agents_here = select(agents.c.id).where(agents.c.organization_id == bindparam("organization_id"))


@dataclass(frozen=True, slots=True)
class Row:
    """A row with text."""

    keys: tuple[Any, ...]
    agent_id: str | None
    """The agent it belongs to, if any."""
    cycle_id: str | None
    kind: str
    """The kind, for an entry of the log."""
    words: Mapping[str, str | None]
    """By column."""


class TextTable:
    """One table with text."""

    def __init__(
        self,
        table: Table,
        columns: Mapping[str, How],
        *,
        agent: ColumnElement[Any] | None = None,
        cycle: ColumnElement[Any] | None = None,
        here: ColumnElement[bool] | None = None,
        of_people: bool = False,
    ) -> None:
        self.name = table.name
        self.columns = columns
        self.of_people = of_people
        """Whether it holds names only: no text of messages gets here."""
        keys = list(table.primary_key.columns)
        self._first: dict[str, Params] = {
            f"key{at}": "" if key.type.python_type is str else -1 for at, key in enumerate(keys)
        }
        at_key = [bindparam(name, type_=key.type) for name, key in zip(self._first, keys, strict=True)]
        nothing = null()
        self._many_keys = len(keys)
        self._page = statement(
            select(
                *keys,
                nothing if agent is None else agent,
                nothing if cycle is None else cycle,
                table.c.kind if table is log else nothing,
                *(table.c[name] for name in columns),
            )
            .where(tuple_(*keys) > tuple_(*at_key), table.c.agent_id.in_(_agents_here) if here is None else here)
            .order_by(*keys)
            .limit(bindparam("limit"))
        )
        self._rewrite = statement(
            update(table)
            .where(*(key == given for key, given in zip(keys, at_key, strict=True)))
            .values({name: bindparam(f"new_{name}", type_=table.c[name].type) for name in columns})
        )

    def rows(self, tx: Tx, organization_id: str) -> Iterator[Row]:
        """Yields every row of the organization, a page at a time."""
        after = self._first
        while True:
            page = tx.all(self._page, organization_id=organization_id, limit=PAGE, **after)
            for row in page:
                yield self._row(row)
            if len(page) < PAGE:
                return
            after = dict(zip(self._first, page[-1][: self._many_keys], strict=True))

    def _row(self, row: tuple[Any, ...]) -> Row:
        at = self._many_keys
        agent_id, cycle_id, kind, *words = row[at:]
        return Row(row[:at], agent_id, cycle_id, kind or "", dict(zip(self.columns, words, strict=True)))

    def rewrite(self, tx: Tx, row: Row, words: Mapping[str, str | None]) -> None:
        """Replaces the texts of the row."""
        keys = dict(zip(self._first, row.keys, strict=True))
        tx.run(self._rewrite, **keys, **{f"new_{name}": words[name] for name in self.columns})


_cycles_here = select(cycles.c.id).where(cycles.c.agent_id.in_(_agents_here))
_entities_here = select(entities.c.id).where(entities.c.organization_id == bindparam("organization_id"))
_spaces_here = select(spaces.c.id).where(spaces.c.organization_id == bindparam("organization_id"))
_contents_here = select(contents.c.id).where(contents.c.organization_id == bindparam("organization_id"))
_agent_of_cycle = select(cycles.c.agent_id).where(cycles.c.id == effects.c.cycle_id).scalar_subquery()

_bridges_here = select(bridges.c.id).where(bridges.c.organization_id == bindparam("organization_id"))

PLACES: Final = (
    TextTable(events, {"payload": "text"}, agent=events.c.agent_id, cycle=events.c.cycle_id),
    TextTable(
        log, {"message": "entry", "request": "request", "outside": "text"}, agent=log.c.agent_id, cycle=log.c.cycle_id
    ),
    TextTable(cycles, {"summary": "text", "told": "text"}, agent=cycles.c.agent_id, cycle=cycles.c.id),
    TextTable(
        effects,
        {"result": "text", "outside": "text"},
        agent=_agent_of_cycle,
        cycle=effects.c.cycle_id,
        here=effects.c.cycle_id.in_(_cycles_here),
    ),
    TextTable(overflow, {"text": "text"}, agent=overflow.c.agent_id, cycle=overflow.c.cycle_id),
    TextTable(
        calls, {"arguments": "text", "result": "text", "why": "text"}, agent=calls.c.agent_id, cycle=calls.c.cycle_id
    ),
    TextTable(grants, {"arguments": "text"}, agent=grants.c.agent_id),
    TextTable(ledger, {"detail": "text"}, agent=ledger.c.agent_id, cycle=ledger.c.cycle_id),
    TextTable(space_statuses, {"detail": "text"}, agent=space_statuses.c.agent_id),
    TextTable(alerts, {"detail": "text"}, agent=alerts.c.agent_id),
    TextTable(panel_alerts, {"detail": "text"}, here=panel_alerts.c.space_id.in_(_spaces_here)),
    TextTable(
        agents,
        {"parked_detail": "text"},
        agent=agents.c.id,
        here=agents.c.organization_id == bindparam("organization_id"),
    ),
    TextTable(selves, {"text": "text", "layers": "text"}, agent=selves.c.agent_id),
    TextTable(layers, {"digest": "text"}, agent=layers.c.agent_id),
    TextTable(minds, {"told": "text"}, agent=minds.c.agent_id),
    TextTable(
        rollings,
        {"summary": "text", "memory": "text"},
        here=rollings.c.space_id.in_(
            select(spaces.c.id).where(spaces.c.organization_id == bindparam("organization_id"))
        ),
    ),
    TextTable(goals, {"text": "text"}, agent=goals.c.agent_id),
    TextTable(notes, {"text": "text"}, agent=notes.c.agent_id),
    TextTable(plans, {"name": "text", "instruction": "text"}, agent=plans.c.agent_id),
    TextTable(panels, {"settings": "text"}, here=panels.c.organization_id == bindparam("organization_id")),
    TextTable(
        advisors,
        {"name": "text", "description": "text", "in_group": "text", "settings": "text"},
        here=advisors.c.space_id.in_(_spaces_here),
    ),
    TextTable(rounds, {"question": "text"}, here=rounds.c.space_id.in_(_spaces_here)),
    TextTable(
        replies,
        {"name": "text", "text": "text", "thinking": "text", "result": "text", "error": "text", "recipe": "text"},
        here=replies.c.organization_id == bindparam("organization_id"),
    ),
    TextTable(
        stances,
        {"preset_reason": "text", "profile_line": "text", "mind_line": "text", "imprints": "text", "overrides": "text"},
        agent=stances.c.agent_id,
    ),
    TextTable(signals, {"rule": "text"}, agent=signals.c.agent_id),
    TextTable(reflections, {"reason": "text"}, agent=reflections.c.agent_id),
    TextTable(
        voice_stances, {"mind_line": "text", "imprints": "text"}, here=voice_stances.c.space_id.in_(_spaces_here)
    ),
    TextTable(voice_signals, {"rule": "text"}, here=voice_signals.c.space_id.in_(_spaces_here)),
    TextTable(voice_reflections, {"reason": "text"}, here=voice_reflections.c.space_id.in_(_spaces_here)),
    TextTable(files, {"name": "text", "alt": "text"}, here=files.c.organization_id == bindparam("organization_id")),
    TextTable(file_pages, {"text": "text"}, here=file_pages.c.content_id.in_(_contents_here)),
    TextTable(openings, {"reason": "text"}, here=openings.c.organization_id == bindparam("organization_id")),
    TextTable(
        bridges,
        {"error": "text", "parked_reason": "text"},
        here=bridges.c.organization_id == bindparam("organization_id"),
        of_people=True,
    ),
    TextTable(channels, {"room": "text"}, here=channels.c.space_id.in_(_spaces_here), of_people=True),
    TextTable(outbox, {"target": "text", "failed": "text"}, here=outbox.c.bridge_id.in_(_bridges_here), of_people=True),
    TextTable(webhooks, {"name": "text"}, agent=webhooks.c.agent_id, of_people=True),
    TextTable(
        entities,
        {"name": "text", "metadata": "text"},
        here=entities.c.organization_id == bindparam("organization_id"),
        of_people=True,
    ),
    TextTable(spaces, {"name": "text"}, here=spaces.c.organization_id == bindparam("organization_id"), of_people=True),
    TextTable(tokens, {"name": "text"}, here=tokens.c.entity_id.in_(_entities_here), of_people=True),
    TextTable(organizations, {"name": "text"}, here=organizations.c.id == bindparam("organization_id"), of_people=True),
)
"""All places except the messages themselves, the passages for recall, and the definitions of agents."""
