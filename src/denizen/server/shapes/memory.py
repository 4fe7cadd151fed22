"""What is remembered: of a conversation, of people, of the organization; and what is settled about it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from denizen.clock import Instant, moment
from denizen.memory.documents import ITEM_CHARACTERS, Category
from denizen.memory.hygiene import Report
from denizen.memory.items import Remembered
from denizen.memory.policy import OrganizationMemory, Policy, Scope, Scopes
from denizen.memory.rolling import Rolled
from denizen.server.shapes.examples import ADA, KITCHEN, NINE, NOOR, THING, asked, given


class MemoryOut(BaseModel):
    """Something that is remembered."""

    model_config = given(
        id=THING,
        scope="user",
        category="preferences",
        text="Noor likes short answers.",
        confidence=0.9,
        space_id=KITCHEN,
        user_id=NOOR,
        agent_id=None,
        sources=[THING],
        uses=3,
        used_at=NINE,
        superseded_by=None,
        created_at=NINE,
        updated_at=NINE,
    )

    id: str
    scope: Scope
    category: Annotated[str, Field(description="`snapshot`: what a whole conversation came to.")]
    text: str
    confidence: float
    space_id: Annotated[str, Field(description="Where it was learned.")]
    user_id: str | None
    agent_id: str | None
    sources: Annotated[list[str], Field(description="The ids of the messages that say it.")]
    uses: Annotated[int, Field(description="How often an agent was reminded of it.")]
    used_at: datetime | None
    superseded_by: Annotated[str | None, Field(description="The id of what is true instead.")]
    created_at: datetime
    updated_at: datetime
    outside: Annotated[bool, Field(description="Whether it was made from text from outside.")] = False

    @classmethod
    def of(cls, memory: Remembered) -> MemoryOut:
        return cls(
            id=memory.id,
            scope=memory.scope,
            category=memory.category,
            text=memory.text,
            confidence=memory.confidence / 100,
            space_id=memory.space_id,
            user_id=memory.user_id,
            agent_id=memory.agent_id,
            sources=list(memory.sources),
            uses=memory.uses,
            used_at=None if memory.used_at is None else moment(Instant(memory.used_at)),
            superseded_by=memory.superseded_by,
            created_at=moment(Instant(memory.created_at)),
            updated_at=moment(Instant(memory.updated_at)),
            outside=memory.source is not None,
        )


class MemoryPage(BaseModel):
    """Some of what is remembered."""

    memories: list[MemoryOut]
    next: Annotated[str | None, Field(description="Give it as `before` for the next page; null: there is none.")]


class MemoryChange(BaseModel):
    """What a memory shall say."""

    model_config = asked(text="Noor likes long answers.")

    text: Annotated[str, Field(min_length=1, max_length=ITEM_CHARACTERS)]


class PolicyOut(BaseModel):
    """What was said of long-term memory in a conversation; null: nobody has said, and the default holds."""

    model_config = given(enabled=None, scopes={"user": False}, share_with_organization=None)

    enabled: bool | None
    scopes: Scopes
    share_with_organization: bool | None

    @classmethod
    def of(cls, policy: Policy) -> PolicyOut:
        return cls(enabled=policy.enabled, scopes=policy.scopes, share_with_organization=policy.share_with_organization)


class PolicyChange(BaseModel):
    """What shall hold of long-term memory in a conversation. What is not sent stays as it is."""

    model_config = asked(enabled=False)

    enabled: Annotated[bool | None, Field(description="False: nothing is remembered beyond it, nor brought back.")] = (
        None
    )
    scopes: Scopes = Scopes()
    share_with_organization: bool | None = None

    def as_policy(self) -> Policy:
        return Policy(enabled=self.enabled, scopes=self.scopes, shareWithOrganization=self.share_with_organization)


class ConversationMemory(BaseModel):
    """What a conversation came to, and what is settled about remembering it."""

    model_config = given(
        space_id=KITCHEN,
        summary_markdown="Noor asked about the build.",
        memory_json={"facts": [{"text": "The build passes.", "confidence": 0.9, "sources": [1]}]},
        upto=12,
        passes=1,
        updated_at=NINE,
        policy={"enabled": None, "scopes": {}, "share_with_organization": None},
    )

    space_id: str
    summary_markdown: str
    memory_json: dict[str, JsonValue]
    upto: Annotated[int, Field(description="The number of the last message that is in it; 0: none is yet.")]
    passes: int
    updated_at: datetime | None
    policy: PolicyOut
    outside: Annotated[bool, Field(description="Whether the summary was made from text from outside.")] = False

    @classmethod
    def of(cls, state: Rolled, policy: Policy) -> ConversationMemory:
        return cls(
            space_id=state.space_id,
            summary_markdown=state.summary,
            memory_json=state.memory.model_dump(mode="json"),
            upto=state.upto,
            passes=state.passes,
            updated_at=moment(Instant(state.updated_at)) if state.upto else None,
            policy=PolicyOut.of(policy),
            outside=state.outside,
        )


class OrganizationMemoryOut(BaseModel):
    """What an organization has switched off of long-term memory."""

    model_config = given(
        enabled=True,
        conversation=True,
        user=True,
        persona=True,
        organization=True,
        publish=False,
        categories=["facts", "people", "projects", "decisions"],
    )

    enabled: bool
    conversation: bool
    user: bool
    persona: bool
    organization: bool
    publish: Annotated[bool, Field(description="Whether anything new becomes the organization's.")]
    categories: Annotated[list[Category], Field(description="What may become the organization's.")]

    @classmethod
    def of(cls, settings: OrganizationMemory | None) -> OrganizationMemoryOut:
        # What cannot be read allows nothing.
        nothing: dict[str, Any] = dict.fromkeys(
            ("enabled", "conversation", "user", "persona", "organization", "publish"), False
        )
        return cls(**(nothing | {"categories": []} if settings is None else settings.model_dump()))


class OrganizationMemoryChange(BaseModel):
    """What shall be otherwise. Null gives a switch its default back."""

    model_config = asked(publish=False)

    enabled: bool | None = None
    conversation: bool | None = None
    user: bool | None = None
    persona: bool | None = None
    organization: bool | None = None
    publish: bool | None = None
    categories: list[Category] | None = None


class FindingOut(BaseModel):
    """Something that is wrong with one or two memories."""

    model_config = given(problem="duplicate", scope="user", memories=[THING, ADA], why="they have the same words")

    problem: Literal["duplicate", "junk", "never used", "contradiction"]
    scope: str
    memories: Annotated[list[str], Field(description="Their ids.")]
    why: str


class ReportOut(BaseModel):
    """How much is remembered, and what is wrong with it; never what it says."""

    model_config = given(counts={"conversation": 12, "user": 5, "persona": 5}, superseded=2, findings=[])

    counts: Annotated[dict[str, int], Field(description="By scope.")]
    superseded: int
    findings: list[FindingOut]

    @classmethod
    def of(cls, report: Report) -> ReportOut:
        return cls(
            counts=dict(report.counts),
            superseded=report.superseded,
            findings=[
                FindingOut(
                    problem=each.problem, scope=each.scope, memories=[one.id for one in each.memories], why=each.why
                )
                for each in report.findings
            ],
        )


class LongTermMemory(BaseModel):
    """`memoryControl.longTermMemory` of a request: what the one who asks says of this conversation."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    enabled: bool | None = None
    scopes: Scopes = Scopes()
    share_with_organization: Annotated[bool | None, Field(alias="shareWithOrganization")] = None


class MemoryControl(BaseModel):
    """`memoryControl` of a request."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    long_term_memory: Annotated[LongTermMemory, Field(alias="longTermMemory")] = LongTermMemory()

    def as_policy(self) -> Policy:
        said = self.long_term_memory
        return Policy(enabled=said.enabled, scopes=said.scopes, shareWithOrganization=said.share_with_organization)
