"""`denizen panel advisors`: lists and changes the advisors of a panel."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import JsonValue
from rich.text import Text

from denizen.cli.api import Api
from denizen.cli.console import given_text, print_json, printable, stderr, stdout
from denizen.cli.panel.finding import PanelName, advisor_in, in_panel
from denizen.client import Client
from denizen.errors import InvalidInput
from denizen.shapes.panels import Advisor, Panel, SuggestionOut

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Manage the advisors of a panel.")

AdvisorName = Annotated[str, typer.Argument(metavar="ADVISOR", help="Its @handle, name or id.")]
_Active = Annotated[
    bool | None, typer.Option("--active/--inactive", help="Whether it answers when no advisor is addressed.")
]
_Description = Annotated[str | None, typer.Option(help="Its perspective, as an instruction; `-` reads it from stdin.")]
_Model = Annotated[str | None, typer.Option(help="Its own model, as `provider:name`.")]
_MaxTokens = Annotated[int | None, typer.Option(min=1, help="Maximum tokens of a reply.")]
_Reasoning = Annotated[
    bool | None, typer.Option("--reasoning/--no-reasoning", help="Whether its model thinks before it answers.")
]
_Reflection = Annotated[
    str | None, typer.Option(help="Reflection: a quick-start profile, such as basic; empty: the panel's setting.")
]
_Expect = Annotated[
    list[str] | None, typer.Option(help="An expectation that each reply is checked against. May be repeated.")
]


@app.command("list")
def list_advisors(api: Api, panel: PanelName) -> None:
    """List the advisors of a panel, in order."""

    async def work(_client: Client, there: Panel) -> list[Advisor]:
        return there.advisors

    _tell(api, in_panel(api, panel, work))


@app.command()
def add(
    api: Api,
    panel: PanelName,
    name: Annotated[str, typer.Argument(help="The name.")],
    description: _Description = None,
    group: Annotated[str, typer.Option(help="`@group` addresses all its members.")] = "",
    colour: Annotated[str, typer.Option(help="`#rrggbb`.")] = "",
    model: _Model = None,
    max_tokens: _MaxTokens = None,
    reasoning: _Reasoning = None,
    expect: _Expect = None,
    reflection: _Reflection = None,
) -> None:
    """Add an advisor to a panel."""
    fields: dict[str, Any] = {"name": name, "group": group, "colour": colour}
    fields |= _given(description, model, max_tokens, reasoning, expect) | _reflection(reflection)

    async def work(client: Client, there: Panel) -> Advisor:
        return await client.add_advisor(there.id, fields)

    _tell(api, [in_panel(api, panel, work, models=bool(reflection))])


@app.command()
def edit(
    api: Api,
    panel: PanelName,
    advisor: AdvisorName,
    name: Annotated[str | None, typer.Option(help="The new name.")] = None,
    description: _Description = None,
    group: Annotated[str | None, typer.Option(help="`@group` addresses all its members.")] = None,
    colour: Annotated[str | None, typer.Option(help="`#rrggbb`.")] = None,
    active: _Active = None,
    model: _Model = None,
    max_tokens: _MaxTokens = None,
    reasoning: _Reasoning = None,
    expect: _Expect = None,
    reflection: _Reflection = None,
) -> None:
    """Change an advisor. Its earlier replies stay."""
    changes = _given(description, model, max_tokens, reasoning, expect)
    more = {"name": name, "group": group, "colour": colour, "active": active}
    changes |= {key: value for key, value in more.items() if value is not None}
    if not changes and reflection is None:
        raise InvalidInput("Nothing to change. Use for instance --name or --inactive.")

    async def work(client: Client, there: Panel) -> Advisor:
        found = advisor_in(there, advisor)
        how = _reflection(reflection, found.reflection)
        return await client.change_advisor(there.id, found.id, **changes, **how)

    _tell(api, [in_panel(api, panel, work, models=bool(reflection))])


@app.command()
def remove(api: Api, panel: PanelName, advisor: AdvisorName) -> None:
    """Remove an advisor. Its replies stay."""

    async def work(client: Client, there: Panel) -> Advisor:
        gone = advisor_in(there, advisor)
        await client.remove_advisor(there.id, gone.id)
        return gone

    gone = in_panel(api, panel, work)
    if api.as_json:
        _tell(api, [gone])
    else:
        stderr().print(Text(f"{printable(gone.name)} is removed. Its replies stay.", style="dim"))


@app.command()
def reorder(
    api: Api,
    panel: PanelName,
    advisors: Annotated[list[str], typer.Argument(metavar="ADVISOR...", help="In this order; the others follow.")],
) -> None:
    """Reorder the advisors of a panel."""

    async def work(client: Client, there: Panel) -> list[Advisor]:
        return await client.order_advisors(there.id, [advisor_in(there, each).id for each in advisors])

    _tell(api, in_panel(api, panel, work))


@app.command()
def export(api: Api, panel: PanelName) -> None:
    """Export the advisors of a panel as JSON."""

    async def work(client: Client, there: Panel) -> dict[str, Any]:
        return await client.export_advisors(there.id)

    print_json(in_panel(api, panel, work))


@app.command("import")
def import_(
    api: Api,
    panel: PanelName,
    file: Annotated[Path, typer.Argument(help="What `export` printed; `-` reads it from stdin.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace the current advisors.")] = False,
) -> None:
    """Import exported advisors into a panel: all of them or, with an error, none."""
    document = _document(file)

    async def work(client: Client, there: Panel) -> list[Advisor]:
        return await client.import_advisors(there.id, document, replace=replace)

    _tell(api, in_panel(api, panel, work, models=True))


@app.command()
def suggest(
    api: Api,
    panel: PanelName,
    topic: Annotated[str, typer.Argument(help="The topic they should help with.")],
    count: Annotated[int, typer.Option(min=1, max=20, help="How many.")] = 8,
    take: Annotated[bool, typer.Option("--add", help="Add all of them to the panel.")] = False,
) -> None:
    """Let a model suggest advisors for a topic, each with a reason."""

    async def work(client: Client, there: Panel) -> list[SuggestionOut]:
        found = await client.suggest_advisors(there.id, topic, count=count)
        for each in found if take else ():
            await client.add_advisor(there.id, {"name": each.name, "description": each.description})
        return found

    found = in_panel(api, panel, work, answering=True)
    if api.prints_json(found):
        return
    for each in found:
        stdout().print(Text.assemble((printable(each.name), "bold"), (f"  {each.kind}", "dim")))
        stdout().print(Text(f"  {printable(each.description)}"))
        stdout().print(Text(f"  {printable(each.reason)}", style="dim"))


def _given(
    description: str | None,
    model: str | None,
    max_tokens: int | None,
    reasoning: bool | None,
    expect: list[str] | None,
) -> dict[str, Any]:
    text = None if description is None else given_text(description)
    given = {"description": text, "model": model, "max_tokens": max_tokens, "reasoning": reasoning}
    given["assertions"] = expect  # pyright: ignore[reportArgumentType]
    return {name: value for name, value in given.items() if value is not None}


def _reflection(profile: str | None, now: Mapping[str, JsonValue] | None = None) -> dict[str, Any]:
    if profile is None:
        return {}
    return {"reflection": with_profile(now or {}, profile) if profile else None}


def with_profile(now: Mapping[str, JsonValue], profile: str) -> dict[str, JsonValue]:
    """Returns the reflection settings with this profile, instead of their own sentiment settings."""
    return {**{name: value for name, value in now.items() if name != "sentiment"}, "profile": profile}


def _document(file: Path) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        document = json.loads(text)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read as JSON: {error}.") from error
    if not isinstance(document, dict):
        raise InvalidInput(f"{file}: what `denizen panel advisors export` printed is expected.")
    return document  # pyright: ignore[reportUnknownVariableType]


def _tell(api: Api, listed: Iterable[Advisor]) -> None:
    if api.prints_json(listed):
        return
    for each in listed:
        state = "" if each.active else "  switched off"
        head = (
            (f"@{each.handle}", "cyan"),
            (f"  {printable(each.name)}", "bold"),
            (f"  {printable(each.group)}{state}", "dim"),
        )
        stdout().print(Text.assemble(*head))
        if each.description:
            stdout().print(Text(f"  {printable(each.description)}", style="dim"))
        if each.reflection is not None:
            stdout().print(Text(f"  reflection {reflection_line(each.reflection)}", style="dim"))


def reflection_line(settings: Mapping[str, JsonValue]) -> str:
    """Returns the profile, or that it has settings of its own, and the number of its own metaprompts."""
    own, sentiment = settings.get("metaprompts") or [], settings.get("sentiment")
    by = printable(str(settings.get("profile", "off"))) if sentiment is None else "with settings of its own"
    return f"{by}, metaprompts of its own: {len(own)}" if isinstance(own, list) and own else by
