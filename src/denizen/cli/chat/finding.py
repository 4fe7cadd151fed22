"""Finds the space that someone names. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from denizen.cli.chat.namesakes import namesakes
from denizen.client import Me, Space
from denizen.errors import InvalidInput


def find_space(spaces: Sequence[Space], wanted: str, me: Me) -> Space:
    """Returns the one space with this name, beginning of a name or id, or the private one with this handle.

    Case does not matter. Raises `InvalidInput` that names the nearest ones.
    """
    wanted = wanted.strip()
    if wanted.startswith("@"):
        return _alone_with(spaces, wanted, me)
    folded = wanted.casefold()
    for matches in (
        [space for space in spaces if space.id == wanted],
        [space for space in spaces if space.name.casefold() == folded],
        [space for space in spaces if folded and space.name.casefold().startswith(folded)],
    ):
        if matches:
            return _only(matches, wanted, me)
    if any(member.handle == folded for space in spaces for member in space.members if member.id != me.id):
        return _alone_with(spaces, f"@{folded}", me)
    raise InvalidInput(f"There is no space {wanted!r}. {_advice(spaces, wanted)}")


def _alone_with(spaces: Sequence[Space], wanted: str, me: Me) -> Space:
    handle = wanted.removeprefix("@").casefold()
    handles = {member.handle for space in spaces for member in space.members if member.id != me.id}
    shared = [space for space in spaces if any(member.handle == handle for member in space.members)]
    alone = [space for space in shared if {member.handle for member in space.members} == {handle, me.handle}]
    # Of several, the private one is meant, and of those the one that is named after the two; if there is none, any
    # private one that both are in.
    private = [space for space in alone if space.private]
    plain = [space for space in private if space.name in _names_of_two(space, me)]
    for matches in (plain, private, alone, [each for each in shared if each.private]):
        if matches:
            return _only(matches, wanted, me)
    if handle in handles:
        names = ", ".join(space.name for space in shared)
        raise InvalidInput(f"You have no space of your own with {wanted}. You meet in: {names}.")
    near = difflib.get_close_matches(handle, sorted(handles), n=1)
    advice = f"Did you mean @{near[0]}?" if near else f"There are: {', '.join(f'@{each}' for each in sorted(handles))}."
    raise InvalidInput(f"Nobody in your spaces is called {wanted}. {advice}")


def _names_of_two(space: Space, me: Me) -> list[str]:
    return [f"{me.name} and {member.name}" for member in space.members if member.id != me.id]


def _only(matches: Sequence[Space], wanted: str, me: Me) -> Space:
    if len(matches) == 1:
        return matches[0]
    hints = namesakes(matches, me.id)
    about = [f"{hints[each.id]}, {each.id}" if each.id in hints else each.id for each in matches]
    shown = "; ".join(f"{each.name} ({words})" for each, words in zip(matches, about, strict=True))
    raise InvalidInput(f"{wanted!r} may be any of these: {shown}. Write more of the name, or the id.")


def _advice(spaces: Sequence[Space], wanted: str) -> str:
    names = {space.name.casefold(): space.name for space in spaces}
    words = {word: space.name for space in spaces for word in space.name.casefold().split()}
    near = difflib.get_close_matches(wanted.casefold(), [*names, *words], n=1, cutoff=0.5)
    if near:
        return f"Did you mean {(names.get(near[0]) or words[near[0]])!r}?"
    return f"You are in: {', '.join(names.values())}." if names else "You are in no space yet."
