"""The dependencies of an agent's cycles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic_ai.models import Model

from denizen.bus.port import Bus
from denizen.clock import Clock
from denizen.consciousness.settings import Profile
from denizen.cycles.budgets import Allowance
from denizen.cycles.server_budget import ServerBudget
from denizen.cycles.settings import CycleSettings
from denizen.cycles.speaking import LiveTexts
from denizen.cycles.steps import Choose, PrepareStep
from denizen.cycles.stopping import Stop
from denizen.cycles.triage import Sieve
from denizen.ids import OrganizationId
from denizen.inbox.stop_requests import StopHints
from denizen.memory.reminding import Reminder
from denizen.models.embedders import Embedder
from denizen.models.prices import Price
from denizen.profiles.choosing import Profiling
from denizen.storage.database import Database
from denizen.telemetry.telemetry import Telemetry
from denizen.tools.background_calls import BackgroundCalls
from denizen.tools.results import StoreFile
from denizen.tools.tool import Toolbox


@dataclass(frozen=True, slots=True)
class CycleDeps:
    """The dependencies of an agent's cycles."""

    db: Database
    bus: Bus
    clock: Clock
    model: Model
    model_name: str
    toolbox: Toolbox
    """The tools in the normal profile; while it thinks, in the profile of its era."""
    small_toolbox: Toolbox
    profile: Profile
    """The profile of its next era."""
    settings: CycleSettings
    prices: Mapping[str, Price]
    background_calls: BackgroundCalls
    """Calls that continue while no cycle waits for them."""
    organization_id: OrganizationId
    stops: Mapping[str, Stop]
    models: Mapping[str, Model]
    """Every model that its routes may choose, by name."""
    default_model: str
    """The model that `default` means in a route."""
    models_revision: int
    """The revision of the operator's choice of models that these come from."""
    mcp_changes: int | None
    """How often MCP servers had changed their tools by then; None: the agent has none."""
    routes: Mapping[str, Choose]
    steps: Mapping[str, PrepareStep]
    """The functions that decide about steps, by name."""
    sieve: Sieve | None
    """Triage: decides beforehand whether it has to think."""
    allowance: Allowance | None
    """The limits that apply to it, if there are any."""
    server_budget: ServerBudget | None
    """The daily limit of the whole server, if there is one."""
    embedder: Embedder | None
    """Computes the meaning of texts, if configured."""
    reminder: Reminder | None
    """Brings up long-term memories, if configured."""
    voices: LiveTexts
    """Repeats live texts to readers who connect late."""
    stop_hints: StopHints
    """Knows which agents may have been told to stop what they write."""
    telemetry: Telemetry
    """Receives metrics and traces of its cycles."""
    profiling: Callable[[], Profiling | None]
    """Returns the current basis for choosing its profiles."""
    reflects: bool
    """Whether its cycles are reflected on."""
    store_file: StoreFile | None
    """Stores the files that its tools return."""

    @property
    def toolboxes(self) -> Mapping[Profile, Toolbox]:
        """The tools in each profile."""
        return {"normal": self.toolbox, "small": self.small_toolbox}
