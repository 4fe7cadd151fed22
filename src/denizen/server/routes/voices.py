"""States of mind of the advisors of a panel, for the people in it."""

from __future__ import annotations

from typing import Final

from denizen.panel import advisor_stances
from denizen.panel.panels import Panel
from denizen.reflection import state
from denizen.reflection.stance_store import VOICES
from denizen.server.router import new_router
from denizen.server.routes.panels import Member, Reader
from denizen.server.routes.stances import Limit, Number, asked_of, run_page, signal_page
from denizen.server.shapes.stances import SetState, TryMetaprompt, tried_out, voice_stance_out
from denizen.shapes.stances import RunPage, SignalPage, TriedOut, VoiceStanceList, VoiceStanceOut
from denizen.storage.database import Tx, storable

router = new_router()

_STANCE: Final = "/api/panels/{panel_id}/stances/{voice}"


@router.get("/api/panels/{panel_id}/stances", summary="List the advisors' profiles and states of mind")
async def list_voice_stances(here: Reader) -> VoiceStanceList:
    """In order, including inactive advisors; in a panel without advisors, of the `assistant`."""
    return await here.read(_list)


@router.get(_STANCE, summary="Get an advisor's profile and state of mind")
async def get_voice_stance(here: Reader, voice: str) -> VoiceStanceOut:
    """With the reason for the profile of its last answer. `voice`: an advisor's id, or `assistant`."""
    return await here.read(_get, voice)


@router.put(f"{_STANCE}/state", summary="Set an advisor's state of mind")
async def set_voice_state(here: Member, voice: str, wanted: SetState) -> VoiceStanceOut:
    """Fields that are not sent stay unchanged. The advisor is told with its next answer."""
    given = state.wanted(wanted.model_dump())
    await here.runtime.db.write(advisor_stances.set_state, here.by, here.id, storable(voice), given)
    return await here.read(_get, voice)


@router.delete(f"{_STANCE}/state", status_code=204, summary="Reset an advisor's state of mind")
async def reset_voice_state(here: Member, voice: str) -> None:
    """Resets mood, imprints and counters. The history stays."""
    await here.runtime.advisors.reset_state_of_mind(here.id, storable(voice), by=here.by)


@router.get(f"{_STANCE}/history", summary="List changes of an advisor's state of mind")
async def get_voice_history(here: Reader, voice: str, before: Number = None, limit: Limit = 50) -> RunPage:
    """What was asked or set, and its result, newest first. `cycle` is the turn of the panel."""
    return await here.read(_history, voice, before, limit)


@router.get(f"{_STANCE}/signals", summary="List the signals that an advisor detected")
async def list_voice_signals(here: Reader, voice: str, before: Number = None, limit: Limit = 50) -> SignalPage:
    """Newest first. `cycle` is the turn of the panel."""
    return await here.read(_signals, voice, before, limit)


@router.post(f"{_STANCE}/try", summary="Ask a metaprompt of an advisor now")
async def try_voice_metaprompt(here: Member, voice: str, wanted: TryMetaprompt) -> TriedOut:
    """One model call, paid by the panel. The answer changes the state of mind only with `apply`."""
    asked, panel = asked_of(wanted), await here.enter()
    tried = await here.runtime.advisors.try_metaprompt(
        panel, storable(voice), asked, apply=wanted.apply, by=here.caller.entity.id
    )
    return tried_out(tried)


def _list(tx: Tx, panel: Panel) -> VoiceStanceList:
    return VoiceStanceList(stances=[voice_stance_out(each) for each in advisor_stances.standings(tx, panel)])


def _get(tx: Tx, panel: Panel, voice: str) -> VoiceStanceOut:
    return voice_stance_out(advisor_stances.standing(tx, panel, storable(voice)))


def _history(tx: Tx, panel: Panel, voice: str, before: int | None, limit: int) -> RunPage:
    return run_page(tx, VOICES, _there(tx, panel, voice), panel.id, before, limit)


def _signals(tx: Tx, panel: Panel, voice: str, before: int | None, limit: int) -> SignalPage:
    return signal_page(tx, VOICES, _there(tx, panel, voice), panel.id, before, limit)


def _there(tx: Tx, panel: Panel, voice: str) -> str:
    """The voice by its id, where the panel has it."""
    return advisor_stances.voice(tx, panel, storable(voice)).id
