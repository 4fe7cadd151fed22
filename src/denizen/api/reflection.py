"""`denizen.reflection`: the prompt profile and the state of mind that an agent has in a conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Concatenate, ParamSpec, TypeVar

from pydantic import JsonValue

from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.agents import registry, stance_changes
from denizen.api.arguments import number_of
from denizen.api.subject import AgentRef, EntityRef, SpaceRef, Subject, id_of, optional_id_of, requester_of
from denizen.cycles.reflecting import try_metaprompt
from denizen.ids import AgentId, SpaceId
from denizen.reflection import state
from denizen.reflection.settings import Metaprompt
from denizen.reflection.stance_store import AGENTS, PastRun, PastSignal, Stance
from denizen.reflection.state import Complexity, Mood, Skill
from denizen.reflection.thinking import MetapromptTrial
from denizen.spaces import directory
from denizen.storage.database import Tx

P = ParamSpec("P")
T = TypeVar("T")


class Reflection(Subject):
    """Prompt profiles and states of mind of agents. Those of advisors are in `denizen.advisors`.

    ```python
    stance = await denizen.reflection.stance(ada, kitchen)
    assert stance.space_id == kitchen.id
    ```
    """

    async def stance(self, agent: AgentRef, space: SpaceRef) -> Stance:
        """The agent's profile and state of mind in this conversation."""
        return await self._read_agent(agent, _in_space, id_of(space), AGENTS.stance)

    async def stances(self, agent: AgentRef) -> list[Stance]:
        """The same for each of its conversations, the last changed first; at most a hundred."""
        return await self._read_agent(agent, AGENTS.stances_of)

    async def set_settings(
        self, agent: AgentRef, space: SpaceRef, settings: Mapping[str, JsonValue], *, by: Requester = THIS_PROCESS
    ) -> Stance:
        """Use these settings in the conversation instead of the agent's: `preset`, `mode`, `reflection`. Empty: the
        agent's."""
        return await self._runtime.db.write(
            stance_changes.set_settings, by, id_of(agent), id_of(space), settings, self._runtime.prompt_config
        )

    async def set_state_of_mind(
        self,
        agent: AgentRef,
        space: SpaceRef,
        *,
        mood: Mood | None = None,
        user_skill: Skill | None = None,
        task_complexity: Complexity | None = None,
        by: EntityRef | Requester = THIS_PROCESS,
    ) -> Stance:
        """Set the agent's state of mind in this conversation. It is told with its next cycle.

        ```python
        stance = await denizen.reflection.set_state_of_mind(ada, kitchen, mood="focused")
        assert stance.state.mood == "focused"
        ```
        """
        wanted = state.wanted({"mood": mood, "user_skill": user_skill, "task_complexity": task_complexity})
        return await self._runtime.db.write(
            stance_changes.set_state, requester_of(by), id_of(agent), id_of(space), wanted
        )

    async def reset_state_of_mind(
        self, agent: AgentRef, space: SpaceRef, *, by: EntityRef | Requester = THIS_PROCESS
    ) -> Stance:
        """Reset the state of mind and its counters. The history stays."""
        return await self._runtime.db.write(stance_changes.reset, requester_of(by), id_of(agent), id_of(space))

    async def states_of_mind(self, agent: AgentRef, space: SpaceRef, *, limit: int = 100) -> list[PastRun]:
        """How the state of mind changed, the newest first."""
        most = number_of(limit, "limit", 1)
        return await self._read_agent(agent, _in_space, id_of(space), AGENTS.runs_of, limit=most)

    async def signals(self, agent: AgentRef, space: SpaceRef, *, limit: int = 100) -> list[PastSignal]:
        """The signals that sentiment gave there, the newest first."""
        most = number_of(limit, "limit", 1)
        return await self._read_agent(agent, _in_space, id_of(space), AGENTS.signals_of, limit=most)

    async def try_metaprompt(
        self,
        agent: AgentRef,
        space: SpaceRef,
        metaprompt: str | Metaprompt,
        *,
        apply: bool = False,
        by: EntityRef | None = None,
    ) -> MetapromptTrial:
        """Run a metaprompt now: one of the agent or the configuration by its id, or any other.

        Only with `apply` does its answer change the state of mind. What it uses is paid as a cycle is.
        """
        who = await self._runtime.db.read(registry.get, id_of(agent))
        reflector = self._runtime.equipment().reflector_of(who)
        asked = metaprompt
        if isinstance(asked, str):
            asked = stance_changes.find_metaprompt(asked, reflector, await self.stance(agent, space))
        return await try_metaprompt(
            self._runtime.db, who.id, reflector, id_of(space), asked, apply=apply, by=optional_id_of(by)
        )


def _in_space(
    tx: Tx,
    agent_id: AgentId,
    space_id: SpaceId,
    read: Callable[Concatenate[Tx, str, SpaceId, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Raises `NotFound` if there is no such space."""
    return read(tx, agent_id, directory.get_space(tx, space_id).id, *args, **kwargs)
