"""Files: uploading them in parts, and reading them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from denizen.client.connection import Connection, path_to
from denizen.errors import InvalidInput
from denizen.shapes.files import FileLink, FileOut, FileUsage

PART_BYTES: Final = 1024 * 1024
"""What is sent at once: so much is sent again at most after a broken connection."""


class Files(Connection):
    """Uploads, and the files of messages."""

    async def upload(
        self,
        source: Path | bytes,
        *,
        name: str | None = None,
        media_type: str | None = None,
        alt: str | None = None,
    ) -> FileOut:
        """Uploads a file. Name its id when you post a message: `post(space, text, files=[file.id])`.

        `alt` says what a picture shows, for models and people that cannot see it.
        """
        try:
            data = source if isinstance(source, bytes) else await asyncio.to_thread(source.read_bytes)
        except OSError as error:
            raise InvalidInput(f"{source} cannot be read ({error.strerror}).") from error
        named = name or (source.name if isinstance(source, Path) else "file")
        about = {"name": named, "size": len(data), "media_type": media_type, "alt": alt}
        file = await self._ask(FileOut, "POST", path_to("files"), json=about)
        while not file.complete:
            part = data[file.arrived : file.arrived + PART_BYTES]
            file = await self._ask(
                FileOut,
                "PUT",
                path_to("files", file.id, "content"),
                params={"offset": file.arrived},
                content=part,
                headers={"Content-Type": "application/octet-stream"},
            )
        return file

    async def describe_file(self, file_id: str, alt: str | None) -> FileOut:
        """Says what an upload shows, before a message has it; None removes the description."""
        return await self._ask(FileOut, "PATCH", path_to("files", file_id), json={"alt": alt})

    async def file(self, file_id: str) -> FileOut:
        """An upload, or a file of a message in one of the caller's spaces."""
        return await self._ask(FileOut, "GET", path_to("files", file_id))

    async def file_content(self, file_id: str) -> bytes:
        """The bytes of a file."""
        return (await self._tell("GET", path_to("files", file_id, "content"))).content

    async def file_link(self, file_id: str) -> FileLink:
        """An address that shows the file without a token, for an hour."""
        return await self._ask(FileLink, "GET", path_to("files", file_id, "link"))

    async def file_usage(self) -> FileUsage:
        """How much room the files of the organization take, and may take."""
        return await self._ask(FileUsage, "GET", path_to("organization", "files"))

    async def remove_file(self, file_id: str) -> None:
        """Removes an upload that no message uses."""
        await self._tell("DELETE", path_to("files", file_id))
