"""`denizen inspect`: how an agent is, on one page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from denizen.agents.inspection import Inspection, Lane, Lived, Used, Window
from denizen.cli.chat.rendering import printable
from denizen.cli.console import begin, print_json, stdout
from denizen.cli.house import open_records
from denizen.clock import SECOND, moment
from denizen.cycles.budgets import BudgetSettings
from denizen.inbox.events import Event
from denizen.inbox.format import one_line
from denizen.plans.schedule import describe, say
from denizen.settings import Settings

EVENTS_SHOWN: Final = 5
NOTES_SHOWN: Final = 20
PLANS_SHOWN: Final = 5
_STATUS: Final = {"alive": "green", "sleeping": "cyan", "paused": "yellow", "suspended": "yellow", "dead": "red"}
_OUTCOME: Final = {"acted": "green", "failed": "red"}
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


def inspect(
    context: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent's @handle.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show how an agent is: its window, its inbox, what it means to do, what it has used, its last cycles.

    Nothing is changed, and the agent does not notice.
    """
    found = asyncio.run(_inspect(begin(context).settings, agent))
    if as_json:
        print_json(as_object(found))
    else:
        show(stdout(), found)


async def _inspect(settings: Settings, agent: str) -> Inspection:
    async with open_records(settings) as (runtime, world):
        found = await runtime.find(agent, organization=world.owner.organization_id)
        return await runtime.inspect((await runtime.get_agent(found.id)).id)


# For people


def show(console: Console, found: Inspection) -> None:
    """The whole page, as wide as the console."""
    console.print(_headline(found))
    for title, content in _sections(found, console.width):
        console.print()
        console.print(title)
        console.print(Padding(content, (0, 0, 0, 2), expand=False))


def _headline(found: Inspection) -> Text:
    entity, lived = found.agent.entity, found.cycle_count
    line = Text.assemble(
        (printable(entity.name), "bold"),
        (f"  @{entity.handle}", "cyan"),
        ("  ", ""),
        (found.status, f"bold {_STATUS[found.status]}"),
    )
    for told in _how(found):
        line.append(f", {told}")
    line.append(f"  {lived:,} cycle{'' if lived == 1 else 's'}  model {found.agent.definition.model}", "dim")
    return line


def _how(found: Inspection) -> Iterator[str]:
    if found.resting is not None:
        until = "it is raised" if found.resting.until is None else say(found.resting.until)
        yield f"its budget ({found.resting.scope}) is used up until {until}"
    if found.holder is not None and found.held_until is not None:
        yield f"held by {found.holder[:8]}… for {max(found.held_until - found.at, 0) // SECOND} s"


def _sections(found: Inspection, width: int) -> Iterator[tuple[Text, RenderableType]]:
    window = found.window
    used = f"{window.used:,} of {window.limit:,} tokens"
    yield _heading("Window", f"{used}, estimated; era {window.era}"), _window(window, found.cycle_count, width)
    waiting = sum(lane.waiting for lane in found.lanes)
    yield _heading("Inbox", f"{waiting:,} waiting" if waiting else "empty"), _inbox(found.lanes, found.dead)
    if found.calls:
        yield (
            _heading("Waits for", f"{len(found.calls)}"),
            _lines(f"{each.tool} {each.arguments}  since {say(each.created_at)}" for each in found.calls),
        )
    if found.goals:
        yield _heading("Goals"), _lines(f"{each.number}. {each.text} ({each.status})" for each in found.goals)
    if found.notes:
        more = _more(len(found.notes), NOTES_SHOWN)
        yield _heading("Notes", more), _lines(f"{each.key}: {each.text}" for each in found.notes[:NOTES_SHOWN])
    if found.plans:
        yield (
            _heading("Plans", _more(len(found.plans), PLANS_SHOWN)),
            _lines(
                f"{say(each.next_run)}  {each.name or each.kind}: {each.instruction}"
                + ("" if each.state == "waiting" else f" ({each.state})")
                for each in found.plans[:PLANS_SHOWN]
            ),
        )
    yield _heading("Used"), _used(found)
    if found.cycles:
        yield _heading("Last cycles"), _cycles(found.cycles)


def _heading(title: str, told: str = "") -> Text:
    return Text.assemble((title, "bold"), (f"  {told}" if told else "", "dim"))


def _more(count: int, shown: int) -> str:
    return f"{count}, the first {shown}" if count > shown else ""


def _lines(lines: Any) -> RenderableType:
    return Group(*(Text(printable(one_line(each)), no_wrap=True, overflow="ellipsis") for each in lines))


def _window(window: Window, lived: int, width: int) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    bar = max(min(width, 120) - 48, 10)
    for name, tokens, style in _layers(window, lived):
        share = tokens / window.limit
        table.add_row(
            name, f"{tokens:,}", Text(f"{share:4.0%}", style="dim"), Text(_bar(share, bar), style=style, no_wrap=True)
        )
    return table


def _layers(window: Window, lived: int) -> Iterator[tuple[str, int, str]]:
    """What the next request holds, in its order, and what is left."""
    yield "self", window.self, "magenta"
    yield "tools", window.tools, "yellow"
    before = lived if window.first_cycle is None else window.first_cycle - 1
    if window.layers:
        yield f"compacted, cycles 1–{before:,}", window.layers, "blue"
    recent = "recent cycles"
    if window.first_cycle is not None:
        recent += f", {window.first_cycle:,}–{lived:,}"
    yield recent, window.recent, "cyan"
    if window.open:
        yield "open cycle", window.open, "green"
    yield "free", window.free, "dim"


def _bar(share: float, width: int) -> str:
    """A bar of so much of the width, to an eighth of a character; never nothing for something."""
    eighths = min(round(share * width * 8), width * 8) or (1 if share > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def _inbox(lanes: Sequence[Lane], dead: Sequence[Event]) -> RenderableType:
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


def _event(event: Event) -> Text:
    who = event.sender_name or event.type.replace("_", " ")
    where = f" in {event.space_name}" if event.space_name else ""
    told = f"  {say(event.created_at)}  {who}{where}: {event.text}"
    return Text(f"  {printable(one_line(told))}", no_wrap=True, overflow="ellipsis")


def _used(found: Inspection) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "right", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    for name, used in (("today", found.today), ("7 days", found.week)):
        table.add_row(
            name,
            f"{used.calls:,} calls",
            f"{used.input_tokens:,} read",
            f"{used.output_tokens:,} written",
            f"{_dollars(used.cost_micros)}",
        )
    rows: list[RenderableType] = [table]
    if found.week.cached_share is not None:
        rows.append(Text(f"{found.week.cached_share:.0%} of what was read in 7 days came from the provider's cache"))
    for whose, budget in (("its budget", found.budget), ("the organization's", found.shared_budget)):
        if budget is not None:
            rows.append(Text(f"{whose}: {_limits(budget)}"))
    return Group(*rows)


def _limits(budget: BudgetSettings) -> str:
    given = budget.model_dump(exclude_none=True)
    return ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in given.items()) or "no limit"


def _dollars(micros: int) -> str:
    return f"${micros / 1_000_000:,.4f}"


def _cycles(lived: Sequence[Lived]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True, padding=(0, 1, 0, 0))
    for title in ("", "ended", "outcome", "read", "cached"):
        table.add_column(title, justify="left" if title in ("ended", "outcome") else "right", no_wrap=True)
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("summary", no_wrap=True, overflow="ellipsis", ratio=1)
    for each in lived:
        record, share = each.record, each.usage.cache_read / each.usage.input if each.usage.input else 0.0
        table.add_row(
            f"{record.number}",
            Text(f"{moment(record.ended_at):%m-%d %H:%M}", style="dim"),
            Text(record.outcome, style=_OUTCOME.get(record.outcome, "")),
            f"{each.usage.input:,}",
            f"{share:.0%}",
            _dollars(record.cost_micros),
            Text(printable(one_line(record.summary))),
        )
    return table


# For programs


def as_object(found: Inspection) -> dict[str, Any]:
    """Everything there is to see, as JSON tells it."""
    agent, window = found.agent, found.window
    return {
        "id": agent.id,
        "handle": agent.entity.handle,
        "name": agent.name,
        "model": agent.definition.model,
        "status": found.status,
        "holder": found.holder,
        "held_until": _time(found.held_until),
        "resting": None
        if found.resting is None
        else {"scope": found.resting.scope, "until": _time(found.resting.until)},
        "cycles": found.cycle_count,
        "window": {
            "limit": window.limit,
            "self": window.self,
            "tools": window.tools,
            "layers": window.layers,
            "recent": window.recent,
            "recent_cycles": window.recent_cycles,
            "first_cycle": window.first_cycle,
            "open": window.open,
            "free": window.free,
            "era": window.era,
        },
        "inbox": {
            lane.name: {"waiting": lane.waiting, "taken": lane.taken, "first": [_as_event(e) for e in lane.first]}
            for lane in found.lanes
        },
        "dead": [_as_event(each) for each in found.dead],
        "goals": [
            {"number": each.number, "text": each.text, "status": each.status, "priority": each.priority}
            for each in found.goals
        ],
        "notes": {each.key: each.text for each in found.notes},
        "plans": [
            {
                "id": each.id,
                "kind": each.kind,
                "name": each.name,
                "instruction": each.instruction,
                "schedule": describe(each.schedule),
                "state": each.state,
                "next_run": _time(each.next_run),
            }
            for each in found.plans
        ],
        "waiting_calls": [
            {
                "id": each.id,
                "tool": each.tool,
                "arguments": each.parsed_arguments,
                "created_at": _time(each.created_at),
                "expires_at": _time(each.expires_at),
            }
            for each in found.calls
        ],
        "budget": None if found.budget is None else found.budget.model_dump(mode="json", exclude_none=True),
        "organization_budget": None
        if found.shared_budget is None
        else found.shared_budget.model_dump(mode="json", exclude_none=True),
        "used": {"today": _as_used(found.today), "seven_days": _as_used(found.week)},
        "last_cycles": [_as_lived(each) for each in found.cycles],
    }


def _as_event(event: Event) -> dict[str, Any]:
    return {
        "id": event.id,
        "type": event.type,
        "from": event.sender_name,
        "space": event.space_name,
        "text": event.text,
        "attempts": event.attempts,
        "created_at": _time(event.created_at),
    }


def _as_used(used: Used) -> dict[str, Any]:
    return {
        "calls": used.calls,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cache_read_tokens": used.cache_read_tokens,
        "cache_write_tokens": used.cache_write_tokens,
        "cached_share": used.cached_share,
        "dollars": used.cost_micros / 1_000_000,
    }


def _as_lived(each: Lived) -> dict[str, Any]:
    record = each.record
    return {
        "number": record.number,
        "outcome": record.outcome,
        "stop_reason": record.stop_reason,
        "summary": record.summary,
        "steps": record.steps,
        "started_at": _time(record.started_at),
        "ended_at": _time(record.ended_at),
        "input_tokens": each.usage.input,
        "output_tokens": each.usage.output,
        "cache_read_tokens": each.usage.cache_read,
        "cache_write_tokens": each.usage.cache_write,
        "dollars": record.cost_micros / 1_000_000,
    }


def _time(at: int | None) -> str | None:
    return None if at is None else moment(at).isoformat()
