"""Webhooks over HTTP: made with a token, used without one, and only by whoever has the secret."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx2
import pytest

from denizen.access.signatures import generic_signature, github_signature, slack_signature
from denizen.access.vault import new_key
from denizen.clock import SECOND
from denizen.server.context import ServerLimits
from tests.server.conftest import House, served
from tests.world import open_world

PUSH = b'{"ref": "refs/heads/main"}'
SLACK = "8f742231b10e8888abcd99yyyzzz85a5"


@pytest.fixture
async def house(ready_url: str) -> AsyncGenerator[House]:
    """An empty house that can keep secrets."""
    async with open_world(ready_url, secret_key=new_key()) as world, served(world) as house:
        yield house


@pytest.fixture
async def small_house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    limits = ServerLimits(webhook_bytes=1_000)
    async with open_world(ready_sqlite_url, secret_key=new_key()) as world, served(world, limits=limits) as house:
        yield house


async def send(house: House, path: str, body: bytes, **headers: str) -> httpx2.Response:
    """As a service does: without a token, under whatever name it knows this server by."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await house.call("POST", path, headers={"Host": "hooks.example.com", **named}, content=body)


async def make(house: House, agent: str = "@ada", **wanted: Any) -> tuple[dict[str, Any], str]:
    noor = await house.world.denizen.people.find("noor")
    answer = await house.call("POST", f"/api/agents/{agent}/webhooks", noor, json={"name": "GitHub", **wanted})
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()["webhook"], answer.json()["secret"]


async def test_a_webhook_is_made_used_listed_and_revoked(house: House) -> None:
    world = house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada", "Saw it.")

    webhook, secret = await make(house, scheme="github")
    sent = await send(
        house, webhook["path"], PUSH, X_Hub_Signature_256=github_signature(secret, PUSH), X_GitHub_Event="push"
    )

    assert webhook == {
        "id": webhook["id"],
        "name": "GitHub",
        "scheme": "github",
        "urgent": False,
        "path": f"/hooks/{webhook['id']}",
        "created_at": "2026-01-05T09:00:00Z",
        "revoked_at": None,
        "last_used_at": None,
    }
    assert (sent.status_code, sent.content) == (200, b"")
    await world.run()
    assert '[Service "GitHub"]\n   | GitHub: push\n   | {"ref":"refs/heads/main"}' in await world.newest_inbox(ada)

    listed = await house.call("GET", f"/api/agents/{ada.id}/webhooks", noor)
    assert listed.json() == {"webhooks": [webhook | {"last_used_at": "2026-01-05T09:00:00Z"}]}
    assert secret not in listed.text
    revoked = await house.call("DELETE", f"/api/webhooks/{webhook['id']}", noor)
    assert (revoked.status_code, revoked.content) == (204, b"")
    again = await send(house, webhook["path"], PUSH, X_Hub_Signature_256=github_signature(secret, PUSH))
    assert (again.status_code, again.json()["code"]) == (404, "not_found")


async def test_the_same_delivery_twice_is_one_event_and_200_both_times(house: House) -> None:
    world = house.world
    await world.person("Noor")
    ada = await world.agent("Ada")
    webhook, secret = await make(house, scheme="jira")
    body = b'{"webhookEvent": "jira:issue_updated"}'
    for delivery in ("a", "b"):
        sent = await send(
            house,
            webhook["path"],
            body,
            X_Hub_Signature=github_signature(secret, body),
            X_Atlassian_Webhook_Identifier=delivery,
        )
        assert sent.status_code == 200
    assert await world.inbox(ada) == ["Jira: jira:issue_updated"]


async def test_slack_is_answered_what_it_asks(house: House) -> None:
    world = house.world
    await world.person("Noor")
    ada = await world.agent("Ada")
    webhook, secret = await make(house, scheme="slack", secret=SLACK)
    assert secret == SLACK
    time = str(world.clock.now() // SECOND)

    async def sent(body: bytes, **more: str) -> httpx2.Response:
        headers = {"X_Slack_Request_Timestamp": time, "X_Slack_Signature": slack_signature(SLACK, time, body)}
        return await send(house, webhook["path"], body, **(headers | more))

    asked = await sent(b'{"type": "url_verification", "challenge": "3eZbrw1aBm2"}', Content_Type="application/json")
    assert (asked.status_code, asked.text) == (200, "3eZbrw1aBm2")
    assert asked.headers["content-type"].startswith("text/plain")
    assert asked.headers["x-content-type-options"] == "nosniff"
    command = await sent(b"command=%2Fdeploy&text=now", Content_Type="application/x-www-form-urlencoded")
    assert (command.status_code, command.content) == (200, b"")
    assert await world.inbox(ada) == ["Slack: /deploy"]
    world.clock.advance(301)
    late = await sent(b"command=%2Fdeploy&text=later")
    assert (late.status_code, late.json()["code"]) == (401, "signature_expired")


async def test_a_wrong_signature_says_nothing_about_the_agent(house: House) -> None:
    world = house.world
    await world.person("Noor")
    ada = await world.agent("Ada")
    webhook, secret = await make(house)
    now = world.clock.now() // SECOND
    right = generic_signature(secret, now, PUSH)

    for signature in ("", right[:-1] + "x", generic_signature("other", now, PUSH), right.replace("v1", "v2"), "é" * 90):
        headers = {b"Denizen-Signature": signature.encode("latin-1")}
        answer = await house.client.post(webhook["path"], content=PUSH, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "signature_wrong")
        assert "ada" not in answer.text.lower()
    unknown = await send(house, "/hooks/019b8d3e-5c02-7c13-b2aa-0a1b2c3d4e5f", PUSH, Denizen_Signature=right)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    assert await world.waiting(ada) == []
    assert (await send(house, webhook["path"], PUSH, Denizen_Signature=right)).status_code == 200


@pytest.mark.parametrize("path", ["", "/", "/%00", "/%ed%a0%80", "/a/b", "/../api/me"])
async def test_nothing_else_is_open_below_that_path(small_house: House, path: str) -> None:
    answer = await small_house.call("POST", f"/hooks{path}", content=b"{}")
    assert answer.status_code in (401, 404)
    answer = await small_house.call("GET", "/hooks/x")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_what_is_too_large_is_refused_before_its_signature_is_looked_at(small_house: House) -> None:
    """Whether its size is announced or not, and whether or not there is such a webhook."""
    await small_house.world.person("Noor")
    ada = await small_house.world.agent("Ada")
    webhook, secret = await make(small_house, scheme="github")

    async def chunks(size: int) -> AsyncIterator[bytes]:
        for _ in range(size // 100):
            yield b"x" * 100

    for path in (webhook["path"], "/hooks/nothing"):
        announced = await send(small_house, path, b"x" * 1_001)
        streamed = await small_house.call("POST", path, content=chunks(1_100))
        for answer in (announced, streamed):
            assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    fits = {"X-Hub-Signature-256": github_signature(secret, b"x" * 1_000)}
    assert (await small_house.call("POST", webhook["path"], headers=fits, content=chunks(1_000))).status_code == 200
    assert len(await small_house.world.inbox(ada)) == 1


def test_a_webhook_may_be_sent_a_megabyte() -> None:
    assert ServerLimits().webhook_bytes == 1024 * 1024


async def test_other_organizations_webhooks_are_as_those_that_do_not_exist(house: House) -> None:
    world = house.world
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor, eve = await world.person("Noor", organization=home), await world.person("Eve", organization=elsewhere)
    ada = await world.agent("Ada", organization=home)
    webhook, _ = await world.denizen.webhooks.create(ada, "GitHub", scheme="github")

    attempts = [
        ("GET", f"/api/agents/{ada.id}/webhooks", eve),
        ("POST", f"/api/agents/{ada.id}/webhooks", eve),
        ("DELETE", f"/api/webhooks/{webhook.id}", eve),
        ("DELETE", "/api/webhooks/nothing", noor),
    ]
    for method, path, who in attempts:
        body = {"json": {"name": "Mine"}} if method == "POST" else {}
        answer = await house.call(method, path, who, **body)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    [untouched] = await world.denizen.webhooks.list(ada)
    assert untouched.revoked_at is None


@pytest.mark.parametrize(
    "wanted", [{"name": " "}, {"scheme": "stripe"}, {"scheme": "slack"}, {"secret": "short"}, {"colour": "red"}]
)
async def test_what_cannot_be_a_webhook_is_refused(small_house: House, wanted: dict[str, str]) -> None:
    noor, ada = await small_house.world.person("Noor"), await small_house.world.agent("Ada")
    answer = await small_house.call("POST", f"/api/agents/{ada.id}/webhooks", noor, json={"name": "GitHub", **wanted})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert await small_house.world.denizen.webhooks.list(ada) == []


async def test_a_house_without_its_key_says_so_and_nothing_more(ready_url: str) -> None:
    async with open_world(ready_url, secret_key=new_key()) as world:
        await world.person("Noor")
        ada = await world.agent("Ada")
        webhook, secret = await world.denizen.webhooks.create(ada, "GitHub", scheme="github")
    async with open_world(ready_url) as world, served(world) as house:
        signature = github_signature(secret, PUSH)
        sent = await send(house, webhook.path, PUSH, X_Hub_Signature_256=signature)
        assert (sent.status_code, sent.json()["code"]) == (500, "secret_unreadable")
        noor = await world.denizen.people.find("noor")
        made = await house.call("POST", f"/api/agents/{ada.id}/webhooks", noor, json={"name": "GitHub"})
        assert (made.status_code, made.json()["code"]) == (500, "secret_key_missing")
