"""Memories, and memory settings."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, JsonValue

from denizen.shapes.examples import ADA, NOOR, THING, example
from denizen.shapes.value import NextBefore, Open, Value
from denizen.shapes.vocabulary import DifferenceKind, MemoryCategory, MemoryChangeKind, MemoryScope, RecallReason


class MemoryOut(Value):
    """A memory."""

    model_config = example(category="preferences", text="Noor likes short answers.", sources=[THING])

    id: str
    scope: Open[MemoryScope]
    category: Annotated[str, Field(description="`snapshot`: a summary of a whole conversation.")]
    text: str
    confidence: float
    space_id: Annotated[str, Field(description="Where it was learned.")]
    user_id: str | None
    agent_id: str | None
    sources: Annotated[list[str], Field(description="The ids of the messages that say it.")]
    uses: Annotated[int, Field(description="How often an agent was reminded of it.")]
    used_at: datetime | None
    superseded_by: Annotated[str | None, Field(description="The id of the memory that replaced it.")]
    created_at: datetime
    updated_at: datetime
    outside: Annotated[bool, Field(description="Whether it was made from text from outside.")] = False


class MemoryPage(Value):
    """A page of memories."""

    memories: list[MemoryOut]
    next: NextBefore[str]


class PieceOut(Value):
    """A part of a text that is compared with an earlier one."""

    kind: Open[DifferenceKind]
    text: str


class MemoryVersionOut(Value):
    """A memory at one time."""

    model_config = example(id="17.42", kind="corrected", text="Noor likes long answers.", by_id=NOOR, sources=[])

    id: str
    number: Annotated[int, Field(description="From 1, the oldest first.")]
    memory_id: str
    kind: Annotated[
        Open[MemoryChangeKind],
        Field(
            description="`learned` from messages; `confirmed` by another message; `said_again` after it was outdated; "
            "`corrected` or `reverted` by a person."
        ),
    ]
    text: str
    difference: Annotated[
        list[PieceOut], Field(description="Compared with the text that it replaced; empty if it replaced none.")
    ]
    by_id: Annotated[str | None, Field(description="The person who changed it; null: it comes from a summary.")]
    model: Annotated[str, Field(description="The model that wrote the summary; empty if a person changed it.")]
    sources: Annotated[list[str], Field(description="The ids of the messages that were the reason.")]
    created_at: datetime
    current: Annotated[bool, Field(description="Whether this is what holds now.")]


class MemoryHistory(Value):
    """The versions of a memory, the oldest first."""

    versions: list[MemoryVersionOut]


class Scopes(BaseModel, frozen=True, extra="forbid"):
    """Which scopes are on. Null: not set."""

    conversation: bool | None = None
    user: bool | None = None
    persona: bool | None = None
    organization: bool | None = None


class PolicyOut(Value):
    """The long-term memory settings of a conversation; null: not set, the default applies."""

    enabled: bool | None
    scopes: Scopes
    share_with_organization: bool | None


class ConversationMemory(Value):
    """The summary of a conversation, and its memory settings."""

    model_config = example(summary_markdown="Noor asked about the build.")

    space_id: str
    summary_markdown: str
    memory_json: dict[str, JsonValue]
    upto: Annotated[int, Field(description="The number of the last message that it covers; 0: none yet.")]
    passes: int
    updated_at: datetime | None
    policy: PolicyOut
    outside: Annotated[bool, Field(description="Whether the summary was made from text from outside.")] = False


class RetrievalOut(Value):
    """A recall of long-term memories in one cycle: numbers, never the text of a memory."""

    model_config = example(memories={"user": 1}, refused={"organization": "scope_off"})

    reason: Annotated[
        Open[RecallReason],
        Field(
            description="`first`: the first turn of the conversation; `cadence`: `routing.reviewEveryNTurns` turns "
            "have passed; `compaction`: the conversation or the agent's window was compacted."
        ),
    ]
    memories: Annotated[dict[str, int], Field(description="How many the agent was shown, by scope searched.")]
    characters: Annotated[int, Field(description="Their length in all.")]
    refused: Annotated[dict[str, str], Field(description="The scopes that were not searched, each with the code.")]


class OrganizationMemoryOut(Value):
    """The long-term memory settings of an organization."""

    model_config = example(categories=["facts", "people", "projects", "decisions"])

    enabled: bool
    conversation: bool
    user: bool
    persona: bool
    organization: bool
    publish: Annotated[bool, Field(description="Whether new memories are shared with the organization.")]
    categories: Annotated[list[Open[MemoryCategory]], Field(description="What may be shared with the organization.")]


class FindingOut(Value):
    """A problem of one or two memories."""

    model_config = example(memories=[THING, ADA], why="they have the same words")

    problem: Open[Literal["duplicate", "junk", "never used", "contradiction"]]
    scope: str
    memories: Annotated[list[str], Field(description="Their ids.")]
    why: str


class ReportOut(Value):
    """The number of memories and their problems, without their texts."""

    model_config = example(counts={"conversation": 12, "user": 5, "persona": 5})

    counts: Annotated[dict[str, int], Field(description="By scope.")]
    superseded: int
    findings: list[FindingOut]
