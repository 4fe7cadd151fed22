"""The answer to a chat request."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from denizen.shapes.calls import CallOut
from denizen.shapes.examples import example
from denizen.shapes.spaces import MessageOut
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import ChatOutcome, StatusCause


class FinalResponse(Value):
    """Everything that the agent posted, as one text."""

    markdown: str
    text: Annotated[str, Field(description="The text without markup.")]


class ChatUsage(Value):
    """The usage of the cycle that handled the message."""

    input_tokens: int
    output_tokens: int
    cost_micros: Annotated[int | None, Field(description="Millionths of a dollar; null where the price is unknown.")]


class ChatAnswer(Value):
    """The outcome of a message, and the answer of the agent."""

    model_config = example(messages=[], waiting_for=[], note="")

    outcome: Annotated[
        Open[ChatOutcome],
        Field(
            description="`acted`; `skipped`: it had nothing to say; `paused`: it waits for people; `suspended`; "
            "`parked`: it cannot think until something is fixed; `failed`; `unheard`: it does not attend to the space; "
            "`working`: it goes on, and the time is over."
        ),
    ]
    space_id: Annotated[str, Field(description="The space of the message and of the answer.")]
    message_id: Annotated[str, Field(description="The id of your message.")]
    messages: Annotated[list[MessageOut], Field(description="The messages of the agent until its cycle ended.")]
    final_response: FinalResponse
    cycle: Annotated[int | None, Field(description="The number of the agent's cycle, once it has ended.")]
    usage: ChatUsage
    waiting_for: Annotated[list[CallOut], Field(description="The question of the agent, if you may answer it.")]
    note: Annotated[str, Field(description="The reason for a missing answer, for people.")]
    cause: Annotated[
        Open[StatusCause] | Open[Literal["queued"]] | None,
        Field(description="Of the status of the space that the note comes from."),
    ]
    metadata: Annotated[
        dict[str, JsonValue],
        Field(
            description="What you sent, and `rolling_memory`, the summary of the conversation, and "
            "`long_term_memory`, what the agent was reminded of, where there is something."
        ),
    ]
