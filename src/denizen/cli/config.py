"""`denizen config`: shows every setting, its value, its source and its meaning."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from denizen.cli.console import new_table, print_json, stdout
from denizen.settings.loading import DOTENV_NAME, TOML_NAME, LoadedSettings, SettingsFile, Spec, load, looked_for, specs

app = typer.Typer(add_completion=False)

_RESTRICTIONS = """## Restricted parts of definitions

The same for every way to define an agent: `POST` and `PATCH /api/agents`, `/api/apply`, `/api/import` and fork, the
command line, and Python. Members who may not add a part may leave it as it is, or remove it.
"""
_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@app.callback(invoke_without_command=True)
def config(context: typer.Context, as_json: _AsJson = False) -> None:
    """Show every setting with its value, source and meaning. Secrets are hidden."""
    if context.invoked_subcommand is not None:
        return
    loaded = load()
    if as_json:
        print_json([_as_object(spec, loaded) for spec in specs()])
    else:
        stdout().print(_table(loaded))


@app.command()
def path(as_json: _AsJson = False) -> None:
    """Show which configuration files are read."""
    sources = looked_for()
    if as_json:
        print_json([{"path": str(each.path), "found": each.found, "used": each.used} for each in sources])
    else:
        for each in sources:
            stdout().print(Text.assemble(_mark(each), " ", str(each.path)), soft_wrap=True)


@app.command()
def reference() -> None:
    """Print the reference of all settings, in Markdown."""
    typer.echo(render_reference(), nl=False)


@app.command()
def access() -> None:
    """Print the access tables, in Markdown."""
    typer.echo(render_access(), nl=False)


def render_access() -> str:
    """Renders the tables of docs/access.md from the routes and the restrictions."""
    from denizen.agents import restrictions
    from denizen.app import Runtime
    from denizen.server.application import create_app
    from denizen.server.permissions import render

    return f"{render(create_app(Runtime()))}\n{_RESTRICTIONS}\n{restrictions.render()}"


@app.command()
def commands() -> None:
    """Print the reference of all commands, in Markdown."""
    from denizen.cli.commands_page import render

    typer.echo(render(), nl=False)


def render_reference() -> str:
    """Renders docs/settings.md from the fields."""
    lines = [
        "# Settings",
        "",
        "Everything has a default that works on a laptop: nothing has to be set. `denizen config` shows each value and",
        "where it came from; `denizen config path` shows which files were looked for.",
        "",
        "The stronger source wins, value by value:",
        "",
        "1. options of the command line, such as `denizen up --port 9000`",
        "2. the environment, such as `DENIZEN_PORT=9000`",
        f"3. `{DOTENV_NAME}` in the current folder, with lines such as `DENIZEN_PORT=9000`",
        f"4. `{TOML_NAME}` in the current folder or, where there is none, in the home folder",
        "5. the defaults below",
        "",
        "A name that does not exist, a value of the wrong kind and settings that contradict each other stop the start",
        "with a sentence that says what to write instead. A variable that is set to nothing counts as not set. Other",
        f"variables in `{DOTENV_NAME}`, such as the keys of further providers, are handed on to their libraries.",
        "",
        f"| setting in `{TOML_NAME}` | variable | default | |",
        "|---|---|---|---|",
        *(_row(spec) for spec in specs()),
        "",
        f"Names with a dot stand in a table of `{TOML_NAME}`:",
        "",
        "```toml",
        "port = 9000",
        'database_url = "postgresql://denizen@localhost/denizen"',
        "",
        "[agents]",
        "warm_seconds = 300",
        "```",
        "",
        "The settings `memory.compaction_…` override every profile of `memoryCompaction` in the presets file. Their",
        "defaults are those of the profile `standard`: what is not set, the profile says ([memory](memory.md)).",
        "",
        f"Keys of providers are not read from `{TOML_NAME}`, because people share that file.",
    ]
    return "\n".join(lines) + "\n"


def _row(spec: Spec) -> str:
    name = f"`{spec.name}`" if spec.in_toml else ""
    default = f"`{spec.default}`" if spec.default else ""
    return f"| {name} | `{spec.variable}` | {default} | {spec.description} It has to be {spec.expects}. |"


def _as_object(spec: Spec, loaded: LoadedSettings) -> dict[str, object]:
    return {
        "name": spec.name,
        "value": loaded.shown(spec.name),
        "origin": loaded.origins[spec.name],
        "variable": spec.variable,
        "description": spec.description,
    }


def _table(loaded: LoadedSettings) -> Table:
    table = new_table("setting", "value", "from", "meaning")
    for spec in specs():
        value, origin = loaded.shown(spec.name), loaded.origins[spec.name]
        style = "dim" if origin == "default" else "bold"
        table.add_row(
            Text(spec.name, style="cyan"),
            Text(_plain(value), style=style),
            Text(origin, style=style),
            Text(spec.description),
        )
    return table


def _plain(value: str | float | None) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _mark(source: SettingsFile) -> Text:
    if source.used:
        return Text("✓ found    ", style="green")
    if source.found:
        return Text("! not used ", style="yellow")  # The one in the current folder takes precedence.
    return Text("  not there", style="dim")
