"""JSON shapes that several route modules share, and conversions of domain objects to JSON. Times are ISO 8601, UTC."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from denizen.access.signatures import Scheme
from denizen.access.webhooks import Webhook
from denizen.agents.fitness import Unable
from denizen.agents.registry import Agent, Status
from denizen.agents.space_statuses import QueuedStatus, ShownStatus
from denizen.clock import Instant, moment
from denizen.errors import InvalidInput
from denizen.ids import AgentId, EntityId
from denizen.inbox.outside import check_data, parsed
from denizen.panel.unanswered import PanelStatus
from denizen.server.auth import Caller
from denizen.shapes.agents import AgentOut, AgentTrouble
from denizen.shapes.calls import ApprovalOut, CallOut
from denizen.shapes.examples import KITCHEN, given
from denizen.shapes.people import Me, OrganizationOut, TokenOut
from denizen.shapes.spaces import AttachmentOut, Author, MemberOut, MessageOut, SpaceOut, StatusOut
from denizen.shapes.webhooks import WebhookOut
from denizen.spaces.directory import Member, Organization, namesakes
from denizen.spaces.handles import check_name
from denizen.spaces.posting import MESSAGE_CHARACTERS, Message
from denizen.spaces.reading import ReadPosition
from denizen.storage.database import storable
from denizen.tools.calls import Call
from denizen.tools.grants import Grant

METADATA_CHARACTERS = 16_384
TRIGGER_CHARACTERS = 10_000
TRIGGER_DATA_CHARACTERS = 256 * 1024
ABOUT_CHARACTERS = 200


class Problem(BaseModel):
    """Why a request failed (RFC 9457). Decide by `code`; `detail` is for people."""

    model_config = given(
        type="about:blank", title="Not found", status=404, code="not_found", detail=f"There is no space '{KITCHEN}'."
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


NamedOrganization = Annotated[
    str | None,
    Field(
        alias="organizationId",
        description="Your organization: with it, what is remembered for all of it may be used. It is not kept.",
    ),
]


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
    )


def agent_trouble_out(unable: Unable | None) -> AgentTrouble | None:
    if unable is None:
        return None
    retry_at = None if unable.retry_at is None else moment(Instant(unable.retry_at))
    return AgentTrouble(cause=unable.cause, text=unable.text, actions=list(unable.actions), retry_at=retry_at)


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


def agent_out(agent: Agent, status: Status, unable: Unable | None = None) -> AgentOut:
    return AgentOut(
        id=agent.id,
        handle=agent.entity.handle,
        name=agent.name,
        status=status,
        model=agent.definition.model,
        about=_beginning(agent.definition.instructions),
        trouble=agent_trouble_out(unable),
    )


class TriggerAgent(BaseModel):
    """Something that happened outside, for one agent."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"service": "CI", "text": "The build failed.", "data": {"branch": "main", "run": 4711}}]
        },
    )

    service: Annotated[str, Field(description="What the event comes from, as the agent is told it.")]
    text: Annotated[str, Field(max_length=TRIGGER_CHARACTERS, description="What happened, in words.")] = ""
    data: Annotated[JsonValue, Field(description="What happened, as data.")] = None
    id: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="The service's own id of it: told twice is told once."),
    ] = None
    urgent: Annotated[bool, Field(description="The agent sees it at its next step instead of after its cycle.")] = False

    @field_validator("service")
    @classmethod
    def _has_a_name(cls, service: str) -> str:
        try:
            return check_name(service)
        except InvalidInput as error:
            raise ValueError(str(error)) from error

    @field_validator("data")
    @classmethod
    def _can_be_kept(cls, data: JsonValue) -> JsonValue:
        try:
            check_data(data, TRIGGER_DATA_CHARACTERS)
        except InvalidInput as error:
            raise ValueError(str(error).removeprefix("data: ")) from error
        return data


class CreateWebhook(BaseModel):
    """An address for a service to tell an agent of things."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "GitHub, website", "scheme": "github"}]}
    )

    name: Annotated[str, Field(description="What the agent is told that the events come from.")]
    scheme: Annotated[Scheme, Field(description="How the service signs.")] = "generic"
    secret: Annotated[
        str | None, Field(description="Where the service has chosen it, as Slack does; else one is made.")
    ] = None
    urgent: Annotated[bool, Field(description="The agent sees events at its next step.")] = False


def webhook_out(webhook: Webhook) -> WebhookOut:
    return WebhookOut(
        id=webhook.id,
        name=webhook.name,
        scheme=webhook.scheme,
        urgent=webhook.urgent,
        path=webhook.path,
        created_at=moment(webhook.created_at),
        revoked_at=None if webhook.revoked_at is None else moment(webhook.revoked_at),
        last_used_at=None if webhook.last_used_at is None else moment(webhook.last_used_at),
    )


def call_out(call: Call) -> CallOut:
    return CallOut(
        id=call.id,
        agent_id=call.agent_id,
        space_id=call.space_id,
        after_seq=call.after_seq,
        tool=call.tool,
        mode=call.mode,
        state=call.state,
        arguments=call.parsed_arguments,
        result=call.result,
        created_at=moment(call.created_at),
        expires_at=None if call.expires_at is None else moment(call.expires_at),
        settled_at=None if call.settled_at is None else moment(call.settled_at),
        settled_by=call.settled_by or None,
        approval=bool(call.approval),
        code=call.code,
        why=call.why,
    )


def approval_out(grant: Grant) -> ApprovalOut:
    return ApprovalOut(
        id=grant.id,
        agent_id=grant.agent_id,
        tool=grant.tool,
        arguments=parsed(grant.arguments) or grant.arguments,
        uses_left=grant.uses_left,
        expires_at=moment(grant.expires_at),
        given_by=grant.given_by,
        space_id=grant.space_id,
        created_at=moment(grant.created_at),
    )


class AnswerCall(BaseModel):
    """The answer to what an agent has asked."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"result": {"confirmed": True}}]})

    result: Annotated[JsonValue, Field(description="What the agent is told: text as it is, anything else as JSON.")]

    @field_validator("result")
    @classmethod
    def _can_be_kept(cls, result: JsonValue) -> JsonValue:
        try:
            check_data(result, TRIGGER_DATA_CHARACTERS)
        except InvalidInput as error:
            raise ValueError(str(error).removeprefix("data: ")) from error
        return result


def me_out(caller: Caller, organization: Organization) -> Me:
    who, token = caller.entity, caller.token
    return Me(
        id=who.id,
        kind=who.kind,
        handle=who.handle,
        name=who.name,
        role=caller.role,
        organization=OrganizationOut(id=organization.id, name=organization.name),
        token=TokenOut(
            id=token.id,
            kind=token.kind,
            name=token.name,
            created_at=moment(token.created_at),
            expires_at=None if token.expires_at is None else moment(token.expires_at),
        ),
    )


def _beginning(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= ABOUT_CHARACTERS else first[: ABOUT_CHARACTERS - 1].rstrip() + "…"
