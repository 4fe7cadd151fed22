"""Cross-talk: advisors answer each other. Only here does one see more than the last words of the others. Pure."""

from __future__ import annotations

from typing import Final

TASK: Final = (
    "Now answer the others: say where you agree, where you disagree and why, and what you would ask one of them. "
    "Address them by name where it helps. Write two paragraphs at most."
)
"""What the advisors are asked, after the replies of this turn."""
