"""The table of who may have what remembered, row by row, where it is written and where it is brought back."""

from __future__ import annotations

from denizen import forever
from denizen.access import roles
from denizen.ids import SpaceId
from denizen.memory import permissions, sinks
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from denizen.memory.policy import Policy, Scope, Scopes
from denizen.memory.sinks import PassMemories, Share
from denizen.memory.stored_policies import policy_of
from denizen.spaces.directory import Space
from denizen.storage.database import Tx
from tests.memory.conftest import answering
from tests.memory.policy_page import ANY, DIMENSIONS, Case, merged
from tests.world import World

SAID = {"–": None, "on": True, "off": False}


def some_case(row: Case) -> Case:
    """A case of the row: where something makes no difference, the last of what it may be."""
    return tuple(values[-1] if value == ANY else value for value, values in zip(row, DIMENSIONS, strict=True))


async def test_every_row_of_the_table_holds_where_it_is_written_and_where_it_is_brought_back(small_world: World):
    """Asked of the database: policies and switches as they are stored, messages and roles as they are."""
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada", model=forever(answering))
    sam = await small_world.person("Sam")
    for row, decision in merged().items():
        scope, said, speaks, named, role, share, off = some_case(row)
        which: Scope = next(each for each in ("conversation", "user", "persona", "organization") if each == scope)
        await small_world.denizen.db.write(roles.set_role, sam.id, role)  # pyright: ignore[reportArgumentType]
        room = await small_world.space("Room", sam, ada)
        policy = Policy(scopes=Scopes(**{scope: SAID[said]}), shareWithOrganization=share == "yes" or None)
        await small_world.denizen.memory.set_policy(room, policy)
        await small_world.denizen.memory.change_switches({scope: off == "no"})
        who = sam if speaks == "yes" else ada
        metadata = {"memory": {"organization": True}} if named == "yes" else None
        posted = await small_world.say(who, "Tea is at four.", room, metadata=metadata)
        owner = Owner(which, noor.organization_id, room.id, sam.id, ada.id)
        written, found = await small_world.denizen.db.read(_asked, room, owner, posted.id)
        assert (written, found) == (decision.write == "yes", decision.read == "yes"), row
        await small_world.denizen.memory.change_switches({scope: None})


def _asked(tx: Tx, room: Space, owner: Owner, message_id: str) -> tuple[bool, bool]:
    """Whether something that rests on the message would be written there, and whether it would be brought back."""
    share = Share(owner, (Candidate("facts", "Tea is at four.", (message_id,)),))
    batch = PassMemories(room.organization_id, room.id, (message_id,), "Tea.", "{}", (share,))
    allowed = sinks.allowed(tx, batch)
    assert owner.agent_id is not None
    readable = permissions.readable(tx, owner.agent_id, [room.id], [message_id])
    written = allowed is not None and any(each.candidates for each in allowed.shares)
    return written, owner.scope in {each.scope for each in readable.owners}


async def test_a_policy_that_cannot_be_read_opts_the_conversation_out(small_world: World):
    from sqlalchemy import text

    from denizen.storage.database import statement

    noor = await small_world.person("Noor")
    room = await small_world.space("Room", noor)
    await small_world.denizen.memory.set_policy(room, Policy(enabled=True))
    broken = statement(text('UPDATE memory_policies SET policy = \'{"enabled": "perhaps"}\''))
    await small_world.denizen.db.write(lambda tx: tx.run(broken))
    assert (await small_world.denizen.db.read(policy_of, SpaceId(room.id))).enabled is False
