"""What is sent and answered, as JSON. Names are those of the domain; times are ISO 8601, UTC."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from denizen.agents.registry import Agent, Status
from denizen.clock import moment
from denizen.server.auth import Caller
from denizen.spaces.directory import Attention, EntityKind, Member, Organization, Space, SpaceKind
from denizen.spaces.posting import MESSAGE_CHARACTERS, Message
from denizen.storage.database import storable

METADATA_CHARACTERS = 16_384
ABOUT_CHARACTERS = 200

_NOOR = "019b8d3e-5c00-7a61-9d0f-3f6f1c0b2a41"
_ADA = "019b8d3e-5c01-7b02-8a55-90e1d2c3b4a5"
_KITCHEN = "019b8d3e-5c02-7c13-b2aa-0a1b2c3d4e5f"
_MESSAGE = "019b8d3f-0a00-7d24-8c3b-5e6f7a8b9c0d"


def _example(**fields: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [fields]})


class Problem(BaseModel):
    """Why a request failed (RFC 9457). Decide by `code`; `detail` is for people."""

    model_config = _example(
        type="about:blank", title="Not found", status=404, code="not_found", detail=f"There is no space '{_KITCHEN}'."
    )

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[FieldError] | None = None


class FieldError(BaseModel):
    """What is wrong with one field of a request."""

    in_: Annotated[str, Field(alias="in")]
    field: str
    message: str


class PostMessage(BaseModel):
    """Something to say in a space."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"text": "Good morning, @ada. **Did the build pass?**", "urgent": False}]},
    )

    text: Annotated[str, Field(description=f"Markdown, up to {MESSAGE_CHARACTERS:,} characters. `@handle` mentions.")]
    reply_to: Annotated[str | None, Field(description="The id of a message in the same space.")] = None
    urgent: Annotated[bool, Field(description="Agents see it at their next step instead of after their cycle.")] = False
    metadata: Annotated[dict[str, JsonValue] | None, Field(description="Kept with the message as it is.")] = None

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


class Author(BaseModel):
    """Who said it, under the name they have now."""

    id: str
    kind: str
    name: str


class MessageOut(BaseModel):
    """Something said in a space. `seq` is its place there: 1, 2, 3, without holes."""

    model_config = _example(
        id=_MESSAGE,
        space_id=_KITCHEN,
        seq=7,
        author={"id": _NOOR, "kind": "human", "name": "Noor"},
        text="Good morning, @ada. **Did the build pass?**",
        plain="Good morning, @ada. Did the build pass?",
        mentions=["ada"],
        reply_to=None,
        metadata={},
        created_at="2026-01-05T09:00:00Z",
    )

    id: str
    space_id: str
    seq: int
    author: Author
    text: Annotated[str, Field(description="Markdown, as it was written.")]
    plain: Annotated[str, Field(description="The same without markup.")]
    mentions: list[str]
    reply_to: str | None
    metadata: Mapping[str, JsonValue]
    created_at: datetime

    @classmethod
    def of(cls, message: Message) -> MessageOut:
        return cls(
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
        )


class MessagePage(BaseModel):
    """Some messages of a space, oldest first."""

    messages: list[MessageOut]
    next: Annotated[
        int | None,
        Field(description="Give it as `after` (or as `before`, going back) for the next page; null: there is none."),
    ]


class MemberOut(BaseModel):
    """Someone in a space."""

    id: str
    kind: EntityKind
    handle: str
    name: str
    role: str
    attention: Attention

    @classmethod
    def of(cls, member: Member) -> MemberOut:
        who = member.entity
        return cls(
            id=who.id, kind=who.kind, handle=who.handle, name=who.name, role=member.role, attention=member.attention
        )


class SpaceOut(BaseModel):
    """A place where entities talk."""

    model_config = _example(
        id=_KITCHEN,
        kind="conversation",
        name="Kitchen",
        private=False,
        last_seq=7,
        members=[
            {"id": _NOOR, "kind": "human", "handle": "noor", "name": "Noor", "role": "member", "attention": "all"},
            {"id": _ADA, "kind": "agent", "handle": "ada", "name": "Ada", "role": "member", "attention": "all"},
        ],
    )

    id: str
    kind: SpaceKind
    name: str
    private: bool
    last_seq: Annotated[int, Field(description="Of the last message; 0 before the first.")]
    members: list[MemberOut]

    @classmethod
    def of(cls, space: Space, last_seq: int, members: list[Member]) -> SpaceOut:
        return cls(
            id=space.id,
            kind=space.kind,
            name=space.name,
            private=space.private,
            last_seq=last_seq,
            members=[MemberOut.of(each) for each in members],
        )


class SpaceList(BaseModel):
    """The spaces you are in."""

    spaces: list[SpaceOut]


class AgentOut(BaseModel):
    """An agent of your organization."""

    model_config = _example(
        id=_ADA, handle="ada", name="Ada", status="sleeping", model="demo", about="You look after this house."
    )

    id: str
    handle: str
    name: str
    status: Status
    model: str
    about: Annotated[str, Field(description="The beginning of its instructions.")]

    @classmethod
    def of(cls, agent: Agent, status: Status) -> AgentOut:
        return cls(
            id=agent.id,
            handle=agent.entity.handle,
            name=agent.name,
            status=status,
            model=agent.definition.model,
            about=_beginning(agent.definition.instructions),
        )


class AgentList(BaseModel):
    """The agents of your organization that are not dead."""

    agents: list[AgentOut]


class OrganizationOut(BaseModel):
    """Where you belong."""

    id: str
    name: str


class TokenOut(BaseModel):
    """The token you came with."""

    id: str
    name: str
    created_at: datetime
    expires_at: datetime | None


class Me(BaseModel):
    """Who you are here."""

    model_config = _example(
        id=_NOOR,
        kind="human",
        handle="noor",
        name="Noor",
        organization={"id": "019b8d3e-5bff-7012-8111-222233334444", "name": "Home"},
        token={"id": _MESSAGE, "name": "Terminal", "created_at": "2026-01-05T09:00:00Z", "expires_at": None},
    )

    id: str
    kind: EntityKind
    handle: str
    name: str
    organization: OrganizationOut
    token: TokenOut

    @classmethod
    def of(cls, caller: Caller, organization: Organization) -> Me:
        who, token = caller.entity, caller.token
        return cls(
            id=who.id,
            kind=who.kind,
            handle=who.handle,
            name=who.name,
            organization=OrganizationOut(id=organization.id, name=organization.name),
            token=TokenOut(
                id=token.id,
                name=token.name,
                created_at=moment(token.created_at),
                expires_at=None if token.expires_at is None else moment(token.expires_at),
            ),
        )


class Health(BaseModel):
    """The server answers."""

    model_config = _example(ok=True, version="0.1.0")

    ok: Literal[True] = True
    version: str


def _beginning(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= ABOUT_CHARACTERS else first[: ABOUT_CHARACTERS - 1].rstrip() + "…"
