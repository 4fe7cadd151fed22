"""Both sides are killed while an agent's text is shown in the room as it is written: it is there once, and whole."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass

import pytest
from sqlalchemy import select

from denizen import Runtime, failpoints, reply
from denizen.access.vault import new_key
from denizen.bridges import sending
from denizen.bridges.drafts import WRITING
from denizen.checker import check_database
from denizen.ids import BridgeId, SpaceId
from denizen.models.scripted import ScriptedModel, Turn, forever
from denizen.storage.database import Tx, statement, values
from denizen.storage.schema import drafts
from tests.bridges.real.synapse import AS_TOKEN, HS_TOKEN, SERVER, Synapse
from tests.crash.killing import KILLED, ended, processes
from tests.crash.thinking import PACE

TEXT = "At noon, from the old pier, as always on a day like this, unless the wind is from the north."
POINTS = [
    "commit:begin_draft",
    "committed:begin_draft",
    "bridge.draft_shown",
    "commit:note_draft",
    "committed:note_draft",
    "bridge.begun",
    "bridge.sent",
    "commit:end_sending",
    "committed:end_sending",
]


@dataclass(frozen=True)
class Writing:
    """A process in which an agent writes an answer, and where it is killed."""

    url: str
    secret_key: str
    pier: SpaceId
    bridge: BridgeId
    point: str | None


def model() -> ScriptedModel:
    async def pause() -> None:
        await asyncio.sleep(0.25)

    def decide(messages: object, _info: object) -> Turn:
        return "Told Eve." if TEXT in str(messages) else reply(TEXT)

    return forever(decide, pause=pause, record=False)


def write(life: Writing) -> None:
    if life.point is not None:
        failpoints.arm(life.point, lambda: os.kill(os.getpid(), signal.SIGKILL))
    asyncio.run(_write(life))


async def _write(life: Writing) -> None:
    async with (
        Runtime(life.url, pace=PACE, secret_key=life.secret_key, models={"python:ada": model()}) as denizen,
        denizen.living(),
    ):
        while not await _is_done(denizen, life):  # noqa: ASYNC110  the database says it
            await asyncio.sleep(0.05)


async def _is_done(denizen: Runtime, life: Writing) -> bool:
    said = [each.text for each in await denizen.spaces.messages(life.pier)]
    waiting = await denizen.db.read(sending.next_at, life.bridge)
    return TEXT in said and waiting is None and not await denizen.db.read(_drafts)


def _drafts(tx: Tx) -> list[str]:
    return values(tx, statement(select(drafts.c.message_id)))


@pytest.mark.parametrize("point", POINTS)
async def test_both_sides_killed_while_a_text_is_shown(point: str, ready_sqlite_url: str, synapse: Synapse) -> None:
    alias = f"drafts-{point.replace(':', '-').replace('.', '-').replace('_', '-')}"
    room, key = synapse.room(alias, "Eve"), new_key()
    async with Runtime(ready_sqlite_url, secret_key=key, models={"python:ada": model()}) as denizen:
        ada = await denizen.agents.create("Ada", model="python:ada")
        pier = await denizen.spaces.create("Pier", [await denizen.people.create("Noor"), ada])
        await denizen.secrets.set("AS", AS_TOKEN)
        await denizen.secrets.set("HS", HS_TOKEN)
        settings = {"homeserver": synapse.url, "as_token": "${AS}", "hs_token": "${HS}", "allow_private": ["127.0.0.1"]}
        bridge, _ = await denizen.bridges.create("Matrix", "matrix", settings | {"streaming": True})
        await denizen.bridges.connect(bridge, pier, f"#{alias}:{SERVER}")
        await denizen.run_until_idle()
    synapse.send("Eve", room, "m.room.message", {"msgtype": "m.text", "body": "@ada when?"}, alias)
    assert _lived(Writing(ready_sqlite_url, key, pier.id, bridge.id, point)) == KILLED, f"{point} was never passed"
    synapse.kill()
    synapse.start()
    assert _lived(Writing(ready_sqlite_url, key, pier.id, bridge.id, None)) == 0
    assert synapse.texts("Eve", room, "@denizen_") == [TEXT]
    events, _ = synapse.timeline("Eve", room)
    shown = [each["content"].get("body", "") for each in events if each["sender"].startswith("@denizen_ada")]
    assert any(each.endswith(WRITING) for each in shown) or point not in ("bridge.sent", "commit:end_sending")
    async with Runtime(ready_sqlite_url, secret_key=key, models={"python:ada": model()}) as denizen:
        said = [each.text for each in await denizen.spaces.messages(pier) if "notice" not in each.metadata]
        assert said.count(TEXT) == 1
        assert await check_database(denizen.db) == []


def _lived(life: Writing) -> int:
    process = processes().Process(target=write, args=(life,), daemon=True)
    process.start()
    return ended(process)
