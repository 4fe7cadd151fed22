"""`denizen mind`: shows, sets, resets and tries an agent's states of mind, by conversation.

Its output functions also serve `denizen panel mind`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

import typer
from pydantic import JsonValue
from rich.table import Table
from rich.text import Text

from denizen.cli.api import AN_ID, AgentName, AsJson, Token, Url, use_api
from denizen.cli.chat.rendering import printable
from denizen.cli.console import print_json, stderr, stdout
from denizen.client import Client
from denizen.errors import InvalidInput
from denizen.inbox.format import one_line
from denizen.reflection import state as words
from denizen.shapes.stances import RunOut, SignalOut, StanceOut, StandingOut, StateOut, TriedOut

app = typer.Typer(
    help="Show and change an agent's states of mind. Those of a panel's advisors: `denizen panel mind`.",
    no_args_is_help=True,
)

Mood = Annotated[str | None, typer.Option("--mood", help="The mood, such as empathetic.")]
Skill = Annotated[str | None, typer.Option("--skill", help="The user's skill, such as novice.")]
Complexity = Annotated[str | None, typer.Option("--complexity", help="The complexity of the task, such as simple.")]
MetapromptName = Annotated[str, typer.Argument(metavar="METAPROMPT", help="The metaprompt, by its id.")]
Apply = Annotated[bool, typer.Option("--apply", help="Apply the result to the state of mind.")]
SpaceName = Annotated[str, typer.Argument(metavar="SPACE", help="The space, by id or by name.")]
T = TypeVar("T")
SHOWN: Final = 100
"""Lines of a history."""


@app.command()
def show(
    context: typer.Context, agent: AgentName, as_json: AsJson = False, url: Url = None, token: Token = None
) -> None:
    """Show the agent's profile and state of mind in each of its conversations."""
    found = use_api(context, url, token, lambda client: client.stances(agent))
    if as_json:
        print_json([{"space": each.space, **_as_object(each)} for each in found])
        return
    if not found:
        stderr().print(Text(f"{agent} has no profile and no state of mind in any conversation yet.", style="dim"))
    for each in found:
        _show(each)


def _show(each: StandingOut) -> None:
    """Prints one conversation."""
    console = stdout()
    console.print(Text.assemble((printable(each.space), "cyan"), f"  {as_told(each.state)}"), soft_wrap=True)
    told = [f"profile {each.profile.id}: {each.profile.reason}"] if each.profile.id is not None else []
    told += [f"settings {_settings(each)}"] if each.settings else []
    told += [f"keeps {key}: {text}" for key, text in each.imprints.items()]
    for line in told:
        console.print(Text(f"  {printable(line)}", style="dim"), soft_wrap=True)


@app.command()
def history(
    context: typer.Context,
    agent: AgentName,
    space: SpaceName,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Show the changes of a state of mind, newest first."""
    found = _there(
        context, url, token, agent, space, lambda client, where: client.states_of_mind(agent, where, limit=SHOWN)
    ).runs
    tell_runs(found, as_json)


@app.command()
def signals(
    context: typer.Context,
    agent: AgentName,
    space: SpaceName,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Show the signals in people's messages there, newest first."""
    found = _there(
        context, url, token, agent, space, lambda client, where: client.signals(agent, where, limit=SHOWN)
    ).signals
    tell_signals(found, as_json)


@app.command("set")
def set_(
    context: typer.Context,
    agent: AgentName,
    space: SpaceName,
    mood: Mood = None,
    skill: Skill = None,
    complexity: Complexity = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Set a state of mind. Options that are not given stay unchanged. Takes effect with the next cycle."""
    wanted = those_said(mood, skill, complexity)
    found = _there(
        context, url, token, agent, space, lambda client, where: client.set_state_of_mind(agent, where, **wanted)
    )
    _say(found, as_json)


@app.command()
def settings(
    context: typer.Context,
    agent: AgentName,
    space: SpaceName,
    preset: Annotated[str | None, typer.Option(help="Always use this prompt profile.")] = None,
    mode: Annotated[str | None, typer.Option(help="The mode that rules and defaults use.")] = None,
    profile: Annotated[str | None, typer.Option(help="Reflection: a quick-start profile, such as basic.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Override the agent's settings in a conversation. Without options, the overrides are removed."""
    given: dict[str, JsonValue] = {"preset": preset, "mode": mode, "reflection": profile and {"profile": profile}}
    wanted = {name: value for name, value in given.items() if value}

    async def work(client: Client, where: str) -> StanceOut:
        return await client.set_stance_settings(agent, where, wanted)

    found = _there(context, url, token, agent, space, work, models=True)
    if as_json:
        print_json(_as_object(found))
    else:
        told = _settings(found) if found.settings else "The agent's settings hold."
        stderr().print(Text(printable(told), style="dim"), soft_wrap=True)


@app.command()
def reset(
    context: typer.Context,
    agent: AgentName,
    space: SpaceName,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Reset a state of mind: mood, imprints and counters. The history stays."""

    async def work(client: Client, where: str) -> StanceOut:
        await client.reset_state_of_mind(agent, where)
        return await client.stance(agent, where)

    _say(_there(context, url, token, agent, space, work), as_json)


@app.command("try")
def try_(
    context: typer.Context,
    agent: AgentName,
    space: SpaceName,
    metaprompt: MetapromptName,
    apply: Apply = False,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Run a metaprompt now and show its result. This makes one model call."""
    tried = _there(
        context,
        url,
        token,
        agent,
        space,
        lambda client, where: client.try_metaprompt(agent, where, metaprompt, apply=apply),
        models=True,
    )
    tell_tried(tried, as_json, "The agent is told with its next cycle.")


def _there(
    context: typer.Context,
    url: str | None,
    token: str | None,
    agent: str,
    space: str,
    work: Callable[[Client, str], Awaitable[T]],
    *,
    models: bool = False,
) -> T:
    """What the work gives, done where it is to be done, with the id of the space that is meant."""

    async def found(client: Client) -> T:
        return await work(client, await _find(client, agent, space))

    return use_api(context, url, token, found, models=models)


async def _find(client: Client, agent: str, wanted: str) -> str:
    """Returns the agent's space with this id or name: among those the caller may see, and those it has a stance in."""
    if AN_ID.fullmatch(wanted.strip().lower()):
        return wanted.strip().lower()
    known = {each.space_id: each.space for each in await client.stances(agent)}
    who = agent.removeprefix("@").lower()
    for each in await client.spaces_named(wanted):
        if any(who in (one.handle, one.id) for one in each.members):
            known[each.id] = each.name
    meant = [id for id, name in known.items() if name == wanted]
    if not meant:
        names = ", ".join(repr(each) for each in known.values()) or "none"
        raise InvalidInput(f"{agent} is in no space that is called {wanted!r}. It has a state of mind in: {names}.")
    if len(meant) > 1:
        raise InvalidInput(f"{agent} is in several spaces that are called {wanted!r}. Name it by its id.")
    return meant[0]


def those_said(mood: str | None, skill: str | None, complexity: str | None) -> dict[str, str]:
    """Returns the parts of a state of mind that are to change."""
    given = {"mood": mood, "user_skill": skill, "task_complexity": complexity}
    return {name: value for name, value in given.items() if value is not None}


def tell_runs(found: Iterable[RunOut], as_json: bool, *, when: str = "cycle") -> None:
    """Prints the history of a state of mind; `when` is the unit of its times."""
    if as_json:
        rows = [{"at": _time(each.at), when: each.cycle, "cause": each.cause, "metaprompt": each.metaprompt,
                 "outcome": each.outcome, "reason": each.reason, **dict(each.state)} for each in found]  # fmt: skip
        print_json(rows)
        return
    _print([(_time(each.at), each.cause, each.outcome, each.state.mood, each.reason) for each in found])


def tell_signals(found: Iterable[SignalOut], as_json: bool, *, when: str = "cycle") -> None:
    """Prints the signals of people's sentiment."""
    if as_json:
        rows = [{"at": _time(each.at), when: each.cycle, "person": each.person, "name": each.name,
                 "rule": each.rule, "score": each.score} for each in found]  # fmt: skip
        print_json(rows)
        return
    _print([(_time(each.at), f"{when} {each.cycle}", each.name, each.rule) for each in found])


def tell_tried(tried: TriedOut, as_json: bool, once_applied: str) -> None:
    """Prints the prompt and the result."""
    if as_json:
        print_json(tried.model_dump(mode="json"))
        return
    console = stdout()
    console.print(Text(printable(tried.prompt), style="dim"), soft_wrap=True)
    console.print()
    console.print(Text(printable(tried.failed or as_told(tried.after))), soft_wrap=True)
    if tried.applied:
        stderr().print(once_applied, style="dim")


def _say(found: StanceOut, as_json: bool) -> None:
    if as_json:
        print_json(_as_object(found))
    else:
        stderr().print(Text(as_told(found.state), style="dim"), soft_wrap=True)


def as_told(state: StateOut) -> str:
    """Returns the state of mind as the agent is told of it."""
    return printable(words.StateOfMind(**state.model_dump()).line() or "no particular state of mind")


def _settings(found: StanceOut) -> str:
    return json.dumps(dict(found.settings), ensure_ascii=False)


def _as_object(found: StanceOut) -> dict[str, Any]:
    return {
        "space_id": found.space_id,
        "profile": found.profile.model_dump(),
        **found.state.model_dump(),
        "imprints": dict(found.imprints),
        "settings": dict(found.settings),
    }


def _print(rows: Iterable[tuple[str, ...]]) -> None:
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(*(Text(printable(one_line(each))) for each in row))
    stdout().print(table)


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"
