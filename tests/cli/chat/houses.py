"""A house with people and agents to talk to, and a server before it that can be stopped and started again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ToolReturnPart

from denizen import Runtime
from denizen.access import tokens
from denizen.access.vault import new_key
from denizen.agents.registry import Agent
from denizen.cli.in_process import client_of
from denizen.client import Client
from denizen.models.scripted import Pause, ScriptedModel, Turn, call, forever, reply
from denizen.server.application import create_app
from denizen.server.serving import bind, serve_on
from denizen.spaces.directory import Entity, Space
from denizen.tools.settings import ClientTool
from denizen.tools.tool import OutsideTool
from tests.servers import free_port

CONFIRM = ClientTool(
    name="confirm_action",
    description="Ask the people in the space.",
    parameters={"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
)


def echoing(name: str, pause: Pause | None = None) -> ScriptedModel:
    """A model that always says the same thing, once in a cycle, a few letters at a time."""
    return forever(
        lambda messages, _: "Done." if has_replied(messages) else reply(f"{name} hears you."), pause=pause, chunk=4
    )


def asking() -> ScriptedModel:
    """A model with the tool `CONFIRM` that first asks and then says what it was answered."""
    return forever(lambda messages, _: _ask_then_tell(messages))


def _ask_then_tell(messages: list[ModelMessage]) -> Turn:
    match [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]:
        case [ToolReturnPart(tool_name="confirm_action") as answer]:
            return reply(f"So it is {answer.model_response_str()}.")
        case []:
            return call("confirm_action", question="Deploy v2.1?", where="the barn")
        case _:
            return "Done."


def has_replied(messages: list[ModelMessage]) -> bool:
    """Whether the last message is the result of a tool."""
    return any(part.part_kind == "tool-return" for part in messages[-1].parts)


@dataclass
class House:
    """Noor, two agents, a kitchen where all meet, a cellar where nobody listens, and a room for Noor and Ada."""

    runtime: Runtime
    noor: Entity
    ada: Agent
    bo: Agent
    kitchen: Space
    cellar: Space
    room: Space
    token: str
    url: str = ""
    _server: AsyncExitStack = field(default_factory=AsyncExitStack)

    def client(self) -> AbstractAsyncContextManager[Client]:
        """Noor's client of the application in this process."""
        return client_of(self.runtime, self.noor)

    async def start_server(self) -> None:
        """Listen, on the port of the last time if there was one."""
        stack = AsyncExitStack()
        listener = bind("127.0.0.1", int(self.url.rpartition(":")[2]) if self.url else free_port())
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        stop, ready = asyncio.Event(), asyncio.Event()
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        stack.callback(stop.set)
        tasks.create_task(serve_on(create_app(self.runtime), listener, ready=ready, stop=stop))
        await ready.wait()
        self._server = stack

    async def stop_server(self) -> None:
        await self._server.aclose()

    def environ(self, home: Path, **more: str) -> dict[str, str]:
        """The environment of someone at a terminal who has the token."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DENIZEN_", "NO_COLOR"))}
        given = {"DENIZEN_HOME": str(home), "DENIZEN_URL": self.url, "DENIZEN_TOKEN": self.token, "TZ": "UTC"}
        return {**kept, "TERM": "xterm-256color", "LANG": "C.UTF-8", **given, **more}


@asynccontextmanager
async def open_house(
    url: str,
    *,
    ada: ScriptedModel | None = None,
    bo: ScriptedModel | None = None,
    tools: Sequence[OutsideTool | ClientTool] = (),
) -> AsyncGenerator[House]:
    """The house, its agents living, its server listening; `tools` are Ada's."""
    async with Runtime(url, secret_key=new_key()) as runtime:
        noor = await runtime.people.create("Noor")
        agents = [
            await runtime.agents.create(
                "Ada",
                model=ada or echoing("Ada"),
                purpose="Keeps the house.",
                tools=list(tools),
                # Her words show as she writes them, not a few words late.
                private_guard={"enabled": False},
            ),
            await runtime.agents.create("Bo", model=bo or echoing("Bo"), purpose="Mends things."),
        ]
        kitchen = await runtime.spaces.create("Kitchen", [noor, *agents], floor="all")
        await runtime.spaces.set_attention(kitchen, agents[1], "mentions")
        cellar = await runtime.spaces.create("Cellar", [noor])
        room = await runtime.spaces.create("Noor and Ada", [noor, agents[0]], private=True)
        token = await runtime.db.write(lambda tx: tokens.create(tx, noor.id, "test")[1])
        house = House(runtime, noor, agents[0], agents[1], kitchen, cellar, room, token)
        async with runtime.living():
            await house.start_server()
            try:
                yield house
            finally:
                await house.stop_server()
