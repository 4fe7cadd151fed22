"""What is sent and answered, as JSON. Names are those of the domain; times are ISO 8601, UTC."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from denizen.access.roles import Role
from denizen.access.signatures import Scheme
from denizen.access.tokens import Kind
from denizen.access.webhooks import Webhook
from denizen.agents.fitness import Unable
from denizen.agents.registry import Agent, Status
from denizen.agents.space_statuses import Queued, ShownStatus
from denizen.clock import Instant, moment
from denizen.errors import InvalidInput
from denizen.ids import AgentId, EntityId
from denizen.inbox.outside import check_data, parsed
from denizen.inbox.statuses import Action, Cause
from denizen.panel.unanswered import PanelStatus
from denizen.server.auth import Caller
from denizen.server.shapes.examples import ADA, KITCHEN, NOOR, THING, given
from denizen.spaces.directory import Attention, EntityKind, Floor, Member, Organization, SpaceKind, namesakes
from denizen.spaces.handles import check_name
from denizen.spaces.posting import MESSAGE_CHARACTERS, Message
from denizen.spaces.reading import LOOKED_AT, Place
from denizen.storage.database import storable
from denizen.tools.calls import Call, Mode, State
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


class EditMessage(BaseModel):
    """What a message shall say instead."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"text": "Good morning, @ada. Did the *second* build pass?"}]}
    )

    text: Annotated[str, Field(description=f"Markdown, up to {MESSAGE_CHARACTERS:,} characters. `@handle` mentions.")]


class MessageOut(BaseModel):
    """Something said in a space. `seq` is its place there: 1, 2, 3, without holes."""

    model_config = given(
        id=THING,
        space_id=KITCHEN,
        seq=7,
        author={"id": NOOR, "kind": "human", "name": "Noor"},
        text="Good morning, @ada. **Did the build pass?**",
        plain="Good morning, @ada. Did the build pass?",
        mentions=["ada"],
        reply_to=None,
        metadata={},
        created_at="2026-01-05T09:00:00Z",
        edited_at=None,
        deleted_at=None,
        outside=False,
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
    edited_at: Annotated[datetime | None, Field(description="When its text was last changed.")]
    deleted_at: Annotated[datetime | None, Field(description="Since when its text is gone; its place stays.")]
    outside: Annotated[
        bool,
        Field(
            description="Whether it is text from outside (of a guest or a service), or an agent wrote it after reading "
            "such text."
        ),
    ] = False

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
            edited_at=None if message.edited_at is None else moment(message.edited_at),
            deleted_at=None if message.deleted_at is None else moment(message.deleted_at),
            outside=message.outside,
        )


class MessagePage(BaseModel):
    """Some messages of a space, oldest first."""

    messages: list[MessageOut]
    next: Annotated[
        int | None,
        Field(description="Give it as `after` (or as `before`, going back) for the next page; null: there is none."),
    ]


class AgentTrouble(BaseModel):
    """Why an agent cannot think."""

    model_config = given(
        cause="key",
        text="OpenAI rejected the API key of Ada. Check it under Administration › Keys; Ada then answers by itself.",
        actions=["try_again", "settings"],
        retry_at="2026-01-05T09:10:00Z",
    )

    cause: Cause
    text: Annotated[str, Field(description="What prevents it and who can fix it, for people.")]
    actions: Annotated[list[Action], Field(description="What a person can do, as in a status.")]
    retry_at: Annotated[datetime | None, Field(description="When it tries again by itself, if that is known.")]

    @classmethod
    def of(cls, unable: Unable | None) -> AgentTrouble | None:
        if unable is None:
            return None
        retry_at = None if unable.retry_at is None else moment(Instant(unable.retry_at))
        return cls(cause=unable.cause, text=unable.text, actions=list(unable.actions), retry_at=retry_at)


class MemberOut(BaseModel):
    """Someone in a space."""

    model_config = given(
        id=ADA, kind="agent", handle="ada", name="Ada", role="member", attention="all", trouble=None, namesake=False
    )

    id: str
    kind: EntityKind
    handle: str
    name: str
    role: str
    attention: Attention
    trouble: Annotated[AgentTrouble | None, Field(description="Why an agent cannot think; null: it can.")]
    namesake: Annotated[
        bool, Field(description="Whether the name looks like that of another member: tell them apart by the handle.")
    ] = False

    @classmethod
    def of(
        cls, member: Member, unable: Mapping[AgentId, Unable] | None = None, namesakes: Container[EntityId] = ()
    ) -> MemberOut:
        who = member.entity
        return cls(
            id=who.id,
            kind=who.kind,
            handle=who.handle,
            name=who.name,
            role=member.role,
            attention=member.attention,
            trouble=AgentTrouble.of((unable or {}).get(AgentId(who.id))),
            namesake=who.id in namesakes,
        )


class StatusOut(BaseModel):
    """Why an agent has not answered in a space, for the person who waits there."""

    model_config = given(
        agent_id=ADA,
        name="Ada",
        cause="key",
        text="OpenAI rejected the API key of Ada. Check it under Administration › Keys; Ada then answers by itself.",
        actions=["try_again", "settings"],
        message_id=THING,
        retry_at="2026-01-05T09:10:00Z",
        behind=None,
        round_id=None,
        created_at="2026-01-05T09:00:00Z",
    )

    agent_id: Annotated[str | None, Field(description="Null: nobody in this panel could answer.")]
    name: Annotated[str, Field(description="Of the agent, or of the panel.")]
    cause: Annotated[
        Cause | Literal["queued"], Field(description="`queued`: it is at work elsewhere and comes to this later.")
    ]
    text: Annotated[
        str, Field(description="What prevents the answer, what happens next and who can fix it, for people.")
    ]
    actions: Annotated[
        list[Action],
        Field(
            description="What a person can do: `try_again` (`POST /api/agents/{id}/try-again`), `ask` "
            "(`POST /api/spaces/{id}/agents/{id}/ask-for-answer`), or open the agent's `settings` or `budget`, or "
            "`resume` it. In a panel `try_again` is `POST /api/panels/{id}/rounds/{id}/retry`."
        ),
    ]
    message_id: Annotated[str | None, Field(description="The newest message that waits because of it.")]
    retry_at: Annotated[
        datetime | None, Field(description="When the agent tries again by itself, where that is known.")
    ]
    behind: Annotated[int | None, Field(description="With `queued`: how many messages the agent takes up before.")]
    round_id: Annotated[str | None, Field(description="In a panel: the round that nobody could answer.")]
    created_at: Annotated[datetime, Field(description="Since when.")]

    @classmethod
    def of(cls, status: ShownStatus) -> StatusOut:
        return cls(
            agent_id=status.agent_id,
            name=status.agent_name,
            cause=status.cause,
            text=status.text,
            actions=list(status.actions),
            message_id=status.message_id,
            retry_at=None if status.retry_at is None else moment(Instant(status.retry_at)),
            behind=status.behind if isinstance(status, Queued) else None,
            round_id=status.round_id if isinstance(status, PanelStatus) else None,
            created_at=moment(Instant(status.created_at)),
        )


FLOOR: Final = (
    "Which agents take up what is said, where there are several: `one` (somebody always answers a person, and only "
    "one), `addressed` (those that a message mentions or replies to), or `all`."
)
RUN_LIMIT: Final = "After so many messages with which agents woke each other, they do so no more; 0: no limit."


class SpaceOut(BaseModel):
    """A place where entities talk."""

    model_config = given(
        id=KITCHEN,
        kind="conversation",
        name="Kitchen",
        private=False,
        floor="one",
        agent_run_limit=12,
        stopped=False,
        created_at="2026-01-05T09:00:00Z",
        last_seq=7,
        read_seq=5,
        unread=2,
        unread_mentions=1,
        members=[
            {"id": NOOR, "kind": "human", "handle": "noor", "name": "Noor", "role": "member", "attention": "all"},
            {"id": ADA, "kind": "agent", "handle": "ada", "name": "Ada", "role": "member", "attention": "all"},
        ],
        statuses=[],
    )

    id: str
    kind: SpaceKind
    name: str
    private: bool
    floor: Annotated[Floor, Field(description=FLOOR)]
    agent_run_limit: Annotated[int, Field(description=RUN_LIMIT)]
    stopped: Annotated[
        bool, Field(description="Agents no longer wake each other here until a person speaks or lets them go on.")
    ]
    created_at: datetime
    last_seq: Annotated[int, Field(description="Of the last message; 0 before the first.")]
    read_seq: Annotated[int, Field(description="Of the last message that you have read.")]
    unread: Annotated[int, Field(description="How many came after it.")]
    unread_mentions: Annotated[int, Field(description=f"How many of the newest {LOOKED_AT} of these mention you.")]
    members: list[MemberOut]
    statuses: Annotated[list[StatusOut], Field(description="Why agents have not answered here.")]

    @classmethod
    def of(
        cls,
        place: Place,
        members: list[Member],
        statuses: Iterable[ShownStatus],
        unable: Mapping[AgentId, Unable] | None = None,
    ) -> SpaceOut:
        space, alike = place.space, namesakes(members)
        return cls(
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
            members=[MemberOut.of(each, unable, alike) for each in members],
            statuses=[StatusOut.of(each) for each in statuses],
        )


class SpaceList(BaseModel):
    """Spaces you are in."""

    spaces: list[SpaceOut]
    next: Annotated[str | None, Field(description="Give it as `after` for the next page; null: there is none.")]


class AgentOut(BaseModel):
    """An agent of your organization."""

    model_config = given(
        id=ADA, handle="ada", name="Ada", status="sleeping", model="demo", about="You look after this house."
    )

    id: str
    handle: str
    name: str
    status: Status
    model: str
    about: Annotated[str, Field(description="The beginning of its instructions.")]
    trouble: Annotated[AgentTrouble | None, Field(description="Why it cannot think; null: it can.")] = None

    @classmethod
    def of(cls, agent: Agent, status: Status, unable: Unable | None = None) -> AgentOut:
        return cls(
            id=agent.id,
            handle=agent.entity.handle,
            name=agent.name,
            status=status,
            model=agent.definition.model,
            about=_beginning(agent.definition.instructions),
            trouble=AgentTrouble.of(unable),
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


class TriggerAccepted(BaseModel):
    """The event is in the agent's inbox."""

    model_config = given(id=THING)

    id: Annotated[str, Field(description="Of the event; the same when it was told again.")]


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


class WebhookOut(BaseModel):
    """A webhook of an agent."""

    model_config = given(
        id=THING,
        name="GitHub, website",
        scheme="github",
        urgent=False,
        path=f"/hooks/{THING}",
        created_at="2026-01-05T09:00:00Z",
        revoked_at=None,
        last_used_at=None,
    )

    id: str
    name: str
    scheme: Scheme
    urgent: bool
    path: Annotated[str, Field(description="Where the service sends to, on this server.")]
    created_at: datetime
    revoked_at: datetime | None
    last_used_at: Annotated[datetime | None, Field(description="To the minute.")]

    @classmethod
    def of(cls, webhook: Webhook) -> WebhookOut:
        return cls(
            id=webhook.id,
            name=webhook.name,
            scheme=webhook.scheme,
            urgent=webhook.urgent,
            path=webhook.path,
            created_at=moment(webhook.created_at),
            revoked_at=None if webhook.revoked_at is None else moment(webhook.revoked_at),
            last_used_at=None if webhook.last_used_at is None else moment(webhook.last_used_at),
        )


class WebhookCreated(BaseModel):
    """A new webhook, and its secret, which is not shown again."""

    model_config = given(
        webhook={"id": THING, "name": "GitHub, website", "scheme": "github", "urgent": False, "path": f"/hooks/{THING}",
                 "created_at": "2026-01-05T09:00:00Z", "revoked_at": None, "last_used_at": None},
        secret="shown-this-once",  # noqa: S106  an example
    )  # fmt: skip

    webhook: WebhookOut
    secret: Annotated[str, Field(description="Give it to the service.")]


class WebhookList(BaseModel):
    """The webhooks of an agent, the revoked ones too."""

    webhooks: list[WebhookOut]


class CallOut(BaseModel):
    """A tool call of an agent that people see or answer."""

    model_config = given(
        id=THING,
        agent_id=ADA,
        space_id=KITCHEN,
        after_seq=7,
        tool="confirm_action",
        mode="pause",
        state="waiting",
        arguments={"question": "Deploy v2.1?"},
        result=None,
        created_at="2026-01-05T09:00:00Z",
        expires_at="2026-01-06T09:00:00Z",
        settled_at=None,
        settled_by=None,
        approval=False,
        code=None,
        why=None,
    )

    id: str
    agent_id: str
    space_id: str | None
    after_seq: Annotated[int, Field(description="The number of the message behind which it stands.")]
    tool: str
    mode: Annotated[Mode, Field(description="`pause`, `async`: you may answer it. The others only show.")]
    state: State
    arguments: JsonValue
    result: str | None
    created_at: datetime
    expires_at: datetime | None
    settled_at: datetime | None
    settled_by: str | None
    approval: Annotated[bool, Field(description="Whether words in the space do not answer it: only a person can.")]
    code: Annotated[
        str | None,
        Field(description="Of an approval: `yes` or `no` with this code, written in the space, answers it."),
    ]
    why: Annotated[
        str | None,
        Field(
            description="Why the agent may not make this call by itself. Approve exactly these arguments with "
            '`{"confirmed": true}`; `times` and `seconds` say how often and how long the same call may be made.'
        ),
    ]

    @classmethod
    def of(cls, call: Call) -> CallOut:
        return cls(
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


class CallList(BaseModel):
    """Tool calls of agents."""

    calls: list[CallOut]


class ApprovalOut(BaseModel):
    """An approval that still counts: the agent may make the same call, with the same arguments, by itself."""

    model_config = given(
        id=THING,
        agent_id=ADA,
        tool="send_email",
        arguments={"to": "bo@example.com", "body": "Hello"},
        uses_left=2,
        expires_at="2026-01-06T09:00:00Z",
        given_by=NOOR,
        space_id=KITCHEN,
        created_at="2026-01-05T09:00:00Z",
    )

    id: str
    agent_id: str
    tool: str
    arguments: JsonValue
    uses_left: int
    expires_at: datetime
    given_by: str
    space_id: str | None
    created_at: datetime

    @classmethod
    def of(cls, grant: Grant) -> ApprovalOut:
        return cls(
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


class ApprovalList(BaseModel):
    """Approvals of calls, the oldest first."""

    approvals: list[ApprovalOut]


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


class OrganizationOut(BaseModel):
    """Where you belong."""

    id: str
    name: str


class TokenOut(BaseModel):
    """What you came with: a token, a session, or what an identity provider gave (`jwt`)."""

    id: str
    kind: Kind
    name: str
    created_at: datetime
    expires_at: datetime | None


class Me(BaseModel):
    """Who you are here."""

    model_config = given(
        id=NOOR,
        kind="human",
        handle="noor",
        name="Noor",
        role="owner",
        organization={"id": "019b8d3e-5bff-7012-8111-222233334444", "name": "Home"},
        token={
            "id": THING,
            "kind": "token",
            "name": "Terminal",
            "created_at": "2026-01-05T09:00:00Z",
            "expires_at": None,
        },
    )

    id: str
    kind: EntityKind
    handle: str
    name: str
    role: Annotated[Role, Field(description="What you may do here, with what you came with.")]
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


class Health(BaseModel):
    """The server answers."""

    model_config = given(ok=True, version="0.1.0")

    ok: Literal[True] = True
    version: str


class Ready(BaseModel):
    """This instance takes work."""

    model_config = given(ready=True, version="0.1.0")

    ready: Literal[True] = True
    version: str


def _beginning(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= ABOUT_CHARACTERS else first[: ABOUT_CHARACTERS - 1].rstrip() + "…"
