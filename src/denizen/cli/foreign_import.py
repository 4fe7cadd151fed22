"""`denizen import --from`: an agent, or conversations, of another program."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.text import Text

from denizen.cli.api import Api
from denizen.cli.console import stderr
from denizen.cli.findings import counted
from denizen.client import Client
from denizen.clock import moment
from denizen.errors import RequestRefused
from denizen.ids import EntityId
from denizen.portability.foreign.conversations import ForeignAgent
from denizen.portability.foreign.reading import read_foreign
from denizen.portability.foreign.translating import Importer, Translation
from denizen.shapes.portability import ImportedOut


def import_foreign(
    api: Api,
    program: str,
    path: Path,
    *,
    handle: str | None,
    name: str | None,
    dry_run: bool,
    trusted: bool,
) -> None:
    """Imports the export, once; with `dry_run`, only tells what it holds. Files are read in this process, so that the
    server reads nothing but its own format.
    """
    agent = read_foreign(program, path)
    made: ImportedOut | None = None
    found: str | None = None
    if not dry_run:
        found, made = api.use(lambda client: _import(client, agent, handle, name, trusted))
    if api.prints_json(_receipt(agent, dry_run) | {"agent": found, "already_here": not dry_run and made is None}):
        return
    console = stderr()
    if dry_run or made is not None:
        _show(agent, dry_run)
    if made is not None:
        console.print(Text(f"@{made.handle} is here, suspended until you resume it."))
        console.print(Text(f"  denizen agents resume @{made.handle}", style="dim"))
    elif not dry_run:
        console.print(Text(f"This was imported before, as the agent {found}. Nothing was changed."))


async def _import(
    client: Client, agent: ForeignAgent, handle: str | None, name: str | None, trusted: bool
) -> tuple[str, ImportedOut | None]:
    me = await client.me()
    person = Importer(EntityId(me.id), me.handle, me.name)
    whole = Translation(agent, person, handle=handle, name=name, trusted=trusted)
    if await _is_there(client.agent(whole.agent_id)):
        return whole.agent_id, None
    with tempfile.TemporaryDirectory(prefix="denizen-") as folder:
        # The space first: the agent's history refers to its messages. A broken import continues with the agent.
        if not await _is_there(client.space(whole.space_id)):
            await client.import_file(_written(whole.space_file(), Path(folder) / "space.jsonl"))
        made = await client.import_file(_written(whole.agent_file(), Path(folder) / "agent.jsonl"))
    return made.id, made


async def _is_there(asked: Any) -> bool:
    try:
        await asked
    except RequestRefused as error:
        if error.status == 404:
            return False
        raise
    return True


def _written(lines: Iterable[str], path: Path) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    return path


def _receipt(agent: ForeignAgent, dry_run: bool) -> dict[str, Any]:
    times = [said.at for each in agent.conversations for said in each.messages]
    return {
        "from": agent.source,
        "name": agent.name,
        "dry_run": dry_run,
        "conversations": sum(bool(each.messages) for each in agent.conversations),
        "messages": agent.messages,
        "first": moment(min(times)).isoformat() if times else None,
        "last": moment(max(times)).isoformat() if times else None,
        "notes": len(agent.notes),
        "left_out": dict(agent.left_out),
    }


def _show(agent: ForeignAgent, dry_run: bool) -> None:
    console, told = stderr(), _receipt(agent, dry_run)
    verb = "would be" if dry_run else "are"
    said = (
        f"{counted(told['conversations'], 'conversation')} of {agent.source} with {counted(agent.messages, 'message')}"
    )
    dates = f", from {told['first'][:10]} to {told['last'][:10]}" if told["first"] else ""
    console.print(Text(f"{said}{dates}, and {counted(len(agent.notes), 'note')} {verb} imported."))
    for what, number in sorted(agent.left_out.items(), key=lambda each: -each[1]):
        console.print(Text(f"  Left out: {number:,} {what}", style="yellow"))
