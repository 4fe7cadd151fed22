"""The JSON of A2A 1.0 (Agent2Agent), as far as agents here use it: names and forms are those of the protocol."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from denizen import __version__
from denizen.agents.chatting import AnswerState
from denizen.agents.public_tasks import PublicTask
from denizen.agents.registry import Agent
from denizen.clock import Instant, moment
from denizen.server.inline_files import InlineFile, from_base64
from denizen.spaces.posting import Message

VERSION: Final = "1.0"
BINDING: Final = "JSONRPC"
ANSWER: Final = "answer"
"""The id of the artifact that a task has."""
MOST_LISTED: Final = 100
_MARKDOWN: Final = "text/markdown"

State = Literal[
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
]
TERMINAL: Final = frozenset[State](
    {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"}
)


class _A2aModel(BaseModel):
    # What the protocol adds later, and its extensions, are ignored.
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")


class Part(_A2aModel):
    text: str | None = None
    raw: str | None = None
    """The bytes of a file, as base64."""
    url: str | None = None
    data: JsonValue = None
    filename: str | None = None
    media_type: str | None = None


class A2aMessage(_A2aModel):
    message_id: Annotated[str, Field(min_length=1, max_length=200)]
    context_id: str = ""
    task_id: str = ""
    parts: Annotated[list[Part], Field(min_length=1, max_length=100)]

    @property
    def text(self) -> str:
        """The text of its parts; data as JSON."""
        texts = [
            each.text if each.text is not None else f"```json\n{json.dumps(each.data, ensure_ascii=False)}\n```"
            for each in self.parts
            if each.text is not None or "data" in each.model_fields_set
        ]
        return "\n\n".join(texts)

    @property
    def files(self) -> list[InlineFile]:
        return [
            from_base64(f"message.parts[{at}].raw", each.raw, each.media_type or "text/plain", each.filename)
            for at, each in enumerate(self.parts)
            if each.raw is not None
        ]


class SendConfiguration(_A2aModel):
    return_immediately: bool = False
    history_length: Annotated[int | None, Field(ge=0)] = None


class SendParams(_A2aModel):
    message: A2aMessage
    configuration: SendConfiguration = SendConfiguration()


class TaskParams(_A2aModel):
    id: str
    history_length: Annotated[int | None, Field(ge=0)] = None


class ListParams(_A2aModel):
    context_id: str = ""
    status: str = ""
    page_size: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 50
    page_token: str = ""
    history_length: Annotated[int | None, Field(ge=0)] = None
    include_artifacts: bool = False


def card_of(agent: Agent, base_url: str, organization: str) -> dict[str, JsonValue]:
    """What anybody may know of a public agent."""
    about = agent.definition.purpose or f"{agent.name} is an agent of {organization}."
    skill: dict[str, JsonValue] = {
        "id": "conversation",
        "name": f"Talk with {agent.name}",
        "description": about,
        "tags": ["conversation"],
    }
    return {
        "name": agent.name,
        "description": about,
        "supportedInterfaces": [
            {"url": f"{base_url}/a2a/{agent.id}", "protocolBinding": BINDING, "protocolVersion": VERSION}
        ],
        "provider": {"organization": organization, "url": base_url},
        "version": __version__,
        "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": False},
        "securitySchemes": {
            "token": {
                "httpAuthSecurityScheme": {
                    "scheme": "Bearer",
                    "description": "An access token of this server. Ask its owner for one.",
                }
            }
        },
        "securityRequirements": [{"schemes": {"token": {"list": []}}}],
        "defaultInputModes": ["text/plain", _MARKDOWN, "application/json"],
        "defaultOutputModes": [_MARKDOWN],
        "skills": [skill],
    }


def state_of(answer: AnswerState) -> State:
    """The state of a task whose answer is this. Pure."""
    stopped = answer.cause == "stopped" or any("stopped" in each.metadata for each in answer.messages)
    match answer.outcome:
        case "acted" if stopped:
            return "TASK_STATE_CANCELED"
        case "acted" if answer.messages or not answer.note:
            return "TASK_STATE_COMPLETED"
        case "acted" | "skipped":
            return "TASK_STATE_FAILED" if answer.cause == "limit" else "TASK_STATE_REJECTED"
        case "paused":
            return "TASK_STATE_INPUT_REQUIRED"
        case "failed" | "unheard":
            return "TASK_STATE_FAILED"
        case "working" | "parked" | "suspended":
            # What holds the agent up is told; the message is kept, and answered then.
            return "TASK_STATE_SUBMITTED" if answer.cycle_id is None else "TASK_STATE_WORKING"


def task_out(
    task: PublicTask, answer: AnswerState, note: str, *, history: int | None = None, artifacts: bool = True
) -> dict[str, JsonValue]:
    """The task with its state and the answer so far."""
    shown: dict[str, JsonValue] = {
        "id": task.message.id,
        "contextId": task.context,
        "status": status_out(task, answer, note),
    }
    if artifacts and answer.messages:
        shown["artifacts"] = [artifact_out([each.text for each in answer.messages])]
    if history != 0:
        shown["history"] = [message_out(task, task.message.id, "ROLE_USER", task.message.text)]
    return shown


def status_out(task: PublicTask, answer: AnswerState, note: str) -> dict[str, JsonValue]:
    last: Message = answer.messages[-1] if answer.messages else task.message
    status: dict[str, JsonValue] = {"state": state_of(answer), "timestamp": _time(last.created_at)}
    if note:
        status["message"] = message_out(task, f"{task.message.id}-status", "ROLE_AGENT", note)
    return status


def message_out(task: PublicTask, id: str, role: str, text: str) -> dict[str, JsonValue]:
    return {
        "messageId": id,
        "contextId": task.context,
        "taskId": task.message.id,
        "role": role,
        "parts": [{"text": text, "mediaType": _MARKDOWN}],
    }


def artifact_out(texts: Sequence[str]) -> dict[str, JsonValue]:
    return {"artifactId": ANSWER, "parts": [{"text": each, "mediaType": _MARKDOWN} for each in texts]}


def _time(at: int) -> str:
    return moment(Instant(at)).isoformat().replace("+00:00", "Z")
