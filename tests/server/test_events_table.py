"""The page of the streams tells every event as the table has it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from denizen.shapes.events import EVENTS, Stream
from tests.server import small_town

PAGE = Path(__file__).parents[2] / "docs" / "streams.md"


def test_every_event_is_on_the_page_with_the_streams_that_tell_it() -> None:
    rows = re.findall(r"^\| `([a-z.]+)` \|([^|]*)\|([^|]*)\|([^|]*)\| [^|]+ \|$", PAGE.read_text(), flags=re.MULTILINE)
    told = {name: tuple(cell.strip() for cell in cells) for name, *cells in rows}
    assert told == {
        name: tuple(
            "**id**" if stream in kind.resumable else "✓" if stream in kind.streams else ""
            for stream in get_args(Stream)
        )
        for name, kind in EVENTS.items()
    }


def test_every_event_is_told_under_its_own_type() -> None:
    """What carries a type carries the name of the event."""
    for name, kind in EVENTS.items():
        type_ = kind.shape.model_fields.get("type")
        assert type_ is None or get_args(type_.annotation) == (name,)
        assert set(kind.resumable) <= set(kind.streams)


@pytest.mark.parametrize("stream", get_args(Stream))
def test_the_description_of_the_api_has_the_shape_of_every_event(stream: Stream) -> None:
    """The types of the web client are generated from it."""
    schemas = small_town.description()["components"]["schemas"]
    described = schemas[f"{stream.title()}StreamEvents"]["properties"]
    sent = {name: kind.shape for name, kind in EVENTS.items() if stream in kind.streams}
    assert described == {name: {"$ref": f"#/components/schemas/{shape.__name__}"} for name, shape in sent.items()}
    for shape in sent.values():
        assert schemas[shape.__name__]["properties"].keys() == shape.model_fields.keys()


def test_the_answer_of_each_stream_names_its_events_and_its_example_is_one() -> None:
    found: dict[str, Stream] = {}
    for _, path, operation in small_town.operations(small_town.description()):
        content = operation["responses"].get("200", {}).get("content", {}).get("text/event-stream")
        if content is None or "x-events" not in content:
            continue
        (stream,) = (each for each in get_args(Stream) if f"/{each.title()}Stream" in content["x-events"]["$ref"])
        fields = dict(line.split(": ", 1) for line in content["example"].strip().splitlines())
        assert stream in EVENTS[fields["event"]].streams
        EVENTS[fields["event"]].shape.model_validate_json(fields["data"], extra="forbid")
        found[path] = stream
    assert found == {
        "/api/spaces/{space_id}/stream": "space",
        "/api/agents/{agent_id}/stream": "agent",
        "/api/stream": "person",
    }
