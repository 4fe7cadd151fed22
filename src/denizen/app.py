"""The door to everything in Python: one `Runtime` holds the database, the bus and the living agents."""

from __future__ import annotations

from denizen.api.admin import Administration
from denizen.api.agents import Agents
from denizen.api.intentions import Intentions
from denizen.api.memories import Remembering
from denizen.api.minds import Minds
from denizen.api.model_setup import ModelSetup
from denizen.api.panels import Panels
from denizen.api.stances import Stances


class Runtime(Agents, Panels, Remembering, Stances, Intentions, Minds, Administration, ModelSetup):
    """A house for agents and the people they live with. Use it as `async with Runtime(...) as denizen`.

    Agents think while `run_until_idle()` runs, or inside `async with denizen.living()`. How it is wired stands in
    `api/wiring.py`; what can be done with it, by subject, in the modules beside that one.
    """
