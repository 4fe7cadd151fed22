"""What a tool is. Two kinds: our own work inside the transaction that records them, outside ones do not.

An own tool's effect and the record of its result are one transaction: it happens exactly once. Before an outside tool
is called an intent is stored; if the process dies meanwhile, the tool's `on_crash` decides whether it is called again
or the model is told that the outcome is unknown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_ai.tools import ToolDefinition

from denizen.errors import InvalidInput
from denizen.ids import AgentId, CycleId, MessageId, SpaceId
from denizen.inbox.events import Event
from denizen.storage.database import Tx

OnCrash = Literal["retry", "report"]


class Arguments(BaseModel):
    """The arguments of an own tool: checked exactly, nothing beside them allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Hand:
    """What an own tool works with: whose call it is, and in which moment of its cycle."""

    agent_id: AgentId
    cycle_id: CycleId
    active_space_id: SpaceId | None
    events: Sequence[Event]
    """What the cycle was woken by."""
    characters: int
    """How long a result may be before it is cut."""
    message_id: MessageId | None = None
    """The id under which the text of this call has been streaming."""


@dataclass(frozen=True, slots=True)
class Done:
    """What an own tool did."""

    content: str
    """What the model is told."""
    changes: bool = False
    """Whether anything in the world is different now: then the cycle can no longer be rolled back."""
    entered: SpaceId | None = None
    """The space that is active from now on."""
    sent_to: str | None = None
    """The name of the space in which something was said."""


@dataclass(frozen=True)
class OwnTool(Generic[A]):
    """A tool of ours: works in our own database, inside the transaction that records its result.

    `run` raises a `DenizenError` before it has written anything, or not at all.
    """

    name: str
    description: str
    arguments: type[A]
    run: Callable[[Tx, Hand, A], Done]

    @cached_property
    def definition(self) -> ToolDefinition:
        schema = self.arguments.model_json_schema()
        schema.pop("description", None)
        plain = _plain(schema, schema.get("$defs", {}))
        return ToolDefinition(name=self.name, description=self.description, parameters_json_schema=plain)

    def check(self, arguments: str | Mapping[str, Any] | None) -> A:
        """The arguments as the model wrote them, checked. Raises `InvalidInput` that tells the model what is wrong."""
        try:
            if isinstance(arguments, str):
                return self.arguments.model_validate_json(arguments or "{}")
            return self.arguments.model_validate(arguments or {})
        except ValidationError as error:
            raise InvalidInput(_explain(self.name, error)) from error


@dataclass(frozen=True)
class OutsideTool:
    """A tool that does something beyond our database: a Python function, a service."""

    definition: ToolDefinition
    check: Callable[[str | Mapping[str, Any] | None], Mapping[str, Any]]
    """The arguments, checked; raises `InvalidInput`."""
    call: Callable[[Mapping[str, Any]], Awaitable[str]]
    """Do it; gives what the model is told."""
    on_crash: OnCrash = "report"
    independent: bool = False
    """May run together with its neighbours in the same response."""
    seconds: float = 60.0
    """Its time limit."""

    @property
    def name(self) -> str:
        return self.definition.name


Tool = OwnTool[Any] | OutsideTool


class Toolbox:
    """The tools of one agent, in a fixed order, so that the prompt's prefix stays the same."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self.by_name: Mapping[str, Tool] = {each.name: each for each in tools}
        self.definitions = tuple(each.definition for each in self.by_name.values())

    @cached_property
    def encoded(self) -> str:
        """The definitions as the model is given them, for the archive."""
        return json.dumps(
            [
                {"name": each.name, "description": each.description, "parameters": each.parameters_json_schema}
                for each in self.definitions
            ],
            ensure_ascii=False,
            sort_keys=True,
        )

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.encoded.encode()).hexdigest()[:32]

    @cached_property
    def tokens(self) -> int:
        """About how much of every request the definitions take."""
        return len(self.encoded) // 4


def _plain(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in as few words as say the same: what is referred to in its place, no titles, no optional nulls."""
    if "$ref" in schema:
        schema = shared[schema["$ref"].rpartition("/")[2]]
    alternatives = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(alternatives) == 1:
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        return _plain({**alternatives[0], **rest}, shared)
    plain = {key: value for key, value in schema.items() if key not in ("title", "$defs")}
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
