"""The JSON of an import's result."""

from __future__ import annotations

from denizen.portability.imported import Imported
from denizen.shapes.portability import ImportedOut


def imported_out(made: Imported) -> ImportedOut:
    return ImportedOut(
        kind=made.kind,
        id=made.id,
        name=made.name,
        handle=made.handle or None,
        counts=made.counts,
        secrets=list(made.secrets),
        dangers=list(made.dangers),
        unpriced=list(made.unpriced),
        people=list(made.people),
        absent=list(made.absent),
    )
