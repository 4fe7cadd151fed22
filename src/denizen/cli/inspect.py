"""`denizen inspect`: shows the state of an agent on one page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from denizen.cli.api import AgentName, Api
from denizen.cli.console import MADE_FROM_OUTSIDE, printable, stdout
from denizen.cli.findings import counted
from denizen.clock import instant
from denizen.inbox.format import one_line
from denizen.plans.schedule import say
from denizen.shapes.minds import CycleOut, EventOut, LaneOut, MindOut, WindowOut, WindowPart
from denizen.shapes.stances import StandingOut
from denizen.shapes.usage import Limits

EVENTS_SHOWN: Final = 5
NOTES_SHOWN: Final = 20
PLANS_SHOWN: Final = 5
_STATUS: Final = {"alive": "green", "sleeping": "cyan", "paused": "yellow", "suspended": "yellow", "dead": "red"}
_OUTCOME: Final = {"acted": "green", "failed": "red"}
_PARTS: Final = {
    "self": ("self", "magenta"),
    "tools": ("tools", "yellow"),
    "layers": ("compacted cycles", "blue"),
    "recent": ("recent cycles", "cyan"),
    "open": ("open cycle", "green"),
    "free": ("free", "dim"),
}
"""The parts of the next request: the label of each, and its colour."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


def inspect(api: Api, agent: AgentName) -> None:
    """Show the state of an agent: window, inbox, goals and plans, usage, last cycles.

    Read-only: the agent is not affected.
    """
    found = api.use(lambda client: client.mind(agent))
    if not api.prints_json(found):
        show(stdout(), found)


# Output


def show(console: Console, found: MindOut) -> None:
    """Prints the whole page, as wide as the console."""
    console.print(_headline(found))
    for title, content in _sections(found, console.width):
        console.print()
        console.print(title)
        console.print(Padding(content, (0, 0, 0, 2), expand=False))


def _headline(found: MindOut) -> Text:
    line = Text.assemble(
        (printable(found.name), "bold"),
        (f"  @{found.handle}", "cyan"),
        ("  ", ""),
        (found.status, f"bold {_STATUS.get(found.status, '')}"),
    )
    for told in _how(found):
        line.append(f", {told}")
    line.append(f"  {counted(found.cycles, 'cycle')}  model {printable(found.model)}", "dim")
    return line


def _how(found: MindOut) -> Iterator[str]:
    if found.resting is not None:
        until = "it is raised" if found.resting.until is None else _say(found.resting.until)
        yield f"its budget ({found.resting.scope}) is used up until {until}"
    if found.holder is not None and found.held_until is not None:
        left = (found.held_until - found.at).total_seconds()
        yield f"held by {found.holder[:8]}… for {max(int(left), 0)} s"


def _say(at: datetime) -> str:
    return say(instant(at))


def _sections(found: MindOut, width: int) -> Iterator[tuple[Text, RenderableType]]:
    window = found.window
    used = f"{window.used:,} of {window.limit:,} tokens"
    yield _heading("Window", f"{used}, estimated; era {window.era}"), _window(window, width)
    waiting = sum(lane.waiting for lane in found.inbox)
    yield _heading("Inbox", f"{waiting:,} waiting" if waiting else "empty"), _inbox(found.inbox, found.dead)
    if found.waiting_calls:
        yield (
            _heading("Waits for", f"{len(found.waiting_calls)}"),
            _lines(
                f"{each.tool} {json.dumps(each.arguments, ensure_ascii=False)}  since {_say(each.created_at)}"
                for each in found.waiting_calls
            ),
        )
    if found.goals:
        yield (
            _heading("Goals"),
            _lines(f"{each.number}. {each.text} ({each.status}){_mark(each.outside)}" for each in found.goals),
        )
    if found.notes:
        more = _more(len(found.notes), NOTES_SHOWN)
        yield (
            _heading("Notes", more),
            _lines(f"{each.key}: {each.text}{_mark(each.outside)}" for each in found.notes[:NOTES_SHOWN]),
        )
    if found.plans:
        yield (
            _heading("Plans", _more(len(found.plans), PLANS_SHOWN)),
            _lines(
                f"{_say(each.next_run)}  {each.name or each.kind}: {each.instruction}"
                + ("" if each.state == "waiting" else f" ({each.state})")
                + _mark(each.outside)
                for each in found.plans[:PLANS_SHOWN]
            ),
        )
    if found.stances:
        yield _heading("Conversations"), _lines(line for each in found.stances for line in _standing(each))
    yield _heading("Used"), _used(found)
    if found.last_cycles:
        yield _heading("Last cycles"), _cycles(found.last_cycles)


def _standing(each: StandingOut) -> Iterator[str]:
    """Yields the profile and the state of mind of one conversation, each with its reason."""
    yield f"{each.space}: {each.told or 'no particular state of mind'}"
    if each.last is not None:
        reason = f": {each.last.reason}" if each.last.reason else ""
        yield f"  last {each.last.cause}, {each.last.outcome}{reason}"
    if each.profile.id is not None:
        yield f"  profile {each.profile.id}: {each.profile.reason}"


def _mark(outside: bool) -> str:
    return f" · {MADE_FROM_OUTSIDE}" if outside else ""


def _heading(title: str, told: str = "") -> Text:
    return Text.assemble((title, "bold"), (f"  {told}" if told else "", "dim"))


def _more(count: int, shown: int) -> str:
    return f"{count}, the first {shown}" if count > shown else ""


def _lines(lines: Any) -> RenderableType:
    return Group(*(Text(printable(one_line(each)), no_wrap=True, overflow="ellipsis") for each in lines))


def _window(window: WindowOut, width: int) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    bar = max(min(width, 120) - 48, 10)
    for part in window.parts:
        share = part.tokens / window.limit
        filled = Text(_bar(share, bar), style=_PARTS.get(part.part, ("", ""))[1], no_wrap=True)
        table.add_row(_part_name(part), f"{part.tokens:,}", Text(f"{share:4.0%}", style="dim"), filled)
    return table


def _part_name(part: WindowPart) -> str:
    name = _PARTS.get(part.part, (part.part, ""))[0]
    if part.first_cycle is None or part.last_cycle is None:
        return name
    return f"{name}, {part.first_cycle:,}–{part.last_cycle:,}{_mark(part.outside)}"


def _bar(share: float, width: int) -> str:
    """Returns a bar of this share of the width, to an eighth of a character; never empty for a positive share."""
    eighths = min(round(share * width * 8), width * 8) or (1 if share > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def _inbox(lanes: Sequence[LaneOut], dead: Sequence[EventOut]) -> RenderableType:
    rows: list[RenderableType] = []
    for lane in lanes:
        if lane.waiting or lane.taken:
            taken = f", {lane.taken:,} being handled" if lane.taken else ""
            rows.append(
                Text.assemble((lane.name, "red" if lane.name == "urgent" else ""), f"  {lane.waiting:,}{taken}")
            )
            rows += [_event(each) for each in lane.first[:EVENTS_SHOWN]]
    if dead:
        rows.append(Text.assemble(("dead", "red"), f"  {len(dead):,}, given up; they can be requeued"))
        rows += [_event(each) for each in dead[:EVENTS_SHOWN]]
    return Group(*rows) if rows else Text("nothing waits", style="dim")


def _event(event: EventOut) -> Text:
    who = event.sender or event.type.replace("_", " ")
    where = f" in {event.space}" if event.space else ""
    told = f"  {_say(event.created_at)}  {who}{where}: {event.text}"
    return Text(f"  {printable(one_line(told))}", no_wrap=True, overflow="ellipsis")


def _used(found: MindOut) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "right", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    for name, used in (("today", found.today), ("7 days", found.seven_days)):
        table.add_row(
            name,
            f"{used.calls:,} calls",
            f"{used.input_tokens:,} read",
            f"{used.output_tokens:,} written",
            f"{_dollars(used.dollars)}",
        )
    rows: list[RenderableType] = [table]
    share = found.seven_days.cached_share
    if share is not None:
        rows.append(Text(f"{share:.0%} of what was read in 7 days came from the provider's cache"))
    for whose, budget in (("its budget", found.budget), ("the organization's", found.organization_budget)):
        if budget is not None:
            rows.append(Text(f"{whose}: {_limits(budget)}"))
    return Group(*rows)


def _limits(budget: Limits) -> str:
    given = budget.model_dump(exclude_none=True)
    return ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in given.items()) or "no limit"


def _dollars(dollars: float) -> str:
    return f"${dollars:,.4f}"


def _cycles(lived: Sequence[CycleOut]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True, padding=(0, 1, 0, 0))
    for title in ("", "ended", "outcome", "read", "cached"):
        table.add_column(title, justify="left" if title in ("ended", "outcome") else "right", no_wrap=True)
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("summary", no_wrap=True, overflow="ellipsis", ratio=1)
    for each in lived:
        share = each.cache_read_tokens / each.input_tokens if each.input_tokens else 0.0
        table.add_row(
            f"{each.number}",
            Text("" if each.ended_at is None else f"{each.ended_at:%m-%d %H:%M}", style="dim"),
            Text(each.outcome, style=_OUTCOME.get(each.outcome, "")),
            f"{each.input_tokens:,}",
            f"{share:.0%}",
            _dollars(each.dollars),
            _summary(each),
        )
    return table


def _summary(each: CycleOut) -> Text:
    told = Text(printable(one_line(each.summary)))
    return Text.assemble(("held text from outside · ", "yellow"), told) if each.outside else told
