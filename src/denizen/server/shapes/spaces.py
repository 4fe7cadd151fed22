"""The JSON of spaces, their members and messages, and read marks. Times are ISO 8601, UTC."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from denizen.agents.fitness import Unable
from denizen.agents.space_statuses import QueuedStatus, ShownStatus
from denizen.clock import Instant, moment
from denizen.ids import AgentId, EntityId
from denizen.panel.unanswered import PanelStatus
from denizen.server.shapes.agents import agent_trouble_out
from denizen.server.shapes.given import Given
from denizen.shapes.examples import asked
from denizen.shapes.spaces import (
    FLOOR,
    RUN_LIMIT,
    AttachmentOut,
    Author,
    MemberOut,
    MessageOut,
    ReactionOut,
    SpaceOut,
    StatusOut,
)
from denizen.spaces.directory import (
    AGENT_RUN_LIMIT,
    DEFAULT_FLOOR,
    LARGEST_RUN_LIMIT,
    Attention,
    Floor,
    Member,
    MemberRole,
    namesakes,
)
from denizen.spaces.posting import MESSAGE_CHARACTERS, Message
from denizen.spaces.reading import ReadPosition
from denizen.storage.database import storable

MOST_MEMBERS = 200
"""The most members in a request for a new space."""
METADATA_CHARACTERS = 16_384

NamedOrganization = Annotated[
    str | None,
    Field(
        alias="organizationId",
        description="Your organization: with it, what is remembered for all of it may be used. It is not kept.",
    ),
]


class SpaceCreate(Given):
    """A new space. You are in it, and run it."""

    model_config = asked(name="Kitchen", members=["@ada", "@sam"], private=False)

    name: str
    members: list[str] = Field(
        default_factory=list[str],
        max_length=MOST_MEMBERS,
        description="Who else is in it: ids, or handles with their `@`.",
    )
    private: Annotated[
        bool, Field(description="Whether those who are not in it may not even know of it, nor of what is said in it.")
    ] = False
    floor: Annotated[Floor | None, Field(description=f"{FLOOR} By default `{DEFAULT_FLOOR}`.")] = None
    agent_run_limit: Annotated[
        int | None, Field(ge=0, le=LARGEST_RUN_LIMIT, description=f"{RUN_LIMIT} By default {AGENT_RUN_LIMIT}.")
    ] = None


class SpaceChange(Given):
    """What shall be otherwise with a space."""

    model_config = asked(name="Big kitchen")

    name: str | None = None
    private: bool | None = None
    floor: Annotated[Floor | None, Field(description=FLOOR)] = None
    agent_run_limit: Annotated[int | None, Field(ge=0, le=LARGEST_RUN_LIMIT, description=RUN_LIMIT)] = None


class StopAnswer(Given):
    """Whose answer is to stop."""

    model_config = asked(agent="@ada")

    agent: Annotated[
        str | None, Field(description="The id of an agent, or its handle with the `@`. By default all.")
    ] = None


class MemberAdd(Given):
    """Who shall be in the space."""

    model_config = asked(entity="@ada", attention="mentions")

    entity: Annotated[str, Field(description="Its id, or its handle with the `@`.")]
    attention: Annotated[Attention, Field(description="What of the space reaches an agent's inbox.")] = "all"
    role: Annotated[MemberRole, Field(description="Owners and admins of a space run it.")] = "member"


class MemberChange(Given):
    """What shall be otherwise with a member."""

    model_config = asked(attention="none")

    attention: Attention | None = None
    role: MemberRole | None = None


class ReadMark(Given):
    """How far you have read."""

    model_config = asked(seq=7)

    seq: Annotated[int, Field(ge=0, le=2**62, description="The number of the last message that you have read.")]


class PostMessage(BaseModel):
    """Something to say in a space."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        json_schema_extra={"examples": [{"text": "Good morning, @ada. **Did the build pass?**", "urgent": False}]},
    )

    text: Annotated[str, Field(description=f"Markdown, up to {MESSAGE_CHARACTERS:,} characters. `@handle` mentions.")]
    reply_to: Annotated[str | None, Field(description="The id of a message in the same space.")] = None
    urgent: Annotated[bool, Field(description="Agents see it at their next step instead of after their cycle.")] = False
    metadata: Annotated[dict[str, JsonValue] | None, Field(description="Kept with the message as it is.")] = None
    organization_id: NamedOrganization = None
    files: Annotated[
        list[str],
        Field(description="Ids of finished uploads (`POST /api/files`). With files, the text may be empty."),
    ] = []

    @field_validator("metadata")
    @classmethod
    def _can_be_kept(cls, metadata: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        if metadata is None:
            return None
        try:
            text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
        except ValueError as error:
            raise ValueError("JSON has no NaN and no Infinity") from error
        if len(text) > METADATA_CHARACTERS:
            raise ValueError(f"as JSON it may have {METADATA_CHARACTERS:,} characters, this has {len(text):,}")
        return json.loads(storable(text))


class EditMessage(BaseModel):
    """What a message shall say instead."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"text": "Good morning, @ada. Did the *second* build pass?"}]}
    )

    text: Annotated[str, Field(description=f"Markdown, up to {MESSAGE_CHARACTERS:,} characters. `@handle` mentions.")]
    ask_again: Annotated[
        bool, Field(description="Ask the agents that were to answer the message to answer it as it is now.")
    ] = False


def message_out(message: Message) -> MessageOut:
    return MessageOut(
        id=message.id,
        space_id=message.space_id,
        seq=message.seq,
        author=Author(id=message.author_id, kind=message.author_kind, name=message.author_name),
        text=message.text,
        plain=message.plain,
        mentions=list(message.mentions),
        reply_to=message.reply_to,
        metadata=message.metadata,
        created_at=moment(message.created_at),
        edited_at=None if message.edited_at is None else moment(message.edited_at),
        deleted_at=None if message.deleted_at is None else moment(message.deleted_at),
        outside=message.outside,
        files=[
            AttachmentOut(id=each.id, name=each.name, media_type=each.media_type, size=each.size)
            for each in message.files
        ],
        reactions=[ReactionOut(emoji=emoji, by=list(who)) for emoji, who in message.reactions.items()],
        pinned_at=None if message.pinned_at is None else moment(message.pinned_at),
        marked_at=None if message.marked_at is None else moment(message.marked_at),
    )


def member_out(
    member: Member, unable: Mapping[AgentId, Unable] | None = None, namesakes: Container[EntityId] = ()
) -> MemberOut:
    who = member.entity
    return MemberOut(
        id=who.id,
        kind=who.kind,
        handle=who.handle,
        name=who.name,
        role=member.role,
        attention=member.attention,
        trouble=agent_trouble_out((unable or {}).get(AgentId(who.id))),
        namesake=who.id in namesakes,
    )


def status_out(status: ShownStatus) -> StatusOut:
    return StatusOut(
        agent_id=status.agent_id,
        name=status.agent_name,
        cause=status.cause,
        text=status.text,
        actions=list(status.actions),
        message_id=status.message_id,
        retry_at=None if status.retry_at is None else moment(Instant(status.retry_at)),
        behind=status.behind if isinstance(status, QueuedStatus) else None,
        round_id=status.round_id if isinstance(status, PanelStatus) else None,
        created_at=moment(Instant(status.created_at)),
    )


def space_out(
    place: ReadPosition,
    members: list[Member],
    statuses: Iterable[ShownStatus],
    unable: Mapping[AgentId, Unable] | None = None,
) -> SpaceOut:
    space, alike = place.space, namesakes(members)
    return SpaceOut(
        id=space.id,
        kind=space.kind,
        name=space.name,
        private=space.private,
        floor=space.floor,
        agent_run_limit=space.agent_run_limit,
        stopped=space.stopped,
        created_at=moment(place.created_at),
        last_seq=place.last_seq,
        read_seq=place.read_seq,
        unread=place.unread,
        unread_mentions=place.unread_mentions,
        members=[member_out(each, unable, alike) for each in members],
        statuses=[status_out(each) for each in statuses],
    )
