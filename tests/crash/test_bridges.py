"""A process killed while it carries messages to and from a room elsewhere loses none, and none is there twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen import Runtime
from denizen.checker import check_database
from tests.crash.bridging import BOOK, ROOM, SAID, WRITTEN, Carrying, arrived, carry
from tests.crash.killing import KILLED, lived

POINTS = [
    "commit:post_message",
    "committed:post_message",
    "bridge.received",
    "commit:take_in",
    "committed:take_in",
    "commit:begin_sending",
    "committed:begin_sending",
    "bridge.begun",
    "bridge.sent",
    "commit:end_sending",
    "committed:end_sending",
]


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at(point: str, database_url: str, tmp_path: Path) -> None:
    (tmp_path / "sent").touch()
    async with Runtime(database_url, bridge_kinds=[BOOK]) as denizen:
        noor = await denizen.people.create("Noor")
        pier = await denizen.spaces.create("Pier", [noor])
        bridge, _ = await denizen.bridges.create("Book", "book", {"folder": str(tmp_path)})
        await denizen.bridges.connect(bridge, pier, ROOM)
    killed = lived(carry, Carrying(database_url, noor.id, pier.id, bridge.id, point))
    assert killed == KILLED, f"{point} was never passed"
    assert lived(carry, Carrying(database_url, noor.id, pier.id, bridge.id, None)) == 0
    async with Runtime(database_url, bridge_kinds=[BOOK]) as denizen:
        messages = (await denizen.spaces.messages(pier))[1:]
        assert sorted(each.text for each in messages) == sorted((*SAID, *WRITTEN))
        assert [each.text for each in messages if each.author_name == "Eve"] == list(WRITTEN)
        assert arrived(tmp_path) == list(SAID)
        assert await check_database(denizen.db) == []
