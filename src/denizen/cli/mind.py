"""`denizen mind`: shows, sets, resets and tries an agent's states of mind, by conversation.

`add_commands` adds the same commands to `denizen panel mind`, for the advisors of a panel.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Generic, TypeVar

import typer
from pydantic import JsonValue
from rich.table import Table
from rich.text import Text

from denizen.cli.api import AN_ID, AgentName, Api
from denizen.cli.console import printable, stderr, stdout
from denizen.client import Client
from denizen.errors import InvalidInput
from denizen.inbox.format import one_line
from denizen.reflection import state as words
from denizen.shapes.stances import (
    RunOut,
    RunPage,
    SignalOut,
    SignalPage,
    StanceOut,
    StandingOut,
    StateOut,
    TriedOut,
    VoiceStanceOut,
)

app = typer.Typer(
    add_completion=False,
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
S = TypeVar("S", bound=StanceOut | VoiceStanceOut)
Command = TypeVar("Command", bound=Callable[..., None])
SHOWN: Final = 100
"""Lines of a history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MindCommands(Generic[S]):
    """States of mind of one kind: of agents in their spaces, or of advisors in their panels.

    The commands name one by two arguments; `find` turns both into ids. The methods are those of the client.
    """

    arguments: tuple[Any, Any]
    find: Callable[[Client, str, str], Awaitable[tuple[str, str]]]
    all_of: Callable[[Client, str], Awaitable[list[S]]]
    title: Callable[[S], str]
    details: Callable[[S], list[str]]
    as_object: Callable[[S], dict[str, Any]]
    stance: Callable[[Client, str, str], Awaitable[S]]
    set_state: Callable[..., Awaitable[S]]
    reset: Callable[[Client, str, str], Awaitable[None]]
    history: Callable[..., Awaitable[RunPage]]
    signals: Callable[..., Awaitable[SignalPage]]
    try_metaprompt: Callable[..., Awaitable[TriedOut]]
    turn: str
    """A turn of theirs: `cycle` or `turn`."""
    show_help: str
    takes_effect: str
    try_help: str
    told: str


def add_commands(app: typer.Typer, kind: MindCommands[S]) -> None:
    """Adds the commands to show, set, reset and try states of mind of this kind."""

    def named(command: Command) -> Command:
        """Gives the arguments of the command the names and help of this kind."""
        given = dict(zip(("first", "second"), kind.arguments, strict=True))
        command.__annotations__.update({name: each for name, each in given.items() if name in command.__annotations__})
        return command

    def there(
        api: Api, where: tuple[str, str], work: Callable[[Client, str, str], Awaitable[T]], *, models: bool = False
    ) -> T:
        async def found(client: Client) -> T:
            return await work(client, *await kind.find(client, *where))

        return api.use(found, models=models)

    def say(api: Api, found: S) -> None:
        if not api.prints_json(kind.as_object(found)):
            stderr().print(Text(as_told(found.state), style="dim"), soft_wrap=True)

    @app.command(help=kind.show_help)
    @named
    def show(api: Api, first: str) -> None:
        found = api.use(lambda client: kind.all_of(client, first))
        if api.prints_json([kind.as_object(each) for each in found]):
            return
        if not found:
            stderr().print(Text(f"{first} has no profile and no state of mind in any conversation yet.", style="dim"))
        for each in found:
            stdout().print(
                Text.assemble((printable(kind.title(each)), "cyan"), f"  {as_told(each.state)}"), soft_wrap=True
            )
            for line in kind.details(each):
                stdout().print(Text(f"  {printable(line)}", style="dim"), soft_wrap=True)

    @app.command(help="Show the changes of a state of mind, newest first.")
    @named
    def history(api: Api, first: str, second: str) -> None:
        async def work(client: Client, *where: str) -> RunPage:
            return await kind.history(client, *where, limit=SHOWN)

        _print_runs(api, there(api, (first, second), work).runs, kind.turn)

    @app.command(help="Show the signals in people's messages, newest first.")
    @named
    def signals(api: Api, first: str, second: str) -> None:
        async def work(client: Client, *where: str) -> SignalPage:
            return await kind.signals(client, *where, limit=SHOWN)

        _print_signals(api, there(api, (first, second), work).signals, kind.turn)

    @app.command("set", help=f"Set a state of mind. Options that are not given stay unchanged. {kind.takes_effect}")
    @named
    def set_(
        api: Api,
        first: str,
        second: str,
        mood: Mood = None,
        skill: Skill = None,
        complexity: Complexity = None,
    ) -> None:
        given = {"mood": mood, "user_skill": skill, "task_complexity": complexity}
        wanted = {name: value for name, value in given.items() if value is not None}

        async def work(client: Client, *where: str) -> S:
            return await kind.set_state(client, *where, **wanted)

        say(api, there(api, (first, second), work))

    @app.command(help="Reset a state of mind: mood, imprints and counters. The history stays.")
    @named
    def reset(api: Api, first: str, second: str) -> None:
        async def work(client: Client, *where: str) -> S:
            await kind.reset(client, *where)
            return await kind.stance(client, *where)

        say(api, there(api, (first, second), work))

    @app.command("try", help=f"Run a metaprompt now and show its result. {kind.try_help}")
    @named
    def try_(api: Api, first: str, second: str, metaprompt: MetapromptName, apply: Apply = False) -> None:
        async def work(client: Client, *where: str) -> TriedOut:
            return await kind.try_metaprompt(client, *where, metaprompt, apply=apply)

        _print_trial(api, there(api, (first, second), work, models=True), kind.told)


async def _find(client: Client, agent: str, wanted: str) -> tuple[str, str]:
    """Returns the agent, and its space with this id or name: among those the caller may see, and those it has a stance
    in."""
    if AN_ID.fullmatch(wanted.strip().lower()):
        return agent, wanted.strip().lower()
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
    return agent, meant[0]


def _details(each: StanceOut) -> list[str]:
    settings = [f"settings {_settings(each)}"] if each.settings else []
    profile, *kept = profile_and_imprints(each) or [""]
    return [line for line in (profile, *settings, *kept) if line]


def profile_and_imprints(each: StanceOut | VoiceStanceOut) -> list[str]:
    """Returns the profile and the imprints, in lines."""
    told = [f"profile {each.profile.id}: {each.profile.reason}"] if each.profile.id is not None else []
    return told + [f"keeps {key}: {text}" for key, text in each.imprints.items()]


def _settings(found: StanceOut) -> str:
    return json.dumps(dict(found.settings), ensure_ascii=False)


def _as_object(found: StanceOut) -> dict[str, Any]:
    named = {"space": found.space} if isinstance(found, StandingOut) else {}
    return {**named, "space_id": found.space_id, **state_as_object(found), "settings": dict(found.settings)}


def state_as_object(found: StanceOut | VoiceStanceOut) -> dict[str, Any]:
    """Returns the profile, the state of mind and the imprints, for JSON."""
    return {"profile": found.profile.model_dump(), **found.state.model_dump(), "imprints": dict(found.imprints)}


def as_told(state: StateOut) -> str:
    """Returns the state of mind as the agent is told of it."""
    return printable(words.StateOfMind(**state.model_dump()).line() or "no particular state of mind")


def _print_runs(api: Api, found: Iterable[RunOut], turn: str) -> None:
    rows = [{"at": _time(each.at), turn: each.cycle, "cause": each.cause, "metaprompt": each.metaprompt,
             "outcome": each.outcome, "reason": each.reason, **dict(each.state)} for each in found]  # fmt: skip
    if not api.prints_json(rows):
        _print([(_time(each.at), each.cause, each.outcome, each.state.mood, each.reason) for each in found])


def _print_signals(api: Api, found: Iterable[SignalOut], turn: str) -> None:
    rows = [{"at": _time(each.at), turn: each.cycle, "person": each.person, "name": each.name,
             "rule": each.rule, "score": each.score} for each in found]  # fmt: skip
    if not api.prints_json(rows):
        _print([(_time(each.at), f"{turn} {each.cycle}", each.name, each.rule) for each in found])


def _print_trial(api: Api, tried: TriedOut, once_applied: str) -> None:
    """Prints the prompt and the result."""
    if api.prints_json(tried):
        return
    console = stdout()
    console.print(Text(printable(tried.prompt), style="dim"), soft_wrap=True)
    console.print()
    console.print(Text(printable(tried.failed or as_told(tried.after))), soft_wrap=True)
    if tried.applied:
        stderr().print(once_applied, style="dim")


def _print(rows: Iterable[tuple[str, ...]]) -> None:
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(*(Text(printable(one_line(each))) for each in row))
    stdout().print(table)


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


async def _stances(client: Client, agent: str) -> list[StanceOut]:
    return [*await client.stances(agent)]


def _space(each: StanceOut) -> str:
    return each.space if isinstance(each, StandingOut) else each.space_id


add_commands(
    app,
    MindCommands(
        arguments=(AgentName, SpaceName),
        find=_find,
        all_of=_stances,
        title=_space,
        details=_details,
        as_object=_as_object,
        stance=Client.stance,
        set_state=Client.set_state_of_mind,
        reset=Client.reset_state_of_mind,
        history=Client.states_of_mind,
        signals=Client.signals,
        try_metaprompt=Client.try_metaprompt,
        turn="cycle",
        show_help="Show the agent's profile and state of mind in each of its conversations.",
        takes_effect="Takes effect with the next cycle.",
        try_help="This makes one model call.",
        told="The agent is told with its next cycle.",
    ),
)


@app.command()
def settings(
    api: Api,
    agent: AgentName,
    space: SpaceName,
    preset: Annotated[str | None, typer.Option(help="Always use this prompt profile.")] = None,
    mode: Annotated[str | None, typer.Option(help="The mode that rules and defaults use.")] = None,
    profile: Annotated[str | None, typer.Option(help="Reflection: a quick-start profile, such as basic.")] = None,
) -> None:
    """Override the agent's settings in a conversation. Without options, the overrides are removed."""
    given: dict[str, JsonValue] = {"preset": preset, "mode": mode, "reflection": profile and {"profile": profile}}
    wanted = {name: value for name, value in given.items() if value}

    async def work(client: Client) -> StanceOut:
        return await client.set_stance_settings(*await _find(client, agent, space), wanted)

    found = api.use(work, models=True)
    if not api.prints_json(_as_object(found)):
        told = _settings(found) if found.settings else "The agent's settings hold."
        stderr().print(Text(printable(told), style="dim"), soft_wrap=True)
