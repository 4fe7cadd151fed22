"""The file of presets: found, read, and read again when it has changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import structlog
from pydantic import JsonValue

from denizen.errors import InvalidInput

log_line = structlog.get_logger(__name__)

Stamp = tuple[int, int] | None
"""By which a changed file is known: when it was written, and its size; None: it is not there."""


class PresetFile:
    """A JSON file that people edit while agents live. What was good last stays in force while it is not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: Stamp = None
        self._good: Mapping[str, JsonValue] | None = None

    def load(self) -> Mapping[str, JsonValue]:
        """What the file says now, the same object as long as it says it; nothing where there is no file.

        Raises `InvalidInput` if it cannot be read and never could; later, that is logged once.
        """
        stamp = stamp_of(self.path)
        if self._good is not None and stamp == self._stamp:
            return self._good
        try:
            self._good = read_json(self.path) if stamp is not None else {}
        except InvalidInput as error:
            if self._good is None:
                raise
            log_line.warning("preset file cannot be read", path=str(self.path), message=str(error))
        self._stamp = stamp
        return self._good


def stamp_of(path: Path) -> Stamp:
    """The stamp of the file as it is now."""
    try:
        found = path.stat()
    except (OSError, ValueError):  # the latter of a name that no file can have
        return None
    return found.st_mtime_ns, found.st_size


def read_text(path: Path) -> str:
    """What stands in the file. Raises `InvalidInput` where that cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text.") from error


def read_json(path: Path) -> Mapping[str, JsonValue]:
    """The object in the file. Raises `InvalidInput` that says where it is wrong."""
    try:
        found: object = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{path}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}.") from error
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, lists in lists in lists
        raise InvalidInput(f"{path} cannot be read: {error}.") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{path} has to hold a JSON object, {{ … }}.")
    return cast("Mapping[str, JsonValue]", found)
