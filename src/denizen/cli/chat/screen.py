"""The conversation on a terminal: messages scroll by; below them are the live text, the input line, and a bar with the
space and who is thinking.

A message is printed once and belongs to the terminal from then on; only the lower part is redrawn. So the text of an
agent grows in the lower part, and moves up at once when its message is there.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    VerticalAlign,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenuControl
from prompt_toolkit.layout.processors import AppendAutoSuggestion
from prompt_toolkit.styles import Style
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleRenderable, Group

from denizen.cli.chat import rendering
from denizen.cli.chat.namesakes import namesakes
from denizen.cli.chat.remembering import HISTORY_NAME, make_private
from denizen.cli.chat.talk import Talk
from denizen.cli.chat.typed import COMMANDS
from denizen.client import Message

INPUT_LINES: Final = 8
"""The most lines of the input before it scrolls."""
MENU_LINES: Final = 6
REDRAW_SECONDS: Final = 0.04
_BELOW: Final = 4
"""Lines that the live text leaves free: for the input, the bar, and a few messages."""
_STYLE: Final = Style.from_dict(
    {
        "bar": "reverse",
        "prompt": "bold",
        "auto-suggestion": "fg:ansibrightblack",
        "completion-menu": "noinherit",
        "completion-menu.completion": "noinherit",
        "completion-menu.completion.current": "noinherit reverse",
        "completion-menu.meta.completion": "noinherit fg:ansibrightblack",
        "completion-menu.meta.completion.current": "noinherit reverse",
        "scrollbar.background": "noinherit",
        "scrollbar.button": "noinherit",
    }
)


class Screen:
    """A `Display` on a real terminal, with its input line."""

    def __init__(self, home: Path) -> None:
        self._console = Console(file=sys.stdout, highlight=False)
        self._talk: Talk | None = None
        self._last_day: date | None = None
        self._typed: asyncio.Queue[str | None] = asyncio.Queue()
        self._leaving = False
        """Whether Ctrl-C was pressed once."""
        self._buffer = Buffer(
            multiline=True,
            history=_history(home),
            completer=_Completer(lambda: self._talk),
            complete_while_typing=Condition(lambda: _completes(self._buffer.document)),
            auto_suggest=AutoSuggestFromHistory(),
            accept_handler=self._accept,
            on_text_changed=lambda _: self._stay(),
        )
        self.app: Application[None] = Application(
            layout=self._layout(),
            key_bindings=self._bindings(),
            style=_STYLE,
            erase_when_done=True,
            min_redraw_interval=REDRAW_SECONDS,
        )

    async def run(self, talk: Talk, wanted: str | None) -> None:
        """Shows this conversation, and takes what is typed, until the user leaves."""
        self._talk = talk
        async with asyncio.TaskGroup() as tasks:
            drawing = tasks.create_task(self.app.run_async(), name="screen")
            try:
                await talk.run(wanted, self._lines())
            finally:
                if self.app.is_running:
                    self.app.exit()
            await drawing

    async def _lines(self) -> AsyncIterator[str]:
        """Yields the typed lines, until the user leaves."""
        while (line := await self._typed.get()) is not None:
            yield line

    # The display

    async def say(self, messages: Sequence[Message], own_id: str) -> None:
        blocks, self._last_day = rendering.conversation(messages, own_id, self._last_day)
        if blocks:
            self._print(*blocks)

    async def show(self, *blocks: ConsoleRenderable) -> None:
        self._print("", *blocks)

    async def begin(self, title: str) -> None:
        self._last_day = None
        self._print("", rendering.separator(title))

    def refresh(self) -> None:
        self.app.invalidate()

    def give_back(self, text: str) -> None:
        if not self._buffer.text:
            self._buffer.text = text
            self._buffer.cursor_position = len(text)

    def _print(self, *blocks: ConsoleRenderable | str) -> None:
        """Prints above the lower part, which moves down.

        Not by `run_in_terminal`: that returns the keyboard to the terminal meanwhile, which echoes and garbles keys
        pressed at that moment.
        """
        if not self.app.is_running:
            self._console.print(*blocks, sep="\n")
            return
        renderer = self.app.renderer
        renderer.erase()
        self._console.print(*blocks, sep="\n")
        with set_app(self.app):
            renderer.request_absolute_cursor_position()
            renderer.render(self.app, self.app.layout)

    # Input

    def _accept(self, buffer: Buffer) -> bool:
        self._typed.put_nowait(buffer.text)
        return False

    def _stay(self) -> None:
        self._leaving = False

    def _bindings(self) -> KeyBindings:
        keys = KeyBindings()
        empty = Condition(lambda: not self._buffer.text)

        @keys.add("enter")
        def send(_: KeyPressEvent) -> None:
            chosen = self._buffer.complete_state
            if chosen is not None and chosen.current_completion is not None:
                self._buffer.complete_state = None
            elif self._buffer.text.strip():
                self._buffer.validate_and_handle()
            else:
                self._buffer.reset()

        @keys.add("tab")
        def complete(_: KeyPressEvent) -> None:
            options = [] if self._talk is None else completions(self._talk, self._buffer.document.text_before_cursor)
            if len(options) == 1:
                self._buffer.complete_state = None
                self._buffer.apply_completion(options[0])
            elif self._buffer.complete_state is not None:
                self._buffer.complete_next()
            elif options:
                self._buffer.start_completion(insert_common_part=True)

        @keys.add("escape", "enter")
        def break_line(_: KeyPressEvent) -> None:
            self._buffer.insert_text("\n")

        @keys.add("c-c")
        def clear_or_leave(_: KeyPressEvent) -> None:
            if self._leaving:
                self._typed.put_nowait(None)
                return
            if not self._buffer.text and self._talk is not None and self._talk.thinkers():
                self._typed.put_nowait("/stop")
            self._buffer.reset()
            self._leaving = True
            self.refresh()

        @keys.add("c-d", filter=empty)
        def leave(_: KeyPressEvent) -> None:
            self._typed.put_nowait(None)

        # Registered with the keys; named here for readers, and so that none counts as unused.
        del send, complete, break_line, clear_or_leave, leave
        return keys

    # The lower part

    def _layout(self) -> Layout:
        live = Window(FormattedTextControl(self._live), dont_extend_height=True, always_hide_cursor=True)
        typing = Window(
            BufferControl(self._buffer, input_processors=[AppendAutoSuggestion()]),
            height=Dimension(min=1, max=INPUT_LINES),
            dont_extend_height=True,
            wrap_lines=True,
            get_line_prefix=_prompt,
        )
        menu = Window(CompletionsMenuControl(), height=Dimension(max=MENU_LINES), dont_extend_height=True)
        bar = Window(FormattedTextControl(self._bar), height=1, style="class:bar", always_hide_cursor=True)
        something_live = Condition(lambda: bool(self._live_blocks()))
        return Layout(
            HSplit(
                [
                    ConditionalContainer(live, something_live),
                    ConditionalContainer(Window(height=1), ~something_live),
                    typing,
                    ConditionalContainer(menu, has_completions),
                    bar,
                ],
                align=VerticalAlign.TOP,
            ),
            focused_element=typing,
        )

    def _size(self) -> tuple[int, int]:
        size = self.app.output.get_size()
        return size.rows, size.columns

    def _live(self) -> AnyFormattedText:
        blocks = self._live_blocks()
        rows, columns = self._size()
        each = max((rows - _BELOW - INPUT_LINES // 2) // max(len(blocks), 1), 4)
        lines = [line for block in blocks for line in self._last_lines(block, columns, each)]
        return ANSI("\n".join([*lines, ""]))

    def _last_lines(self, block: ConsoleRenderable, columns: int, most: int) -> list[str]:
        """Returns the block as lines of the terminal: an empty one, its head, and the end of its text."""
        with self._console.capture() as capture:
            self._console.print(block, width=columns)
        head, *lines = capture.get().rstrip("\n").split("\n")
        room = most - 2
        return ["", head, *(lines if len(lines) <= room else ["  …", *lines[1 - room :]])]

    def _live_blocks(self) -> list[ConsoleRenderable]:
        """Returns the live texts, and the user's own messages that are not posted yet."""
        talk = self._talk
        if talk is None:
            return []
        names = {member.id: member.name for member in talk.members()}
        blocks: list[ConsoleRenderable] = [
            Group(
                rendering.author_line(names.get(each.agent_id, "Someone"), "writing …", own=False),
                rendering.body(("… " if each.begin else "") + each.text),
            )
            for each in talk.state.writing.values()
            if each.text
        ]
        return blocks + [
            Group(rendering.author_line(talk.me.name, "sending …", own=True), rendering.body(each.text))
            for each in talk.unsent()
        ]

    def _bar(self) -> AnyFormattedText:
        talk = self._talk
        return "" if talk is None else bar_text(talk, self._size()[1], leaving=self._leaving)


def bar_text(talk: Talk, columns: int, *, leaving: bool) -> str:
    """Returns the space, who is thinking and what is new, as much as fits."""
    if leaving:
        return fit([("Ctrl-C once more leaves; /help helps", 0)], columns)
    if talk.space is None:
        return fit([("Where to?" if talk.choosing else "…", 0), ("/help", 1)], columns)
    thinkers = [talk.how(member) for member in talk.thinkers()]
    others = [member.name for member in talk.members() if member.id != talk.me.id]
    paused = [member.name for member in talk.paused()]
    troubled = [name for name in talk.troubled() if name not in thinkers]
    return fit(
        [
            (rendering.printable(talk.space.name), 1),
            ("not connected" if talk.state.lost else "", 0),
            (f"{rendering.printable(_and(thinkers))} {'is' if len(thinkers) == 1 else 'are'} thinking", 2)
            if thinkers
            else ("", 2),
            (f"{rendering.printable(_and(paused))} {_waits(paused)}" if paused else "", 2),
            (rendering.printable(f"no answer from {_and(troubled)}") if troubled else "", 2),
            (rendering.printable(", ".join(_elsewhere(talk))), 3),
            (rendering.printable(f"with {', '.join(others)}" if others and not thinkers + paused else ""), 4),
            ("/help", 5),
        ],
        columns,
    )


def _waits(names: Sequence[str]) -> str:
    return rendering.WAITS if len(names) == 1 else "wait for an answer"


def _elsewhere(talk: Talk) -> list[str]:
    """Returns what is new in other spaces."""
    told: list[str] = []
    here = talk.space.id if talk.space is not None else ""
    for space in talk.spaces:
        new = f"{talk.unread[space.id]} new" if talk.unread.get(space.id) else ""
        question = "a question" if space.id in talk.asked_in and space.id != here else ""
        if new or question:
            told.append(f"{space.name}: {' and '.join(filter(None, (new, question)))}")
    return told


def fit(parts: Iterable[tuple[str, int]], columns: int) -> str:
    """Joins the parts in order, without the least important ones (the highest number) if there is no room for all."""
    kept = [part for part in parts if part[0]]
    while len(kept) > 1 and cell_len(_joined(kept)) > columns:
        kept.remove(max(kept, key=lambda part: part[1]))
    text = _joined(kept)
    return text if cell_len(text) <= columns else set_cell_size(text, columns - 1) + "…"


def _joined(parts: Sequence[tuple[str, int]]) -> str:
    return " " + " · ".join(text for text, _ in parts) + " "


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _prompt(line: int, wrapped: int) -> AnyFormattedText:
    return [("class:prompt", "› " if line == 0 and wrapped == 0 else "  ")]


def _history(home: Path) -> History:
    path = home / HISTORY_NAME
    try:
        make_private(path)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def _completes(document: Document) -> bool:
    """Whether the menu opens by itself: after a slash that begins the line, and after an @ that begins a word."""
    before = document.text_before_cursor
    return before.startswith("/") or before.rpartition(" ")[2].rpartition("\n")[2].startswith("@")


class _Completer(Completer):
    """Completes commands, names of spaces after `/join`, and handles of members after `@`."""

    def __init__(self, talk: Callable[[], Talk | None]) -> None:
        self._talk = talk

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        del complete_event
        talk = self._talk()
        return [] if talk is None else completions(talk, document.text_before_cursor)


def completions(talk: Talk, before: str) -> list[Completion]:
    """Returns the completions at the cursor."""
    command, space, argument = before.partition(" ")
    if before.startswith("/") and not space:
        return _matching(before, [(name, meaning) for name, meaning in COMMANDS.items()])
    if (command in ("/join", "/s", "/j") and space) or (talk.choosing and not before.startswith("/")):
        wanted = argument if before.startswith("/") else before
        people = {member.handle: member.name for each in talk.spaces for member in each.members}
        people.pop(talk.me.handle, None)
        own = [(f"@{handle}", f"yours with {name}") for handle, name in people.items()]
        hints = namesakes(talk.spaces, talk.me.id)
        plain = [(each.name, "") for each in talk.spaces if each.id not in hints]
        # Only the id says which of several is meant.
        alike = [(each.id, f"{each.name}, {hints[each.id]}") for each in talk.spaces if each.id in hints]
        by_name = [each for each in alike if wanted and each[1].casefold().startswith(wanted.casefold())]
        chosen = [Completion(id, -len(wanted), display=rendering.printable(words)) for id, words in by_name]
        return [*_matching(wanted, [*plain, *own]), *chosen]
    word = before.rpartition(" ")[2].rpartition("\n")[2]
    if not word.startswith("@"):
        return []
    others = [member for member in talk.members() if member.id != talk.me.id]
    return _matching(word, [(f"@{member.handle} ", member.name) for member in others])


def _matching(wanted: str, candidates: Iterable[tuple[str, str]]) -> list[Completion]:
    folded = wanted.casefold()
    return [
        Completion(
            text, -len(wanted), display=rendering.printable(text.strip()), display_meta=rendering.printable(meta)
        )
        for text, meta in candidates
        if text.casefold().startswith(folded)
    ]
