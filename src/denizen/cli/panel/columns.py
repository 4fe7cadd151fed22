"""What the voices of a turn are saying, side by side in the terminal. Pure, but for the drawing itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.panel import Panel as Box
from rich.table import Table
from rich.text import Text

from denizen.cli.chat.rendering import printable
from denizen.client import Happened
from denizen.client.shapes import Panel, Reply, Round

NARROW, MIDDLE = 90, 150
"""Below the first, one column; below the second, two; else three."""
_STATES = {"waiting": "waits", "running": "…", "failed": "failed", "cancelled": "cancelled", "done": ""}
_TALK = ("reply", "crosstalk")
_TITLES = {"ask": "", "crosstalk": "They answer each other", "vote": "They vote"}


@dataclass
class Voice:
    """One voice in one round, as far as it was heard."""

    reply: Reply
    epoch: int = 0
    text: str = ""
    thinking: str = ""


@dataclass
class Columns:
    """One turn of a panel. Feed it what happens; it knows what is being said, and when all is said."""

    panel: Panel
    turn: int
    least_step: int = 0
    """Up to which step cross-talk was asked for."""
    rounds: dict[str, Round] = field(default_factory=dict[str, Round])
    voices: dict[tuple[str, str, str], Voice] = field(default_factory=dict[tuple[str, str, str], Voice])

    def hear(self, event: Happened) -> None:
        data: Any = event.data
        match event.type:
            case "panel.round":
                self.see(Round.model_validate(data))
            case "panel.reply":
                self._reply(data["round"], Reply.model_validate(data["reply"]))
            case "panel.delta":
                self._delta(data)
            case _:
                pass

    def see(self, now: Round) -> None:
        """The round as it is now."""
        if now.turn != self.turn:
            return
        self.rounds[now.id] = now
        for each in [
            *now.advisor_responses.values(),
            *([now.synthesis] if now.synthesis else []),
            *now.checks.values(),
        ]:
            self._reply(now.id, each)

    def _reply(self, round_id: str, reply: Reply) -> None:
        if round_id not in self.rounds:
            return
        key = round_id, reply.advisor, reply.part
        known = self.voices.get(key)
        if known is None or reply.epoch > known.epoch:
            known = self.voices[key] = Voice(reply, reply.epoch)
        known.reply = reply
        if reply.completed:
            known.text, known.thinking = reply.content, reply.thinking or ""

    def _delta(self, data: Mapping[str, Any]) -> None:
        voice = self.voices.get((data["round"], data["advisor"], data["part"]))
        if voice is None or data["epoch"] < voice.epoch or voice.reply.completed:
            return
        if data["epoch"] > voice.epoch:
            voice.epoch, voice.text, voice.thinking = data["epoch"], "", ""
        if data["thinking"]:
            voice.thinking = voice.thinking[: data["offset"]] + data["text"]
        else:
            voice.text = voice.text[: data["offset"]] + data["text"]

    @property
    def over(self) -> bool:
        """Whether all of the turn is said that begins by itself."""
        if not all(each.reply.completed for each in self.voices.values()):
            return False
        talk = [each for each in self.rounds.values() if each.kind != "vote"]
        newest = max(talk, key=lambda each: each.step)
        last = newest.step
        here = [voice for (round_id, _, part), voice in self.voices.items() if round_id == newest.id and part in _TALK]
        spoke = [each for each in here if each.reply.state == "done" and each.reply.advisor != "assistant"]
        if len(spoke) < 2:
            return True
        settings = self.panel.settings
        talks, puts = int(str(settings.get("crosstalk") or 0)), settings.get("synthesis") == "always"
        said = any(each.reply.part == "synthesis" for each in self.voices.values())
        return last >= max(talks, self.least_step) and (said or not puts)


def draw(columns: Columns, width: int, *, thinking: bool = False) -> RenderableType:
    """The turn as it stands, in one, two or three columns by the width of the terminal."""
    count = 1 if width < NARROW else 2 if width < MIDDLE else 3
    parts: list[RenderableType] = []
    colours = {each.id: each.colour for each in columns.panel.advisors}
    for each in sorted(columns.rounds.values(), key=lambda now: now.step):
        if title := _TITLES.get(each.kind, ""):
            parts.append(Text(f"\n{title}", style="bold"))
        spoken = [columns.voices[each.id, voice, reply.part] for voice, reply in each.advisor_responses.items()]
        parts.append(_grid([_box(voice, colours, thinking) for voice in spoken], count))
        together = columns.voices.get((each.id, "synthesis", "synthesis"))
        if together is not None:
            parts.append(_box(together, colours, thinking))
    return Group(*parts)


def _grid(boxes: Sequence[RenderableType], count: int) -> Table:
    grid = Table.grid(expand=True)
    for _ in range(count):
        grid.add_column(ratio=1)
    for at in range(0, len(boxes), count):
        row = list(boxes[at : at + count])
        grid.add_row(*row, *([""] * (count - len(row))))
    return grid


def _box(voice: Voice, colours: Mapping[str, str], thinking: bool) -> Box:
    reply = voice.reply
    phase = reply.phase
    of = f" {phase.name} {phase.turn} of {phase.of}" if phase is not None and phase.name and phase.of else ""
    title = Text.assemble((printable(reply.name), "bold"), (of, "dim"), (f" {_STATES[reply.state]}".rstrip(), "dim"))
    parts: list[RenderableType] = []
    if thinking and voice.thinking:
        parts.append(Text(printable(voice.thinking), style="dim italic"))
    parts.append(said(voice))
    return Box(Group(*parts), title=title, title_align="left", border_style=colours.get(reply.advisor) or "dim")


def said(voice: Voice) -> RenderableType:
    """What the voice says, or why it does not."""
    reply = voice.reply
    if reply.error is not None:
        return Text(f"{printable(reply.error.message)} [{reply.error.code}]", style="red")
    if reply.part == "vote" and reply.result is not None:
        sure = round(float(str(reply.result.get("confidence") or 0)) * 100)
        head = (f"{printable(str(reply.result.get('position')))} ({sure} % sure)\n", "bold")
        return Text.assemble(head, printable(str(reply.result.get("reason") or "")))
    text = printable(voice.text)
    return Markdown(text) if reply.completed else Text(text)
