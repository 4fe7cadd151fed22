"""The JSON of OpenAI's Responses API, as far as it means something to an agent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from denizen.errors import InvalidInput
from denizen.server.shapes.openai import (
    NAME_CHARACTERS,
    ONLY_FUNCTIONS,
    ChatMessage,
    CompletionRequest,
    ContentPart,
    FilePart,
    FunctionTool,
    ImageUrl,
    ProgramRequest,
)
from denizen.server.shapes.spaces import Metadata
from denizen.shapes.examples import THING, example

_IGNORED = frozenset({"function_call", "reasoning", "item_reference"})
"""Items of the client's history: the agent has its own."""


class TextConfig(BaseModel, extra="ignore"):
    """The form of the answer."""

    format: dict[str, Any] | None = None


class ResponseRequest(ProgramRequest):
    """A request of the Responses API: the last message of the user is posted to the agent."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "ada", "input": "Did the build pass?"}]})

    model: Annotated[str, Field(description="The handle of an agent, or its id.")]
    input: Annotated[
        str | list[dict[str, Any]],
        Field(description="A text, or messages with `input_text`, `input_image`, `input_file`; results of tools."),
    ]
    instructions: Annotated[str | None, Field(description="For side tasks. Agents have their own.")] = None
    stream: bool = False
    previous_response_id: Annotated[
        str | None, Field(max_length=100, description="Continue in the space of that response.")
    ] = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    text: TextConfig | None = None
    user: Annotated[str | None, Field(max_length=NAME_CHARACTERS, description="As in `/v1/chat/completions`.")] = None
    metadata: Metadata | None = None
    background: Annotated[bool | None, Field(description="Only false: an answer is waited for.")] = None

    def as_completion(self) -> CompletionRequest:
        """The same as a request of `/v1/chat/completions`. Raises `InvalidInput` for what no agent can do."""
        if self.background:
            raise InvalidInput("background: an answer is waited for here. Leave it out.")
        items = [{"role": "user", "content": self.input}] if isinstance(self.input, str) else self.input
        messages = [each for at, item in enumerate(items) if (each := _message(at, item)) is not None]
        if not messages:
            raise InvalidInput("input: there is no message. Send a text.")
        if self.instructions:
            messages.insert(0, ChatMessage(role="system", content=self.instructions))
        tools = [_tool(at, each) for at, each in enumerate(self.tools or [])]
        return CompletionRequest(
            model=self.model,
            messages=messages,
            tools=tools or None,
            tool_choice=self.tool_choice,
            response_format=None if self.text is None else self.text.format,
            user=self.user,
            metadata=self.metadata,
        )


def _tool(at: int, given: dict[str, Any]) -> FunctionTool:
    if given.get("type") != "function":
        raise InvalidInput(f"tools[{at}]: {ONLY_FUNCTIONS.format(kind=str(given.get('type'))[:40])}.")
    return FunctionTool(type="function", function={key: value for key, value in given.items() if key != "type"})


def _message(at: int, item: dict[str, Any]) -> ChatMessage | None:
    kind, role = item.get("type", "message"), item.get("role")
    if kind == "function_call_output":
        return ChatMessage(
            role="tool", content=_content(at, item.get("output")), tool_call_id=str(item.get("call_id", ""))
        )
    if kind in _IGNORED:
        return None
    if kind != "message" or not isinstance(role, str):
        raise InvalidInput(f"input[{at}]: send messages and results of functions, not {str(kind)[:40]!r}.")
    return ChatMessage(role=role, content=_content(at, item.get("content")))


def _content(at: int, given: str | list[dict[str, Any]] | None) -> str | list[ContentPart]:
    return given if isinstance(given, str) else [_part(at, each) for each in given or []]


def _part(at: int, part: dict[str, Any]) -> ContentPart:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return ContentPart(type="text", text=text)
        case {"type": "refusal", "refusal": str(text)}:
            return ContentPart(type="text", text=text)
        case {"type": "input_image", "image_url": str(url)}:
            return ContentPart(type="image_url", image_url=ImageUrl(url=url))
        case {"type": "input_image" | "input_file", "file_id": str(file_id)}:
            return ContentPart(type="file", file=FilePart(file_id=file_id))
        case {"type": "input_file", "file_data": str(data)}:
            return ContentPart(type="file", file=FilePart(file_data=data, filename=part.get("filename")))
        case _:
            raise InvalidInput(
                f"input[{at}]: send `input_text`, `input_image` or `input_file`, each with its contents. This server "
                "does not fetch addresses."
            )


class ResponseOut(BaseModel):
    """An answer of an agent."""

    model_config = example(id=f"resp_{THING}", created_at=1_767_603_600, model="ada", output=[])

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["completed", "incomplete", "in_progress", "failed"]
    model: str
    output: Annotated[list[dict[str, JsonValue]], Field(description="A message, and calls of your functions.")]
    usage: dict[str, JsonValue] | None
    parallel_tool_calls: bool = True
    tool_choice: str | dict[str, Any] = "auto"
    tools: list[dict[str, Any]] = []
    previous_response_id: str | None = None
    metadata: dict[str, JsonValue] = {}
    error: dict[str, JsonValue] | None = None
    incomplete_details: dict[str, JsonValue] | None = None
    denizen: dict[str, JsonValue] | None = None
