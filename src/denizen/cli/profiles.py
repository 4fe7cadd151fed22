"""`denizen profiles`: lists, checks and tries the server's prompt profiles."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from denizen.agents.prompt_config import PromptConfig
from denizen.cli.api import Api, AsJson
from denizen.cli.console import begin, print_json, printable, stderr, stdout
from denizen.errors import InvalidInput
from denizen.profiles.files import read_json
from denizen.profiles.library import PRESETS_NAME, SHIPPED, shipped_addons
from denizen.settings.shape import Settings
from denizen.shapes.stances import PresetsOut

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Manage prompt profiles.")


def _prompt_config(settings: Settings) -> PromptConfig:
    return PromptConfig(settings.profiles.presets, settings.profiles.prompts)


@app.command("list")
def list_(api: Api) -> None:
    """List the presets and what each adds to an agent's instructions."""
    found = api.use(lambda client: client.profiles()).presets
    if not found:
        raise InvalidInput("The server's presets file has no presets. Add some to it.")
    if api.prints_json(found):
        return
    table = Table.grid(padding=(0, 2))
    for each in found:
        name, addons = Text(printable(each.id), style="cyan"), Text(printable(", ".join(each.addons)), style="dim")
        table.add_row(name, addons, Text(printable(each.description)))
    stdout().print(table)


@app.command()
def check(context: typer.Context, as_json: AsJson = False) -> None:
    """Check the presets file on this machine for errors and likely mistakes."""
    settings = begin(context).settings
    prompt_config = _prompt_config(settings)
    found, known = prompt_config.presets(), prompt_config.configuration()
    warnings = [*(() if found is None else found.warnings), *known.warnings]
    if as_json:
        told = {"path": str(settings.profiles.presets), "presets": 0 if found is None else len(found.presets)}
        print_json({**told, "metaprompts": list(known.metaprompts), "warnings": warnings})
        return
    for each in warnings:
        stderr().print(Text(each, style="yellow"))
    where = settings.profiles.presets
    if found is None:
        stdout().print(Text(f"There are no presets in {where}: no profiles are chosen."), soft_wrap=True)
    elif prompt_config.library.source == "shipped":
        stdout().print(Text(f"There is no {where}: the presets that come with Denizen apply."), soft_wrap=True)
    else:
        told = f"{where} is right: {len(found.presets)} presets, {len(found.rules)} rules."
        stdout().print(Text(told), soft_wrap=True)


@app.command("try")
def try_(
    api: Api,
    message: Annotated[str, typer.Argument(help="An example message.")],
    mode: Annotated[str, typer.Option(help="The mode; an agent's mode is its handle.")] = "",
) -> None:
    """Show which preset the rules choose for a message, and why."""
    found = api.use(lambda client: client.try_profile(message, mode=mode))
    if api.prints_json(found):
        return
    console = stdout()
    name, reason = printable(found.id or "none"), printable(found.reason)
    console.print(Text.assemble((name, "bold cyan"), f"  {reason}"), soft_wrap=True)
    if found.text:
        console.print(Text(printable(found.text), style="dim"), soft_wrap=True)


@app.command()
def show(api: Api) -> None:
    """Print the presets of the organization as a presets file."""
    found = api.use(lambda client: client.presets())
    if api.prints_json(found):
        return
    for each in found.warnings:
        stderr().print(Text(printable(each), style="yellow"))
    print_json(found.document)


@app.command("set")
def set_(
    api: Api,
    file: Annotated[Path, typer.Argument(help="A presets file (JSON).", exists=True, dir_okay=False)],
) -> None:
    """Use this presets file for the organization, instead of the server's."""
    document = read_json(file)
    _tell(api, api.use(lambda client: client.change_presets(document)))


@app.command()
def reset(api: Api) -> None:
    """Remove the organization's own presets, so that the server's apply."""
    _tell(api, api.use(lambda client: client.reset_presets()))


def _tell(api: Api, found: PresetsOut) -> None:
    if api.prints_json(found):
        return
    for each in found.warnings:
        stderr().print(Text(printable(each), style="yellow"))
    source = {
        "organization": "The organization's own presets apply.",
        "server": "The presets of the server's file apply.",
        "shipped": "The presets that come with Denizen apply.",
    }
    stdout().print(Text(source.get(found.source, found.source)))


@app.command()
def init(context: typer.Context, as_json: AsJson = False) -> None:
    """Write the presets that come with Denizen to files on this machine, to edit them. Existing files stay."""
    settings = begin(context).settings.profiles
    if settings.presets.exists():
        raise InvalidInput(f"{settings.presets} is there already.")
    settings.presets.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(SHIPPED / PRESETS_NAME, settings.presets)
    folder = settings.prompts / "_meta"
    folder.mkdir(parents=True, exist_ok=True)
    for key in shipped_addons():
        if not (folder / f"{key}.md").exists():
            shutil.copyfile(SHIPPED / "prompts" / "_meta" / f"{key}.md", folder / f"{key}.md")
    if as_json:
        print_json({"presets": str(settings.presets), "prompts": str(folder)})
    else:
        stderr().print(Text(f"Written: {settings.presets} and {folder}.", style="dim"), soft_wrap=True)
