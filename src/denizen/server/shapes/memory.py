"""The JSON of memories and memory policies: of conversations, people and the organization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, Field

from denizen.clock import Instant, moment
from denizen.memory.documents import ITEM_CHARACTERS, Category
from denizen.memory.history import MemoryVersion, difference
from denizen.memory.hygiene import Report
from denizen.memory.items import MemoryItem
from denizen.memory.policy import OrganizationMemory, Policy, Scopes
from denizen.memory.rolling import ConversationSummary
from denizen.server.shapes.filling import filled
from denizen.shapes.examples import body_example
from denizen.shapes.memory import (
    ConversationMemory,
    FindingOut,
    MemoryHistory,
    MemoryOut,
    MemoryVersionOut,
    OrganizationMemoryOut,
    PieceOut,
    PolicyOut,
    ReportOut,
)


def memory_out(memory: MemoryItem) -> MemoryOut:
    return filled(MemoryOut, memory, confidence=memory.confidence / 100, outside=memory.source is not None)


class MemoryChange(BaseModel):
    """The new text of a memory."""

    model_config = body_example(text="Noor likes long answers.")

    text: Annotated[str, Field(min_length=1, max_length=ITEM_CHARACTERS)]


class RevertMemory(BaseModel):
    """The version whose text shall hold again."""

    model_config = body_example(version="17.41")

    version: Annotated[str, Field(min_length=1, max_length=100, description="The `id` of the version.")]


def history_out(versions: Sequence[MemoryVersion]) -> MemoryHistory:
    return MemoryHistory(versions=[_version_out(each) for each in versions])


def _version_out(version: MemoryVersion) -> MemoryVersionOut:
    differs = version.before and version.before != version.text
    pieces = difference(version.before, version.text) if differs else []
    made = [PieceOut(kind=each.kind, text=each.text) for each in pieces]
    return filled(MemoryVersionOut, version, version.change, memory_id=version.memory.id, difference=made)


def policy_out(policy: Policy) -> PolicyOut:
    return filled(PolicyOut, policy)


class PolicyChange(BaseModel):
    """Long-term memory settings of a conversation. Fields that are not sent stay unchanged."""

    model_config = body_example(enabled=False)

    enabled: Annotated[bool | None, Field(description="False: no memories are stored or recalled.")] = None
    scopes: Scopes = Scopes()
    share_with_organization: Annotated[
        bool | None, Field(validation_alias=AliasChoices("share_with_organization", "shareWithOrganization"))
    ] = None

    def as_policy(self) -> Policy:
        return Policy(enabled=self.enabled, scopes=self.scopes, shareWithOrganization=self.share_with_organization)


def conversation_memory_out(state: ConversationSummary, policy: Policy) -> ConversationMemory:
    return filled(
        ConversationMemory,
        state,
        summary_markdown=state.summary,
        memory_json=state.memory.model_dump(mode="json"),
        updated_at=moment(Instant(state.updated_at)) if state.upto else None,
        policy=policy_out(policy),
    )


def organization_memory_out(settings: OrganizationMemory | None) -> OrganizationMemoryOut:
    # Settings that cannot be read allow nothing.
    nothing: dict[str, Any] = dict.fromkeys(
        ("enabled", "conversation", "user", "persona", "organization", "publish"), False
    )
    return OrganizationMemoryOut(**(nothing | {"categories": []} if settings is None else settings.model_dump()))


class OrganizationMemoryChange(BaseModel):
    """Changes of the long-term memory settings. Null resets one to its default."""

    model_config = body_example(publish=False)

    enabled: bool | None = None
    conversation: bool | None = None
    user: bool | None = None
    persona: bool | None = None
    organization: bool | None = None
    publish: bool | None = None
    categories: list[Category] | None = None


def report_out(report: Report) -> ReportOut:
    return ReportOut(
        counts=dict(report.counts),
        superseded=report.superseded,
        findings=[filled(FindingOut, each, memories=[one.id for one in each.memories]) for each in report.findings],
    )


class LongTermMemory(BaseModel, extra="forbid", populate_by_name=True):
    """`memoryControl.longTermMemory` of a request: what the one who asks says of this conversation."""

    enabled: bool | None = None
    scopes: Scopes = Scopes()
    share_with_organization: Annotated[bool | None, Field(alias="shareWithOrganization")] = None


class MemoryControl(BaseModel, extra="forbid", populate_by_name=True):
    """`memoryControl` of a request."""

    long_term_memory: Annotated[LongTermMemory, Field(alias="longTermMemory")] = LongTermMemory()

    def as_policy(self) -> Policy:
        said = self.long_term_memory
        return Policy(enabled=said.enabled, scopes=said.scopes, shareWithOrganization=said.share_with_organization)
