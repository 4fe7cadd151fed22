"""Questions that an MCP server asks a person in the middle of a call (elicitation): a form, or an address to open.

Pure: how a question is stored as the arguments of a call, and what counts as an answer to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel, JsonValue, ValidationError

from denizen.errors import InvalidInput
from denizen.inbox.outside import parsed
from denizen.tools.schemas import compile_schema, problems

LONGEST_MESSAGE: Final = 4_000
"""How many characters of a server's question are shown."""
_NOTHING: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    """What a server asks: values for a form, or that a person opens an address."""

    server: str
    message: str
    form: Mapping[str, Any] | None = None
    """JSON Schema of the values."""
    url: str | None = None

    def to_arguments(self) -> str:
        """The question as the arguments of a stored call. Raises `UnusableSchema` if its form cannot be used."""
        fields: dict[str, Any] = {"server": self.server, "message": self.message[:LONGEST_MESSAGE]}
        if self.url is not None:
            fields["url"] = self.url
        elif self.form is not None:
            compile_schema(self.form, patterns_are_optional=True)
            fields["form"] = dict(self.form)
        return json.dumps(fields, ensure_ascii=False)


class ServerAnswer(BaseModel, frozen=True, extra="forbid"):
    """What a person answers."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


def read_answer(arguments: str, result: str) -> ServerAnswer:
    """The answer to a stored question. `{"confirmed": …}` accepts it with the values that the form has by default, or
    declines it. Raises `InvalidInput` if it is no answer, or its values do not fit the form.
    """
    given = parsed(result)
    if isinstance(given, dict) and isinstance(given.get("confirmed"), bool):
        given = {"action": "accept" if given["confirmed"] else "decline"}
    try:
        answer = ServerAnswer.model_validate(given)
    except ValidationError as error:
        raise InvalidInput(
            'This does not answer the question of the MCP server. Write {"action": "accept", "content": {…}} with the '
            'values of its form, {"action": "decline"} or {"action": "cancel"}.'
        ) from error
    form = _form(arguments)
    if answer.action != "accept" or form is None:
        return ServerAnswer(action=answer.action)
    values = {**_defaults(form), **(answer.content or {})}
    if wrong := problems("The form", compile_schema(form, patterns_are_optional=True), values):
        raise InvalidInput(f"The values do not fit the form: {'; '.join(wrong)}.")
    return ServerAnswer(action="accept", content=values)


def is_complete(arguments: str) -> bool:
    """Whether the question can be accepted without values for its form."""
    try:
        read_answer(arguments, '{"action": "accept"}')
    except InvalidInput:
        return False
    return True


def _form(arguments: str) -> Mapping[str, Any] | None:
    asked = parsed(arguments)
    if not isinstance(asked, dict) or "url" in asked:
        return None
    form = asked.get("form")
    return form if isinstance(form, dict) else _NOTHING


def _defaults(form: Mapping[str, Any]) -> dict[str, Any]:
    fields: Mapping[str, JsonValue] = form.get("properties") or {}
    return {name: each["default"] for name, each in fields.items() if isinstance(each, dict) and "default" in each}
