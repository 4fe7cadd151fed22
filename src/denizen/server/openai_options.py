"""What a client of OpenAI's API wants of an answer: its own tools, which one is called, and the form of the text."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import JsonValue, ValidationError

from denizen.agents.chatting import ToolResult
from denizen.cycles.requested import tool_of_program
from denizen.errors import InvalidInput
from denizen.inbox.events import CALL_FIRST, FORMAT, OWN_TOOLS
from denizen.server.problems import Problem
from denizen.tools.calls import Call
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.schemas import checker, schema_problem

MOST_TOOLS: Final = 64
_CALL: Final = "call_"
_FENCE: Final = re.compile(r"```[a-z]*\n(.*)\n```", re.DOTALL | re.IGNORECASE)
_OURS: Final = frozenset(each.name for each in PREBUILT)


@dataclass(frozen=True, slots=True)
class RequestedAnswer:
    """What a request wants, checked."""

    tools: Sequence[Mapping[str, JsonValue]] = ()
    """Definitions of client tools."""
    first: Sequence[str] = ()
    """The tools of which one has to be called first."""
    format: Mapping[str, Any] | None = None
    """The JSON Schema of the answer; an empty one means any object."""

    @property
    def payload(self) -> dict[str, JsonValue]:
        """What becomes a part of the agent's event."""
        told: dict[str, JsonValue] = {}
        if self.tools:
            told[OWN_TOOLS] = [dict(each) for each in self.tools]
        if self.first:
            told[CALL_FIRST] = list(self.first)
        if self.format is not None:
            told[FORMAT] = dict(self.format)
        return told

    def refuse_for(self, what: str) -> None:
        """Raises `InvalidInput` if anything is wanted of something that cannot do it."""
        if self.payload:
            raise InvalidInput(f"tools, tool_choice and response_format: {what} has no use for them. Leave them out.")

    def checked(self, text: str) -> str:
        """The answer in the form that is wanted. Raises `Problem` if it has another."""
        if self.format is None:
            return text
        fenced = _FENCE.fullmatch(text.strip())
        found = (fenced[1] if fenced else text).strip()
        try:
            if not isinstance(json.loads(found), dict):
                raise InvalidInput("it is not an object")
            if self.format:
                checker("response_format", self.format)(found)
        except (ValueError, InvalidInput) as error:
            raise Problem(
                "answer_not_in_format",
                f"The agent's answer is not JSON of the schema that was asked for ({error}). It said: {text[:500]}",
                headers={"X-Should-Retry": "false"},
            ) from error
        return found


def requested(
    tools: Sequence[Mapping[str, Any]], choice: object, form: Mapping[str, Any] | None, others: Collection[str] = ()
) -> RequestedAnswer:
    """Checks what is wanted. Raises `InvalidInput` for what no agent can do: nothing is left out silently.

    `tools` are functions with `name`, `description` and `parameters`, `form` is that of `response_format`. `others`
    are the names of the agent's own tools.
    """
    if len(tools) > MOST_TOOLS:
        raise InvalidInput(f"tools: send at most {MOST_TOOLS}.")
    known = [_tool(at, each, {*_OURS, *others}) for at, each in enumerate(tools)]
    names = [str(each["name"]) for each in known]
    if len(set(names)) != len(names):
        raise InvalidInput("tools: two have the same name.")
    schema = _schema(form)
    match choice:
        case None | "auto":
            return RequestedAnswer(known, (), schema)
        case "none":
            return RequestedAnswer((), (), schema)
        case "required" if names:
            return RequestedAnswer(known, names, schema)
        case {"type": "function", "function": {"name": str(name)}} if name in names:
            return RequestedAnswer(known, (name,), schema)
        case {"type": "function", "name": str(name)} if name in names:
            return RequestedAnswer(known, (name,), schema)
        case _:
            raise InvalidInput("tool_choice: send `auto`, `none`, `required`, or the name of one of `tools`.")


def _tool(at: int, given: Mapping[str, Any], taken: Collection[str]) -> Mapping[str, JsonValue]:
    name = str(given.get("name", ""))
    if name in taken:
        raise InvalidInput(f"tools[{at}]: the agent has a tool {name!r} of its own. Choose another name.")
    parameters: dict[str, Any] = given.get("parameters") or {"type": "object", "properties": {}}
    described: dict[str, Any] = {
        "name": name,
        "description": given.get("description") or name,
        "parameters": parameters,
    }
    try:
        tool = tool_of_program(described)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidInput(f"tools[{at}].{where}: {first['msg']}.") from error
    return tool.model_dump(mode="json", exclude_defaults=True)


def _schema(form: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    match form:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return {}
        case {"type": "json_schema", "json_schema": {"schema": dict()}}:
            schema = cast("dict[str, Any]", form["json_schema"]["schema"])
        case {"type": "json_schema", "schema": dict()}:
            schema = cast("dict[str, Any]", form["schema"])
        case _:
            raise InvalidInput(
                "response_format: send the type `text`, `json_object`, or `json_schema` with the schema of an object."
            )
    if problem := schema_problem(schema):
        raise InvalidInput(f"response_format: {problem.replace('parameters', 'the schema')}.")
    return schema


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """A call of a program's tool, as the program sees it."""

    id: str
    name: str
    arguments: str


def calls_for(waiting: Sequence[Call], names: Collection[str], event: int | None) -> list[ProgramCall]:
    """The calls that the program has to carry out; none if the agent waits for people as well."""
    if not waiting or any(each.tool not in names for each in waiting):
        return []
    return [ProgramCall(f"{_CALL}{each.id}.{event}", each.tool, each.arguments) for each in waiting]


def result_of(call_id: str, text: str) -> ToolResult:
    """The result of a call that the program was told of."""
    id, _, event = call_id.removeprefix(_CALL).rpartition(".")
    if not id or not event.isdecimal() or len(event) > 18:
        raise InvalidInput(f"tool_call_id: {call_id[:100]!r} is not a call of this agent. Send the id as it was given.")
    return ToolResult(id, int(event), text)
