"""The first words of instructions by which the demo model recognizes what it is asked for. They import nothing."""

from __future__ import annotations

from typing import Final

COMPACTOR_MARK: Final = "[MEMORY COMPACTOR]"
CHAPTER_MARK: Final = "[CHAPTER WRITER]"
