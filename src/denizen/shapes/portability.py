"""The result of an import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from denizen.shapes.examples import ADA, example
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import ExportKind


class ImportedOut(Value):
    """An imported agent or space."""

    model_config = example(
        id=ADA,
        counts={"agent": 1, "cycle": 12, "entry": 61},
        secrets=["SEARCH_KEY"],
        dangers=[],
        unpriced=[],
        absent=[],
    )

    kind: Open[ExportKind]
    id: str
    name: str
    handle: Annotated[str | None, Field(description="Of an agent.")]
    counts: Annotated[Mapping[str, int], Field(description="Lines by their kinds.")]
    secrets: Annotated[list[str], Field(description="Names of secrets that the agent uses and that you have to store.")]
    dangers: Annotated[
        list[str], Field(description="Parts of its definition that start programs or reach private addresses.")
    ]
    unpriced: Annotated[
        list[str],
        Field(description="Models without a known price, where the agent has a budget in dollars: it cannot think."),
    ]
    people: Annotated[list[str], Field(description="Handles of people and services that were created.")]
    absent: Annotated[
        list[str], Field(description="Handles of agents that do not exist here; their messages were imported.")
    ]
