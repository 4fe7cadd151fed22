"""The presets of an organization over HTTP: read, changed, tried and reset."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from denizen.access import roles
from denizen.agents.prompt_config import PromptConfig
from denizen.spaces.directory import Entity
from tests.server.conftest import House

PATH = "/api/profiles/presets"
OWN: dict[str, Any] = {
    "presets": [{"id": "own", "addonPromptKeys": ["mine"]}],
    "rules": [{"id": "hurry", "presetId": "own", "anyKeywords": ["hurry"]}],
    "addonPrompts": {"mine": "Answer in one word."},
}


@pytest.fixture
def house(small_house: House, tmp_path: Path) -> House:
    """A house without a presets file: those that come with Denizen apply."""
    small_house.world.denizen.prompt_config = PromptConfig(tmp_path / "none.json")
    return small_house


async def person(house: House, name: str, role: Literal["admin", "member"]) -> Entity:
    who = await house.world.person(name)
    await house.world.denizen.db.write(roles.set_role, who.id, role)
    return who


async def test_an_owner_changes_and_resets_the_presets(house: House) -> None:
    noor = await house.world.person("Noor")
    shown = (await house.call("GET", PATH, noor)).json()
    assert shown["source"] == "shipped"
    assert [each["id"] for each in shown["document"]["presets"]][:2] == ["balanced", "concise"]
    assert "sentimentTracking" not in shown["document"]
    assert shown["addons"]["concise"].startswith("Be brief.")

    changed = (await house.call("PUT", PATH, noor, json={"document": {**OWN, "rulez": []}})).json()
    assert changed["source"] == "organization"
    assert changed["warnings"] == ["rulez is ignored: did you mean rules?"]
    listed = (await house.call("GET", "/api/profiles", noor)).json()["presets"]
    assert [(each["id"], each["text"]) for each in listed] == [("own", "Answer in one word.")]

    assert (await house.call("DELETE", PATH, noor)).json() == shown
    await house.call("DELETE", PATH, noor)
    log = (await house.call("GET", "/api/audit", noor)).json()["entries"]
    assert [(each["action"], each["kind"]) for each in log if "presets" in each["action"]] == [
        ("reset_presets", "settings"),
        ("change_presets", "settings"),
    ]


async def test_presets_are_tried_before_they_are_saved(house: House) -> None:
    noor = await house.world.person("Noor")
    said = {"text": "I am in a hurry.", "mode": "ada"}

    async def tried(**more: Any) -> Any:
        return (await house.call("POST", "/api/profiles/try", noor, json={**said, **more})).json()

    assert (await tried())["id"] == "balanced"
    draft = await tried(presets=OWN)
    assert (draft["id"], draft["reason"]) == ("own", "rule 'hurry': the message has 'hurry'")
    assert draft["text"] == "Answer in one word."
    assert (await tried(presets={"presets": []}))["code"] == "invalid_input"
    assert (await tried())["id"] == "balanced"


async def test_admins_read_and_try_and_only_owners_change(house: House) -> None:
    await house.world.person("Noor")
    admin, member = await person(house, "Ines", "admin"), await person(house, "Sam", "member")
    for who, expected in ((admin, [200, 200, 403, 403]), (member, [403, 403, 403, 403])):
        answers = [
            await house.call("GET", PATH, who),
            await house.call("POST", "/api/profiles/try", who, json={"text": "Hi."}),
            await house.call("PUT", PATH, who, json={"document": OWN}),
            await house.call("DELETE", PATH, who),
        ]
        assert [each.status_code for each in answers] == expected


async def test_wrong_presets_are_refused_with_their_place(house: House) -> None:
    noor = await house.world.person("Noor")
    wrong = {**OWN, "rules": [{"presetId": "gone"}]}
    answer = await house.call("PUT", PATH, noor, json={"document": wrong})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert "rules[0].presetId: there is no preset 'gone'" in answer.json()["detail"]
    assert (await house.call("GET", PATH, noor)).json()["source"] == "shipped"
