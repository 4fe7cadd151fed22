"""Reflection of agents after a cycle, in the background. It delays nothing and touches no status.

Cycles are reflected on in order: each of a cycle's conversations is considered, and the results are stored in one
transaction that advances the agent's cursor. An instance claims a cycle before it asks a model. If it ends in between,
the cursor stays, and its claim is void: the cycle is reflected on again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, select

from denizen.consciousness.recall.passages import newest_cycle
from denizen.cycles.call_results import is_error
from denizen.cycles.records import glance
from denizen.ids import AgentId, EntityId, SpaceId
from denizen.inbox.format import one_line
from denizen.models import codec
from denizen.plans import told_changes
from denizen.reflection import records, signals, thinking
from denizen.reflection.cursor import AGENT_CURSOR, Claimant
from denizen.reflection.settings import Metaprompt
from denizen.reflection.stance_store import AGENTS, Run
from denizen.reflection.thinking import (
    MetapromptTrial,
    Pending,
    PersonSentiment,
    Reflector,
    TurnToReflect,
    last_felt,
    quoted,
    think_over_all,
)
from denizen.spaces import directory, posting
from denizen.storage.database import Database, Tx, equal, select_where, statement, value
from denizen.storage.schema import cycles, entities, log, messages, passages

MESSAGES: Final = 10
"""How many messages of a conversation a metaprompt is shown."""
_ERROR_CHARACTERS: Final = 200


# Reading cycles


@dataclass(frozen=True, slots=True)
class HeardMessage:
    """A message that the agent received in a cycle."""

    id: str
    space_id: SpaceId
    author_id: EntityId
    human: bool
    text: str


@dataclass(frozen=True, slots=True)
class _ToolErrors:
    """The last tool results."""

    failed: tuple[bool, ...]
    """Which of them were errors, newest first."""
    results: int
    """How many of them are from the cycle."""
    texts: tuple[str, ...]
    """The errors among them, oldest first."""


_heard = statement(
    select(messages.c.id, messages.c.space_id, messages.c.author_id, entities.c.kind, messages.c.text)
    .join(passages, passages.c.message_id == messages.c.id)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(*equal(passages, "agent_id, cycle"), passages.c.kind == "heard", messages.c.deleted_at.is_(None))
    .order_by(messages.c.space_id, messages.c.seq)
)
_cycle = select_where(cycles, "id, first_seq", "agent_id, number")
_END: Final = 2**62
_results = statement(
    select(log.c.cycle_id, log.c.message)
    .where(log.c.agent_id == bindparam("agent_id"), log.c.kind == "results", log.c.seq < bindparam("end"))
    .order_by(log.c.seq.desc())
    .limit(signals.ENTRIES)
)


def next_lived(tx: Tx, agent_id: AgentId) -> Pending[SpaceId] | None:
    """The next cycle that the agent has not reflected on, in each of its conversations; None if there is none, or it
    cannot be recalled yet."""
    mark = AGENT_CURSOR.last_turn(tx, agent_id)
    if mark is None or newest_cycle(tx, agent_id) <= mark:
        return None
    number = mark + 1
    cycle_id = value(tx, _cycle, agent_id=agent_id, number=number)
    if cycle_id is None:
        return None
    # A long message has several passages.
    found = dict.fromkeys(tx.all(_heard, agent_id=agent_id, cycle=number))
    heard = [HeardMessage(id, space, author, kind == "human", text) for id, space, author, kind, text in found]
    errors = _look_for_errors(tx, agent_id, cycle_id, _end_of(tx, agent_id, number))
    spaces = dict.fromkeys(each.space_id for each in heard)
    turns = {space_id: _turn(tx, agent_id, heard, errors, space_id) for space_id in spaces}
    return Pending(number, turns, AGENT_CURSOR.redactions_so_far(tx, agent_id))


def _end_of(tx: Tx, agent_id: AgentId, number: int) -> int:
    """The end of the cycle in the log: the agent may have continued since, or be in the middle of its next one."""
    if (after := tx.one(_cycle, agent_id=agent_id, number=number + 1)) is not None:
        return after[1]
    now = glance(tx, agent_id)
    return _END if now is None else now.first_seq


def _look_for_errors(tx: Tx, agent_id: AgentId, cycle_id: str, end: int) -> _ToolErrors:
    told: list[tuple[bool, bool, str]] = []
    for of_cycle, message in tx.all(_results, agent_id=agent_id, end=end):
        for part in reversed(codec.load(message).parts):
            tool, text = str(getattr(part, "tool_name", "")), str(getattr(part, "content", ""))
            told.append((of_cycle == cycle_id, is_error(tool, text), text))
    told = told[: signals.ENTRIES]
    failed = tuple(is_wrong for _, is_wrong, _ in told)
    errors = [one_line(text)[:_ERROR_CHARACTERS] for _, is_wrong, text in reversed(told) if is_wrong]
    return _ToolErrors(failed, sum(here for here, _, _ in told), tuple(errors))


# Reflecting


async def reflect_on_next(db: Database, agent_id: AgentId, reflector: Reflector, by: Claimant) -> bool:
    """Reflect on the agent's next cycle; False if there is none, or another instance does it."""
    lived = await db.read(next_lived, agent_id)
    if lived is None or not await db.write(AGENT_CURSOR.claim, agent_id, lived.number, by):
        return False
    came_of_it = list((await think_over_all(lived, lambda _: reflector)).values())
    forgotten, instance = lived.forgotten, by.instance
    await db.write(records.keep_turn, agent_id, lived.number, came_of_it, forgotten=forgotten, instance=instance)
    return True


def _turn(
    tx: Tx, agent_id: AgentId, heard: Iterable[HeardMessage], errors: _ToolErrors, space_id: SpaceId
) -> TurnToReflect:
    """The part of the cycle in one conversation."""
    said = _said(heard, space_id)
    return TurnToReflect(
        stance=AGENTS.stance(tx, agent_id, space_id),
        said=said,
        counted={person_id: AGENTS.counters(tx, agent_id, space_id, person_id) for person_id in said},
        recent=_recent(tx, agent_id, space_id),
        failed=errors.failed,
        results=errors.results,
        errors=errors.texts,
        last_line=AGENTS.last_line(tx, agent_id, space_id),
    )


def _said(heard: Iterable[HeardMessage], space_id: SpaceId) -> dict[EntityId, str]:
    """What each person said there in this cycle, with the last speaker at the end."""
    said: dict[EntityId, list[str]] = {}
    for each in heard:
        if each.space_id == space_id and each.human:
            said[each.author_id] = [*said.pop(each.author_id, []), each.text]
    return {person_id: "\n".join(texts) for person_id, texts in said.items()}


def _recent(tx: Tx, agent_id: AgentId, space_id: SpaceId) -> str:
    if not directory.is_member(tx, space_id, agent_id):
        return ""
    found = posting.messages_before(tx, space_id, limit=MESSAGES)
    return "\n".join(quoted(each.author_name, each.text) for each in found if each.deleted_at is None)


# On request


async def try_metaprompt(
    db: Database,
    agent_id: AgentId,
    reflector: Reflector,
    space_id: SpaceId,
    metaprompt: Metaprompt,
    *,
    apply: bool,
    by: EntityId | None,
) -> MetapromptTrial:
    """Run the metaprompt now, for this conversation. Its answer is applied only with `apply`, but always paid."""
    turn, felt, forgotten = await db.read(_situation, agent_id, space_id)

    async def keep(run: Run) -> bool:
        return await db.write(keep_tried, agent_id, space_id, run, forgotten, by)

    return await thinking.try_metaprompt(reflector, turn, felt, metaprompt, keep if apply else None)


def _situation(tx: Tx, agent_id: AgentId, space_id: SpaceId) -> tuple[TurnToReflect, PersonSentiment, int]:
    """The agent's stance in the conversation, the last messages there, and how the last speaker seems to feel."""
    records.require_there(tx, agent_id, space_id)
    turn = TurnToReflect(
        AGENTS.stance(tx, agent_id, space_id),
        recent=_recent(tx, agent_id, space_id),
        errors=_look_for_errors(tx, agent_id, "", _END).texts,
    )
    return turn, _last_felt(tx, agent_id, space_id), AGENT_CURSOR.redactions_so_far(tx, agent_id)


def keep_tried(tx: Tx, agent_id: AgentId, space_id: SpaceId, run: Run, forgotten: int, by: EntityId | None) -> bool:
    """Store the run in the history and apply its changes; False, and no change, if something was forgotten."""
    told_changes.lock(tx, agent_id)
    records.require_there(tx, agent_id, space_id)
    if AGENT_CURSOR.redactions_so_far(tx, agent_id) != forgotten:
        return False
    records.enter(tx, agent_id, space_id, run, by=by)
    return True


def _last_felt(tx: Tx, agent_id: AgentId, space_id: SpaceId) -> PersonSentiment:
    for message in reversed(posting.messages_before(tx, space_id, limit=MESSAGES)):
        if message.author_kind == "human":
            return last_felt(AGENTS.counters(tx, agent_id, space_id, message.author_id))
    return PersonSentiment()
