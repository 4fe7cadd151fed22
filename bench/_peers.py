"""One turn with another framework: run by `bench.peers` with the interpreter of an environment that has it.

    python -P bench/_peers.py NAME AGE TURNS

Each is set up as its documentation says for conversations that outlive the process. The model is a function that calls
a tool once and then answers, as in `bench.turn`; nothing is streamed. Prints one line of JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

TEXT = ("The kettle is on, the report is due on Friday, and Sarah would rather see charts than tables. " * 20)[:1200]
WARM_UP = 5
CYCLE = 4
"""Messages of a turn: the question, the call, its result, the answer."""

Turn = Callable[[], Awaitable[Any]]
noted: list[str] = []
"""What the tool was called with."""


def note(text: str) -> str:
    """Note a text."""
    noted.append(text)
    return text


async def langgraph(stack: AsyncExitStack, folder: Path, age: int) -> Turn:
    """A graph of a model and its tools, with the SQLite checkpointer, a checkpoint before each step."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    def call() -> AIMessage:
        return AIMessage("", tool_calls=[{"name": "note", "args": {"text": TEXT}, "id": "call_0"}])

    def model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(TEXT) if isinstance(state["messages"][-1], ToolMessage) else call()]}

    saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(folder / "peer.db")))
    builder = StateGraph(MessagesState).add_node("model", model).add_node("tools", ToolNode([note]))
    builder.add_edge(START, "model").add_conditional_edges("model", tools_condition).add_edge("tools", "model")
    graph = builder.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "1"}}
    past = [
        each
        for _ in range(age // CYCLE)
        for each in (HumanMessage(TEXT), call(), ToolMessage(TEXT, tool_call_id="call_0"), AIMessage(TEXT))
    ]
    if past:
        await graph.aupdate_state(config, {"messages": past}, as_node="model")
    return lambda: graph.ainvoke({"messages": [HumanMessage(TEXT)]}, config, durability="sync")


async def agent_framework(_stack: AsyncExitStack, folder: Path, age: int) -> Turn:
    """An agent with a history in a file of JSON lines."""
    from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FileHistoryProvider, Message
    from agent_framework._tools import FunctionInvocationLayer

    def call() -> Message:
        return Message("assistant", [Content.from_function_call("call_0", "note", arguments={"text": TEXT})])

    class Model(FunctionInvocationLayer, BaseChatClient):
        async def _inner_get_response(self, *, messages: Any, **_: Any) -> Any:
            last = messages[-1].contents[-1]
            answer = Message("assistant", [TEXT]) if last.type == "function_result" else call()
            return ChatResponse(messages=[answer], response_id="r")

    history = FileHistoryProvider(folder)
    agent = Agent(Model(), tools=[note], context_providers=[history])
    session = agent.create_session()
    result = Message("tool", [Content.from_function_result("call_0", result=TEXT)])
    past = [Message("user", [TEXT]), call(), result, Message("assistant", [TEXT])]
    if age:
        await history.save_messages(session.session_id, past * (age // CYCLE))
    return lambda: agent.run(TEXT, session=session)


async def autogen(_stack: AsyncExitStack, folder: Path, age: int) -> Turn:
    """An assistant whose state is saved to a file after each turn."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core import FunctionCall
    from autogen_core.models import (
        AssistantMessage,
        ChatCompletionClient,
        CreateResult,
        FunctionExecutionResult,
        FunctionExecutionResultMessage,
        RequestUsage,
        UserMessage,
    )

    def call() -> list[FunctionCall]:
        return [FunctionCall(id="call_0", name="note", arguments=json.dumps({"text": TEXT}))]

    class Model(ChatCompletionClient):
        component_type = "model"
        component_config_schema = None  # type: ignore[assignment]

        async def create(self, messages: Any, **_: Any) -> CreateResult:
            done = isinstance(messages[-1], FunctionExecutionResultMessage)
            return CreateResult(
                finish_reason="stop" if done else "function_calls",
                content=TEXT if done else call(),
                usage=RequestUsage(1, 1),
                cached=False,
            )

        def create_stream(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def close(self) -> None:
            pass

        def actual_usage(self) -> RequestUsage:
            return RequestUsage(0, 0)

        total_usage = actual_usage

        def count_tokens(self, *_: Any, **__: Any) -> int:
            return 0

        remaining_tokens = count_tokens

        @property
        def model_info(self) -> Any:
            flags = ("vision", "json_output", "structured_output", "multiple_system_messages")
            return {"function_calling": True, "family": "unknown", **dict.fromkeys(flags, False)}

        capabilities = model_info

    agent = AssistantAgent("ada", Model(), tools=[note], reflect_on_tool_use=True)
    result = FunctionExecutionResult(content=TEXT, name="note", call_id="call_0", is_error=False)
    for _ in range(age // CYCLE):
        context = agent.model_context
        await context.add_message(UserMessage(content=TEXT, source="noor"))
        await context.add_message(AssistantMessage(content=call(), source="ada"))
        await context.add_message(FunctionExecutionResultMessage(content=[result]))
        await context.add_message(AssistantMessage(content=TEXT, source="ada"))

    async def turn() -> None:
        await agent.run(task=TEXT)
        (folder / "state.json").write_text(json.dumps(await agent.save_state()))

    return turn


async def agno(_stack: AsyncExitStack, folder: Path, age: int) -> Turn:
    """An agent with its sessions in SQLite and its whole history in the context."""
    from agno.agent import Agent
    from agno.db.sqlite import SqliteDb
    from agno.models.base import Model
    from agno.models.response import ModelResponse

    function = {"name": "note", "arguments": json.dumps({"text": TEXT})}
    call = [{"id": "call_0", "type": "function", "function": function}]

    class Scripted(Model):
        async def ainvoke(self, messages: Any, **_: Any) -> ModelResponse:
            if messages[-1].role == "tool":
                return ModelResponse(role="assistant", content=TEXT)
            return ModelResponse(role="assistant", tool_calls=call)

        def invoke(self, *_: Any, **__: Any) -> ModelResponse:
            raise NotImplementedError

        invoke_stream = ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = invoke

    agent = Agent(
        model=Scripted(id="scripted"),
        db=SqliteDb(db_file=str(folder / "peer.db")),
        tools=[note],
        session_id="1",
        add_history_to_context=True,
        num_history_runs=age + 1_000,
        telemetry=False,
    )
    for _ in range(age // CYCLE):
        await agent.arun(TEXT)
    return lambda: agent.arun(TEXT)


PEERS = {
    "langgraph": (langgraph, "langgraph"),
    "agent-framework": (agent_framework, "agent-framework-core"),
    "autogen": (autogen, "autogen-agentchat"),
    "agno": (agno, "agno"),
}


async def measure(name: str, age: int, turns: int) -> dict[str, Any]:
    begin, package = PEERS[name]
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            turn = await begin(stack, Path(folder), age)
            for _ in range(WARM_UP):
                await turn()
            gc.collect()
            noted.clear()
            cpu, began = time.process_time(), time.perf_counter()
            for _ in range(turns):
                await turn()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - began
    assert noted == [TEXT] * turns, f"the tool was called {len(noted)} times in {turns} turns"
    return {
        "peer": name,
        "version": version(package),
        "age": age,
        "cpu_ms": round(cpu / turns * 1000, 2),
        "wall_ms": round(wall / turns * 1000, 2),
    }


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # some print as they work
        measured = asyncio.run(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
    print(json.dumps(measured))
