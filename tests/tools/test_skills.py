"""Agent Skills: an agent sees what it could read, and reads it when it needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from denizen import call, reply
from denizen.access import roles
from denizen.agents.definition import AgentDefinition
from denizen.agents.files import DefinitionFile, read
from denizen.cli.apply import read_paths
from denizen.consciousness import log
from denizen.errors import DefinitionsInvalid, InvalidInput
from denizen.inbox.sources import Source as OutsideSource
from denizen.tools.skills import MOST_CHARACTERS, SKILL_FILE, Skill, read_folder
from tests.server.conftest import House, served
from tests.world import World, as_text

BREAD: dict[str, Any] = {
    "description": "Bakes rye bread. Use it when somebody asks for bread.",
    "text": "# Rye\n\nLet it rise for twelve hours.",
    "files": {"references/flour.md": "Type 1150.", "scripts/timer.py": "print('ding')"},
    "source": "skills/bread",
}
HEAD = "---\nname: bread\ndescription: >\n  Bakes rye\n  bread.\nlicense: MIT\n---\n"


def write_skill(folder: Path) -> Path:
    skill = folder / "skills" / "bread"
    (skill / "references").mkdir(parents=True)
    (skill / SKILL_FILE).write_text(f"{HEAD}Let it rise.\n")
    (skill / "references" / "flour.md").write_text("Type 1150.")
    (skill / "config.yaml").write_text("not: a definition")
    (skill / ".hidden").write_text("hidden")
    (skill / "link.md").symlink_to("/etc/hostname")
    file = folder / "ada.yaml"
    file.write_text("name: Ada\nskills:\n  bread: skills/bread\n")
    return file


async def test_an_agent_sees_descriptions_and_reads_the_rest(world: World) -> None:
    """The list is in the self, which stays the same; the instructions and files come by the tool that reads texts, as
    text from outside."""
    noor = await world.person("Noor")
    ada = await world.agent(
        "Ada",
        call("read_entry", entry="skill:bread"),
        call("read_entry", entry="skill:bread/references/flour.md"),
        call("read_entry", entry="skill:bread/none.md"),
        call("read_entry", entry="skill:cake"),
        reply("Twelve hours."),
        "Told Noor.",
        reply("You are welcome."),
        "Said so.",
        skills={"bread": BREAD},
    )
    room = await world.space("Room", noor, ada)
    await world.say(noor, "How long does rye rise?", room)
    await world.run()
    await world.say(noor, "Thanks.", room)
    await world.run()

    requests = world.model(ada).requests
    first = as_text(requests[0][0])
    listed = 'SKILLS (read one before you use it: read_entry("skill:NAME")):\n  - bread: Bakes rye bread. Use it when'
    assert listed in first
    assert "twelve hours" not in first
    assert len({as_text(each[0]) for each in requests}) == 1, "the prefix stays"
    told = [each for each in await world.history(ada) if each.startswith("results: read_entry")]
    assert "Let it rise for twelve hours." in told[0]
    assert '- read_entry("skill:bread/references/flour.md")' in told[0]
    assert "Type 1150." in told[1]
    assert "The skill bread has no file 'none.md'. It has: references/flour.md, scripts/timer.py." in told[2]
    assert "cake" in told[3]
    entries = await world.denizen.db.read(log.entries, ada.id, 1)
    [first_read, *_] = [each.outside for each in entries if each.kind == "results"]
    assert first_read == (OutsideSource("file", "skill bread"),)


async def test_without_skills_nothing_is_said_of_them(small_world: World) -> None:
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada", reply("Hi."), "Said hi.")
    room = await small_world.space("Room", noor, ada)
    await small_world.say(noor, "Hello", room)
    await small_world.run()
    assert "SKILL" not in as_text(small_world.model(ada).requests[0][0])


def test_a_file_names_a_folder(tmp_path: Path) -> None:
    [declared] = read_paths([str(write_skill(tmp_path))])
    [whole_folder] = read_paths([str(tmp_path)])
    assert declared.document == whole_folder.document, "files of a skill are not definitions"
    definition = declared.document.definition  # pyright: ignore[reportAttributeAccessIssue]
    assert definition.skills == {
        "bread": Skill(
            description="Bakes rye bread.",
            text="Let it rise.",
            files={"config.yaml": "not: a definition", "references/flour.md": "Type 1150."},
            source="skills/bread",
        )
    }


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("bread", "Let it rise.", "begins with its name and description between two lines"),
        ("bread", "---\nname: [\n---\n", "is not YAML"),
        ("bread", "---\nname: cake\n---\n", "calls the skill 'cake'"),
        ("bread", "---\nname: bread\n---\n", "has no description"),
        ("bread", "---\n- bread\n---\n", "calls the skill 'None'"),
    ],
)
def test_a_folder_that_is_no_skill_is_told_with_its_place(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        read_folder(name, {SKILL_FILE: text})
    source = DefinitionFile("a.yaml", f"name: Ada\nskills:\n  {name}: here\n", folder=lambda _: {SKILL_FILE: text})
    with pytest.raises(DefinitionsInvalid, match=r"a.yaml:3: skills.bread: 'here': ") as raised:
        read([source])
    assert sentence in str(raised.value)
    with pytest.raises(DefinitionsInvalid, match=r"skills.bread: 'here' cannot be read: No such folder"):
        read([DefinitionFile("a.yaml", f"name: Ada\nskills:\n  {name}: here\n")])


@pytest.mark.parametrize(
    "skill",
    [
        {**BREAD, "description": ""},
        {**BREAD, "description": "x" * 1_025},
        {**BREAD, "text": "x" * MOST_CHARACTERS},
        {**BREAD, "files": {"../escape.md": "x"}},
        {**BREAD, "files": {"/etc/passwd": "x"}},
        {**BREAD, "files": {"a/../b": "x"}},
        {**BREAD, "files": {f"{at}.md": "x" for at in range(51)}},
        {**BREAD, "run": "yes"},
    ],
)
def test_a_skill_is_bounded(skill: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AgentDefinition.model_validate({"skills": {"bread": skill}})


@pytest.mark.parametrize("name", ["Bread", "a--b", "-a", "a b", "x" * 65, "../x"])
def test_a_skill_has_a_plain_name(name: str) -> None:
    with pytest.raises(ValidationError):
        AgentDefinition.model_validate({"skills": {name: BREAD}})


async def test_admins_add_skills_and_owners_trust_them(small_world: World) -> None:
    async with served(small_world) as house:
        await _admins_add_and_owners_trust(house)


async def _admins_add_and_owners_trust(house: House) -> None:
    world = house.world
    olga, amin = await world.person("Olga"), await world.person("Amin")
    await world.denizen.db.write(roles.set_role, amin.id, "admin")
    trusted = {"bread": {**BREAD, "results": "trusted"}}
    made = await house.call("POST", "/api/agents", amin, json={"name": "Ada", "skills": {"bread": BREAD}})
    assert made.status_code == 201, made.text
    assert made.json()["definition"]["skills"]["bread"]["source"] == "skills/bread"
    refused = await house.call("PATCH", "/api/agents/@ada", amin, json={"skills": trusted})
    assert (refused.status_code, "skills.bread says `results: trusted`" in refused.json()["detail"]) == (403, True)
    assert (await house.call("PATCH", "/api/agents/@ada", olga, json={"skills": trusted})).status_code == 200
    wrong = await house.call("PATCH", "/api/agents/@ada", olga, json={"skills": {"Not a name": BREAD}})
    assert wrong.status_code == 422
