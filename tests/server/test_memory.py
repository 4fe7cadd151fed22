"""Memory over HTTP: what is told with answers and streams, who sees what, and who settles what."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from denizen import forever
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from denizen.spaces.directory import Entity, Space
from tests.memory.conftest import answering, known, remembering, utility, written
from tests.server.conftest import House, served
from tests.world import open_world


@pytest.fixture
async def house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    async with open_world(ready_sqlite_url, memory=remembering()) as world, served(world) as house:
        yield house


async def cast(house: House) -> tuple[Entity, Entity, Space]:
    """Noor, whose house it is, and Sam, a member, with Ada in the kitchen."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada", model=forever(answering))
    return noor, sam, await world.space("Kitchen", noor, sam, ada)


async def remembered(house: House, space: Space, text: str, **owner: Any) -> str:
    whose = Owner(organization_id=space.organization_id, **owner)
    await house.world.denizen.db.write(items.remember, whose, space.id, [Candidate("facts", text, ("m",))])
    return (await house.world.denizen.memory.list(owner=whose.key))[0].id


async def test_chat_answers_with_the_summary_and_what_was_remembered(house: House) -> None:
    """`metadata`: what was sent, what the conversation came to, and diagnostics that do not say what they are about."""
    utility(house.world, written("They met.", facts=[known("Noor plays the violin.", 1)]))
    noor, _, kitchen = await cast(house)
    await remembered(house, kitchen, "Noor plays the violin.", scope="user", user_id=noor.id)
    async with house.world.denizen.living():
        asked = {"agent": "@ada", "text": "Do I play the violin?", "metadata": {"from": "phone"}}
        first = (await house.call("POST", "/api/chat", noor, json=asked)).json()
        assert first["metadata"]["from"] == "phone"
        assert first["metadata"]["long_term_memory"] == {
            "reason": "first",
            "memories": {"conversation": 0, "user": 1, "persona": 0},
            "characters": 22,
            "refused": {"organization": "no_organization"},
        }
        await house.call("POST", "/api/chat", noor, json=asked)
        await house.world.denizen.run_until_idle()
        third = (await house.call("POST", "/api/chat", noor, json=asked)).json()
    assert third["metadata"]["rolling_memory"]["summary_markdown"] == "They met."
    assert third["metadata"]["rolling_memory"]["upto"] == 2


async def test_a_request_settles_what_is_remembered_and_the_next_one_leaves_it(house: House) -> None:
    """Opt-out on the first turn; another organization's id is as one that does not exist."""
    noor, _, kitchen = await cast(house)
    out = {"memoryControl": {"longTermMemory": {"enabled": False}}}
    body = {"agent": "@ada", "text": "Hello.", "space": kitchen.id}
    async with house.world.denizen.living():
        assert (await house.call("POST", "/api/chat", noor, json={**body, **out})).status_code == 200
        named = {**body, "organizationId": kitchen.organization_id}
        assert (await house.call("POST", "/api/chat", noor, json=named)).status_code == 200
    told = (await house.call("GET", f"/api/spaces/{kitchen.id}/memory", noor)).json()
    assert told["policy"] == {
        "enabled": False,
        "scopes": dict.fromkeys(("conversation", "user", "persona", "organization")),
        "share_with_organization": None,
    }
    other = await house.call("POST", "/api/chat", noor, json={**body, "organizationId": "elsewhere"})
    assert (other.status_code, other.json()["code"]) == (404, "not_found")
    said = [each.metadata for each in await house.world.denizen.spaces.messages(kitchen) if each.author_id == noor.id]
    assert said == [{}, {"memory": {"organization": True}}]


@pytest.mark.parametrize("name", ["share_with_organization", "shareWithOrganization"])
async def test_a_conversation_takes_its_settings_in_either_spelling(house: House, name: str) -> None:
    """The settings that `/api/chat` takes can be sent to the conversation as they are."""
    noor, _, kitchen = await cast(house)
    settings = {"enabled": True, "scopes": {"organization": True}, name: True}
    told = await house.call("PATCH", f"/api/spaces/{kitchen.id}/memory", noor, json=settings)
    assert (told.status_code, told.json()["policy"]["share_with_organization"]) == (200, True)


async def test_readers_of_a_space_are_told_of_a_new_summary(house: House) -> None:
    """`metadata.update`, on the stream of the space."""
    utility(house.world, written("They met.", facts=[known("Noor sings.", 1)]))
    noor, _, kitchen = await cast(house)
    async with house.stream(noor, kitchen) as stream:
        for text in ("I sing.", "Well."):
            await house.world.say(noor, text, kitchen)
            await house.world.run()
        while (told := await stream.next()).name != "metadata.update" or told.data["rolling_memory"] is None:
            pass
    assert (told.data["rolling_memory"]["summary_markdown"], told.data["rolling_memory"]["upto"]) == ("They met.", 2)


async def test_everyone_sees_their_own_and_nobody_anothers(house: House) -> None:
    noor, sam, kitchen = await cast(house)
    hers = await remembered(house, kitchen, "Noor sings.", scope="user", user_id=noor.id)
    everyones = await remembered(house, kitchen, "Tea is at four.", scope="organization")
    listed = (await house.call("GET", "/api/memory", noor)).json()["memories"]
    assert [each["text"] for each in listed] == ["Noor sings."]
    assert (await house.call("GET", "/api/memory", sam)).json()["memories"] == []
    assert (await house.call("GET", f"/api/memory/{hers}", sam)).status_code == 404
    assert (await house.call("DELETE", f"/api/memory/{hers}", sam)).status_code == 404
    found = (await house.call("GET", "/api/memory?scope=organization&q=tea", sam)).json()["memories"]
    assert [each["id"] for each in found] == [everyones]
    assert (await house.call("DELETE", f"/api/memory/{everyones}", sam)).status_code == 404
    assert (await house.call("DELETE", f"/api/memory/{everyones}", noor)).status_code == 204
    corrected = (await house.call("PATCH", f"/api/memory/{hers}", noor, json={"text": "Noor dances."})).json()
    assert (corrected["text"], corrected["superseded_by"]) == ("Noor dances.", None)
    assert (await house.call("GET", f"/api/memory/{hers}", noor)).json()["superseded_by"] == corrected["id"]
    assert (await house.call("DELETE", f"/api/memory/{corrected['id']}", noor)).status_code == 204
    assert (await house.call("GET", "/api/memory", noor)).json()["memories"] == []


async def test_a_history_is_read_and_reverted_by_those_who_may(house: House) -> None:
    noor, sam, kitchen = await cast(house)
    hers = await remembered(house, kitchen, "Noor sings.", scope="user", user_id=noor.id)
    everyones = await remembered(house, kitchen, "Tea is at four.", scope="organization")
    await house.call("PATCH", f"/api/memory/{hers}", noor, json={"text": "Noor dances."})
    await house.call("PATCH", f"/api/memory/{everyones}", noor, json={"text": "Tea is at five."})
    assert (await house.call("GET", f"/api/memory/{hers}/history", sam)).status_code == 404
    versions = (await house.call("GET", f"/api/memory/{hers}/history", noor)).json()["versions"]
    assert [(each["number"], each["kind"], each["text"], each["by_id"]) for each in versions] == [
        (1, "learned", "Noor sings.", None),
        (2, "corrected", "Noor dances.", noor.id),
    ]
    for_all = (await house.call("GET", f"/api/memory/{everyones}/history", sam)).json()["versions"]
    assert [each["text"] for each in for_all] == ["Tea is at four.", "Tea is at five."]
    # Everyone reads the organization's, and only admins change it.
    first = {"version": for_all[0]["id"]}
    assert (await house.call("POST", f"/api/memory/{everyones}/revert", sam, json=first)).status_code == 404
    assert (await house.call("POST", f"/api/memory/{hers}/revert", noor, json=first)).status_code == 404
    back = await house.call("POST", f"/api/memory/{everyones}/revert", noor, json=first)
    assert (back.status_code, back.json()["text"]) == (200, "Tea is at four.")
    again = await house.call("POST", f"/api/memory/{everyones}/revert", noor, json=first)
    assert again.status_code == 422


async def test_members_see_the_organizations_switches_and_admins_change_them(house: House) -> None:
    noor, sam, _ = await cast(house)
    path = "/api/organization/memory"
    assert (await house.call("GET", path, sam)).json()["publish"] is True
    assert (await house.call("PATCH", path, sam, json={"publish": False})).status_code == 403
    changed = (await house.call("PATCH", path, noor, json={"publish": False, "categories": ["facts"]})).json()
    assert (changed["publish"], changed["categories"], changed["user"]) == (False, ["facts"], True)
    again = (await house.call("PATCH", path, noor, json={"categories": None})).json()
    assert (again["publish"], len(again["categories"])) == (False, 4)
    assert (await house.call("PATCH", path, noor, json={"pubish": True})).status_code == 422


async def test_admin_publishes_for_the_organization_and_a_member_does_not(house: House) -> None:
    """Asked where it is written: id, scope and share set, admin-only, four categories, and what admins said."""
    memory = {
        "facts": [known("The launch is in May.", 1, 5), known("Sam has a secret.", 1)],
        "preferences": [known("They like May.", 5)],
    }
    utility(house.world, *[written("They met.", **memory)] * 4)
    noor, sam, kitchen = await cast(house)
    home = kitchen.organization_id
    for who, expected in ((sam, set()), (noor, {"The launch is in May."})):
        body = {
            "agent": "@ada",
            "text": "The launch is in May.",
            "space": kitchen.id,
            "organizationId": home,
            "memoryControl": {"longTermMemory": {"scopes": {"organization": True}, "shareWithOrganization": True}},
        }
        async with house.world.denizen.living():
            for _ in range(2):
                await house.call("POST", "/api/chat", who, json=body)
                await house.world.denizen.run_until_idle()
        published = await house.world.denizen.memory.list(owner=f"organization:{home}")
        assert {each.text for each in published} == expected


async def test_what_an_admin_says_in_a_space_can_become_the_organizations(house: House) -> None:
    """As the web client says it: each message names the organization, and what is shared is settled beforehand."""
    memory = {"facts": [known("The launch is in May.", 1)]}
    utility(house.world, *[written("They met.", **memory)] * 4)
    noor, sam, kitchen = await cast(house)
    home = kitchen.organization_id
    path = f"/api/spaces/{kitchen.id}"
    policy = {"scopes": {"organization": True}, "share_with_organization": True}
    assert (await house.call("PATCH", f"{path}/memory", sam, json=policy)).status_code == 200
    async with house.world.denizen.living():
        for text in ("The launch is in May.", "Well.", "So."):
            said = {"text": text, "organizationId": home}
            answer = await house.call("POST", f"{path}/messages", noor, json=said)
            assert (answer.status_code, answer.json()["metadata"]) == (201, {"memory": {"organization": True}})
            await house.world.denizen.run_until_idle()
    published = await house.world.denizen.memory.list(owner=f"organization:{home}")
    assert [each.text for each in published] == ["The launch is in May."]
    other = await house.call("POST", f"{path}/messages", noor, json={"text": "Hm.", "organizationId": "elsewhere"})
    assert (other.status_code, other.json()["code"]) == (404, "not_found")


async def test_a_question_to_a_panel_can_name_the_organization(house: House) -> None:
    noor, _, _ = await cast(house)
    panel = await house.world.denizen.panels.create("Board", [noor], model="m")
    asked = {"text": "What now?", "organizationId": noor.organization_id}
    told = await house.call("POST", f"/api/panels/{panel.id}/rounds", noor, json=asked)
    assert told.json()["message"]["metadata"] == {"memory": {"organization": True}}


async def test_a_correction_is_one_for_whoever_else_has_it_and_for_the_summary(house: House) -> None:
    """And it stays: the next pass, which carries the old text over, does not bring it back."""
    facts = [known("Noor lives in Bern.", 1), known("Noor sings.", 1)]
    utility(house.world, *[written("They met.", facts=facts)] * 2)
    world = house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    kitchen = await world.space("Kitchen", noor)
    await world.denizen.spaces.join(kitchen, ada, attention="none")
    for _ in range(4):
        await world.say(noor, "Hm.", kitchen)
    assert await world.denizen.memory.summarize(kitchen) == "done"
    hers = next(each for each in await world.denizen.memory.list(owner=f"user:{noor.id}") if "Bern" in each.text)
    await house.call("PATCH", f"/api/memory/{hers.id}", noor, json={"text": "Noor lives in Basel."})
    state = await world.denizen.memory.summary(kitchen)
    assert [each.text for each in state.memory.facts] == ["Noor lives in Basel.", "Noor sings."]
    for _ in range(2):
        await world.say(noor, "Hm.", kitchen)
    assert await world.denizen.memory.summarize(kitchen) == "done"
    live = [each for each in await world.denizen.memory.list() if each.superseded_by is None and "lives" in each.text]
    assert {each.text for each in live} == {"Noor lives in Basel."}
    assert {each.scope for each in live} == {"conversation", "user", "persona"}
    spelt = await house.call("PATCH", f"/api/memory/{live[0].id}", noor, json={"text": "Noor lives in BASEL!"})
    assert (spelt.json()["id"], spelt.json()["text"]) == (live[0].id, "Noor lives in BASEL!")


async def test_who_forgets_what_a_conversation_remembers_leaves_others_what_is_theirs(house: House) -> None:
    """The same words, from the same message: Sam's own copy goes, Noor's and the organization's stay."""
    noor, sam, kitchen = await cast(house)
    ids = {
        name: await remembered(house, kitchen, "Tea is at four.", **owner)
        for name, owner in {
            "conversation": {"scope": "conversation", "space_id": kitchen.id},
            "noor": {"scope": "user", "user_id": noor.id},
            "sam": {"scope": "user", "user_id": sam.id},
            "everyone": {"scope": "organization"},
        }.items()
    }
    assert (await house.call("DELETE", f"/api/memory/{ids['conversation']}", sam)).status_code == 204
    left = {each.id for each in await house.world.denizen.memory.list()}
    assert left == {ids["noor"], ids["everyone"]}


async def test_what_was_forgotten_cannot_come_back_by_a_correction(house: House) -> None:
    noor, _, kitchen = await cast(house)
    gone = await remembered(house, kitchen, "Noor sings.", scope="user", user_id=noor.id)
    await house.call("DELETE", f"/api/memory/{gone}", noor)
    other = await remembered(house, kitchen, "Noor dances.", scope="user", user_id=noor.id)
    refused = await house.call("PATCH", f"/api/memory/{other}", noor, json={"text": "Noor sings!"})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")


async def test_the_report_tells_what_is_wrong_and_not_what_it_says(house: House) -> None:
    noor, sam, kitchen = await cast(house)
    await remembered(house, kitchen, "Noor plays the violin.", scope="user", user_id=noor.id)
    await remembered(house, kitchen, "The violin Noor plays.", scope="user", user_id=noor.id)
    assert (await house.call("GET", "/api/memory/report", sam)).status_code == 403
    told = await house.call("GET", "/api/memory/report", noor)
    assert [each["problem"] for each in told.json()["findings"]] == ["duplicate"]
    assert "violin" not in told.text
