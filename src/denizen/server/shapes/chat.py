"""One request and its answer: what `/api/chat` is sent and answers."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from denizen.agents.chatting import Answer, Outcome
from denizen.cycles.ledger import Charge
from denizen.server.answering import LONGEST_SECONDS, USUAL_SECONDS
from denizen.server.schemas import METADATA_CHARACTERS, CallOut, MessageOut, NamedOrganization
from denizen.server.shapes.memory import MemoryControl
from denizen.server.telling import BETWEEN
from denizen.spaces.posting import MESSAGE_CHARACTERS
from denizen.storage.database import storable
from denizen.tools.calls import Call

_EXAMPLE = "019b8d3e-5c02-7c13-b2aa-0a1b2c3d4e5f"


def _can_be_kept(metadata: dict[str, JsonValue]) -> dict[str, JsonValue]:
    try:
        text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise ValueError("JSON has no NaN and no Infinity") from error
    if len(text) > METADATA_CHARACTERS:
        raise ValueError(f"as JSON it may have {METADATA_CHARACTERS:,} characters, this has {len(text):,}")
    return json.loads(storable(text))


Metadata = Annotated[dict[str, JsonValue], AfterValidator(_can_be_kept)]
"""What can be kept with a message."""


class ChatRequest(BaseModel):
    """Something to say to one agent."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        json_schema_extra={"examples": [{"agent": "@ada", "text": "Did the build pass?"}]},
    )

    agent: Annotated[str, Field(description="Its id, or its `@handle`.")]
    text: Annotated[str, Field(description=f"Markdown, up to {MESSAGE_CHARACTERS:,} characters.")]
    space: Annotated[
        str | None, Field(description="A space that you and the agent are in; else the private one of you two.")
    ] = None
    metadata: Annotated[Metadata | None, Field(description="Kept with your message as it is.")] = None
    organization_id: NamedOrganization = None
    memory_control: Annotated[
        MemoryControl | None,
        Field(alias="memoryControl", description="What shall be remembered of this conversation. It is kept."),
    ] = None
    seconds: Annotated[
        float, Field(gt=0, le=LONGEST_SECONDS, description="How long to wait. The agent goes on in any case.")
    ] = USUAL_SECONDS


class FinalResponse(BaseModel):
    """Everything that the agent said, as one text."""

    markdown: str
    text: Annotated[str, Field(description="The same without markup.")]


class ChatUsage(BaseModel):
    """What the cycle that took the message has used."""

    input_tokens: int
    output_tokens: int
    cost_micros: Annotated[int | None, Field(description="Millionths of a dollar; null where the price is unknown.")]

    @classmethod
    def of(cls, spent: Charge) -> ChatUsage:
        return cls(input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, cost_micros=spent.cost_micros)


class ChatAnswer(BaseModel):
    """What became of a message, and what the agent said to it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "outcome": "acted",
                    "space_id": _EXAMPLE,
                    "message_id": "019b8d3f-0a00-7d24-8c3b-5e6f7a8b9c0d",
                    "messages": [],
                    "final_response": {"markdown": "**It did.**", "text": "It did."},
                    "cycle": 12,
                    "usage": {"input_tokens": 1480, "output_tokens": 31, "cost_micros": 610},
                    "waiting_for": [],
                    "note": "",
                    "metadata": {},
                }
            ]
        }
    )

    outcome: Annotated[
        Outcome,
        Field(
            description="`acted`: without messages, `note` says why it did not reply; `skipped`: nobody waited for an "
            "answer; `paused`: it waits for people; `suspended`; `waiting`: it cannot think until what `note` says is "
            "mended; `failed`; `unheard`: it does not attend to the space; `working`: it goes on, and the time is over."
        ),
    ]
    space_id: Annotated[str, Field(description="Where it was said, and where all that follows will be.")]
    message_id: Annotated[str, Field(description="Of your message.")]
    messages: Annotated[list[MessageOut], Field(description="What the agent said there until its cycle ended.")]
    final_response: FinalResponse
    cycle: Annotated[int | None, Field(description="The number of the agent's cycle, once it has ended.")]
    usage: ChatUsage
    waiting_for: Annotated[list[CallOut], Field(description="What the agent has asked, where you may answer it.")]
    note: Annotated[str, Field(description="Why there is no more, for people.")]
    metadata: Annotated[
        dict[str, JsonValue],
        Field(
            description="What you sent, and `rolling_memory`, what the conversation came to, and "
            "`long_term_memory`, what the agent was reminded of, where there is something."
        ),
    ]


def final_response(answer: Answer) -> FinalResponse:
    """The messages of an answer as one text."""
    return FinalResponse(
        markdown=BETWEEN.join(each.text for each in answer.messages),
        text=BETWEEN.join(each.plain for each in answer.messages),
    )


def waiting_note(note: str, waiting: list[Call]) -> str:
    """The note of an answer, with what the agent has asked, where the reader may see it."""
    asked = [f"- {each.tool}: {each.arguments}" for each in waiting]
    return "\n".join([note, *asked])
