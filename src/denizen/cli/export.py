"""`denizen export` and `denizen import`: an agent with its whole history, or a space with its messages, as a file."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from denizen.cli.api import Api, as_mention, find
from denizen.cli.console import stderr
from denizen.cli.findings import counted
from denizen.client import Client
from denizen.errors import ImportInvalid, InvalidInput, RequestRefused
from denizen.shapes.portability import ImportedOut


def export(
    api: Api,
    agent: Annotated[
        str | None, typer.Argument(metavar="[AGENT]", callback=as_mention, help="The agent's handle or its id.")
    ] = None,
    space: Annotated[str | None, typer.Option(help="A space instead: its name, or its id.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write (default, or `-`: stdout).")
    ] = None,
) -> None:
    """Write an agent with its whole history, or a space with its messages, to a file of JSON Lines.

    Keys, tokens and secrets are not in it.
    """
    if (agent is None) == (space is None):
        raise InvalidInput("Say what to export: an AGENT, or a --space.")
    to_stdout = output is None or str(output) == "-"
    if api.as_json and to_stdout:
        raise InvalidInput("--json tells of the file: name one with --output.")
    target = None if to_stdout else output
    lines = api.use(lambda client: _export(client, agent, space, target))
    if api.prints_json({"file": str(output), "lines": lines}):
        return
    if not to_stdout:
        stderr().print(Text(f"{output} has {lines:,} lines.", style="dim"))


def import_(
    api: Api,
    file: Annotated[
        Path, typer.Argument(help="A file made by `denizen export`, or by the program of --from; `-` reads stdin.")
    ],
    program: Annotated[
        str | None,
        typer.Option("--from", help="Another program: letta, chatgpt, openwebui, openclaw or hermes."),
    ] = None,
    handle: Annotated[str | None, typer.Option(help="Handle of the agent, if its own is taken.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the agent or space (default: unchanged).")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --from: only show what would be imported.")] = False,
    trusted: Annotated[
        bool, typer.Option("--trusted", help="With --from: the text counts as yours, not as text from outside.")
    ] = False,
) -> None:
    """Import an exported file: all of it or, with an error that names the line, nothing.

    An agent is suspended until `denizen agents resume`. With --from, conversations of another program become the
    history of an agent, once.
    """
    if program is not None:
        from denizen.cli.foreign_import import import_foreign

        import_foreign(api, program, file, handle=handle, name=name, dry_run=dry_run, trusted=trusted)
        return
    if dry_run or trusted:
        raise InvalidInput("--dry-run and --trusted are for files of other programs: name the program with --from.")
    with tempfile.TemporaryDirectory(prefix="denizen-") as folder:
        source = _readable(file, Path(folder))
        try:
            made = api.use(lambda client: client.import_file(source, handle=handle, name=name))
        except RequestRefused as error:
            raise _naming(file, error) from error
    if not api.prints_json(made):
        _show(made)


async def _export(client: Client, agent: str | None, space: str | None, output: Path | None) -> int:
    if space is not None:
        lines = client.export_space((await find(client, space)).id)
    else:
        lines = client.export_agent(agent or "")
    async with aclosing(lines):
        if output is None:
            return await _print(lines)
        # Written to a temporary file first: the file itself is always complete.
        part = output.with_name(f"{output.name}.part")
        try:
            count = await _write(lines, part)
            part.replace(output)
        except OSError as error:
            raise InvalidInput(f"{output} cannot be written ({error.strerror}).") from error
        finally:
            part.unlink(missing_ok=True)
        return count


async def _print(lines: AsyncGenerator[str]) -> int:
    count = 0
    async for line in lines:
        sys.stdout.write(line)
        count += 1
    return count


async def _write(lines: AsyncGenerator[str], path: Path) -> int:
    count = 0
    # For its owner only: it holds private messages.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)  # An existing file kept its mode.
        async for line in lines:
            file.write(line)
            count += 1
    return count


def _readable(file: Path, folder: Path) -> Path:
    """Returns a file that can be read twice."""
    if str(file) == "-":
        kept = folder / "stdin"
        kept.write_bytes(sys.stdin.buffer.read())
        return kept
    if not file.is_file():
        raise InvalidInput(f"There is no file {file}.")
    return file


def _naming(file: Path, error: RequestRefused) -> RequestRefused:
    """Returns the same error with the name of the file, which the server calls the body of the request."""
    said = str(error)
    if error.problem == ImportInvalid.code and said.startswith("body,"):
        said = f"{file.name}{said.removeprefix('body')}"
    return RequestRefused(said, problem=error.problem, status=error.status)


def _show(made: ImportedOut) -> None:
    console = stderr()
    if made.kind == "agent":
        lived = counted(made.counts.get("cycle", 0), "cycle")
        console.print(Text(f"@{made.handle} is here, with {lived}. It is suspended until you resume it."))
        for name in made.secrets:
            console.print(Text(f"  It uses a secret: denizen secrets set {name}", style="yellow"))
        for name in made.unpriced:
            said = f"  It has a budget in dollars, and the price of the model {name} is unknown. Set it under [prices]."
            console.print(Text(said, style="yellow"))
        if made.dangers:
            parts = ", ".join(made.dangers)
            console.print(Text(f"  It starts programs or reaches private addresses. Look at: {parts}", style="yellow"))
        console.print(Text(f"  denizen agents resume @{made.handle}", style="dim"))
    else:
        said = counted(made.counts.get("message", 0), "message")
        console.print(Text(f'The space "{made.name}" is here, with {said}. Its id is {made.id}.'))
    if made.people:
        console.print(Text(f"  New here, without a way to sign in: {_handles(made.people)}", style="yellow"))
    if made.absent:
        console.print(Text(f"  Not here, but their words are: {_handles(made.absent)}", style="yellow"))


def _handles(handles: Sequence[str]) -> str:
    return ", ".join(f"@{each}" for each in handles)
