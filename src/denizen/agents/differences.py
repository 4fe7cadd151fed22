"""The differences between two definitions, field by field, without secrets. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from denizen.agents.definition import AgentDefinition
from denizen.agents.documents import Plain, plain
from denizen.masking import MASK, is_secret_name, masked

_GUARDED: Final = ("headers", "env")
"""Mappings whose values are often secrets, whatever their keys."""
_HARMLESS: Final = ("accept", "accept-language", "content-type", "user-agent", "lang", "tz", "path", "home")
_ONLY_PLACES: Final = re.compile(r"(?:(?:Bearer|Basic|Token)\s+)?(?:\$\{\w+\})+", re.IGNORECASE)
_OPTION: Final = re.compile(r"--?(?P<name>[A-Za-z][\w-]*)(?P<value>=.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A changed field. None means that there was or is no value."""

    path: str
    old: Plain
    new: Plain


@dataclass(frozen=True, slots=True)
class Change:
    """The result for one thing that a file names."""

    kind: Literal["agent", "space", "person", "bridge"]
    name: str
    """A handle, or the name of a space."""
    action: Literal["created", "changed", "unchanged"]
    fields: tuple[FieldChange, ...] = ()


def difference(old: AgentDefinition, new: AgentDefinition) -> list[FieldChange]:
    """The differences, in the order of the definition. What only one of the two has is shown without its defaults."""
    if old == new:
        return []
    before, after = dict(_leaves(plain(old, whole=True))), dict(_leaves(plain(new, whole=True)))
    told = {path for each in (old, new) for path, _ in _leaves(plain(each))}
    different = [
        path
        for path in dict.fromkeys([*after, *before])
        if before.get(path) != after.get(path) and (path in told or (path in before and path in after))
    ]
    changes: list[FieldChange] = []
    for name in AgentDefinition.model_fields:
        paths = [path for path in different if path[0] == name]
        changes += [
            FieldChange(".".join(each), safe(each, before.get(each)), safe(each, after.get(each))) for each in paths
        ]
        was, now = getattr(old, name), getattr(new, name)
        if not paths and was != now:  # another order, or an object with defaults only
            changes.append(FieldChange(name, _outline(plain(was)), _outline(plain(now))))
    return changes


def _outline(value: Plain) -> Plain:
    """The structure without the values."""
    if isinstance(value, list):
        return [each.get("name", "…") if isinstance(each, dict) else each for each in value]
    return list(value) if isinstance(value, dict) else value


_Path: TypeAlias = tuple[str, ...]


def _leaves(value: Plain, path: _Path = ()) -> Iterator[tuple[_Path, Plain]]:
    """Every value that is not a collection, with its path."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _leaves(each, (*path, key))
    elif isinstance(value, list) and (path == ("tools",) or any(isinstance(each, dict | list) for each in value)):
        for index, each in enumerate(value):
            name = each.get("name") if isinstance(each, dict) else each
            yield from _leaves(each, (*path, name if isinstance(name, str) else str(index)))
    else:
        yield path, value


def safe(path: _Path, value: Plain) -> Plain:
    """The value, or a mark if it may be a secret. References to secrets (`${NAME}`) are not secrets."""
    if isinstance(value, list):
        return _arguments(value)
    if not isinstance(value, str):
        return value
    guarded = any(each in _GUARDED for each in path[:-1]) and path[-1].lower() not in _HARMLESS
    if (guarded or is_secret_name(path[-1].replace("-", "_"))) and not _ONLY_PLACES.fullmatch(value):
        return MASK
    return masked(value)


def _arguments(values: list[Plain]) -> list[Plain]:
    """The values with a mark for the argument after an option such as `--token`."""
    shown: list[Plain] = []
    hide = False
    for each in values:
        option = _OPTION.fullmatch(each) if isinstance(each, str) else None
        secret = option is not None and is_secret_name(option["name"].replace("-", "_"))
        if hide and option is None:
            shown.append(MASK)
        elif secret and option is not None and option["value"]:
            shown.append(f"{str(each).partition('=')[0]}={MASK}")
        else:
            shown.append(masked(each) if isinstance(each, str) else each)
        hide = secret and option is not None and not option["value"]
    return shown
