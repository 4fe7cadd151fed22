"""How large the database is and how fast it grows, by organization, for `denizen doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from denizen.amounts import human_size
from denizen.cli.findings import Finding, counted

if TYPE_CHECKING:
    from denizen.spaces.sizes import Growth
    from denizen.storage.database import Tx

_SHOWN: Final = 5


def examine(tx: Tx) -> Finding:
    """Returns the size of the database, and of its largest organizations as they were last measured."""
    from denizen.spaces import sizes

    whole, found = sizes.database_bytes(tx), sizes.growths(tx)
    if not found:
        return Finding(
            "Size", "ok", f"{human_size(whole)}. By organization it is measured once a day, while `denizen up` runs."
        )
    more = f" And {counted(len(found) - _SHOWN, 'other organization')}." if len(found) > _SHOWN else ""
    return Finding("Size", "ok", f"{human_size(whole)}. {' '.join(map(sentence, found[:_SHOWN]))}{more}")


def sentence(of: Growth) -> str:
    """Returns what one organization uses, and its growth."""
    if of.per_day is None:
        return f"{of.name}: about {human_size(of.now.bytes)}."
    grows = f"grows by {human_size(of.per_day)}" if of.per_day >= 0 else f"shrinks by {human_size(-of.per_day)}"
    return f"{of.name}: about {human_size(of.now.bytes)}, {grows} a day."
