"""Answers of a server for tests that need one: the example of its shape, with other values for some fields."""

from __future__ import annotations

from typing import Any, TypeVar

from denizen.server.examples import REFERENCE, example_of
from denizen.shapes.events import AgentStatus, StreamAborted, StreamDelta, StreamStarted
from denizen.shapes.value import Value

T = TypeVar("T", bound=Value)


def made(shape: type[T], **fields: Any) -> T:
    """The example of the shape, with these fields."""
    schema = shape.model_json_schema(ref_template=f"{REFERENCE}{{model}}", mode="serialization")
    return shape.model_validate({**example_of(schema, schema.get("$defs", {})), **fields})


def started(id: str, agent: str) -> StreamStarted:
    return StreamStarted(id=id, agent=agent, space="kitchen", epoch=1, reply_to=None)


def delta(id: str, agent: str, offset: int, text: str) -> StreamDelta:
    return StreamDelta(id=id, agent=agent, epoch=1, offset=offset, text=text)


def aborted(id: str, agent: str) -> StreamAborted:
    return StreamAborted(id=id, agent=agent, epoch=1, reason="resumed")


def status(agent: str, status: str, doing: str | None = None) -> AgentStatus:
    return AgentStatus.model_validate({"agent": agent, "status": status, "epoch": 1, "doing": doing})
