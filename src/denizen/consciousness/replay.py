"""Rebuilds any past request: its messages and tools, and the response.

The log is the archive: each response is stored with what its request was made of. Forgotten text is gone from it, and
shows as `[forgotten]`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, func, select

from denizen.consciousness import eras, log, mind, privacy
from denizen.consciousness.log import Entry
from denizen.consciousness.privacy import Reader, stand_in
from denizen.errors import InvalidInput
from denizen.ids import AgentId, EntityId
from denizen.inbox import sources
from denizen.models import codec
from denizen.models.tokens import estimate_message
from denizen.spaces.source_names import label, named
from denizen.storage.database import Tx, select_where, statement, value
from denizen.storage.schema import cycles, toolsets
from denizen.storage.schema import log as log_rows

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.tools import ToolDefinition


@dataclass(frozen=True, slots=True)
class RebuiltRequest:
    """A request as it was sent, and its response."""

    cycle: int
    step: int
    messages: tuple[ModelMessage, ...]
    present: int
    """How many of the messages, the last ones, are of this cycle, including a preview; those before are its past."""
    has_note: bool
    """Whether the last message is in this request only: the phase, a preview of the inbox, extra context."""
    tools: tuple[ToolDefinition, ...]
    tools_kept: bool
    """Whether the definitions of the tools were stored: if not, `tools` is empty."""
    settings: Mapping[str, Any]
    model: str
    """The name of the model in the request."""
    response: ModelResponse
    results: ModelMessage | None
    """The results of the response's calls; None if it made none."""
    private: bool = False
    """Whether parts are hidden from its reader: what comes from private spaces that they are not in is left out."""
    outside: str = ""
    """The sources of its text from outside, in words; empty if it held none."""


_cycle = select_where(cycles, "id, first_seq", "agent_id, number")
_last = statement(select(func.max(cycles.c.number)).where(cycles.c.agent_id == bindparam("agent_id")))
_tools = select_where(toolsets, "tools", "digest")


def entries_of_cycle(tx: Tx, agent_id: AgentId, number: int) -> list[Entry]:
    """The log entries of the cycle with that number. Raises `InvalidInput` if there is no such cycle."""
    row = tx.one(_cycle, agent_id=agent_id, number=number)
    if row is None:
        last = tx.one(_last, agent_id=agent_id)
        raise InvalidInput(_no_such_cycle(number, last[0] if last else None))
    cycle_id, first_seq = row
    after = tx.one(_cycle, agent_id=agent_id, number=number + 1)
    found = log.entries(tx, agent_id, first_seq) if after is None else log.entries(tx, agent_id, first_seq, after[1])
    # After the last ended cycle there may be an open one.
    return [each for each in found if each.cycle_id == cycle_id]


def _no_such_cycle(number: int, last: int | None) -> str:
    lived = "it has lived none yet" if not last else f"its cycles are 1 to {last:,}"
    return (
        f"There is no cycle {number:,} of this agent: {lived}. "
        "Of a cycle that was skipped, or that failed before it had done anything, nothing is kept."
    )


def requests(tx: Tx, agent_id: AgentId, cycle_number: int, person: EntityId | None = None) -> list[RebuiltRequest]:
    """Every request of the cycle, in the order of its steps, as far as this person may read it; None: everything."""
    entries = entries_of_cycle(tx, agent_id, cycle_number)
    answered = [at for at, each in enumerate(entries) if each.message.kind == "response"]
    if not answered:
        raise InvalidInput(no_such_step(cycle_number, 0, 0))
    reader = privacy.reader(tx, agent_id, person)
    return [_rebuilt(tx, reader, cycle_number, step, entries, at) for step, at in enumerate(answered)]


def request(tx: Tx, agent_id: AgentId, cycle_number: int, step: int, person: EntityId | None = None) -> RebuiltRequest:
    """The request of that step, starting at 0, as far as this person may read it."""
    entries = entries_of_cycle(tx, agent_id, cycle_number)
    answered = [at for at, each in enumerate(entries) if each.message.kind == "response"]
    if not 0 <= step < len(answered):
        raise InvalidInput(no_such_step(cycle_number, step, len(answered)))
    return _rebuilt(tx, privacy.reader(tx, agent_id, person), cycle_number, step, entries, answered[step])


def no_such_step(cycle_number: int, step: int, steps: int) -> str:
    """A message that says which steps the cycle has."""
    if steps == 0:
        return f"Cycle {cycle_number:,} ended before its model had answered: no request of it is kept."
    return f"Cycle {cycle_number:,} has no step {step}: its steps are 0 to {steps - 1}."


def _rebuilt(tx: Tx, reader: Reader, number: int, step: int, entries: list[Entry], at: int) -> RebuiltRequest:
    answer = entries[at]
    assert answer.message.kind == "response"
    made_of: dict[str, Any] = json.loads(answer.request or "{}")
    tools = _tools_of(tx, made_of)
    after = entries[at + 1] if at + 1 < len(entries) else None
    results = after.message if after is not None and after.kind == "results" else None
    response = answer.message
    private = reader.hides_cycle(answer.cycle_id)
    if private:
        from pydantic_ai.messages import TextPart

        response = replace(response, parts=[TextPart(stand_in(1))])
        results = None if results is None else privacy.stand_in_message(1)
    return RebuiltRequest(
        cycle=number,
        step=step,
        messages=tuple(mind.request(tx, reader.agent_id, made_of, reader)),
        present=at + ("preview" in made_of),
        has_note="preview" in made_of,
        tools=tools or (),
        tools_kept=tools is not None,
        settings=made_of["settings"],
        model=made_of["model"],
        response=response,
        results=results,
        private=bool(reader.closed),
        outside=_outside(tx, reader, answer, made_of),
    )


_sources = select_where(
    log_rows,
    "outside, cycle_id",
    "agent_id",
    log_rows.c.seq >= bindparam("first"),
    log_rows.c.seq < bindparam("end"),
    log_rows.c.outside.is_not(None),
    order_by="seq",
)


def _outside(tx: Tx, reader: Reader, answer: Entry, made_of: Mapping[str, Any]) -> str:
    if answer.outside is None:
        return ""
    rows = tx.all(_sources, agent_id=reader.agent_id, first=made_of["from"], end=answer.seq)
    read = [stored for stored, cycle_id in rows if not reader.hides_cycle(cycle_id)]
    found = [source for stored in read for source in sources.load(stored) or ()]
    if eras.find(tx, reader.agent_id, made_of["era"]).outside and made_of.get("layers", True):
        found.append(sources.EARLIER)
    return label(named(tx, reader.agent_id, found))


def _tools_of(tx: Tx, made_of: Mapping[str, Any]) -> tuple[ToolDefinition, ...] | None:
    tools = value(tx, _tools, digest=made_of["tools"])
    if tools is None:
        return None
    from pydantic_ai.tools import ToolDefinition

    only = made_of.get("only")
    return tuple(
        ToolDefinition(name=each["name"], description=each["description"], parameters_json_schema=each["parameters"])
        for each in json.loads(tools)
        if only is None or each["name"] in only
    )


# JSON form


def as_object(each: RebuiltRequest) -> dict[str, Any]:
    """The request and its response as a JSON object."""
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
        for tool in each.tools
    ]
    return {
        "cycle": each.cycle,
        "step": each.step,
        "model": each.model,
        "settings": dict(each.settings),
        "tools": tools if each.tools_kept else None,
        "messages": [_as_sent(message) for message in each.messages],
        "tokens": sum(map(estimate_message, each.messages)),
        "response": json.loads(codec.dump(each.response)),
        "results": None if each.results is None else json.loads(codec.dump(each.results)),
        "private": each.private,
        "outside": each.outside,
    }


def _as_sent(message: ModelMessage) -> dict[str, Any]:
    dumped: dict[str, Any] = json.loads(codec.dump(message))
    # The time of a part is not part of the request, and for the self it would be now.
    dumped["parts"] = [{name: each[name] for name in each if name != "timestamp"} for each in dumped["parts"]]
    return dumped
