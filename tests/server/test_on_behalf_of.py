"""People behind one program, such as Open WebUI: its token speaks for them, and each is a person of their own."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from denizen import reply
from denizen.access import identities, roles, tokens
from denizen.models.scripted import forever
from denizen.server.on_behalf_of import HEADERS_IGNORED, USER_IS_A_SPACE
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from tests.server.conftest import House, session_headers
from tests.world import World


def answering(messages: Any, info: Any) -> Any:
    return reply("Noted.") if info.number % 2 == 0 else "Noted it."


def as_user(id: str, name: str = "", **more: str) -> dict[str, str]:
    """The headers of Open WebUI."""
    return {"X-OpenWebUI-User-Id": id, "X-OpenWebUI-User-Name": name, "X-OpenWebUI-User-Role": "admin", **more}


async def speaking_token(house: House, admin: Entity, **more: Any) -> tuple[str, str]:
    """The id and the secret of a token that speaks for others."""
    body = {"name": "Open WebUI", "role": "member", "speaks_for_others": True, **more}
    made = await house.call("POST", "/api/tokens", admin, json=body)
    assert made.status_code == 201, made.text
    assert made.json()["token"]["speaks_for_others"] is True
    return made.json()["token"]["id"], made.json()["secret"]


async def with_a_speaking_token(house: House) -> tuple[World, Entity, str, str]:
    """Noor, an agent that answers everybody, and Noor's token that speaks for others."""
    noor = await house.world.person("Noor")
    await house.world.agent("Ada", model=forever(answering))
    return house.world, noor, *await speaking_token(house, noor)


async def say(house: House, secret: str, text: str, headers: dict[str, str], **body: Any) -> httpx2.Response:
    asked = {"model": "ada", "messages": [{"role": "user", "content": text}], **body}
    sent = {"Authorization": f"Bearer {secret}", **headers}
    return await house.client.post("/v1/chat/completions", json=asked, headers=sent)


async def people(world: World) -> list[str]:
    [home] = await world.denizen.organizations.list()
    found = await world.denizen.db.read(directory.list_entities, home.id)
    return sorted(each.handle for each in found if each.kind == "human")


async def texts_in(world: World, answer: httpx2.Response) -> list[tuple[str, str]]:
    messages = await world.denizen.spaces.messages(answer.json()["denizen"]["space_id"])
    return [(each.author_name, each.text) for each in messages]


async def test_each_user_is_a_person_with_a_space_of_their_own(house: House) -> None:
    world, noor, token, secret = await with_a_speaking_token(house)
    async with world.denizen.living():
        sams = await say(house, secret, "My code is 4711.", as_user("u-1", "Sam"))
        mias = await say(house, secret, "Hello.", as_user("u-2", "M%C3%ADa"))
        again = await say(house, secret, "Thanks.", as_user("u-1", "Samuel"))
        own = await say(house, secret, "Good morning.", {})
        by_field = await say(house, secret, "Me too.", {}, user="u-2")
    assert [each.headers["denizen-person"] for each in (sams, mias, again, own, by_field)] == [
        "@sam",
        "@mia",
        "@sam",
        "@noor",
        "@mia",
    ]
    assert await texts_in(world, sams) == [
        ("Sam", "My code is 4711."),
        ("Ada", "Noted."),
        ("Sam", "Thanks."),
        ("Ada", "Noted."),
    ]
    assert [text for _, text in await texts_in(world, mias)] == ["Hello.", "Noted.", "Me too.", "Noted."]
    assert [text for _, text in await texts_in(world, own)] == ["Good morning.", "Noted."]
    assert len({each.json()["denizen"]["space_id"] for each in (sams, mias, own)}) == 3
    # Whatever role the program says that they have, here they are members; and the token is named with them.
    sam = await world.denizen.people.find("@sam")
    assert await world.denizen.db.read(roles.role_of, sam.id) == "member"
    linked = (await house.call("GET", f"/api/entities/{sam.id}/identities", noor)).json()["identities"]
    assert [(each["issuer"], each["subject"]) for each in linked] == [(f"token:{token}", "u-1")]
    entries = (await house.call("GET", "/api/audit", noor)).json()["entries"]
    assert [(each["action"], each["detail"].get("spoken_for_by")) for each in entries[:2]] == [
        ("create_entity", token),
        ("create_entity", token),
    ]


async def test_a_caller_without_the_right_speaks_for_its_owner_only(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    await world.agent("Ada", model=forever(answering))
    secret = await small_house.token(noor)
    async with world.denizen.living():
        forwarded = await say(small_house, secret, "Hi.", as_user("u-1", "Sam"))
        ours = await say(small_house, secret, "Hi.", {"Denizen-User-Id": "u-1"})
        field = await say(small_house, secret, "Hi.", {}, user="customer 1")
        plain = await say(small_house, secret, "Hi.", {})
    assert {each.headers["denizen-person"] for each in (forwarded, ours, field, plain)} == {"@noor"}
    assert forwarded.headers["denizen-notice"] == ours.headers["denizen-notice"] == HEADERS_IGNORED
    assert field.headers["denizen-notice"] == USER_IS_A_SPACE
    assert "denizen-notice" not in plain.headers
    assert await people(world) == ["noor"]


async def test_streams_and_errors_name_the_person_too(small_house: House) -> None:
    world, _, _, secret = await with_a_speaking_token(small_house)
    async with world.denizen.living():
        streamed = await say(small_house, secret, "Hi.", as_user("u-1", "Sam"), stream=True)
        wrong = await say(small_house, secret, "Hi.", as_user("u-1", "Sam"), model="nobody")
    assert (streamed.headers["denizen-person"], wrong.headers["denizen-person"]) == ("@sam", "@sam")
    assert (streamed.status_code, wrong.status_code) == (200, 404)


async def test_nobody_who_exists_is_spoken_for_unless_an_admin_has_linked_them(small_house: House) -> None:
    """And a linked admin is spoken for as a member."""
    world, noor, token, secret = await with_a_speaking_token(small_house)
    sam = await world.person("Sam")
    other, _ = await speaking_token(small_house, noor, name="Another")
    async with world.denizen.living():
        for id in ("sam", "@sam", sam.id):
            answer = await say(small_house, secret, "I am Sam.", as_user(id, "Sam"))
            assert answer.headers["denizen-person"] not in ("@sam", "@noor")
        link: Any = {"subject": "the owner", "token": token}
        refused = await small_house.call("POST", f"/api/entities/{noor.id}/identities", sam, json=link)
        linked = await small_house.call("POST", f"/api/entities/{noor.id}/identities", noor, json=link)
        assert (refused.status_code, linked.status_code) == (403, 201)
        answer = await say(small_house, secret, "It is me.", as_user("the owner"))
    assert answer.headers["denizen-person"] == "@noor"
    # Only at /v1, whatever the headers say; and only for tokens that speak.
    assert (await small_house.client.get("/api/me", headers=_bearer(secret) | as_user("u-9"))).json()[
        "handle"
    ] == "noor"
    plain = (await small_house.call("POST", "/api/tokens", noor, json={"name": "Plain"})).json()["token"]["id"]
    wrong = await small_house.call(
        "POST", f"/api/entities/{sam.id}/identities", noor, json={"subject": "s", "token": plain}
    )
    assert wrong.status_code == 422
    assert await world.denizen.db.read(identities.find, f"token:{other}", "the owner") is None


def _bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def test_only_admins_give_the_right(small_house: House) -> None:
    """A member can neither create such a token nor get the secret of one, whoever it belongs to."""
    world = small_house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    body = {"name": "Mine", "speaks_for_others": True}
    assert (await small_house.call("POST", "/api/tokens", sam, json=body)).status_code == 403
    token, secret = await speaking_token(small_house, noor, entity="@sam")
    assert (await small_house.call("POST", f"/api/tokens/{token}/rotate", sam)).status_code == 403
    # One with the right cannot make another, because its scope is that of a member.
    made = await small_house.client.post("/api/tokens", json=body, headers=_bearer(secret))
    assert made.status_code == 403
    small = await small_house.world.denizen.db.write(tokens.create, noor.id, "Small", role="member")
    mine, _ = await speaking_token(small_house, noor)
    assert (await small_house.client.post(f"/api/tokens/{mine}/rotate", headers=_bearer(small[1]))).status_code == 403
    # A session that is opened with it has only the rights of its owner.
    signed_in = await small_house.client.post("/api/session", json={"secret": secret})
    assert signed_in.json()["speaks_for_others"] is False
    headers = session_headers(small_house, signed_in)
    assert (await small_house.client.get("/api/me", headers=headers)).json()["handle"] == "sam"
    ada = await world.agent("Ada")
    with pytest.raises(Exception, match="speaks for itself"):
        await world.denizen.db.write(tokens.create, ada.id, "Ada's", speaks_for_others=True)


async def test_a_service_speaks_only_for_people(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    made = await small_house.call("POST", "/api/entities", noor, json={"kind": "service", "name": "Open WebUI"})
    await world.agent("Ada", model=forever(answering))
    _, secret = await speaking_token(small_house, noor, entity=made.json()["id"], role=None)
    async with world.denizen.living():
        assert (await small_house.client.get("/v1/models", headers=_bearer(secret))).status_code == 200
        nobody = await say(small_house, secret, "Hi.", {})
        sam = await say(small_house, secret, "Hi.", {"Denizen-User-Id": "7", "Denizen-User-Email": "sam@example.org"})
    assert (nobody.status_code, nobody.json()["error"]["code"]) == (403, "not_allowed")
    assert "Denizen-User-Id" in nobody.json()["error"]["message"]
    assert (sam.status_code, sam.headers["denizen-person"]) == (200, "@sam")


async def test_users_who_come_at_once_are_created_once(house: House) -> None:
    world, _, _, secret = await with_a_speaking_token(house)
    async with world.denizen.living():
        answers = await asyncio.gather(
            *(say(house, secret, f"Hi {at}.", as_user(f"u-{at % 2}", "Sam")) for at in range(6))
        )
    assert [each.status_code for each in answers] == [200] * 6
    assert {each.headers["denizen-person"] for each in answers} == {"@sam", "@sam-2"}
    assert await people(world) == ["noor", "sam", "sam-2"]


async def test_a_forgotten_user_is_gone_and_comes_back_as_somebody_new(small_house: House) -> None:
    world, noor, _, secret = await with_a_speaking_token(small_house)
    async with world.denizen.living():
        first = await say(small_house, secret, "My code is 4711.", as_user("u-1", "Sam"))
    sam = await world.denizen.people.find("@sam")
    gone = await small_house.call("POST", "/api/forget", noor, json={"kind": "person", "id": sam.id})
    assert gone.status_code == 200, gone.text
    async with world.denizen.living():
        second = await say(small_house, secret, "Hello.", as_user("u-1", "Sam"))
    assert second.json()["denizen"]["space_id"] != first.json()["denizen"]["space_id"]
    assert [text for _, text in await texts_in(world, second)] == ["Hello.", "Noted."]
    assert "4711" not in str(await texts_in(world, first))


async def test_who_has_left_is_not_spoken_for(small_house: House) -> None:
    world, noor, _, secret = await with_a_speaking_token(small_house)
    async with world.denizen.living():
        await say(small_house, secret, "Hi.", as_user("u-1", "Sam"))
        sam = await world.denizen.people.find("@sam")
        await small_house.call("DELETE", f"/api/entities/{sam.id}", noor)
        answer = await say(small_house, secret, "Hi.", as_user("u-1", "Sam"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_allowed")


async def test_a_guest_is_spoken_for_as_a_guest(small_house: House) -> None:
    """A token raises nobody: somebody who writes through a bridge does not become a member by it."""
    world, noor, _, secret = await with_a_speaking_token(small_house)
    sam = await world.person("Sam")
    token, _ = await speaking_token(small_house, noor, name="Another")
    async with world.denizen.living():
        await say(small_house, secret, "Hi.", as_user("u-1", "Mia"))
        mia = await world.denizen.people.find("@mia")
        await world.denizen.db.write(roles.set_role, mia.id, "guest")
        await world.denizen.db.write(roles.set_role, sam.id, "guest")
        again = await say(small_house, secret, "Hi again.", as_user("u-1", "Mia"))
        link: Any = {"subject": "sam", "token": token}
        linked = await small_house.call("POST", f"/api/entities/{sam.id}/identities", noor, json=link)
    assert linked.status_code == 201
    assert (again.status_code, again.json()["error"]["code"]) == (403, "not_allowed")
