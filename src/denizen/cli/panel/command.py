"""`denizen panel`: open panels, choose who advises in them, ask, and read what was said."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer
from rich import box
from rich.live import Live
from rich.table import Table
from rich.text import Text

from denizen.cli.chat.rendering import printable
from denizen.cli.console import begin, print_json, stderr, stdout
from denizen.cli.desk.opening import AsJson, Token, Url, kept_token
from denizen.cli.house import open_house, open_records
from denizen.cli.panel.columns import Columns, draw
from denizen.cli.panel.desk import LocalPanels, Panels, advisor_in, find
from denizen.client import Client, Connected, Happened
from denizen.client.shapes import Advisor, Panel, Round
from denizen.client.streaming import LifeEvent
from denizen.errors import InvalidInput, TokenRefused
from denizen.settings import Settings

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Ask several advisors at once.")
advisors_app = typer.Typer(add_completion=False, no_args_is_help=True, help="Choose who advises in a panel.")
app.add_typer(advisors_app, name="advisors")

PanelName = Annotated[str, typer.Argument(metavar="PANEL", help="Its name or the beginning of it, or its id.")]
AdvisorName = Annotated[str, typer.Argument(metavar="ADVISOR", help="Its @handle, name or id.")]
_Active = Annotated[
    bool | None, typer.Option("--active/--inactive", help="Whether it answers when nobody is addressed.")
]
_Description = Annotated[str | None, typer.Option(help="Who it is, said to itself; `-` reads it from stdin.")]
_Model = Annotated[str | None, typer.Option(help="Its own model, as `provider:name`.")]
_MaxTokens = Annotated[int | None, typer.Option(min=1, help="How long a reply may be.")]
_Reasoning = Annotated[
    bool | None, typer.Option("--reasoning/--no-reasoning", help="Whether it thinks before it speaks.")
]
_Expect = Annotated[list[str] | None, typer.Option(help="What is expected of each of its replies; several times.")]

LOOK_SECONDS: Final = 2

T = TypeVar("T")


def at_panels(
    context: typer.Context,
    url: str | None,
    token: str | None,
    work: Callable[[Panels], Awaitable[T]],
    *,
    answering: bool = False,
) -> T:
    """What the work gives, done where it is to be done; with `answering`, models answer here if no server does."""
    loaded = begin(context)

    async def done() -> T:
        async with _opened(loaded.settings, url, token, answering) as desk:
            return await work(desk)

    return asyncio.run(done())


@asynccontextmanager
async def _opened(settings: Settings, url: str | None, token: str | None, answering: bool) -> AsyncGenerator[Panels]:
    if url is not None:
        secret = token or kept_token(settings)
        if secret is None:
            raise TokenRefused(f"The server at {url} wants an access token: give it with --token or DENIZEN_TOKEN.")
        async with Client(url, secret) as client:
            yield client
    elif answering:
        async with open_house(settings) as house, house.runtime.living():
            yield LocalPanels(house.runtime, house.world.owner)
    else:
        async with open_records(settings) as (runtime, world):
            yield LocalPanels(runtime, world.owner)


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Show the panels you are in, and who advises in them."""
    found = at_panels(context, url, token, lambda desk: desk.panels())
    if as_json:
        print_json([each.model_dump(mode="json") for each in found])
    elif found:
        stdout().print(_table(found))
    else:
        stderr().print("You are in no panel. `denizen panel create NAME ADVISOR…` opens one.", style="dim")


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What it is called.")],
    advisors: Annotated[list[str] | None, typer.Argument(metavar="[ADVISOR]...", help="The names of advisors.")] = None,
    private: Annotated[bool, typer.Option("--private", help="Nobody else may know of it.")] = False,
    model: Annotated[str | None, typer.Option(help="What answers, as `provider:name`.")] = None,
    synthesis: Annotated[bool, typer.Option("--synthesis", help="Put every turn together.")] = False,
    crosstalk: Annotated[int, typer.Option(min=0, max=5, help="How often they answer each other.")] = 0,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Open a panel with these advisors."""
    settings: dict[str, Any] = {"crosstalk": crosstalk} if crosstalk else {}
    settings |= {"model": model} if model else {}
    settings |= {"synthesis": "always"} if synthesis else {}
    drafts: list[dict[str, Any]] = [{"name": each} for each in advisors or ()]
    made = at_panels(
        context, url, token, lambda desk: desk.create_panel(name, drafts, private=private, settings=settings)
    )
    if as_json:
        print_json(made.model_dump(mode="json"))
    else:
        stderr().print(Text(f'The panel "{printable(made.name)}" is open. Its id is {made.id}.', style="dim"))


@app.command()
def ask(
    context: typer.Context,
    panel: PanelName,
    text: Annotated[str, typer.Argument(help="Markdown; `-` reads it from stdin. `@handle`: only those answer.")],
    thinking: Annotated[bool, typer.Option("--thinking", help="Show what reasoning models think.")] = False,
    synthesis: Annotated[bool, typer.Option("--synthesis", help="Put together what was said.")] = False,
    crosstalk: Annotated[int, typer.Option(min=0, max=5, help="Let them answer each other so often.")] = 0,
    vote: Annotated[str | None, typer.Option(help="Have them vote on this afterwards.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Ask a panel, and see everyone answer side by side."""
    said = sys.stdin.read() if text == "-" else text

    async def work(desk: Panels) -> list[Round]:
        there = await find(desk, panel)
        async with aclosing(desk.stream_panel(there.id)) as events:
            async for event in events:
                if isinstance(event, Connected):
                    break
            asked = await desk.ask_panel(there.id, said)
            columns = Columns(there, asked.turn)
            columns.see(asked)
            with _Screen(columns, thinking=thinking, quiet=as_json) as show:
                await _follow(desk, events, columns, show)
                if crosstalk:
                    begun = await desk.crosstalk(there.id, asked.id, rounds=crosstalk)
                    columns.least_step = begun.step + crosstalk - 1
                    columns.see(begun)
                    await _follow(desk, events, columns, show)
                if synthesis:
                    last = max((each for each in columns.rounds.values() if each.kind != "vote"), key=lambda r: r.step)
                    columns.see(await desk.synthesize(there.id, last.id))
                    await _follow(desk, events, columns, show)
                if vote is not None:
                    columns.see(await desk.vote(there.id, asked.id, vote))
                    await _follow(desk, events, columns, show)
        return [await desk.round(there.id, each) for each in columns.rounds]

    told = at_panels(context, url, token, work, answering=True)
    if as_json:
        print_json([each.model_dump(mode="json") for each in told])
    if any(reply.state != "done" for each in told for reply in each.advisor_responses.values()):
        raise typer.Exit(1)


@app.command()
def transcript(
    context: typer.Context,
    panel: PanelName,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write; stdout without it.")] = None,
    url: Url = None,
    token: Token = None,
) -> None:
    """Write all that was said in a panel, in Markdown."""

    async def work(desk: Panels) -> str:
        return await desk.panel_transcript((await find(desk, panel)).id)

    text = at_panels(context, url, token, work)
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")


@advisors_app.command("list")
def list_advisors(
    context: typer.Context, panel: PanelName, as_json: AsJson = False, url: Url = None, token: Token = None
) -> None:
    """Show who advises in a panel, in order."""
    there = at_panels(context, url, token, lambda desk: find(desk, panel))
    _told_advisors(there.advisors, as_json)


@advisors_app.command()
def add(
    context: typer.Context,
    panel: PanelName,
    name: Annotated[str, typer.Argument(help="What it is called.")],
    description: _Description = None,
    group: Annotated[str, typer.Option(help="`@group` addresses all of it.")] = "",
    colour: Annotated[str, typer.Option(help="`#rrggbb`.")] = "",
    model: _Model = None,
    max_tokens: _MaxTokens = None,
    reasoning: _Reasoning = None,
    expect: _Expect = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Add an advisor to a panel."""
    fields = {"name": name, "group": group, "colour": colour}
    fields |= _given(description, model, max_tokens, reasoning, expect)

    async def work(desk: Panels) -> Advisor:
        return await desk.add_advisor((await find(desk, panel)).id, fields)

    _told_advisors([at_panels(context, url, token, work)], as_json)


@advisors_app.command()
def edit(
    context: typer.Context,
    panel: PanelName,
    advisor: AdvisorName,
    name: Annotated[str | None, typer.Option(help="What it is called from now on.")] = None,
    description: _Description = None,
    group: Annotated[str | None, typer.Option(help="`@group` addresses all of it.")] = None,
    colour: Annotated[str | None, typer.Option(help="`#rrggbb`.")] = None,
    active: _Active = None,
    model: _Model = None,
    max_tokens: _MaxTokens = None,
    reasoning: _Reasoning = None,
    expect: _Expect = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Change an advisor. What it has said stays its own."""
    changes = _given(description, model, max_tokens, reasoning, expect)
    more = {"name": name, "group": group, "colour": colour, "active": active}
    changes |= {key: value for key, value in more.items() if value is not None}
    if not changes:
        raise InvalidInput("Say what shall be different, for instance --name or --inactive.")

    async def work(desk: Panels) -> Advisor:
        there = await find(desk, panel)
        return await desk.change_advisor(there.id, advisor_in(there, advisor).id, **changes)

    _told_advisors([at_panels(context, url, token, work)], as_json)


@advisors_app.command()
def remove(
    context: typer.Context, panel: PanelName, advisor: AdvisorName, url: Url = None, token: Token = None
) -> None:
    """Remove an advisor. What it has said stays."""

    async def work(desk: Panels) -> Advisor:
        there = await find(desk, panel)
        gone = advisor_in(there, advisor)
        await desk.remove_advisor(there.id, gone.id)
        return gone

    gone = at_panels(context, url, token, work)
    stderr().print(Text(f"{printable(gone.name)} is asked no more.", style="dim"))


@advisors_app.command()
def reorder(
    context: typer.Context,
    panel: PanelName,
    advisors: Annotated[list[str], typer.Argument(metavar="ADVISOR...", help="In this order; the others follow.")],
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Put the advisors of a panel in order."""

    async def work(desk: Panels) -> list[Advisor]:
        there = await find(desk, panel)
        return await desk.order_advisors(there.id, [advisor_in(there, each).id for each in advisors])

    _told_advisors(at_panels(context, url, token, work), as_json)


@advisors_app.command()
def export(context: typer.Context, panel: PanelName, url: Url = None, token: Token = None) -> None:
    """Print the advisors of a panel as JSON, to take them to another."""

    async def work(desk: Panels) -> dict[str, Any]:
        return await desk.export_advisors((await find(desk, panel)).id)

    print_json(at_panels(context, url, token, work))


@advisors_app.command("import")
def import_(
    context: typer.Context,
    panel: PanelName,
    file: Annotated[Path, typer.Argument(help="What `export` printed; `-` reads it from stdin.")],
    replace: Annotated[bool, typer.Option("--replace", help="Remove those that are there.")] = False,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Bring exported advisors into a panel: all of them, or with an error none."""
    document = _document(file)

    async def work(desk: Panels) -> list[Advisor]:
        return await desk.import_advisors((await find(desk, panel)).id, document, replace=replace)

    _told_advisors(at_panels(context, url, token, work), as_json)


@advisors_app.command()
def suggest(
    context: typer.Context,
    panel: PanelName,
    topic: Annotated[str, typer.Argument(help="What they shall help to think about.")],
    count: Annotated[int, typer.Option(min=1, max=20, help="How many.")] = 8,
    take: Annotated[bool, typer.Option("--add", help="Add all of them to the panel.")] = False,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Have a model propose advisors for a topic, each with a reason."""

    async def work(desk: Panels) -> list[Any]:
        there = await find(desk, panel)
        found = await desk.suggest_advisors(there.id, topic, count=count)
        for each in found if take else ():
            await desk.add_advisor(there.id, {"name": each.name, "description": each.description})
        return found

    found = at_panels(context, url, token, work, answering=True)
    if as_json:
        print_json([each.model_dump(mode="json") for each in found])
        return
    for each in found:
        stdout().print(Text.assemble((printable(each.name), "bold"), (f"  {each.kind}", "dim")))
        stdout().print(Text(f"  {printable(each.description)}"))
        stdout().print(Text(f"  {printable(each.reason)}", style="dim"))


class _Screen:
    """Shows the columns while they grow; nothing where only the result is wanted."""

    def __init__(self, columns: Columns, *, thinking: bool, quiet: bool) -> None:
        self._columns, self._thinking = columns, thinking
        console = stdout()
        self._width = console.width
        self._live = None if quiet else Live(console=console, refresh_per_second=8, vertical_overflow="visible")

    def __enter__(self) -> Callable[[], None]:
        if self._live is not None:
            self._live.__enter__()
        self._show()
        return self._show

    def __exit__(self, *error: Any) -> None:
        self._show()
        if self._live is not None:
            self._live.__exit__(*error)

    def _show(self) -> None:
        if self._live is not None:
            self._live.update(draw(self._columns, self._width, thinking=self._thinking))


async def _follow(desk: Panels, events: AsyncGenerator[LifeEvent], columns: Columns, show: Callable[[], None]) -> None:
    """Until all is said that begins by itself. Who answers may be a server on the same database: so we also look."""
    coming: asyncio.Future[LifeEvent] | None = None
    try:
        while not columns.over:
            coming = coming or asyncio.ensure_future(_next(events))
            done, _ = await asyncio.wait((coming,), timeout=LOOK_SECONDS)
            if done:
                event, coming = coming.result(), None
                if isinstance(event, Happened):
                    columns.hear(event)
            else:
                for each in list(columns.rounds):
                    columns.see(await desk.round(columns.panel.id, each))
            show()
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.wait((coming,))


async def _next(events: AsyncGenerator[LifeEvent]) -> LifeEvent:
    return await anext(events)


def _given(
    description: str | None,
    model: str | None,
    max_tokens: int | None,
    reasoning: bool | None,
    expect: list[str] | None,
) -> dict[str, Any]:
    text = sys.stdin.read() if description == "-" else description
    given = {"description": text, "model": model, "max_tokens": max_tokens, "reasoning": reasoning}
    given["assertions"] = expect  # pyright: ignore[reportArgumentType]
    return {name: value for name, value in given.items() if value is not None}


def _document(file: Path) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        document = json.loads(text)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read as JSON: {error}.") from error
    if not isinstance(document, dict):
        raise InvalidInput(f"{file}: what `denizen panel advisors export` printed is expected.")
    return document  # pyright: ignore[reportUnknownVariableType]


def _table(found: list[Panel]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("panel", no_wrap=True)
    table.add_column("turns", justify="right")
    table.add_column("advisors", ratio=1)
    for each in found:
        names = ", ".join(f"@{advisor.handle}" for advisor in each.advisors) or "none: the plain assistant answers"
        table.add_row(Text(printable(each.name), style="cyan"), f"{each.turns:,}", Text(names, style="dim"))
    return table


def _told_advisors(listed: Any, as_json: bool) -> None:
    if as_json:
        print_json([each.model_dump(mode="json") for each in listed])
        return
    for each in listed:
        state = "" if each.active else "  switched off"
        head = (f"@{each.handle}", "cyan"), (f"  {printable(each.name)}", "bold"), (f"  {each.group}{state}", "dim")
        stdout().print(Text.assemble(*head))
        if each.description:
            stdout().print(Text(f"  {printable(each.description)}", style="dim"))
