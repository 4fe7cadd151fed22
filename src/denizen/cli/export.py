"""`denizen export` and `denizen import`: an agent with its whole life, or a space with its messages, as a file."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from denizen.agents import registry
from denizen.app import Runtime
from denizen.cli.chat.finding import find_space
from denizen.cli.console import begin, print_json, stderr
from denizen.cli.desk.local import LocalDesk
from denizen.cli.desk.opening import AsJson
from denizen.cli.findings import counted
from denizen.cli.house import open_records
from denizen.errors import InvalidInput, NotFound
from denizen.ids import AgentId, SpaceId
from denizen.portability.importing import Imported
from denizen.settings import Settings
from denizen.spaces.directory import Entity


def export(
    context: typer.Context,
    agent: Annotated[str | None, typer.Argument(metavar="[AGENT]", help="The agent's @handle, or its id.")] = None,
    space: Annotated[str | None, typer.Option(help="A space instead: its name, or its id.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; without it, or with `-`, stdout.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write an agent with its whole life, or a space with its messages, to a file of JSON Lines.

    Keys, tokens and secrets are not in it. It works on the database of this machine.
    """
    if (agent is None) == (space is None):
        raise InvalidInput("Say what to export: an AGENT, or a --space.")
    settings = begin(context).settings
    to_stdout = output is None or str(output) == "-"
    if as_json and to_stdout:
        raise InvalidInput("--json tells of the file: name one with --output.")
    lines = asyncio.run(_export(settings, agent, space, None if to_stdout else output))
    if as_json:
        print_json({"file": str(output), "lines": lines})
    elif not to_stdout:
        stderr().print(Text(f"{output} has {lines:,} lines.", style="dim"))


def import_(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="What `denizen export` wrote; `-` reads stdin.")],
    handle: Annotated[str | None, typer.Option(help="Of an agent, where its own is taken.")] = None,
    name: Annotated[str | None, typer.Option(help="What the agent or space is called; else as it was.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take in what was exported: all of it or, with an error that names the line, nothing.

    An agent is suspended until `denizen agents resume`. It works on the database of this machine.
    """
    settings = begin(context).settings
    with tempfile.TemporaryDirectory(prefix="denizen-") as folder:
        made = asyncio.run(_import(settings, _readable(file, Path(folder)), handle, name))
    if as_json:
        print_json(_as_object(made))
    else:
        _show(made)


async def _export(settings: Settings, agent: str | None, space: str | None, output: Path | None) -> int:
    async with open_records(settings) as (runtime, world):
        lines = await _lines(runtime, world.owner, agent, space)
        if output is None:
            return await _print(lines)
        # Beside it first: whoever finds the file finds a whole one.
        part = output.with_name(f"{output.name}.part")
        try:
            count = await _write(lines, part)
            part.replace(output)
        except OSError as error:
            raise InvalidInput(f"{output} cannot be written ({error.strerror}).") from error
        finally:
            part.unlink(missing_ok=True)
        return count


async def _lines(runtime: Runtime, owner: Entity, agent: str | None, space: str | None) -> AsyncGenerator[str]:
    desk = LocalDesk(runtime, owner)
    if agent is not None:
        found = AgentId((await desk.agent(agent)).id)
        await runtime.db.read(registry.get, found)
        return runtime.export_agent(found)
    try:
        there = find_space(await desk.spaces(), space or "", await desk.me())
    except InvalidInput as error:
        try:
            there = await desk.space(space or "")
        except NotFound:
            raise error from None
    return runtime.export_space(SpaceId(there.id))


async def _print(lines: AsyncGenerator[str]) -> int:
    count = 0
    async for line in lines:
        sys.stdout.write(line)
        count += 1
    return count


async def _write(lines: AsyncGenerator[str], path: Path) -> int:
    count = 0
    # For its owner only: it holds what others have said in private.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        async for line in lines:
            file.write(line)
            count += 1
    return count


def _readable(file: Path, folder: Path) -> Path:
    """A file that can be read twice."""
    if str(file) == "-":
        kept = folder / "stdin"
        kept.write_bytes(sys.stdin.buffer.read())
        return kept
    if not file.is_file():
        raise InvalidInput(f"There is no file {file}.")
    return file


async def _import(settings: Settings, file: Path, handle: str | None, name: str | None) -> Imported:
    async with open_records(settings) as (runtime, world):
        home = world.owner.organization_id
        return await runtime.import_file(file, handle=handle, name=name, organization=home)


def _as_object(made: Imported) -> dict[str, object]:
    return {
        "kind": made.kind,
        "id": made.id,
        "name": made.name,
        "handle": made.handle or None,
        "counts": dict(made.counts),
        "secrets": list(made.secrets),
        "dangers": list(made.dangers),
        "people": list(made.people),
        "absent": list(made.absent),
    }


def _show(made: Imported) -> None:
    console = stderr()
    if made.kind == "agent":
        lived = counted(made.counts.get("cycle", 0), "cycle")
        console.print(Text(f"@{made.handle} is here, with {lived}. It is suspended until you resume it."))
        for name in made.secrets:
            console.print(Text(f"  It uses a secret: denizen secrets set {name}", style="yellow"))
        if made.dangers:
            parts = ", ".join(made.dangers)
            console.print(Text(f"  It starts programs or reaches private addresses. Look at: {parts}", style="yellow"))
        console.print(Text(f"  denizen agents resume @{made.handle}", style="dim"))
        return
    said = counted(made.counts.get("message", 0), "message")
    console.print(Text(f'The space "{made.name}" is here, with {said}. Its id is {made.id}.'))
    if made.people:
        console.print(Text(f"  New here, without a way to sign in: {_handles(made.people)}", style="yellow"))
    if made.absent:
        console.print(Text(f"  Not here, but their words are: {_handles(made.absent)}", style="yellow"))


def _handles(handles: tuple[str, ...]) -> str:
    return ", ".join(f"@{each}" for each in handles)
