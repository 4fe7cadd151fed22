"""Short records of the models' responses in cycles: input, output and cached tokens, and the tools they called.

Read from the responses, which the log finds fast; the ledger has the same, and skipped cycles too, but only for a
reader of all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, select

from denizen.cycles.records import calls_of
from denizen.ids import AgentId
from denizen.models import codec
from denizen.models.prices import Usage, usage_of
from denizen.storage.database import Params, Tx, select_where, statement, value
from denizen.storage.schema import cycles, log

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

_responses = statement(
    select(cycles.c.number, log.c.message)
    .select_from(
        cycles.join(
            log,
            (log.c.agent_id == cycles.c.agent_id) & (log.c.cycle_id == cycles.c.id) & (log.c.seq >= bindparam("seq")),
        )
    )
    .where(
        cycles.c.agent_id == bindparam("agent_id"),
        cycles.c.number.is_not(None),
        cycles.c.number >= bindparam("first"),
        cycles.c.number <= bindparam("last"),
        log.c.seq < bindparam("end"),
        log.c.kind == "response",
    )
    .order_by(log.c.seq)
)
_begins = select_where(cycles, "first_seq", "agent_id, number")
_END = 2**62


@dataclass(frozen=True, slots=True)
class Answers:
    """A short record of the model's responses in one cycle."""

    usage: Usage = field(default_factory=Usage)
    tools: Mapping[str, int] = field(default_factory=dict[str, int])
    """How often it called each tool, in the order of the first calls."""


def usage_of_cycles(tx: Tx, agent_id: AgentId, first: int, last: int) -> dict[int, Usage]:
    """The usage of each cycle from `first` to `last`, by number; none for a cycle without a response."""
    return {number: each.usage for number, each in answers_of_cycles(tx, agent_id, first, last).items()}


def answers_of_cycles(tx: Tx, agent_id: AgentId, first: int, last: int) -> dict[int, Answers]:
    """The same, with the tools that were called."""
    seq, end = (value(tx, _begins, agent_id=agent_id, number=each) for each in (first, last + 1))
    where: dict[str, Params] = {"agent_id": agent_id, "seq": seq or 0, "end": _END if end is None else end}
    found: dict[int, Answers] = {}
    for number, encoded in tx.all(_responses, **where, first=first, last=last):
        message = codec.load(encoded)
        if message.kind == "response":
            found[number] = _and(found.get(number, Answers()), message)
    return found


def _and(before: Answers, response: ModelResponse) -> Answers:
    tools = dict(before.tools)
    for call in calls_of(response):
        tools[call.tool_name] = tools.get(call.tool_name, 0) + 1
    return Answers(before.usage + usage_of(response), tools)
