"""The lines of an exported file: JSON, one object a line. The first says what the file is, the last that it is whole.

What a line may hold is exactly what stands here: a field or a kind of line that is not known is refused, so that
nothing of a file is silently left out. Identifiers are those of the house that the file comes from.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from denizen.consciousness.log import EntryKind
from denizen.inbox.events import EventType, SenderKind
from denizen.spaces.directory import Attention, EntityKind, SpaceKind
from denizen.storage.database import storable

FORMAT: Final = "denizen"
VERSION: Final = 1
"""Of the format. It grows when a file could be misunderstood by those who know the one before."""

Kind = Literal["agent", "space"]


def _checked(text: str) -> str:
    if storable(text) != text:
        raise ValueError("it holds a character that no database can keep")
    return text


Text = Annotated[str, AfterValidator(_checked)]
Id = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\w:.@-]+$"), AfterValidator(_checked)]
Number = Annotated[int, Field(ge=0, le=2**62)]
Flag = Annotated[int, Field(ge=0, le=1)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Header(_Line):
    """What the file is."""

    format: Literal["denizen"] = FORMAT
    version: Literal[1] = VERSION
    kind: Kind


class End(_Line):
    """That nothing of the file is missing."""

    row: Literal["end"] = "end"
    lines: Number
    """How many there are, this one and the header among them."""


# An agent


class AgentLine(_Line):
    """Who it is, and how far its mind has come."""

    row: Literal["agent"] = "agent"
    id: Id
    handle: Text
    name: Text
    definition: dict[str, JsonValue]
    """Without what has its default. What may be a secret stands there as the name of one: `${NAME}`."""
    secrets: tuple[Text, ...] = ()
    """The names of those that it uses: they do not come along."""
    cycles: Number
    last_cycle_at: Number
    window_from: Number
    era: Number


class ToolsetLine(_Line):
    """Tools as models were told them."""

    row: Literal["toolset"] = "toolset"
    digest: Id
    tools: Text


class SelfLine(_Line):
    """What the agent was told it is, in one of its eras."""

    row: Literal["self"] = "self"
    era: Number
    text: Text
    layers: Text | None
    shortened: Text | None
    created_at: Number


class CycleLine(_Line):
    """A cycle that has ended."""

    row: Literal["cycle"] = "cycle"
    number: Number
    outcome: Literal["acted", "failed"]
    first_seq: Number
    started_at: Number
    ended_at: Number
    steps: Number
    active_space_id: Id | None
    stop_reason: Text | None
    summary: Text | None
    told: Text | None
    input_tokens: Number
    output_tokens: Number
    cost_micros: Number


class EntryLine(_Line):
    """A message of the log, as it is stored."""

    row: Literal["entry"] = "entry"
    seq: Number
    cycle: Number
    kind: EntryKind
    message: Text
    tokens: Number
    request: Text | None
    created_at: Number


class EffectLine(_Line):
    """What a call of a tool came to."""

    row: Literal["effect"] = "effect"
    cycle: Number
    step: Number
    position: Number
    tool: Text
    state: Literal["intent", "asked", "done"]
    changes: Flag
    result: Text | None
    created_at: Number


class LongTextLine(_Line):
    """A text that was too long for the window."""

    row: Literal["long_text"] = "long_text"
    cycle: Number
    id: Text
    text: Text
    created_at: Number


class Said(_Line):
    """A message that woke the agent: its words come along, its space does not."""

    id: Id
    space: Text
    sender_id: Id
    sender: Text
    sender_kind: SenderKind
    text: Text


class EventLine(_Line):
    """What a cycle was woken by."""

    row: Literal["event"] = "event"
    cycle: Number
    id: Text
    type: EventType
    lane: Flag
    wakes: Flag
    hop: Number
    attempts: Number
    space_id: Id | None
    said: Said | None
    payload: dict[str, JsonValue] | None
    created_at: Number


class LayerLine(_Line):
    """What ten cycles came to, or a hundred."""

    row: Literal["layer"] = "layer"
    level: Annotated[int, Field(ge=1, le=18)]
    first: Number
    digest: Text
    created_at: Number


class GoalLine(_Line):
    row: Literal["goal"] = "goal"
    number: Number
    text: Text
    status: Literal["active", "long-term", "paused", "done"]
    priority: Annotated[int, Field(ge=0, le=2)]
    created_at: Number
    updated_at: Number


class NoteLine(_Line):
    row: Literal["note"] = "note"
    key: Text
    text: Text
    created_at: Number
    updated_at: Number


class PlanLine(_Line):
    """A plan, a timer or the heartbeat. Nothing of it is due until the agent is resumed."""

    row: Literal["plan"] = "plan"
    id: Id
    kind: Literal["plan", "timer", "heartbeat"]
    name: Text
    instruction: Text
    schedule: Text
    state: Literal["held", "failed"]
    next_run: Number
    last_run: Number | None
    reckoned_at: Number
    hop: Number
    created_at: Number


class PassageLine(_Line):
    """Something that can be recalled, with its words also where they are a message's."""

    row: Literal["passage"] = "passage"
    number: Number
    cycle: Number
    kind: Literal["heard", "said", "did", "summary", "forgotten"]
    space_id: Text
    speaker_id: Id | None
    speaker: Text | None
    message_id: Id | None
    event_id: Text | None
    text: Text
    start: Number
    place: Number
    characters: Number
    own_words: Annotated[int, Field(ge=0, le=3)]
    at: Number


# A space


class SpaceLine(_Line):
    row: Literal["space"] = "space"
    id: Id
    kind: SpaceKind
    name: Text
    private: Flag
    messages: Number
    """How many there are."""


class EntityLine(_Line):
    """Someone who is in the space, or has spoken there."""

    row: Literal["entity"] = "entity"
    id: Id
    kind: EntityKind
    handle: Text
    name: Text
    role: Text | None
    """In the space; none of those who are not in it any more."""
    attention: Attention
    read_seq: Number


class MessageLine(_Line):
    row: Literal["message"] = "message"
    id: Id
    seq: Number
    author_id: Id
    text: Text
    plain: Text | None
    mentions: tuple[Text, ...]
    reply_to: Id | None
    metadata: dict[str, JsonValue] | None
    hop: Number
    edited_at: Number | None
    deleted_at: Number | None
    created_at: Number


OfAgent: TypeAlias = (
    AgentLine
    | ToolsetLine
    | SelfLine
    | CycleLine
    | EntryLine
    | EffectLine
    | LongTextLine
    | EventLine
    | LayerLine
    | GoalLine
    | NoteLine
    | PlanLine
    | PassageLine
)
OfSpace: TypeAlias = SpaceLine | EntityLine | MessageLine
Line: TypeAlias = OfAgent | OfSpace | End


@cache
def adapter() -> TypeAdapter[Line]:
    # Built at the first use: most programs neither export nor import.
    return TypeAdapter(Annotated[Line, Field(discriminator="row")])


def encode(line: Header | Line) -> str:
    """The line as it stands in a file, with its end."""
    return line.model_dump_json() + "\n"
