"""Web push over HTTP: the server's key, and the browsers of people."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from structlog.testing import capture_logs

from denizen.access.vault import Vault, no_keys
from denizen.notifications.pushing import Pusher
from denizen.tools.outbound import Outbound
from tests.notifications.push_service import Browser, pusher
from tests.server.conftest import House, served
from tests.world import World

KEYS = Browser().keys
SUBSCRIPTION = {"endpoint": "https://push.example/send/one", "keys": KEYS}


@pytest.fixture
async def pushing_house(small_world: World) -> AsyncGenerator[House]:
    async with Outbound() as outbound, served(small_world, push=pusher(small_world.denizen, outbound)) as house:
        yield house


async def test_a_browser_subscribes_and_unsubscribes(pushing_house: House) -> None:
    noor, sam = await pushing_house.world.person("Noor"), await pushing_house.world.person("Sam")
    key = (await pushing_house.call("GET", "/api/push", noor)).json()
    assert key["enabled"]
    assert len(key["public_key"]) == 87
    assert (await pushing_house.call("GET", "/api/push", sam)).json() == key
    made = await pushing_house.call("POST", "/api/push/subscriptions", noor, json=SUBSCRIPTION)
    assert made.status_code == 201
    again = await pushing_house.call("POST", "/api/push/subscriptions", noor, json=SUBSCRIPTION)
    assert again.json() == made.json()
    path = f"/api/push/subscriptions/{made.json()['id']}"
    assert (await pushing_house.call("DELETE", path, sam)).status_code == 404
    assert (await pushing_house.call("DELETE", path, noor)).status_code == 204
    assert (await pushing_house.call("DELETE", path, noor)).status_code == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"endpoint": "http://push.example/send/one"},
        {"endpoint": "https://noor:secret@push.example/"},
        {"endpoint": "https://push.example\\@127.0.0.1/"},
        {"endpoint": "https://"},
        {"endpoint": "https://push.example:99999/"},
        {"endpoint": "https://push.example/" + "x" * 3000},
        {"endpoint": "push"},
        {"keys": {**KEYS, "p256dh": "AAAA"}},
        {"keys": {**KEYS, "auth": "AAAA"}},
        {"keys": {}},
    ],
)
async def test_what_nothing_can_be_sent_to_is_refused(pushing_house: House, wrong: dict[str, Any]) -> None:
    noor = await pushing_house.world.person("Noor")
    given = SUBSCRIPTION | wrong
    answer = await pushing_house.call("POST", "/api/push/subscriptions", noor, json=given)
    assert answer.status_code == 422, answer.text


async def test_only_people_are_notified(pushing_house: House) -> None:
    ada = await pushing_house.world.agent("Ada")
    assert (await pushing_house.call("POST", "/api/push/subscriptions", ada, json=SUBSCRIPTION)).status_code == 403
    assert (await pushing_house.call("POST", "/api/push/subscriptions", None, json=SUBSCRIPTION)).status_code == 401


async def test_web_push_can_be_off(small_house: House) -> None:
    noor = await small_house.world.person("Noor")
    assert (await small_house.call("GET", "/api/push", noor)).json() == {"enabled": False, "public_key": None}
    answer = await small_house.call("POST", "/api/push/subscriptions", noor, json=SUBSCRIPTION)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert "push.enabled" in answer.json()["detail"]


async def test_without_a_key_to_seal_with_web_push_is_off(small_world: World) -> None:
    async with Outbound() as outbound:
        denizen = small_world.denizen
        push = Pusher(denizen.db, denizen.clock, Vault(no_keys), outbound)
        with capture_logs() as logs:
            async with push.running(), served(small_world, push=push) as house:
                answer = await house.call("GET", "/api/push", await small_world.person("Noor"))
    assert answer.json() == {"enabled": False, "public_key": None}
    assert "DENIZEN_SECRET_KEY" in logs[0]["error"]
