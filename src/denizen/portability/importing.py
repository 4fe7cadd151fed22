"""Taking in an agent with its whole life, or a space with its messages, from a file: all of it or nothing.

The file is read twice. The first time every line is checked, outside any transaction; the second time one transaction
writes it. Identifiers stay as they are where nobody has them, so that an agent and its spaces, each from its own file,
find each other again; else new ones are made.

An id in a file means something in that file or something of the organization that takes it in, and never anything of
another organization.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from denizen.access.audit import OPERATOR, Actor
from denizen.agents.restrictions import DefinitionPolicy
from denizen.consciousness.recall import settling
from denizen.errors import InvalidInput
from denizen.ids import AgentId, OrganizationId
from denizen.portability.imported import Imported
from denizen.portability.lives import check_agent, import_agent
from denizen.portability.reading import Source
from denizen.portability.spaces import check_space, import_space
from denizen.storage.database import Database


async def take_in(
    db: Database,
    policy: DefinitionPolicy,
    organization_id: OrganizationId,
    path: Path,
    *,
    handle: str | None = None,
    name: str | None = None,
    by: Actor = OPERATOR,
) -> Imported:
    """What the file holds is here, all of it or, with an error, nothing."""
    source = Source(path)
    header = await asyncio.to_thread(source.header)
    if header.kind == "space":
        if handle is not None:
            raise InvalidInput("A space has no handle: this file holds a space.")
        ids = await asyncio.to_thread(check_space, source)
        return await db.write(import_space, organization_id, source, ids, name=name, by=by)
    toolsets = await asyncio.to_thread(check_agent, source)
    made = await db.write(import_agent, policy, organization_id, source, toolsets, handle=handle, name=name, by=by)
    # What it can recall is found without much searching; lives in the house would see to it as well.
    await settling.settle(db, AgentId(made.id))
    return made
