"""The client of a Denizen server for one caller: a method for each request, over REST and streams."""

from __future__ import annotations

from denizen.client.admin import Administration
from denizen.client.agents import Agents
from denizen.client.bridges import Bridges
from denizen.client.files import Files
from denizen.client.memories import Memories
from denizen.client.minds import Minds
from denizen.client.panels import Panels
from denizen.client.spaces import Spaces
from denizen.client.stances import Stances


class Client(Spaces, Files, Agents, Minds, Stances, Memories, Panels, Bridges, Administration):
    """Use it as `async with Client(url, token) as denizen`. Agents and entities are named by id or by `@handle`."""
