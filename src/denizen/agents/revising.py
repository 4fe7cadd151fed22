"""A definition as shown to people who may change it, and their changes applied to it. Pure.

Secrets in headers, environments and arguments are shown as a mark. A mark that comes back unchanged keeps the secret,
so that a definition can be read, changed and sent again without secrets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from denizen.agents.definition import AgentDefinition
from denizen.agents.differences import safe
from denizen.agents.documents import Plain
from denizen.agents.files import checked
from denizen.errors import InvalidInput
from denizen.masking import MASK
from denizen.reflection.persona import as_definition

_MAY_HOLD_SECRETS: Final = ("tools", "mcp")

_Path = tuple[str, ...]


def said(definition: AgentDefinition) -> dict[str, Plain]:
    """The fields of the definition without defaults."""
    return cast("dict[str, Plain]", json.loads(definition.model_dump_json(exclude_defaults=True)))


def shown(definition: AgentDefinition) -> dict[str, Plain]:
    """The same with a mark for possible secrets."""
    return {
        name: _hidden(value, (name,)) if name in _MAY_HOLD_SECRETS else value
        for name, value in said(definition).items()
    }


def _hidden(value: Plain, path: _Path) -> Plain:
    if isinstance(value, dict):
        return {key: _hidden(each, (*path, key)) for key, each in value.items()}
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return [_hidden(each, path) for each in value]
    return safe(path, value)


def revised(definition: AgentDefinition, changes: Mapping[str, Any]) -> AgentDefinition:
    """The definition with these fields changed: mappings are merged by key, other values replaced, null resets a field.

    Raises `ValidationError`, in our words, for invalid values.
    """
    before = said(definition)
    after = cast("dict[str, Plain]", _merged(before, as_definition(changes)))
    for name in _MAY_HOLD_SECRETS:
        if name in after:
            after[name] = _restored(after[name], before.get(name), (name,))
            _require_no_marks(after[name], (name,))
    return checked(AgentDefinition, after)


def _merged(old: Plain, new: Plain) -> Plain:
    if not isinstance(new, dict):
        return new
    known = old if isinstance(old, dict) else {}
    kept = {key: value for key, value in known.items() if key not in new}
    return kept | {key: _merged(known.get(key), value) for key, value in new.items() if value is not None}


def _restored(new: Plain, old: Plain, path: _Path) -> Plain:
    """The new value, with marks that came back replaced by the old values."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {key: _restored(value, old.get(key), (*path, key)) for key, value in new.items()}
    if isinstance(new, list) and isinstance(old, list) and any(isinstance(each, dict) for each in new):
        known = {each.get("name"): each for each in old if isinstance(each, dict)}
        return [_restored(each, known.get(each.get("name")), path) if isinstance(each, dict) else each for each in new]
    return old if old is not None and new == safe(path, old) else new


def _require_no_marks(value: Plain, path: _Path) -> None:
    for where, text in _texts(value, path):
        if MASK in text:
            raise InvalidInput(
                f"{'.'.join(where)}: {MASK} hides a value, but this is not the value that was hidden. "
                "Write the value, or better the name of a secret, such as ${MY_TOKEN}."
            )


def _texts(value: Plain, path: _Path) -> Iterator[tuple[_Path, str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _texts(each, (*path, str(index)))
    elif isinstance(value, str):
        yield path, value
