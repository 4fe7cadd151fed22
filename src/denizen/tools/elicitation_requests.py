"""Asks people what an MCP server wants to know in the middle of a call, and waits for the answer.

The question is a stored call that the people in the agent's space see; the first answer, on any instance, decides. It
is void once the call has ended, or its process has died.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from denizen.bus.port import Bus, Frame, Subscription
from denizen.bus.streams import agent_topic
from denizen.ids import CallId
from denizen.storage.database import Database
from denizen.tools import calls, elicitation_forms
from denizen.tools.background_calls import LATE_SECONDS
from denizen.tools.calls import Call
from denizen.tools.elicitation_forms import ServerAnswer, ServerQuestion
from denizen.tools.tool import CallIdentity

LOOK_SECONDS: Final = 30.0
"""How often the answer is looked for, in case that a hint was lost."""
_CANCELLED: Final = ServerAnswer(action="cancel")


class ElicitationRequests:
    """The questions of MCP servers to people."""

    def __init__(self, db: Database, bus: Bus, instance: str) -> None:
        self._db = db
        self._bus = bus
        self._instance = instance
        self._storing = asyncio.Lock()

    async def ask(self, caller: CallIdentity, tool: str, question: ServerQuestion, asked: set[CallId]) -> ServerAnswer:
        """A person's answer; `cancel` if nobody has answered when the question expires or is withdrawn.

        The id of the question is added to `asked`. Raises `UnusableSchema` for a form that cannot be used.
        """
        async with self._bus.subscribe(agent_topic(caller.agent_id)) as hints:
            async with self._storing:  # A server may ask several questions at once; each gets a number.
                id = await self._db.write(
                    calls.ask_for_server, caller, tool, question, runner=self._instance, seconds=LATE_SECONDS
                )
            if id is None:
                return _CANCELLED
            asked.add(id)
            call = await self._settled(id, hints)
        if call.state != "answered" or call.result is None:
            return _CANCELLED
        return elicitation_forms.read_answer(call.arguments, call.result)

    async def withdraw(self, asked: Collection[CallId]) -> None:
        """Nobody waits for the answers to these questions any longer."""
        if asked:
            await self._db.write(calls.withdraw, asked)

    async def _settled(self, id: CallId, hints: Subscription) -> Call:
        while (call := await self._db.read(calls.get, id)).state == "waiting":
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    async for hint in hints:
                        if not isinstance(hint, Frame) or hint.payload.get("id") == id:
                            break
            except TimeoutError:
                continue
        return call
