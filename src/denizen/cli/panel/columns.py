"""Shows the replies of a turn side by side in the terminal. Pure, except for the drawing itself."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.markdown import Markdown
from rich.panel import Panel as Box
from rich.table import Table
from rich.text import Text

from denizen.cli.console import printable, stdout
from denizen.client import LifeEvent
from denizen.shapes.events import PanelDelta, PanelReply
from denizen.shapes.panels import Panel, ReplyOut, RoundOut, RoundPage

NARROW, MIDDLE = 90, 150
"""Below the first, one column; below the second, two; otherwise three."""
_STATES = {"waiting": "waits", "running": "…", "failed": "failed", "cancelled": "cancelled", "done": ""}
_TITLES = {"ask": "", "crosstalk": "They answer each other", "vote": "They vote"}


@dataclass
class Voice:
    """The reply of one voice in one round, as far as it was received."""

    reply: ReplyOut
    epoch: int = 0
    text: str = ""
    thinking: str = ""


@dataclass
class Columns:
    """One turn of a panel. Feed it the events; it knows the texts, and when all are complete."""

    panel: Panel
    turn: int
    rounds: dict[str, RoundOut] = field(default_factory=dict[str, RoundOut])
    voices: dict[tuple[str, str, str], Voice] = field(default_factory=dict[tuple[str, str, str], Voice])

    def hear(self, event: LifeEvent) -> None:
        match event:
            case RoundOut():
                self.see(event)
            case PanelReply():
                self._reply(event.round, event.reply)
            case PanelDelta():
                self._delta(event)
            case _:
                pass

    def see(self, now: RoundOut) -> None:
        """Takes the present state of the round."""
        if now.turn != self.turn:
            return
        self.rounds[now.id] = now
        for each in [
            *now.advisor_responses.values(),
            *([now.synthesis] if now.synthesis else []),
            *now.checks.values(),
        ]:
            self._reply(now.id, each)

    def _reply(self, round_id: str, reply: ReplyOut) -> None:
        if round_id not in self.rounds:
            return
        key = round_id, reply.advisor, reply.part
        known = self.voices.get(key)
        if known is None or reply.epoch > known.epoch:
            known = self.voices[key] = Voice(reply, reply.epoch)
        known.reply = reply
        if reply.completed:
            known.text, known.thinking = reply.content, reply.thinking or ""

    def _delta(self, delta: PanelDelta) -> None:
        voice = self.voices.get((delta.round, delta.advisor, delta.part))
        if voice is None or delta.epoch < voice.epoch or voice.reply.completed:
            return
        if delta.epoch > voice.epoch:
            voice.epoch, voice.text, voice.thinking = delta.epoch, "", ""
        if delta.thinking:
            voice.thinking = voice.thinking[: delta.offset] + delta.text
        else:
            voice.text = voice.text[: delta.offset] + delta.text

    def look(self, page: RoundPage) -> None:
        """Takes the present states of rounds; there may be others than those of this turn."""
        for each in page.rounds:
            self.see(each)

    @property
    def in_order(self) -> list[RoundOut]:
        return sorted(self.rounds.values(), key=lambda each: each.step)

    @property
    def all_said(self) -> bool:
        """Whether all known replies of the turn are complete."""
        return all(each.reply.completed for each in self.voices.values())


@contextmanager
def showing(columns: Columns, *, thinking: bool, quiet: bool) -> Generator[Callable[[], None]]:
    """Provides a function that redraws the columns; at the end, however it ends, they are printed whole.

    Nothing is shown if only the result is wanted, and nothing before the end without a terminal.
    """
    console = stdout()
    if quiet:
        yield lambda: None
        return
    try:
        if console.is_terminal:
            # Rich cannot draw over what has left the screen: while it grows, only as much is shown as fits.
            with Live(console=console, refresh_per_second=8, transient=True, vertical_overflow="crop") as live:
                yield lambda: live.update(draw(columns, console.width, height=console.height, thinking=thinking))
        else:
            yield lambda: None
    finally:
        console.print(draw(columns, console.width, thinking=thinking))


def draw(columns: Columns, width: int, *, height: int | None = None, thinking: bool = False) -> RenderableType:
    """Renders the turn in one, two or three columns by the width of the terminal.

    With a height, only rounds that are not over, or the last, and the end of each text: as much as fits.
    """
    count = 1 if width < NARROW else 2 if width < MIDDLE else 3
    shown = columns.in_order if height is None else columns.in_order[-1:]
    characters = None
    if height is not None:
        rows = sum(-(-len(each.advisor_responses) // count) for each in shown) + 1
        characters = max(height // rows - 2, 1) * max(width // count - 4, 1)
    colours = {each.id: each.colour for each in columns.panel.advisors}
    parts: list[RenderableType] = []
    for each in shown:
        parts += _round(columns, each, count, _Look(colours, thinking, characters))
    return Group(*parts)


@dataclass(frozen=True)
class _Look:
    """How boxes are drawn."""

    colours: Mapping[str, str]
    thinking: bool
    characters: int | None
    """Characters of each text, from its end; None: all of it."""

    def text(self, text: str) -> str:
        return text if self.characters is None else text[-self.characters :]


def _round(columns: Columns, now: RoundOut, count: int, look: _Look) -> Iterator[RenderableType]:
    if title := _TITLES.get(now.kind, ""):
        yield Text(f"\n{title}", style="bold")
    keys = [(now.id, voice, reply.part) for voice, reply in now.advisor_responses.items()]
    checks = [columns.voices.get((now.id, voice, "check")) for voice in now.advisor_responses]
    boxes = [_box(columns.voices[key], look, check) for key, check in zip(keys, checks, strict=True)]
    yield _grid(boxes, count)
    if now.tally is not None:
        names = {voice: reply.name for voice, reply in now.advisor_responses.items()}
        for camp in now.tally.camps:
            who = ", ".join(names.get(each, each) for each in camp.advisors)
            yield Text.assemble((f"  {printable(camp.position)}", "bold"), f": {printable(who)}")
    together = columns.voices.get((now.id, "synthesis", "synthesis"))
    if together is not None:
        yield _box(together, look, None)


def _grid(boxes: Sequence[RenderableType], count: int) -> Table:
    grid = Table.grid(expand=True)
    for _ in range(count):
        grid.add_column(ratio=1)
    for at in range(0, len(boxes), count):
        row = list(boxes[at : at + count])
        grid.add_row(*row, *([""] * (count - len(row))))
    return grid


def _box(voice: Voice, look: _Look, check: Voice | None) -> Box:
    reply = voice.reply
    phase = reply.phase
    of = f" {phase.name} {phase.turn} of {phase.of}" if phase is not None and phase.name and phase.of else ""
    title = Text.assemble((printable(reply.name), "bold"), (of, "dim"), (f" {_STATES[reply.state]}".rstrip(), "dim"))
    parts: list[RenderableType] = []
    if look.thinking and voice.thinking:
        parts.append(Text(look.text(printable(voice.thinking)), style="dim italic"))
    parts.append(_said(voice, look))
    parts += [] if check is None else _verdicts(check.reply)
    colour = look.colours.get(reply.advisor) or "dim"
    return Box(Group(*parts), title=title, title_align="left", border_style=colour)


def _verdicts(check: ReplyOut) -> Iterator[Text]:
    """Yields the expectations of the reply, and whether each holds."""
    verdicts: Any = (check.result or {}).get("verdicts", ())
    for each in verdicts:
        mark, style = ("✓", "green") if each["passed"] else ("✗", "red")
        yield Text(f"{mark} {printable(each['expected'])}", style=style)


def _said(voice: Voice, look: _Look) -> RenderableType:
    """Renders what the voice says, or why it does not."""
    reply = voice.reply
    if reply.error is not None:
        return Text(f"{printable(reply.error.message)} [{reply.error.code}]", style="red")
    if reply.part == "vote" and reply.result is not None:
        sure = round(float(str(reply.result.get("confidence") or 0)) * 100)
        head = (f"{printable(str(reply.result.get('position')))} ({sure} % sure)\n", "bold")
        return Text.assemble(head, printable(str(reply.result.get("reason") or "")))
    text = look.text(printable(voice.text))
    return Markdown(text) if reply.completed and look.characters is None else Text(text)
