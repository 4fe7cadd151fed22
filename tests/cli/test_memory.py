"""`denizen memory`: what is remembered, what is wrong with it, and forgetting it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from denizen.ids import AgentId
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from denizen.spaces.directory import Entity
from tests.cli.conftest import Run
from tests.cli.terminals import Terminal, elsewhere

pytestmark = pytest.mark.usefixtures("ready_home")

ONE, OTHER = "Noor plays the violin.", "The violin Noor plays."


async def remember(terminal: Terminal) -> tuple[Entity, list[str]]:
    """Two memories of the owner that say the same, and then one of each other kind, two of them of Sam."""
    denizen, owner = terminal.house.runtime, terminal.house.world.owner
    home, room = owner.organization_id, await denizen.spaces.create("Room", [owner])
    sam = await denizen.people.create("Sam")
    attic = await denizen.spaces.create("Attic", [sam])
    ada = AgentId((await denizen.people.find("ada")).id)
    for owned, space, *texts in (
        (Owner("user", home, user_id=owner.id), room, ONE, OTHER),
        (Owner("user", home, user_id=sam.id), attic, "Sam hides a violin."),
        (Owner("persona", home, user_id=sam.id, agent_id=ada), attic, "Sam calls Ada a violin."),
        (Owner("organization", home), room, "All hear the violin."),
        (Owner("conversation", home, space_id=room.id), room, "The violin was out of tune."),
        (Owner("conversation", home, space_id=attic.id), attic, "The violin is in the attic."),
    ):
        what = [Candidate("facts", text, (f"of {owned.key}",)) for text in texts]
        await denizen.db.write(items.remember, owned, space.id, what)
    return sam, [each.id for each in await denizen.memory.list(owner=f"user:{owner.id}")]


def texts(found: list[dict[str, Any]]) -> list[str]:
    return [each["text"] for each in found]


async def test_it_is_listed_searched_reported_and_forgotten(terminal: Terminal) -> None:
    memory, told = partial(terminal, "memory"), partial(terminal.told, "memory")
    _, [newest, first] = await remember(terminal)
    me = f"@{terminal.house.world.owner.handle}"
    listed = await told("list", "--scope", "user", "--person", me)
    assert [(each["id"], each["whose"], each["confidence"]) for each in listed] == [
        (newest, f"of {me}", 1.0),
        (first, f"of {me}", 1.0),
    ]
    assert [(each["whose"], each["text"]) for each in await told("list", "--scope", "persona")] == [
        ("between @sam and @ada", "Sam calls Ada a violin.")
    ]
    assert "of the conversation 'Room'" in {each["whose"] for each in await told("list", "--limit", "2")}
    shown = " ".join((await memory("list", "--person", me, "--limit", "1")).stdout.split())
    assert f"{OTHER} of {me} · facts · never used · 20" in shown
    assert len(await told("search", "violin", "--scope", "user", "--limit", "1")) == 1
    assert texts(await told("search", "hear", "--scope", "organization")) == ["All hear the violin."]

    report = " ".join((await memory("report")).stdout.split())
    assert f"duplicate, user: they have the same words {ONE} {first} {OTHER} {newest}" in report
    assert (await told("report"))["counts"] == {"user": 3, "persona": 1, "organization": 1, "conversation": 2}

    refused = await memory("forget", newest)
    assert (refused.exit_code, "Confirm with --yes" in refused.stderr) == (1, True)
    assert OTHER in refused.stdout
    assert await told("forget", newest, "--dry-run") == {"removed": {"memories": 1}, "dry_run": True}
    assert "Removed: 1 memories." in (await memory("forget", newest, "--yes")).stdout
    assert [each["id"] for each in await told("list", "--scope", "user", "--person", me)] == [first]
    again = await memory("forget", newest, "--yes")
    assert (again.exit_code, "[not_found]" in again.stderr) == (1, True)


async def test_its_history_is_shown_compared_and_reverted(terminal: Terminal) -> None:
    """A revert is one more line of the history."""
    memory, told = partial(terminal, "memory"), partial(terminal.told, "memory")
    owner = terminal.house.world.owner
    _, [_, first] = await remember(terminal)
    now = await terminal.house.runtime.memory.correct(first, "Noor plays the cello.", by=owner)
    shown = " ".join((await memory("log", now.id)).stdout.split())
    assert f"1. {ONE} 20" in shown
    assert "· learned · from 1 message 2. Noor plays the cello. 20" in shown
    assert f"· corrected · by @{owner.handle} · current" in shown
    assert "Noor plays the [-violin.-]{+cello.+}" in (await memory("diff", now.id)).stdout
    assert (await told("diff", now.id, "2", "1"))["difference"][-1] == {"kind": "added", "text": "violin."}
    none = await memory("diff", now.id, "1", "7")
    assert (none.exit_code, "There is no version 7. There are 2" in none.stderr) == (1, True)
    assert texts(await told("revert", now.id, "1")) == [ONE]
    assert [each["kind"] for each in (await told("log", first))["versions"]] == ["learned", "corrected", "reverted"]
    again = await memory("revert", first, "1")
    assert (again.exit_code, "This version is the current text." in again.stderr) == (1, True)


async def test_everyone_is_told_what_is_for_them(environ: dict[str, str], tmp_path: Path) -> None:
    """Also at the server's own machine. An admin forgets what they may not read; others what is of them."""
    async with elsewhere(tmp_path / "elsewhere") as there:
        here = Terminal(there.house, None)
        sam, [_, mine] = await remember(there)
        listed = texts(await there.told("memory", "list"))
        assert texts(await here.told("memory", "list")) == listed
        assert listed == [
            "The violin was out of tune.",
            "All hear the violin.",
            "Sam calls Ada a violin.",
            OTHER,
            ONE,
        ]
        found = texts(await there.told("memory", "search", "violin"))
        assert set(found) == {ONE, OTHER, "All hear the violin.", "The violin was out of tune."}
        assert texts(await here.told("memory", "search", "violin")) == found

        sams = await there.of(sam)
        known = await sams.told("memory", "list")
        assert texts(known) == [
            "The violin is in the attic.",
            "All hear the violin.",
            "Sam calls Ada a violin.",
            "Sam hides a violin.",
        ]
        assert "[not_allowed]" in (await sams("memory", "report")).stderr
        assert "[not_found]" in (await sams("memory", "forget", mine, "--yes")).stderr
        own = [each["id"] for each in known if each["user_id"] == sam.id]
        assert await sams.told("memory", "forget", own[0], "--yes") == {"removed": None, "dry_run": False}
        assert "Removed: 1 memories." in (await there("memory", "forget", own[1], "--yes")).stdout
        assert await sams.told("memory", "list", "--person", "@sam") == []


async def test_conversations_that_one_is_in_are_searched(terminal: Terminal) -> None:
    sam, _ = await remember(terminal)
    searched = ("memory", "search", "violin", "--scope", "conversation")
    assert texts(await terminal.told(*searched)) == ["The violin was out of tune."]
    if terminal.is_elsewhere:
        assert texts(await (await terminal.of(sam)).told(*searched)) == ["The violin is in the attic."]


@pytest.mark.parametrize("command", ["list", "search x"])
def test_a_scope_that_does_not_exist_is_told(run: Run, command: str) -> None:
    told = run("memory", *command.split(), "--scope", "planet")
    assert told.exit_code == 1
    assert "there is conversation, user, persona, organization" in " ".join(told.output.split())
