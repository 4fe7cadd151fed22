"""The JSON of spaces, their members and messages, and read marks. Times are ISO 8601, UTC."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from denizen.agents.fitness import Unable
from denizen.agents.space_statuses import QueuedStatus, ShownStatus
from denizen.ids import AgentId, EntityId
from denizen.panel.unanswered import PanelStatus
from denizen.server.shapes.agents import agent_trouble_out
from denizen.server.shapes.filling import filled
from denizen.server.shapes.given import RequestBody
from denizen.shapes.examples import body_example
from denizen.shapes.spaces import FLOOR, RUN_LIMIT, Author, MemberOut, MessageOut, ReactionOut, SpaceOut, StatusOut
from denizen.shapes.vocabulary import MOST_DAYS
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


class SpaceCreate(RequestBody):
    """A new space, with you as its owner."""

    model_config = body_example(name="Kitchen", members=["@ada", "@sam"], private=False)

    name: str
    members: list[str] = Field(
        default_factory=list[str],
        max_length=MOST_MEMBERS,
        description="The other members: ids or `@handles`.",
    )
    private: Annotated[bool, Field(description="Whether only members can see the space and its messages.")] = False
    floor: Annotated[Floor | None, Field(description=f"{FLOOR} By default `{DEFAULT_FLOOR}`.")] = None
    agent_run_limit: Annotated[
        int | None, Field(ge=0, le=LARGEST_RUN_LIMIT, description=f"{RUN_LIMIT} By default {AGENT_RUN_LIMIT}.")
    ] = None


class SpaceChange(RequestBody):
    """Changes of a space. Fields that are not sent stay unchanged."""

    model_config = body_example(name="Big kitchen")

    name: str | None = None
    private: bool | None = None
    floor: Annotated[Floor | None, Field(description=FLOOR)] = None
    agent_run_limit: Annotated[int | None, Field(ge=0, le=LARGEST_RUN_LIMIT, description=RUN_LIMIT)] = None


class StopAnswer(RequestBody):
    """Whose answer is to stop."""

    model_config = body_example(agent="@ada")

    agent: Annotated[
        str | None, Field(description="The id of an agent, or its handle with the `@`. By default all.")
    ] = None


class MemberAdd(RequestBody):
    """A new member of a space."""

    model_config = body_example(entity="@ada", attention="mentions")

    entity: Annotated[str, Field(description="An id or an `@handle`.")]
    attention: Annotated[Attention, Field(description="Which messages reach an agent's inbox.")] = "all"
    role: Annotated[MemberRole, Field(description="Owners and admins manage the space.")] = "member"


class MemberChange(RequestBody):
    """Changes of a member. Fields that are not sent stay unchanged."""

    model_config = body_example(attention="none")

    attention: Attention | None = None
    role: MemberRole | None = None


class ReadMark(RequestBody):
    """Your read position."""

    model_config = body_example(seq=7)

    seq: Annotated[int, Field(ge=0, le=2**62, description="The number of the last message that you have read.")]


class RetentionSet(RequestBody):
    """How long to keep the messages of a space."""

    model_config = body_example(days=90, archive=False)

    days: Annotated[
        int | None, Field(ge=0, le=MOST_DAYS, description="0: for ever; null: the default of the organization.")
    ]
    archive: Annotated[bool, Field(description="Write them to a file on the server before they are removed.")] = False


def _can_be_kept(metadata: dict[str, JsonValue]) -> dict[str, JsonValue]:
    try:
        text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise ValueError("JSON has no NaN and no Infinity") from error
    if len(text) > METADATA_CHARACTERS:
        raise ValueError(f"as JSON it may have {METADATA_CHARACTERS:,} characters, this has {len(text):,}")
    return json.loads(storable(text))


Metadata = Annotated[dict[str, JsonValue], AfterValidator(_can_be_kept)]
"""What can be kept with a message."""


class PostMessage(BaseModel):
    """A message to post."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        json_schema_extra={"examples": [{"text": "Good morning, @ada. **Did the build pass?**", "urgent": False}]},
    )

    text: Annotated[str, Field(description=f"Markdown, up to {MESSAGE_CHARACTERS:,} characters. `@handle` mentions.")]
    reply_to: Annotated[str | None, Field(description="The id of a message in the same space.")] = None
    urgent: Annotated[bool, Field(description="Agents see it at their next step instead of after their cycle.")] = False
    metadata: Annotated[Metadata | None, Field(description="Stored with the message, unchanged.")] = None
    organization_id: NamedOrganization = None
    files: Annotated[
        list[str],
        Field(description="Ids of finished uploads (`POST /api/files`). With files, the text may be empty."),
    ] = []


class EditMessage(BaseModel):
    """The new text of a message."""

    model_config = body_example(text="Good morning, @ada. Did the *second* build pass?")

    text: Annotated[str, Field(description=f"Markdown, up to {MESSAGE_CHARACTERS:,} characters. `@handle` mentions.")]
    ask_again: Annotated[
        bool, Field(description="Ask the agents that were to answer the message to answer it as it is now.")
    ] = False


def message_out(message: Message) -> MessageOut:
    author = Author(id=message.author_id, kind=message.author_kind, name=message.author_name)
    reactions = [ReactionOut(emoji=emoji, by=list(who)) for emoji, who in message.reactions.items()]
    return filled(MessageOut, message, author=author, reactions=reactions)


def member_out(
    member: Member, unable: Mapping[AgentId, Unable] | None = None, namesakes: Container[EntityId] = ()
) -> MemberOut:
    who = member.entity
    return filled(
        MemberOut,
        who,
        member,
        trouble=agent_trouble_out((unable or {}).get(AgentId(who.id))),
        namesake=who.id in namesakes,
    )


def status_out(status: ShownStatus) -> StatusOut:
    return filled(
        StatusOut,
        status,
        name=status.agent_name,
        behind=status.behind if isinstance(status, QueuedStatus) else None,
        round_id=status.round_id if isinstance(status, PanelStatus) else None,
    )


def space_out(
    place: ReadPosition,
    members: list[Member],
    statuses: Iterable[ShownStatus],
    unable: Mapping[AgentId, Unable] | None = None,
) -> SpaceOut:
    alike = namesakes(members)
    return filled(
        SpaceOut,
        place.space,
        place,
        members=[member_out(each, unable, alike) for each in members],
        statuses=[status_out(each) for each in statuses],
    )
