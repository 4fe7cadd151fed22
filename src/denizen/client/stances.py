"""Prompt profiles and states of mind of agents and of advisors, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2
from pydantic import JsonValue

from denizen.client.connection import REQUEST_SECONDS, Connection, path_to, those_given
from denizen.shapes.stances import (
    PresetList,
    PresetsOut,
    ReflectionNames,
    RunPage,
    SignalPage,
    StanceList,
    StanceOut,
    StandingOut,
    TriedOut,
    TriedProfile,
    VoiceStanceList,
    VoiceStanceOut,
)


class Stances(Connection):
    """Prompt profiles and states of mind."""

    async def profiles(self) -> PresetList:
        """Returns the server's prompt profiles, and the names of metaprompts and quick-start profiles."""
        return await self._ask(PresetList, "GET", path_to("profiles"))

    async def presets(self) -> PresetsOut:
        """Returns the presets of the organization in the format of a presets file, and where they come from."""
        return await self._ask(PresetsOut, "GET", path_to("profiles", "presets"))

    async def change_presets(self, document: Mapping[str, JsonValue]) -> PresetsOut:
        """Replaces the server's presets for the organization."""
        return await self._ask(PresetsOut, "PUT", path_to("profiles", "presets"), json={"document": dict(document)})

    async def reset_presets(self) -> PresetsOut:
        """Removes the organization's own presets. Returns those that apply now."""
        return await self._ask(PresetsOut, "DELETE", path_to("profiles", "presets"))

    async def try_profile(
        self, text: str, *, mode: str = "", presets: Mapping[str, JsonValue] | None = None
    ) -> TriedProfile:
        """Returns the profile a message would get, and why; with `presets`, as if these were saved."""
        wanted = {"text": text, "mode": mode, **({} if presets is None else {"presets": dict(presets)})}
        return await self._ask(TriedProfile, "POST", path_to("profiles", "try"), json=wanted)

    async def stances(self, agent: str) -> list[StandingOut]:
        """Returns the agent's stance in each of its conversations, the last changed first."""
        return (await self._ask(StanceList, "GET", path_to("agents", agent, "stances"))).stances

    async def stance(self, agent: str, space_id: str) -> StanceOut:
        """Returns the agent's profile and state of mind in a conversation."""
        return await self._ask(StanceOut, "GET", path_to("agents", agent, "stances", space_id))

    async def set_stance_settings(self, agent: str, space_id: str, settings: Mapping[str, JsonValue]) -> StanceOut:
        """Sets what replaces the agent's settings there: `preset`, `mode`, `reflection`. Empty: the agent's
        own apply.
        """
        path = path_to("agents", agent, "stances", space_id, "settings")
        return await self._ask(StanceOut, "PUT", path, json=dict(settings))

    async def set_state_of_mind(self, agent: str, space_id: str, **state: str) -> StanceOut:
        """`state`: `mood`, `user_skill`, `task_complexity`."""
        return await self._ask(StanceOut, "PUT", path_to("agents", agent, "stances", space_id, "state"), json=state)

    async def reset_state_of_mind(self, agent: str, space_id: str) -> None:
        await self._tell("DELETE", path_to("agents", agent, "stances", space_id, "state"))

    async def states_of_mind(self, agent: str, space_id: str, *, before: int | None = None, limit: int = 50) -> RunPage:
        """Returns the history of the state of mind, newest first."""
        return await self._history(("agents", agent, "stances", space_id), before, limit)

    async def signals(self, agent: str, space_id: str, *, before: int | None = None, limit: int = 50) -> SignalPage:
        """Returns the signals of people's sentiment there, newest first."""
        return await self._signals(("agents", agent, "stances", space_id), before, limit)

    async def try_metaprompt(
        self,
        agent: str,
        space_id: str,
        metaprompt: str | None = None,
        *,
        template: str | None = None,
        apply: bool = False,
    ) -> TriedOut:
        """Asks a metaprompt now, by its id or with a template. Only with `apply` does the answer change anything."""
        return await self._try(("agents", agent, "stances", space_id), metaprompt, template, apply)

    # Advisors: `voice` is an advisor by its id, or `assistant`

    async def reflection_names(self) -> ReflectionNames:
        """Returns the quick-start profiles and metaprompts that `reflection` can name."""
        return await self._ask(ReflectionNames, "GET", path_to("reflection"))

    async def advisor_stances(self, panel_id: str) -> list[VoiceStanceOut]:
        """Returns the stance of each advisor of the panel, in order; without advisors, of the assistant."""
        return (await self._ask(VoiceStanceList, "GET", path_to("panels", panel_id, "stances"))).stances

    async def advisor_stance(self, panel_id: str, voice: str) -> VoiceStanceOut:
        """Returns the profile of its last answer, and its state of mind."""
        return await self._ask(VoiceStanceOut, "GET", path_to("panels", panel_id, "stances", voice))

    async def set_advisor_state_of_mind(self, panel_id: str, voice: str, **state: str) -> VoiceStanceOut:
        """`state`: `mood`, `user_skill`, `task_complexity`."""
        path = path_to("panels", panel_id, "stances", voice, "state")
        return await self._ask(VoiceStanceOut, "PUT", path, json=state)

    async def reset_advisor_state_of_mind(self, panel_id: str, voice: str) -> None:
        await self._tell("DELETE", path_to("panels", panel_id, "stances", voice, "state"))

    async def advisor_states_of_mind(
        self, panel_id: str, voice: str, *, before: int | None = None, limit: int = 50
    ) -> RunPage:
        """Returns the history of the state of mind, newest first; `cycle` is the turn of the panel."""
        return await self._history(("panels", panel_id, "stances", voice), before, limit)

    async def advisor_signals(
        self, panel_id: str, voice: str, *, before: int | None = None, limit: int = 50
    ) -> SignalPage:
        """Returns the signals that it detected, newest first; `cycle` is the turn of the panel."""
        return await self._signals(("panels", panel_id, "stances", voice), before, limit)

    async def try_advisor_metaprompt(
        self,
        panel_id: str,
        voice: str,
        metaprompt: str | None = None,
        *,
        template: str | None = None,
        apply: bool = False,
    ) -> TriedOut:
        """Asks a metaprompt now, by its id or with a template. Only with `apply` does the answer change anything."""
        return await self._try(("panels", panel_id, "stances", voice), metaprompt, template, apply)

    async def _history(self, stance: tuple[str, ...], before: int | None, limit: int) -> RunPage:
        params = those_given(before=before, limit=limit)
        return await self._ask(RunPage, "GET", path_to(*stance, "history"), params=params)

    async def _signals(self, stance: tuple[str, ...], before: int | None, limit: int) -> SignalPage:
        params = those_given(before=before, limit=limit)
        return await self._ask(SignalPage, "GET", path_to(*stance, "signals"), params=params)

    async def _try(
        self, stance: tuple[str, ...], metaprompt: str | None, template: str | None, apply: bool
    ) -> TriedOut:
        wanted = those_given(metaprompt=metaprompt, template=template, apply=apply)
        long = httpx2.Timeout(REQUEST_SECONDS, read=600)
        return await self._ask(TriedOut, "POST", path_to(*stance, "try"), json=wanted, timeout=long)
