"""The JSON of spaces, their members, read marks and search results."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from denizen.server.shapes.given import Given
from denizen.shapes.examples import asked
from denizen.shapes.spaces import FLOOR, RUN_LIMIT
from denizen.spaces.directory import (
    AGENT_RUN_LIMIT,
    DEFAULT_FLOOR,
    LARGEST_RUN_LIMIT,
    Attention,
    Floor,
    MemberRole,
)

MOST_MEMBERS = 200
"""The most members in a request for a new space."""


class SpaceCreate(Given):
    """A new space. You are in it, and run it."""

    model_config = asked(name="Kitchen", members=["@ada", "@sam"], private=False)

    name: str
    members: list[str] = Field(
        default_factory=list[str],
        max_length=MOST_MEMBERS,
        description="Who else is in it: ids, or handles with their `@`.",
    )
    private: Annotated[
        bool, Field(description="Whether those who are not in it may not even know of it, nor of what is said in it.")
    ] = False
    floor: Annotated[Floor | None, Field(description=f"{FLOOR} By default `{DEFAULT_FLOOR}`.")] = None
    agent_run_limit: Annotated[
        int | None, Field(ge=0, le=LARGEST_RUN_LIMIT, description=f"{RUN_LIMIT} By default {AGENT_RUN_LIMIT}.")
    ] = None


class SpaceChange(Given):
    """What shall be otherwise with a space."""

    model_config = asked(name="Big kitchen")

    name: str | None = None
    private: bool | None = None
    floor: Annotated[Floor | None, Field(description=FLOOR)] = None
    agent_run_limit: Annotated[int | None, Field(ge=0, le=LARGEST_RUN_LIMIT, description=RUN_LIMIT)] = None


class MemberAdd(Given):
    """Who shall be in the space."""

    model_config = asked(entity="@ada", attention="mentions")

    entity: Annotated[str, Field(description="Its id, or its handle with the `@`.")]
    attention: Annotated[Attention, Field(description="What of the space reaches an agent's inbox.")] = "all"
    role: Annotated[MemberRole, Field(description="Owners and admins of a space run it.")] = "member"


class MemberChange(Given):
    """What shall be otherwise with a member."""

    model_config = asked(attention="none")

    attention: Attention | None = None
    role: MemberRole | None = None


class ReadMark(Given):
    """How far you have read."""

    model_config = asked(seq=7)

    seq: Annotated[int, Field(ge=0, le=2**62, description="The number of the last message that you have read.")]
