"""`denizen apply`: agents, spaces and people as files say they are; and an agent as a file."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from denizen.agents import applying
from denizen.agents.differences import Change, FieldChange
from denizen.agents.documents import AgentDocument, Plain
from denizen.agents.files import Declared, Source, read, render
from denizen.cli.console import begin, stderr, stdout
from denizen.cli.findings import counted
from denizen.cli.house import House, open_house
from denizen.errors import DefinitionsInvalid
from denizen.settings import Settings

SUFFIXES: Final = (".yaml", ".yml", ".json")
"""What is read of a folder."""
STDIN: Final = "-"
_SHOWN_CHARACTERS: Final = 100

_MARKS: Final = {"created": ("+", "green"), "changed": ("~", "yellow"), "unchanged": ("=", "dim")}


def apply(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES|FOLDERS…",
            help="YAML or JSON files, folders of them, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show each field that changes, old and new.")] = False,
    export: Annotated[
        str | None, typer.Option("--export", metavar="HANDLE", help="Print the agent as a file instead.")
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Print the page about all keys of such files, in Markdown.")
    ] = False,
) -> None:
    """Make agents, spaces and people what files say they are.

    All of it or, if anything is wrong, nothing. Agents that are living take what is new with their next cycle.
    """
    if reference:
        from denizen.cli.definitions_page import render_reference

        typer.echo(render_reference(), nl=False)
        return
    if export is not None:
        typer.echo(asyncio.run(_export(begin(context).settings, export)), nl=False)
        return
    if not paths:
        raise typer.BadParameter("name a file or a folder, or - for standard input.", param_hint="FILES|FOLDERS…")
    try:
        declared = read_paths(paths)
        settings = begin(context).settings
        asyncio.run(_apply(settings, declared, dry_run=dry_run, diff=diff))
    except DefinitionsInvalid as error:
        _tell_problems(error.problems)
        raise typer.Exit(1) from error


async def _apply(settings: Settings, declared: Sequence[Declared], *, dry_run: bool, diff: bool) -> None:
    async with open_house(settings) as house:
        changes = await house.runtime.apply(
            declared, dry_run=dry_run, creator=house.world.owner, organization=house.world.owner.organization_id
        )
        _tell(stdout(), changes, dry_run=dry_run, diff=diff)
        _warn(stderr(), house, declared)


async def _export(settings: Settings, handle: str) -> str:
    async with open_house(settings) as house:
        document = await house.runtime.db.read(applying.document_of, house.world.owner.organization_id, handle)
        return render([document])


# Reading files


def read_paths(paths: Iterable[str]) -> list[Declared]:
    """Every document of the files that are named, and of those in folders that are named.

    Raises one `DefinitionsInvalid` with all that is wrong.
    """
    problems: list[str] = []
    found: list[Source] = []
    for path in paths:
        try:
            found += [_source(each) for each in _files(path)]
        except OSError as error:
            problems.append(f"{path}: cannot be read: {error.strerror or error}")
        except UnicodeDecodeError:
            problems.append(f"{path}: is not UTF-8 text")
    try:
        declared = read(found)
    except DefinitionsInvalid as error:
        raise DefinitionsInvalid(*problems, *error.problems) from error
    if problems:
        raise DefinitionsInvalid(*problems)
    return declared


def _files(name: str) -> list[str]:
    path = Path(name)
    if name == STDIN or not path.is_dir():
        return [name]
    inside = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())
    kept = [str(each) for each in inside if not any(part.startswith(".") for part in each.relative_to(path).parts)]
    if not kept:
        raise FileNotFoundError(2, f"there is no {' or '.join(SUFFIXES)} in this folder")
    return kept


def _source(name: str) -> Source:
    folder = Path() if name == STDIN else Path(name).parent
    text = sys.stdin.read() if name == STDIN else Path(name).read_text("utf-8-sig")
    return Source("stdin" if name == STDIN else name, text, lambda other: (folder / other).read_text("utf-8-sig"))


# Telling


def _tell_problems(problems: Sequence[str]) -> None:
    console = stderr()
    for problem in problems:
        console.print(Text(problem, style="red"), soft_wrap=True)
    console.print(
        Text(f"Nothing was applied: {counted(len(problems), 'problem')} [{DefinitionsInvalid.code}]", style="dim red"),
        soft_wrap=True,
    )


def _tell(console: Console, changes: Sequence[Change], *, dry_run: bool, diff: bool) -> None:
    for change in changes:
        mark, style = _MARKS[change.action]
        name = f"@{change.name}" if change.kind != "space" else f'"{change.name}"'
        said = Text.assemble((f"{mark} {change.kind} {name}", style), f" {change.action}")
        if change.action == "changed":
            said.append(f": {', '.join(each.path for each in change.fields)}", style="dim")
        console.print(said, soft_wrap=True)
        if diff:
            for each in change.fields:
                console.print(_difference(each), soft_wrap=True)
    console.print(Text(_summary(changes, dry_run=dry_run), style="bold"), soft_wrap=True)


def _summary(changes: Sequence[Change], *, dry_run: bool) -> str:
    counts = [(action, sum(each.action == action for each in changes)) for action in _MARKS]
    said = ", ".join(f"{count} {action}" for action, count in counts if count)
    return f"Dry run: nothing was changed. It would be {said}." if dry_run else f"Applied: {said}."


def _difference(change: FieldChange) -> Text:
    old, new = (_shown(each) for each in (change.old, change.new))
    return Text.assemble("    ", (f"{change.path}: ", "cyan"), (old, "red"), " → ", (new, "green"))


def _shown(value: Plain) -> str:
    if value is None:
        return "nothing"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _warn(console: Console, house: House, declared: Sequence[Declared]) -> None:
    """Of tools that agents shall have and this house has not: another that runs on the same database may."""
    for each in declared:
        if isinstance(each.document, AgentDocument):
            names = [tool for tool in each.document.tools if isinstance(tool, str)]
            missing = [name for name in names if name not in house.runtime.tool_names]
            if missing:
                console.print(
                    Text(
                        f"{each.place}: no tool {' or '.join(map(repr, missing))} is loaded here. Until `denizen up` "
                        "has it (DENIZEN_TOOLS), this agent does not think.",
                        style="yellow",
                    ),
                    soft_wrap=True,
                )
