"""`denizen profiles`: the prompt profiles of the house: which there are, whether they are right, what they would do."""

from __future__ import annotations

import shutil
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from denizen.agents.outlook import Outlook
from denizen.cli.console import begin, print_json, stderr, stdout
from denizen.errors import InvalidInput
from denizen.profiles.library import PRESETS_NAME, SHIPPED, shipped_addons
from denizen.profiles.presets import Presets
from denizen.profiles.router import route
from denizen.settings.shape import Settings

app = typer.Typer(help="Look after prompt profiles.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def _outlook(settings: Settings) -> Outlook:
    return Outlook(settings.profiles.presets, settings.profiles.prompts)


def _presets(settings: Settings) -> Presets:
    found = _outlook(settings).presets()
    if found is None:
        raise InvalidInput(
            f"There are no presets in {settings.profiles.presets}. `denizen profiles init` writes some to begin with."
        )
    return found


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """Show the presets, and what each adds to an agent's instructions."""
    found = _presets(begin(context).settings)
    if as_json:
        print_json(
            [
                {"id": each.id, "label": each.label, "addons": list(each.addons), "text": found.text(each.id)}
                for each in found.presets.values()
            ]
        )
        return
    table = Table.grid(padding=(0, 2))
    for each in found.presets.values():
        table.add_row(Text(each.id, style="cyan"), Text(", ".join(each.addons), style="dim"), Text(each.description))
    stdout().print(table)


@app.command()
def check(context: typer.Context, as_json: AsJson = False) -> None:
    """Say whether the file of presets can be used, and what in it is probably not meant so."""
    settings = begin(context).settings
    outlook = _outlook(settings)
    found, known = outlook.presets(), outlook.configuration()
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
    else:
        told = f"{where} is right: {len(found.presets)} presets, {len(found.rules)} rules."
        stdout().print(Text(told), soft_wrap=True)


@app.command("try")
def try_(
    context: typer.Context,
    message: Annotated[str, typer.Argument(help="What somebody might say.")],
    mode: Annotated[str, typer.Option(help="For which mode; an agent's is its handle.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show which preset the rules choose for a message, and why. Nothing is changed."""
    presets = _presets(begin(context).settings)
    found = route(presets, mode, message)
    text = "" if found.preset is None else presets.text(found.preset)
    if as_json:
        print_json({"id": found.preset, "reason": found.reason, "text": text})
        return
    console = stdout()
    console.print(Text.assemble((found.preset or "none", "bold cyan"), f"  {found.reason}"), soft_wrap=True)
    if text:
        console.print(Text(text, style="dim"), soft_wrap=True)


@app.command()
def init(context: typer.Context, as_json: AsJson = False) -> None:
    """Write a file of presets to begin with, and our add-ons beside it. What is there already stays."""
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
