"""Giving the functions of a loaded module other code, made of a changed source with as many lines."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

Functions = Mapping[str, Sequence[FunctionType]]
"""All functions there are, by the file that they are from."""


def functions_in(paths: Iterable[Path]) -> Functions:
    found: defaultdict[str, list[FunctionType]] = defaultdict(list)
    wanted = {str(each) for each in paths}
    for each in _objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename in wanted:
            found[each.__code__.co_filename].append(each)
    return found


def clear_caches() -> None:
    """Of all functions of ours that keep what they have returned, so that they run again."""
    for each in _objects():
        if type(each) is _Cached and each.__module__.startswith("denizen"):
            each.cache_clear()


_Cached: Final = type(lru_cache(abs))


def _objects() -> list[Any]:
    gc.unfreeze()  # Objects that are frozen are not among those that are given.
    found = gc.get_objects()
    gc.freeze()
    return found


def swap(functions: Iterable[FunctionType], code: CodeType) -> None:
    """Replace the code of these functions by that of the same name and line in the code of their module."""
    made = dict(_codes(code))
    for each in functions:
        new = made.get((each.__code__.co_qualname, each.__code__.co_firstlineno))
        if new is not None and len(new.co_freevars) == len(each.__code__.co_freevars):
            each.__code__ = new


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield (each.co_qualname, each.co_firstlineno), each
            yield from _codes(each)
