"""Webhooks: what a service signs reaches its agent, once; anything else reaches nobody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest
from sqlalchemy import select

from denizen import call, scripted
from denizen.access.payloads import Greeting
from denizen.access.signatures import generic_signature, github_signature, slack_signature
from denizen.access.vault import new_key
from denizen.access.webhooks import Webhook
from denizen.clock import SECOND
from denizen.errors import InvalidInput, NotFound, SecretUnreadable, SignatureExpired, SignatureWrong
from denizen.storage.database import statement
from denizen.storage.schema import webhooks as table
from tests.world import World, open_world

PUSH = b'{"ref": "refs/heads/main", "commits": []}'

_rows = statement(select(table))


@pytest.fixture
async def world(ready_url: str) -> AsyncGenerator[World]:
    async with open_world(ready_url, secret_key=new_key()) as world:
        yield world


def signed(secret: str, body: bytes, event: str = "push") -> dict[str, str]:
    """The headers that GitHub sends with this."""
    return {
        "x-hub-signature-256": github_signature(secret, body),
        "x-github-event": event,
        "content-type": "application/json",
    }


async def test_what_github_sends_wakes_the_agent_and_is_shown_as_it_came(world: World) -> None:
    ada = await world.agent("Ada", "Saw the push.")
    webhook, secret = await world.denizen.webhooks.create(ada, "GitHub, website", scheme="github")
    assert webhook.path == f"/hooks/{webhook.id}"

    assert await world.denizen.webhooks.receive(webhook.id, signed(secret, PUSH), PUSH) is None
    await world.run()

    assert await world.newest_inbox(ada) == (
        "[INBOX - 1 new event]\n"
        "Now: Monday 2026-01-05 09:00 UTC\n"
        "\n"
        '1. [Service "GitHub, website"]\n'
        "   | GitHub: push\n"
        '   | {"ref":"refs/heads/main","commits":[]}\n'
        "   → received just now"
    )
    [listed] = await world.denizen.webhooks.list(ada)
    assert listed.last_used_at == world.clock.now()


async def test_the_same_content_is_told_once_however_often_and_under_whatever_name_it_comes(world: World) -> None:
    """Headers other than the signature are not signed: they cannot make another event of it."""
    ada = await world.agent("Ada", "Saw it.")
    webhook, secret = await world.denizen.webhooks.create(ada, "GitHub", scheme="github")
    other, other_secret = await world.denizen.webhooks.create(ada, "Mirror", scheme="github")

    async def send(**more: str) -> None:
        await world.denizen.webhooks.receive(webhook.id, signed(secret, PUSH) | more, PUSH)

    await asyncio.gather(*(send(**{"x-github-delivery": f"{number}"}) for number in range(5)))
    await world.run()
    await send(**{"x-github-event": "deployment", "content-type": "text/plain"})
    world.clock.advance(30 * 86_400)
    await send()

    assert await world.inbox(ada) == []
    assert len(await world.cycles(ada)) == 1
    await world.denizen.webhooks.receive(other.id, signed(other_secret, PUSH), PUSH)
    assert await world.inbox(ada) == ["GitHub: push"]


async def test_wrong_signatures_and_unknown_addresses_tell_nobody_anything(world: World) -> None:
    ada = await world.agent("Ada")
    webhook, secret = await world.denizen.webhooks.create(ada, "GitHub", scheme="github")
    gone, gone_secret = await world.denizen.webhooks.create(ada, "Old", scheme="github")
    await world.denizen.webhooks.revoke(gone)
    await world.denizen.webhooks.revoke(gone.id)
    with pytest.raises(NotFound):
        await world.denizen.webhooks.revoke("nothing")

    for headers in ({}, signed("other", PUSH), signed(gone_secret, PUSH), signed(secret, b"other")):
        with pytest.raises(SignatureWrong):
            await world.denizen.webhooks.receive(webhook.id, headers, PUSH)
    for unknown in (gone.id, ada.id, "", "nothing", "\0", "\ud800"):
        for headers in ({}, signed(gone_secret, PUSH), signed("a secret that nobody has", PUSH)):
            with pytest.raises(NotFound):
                await world.denizen.webhooks.receive(unknown, headers, PUSH)

    assert await world.waiting(ada) == []
    assert {each.name: each.last_used_at for each in await world.denizen.webhooks.list(ada)} == {
        "GitHub": None,
        "Old": None,
    }


async def test_a_dead_agent_has_no_address_any_more(world: World) -> None:
    ada = await world.agent("Ada")
    webhook, secret = await world.denizen.webhooks.create(ada, "GitHub", scheme="github")
    await world.denizen.agents.delete(ada)
    with pytest.raises(NotFound):
        await world.denizen.webhooks.receive(webhook.id, signed(secret, PUSH), PUSH)
    with pytest.raises(NotFound):
        await world.denizen.webhooks.create(ada, "GitHub")


async def test_greetings_are_answered_only_if_they_are_signed(world: World) -> None:
    ada = await world.agent("Ada")
    github, secret = await world.denizen.webhooks.create(ada, "GitHub", scheme="github")
    slack, _ = await world.denizen.webhooks.create(
        ada, "Slack", scheme="slack", secret="8f742231b10e8888abcd99yyyzzz85a5"
    )
    challenge = b'{"type": "url_verification", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY"}'
    time = str(world.clock.now() // SECOND)

    def headers(key: str) -> dict[str, str]:
        return {"x-slack-request-timestamp": time, "x-slack-signature": slack_signature(key, time, challenge)}

    assert await world.denizen.webhooks.receive(github.id, signed(secret, PUSH, "ping"), PUSH) == Greeting()
    right = headers("8f742231b10e8888abcd99yyyzzz85a5")
    assert await world.denizen.webhooks.receive(slack.id, right, challenge) == Greeting("3eZbrw1aBm2rZgRNFdxV2595E9CY")
    with pytest.raises(SignatureWrong):
        await world.denizen.webhooks.receive(slack.id, headers("another secret entirely"), challenge)
    assert await world.waiting(ada) == []


async def test_our_own_scheme_is_good_for_five_minutes_and_may_say_the_same_again_later(world: World) -> None:
    ada = await world.agent("Ada")
    webhook, secret = await world.denizen.webhooks.create(ada, "Deployer", urgent=True)
    body = b'{"type": "deploy.finished"}'

    def now() -> dict[str, str]:
        return {"denizen-signature": generic_signature(secret, world.clock.now() // SECOND, body)}

    first = now()
    await world.denizen.webhooks.receive(webhook.id, first, body)
    world.clock.advance(300)
    await world.denizen.webhooks.receive(webhook.id, first, body)
    await world.denizen.webhooks.receive(webhook.id, now(), body)
    world.clock.advance(1)
    with pytest.raises(SignatureExpired):
        await world.denizen.webhooks.receive(webhook.id, first, body)

    waiting = await world.denizen.minds.inbox(ada)
    assert [(each.text, each.lane) for each in waiting] == [("deploy.finished", "urgent")] * 2


async def test_what_is_huge_is_cut_and_can_be_read_on(world: World) -> None:
    """The end of what was sent is reached by the pointer that the agent is shown."""
    rows = [{"row": number, "text": "x" * 90} for number in range(8_000)]
    body = json.dumps({"type": "report", "rows": rows, "last": "the very end"}).encode()
    assert 900_000 < len(body) < 1024 * 1024
    ada = await world.agent("Ada")
    webhook, secret = await world.denizen.webhooks.create(ada, "Reports")
    headers = {"denizen-signature": generic_signature(secret, world.clock.now() // SECOND, body)}
    await world.denizen.webhooks.receive(webhook.id, headers, body)
    [event] = await world.denizen.minds.inbox(ada)
    length = len("report\n") + len(json.dumps(event.payload["data"], separators=(",", ":")))
    reading = call("read_entry", entry=f"event:{event.id}", offset=length - 50)

    await world.restart(ada=scripted(reading, "Read it to its end."))
    await world.run()

    shown = await world.newest_inbox(ada)
    assert len(shown) < 20_000
    assert f'read_entry("event:{event.id}", offset=' in shown
    assert f"of {length:,} characters" in shown
    assert any('"last":"the very end"}' in each for each in await world.history(ada))


async def test_the_secret_is_sealed_and_opens_with_the_key_alone(world: World) -> None:
    ada = await world.agent("Ada")
    webhook, secret = await world.denizen.webhooks.create(ada, "GitHub", scheme="github")
    assert secret.startswith("dz_hook_")
    assert len(secret) >= 8 + 43
    [row] = await world.denizen.db.read(lambda tx: tx.all(_rows))
    assert not [each for each in row if isinstance(each, str) and secret in each]

    async with open_world(world.url, clock=world.clock, secret_key=new_key()) as other:
        with pytest.raises(SecretUnreadable):
            await other.denizen.webhooks.receive(webhook.id, signed(secret, PUSH), PUSH)


@pytest.mark.parametrize(
    ("name", "scheme", "secret", "says"),
    [
        ("", "github", None, "name"),
        ("X", "stripe", None, "github, slack, jira, generic"),
        ("X", "slack", None, "signing secret"),
        ("X", "github", "short", "16 to 256"),
        ("X", "github", "x" * 257, "16 to 256"),
        ("X", "github", " a secret with a blank before it", "one line"),
        ("X", "github", "a secret\nof two lines", "one line"),
        ("X", "github", "a secret with \0 in it", "one line"),
    ],
)
async def test_what_cannot_be_a_webhook_is_told(
    small_world: World, name: str, scheme: str, secret: str | None, says: str
) -> None:
    ada = await small_world.agent("Ada")
    with pytest.raises(InvalidInput, match=says):
        await small_world.denizen.webhooks.create(ada, name, scheme=scheme, secret=secret)  # pyright: ignore[reportArgumentType]
    assert await small_world.denizen.webhooks.list(ada) == []


async def test_the_last_use_is_known_to_the_minute(world: World) -> None:
    ada = await world.agent("Ada")
    webhook, secret = await world.denizen.webhooks.create(ada, "GitHub", scheme="github")
    start = world.clock.now()

    async def last_use() -> float:
        [found] = await world.denizen.webhooks.list(ada)
        assert isinstance(found, Webhook)
        return ((found.last_used_at or 0) - start) / SECOND

    for number, (seconds, known) in enumerate([(0, 0), (59, 0), (1, 60), (1, 60)]):
        world.clock.advance(seconds)
        body = b"%d" % number
        await world.denizen.webhooks.receive(webhook.id, signed(secret, body), body)
        assert await last_use() == known
