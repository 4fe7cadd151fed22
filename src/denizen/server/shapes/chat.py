"""The JSON of `/api/chat`: one request and its answer."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from denizen.agents.chatting import AnswerState
from denizen.cycles.ledger import Charge
from denizen.files.attaching import MOST_FILES
from denizen.server.answering import LONGEST_SECONDS, USUAL_SECONDS
from denizen.server.growing_text import BETWEEN
from denizen.server.shapes.filling import filled
from denizen.server.shapes.memory import MemoryControl
from denizen.server.shapes.spaces import Metadata, NamedOrganization
from denizen.shapes.chat import ChatUsage, FinalResponse
from denizen.spaces.posting import MESSAGE_CHARACTERS
from denizen.tools.calls import Call


class ChatRequest(BaseModel):
    """A message to one agent."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        json_schema_extra={"examples": [{"agent": "@ada", "text": "Did the build pass?"}]},
    )

    agent: Annotated[str, Field(description="Its id, or its `@handle`.")]
    text: Annotated[str, Field(description=f"Markdown, up to {MESSAGE_CHARACTERS:,} characters.")]
    space: Annotated[
        str | None, Field(description="A space that you and the agent are in; by default your private space with it.")
    ] = None
    files: Annotated[
        list[str],
        Field(
            max_length=MOST_FILES,
            description="Files of your message: ids of finished uploads, or data URLs (`data:image/png;base64,…`).",
        ),
    ] = []
    metadata: Annotated[Metadata | None, Field(description="Stored with your message, unchanged.")] = None
    organization_id: NamedOrganization = None
    memory_control: Annotated[
        MemoryControl | None,
        Field(alias="memoryControl", description="The memory settings of this conversation. They are stored."),
    ] = None
    seconds: Annotated[
        float, Field(gt=0, le=LONGEST_SECONDS, description="How long to wait. The agent continues in any case.")
    ] = USUAL_SECONDS


def chat_usage_out(spent: Charge) -> ChatUsage:
    return filled(ChatUsage, spent)


def final_response(answer: AnswerState) -> FinalResponse:
    """The messages of an answer as one text."""
    return FinalResponse(
        markdown=BETWEEN.join(each.text for each in answer.messages),
        text=BETWEEN.join(each.plain for each in answer.messages),
    )


def waiting_note(note: str, waiting: list[Call]) -> str:
    """Returns the note of an answer, with the agent's question, if the reader may see it."""
    asked = [f"- {each.tool}: {each.arguments}" for each in waiting]
    return "\n".join([note, *asked])
