"""Agents: who they are, what waits for them, what they intend."""

from __future__ import annotations

from datetime import datetime

from pydantic import JsonValue

from denizen.client.shapes.value import Value


class AgentTrouble(Value):
    """Why an agent cannot think."""

    cause: str
    text: str
    actions: tuple[str, ...] = ()
    retry_at: datetime | None = None


class AgentHealth(Value):
    """Whether an agent can think, and how long people have waited for it."""

    agent_id: str
    handle: str
    name: str
    can_think: bool
    trouble: AgentTrouble | None = None
    waiting: int = 0
    waiting_since: datetime | None = None
    dead: int = 0
    needs_a_person: bool = False


class Alert(Value):
    """Something that needs a person."""

    code: str
    text: str


class HealthReport(Value):
    """How one's organization is at this moment."""

    version: str
    missing: tuple[str, ...] = ()
    agents: tuple[AgentHealth, ...] = ()
    agents_checked: int = 0
    alerts: tuple[Alert, ...] = ()


class Agent(Value):
    """An agent of one's organization."""

    id: str
    handle: str
    name: str
    status: str
    model: str
    about: str
    trouble: AgentTrouble | None = None
    """Why it cannot think; None: it can."""


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
    approval: bool = False
    """Whether words in the space do not answer it: a person answers it here, or by its code."""
    code: str | None = None
    why: str | None = None
    """Why the agent may not make this call by itself, where it asks for that."""


class Approval(Value):
    """An approval that still counts: the agent may make the same call, with the same arguments, by itself."""

    id: str
    agent_id: str
    tool: str
    arguments: JsonValue = None
    uses_left: int
    expires_at: datetime
    given_by: str
    space_id: str | None = None
    created_at: datetime


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


class ModelFacts(Value):
    """What is known of a model. None: unknown."""

    tools: bool | None = None
    images: bool | None = None
    context_tokens: int | None = None
    context_source: str = ""
    thinking: str = "unknown"
    input_price: float | None = None
    """Dollars per million tokens that it reads."""
    output_price: float | None = None


class LocalModel(Value):
    """A model of a server on the server's machine."""

    name: str
    facts: ModelFacts


class LocalServer(Value):
    """A model server that answers on the server's machine."""

    provider: str
    title: str
    address: str
    models: tuple[LocalModel, ...]


class ModelSetup(Value):
    """What operators can connect."""

    servers: tuple[LocalServer, ...]


class Models(Value):
    """The models that are there, and which is the default."""

    default: str
    default_source: str
    """`configured`, `chosen`, `found` or `demo`."""
    default_reason: str
    may_choose: bool
    models: tuple[Model, ...]
    setup: ModelSetup | None = None


class TestedModel(Value):
    """How a model answered to one small call; `problem` says why it did not."""

    name: str
    ok: bool
    problem: str | None = None
    code: str | None = None
    called_tool: bool = False
    text: str = ""
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    thought: bool = False
    facts: ModelFacts | None = None


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
    outside: bool = False
    """Whether it was made from text from outside."""


class Note(Value):
    key: str
    text: str
    outside: bool = False
    """Whether it was made from text from outside."""


class Plan(Value):
    id: str
    kind: str
    name: str
    instruction: str
    schedule: str
    state: str
    next_run: datetime
    last_run: datetime | None = None
    outside: bool = False
    """Whether it was made from text from outside."""
