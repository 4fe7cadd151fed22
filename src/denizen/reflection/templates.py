"""Metaprompt templates: variables in double braces, filled in one pass. Pure. Values are never treated as templates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from denizen.errors import InvalidInput
from denizen.nearest import nearest

VARIABLES: Final = (
    "current_mood",
    "user_skill",
    "task_complexity",
    "current_sentiment",
    "recent_conversation",
    "recent_errors",
    "evidence",
    "sentiment_score",
    "consecutive_frustration",
    "consecutive_confusion",
    "consecutive_satisfaction",
    "confusion_keywords",
    "consecutive_neutral",
)
"""Every variable that a template may have."""

_VARIABLE: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def check_template(template: str) -> str:
    """Returns the template if all its variables exist. Raises `InvalidInput` that names an unknown one."""
    for name in map(str, _VARIABLE.findall(template)):
        if name not in VARIABLES:
            near = nearest(name, VARIABLES)
            hint = f"did you mean {{{{{near[0]}}}}}?" if near else f"there are {', '.join(VARIABLES)}"
            raise InvalidInput(f"There is no variable {{{{{name}}}}}; {hint}.")
    return template


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replaces the variables, each once: braces in a value stay as they are."""
    return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), template)
