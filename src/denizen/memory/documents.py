"""The documents a utility model writes about a conversation: a summary for people, and a memory for programs. Pure.

A document is accepted only if it is complete and valid. An item without a source message is dropped: nobody could tell
where it comes from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator
from typing import Annotated, Any, Final, cast

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from denizen.shapes.vocabulary import MemoryCategory as Category

CATEGORIES: Final[tuple[Category, ...]] = (
    "facts",
    "preferences",
    "people",
    "projects",
    "decisions",
    "open_loops",
    "todos",
)
SHARED: Final[tuple[Category, ...]] = ("facts", "people", "projects", "decisions")
"""The categories that may be shared with the organization, unless it sets others."""
ITEM_CHARACTERS: Final = 500
MOST_ITEMS: Final = 60
"""The most items in one category."""


class Unusable(ValueError):
    """The model's answer is not valid. The message is sent back to the model."""


class Item(BaseModel, frozen=True, extra="ignore"):
    """One fact, preference, decision or the like."""

    text: str = Field(min_length=1, max_length=ITEM_CHARACTERS)
    confidence: float = Field(default=1.0, ge=0, le=1)
    sources: tuple[int, ...] = ()
    """The numbers of the source messages."""
    replaces: str | None = Field(default=None, max_length=ITEM_CHARACTERS)
    """The text of the outdated item that this one replaces."""


def _items(value: object) -> object:
    """Accepts a plain text as an item, and drops empty items."""
    if not isinstance(value, list):
        return value
    found: list[Any] = [{"text": each} if isinstance(each, str) else each for each in cast("list[Any]", value)]
    return [each for each in found if not _says_nothing(each)]


def _says_nothing(value: Any) -> bool:
    return isinstance(value, dict) and not str(cast("dict[str, Any]", value).get("text", "x")).strip()


Items = Annotated[tuple[Item, ...], BeforeValidator(_items)]


class Memory(BaseModel, frozen=True, extra="ignore"):
    """The memory document, `memory_json`."""

    facts: Items = ()
    preferences: Items = ()
    people: Items = ()
    projects: Items = ()
    decisions: Items = ()
    open_loops: Items = ()
    todos: Items = ()
    tags: tuple[str, ...] = ()

    def of(self, category: Category) -> tuple[Item, ...]:
        return getattr(self, category)

    def without(self, unwanted: Callable[[str], bool]) -> Memory:
        """Returns a copy without the items whose text is unwanted."""
        kept = {
            category: tuple(each for each in self.of(category) if not unwanted(each.text)) for category in CATEGORIES
        }
        return self.model_copy(update={**kept, "tags": tuple(each for each in self.tags if not unwanted(each))})

    def reworded(self, how: Callable[[str], str]) -> Memory:
        """Returns a copy with the text of each item replaced by this function."""
        said = {
            category: tuple(each.model_copy(update={"text": how(each.text)}) for each in self.of(category))
            for category in CATEGORIES
        }
        return self.model_copy(update=said)

    def items(self) -> Iterator[tuple[Category, Item]]:
        """Yields all items with their categories."""
        for category in CATEGORIES:
            for each in self.of(category):
                yield category, each


class PassResult(BaseModel, frozen=True, extra="ignore"):
    """The result of a pass."""

    summary_markdown: str = Field(min_length=1)
    memory_json: Memory

    def without(self, unwanted: Callable[[str], bool]) -> PassResult:
        """Returns a copy without the unwanted items, and without unwanted lines and sentences of the summary."""
        lines = (_kept_of(line, unwanted) for line in self.summary_markdown.splitlines())
        summary = "\n".join(line for line in lines if line is not None)
        return PassResult(summary_markdown=summary or "…", memory_json=self.memory_json.without(unwanted))


_SENTENCE_ENDS = re.compile(r"(?<=[.!?…]) +")


def _kept_of(line: str, unwanted: Callable[[str], bool]) -> str | None:
    """Returns what is left of a line of a summary; None if nothing is."""
    if not line.strip():
        return line
    sentences = _SENTENCE_ENDS.split(line)
    kept = [each for each in sentences if not unwanted(each)]
    if not kept or unwanted(line):
        return None
    return line if len(kept) == len(sentences) else " ".join(kept)


_FENCED = re.compile(r"^\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)


def read(text: str, known: Container[int]) -> PassResult:
    """Parses a model's answer, keeping only sources among the `known` messages. Raises `Unusable` if it is
    incomplete.
    """
    fenced = _FENCED.match(text)
    try:
        parsed = json.loads(fenced[1] if fenced else text)
        written = PassResult.model_validate(parsed)
    except json.JSONDecodeError as error:
        problem = f"It is no JSON ({error.msg}, line {error.lineno}). Perhaps it was cut off: be shorter."
        raise Unusable(problem) from error
    except RecursionError as error:
        raise Unusable("It is nested too deep.") from error
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5])
        raise Unusable(f"It does not have the requested shape. {said}.") from error
    if not written.summary_markdown.strip():
        raise Unusable("summary_markdown says nothing.")
    return written.model_copy(update={"memory_json": _resting_on(written.memory_json, known)})


def _resting_on(memory: Memory, known: Container[int]) -> Memory:
    kept: dict[str, Any] = {}
    for category in CATEGORIES:
        items = [
            each.model_copy(update={"sources": tuple(sorted({number for number in each.sources if number in known}))})
            for each in memory.of(category)
        ]
        kept[category] = tuple(each for each in items if each.sources)[:MOST_ITEMS]
    return memory.model_copy(update=kept)


def load(stored: str) -> Memory:
    """Parses a stored memory document."""
    return Memory.model_validate_json(stored)


def dump(memory: Memory) -> str:
    return memory.model_dump_json(exclude_defaults=True)
