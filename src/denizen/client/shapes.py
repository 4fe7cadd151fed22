"""What a server tells, as values. Fields that are not known here are left out: a newer server may tell more."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

from pydantic import BaseModel, ConfigDict, JsonValue


class Value(BaseModel):
    """Something that a server tells."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Me(Value):
    """Who the token stands for."""

    id: str
    handle: str
    name: str


class Member(Value):
    """Someone in a space."""

    id: str
    kind: str
    handle: str
    name: str
    attention: str = "all"
    role: str = "member"


class Space(Value):
    """A space one is in."""

    id: str
    name: str
    private: bool
    last_seq: int
    members: tuple[Member, ...]
    kind: str = "conversation"
    read_seq: int = 0
    """The number of the last message that one has read."""
    unread: int = 0
    unread_mentions: int = 0
    """How many of the newest unread messages mention one."""
    created_at: datetime | None = None


class Agent(Value):
    """An agent of one's organization."""

    id: str
    handle: str
    name: str
    status: str
    model: str
    about: str


class Author(Value):
    """Who said something."""

    id: str
    kind: str
    name: str


class Message(Value):
    """Something said in a space; `seq` is its place there."""

    id: str
    space_id: str
    seq: int
    author: Author
    text: str
    mentions: tuple[str, ...] = ()
    reply_to: str | None = None
    created_at: datetime


class Call(Value):
    """A tool call of an agent that people see. Those of mode `pause` and `async` they may answer."""

    id: str
    agent_id: str
    space_id: str | None
    after_seq: int = 0
    """The number of the message behind which it stands."""
    tool: str
    mode: str
    state: str
    """`waiting`, until it is answered, interrupted, expired or cancelled; `late`: answered after that."""
    arguments: JsonValue = None
    result: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    settled_at: datetime | None = None
    settled_by: str | None = None


class Health(Value):
    """The server answers."""

    ok: bool
    version: str


# People and places


class Organization(Value):
    """One's house."""

    id: str
    name: str
    settings: dict[str, JsonValue] | None = None
    """For admins and owners."""


class Entity(Value):
    """A person, an agent or a service of one's organization."""

    id: str
    kind: str
    handle: str
    name: str
    role: str
    created_at: datetime
    left_at: datetime | None = None


class Entities(Value):
    """A page of those who are here, by handle."""

    entities: tuple[Entity, ...]
    next: str | None = None


class ReadState(Value):
    """How far one has read, and what is left."""

    space_id: str
    last_seq: int
    read_seq: int
    unread: int
    unread_mentions: int = 0


class Found(Value):
    """What a search found, the newest first; `next` leads on, also where nothing was found yet."""

    messages: tuple[Message, ...]
    next: str | None = None


# Agents


class Resting(Value):
    """That its budget has suspended an agent; `until` None: until it is raised."""

    scope: str
    until: datetime | None = None


class AgentDetail(Agent):
    """An agent; for admins, with its definition."""

    created_at: datetime
    cycles: int
    resting: Resting | None = None
    version: int
    definition: dict[str, JsonValue] | None = None


class Model(Value):
    """A model that agents can think with, and whose key is used for it."""

    name: str
    paid_by: str


class Models(Value):
    """The models that are there, and which is the usual one."""

    default: str
    models: tuple[Model, ...]


class Event(Value):
    """Something that reached an agent's inbox."""

    id: str
    number: int
    type: str
    lane: str
    wakes: bool
    hop: int
    attempts: int
    created_at: datetime
    text: str
    space_id: str | None = None
    space: str | None = None
    sender_id: str | None = None
    sender: str | None = None
    message_id: str | None = None
    state: str = "pending"
    """Of one that is listed: pending, taken, dead."""


class Inbox(Value):
    """Events in the order in which they are taken."""

    events: tuple[Event, ...]
    next: str | None = None


class Cycle(Value):
    """One think cycle of an agent."""

    id: str
    number: int | None
    outcome: str
    reason: str
    summary: str
    steps: int | None
    started_at: datetime | None
    ended_at: datetime | None
    input_tokens: int
    output_tokens: int
    dollars: float


class Cycles(Value):
    """Cycles, the newest first."""

    cycles: tuple[Cycle, ...]
    next: int | None = None


class CycleDetail(Cycle):
    """One cycle, step by step."""

    each_step: tuple[dict[str, JsonValue], ...]
    after: tuple[dict[str, JsonValue], ...] = ()


class Request(Value):
    """One request to a model, exactly, and what came back."""

    cycle: int
    step: int
    model: str
    settings: dict[str, JsonValue]
    tools: tuple[JsonValue, ...] | None
    messages: tuple[JsonValue, ...]
    tokens: int
    response: JsonValue
    results: JsonValue = None


class UsageOfCall(Value):
    """What one model call read and wrote, in tokens."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


class AnswerAgain(Value):
    """What another model answers to the same request."""

    step: int
    model: str
    response: JsonValue
    difference: tuple[str, ...]
    usage: UsageOfCall
    dollars: float | None = None


class LogEntry(Value):
    """One message of an agent's life."""

    seq: int
    cycle: int | None
    kind: str
    at: datetime
    tokens: int
    message: JsonValue


class LogPage(Value):
    """A page of an agent's life."""

    entries: tuple[LogEntry, ...]
    next: int | None = None


class Recalled(Value):
    """Something that an agent recalls."""

    cycle: int
    at: datetime
    kind: str
    space_id: str
    space: str
    who: str
    text: str
    score: float


class Crossing(Value):
    """A message that was stopped, because it would have carried private words elsewhere."""

    from_space_id: str
    to_space_id: str
    cycle_id: str
    words: int
    at: datetime


class Crossings(Value):
    """Those messages, the newest first."""

    crossings: tuple[Crossing, ...]
    next: int | None = None


class Goal(Value):
    number: int
    text: str
    status: str
    priority: str


class Note(Value):
    key: str
    text: str


class Plan(Value):
    id: str
    kind: str
    name: str
    instruction: str
    schedule: str
    state: str
    next_run: datetime
    last_run: datetime | None = None


# Use and cost


class Used(Value):
    """Model calls, the tokens they read and wrote, and what they cost."""

    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cached_share: float | None = None
    dollars: float


class UsedOnDay(Used):
    day: date


class UsedBy(Used):
    """What one agent or panel used, or what was used with one model: `kind` says which."""

    key: str
    name: str
    kind: str = ""
    days: tuple[UsedOnDay, ...]


class Usage(Value):
    """What the organization's agents used."""

    since: date
    until: date
    by: str
    total: Used
    days: tuple[UsedOnDay, ...]
    groups: tuple[UsedBy, ...]


class Limits(Value):
    """What all agents together may use; None is no limit."""

    dollars_per_day: float | None = None
    tokens_per_day: int | None = None
    dollars: float | None = None
    tokens: int | None = None


class Budget(Value):
    limits: Limits
    today: Used


class WindowPart(Value):
    """One part of what the next request would hold; `free` is what is left."""

    part: str
    tokens: int
    first_cycle: int | None = None
    last_cycle: int | None = None
    text: str | None = None


class Window(Value):
    """What the next request would hold, in estimated tokens."""

    limit: int
    used: int
    era: int
    parts: tuple[WindowPart, ...]


class Lane(Value):
    """One lane of an inbox, and the events that will be taken first."""

    name: str
    waiting: int
    taken: int
    first: tuple[Event, ...]


class Lived(Cycle):
    """A cycle, and how much of what it read the provider had kept."""

    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


class Mind(Value):
    """An agent at one moment: its window, its inbox, what it means to do, what it has used."""

    id: str
    handle: str
    name: str
    model: str = ""
    at: datetime
    status: str
    holder: str | None = None
    """The instance that may think for it now."""
    held_until: datetime | None = None
    resting: Resting | None = None
    cycles: int
    window: Window
    inbox: tuple[Lane, ...]
    dead: tuple[Event, ...]
    goals: tuple[Goal, ...]
    notes: tuple[Note, ...]
    plans: tuple[Plan, ...]
    stances: tuple[Standing, ...] = ()
    waiting_calls: tuple[Call, ...] = ()
    budget: Limits | None = None
    organization_budget: Limits | None = None
    today: Used
    seven_days: Used
    last_cycles: tuple[Lived, ...]


class Receipt(Value):
    """That something was forgotten, and how much was removed where; never what it said."""

    id: str | None
    kind: str
    subject_id: str
    by_id: str | None = None
    removed: Mapping[str, int]
    created_at: datetime
    dry_run: bool = False


class Receipts(Value):
    receipts: tuple[Receipt, ...]
    next: str | None = None


# Ways in


class Key(Value):
    """A key of a provider or service that is kept; never its value."""

    name: str
    whose: str
    hint: str
    created_at: datetime
    updated_at: datetime


class Token(Value):
    """What lets someone in; never its secret."""

    id: str
    entity_id: str
    kind: str
    role: str
    name: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    handle: str = ""
    """Of the one whom it lets in, where tokens are listed."""


class NewToken(Value):
    """A token under a new secret, which is not shown again."""

    token: Token
    secret: str


class Login(Value):
    """A link that is good once."""

    url: str
    secret: str
    expires_at: datetime


class Webhook(Value):
    """An address where a service tells an agent of things."""

    id: str
    name: str
    scheme: str
    urgent: bool
    path: str
    """Below the address of the server."""
    created_at: datetime
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


class NewWebhook(Value):
    """A webhook and its secret, which is not shown again."""

    webhook: Webhook
    secret: str


# Files


class FieldChange(Value):
    """A part of something that is different now; None is where there is nothing."""

    path: str
    old: JsonValue
    new: JsonValue


class Change(Value):
    """What became of one thing that a definition file names."""

    kind: str
    name: str
    action: str
    fields: tuple[FieldChange, ...]


class Applied(Value):
    """What became of definition files."""

    dry_run: bool
    changes: tuple[Change, ...]
    warnings: tuple[str, ...] = ()


class Imported(Value):
    """An agent or a space that was taken in."""

    kind: str
    id: str
    name: str
    handle: str | None = None
    counts: Mapping[str, int]
    secrets: tuple[str, ...] = ()
    """Names of secrets that the agent uses, and that are to be kept there as well."""
    dangers: tuple[str, ...] = ()
    """Parts of its definition that start programs or reach private addresses."""
    people: tuple[str, ...] = ()
    """Handles of people and services that were not there before."""
    absent: tuple[str, ...] = ()
    """Handles of agents of a space that are not there: their words are."""


# What is remembered


class Memory(Value):
    """Something that is remembered, and where it comes from."""

    id: str
    scope: str
    category: str
    text: str
    confidence: float
    space_id: str
    user_id: str | None = None
    agent_id: str | None = None
    sources: tuple[str, ...] = ()
    uses: int = 0
    used_at: datetime | None = None
    superseded_by: str | None = None
    created_at: datetime
    updated_at: datetime


class Memories(Value):
    """Some of what is remembered, and where the next page begins."""

    memories: tuple[Memory, ...]
    next: str | None = None


class MemoryPolicy(Value):
    """What was said of long-term memory in a conversation."""

    enabled: bool | None = None
    scopes: dict[str, bool | None] = {}
    share_with_organization: bool | None = None


class ConversationMemory(Value):
    """What a conversation came to, and up to which message."""

    space_id: str
    summary_markdown: str
    memory_json: dict[str, JsonValue]
    upto: int
    passes: int
    updated_at: datetime | None = None
    policy: MemoryPolicy


class OrganizationMemory(Value):
    """What an organization has switched off of long-term memory."""

    enabled: bool
    conversation: bool
    user: bool
    persona: bool
    organization: bool
    publish: bool
    categories: tuple[str, ...]


class MemoryFinding(Value):
    """Something that is wrong with one or two memories."""

    problem: str
    scope: str
    memories: tuple[str, ...]
    why: str


class MemoryReport(Value):
    """How much is remembered, and what is wrong with it."""

    counts: dict[str, int]
    superseded: int
    findings: tuple[MemoryFinding, ...]


# Asking and being answered


class Accepted(Value):
    """Something is in an agent's inbox, under this id."""

    id: str


class FinalResponse(Value):
    """Everything that an agent said, as one text."""

    markdown: str
    text: str


class Answer(Value):
    """What became of a message to an agent, and what it said to it."""

    outcome: str
    space_id: str
    message_id: str
    messages: tuple[Message, ...]
    final_response: FinalResponse
    cycle: int | None = None
    usage: dict[str, JsonValue] = {}
    waiting_for: tuple[Call, ...] = ()
    note: str = ""
    metadata: dict[str, JsonValue] = {}


class Advisor(Value):
    """A voice of a panel."""

    id: str
    handle: str
    name: str
    description: str = ""
    colour: str = ""
    group: str = ""
    active: bool = True
    position: int = 0
    model: str | None = None
    max_tokens: int | None = None
    reasoning: bool = False
    assertions: tuple[str, ...] = ()
    reflection: Mapping[str, JsonValue] | None = None
    """Its own; None: the panel's."""


class Panel(Value):
    """A space whose advisors answer. Its id is that of the space."""

    id: str
    name: str
    private: bool
    turns: int
    settings: Mapping[str, JsonValue]
    advisors: tuple[Advisor, ...]


class Suggestion(Value):
    """An advisor that might be of use."""

    name: str
    kind: str
    description: str
    reason: str


class ReplyError(Value):
    """Why a voice has not answered."""

    code: str
    message: str


class ReplyPhase(Value):
    """Where an advisor is in its phases."""

    name: str
    turn: int
    of: int | None


class ReplyProfile(Value):
    """The prompt profile that an advisor had in a turn, and why."""

    preset: str | None
    reason: str


class Reply(Value):
    """What one voice answers in one round."""

    advisor: str
    part: str
    name: str
    state: str
    completed: bool
    content: str
    thinking: str | None = None
    error: ReplyError | None = None
    phase: ReplyPhase | None = None
    profile: ReplyProfile | None = None
    memories: Mapping[str, int] = {}
    result: Mapping[str, JsonValue] | None = None
    epoch: int = 0
    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = None


class Camp(Value):
    """Those of one position."""

    position: str
    advisors: tuple[str, ...]
    confidence: float
    weight: float


class Tally(Value):
    """What a vote came to."""

    leading: str | None
    camps: tuple[Camp, ...]
    dissent: Mapping[str, Mapping[str, float]]


class Round(Value):
    """One time that the voices of a panel were asked."""

    id: str
    panel: str
    turn: int
    step: int
    kind: str
    message_id: str
    asked_by: str
    question: str | None
    advisor_responses: Mapping[str, Reply]
    all_completed: bool
    synthesis: Reply | None
    checks: Mapping[str, Reply]
    tally: Tally | None
    input_tokens: int
    output_tokens: int
    cost_micros: int
    created_at: datetime
    completed_at: datetime | None


class Rounds(Value):
    """Rounds, the oldest first."""

    rounds: tuple[Round, ...]
    next: int | None
    """Give it as `before` for older ones."""


class ContextLine(Value):
    """One message of a request."""

    role: str
    text: str


class ReplyContext(Value):
    """What a voice was shown when it answered."""

    lines: tuple[ContextLine, ...]
    exact: bool


class VoiceCost(Value):
    """What asking one voice would cost."""

    advisor: str
    name: str
    model: str
    input_tokens: int
    output_tokens: int
    most_output_tokens: int
    cost_micros: int | None
    most_micros: int | None


class PanelCost(Value):
    """What a message would cost."""

    advisors: tuple[VoiceCost, ...]
    input_tokens: int
    output_tokens: int
    cost_micros: int | None
    most_micros: int | None


class StateOfMind(Value):
    """How an agent is disposed in a conversation."""

    mood: str
    user_skill: str
    task_complexity: str


class Profile(Value):
    """A prompt profile, and why it was chosen."""

    id: str | None
    reason: str


class Stance(Value):
    """How an agent stands to a conversation."""

    space_id: str
    profile: Profile
    state: StateOfMind
    imprints: Mapping[str, str] = {}
    turns: int = 0
    settings: Mapping[str, JsonValue] = {}
    updated_at: datetime | None = None


class Reflection(Value):
    """A metaprompt that was asked, or what someone did by hand, and what came of it."""

    number: int
    cycle: int | None
    metaprompt: str | None
    cause: str
    outcome: str
    reason: str
    state: StateOfMind
    by: str | None = None
    at: datetime


class Standing(Stance):
    """The same, with where that is, and why it is so."""

    space: str = ""
    told: str | None = None
    """What the agent is told of its state of mind."""
    last: Reflection | None = None


class VoiceStance(Value):
    """How a voice of a panel stands to the people in it, and why it is so."""

    voice: str
    """The id of the advisor, or `assistant`."""
    name: str
    reflects: bool
    """Whether it thinks over the turns that it has answered."""
    space_id: str
    profile: Profile
    state: StateOfMind
    imprints: Mapping[str, str] = {}
    turns: int = 0
    updated_at: datetime | None = None
    told: str | None = None
    """What it is told of its state of mind."""
    last: Reflection | None = None


class StatesOfMind(Value):
    """A state of mind over time, the newest first."""

    runs: tuple[Reflection, ...]
    next: int | None = None


class Signal(Value):
    """What how people feel, or what went wrong, amounted to."""

    number: int
    cycle: int
    person: str | None
    name: str
    rule: str
    score: float | None = None
    at: datetime


class Signals(Value):
    """Signals of a conversation, the newest first."""

    signals: tuple[Signal, ...]
    next: int | None = None


class TriedMetaprompt(Value):
    """What came of a metaprompt that was asked by hand."""

    prompt: str
    failed: str | None
    reason: str
    before: StateOfMind
    after: StateOfMind
    applied: bool


class Preset(Value):
    """A prompt profile that can be chosen."""

    id: str
    label: str = ""
    description: str = ""
    addons: tuple[str, ...] = ()
    text: str = ""


class Profiles(Value):
    """What agents can be given by name."""

    presets: tuple[Preset, ...]
    metaprompts: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()


class ReflectionNames(Value):
    """What `reflection` can name."""

    profiles: tuple[str, ...]
    metaprompts: tuple[str, ...] = ()


class TriedProfile(Value):
    """What the rules say of a message."""

    id: str | None
    reason: str
    text: str = ""
