"""Creates the first small world in an empty database, so that there is someone to talk to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import func, literal, select

from denizen.access import roles
from denizen.agents import registry
from denizen.agents.private_spaces import private_space
from denizen.agents.restrictions import UNRESTRICTED_PARTS_ONLY
from denizen.app import Runtime
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.spaces.handles import handle_from
from denizen.storage.database import Statement, Tx

AGENTS: Final = {
    "Ada": registry.define(
        purpose="Welcomes people, remembers things for them, and passes messages on.",
        instructions="You look after this house. You welcome people, keep in mind what they ask you to remember, and "
        "pass messages on to the others. You are warm and brief.",
    ),
    "Bo": registry.define(
        purpose="Answers technical questions, counts and checks things.",
        instructions="You are an engineer: careful, precise, a little dry. You answer technical questions, count and "
        "check things, and say so when you do not know.",
    ),
}


_alone = Statement(
    sqlite=select(literal(1)), postgresql=select(func.pg_advisory_xact_lock(int.from_bytes(b"welcome", "big")))
)


@dataclass(frozen=True, slots=True)
class World:
    """The server's owner, and whether the world was created just now."""

    owner: Entity
    new: bool


async def set_up_home(runtime: Runtime, owner_name: str) -> World:
    """Returns the existing world or, in an empty database, creates an owner, two agents and three spaces."""
    return await runtime.db.write(_create, owner_name)


def _create(tx: Tx, owner_name: str) -> World:
    found = directory.list_organizations(tx)
    if not found:
        # Instances that start together find the same empty database. SQLite allows only one writer anyway.
        tx.one(_alone)
        found = directory.list_organizations(tx)
    if found:
        return World(directory.get_entity(tx, roles.first_owner(tx, found[0].id)), new=False)
    home = directory.create_organization(tx, "Home")
    owner = directory.create_entity(tx, home.id, "human", name=owner_name, handle=handle_from(owner_name))
    agents = [
        registry.create(
            tx,
            UNRESTRICTED_PARTS_ONLY,
            home.id,
            name=name,
            handle=handle_from(name),
            definition=definition,
        )
        for name, definition in AGENTS.items()
    ]
    lobby = directory.create_space(tx, home.id, name="Lobby")
    for member in (owner, *(agent.entity for agent in agents)):
        directory.join(tx, lobby.id, member.id)
    for agent in agents:
        private_space(tx, owner, agent)
    return World(owner, new=True)
