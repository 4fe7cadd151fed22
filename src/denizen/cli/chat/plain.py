"""The conversation where there is no terminal to draw on, or only a dumb one: a line for each message, nothing else."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence

from rich.console import Console, ConsoleRenderable

from denizen.cli.chat import rendering
from denizen.client import Message


class Plain:
    """A `Display` that writes messages to stdout, and what is no message to stderr."""

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
        """Nothing: what is not said yet is not shown."""

    def give_back(self, text: str) -> None:
        """Nothing: what was typed still stands above."""


async def typed_lines() -> AsyncIterator[str]:
    """What is typed on stdin, line by line, until its end."""
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
    pieces: asyncio.Queue[bytes] = asyncio.Queue()
    # Read only when there is something, instead of made non-blocking: that would be so for stdout as well, where both
    # are the same terminal.
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
