"""Exported files, for tests that look into them or spoil them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

Lines = list[dict[str, Any]]


async def written(lines: AsyncGenerator[str], path: Path) -> Path:
    """The lines as a file."""
    _write(path, "".join([line async for line in lines]))
    return path


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def parsed(path: Path) -> Lines:
    return [json.loads(line) for line in path.read_text().splitlines()]


def spoilt(path: Path, change: Callable[[Lines], object]) -> Path:
    """The file with its lines changed, in another file beside it."""
    lines = parsed(path)
    change(lines)
    other = path.with_name("spoilt.jsonl")
    other.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return other


def cut_short(path: Path, number: int) -> Path:
    """The file with the end of one line missing, in another file beside it."""
    lines = path.read_text().splitlines(keepends=True)
    lines[number - 1] = lines[number - 1][:-5] + "\n"
    other = path.with_name("broken.jsonl")
    other.write_text("".join(lines))
    return other


def of(lines: Lines, row: str) -> Lines:
    return [each for each in lines if each.get("row") == row]


def without_ids(lines: Lines) -> Lines:
    """What the lines say, but for whose it is and who said it under which identifier."""
    return [_without_ids(each) for each in lines]


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_ids(each) for key, each in value.items() if key != "id" and not key.endswith("_id")}
    return value
