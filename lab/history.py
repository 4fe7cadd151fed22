"""What happened in a world, as its clients saw it: lines of JSON, in order, that can be judged again later."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class History:
    """Lines with the seconds since the beginning. Each is in the file before it counts."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self._began = time.monotonic()
        self.lines: list[Line] = []

    def now(self) -> float:
        return round(time.monotonic() - self._began, 3)

    def add(self, what: str, **fields: Any) -> Line:
        line = {"at": self.now(), "what": what, **fields}
        self._file.write(json.dumps(line) + "\n")
        self.lines.append(line)
        return line

    def close(self) -> None:
        self._file.close()


def read(path: Path) -> list[Line]:
    """The lines of a history that was recorded."""
    return [json.loads(line) for line in path.read_text().splitlines()]
