"""`denizen memory`: what is remembered beyond agents' own lives, what is wrong with it, and forgetting it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from denizen.app import Runtime
from denizen.cli.chat.rendering import printable
from denizen.cli.console import begin, print_json, stdout
from denizen.cli.house import open_records
from denizen.clock import Instant, moment
from denizen.errors import InvalidInput
from denizen.forgetting.forgetting import Receipt
from denizen.forgetting.subjects import find_subject
from denizen.ids import OrganizationId
from denizen.inbox.format import one_line
from denizen.memory import items
from denizen.memory.hygiene import PROBLEMS
from denizen.memory.items import Remembered
from denizen.memory.policy import SCOPES
from denizen.spaces import directory
from denizen.storage.database import Tx

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="See what is remembered of people and conversations, find out what is wrong with it, and forget it.",
)

T = TypeVar("T")

_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
_Scope = Annotated[str | None, typer.Option(help="Only of this scope: conversation, user, persona or organization.")]
_Limit = Annotated[int, typer.Option(min=1, max=1_000, help="At most so many.")]
_Person = Annotated[str | None, typer.Option(metavar="@HANDLE", help="Only what is remembered of this person.")]
_MOST: int = 20


def _work(context: typer.Context, work: Callable[[Runtime, OrganizationId], Awaitable[T]]) -> T:
    settings = begin(context).settings

    async def done() -> T:
        async with open_records(settings) as (runtime, world):
            return await work(runtime, world.owner.organization_id)

    return asyncio.run(done())


@app.command("list")
def list_(
    context: typer.Context, scope: _Scope = None, person: _Person = None, limit: _Limit = 50, as_json: _Json = False
) -> None:
    """What is remembered, the newest first."""
    wanted = _checked(scope)

    async def work(runtime: Runtime, home: OrganizationId) -> list[Known]:
        return await runtime.db.read(_listed, home, wanted, person, limit)

    _show(_work(context, work), as_json)


def _listed(tx: Tx, home: OrganizationId, scope: str | None, person: str | None, limit: int) -> list[Known]:
    found: list[Remembered] = []
    whose = None if person is None else directory.find_entity(tx, home, person).id
    before: int | None = None
    while len(found) < limit and (page := items.all_of(tx, home, before=before, limit=500)):
        found += [each for each in page if scope in (None, each.scope) and whose in (None, each.user_id)]
        before = page[-1].number
    return _known(tx, found[:limit])


@app.command()
def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="WORDS", help="What to look for.")],
    scope: _Scope = None,
    limit: _Limit = _MOST,
    as_json: _Json = False,
) -> None:
    """What is remembered on something, the best first."""
    wanted = _checked(scope)

    async def work(runtime: Runtime, home: OrganizationId) -> list[Known]:
        owners = await runtime.db.read(_owners, home, wanted)
        found = [each.item for each in await runtime.search_memories(query, owners, limit=limit)]
        return await runtime.db.read(_known, found)

    _show(_work(context, work), as_json)


def _owners(tx: Tx, home: OrganizationId, scope: str | None) -> list[str]:
    owners = items.owners_of(tx, home)
    return [each for each in owners if scope is None or each.startswith(f"{scope}:")]


def _checked(scope: str | None) -> str | None:
    if scope is not None and scope not in SCOPES:
        raise InvalidInput(f"There is no scope {scope!r}; there is {', '.join(SCOPES)}.")
    return scope


class Known(NamedTuple):
    """A memory, and whose it is, for people."""

    memory: Remembered
    whose: str


def _known(tx: Tx, found: Iterable[Remembered]) -> list[Known]:
    names: dict[str, str] = {}
    for each in found:
        for id in (each.user_id, each.agent_id):
            if id is not None and id not in names:
                names[id] = f"@{directory.get_entity(tx, id).handle}"
        if each.space_id not in names:
            names[each.space_id] = directory.get_space(tx, each.space_id).name
    return [Known(each, _whose(each, names)) for each in found]


def _whose(memory: Remembered, names: Mapping[str, str]) -> str:
    match memory.scope:
        case "conversation":
            return f"of the conversation {names[memory.space_id]!r}"
        case "user":
            return f"of {names[memory.user_id or '']}"
        case "persona":
            return f"between {names[memory.user_id or '']} and {names[memory.agent_id or '']}"
        case "organization":
            return "of the organization"


def _show(found: list[Known], as_json: bool) -> None:
    if as_json:
        print_json([_fields(*each) for each in found])
        return
    if not found:
        stdout().print("Nothing is remembered.")
    for each in found:
        stdout().print(_told(*each))


def _told(memory: Remembered, whose: str) -> Text:
    """What is remembered, and below it whose it is, and its id."""
    used = "never used" if not memory.uses else f"used {memory.uses}×"
    since = f"{moment(Instant(memory.created_at)):%Y-%m-%d}"
    about = [printable(whose), memory.category, used, since, *(["superseded"] if memory.superseded_by else [])]
    text = Text(one_line(printable(memory.text)))
    return text.append(f"\n  {' · '.join(about)}\n  {memory.id}", "dim")


def _fields(memory: Remembered, whose: str) -> dict[str, Any]:
    return {
        "whose": whose,
        "id": memory.id,
        "scope": memory.scope,
        "category": memory.category,
        "text": memory.text,
        "confidence": memory.confidence / 100,
        "space_id": memory.space_id,
        "user_id": memory.user_id,
        "agent_id": memory.agent_id,
        "sources": list(memory.sources),
        "uses": memory.uses,
        "superseded_by": memory.superseded_by,
    }


@app.command()
def report(context: typer.Context, as_json: _Json = False) -> None:
    """What is wrong with what is remembered, by scope."""

    async def work(runtime: Runtime, home: OrganizationId) -> Any:
        return await runtime.memory_report(organization=home)

    found = _work(context, work)
    if as_json:
        print_json(
            {
                "counts": dict(found.counts),
                "superseded": found.superseded,
                "findings": [
                    {
                        "problem": each.problem,
                        "scope": each.scope,
                        "memories": [one.id for one in each.memories],
                        "why": each.why,
                    }
                    for each in found.findings
                ],
            }
        )
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("scope", "memories", *PROBLEMS):
        table.add_column(name, justify="left" if name == "scope" else "right")
    by_scope = found.by_scope()
    for scope in SCOPES:
        problems = by_scope.get(scope, {})
        table.add_row(scope, str(found.counts.get(scope, 0)), *(str(problems.get(each, 0)) for each in PROBLEMS))
    stdout().print(table)
    stdout().print(f"Superseded: {found.superseded:,}.")
    for each in found.findings[:_MOST]:
        line = Text(f"{each.problem}, {each.scope}: {each.why}")
        for one in each.memories:
            line.append(f"\n  {one_line(printable(one.text))}").append(f"\n  {one.id}", "dim")
        stdout().print(line)
    if len(found.findings) > _MOST:
        stdout().print(f"… and {len(found.findings) - _MOST} more: --json shows all.")


@app.command()
def forget(
    context: typer.Context,
    memory: Annotated[str, typer.Argument(metavar="MEMORY", help="The id of the memory.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: _Json = False,
) -> None:
    """Forget a memory, whoever has it. It does not come again; the messages it rests on stay."""

    async def find(runtime: Runtime, home: OrganizationId) -> Known:
        return await runtime.db.read(_found, home, memory)

    async def work(runtime: Runtime, _home: OrganizationId) -> Receipt:
        return await runtime.forget_memory(memory, dry_run=dry_run)

    known = _work(context, find)
    if not (yes or dry_run):
        stdout().print(_told(*known))
        if not sys.stdin.isatty() or not typer.confirm("Forget it, for good?"):
            raise InvalidInput("Nothing was forgotten: say --yes.")
    receipt = _work(context, work)
    if as_json:
        print_json({"removed": dict(receipt.removed), "dry_run": dry_run})
        return
    many = ", ".join(f"{count} {name}" for name, count in receipt.removed.items())
    stdout().print(f"{'Would be removed' if dry_run else 'Removed'}: {many or 'nothing'}.")


def _found(tx: Tx, home: OrganizationId, memory_id: str) -> Known:
    [known] = _known(tx, [items.get(tx, find_subject(tx, home, "memory", memory_id))])
    return known
