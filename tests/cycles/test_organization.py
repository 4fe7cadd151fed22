"""What holds for all of an organization."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import pytest

from denizen.access.audit import Actor
from denizen.access.requesters import Requester
from denizen.cycles import organization
from denizen.cycles.budgets import BudgetSettings
from denizen.cycles.organization import OrganizationSettings
from denizen.errors import InvalidInput, NotFound
from denizen.ids import OrganizationId, new_id
from tests.world import World


async def test_settings_are_kept_beside_the_budget(world: World) -> None:
    home = await world.denizen.organizations.create("Home")
    db = world.denizen.db
    assert await db.read(organization.settings_of, home.id) == OrganizationSettings()

    await world.denizen.budgets.set(home, dollars_per_day=5)
    changed = await db.write(organization.change_settings, home.id, {"spaces_by": "admin"})
    budget = BudgetSettings(dollars_per_day=Decimal(5))
    assert changed == OrganizationSettings(budget=budget, spaces_by="admin")
    assert await world.denizen.budgets.get(home) == budget

    await db.write(organization.change_settings, home.id, {"budget": {"tokens": 1_000}})
    assert await world.denizen.budgets.get(home) == BudgetSettings(tokens=1_000)
    assert (await db.read(organization.settings_of, home.id)).spaces_by == "admin"

    assert await db.write(organization.change_settings, home.id, {"budget": None}) == OrganizationSettings(
        spaces_by="admin"
    )
    assert await db.write(organization.change_settings, home.id, {"spaces_by": None}) == OrganizationSettings()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"space_by": "admin"}, "no setting 'space_by'. Did you mean 'spaces_by'"),
        ({"colour": None}, "no setting 'colour'"),
        ({"spaces_by": "everyone"}, "spaces_by: "),
        ({"budget": {"dollars": -1}}, "budget.dollars: "),
        ({"spaces_by": "admin", "budget": {"euros": 1}}, "budget.euros: "),
    ],
)
async def test_what_is_no_setting_is_refused_and_changes_nothing(
    small_world: World, changes: dict[str, object], why: str
) -> None:
    home = await small_world.denizen.organizations.create("Home")
    with pytest.raises(InvalidInput, match=why):
        await small_world.denizen.db.write(organization.change_settings, home.id, changes)
    assert await small_world.denizen.db.read(organization.settings_of, home.id) == OrganizationSettings()


async def test_nobody_changes_another_organization(small_world: World) -> None:
    """Neither what holds for all of it nor its budget, even as an owner at home."""
    world = small_world
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor = await world.person("Noor", organization=home)
    owner = Requester(Actor(noor.id), home.id, "owner")
    with pytest.raises(NotFound):
        await world.denizen.db.write(partial(organization.change, name="Ours"), owner, elsewhere.id)
    with pytest.raises(NotFound):
        await world.denizen.db.write(organization.set_budget, owner, elsewhere.id, BudgetSettings(tokens=1))
    assert [each.name for each in await world.denizen.organizations.list()] == ["Home", "Elsewhere"]
    assert await world.denizen.budgets.get(elsewhere) is None


async def test_there_has_to_be_an_organization(small_world: World) -> None:
    nowhere = OrganizationId(new_id())
    with pytest.raises(NotFound):
        await small_world.denizen.db.read(organization.settings_of, nowhere)
    with pytest.raises(NotFound):
        await small_world.denizen.db.write(organization.change_settings, nowhere, {})
