"""The model of agents that name none: the configured one, the operator's choice, or a discovered one, in that order.

The operator's choice is stored in the database, with the addresses of model servers. Other processes read it when they
next load an agent, ask a model for a panel, or sweep.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel, Field

from denizen.cycles import organization
from denizen.models.catalog import DEMO, Models
from denizen.models.discovery import ModelChoice
from denizen.models.providers import fixed_address
from denizen.shapes.vocabulary import ModelSource as Source
from denizen.spaces import directory
from denizen.storage.database import Database, Tx

FOUND_NOTHING: Final = ModelChoice(DEMO, "No model is configured: agents think with the built-in demo model.")


class ChosenModels(BaseModel, frozen=True, extra="ignore"):
    """What an operator has chosen."""

    default: str | None = None
    """The model of agents that name none."""
    addresses: Mapping[str, str] = Field(default_factory=dict[str, str])
    """Where model servers are, by the prefix of their models."""
    revision: int = 0
    """How often it was changed: agents that are awake load themselves again."""


def read(tx: Tx) -> ChosenModels:
    home = directory.first_organization(tx)
    return ChosenModels() if home is None else ChosenModels.model_validate(organization.server_models(tx, home))


def change(tx: Tx, default: str | None, addresses: Mapping[str, str]) -> ChosenModels:
    """Set the default, and add these addresses to the known ones. An empty one is removed."""
    home = directory.first_organization(tx)
    assert home is not None, "whoever chooses is in an organization"
    before = read(tx)
    kept = {prefix: address for prefix, address in {**before.addresses, **addresses}.items() if address}
    after = ChosenModels(default=default, addresses=kept, revision=before.revision + 1)
    organization.set_server_models(tx, home, after.model_dump())
    return after


@dataclass(slots=True)
class ServerModels:
    """Knows the default model, and gives the catalog the addresses of model servers."""

    models: Models
    configured: str | None
    found: ModelChoice = FOUND_NOTHING
    chosen: ChosenModels = field(default_factory=ChosenModels)

    @property
    def default(self) -> str:
        return self.configured or self.chosen.default or self.found.name

    @property
    def source(self) -> Source:
        if self.configured:
            return "configured"
        if self.chosen.default:
            return "chosen"
        return "demo" if self.found.name == DEMO else "found"

    @property
    def reason(self) -> str:
        """A sentence that says why this is the default."""
        match self.source:
            case "configured":
                return f"The model {self.default} is configured."
            case "chosen":
                return f"The model {self.default} was chosen under Administration › Models."
            case _:
                return self.found.reason

    async def refresh(self, db: Database) -> None:
        """Load what was chosen since, by this process or another."""
        self.apply(await db.read(read))

    def apply(self, chosen: ChosenModels) -> None:
        if chosen.revision == self.chosen.revision:
            return
        self.chosen = chosen
        self.models.addresses = {
            prefix: address for prefix, address in chosen.addresses.items() if not fixed_address(prefix, os.environ)
        }
