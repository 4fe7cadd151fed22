"""`denizen mind`: an agent's states of mind, conversation by conversation: shown, set, reset, tried by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from denizen.agents import standing
from denizen.agents.outlook import Outlook
from denizen.cli.chat.rendering import printable
from denizen.cli.console import begin, print_json, stderr, stdout
from denizen.cli.house import open_house, open_records
from denizen.clock import Instant, moment
from denizen.errors import InvalidInput
from denizen.inbox.format import one_line
from denizen.reflection.records import Stance
from denizen.settings.shape import Settings
from denizen.spaces import directory

if TYPE_CHECKING:
    from denizen.app import Runtime
    from denizen.ids import AgentId, SpaceId
    from denizen.spaces.directory import Entity

app = typer.Typer(help="Show and change an agent's states of mind.", no_args_is_help=True)

AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's @handle.")]
SpaceName = Annotated[str, typer.Argument(metavar="SPACE", help="The space, by id or by name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
T = TypeVar("T")


@app.command()
def show(context: typer.Context, agent: AgentName, as_json: AsJson = False) -> None:
    """Show the agent's profile and state of mind in each of its conversations."""

    async def work(settings: Settings) -> list[tuple[str, Stance]]:
        async with open_records(settings) as (runtime, world):
            found = await runtime.find(agent, organization=world.owner.organization_id)
            stances = await runtime.stances((await runtime.get_agent(found.id)).id)
            return [((await runtime.db.read(directory.get_space, each.space_id)).name, each) for each in stances]

    found = asyncio.run(work(begin(context).settings))
    if as_json:
        print_json([{"space": name, **_as_object(each)} for name, each in found])
        return
    if not found:
        stderr().print(Text(f"{agent} has no profile and no state of mind in any conversation yet.", style="dim"))
    for name, each in found:
        _show(name, each)


def _show(name: str, each: Stance) -> None:
    """One conversation, in as many lines as there is to say."""
    console = stdout()
    mind = each.state.line() or "no particular state of mind"
    console.print(Text.assemble((printable(name), "cyan"), f"  {mind}"), soft_wrap=True)
    told = [f"profile {each.preset}: {each.preset_reason}"] if each.preset is not None else []
    told += [f"settings {json.dumps(dict(each.overrides), ensure_ascii=False)}"] if each.overrides else []
    told += [f"keeps {key}: {text}" for key, text in each.imprints.items()]
    for line in told:
        console.print(Text(f"  {printable(line)}", style="dim"), soft_wrap=True)


@app.command()
def history(context: typer.Context, agent: AgentName, space: SpaceName, as_json: AsJson = False) -> None:
    """Show how a state of mind came to be what it is, the newest first."""
    found = _there(context, agent, space, lambda runtime, who, where, _: runtime.states_of_mind(who, where))
    if as_json:
        rows = [{"at": _time(each.at), "cycle": each.cycle, "cause": each.cause, "metaprompt": each.metaprompt,
                 "outcome": each.outcome, "reason": each.reason, **each.state.as_dict()} for each in found]  # fmt: skip
        print_json(rows)
        return
    _print([(_time(each.at), each.cause, each.outcome, each.state.mood, each.reason) for each in found])


@app.command()
def signals(context: typer.Context, agent: AgentName, space: SpaceName, as_json: AsJson = False) -> None:
    """Show what was seen in how people feel there, the newest first."""
    found = _there(context, agent, space, lambda runtime, who, where, _: runtime.signals(who, where))
    if as_json:
        rows = [{"at": _time(each.at), "cycle": each.cycle, "person": each.person_id, "name": each.name,
                 "rule": each.rule, "score": each.score} for each in found]  # fmt: skip
        print_json(rows)
        return
    _print([(_time(each.at), f"cycle {each.cycle}", each.name, each.rule) for each in found])


@app.command("set")
def set_(
    context: typer.Context,
    agent: AgentName,
    space: SpaceName,
    mood: Annotated[str | None, typer.Option(help="Such as empathetic.")] = None,
    skill: Annotated[str | None, typer.Option(help="The user's skill, such as novice.")] = None,
    complexity: Annotated[str | None, typer.Option(help="Of the task, such as simple.")] = None,
    as_json: AsJson = False,
) -> None:
    """Set a state of mind: what is not said stays. The agent is told with its next cycle."""
    wanted: Any = {"mood": mood, "user_skill": skill, "task_complexity": complexity}
    found = _there(
        context, agent, space, lambda runtime, who, where, by: runtime.set_state_of_mind(who, where, **wanted, by=by)
    )
    _say(found, as_json)


@app.command()
def settings(
    context: typer.Context,
    agent: AgentName,
    space: SpaceName,
    preset: Annotated[str | None, typer.Option(help="One prompt profile, whatever the rules say.")] = None,
    mode: Annotated[str | None, typer.Option(help="What rules and defaults know it by.")] = None,
    profile: Annotated[str | None, typer.Option(help="How it reflects: a quick-start profile, such as basic.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what holds in a conversation instead of the agent's settings. Without an option, the agent's do again."""
    given: dict[str, Any] = {"preset": preset, "mode": mode, "reflection": profile and {"profile": profile}}

    async def work(runtime: Runtime, who: AgentId, where: SpaceId, _: Entity) -> Stance:
        return await runtime.db.write(standing.set_settings, who, where, given, outlook)

    house = begin(context).settings.profiles
    outlook = Outlook(house.presets, house.prompts)
    found = _there(context, agent, space, work)
    if as_json:
        print_json(_as_object(found))
    else:
        told = (
            json.dumps(dict(found.overrides), ensure_ascii=False) if found.overrides else "The agent's settings hold."
        )
        stderr().print(Text(told, style="dim"), soft_wrap=True)


@app.command()
def reset(context: typer.Context, agent: AgentName, space: SpaceName, as_json: AsJson = False) -> None:
    """Reset a state of mind. Nothing is imprinted, nothing counted of anybody; the history stays."""
    found = _there(
        context, agent, space, lambda runtime, who, where, by: runtime.reset_state_of_mind(who, where, by=by)
    )
    _say(found, as_json)


@app.command("try")
def try_(
    context: typer.Context,
    agent: AgentName,
    space: SpaceName,
    metaprompt: Annotated[str, typer.Argument(help="The metaprompt, by its id.")],
    apply: Annotated[bool, typer.Option("--apply", help="Let the answer change the state of mind.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a metaprompt now and show what comes of it. The call costs what it costs."""

    async def work(settings: Settings) -> Any:
        async with open_house(settings) as house:
            who, where = await _find(house.runtime, house.world.owner, agent, space)
            by = house.world.owner
            return await house.runtime.try_metaprompt(who, where, metaprompt, apply=apply, by=by)

    tried = asyncio.run(work(begin(context).settings))
    if as_json:
        print_json(
            {
                "prompt": tried.prompt,
                "failed": tried.run.why_not or None,
                "before": tried.before.state.as_dict(),
                "after": tried.after.as_dict(),
                "applied": tried.applied,
            }
        )
        return
    console = stdout()
    console.print(Text(printable(tried.prompt), style="dim"), soft_wrap=True)
    console.print()
    told = tried.run.why_not or tried.after.line() or "no particular state of mind"
    console.print(Text(printable(told)), soft_wrap=True)
    if tried.applied:
        stderr().print("The agent is told with its next cycle.", style="dim")


def _there(
    context: typer.Context,
    agent: str,
    space: str,
    work: Callable[[Runtime, AgentId, SpaceId, Entity], Awaitable[T]],
) -> T:
    async def in_records(settings: Settings) -> T:
        async with open_records(settings) as (runtime, world):
            who, where = await _find(runtime, world.owner, agent, space)
            return await work(runtime, who, where, world.owner)

    return asyncio.run(in_records(begin(context).settings))


async def _find(runtime: Runtime, owner: Entity, agent: str, space: str) -> tuple[AgentId, SpaceId]:
    """The agent, and the one of its spaces that has this id or name."""
    found = await runtime.find(agent, organization=owner.organization_id)
    who = (await runtime.get_agent(found.id)).id
    places = await runtime.db.read(directory.spaces_of, who)
    meant = [each for each in places if space in (each.id, each.name)]
    if not meant:
        known = ", ".join(repr(each.name) for each in places) or "none"
        raise InvalidInput(f"{agent} is in no space that is called {space!r}. There is: {known}.")
    if len(meant) > 1:
        raise InvalidInput(f"{agent} is in several spaces that are called {space!r}. Name it by its id.")
    return who, meant[0].id


def _say(found: Stance, as_json: bool) -> None:
    if as_json:
        print_json(_as_object(found))
    else:
        stderr().print(Text(found.state.line() or "no particular state of mind", style="dim"), soft_wrap=True)


def _as_object(found: Stance) -> dict[str, Any]:
    return {
        "space_id": found.space_id,
        "profile": {"id": found.preset, "reason": found.preset_reason},
        **found.state.as_dict(),
        "imprints": dict(found.imprints),
        "settings": dict(found.overrides),
    }


def _print(rows: Iterable[tuple[str, ...]]) -> None:
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(*(Text(printable(one_line(each))) for each in row))
    stdout().print(table)


def _time(at: Instant) -> str:
    return f"{moment(at):%Y-%m-%d %H:%M}"
