"""The conversation without a capable terminal: a line for each message, nothing else."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence

from rich.console import Console, ConsoleRenderable

from denizen.cli.chat import rendering
from denizen.client import Message


class Plain:
    """A `Display` that writes messages to stdout, and everything else to stderr."""

    def __init__(self) -> None:
        self._notes = Console(stderr=True, highlight=False, no_color=True)

    async def say(self, messages: Sequence[Message], own_id: str) -> None:
        del own_id
        for message in messages:
            at = rendering.local(message.created_at)
            sys.stdout.write(f"[{at:%Y-%m-%d %H:%M}] {rendering.plain_line(message)}\n")
        sys.stdout.flush()

    async def show(self, *blocks: ConsoleRenderable) -> None:
        self._notes.print(*blocks, sep="\n")

    async def begin(self, title: str) -> None:
        await self.show(rendering.note(f"-- {title} --"))

    def refresh(self) -> None:
        """Does nothing: live text is not shown."""

    def give_back(self, text: str) -> None:
        """Does nothing: the typed line still stands above."""


async def typed_lines() -> AsyncIterator[str]:
    """Yields the lines typed on stdin, until its end."""
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
    pieces: asyncio.Queue[bytes] = asyncio.Queue()
    # Read only when there is input, instead of made non-blocking: that would affect stdout as well, if both are the
    # same terminal.
    loop.add_reader(descriptor, lambda: pieces.put_nowait(os.read(descriptor, 65_536)))
    pending = b""
    try:
        while piece := await pieces.get():
            *lines, pending = (pending + piece).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace")
    finally:
        loop.remove_reader(descriptor)
    if pending:
        yield pending.decode(errors="replace")
