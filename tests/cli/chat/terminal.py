"""A person at a terminal: a real program on a pseudo-terminal, and what stands on its screen."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import termios
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyte

from tests import warm

PATIENCE_SECONDS = 200
"""How long a pattern may take to appear on a loaded machine. Nothing waits that long when all is well."""


class _Glass(pyte.HistoryScreen):
    """A screen that also answers where its cursor is, as real ones do."""

    answer: Callable[[bytes], object]

    def write_process_input(self, data: str) -> None:
        self.answer(data.encode())


class Terminal:
    """What is on the screen now, and the keyboard."""

    def __init__(self, master: int, columns: int, rows: int) -> None:
        self._master = master
        self.glass = _Glass(columns, rows, history=5_000, ratio=0.5)
        self.glass.answer = lambda data: os.write(master, data)
        self._stream = pyte.ByteStream(self.glass)
        self._changed = asyncio.Event()
        self.raw = b""
        self.ended = False

    def feed(self) -> None:
        """Take in what the program has written."""
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # the other end is closed
            data = b""
        if not data:
            self.ended = True
            asyncio.get_running_loop().remove_reader(self._master)
        self.raw += data
        self._stream.feed(data)
        self._changed.set()

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def lines(self) -> list[str]:
        """What stands on the screen, line by line."""
        return [line.rstrip() for line in self.glass.display]

    def text(self) -> str:
        """What has scrolled away and what stands on the screen."""
        gone = ["".join(row[column].data for column in range(self.glass.columns)) for row in self.glass.history.top]
        return "\n".join(line.rstrip() for line in [*gone, *self.glass.display])

    def bar(self) -> str:
        """The last line that is not empty: where one is and who thinks."""
        return next((line for line in reversed(self.lines()) if line), "")

    async def until(self, seen: str | Callable[[], Any]) -> None:
        """Wait until a text is to be seen, or something holds; fail with the whole screen."""

        def holds() -> bool:
            return seen in self.text() if isinstance(seen, str) else bool(seen())

        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not holds():
                    assert not self.ended, f"The program ended before {seen!r}:\n{self.text()}"
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"Never saw {seen!r}. On the screen:\n{self.text()}") from None


@asynccontextmanager
async def terminal(
    *arguments: str, environ: Mapping[str, str], cwd: Path, columns: int = 80, rows: int = 30
) -> AsyncGenerator[tuple[Terminal, asyncio.subprocess.Process]]:
    """`denizen` with these arguments on a terminal of this size; whatever still runs on leaving is ended."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    screen = Terminal(master, columns, rows)
    process = await asyncio.create_subprocess_exec(
        *warm.denizen(), *arguments,
        stdin=slave, stdout=slave, stderr=slave, env=dict(environ), cwd=cwd, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    asyncio.get_running_loop().add_reader(master, screen.feed)
    try:
        yield screen, process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        asyncio.get_running_loop().remove_reader(master)
        os.close(master)
