"""Errors as people and models read them."""

from __future__ import annotations

import asyncio

import pytest

from denizen.errors import InvalidInput, explained


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InvalidInput("Choose another name."), "Choose another name."),
        (ValueError("no digit"), "ValueError: no digit"),
        (KeyError(), "KeyError"),
        (TimeoutError(), "It took too long, and was stopped."),
    ],
)
def test_what_went_wrong_is_told(error: Exception, told: str) -> None:
    assert explained(error) == told


async def test_a_deadline_is_told_as_a_sentence() -> None:
    """It was the bare name of a class, in the state of mind of an agent for everyone to read."""
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    assert explained(caught.value).endswith("stopped.")
