"""States of mind of the voices of panels, over HTTP. A voice is an advisor by its id, or `assistant`."""

from __future__ import annotations

import httpx2

from denizen.client.connection import REQUEST_SECONDS, Connection, path_to, those_given
from denizen.shapes.stances import ReflectionNames, RunPage, SignalPage, TriedOut, VoiceStanceList, VoiceStanceOut


class Voices(Connection):
    """States of mind in panels."""

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
        return await self._ask(
            VoiceStanceOut, "PUT", path_to("panels", panel_id, "stances", voice, "state"), json=state
        )

    async def reset_advisor_state_of_mind(self, panel_id: str, voice: str) -> None:
        await self._tell("DELETE", path_to("panels", panel_id, "stances", voice, "state"))

    async def advisor_states_of_mind(
        self, panel_id: str, voice: str, *, before: int | None = None, limit: int = 50
    ) -> RunPage:
        """Returns the history of the state of mind, newest first; `cycle` is the turn of the panel."""
        path, params = path_to("panels", panel_id, "stances", voice, "history"), those_given(before=before, limit=limit)
        return await self._ask(RunPage, "GET", path, params=params)

    async def advisor_signals(
        self, panel_id: str, voice: str, *, before: int | None = None, limit: int = 50
    ) -> SignalPage:
        """Returns the signals that it detected, newest first; `cycle` is the turn of the panel."""
        path, params = path_to("panels", panel_id, "stances", voice, "signals"), those_given(before=before, limit=limit)
        return await self._ask(SignalPage, "GET", path, params=params)

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
        return await self._ask(
            TriedOut,
            "POST",
            path_to("panels", panel_id, "stances", voice, "try"),
            json=those_given(metaprompt=metaprompt, template=template, apply=apply),
            timeout=httpx2.Timeout(REQUEST_SECONDS, read=600),
        )
