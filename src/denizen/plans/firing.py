"""Delivers due plans to inboxes, exactly once, however many instances look and however often.

One transaction delivers the event and advances the plan; its condition on the due time lets only one of several
instances through, and the event's id, made of the plan and that time, ensures the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from pydantic import JsonValue
from sqlalchemy import bindparam, delete, func, select, update

from denizen.clock import SECOND, Instant
from denizen.errors import InvalidInput
from denizen.ids import AgentId, SpaceId
from denizen.inbox import delivery
from denizen.inbox.delivery import Delivery
from denizen.inbox.events import FROM_SPACES, OUTSIDE
from denizen.inbox.format import quoted_name
from denizen.plans import origins, told_changes
from denizen.plans.schedule import Once, dump, load, next_run
from denizen.spaces import directory
from denizen.storage.database import Tx, statement
from denizen.storage.schema import plans

BATCH: Final = 100
"""How many plans one transaction delivers."""
CLOCK_SLACK_SECONDS: Final = 60
"""A clock that was set back by less needs no recomputation."""

_WAITING = plans.c.state == "waiting"  # must match the condition of the partial indexes exactly


@dataclass(frozen=True, slots=True)
class NextFirings:
    """When the plans of all agents need attention."""

    now: Instant
    nearest: Instant | None
    """When the next one is due; it may be past."""
    displaced: bool
    """Whether some times were computed by a clock that has been set back since."""


_nearest = statement(select(func.min(plans.c.next_run)).where(_WAITING))
_latest_reckoned = statement(select(func.max(plans.c.reckoned_at)).where(_WAITING))


def outlook(tx: Tx) -> NextFirings:
    """Whether there is anything to do, by the ends of two indexes."""
    nearest, reckoned = tx.one(_nearest), tx.one(_latest_reckoned)
    slack = CLOCK_SLACK_SECONDS * SECOND
    displaced = reckoned is not None and reckoned[0] is not None and reckoned[0] > tx.now + slack
    return NextFirings(tx.now, nearest[0] if nearest else None, displaced)


_due = statement(
    select(plans.c.id, plans.c.agent_id, plans.c.schedule, plans.c.next_run)
    .where(_WAITING, plans.c.next_run <= bindparam("now"))
    .order_by(plans.c.next_run)
    .limit(bindparam("limit"))
)
_still_due = (
    plans.c.id == bindparam("plan"),
    plans.c.next_run == bindparam("due"),
    plans.c.schedule == bindparam("when"),
    _WAITING,
)
_told = (plans.c.kind, plans.c.name, plans.c.instruction, plans.c.hop, plans.c.outside)
_move_on = statement(
    update(plans)
    .where(*_still_due)
    .values(next_run=bindparam("next"), last_run=bindparam("ran"), reckoned_at=bindparam("at"), state=bindparam("new"))
    .returning(*_told)
)
_end = statement(delete(plans).where(*_still_due).returning(*_told))


def fire_due(tx: Tx) -> int:
    """Deliver what is due to the agents' inboxes, and advance each plan to its next time. Returns how many were read.

    A plan that missed several times runs once for all of them. A plan without a next time is deleted.
    """
    rows = tx.all(_due, now=tx.now, limit=BATCH)
    deliveries: list[Delivery] = []
    for plan_id, agent_id, *rest in sorted(rows, key=itemgetter(1)):  # two instances lock minds in the same order
        told_changes.lock(tx, agent_id)
        deliveries += _fire(tx, plan_id, agent_id, *rest)
    delivery.deliver(tx, deliveries)
    return len(rows)


def _fire(tx: Tx, plan_id: str, agent_id: AgentId, stored: str, due: Instant) -> list[Delivery]:
    still = {"plan": plan_id, "due": due, "when": stored}
    following, problem = _following(stored, max(tx.now, due))
    if following is None and problem is None:
        row = tx.one(_end, **still)
        if row is not None:
            # The event itself says that it is over.
            told_changes.know(tx, agent_id, {f"plan:{plan_id}": None})
    else:
        new = "waiting" if problem is None else "failed"
        row = tx.one(_move_on, **still, next=following or due, ran=due, at=tx.now, new=new)
    if row is None:
        return []
    fired = [_event(tx, plan_id, agent_id, due, row)]
    _, name, *_ = row
    return fired if problem is None else [*fired, _notice(tx, plan_id, agent_id, name, problem)]


def _following(stored: str, after: Instant) -> tuple[Instant | None, str | None]:
    """The next time; or why it cannot be computed, such as a zone that this machine does not know."""
    try:
        return next_run(load(stored), after), None
    except InvalidInput as error:
        return None, str(error)
    except (ValueError, OverflowError):
        return None, "Its schedule cannot be read."


def _event(tx: Tx, plan_id: str, agent_id: AgentId, due: Instant, row: tuple[Any, ...]) -> Delivery:
    kind, name, instruction, hop, outside = row
    word = "timer" if kind == "timer" else "plan"
    payload: dict[str, JsonValue] = {
        f"{word}_id": plan_id,
        f"{word}_name": name,
        "text": instruction,
        "late_seconds": (tx.now - due) // SECOND,
    }
    made_in = origins.origin_of(tx, agent_id, f"plan:{plan_id}")
    if made_in:
        payload[FROM_SPACES] = list(made_in)
    if outside:
        payload[OUTSIDE] = True
    # It wakes the agent whatever its hop: what the agent then says to others is one hop further, and ends a chain as
    # before.
    return Delivery(
        agent_id,
        f"{word}:{plan_id}:{due}",
        "timer" if kind == "timer" else "plan_trigger",
        tx.now,
        hop=hop,
        space_id=_space_of(tx, agent_id, made_in),
        payload=payload,
    )


def _space_of(tx: Tx, agent_id: AgentId, made_in: Sequence[str]) -> str | None:
    """The space of a plan: the only one that it was made in, if the agent is still there."""
    only = SpaceId(made_in[0]) if len(made_in) == 1 else None
    return only if only is not None and directory.is_member(tx, only, agent_id) else None


def _notice(tx: Tx, plan_id: str, agent_id: AgentId, name: str, problem: str) -> Delivery:
    text = f"The plan {quoted_name(name)} will not run again: {problem} Set it again or delete it."
    return Delivery(agent_id, f"plan-failed:{plan_id}:{tx.now}", "notice", tx.now, payload={"text": text})


_displaced = statement(
    select(plans.c.id, plans.c.agent_id, plans.c.schedule, plans.c.next_run, plans.c.reckoned_at)
    .where(_WAITING, plans.c.reckoned_at > bindparam("slack"))
    .order_by(plans.c.reckoned_at.desc())
    .limit(bindparam("limit"))
)
_reckon = statement(
    update(plans)
    .where(*_still_due)
    .values(next_run=bindparam("next"), schedule=bindparam("new"), reckoned_at=bindparam("at"))
)


def reckon_again(tx: Tx) -> int:
    """After the clock was set back: recompute the next times of recurring plans and of delays. Returns how many.

    Without it, a clock that was years ahead for a moment would keep a daily plan, or a timer in one minute, waiting for
    years. A time that a plan has run for already is skipped by the id of its event.
    """
    rows = tx.all(_displaced, slack=tx.now + CLOCK_SLACK_SECONDS * SECOND, limit=BATCH)
    for plan_id, agent_id, stored, due, reckoned_at in sorted(rows, key=itemgetter(1)):
        told_changes.lock(tx, agent_id)
        soonest, new = _reckoned(stored, due, reckoned_at, tx.now)
        tx.run(_reckon, plan=plan_id, due=due, when=stored, next=soonest, new=new, at=tx.now)
        if new != stored:
            told_changes.tell(tx, agent_id)
    return len(rows)


def _reckoned(stored: str, due: Instant, reckoned_at: Instant, now: Instant) -> tuple[Instant, str]:
    """The next time by a clock that was set back since, and the schedule with it."""
    following, problem = _following(stored, now)
    if problem is not None:
        return due, stored
    schedule = load(stored)
    if isinstance(schedule, Once):  # how much of the delay is over, no clock can say: it begins again
        again = Instant(now + max(due - reckoned_at, 0))
        return again, dump(schedule.model_copy(update={"at": again}))
    return (due if following is None else min(due, following)), stored
