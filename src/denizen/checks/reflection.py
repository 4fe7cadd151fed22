"""Checks that each cycle and turn was reflected on once, and nothing else was."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ColumnElement, FromClause, Table, exists, func, select

from denizen.checks.violation import Violation
from denizen.panel.rounds import ASSISTANT
from denizen.storage.database import Statement, Tx, statement
from denizen.storage.schema import (
    advisors,
    minds,
    panel_reflecting,
    panels,
    reflecting,
    reflections,
    signals,
    stances,
    voice_feelings,
    voice_reflections,
    voice_signals,
    voice_stances,
)

_MINDS_OF_VOICES = (voice_stances, voice_feelings, voice_signals, voice_reflections)


def _beyond(table: Table, column: str, limit: ColumnElement[int], source: FromClause, *ids: str) -> Statement:
    """Selects the rows whose number is above the limit."""
    return statement(select(*(table.c[name] for name in ids)).select_from(source).where(table.c[column] > limit))


def _of_minds(table: Table, column: str, *ids: str) -> Statement:
    source = table.join(minds, minds.c.agent_id == table.c.agent_id)
    return _beyond(table, column, minds.c.cycle_count, source, "agent_id", *ids)


def _of_panels(table: Table, column: str, *ids: str) -> Statement:
    source = table.join(panels, panels.c.space_id == table.c.space_id)
    return _beyond(table, column, panels.c.turns, source, "space_id", *ids)


def _nobodys(table: Table) -> Statement:
    known = exists().where(advisors.c.space_id == table.c.space_id, advisors.c.id == table.c.voice)
    return statement(select(table.c.space_id, table.c.voice).where(table.c.voice != ASSISTANT, ~known).distinct())


def _twice(table: Table, when: str, *what: str) -> Statement:
    """Selects duplicates of the same turn."""
    same = [table.c[name] for name in what]
    return statement(
        select(*same).where(table.c[when].is_not(None)).group_by(*same, table.c[when]).having(func.count() > 1)
    )


_REFLECTED = (
    ("The agent has reflected on a cycle that it has not lived.", _of_minds(reflecting, "cycle")),
    (
        "The agent has reflected on more turns than it has lived cycles.",
        _of_minds(stances, "reflected_turns", "space_id"),
    ),
    ("A signal is of a cycle that was not lived.", _of_minds(signals, "cycle", "space_id")),
    ("A metaprompt was asked after a cycle that was not lived.", _of_minds(reflections, "cycle", "space_id")),
    (
        "A metaprompt was asked twice after one cycle.",
        _twice(reflections, "cycle", "agent_id", "space_id", "metaprompt"),
    ),
    ("The panel has reflected on a turn that there was not.", _of_panels(panel_reflecting, "turn")),
    ("A voice has reflected on more turns than there were.", _of_panels(voice_stances, "reflected_turns", "voice")),
    ("A signal is of a turn that there was not.", _of_panels(voice_signals, "turn", "voice")),
    ("A metaprompt was asked after a turn that there was not.", _of_panels(voice_reflections, "turn", "voice")),
    (
        "A metaprompt was asked twice after one turn.",
        _twice(voice_reflections, "turn", "space_id", "voice", "metaprompt"),
    ),
    ("A signal was seen twice after one turn.", _twice(voice_signals, "turn", "space_id", "voice", "name")),
    *(("A state of mind is of nobody who answers in the panel.", _nobodys(each)) for each in _MINDS_OF_VOICES),
)


def check_reflection(tx: Tx) -> Iterator[Violation]:
    """Each cycle and turn is reflected on once, and nothing else is."""
    for sentence, query in _REFLECTED:
        for row in tx.all(query):
            yield Violation(4, sentence, tuple(str(each) for each in row))
