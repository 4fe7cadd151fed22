"""The ways a cycle ends: stored as ended, skipped without a trace, undone, or postponed.

Each function is one transaction, begins with the fence, and changes nothing but the database.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue
from sqlalchemy import bindparam, case, select

from denizen.bus.streams import AgentStatus, CycleChanged, MetadataUpdated, agent_topic, space_topic
from denizen.clock import SECOND
from denizen.consciousness import log
from denizen.consciousness.lease import Lease, fence
from denizen.consciousness.log import Entry
from denizen.consciousness.recall.file_passages import hear_files
from denizen.consciousness.recall.passages import prefetch_newest_cycle, remember_next
from denizen.cycles import answering, budgets, ledger
from denizen.cycles.answering import CheckedText, Why
from denizen.cycles.budgets import Refusal
from denizen.cycles.ledger import NOTHING, Charge
from denizen.cycles.records import OpenCycle
from denizen.cycles.remembering import delivered_texts, own_words_of, pieces_of, prefetch_sent
from denizen.ids import AgentId, CycleId, SpaceId, new_id
from denizen.inbox import delivery, parking, statuses, stop_requests
from denizen.inbox.delivery import DEAD_AFTER, back_off
from denizen.inbox.statuses import EventCause, ParkingCause
from denizen.profiles import choosing
from denizen.spaces import floor
from denizen.storage import chains
from denizen.storage.database import Tx, delete_where, select_where, update_where, value
from denizen.storage.schema import cycles, minds
from denizen.tools import calls
from denizen.tools.effects import EffectRecord


@dataclass(frozen=True, slots=True)
class Ending:
    """How a cycle ends."""

    stop_reason: str
    summary: str
    entries: tuple[Entry, ...] = ()
    """The entries still to be written: the model's last words, or a note about what was not done."""
    steps: int = 0
    charge: Charge = NOTHING
    """The cost of the last model call, if it is not in the ledger yet."""
    spent: Charge = NOTHING
    """The total cost of the cycle."""
    reserved: bool = False
    """Whether a budget may hold a reservation for it."""
    outcome: Literal["acted", "failed"] = "acted"
    window_from: int | None = None
    """The new start of the window, if it has moved."""
    sending: CheckedText | None = None
    """A text of the model, to be sent in its name where a person waits."""
    unanswered: Why | None = None
    """The status shown where a person still waits, if it does not follow from the stop reason."""
    retry_at: int | None = None
    """When the agent resumes by itself, to be shown there too."""
    answered: frozenset[str] = frozenset()
    """The spaces in which the cycle is known to have written since the last of its events there."""


_end = update_where(
    cycles,
    "id",
    set_="number, outcome, ended_at, stop_reason, summary, steps, input_tokens, output_tokens, cost_micros, digest",
)
_read_outside = select(cycles.c.outside_from).where(cycles.c.id == bindparam("cycle")).scalar_subquery()
_what_told = select(cycles.c.told).where(cycles.c.id == bindparam("cycle_id")).scalar_subquery()
_lived = select_where(minds, (minds.c.cycle_count, minds.c.head, _what_told), "agent_id")
_live_on = update_where(
    minds,
    "agent_id",
    set_="cycle_count, head, last_cycle_at",
    # What the cycle read is in the window from now on, and in the layers after that: the mark stays.
    outside=case((_read_outside.is_not(None), 1), else_=minds.c.outside),
)
_remember_told = update_where(minds, "agent_id", set_="news_told, told")
_move_window = update_where(minds, "agent_id", set_="window_from", era_version=0)
"""A new era begins: the prefix has changed anyway."""


def end_cycle(tx: Tx, lease: Lease, cycle: OpenCycle, ending: Ending) -> int:
    """Store the cycle as ended, and its events as done. Returns its number."""
    fence(tx, lease, lambda tx: _prefetch(tx, lease.agent_id, cycle, ending))
    return end_cycle_unfenced(tx, lease, cycle, ending)


def _prefetch(tx: Tx, agent_id: AgentId, cycle: OpenCycle, ending: Ending) -> None:
    tx.prefetch(_lived, agent_id=agent_id, cycle_id=cycle.id)
    prefetch_newest_cycle(tx, agent_id)
    if ending.sending is None and not answering.is_all_answered(cycle.events, ending.answered):
        answering.prefetch_unanswered(tx, agent_id, cycle.id, cycle.open_events)


def end_cycle_unfenced(tx: Tx, lease: Lease, cycle: OpenCycle, ending: Ending) -> int:
    """Like `end_cycle`, without the fence: for callers that have taken the lease away."""
    agent_id, charge, spent = lease.agent_id, ending.charge, ending.spent
    if ending.entries:
        log.append(tx, agent_id, ending.entries)
    sent = None
    if ending.sending is not None:
        sent = answering.deliver_text(tx, agent_id, cycle, ending.sending, ending.entries)
    if charge is not NOTHING:
        ledger.enter(tx, agent_id, cycle.id, "usage", charge)
    if ending.reserved:
        ledger.settle(tx, agent_id)
    if ending.outcome == "failed":
        # The cycle no longer waits for people's answers; an answer that still comes is delivered in an event.
        calls.release(tx, agent_id)
    if cycle.troubled:
        parking.recover(tx, agent_id)
    answering.tell_unanswered(
        tx,
        agent_id,
        cycle,
        ending.stop_reason,
        ending.unanswered,
        retry_at=ending.retry_at,
        answered=ending.answered,
    )
    if cycle.stopped:
        stop_requests.settle(tx, agent_id, cycle.stopped)
    log.prefetch_digests(tx, agent_id, cycle.first_seq)
    prefetch_sent(tx, cycle.effects)
    finished = delivery.finish(tx, agent_id, cycle.id)
    lived = tx.one(_lived, agent_id=agent_id, cycle_id=cycle.id)
    assert lived is not None
    count, head, told = lived
    number: int = count + 1
    # As they are stored, not as the caller has them: the chain is about the rows.
    entries = log.digests_from(tx, agent_id, cycle.first_seq)
    digest = chains.cycle_digest(head or chains.BEGINNING, cycle.id, number, finished, entries)
    tx.send(_live_on, agent_id=agent_id, cycle=cycle.id, last_cycle_at=tx.now, cycle_count=number, head=digest)
    tx.note_head("agent", agent_id, number, digest)
    tx.send(
        _end,
        id=cycle.id,
        number=number,
        outcome=ending.outcome,
        ended_at=tx.now,
        stop_reason=ending.stop_reason,
        summary=ending.summary,
        steps=ending.steps,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cost_micros=spent.cost_micros or 0,
        digest=digest,
    )
    if told is not None:
        _remember(tx, agent_id, cycle.id, told)
    if ending.window_from is not None:
        tx.run(_move_window, agent_id=agent_id, window_from=ending.window_from)
    _make_recallable(tx, agent_id, number, cycle, ending, sent)
    _announce(tx, lease, cycle.id, "ended")
    return number


def _make_recallable(
    tx: Tx, agent_id: AgentId, number: int, cycle: OpenCycle, ending: Ending, sent: EffectRecord | None
) -> None:
    """Make the cycle searchable by `recall`."""
    entries = (*cycle.entries, *ending.entries)
    words = own_words_of(ending.entries, ending.summary)
    pieces = pieces_of(tx, agent_id, cycle.events, entries, cycle.active_space_id, words)
    pieces += delivered_texts(tx, agent_id, entries, (*cycle.effects, *((sent,) if sent is not None else ())))
    remember_next(tx, agent_id, number, pieces)
    hear_files(tx, agent_id, number, cycle.events)


def _remember(tx: Tx, agent_id: AgentId, cycle_id: CycleId, kept: str) -> None:
    """Store what the cycle was told of its surroundings as known, and count its turns. Clients get its metadata."""
    told = json.loads(kept)
    if "facts" in told:
        tx.run(
            _remember_told,
            agent_id=agent_id,
            news_told=told["news"],
            told=json.dumps(told["facts"], ensure_ascii=False),
        )
    if "profiles" in told:
        choosing.keep(tx, agent_id, told["profiles"])
    chosen_in = {each["space"] for each in told.get("profiles", ()) if each["fresh"]}
    # Not the spaces of events that came in the middle: they have nothing to do with the recall.
    for space_id in sorted(chosen_in | set(told.get("recalled_in", ()))):
        frame = MetadataUpdated(SpaceId(space_id), "agent", agent_id, cycle_id)
        tx.announce(space_topic(SpaceId(space_id)), frame.to_payload())


def _announce(tx: Tx, lease: Lease, cycle_id: CycleId, what: str) -> None:
    """Announce that the agent sleeps, and how its cycle ended."""
    topic, agent_id = agent_topic(lease.agent_id), lease.agent_id
    tx.announce(topic, CycleChanged(agent_id, cycle_id, what).to_payload())
    tx.announce(topic, AgentStatus(agent_id, "sleeping", lease.epoch).to_payload())


_forget_cycle = delete_where(cycles, "id")
_attempts = select_where(cycles, "attempts", "id")
_postpone = update_where(cycles, "id", set_="attempts, not_before", handed_back=0)
_hand_back = update_where(cycles, "id", handed_back=1)


def skip_cycle(tx: Tx, lease: Lease, cycle: OpenCycle, reason: str, charge: Charge) -> bool:
    """Mark the events as done and delete the cycle, except for a line in the ledger.

    False, and the cycle is unchanged, if somebody waits for its answer and no other agent takes over.
    """
    fence(tx, lease)
    if floor.pass_on(tx, lease.agent_id, cycle.events):
        return False
    delivery.finish(tx, lease.agent_id, cycle.id)
    if cycle.stopped:
        stop_requests.settle(tx, lease.agent_id, cycle.stopped)
    if cycle.troubled:
        parking.recover(tx, lease.agent_id)
    _erase(tx, lease.agent_id, cycle)
    ledger.enter(tx, lease.agent_id, cycle.id, "skip", charge, reason)
    _announce(tx, lease, cycle.id, "skipped")
    return True


def undo_cycle(
    tx: Tx,
    lease: Lease,
    cycle: OpenCycle,
    error: str,
    *,
    counts: bool = True,
    delay: bool = True,
    detail: Mapping[str, JsonValue] | None = None,
) -> None:
    """Delete the cycle; its events wait again, with one more failed attempt if it counts: `detail` says why."""
    fence(tx, lease)
    if counts:
        delivery.fail(tx, lease.agent_id, cycle.id, delay=delay, detail=detail)
    else:
        delivery.give_back(tx, lease.agent_id, cycle.id, seconds=back_off(DEAD_AFTER) if delay else 0)
    _undo(tx, lease, cycle, error)


def undo_and_hold(tx: Tx, lease: Lease, cycle: OpenCycle, refusal: Refusal) -> None:
    """Undo the cycle, keep its events waiting, and let the agent rest."""
    undo_cycle(tx, lease, cycle, f"budget {refusal.scope} used up", counts=False, delay=False)
    budgets.hold(tx, lease, refusal)


def set_aside_cycle(
    tx: Tx, lease: Lease, cycle: OpenCycle, error: str, cause: EventCause, detail: Mapping[str, JsonValue]
) -> None:
    """Delete the cycle, and set aside the event that made it fail, or find out which one it is."""
    fence(tx, lease)
    delivery.set_aside(tx, lease.agent_id, cycle.id, cause, detail)
    _undo(tx, lease, cycle, error)


def interrupt_cycle(tx: Tx, lease: Lease, cycle: OpenCycle, error: str) -> None:
    """Delete the cycle because the process died: crashes are counted apart from failures."""
    fence(tx, lease)
    delivery.interrupt(tx, lease.agent_id, cycle.id)
    _undo(tx, lease, cycle, error)


def park_cycle(
    tx: Tx,
    lease: Lease,
    cycle: OpenCycle,
    error: str,
    cause: ParkingCause,
    detail: Mapping[str, JsonValue],
    *,
    keep: bool,
) -> None:
    """Park the agent. Its events wait in order, and no attempt is counted; a kept cycle stays open at its step."""
    fence(tx, lease)
    parked = parking.mark(tx, lease.agent_id, cause, detail)
    floor.hand_over(tx, lease.agent_id)
    parking.tell(tx, parked)
    if keep:
        tx.run(_hand_back, id=cycle.id)
        ledger.enter(tx, lease.agent_id, cycle.id, "failure", detail=error)
        _announce(tx, lease, cycle.id, "postponed")
    else:
        delivery.give_back(tx, lease.agent_id, cycle.id)
        _undo(tx, lease, cycle, error)


def show_trouble(tx: Tx, lease: Lease, cycle: OpenCycle, detail: Mapping[str, JsonValue], *, retry_in: float) -> None:
    """Show in the spaces that wait for this cycle that the agent has trouble and when it tries again."""
    fence(tx, lease)
    again_at = tx.now + int(retry_in * SECOND)
    statuses.show_for(tx, lease.agent_id, cycle.events, "failing", detail, retry_at=again_at)


def _undo(tx: Tx, lease: Lease, cycle: OpenCycle, error: str) -> None:
    _erase(tx, lease.agent_id, cycle)
    ledger.enter(tx, lease.agent_id, cycle.id, "failure", detail=error)
    _announce(tx, lease, cycle.id, "undone")


def _erase(tx: Tx, agent_id: AgentId, cycle: OpenCycle) -> None:
    log.roll_back(tx, agent_id, cycle.id, cycle.first_seq)
    tx.run(_forget_cycle, id=cycle.id)


def postpone_cycle(
    tx: Tx, lease: Lease, cycle: OpenCycle, error: str, detail: Mapping[str, JsonValue] | None = None
) -> int:
    """Keep the cycle open, to be resumed later. Returns the failed attempts since its last progress."""
    fence(tx, lease)
    tries = (value(tx, _attempts, id=cycle.id) or 0) + 1
    again_at = tx.now + back_off(tries) * SECOND
    tx.run(_postpone, id=cycle.id, attempts=tries, not_before=again_at)
    answering.tell_unanswered(tx, lease.agent_id, cycle, "failed", ("failing", detail or {}), retry_at=again_at)
    ledger.enter(tx, lease.agent_id, cycle.id, "failure", detail=error)
    _announce(tx, lease, cycle.id, "postponed")
    return tries


def pay_broken_off(tx: Tx, lease: Lease, unpaid: Sequence[Charge]) -> None:
    """Enter the usage of attempts that broke off into the ledger, however the cycle ends."""
    fence(tx, lease)
    for charge in unpaid:
        # Under an id of its own: the usage of a cycle is that of the responses in its log.
        ledger.enter(tx, lease.agent_id, CycleId(new_id()), "usage", charge, "broken off")


def hand_back(tx: Tx, lease: Lease, cycle: OpenCycle, unpaid: Sequence[Charge] = ()) -> None:
    """Mark the cycle as interrupted by a shutdown: resuming it does not count as an attempt."""
    pay_broken_off(tx, lease, unpaid)
    tx.run(_hand_back, id=cycle.id)
