"""The presets of a server: the operator's file, the operator's add-ons, and those that come with Denizen.

They are read again when they change.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from denizen.errors import InvalidInput
from denizen.profiles import presets
from denizen.profiles.files import PresetFile, Stamp, read_json, read_text, stamp_of
from denizen.profiles.presets import Presets, plain_key
from denizen.shapes.vocabulary import PresetSource
from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)

SHIPPED: Final = Path(__file__).parent / "shipped"
PRESETS_NAME: Final = "metaprompt-presets.json"


@cache
def shipped_file() -> Mapping[str, JsonValue]:
    """The presets file that comes with Denizen: it applies while the operator has none."""
    return read_json(SHIPPED / PRESETS_NAME)


def shipped_addons() -> list[str]:
    """The keys of the add-ons that come with Denizen."""
    return sorted(path.stem for path in (SHIPPED / "prompts" / "_meta").glob("*.md"))


class Library:
    """The presets that can be chosen here: those of the file, or while it does not exist, those that come with Denizen.
    Without the path of a file there are none.
    """

    def __init__(self, path: Path | None = None, prompts: Path | None = None) -> None:
        self._file = None if path is None else PresetFile(path, shipped_file)
        self._folders = [each / "_meta" for each in (prompts, SHIPPED / "prompts") if each is not None]
        self._read: Mapping[str, JsonValue] | None = None
        self._stamps: dict[Path, Stamp] = {}
        self._presets: Presets | None = None
        self._lock = threading.Lock()

    @property
    def source(self) -> PresetSource:
        """Whether the operator's file applies, or the one that comes with Denizen."""
        return "shipped" if self.file() is shipped_file() else "server"

    @property
    def path(self) -> Path | None:
        """The path of the presets file, whether or not it exists."""
        return None if self._file is None else self._file.path

    def file(self) -> Mapping[str, JsonValue]:
        """Returns the whole present file, for those who read other parts of it; empty without a path."""
        return {} if self._file is None else self._file.load()

    def current(self) -> Presets | None:
        """Returns the present presets; None if there are none. While the file is invalid, the last valid ones stay in
        force.

        Raises `InvalidInput` if it never was valid.
        """
        if self._file is None:
            return None
        with self._lock:
            return self._current(self._file)

    def _current(self, file: PresetFile) -> Presets | None:
        given = file.load()
        if self._read is not None and given is self._read and not self._addons_changed():
            return self._presets
        first = self._read is None
        self._stamps = {}
        try:
            self._presets = presets.read(given, self._watched)
        except InvalidInput as error:
            if first:
                raise
            self._read = given
            log_line.warning("presets are wrong", path=str(self.path), message=str(error))
            return self._presets
        self._read = given
        for warning in self._presets.warnings if self._presets is not None else ():
            log_line.warning("preset file", path=str(self.path), message=warning)
        return self._presets

    def find_addon(self, key: str) -> str | None:
        """Returns the text of an add-on: the operator's file, otherwise ours."""
        return next((read_text(path) for path in self._paths(key) if stamp_of(path) is not None), None)

    def addons(self) -> dict[str, str]:
        """Returns the texts of all add-ons that have a file, by key. A file that cannot be read is left out."""
        keys = sorted({path.stem for folder in self._folders for path in folder.glob("*.md")})
        found: dict[str, str] = {}
        for key in keys:
            with suppress(InvalidInput):
                found[key] = (self.find_addon(key) or "").strip()
        return {key: text for key, text in found.items() if text}

    def _paths(self, key: str) -> list[Path]:
        if key != Path(key).name:
            return []  # A key is a name: it must not lead out of the folder.
        return [folder / f"{plain_key(key)}.md" for folder in self._folders]

    def _watched(self, key: str) -> str | None:
        """Returns the text of an add-on, and notes the files that decide it."""
        for path in self._paths(key):
            self._stamps[path] = stamp_of(path)
            if self._stamps[path] is not None:
                return read_text(path)
        return None

    def _addons_changed(self) -> bool:
        return any(stamp_of(path) != stamp for path, stamp in self._stamps.items())
