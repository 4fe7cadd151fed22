"""Prompt profiles and states of mind of agents in their conversations, for admins."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Request

from denizen.access.requesters import find_agent
from denizen.agents import inspection, preset_changes, stance_changes
from denizen.consciousness import privacy
from denizen.errors import InvalidInput
from denizen.ids import AgentId, SpaceId
from denizen.reflection import state
from denizen.reflection.settings import Manual, Metaprompt
from denizen.reflection.stance_store import AGENTS, StanceStore
from denizen.reflection.templates import check_template
from denizen.server.auth import Admin, Caller, Owner, Person
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.shapes.stances import (
    ChangePresets,
    SetStance,
    SetState,
    TryMetaprompt,
    TryProfile,
    preset_list_out,
    presets_out,
    reflection_names_out,
    run_out,
    signal_out,
    stance_out,
    standing_out,
    tried_out,
    tried_profile_out,
)
from denizen.shapes.stances import (
    PresetList,
    PresetsOut,
    ReflectionNames,
    RunPage,
    SignalPage,
    StanceList,
    StanceOut,
    TriedOut,
    TriedProfile,
)
from denizen.storage.database import Tx, storable

router = new_router()

_STANCE: Final = "/api/agents/{agent_id}/stances/{conversation_id}"

Number = Annotated[int | None, Query(ge=0, le=2**62)]
Limit = Annotated[int, Query(ge=1, le=200)]


@router.get("/api/profiles", summary="List the prompt profiles of your organization")
async def list_profiles(caller: Admin) -> PresetList:
    """With the names of metaprompts and of quick-start profiles of reflection that agents can use."""
    runtime = caller.runtime
    presets = await runtime.db.read(runtime.prompt_config.presets_of, caller.entity.organization_id)
    return preset_list_out(presets, runtime.prompt_config.configuration())


@router.get("/api/profiles/presets", summary="The presets of your organization, as a file")
async def get_presets(caller: Admin) -> PresetsOut:
    """Its own, otherwise those of the server's file, otherwise those that come with Denizen."""
    runtime = caller.runtime
    found = await runtime.db.read(preset_changes.get, caller.entity.organization_id, runtime.prompt_config)
    return presets_out(found)


@router.put("/api/profiles/presets", summary="Change the presets of your organization")
async def change_presets(caller: Owner, wanted: ChangePresets) -> PresetsOut:
    """They replace those of the server for this organization, from the next turn of each conversation on."""
    runtime, by, home = caller.runtime, caller.requester, caller.entity.organization_id
    changed = await runtime.db.write(preset_changes.change, by, home, wanted.document, runtime.prompt_config)
    return presets_out(changed)


@router.delete("/api/profiles/presets", summary="Reset the presets of your organization")
async def reset_presets(caller: Owner) -> PresetsOut:
    """Removes the organization's own presets. Answers with those that apply now."""
    runtime, by, home = caller.runtime, caller.requester, caller.entity.organization_id
    return presets_out(await runtime.db.write(preset_changes.reset, by, home, runtime.prompt_config))


@router.get("/api/reflection", summary="List the names for reflection settings")
async def list_reflection(request: Request, _: Person) -> ReflectionNames:
    """Quick-start profiles and metaprompts, for everyone who sets the reflection of a panel."""
    return reflection_names_out(context_of(request).runtime.prompt_config.configuration())


@router.post("/api/profiles/try", summary="Try which profile a message gets")
async def try_profile(caller: Admin, said: TryProfile) -> TriedProfile:
    """The result of the rules, as if it were the first message of a conversation. Nothing is changed."""
    runtime = caller.runtime
    if said.presets is not None:
        presets = preset_changes.check(said.presets, runtime.prompt_config)
    else:
        presets = await runtime.db.read(runtime.prompt_config.presets_of, caller.entity.organization_id)
    return tried_profile_out(presets, said.mode, said.text)


@router.get("/api/agents/{agent_id}/stances", summary="List an agent's profiles and states of mind")
async def list_stances(caller: Admin, agent_id: str) -> StanceList:
    """One for each of its conversations."""
    return await caller.runtime.db.read(_list, agent_id, caller)


@router.get(_STANCE, summary="Get an agent's profile and state of mind in a conversation")
async def get_stance(caller: Admin, agent_id: str, conversation_id: str) -> StanceOut:
    """With the reason for the profile, and the settings that replace the agent's own there."""
    return await caller.runtime.db.read(_get, agent_id, conversation_id, caller)


@router.put(f"{_STANCE}/settings", summary="Set an agent's settings for one conversation")
async def set_stance_settings(caller: Admin, agent_id: str, conversation_id: str, wanted: SetStance) -> StanceOut:
    """They replace the agent's settings there. An empty object removes them."""
    given, by = wanted.model_dump(exclude_none=True), caller.requester
    return stance_out(
        await caller.runtime.reflection.set_settings(AgentId(agent_id), SpaceId(conversation_id), given, by=by)
    )


@router.put(f"{_STANCE}/state", summary="Set an agent's state of mind")
async def set_state(caller: Admin, agent_id: str, conversation_id: str, wanted: SetState) -> StanceOut:
    """Fields that are not sent stay unchanged. The agent is told with its next cycle."""
    adjustment = state.wanted(wanted.model_dump())
    db, by = caller.runtime.db, caller.requester
    return stance_out(await db.write(stance_changes.set_state, by, agent_id, conversation_id, adjustment))


@router.delete(f"{_STANCE}/state", status_code=204, summary="Reset an agent's state of mind")
async def reset_state(caller: Admin, agent_id: str, conversation_id: str) -> None:
    """Resets mood, imprints and counters. The history stays."""
    await caller.write(stance_changes.reset, agent_id, conversation_id)


@router.get(f"{_STANCE}/history", summary="List changes of an agent's state of mind")
async def get_state_history(
    caller: Admin, agent_id: str, conversation_id: str, before: Number = None, limit: Limit = 50
) -> RunPage:
    """What was asked or set, and its result, newest first."""
    return await caller.runtime.db.read(_history, agent_id, conversation_id, caller, before, limit)


@router.get(f"{_STANCE}/signals", summary="List the signals of a conversation")
async def list_signals(
    caller: Admin, agent_id: str, conversation_id: str, before: Number = None, limit: Limit = 50
) -> SignalPage:
    """Signals in the messages there, newest first."""
    return await caller.runtime.db.read(_signals, agent_id, conversation_id, caller, before, limit)


@router.post(f"{_STANCE}/try", summary="Ask a metaprompt now")
async def try_metaprompt(caller: Admin, agent_id: str, conversation_id: str, wanted: TryMetaprompt) -> TriedOut:
    """One model call, paid like a cycle. The answer changes the state of mind only with `apply`."""
    asked = asked_of(wanted)
    agent, space = await caller.read(stance_changes.find, agent_id, conversation_id)
    return tried_out(
        await caller.runtime.reflection.try_metaprompt(agent, space, asked, apply=wanted.apply, by=caller.entity.id)
    )


def asked_of(wanted: TryMetaprompt) -> str | Metaprompt:
    """The id of a metaprompt, or one made of the template. Raises `InvalidInput` where both are given, or neither."""
    if (wanted.metaprompt is None) == (wanted.template is None):
        raise InvalidInput("Use either `metaprompt` or `template`.")
    if wanted.template is None:
        return wanted.metaprompt or ""
    template = check_template(storable(wanted.template))
    return Metaprompt(id="by hand", prompt_template=template, trigger=Manual(type="manual"))


def _list(tx: Tx, agent_id: str, caller: Caller) -> StanceList:
    agent = find_agent(tx, caller.requester, agent_id, also_dead=True)
    reader = privacy.reader(tx, agent, caller.entity.id)
    return StanceList(stances=[standing_out(each) for each in inspection.standings(tx, agent, reader)])


def _get(tx: Tx, agent_id: str, conversation_id: str, caller: Caller) -> StanceOut:
    return stance_out(AGENTS.stance(tx, *stance_changes.find(tx, caller.requester, agent_id, conversation_id)))


def _history(tx: Tx, agent_id: str, conversation_id: str, caller: Caller, before: int | None, limit: int) -> RunPage:
    return run_page(tx, AGENTS, *stance_changes.find(tx, caller.requester, agent_id, conversation_id), before, limit)


def _signals(tx: Tx, agent_id: str, conversation_id: str, caller: Caller, before: int | None, limit: int) -> SignalPage:
    return signal_page(tx, AGENTS, *stance_changes.find(tx, caller.requester, agent_id, conversation_id), before, limit)


def run_page(tx: Tx, book: StanceStore, who: str, space: SpaceId, before: int | None, limit: int) -> RunPage:
    found = book.runs_of(tx, who, space, before=before, limit=limit + 1)
    page = found[:limit]
    return RunPage(runs=[run_out(each) for each in page], next=page[-1].number if len(found) > limit else None)


def signal_page(tx: Tx, book: StanceStore, who: str, space: SpaceId, before: int | None, limit: int) -> SignalPage:
    found = book.signals_of(tx, who, space, before=before, limit=limit + 1)
    page = found[:limit]
    return SignalPage(signals=[signal_out(each) for each in page], next=page[-1].number if len(found) > limit else None)
