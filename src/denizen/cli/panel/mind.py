"""`denizen panel mind`: shows, sets, resets and tries the states of mind of a panel's advisors."""

from __future__ import annotations

from typing import Any

import typer
from rich.text import Text

from denizen.cli.api import AsJson, Token, Url
from denizen.cli.chat.rendering import printable
from denizen.cli.console import print_json, stderr, stdout
from denizen.cli.mind import (
    SHOWN,
    Apply,
    Complexity,
    MetapromptName,
    Mood,
    Skill,
    as_told,
    tell_runs,
    tell_signals,
    tell_tried,
    those_said,
)
from denizen.cli.panel.finding import PanelName, VoiceName, in_panel, voice_in
from denizen.client import Client
from denizen.shapes.panels import Panel
from denizen.shapes.stances import RunPage, SignalPage, TriedOut, VoiceStanceOut

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show and change the states of mind of a panel's advisors."
)


@app.command()
def show(
    context: typer.Context, panel: PanelName, as_json: AsJson = False, url: Url = None, token: Token = None
) -> None:
    """Show the profile and the state of mind of each advisor."""

    async def work(client: Client, there: Panel) -> list[VoiceStanceOut]:
        return await client.advisor_stances(there.id)

    found = in_panel(context, panel, url, token, work)
    if as_json:
        print_json([_as_object(each) for each in found])
        return
    for each in found:
        stdout().print(Text.assemble((printable(each.name), "cyan"), f"  {as_told(each.state)}"), soft_wrap=True)
        for told in reasons(each):
            stdout().print(Text(f"  {told}", style="dim"), soft_wrap=True)


@app.command()
def history(
    context: typer.Context,
    panel: PanelName,
    advisor: VoiceName,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Show the changes of a state of mind, newest first."""

    async def work(client: Client, there: Panel) -> RunPage:
        return await client.advisor_states_of_mind(there.id, voice_in(there, advisor), limit=SHOWN)

    tell_runs(in_panel(context, panel, url, token, work).runs, as_json, when="turn")


@app.command()
def signals(
    context: typer.Context,
    panel: PanelName,
    advisor: VoiceName,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Show the signals in people's messages, newest first."""

    async def work(client: Client, there: Panel) -> SignalPage:
        return await client.advisor_signals(there.id, voice_in(there, advisor), limit=SHOWN)

    tell_signals(in_panel(context, panel, url, token, work).signals, as_json, when="turn")


@app.command("set")
def set_(
    context: typer.Context,
    panel: PanelName,
    advisor: VoiceName,
    mood: Mood = None,
    skill: Skill = None,
    complexity: Complexity = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Set a state of mind. Options that are not given stay unchanged. Takes effect with the next answer."""
    wanted = those_said(mood, skill, complexity)

    async def work(client: Client, there: Panel) -> VoiceStanceOut:
        return await client.set_advisor_state_of_mind(there.id, voice_in(there, advisor), **wanted)

    _say(in_panel(context, panel, url, token, work), as_json)


@app.command()
def reset(
    context: typer.Context,
    panel: PanelName,
    advisor: VoiceName,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Reset a state of mind: mood, imprints and counters. The history stays."""

    async def work(client: Client, there: Panel) -> VoiceStanceOut:
        voice = voice_in(there, advisor)
        await client.reset_advisor_state_of_mind(there.id, voice)
        return await client.advisor_stance(there.id, voice)

    _say(in_panel(context, panel, url, token, work), as_json)


@app.command("try")
def try_(
    context: typer.Context,
    panel: PanelName,
    advisor: VoiceName,
    metaprompt: MetapromptName,
    apply: Apply = False,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Run a metaprompt now and show its result. The panel pays for the call."""

    async def work(client: Client, there: Panel) -> TriedOut:
        return await client.try_advisor_metaprompt(there.id, voice_in(there, advisor), metaprompt, apply=apply)

    tried = in_panel(context, panel, url, token, work, models=True)
    tell_tried(tried, as_json, "The advisor is told with its next answer.")


def reasons(each: VoiceStanceOut) -> list[str]:
    """Returns further details of an advisor, in lines."""
    told = [] if each.reflects else ["does not reflect"]
    told += [f"profile {each.profile.id}: {each.profile.reason}"] if each.profile.id is not None else []
    told += [f"keeps {key}: {text}" for key, text in each.imprints.items()]
    return [printable(line) for line in told]


def _say(found: VoiceStanceOut, as_json: bool) -> None:
    if as_json:
        print_json(_as_object(found))
    else:
        stderr().print(Text(as_told(found.state), style="dim"), soft_wrap=True)


def _as_object(found: VoiceStanceOut) -> dict[str, Any]:
    return {
        "voice": found.voice,
        "name": found.name,
        "reflects": found.reflects,
        "profile": found.profile.model_dump(),
        **found.state.model_dump(),
        "imprints": dict(found.imprints),
    }
