"""The lines of an export file: JSON, one object a line. The first says what the file is, the last that it is complete.

Lines have exactly the fields defined here: an unknown field or kind of line is refused, so that no part of a file is
silently dropped. Identifiers are those of the exporting server.
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
from denizen.shapes.vocabulary import MemoryChangeKind
from denizen.spaces.directory import AGENT_RUN_LIMIT, LARGEST_RUN_LIMIT, Attention, EntityKind, Floor, SpaceKind
from denizen.storage.database import storable

FORMAT: Final = "denizen"
VERSION: Final = 1
"""The version of the format. It grows when older readers could misunderstand a file."""


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
"""A time that can be formatted: what an agent is told of its plans, its past and its inbox has times in it."""
Flag = Annotated[int, Field(ge=0, le=1)]
Outside = Flag
"""Whether it is text from outside, or based on such. A file of an older version does not say: then it is."""


class _Line(BaseModel):
    # Built when first used: most processes neither export nor import.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Header(_Line):
    """What the file is."""

    format: Literal["denizen"] = FORMAT
    version: Literal[1] = VERSION
    kind: Kind


class EndLine(_Line):
    """Marks the end of a complete file."""

    row: Literal["end"] = "end"
    lines: Number
    """The number of lines, with this one and the header."""


# An agent


class AgentLine(_Line):
    """The agent, and the state of its mind."""

    row: Literal["agent"] = "agent"
    id: Id
    handle: Text
    name: Text
    definition: dict[str, JsonValue]
    """Without defaults. A possible secret is replaced by its name: `${NAME}`."""
    secrets: tuple[Text, ...] = ()
    """The names of the secrets that it uses: their values are not exported."""
    cycles: Number
    last_cycle_at: Time
    window_from: Number
    era: Number
    outside: Outside = 1
    """Whether its mind holds text from outside."""


class ToolsetLine(_Line):
    """Tools as models were told them."""

    row: Literal["toolset"] = "toolset"
    digest: Id
    tools: Text


class SelfLine(_Line):
    """The agent's self in one of its eras."""

    row: Literal["self"] = "self"
    era: Number
    text: Text
    layers: Text | None
    shortened: Text | None
    outside: Outside = 1
    created_at: Time


class CycleLine(_Line):
    """A finished cycle."""

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
    """The entry from which on its requests held text from outside."""
    input_tokens: Number
    output_tokens: Number
    cost_micros: Number


class CycleSpaceLine(_Line):
    """A space that text of a cycle comes from."""

    row: Literal["cycle_space"] = "cycle_space"
    cycle: Number
    space_id: Text
    private: Flag


class EntryLine(_Line):
    """An entry of the log, as it is stored."""

    row: Literal["entry"] = "entry"
    seq: Number
    cycle: Number
    kind: EntryKind
    message: Text
    tokens: Number
    request: Text | None
    outside: Text | None = None
    """The sources of its text from outside, as JSON."""
    created_at: Time


class EffectLine(_Line):
    """The result of a tool call."""

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


class WakingMessage(_Line):
    """A message that woke the agent: its text is exported, its space is not."""

    id: Id
    space: Text
    sender_id: Id
    sender: Text
    sender_kind: SenderKind
    text: Text


class EventLine(_Line):
    """An event that woke a cycle."""

    row: Literal["event"] = "event"
    cycle: Number
    id: Text
    type: EventType
    lane: Flag
    wakes: Flag
    hop: Number
    attempts: Number
    space_id: Id | None
    said: WakingMessage | None
    payload: dict[str, JsonValue] | None
    created_at: Time


class LayerLine(_Line):
    """The digest of ten or a hundred cycles."""

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
    """A passage that can be recalled, with its text also if that is a message's."""

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
    file_id: Id | None = None
    """The file whose text it is."""
    page: Number | None = None
    at: Time


# States of mind


class PlaceLine(_Line):
    """A space that the agent has data about, without its messages."""

    row: Literal["place"] = "place"
    id: Id
    kind: SpaceKind
    name: Text
    private: Flag


class StanceLine(_Line):
    """The stance of the agent in a space: its profile there, and its state of mind."""

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
    """The sentiment counters of a person in a space: numbers only."""

    row: Literal["feeling"] = "feeling"
    space_id: Id
    person_id: Id
    counters: Document
    updated_at: Time


class SignalLine(_Line):
    """A signal from sentiment or from errors."""

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
    """A metaprompt that was asked, or a change by hand, and the state of mind after it."""

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


# Memories of the agent or of the space


class MemoryChangeLine(_Line):
    """A change of a memory."""

    kind: MemoryChangeKind
    text: Text
    by_id: Id | None
    model: Text
    replaced: tuple[Id, ...]
    sources: tuple[Id, ...]
    created_at: Time


class MemoryLine(_Line):
    """A memory, superseded ones included."""

    row: Literal["memory"] = "memory"
    id: Id
    scope: Literal["conversation", "persona"]
    space_id: Id
    """Where it was learned."""
    user_id: Id | None
    """The person, for a memory between a person and the agent."""
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
    changes: tuple[MemoryChangeLine, ...] = ()
    """The oldest first. Files from before changes were recorded have none."""


class KeptOutLine(_Line):
    """The hash of a forgotten memory, which must not be stored again. The text cannot be read from it."""

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
    """The number of messages."""
    floor: Floor = "all"
    """Files from before there were floors come from spaces in which all agents took up every message."""
    agent_run_limit: Annotated[int, Field(ge=0, le=LARGEST_RUN_LIMIT)] = AGENT_RUN_LIMIT


class EntityLine(_Line):
    """A member or author of the space, or someone the agent has data about."""

    row: Literal["entity"] = "entity"
    id: Id
    kind: EntityKind
    handle: Text
    name: Text
    role: Text | None
    """The role in the space; None for those who have left it."""
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
    """None in a file of an older version: then people's messages are not from outside, and everything else is."""
    reactions: dict[str, tuple[Id, ...]] | None = None
    pinned_at: Time | None = None
    created_at: Time


class PolicyLine(_Line):
    """The space's policy for long-term memory."""

    row: Literal["memory_policy"] = "memory_policy"
    policy: Document
    updated_at: Time


class RollingLine(_Line):
    """A summary of the conversation, up to a message."""

    row: Literal["rolling"] = "rolling"
    reader_id: IdOrEmpty
    """Empty for the conversation's own summary; otherwise the advisor's id."""
    summary: Text
    memory: Document
    upto: Number
    passes: Number
    model: Text
    outside: Outside = 1
    updated_at: Time


# A panel


class PanelLine(_Line):
    """The settings of the space, if it is a panel."""

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
    """The reply of a voice in a round, or why there is none."""

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
    """A complete round with its replies."""

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
    """The state of mind of a voice of the panel."""

    row: Literal["voice_stance"] = "voice_stance"
    voice: Id
    reflected_turns: Number
    mood: Mood
    skill: Skill
    complexity: Complexity
    imprints: dict[Text, Text]
    updated_at: Number


class VoiceFeelingLine(_Line):
    """The sentiment counters of a person, as a voice of the panel has them: numbers only."""

    row: Literal["voice_feeling"] = "voice_feeling"
    voice: Id
    person_id: Id
    counters: Document
    updated_at: Number


class VoiceSignalLine(_Line):
    """A signal from sentiment or from errors."""

    row: Literal["voice_signal"] = "voice_signal"
    voice: Id
    person_id: Id | None
    turn: Number
    name: Text
    rule: Text
    score: Annotated[int, Field(ge=-1_000, le=1_000)] | None
    created_at: Number


class VoiceReflectionLine(_Line):
    """A metaprompt that was asked for a voice of the panel, or a change by hand, and the state of mind after it."""

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


# Files of messages, and those that an agent got from tools and services


Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FileLine(_Line):
    """A file of a message of the space, or one that the agent has."""

    row: Literal["file"] = "file"
    id: Id
    message_id: Id | None
    name: Text
    media_type: Text
    size: Annotated[int, Field(ge=1, le=2**40)]
    digest: Digest
    """SHA-256 of its bytes."""
    alt: Text | None = None
    created_at: Time


class FilePageLine(_Line):
    """The text of a page of a content."""

    row: Literal["file_page"] = "file_page"
    digest: Digest
    page: Number
    text: Text


class ChunkLine(_Line):
    """A piece of a content: 256 KB, the last one less."""

    row: Literal["chunk"] = "chunk"
    digest: Digest
    n: Number
    data: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]+={0,2}$")]
    """In base 64."""


OfFile: TypeAlias = FileLine | FilePageLine | ChunkLine
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
Line: TypeAlias = OfAgent | OfSpace | EntityLine | OfMemory | OfFile | EndLine


@cache
def adapter() -> TypeAdapter[Line]:
    # Built when first used: most programs neither export nor import.
    return TypeAdapter(Annotated[Line, Field(discriminator="row")])


def encode(line: Header | Line) -> str:
    """Returns the line as it is written to a file, with its line break."""
    return line.model_dump_json() + "\n"
