"""Python functions as tools: what the model is told of them, and how they are called."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass

import pytest

from denizen import tool
from denizen.errors import InvalidInput
from denizen.ids import AgentId, CycleId
from denizen.tools.functions import as_text
from denizen.tools.tool import CallIdentity

OCCASION = CallIdentity(AgentId("a"), CycleId("c"), 0, 0, "")


@tool
async def book(city: str, nights: int = 1, *, quiet: bool = False) -> str:
    """Book a room.

    Args:
        city: Where to.
        nights: How long.
        quiet: Away from the street.
    """
    return f"{city} {nights} {quiet}"


def test_the_signature_is_the_schema_and_the_docstring_the_description():
    assert book.name == "book"
    assert book.definition.description == "Book a room."
    assert book.definition.parameters_json_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where to."},
            "nights": {"type": "integer", "default": 1, "description": "How long."},
            "quiet": {"type": "boolean", "default": False, "description": "Away from the street."},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("written", "checked"),
    [
        ('{"city": "Oslo"}', {"city": "Oslo"}),
        ({"city": "Oslo", "nights": 2}, {"city": "Oslo", "nights": 2}),
        ('{"city": "Oslo", "nights": "3"}', {"city": "Oslo", "nights": 3}),
    ],
)
def test_arguments_are_checked_as_text_or_as_values(written, checked):
    assert {key: book.check(written)[key] for key in checked} == checked


@pytest.mark.parametrize(
    "written", ["", "{}", None, "null", "[]", '"Oslo"', '{"city": 3}', '{"city": "Oslo", "x": 1}', "{"]
)
def test_wrong_arguments_are_refused_with_the_name_of_the_tool(written):
    with pytest.raises(InvalidInput, match="book was not called"):
        book.check(written)


async def test_a_tool_is_called_with_its_checked_arguments():
    assert await book.call(book.check('{"city": "Oslo", "quiet": true}'), OCCASION) == "Oslo 1 True"


async def test_an_async_function_runs_on_the_loop_and_a_plain_one_in_a_thread():
    @tool
    async def here() -> bool:
        """Say whether this is the loop's thread."""
        return asyncio.get_running_loop() is not None and threading.current_thread() is threading.main_thread()

    @tool
    def there() -> bool:
        """Say whether this is the loop's thread."""
        return threading.current_thread() is threading.main_thread()

    assert [await each.call(each.check("{}"), OCCASION) for each in (here, there)] == ["true", "false"]


def test_a_tool_may_have_another_name_and_other_manners():
    @tool(name="ring_bell", on_crash="retry", independent=True, seconds=2)
    def ring() -> None:
        """Ring."""

    assert (ring.name, ring.on_crash, ring.independent, ring.seconds) == ("ring_bell", "retry", True, 2)
    assert (book.on_crash, book.independent, book.seconds) == ("report", False, 60)


@dataclass
class Room:
    number: int
    view: str


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (None, "null"),
        (3, "3"),
        ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'),
        (Room(7, "sea"), '{"number":7,"view":"sea"}'),
        (b"bytes", '"bytes"'),
    ],
)
def test_what_is_returned_is_told_as_text_or_as_json(value: object, text: str):
    assert as_text(value) == text


def test_what_json_does_not_know_is_told_as_its_text():
    class Odd:
        def __str__(self) -> str:
            return "odd"

    assert as_text({"it": Odd()}) == '{"it":"odd"}'
