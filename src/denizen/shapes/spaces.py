"""Spaces, their members and messages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from denizen.shapes.agents import AgentTrouble
from denizen.shapes.examples import ADA, KITCHEN, NOOR, example
from denizen.shapes.value import NextAfter, NextEitherWay, Open, Value
from denizen.shapes.vocabulary import (
    MENTIONS_LOOKED_AT,
    Attention,
    EntityKind,
    Floor,
    SpaceKind,
    StatusAction,
    StatusCause,
)


class Author(Value):
    """The author, with the present name."""

    model_config = example(id=NOOR, kind="human", name="Noor")

    id: str
    kind: str
    name: str


class AttachmentOut(Value):
    """A file of a message. Its bytes are at `/api/files/{id}/content`."""

    model_config = example(name="photo.jpg")

    id: str
    name: str
    media_type: str
    size: Annotated[int, Field(description="In bytes.")]
    alt: Annotated[str | None, Field(description="What the picture shows, for those who cannot see it.")] = None


class ReactionOut(Value):
    """A reaction to a message."""

    model_config = example(emoji="👍", by=[ADA])

    emoji: str
    by: Annotated[list[str], Field(description="The ids of those who reacted so, the first ones first.")]


class MessageOut(Value):
    """A message. `seq` is its number in the space: 1, 2, 3, without gaps."""

    model_config = example(
        text="Good morning, @ada. **Did the build pass?**", plain="Good morning, @ada. Did the build pass?"
    )

    id: str
    space_id: str
    seq: int
    author: Author
    text: Annotated[str, Field(description="Markdown, as it was written.")]
    plain: Annotated[str, Field(description="The text without markup.")]
    mentions: list[str]
    reply_to: str | None
    metadata: Mapping[str, JsonValue]
    created_at: datetime
    edited_at: Annotated[datetime | None, Field(description="When its text was last changed.")]
    deleted_at: Annotated[datetime | None, Field(description="When its text was deleted; its place stays.")]
    outside: Annotated[
        bool,
        Field(
            description="Whether it is text from outside (of a guest or a service), or an agent wrote it after reading "
            "such text."
        ),
    ] = False
    files: list[AttachmentOut] = Field(default_factory=list[AttachmentOut])
    reactions: list[ReactionOut] = Field(default_factory=list[ReactionOut])
    pinned_at: Annotated[datetime | None, Field(description="Since when it is pinned in its space.")] = None
    marked_at: Annotated[datetime | None, Field(description="When a reaction or the pin last changed.")] = None


class PinnedMessages(Value):
    """The pinned messages of a space, oldest first."""

    messages: list[MessageOut]


class MessagePage(Value):
    """Messages of a space, oldest first."""

    messages: list[MessageOut]
    next: NextEitherWay[int]


class MemberOut(Value):
    """A member of a space."""

    model_config = example(id=ADA)

    id: str
    kind: Open[EntityKind]
    handle: str
    name: str
    role: str
    attention: Open[Attention]
    trouble: Annotated[AgentTrouble | None, Field(description="Why an agent cannot think; null: it can.")]
    namesake: Annotated[
        bool, Field(description="Whether the name looks like that of another member: tell them apart by the handle.")
    ] = False


class StatusOut(Value):
    """Why an agent has not answered in a space, for the person who waits there."""

    model_config = example(
        text="OpenAI rejected the API key of Ada. Check it under Administration › Keys; Ada then answers by itself.",
        actions=["try_again", "settings"],
    )

    agent_id: Annotated[str | None, Field(description="Null: nobody in this panel could answer.")]
    name: Annotated[str, Field(description="Of the agent, or of the panel.")]
    cause: Annotated[
        Open[StatusCause] | Open[Literal["queued"]],
        Field(description="`queued`: it is busy elsewhere and answers later."),
    ]
    text: Annotated[
        str, Field(description="What prevents the answer, what happens next and who can fix it, for people.")
    ]
    actions: Annotated[
        list[Open[StatusAction]],
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


FLOOR: Final = (
    "Which agents take up what is said, where there are several: `one` (somebody always answers a person, and only "
    "one), `addressed` (those that a message mentions or replies to), or `all`."
)


RUN_LIMIT: Final = "After this many messages in a row, agents stop waking each other; 0: no limit."


class SpaceOut(Value):
    """A space."""

    model_config = example(id=KITCHEN, name="Kitchen")

    id: str
    kind: Open[SpaceKind]
    name: str
    private: bool
    floor: Annotated[Open[Floor], Field(description=FLOOR)]
    agent_run_limit: Annotated[int, Field(description=RUN_LIMIT)]
    stopped: Annotated[
        bool, Field(description="Agents no longer wake each other here until a person speaks or lets them go on.")
    ]
    created_at: datetime
    last_seq: Annotated[int, Field(description="The number of the last message; 0: none yet.")]
    read_seq: Annotated[int, Field(description="The number of the last message that you have read.")]
    unread: Annotated[int, Field(description="The number of messages after it.")]
    unread_mentions: Annotated[
        int, Field(description=f"How many of the newest {MENTIONS_LOOKED_AT} of these mention you.")
    ]
    members: list[MemberOut]
    statuses: Annotated[list[StatusOut], Field(description="Why agents have not answered here.")]


class SpaceList(Value):
    """Your spaces."""

    spaces: list[SpaceOut]
    next: NextAfter[str]


class StoppedAnswers(Value):
    """Which agents were stopped."""

    agents: Annotated[list[str], Field(description="The ids of the agents that were writing; empty if none was.")]


class ReadState(Value):
    """Your read position, and the unread messages."""

    space_id: str
    last_seq: int
    read_seq: int
    unread: int
    unread_mentions: int


class KeptFor(Value):
    """How long messages are kept."""

    days: Annotated[int, Field(description="0: for ever.")]
    archive: Annotated[bool, Field(description="Whether they are written to a file before they are removed.")]


class RetentionOut(KeptFor):
    """How long the messages of a space are kept."""

    own: Annotated[
        bool, Field(description="Whether the space has a setting of its own; otherwise the default applies.")
    ]
    default: Annotated[KeptFor, Field(description="The default of the organization.")]
    expired: Annotated[int, Field(description="How many messages the next run removes, or would remove.")]


class SearchPage(Value):
    """The results, newest first."""

    messages: list[MessageOut]
    next: Annotated[
        str | None,
        Field(description="Send it as `before` to continue, also after an empty page; null: it is complete."),
    ]
