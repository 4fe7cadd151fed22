"""Rules about who speaks count the role of the token, not only that of its person."""

from __future__ import annotations

import pytest

from denizen import call, reply, tool
from denizen.access import tokens
from denizen.access.roles import Role
from denizen.trust.policy import EffectRule, EffectSettings
from tests.server.conftest import served
from tests.world import open_world


@pytest.mark.parametrize(("role", "told"), [("owner", "done"), ("member", "refused")])
async def test_a_token_with_a_lesser_role_does_not_speak_as_an_owner(ready_sqlite_url: str, role: Role, told: str):
    @tool
    def deploy(version: str) -> str:
        """Deploy a version."""
        return "done"

    rules = (EffectRule(speakers=("owner",), do="allow"), EffectRule(tool="deploy", do="deny"))
    async with open_world(ready_sqlite_url) as world, served(world) as house:
        noor = await world.person("Noor")
        turns = call("deploy", version="2"), reply("Well."), "Tried to deploy."
        ada = await world.agent("Ada", *turns, tools=[deploy], effects=EffectSettings(rules=rules))
        ops = await world.space("Ops", noor, ada)
        _, secret = await world.denizen.db.write(lambda tx: tokens.create(tx, noor.id, "A program", role=role))
        said = await house.client.post(
            f"/api/spaces/{ops.id}/messages",
            headers={"Authorization": f"Bearer {secret}"},
            json={"text": "Deploy it.", "metadata": {"said_as": "owner"}},
        )
        assert said.status_code == 201
        await world.run()
        [result] = [each for each in await world.history(ada) if each.startswith("results: deploy")]
    assert (told == "done") == (result == "results: deploy → done")
