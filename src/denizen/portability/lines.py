"""The lines of an exported file: JSON, one object a line. The first says what the file is, the last that it is whole.

What a line may hold is exactly what stands here: a field or a kind of line that is not known is refused, so that
nothing of a file is silently left out. Identifiers are those of the house that the file comes from.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from denizen.clock import LATEST
from denizen.consciousness.log import EntryKind
from denizen.inbox.events import EventType, SenderKind
from denizen.panel.rounds import Kind as RoundKind
from denizen.panel.rounds import Part
from denizen.reflection.stance_store import Outcome
from denizen.reflection.state import Complexity, Mood, Skill
from denizen.shapes.vocabulary import ExportKind as Kind
from denizen.spaces.directory import AGENT_RUN_LIMIT, LARGEST_RUN_LIMIT, Attention, EntityKind, Floor, SpaceKind
from denizen.storage.database import storable

FORMAT: Final = "denizen"
VERSION: Final = 1
"""Of the format. It grows when a file could be misunderstood by those who know the one before."""


def _checked(text: str) -> str:
    if storable(text) != text:
        raise ValueError("it contains a character that databases cannot store")
    return text


def _checked_document(document: dict[str, JsonValue]) -> dict[str, JsonValue]:
    _checked(json.dumps(document, ensure_ascii=False))
    return document


Text = Annotated[str, AfterValidator(_checked)]
Document = Annotated[dict[str, JsonValue], AfterValidator(_checked_document)]
Id = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\w:.@-]+$"), AfterValidator(_checked)]
IdOrEmpty = Annotated[str, Field(max_length=200, pattern=r"^[\w:.@-]*$"), AfterValidator(_checked)]
SpaceIdOrNone = Annotated[str, Field(max_length=200, pattern=r"^([\w:.@-]*|\*)$"), AfterValidator(_checked)]
"""Empty: no space; `*`: a private space that was left out of the file."""
Number = Annotated[int, Field(ge=0, le=2**62)]
Time = Annotated[int, Field(ge=0, le=LATEST)]
"""One that can be told: what an agent is told of its plans, its past and its inbox has times in it."""
Flag = Annotated[int, Field(ge=0, le=1)]
Outside = Flag
"""Whether it is text from outside, or made from such. A file of an older version does not say: then it is."""


class _Line(BaseModel):
    # Built when first used: most processes neither export nor import.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


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
    last_cycle_at: Time
    window_from: Number
    era: Number
    outside: Outside = 1
    """Whether what it has in mind holds text from outside."""


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
    outside: Outside = 1
    created_at: Time


class CycleLine(_Line):
    """A cycle that has ended."""

    row: Literal["cycle"] = "cycle"
    number: Number
    outcome: Literal["acted", "failed"]
    first_seq: Number
    started_at: Time
    ended_at: Time
    steps: Number
    active_space_id: Id | None
    stop_reason: Text | None
    summary: Text | None
    told: Text | None
    outside_from: Number | None = 0
    """From which entry on its requests held text from outside."""
    input_tokens: Number
    output_tokens: Number
    cost_micros: Number


class CycleSpaceLine(_Line):
    """A space that the text of a cycle comes from."""

    row: Literal["cycle_space"] = "cycle_space"
    cycle: Number
    space_id: Text
    private: Flag


class EntryLine(_Line):
    """A message of the log, as it is stored."""

    row: Literal["entry"] = "entry"
    seq: Number
    cycle: Number
    kind: EntryKind
    message: Text
    tokens: Number
    request: Text | None
    outside: Text | None = None
    """Where its text from outside came from: JSON."""
    created_at: Time


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
    outside: Text | None = None
    created_at: Time


class LongTextLine(_Line):
    """A text that was too long for the window."""

    row: Literal["long_text"] = "long_text"
    cycle: Number
    id: Text
    text: Text
    created_at: Time


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
    created_at: Time


class LayerLine(_Line):
    """What ten cycles came to, or a hundred."""

    row: Literal["layer"] = "layer"
    level: Annotated[int, Field(ge=1, le=18)]
    first: Number
    digest: Text
    created_at: Time


class GoalLine(_Line):
    row: Literal["goal"] = "goal"
    number: Number
    text: Text
    status: Literal["active", "long-term", "paused", "done"]
    priority: Annotated[int, Field(ge=0, le=2)]
    outside: Outside = 1
    created_at: Time
    updated_at: Time


class NoteLine(_Line):
    row: Literal["note"] = "note"
    key: Text
    text: Text
    outside: Outside = 1
    created_at: Time
    updated_at: Time


class PlanLine(_Line):
    """A plan, a timer or the heartbeat. Nothing of it is due until the agent is resumed."""

    row: Literal["plan"] = "plan"
    id: Id
    kind: Literal["plan", "timer", "heartbeat"]
    name: Text
    instruction: Text
    schedule: Text
    state: Literal["held", "failed"]
    next_run: Time
    last_run: Time | None
    reckoned_at: Time
    hop: Number
    outside: Outside = 1
    created_at: Time


class PassageLine(_Line):
    """Something that can be recalled, with its words also where they are a message's."""

    row: Literal["passage"] = "passage"
    number: Number
    cycle: Number
    kind: Literal["heard", "said", "did", "summary", "forgotten"]
    space_id: SpaceIdOrNone
    speaker_id: Id | None
    speaker: Text | None
    message_id: Id | None
    event_id: Text | None
    text: Text
    start: Number
    place: Number
    characters: Number
    own_words: Annotated[int, Field(ge=0, le=3)]
    at: Time


# What an agent makes of its conversations


class PlaceLine(_Line):
    """A space of which the agent keeps something, without what was said there."""

    row: Literal["place"] = "place"
    id: Id
    kind: SpaceKind
    name: Text
    private: Flag


class StanceLine(_Line):
    """How the agent stands to a space: the profile it has there, and its state of mind."""

    row: Literal["stance"] = "stance"
    space_id: Id
    turns: Number
    reviewed_turn: Number
    review_asked: Flag
    preset: Text | None
    preset_reason: Text
    profile_line: Text | None
    reflected_turns: Number
    mood: Mood
    skill: Skill
    complexity: Complexity
    mind_line: Text | None
    imprints: dict[Text, Text]
    overrides: Document | None
    updated_at: Time


class FeelingLine(_Line):
    """How a person seems to feel in a space: numbers only."""

    row: Literal["feeling"] = "feeling"
    space_id: Id
    person_id: Id
    counters: Document
    updated_at: Time


class SignalLine(_Line):
    """What feelings, or what went wrong, amounted to."""

    row: Literal["signal"] = "signal"
    space_id: Id
    person_id: Id | None
    cycle: Number
    name: Text
    rule: Text
    score: Annotated[int, Field(ge=-1_000, le=1_000)] | None
    created_at: Time


class State(_Line):
    mood: Mood
    user_skill: Skill
    task_complexity: Complexity


class ReflectionLine(_Line):
    """A metaprompt that was asked, or what someone set by hand, and the state of mind after it."""

    row: Literal["reflection"] = "reflection"
    space_id: Id
    cycle: Number | None
    metaprompt: Text | None
    cause: Text
    outcome: Outcome
    reason: Text
    state: State
    by_id: Id | None
    created_at: Time


# What is remembered, with the agent or with the space whose it is


class MemoryLine(_Line):
    """Something that is remembered, or was before it was superseded."""

    row: Literal["memory"] = "memory"
    id: Id
    scope: Literal["conversation", "persona"]
    space_id: Id
    """Where it was learned."""
    user_id: Id | None
    """Of whom, where it is between that person and the agent."""
    kind: Literal["item", "snapshot"]
    category: Text
    text: Text
    document: Text | None
    confidence: Annotated[int, Field(ge=0, le=100)]
    sources: tuple[Id, ...]
    uses: Number
    used_at: Time | None
    superseded_by: Id | None
    embedder: Text
    vector: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$")] | None
    """In base 64."""
    outside: Outside = 1
    created_at: Time
    updated_at: Time


class KeptOutLine(_Line):
    """That something was forgotten and shall not be remembered again: its words cannot be told from it."""

    row: Literal["kept_out"] = "kept_out"
    user_id: Id | None
    hash: Id
    created_at: Time


# A space


class SpaceLine(_Line):
    row: Literal["space"] = "space"
    id: Id
    kind: SpaceKind
    name: Text
    private: Flag
    messages: Number
    """How many there are."""
    floor: Floor = "all"
    """Files from before there were floors come from spaces in which all took up what was said."""
    agent_run_limit: Annotated[int, Field(ge=0, le=LARGEST_RUN_LIMIT)] = AGENT_RUN_LIMIT


class EntityLine(_Line):
    """Someone who is in the space or has spoken there, or of whom the agent keeps something."""

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
    edited_at: Time | None
    deleted_at: Time | None
    outside: Outside | None = None
    """None in a file of an older version: what people wrote is not from outside then, and everything else is."""
    created_at: Time


class PolicyLine(_Line):
    """What those in the space have settled of long-term memory."""

    row: Literal["memory_policy"] = "memory_policy"
    policy: Document
    updated_at: Time


class RollingLine(_Line):
    """What the conversation came to, up to a message."""

    row: Literal["rolling"] = "rolling"
    reader_id: IdOrEmpty
    """Empty: the conversation's own; else the advisor's whose it is."""
    summary: Text
    memory: Document
    upto: Number
    passes: Number
    model: Text
    outside: Outside = 1
    updated_at: Time


# A panel


class PanelLine(_Line):
    """How the space answers, if it is a panel."""

    row: Literal["panel"] = "panel"
    settings: Document
    turns: Number
    created_at: Time


class AdvisorLine(_Line):
    row: Literal["advisor"] = "advisor"
    id: Id
    position: Number
    handle: Text
    name: Text
    description: Text
    colour: Text
    in_group: Text
    active: Flag
    settings: Document
    created_at: Time
    removed_at: Time | None


class ReplyPart(_Line):
    """What a voice answered in a round, or why it did not."""

    voice: Id
    part: Part
    position: Number
    name: Text
    state: Literal["done", "failed", "cancelled"]
    attempts: Number
    text: Text | None
    thinking: Text | None
    result: Document | None
    error_code: Text | None
    error: Text | None
    outside: Outside = 1
    recipe: Document | None
    model: Text | None
    input_tokens: Number
    output_tokens: Number
    cache_read_tokens: Number
    cache_write_tokens: Number
    cost_micros: Number | None
    created_at: Time
    started_at: Time | None
    ended_at: Time | None


class RoundLine(_Line):
    """A round that is complete, with what was answered in it."""

    row: Literal["round"] = "round"
    id: Id
    turn: Number
    step: Number
    kind: RoundKind
    message_id: Id
    asked_by: Id
    question: Text | None
    crosstalk: Number
    synthesis: Flag
    created_at: Time
    completed_at: Time | None
    replies: tuple[ReplyPart, ...]


class VoiceStanceLine(_Line):
    """The state of mind of one who answers in the panel; what it is told of it follows from that."""

    row: Literal["voice_stance"] = "voice_stance"
    voice: Id
    reflected_turns: Number
    mood: Mood
    skill: Skill
    complexity: Complexity
    imprints: dict[Text, Text]
    updated_at: Number


class VoiceFeelingLine(_Line):
    """How a person seems to feel, to one who answers: numbers only."""

    row: Literal["voice_feeling"] = "voice_feeling"
    voice: Id
    person_id: Id
    counters: Document
    updated_at: Number


class VoiceSignalLine(_Line):
    """What feelings, or what went wrong, amounted to."""

    row: Literal["voice_signal"] = "voice_signal"
    voice: Id
    person_id: Id | None
    turn: Number
    name: Text
    rule: Text
    score: Annotated[int, Field(ge=-1_000, le=1_000)] | None
    created_at: Number


class VoiceReflectionLine(_Line):
    """A metaprompt that was asked for one who answers, or what someone set by hand, and the state of mind after it."""

    row: Literal["voice_reflection"] = "voice_reflection"
    voice: Id
    turn: Number | None
    metaprompt: Text | None
    cause: Text
    outcome: Outcome
    reason: Text
    state: State
    by_id: Id | None
    created_at: Number


OfMemory: TypeAlias = MemoryLine | KeptOutLine
OfStanding: TypeAlias = StanceLine | FeelingLine | SignalLine | ReflectionLine
OfVoice: TypeAlias = VoiceStanceLine | VoiceFeelingLine | VoiceSignalLine | VoiceReflectionLine
OfPanel: TypeAlias = PanelLine | AdvisorLine | RoundLine | OfVoice
OfAgent: TypeAlias = (
    AgentLine
    | ToolsetLine
    | SelfLine
    | CycleLine
    | CycleSpaceLine
    | EntryLine
    | EffectLine
    | LongTextLine
    | EventLine
    | LayerLine
    | GoalLine
    | NoteLine
    | PlanLine
    | PassageLine
    | PlaceLine
    | OfStanding
)
OfSpace: TypeAlias = SpaceLine | MessageLine | PolicyLine | RollingLine | OfPanel
Line: TypeAlias = OfAgent | OfSpace | EntityLine | OfMemory | End


@cache
def adapter() -> TypeAdapter[Line]:
    # Built at the first use: most programs neither export nor import.
    return TypeAdapter(Annotated[Line, Field(discriminator="row")])


def encode(line: Header | Line) -> str:
    """The line as it stands in a file, with its end."""
    return line.model_dump_json() + "\n"
