"""Removes secrets from a definition for export: each is replaced by a name. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Final, cast

from denizen.access.secrets import NAME
from denizen.agents.definition import AgentDefinition
from denizen.agents.differences import safe
from denizen.agents.documents import Plain

_MAY_HOLD_SECRETS: Final = ("tools", "mcp")
_NAMED: Final = ("headers", "env")
"""Where `${NAME}` is replaced by the secret when it is used."""
_REFERENCE: Final = re.compile(rf"\$\{{({NAME})\}}")
_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Token)\s+", re.IGNORECASE)
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Z0-9]+")
_NAME_CHARACTERS: Final = 60

_Path = tuple[str, ...]


class DefinitionWithoutSecrets:
    """A definition without secrets, and the names of those it uses."""

    def __init__(self, definition: AgentDefinition) -> None:
        self._new: set[str] = set()
        said = cast("dict[str, Plain]", json.loads(definition.model_dump_json(exclude_defaults=True)))
        self.definition = {
            name: self._hide(value, (name,)) if name in _MAY_HOLD_SECRETS else value for name, value in said.items()
        }
        used = {name for field in _MAY_HOLD_SECRETS for name in _references(self.definition.get(field))}
        self.names = tuple(sorted(used))

    def _hide(self, value: Plain, path: _Path) -> Plain:
        if isinstance(value, dict):
            own = value.get("name")
            here = (*path, own) if path == ("tools",) and isinstance(own, str) else path
            return {key: self._hide(each, (*here, key)) for key, each in value.items()}
        if isinstance(value, list) and any(isinstance(each, dict) for each in value):
            return [self._hide(each, path) for each in value]
        shown = safe(path, value)
        if shown == value or not isinstance(value, str) or len(path) < 4 or path[-2] not in _NAMED:
            return shown
        # A mask could not be sent as a header: the name of a secret can, and says what is missing.
        scheme = _SCHEME.match(value)
        return f"{scheme[0] if scheme else ''}${{{self._name(path)}}}"

    def _name(self, path: _Path) -> str:
        words = _NOT_IN_A_NAME.sub("_", f"{path[1]}_{path[-1]}".upper()).strip("_")
        words = (words if words[:1].isalpha() else f"S_{words}")[:_NAME_CHARACTERS]
        name = next(each for at in count(1) if (each := words if at == 1 else f"{words}_{at}") not in self._new)
        self._new.add(name)
        return name


def _references(value: Plain | None) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)
    elif isinstance(value, str):
        yield from _REFERENCE.findall(value)
