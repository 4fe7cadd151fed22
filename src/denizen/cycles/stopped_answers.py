"""What stays of an answer that a person stopped, and what the agent is told about it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from denizen.consciousness import log
from denizen.consciousness.log import Entry
from denizen.ids import CycleId, SpaceId
from denizen.inbox.events import Event
from denizen.inbox.format import plain_name, quoted_name
from denizen.inbox.outside import parsed
from denizen.inbox.stop_requests import STOPPED, StopRequest
from denizen.models.request import is_whole
from denizen.tools.prebuilt import SEND_MESSAGE

NOT_RUN: Final = "Not run: a person stopped you while you were writing this response."


@dataclass(frozen=True, slots=True)
class Utterance:
    """What people were shown of a message while it was being written."""

    text: str
    space_id: str | None
    """The space that the message itself names."""


@dataclass(frozen=True, slots=True)
class CutAnswer:
    """A response that was stopped, as far as it stays."""

    response: ModelResponse
    cut: int | None
    """The position of the call whose message is not complete; None: all are."""


def cut_answer(response: ModelResponse, shown: Mapping[int, Utterance]) -> CutAnswer | None:
    """The response up to where it was stopped: its complete calls, and the last message as far as people were `shown`
    it. None if they were shown nothing."""
    parts: list[ModelResponsePart] = []
    position, cut = -1, None
    for part in response.parts:
        if not isinstance(part, ToolCallPart):
            parts.append(part)
            continue
        position += 1
        said = shown.get(position)
        if part.tool_name == SEND_MESSAGE and (said is None or not said.text.strip()):
            break
        if not is_whole(part) or (said is not None and _text(part) != said.text):
            if said is None:
                break
            named = {"space_id": said.space_id} if said.space_id else {}
            parts.append(replace(part, args=json.dumps({**named, "text": said.text}, ensure_ascii=False)))
            cut = position
            break
        parts.append(part)
    if not any(isinstance(part, ToolCallPart) and part.tool_name == SEND_MESSAGE for part in parts):
        return None
    return CutAnswer(replace(response, parts=parts), cut)


def _text(call: ToolCallPart) -> Any:
    return call.args_as_dict(raise_if_invalid=False).get("text")


def is_all_stopped(events: Iterable[Event], stopped: Mapping[SpaceId, StopRequest]) -> bool:
    """Whether nothing is left to do in a cycle with these events: a person has stopped it everywhere."""
    return bool(stopped) and all(event.space_id in stopped for event in events)


def stop_note(seq: int, cycle_id: CycleId, request: StopRequest) -> Entry:
    """The entry that tells the agent that it was stopped without having said anything since."""
    who, space = plain_name(request.by_name), quoted_name(request.space_name)
    text = (
        f"[STOPPED] {who} stopped your answer in the space {space} (id: {request.space_id}). "
        "What you were writing was not sent. Send nothing there until someone writes again."
    )
    message = ModelRequest(parts=[UserPromptPart(text)])
    return log.entry(seq, cycle_id, "note", message, request=json.dumps({STOPPED: request.space_id}))


def told_in(entries: Sequence[Entry], request: StopRequest) -> bool:
    """Whether these entries of the cycle tell the agent of the request."""
    return any(_tells(entry, request) for entry in entries)


def _tells(entry: Entry, request: StopRequest) -> bool:
    if entry.kind == "note" and entry.request:
        return json.loads(entry.request).get(STOPPED) == request.space_id
    if entry.kind != "results":
        return False
    told = (part.content for part in entry.message.parts if isinstance(part, ToolReturnPart))
    results = (parsed(each) for each in told if isinstance(each, str) and f'"{STOPPED}"' in each)
    return any(isinstance(each, dict) and STOPPED in each for each in results)


def stopped_summary(requests: Iterable[StopRequest], derived: str) -> str:
    """The summary of a cycle that was stopped; `derived` is what it did."""
    stops = [f"{each.by_name} stopped the answer in {quoted_name(each.space_name)}." for each in requests]
    return " ".join((*stops, derived))
