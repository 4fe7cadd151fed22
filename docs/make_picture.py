# ruff: noqa: INP001  a program beside the pages it draws for, no package
"""Makes docs/chat.svg: a real conversation with the demo model, in a real terminal. Run it with `make picture`.

The picture is the same on every run: time begins at the same moment, and it is taken when everyone has finished.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

from denizen import Runtime
from denizen.cli.chat.remembering import LastSpace
from denizen.cli.chat.screen import Screen
from denizen.cli.chat.talk import Talk
from denizen.cli.in_process import client_of
from denizen.clock import Instant, SystemClock, instant
from denizen.first_start import set_up_home

PICTURE = Path(__file__).with_name("chat.svg")
COLUMNS, ROWS = 84, 40
PATIENCE_SECONDS = 120
CONVERSATION = [
    ("Hello everyone!", "Ada"),
    ("@bo\twhat is 12 * 37?", "Bo"),
    ("@ada\tplease remember that the kettle is blue", "Ada"),
]
"""What is typed, and who is to answer."""


class PictureClock(SystemClock):
    """The machine's clock, set back to a Monday morning."""

    def __init__(self) -> None:
        self._offset = super().now() - instant(datetime(2026, 1, 5, 9, 30, tzinfo=UTC))

    def now(self) -> Instant:
        return Instant(super().now() - self._offset)


async def talk(home: Path) -> None:
    """The program in the picture: `denizen chat lobby` without a server, by the picture's clock."""
    clock = PictureClock()
    async with Runtime(f"sqlite:///{home / 'denizen.db'}", clock=clock) as runtime:
        world = await set_up_home(runtime, "Noor")
        async with runtime.living(), client_of(runtime, world.owner) as client:
            me, screen = await client.me(), Screen(home)
            await screen.run(Talk(client, screen, LastSpace(home, me.id), clock, me), "lobby")


class _Glass(pyte.Screen):
    """A screen that answers where its cursor is, as real ones do."""

    answer: Callable[[bytes], object]

    def write_process_input(self, data: str) -> None:
        self.answer(data.encode())


class Camera:
    """Types into the program, and sees what it shows."""

    def __init__(self, master: int) -> None:
        self._master = master
        self.glass = _Glass(COLUMNS, ROWS)
        self.glass.answer = lambda data: os.write(master, data)
        self._stream = pyte.ByteStream(self.glass)
        self._changed = asyncio.Event()

    def look(self) -> None:
        self._stream.feed(os.read(self._master, 65_536))
        self._changed.set()

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    def bar(self) -> str:
        return next((line.strip() for line in reversed(self.glass.display) if line.strip()), "")

    def answers(self, name: str) -> int:
        """How many messages of that author are there, whole."""
        return sum(bool(re.match(rf"{name}  \d\d:\d\d", line)) for line in self.glass.display)

    def is_quiet(self) -> bool:
        shown = "\n".join(self.glass.display)
        return "thinking" not in shown and "writing …" not in shown and self.bar().startswith("Lobby · with")


async def record() -> None:
    """Hold the conversation, and write the picture of its end."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    camera = Camera(master)
    with tempfile.TemporaryDirectory() as home:
        environ = {**os.environ, "TZ": "UTC", "TERM": "xterm-256color", "LANG": "C.UTF-8", "COLORTERM": ""}
        environ.pop("NO_COLOR", None)
        process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, home, stdin=slave, stdout=slave, stderr=slave, env=environ, start_new_session=True
        )
        os.close(slave)
        asyncio.get_running_loop().add_reader(master, camera.look)
        try:
            await hold_conversation(camera)
            PICTURE.write_text(picture(camera.glass))
            asyncio.get_running_loop().remove_reader(master)
        finally:
            process.kill()
            await process.wait()
            os.close(master)


async def hold_conversation(camera: Camera) -> None:
    await camera.until(camera.is_quiet)
    for text, name in CONVERSATION:
        before = camera.answers(name)
        camera.type(f"{text}\r")
        await camera.until(lambda name=name, before=before: camera.answers(name) > before and camera.is_quiet())


def picture(glass: pyte.Screen) -> str:
    """The screen as SVG, down to its last line that is not empty."""
    last = max(row for row, line in enumerate(glass.display) if line.strip())
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    for row in range(last + 1):
        cells = [glass.buffer[row][column] for column in range(COLUMNS)]
        console.print(Text.assemble(*((cell.data, _style(cell)) for cell in cells)), no_wrap=True)
    svg = console.export_svg(title="denizen chat", unique_id="denizen-chat")
    # Fonts of other hosts are not fetched to look at a picture.
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def _style(cell: Any) -> Style:
    return Style(color=_colour(cell.fg), bgcolor=_colour(cell.bg), bold=cell.bold, reverse=cell.reverse)


def _colour(name: str) -> str | None:
    if name == "default":
        return None
    if re.fullmatch(r"[0-9a-f]{6}", name):
        return f"#{name}"
    return name.replace("brown", "yellow").replace("bright", "bright_")


if __name__ == "__main__":
    asyncio.run(talk(Path(sys.argv[1])) if len(sys.argv) > 1 else record())
