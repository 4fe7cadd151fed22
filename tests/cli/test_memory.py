"""`denizen memory`: what is remembered, what is wrong with it, and forgetting it."""

from __future__ import annotations

import json

import pytest

from denizen import Runtime
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from denizen.welcome import welcome
from tests.cli.conftest import Run
from tests.cli.test_forget import in_house


@pytest.fixture
def memory_ids(run: Run) -> list[str]:
    """Two memories of the owner that say the same."""

    async def live(denizen: Runtime) -> list[str]:
        world = await welcome(denizen, "Noor")
        room = await denizen.create_space("Room", [world.owner], organization=world.owner.organization_id)
        owner = Owner("user", world.owner.organization_id, user_id=world.owner.id)
        what = [Candidate("facts", text, ("m",)) for text in ("Noor plays the violin.", "The violin Noor plays.")]
        await denizen.db.write(items.remember, owner, room.id, what)
        return [each.id for each in await denizen.memories(owner=owner.key)]

    return in_house(live)


def test_it_is_listed_searched_reported_and_forgotten(run: Run, memory_ids: list[str]) -> None:
    """In one story: each command starts a house."""
    listed = json.loads(run("memory", "list", "--scope", "user", "--json").stdout)
    assert [each["id"] for each in listed] == memory_ids
    assert json.loads(run("memory", "list", "--scope", "organization", "--json").stdout) == []
    found = json.loads(run("memory", "search", "violin", "--limit", "1", "--json").stdout)
    assert len(found) == 1
    report = run("memory", "report").stdout
    newest, first = memory_ids
    told = f"duplicate, user: they have the same words Noor plays the violin. {first} The violin Noor plays. {newest}"
    assert told in " ".join(report.split())
    shown = run("memory", "list", "--limit", "1").stdout
    assert "The violin Noor plays. of @noor · facts · never used · 20" in " ".join(shown.split())
    refused = run("memory", "forget", newest)
    assert (refused.exit_code, "say --yes" in refused.output) == (1, True)
    assert "The violin Noor plays." in refused.output
    assert "Removed: 1 memories." in run("memory", "forget", memory_ids[0], "--yes").stdout
    assert [each["id"] for each in json.loads(run("memory", "list", "--json").stdout)] == memory_ids[1:]


def test_a_scope_that_does_not_exist_is_told(run: Run) -> None:
    told = run("memory", "list", "--scope", "planet")
    assert told.exit_code == 1
    assert "there is conversation, user, persona, organization" in " ".join(told.output.split())
