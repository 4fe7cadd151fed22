"""Answers of a server for tests that need one: the example of its shape, with other values for some fields."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from denizen.shapes.events import AgentStatus, StreamAborted, StreamDelta, StreamStarted
from denizen.shapes.value import Value

T = TypeVar("T", bound=Value)


def made(shape: type[T], **fields: Any) -> T:
    """The example of the shape, with these fields."""
    extra = cast("dict[str, Any]", shape.model_config.get("json_schema_extra"))
    return shape.model_validate({**extra["examples"][0], **fields})


def started(id: str, agent: str) -> StreamStarted:
    return StreamStarted(id=id, agent=agent, space="kitchen", epoch=1, reply_to=None)


def delta(id: str, agent: str, offset: int, text: str) -> StreamDelta:
    return StreamDelta(id=id, agent=agent, epoch=1, offset=offset, text=text)


def aborted(id: str, agent: str) -> StreamAborted:
    return StreamAborted(id=id, agent=agent, epoch=1, reason="resumed")


def status(agent: str, status: str, doing: str | None = None) -> AgentStatus:
    return AgentStatus.model_validate({"agent": agent, "status": status, "epoch": 1, "doing": doing})
