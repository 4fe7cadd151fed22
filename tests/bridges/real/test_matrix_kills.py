"""Denizen and the homeserver are killed while messages are carried: none is lost, none is there twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen import Runtime
from denizen.access.vault import new_key
from denizen.checker import check_database
from tests.bridges.real.carrying import SAID, RoomCarrying, carry
from tests.bridges.real.synapse import AS_TOKEN, HS_TOKEN, SERVER, Synapse
from tests.crash.killing import KILLED, lived

WRITTEN = ("One", "Two", "Three")
POINTS = [
    "bridge.received",
    "commit:take_in",
    "committed:take_in",
    "bridge.begun",
    "bridge.sent",
    "commit:end_sending",
    "committed:end_sending",
]


@pytest.mark.parametrize("point", POINTS)
async def test_both_sides_killed_at(point: str, ready_sqlite_url: str, tmp_path: Path, synapse: Synapse) -> None:
    alias = f"kills-{point.replace(':', '-').replace('.', '-').replace('_', '-')}"
    room, key = synapse.room(alias, "Eve"), new_key()
    async with Runtime(ready_sqlite_url, secret_key=key) as denizen:
        noor = await denizen.people.create("Noor")
        pier = await denizen.spaces.create("Pier", [noor])
        await denizen.secrets.set("AS", AS_TOKEN)
        await denizen.secrets.set("HS", HS_TOKEN)
        settings = {"homeserver": synapse.url, "as_token": "${AS}", "hs_token": "${HS}", "allow_private": ["127.0.0.1"]}
        bridge, _ = await denizen.bridges.create("Matrix", "matrix", settings)
        await denizen.bridges.connect(bridge, pier, f"#{alias}:{SERVER}")
        await denizen.run_until_idle()
    for at, text in enumerate(WRITTEN):
        synapse.send("Eve", room, "m.room.message", {"msgtype": "m.text", "body": text}, f"{alias}-{at}")
    wanted = 1 + len(SAID) + len(WRITTEN)
    life = RoomCarrying(ready_sqlite_url, key, noor.id, pier.id, bridge.id, wanted, point)
    assert lived(carry, life) == KILLED, f"{point} was never passed"
    synapse.kill()
    synapse.start()
    assert lived(carry, RoomCarrying(ready_sqlite_url, key, noor.id, pier.id, bridge.id, wanted, None)) == 0
    async with Runtime(ready_sqlite_url, secret_key=key) as denizen:
        messages = (await denizen.spaces.messages(pier))[1:]
        assert sorted(each.text for each in messages) == sorted((*SAID, *WRITTEN))
        assert [each.text for each in messages if each.author_name == "Eve"] == list(WRITTEN)
        assert await check_database(denizen.db) == []
    found, _ = synapse.timeline("Eve", room)
    ours = [each["content"] for each in found if each["sender"] == f"@denizen_noor:{SERVER}"]
    there = [each["body"] for each in ours if "body" in each]
    assert there == list(SAID)
