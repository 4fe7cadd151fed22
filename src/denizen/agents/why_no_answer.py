"""Explains to a waiting program why a message to an agent has no answer, from the statuses that its space shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from denizen.agents import chatting, space_statuses
from denizen.agents.chatting import AnswerState, AwaitedMessage, Outcome
from denizen.agents.space_statuses import ShownStatus
from denizen.clock import Instant, moment
from denizen.errors import NotFound
from denizen.ids import CycleId, SpaceId
from denizen.inbox.statuses import PARKING_CAUSES, SpaceStatus
from denizen.shapes.vocabulary import ASKED
from denizen.spaces import directory, posting
from denizen.storage.database import Tx
from denizen.tools import calls

PASSING: Final = frozenset({"failing", "queued"})
"""Causes that end by themselves: the program keeps waiting."""
_OUTCOMES: Final[dict[str, Outcome]] = {
    **dict.fromkeys(PARKING_CAUSES, "parked"),
    "no_reply": "acted",
    "limit": "acted",
    "stopped": "acted",
    "budget": "suspended",
    "suspended": "suspended",
}
"""Other causes have the outcome `failed`."""
_LEFT: Final = "You are no longer in this space, so its messages are not shown to you."


def answer_so_far(tx: Tx, asked: AwaitedMessage) -> AnswerState:
    """The state of the message and, if there is no answer, the reason.

    If the agent that was asked does not answer and the floor passed the message to another one, that agent's answer.
    People who have left the space meanwhile are shown nothing more from it.
    """
    if not directory.is_member(tx, asked.space_id, asked.by_id):
        return AnswerState("unheard", note=_LEFT)
    answer = _answer_of_one(tx, asked)
    if answer.outcome == "unheard" or _goes_on(answer):
        return answer
    awaited = chatting.awaited_of(tx, asked)
    others = [_answer_of_one(tx, each) for each in awaited if each.agent_id != asked.agent_id]
    for other in others:
        if _goes_on(other):
            return other
    # Nobody answers: the space shows the status of the agent that is still awaited.
    still_awaited = any(each.agent_id == asked.agent_id for each in awaited)
    return answer if still_awaited or not others else others[-1]


def _goes_on(answer: AnswerState) -> bool:
    """Whether there is an answer or a question in its place, or one may still come by itself."""
    return bool(answer.messages) or answer.outcome in ("working", "paused") or not answer.note


def _answer_of_one(tx: Tx, asked: AwaitedMessage) -> AnswerState:
    answer = chatting.answer_to(tx, asked)
    if answer.outcome in ("paused", "unheard") or (answer.outcome == "acted" and answer.messages):
        return answer
    if answer.outcome == "acted" and answer.cycle_id is not None and _asked_back(tx, answer.cycle_id, asked.space_id):
        return answer
    statuses = [each for each in space_statuses.in_space(tx, asked.space_id) if _concerns(tx, each, asked)]
    if not statuses and answer.outcome in ("acted", "skipped") and not answer.note:
        name = directory.get_entity(tx, asked.agent_id).name
        statuses = [SpaceStatus(asked.space_id, asked.agent_id, name, "no_reply")]
    return explained(answer, statuses)


def _asked_back(tx: Tx, cycle_id: CycleId, space_id: SpaceId) -> bool:
    """Whether the cycle asked the people of the space a question instead of answering."""
    return any(each.space_id == space_id and each.mode in ASKED for each in calls.of_cycle(tx, cycle_id))


def explained(answer: AnswerState, statuses: Sequence[ShownStatus]) -> AnswerState:
    """The answer with the status that its space shows for its message; final causes come before passing ones."""
    lasting = next((each for each in statuses if each.cause not in PASSING), None)
    if lasting is not None:
        outcome = "skipped" if answer.outcome == "skipped" else _OUTCOMES.get(lasting.cause, "failed")
        return replace(answer, outcome=outcome, cause=lasting.cause, note=sentence(lasting))
    if statuses and answer.outcome == "working":
        return replace(answer, cause=statuses[0].cause, note=sentence(statuses[0]))
    return answer


def sentence(status: ShownStatus) -> str:
    """The text of the status, with the time of the next try, if known."""
    if status.retry_at is None:
        return status.text
    return f"{status.text} Next try: {moment(Instant(status.retry_at)):%Y-%m-%d %H:%M} UTC."


def _concerns(tx: Tx, status: ShownStatus, asked: AwaitedMessage) -> bool:
    """Whether the status is shown for this message, or for a later one that waits behind it."""
    if status.agent_id != asked.agent_id:
        return False
    if status.message_id is None or status.message_id == asked.message_id:
        return True
    try:
        return posting.get_message(tx, status.message_id).seq >= asked.seq
    except NotFound:
        return False
