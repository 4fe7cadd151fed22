"""Writes the chapters of an agent's history with a utility model, in the background, within the agent's budgets.

A chapter that cannot be written changes nothing: the agent's own summaries stay where the chapter would be. It is paid
for in the transaction that stores it, and an attempt without a result is paid for as far as the model answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.tools import ToolDefinition

from denizen.agents import memory_budget
from denizen.agents.registry import Agent
from denizen.consciousness import chapters, compaction
from denizen.consciousness.chapters import ChapterCycles, SourceCycle, UnusableNotes
from denizen.consciousness.layers import Note, NoteKind
from denizen.cycles.utility_budget import Payer, UtilityBudget
from denizen.errors import StorageError, explained
from denizen.ids import AgentId
from denizen.memory import asking
from denizen.memory.asking import MemoryTask, MemoryUsage, ModelAnswer, RequestReservation
from denizen.memory.documents import Unusable
from denizen.models.prices import Usage
from denizen.storage.database import Database, Tx
from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)

MOST_TOKENS: Final = 1_500
"""What the notes of one request may have."""
SHAPE: Final = ToolDefinition(
    name="chapter",
    description="What the agent should remember of these cycles.",
    parameters_json_schema={
        "type": "object",
        "properties": {
            "notes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "cycle": {"type": "integer"},
                        "kind": {"type": "string", "enum": list(get_args(NoteKind))},
                        "text": {"type": "string"},
                    },
                    "required": ["cycle", "kind", "text"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["notes"],
        "additionalProperties": False,
    },
)

Notes = dict[int, list[Note]]


@dataclass(frozen=True, slots=True)
class ChapterWriter:
    """Writes the chapters of one agent."""

    db: Database
    agent: Agent
    model: Callable[[], Awaitable[tuple[str, Model]]]
    """Returns the model that writes, with its full name."""
    budget: UtilityBudget

    async def write_next(self) -> bool:
        """Write the newest chapter that is missing. False if none is, none may be tried now, or it failed."""
        agent_id = self.agent.id
        window = self.agent.definition.window
        staying = int(window.target_share * window.max_tokens)
        made = await self.db.read(chapters.next_unwritten, agent_id, staying)
        # What a dead process has claimed is free when no request of it can still be answered.
        if made is None or not await self.db.write(
            claim_chapter, agent_id, made.first, asking.LONGEST_SECONDS * max(len(made.parts), 1)
        ):
            return False
        notes, spent, reserved, problem = await self._ask_for_all(made)
        kept = await self.db.write(keep_chapter, self.budget.payer, agent_id, made, notes, spent, reserved)
        about = {"agent": agent_id, "first": made.first}
        if notes is None:
            log_line.warning("chapter not written", **about, problem=problem)
        elif kept:
            log_line.info("chapter written", **about, notes=sum(map(len, notes.values())))
        # After a failure, older ones wait as well: a provider that is down would fail for each of them.
        return notes is not None

    async def _ask_for_all(self, made: ChapterCycles) -> tuple[Notes | None, MemoryUsage, list[str], str]:
        """The notes of all cycles, each with its receipt; None if those of any could not be had."""
        try:
            name, model = await self.model()
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  no such model, or no key for it
            return None, MemoryUsage(""), [], explained(error)
        notes: Notes = {}
        spent, reserved = MemoryUsage(name), list[str]()
        for part in made.parts:
            answered = await self._ask(part, made.failures, name, model)
            spent += answered.spent
            reserved += answered.reserved
            if answered.written is None:
                return None, spent, reserved, answered.problem
            notes |= chapters.with_receipts(part, answered.written)
        return notes, spent, reserved, ""

    async def _ask(self, part: Sequence[SourceCycle], failures: int, name: str, model: Model) -> ModelAnswer[Notes]:
        async def reserve(need: Usage) -> RequestReservation:
            return await memory_budget.reserve(self.budget, name, model, need)

        numbers = [each.number for each in part]
        wanted = MemoryTask(SHAPE, MOST_TOKENS, lambda text: _read(text, numbers))
        messages = question(part, self.agent.definition.zone, failures)
        return await asking.ask_for(wanted, messages, model, name, self.budget.deps.prices, reserve)


def question(part: Sequence[SourceCycle], zone: str, failures: int) -> list[ModelMessage]:
    """The request for the notes of these cycles."""
    # In one pass: text of the log is never treated as a template.
    system = chapters.INSTRUCTIONS.replace("{tokens}", str(MOST_TOKENS))
    told = chapters.told(part, zone, failures)
    return [ModelRequest(parts=[SystemPromptPart(system)]), ModelRequest(parts=[UserPromptPart(told)])]


def _read(text: str, numbers: Sequence[int]) -> Notes:
    try:
        return chapters.read_notes(text, numbers)
    except UnusableNotes as error:
        raise Unusable(str(error)) from error


def claim_chapter(tx: Tx, agent_id: AgentId, first: int, seconds: float) -> bool:
    return chapters.claim(tx, agent_id, first, seconds)


def keep_chapter(
    tx: Tx,
    payer: Payer,
    agent_id: AgentId,
    made: ChapterCycles,
    notes: Mapping[int, Sequence[Note]] | None,
    spent: MemoryUsage,
    reserved: Sequence[str],
) -> bool:
    """Store the chapter if its source is still the same, and charge its usage in any case. Returns whether it was
    stored.
    """
    kept = notes is not None and chapters.keep(tx, agent_id, made, notes, spent.model)
    if kept:
        # Digests of its cycles were made from the agent's own summaries.
        compaction.forget(tx, agent_id, [made.first])
    else:
        chapters.give_up(tx, agent_id, made, failed=notes is None)
    used = spent if spent.input_tokens or spent.output_tokens else None
    if used is not None or reserved:
        memory_budget.charge(tx, payer, used, reserved)
    return kept
