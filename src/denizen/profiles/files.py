"""The presets file, `config/metaprompt-presets.json`: read when it has changed, parsed once, errors that say where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import structlog
from pydantic import JsonValue

from denizen.errors import SettingsError

log_line = structlog.get_logger(__name__)

_Stamp = tuple[int, int]
"""When a file was changed, and its size."""


class PresetFile:
    """One file of presets. Where there is none, it holds nothing, and every part of it has its defaults."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: _Stamp | None = None
        self._loaded: Mapping[str, JsonValue] | None = None

    def load(self) -> Mapping[str, JsonValue]:
        """What the file says now: the same object as before while the file is the same.

        A file that cannot be read at all raises `SettingsError`. One that was good and was then broken is warned of
        once, and what it said before stays.
        """
        stamp = self._stamped()
        if self._loaded is not None and stamp == self._stamp:
            return self._loaded
        try:
            found: Mapping[str, JsonValue] = {} if stamp is None else self._parsed()
        except SettingsError as error:
            if self._loaded is None:
                raise
            log_line.warning("presets not read again", file=str(self.path), problem=str(error))
            found = self._loaded
        self._stamp, self._loaded = stamp, found
        return found

    def _stamped(self) -> _Stamp | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SettingsError(f"{self.path} cannot be read: {error.strerror}.") from error
        return found.st_mtime_ns, found.st_size

    def _parsed(self) -> Mapping[str, JsonValue]:
        try:
            parsed: Any = json.loads(self.path.read_text("utf-8"))
        except json.JSONDecodeError as error:
            where = f"{self.path}, line {error.lineno}, column {error.colno}"
            raise SettingsError(f"{where}: this is no JSON ({error.msg}).") from error
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{self.path} cannot be read: {error}.") from error
        if not isinstance(parsed, dict):
            raise SettingsError(f"{self.path}: it has to be an object, such as {{}}.")
        return cast("dict[str, JsonValue]", parsed)
