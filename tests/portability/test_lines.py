"""The lines of exported files, each told in the docs."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from denizen.portability import lines

DOCS = Path(__file__).parent.parent.parent / "docs" / "export.md"


def test_every_kind_of_line_is_in_the_docs() -> None:
    told = DOCS.read_text()
    rows = [str(each.model_fields["row"].default) for each in get_args(lines.Line)]
    assert len(rows) > 25
    assert [row for row in rows if row != "end" and f"`{row}`" not in told] == []
