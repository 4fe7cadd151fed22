"""`denizen models`: lists models with their abilities, tests one, and chooses the default."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.padding import Padding
from rich.text import Text

from denizen.cli.api import AsJson, Token, client_for, named
from denizen.cli.console import begin, print_json, stderr, stdout
from denizen.errors import DenizenError, ModelError, RequestRefused
from denizen.shapes.models import AgentModels, ModelFacts, TestOut

if TYPE_CHECKING:
    from denizen.cycles.server_models import ServerModels
    from denizen.settings.loading import LoadedSettings
    from denizen.settings.shape import Settings

app = typer.Typer(add_completion=False, help="Show which models there are, test one, and choose the default.")

ALL_HELP: Final = "Also list all known models of providers with a key."
Url = Annotated[
    str | None, typer.Option(envvar="DENIZEN_URL", help="The server to use (default: look at this machine).")
]
Address = Annotated[
    str | None, typer.Option(metavar="URL", help="The address of its server, if not the usual one.", show_default=False)
]
AUTO: Final = "auto"
WithKey = Annotated[bool, typer.Option("--key", help="Ask for its API key, or read the key from stdin.")]


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model."""

    name: str
    default: bool
    reachable: bool | None
    """None: not tested, as that would cost something."""
    found: str
    """Why it is listed."""
    facts: ModelFacts | None
    """None: it cannot be used, or a server does not say."""
    problem: str = ""


@app.callback(invoke_without_command=True)
def models(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help=ALL_HELP)] = False,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Show which models there are on this machine and for its keys, and what each can do. With --url: on a server."""
    if context.invoked_subcommand is not None:
        return
    loaded = begin(context)
    at, secret = named(loaded, url, token)
    if at is None:
        found = asyncio.run(_on_this_machine(loaded.settings, everything=everything))
    else:
        found = asyncio.run(_on_server(loaded.settings, at, secret, everything=everything))
    if as_json:
        print_json([_as_object(each) for each in found])
        return
    # Lines instead of a table: eight columns do not fit into a terminal.
    console = stdout()
    for each in found:
        console.print(Text(f"{each.name} (default)" if each.default else each.name, style="cyan"))
        for line in _lines(each):
            console.print(Padding(Text(line), (0, 0, 0, 2), expand=False))
    stderr().print("`denizen models test NAME` asks one whether it answers.", style="dim")


@app.command("test")
def ask_one(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Such as ollama:qwen3:8b, or default.")],
    address: Address = None,
    with_key: WithKey = False,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Test a model with one small tool call. This costs a few tokens."""
    from denizen.models.catalog import DEMO

    loaded = begin(context)
    tested = asyncio.run(_tested(loaded, name, address, _key(name, with_key), url, token))
    if as_json:
        print_json({**tested.model_dump(mode="json", exclude={"facts", "ok", "problem", "code"})})
        return
    how = "called the tool" if tested.called_tool else "answered"
    console = stdout()
    console.print(f"{name} {how}, in {tested.seconds:.1f} seconds.")
    thought = ", and thought before" if tested.thought else ""
    console.print(f"It read {tested.input_tokens} tokens and wrote {tested.output_tokens}{thought}.", style="dim")
    if not tested.called_tool and name != DEMO:
        stderr().print("It did not call the tool. Agents need a model that calls tools.", style="yellow")


@app.command()
def use(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Such as ollama:qwen3:8b; `auto` uses whatever is found.")],
    address: Address = None,
    with_key: WithKey = False,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Set the default model of agents, without a restart.

    Only operators can do this: owners of the first organization, and users of the server's machine. A model that the
    configuration names cannot be changed here.
    """
    loaded = begin(context)
    default, reason = asyncio.run(_choose(loaded, name, address, _key(name, with_key), url, token))
    if as_json:
        print_json({"default": default, "reason": reason})
    else:
        stderr().print(f"The default model is {default}. {reason}", style="dim")
        stderr().print("Test it with `denizen models test default`.", style="dim")


def _key(name: str, asked: bool) -> str | None:
    from denizen.cli.secrets import read_secret

    return (read_secret(f"API key for {name}").strip() or None) if asked else None


async def _tested(
    loaded: LoadedSettings, name: str, address: str | None, key: str | None, url: str | None, token: str | None
) -> TestOut:
    at, secret = named(loaded, url, token)
    if at is None:
        return await _tested_here(loaded.settings, name, address, key)
    async with client_for(loaded.settings, at, secret) as client:
        real = (await client.models()).default if name == "default" else name
        tested = await client.test_model(real, address=address, key=key)
    if tested.problem is not None:
        raise RequestRefused(tested.problem, problem=tested.code or "", status=200)
    return tested.model_copy(update={"name": name})


async def _tested_here(settings: Settings, name: str, address: str | None, key: str | None) -> TestOut:
    from denizen.cli.home import has_database, open_records, server_models_of
    from denizen.models.probing import try_model

    known = await server_models_of(settings)
    catalog, real = known.models, known.default if name == "default" else name
    try:
        if await has_database(settings):
            # With the stored keys and addresses.
            async with open_records(settings) as (runtime, _):
                runtime.model_catalog.ollama_url = catalog.ollama_url
                result = await runtime.models.test(real, address=address, key=key)
            if result.tested is None:
                raise result.error or ModelError("The model did not answer.")
            answer = result.tested
        else:
            catalog.check_name(real)
            async with catalog.tried(real, key, address) as model:
                answer = await try_model(model)
    finally:
        await catalog.close()
    return TestOut(name=name, ok=True, **asdict(answer))


async def _choose(
    loaded: LoadedSettings, name: str, address: str | None, key: str | None, url: str | None, token: str | None
) -> tuple[str, str]:
    from denizen.cli.home import open_records

    at, secret = named(loaded, url, token)
    if at is not None:
        async with client_for(loaded.settings, at, secret) as client:
            if name == AUTO:
                told = await client.forget_chosen_model()
            else:
                told = await client.choose_model(name, address=address, key=key)
        return told.default, told.default_reason
    async with open_records(loaded.settings) as (runtime, _):
        await runtime.models.choose(None if name == AUTO else name, address=address, key=key)
        known = runtime.server_models
    if name == AUTO:
        from denizen.cli.home import server_models_of

        known = await server_models_of(loaded.settings)
    return known.default, known.reason


async def _on_server(settings: Settings, url: str, token: str | None, *, everything: bool) -> list[ModelRow]:
    """Returns the list as the server sees it: for operators, with the model servers on its machine."""
    async with client_for(settings, url, token) as client:
        told = await client.models()
        if told.may_choose:
            told = await client.models(setup=True)
    return list(_of_server(told, everything=everything))


def _of_server(told: AgentModels, *, everything: bool) -> Iterator[ModelRow]:
    from denizen.models.discovery import USUAL_MODELS

    usual = {name for pair in USUAL_MODELS.values() for name in pair}
    local = {
        each.name: (server.title, each.facts)
        for server in (told.setup.servers if told.setup else ())
        for each in server.models
    }
    reasons = {"nobody": "It needs no key.", "server": "The server has a key for it."}
    reasons |= {"organization": "Your organization has a key for it.", "you": "You have a key for it."}
    names = {told.default: told.default_reason} | {
        each.name: reasons.get(each.paid_by, each.paid_by)
        for each in told.models
        if each.name != told.default and (everything or each.paid_by == "nobody" or each.name in usual)
    }
    for name, reason in {**names, **{each: "" for each in local if each not in names}}.items():
        title, facts = local.get(name, ("", None))
        found = reason or f"{title} serves it on the server's machine."
        yield ModelRow(name, name == told.default, True if facts is not None else None, found, facts)


async def _on_this_machine(settings: Settings, *, everything: bool) -> list[ModelRow]:
    from denizen.cli.home import server_models_of
    from denizen.models.discovery import installed_in_ollama
    from denizen.models.local_servers import find_servers

    known = await server_models_of(settings)
    names: dict[str, tuple[str, bool | None]] = {known.default: (known.reason, None)}
    for each in await installed_in_ollama(os.environ):
        names[f"ollama:{each}"] = ("Ollama has it on this machine.", True)
    for server in await find_servers(os.environ):
        names |= dict.fromkeys(server.names, (f"{server.server.title} serves it on this machine.", True))
    for name, variable in _of_providers(everything=everything).items():
        names.setdefault(name, (f"{variable} is set.", None))
    names.setdefault("demo", ("It is built in, and only for trying things out.", True))
    try:
        return [await _describe(known, settings, name, *how) for name, how in names.items()]
    finally:
        await known.models.close()


def _of_providers(*, everything: bool) -> Mapping[str, str]:
    """Returns the models of providers for which this machine has a key: the usual ones, or all."""
    from denizen.models.catalog import keys_of_server, known_names
    from denizen.models.discovery import USUAL_MODELS

    keys = keys_of_server()
    usual = {name for pair in USUAL_MODELS.values() for name in pair}
    return {name: key for name, key in known_names().items() if key in keys and (everything or name in usual)}


async def _describe(known: ServerModels, settings: Settings, name: str, found: str, reachable: bool | None) -> ModelRow:
    from denizen.cli.home import prices_of
    from denizen.models import context_size
    from denizen.models.abilities import abilities_of

    default = name == known.default
    try:
        model = await asyncio.to_thread(known.models.resolve, name)
        await context_size.ask_server(model)
        can = await asyncio.to_thread(abilities_of, model, name, prices_of(settings), settings.contexts)
    except ModelError as error:
        return ModelRow(name, default, False, found, None, str(error))
    except DenizenError as error:
        return ModelRow(name, default, None, found, None, str(error))
    return ModelRow(name, default, reachable, found, ModelFacts.model_validate(asdict(can)))


def _as_object(each: ModelRow) -> dict[str, object]:
    facts = None if each.facts is None else each.facts.model_dump(mode="json")
    return {
        "name": each.name,
        "default": each.default,
        "reachable": each.reachable,
        "found": each.found,
        "abilities": facts,
        "problem": each.problem,
    }


def _lines(each: ModelRow) -> Sequence[str]:
    """Returns what is known of it, to print below its name."""
    told = [each.found]
    if each.problem:
        told.append(f"Cannot be used: {each.problem}")
    elif each.facts is not None:
        told += _facts(each.facts, each.reachable)
    elif each.reachable is None:
        told.append("reachable: not asked")
    return [line for line in told if line]


def _facts(known: ModelFacts, reachable: bool | None) -> Iterator[str]:
    yield (
        f"reachable: {_in_words(reachable, 'not asked')}, tools: {_in_words(known.tools)}, "
        f"images: {_in_words(known.images)}, thinking: {known.thinking}"
    )
    yield (
        "context: unknown"
        if known.context_tokens is None
        else f"context: {known.context_tokens:,} tokens (from {known.context_source})"
    )
    yield (
        "price: unknown"
        if known.input_price is None
        else f"price: ${known.input_price:.2f} in, ${known.output_price or 0:.2f} out, per million tokens"
    )


def _in_words(value: bool | None, unknown: str = "unknown") -> str:
    return unknown if value is None else "yes" if value else "no"
