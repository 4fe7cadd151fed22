"""`denizen memory`: lists, searches, checks, reverts and forgets long-term memories."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, NamedTuple

import typer
from rich.table import Table
from rich.text import Text

from denizen.cli.api import Api, as_mention
from denizen.cli.console import MADE_FROM_OUTSIDE, new_table, printable, stdout
from denizen.cli.memory import queries
from denizen.cli.memory.queries import whose
from denizen.client import Client
from denizen.errors import InvalidInput
from denizen.inbox.format import one_line
from denizen.memory.history import difference
from denizen.memory.hygiene import PROBLEMS
from denizen.memory.policy import SCOPES
from denizen.shapes.memory import FindingOut, MemoryHistory, MemoryOut, MemoryVersionOut, ReportOut

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="List, search, check, revert and forget memories of people and conversations.",
)

_Scope = Annotated[str | None, typer.Option(help="Only of this scope: conversation, user, persona or organization.")]
_Limit = Annotated[int, typer.Option(min=1, max=1_000, help="How many at most.")]
_Person = Annotated[
    str | None, typer.Option(metavar="HANDLE", callback=as_mention, help="Only memories about this person.")
]
_MOST: Final = 20


class OwnedMemory(NamedTuple):
    """A memory, and its owner for people."""

    memory: MemoryOut
    whose: str


async def _known(client: Client, found: list[MemoryOut]) -> list[OwnedMemory]:
    names = await queries.names_in(client, found)
    return [OwnedMemory(each, whose(each, names)) for each in found]


@app.command("list")
def list_(api: Api, scope: _Scope = None, person: _Person = None, limit: _Limit = 50) -> None:
    """List memories, newest first.

    Lists what you can see: memories about you, between you and agents (admins: between agents and anyone), for
    everyone, and of the conversations that you are in.
    """
    wanted = _checked(scope)

    async def work(client: Client) -> list[OwnedMemory]:
        return await _known(client, await queries.list_memories(client, wanted, person, limit))

    _show(api, api.use(work))


@app.command()
def search(
    api: Api,
    query: Annotated[str, typer.Argument(metavar="WORDS", help="What to look for.")],
    scope: _Scope = None,
    limit: _Limit = _MOST,
) -> None:
    """Search memories, best first.

    Searches what you can see: memories about you, between you and agents, for everyone, and of your conversations.
    """
    wanted = _checked(scope)

    async def work(client: Client) -> list[OwnedMemory]:
        return await _known(client, await queries.search_memories(client, query, wanted, limit))

    _show(api, api.use(work))


def _checked(scope: str | None) -> str | None:
    if scope is not None and scope not in SCOPES:
        raise InvalidInput(f"There is no scope {scope!r}; there is {', '.join(SCOPES)}.")
    return scope


def _show(api: Api, found: list[OwnedMemory]) -> None:
    if api.prints_json([{"whose": whose, **memory.model_dump(mode="json")} for memory, whose in found]):
        return
    if not found:
        stdout().print("No memories yet.")
    for each in found:
        stdout().print(_told(*each))


def _told(memory: MemoryOut, whose: str) -> Text:
    """Renders a memory, and below it its owner and its id."""
    used = "never used" if not memory.uses else f"used {memory.uses}×"
    since = f"{memory.created_at:%Y-%m-%d}"
    about = [printable(whose), memory.category, used, since, *(["superseded"] if memory.superseded_by else [])]
    if memory.outside:
        about.append(MADE_FROM_OUTSIDE)
    text = Text(one_line(printable(memory.text)))
    return text.append(f"\n  {' · '.join(about)}\n  {memory.id}", "dim")


@app.command()
def report(api: Api) -> None:
    """List problems of memories, by scope.

    Only for admins. The text of a memory is shown only to those who can see it.
    """

    async def work(client: Client) -> tuple[ReportOut, Mapping[str, str]]:
        found = await client.memory_report()
        return found, {} if api.as_json else await _texts(client, found.findings[:_MOST])

    found, texts = api.use(work)
    if api.prints_json(found):
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


async def _texts(client: Client, findings: Sequence[FindingOut]) -> dict[str, str]:
    """Returns the texts of those that the caller may see."""
    ids = dict.fromkeys(id for each in findings for id in each.memories)
    found = [await queries.find_memory(client, id) for id in ids]
    return {each.id: one_line(printable(each.text)) for each in found if each is not None}


def _table(found: ReportOut) -> Table:
    table = new_table()
    for name in ("scope", "memories", *PROBLEMS):
        table.add_column(name, justify="left" if name == "scope" else "right")
    problems = Counter((each.scope, each.problem) for each in found.findings)
    for scope in SCOPES:
        table.add_row(scope, str(found.counts.get(scope, 0)), *(str(problems[scope, each]) for each in PROBLEMS))
    return table


_Memory = Annotated[str, typer.Argument(metavar="MEMORY", help="The id of the memory.")]
_KINDS: Final[Mapping[str, str]] = {
    "learned": "learned",
    "confirmed": "confirmed by another message",
    "said_again": "said again",
    "corrected": "corrected",
    "reverted": "reverted",
}
_STYLES: Final[Mapping[str, str]] = {"same": "", "added": "green", "removed": "red strike"}


@app.command()
def log(api: Api, memory: _Memory) -> None:
    """Show the history of a memory: its versions, what changed them, and why."""

    async def work(client: Client) -> tuple[MemoryHistory, Mapping[str, str]]:
        found = await client.memory_history(memory)
        return found, {} if api.as_json else await queries.names_of_authors(client, found)

    found, names = api.use(work)
    if api.prints_json(found):
        return
    for each in found.versions:
        stdout().print(_version(each, names))


def _version(version: MemoryVersionOut, names: Mapping[str, str]) -> Text:
    """Renders a version, and below it what changed it and why."""
    made_by = names.get(version.by_id or "", "") or version.model
    why = f"{len(version.sources)} message{'' if len(version.sources) == 1 else 's'}" if version.sources else ""
    about = [f"{version.created_at:%Y-%m-%d %H:%M}", _KINDS.get(version.kind, version.kind)]
    about += [f"by {printable(made_by)}"] if made_by else []
    about += [f"from {why}"] if why else []
    about += ["current"] if version.current else []
    text = Text(f"{version.number}. {one_line(printable(version.text))}")
    return text.append(f"\n   {' · '.join(about)}", "dim")


@app.command()
def diff(
    api: Api,
    memory: _Memory,
    old: Annotated[
        int | None, typer.Argument(metavar="[OLD]", min=1, help="The earlier version (default: the one before NEW).")
    ] = None,
    new: Annotated[
        int | None, typer.Argument(metavar="[NEW]", min=1, help="The later version (default: the newest).")
    ] = None,
) -> None:
    """Show how two versions of a memory differ, word by word."""

    async def work(client: Client) -> tuple[MemoryVersionOut, MemoryVersionOut]:
        found = (await client.memory_history(memory)).versions
        later = _numbered(found, new or len(found))
        return _numbered(found, old or max(later.number - 1, 1)), later

    earlier, later = api.use(work)
    pieces = difference(earlier.text, later.text)
    shown = [{"kind": each.kind, "text": each.text} for each in pieces]
    if api.prints_json({"old": earlier.number, "new": later.number, "difference": shown}):
        return
    stdout().print(Text(f"{earlier.number} → {later.number}", "dim"))
    # Marked with signs too: colours are not printed everywhere.
    signs = {"same": ("", ""), "added": ("{+", "+}"), "removed": ("[-", "-]")}
    line = Text()
    for each in pieces:
        before, after = signs[each.kind]
        line.append(f"{before}{printable(each.text)}{after}", _STYLES[each.kind])
    stdout().print(line)


def _numbered(versions: Sequence[MemoryVersionOut], number: int) -> MemoryVersionOut:
    if not 1 <= number <= len(versions):
        raise InvalidInput(f"There is no version {number}. There are {len(versions)}: denizen memory log lists them.")
    return versions[number - 1]


@app.command()
def revert(
    api: Api,
    memory: _Memory,
    version: Annotated[int, typer.Argument(min=1, help="The number of the version, from denizen memory log.")],
) -> None:
    """Restore the text of an earlier version.

    This adds a change to the history and removes nothing from it. What was forgotten cannot be reverted to.
    """

    async def work(client: Client) -> OwnedMemory:
        wanted = _numbered((await client.memory_history(memory)).versions, version)
        [known] = await _known(client, [await client.revert_memory(memory, wanted.id)])
        return known

    _show(api, [api.use(work)])


@app.command()
def forget(
    api: Api,
    memory: _Memory,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
) -> None:
    """Forget a memory. It is not stored again; the messages it came from stay.

    Members can forget memories about themselves; --dry-run is for admins.
    """

    async def work(client: Client) -> Mapping[str, int] | None:
        if not (yes or dry_run):
            _confirm(await _named(client, memory))
        return await queries.forget_memory(client, memory, dry_run=dry_run)

    removed = api.use(work)
    if api.prints_json({"removed": removed if removed is None else dict(removed), "dry_run": dry_run}):
        return
    if removed is None:
        stdout().print("Removed.")
    else:
        many = ", ".join(f"{count} {name}" for name, count in removed.items())
        stdout().print(f"{'Would be removed' if dry_run else 'Removed'}: {many or 'nothing'}.")


async def _named(client: Client, memory_id: str) -> Text:
    """Renders the memory, or only its id if the person who may forget it may not see it."""
    found = await queries.find_memory(client, memory_id)
    if found is None:
        return Text(f"memory {memory_id}")
    [known] = await _known(client, [found])
    return _told(*known)


def _confirm(named: Text) -> None:
    stdout().print(named)
    if not sys.stdin.isatty() or not typer.confirm("Forget it, for good?"):
        raise InvalidInput("Not forgotten. Confirm with --yes.")
