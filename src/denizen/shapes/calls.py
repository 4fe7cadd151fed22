"""Tool calls that people see, and approvals."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue

from denizen.shapes.examples import example
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import CallMode, CallState


class CallOut(Value):
    """A tool call of an agent that people see or answer."""

    model_config = example(tool="confirm_action", arguments={"action": "Order flour"})

    id: str
    agent_id: str
    space_id: str | None
    after_seq: Annotated[int, Field(description="The number of the message that it follows.")]
    tool: str
    mode: Annotated[
        Open[CallMode],
        Field(
            description="`pause`, `async`: a question of the agent, which you may answer. `elicitation`: a question of "
            "an MCP server with a `message` and a `form` (JSON Schema) or a `url`; the answer is "
            '`{"action": "accept", "content": {…}}`, or `decline` or `cancel`. Others are only shown.'
        ),
    ]
    state: Open[CallState]
    arguments: JsonValue
    result: str | None
    created_at: datetime
    expires_at: datetime | None
    settled_at: datetime | None
    settled_by: str | None
    approval: Annotated[bool, Field(description="Whether only a person can answer it, not a message in the space.")]
    code: Annotated[
        str | None,
        Field(description="Of an approval: `yes` or `no` with this code, written in the space, answers it."),
    ]
    why: Annotated[
        str | None,
        Field(
            description="Why the agent may not make this call by itself. Approve exactly these arguments with "
            '`{"confirmed": true}`; `times` and `seconds` say how often and how long the same call may be made.'
        ),
    ]


class CallList(Value):
    """Tool calls of agents."""

    calls: list[CallOut]


class ApprovalOut(Value):
    """A valid approval: the agent may repeat the call, with the same arguments, without asking."""

    model_config = example(tool="send_email", arguments={"to": "sam@example.com"})

    id: str
    agent_id: str
    tool: str
    arguments: JsonValue
    uses_left: int
    expires_at: datetime
    given_by: str
    space_id: str | None
    created_at: datetime


class ApprovalList(Value):
    """Approvals of calls, oldest first."""

    approvals: list[ApprovalOut]
