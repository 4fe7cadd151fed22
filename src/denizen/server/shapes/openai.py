"""The JSON of OpenAI's API. Fields that mean nothing to an agent are named in the answer's headers, or refused."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from denizen.agents.chatting import Outcome
from denizen.cycles.ledger import Charge
from denizen.errors import InvalidInput
from denizen.server.shapes.spaces import Metadata
from denizen.shapes.examples import THING, example

MOST_INPUTS = 256
MOST_TOKENS = 8192
"""The most tokens of one input, as of OpenAI's embedding models."""
NAME_CHARACTERS = 200
MOST_IGNORED = 30
"""The most fields that are named in a header: more than OpenAI's API has."""


class ImageUrl(BaseModel, extra="ignore"):
    """A picture, as a data URL."""

    url: str


class FilePart(BaseModel, extra="ignore"):
    """A file: its bytes as a data URL, or the id of an upload."""

    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class InputAudio(BaseModel, extra="ignore"):
    """Sound, encoded as base64."""

    data: str
    format: str


class ContentPart(BaseModel, extra="ignore"):
    """A part of a message: text, a picture, sound or a file."""

    type: str
    text: str | None = None
    image_url: ImageUrl | None = None
    input_audio: InputAudio | None = None
    file: FilePart | None = None


SYSTEM_ROLES: Final = frozenset({"system", "developer"})


class ChatMessage(BaseModel, extra="ignore"):
    """A message of the client's conversation. The agent has its own history: only the last message is used, or the
    results of tools after it."""

    role: str
    content: str | list[ContentPart] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """Its text, without its pictures and files."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text or "" for part in self.content or [] if part.type == "text")


class StreamOptions(BaseModel, extra="ignore"):
    """How chunks are sent."""

    include_usage: bool = False


class FunctionTool(BaseModel, extra="ignore"):
    """A tool of the client."""

    type: Literal["function"]
    function: dict[str, Any]

    @model_validator(mode="before")
    @classmethod
    def _is_function(cls, given: Any) -> Any:
        match given:
            case {"type": str(kind)} if kind != "function":
                raise ValueError(ONLY_FUNCTIONS.format(kind=kind[:40]))
            case _:
                return given


ONLY_FUNCTIONS: Final = "agents call only functions of yours, not {kind!r}"
_REFUSED: Final = {
    "audio": "agents answer with text. Leave it out.",
    "conversation": "continue with `previous_response_id`, or choose a space with `metadata.space`.",
    "function_call": "send `tool_choice` instead.",
    "functions": "send `tools` instead.",
    "logprobs": "answers of agents have none. Leave it out.",
    "modalities": "agents answer with text. Leave it out.",
    "prompt": "there are no stored prompts here. Send the text itself.",
    "top_logprobs": "answers of agents have none. Leave it out.",
    "web_search_options": "agents search with their own tools. Leave it out.",
}
"""Fields without which a program would take the answer for another than it is."""
_USUAL: Final[Mapping[str, object]] = {"modalities": ["text"], "parallel_tool_calls": True}
"""Values that change nothing. Of other fields, these are none, false and empty texts and lists."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")


class ProgramRequest(BaseModel):
    """A request of a program that may have any of the many fields for models."""

    model_config = ConfigDict(extra="allow")

    def ignored_fields(self) -> list[str]:
        """The fields that have no effect on an agent. Raises `InvalidInput` for those that cannot be ignored."""
        ignored: list[str] = []
        for name, value in sorted((self.model_extra or {}).items()):
            is_usual = value == _USUAL[name] if name in _USUAL else value is False or value in ("", [])
            if value is None or is_usual:
                continue
            if name in _REFUSED:
                raise InvalidInput(f"{name}: {_REFUSED[name]}")
            if _NAME.fullmatch(name):
                ignored.append(name)
        return ignored[:MOST_IGNORED]


class CompletionRequest(ProgramRequest):
    """A chat completion: the last message of the user is posted to the agent."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": "ada", "messages": [{"role": "user", "content": "Did the build pass?"}]}]
        },
    )

    model: Annotated[str, Field(description="The handle of an agent, or its id.")]
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    tools: Annotated[
        list[FunctionTool] | None, Field(description="Tools of yours: the answer has the agent's calls of them.")
    ] = None
    tool_choice: Annotated[str | dict[str, Any] | None, Field(description="Which of your tools is called first.")] = (
        None
    )
    response_format: Annotated[
        dict[str, Any] | None, Field(description="`json_object`, or `json_schema` with a schema that is asked for.")
    ] = None
    n: Annotated[int | None, Field(description="Only 1: an agent gives one answer.")] = None
    user: Annotated[
        str | None,
        Field(
            max_length=NAME_CHARACTERS,
            description="The id of a space that you and the agent are in, or `space:` and that id; any other text: a "
            "private space of you two for that text alone. With a token that speaks for others: the id of a "
            "person.",
        ),
    ] = None
    metadata: Annotated[
        Metadata | None,
        Field(description="`space`: the id of a space that you and the agent are in. All of it is stored."),
    ] = None

    @field_validator("n")
    @classmethod
    def _one(cls, n: int | None) -> int | None:
        if n not in (None, 1):
            raise ValueError("an agent gives one answer: leave n out")
        return n


_SPACE = "space:"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_OUR_VERSIONS = frozenset("57")
"""Versions of UUIDs: other ids come from other systems, which name their own people by them."""
_NEARLY = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]+-?)+", re.IGNORECASE)


def space_meant(user: str) -> tuple[str, bool]:
    """Returns what would be the id of a space in `user`, and whether it can mean nothing else."""
    given = user.strip()
    if given.lower().startswith(_SPACE):
        return given[len(_SPACE) :].strip(), True
    if (whole := _ID.fullmatch(given)) is not None:
        return given.lower(), whole[1] in _OUR_VERSIONS
    return given, len(given) in range(34, 39) and _NEARLY.fullmatch(given) is not None


class PromptDetails(BaseModel):
    cached_tokens: int


class Usage(BaseModel):
    """The usage of the agent's cycle, all model calls together."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails

    @classmethod
    def of(cls, spent: Charge) -> Usage:
        return cls(
            prompt_tokens=spent.input_tokens,
            completion_tokens=spent.output_tokens,
            total_tokens=spent.input_tokens + spent.output_tokens,
            prompt_tokens_details=PromptDetails(cached_tokens=spent.cache_read_tokens),
        )


class CalledFunction(BaseModel):
    name: str
    arguments: Annotated[str, Field(description="JSON.")]


class FunctionCall(BaseModel):
    """A call of one of the client's tools. The agent waits ten minutes for its result."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class AssistantMessage(BaseModel):
    model_config = example(content="It did.")

    role: Literal["assistant"] = "assistant"
    content: str | None
    tool_calls: Annotated[list[FunctionCall] | None, Field(exclude_if=lambda calls: calls is None)] = None


FinishReason = Literal["stop", "length", "tool_calls"]


class Choice(BaseModel):
    index: Literal[0] = 0
    message: AssistantMessage
    finish_reason: FinishReason
    logprobs: None = None


class About(BaseModel):
    """Fields that OpenAI's API does not have."""

    outcome: Outcome
    space_id: str
    message_id: Annotated[str, Field(description="The id of the message to the agent.")]
    cycle: int | None


class Completion(BaseModel):
    """Everything that the agent posted until its cycle ended."""

    model_config = example(id=f"chatcmpl-{THING}", created=1_767_603_600, model="ada")

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage
    denizen: Annotated[About | None, Field(description="Null for a side task, which no agent has read.")]


class ModelOut(BaseModel):
    """An agent."""

    model_config = example(id="ada", owned_by="Home")

    id: Annotated[str, Field(description="Its handle.")]
    object: Literal["model"] = "model"
    created: int
    owned_by: Annotated[str, Field(description="Its organization.")]


class ModelList(BaseModel):
    """The agents of your organization that were not deleted."""

    object: Literal["list"] = "list"
    data: list[ModelOut]


Texts = Annotated[list[str], Field(min_length=1, max_length=MOST_INPUTS)]
Tokens = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1, max_length=MOST_TOKENS)]


class EmbeddingRequest(BaseModel):
    """Texts to embed."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [{"input": "Good morning"}]})

    input: Annotated[
        str | Texts | Tokens | Annotated[list[Tokens], Field(min_length=1, max_length=MOST_INPUTS)],
        Field(description="A text, or several; or the tokens of one or several, in the vocabulary of `model`."),
    ]
    model: Annotated[
        str | None,
        Field(description="Which vocabulary tokens are of. Texts need none: the server has one embedder."),
    ] = None
    encoding_format: Literal["float", "base64"] = "float"

    dimensions: Annotated[int | None, Field(description="The dimensions of the embedder; fewer are not supported.")] = (
        None
    )


class Embedding(BaseModel):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingUsage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class EmbeddingList(BaseModel):
    """The embeddings of the texts, each of length one."""

    model_config = example(
        data=[{"object": "embedding", "index": 0, "embedding": [0.6, -0.8]}], model="local:all-MiniLM-L6-v2-int8"
    )

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage


def direction(vector: bytes) -> list[float]:
    """Converts a stored vector to numbers, of length one."""
    numbers = struct.unpack(f"{len(vector)}b", vector)
    length = sqrt(sum(each * each for each in numbers)) or 1.0
    return [each / length for each in numbers]


def packed(numbers: Sequence[float]) -> str:
    """As the `openai` package requests them: 32 bits each, little-endian, in base64."""
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


class ErrorDetail(BaseModel):
    """An error in OpenAI's format; `code` is ours."""

    model_config = example(message="There is no agent 'eve'.", type="invalid_request_error", code="not_found")

    message: str
    type: str
    param: str | None
    code: str


class ErrorOut(BaseModel):
    """Why a request failed."""

    error: ErrorDetail
