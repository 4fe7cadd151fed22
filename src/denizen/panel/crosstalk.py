"""Cross-talk: advisors answer each other. Only here does one see more than the last words of the others. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from denizen.panel.context import Line, Persona, Turn, context

TASK: Final = (
    "Now answer the others: say where you agree, where you disagree and why, and what you would ask one of them. "
    "Address them by name where it helps. Write two paragraphs at most."
)


def lines(
    persona: Persona, past: Sequence[Turn], present: Turn, characters: int, reference: int, *, show_others: bool = True
) -> list[Line]:
    """Builds the request to answer what the others said in this turn."""
    return context(
        persona,
        past,
        present,
        characters=characters,
        reference_characters=reference,
        show_others=show_others,
        task=TASK,
    )
