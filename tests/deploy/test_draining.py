"""Being told to stop: what is under way is finished, nothing else is begun, and whoever asks is sent elsewhere.

And being killed: the next process on this machine goes on at once.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx2
import pytest

from tests import warm
from tests.deploy.counting import counting
from tests.deploy.instances import GRACE, instance
from tests.proxy import dark_proxy
from tests.server.conftest import Stream

pytestmark = pytest.mark.timeout(900)

DEADLINE = {
    "denizen.api.wiring.READY_SECONDS": 0.5,
    "denizen.api.wiring.LET_GO_SECONDS": 0.5,
    "denizen.storage.postgresql.CONNECT_SECONDS": 3_600,
    "denizen.storage.postgresql.CLOSE_SECONDS": 3_600,
}
"""Only the deadline of the whole stop is short: did anything wait for a time-out of its own, it would not end."""


async def test_sigterm_lets_the_cycle_and_its_readers_finish(tmp_path: Path) -> None:
    async with counting() as model, instance(tmp_path / "home", **model.environment, **GRACE) as denizen:
        spaces = (await denizen.get("/api/spaces")).json()["spaces"]
        room = next(each["id"] for each in spaces if each["name"].endswith("Ada"))
        async with (
            httpx2.AsyncClient(base_url=denizen.url, timeout=60, headers=denizen.authorization) as client,
            client.stream("GET", f"/api/spaces/{room}/stream") as response,
        ):
            stream = Stream(response)
            assert [await anext(stream.lines) for _ in range(2)] == ["retry: 1000", ""]
            assert (await denizen.get("/readyz")).status_code == 200
            await denizen.post(f"/api/spaces/{room}/messages", {"text": "n1n"})
            await model.asked.wait()

            denizen.tell_to_stop()
            await denizen.hear("Stopping")
            answer = await denizen.get("/readyz")
            assert (answer.status_code, answer.json()["missing"]) == (503, ["draining"])
            await denizen.post(f"/api/spaces/{room}/messages", {"text": "n2n"})
            model.go_on.set()

            told = [event.data["text"] for event in await stream.rest() if event.name == "message"]
        assert told == ["n1n", "n2n", "n1n"], "the cycle was finished, and none begun for what came later"
        assert await denizen.ended() == 0
        await denizen.start()
        async with (
            httpx2.AsyncClient(base_url=denizen.url, timeout=60, headers=denizen.authorization) as client,
            client.stream("GET", f"/api/spaces/{room}/stream", headers={"Last-Event-ID": "3"}) as response,
        ):
            stream = Stream(response)
            assert [await anext(stream.lines) for _ in range(2)] == ["retry: 1000", ""]
            assert (await stream.until("message"))[-1].data["text"] == "n2n"


async def test_a_second_signal_hurries(tmp_path: Path) -> None:
    """Without it, this one would wait an hour for its model."""
    async with counting() as model:
        patient = {**model.environment, "DENIZEN_AGENTS__GRACE_SECONDS": "3600"}
        async with instance(tmp_path / "home", **patient) as denizen:
            spaces = (await denizen.get("/api/spaces")).json()["spaces"]
            await denizen.post(f"/api/spaces/{spaces[0]['id']}/messages", {"text": "n1n"})
            await model.asked.wait()
            denizen.tell_to_stop()
            await denizen.hear("Stopping")
            denizen.tell_to_stop()
            async with asyncio.timeout(60):
                assert await denizen.ended() == 0
            assert "Everything is saved" in "".join(denizen.said)


async def test_sigterm_ends_a_process_whose_database_does_not_answer(tmp_path: Path, postgres_url: str) -> None:
    """All that is left to do shares one deadline, instead of waiting for the database one after the other."""
    async with counting() as model:
        with dark_proxy(postgres_url) as proxy:
            environment = {
                **model.environment,
                "DATABASE_URL": proxy.url,
                "DENIZEN_AGENTS__GRACE_SECONDS": "1",
                warm.CONSTANTS: json.dumps(DEADLINE),
            }
            async with instance(tmp_path / "home", **environment) as denizen:
                spaces = (await denizen.get("/api/spaces")).json()["spaces"]
                room = next(each["id"] for each in spaces if each["name"].endswith("Ada"))
                await denizen.post(f"/api/spaces/{room}/messages", {"text": "n1n"})
                await model.asked.wait()
                proxy.darken(new_ones_too=True)
                model.go_on.set()
                assert (await denizen.get("/readyz")).json()["missing"] == ["database"]
                denizen.tell_to_stop()
                async with asyncio.timeout(60):
                    assert await denizen.ended() == 0


async def test_after_a_kill_the_next_process_in_the_same_home_goes_on_at_once(tmp_path: Path) -> None:
    """The lease of the dead lasts an hour here: were it waited for, this test would not end."""
    async with counting() as model:
        environment = {**model.environment, "DENIZEN_AGENTS__LEASE_SECONDS": "3600"}
        async with instance(tmp_path / "home", **environment) as denizen:
            spaces = (await denizen.get("/api/spaces")).json()["spaces"]
            room = next(each["id"] for each in spaces if each["name"].endswith("Ada"))
            await denizen.post(f"/api/spaces/{room}/messages", {"text": "n1n"})
            await model.asked.wait()
            await denizen.kill()
            model.go_on.set()
            await denizen.start()
            async with (
                httpx2.AsyncClient(base_url=denizen.url, timeout=60, headers=denizen.authorization) as client,
                client.stream("GET", f"/api/spaces/{room}/stream", headers={"Last-Event-ID": "1"}) as response,
            ):
                stream = Stream(response)
                assert [await anext(stream.lines) for _ in range(2)] == ["retry: 1000", ""]
                assert (await stream.until("message"))[-1].data["text"] == "n1n"
            assert len(list((tmp_path / "home" / "instances").iterdir())) == 1
