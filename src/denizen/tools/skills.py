"""Agent Skills: instructions for a kind of task, which an agent reads when it needs them.

Its self only lists each skill with its description; `read_entry("skill:NAME")` shows the instructions, and
`read_entry("skill:NAME/PATH")` a file that belongs to them. Denizen never runs a script of a skill: an agent can do so
only with a tool that its owner gave it.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import BaseModel, Field, field_validator, model_validator

from denizen.errors import InvalidInput, NotFound, existing
from denizen.ids import AgentId
from denizen.inbox.sources import Source
from denizen.storage.database import Tx, select_where, value
from denizen.storage.schema import agents
from denizen.tools.tool import Done, Hand, Results

SKILL_FILE: Final = "SKILL.md"
NAME: Final = r"^[a-z0-9]+(-[a-z0-9]+)*$"
NAME_CHARACTERS: Final = 64
DESCRIPTION_CHARACTERS: Final = 1_024
MOST_FILES: Final = 50
MOST_CHARACTERS: Final = 200_000
"""Of one skill: its instructions and its files."""
_PATH: Final = re.compile(r"(?!.*(?:^|/)\.{1,2}(?:/|$))[^/\\\x00-\x1f][^\\\x00-\x1f]{0,199}")
_FRONT: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)(.*)\Z", re.DOTALL)


class Skill(BaseModel, frozen=True, extra="forbid"):
    """What an agent knows how to do: a folder with a `SKILL.md`, as it was read."""

    description: str = Field(min_length=1, max_length=DESCRIPTION_CHARACTERS)
    """What it is for and when to use it. The agent always reads this."""
    text: str = Field(max_length=MOST_CHARACTERS)
    """The instructions: the agent reads them when it uses the skill."""
    files: dict[str, str] = Field(default_factory=dict[str, str], max_length=MOST_FILES)
    """Texts that belong to it, by their paths in its folder."""
    source: str = Field(default="", max_length=500)
    """Where it comes from, for the people who read the definition."""
    results: Results = "outside"
    """Whether its instructions are text from outside, or `trusted`: as if a person here had written them."""

    @field_validator("files")
    @classmethod
    def _paths_stay_inside(cls, files: dict[str, str]) -> dict[str, str]:
        for path in files:
            if not _PATH.fullmatch(path):
                raise ValueError(f"{path[:60]!r} is not a path inside the folder of the skill")
        return files

    @model_validator(mode="after")
    def _fits(self) -> Skill:
        characters = len(self.text) + sum(map(len, self.files.values()))
        if characters > MOST_CHARACTERS:
            raise ValueError(
                f"it has {characters:,} characters with its files; {MOST_CHARACTERS:,} are allowed. Leave files out"
            )
        return self


def read_folder(name: str, files: Mapping[str, str]) -> Skill:
    """The skill of a folder with these texts. Raises `InvalidInput` if its `SKILL.md` cannot be read."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    found = _FRONT.match(files.get(SKILL_FILE, ""))
    if found is None:
        raise InvalidInput(
            f"There is no {SKILL_FILE} that begins with its name and description between two lines `---`."
        )
    try:
        loaded: object = YAML(typ="safe", pure=True).load(io.StringIO(found[1]))  # pyright: ignore[reportUnknownMemberType]
    except YAMLError as error:
        raise InvalidInput(f"The head of {SKILL_FILE} is not YAML.") from error
    head = cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else {}
    called, description = head.get("name"), head.get("description")
    if called != name:
        raise InvalidInput(f"{SKILL_FILE} calls the skill {str(called)[:80]!r}. Use that name here.")
    if not isinstance(description, str) or not description.strip():
        raise InvalidInput(f"{SKILL_FILE} has no description. Say what the skill is for and when to use it.")
    others = {path: text for path, text in files.items() if path != SKILL_FILE}
    return Skill(description=" ".join(description.split()), text=found[2].strip(), files=others)


_definition = select_where(agents, "definition", "id")


def read_skill(tx: Tx, hand: Hand, pointer: str) -> Done:
    """The instructions of a skill of the agent, or one of its files (`NAME/PATH`)."""
    name, _, path = pointer.partition("/")
    skill = existing(_skills_of(tx, hand.agent_id).get(name), "skill", name)
    outside = () if skill.results == "trusted" else (Source("file", f"skill {name}"),)
    if not path:
        listed = "".join(f'\n- read_entry("skill:{name}/{each}")' for each in skill.files)
        return Done(skill.text + (f"\n\n[Files of this skill:]{listed}" if listed else ""), outside=outside)
    if path not in skill.files:
        known = ", ".join(skill.files) or "none"
        raise NotFound("file", path, f"The skill {name} has no file {path!r}. It has: {known}.")
    return Done(skill.files[path], outside=outside)


def _skills_of(tx: Tx, agent_id: AgentId) -> dict[str, Skill]:
    definition = value(tx, _definition, id=agent_id)
    stored: dict[str, Any] = {} if definition is None else json.loads(definition).get("skills", {})
    return {name: Skill.model_validate(each) for name, each in stored.items()}
