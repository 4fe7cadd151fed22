"""`denizen panel mind`: shows, sets, resets and tries the states of mind of a panel's advisors."""

from __future__ import annotations

from typing import Any

import typer

from denizen.cli.mind import MindCommands, add_commands, profile_and_imprints, state_as_object
from denizen.cli.panel.finding import PanelName, VoiceName, find_panel, voice_in
from denizen.client import Client
from denizen.shapes.stances import VoiceStanceOut

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show and change the states of mind of a panel's advisors."
)


async def _find(client: Client, panel: str, advisor: str) -> tuple[str, str]:
    there = await find_panel(client, panel)
    return there.id, voice_in(there, advisor)


async def _stances(client: Client, panel: str) -> list[VoiceStanceOut]:
    return await client.advisor_stances((await find_panel(client, panel)).id)


def _name(each: VoiceStanceOut) -> str:
    return each.name


def reasons(each: VoiceStanceOut) -> list[str]:
    """Returns further details of an advisor, in lines."""
    return ([] if each.reflects else ["does not reflect"]) + profile_and_imprints(each)


def _as_object(found: VoiceStanceOut) -> dict[str, Any]:
    return {"voice": found.voice, "name": found.name, "reflects": found.reflects, **state_as_object(found)}


add_commands(
    app,
    MindCommands(
        arguments=(PanelName, VoiceName),
        find=_find,
        all_of=_stances,
        title=_name,
        details=reasons,
        as_object=_as_object,
        stance=Client.advisor_stance,
        set_state=Client.set_advisor_state_of_mind,
        reset=Client.reset_advisor_state_of_mind,
        history=Client.advisor_states_of_mind,
        signals=Client.advisor_signals,
        try_metaprompt=Client.try_advisor_metaprompt,
        turn="turn",
        show_help="Show the profile and the state of mind of each advisor.",
        takes_effect="Takes effect with the next answer.",
        try_help="The panel pays for the call.",
        told="The advisor is told with its next answer.",
    ),
)
