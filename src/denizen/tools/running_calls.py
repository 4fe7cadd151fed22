"""Calls that nobody answers in time, and calls that an instance is carrying out, or was when it died."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, or_, select, update

from denizen.bus.streams import WAKE
from denizen.clock import SECOND
from denizen.ids import CallId, CycleId
from denizen.storage.database import Tx, select_where, statement
from denizen.storage.schema import calls, instances
from denizen.tools.calls import BATCH, CALL_COLUMNS, IS_WAITING, UNKNOWN_OUTCOME, Call, settle, tell

_overdue = calls.c.expires_at <= bindparam("now")
# Where nobody was seen, NULL is "not in" the empty list: questions to people have no runner, and are not abandoned. The
# instance that asks is alive, even if it has not been seen, as after the machine slept.
_abandoned = and_(
    calls.c.runner.is_not(None),
    calls.c.runner != bindparam("instance"),
    calls.c.runner.not_in(select(instances.c.id).where(instances.c.seen_at >= bindparam("since"))),
)
_unattended = statement(select(calls.c.id).where(IS_WAITING, or_(_overdue, _abandoned)).limit(1))
_in_hands_of = select_where(calls, "id, cycle_id", "runner", IS_WAITING, calls.c.mode != "elicitation")
_still_in_hands_of = select_where(calls, CALL_COLUMNS, "id, runner", IS_WAITING)
_expired = statement(select(*CALL_COLUMNS).where(IS_WAITING, _overdue).order_by(calls.c.expires_at).limit(BATCH))
_orphans = statement(select(*CALL_COLUMNS).where(IS_WAITING, _abandoned).limit(BATCH))
_take_over = statement(
    update(calls)
    .where(calls.c.id == bindparam("call"), calls.c.runner == bindparam("former"), IS_WAITING)
    .values(runner=bindparam("by"))
)


def unattended(tx: Tx, instance: str, seconds: float) -> bool:
    """Whether there are calls that have expired, or that belong to another instance that was not seen for this long."""
    return tx.one(_unattended, now=tx.now, instance=instance, since=tx.now - int(seconds * SECOND)) is not None


def in_hands_of(tx: Tx, instance: str) -> list[tuple[CallId, CycleId]]:
    """The calls that this instance is carrying out according to the database, with their cycles."""
    return [(CallId(id), CycleId(cycle_id)) for id, cycle_id in tx.all(_in_hands_of, runner=instance)]


def is_in_hands_of(tx: Tx, id: CallId, instance: str) -> bool:
    """Whether this instance is carrying the call out according to the database."""
    return tx.one(_still_in_hands_of, id=id, runner=instance) is not None


def left_undone(tx: Tx, id: CallId, instance: str, *, begun: bool) -> Call | None:
    """The call, if this instance has to carry it out: it is known not to be running.

    A call that has been begun, here or by its cycle, counts like one whose process has died: if repeating it may do
    harm, its agent is told that the outcome is unknown.
    """
    row = tx.one(_still_in_hands_of, id=id, runner=instance)
    if row is None:
        return None
    call = Call(*row)
    if call.mode != "late" and (not begun or call.on_crash == "retry"):
        return call
    if settle(tx, call, "answered", UNKNOWN_OUTCOME):
        tell(tx, call, UNKNOWN_OUTCOME)
    return None


def attend(tx: Tx, instance: str, seconds: float) -> list[Call]:
    """Expire overdue calls. Take over and return the calls of dead instances, to be made again; if that may do harm,
    their agents are told that the outcome is unknown."""
    for row in tx.all(_expired, now=tx.now):
        _expire(tx, Call(*row))
    again: list[Call] = []
    for row in tx.all(_orphans, instance=instance, since=tx.now - int(seconds * SECOND)):
        call = Call(*row)
        if call.mode == "elicitation":
            settle(tx, call, "cancelled")
        elif call.on_crash == "report":
            if settle(tx, call, "answered", UNKNOWN_OUTCOME):
                tell(tx, call, UNKNOWN_OUTCOME)
        elif tx.run(_take_over, call=call.id, former=call.runner, by=instance):
            again.append(call)
    return again


def _expire(tx: Tx, call: Call) -> None:
    if not settle(tx, call, "expired"):
        return
    if call.mode == "pause":
        tx.announce(WAKE, {"agents": [call.agent_id]})
    elif call.mode != "elicitation":
        tell(tx, call, "No result came in time. Whether the work was done is unknown.")
