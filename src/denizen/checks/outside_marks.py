"""Checks that everything made from text from outside is marked so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import exists, func, select

from denizen.checks.violation import Violation
from denizen.storage.database import Tx, statement
from denizen.storage.schema import cycles, log, messages, minds

_earlier = log.alias("earlier")
_UNMARKED: Final = (
    (
        "An entry holds text from outside, and its cycle is not marked.",
        statement(
            select(log.c.agent_id, log.c.cycle_id)
            .distinct()
            .join(cycles, cycles.c.id == log.c.cycle_id)
            .where(log.c.outside.is_not(None), func.coalesce(cycles.c.outside_from, log.c.seq + 1) > log.c.seq)
        ),
    ),
    (
        "The request of a response held text from outside, and the response is not marked.",
        statement(
            select(log.c.agent_id, log.c.cycle_id, log.c.seq).where(
                log.c.kind == "response",
                log.c.outside.is_(None),
                exists().where(
                    _earlier.c.agent_id == log.c.agent_id,
                    _earlier.c.cycle_id == log.c.cycle_id,
                    _earlier.c.seq < log.c.seq,
                    _earlier.c.outside.is_not(None),
                ),
            )
        ),
    ),
    (
        "A cycle held text from outside, and the mind of its agent is not marked.",
        statement(
            select(cycles.c.agent_id)
            .distinct()
            .join(minds, minds.c.agent_id == cycles.c.agent_id)
            .where(cycles.c.number.is_not(None), cycles.c.outside_from.is_not(None), minds.c.outside == 0)
        ),
    ),
    (
        "A message was made from text from outside, and is not marked.",
        statement(
            select(messages.c.author_id, messages.c.id)
            .join(cycles, cycles.c.id == messages.c.cycle_id)
            .where(cycles.c.outside_from <= cycles.c.first_seq, messages.c.outside == 0)
        ),
    ),
)


def check_marks(tx: Tx) -> Iterator[Violation]:
    """What is based on text from outside is marked so."""
    for sentence, query in _UNMARKED:
        for row in tx.all(query):
            yield Violation(1, sentence, tuple(str(each) for each in row))
