"""Converts between table rows and lines of a file: a field of a line is the column of the same name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import BaseModel
from sqlalchemy import Table

from denizen.storage.database import Params, Statement, Tx, insert_into

L = TypeVar("L", bound=BaseModel)
Readers: TypeAlias = Mapping[str, Callable[[Any], Any]]
"""How columns are read that hold something else than their field, such as JSON."""

_AT_ONCE: Final = 500


def columns(line: type[BaseModel], table: Table, other: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
    """Returns the columns for the fields of a line, except the `other` ones."""
    given = other or {}
    return tuple(given[name] if name in given else table.c[name] for name in _fields(line))


def line_of(line: type[L], row: Iterable[Any], read: Readers | None = None) -> L:
    """Builds the line of a row with these columns."""
    values = dict(zip(_fields(line), row, strict=True))
    for name, of in (read or {}).items():
        values[name] = None if values[name] is None else of(values[name])
    # Not validated again: it comes from our own tables.
    return line.model_construct(**values)


def _fields(line: type[BaseModel]) -> list[str]:
    return [name for name in line.model_fields if name != "row"]


def values(line: BaseModel, *without: str) -> dict[str, Any]:
    """Returns the values of the line as columns store them."""
    return {name: _kept(value) for name, value in line if name not in ("row", *without)}


def _kept(value: Any) -> Any:
    if isinstance(value, BaseModel):
        value = value.model_dump()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | tuple) else value


def into(table: Table, line: type[BaseModel], *other: str) -> Statement:
    """Builds an insert for the fields of a line that the table has columns for, and for the `other` columns."""
    names = [name for name in line.model_fields if name in table.c]
    return insert_into(table, *dict.fromkeys([*names, *other]))


class Rows:
    """Inserts rows in batches, in their order within each table."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._waiting: dict[Statement, list[Mapping[str, Params]]] = {}

    def add(self, into: Statement, row: Mapping[str, Params]) -> None:
        rows = self._waiting.setdefault(into, [])
        rows.append(row)
        if len(rows) >= _AT_ONCE:
            self._tx.many(into, rows)
            self._waiting[into] = []

    def write(self) -> None:
        for into, rows in self._waiting.items():
            if rows:
                self._tx.many(into, rows)
        self._waiting = {}
