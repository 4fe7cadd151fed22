"""MCP servers that an admin signs in to, as JSON."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from denizen.api.mcp_servers import SignInServer
from denizen.server.shapes.filling import filled
from denizen.shapes.mcp_servers import SignInServerOut


class FinishSignIn(BaseModel):
    """The answer of an authorization server."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"answer": "https://denizen.example/admin/mcp?code=4f2a&state=TRACKER_SIGN_IN.x"}]
        },
    )

    answer: Annotated[str, Field(max_length=8_000, description="The whole address to which the browser was sent back.")]


def sign_in_server_out(server: SignInServer) -> SignInServerOut:
    return filled(SignInServerOut, server, agents=list(server.agents))
