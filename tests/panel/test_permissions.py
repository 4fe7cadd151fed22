"""Who may create and change panels, their advisors and rounds, from Python and over HTTP alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from denizen import IdempotencyKeyReused, NotAllowed, NotFound, Requester
from denizen.cycles import organization
from denizen.ids import SpaceId, new_id
from denizen.models.scripted import scripted
from tests.access.test_space_changes import requester
from tests.world import World


async def test_a_person_who_creates_a_panel_owns_it(small_world: World) -> None:
    noor, sam = await small_world.person("Noor"), await small_world.person("Sam")
    board = await small_world.denizen.panels.create("Board", [sam], by=requester(noor))
    members = await small_world.denizen.spaces.members(board.space)
    assert [(each.entity.name, each.role) for each in members] == [("Noor", "owner"), ("Sam", "member")]


async def test_the_organization_says_who_may_create_panels(small_world: World) -> None:
    """A panel is a space: the same people may create both."""
    noor = await small_world.person("Noor")
    await small_world.denizen.db.write(organization.change_settings, noor.organization_id, {"spaces_by": "admin"})
    with pytest.raises(NotAllowed, match="Only admins"):
        await small_world.denizen.panels.create("Board", by=requester(noor))


async def test_a_panel_is_created_once(small_world: World) -> None:
    """Its advisors, too. The id of a panel with another name is refused."""
    denizen, noor, id = small_world.denizen, await small_world.person("Noor"), SpaceId(new_id())
    first, again = [
        await denizen.panels.create("Board", advisors=["Kai", "Lena"], by=requester(noor), id=id) for _ in range(2)
    ]
    assert first == again
    assert [each.name for each in await denizen.advisors.list(again)] == ["Kai", "Lena"]
    with pytest.raises(IdempotencyKeyReused):
        await denizen.panels.create("Other board", by=requester(noor), id=id)


async def test_only_people_in_a_panel_change_it(small_world: World) -> None:
    """For others it does not exist, not even for an owner of the organization. Guests who are in it may not."""
    small_world.denizen.model_catalog.register("echo", scripted("Yes."))
    denizen, noor, olga = small_world.denizen, await small_world.person("Noor"), await small_world.person("Olga")
    board = await denizen.panels.create("Board", [noor], advisors=["Kai", "Lena"], model="echo")
    kai, lena = await denizen.advisors.list(board)
    asked = await denizen.panels.ask(board, noor, "Shall we?")

    changes: list[Callable[[Requester], Awaitable[object]]] = [
        lambda by: denizen.panels.edit(board, synthesis="always", by=by),
        lambda by: denizen.panels.edit(board, name="Round table", by=by),
        lambda by: denizen.advisors.add(board, "Mo", by=by),
        lambda by: denizen.advisors.edit(board, kai, group="bold", by=by),
        lambda by: denizen.advisors.reorder(board, [lena, kai], by=by),
        lambda by: denizen.advisors.set_group_active(board, "bold", False, by=by),
        lambda by: denizen.advisors.import_document(board, {"advisors": [{"name": "Pia"}]}, by=by),
        lambda by: denizen.advisors.set_state_of_mind(board, lena, mood="curious", by=by),
        lambda by: denizen.advisors.reset_state_of_mind(board, lena, by=by),
        lambda by: denizen.rounds.cancel(asked, by=by),
        lambda by: denizen.rounds.retry(asked, by=by),
        lambda by: denizen.advisors.remove(board, kai, by=by),
    ]
    for change in changes:
        with pytest.raises(NotFound, match="panel"):
            await change(requester(olga, "owner"))
        with pytest.raises(NotAllowed):
            await change(requester(noor, "guest"))
        await change(requester(noor))
    assert (await denizen.panels.get(board)).name == "Round table"
    assert [each.name for each in await denizen.advisors.list(board)] == ["Lena", "Mo", "Pia"]
