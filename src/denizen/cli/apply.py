"""`denizen apply`: creates and changes agents, spaces and people from definition files; prints an agent as a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, cast

import typer
from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from denizen.agents.documents import AgentDocument, Document, plain
from denizen.agents.files import Declared, DefinitionFile, read, render
from denizen.amounts import human_size
from denizen.cli.api import Api, as_mention
from denizen.cli.console import stderr, stdout
from denizen.cli.findings import counted
from denizen.errors import DefinitionsInvalid, RequestRefused
from denizen.shapes.definitions import Applied, ChangeOut, FieldChangeOut
from denizen.shortening import shortened
from denizen.tools.skills import SKILL_FILE

SUFFIXES: Final = (".yaml", ".yml", ".json")
"""The files that are read from a folder."""
STDIN: Final = "-"
_SHOWN_CHARACTERS: Final = 100
_FILE_BYTES: Final = 1024 * 1024
"""The largest file of a skill that is read."""

_MARKS: Final = {"created": ("+", "green"), "changed": ("~", "yellow"), "unchanged": ("=", "dim")}


def apply(
    api: Api,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES|FOLDERS…",
            help="YAML or JSON files, folders of them, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show each field that changes, old and new.")] = False,
    export: Annotated[
        str | None,
        typer.Option("--export", metavar="HANDLE", callback=as_mention, help="Print the agent as a file instead."),
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Print the reference of definition files, in Markdown.")
    ] = False,
) -> None:
    """Create and change agents, spaces and people from definition files.

    Applies everything or, if there is an error, nothing. Running agents take changes with their next cycle.
    """
    if reference:
        from denizen.cli.definitions_page import render_reference

        typer.echo(render_reference(), nl=False)
        return
    if export is not None:
        said = api.use(lambda client: client.document(export))
        typer.echo(json.dumps(said, indent=2, ensure_ascii=False) if api.as_json else _as_file(said), nl=api.as_json)
        return
    if not paths:
        raise typer.BadParameter("name a file or a folder, or - for standard input.", param_hint="FILES|FOLDERS…")
    try:
        documents = [(each.place, _as_told(each.document)) for each in read_paths(paths)]
        done = api.use(lambda client: client.apply(documents, dry_run=dry_run), models=True)
    except DefinitionsInvalid as error:
        _tell_problems(error.problems)
        raise typer.Exit(1) from error
    except RequestRefused as error:
        if error.problem != DefinitionsInvalid.code:
            raise
        _tell_problems(str(error).splitlines())
        raise typer.Exit(1) from error
    if not api.prints_json(done):
        _tell(stdout(), done, diff=diff)
    for warning in done.warnings:
        stderr().print(Text(warning, style="yellow"), soft_wrap=True)


def _as_told(document: Document) -> dict[str, JsonValue]:
    return cast("dict[str, JsonValue]", plain(document))


def _as_file(said: Mapping[str, JsonValue]) -> str:
    return render([AgentDocument.model_validate(said)])


# Reading files


def read_paths(paths: Iterable[str]) -> list[Declared]:
    """Reads every document in the named files and folders.

    Raises one `DefinitionsInvalid` with all problems.
    """
    problems: list[str] = []
    found: list[DefinitionFile] = []
    for path in paths:
        try:
            files = _files(path)
        except OSError as error:
            problems.append(_unreadable(path, error))
            continue
        for each in files:
            try:
                found.append(_source(each))
            except OSError as error:
                problems.append(_unreadable(each, error))
            except UnicodeDecodeError:
                problems.append(f"{each}: is not UTF-8 text")
    try:
        declared = read(found)
    except DefinitionsInvalid as error:
        raise DefinitionsInvalid(*problems, *error.problems) from error
    if problems:
        raise DefinitionsInvalid(*problems)
    return declared


def _unreadable(path: str, error: OSError) -> str:
    return f"{path}: cannot be read: {error.strerror or error}"


def _files(name: str) -> list[str]:
    path = Path(name)
    if name == STDIN or not path.is_dir():
        return [name]
    inside = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())
    kept = [
        str(each)
        for each in inside
        if not any(part.startswith(".") for part in each.relative_to(path).parts) and not _is_of_skill(each, path)
    ]
    if not kept:
        raise FileNotFoundError(2, f"there is no {' or '.join(SUFFIXES)} in this folder")
    return kept


def _is_of_skill(file: Path, top: Path) -> bool:
    """Whether the file belongs to a skill: then it is not a definition."""
    return any((folder / SKILL_FILE).is_file() for folder in file.parents if folder.is_relative_to(top))


def _source(name: str) -> DefinitionFile:
    folder = Path() if name == STDIN else Path(name).parent
    text = sys.stdin.read() if name == STDIN else Path(name).read_text("utf-8-sig")
    return DefinitionFile(
        "stdin" if name == STDIN else name,
        text,
        beside=lambda other: (folder / other).read_text("utf-8-sig"),
        folder=lambda other: _texts_below(folder / other),
    )


def _texts_below(folder: Path) -> dict[str, str]:
    """The files of a folder by their paths in it, without hidden ones and without following links."""
    if not folder.is_dir():
        raise FileNotFoundError(2, "there is no such folder")
    found: dict[str, str] = {}
    for each in sorted(folder.rglob("*")):
        path = each.relative_to(folder)
        if each.is_symlink() or not each.is_file() or any(part.startswith(".") for part in path.parts):
            continue
        if each.stat().st_size > _FILE_BYTES:
            raise OSError(27, f"{path} is larger than {human_size(_FILE_BYTES)}")
        found[path.as_posix()] = each.read_text("utf-8-sig")
    return found


# Output


def _tell_problems(problems: Sequence[str]) -> None:
    console = stderr()
    for problem in problems:
        console.print(Text(problem, style="red"), soft_wrap=True)
    console.print(
        Text(f"Nothing was applied: {counted(len(problems), 'problem')} [{DefinitionsInvalid.code}]", style="dim red"),
        soft_wrap=True,
    )


def _tell(console: Console, done: Applied, *, diff: bool) -> None:
    for change in done.changes:
        mark, style = _MARKS[change.action]
        name = f"@{change.name}" if change.kind != "space" else f'"{change.name}"'
        said = Text.assemble((f"{mark} {change.kind} {name}", style), f" {change.action}")
        if change.action == "changed":
            said.append(f": {', '.join(each.path for each in change.fields)}", style="dim")
        console.print(said, soft_wrap=True)
        if diff:
            for each in change.fields:
                console.print(_difference(each), soft_wrap=True)
    console.print(Text(_summary(done.changes, dry_run=done.dry_run), style="bold"), soft_wrap=True)


def _summary(changes: Sequence[ChangeOut], *, dry_run: bool) -> str:
    counts = [(action, sum(each.action == action for each in changes)) for action in _MARKS]
    said = ", ".join(f"{count} {action}" for action, count in counts if count)
    return f"Dry run: nothing was changed. It would be {said}." if dry_run else f"Applied: {said}."


def _difference(change: FieldChangeOut) -> Text:
    old, new = (_shown(each) for each in (change.old, change.new))
    return Text.assemble("    ", (f"{change.path}: ", "cyan"), (old, "red"), " → ", (new, "green"))


def _shown(value: JsonValue) -> str:
    if value is None:
        return "nothing"
    return shortened(repr(value) if isinstance(value, str) else str(value), _SHOWN_CHARACTERS)
