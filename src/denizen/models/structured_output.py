"""Asks a model for an object of a given schema: by the provider's JSON schema if it has one, otherwise by a tool.

The object is described as a tool. An answer with the object as text is converted to a call of the tool, so that readers
of the answer always get calls.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition

from denizen.models import learned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.models import Model
    from pydantic_ai.tools import ToolDefinition

JSON_SCHEMA: Final = "json_schema"
"""The key under which it is remembered that a server does not accept a schema."""
REFUSED: Final = re.compile(
    "response_format|json_schema|structured output|output_config|output_format|guided|grammar", re.IGNORECASE
)
"""How servers say so."""
_FENCED: Final = re.compile(r"\A```[a-z]*\s*\n(.*)\n```\Z", re.DOTALL)


def takes_schema(model: Model) -> bool:
    """Whether the model's provider enforces a JSON schema, as far as is known."""
    known = bool(cast("dict[str, Any]", model.profile).get("supports_json_schema_output", False))
    return known and JSON_SCHEMA not in learned.about(model).refused_settings


def parameters(wanted: ToolDefinition) -> ModelRequestParameters:
    """Returns the parameters of a request whose answer has to be such an object."""
    shape = OutputObjectDefinition(
        json_schema=wanted.parameters_json_schema, name=wanted.name, description=wanted.description
    )
    return ModelRequestParameters(output_mode="native", output_object=shape, allow_text_output=False)


def with_description(messages: Sequence[ModelMessage], wanted: ToolDefinition) -> list[ModelMessage]:
    """Adds to the system prompt what the object means, for servers that only enforce a schema.

    OpenAI and Anthropic show it to the model. llama.cpp, Ollama and vLLM do not: the model would write numbers without
    knowing their scale.
    """
    told = json.dumps(wanted.parameters_json_schema, ensure_ascii=False)
    text = f"{wanted.description or ''} Answer with one JSON object of this schema: {told}".strip()
    first, *rest = messages
    assert isinstance(first, ModelRequest)
    parts = list(first.parts)
    if parts and isinstance(parts[0], SystemPromptPart):
        parts[0] = replace(parts[0], content=f"{parts[0].content}\n\n{text}")
    else:
        parts.insert(0, SystemPromptPart(text))
    return [replace(first, parts=parts), *rest]


def as_call(response: ModelResponse, wanted: ToolDefinition) -> ModelResponse:
    """Converts an object in the response's text to a call of the tool, if the response has no call."""
    if any(isinstance(part, ToolCallPart) for part in response.parts):
        return response
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip()
    found = object_in(text)
    if found is None:
        return response
    others: list[ModelResponsePart] = [part for part in response.parts if not isinstance(part, TextPart)]
    return replace(response, parts=[*others, ToolCallPart(wanted.name, json.dumps(found, ensure_ascii=False))])


def object_in(text: str) -> dict[str, Any] | None:
    """Parses a text that is a JSON object, alone or in a code fence."""
    fenced = _FENCED.match(text)
    try:
        found: object = json.loads(fenced[1] if fenced is not None else text)
    except ValueError:
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
