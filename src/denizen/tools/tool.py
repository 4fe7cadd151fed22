"""The kinds of tools. Own tools work inside the transaction that records them, outside tools do not.

An own tool's effect and the record of its result are one transaction: it happens exactly once. Before an outside tool
is called an intent is stored; if the process dies meanwhile, the tool's `on_crash` decides whether it is called again
or the model is told that the outcome is unknown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from denizen.errors import InvalidInput
from denizen.ids import AgentId, CycleId, MessageId, SpaceId
from denizen.inbox.events import Event
from denizen.inbox.sources import Source
from denizen.inbox.stop_requests import StopRequest
from denizen.storage.database import Tx
from denizen.tools.hops import NOTHING, SeenMessages
from denizen.tools.results import Output
from denizen.trust.policy import EffectSettings
from denizen.trust.values import Kind

if TYPE_CHECKING:
    from pydantic_ai.tools import ToolDefinition

SEND_MESSAGE: Final = "send_message"

OnCrash = Literal["retry", "report"]
Results = Literal["outside", "trusted"]
"""Whether a tool's results are text from outside, or as trusted as what people here write."""


class Arguments(BaseModel):
    """The arguments of an own tool: checked exactly, nothing beside them allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Hand:
    """The context of an own tool's call: the agent, the cycle and its state."""

    agent_id: AgentId
    cycle_id: CycleId
    active_space_id: SpaceId | None
    events: Sequence[Event]
    """The events that woke the cycle."""
    characters: int
    """How long a result may be before it is cut."""
    message_id: MessageId | None = None
    """The id under which the text of this call has been streaming."""
    prepared: object = None
    """What the tool's `prepare` has returned for this call."""
    remembered: frozenset[str] = frozenset()
    """The ids of the memories that the agent was shown and still sees."""
    shown: SeenMessages = NOTHING
    """What the request held besides the events."""
    outside: bool = False
    """Whether the request held text from outside, or text made from it: what is made of it must be marked."""
    stopped: Mapping[SpaceId, StopRequest] = field(default_factory=dict[SpaceId, StopRequest])
    """The spaces where a person has stopped this cycle: nothing more is sent there."""
    cut_by: StopRequest | None = None
    """The request that cut this call off, while its message was being written."""
    sees: bool = False
    """Whether the model can be shown pictures."""
    is_first: bool = False
    """Whether the cycle has made no call before: then it has sent nothing."""


def spaces_of(events: Iterable[Event], active_space_id: str | None) -> frozenset[str]:
    """The spaces of a cycle: those of its events, and the active one."""
    spaces = {event.space_id for event in events} | {active_space_id}
    return frozenset(space_id for space_id in spaces if space_id is not None)


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an own tool."""

    content: str
    """The result for the model."""
    changes: bool = False
    """Whether it has changed something outside the cycle: then the cycle can no longer be rolled back."""
    entered: SpaceId | None = None
    """The new active space."""
    sent_to: str | None = None
    """The name of the space to which a message was sent."""
    sources: frozenset[str] = frozenset()
    """The spaces that the result, or what was written, comes from."""
    outside: tuple[Source, ...] = ()
    """The sources of text from outside in the result."""
    picture: bool = False
    """Whether the result is the line of a picture, which is then shown."""


@dataclass(frozen=True)
class OwnTool(Generic[A]):
    """A tool of ours: works in our own database, inside the transaction that records its result.

    `run` raises a `DenizenError` before it has written anything, or not at all.
    """

    name: str
    description: str
    arguments: type[A]
    run: Callable[[Tx, Hand, A], Done]
    prepare: Callable[[AgentId, A, frozenset[str]], Awaitable[object]] | None = None
    """Slow work before the transaction; it changes nothing, and raises only `InvalidInput`. It gets the spaces of the
    cycle, which may have changed by the time the tool runs."""
    shown: tuple[str, ...] | None = None
    """The arguments that the model is told of; None: all. It may still give the others."""
    reads: bool = False
    """Whether it only reads."""

    @cached_property
    def definition(self) -> ToolDefinition:
        from pydantic_ai.tools import ToolDefinition

        parameters = _parameters(self.arguments)
        if self.shown is not None:
            properties = {name: each for name, each in parameters["properties"].items() if name in self.shown}
            parameters = {**parameters, "properties": properties}
        return ToolDefinition(name=self.name, description=self.description, parameters_json_schema=parameters)

    def check(self, arguments: str | Mapping[str, Any] | None) -> A:
        """The checked arguments. Raises `InvalidInput` that tells the model what is wrong."""
        try:
            if isinstance(arguments, str):
                return self.arguments.model_validate_json(arguments or "{}")
            return self.arguments.model_validate(arguments or {})
        except ValidationError as error:
            raise InvalidInput(_explain(self.name, error)) from error


@dataclass(frozen=True, slots=True)
class CallIdentity:
    """Identifies a call. The same after a crash, if the tool is called again."""

    agent_id: AgentId
    cycle_id: CycleId
    step: int
    position: int
    """The position of the call in its response."""
    call_id: str
    """The id under which its answer can be given from outside, if the tool is asynchronous."""

    @property
    def key(self) -> str:
        """Calls with the same key are the same call: for an `Idempotency-Key`."""
        return f"{self.cycle_id}:{self.step}:{self.position}"


Check = Callable[[str | Mapping[str, Any] | None], Mapping[str, Any]]
"""Checks the arguments as the model wrote them; raises `InvalidInput`."""


@dataclass(frozen=True)
class OutsideTool:
    """A tool that does something outside our database: a Python function, a service."""

    definition: ToolDefinition
    check: Check
    call: Callable[[Mapping[str, Any], CallIdentity], Awaitable[str | Output]]
    """Makes the call; returns the text for the model, and files if it has any. `results.call` stores these."""
    on_crash: OnCrash = "report"
    independent: bool = False
    """Whether it may run together with its neighbours in the same response."""
    seconds: float = 60.0
    """How long the cycle waits for it; a later result comes as an event."""
    visible: bool = False
    """Whether people in the space see the call as it is written, and its result."""
    mode: Literal["wait", "background", "async"] = "wait"
    """`background`: the cycle continues while it runs, and its result comes as an event. `async`: the call only hands
    the work over; the result is given from outside."""
    results: Results = "outside"
    """Whether its results are text from outside."""
    effect: bool = True
    """Whether it does more than harmless reading: then it may need an approval after text from outside."""
    link_is_effect: bool = False
    """Whether it counts as an effect if an argument is a link: the owner of the address learns something."""
    needs_trusted: bool = False
    """Whether it always needs an approval after text from outside."""
    kinds: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    """The kinds of arguments, where names and forms do not tell: `{"permission": "flag"}`."""
    makes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Which field of its result is the id of what it has created, by the argument that may name it later in the same
    cycle: `{"file_id": "id"}`."""

    @property
    def name(self) -> str:
        return self.definition.name


def require_tool(given: Any) -> OutsideTool:
    """Returns the tool. Raises `InvalidInput` that says how a plain function becomes one."""
    if isinstance(given, OutsideTool):
        return given
    name = getattr(given, "__name__", type(given).__name__)
    raise InvalidInput(f"{name} is not a tool. Decorate a function with `@tool` of denizen, and pass what it returns.")


@dataclass(frozen=True)
class AskTool:
    """A tool that people, or programs of theirs, answer."""

    definition: ToolDefinition
    check: Check
    mode: Literal["pause", "async"] = "pause"
    seconds: float = 86_400.0
    """How long to wait for an answer."""
    approval: bool = False
    """Whether it needs an explicit approval, so that a message in the space does not answer it."""
    independent: bool = False
    visible: bool = True

    @property
    def name(self) -> str:
        return self.definition.name


CustomTool = OutsideTool | AskTool
"""A tool in addition to those that every agent has."""
Tool = OwnTool[Any] | CustomTool


def digest_of(encoded: str) -> str:
    """The digest by which requests name these tools."""
    return hashlib.sha256(encoded.encode()).hexdigest()[:32]


def argument_names(tools: Iterable[ToolDefinition]) -> dict[str, list[str]]:
    """The arguments that a model is told of, by tool, required ones first."""
    schemas = {each.name: each.parameters_json_schema for each in tools}
    return {
        name: list(dict.fromkeys([*schema.get("required", ()), *schema.get("properties", {})]))
        for name, schema in schemas.items()
    }


DEFAULT_EFFECTS: Final = EffectSettings()


class Toolbox:
    """The tools of one agent, in a fixed order, so that the prompt's prefix stays the same."""

    def __init__(
        self, tools: Sequence[Tool], effects: EffectSettings = DEFAULT_EFFECTS, instructions: str = ""
    ) -> None:
        self.effects = effects
        self.instructions = instructions
        """The instructions of those who defined the agent: as trusted as what people say to it."""
        self.by_name: Mapping[str, Tool] = {each.name: each for each in tools}
        self.definitions = tuple(each.definition for each in self.by_name.values())
        self.visible = frozenset(each.name for each in tools if not isinstance(each, OwnTool) and each.visible)
        self.reading = frozenset(each.name for each in tools if _only_reads(each))
        """The tools that only read."""
        self.archived = False
        """Whether the archive is known to have the definitions."""

    @cached_property
    def encoded(self) -> str:
        """The definitions as the model gets them, for the archive."""
        return json.dumps(
            [
                {"name": each.name, "description": each.description, "parameters": each.parameters_json_schema}
                for each in self.definitions
            ],
            ensure_ascii=False,
        )

    @cached_property
    def argument_names(self) -> Mapping[str, Sequence[str]]:
        """The arguments that the model is told of, by tool, required ones first."""
        return argument_names(self.definitions)

    @cached_property
    def digest(self) -> str:
        return digest_of(self.encoded)

    @cached_property
    def tokens(self) -> int:
        """About how many tokens of every request the definitions take."""
        return len(self.encoded) // 4


def _only_reads(tool: Tool) -> bool:
    match tool:
        case OwnTool():
            return tool.reads
        case OutsideTool():
            return not tool.effect
        case AskTool():
            return False


_UNSAID: Final = frozenset(
    ("title", "$defs", "additionalProperties", "default", "minimum", "maximum")
    + ("minLength", "maxLength", "minItems", "maxItems")
)


@cache
def _parameters(arguments: type[BaseModel]) -> dict[str, Any]:
    """Cached for each shape: otherwise building an agent's tools at each waking would take longer than thinking."""
    schema = arguments.model_json_schema()
    schema.pop("description", None)
    return _plain(schema, schema.get("$defs", {}))


def _plain(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in as few words as a model needs: references inlined, no titles, no optional nulls.

    Bounds and defaults are left out: a model that goes beyond them is told. Each request pays for every word.
    """
    if "$ref" in schema:
        schema = shared[schema["$ref"].rpartition("/")[2]]
    alternatives = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(alternatives) == 1:
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        return _plain({**alternatives[0], **rest}, shared)
    plain = {key: value for key, value in schema.items() if key not in _UNSAID}
    if "properties" in plain:
        plain["properties"] = {name: _plain(each, shared) for name, each in plain["properties"].items()}
    if "items" in plain:
        plain["items"] = _plain(plain["items"], shared)
    return plain


def _explain(name: str, error: ValidationError) -> str:
    problems = "; ".join(
        f"{'.'.join(str(part) for part in each['loc']) or 'arguments'}: {each['msg']}"
        for each in error.errors(include_url=False, include_context=False)[:5]
    )
    return f"{name} was not called, because its arguments are wrong: {problems}."


explain_arguments = _explain
