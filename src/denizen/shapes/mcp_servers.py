"""MCP servers that an admin signs in to."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from denizen.shapes.examples import example
from denizen.shapes.value import Value


class SignInServerOut(Value):
    """An MCP server that an admin signs in to."""

    model_config = example(
        name="TRACKER_SIGN_IN",
        url="https://tracker.example/mcp",
        agents=["Ada"],
        signed_in_at="2026-01-05T09:00:00Z",
    )

    name: Annotated[str, Field(description="The secret in which the tokens are kept.")]
    url: str
    agents: Annotated[list[str], Field(description="The names of the agents that use it.")]
    signed_in_at: Annotated[datetime | None, Field(description="When somebody last signed in.")]


class SignInServerList(Value):
    """MCP servers that an admin signs in to, by name."""

    servers: list[SignInServerOut]


class SignInBegun(Value):
    """A sign-in that was begun."""

    model_config = example(url="https://auth.example/authorize?client_id=denizen&state=TRACKER_SIGN_IN.x")

    url: Annotated[str, Field(description="The address to open in a browser, within ten minutes.")]
