"""`denizen.calls`: what agents ask of people and services, and the answers."""

from __future__ import annotations

import asyncio
import builtins

from pydantic import JsonValue

from denizen.api.subject import AgentRef, EntityRef, SpaceRef, Subject, id_of, optional_id_of
from denizen.api.wiring import ANSWERING
from denizen.errors import NotFound
from denizen.tools import calls, grants
from denizen.tools.calls import Call
from denizen.tools.functions import as_text
from denizen.tools.grants import Grant


class Calls(Subject):
    """Tool calls that wait for a person or a service: questions and approvals.

    ```python
    assert await denizen.calls.waiting(noor) == []
    assert await denizen.calls.list(kitchen) == []
    ```
    """

    async def waiting(self, who: EntityRef) -> builtins.list[Call]:
        """The questions of agents that this person may answer, the oldest first."""
        return await self._read_entity(who, calls.open_to)

    async def list(self, space: SpaceRef) -> builtins.list[Call]:
        """The tool calls that the people in a space see, in order."""
        return await self._read_space(space, calls.in_space)

    async def answer(self, call: Call | str, result: JsonValue, *, by: EntityRef) -> Call:
        """Answer what an agent has asked. The first answer stands: a second one raises `AlreadySettled`."""
        return await self._runtime.db.write(calls.answer_as, id_of(call), as_text(result), id_of(by))

    async def approvals(self, agent: AgentRef, *, reader: EntityRef | None = None) -> builtins.list[Grant]:
        """What people approved for this agent, as far as it still counts, the oldest first.

        With a `reader`, only those that they gave or that were asked for in one of their spaces.
        """
        return await self._read_agent(agent, grants.visible_to, optional_id_of(reader))

    async def revoke_approval(self, agent: AgentRef, id: str, *, by: EntityRef) -> None:
        """Revoke an approval. Raises `NotFound` where this person cannot see it."""
        await self._runtime.db.write(grants.revoke, id_of(agent), id, id_of(by))

    async def is_answer_address(self, call_id: str, key: str) -> bool:
        """Whether this is the key of the address at which a service may answer the call."""
        return await asyncio.to_thread(self._runtime.vault.signed, call_id, ANSWERING, key)

    async def answer_from_service(self, call_id: str, key: str, result: JsonValue) -> Call:
        """Answer as a service that was given the answer address. Raises `NotFound` where the key is wrong."""
        if not await self.is_answer_address(call_id, key):
            raise NotFound("call", call_id)
        return await self._runtime.db.write(calls.answer, call_id, as_text(result))
