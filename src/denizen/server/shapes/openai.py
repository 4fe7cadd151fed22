"""The JSON of OpenAI's API. Fields that mean nothing to an agent are accepted and ignored."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Sequence
from math import sqrt
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from denizen.agents.chatting import Outcome
from denizen.cycles.ledger import Charge
from denizen.server.shapes.chat import Metadata
from denizen.shapes.examples import given

MOST_INPUTS = 256
NAME_CHARACTERS = 200


class ImageUrl(BaseModel):
    """A picture, as a data URL."""

    model_config = ConfigDict(extra="ignore")

    url: str


class FilePart(BaseModel):
    """A file: its bytes as a data URL, or the id of an upload."""

    model_config = ConfigDict(extra="ignore")

    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class InputAudio(BaseModel):
    """Sound, encoded as base64."""

    model_config = ConfigDict(extra="ignore")

    data: str
    format: str


class ContentPart(BaseModel):
    """A part of a message: text, a picture, sound or a file."""

    model_config = ConfigDict(extra="ignore")

    type: str
    text: str | None = None
    image_url: ImageUrl | None = None
    input_audio: InputAudio | None = None
    file: FilePart | None = None


class ChatMessage(BaseModel):
    """A message of the client's conversation. The agent has its own history: only the last message is used, or the
    results of tools after it."""

    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | list[ContentPart] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """Its text, without its pictures and files."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text or "" for part in self.content or [] if part.type == "text")


class StreamOptions(BaseModel):
    """How chunks are sent."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class FunctionTool(BaseModel):
    """A tool of the client."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["function"]
    function: dict[str, Any]


class CompletionRequest(BaseModel):
    """A chat completion: the last message of the user is posted to the agent."""

    model_config = ConfigDict(
        extra="ignore",
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

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "chatcmpl-019b8d3f-0a00-7d24-8c3b-5e6f7a8b9c0d",
                    "object": "chat.completion",
                    "created": 1767603600,
                    "model": "ada",
                    "choices": [
                        {
                            "index": 0,
                            "message": {"role": "assistant", "content": "It did."},
                            "finish_reason": "stop",
                            "logprobs": None,
                        }
                    ],
                    "usage": {
                        "prompt_tokens": 1480,
                        "completion_tokens": 31,
                        "total_tokens": 1511,
                        "prompt_tokens_details": {"cached_tokens": 0},
                    },
                    "denizen": {"outcome": "acted", "space_id": "…", "message_id": "…", "cycle": 12},
                }
            ]
        }
    )

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage
    denizen: Annotated[About | None, Field(description="Null for a side task, which no agent has read.")]


class ModelOut(BaseModel):
    """An agent."""

    model_config = given(id="ada", object="model", created=1_767_603_600, owned_by="Home")

    id: Annotated[str, Field(description="Its handle.")]
    object: Literal["model"] = "model"
    created: int
    owned_by: Annotated[str, Field(description="Its organization.")]


class ModelList(BaseModel):
    """The agents of your organization that were not deleted."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "object": "list",
                    "data": [{"id": "ada", "object": "model", "created": 1767603600, "owned_by": "Home"}],
                }
            ]
        }
    )

    object: Literal["list"] = "list"
    data: list[ModelOut]


Texts = Annotated[list[str], Field(min_length=1, max_length=MOST_INPUTS)]


class EmbeddingRequest(BaseModel):
    """Texts to embed."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [{"input": "Good morning"}]})

    input: Annotated[str | Texts, Field(description="A text, or several.")]
    model: Annotated[str | None, Field(description="Ignored: the server has one embedder.")] = None
    encoding_format: Literal["float", "base64"] = "float"

    @field_validator("input", mode="before")
    @classmethod
    def _texts(cls, given: Any) -> Any:
        if isinstance(given, list) and any(isinstance(each, int | list) for each in cast("list[Any]", given)):
            raise ValueError(
                "tokens mean something only to the model they were made for: send texts (in LangChain: "
                "OpenAIEmbeddings(check_embedding_ctx_length=False))"
            )
        return cast("Any", given)

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

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "object": "list",
                    "data": [{"object": "embedding", "index": 0, "embedding": [0.6, -0.8]}],
                    "model": "local:all-MiniLM-L6-v2-int8",
                    "usage": {"prompt_tokens": 4, "total_tokens": 4},
                }
            ]
        }
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

    model_config = given(message="There is no agent 'eve'.", type="invalid_request_error", param=None, code="not_found")

    message: str
    type: str
    param: str | None
    code: str


class ErrorOut(BaseModel):
    """Why a request failed."""

    error: ErrorDetail
