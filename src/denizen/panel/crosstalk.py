"""Advisors answer each other: the one place where one sees more than the last turn of the others. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from denizen.panel.context import Line, Persona, Turn, context

TASK: Final = (
    "Now answer the others: say where you agree, where you disagree and why, and what you would ask one of them. "
    "Address them by name where it helps. Write two paragraphs at most."
)


def lines(persona: Persona, past: Sequence[Turn], present: Turn, characters: int, reference: int) -> list[Line]:
    """The request for a voice to answer what the others have said in this turn."""
    return context(persona, past, present, characters=characters, reference_characters=reference, task=TASK)
