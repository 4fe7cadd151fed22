"""Checks a database for violations of the invariants, as far as rows can show them. It changes nothing.

Three forms: `check_quickly` finds missing rows and broken references, `check` reads every row, and `check_deeply` also
recomputes every digest.

A database in use may be checked as well: a read sees one consistent moment, and at each moment all of this holds. Two
things cannot be decided afterwards and are not reported: messages from before a member joined, or from the very same
microsecond, and what happened to agents that were deleted. One thing is assumed: that the attention of a member has not
changed since it joined, because no row records when it changed.
"""

from __future__ import annotations

from denizen.checks.agents import check_agents
from denizen.checks.files_and_memories import check_bytes, check_files_and_memories
from denizen.checks.outside_marks import check_marks
from denizen.checks.reflection import check_reflection
from denizen.checks.rows import check_leftovers, check_plans, check_references
from denizen.checks.spaces import check_spaces
from denizen.checks.violation import Violation
from denizen.checks.waiting import check_waiting
from denizen.storage import chain_check
from denizen.storage.chain_check import BrokenChain
from denizen.storage.database import Database, Tx, long_running


async def check_database(db: Database, *, deep: bool = True) -> list[Violation]:
    """Returns all violations in the database."""
    return [*await db.read(check_deeply if deep else check), *await check_bytes(db, deep=deep)]


@long_running
def check_quickly(tx: Tx) -> list[Violation]:
    """Returns missing rows, broken references, chains without their end, and people who wait without being told why."""
    return [*check_references(tx), *map(_as_violation, chain_check.broken_ends(tx)), *check_waiting(tx)]


@long_running
def check_deeply(tx: Tx) -> list[Violation]:
    """Returns all violations at this moment, and every row that does not match its digest."""
    return [*check(tx), *map(_as_violation, chain_check.broken(tx))]


def _as_violation(broken: BrokenChain) -> Violation:
    return Violation(1 if broken.of == "agent" else 2, broken.sentence, broken.ids)


@long_running
def check(tx: Tx) -> list[Violation]:
    """Returns all violations at this moment."""
    return [
        *check_agents(tx),
        *check_spaces(tx),
        *check_waiting(tx),
        *check_plans(tx),
        *check_reflection(tx),
        *check_files_and_memories(tx),
        *check_marks(tx),
        *check_leftovers(tx),
        *check_references(tx),
    ]
