"""The state of mind of an agent in one conversation, and the changes to it. Pure.

The enumerations here are the only ones: definitions, configuration, the model's answers and people's changes are
checked against them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from denizen.errors import InvalidInput
from denizen.inbox.format import one_line
from denizen.shapes.vocabulary import Complexity, Mood, Skill

MOODS: Final[tuple[Mood, ...]] = get_args(Mood)
SKILLS: Final[tuple[Skill, ...]] = get_args(Skill)
COMPLEXITIES: Final[tuple[Complexity, ...]] = get_args(Complexity)

IMPRINTS: Final = 20
"""The most things a conversation can imprint on an agent."""
REASON_CHARACTERS: Final = 500

_IN_WORDS: Final[Mapping[str, str]] = {
    "neutral": "",
    "empathetic": "acknowledge how they feel before anything else",
    "patient": "take your time, one thing after the other",
    "encouraging": "say what has worked, and ask for a little more",
    "focused": "stay with what is to be done",
    "analytical": "reason in the open, from what is known",
    "curious": "ask what you do not know yet",
    "creative": "offer something they do not expect",
    "cautious": "check before you act, and say what is uncertain",
}


@dataclass(frozen=True, slots=True)
class StateOfMind:
    """The disposition of an agent in a conversation."""

    mood: Mood = "neutral"
    user_skill: Skill = "unknown"
    task_complexity: Complexity = "unknown"

    def line(self) -> str | None:
        """Returns the line the agent is told; None for a neutral state of mind."""
        if self == StateOfMind():
            return None
        # A newer server may know moods that this client does not.
        words = _IN_WORDS.get(self.mood)
        guidance = f" ({words})" if words else ""
        parts = [f"your mood is {self.mood}{guidance}"]
        if self.user_skill != "unknown":
            parts.append(f"their skill is {self.user_skill}")
        if self.task_complexity != "unknown":
            parts.append(f"the task is {self.task_complexity}")
        return ", ".join(parts)

    def as_dict(self) -> dict[str, str]:
        return {"mood": self.mood, "user_skill": self.user_skill, "task_complexity": self.task_complexity}


_Key = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60, pattern=r"^[^\x00-\x1f]+$")]
_Value = Annotated[str, StringConstraints(strip_whitespace=True, max_length=300)]


class Adjustment(BaseModel):
    """What a metaprompt may change, and the one schema its answer is checked against."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    mood: Mood | None = None
    user_skill: Skill | None = None
    task_complexity: Complexity | None = None
    imprints: dict[_Key, _Value] = Field(default_factory=dict[str, str], max_length=IMPRINTS)
    """What shall be kept of this conversation, under keys of the model's own choice; an empty text takes it away."""
    reason: Annotated[str, StringConstraints(strip_whitespace=True)] = ""

    def apply(self, before: StateOfMind) -> StateOfMind:
        """Returns the state with the given values changed; the others stay."""
        given = {"mood": self.mood, "user_skill": self.user_skill, "task_complexity": self.task_complexity}
        return replace(before, **{name: value for name, value in given.items() if value is not None})

    def imprint(self, before: Mapping[str, str]) -> dict[str, str]:
        """Returns the imprints afterwards: if there are too many, the newest stay."""
        both = {**{key: text for key, text in before.items() if key not in self.imprints}, **self.imprints}
        kept = [(key, one_line(text)) for key, text in both.items() if text]
        return dict(kept[-IMPRINTS:])

    @property
    def why(self) -> str:
        return one_line(self.reason)[:REASON_CHARACTERS]


def schema() -> dict[str, Any]:
    """The JSON schema of the model's answer."""
    return {
        "type": "object",
        "properties": {
            "mood": {"type": "string", "enum": list(MOODS)},
            "user_skill": {"type": "string", "enum": list(SKILLS)},
            "task_complexity": {"type": "string", "enum": list(COMPLEXITIES)},
            "imprints": {
                "type": "object",
                "description": "Anything to keep of this conversation, as short texts under keys.",
                "additionalProperties": {"type": "string"},
            },
            "reason": {"type": "string", "description": "Why, in one sentence."},
        },
        "additionalProperties": False,
    }


def read_adjustment(answer: object) -> Adjustment | str:
    """Parses the adjustment in an answer, a mapping or a text with one JSON object; otherwise returns what is wrong
    with it.
    """
    if isinstance(answer, str):
        found = _json_in(answer)
        if found is None:
            return "the answer holds no JSON object"
        answer = found
    if not isinstance(answer, Mapping):
        return "the answer is no JSON object"
    given = {key: value for key, value in cast("Mapping[str, object]", answer).items() if value is not None}
    try:
        return Adjustment.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the answer"
        return f"{where[:80]}: {first['msg']}"


def wanted(given: Mapping[str, object]) -> Adjustment:
    """Parses the state of mind that somebody wants. Raises `InvalidInput` if it is invalid or empty."""
    found = read_adjustment(given)
    if isinstance(found, str):
        raise InvalidInput(f"Invalid state of mind. {found}.")
    if not found.model_dump(exclude_none=True, exclude_defaults=True):
        raise InvalidInput("Give at least one of mood, user_skill or task_complexity.")
    return found


def _json_in(text: str) -> object:
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        return json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return None
