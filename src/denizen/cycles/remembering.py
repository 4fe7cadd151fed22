"""The recallable parts of a cycle: what was said to the agent, what it said and did, and its summary.

What it merely read again, recalled or previewed is left out: it is in its history already.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from pydantic_ai.messages import ModelResponse, ToolCallPart, ToolReturnPart

from denizen.consciousness.log import Entry
from denizen.consciousness.recall.passages import PASSAGE_CHARACTERS, SEALED, Piece
from denizen.cycles.records import calls_of
from denizen.ids import AgentId
from denizen.inbox.events import ABOUT, Event
from denizen.inbox.format import entry_text
from denizen.storage.database import Tx, select_where, value
from denizen.storage.schema import messages, spaces
from denizen.tools import effects
from denizen.tools.declaring import DECLARING
from denizen.tools.effects import EffectRecord
from denizen.tools.prebuilt import PREBUILT, SEND_MESSAGE

_OWN: Final = frozenset(tool.name for tool in (*PREBUILT, DECLARING))
_RESULT_CHARACTERS: Final = 1_000

_sent = select_where(messages, "space_id, text, created_at", "id")
_private = select_where(spaces, "private", "id")


def prefetch_sent(tx: Tx, done: Iterable[EffectRecord]) -> None:
    """Announce the messages that `pieces_of` reads."""
    for each in done if tx.dialect == "postgresql" else ():
        if each.tool == SEND_MESSAGE and (message_id := effects.message_in(each.result)):
            tx.prefetch(_sent, id=message_id)


def pieces_of(
    tx: Tx,
    agent_id: AgentId,
    events: Sequence[Event],
    entries: Sequence[Entry],
    active: str | None,
    summary: str,
    *,
    at: int | None = None,
) -> list[Piece]:
    """The pieces of a cycle that was woken by `events` and wrote `entries`; `summary` is empty if it wrote none.

    `at` is when it ended, if that is not now.
    """
    ended = tx.now if at is None else at
    # The text of a message is recalled with the message, in its current version; not with the notice of its change.
    heard = [_heard(event) for event in events if ABOUT not in event.payload]
    done = list(_calls_with_results(entries))
    said = [piece for call, result in done for piece in _said(tx, agent_id, call, result)]
    about = {event.space_id or "" for event in events} | {piece.space_id for piece in said} | {active or ""}
    belongs = _belonging(tx, about - {""})
    did = [Piece("did", text, ended, belongs, agent_id) for call, result in done for text in _did(call, result)]
    summed = [Piece("summary", summary, ended, belongs, agent_id)] if summary else []
    return [*heard, *said, *did, *summed]


def _heard(event: Event) -> Piece:
    space_id = event.space_id or ""
    if event.message_id is not None and event.sender_id is not None:
        sender = (event.sender_id, event.sender_name or "", event.message_id)
        return Piece("heard", event.text, event.created_at, space_id, *sender, event_id=event.id)
    speaker = next((str(event.payload[key]) for key in _NAMES if event.payload.get(key)), event.type.replace("_", " "))
    return Piece("heard", entry_text(event), event.created_at, space_id, None, speaker, event_id=event.id)


_NAMES: Final = ("service", "plan_name", "timer_name", "tool")


def _calls_with_results(entries: Sequence[Entry]) -> Iterator[tuple[ToolCallPart, str]]:
    """Each answered call with its result: results stand in the order of the calls, whose ids may repeat."""
    for response, results in pairwise(entries):
        if results.kind == "results":
            told = [part for part in results.message.parts if isinstance(part, ToolReturnPart)]
            for call, result in zip(calls_of(response.message), told, strict=False):
                yield call, str(result.content)


def delivered_texts(tx: Tx, agent_id: AgentId, entries: Sequence[Entry], done: Iterable[EffectRecord]) -> list[Piece]:
    """The texts that the model wrote without a call and that were sent in its name."""
    responses = [entry.message for entry in entries if entry.kind == "response"]
    sent = [each for each in done if each.tool == SEND_MESSAGE and each.changes]
    without_call = [each for each in sent if each.step < len(responses) and not calls_of(responses[each.step])]
    return [piece for each in without_call for piece in _message(tx, agent_id, each.result)]


def _said(tx: Tx, agent_id: AgentId, call: ToolCallPart, result: str) -> Iterator[Piece]:
    if call.tool_name == SEND_MESSAGE:
        yield from _message(tx, agent_id, result)


def _message(tx: Tx, agent_id: AgentId, result: str | None) -> Iterator[Piece]:
    message_id = effects.message_in(result)
    row = tx.one(_sent, id=message_id) if message_id else None
    if row is not None:
        space_id, text, at = row
        yield Piece("said", text, at, space_id, agent_id, message_id=message_id)


def _did(call: ToolCallPart, result: str) -> Iterator[str]:
    name = call.tool_name
    if name in _OWN and not name.startswith(("set_", "delete_")):
        return
    arguments = json.dumps(call.args_as_dict(raise_if_invalid=False), ensure_ascii=False)
    if name not in _OWN:
        yield f"{name} {arguments[:_RESULT_CHARACTERS]} → {result[:_RESULT_CHARACTERS]}"[:PASSAGE_CHARACTERS]
    else:
        yield f"{name} {arguments}"[:PASSAGE_CHARACTERS]


def _belonging(tx: Tx, about: Iterable[str]) -> str:
    """The space of something made from all of these: the private one if there is one; none if there are several."""
    found = sorted(about)
    if len(found) == 1:
        return found[0]
    private = [space_id for space_id in found if value(tx, _private, id=space_id) != 0]
    return "" if not private else private[0] if len(private) == 1 else SEALED


def own_words_of(entries: Sequence[Entry], summary: str) -> str:
    """The summary, if the model wrote it itself."""
    last = entries[-1].message if entries else None
    return summary if isinstance(last, ModelResponse) and (last.text or "").strip() else ""
