"""Whether an instance takes work: what has to be there for it, and that nothing more is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

import httpx2
import pytest
from sqlalchemy import String, column, table, update

from denizen import Runtime, __version__
from denizen.bus.redis import PROBE_SECONDS, RedisBus
from denizen.storage.database import Tx, statement
from denizen.storage.migrating import HEAD, REVISIONS
from tests.server.conftest import House, served
from tests.servers import Server
from tests.world import World, open_world


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded machine is no database that does not answer."""
    monkeypatch.setattr("denizen.api.wiring.READY_SECONDS", 60)


async def asked(house: House) -> tuple[int, list[str]]:
    """The status, and what is missing."""
    answer = await house.call("GET", "/readyz")
    told = answer.json()
    if answer.status_code == 200:
        assert told == {"ready": True, "version": __version__}
        return 200, []
    assert (told["code"], answer.headers["retry-after"]) == ("not_ready", "1")
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, told["missing"]


async def test_an_instance_with_all_it_needs_is_ready_until_it_drains(house: House) -> None:
    assert await asked(house) == (200, [])
    async with house.world.denizen.living():
        await house.world.denizen.drain()
        assert await asked(house) == (503, ["draining"])
        assert (await house.call("GET", "/healthz")).status_code == 200


@pytest.mark.parametrize(("revision", "missing"), [(REVISIONS[-2], ["schema"]), (HEAD, []), ("9999", [])])
async def test_an_older_schema_is_not_enough_and_a_newer_one_is_no_hindrance(
    house: House, revision: str, missing: list[str]
) -> None:
    """While instances are upgraded one after the other, the old ones work on with the new schema."""
    versions = table("alembic_version", column("version_num", String))
    set_revision = statement(update(versions).values(version_num=revision))

    def claim(tx: Tx) -> None:
        tx.run(set_revision)

    await house.world.denizen.db.write(claim)
    assert await asked(house) == (503 if missing else 200, missing)


@pytest.fixture
async def house_of_servers(postgres_server: Server, redis_server: Server) -> AsyncGenerator[House]:
    """A house on a PostgreSQL and a Redis of its own."""
    world: World
    async with open_world(postgres_server.url, redis_url=redis_server.url) as world, served(world) as house:
        yield house


async def test_without_its_servers_an_instance_is_not_ready_and_names_no_addresses(
    house_of_servers: House, postgres_server: Server, redis_server: Server
) -> None:
    house, bus = house_of_servers, house_of_servers.world.denizen.bus
    assert isinstance(bus, RedisBus)
    assert await asked(house) == (200, [])
    redis_server.stop()
    await bus.disconnected()
    assert await asked(house) == (503, ["bus"])
    postgres_server.stop()
    answer = await house.call("GET", "/readyz")
    assert answer.json()["missing"] == ["database", "bus"]
    assert not [
        part for part in ("postgres", "redis", str(postgres_server.folder)) if part in json.dumps(answer.json())
    ]
    postgres_server.start()
    redis_server.start()
    while not bus.is_connected:
        # It tries again after a pause, shorter than the time that the other has to answer.
        house.world.clock.skip(PROBE_SECONDS / 2)
        await asyncio.sleep(0)
    assert await asked(house) == (200, [])


async def test_a_database_that_does_not_answer_is_missing(small_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only one that refuses: a question that is never answered is given up."""
    monkeypatch.setattr("denizen.api.wiring.READY_SECONDS", 0)
    async with served(small_world) as house:
        assert await asked(house) == (503, ["database"])


async def test_who_asks_needs_no_token_and_is_not_let_in_by_other_names(small_house: House) -> None:
    async with httpx2.AsyncClient(base_url=small_house.address, timeout=60) as stranger:
        assert (await stranger.get("/readyz")).status_code == 200
        assert (await stranger.get("/readyz", headers={"Host": "evil.example"})).status_code == 421


async def test_a_runtime_that_is_closed_says_so_instead_of_waiting(ready_sqlite_url: str) -> None:
    async with Runtime(ready_sqlite_url) as denizen:
        pass
    assert await denizen.missing() == ["database", "bus"]
