"""Saying something and reading it back, page by page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from uuid import UUID, uuid5

import pytest

from denizen import reply
from denizen.client import Client
from tests.server.conftest import House

JSON = {"Content-Type": "application/json"}


async def test_what_is_posted_stands_in_the_space_and_wakes_the_agent(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("It did: 212 tests."), "Told Noor.")
    kitchen = await world.space("Kitchen", noor, ada)

    said = await house.say(noor, "Good morning, @ada. **Did the build pass?**", kitchen, metadata={"mood": "curious"})

    assert said == {
        "id": said["id"],
        "space_id": kitchen.id,
        "seq": 1,
        "author": {"id": noor.id, "kind": "human", "name": "Noor"},
        "text": "Good morning, @ada. **Did the build pass?**",
        "plain": "Good morning, @ada. Did the build pass?",
        "mentions": ["ada"],
        "reply_to": None,
        "metadata": {"mood": "curious"},
        "files": [],
        "created_at": "2026-01-05T09:00:00Z",
        "edited_at": None,
        "deleted_at": None,
        "outside": False,
        "reactions": [],
        "pinned_at": None,
        "marked_at": None,
    }
    await world.run()
    answer = await house.call("GET", f"/api/spaces/{kitchen.id}/messages", noor)
    first, second = answer.json()["messages"]
    assert first == said
    assert (second["seq"], second["author"]["name"], second["text"]) == (2, "Ada", "It did: 212 tests.")


async def test_posting_again_with_the_same_key_is_posting_once(house: House) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    hall = await world.space("Hall", noor, sam)
    path, key = f"/api/spaces/{kitchen.id}/messages", {"Idempotency-Key": "letter 1"}

    answers = await asyncio.gather(
        *(
            house.call("POST", path, noor, headers=key, json={"text": "Dear Sam", "metadata": {"n": 1}})
            for _ in range(5)
        )
    )

    assert {(answer.status_code, answer.text) for answer in answers} == {(201, answers[0].text)}
    assert await world.transcript(kitchen) == ["Noor: Dear Sam"]
    # As docs/http.md promises; clients rely on it.
    assert answers[0].json()["id"] == str(uuid5(UUID("5f1c7f5e-94a3-4a37-8d4b-6f2c1f7f0d11"), f"{noor.id} letter 1"))
    for where, body in [(kitchen, {"text": "Dear Ada"}), (hall, {"text": "Dear Sam", "metadata": {"n": 1}})]:
        answer = await house.call("POST", f"/api/spaces/{where.id}/messages", noor, headers=key, json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    # The key is its owner's alone.
    assert (await house.call("POST", path, sam, headers=key, json={"text": "Dear Noor"})).json()["seq"] == 2


async def test_a_key_covers_the_files_of_a_message(house: House) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)

    async def upload(data: bytes) -> str:
        return (await house.call("POST", "/api/files", noor, files={"file": ("menu.txt", data)})).json()["id"]

    soup, same, pie = await upload(b"Soup"), await upload(b"Soup"), await upload(b"Pie")
    path, key = f"/api/spaces/{kitchen.id}/messages", {"Idempotency-Key": "letter 1"}

    async def post(*files: str) -> tuple[int, str]:
        answer = await house.call("POST", path, noor, json={"text": "Today:", "files": files}, headers=key)
        return answer.status_code, answer.json().get("code") or answer.json()["id"]

    first = await post(soup)
    assert first[0] == 201
    assert await post(soup) == await post(same) == first
    for others in ((pie,), (), (soup, pie), ("unknown",)):
        assert await post(*others) == (422, "idempotency_key_reused")
    told = (await house.call("GET", path, noor)).json()["messages"]
    assert [[each["id"] for each in message["files"]] for message in told] == [[soup]]


async def test_pages_lead_through_the_whole_conversation_in_both_directions(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor)
    for number in range(1, 8):
        await world.say(noor, f"{number}", kitchen)

    async def pages(direction: str, start: int) -> list[list[int]]:
        found: list[list[int]] = []
        position: int | None = start
        while position is not None:
            query = {direction: position, "limit": 3}
            page = (await house.call("GET", f"/api/spaces/{kitchen.id}/messages", noor, params=query)).json()
            found.append([message["seq"] for message in page["messages"]])
            position = page["next"]
        return found

    assert await pages("after", 0) == [[1, 2, 3], [4, 5, 6], [7]]
    assert await pages("after", 4) == [[5, 6, 7]]
    assert await pages("after", 7) == [[]]
    assert await pages("before", 8) == [[5, 6, 7], [2, 3, 4], [1]]
    assert await pages("before", 1) == [[]]
    newest = (await house.call("GET", f"/api/spaces/{kitchen.id}/messages", noor, params={"limit": 2})).json()
    assert ([message["seq"] for message in newest["messages"]], newest["next"]) == ([6, 7], 6)


async def test_a_reply_is_to_a_message_of_the_same_space(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    kitchen, hall = await world.space("Kitchen", noor), await world.space("Hall", noor)
    first = await house.say(noor, "Here", kitchen)

    reply_ = await house.say(noor, "And here", kitchen, reply_to=first["id"])

    assert reply_["reply_to"] == first["id"]
    for reply_to in (first["id"], "nothing", "\0", "\ud800"):
        path = f"/api/spaces/{hall.id}/messages"
        answer = await house.call(
            "POST", path, noor, content=json.dumps({"text": "There", "reply_to": reply_to}), headers=JSON
        )
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert await world.transcript(hall) == []


async def test_what_no_database_can_hold_is_shown_as_such(house: House) -> None:
    """Half a surrogate pair and NUL are JSON, but nothing that could be stored and sent again."""
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    body = json.dumps({"text": "a\0b\ud83d", "metadata": {"\ud800": ["\udfff", "\0"]}})

    answer = await house.call("POST", f"/api/spaces/{kitchen.id}/messages", noor, content=body, headers=JSON)

    assert answer.status_code == 201
    assert answer.json()["text"] == "a\ufffdb\ufffd"
    assert answer.json()["metadata"] == {"\ufffd": ["\ufffd", "\0"]}
    page = await house.call("GET", f"/api/spaces/{kitchen.id}/messages", noor)
    assert page.json()["messages"] == [answer.json()]


@pytest.mark.parametrize(
    ("body", "status", "code", "says"),
    [
        ("", 422, "invalid_input", "body: Field required"),
        ("{", 400, "invalid_json", "not JSON"),
        ("[" * 100_000, 400, "nested_too_deep", "200 levels"),
        ('{"text": ' + "9" * 5_000 + "}", 400, None, ""),
        ("null", 422, "invalid_input", "body"),
        ("{}", 422, "invalid_input", "text: Field required"),
        ('{"text": 5}', 422, "invalid_input", "text: Input should be a valid string"),
        ('{"text": "  "}', 422, "invalid_input", "needs some text"),
        ('{"text": "a", "txet": "b"}', 422, "invalid_input", "txet: Extra inputs are not permitted"),
        ('{"text": "a", "metadata": {"n": NaN}}', 422, "invalid_input", "metadata: JSON has no NaN"),
        ('{"text": "a", "metadata": {"n": 1e999}}', 422, "invalid_input", "metadata: JSON has no NaN"),
        ('{"text": "a", "metadata": {"n": "' + "x" * 20_000 + '"}}', 422, "invalid_input", "metadata: as JSON it may"),
        ('{"text": "' + "x" * 100_001 + '"}', 422, "invalid_input", "100,000 characters"),
        ('{"text": "' + "x" * 2_200_000 + '"}', 413, "too_large", "at most 2.1 MB"),
    ],
)
async def test_what_cannot_be_posted_is_refused_with_a_sentence(
    small_house: House, body: str, status: int, code: str | None, says: str
) -> None:
    noor = await small_house.world.person("Noor")
    kitchen = await small_house.world.space("Kitchen", noor)
    path = f"/api/spaces/{kitchen.id}/messages"

    answer = await small_house.call("POST", path, noor, content=body, headers=JSON)

    problem = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert problem["status"] == status
    assert code in (None, problem["code"])
    assert says in problem["detail"]
    assert await small_house.world.transcript(kitchen) == []


async def test_a_body_without_an_announced_length_is_limited_as_well(small_house: House) -> None:
    noor = await small_house.world.person("Noor")
    kitchen = await small_house.world.space("Kitchen", noor)

    async def endless() -> AsyncGenerator[bytes]:
        yield b'{"text": "'
        for _ in range(300):
            yield b"x" * 10_000

    answer = await small_house.call("POST", f"/api/spaces/{kitchen.id}/messages", noor, content=endless(), headers=JSON)

    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize("query", ["after=1&before=2", "limit=0", "limit=201", "after=-1", "after=x", f"after={2**63}"])
async def test_a_page_that_makes_no_sense_is_refused(small_house: House, query: str) -> None:
    noor = await small_house.world.person("Noor")
    kitchen = await small_house.world.space("Kitchen", noor)
    answer = await small_house.call("GET", f"/api/spaces/{kitchen.id}/messages?{query}", noor)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


async def test_field_errors_say_where_and_what_but_not_what_was_sent(small_house: House) -> None:
    noor = await small_house.world.person("Noor")
    kitchen = await small_house.world.space("Kitchen", noor)
    body = {"text": {"secret": 1}, "urgent": "perhaps"}

    answer = await small_house.call("POST", f"/api/spaces/{kitchen.id}/messages", noor, json=body)

    assert answer.json()["errors"] == [
        {"in": "body", "field": "text", "message": "Input should be a valid string"},
        {
            "in": "body",
            "field": "urgent",
            "message": "Input should be a valid boolean, unable to interpret input",
        },
    ]
    assert "secret" not in answer.text


async def test_what_was_said_can_be_changed_and_taken_back(house: House) -> None:
    """By its author; others are told that they may not, and strangers that there is nothing."""
    world = house.world
    noor, sam, cleo = await world.person("Noor"), await world.person("Sam"), await world.person("Cleo")
    kitchen = await world.space("Kitchen", noor, sam)
    hall = await world.space("Hall", noor)
    said = await house.say(noor, "Tea at four", kitchen)
    path = f"/api/spaces/{kitchen.id}/messages/{said['id']}"

    refused = await house.call("PATCH", path, sam, json={"text": "Tea at three"})
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
    assert (await house.call("DELETE", path, cleo)).status_code == 404
    elsewhere = f"/api/spaces/{hall.id}/messages/{said['id']}"
    assert (await house.call("PATCH", elsewhere, noor, json={"text": "Tea"})).status_code == 404
    assert (await house.call("PATCH", path, noor, json={"text": " "})).status_code == 422

    edited = (await house.call("PATCH", path, noor, json={"text": "Tea at **five**"})).json()
    assert edited == said | {"text": "Tea at **five**", "plain": "Tea at five", "edited_at": "2026-01-05T09:00:00Z"}
    alone = f"/api/messages/{said['id']}"
    assert (await house.call("GET", alone, sam)).json() == edited
    assert (await house.call("GET", alone, cleo)).status_code == 404
    deleted = (await house.call("DELETE", path, noor)).json()
    assert (deleted["text"], deleted["seq"], deleted["deleted_at"]) == ("[deleted]", 1, "2026-01-05T09:00:00Z")
    listed = (await house.call("GET", f"/api/spaces/{kitchen.id}/messages", sam)).json()
    assert listed["messages"] == [deleted]


async def test_a_transcript_has_every_message_of_the_space_for_those_who_are_in_it(small_house: House) -> None:
    """However many there are: one page of the API has 200."""
    world = small_house.world
    noor, sam, eve = await world.person("Noor"), await world.person("Sam"), await world.person("Eve")
    kitchen = await world.space("Kitchen", noor, sam)
    ids = [(await world.say(noor, f"Line {number} for *Sam*", kitchen)).id for number in range(1, 403)]
    path = f"/api/spaces/{kitchen.id}"
    await small_house.call("PATCH", f"{path}/messages/{ids[0]}", noor, json={"text": "Line one"})
    await small_house.call("DELETE", f"{path}/messages/{ids[1]}", noor)

    answer = await small_house.call("GET", f"{path}/transcript", sam)

    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    title, first, second, *rest = answer.text.split("\n\n**Noor**, ")
    assert title == "# Kitchen"
    assert first == "2026-01-05 09:00 UTC, edited\n\nLine one"
    assert second == "2026-01-05 09:00 UTC\n\n_(deleted)_"
    assert [each.splitlines()[-1] for each in rest] == [f"Line {number} for *Sam*" for number in range(3, 403)]
    assert (await small_house.call("GET", f"{path}/transcript", eve)).status_code == 404
    async with Client(small_house.address, await small_house.token(sam)) as client:
        assert await client.transcript(kitchen.id) == answer.text
