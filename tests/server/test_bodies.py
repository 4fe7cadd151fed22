"""Bodies of requests: how deep their JSON may be nested, and what is looked at before they are."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from denizen.access.signatures import GENERIC_HEADER, generic_signature
from denizen.access.vault import new_key
from denizen.amounts import human_size
from denizen.clock import SECOND
from denizen.inbox.outside import MAX_NESTING
from denizen.server.bodies import parse_json
from denizen.server.context import ServerLimits
from denizen.server.problems import Problem
from tests.server import small_town
from tests.server.conftest import House, served
from tests.world import open_world

JSON = {"Content-Type": "application/json"}


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize("levels", [MAX_NESTING + 2, 900, 100_000])
def test_a_body_is_not_read_deeper_than_allowed(levels: int) -> None:
    for body in (nested(levels), b'{"a": ' * levels + b"1" + b"}" * levels):
        with pytest.raises(Problem) as refused:
            parse_json(body)
        assert (refused.value.code, refused.value.status_code) == ("nested_too_deep", 400)


def test_a_body_with_many_brackets_beside_each_other_is_read() -> None:
    wide = [[{}] for _ in range(1_000)]
    assert parse_json(json.dumps(wide).encode()) == wide
    assert parse_json(nested(MAX_NESTING)) == json.loads(nested(MAX_NESTING))


@pytest.mark.parametrize("body", [b"[" + b"[]," * 100_000 + b"[]]", b"[" + b"0," * 100_000 + b"0]"])
def test_a_body_with_too_many_values_is_refused_before_it_is_parsed(body: bytes) -> None:
    with pytest.raises(Problem) as refused:
        parse_json(body)
    assert (refused.value.code, refused.value.status_code) == ("too_large", 413)


def test_commas_in_a_text_are_not_counted_as_values() -> None:
    text = 'a, "b", [' * 30_000 + "\\"
    assert parse_json(json.dumps([text, {text: 1}]).encode()) == [text, {text: 1}]
    for broken in (b'["' + b'\\"' * 500_000, b'["' + b"a," * 500_000 + b"\\"):
        with pytest.raises(ValueError, match="Unterminated string"):
            parse_json(broken)


async def test_every_route_with_a_body_refuses_a_deep_one(small_house: House) -> None:
    """With the same code, whatever the route does with what it is sent."""
    noor = await small_house.world.person("Noor")
    asked = 0
    for method, path, operation in small_town.operations(small_town.description()):
        if "application/json" not in operation.get("requestBody", {}).get("content", {}):
            continue
        for levels in (900, 100_000):
            answer = await small_house.call(method, path, noor, headers=JSON, content=nested(levels))
            told = answer.json().get("error") or answer.json()
            assert (answer.status_code, told["code"]) == (400, "nested_too_deep"), f"{method} {path}"
        asked += 1
    assert asked > 30


@pytest.fixture
async def house_with_key(ready_sqlite_url: str) -> AsyncGenerator[House]:
    """It can sign addresses."""
    async with open_world(ready_sqlite_url, secret_key=new_key()) as world, served(world) as house:
        yield house


async def test_an_answer_to_a_call_is_read_only_with_the_key_of_its_address(house_with_key: House) -> None:
    for content in (b"{}", nested(900), nested(100_000)):
        answer = await house_with_key.call("POST", "/hooks/calls/x?key=x", content=content)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    denizen = house_with_key.world.denizen
    path = denizen.answer_address("x").removeprefix(denizen.public_url)
    answer = await house_with_key.call("POST", path, content=nested(900))
    assert (answer.status_code, answer.json()["code"]) == (400, "nested_too_deep")


async def test_services_are_counted_by_their_address(ready_sqlite_url: str) -> None:
    """Those with a wrong key by the path as well, so that they keep no other service out."""
    limits = ServerLimits(requests_per_minute=5, failed_logins_per_minute=2)
    async with open_world(ready_sqlite_url, secret_key=new_key()) as world, served(world, limits=limits) as house:
        wrong = [(await house.call("POST", "/hooks/calls/x?key=x")).status_code for _ in range(3)]
        other = [(await house.call("POST", "/hooks/calls/y?key=x")).status_code for _ in range(2)]
        assert (wrong, other) == ([404, 404, 429], [404, 404])
        refused = await house.call("POST", "/hooks/calls/z?key=x")
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert int(refused.headers["Retry-After"]) > 0


async def test_a_room_that_is_not_connected_keeps_out_no_other_room(ready_sqlite_url: str) -> None:
    """Somebody who writes a lot in it must not silence the whole bridge. Wrong signatures are still counted."""
    limits = ServerLimits(failed_logins_per_minute=2)
    async with open_world(ready_sqlite_url, secret_key=new_key()) as world, served(world, limits=limits) as house:
        bridges, noor = world.denizen.bridges, await world.person("Noor")
        bridge, secret = await bridges.create("Helpdesk", "webhook", {"url": "https://example.org/"})
        await bridges.connect(bridge, await world.space("Support", noor), "one")

        async def write(room: str, number: int, secret: str | None = secret) -> int:
            event = {"type": "message", "id": f"{number}", "room": room, "account": "eve", "text": "Hello"}
            body = json.dumps(event).encode()
            signature = generic_signature(secret or "", world.clock.now() // SECOND, body)
            answer = await house.client.post(
                f"/hooks/bridges/{bridge.id}", content=body, headers={GENERIC_HEADER: signature}
            )
            return answer.status_code

        assert [await write("other", number) for number in range(4)] == [404] * 4
        assert await write("one", 5) == 200
        assert [await write("one", number, "wrong") for number in range(6, 9)] == [401, 401, 429]


def test_the_limits_of_the_documents_are_those_that_are_told() -> None:
    docs, limits = Path(__file__).parents[2] / "docs", ServerLimits()
    assert f"a request may have {human_size(limits.body_bytes)} ({limits.body_bytes:,} bytes)" in (
        docs / "http.md"
    ).read_text(encoding="utf-8")
    assert f"more than {human_size(limits.webhook_bytes)} ({limits.webhook_bytes:,} bytes)" in (
        docs / "webhooks.md"
    ).read_text(encoding="utf-8")
