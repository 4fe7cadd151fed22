"""What a homeserver pushes, and who is told of it, whichever process gets it. `real/test_matrix.py` has a real one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest

from denizen.access.vault import new_key
from denizen.bridges.matrix.kind import MatrixSettings
from denizen.bridges.matrix.pushes import MOST_ROOMS, MOST_USERS, Push, parse
from denizen.bridges.port import Author, BridgeKind, BridgeSettings, Means, Outgoing, Writer
from denizen.errors import SignatureWrong
from tests.bridges.conformance import ROOM, build
from tests.bridges.in_process import Harbour, HarbourAdapter, HarbourSettings
from tests.bridges.live_suite import typing_in
from tests.server.conftest import served
from tests.world import UNHURRIED, open_world

TOKEN = "hs-token"


def typing(room: str = "!1:test", users: Any = ("@eve:harbour",)) -> dict[str, Any]:
    return {"type": "m.typing", "room_id": room, "content": {"user_ids": list(users)}}


@pytest.mark.parametrize(
    ("told", "push"),
    [
        ({"events": [{}], "ephemeral": [typing()]}, Push(True, {"!1:test": ["@eve:harbour"]})),
        ({"events": [], "ephemeral": [typing()]}, Push(False, {"!1:test": ["@eve:harbour"]})),
        ({"events": [], "de.sorunome.msc2409.ephemeral": [typing()]}, Push(False, {"!1:test": ["@eve:harbour"]})),
        ({"events": [], "ephemeral": [typing(users=[])]}, Push(False)),
        ({"events": [], "ephemeral": [{"type": "m.receipt"}, 7, typing(users=[7, "", "@" * 256])]}, Push(False)),
        ({"events": []}, Push(True)),
        ({"events": [], "ephemeral": 7}, Push(True)),
        ([], Push(True)),
    ],
)
def test_a_push_tells_who_types_and_whether_there_may_be_news(told: Any, push: Push) -> None:
    assert parse(json.dumps(told).encode()) == push


def test_of_a_push_that_tells_too_much_only_so_much_is_taken() -> None:
    users = [f"@{number}:test" for number in range(MOST_USERS + 1)]
    told = {"events": [], "ephemeral": [typing(f"!{number}:test", users) for number in range(MOST_ROOMS + 1)]}
    found = parse(json.dumps(told).encode()).typing
    assert len(found) == MOST_ROOMS
    assert all(each == users[:MOST_USERS] for each in found.values())
    for unreadable in (b"", b"{", b"\xff", b"[" * 100_000 + b"]" * 100_000):
        assert parse(unreadable) == Push(True)


class PushingHarbour(HarbourAdapter):
    """The harbour as a service that pushes who types; it calls the pier `!1:test`."""

    drafts: Literal["none", "kept", "vanishing"] = "none"

    async def show_typing(self, room: str, who: Author, *, typing: bool) -> None: ...
    async def show_draft(self, draft: Outgoing) -> str | None: ...

    def hear_push(self, typing: Mapping[str, Sequence[str]]) -> None:
        for user in typing.get("!1:test", ()):
            self.means.heard_typing(ROOM, Writer(user, user, verified=True))


class MatrixHarbour(Harbour):
    """The harbour in the place of a homeserver."""

    @property
    def kind(self) -> BridgeKind:
        def opened(settings: BridgeSettings, means: Means) -> PushingHarbour:
            return PushingHarbour(self, HarbourSettings(history_minutes=60), means)

        return BridgeKind("matrix", MatrixSettings, opened)

    async def attach(self, world: Any) -> Any:
        for name, value in (("MATRIX_AS", "as-token"), ("MATRIX_HS", TOKEN)):
            await world.denizen.secrets.set(name, value)
        settings = {"homeserver": "https://matrix.test", "as_token": "${MATRIX_AS}", "hs_token": "${MATRIX_HS}"}
        return (await world.denizen.bridges.create("Harbour", "matrix", settings))[0]


async def test_who_types_is_told_whichever_process_gets_the_push(ready_url: str, redis_url: str) -> None:
    harbour, key = MatrixHarbour(), new_key()
    shared: dict[str, Any] = {"bridge_kinds": [harbour.kind], "pace": UNHURRIED, "secret_key": key}
    shared["redis_url"] = redis_url
    async with open_world(ready_url, **shared) as here:
        pier = await build(here, harbour)
        await harbour.write(ROOM, "Eve", "Ahoy!")
        await pier.run()
        async with (
            here.denizen.living(),
            open_world(ready_url, **shared) as other,
            typing_in(here, pier) as told,
            asyncio.timeout(60),
        ):
            await pier.run()
            users = ["@stranger:harbour", "@eve:harbour"]
            push = json.dumps({"events": [], "ephemeral": [typing(users=users)]}).encode()
            with pytest.raises(SignatureWrong):
                await other.denizen.bridges.receive_push(pier.bridge.id, "Bearer no", push)
            await other.denizen.bridges.receive_push(pier.bridge.id, f"Bearer {TOKEN}", push)
            frame = await anext(told)
            assert (frame.name, frame.account, frame.space) == ("Eve", "@eve:harbour", pier.space.id)


async def test_a_push_over_http_is_taken_with_the_token_of_the_registration(ready_sqlite_url: str) -> None:
    harbour = MatrixHarbour()
    options: dict[str, Any] = {"bridge_kinds": [harbour.kind], "pace": UNHURRIED, "secret_key": new_key()}
    async with open_world(ready_sqlite_url, **options) as bay, served(bay) as house:
        pier = await build(bay, harbour)
        await harbour.write(ROOM, "Eve", "Ahoy!")
        await pier.run()
        path = f"/hooks/bridges/{pier.bridge.id}/_matrix/app/v1/transactions/1"
        async with bay.denizen.living(), typing_in(bay, pier) as told, asyncio.timeout(60):
            await pier.run()
            # In one process every hint so far has been followed: one that comes by Redis may be late.
            reads = harbour.reads
            for token, status in (("no", 401), (TOKEN, 200)):
                answer = await house.client.put(
                    path, json={"events": [], "ephemeral": [typing()]}, headers={"Authorization": f"Bearer {token}"}
                )
                assert answer.status_code == status
            assert (await anext(told)).name == "Eve"
            # Nobody has written: nothing is read because of it.
            assert harbour.reads == reads
