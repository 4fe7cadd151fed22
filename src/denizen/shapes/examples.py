"""What the examples in the API's description are made of."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ConfigDict

from denizen.shapes.value import EXAMPLE

NOOR: Final = "019b8d3e-5c00-7a61-9d0f-3f6f1c0b2a41"
ADA: Final = "019b8d3e-5c01-7b02-8a55-90e1d2c3b4a5"
KITCHEN: Final = "019b8d3e-5c02-7c13-b2aa-0a1b2c3d4e5f"
THING: Final = "019b8d3f-0a00-7d24-8c3b-5e6f7a8b9c0d"
NINE: Final = "2026-01-05T09:00:00Z"


def text_answer(media_type: str, description: str, example: str) -> dict[int | str, dict[str, Any]]:
    """The answer of a request that is told in text, with this example."""
    content = {media_type: {"schema": {"type": "string"}, "example": example}}
    return {200: {"description": description, "content": content}}


def event_stream(stream: str, example: str) -> dict[int | str, dict[str, Any]]:
    """The answer of a stream. `x-events` names the schema with the data of each event by the name of the event."""
    events = {"$ref": f"#/components/schemas/{stream.title()}StreamEvents"}
    answer = text_answer("text/event-stream", "Server-sent events.", example)
    answer[200]["content"]["text/event-stream"]["x-events"] = events
    return answer


def example(**fields: Any) -> ConfigDict:
    """Of an answer: values of its example. Those of its other fields are made from their names and types."""
    return ConfigDict(json_schema_extra={EXAMPLE: fields})


def body_example(**fields: Any) -> ConfigDict:
    """Of a body, which has no other fields than those it knows."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [fields]})


MADE_FROM_OUTSIDE = "Whether it was made from text from outside: the agent had read such text when it wrote this."
