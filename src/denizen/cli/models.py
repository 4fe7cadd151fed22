"""`denizen models`: which models there are, what each can do, and whether one answers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich import box
from rich.table import Table

from denizen.cli.api import AsJson
from denizen.cli.console import begin, print_json, stderr, stdout
from denizen.errors import DenizenError, ModelError

if TYPE_CHECKING:
    from denizen.models.abilities import Abilities
    from denizen.models.catalog import Models
    from denizen.models.probing import Tested
    from denizen.settings.shape import Settings

app = typer.Typer(add_completion=False, help="Show which models there are, and test one.")

ALL_HELP: Final = "Also every model that is known of providers for which there is a key."


@dataclass(frozen=True, slots=True)
class Listed:
    """One model."""

    name: str
    default: bool
    reachable: bool | None
    """None: it was not asked, as that would cost something."""
    found: str
    """Why it is listed."""
    abilities: Abilities | None
    """None: it cannot be had."""
    problem: str = ""


@app.callback(invoke_without_command=True)
def models(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help=ALL_HELP)] = False,
    as_json: AsJson = False,
) -> None:
    """Show which models there are on this machine and for its keys, and what each can do."""
    if context.invoked_subcommand is not None:
        return
    found = asyncio.run(_listed(begin(context).settings, everything=everything))
    if as_json:
        print_json([_as_object(each) for each in found])
    else:
        stdout().print(_table(found))
        stderr().print("`denizen models test NAME` asks one whether it answers.", style="dim")


@app.command("test")
def ask_one(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Such as ollama:qwen3:8b, or default.")],
    as_json: AsJson = False,
) -> None:
    """Ask a model for one small call of a tool. That costs a few tokens."""
    tested = asyncio.run(_tested(begin(context).settings, name))
    if as_json:
        print_json({"name": name, **asdict(tested)})
        return
    how = "called the tool" if tested.called_tool else "answered without calling the tool: agents need that"
    console = stdout()
    console.print(f"{name} {how}, in {tested.seconds:.1f} seconds.")
    thought = ", and thought before" if tested.thought else ""
    console.print(f"It read {tested.input_tokens} tokens and wrote {tested.output_tokens}{thought}.", style="dim")


async def _tested(settings: Settings, name: str) -> Tested:
    from denizen.models.discovery import choose_model
    from denizen.models.probing import try_model

    choice = await choose_model(settings.model, os.environ)
    catalog = _catalog(choice.ollama_url)
    try:
        catalog.check_name(name)
        return await try_model(await asyncio.to_thread(catalog.resolve, choice.name if name == "default" else name))
    finally:
        await catalog.close()


def _catalog(ollama_url: str | None) -> Models:
    from denizen.models.catalog import Models

    catalog = Models()
    catalog.ollama_url = ollama_url
    return catalog


async def _listed(settings: Settings, *, everything: bool) -> list[Listed]:
    from denizen.models.discovery import choose_model, installed_in_ollama
    from denizen.models.local_servers import find_servers

    choice = await choose_model(settings.model, os.environ)
    names: dict[str, tuple[str, bool | None]] = {choice.name: (choice.reason, None)}
    for each in await installed_in_ollama(os.environ):
        names[f"ollama:{each}"] = ("Ollama has it on this machine.", True)
    for server in await find_servers(os.environ):
        names |= dict.fromkeys(server.names, (f"{server.server.title} serves it on this machine.", True))
    for name, variable in _of_providers(everything=everything).items():
        names.setdefault(name, (f"{variable} is set.", None))
    names.setdefault("demo", ("It is built in, and only for trying things out.", True))
    catalog = _catalog(choice.ollama_url)
    try:
        return [await _describe(catalog, settings, name, choice.name, *how) for name, how in names.items()]
    finally:
        await catalog.close()


def _of_providers(*, everything: bool) -> Mapping[str, str]:
    """Models of providers for which this machine has a key: the usual ones, or all."""
    from denizen.models.catalog import keys_of_server, known_names
    from denizen.models.discovery import USUAL_MODELS

    keys = keys_of_server()
    usual = {name for pair in USUAL_MODELS.values() for name in pair}
    return {name: key for name, key in known_names().items() if key in keys and (everything or name in usual)}


async def _describe(
    catalog: Models, settings: Settings, name: str, default: str, found: str, reachable: bool | None
) -> Listed:
    from denizen.cli.house import prices_of
    from denizen.models import context_size
    from denizen.models.abilities import abilities_of

    try:
        model = await asyncio.to_thread(catalog.resolve, name)
        await context_size.ask_server(model)
        known = await asyncio.to_thread(abilities_of, model, name, prices_of(settings), settings.contexts)
    except ModelError as error:
        return Listed(name, name == default, False, found, None, str(error))
    except DenizenError as error:
        return Listed(name, name == default, None, found, None, str(error))
    return Listed(name, name == default, reachable, found, known)


def _as_object(each: Listed) -> dict[str, object]:
    known = None if each.abilities is None else asdict(each.abilities)
    prices = {} if known is None else {name: _number(known[name]) for name in ("input_price", "output_price")}
    return {**asdict(each), "abilities": None if known is None else {**known, **prices}}


def _number(price: object) -> float | None:
    return None if price is None else float(str(price))


def _table(found: list[Listed]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in ("model", "reachable", "tools", "images", "context", "thinking", "$ in / out per million", "found"):
        table.add_column(column, overflow="fold")
    for each in found:
        name = f"{each.name} (default)" if each.default else each.name
        if each.abilities is None:
            table.add_row(name, "no", "", "", "", "", "", each.problem)
            continue
        known = each.abilities
        size = "unknown" if known.context_tokens is None else f"{known.context_tokens:,} ({known.context_source})"
        price = "unknown" if known.input_price is None else f"{known.input_price:.2f} / {known.output_price or 0:.2f}"
        yes = _in_words(each.reachable, "not asked")
        table.add_row(
            name, yes, _in_words(known.tools), _in_words(known.images), size, known.thinking, price, each.found
        )
    return table


def _in_words(value: bool | None, unknown: str = "unknown") -> str:
    return unknown if value is None else "yes" if value else "no"
