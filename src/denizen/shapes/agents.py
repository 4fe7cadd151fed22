"""Agents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue

from denizen.shapes.examples import ADA, NINE, given
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import AgentState, BudgetScope, StatusAction, StatusCause


class AgentTrouble(Value):
    """Why an agent cannot think."""

    model_config = given(
        cause="key",
        text="OpenAI rejected the API key of Ada. Check it under Administration › Keys; Ada then answers by itself.",
        actions=["try_again", "settings"],
        retry_at="2026-01-05T09:10:00Z",
    )

    cause: Open[StatusCause]
    text: Annotated[str, Field(description="What prevents it and who can fix it, for people.")]
    actions: Annotated[list[Open[StatusAction]], Field(description="What a person can do, as in a status.")]
    retry_at: Annotated[datetime | None, Field(description="When it tries again by itself, if that is known.")]


_AGENT = {
    "id": ADA,
    "handle": "ada",
    "name": "Ada",
    "status": "sleeping",
    "model": "demo",
    "about": "You look after this house.",
}


class AgentOut(Value):
    """An agent of your organization."""

    model_config = given(**_AGENT)

    id: str
    handle: str
    name: str
    status: Open[AgentState]
    model: str
    about: Annotated[str, Field(description="The beginning of its instructions.")]
    trouble: Annotated[AgentTrouble | None, Field(description="Why it cannot think; null: it can.")] = None


class RestingOut(Value):
    """That its budget has suspended an agent."""

    scope: Open[BudgetScope]
    until: Annotated[datetime | None, Field(description="Null: until the budget is raised.")]


class AgentDetail(AgentOut):
    """An agent; for admins, with its definition."""

    model_config = given(
        **_AGENT,
        created_at=NINE,
        cycles=12,
        resting=None,
        version=3,
        definition={"model": "demo", "instructions": "You look after this house.\nBe brief."},
    )

    created_at: datetime
    cycles: Annotated[int, Field(description="How many it has lived.")]
    resting: Annotated[RestingOut | None, Field(description="Where its budget has suspended it.")]
    version: Annotated[int, Field(description="Of the definition; it grows with each change.")]
    definition: Annotated[
        Mapping[str, JsonValue] | None,
        Field(
            description="For admins: what is not as by default. `•••` stands for what may be a secret; sent back as it "
            "is, it stays what it was."
        ),
    ]


class ListedAgent(AgentOut):
    """An agent in a list of them."""

    model_config = given(**_AGENT, last_cycle_at=NINE)

    last_cycle_at: Annotated[datetime | None, Field(description="When it was last awake; null: never yet.")]


class AgentPage(Value):
    """Agents of your organization that are not dead, by handle."""

    agents: list[ListedAgent]
    next: Annotated[str | None, Field(description="Give it as `after` for the next page; null: there is none.")] = None


class ToolOut(Value):
    """A tool that agents here can be given by its name."""

    model_config = given(name="look_up", description="Look something up in the handbook.")

    name: str
    description: str


class ToolList(Value):
    """Tools of this server, beside those that every agent has."""

    tools: list[ToolOut]
