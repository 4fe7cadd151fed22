"""Shapes that are made from values with the same names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from denizen.clock import Instant, instant
from denizen.server.shapes.filling import filled
from denizen.shapes.value import Value

NINE = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class _PersonOut(Value):
    name: str


class _NoteOut(Value):
    id: str
    text: str
    by: _PersonOut | None
    readers: list[_PersonOut]
    created_at: datetime
    edited_at: datetime | None
    pinned: bool = False


@dataclass(frozen=True)
class _Person:
    name: str


@dataclass(frozen=True)
class _Note:
    id: str
    by: _Person | None
    readers: tuple[_Person, ...]
    created_at: Instant
    edited_at: Instant | None = None


@dataclass(frozen=True)
class _Text:
    id: str
    text: str
    pinned: bool = True


def test_fields_come_from_the_first_source_that_has_them() -> None:
    note = _Note("first", _Person("Noor"), (_Person("Ada"),), instant(NINE))

    made = filled(_NoteOut, note, _Text("second", "Two eggs."))

    noor, ada = _PersonOut(name="Noor"), _PersonOut(name="Ada")
    whole = _NoteOut(id="first", text="Two eggs.", by=noor, readers=[ada], created_at=NINE, edited_at=None, pinned=True)
    assert made == whole


def test_given_fields_come_before_those_of_the_sources() -> None:
    note = _Note("first", None, (), instant(NINE), instant(NINE))
    made = filled(_NoteOut, note, text="Three.", pinned=False)
    assert (made.text, made.by, made.edited_at) == ("Three.", None, NINE)


def test_a_field_without_a_source_is_an_error_even_if_it_has_a_default() -> None:
    with pytest.raises(AttributeError, match="pinned"):
        filled(_NoteOut, _Note("first", None, (), instant(NINE)), text="Three.")
