"""The JSON of calls that wait for people, and of approvals."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from denizen.inbox.outside import parsed
from denizen.server.shapes.filling import filled
from denizen.server.shapes.given import OutsideData
from denizen.shapes.calls import ApprovalOut, CallOut
from denizen.shapes.examples import body_example
from denizen.tools.calls import Call
from denizen.tools.grants import Grant


class AnswerCall(BaseModel):
    """The answer to a question of an agent."""

    model_config = body_example(result={"confirmed": True})

    result: Annotated[OutsideData, Field(description="The result for the agent: text as it is, anything else as JSON.")]


def call_out(call: Call) -> CallOut:
    return filled(
        CallOut, call, arguments=call.parsed_arguments, settled_by=call.settled_by or None, approval=bool(call.approval)
    )


def approval_out(grant: Grant) -> ApprovalOut:
    return filled(ApprovalOut, grant, arguments=parsed(grant.arguments) or grant.arguments)
