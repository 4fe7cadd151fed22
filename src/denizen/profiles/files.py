"""The presets file: found, read, and read again when it has changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from denizen.errors import InvalidInput
from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)

Stamp = tuple[int, int] | None
"""Detects a changed file: modification time and size; None if the file does not exist."""


class PresetFile:
    """A JSON file that people edit while the server runs. While it is invalid, its last valid content stays
    in force.
    """

    def __init__(self, path: Path, otherwise: Callable[[], Mapping[str, JsonValue]] = dict) -> None:
        """`otherwise` returns the content that applies while the file does not exist."""
        self.path = path
        self._otherwise = otherwise
        self._stamp: Stamp = None
        self._good: Mapping[str, JsonValue] | None = None

    def load(self) -> Mapping[str, JsonValue]:
        """Returns the present content, the same object as long as it is unchanged.

        Raises `InvalidInput` if it cannot be read and never could; later errors are logged once.
        """
        stamp = stamp_of(self.path)
        if self._good is not None and stamp == self._stamp:
            return self._good
        try:
            self._good = read_json(self.path) if stamp is not None else self._otherwise()
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
    except (OSError, ValueError):  # The latter for a name that no file can have.
        return None
    return found.st_mtime_ns, found.st_size


def read_text(path: Path) -> str:
    """Reads the file. Raises `InvalidInput` if that fails."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text.") from error


def read_json(path: Path) -> Mapping[str, JsonValue]:
    """Parses the JSON object in the file. Raises `InvalidInput` that says where it is wrong."""
    try:
        found: object = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{path}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}.") from error
    except (ValueError, RecursionError) as error:  # Numbers with thousands of digits, deeply nested lists.
        raise InvalidInput(f"{path} cannot be read: {error}.") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{path} has to hold a JSON object, {{ … }}.")
    return cast("Mapping[str, JsonValue]", found)
