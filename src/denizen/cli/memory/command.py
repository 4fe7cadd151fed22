"""`denizen memory`: what is remembered beyond agents' own lives, what is wrong with it, and forgetting it."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Final, NamedTuple, TypeVar

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from denizen.cli.chat.rendering import printable
from denizen.cli.console import MADE_FROM_OUTSIDE, begin, print_json, stdout
from denizen.cli.desk.opening import AsJson, Token, Url, client_for, named
from denizen.cli.house import open_records
from denizen.cli.memory.port import Memories, whose
from denizen.cli.memory.remote import RemoteMemories
from denizen.client.shapes.memories import Memory, MemoryFinding, MemoryReport
from denizen.errors import InvalidInput
from denizen.inbox.format import one_line
from denizen.memory.hygiene import PROBLEMS
from denizen.memory.policy import SCOPES
from denizen.settings.loading import Loaded

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="See what is remembered of people and conversations, find out what is wrong with it, and forget it.",
)

T = TypeVar("T")

_Scope = Annotated[str | None, typer.Option(help="Only of this scope: conversation, user, persona or organization.")]
_Limit = Annotated[int, typer.Option(min=1, max=1_000, help="At most so many.")]
_Person = Annotated[str | None, typer.Option(metavar="@HANDLE", help="Only what is remembered of this person.")]
_MOST: Final = 20


def _at(context: typer.Context, url: str | None, token: str | None, work: Callable[[Memories], Awaitable[T]]) -> T:
    """What the work gives, done where it is to be done."""
    loaded = begin(context)

    async def done() -> T:
        async with _opened(loaded, url, token) as memories:
            return await work(memories)

    return asyncio.run(done())


@asynccontextmanager
async def _opened(loaded: Loaded, url: str | None, token: str | None) -> AsyncGenerator[Memories]:
    address, secret = named(loaded, url, token)
    if address is not None:
        async with client_for(loaded.settings, address, secret) as client:
            yield RemoteMemories(client)
        return
    # Imported here: asking a server needs none of it, and it takes a second.
    from denizen.cli.memory.local import LocalMemories

    async with open_records(loaded.settings) as (runtime, world):
        yield LocalMemories(runtime, world.owner)


class Known(NamedTuple):
    """A memory, and whose it is, for people."""

    memory: Memory
    whose: str


async def _known(memories: Memories, found: list[Memory]) -> list[Known]:
    names = await memories.names(found)
    return [Known(each, whose(each, names)) for each in found]


@app.command("list")
def list_(
    context: typer.Context,
    scope: _Scope = None,
    person: _Person = None,
    limit: _Limit = 50,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """What is remembered, the newest first.

    On this machine all of it. Of a server what you may see: what is remembered of you, between you and agents (for
    admins: between agents and anyone), for everyone, and of the conversations that you are in.
    """
    wanted = _checked(scope)

    async def work(memories: Memories) -> list[Known]:
        return await _known(memories, await memories.listed(wanted, person, limit))

    _show(_at(context, url, token, work), as_json)


@app.command()
def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="WORDS", help="What to look for.")],
    scope: _Scope = None,
    limit: _Limit = _MOST,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """What is remembered on something, the best first.

    On this machine in all of it. On a server in what is remembered of you, between you and agents, and for everyone;
    what is of conversations is searched on the machine only.
    """
    wanted = _checked(scope)

    async def work(memories: Memories) -> list[Known]:
        return await _known(memories, await memories.searched(query, wanted, limit))

    _show(_at(context, url, token, work), as_json)


def _checked(scope: str | None) -> str | None:
    if scope is not None and scope not in SCOPES:
        raise InvalidInput(f"There is no scope {scope!r}; there is {', '.join(SCOPES)}.")
    return scope


def _show(found: list[Known], as_json: bool) -> None:
    if as_json:
        print_json([{"whose": whose, **memory.model_dump(mode="json")} for memory, whose in found])
        return
    if not found:
        stdout().print("Nothing is remembered.")
    for each in found:
        stdout().print(_told(*each))


def _told(memory: Memory, whose: str) -> Text:
    """What is remembered, and below it whose it is, and its id."""
    used = "never used" if not memory.uses else f"used {memory.uses}×"
    since = f"{memory.created_at:%Y-%m-%d}"
    about = [printable(whose), memory.category, used, since, *(["superseded"] if memory.superseded_by else [])]
    if memory.outside:
        about.append(MADE_FROM_OUTSIDE)
    text = Text(one_line(printable(memory.text)))
    return text.append(f"\n  {' · '.join(about)}\n  {memory.id}", "dim")


@app.command()
def report(context: typer.Context, as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """What is wrong with what is remembered, by scope.

    On a server it is for admins, and what a memory says is shown to those who may see it.
    """

    async def work(memories: Memories) -> tuple[MemoryReport, Mapping[str, str]]:
        found = await memories.report()
        return found, {} if as_json else await _texts(memories, found.findings[:_MOST])

    found, texts = _at(context, url, token, work)
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    stdout().print(_table(found))
    stdout().print(f"Superseded: {found.superseded:,}.")
    for each in found.findings[:_MOST]:
        line = Text(f"{each.problem}, {each.scope}: {each.why}")
        for id in each.memories:
            line.append(f"\n  {texts[id]}" if id in texts else "").append(f"\n  {id}", "dim")
        stdout().print(line)
    if len(found.findings) > _MOST:
        stdout().print(f"… and {len(found.findings) - _MOST} more: --json shows all.")


async def _texts(memories: Memories, findings: tuple[MemoryFinding, ...]) -> dict[str, str]:
    """What is said by those of them that one may see."""
    found = [await memories.find(id) for id in dict.fromkeys(id for each in findings for id in each.memories)]
    return {each.id: one_line(printable(each.text)) for each in found if each is not None}


def _table(found: MemoryReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("scope", "memories", *PROBLEMS):
        table.add_column(name, justify="left" if name == "scope" else "right")
    problems = Counter((each.scope, each.problem) for each in found.findings)
    for scope in SCOPES:
        table.add_row(scope, str(found.counts.get(scope, 0)), *(str(problems[scope, each]) for each in PROBLEMS))
    return table


@app.command()
def forget(
    context: typer.Context,
    memory: Annotated[str, typer.Argument(metavar="MEMORY", help="The id of the memory.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Forget a memory, whoever has it. It does not come again; the messages it rests on stay.

    On a server, who is no admin forgets what is remembered of them, and cannot try it with --dry-run.
    """

    async def work(memories: Memories) -> Mapping[str, int] | None:
        if not (yes or dry_run):
            _confirm(await _named(memories, memory))
        return await memories.forget(memory, dry_run=dry_run)

    removed = _at(context, url, token, work)
    if as_json:
        print_json({"removed": removed if removed is None else dict(removed), "dry_run": dry_run})
    elif removed is None:
        stdout().print("Removed.")
    else:
        many = ", ".join(f"{count} {name}" for name, count in removed.items())
        stdout().print(f"{'Would be removed' if dry_run else 'Removed'}: {many or 'nothing'}.")


async def _named(memories: Memories, memory_id: str) -> Text:
    """The memory, or only its id where it is not for the eyes of whoever may forget it."""
    found = await memories.find(memory_id)
    if found is None:
        return Text(f"memory {memory_id}")
    [known] = await _known(memories, [found])
    return _told(*known)


def _confirm(named: Text) -> None:
    stdout().print(named)
    if not sys.stdin.isatty() or not typer.confirm("Forget it, for good?"):
        raise InvalidInput("Nothing was forgotten: say --yes.")
