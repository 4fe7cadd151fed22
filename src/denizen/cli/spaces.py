"""`denizen spaces`: lists and manages spaces and their members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from denizen.amounts import human_size
from denizen.cli.agents import STYLES, confirm
from denizen.cli.api import Api, SpaceName, as_mention, find
from denizen.cli.console import new_table, printable, stderr, stdout, write_document
from denizen.client import Client, Member, Message, Space
from denizen.errors import InvalidInput
from denizen.shapes.spaces import RetentionOut
from denizen.shapes.vocabulary import MOST_DAYS

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Manage spaces.")

_MEMBERS_NAMED: Final = 4
_ID_CHARS: Final = 36
_Member = Annotated[str, typer.Argument(metavar="MEMBER", callback=as_mention, help="The member's handle or id.")]
_Floor = Annotated[
    str | None,
    typer.Option(help="Which agents answer if there are several: one, addressed or all."),
]
_RunLimit = Annotated[
    int | None,
    typer.Option(
        "--agent-run-limit",
        min=0,
        help="How many messages agents exchange before they stop until a person writes. 0: no limit.",
    ),
]
_Attention = Annotated[str, typer.Option(help="Which messages reach an agent: all, mentions or none.")]


@app.command("list")
def list_(api: Api) -> None:
    """List your spaces, with members and unread messages."""
    found = api.use(lambda client: client.spaces())
    api.print_list(found, _table, "You are not in any space yet. Create one with `denizen spaces create NAME`.")
    if not api.as_json:
        for each in found:
            for status in each.statuses:
                stdout().print(Text(f"! {printable(each.name)}: {printable(status.text)}", style="yellow"))


@app.command()
def show(
    api: Api,
    space: SpaceName,
    limit: Annotated[int, typer.Option(min=0, max=200, help="How many of the last messages to show.")] = 20,
) -> None:
    """Show the members and the last messages of a space."""

    async def work(client: Client) -> tuple[Space, list[Message]]:
        there = await find(client, space)
        return there, await client.messages(there.id, limit=limit) if limit else []

    there, said = api.use(work)
    if not api.prints_json(there.model_dump(mode="json") | {"messages": said}):
        _show(there, said)


@app.command()
def transcript(
    api: Api,
    space: SpaceName,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write (default: stdout).")] = None,
) -> None:
    """Write all messages of a space, in Markdown."""

    async def work(client: Client) -> str:
        return await client.transcript((await find(client, space)).id)

    text = api.use(work)
    if output is not None or not api.prints_json({"markdown": text}):
        write_document(text, output)


@app.command()
def create(
    api: Api,
    name: Annotated[str, typer.Argument(help="The name.")],
    members: Annotated[
        list[str] | None, typer.Argument(metavar="[MEMBER]...", help="Other members: handles or ids.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Only members can see it.")] = False,
    floor: _Floor = None,
    agent_run_limit: _RunLimit = None,
) -> None:
    """Create a space with yourself and the named members."""

    joining = [as_mention(each) for each in members or ()]

    async def work(client: Client) -> Space:
        return await client.create_space(name, joining, private=private, floor=floor, agent_run_limit=agent_run_limit)

    made = api.use(work)
    api.tell(made, f'The space "{printable(made.name)}" is created. Its id is {made.id}.')


@app.command()
def edit(
    api: Api,
    space: SpaceName,
    name: Annotated[str | None, typer.Option(help="The new name.")] = None,
    private: Annotated[bool | None, typer.Option("--private/--public", help="Whether only members can see it.")] = None,
    floor: _Floor = None,
    agent_run_limit: _RunLimit = None,
) -> None:
    """Rename a space, make it private, or change which agents answer."""
    if all(each is None for each in (name, private, floor, agent_run_limit)):
        raise InvalidInput("Say what to change: --name, --private, --public, --floor or --agent-run-limit.")

    async def work(client: Client) -> Space:
        there = await find(client, space)
        return await client.change_space(
            there.id, name=name, private=private, floor=floor, agent_run_limit=agent_run_limit
        )

    made = api.use(work)
    private_too = ", private" if made.private else ""
    api.tell(made, f'It is "{printable(made.name)}" now{private_too}, with the floor {made.floor}.')


@app.command("continue")
def continue_(api: Api, space: SpaceName) -> None:
    """Let agents that stopped answering each other in a space continue."""

    async def work(client: Client) -> Space:
        return await client.let_agents_go_on((await find(client, space)).id)

    there = api.use(work)
    api.tell(there, f'The agents in "{printable(there.name)}" may go on.')


@app.command()
def keep(
    api: Api,
    space: SpaceName,
    days: Annotated[
        int | None, typer.Option(min=0, max=MOST_DAYS, help="Keep messages for so many days. 0: for ever.")
    ] = None,
    archive: Annotated[
        bool, typer.Option("--archive", help="Write them to a file on the server before they are removed.")
    ] = False,
    default: Annotated[bool, typer.Option("--default", help="Keep them as long as the organization says.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Show or set how long the messages of a space are kept. By default for ever."""
    if default and days is not None:
        raise InvalidInput("Say --days or --default, not both.")
    there = api.use(lambda client: find(client, space))
    changes = default or days is not None
    if days and not yes:
        _ask_before(there, days, api.use(lambda client: client.retention(there.id, days=days)).expired)
    if changes:
        kept = api.use(lambda client: client.set_retention(there.id, None if default else days, archive=archive))
    else:
        kept = api.use(lambda client: client.retention(there.id))
    if not api.prints_json(kept):
        stdout().print(Text(_kept_sentence(there, kept)))


def _ask_before(space: Space, days: int, expired: int) -> None:
    older = "1 message is" if expired == 1 else f"{expired:,} messages are"
    told = f'In "{printable(space.name)}" {older} older than {days} days. They will be removed for good.'
    confirm(f"{told} Go on?")


def _kept_sentence(space: Space, kept: RetentionOut) -> str:
    whose = "" if kept.own else ", as everywhere in the organization"
    if kept.days == 0:
        return f'Messages in "{printable(space.name)}" are kept for ever{whose}.'
    then = "then archived and removed" if kept.archive else "then removed"
    return f'Messages in "{printable(space.name)}" are kept for {kept.days} days, {then}{whose}.'


@app.command("open")
def open_(
    api: Api,
    space: Annotated[str, typer.Argument(metavar="SPACE_ID", help="The id of a private space that you are not in.")],
    reason: Annotated[str, typer.Option(help="The reason, shown to the members and kept in the audit log.")],
) -> None:
    """Open a private space to read it for an hour (owners only). Its members are told who opened it, and why."""
    made = api.use(lambda client: client.open_private_space(space, reason))
    if not api.prints_json(made):
        stderr().print(f"You can read this space until {made.until:%Y-%m-%d %H:%M} UTC. Its members were told.")


@app.command()
def join(api: Api, space: SpaceName, member: _Member, attention: _Attention = "all") -> None:
    """Add a member to a space. Its agents are told."""

    async def work(client: Client) -> tuple[Space, Member]:
        there = await find(client, space)
        return there, await client.add_member(there.id, member, attention=attention)

    there, came = api.use(work)
    api.tell(came, f'@{came.handle} is in "{printable(there.name)}".')


@app.command()
def leave(api: Api, space: SpaceName, member: _Member) -> None:
    """Remove a member from a space. Their messages stay."""

    async def work(client: Client) -> Space:
        there = await find(client, space)
        await client.remove_member(there.id, member)
        return there

    there = api.use(work)
    said = f'{printable(member)} is not in "{printable(there.name)}" any more.'
    api.tell({"space": there.id, "member": member, "left": True}, said)


@app.command()
def attend(
    api: Api,
    space: SpaceName,
    member: _Member,
    attention: Annotated[str, typer.Argument(help="all, mentions or none.")],
) -> None:
    """Set which messages of a space reach an agent's inbox."""

    async def work(client: Client) -> Member:
        return await client.change_member((await find(client, space)).id, member, attention=attention)

    changed = api.use(work)
    api.tell(changed, f"@{changed.handle} attends to: {changed.attention}.")


def _table(found: Sequence[Space]) -> Table:
    table = new_table()
    table.add_column("space", max_width=_ID_CHARS, overflow="ellipsis", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("messages", justify="right")
    table.add_column("unread", justify="right")
    table.add_column("members", ratio=1)
    names = Counter(each.name.strip().casefold() for each in found)
    for each in found:
        name, members = Text(printable(each.name), style="cyan"), Text(_names(each.members), style="dim")
        if names[each.name.strip().casefold()] > 1:
            # Commands take the id where a name is not enough.
            name.append(f"\n{each.id}", style="dim")
            members.append(f"\ncreated {each.created_at:%Y-%m-%d %H:%M} UTC", style="dim")
        table.add_row(
            name,
            Text("private" if each.private else "", style="yellow"),
            f"{each.last_seq:,}",
            Text(f"{each.unread:,}", style="bold" if each.unread else "dim"),
            members,
        )
    return table


def _names(members: Sequence[Member]) -> str:
    named = [f"@{each.handle}" for each in members[:_MEMBERS_NAMED]]
    more = len(members) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "") if members else "nobody"


def _show(space: Space, said: Sequence[Message]) -> None:
    console = stdout()
    kind = " private" if space.private else ""
    console.print(Text.assemble((printable(space.name), "bold"), (kind, "yellow"), (f"  {space.id}", "dim")))
    if sum(each.kind == "agent" for each in space.members) > 1:
        console.print(Text(f"  floor: {space.floor}", style="dim"))
    if space.stopped:
        told = "  Its agents have stopped waking each other: `denizen spaces continue` lets them go on."
        console.print(Text(told, style="yellow"))
    for each in space.members:
        attends = "" if each.attention == "all" else f", attends to {each.attention}"
        about = f"  {each.kind}{f', {each.role}' if each.role != 'member' else ''}{attends}"
        console.print(
            Text.assemble(("  ", ""), (f"@{each.handle}", "cyan"), (f"  {printable(each.name)}", ""), (about, "dim"))
        )
    if not said:
        console.print(Text("  No messages yet." if not space.last_seq else "", style="dim"))
    for each in said:
        head = f"\n{each.created_at:%Y-%m-%d %H:%M}  #{each.seq}  "
        style = STYLES["alive"] if each.author.kind == "agent" else "bold"
        console.print(Text.assemble((head, "dim"), (printable(each.author.name), style)))
        if each.text.strip():
            console.print(Text(printable(each.text)))
        for file in each.files:
            console.print(Text(f"[{printable(file.name)}, {human_size(file.size)}]", style="dim"))
