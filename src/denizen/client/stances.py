"""How agents stand to their conversations, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2
from pydantic import JsonValue

from denizen.client.connection import REQUEST_SECONDS, Connection, path_to, those_given
from denizen.shapes.stances import (
    PresetList,
    RunPage,
    SignalPage,
    StanceList,
    StanceOut,
    StandingOut,
    TriedOut,
    TriedProfile,
)


class Stances(Connection):
    """Prompt profiles and states of mind."""

    async def profiles(self) -> PresetList:
        """The prompt profiles of the house, and the names of metaprompts and quick-start profiles."""
        return await self._ask(PresetList, "GET", path_to("profiles"))

    async def try_profile(self, text: str, *, mode: str = "") -> TriedProfile:
        """Which profile a message would have, and why."""
        return await self._ask(TriedProfile, "POST", path_to("profiles", "try"), json={"text": text, "mode": mode})

    async def stances(self, agent: str) -> list[StandingOut]:
        """How the agent stands to each of its conversations, those that changed last first."""
        return (await self._ask(StanceList, "GET", path_to("agents", agent, "stances"))).stances

    async def stance(self, agent: str, space_id: str) -> StanceOut:
        """The agent's profile and state of mind in a conversation."""
        return await self._ask(StanceOut, "GET", path_to("agents", agent, "stances", space_id))

    async def set_stance_settings(self, agent: str, space_id: str, settings: Mapping[str, JsonValue]) -> StanceOut:
        """These hold there instead of the agent's: `preset`, `mode`, `reflection`. Empty: the agent's own do."""
        path = path_to("agents", agent, "stances", space_id, "settings")
        return await self._ask(StanceOut, "PUT", path, json=dict(settings))

    async def set_state_of_mind(self, agent: str, space_id: str, **state: str) -> StanceOut:
        """`state`: `mood`, `user_skill`, `task_complexity`."""
        return await self._ask(StanceOut, "PUT", path_to("agents", agent, "stances", space_id, "state"), json=state)

    async def reset_state_of_mind(self, agent: str, space_id: str) -> None:
        await self._tell("DELETE", path_to("agents", agent, "stances", space_id, "state"))

    async def states_of_mind(self, agent: str, space_id: str, *, before: int | None = None, limit: int = 50) -> RunPage:
        """How the state of mind came to be what it is, the newest first."""
        params = those_given(before=before, limit=limit)
        return await self._ask(RunPage, "GET", path_to("agents", agent, "stances", space_id, "history"), params=params)

    async def signals(self, agent: str, space_id: str, *, before: int | None = None, limit: int = 50) -> SignalPage:
        """What was seen in how people feel there, the newest first."""
        params = those_given(before=before, limit=limit)
        return await self._ask(
            SignalPage, "GET", path_to("agents", agent, "stances", space_id, "signals"), params=params
        )

    async def try_metaprompt(
        self,
        agent: str,
        space_id: str,
        metaprompt: str | None = None,
        *,
        template: str | None = None,
        apply: bool = False,
    ) -> TriedOut:
        """Ask a metaprompt now, by its id or with a template. Only with `apply` does the answer change anything."""
        wanted = those_given(metaprompt=metaprompt, template=template, apply=apply)
        return await self._ask(
            TriedOut,
            "POST",
            path_to("agents", agent, "stances", space_id, "try"),
            json=wanted,
            timeout=httpx2.Timeout(REQUEST_SECONDS, read=600),
        )
