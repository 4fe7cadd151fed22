"""A past for an agent that has none: cycles written straight into the database, as the real ones would be."""

from __future__ import annotations

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from sqlalchemy import bindparam, update

from denizen import Runtime
from denizen.agents.registry import Agent
from denizen.consciousness import log
from denizen.cycles.catching_up import catch_up
from denizen.ids import AgentId, CycleId, new_id
from denizen.storage.database import Tx, insert_into, statement
from denizen.storage.schema import cycles, minds

TEXT = ("The kettle is on, the report is due on Friday, and Sarah would rather see charts than tables. " * 20)[:1200]

_cycle = insert_into(cycles, "id", "agent_id", "number", "outcome", "first_seq", "started_at", "ended_at", "summary")
_count = statement(update(minds).where(minds.c.agent_id == bindparam("agent")).values(cycle_count=bindparam("count")))


async def age(runtime: Runtime, agent: Agent, messages: int) -> None:
    """The agent has this many messages of 1,200 characters behind it, four to a cycle."""
    for first in range(0, messages, 400):
        await runtime.db.write(_write_past, agent.id, first, min(400, messages - first))
    # A real life could be recalled all along; otherwise what is measured next would pay for it.
    await catch_up(runtime.db, agent.id)


def _write_past(tx: Tx, agent_id: AgentId, first: int, count: int) -> None:
    for at in range(first, first + count, 4):
        cycle_id = CycleId(new_id())
        tx.run(
            _cycle,
            id=cycle_id,
            agent_id=agent_id,
            number=at // 4 + 1,
            outcome="acted",
            first_seq=at + 1,
            started_at=tx.now,
            ended_at=tx.now,
            summary="Answered Noor.",
        )
        kinds = ("inbox", "response", "results", "response")
        past = zip(kinds, messages_of_a_cycle(), strict=True)
        log.append(tx, agent_id, [log.entry(at + 1 + i, cycle_id, kind, each) for i, (kind, each) in enumerate(past)])
    tx.run(_count, agent=agent_id, count=(first + count) // 4)


def messages_of_a_cycle() -> list[ModelMessage]:
    """An inbox, a call, its result and last words."""
    return [
        ModelRequest(parts=[UserPromptPart(TEXT)]),
        ModelResponse(parts=[ToolCallPart("send_message", {"text": TEXT}, "call_0")]),
        ModelRequest(parts=[ToolReturnPart("send_message", TEXT, "call_0")]),
        ModelResponse(parts=[TextPart(TEXT)]),
    ]
