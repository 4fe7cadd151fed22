"""Removes what a space has kept as long as it was to be kept, as forgetting does, a batch in each transaction.

Removed are messages that are older than that, what agents and advisors answered to them, and the cycles that were about
this space alone. Never what somebody still waits for: a message in an inbox, of an open cycle or of an open round of a
panel, one that a bridge has not sent yet, or one that led to a call without a result. So a batch may be repeated or
broken off at any time: the next one begins with what is left.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, delete, exists, func, or_, select

from denizen.forgetting.receipts import Receipt
from denizen.forgetting.removal import Removal, shut_out_writers
from denizen.ids import AgentId, MessageId, SpaceId
from denizen.spaces import directory, posting
from denizen.spaces.quotes import FORGOTTEN
from denizen.spaces.retention import Retention
from denizen.storage.database import Tx, long_running, statement, update_where, value
from denizen.storage.schema import (
    agents,
    calls,
    cycle_spaces,
    cycles,
    events,
    messages,
    outbox,
    reflections,
    rounds,
    signals,
    voice_reflections,
    voice_signals,
)

AT_ONCE: Final = 500
"""Messages, and cycles, of one batch."""


@dataclass(frozen=True, slots=True)
class ExpiredBatch:
    """What the next batch removes."""

    messages: tuple[tuple[MessageId, int], ...]
    """Ids and numbers."""
    cycles: tuple[tuple[AgentId, str, int], ...]
    """Agents, ids and numbers."""

    @property
    def last(self) -> int:
        """The number of the last message; 0: there is none."""
        return self.messages[-1][1] if self.messages else 0

    def __bool__(self) -> bool:
        return bool(self.messages or self.cycles)


_is_pending = or_(
    exists().where(events.c.message_id == messages.c.id, events.c.state != "done"),
    exists().where(cycles.c.id == messages.c.cycle_id, cycles.c.number.is_(None)),
    exists().where(rounds.c.message_id == messages.c.id, rounds.c.state == "open"),
    exists().where(outbox.c.message_id == messages.c.id, outbox.c.action == "post", outbox.c.failed.is_(None)),
    exists().where(
        events.c.message_id == messages.c.id, calls.c.cycle_id == events.c.cycle_id, calls.c.state == "waiting"
    ),
)
_old = (
    messages.c.space_id == bindparam("space_id"),
    messages.c.created_at < bindparam("before"),
    messages.c.text != FORGOTTEN,
    ~_is_pending,
)
_count = statement(select(func.count()).select_from(messages).where(*_old))
_old_messages = statement(
    select(messages.c.id, messages.c.seq)
    .where(
        *_old,
        messages.c.seq <= bindparam("last"),
        func.coalesce(messages.c.edited_at, 0) < bindparam("unless_edited_since"),
    )
    .order_by(messages.c.seq)
    .limit(bindparam("most"))
)
_elsewhere = cycle_spaces.alias("elsewhere")
_old_cycles = statement(
    select(cycles.c.agent_id, cycles.c.id, cycles.c.number)
    .join(cycle_spaces, cycle_spaces.c.cycle_id == cycles.c.id)
    .where(
        cycle_spaces.c.space_id == bindparam("space_id"),
        cycle_spaces.c.agent_id.in_(select(agents.c.id).where(agents.c.organization_id == bindparam("home"))),
        cycles.c.number.is_not(None),
        cycles.c.ended_at < bindparam("before"),
        func.coalesce(cycles.c.summary, "") != FORGOTTEN,
        ~exists().where(_elsewhere.c.cycle_id == cycles.c.id, _elsewhere.c.space_id != cycle_spaces.c.space_id),
        ~exists().where(calls.c.cycle_id == cycles.c.id, calls.c.state == "waiting"),
    )
    .order_by(cycles.c.agent_id, cycles.c.number)
    .limit(bindparam("most"))
)
_mark = update_where(cycles, "id", summary=FORGOTTEN)
_LATEST: Final = 2**62


def expired(
    tx: Tx,
    space_id: SpaceId,
    before: int,
    *,
    last: int = _LATEST,
    unless_edited_since: int = _LATEST,
    most: int = AT_ONCE,
) -> ExpiredBatch:
    """What was said in the space, or thought about it alone, before that instant, and is not pending: the oldest."""
    home = directory.get_space(tx, space_id).organization_id
    where = {"space_id": space_id, "before": before, "most": most}
    said = tx.all(_old_messages, **where, last=last, unless_edited_since=unless_edited_since)
    lived = tx.all(_old_cycles, **where, home=home)
    return ExpiredBatch(
        tuple((MessageId(id), seq) for id, seq in said),
        tuple((AgentId(agent_id), id, number) for agent_id, id, number in lived),
    )


def count(tx: Tx, space_id: SpaceId, kept: Retention) -> int:
    """How many messages of the space could be removed now if they were kept so long."""
    return (value(tx, _count, space_id=space_id, before=kept.before(tx.now)) or 0) if kept.days else 0


_signs = {
    table.name: statement(
        delete(table).where(table.c.space_id == bindparam("space"), table.c.created_at < bindparam("until"))
    )
    for table in (signals, reflections, voice_signals, voice_reflections)
}


@long_running
def forget_expired(
    tx: Tx, space_id: SpaceId, before: int, *, last: int, unless_edited_since: int, most: int = AT_ONCE
) -> Receipt | None:
    """Forgets the next batch of what has expired; None: there is nothing left.

    Messages after number `last`, and those that were edited since that instant, stay: the archive that was written
    before does not have them as they are.
    """
    shut_out_writers(tx)
    found = expired(tx, space_id, before, last=last, unless_edited_since=unless_edited_since, most=most)
    if not found:
        return None
    work = Removal(tx, directory.get_space(tx, space_id).organization_id)
    work.blank_cycles(cycle_id for _, cycle_id, _ in found.cycles)
    numbers: defaultdict[AgentId, list[int]] = defaultdict(list)
    for agent_id, _, number in found.cycles:
        numbers[agent_id].append(number)
    work.forget_messages(posting.get_message(tx, id) for id, _ in found.messages)
    work.forget_replies(id for id, _ in found.messages)
    # Some have no summary, or one in JSON: the next batch must not find them again.
    tx.many(_mark, [{"id": cycle_id} for _, cycle_id, _ in found.cycles])
    for agent_id, those in numbers.items():
        work.forget_traces(agent_id, those)
    for table, drop in _signs.items():
        work.removed[table] += tx.run(drop, space=space_id, until=before)
    return work.finish("expired", space_id, None)
