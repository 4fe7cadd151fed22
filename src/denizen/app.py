"""The door to everything in Python: one `Runtime` holds the database, the bus and the living agents."""

from __future__ import annotations

from denizen.doors.agents import Agents
from denizen.doors.custody import Custody
from denizen.doors.intentions import Intentions
from denizen.doors.memories import Remembering
from denizen.doors.minds import Minds
from denizen.doors.model_setup import ModelSetup
from denizen.doors.panels import Panels
from denizen.doors.stances import Stances


class Runtime(Agents, Panels, Remembering, Stances, Intentions, Minds, Custody, ModelSetup):
    """A house for agents and the people they live with. Use it as `async with Runtime(...) as denizen`.

    Agents think while `run_until_idle()` runs, or inside `async with denizen.living()`. How it is wired stands in
    `doors/wiring.py`; what can be done with it, by subject, in the modules beside that one.
    """
