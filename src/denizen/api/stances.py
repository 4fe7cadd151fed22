"""How an agent stands to its conversations: the profile it has there, and its state of mind."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from denizen.agents import standing
from denizen.agents.registry import Agent
from denizen.api.wiring import Who, Wiring, id_of
from denizen.cycles.reflecting import try_metaprompt
from denizen.ids import AgentId, EntityId, SpaceId
from denizen.reflection import records as reflection
from denizen.reflection import state
from denizen.reflection.settings import Metaprompt
from denizen.reflection.stance_store import AGENTS, PastRun, PastSignal, Stance
from denizen.reflection.state import Complexity, Mood, Skill
from denizen.reflection.thinking import Tried
from denizen.spaces.directory import Space


class Stances(Wiring):
    """Prompt profiles and states of mind."""

    async def stance(self, agent: Agent | AgentId, space: Space | SpaceId) -> Stance:
        """The agent's profile and state of mind in this conversation."""
        return await self.db.read(AGENTS.stance, id_of(agent), id_of(space))

    async def stances(self, agent: Agent | AgentId) -> list[Stance]:
        """The same for its conversations, those that changed last first; at most a hundred."""
        return await self.db.read(AGENTS.stances_of, id_of(agent))

    async def set_stance_settings(
        self, agent: Agent | AgentId, space: Space | SpaceId, settings: Mapping[str, JsonValue]
    ) -> Stance:
        """These hold in the conversation instead of the agent's: `preset`, `mode`, `reflection`. Empty: the agent's."""
        return await self.db.write(standing.set_settings, id_of(agent), id_of(space), settings, self.prompt_config)

    async def set_state_of_mind(
        self,
        agent: Agent | AgentId,
        space: Space | SpaceId,
        *,
        mood: Mood | None = None,
        user_skill: Skill | None = None,
        task_complexity: Complexity | None = None,
        by: Who | EntityId | None = None,
    ) -> Stance:
        """What is given is so from now on; the agent is told with its next cycle."""
        wanted = state.wanted({"mood": mood, "user_skill": user_skill, "task_complexity": task_complexity})
        return await self.db.write(reflection.set_state, id_of(agent), id_of(space), wanted, by=by and id_of(by))

    async def reset_state_of_mind(
        self, agent: Agent | AgentId, space: Space | SpaceId, *, by: Who | EntityId | None = None
    ) -> Stance:
        """The agent has no particular state of mind there, and nothing is counted of anybody. The history stays."""
        return await self.db.write(reflection.reset, id_of(agent), id_of(space), by=by and id_of(by))

    async def states_of_mind(
        self, agent: Agent | AgentId, space: Space | SpaceId, *, limit: int = 100
    ) -> list[PastRun]:
        """How the state of mind came to be what it is, the newest first."""
        return await self.db.read(AGENTS.runs_of, id_of(agent), id_of(space), limit=limit)

    async def signals(self, agent: Agent | AgentId, space: Space | SpaceId, *, limit: int = 100) -> list[PastSignal]:
        """What was seen in how people feel there, the newest first."""
        return await self.db.read(AGENTS.signals_of, id_of(agent), id_of(space), limit=limit)

    async def try_metaprompt(
        self,
        agent: Agent | AgentId,
        space: Space | SpaceId,
        metaprompt: str | Metaprompt,
        *,
        apply: bool = False,
        by: Who | EntityId | None = None,
    ) -> Tried:
        """Ask a metaprompt now: one of the agent's or of the configuration by its id, or any other.

        Only with `apply` does its answer change the state of mind. What it uses is paid as a cycle is.
        """
        who = await self.get_agent(agent)
        reflector = self._equipment().reflector_of(who)
        asked = metaprompt
        if isinstance(asked, str):
            asked = standing.find_metaprompt(asked, reflector, await self.stance(agent, space))
        return await try_metaprompt(self.db, who.id, reflector, id_of(space), asked, apply=apply, by=by and id_of(by))
