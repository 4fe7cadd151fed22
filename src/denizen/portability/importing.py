"""Imports an agent with its whole history, or a space with its messages, from a file: all of it or nothing.

The file is read twice. First every line is checked, outside any transaction; then one transaction writes it.
Identifiers are kept if they are free, so that an agent and its spaces, each from its own file, are linked again;
otherwise new ones are made.

An id in a file refers to something in that file or in the importing organization, never to anything in another
organization.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from denizen.access.requesters import Requester
from denizen.agents.restrictions import DefinitionPolicy
from denizen.consciousness.recall.file_passages import hear_missing
from denizen.cycles import catching_up
from denizen.errors import InvalidInput
from denizen.files.storing import FileLimits
from denizen.ids import AgentId, OrganizationId
from denizen.portability.agent_import import check_agent, import_agent
from denizen.portability.file_lines import store_contents
from denizen.portability.imported import Imported
from denizen.portability.reading import ExportFile
from denizen.portability.space_import import check_space, import_space
from denizen.storage.database import Database


async def take_in(
    db: Database,
    by: Requester,
    policy: DefinitionPolicy,
    organization_id: OrganizationId,
    path: Path,
    *,
    limits: FileLimits,
    handle: str | None = None,
    name: str | None = None,
) -> Imported:
    """Imports the file: all of it or, with an error, nothing. For owners."""
    by.require("owner")
    source = ExportFile(path)
    header = await asyncio.to_thread(source.header)
    if header.kind == "space":
        if handle is not None:
            raise InvalidInput("A space has no handle: this file holds a space.")
        ids = await asyncio.to_thread(check_space, source)
        contents = await store_contents(db, organization_id, source, limits)
        return await db.write(import_space, by, organization_id, source, ids, contents, name=name)
    toolsets = await asyncio.to_thread(check_agent, source)
    contents = await store_contents(db, organization_id, source, limits)
    made = await db.write(
        import_agent, by, policy, organization_id, source, toolsets, contents, handle=handle, name=name
    )
    await db.write(hear_missing, AgentId(made.id))
    # Recall is complete, and faster, with its passages indexed at once; the running agents would do it as well.
    await catching_up.catch_up(db, AgentId(made.id))
    return made
