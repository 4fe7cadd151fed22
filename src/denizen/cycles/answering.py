"""Who waits for an agent's answer in a cycle, and what happens when the model stops without answering them.

The model is reminded once of each space in which somebody waits. Text that it writes after that without calling a tool
is sent there for it; one text never goes to two spaces. Spaces without an answer at the end of the cycle show a status.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue
from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart
from sqlalchemy import bindparam, func, select

from denizen.consciousness import log
from denizen.consciousness.log import Entry
from denizen.consciousness.summary import last_words
from denizen.cycles.records import OpenCycle
from denizen.cycles.settings import SilentReply
from denizen.ids import AgentId, CycleId, MessageId, SpaceId
from denizen.inbox import statuses
from denizen.inbox.events import ABOUT, AGAIN, ASKED_BY, Event
from denizen.inbox.format import plain_name, quoted_name, sender_name
from denizen.inbox.statuses import Cause
from denizen.shapes.vocabulary import ASKED
from denizen.spaces import ask_again, directory, floor, posting
from denizen.spaces.markdown import unfenced
from denizen.spaces.posting import Draft
from denizen.storage.database import Tx, equal, select_where, statement
from denizen.storage.schema import calls, messages
from denizen.tools import effects, privacy_guard
from denizen.tools.effects import EffectRecord
from denizen.tools.hops import hop_of_send, shown_in
from denizen.tools.prebuilt import SEND_MESSAGE, SKIP
from denizen.tools.privacy_guard import CheckedAhead

_SPACES_NAMED: Final = 5
"""How many spaces the note on the last step names."""
LAST_STEP_TOKENS: Final = 400
"""About how many tokens the note on the last step takes at most: this room is kept for it while somebody waits."""
LAST_STEP_TOOLS: Final = frozenset((SEND_MESSAGE, SKIP))
"""The tools of the last step after a limit: only answering is left. All tools are sent, to keep the prefix the same."""

REPEATED_FAILURE: Final = "repeated_failure"
"""Stop reason: the same call has failed repeatedly."""
STRETCHED: Final = frozenset({"max_steps", "token_budget", "max_seconds", REPEATED_FAILURE})
"""The limits that allow one last step while somebody waits. Money and a full window do not."""
_LIMITS: Final[Mapping[str, str]] = {
    "max_steps": "steps",
    "token_budget": "tokens",
    "max_seconds": "time",
    REPEATED_FAILURE: "failed calls",
    "max_dollars": "dollars for one cycle",
    "window_full": "room in its window",
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """A space in which people wait for the agent's answer."""

    space_id: SpaceId
    space_name: str
    who: tuple[str, ...]
    """The names of the people who wait, as the agent reads them, in the order in which they wrote."""
    message_id: MessageId | None
    """The newest message that waits."""

    @property
    def place(self) -> str:
        return f"{quoted_name(self.space_name)} (id: {self.space_id})"

    @property
    def people(self) -> str:
        names = self.who or ("Someone",)
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def waiting_spaces(events: Sequence[Event]) -> list[Waiting]:
    """The spaces in which people wait for an answer to one of these events, oldest message first; answered or not."""
    found: dict[str, Waiting] = {}
    for event in events:
        if not event.waits or event.space_id is None:
            continue
        before = found.get(event.space_id)
        asked_by = event.payload.get(ASKED_BY)
        name = sender_name(event) if event.sender_name else plain_name(str(asked_by)) if asked_by else ""
        who = dict.fromkeys((*(before.who if before else ()), *((name,) if name else ())))
        message_id = event.message_id or event.payload.get(ABOUT)
        found[event.space_id] = Waiting(
            SpaceId(event.space_id),
            event.space_name or "",
            tuple(who),
            MessageId(message_id) if isinstance(message_id, str) else None,
        )
    return list(found.values())


_seq = select(messages.c.seq).where(messages.c.id == bindparam("message_id")).scalar_subquery()
_spoke = select_where(
    messages,
    "id",
    "space_id, cycle_id",
    messages.c.seq > func.coalesce(_seq, 0),
    messages.c.author_id == bindparam("agent_id"),
    limit=1,
)
_asked = statement(
    select(calls.c.id)
    .where(
        *equal(calls, "cycle_id, space_id"),
        calls.c.mode.in_(ASKED),
        # A person who has answered the question waits for the result.
        calls.c.state.in_(("waiting", "interrupted", "expired")),
        calls.c.after_seq >= func.coalesce(_seq, 0),
    )
    .limit(1)
)


def prefetch_unanswered(tx: Tx, agent_id: AgentId, cycle_id: CycleId, events: Sequence[Event]) -> None:
    """Announce `unanswered`."""
    for each in waiting_spaces(events):
        tx.prefetch(_spoke, agent_id=agent_id, **_place_of(cycle_id, each))


def unanswered(tx: Tx, agent_id: AgentId, cycle_id: CycleId, events: Sequence[Event]) -> list[Waiting]:
    """The spaces with waiting people whom this cycle has neither answered since they wrote, nor asked a question."""
    return [each for each in waiting_spaces(events) if not _has_answer(tx, agent_id, cycle_id, each)]


def _has_answer(tx: Tx, agent_id: AgentId, cycle_id: CycleId, waiting: Waiting) -> bool:
    of = _place_of(cycle_id, waiting)
    return tx.one(_spoke, agent_id=agent_id, **of) is not None or tx.one(_asked, **of) is not None


def _place_of(cycle_id: CycleId, waiting: Waiting) -> dict[str, str | None]:
    return {"space_id": waiting.space_id, "cycle_id": cycle_id, "message_id": waiting.message_id}


def is_all_answered(events: Sequence[Event], answered: Collection[str]) -> bool:
    """Whether people wait for none of these events, or only in these spaces. Pure."""
    return all(event.space_id is None or event.space_id in answered for event in events if event.waits)


def unanswered_here(tx: Tx, agent_id: AgentId, cycle_id: CycleId, events: Sequence[Event]) -> list[Waiting]:
    """The same, but only where the agent is still a member: it cannot answer elsewhere."""
    found = unanswered(tx, agent_id, cycle_id, events)
    return [each for each in found if directory.is_member(tx, each.space_id, agent_id)]


# Reminding the model, and sending its text for it


@dataclass(frozen=True, slots=True)
class Reminder:
    """A reminder to the model that somebody waits in this space."""

    space_id: SpaceId
    message_id: MessageId | None
    text: str
    """The text that it had written for them; empty if it wrote nothing, or if others waited too."""
    step: int
    """The step in which it had written that."""

    def is_of(self, waiting: Waiting) -> bool:
        return (self.space_id, self.message_id) == (waiting.space_id, waiting.message_id)


def reminders(entries: Sequence[Entry]) -> list[Reminder]:
    """The reminders to the model in this cycle, in order."""
    found: list[Reminder] = []
    responses: list[ModelResponse] = []
    for entry in entries:
        if isinstance(entry.message, ModelResponse):
            responses.append(entry.message)
        about = _about(entry)
        if "space" in about:
            text = (responses[-1].text or "").strip() if about.get("offers") else ""
            found.append(Reminder(about["space"], about.get("message"), text, len(responses) - 1))
    return found


def was_silent(entries: Sequence[Entry]) -> bool:
    """Whether the model has just been reminded after a response without text and calls."""
    if len(entries) < 2 or "space" not in _about(entries[-1]):
        return False
    response = entries[-2].message
    return isinstance(response, ModelResponse) and not (response.text or "").strip() and not response.tool_calls


def _about(entry: Entry) -> dict[str, Any]:
    return json.loads(entry.request) if entry.kind == "nudge" and entry.request else {}


@dataclass(frozen=True, slots=True)
class UncalledText:
    """A text that the model wrote without a call, and its recipients."""

    waiting: Waiting
    text: str
    step: int
    """The step in which it was written: each text is sent once."""


@dataclass(frozen=True, slots=True)
class Move:
    """How to handle a text that the model wrote without calling a tool."""

    deliver: UncalledText | None = None
    """Send this in the agent's name."""
    remind: Waiting | None = None
    """Continue, with a reminder that somebody waits there; None: the cycle ends."""
    offers: bool = False
    """Whether the text is sent there if the model writes no other."""


def next_move(
    silent_reply: SilentReply,
    events: Sequence[Event],
    waiting: Sequence[Waiting],
    reminded: Sequence[Reminder],
    text: str,
    step: int,
) -> Move:
    """Decide what to do when the model ends with `text`, while authors of some `events` are still `waiting`."""
    if silent_reply == "ignore" or not waiting:
        return Move()
    alone = len(waiting_spaces(events)) == 1
    if silent_reply == "deliver" and alone and text and not reminded:
        return Move(UncalledText(waiting[0], text, step))
    deliver = words_for(waiting, reminded, text, step)
    served = deliver.waiting if deliver is not None else None
    new = [each for each in waiting if each is not served and not any(known.is_of(each) for known in reminded)]
    if not new:
        return Move(deliver)
    return Move(deliver, new[0], offers=alone and bool(text))


def words_for(waiting: Sequence[Waiting], reminded: Sequence[Reminder], text: str, step: int) -> UncalledText | None:
    """The text for the people of the last reminder, if they still wait: written before it, or otherwise now."""
    last = reminded[-1] if reminded else None
    where = next((each for each in waiting if last is not None and last.is_of(each)), None)
    if last is None or where is None:
        return None
    if last.text:
        return UncalledText(where, last.text, last.step)
    return UncalledText(where, text, step) if text else None


_OFFER: Final = (
    "[REMINDER] {who} is waiting for an answer in the space {space} and has none yet. Call send_message to answer. "
    "If no other answer is needed, end with one line of plain text that sums up this cycle: what you wrote above is "
    "then sent there as your answer."
)
_ASK: Final = (
    "[REMINDER] {who} is waiting for an answer in the space {space} and has none yet. Call send_message with this "
    "space_id to answer. Plain text that you write instead, without a call, is sent there as your answer."
)


def reminder(seq: int, cycle_id: CycleId, waiting: Waiting, *, offers: bool) -> Entry:
    """The entry that tells the model who waits; it stores for which message, so that a resumed cycle knows it too."""
    text = (_OFFER if offers else _ASK).format(who=waiting.people, space=waiting.place)
    about = {"space": waiting.space_id, "message": waiting.message_id, "offers": offers}
    return _nudge(seq, cycle_id, text, about)


def _nudge(seq: int, cycle_id: CycleId, text: str, about: Mapping[str, JsonValue]) -> Entry:
    message = ModelRequest(parts=[UserPromptPart(text)])
    return log.entry(seq, cycle_id, "nudge", message, request=json.dumps(about))


# The last step after a limit


def last_step_note(seq: int, cycle_id: CycleId, limit: str, waiting: Sequence[Waiting]) -> Entry:
    """The entry that tells the model that it can only answer now."""
    named = [f"{each.people} is waiting in the space {each.place}." for each in waiting[:_SPACES_NAMED]]
    where = "Call send_message now" if len(waiting) == 1 else "Call send_message now, once for each with its space_id,"
    lines = [
        f"[LAST STEP] This cycle has reached its limit of {_LIMITS[limit]}. This is its last step: no other tool runs.",
        *named,
        f"{where} and say what you know, and what is still open.",
    ]
    return _nudge(seq, cycle_id, " ".join(lines), {"last": limit})


def last_step_at(entries: Sequence[Entry]) -> int | None:
    """The position of the last-step note among the entries of a cycle."""
    return next((at for at, entry in enumerate(entries) if "last" in _about(entry)), None)


# Storing answers


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A text of the model that is to be sent in its name: checked, and rendered outside any transaction."""

    space_id: SpaceId
    what: Draft
    step: int
    checked: CheckedAhead | None = None
    """Which of its words are private, if that was checked before."""


async def outgoing(words: UncalledText | None) -> CheckedText | None:
    if words is None:
        return None
    what = await posting.draft_off_loop(unfenced(words.text[: posting.MESSAGE_CHARACTERS]))
    return CheckedText(words.waiting.space_id, what, words.step)


def deliver_text(
    tx: Tx, agent_id: AgentId, cycle: OpenCycle, sending: CheckedText, new: Sequence[Entry] = ()
) -> EffectRecord | None:
    """Post the text to the space as a message of the agent; None if it would carry private words there.

    `new` are the entries that are written with it, which the cycle does not have yet.
    """
    space_id, what, step = sending.space_id, sending.what, sending.step
    carries = (cycle.events, cycle.remembered, sending.checked)
    if privacy_guard.stopped_message(tx, agent_id, cycle.id, space_id, what, *carries) is not None:
        return None
    hop = hop_of_send(tx, agent_id, space_id, cycle.events, shown_in((*cycle.entries, *new)))
    answers = floor.asked_by(cycle.events, space_id)
    outside = _is_outside(cycle, step, new)
    earlier = ask_again.again_of(tx, cycle.events, space_id, agent_id, cycle.id)
    metadata = None if earlier is None else {AGAIN: earlier}
    posted = posting.post(
        tx,
        space_id,
        agent_id,
        what,
        metadata=metadata,
        hop=hop,
        cycle_id=cycle.id,
        answers=answers,
        outside=outside,
    )
    result = json.dumps({"success": True, "messageId": posted.id}, separators=(",", ":"))
    effects.record(tx, cycle.id, step, 0, SEND_MESSAGE, result=result, changes=True)
    return EffectRecord(step, 0, SEND_MESSAGE, "done", True, result)


def _is_outside(cycle: OpenCycle, step: int, new: Sequence[Entry]) -> bool:
    """Whether the response of that step was made from text from outside; if it is not available, whether any was."""
    responses = [each for each in (*cycle.entries, *new) if each.kind == "response"]
    if step < len(responses):
        return responses[step].outside is not None
    return cycle.outside_from is not None


_PASSED_ON: Final[frozenset[Cause]] = frozenset({"no_reply", "limit", "gave_up", "budget"})
"""Causes after which another agent of the space may answer instead, if one of them is to answer."""
Why = tuple[Cause, Mapping[str, JsonValue]]
"""Why somebody has no answer: the cause, and the values for its sentence."""


def tell_unanswered(
    tx: Tx,
    agent_id: AgentId,
    cycle: OpenCycle,
    stop_reason: str,
    why: Why | None = None,
    *,
    retry_at: int | None = None,
    answered: Collection[str] = (),
) -> None:
    """Show `why`, or the stop reason, in each space in which somebody has waited for this cycle in vain.

    Shows nothing where another agent takes over what this one did not answer. `answered` are spaces in which it is
    known to have written since the last of its events there.
    """
    if not cycle.stopped and is_all_answered(cycle.events, answered):
        return
    cause, detail = why or _why(stop_reason)
    for each in unanswered(tx, agent_id, cycle.id, cycle.events) if cycle.stopped else ():
        if (stop := cycle.stopped.get(each.space_id)) is not None:
            statuses.show(tx, agent_id, each.space_id, "stopped", message_id=each.message_id, by=stop.by_name)
    silent = unanswered(tx, agent_id, cycle.id, cycle.open_events)
    if silent and cause in _PASSED_ON:
        spaces = {each.space_id for each in silent}
        left = floor.pass_on(tx, agent_id, [event for event in cycle.open_events if event.space_id in spaces])
        silent = unanswered(tx, agent_id, cycle.id, left)
    for each in silent:
        statuses.show(tx, agent_id, each.space_id, cause, message_id=each.message_id, retry_at=retry_at, **detail)


def _why(stop_reason: str) -> Why:
    match stop_reason:
        case "budget" | "deleted":
            return stop_reason, {}
        case _ if stop_reason in _LIMITS:
            return "limit", {"limit": _LIMITS[stop_reason]}
        case _:
            return "no_reply", {}


def no_reply_summary(events: Sequence[Event], reason: str) -> str:
    """The summary of a cycle in which the agent read messages of people and did not reply."""
    read = [f"what {each.people} wrote in {quoted_name(each.space_name)}" for each in waiting_spaces(events)]
    return last_words(f"Read {', '.join(read)} and did not reply" + (f": {reason}" if reason else "."))
