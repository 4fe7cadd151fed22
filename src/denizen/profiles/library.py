"""The presets of a server: the operator's file, the operator's add-ons, and those that come with Denizen.

They are read again when they change.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import structlog
from pydantic import JsonValue

from denizen.errors import InvalidInput
from denizen.profiles import presets
from denizen.profiles.files import PresetFile, Stamp, read_json, read_text, stamp_of
from denizen.profiles.presets import Presets, plain_key

log_line = structlog.get_logger(__name__)

SHIPPED: Final = Path(__file__).parent / "shipped"
PRESETS_NAME: Final = "metaprompt-presets.json"


def shipped_file() -> Mapping[str, JsonValue]:
    """The presets file that comes with Denizen: an example, and the source of quick-start profiles."""
    return read_json(SHIPPED / PRESETS_NAME)


def shipped_addons() -> list[str]:
    """The keys of the add-ons that come with Denizen."""
    return sorted(path.stem for path in (SHIPPED / "prompts" / "_meta").glob("*.md"))


class Library:
    """The presets that can be chosen here. Without a presets file there are none."""

    def __init__(self, path: Path | None = None, prompts: Path | None = None) -> None:
        self._file = None if path is None else PresetFile(path)
        self._folders = [each / "_meta" for each in (prompts, SHIPPED / "prompts") if each is not None]
        self._read: Mapping[str, JsonValue] | None = None
        self._stamps: dict[Path, Stamp] = {}
        self._presets: Presets | None = None

    @property
    def path(self) -> Path | None:
        """The path of the presets file, whether or not it exists."""
        return None if self._file is None else self._file.path

    def file(self) -> Mapping[str, JsonValue]:
        """Returns the whole present file, for those who read other parts of it; empty if there is none."""
        return {} if self._file is None else self._file.load()

    def current(self) -> Presets | None:
        """Returns the present presets; None if there are none. While the file is invalid, the last valid ones stay in
        force.

        Raises `InvalidInput` if it never was valid.
        """
        if self._file is None:
            return None
        given = self._file.load()
        if self._read is not None and given is self._read and not self._addons_changed():
            return self._presets
        first = self._read is None
        self._stamps = {}
        try:
            self._presets = presets.read(given, self._find)
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

    def _find(self, key: str) -> str | None:
        if key != Path(key).name:
            return None  # A key is a name: it must not lead out of the folder.
        for folder in self._folders:
            path = folder / f"{plain_key(key)}.md"
            self._stamps[path] = stamp_of(path)
            if self._stamps[path] is not None:
                return read_text(path)
        return None

    def _addons_changed(self) -> bool:
        return any(stamp_of(path) != stamp for path, stamp in self._stamps.items())
