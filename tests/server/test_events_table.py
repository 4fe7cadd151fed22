"""The page of the streams tells every event as the table has it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from denizen.server.streams.events import EVENTS, Stream

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
