"""The JSON of calls that wait for people, and of approvals."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from denizen.clock import moment
from denizen.inbox.outside import parsed
from denizen.server.shapes.given import OutsideData
from denizen.shapes.calls import ApprovalOut, CallOut
from denizen.tools.calls import Call
from denizen.tools.grants import Grant


class AnswerCall(BaseModel):
    """The answer to what an agent has asked."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"result": {"confirmed": True}}]})

    result: Annotated[OutsideData, Field(description="What the agent is told: text as it is, anything else as JSON.")]


def call_out(call: Call) -> CallOut:
    return CallOut(
        id=call.id,
        agent_id=call.agent_id,
        space_id=call.space_id,
        after_seq=call.after_seq,
        tool=call.tool,
        mode=call.mode,
        state=call.state,
        arguments=call.parsed_arguments,
        result=call.result,
        created_at=moment(call.created_at),
        expires_at=None if call.expires_at is None else moment(call.expires_at),
        settled_at=None if call.settled_at is None else moment(call.settled_at),
        settled_by=call.settled_by or None,
        approval=bool(call.approval),
        code=call.code,
        why=call.why,
    )


def approval_out(grant: Grant) -> ApprovalOut:
    return ApprovalOut(
        id=grant.id,
        agent_id=grant.agent_id,
        tool=grant.tool,
        arguments=parsed(grant.arguments) or grant.arguments,
        uses_left=grant.uses_left,
        expires_at=moment(grant.expires_at),
        given_by=grant.given_by,
        space_id=grant.space_id,
        created_at=moment(grant.created_at),
    )
