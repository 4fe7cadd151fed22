"""Files in `denizen chat`: those of the next message, and saving those of others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Final

from denizen.amounts import human_size
from denizen.cli.console import printable
from denizen.client import Client, Message
from denizen.errors import InvalidInput
from denizen.shapes.files import FileOut
from denizen.shapes.spaces import AttachmentOut

LOOKED_AT: Final = 100
"""How many messages are looked through for a file."""


def file_line(file: AttachmentOut | FileOut) -> str:
    """`menu.txt (text/plain, 2.1 kB)`"""
    return f"{printable(file.name)} ({printable(file.media_type)}, {human_size(file.size)})"


async def upload(client: Client, typed: str) -> FileOut:
    """Uploads the file of this path, for the next message. Quotes around the path are left out."""
    return await client.upload(await asyncio.to_thread(_existing, typed.strip().strip("'\"")))


def _existing(typed: str) -> Path:
    path = Path(typed).expanduser()
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}. Give its path: /attach photo.jpg.")
    return path


def files_in(messages: Sequence[Message]) -> list[AttachmentOut]:
    """The files of these messages, the newest first."""
    return [file for message in reversed(messages) for file in message.files]


def wanted(files: Sequence[AttachmentOut], typed: str) -> tuple[AttachmentOut, Path]:
    """The newest file whose name the line begins with, and where to save it: the rest of the line, or here."""
    found = [each for each in files if typed == each.name or typed.startswith(f"{each.name} ")]
    if not found:
        raise InvalidInput(f"No file here is called {typed}. /files lists them.")
    file = max(found, key=lambda each: len(each.name))
    given = typed[len(file.name) :].strip()
    path = Path(given).expanduser() if given else Path(PurePath(file.name).name)
    return file, path / PurePath(file.name).name if path.is_dir() else path


async def save(client: Client, files: Sequence[AttachmentOut], typed: str) -> Path:
    """Saves the file; never over another one."""
    file, path = await asyncio.to_thread(wanted, files, typed)
    data = await client.file_content(file.id)
    try:
        await asyncio.to_thread(_write_new, path, data)
    except FileExistsError as error:
        raise InvalidInput(f"{path} exists already. Give another name: /save {file.name} OTHER.") from error
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written ({error.strerror}).") from error
    return path


def _write_new(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
