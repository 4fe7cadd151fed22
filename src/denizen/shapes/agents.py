"""Agents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue

from denizen.shapes.examples import ADA, example
from denizen.shapes.value import NextAfter, Open, Value
from denizen.shapes.vocabulary import AgentState, BudgetScope, StatusAction, StatusCause


class AgentTrouble(Value):
    """Why an agent cannot think."""

    model_config = example(
        text="OpenAI rejected the API key of Ada. Check it under Administration › Keys; Ada then answers by itself.",
        actions=["try_again", "settings"],
    )

    cause: Open[StatusCause]
    text: Annotated[str, Field(description="What prevents it and who can fix it, for people.")]
    actions: Annotated[list[Open[StatusAction]], Field(description="What a person can do, as in a status.")]
    retry_at: Annotated[datetime | None, Field(description="When it tries again by itself, if that is known.")]


class AgentOut(Value):
    """An agent of your organization."""

    model_config = example(id=ADA, model="demo")

    id: str
    handle: str
    name: str
    status: Open[AgentState]
    model: str
    purpose: Annotated[str, Field(description="What it is for, in a line for people; empty: none was written.")] = ""
    trouble: Annotated[AgentTrouble | None, Field(description="Why it cannot think; null: it can.")] = None


class RestingOut(Value):
    """An agent that is suspended because its budget is used up."""

    scope: Open[BudgetScope]
    until: Annotated[datetime | None, Field(description="Null: until the budget is raised.")]


class AgentDetail(AgentOut):
    """An agent; for admins, with its definition."""

    model_config = example(id=ADA, model="demo", definition={"instructions": "You look after this house.\nBe brief."})

    created_at: datetime
    cycles: Annotated[int, Field(description="The number of cycles.")]
    resting: Annotated[RestingOut | None, Field(description="If its budget is used up: until when it is suspended.")]
    version: Annotated[int, Field(description="The version of the definition; each change increases it.")]
    definition: Annotated[
        Mapping[str, JsonValue] | None,
        Field(
            description="For admins: the fields that differ from the defaults. `•••` replaces possible secrets; sent "
            "back unchanged, they stay as they are."
        ),
    ]


class ListedAgent(AgentOut):
    """An agent in a list."""

    last_cycle_at: Annotated[datetime | None, Field(description="When it was last awake; null: never yet.")]


class AgentPage(Value):
    """Agents of your organization that were not deleted, by handle."""

    agents: list[ListedAgent]
    next: NextAfter[str] = None


class ToolOut(Value):
    """A tool that agents can use by name."""

    model_config = example(name="look_up", description="Look something up in the handbook.")

    name: str
    description: str


class ToolList(Value):
    """Tools of this server, in addition to the built-in ones."""

    tools: list[ToolOut]
