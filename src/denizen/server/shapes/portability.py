"""The JSON of an import's result."""

from __future__ import annotations

from denizen.portability.imported import Imported
from denizen.server.shapes.filling import filled
from denizen.shapes.portability import ImportedOut


def imported_out(made: Imported) -> ImportedOut:
    return filled(ImportedOut, made, handle=made.handle or None)
