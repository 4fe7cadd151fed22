"""`denizen approvals`: lists and answers requests for approval, and lists and revokes approvals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Final

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from denizen.cli.api import Api, as_mention
from denizen.cli.console import printable, stderr, stdout
from denizen.client import Agent, Client
from denizen.errors import InvalidInput, existing
from denizen.plans.schedule import delay_seconds
from denizen.shapes.calls import ApprovalOut, CallOut
from denizen.shortening import shortened

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Approve or refuse what agents want to do outside the server."
)

_SHOWN: Final = 60
"""Characters of the arguments in a table; `show` prints all of them."""
_Waiting = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the waiting call, or the code that is shown with it.")
]


@dataclass(frozen=True, slots=True)
class _Approvals:
    """The caller's open requests, and the approvals that still count."""

    waiting: list[CallOut]
    given: list[ApprovalOut]
    agents: dict[str, Agent]

    def agent_name(self, agent_id: str) -> str:
        found = self.agents.get(agent_id)
        return agent_id if found is None else f"@{found.handle}"


@app.command("list")
def list_(
    api: Api,
    agent: Annotated[
        str | None, typer.Option(metavar="AGENT", callback=as_mention, help="Only of this agent: its handle or id.")
    ] = None,
) -> None:
    """Show calls that wait for your approval, and approvals that still count."""
    found = api.use(lambda client: _load(client, agent))
    if api.prints_json({"waiting": found.waiting, "given": found.given}):
        return
    if not found.waiting and not found.given:
        stderr().print("No calls wait for your approval, and no approvals are in force.", style="dim")
        return
    if found.waiting:
        stdout().print(_waiting_table(found))
    if found.given:
        stdout().print(_given_table(found))


@app.command()
def show(
    api: Api,
    id: Annotated[str, typer.Argument(metavar="ID", help="Id or code of a waiting call, or id of an approval.")],
) -> None:
    """Show a call or an approval with its exact arguments, and why a person is asked."""

    async def work(client: Client) -> tuple[_Approvals, CallOut | ApprovalOut]:
        found = await _load(client, None)
        return found, _find(found.waiting, id) or _find_given(found.given, id)

    found, one = api.use(work)
    if api.prints_json(one):
        return
    arguments = json.dumps(one.arguments, ensure_ascii=False, indent=2)
    rows = [("Agent", found.agent_name(one.agent_id)), ("Tool", one.tool), ("Arguments", arguments)]
    if isinstance(one, CallOut):
        until = "" if one.expires_at is None else f"{one.expires_at:%Y-%m-%d %H:%M} UTC, then it is refused"
        rows += [("Why", one.why or ""), ("Waits until", until)]
    else:
        rows += [("Times left", str(one.uses_left)), ("Until", f"{one.expires_at:%Y-%m-%d %H:%M} UTC")]
    for label, value in rows:
        stdout().print(Text.assemble((f"{label}: ", "bold"), printable(value)), soft_wrap=True)


@app.command()
def approve(
    api: Api,
    id: _Waiting,
    times: Annotated[int, typer.Option(min=1, max=10_000, help="How often the same call may be made.")] = 1,
    lasts: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long the approval counts: 1h, 2 days. At most 30 days.")
    ] = "1 day",
) -> None:
    """Approve a call, with exactly the arguments that `show` prints."""
    seconds = delay_seconds(lasts)

    async def work(client: Client) -> CallOut:
        return await client.approve(await _waiting_id(client, id), times=times, seconds=seconds)

    _tell(api, api.use(work), "Approved")


@app.command()
def deny(api: Api, id: _Waiting) -> None:
    """Refuse a call. The agent is told."""

    async def work(client: Client) -> CallOut:
        return await client.deny(await _waiting_id(client, id))

    _tell(api, api.use(work), "Refused")


@app.command()
def revoke(
    api: Api,
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of an approval that `list` shows.")],
) -> None:
    """Revoke an approval: the agent asks again before it makes the same call."""

    async def work(client: Client) -> ApprovalOut:
        found = _find_given((await _load(client, None)).given, id)
        await client.revoke_approval(found.agent_id, found.id)
        return found

    revoked = api.use(work)
    api.tell({"id": revoked.id, "revoked": True}, f"Revoked: {printable(revoked.tool)} asks again.")


async def _load(client: Client, agent: str | None) -> _Approvals:
    agents = {each.id: each for each in await client.agents()}
    if agent is not None:
        wanted = (await client.agent(agent)).id
        agents = {id: each for id, each in agents.items() if id == wanted}
    waiting = [each for each in await client.calls() if each.approval and each.agent_id in agents]
    given = [each for id in agents for each in await client.approvals(id)]
    return _Approvals(waiting, given, agents)


async def _waiting_id(client: Client, wanted: str) -> str:
    """Returns the id of the call with that id or code. An unknown id goes to the server, which knows what happened to
    it.
    """
    found = _find(await client.calls(), wanted)
    return wanted if found is None else found.id


def _find(waiting: list[CallOut], wanted: str) -> CallOut | None:
    found = [each for each in waiting if each.id == wanted or (each.code is not None and each.code == wanted.upper())]
    if len(found) > 1:
        raise InvalidInput(f"Several calls have the code {wanted}. Name the one you mean by its id.")
    return found[0] if found else None


def _find_given(given: list[ApprovalOut], wanted: str) -> ApprovalOut:
    return existing(next((each for each in given if each.id == wanted), None), "approval", wanted)


def _waiting_table(found: _Approvals) -> Table:
    table = Table("Waiting", "Code", "Agent", "Tool", "Arguments", "Why", box=box.SIMPLE, pad_edge=False)
    for each in found.waiting:
        row = (
            each.id,
            each.code or "",
            found.agent_name(each.agent_id),
            each.tool,
            _short(each.arguments),
            each.why or "",
        )
        table.add_row(*map(printable, row))
    return table


def _given_table(found: _Approvals) -> Table:
    table = Table("Approved", "Agent", "Tool", "Arguments", "Times left", "Until (UTC)", box=box.SIMPLE, pad_edge=False)
    for each in found.given:
        until = f"{each.expires_at:%Y-%m-%d %H:%M}"
        row = each.id, found.agent_name(each.agent_id), each.tool, _short(each.arguments), str(each.uses_left), until
        table.add_row(*map(printable, row))
    return table


def _short(arguments: object) -> str:
    return shortened(json.dumps(arguments, ensure_ascii=False), _SHOWN)


def _tell(api: Api, call: CallOut, what: str) -> None:
    api.tell(call, f"{what}: {printable(call.tool)} with {printable(_short(call.arguments))}.")
