"""Files of `denizen chat` in the home folder: each person's last space, and the input history.

How far someone has read is stored with the spaces, where their other devices find it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

FILE_NAME: Final = "chat.json"
HISTORY_NAME: Final = "chat_history"


class LastPlace(BaseModel):
    """Someone's last space."""

    space: str | None = None


class _Places(BaseModel):
    people: dict[str, LastPlace] = {}


@dataclass
class LastSpace:
    """One person's last space, in a file that others on this machine cannot read. Losing it loses no message."""

    home: Path
    person: str
    place: LastPlace = field(default_factory=LastPlace)

    def load(self) -> None:
        """Reads the file; empty if it does not exist or is not ours."""
        self.place = self._all().people.get(self.person, LastPlace())

    def save(self, space: str) -> None:
        """Stores the person's last space. Does nothing if the folder is not writable."""
        self.place = LastPlace(space=space)
        everyone = self._all()
        everyone.people[self.person] = self.place
        path = self.home / FILE_NAME
        try:
            # Written beside it and moved there, so that two terminals at once leave one complete file.
            beside = path.with_suffix(f".{os.getpid()}")
            make_private(beside)
            beside.write_text(everyone.model_dump_json())
            beside.replace(path)
        except OSError:
            return

    def _all(self) -> _Places:
        try:
            return _Places.model_validate_json((self.home / FILE_NAME).read_bytes())
        except (OSError, ValidationError):
            return _Places()


def make_private(path: Path) -> None:
    """Creates the file, for its owner only."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    path.chmod(0o600)
