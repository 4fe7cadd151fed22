"""Reads an export of another program, by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from denizen.errors import InvalidInput
from denizen.portability.foreign import chatgpt, hermes, letta, openclaw, openwebui
from denizen.portability.foreign.conversations import ForeignAgent

PROGRAMS: Final[Mapping[str, Callable[[Path], ForeignAgent]]] = {
    "letta": letta.read,
    "chatgpt": chatgpt.read,
    "openwebui": openwebui.read,
    "openclaw": openclaw.read,
    "hermes": hermes.read,
}


def read_foreign(program: str, path: Path) -> ForeignAgent:
    """Reads what the program exported. Raises `InvalidInput` if it cannot be read."""
    read = PROGRAMS.get(program)
    if read is None:
        raise InvalidInput(f"--from: there is no importer for {program!r}. There are {', '.join(PROGRAMS)}.")
    if not path.exists():
        raise InvalidInput(f"There is no file or folder {path}.")
    return read(path)
