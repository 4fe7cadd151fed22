"""An agent of `a2a-sdk`: asks for a size, and ships then. Prints its address as JSON, and serves until it is ended."""

from __future__ import annotations

import asyncio
import json
import socket

import uvicorn
from a2a.server.agent_execution.agent_executor import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.server.tasks.task_updater import TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, Task, TaskState, TaskStatus
from starlette.applications import Starlette


class Shipping(AgentExecutor):
    async def execute(self, context, event_queue) -> None:
        submitted = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        await event_queue.enqueue_event(Task(id=context.task_id, context_id=context.context_id, status=submitted))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        await updater.add_artifact([Part(text=f"Shipped: {context.get_user_input()}")])
        await updater.complete()

    async def cancel(self, context, event_queue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
address = f"http://127.0.0.1:{listener.getsockname()[1]}"
card = AgentCard(
    name="Shipping",
    description="Ships.",
    version="1",
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="ship", name="Ship", description="Ships.", tags=["ship"])],
    supported_interfaces=[AgentInterface(protocol_binding="JSONRPC", protocol_version="1.0", url=f"{address}/rpc")],
)
handler = DefaultRequestHandler(agent_executor=Shipping(), task_store=InMemoryTaskStore(), agent_card=card)
app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")])


async def main() -> None:
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    print(json.dumps(address), flush=True)
    await server.serve(sockets=[listener])


asyncio.run(main())
