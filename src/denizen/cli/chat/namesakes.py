"""What tells spaces of the same name apart. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from denizen.client import Space

_NAMED: Final = 3


def namesakes(spaces: Sequence[Space], own_id: str) -> Mapping[str, str]:
    """Returns for the id of each space whose name another one has as well what those do not have: its other members or,
    where those are the same, when it was created.
    """
    by_name = defaultdict[str, list[Space]](list)
    for each in spaces:
        by_name[each.name.strip().casefold()].append(each)
    hints: dict[str, str] = {}
    for alike in by_name.values():
        if len(alike) > 1:
            hints |= zip((each.id for each in alike), _words(alike, own_id), strict=True)
    return hints


def _words(alike: Sequence[Space], own_id: str) -> list[str]:
    # Ids are in the order of creation.
    ids = sorted(each.id for each in alike)
    ways = (
        [_members(each, own_id) for each in alike],
        [f"created {each.created_at:%Y-%m-%d}" for each in alike],
        [f"created {each.created_at:%Y-%m-%d %H:%M:%S} UTC" for each in alike],
        [f"{ids.index(each.id) + 1} of {len(ids)}" for each in alike],
    )
    return next(words for words in ways if len(set(words)) == len(words))


def _members(space: Space, own_id: str) -> str:
    handles = [f"@{each.handle}" for each in space.members if each.id != own_id]
    more = len(handles) - _NAMED
    return ", ".join(handles[:_NAMED]) + (f" and {more} more" if more > 0 else "") or "only you"
