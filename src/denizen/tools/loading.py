"""Loads Python files and modules: every `@tool` in them, or functions by name. Each is imported once, at the start."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from denizen.errors import SettingsError
from denizen.tools.tool import OutsideTool


def load_tools(places: Iterable[str]) -> list[OutsideTool]:
    """Every tool that the modules define or import. Raises one `SettingsError` with all problems.

    A place is the path of a file, relative to the current folder, or the name of a module.
    """
    found: dict[str, tuple[OutsideTool, str]] = {}
    problems: list[str] = []
    for place in dict.fromkeys(places):
        try:
            tools = _tools_in(place)
        except SettingsError as error:
            problems += error.problems
            continue
        for tool in tools:
            known = found.setdefault(tool.name, (tool, place))
            if known[0] is not tool:
                problems.append(f"tools: {known[1]} and {place} both have a tool {tool.name!r}. Rename one of them.")
    if problems:
        raise SettingsError(*problems)
    return [tool for tool, _ in found.values()]


def load_functions(setting: str, places: Mapping[str, str]) -> dict[str, Callable[..., Any]]:
    """The function at each `place:function`, by its name. Raises one `SettingsError` with all problems.

    A place is the path of a file, relative to the current folder, or the name of a module.
    """
    found: dict[str, Callable[..., Any]] = {}
    problems: list[str] = []
    for name, where in places.items():
        try:
            found[name] = _function_at(f"{setting}.{name}", where)
        except SettingsError as error:
            problems += error.problems
    if problems:
        raise SettingsError(*problems)
    return found


def _function_at(setting: str, where: str) -> Callable[..., Any]:
    place, _, name = where.rpartition(":")
    function = getattr(_imported(setting, place), name, None)
    if function is None:
        raise SettingsError(f"{setting}: {place} has no {name!r}. Write a function of this name there.")
    if not callable(function):
        raise SettingsError(f"{setting}: {name!r} in {place} is not a function.")
    return function


def _tools_in(place: str) -> list[OutsideTool]:
    module = _imported("tools", place)
    tools = list({id(each): each for each in vars(module).values() if isinstance(each, OutsideTool)}.values())
    if not tools:
        raise SettingsError(f"tools: {place} contains no tool. Write `@tool` above a function there.")
    return tools


def _imported(setting: str, place: str) -> ModuleType:
    try:
        return _from_file(setting, Path(place)) if _is_path(place) else _from_name(place)
    except SettingsError:
        raise
    except (Exception, SystemExit) as error:
        raise SettingsError(f"{setting}: {place} cannot be loaded: {_what_happened(error)}") from error


def _is_path(place: str) -> bool:
    return place.endswith(".py") or "/" in place or "\\" in place


def _from_file(setting: str, path: Path) -> ModuleType:
    path = path.expanduser().absolute()
    if not path.is_file():
        raise SettingsError(f"{setting}: there is no file {path}. Write its path as seen from the current folder.")
    # Two folders may each have a tools.py.
    name = f"denizen_file_{hashlib.blake2s(str(path).encode(), digest_size=6).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SettingsError(f"{setting}: {path} is not a Python file. Its name must end with .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _from_name(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # an installed program does not search the folder where it was started
    return importlib.import_module(name)


def _what_happened(error: BaseException) -> str:
    """The error, and the line of the module at which it happened."""
    frames = [
        each
        for each in traceback.extract_tb(error.__traceback__)
        if "importlib" not in each.filename and each.filename != __file__
    ]
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {str(error).strip() or 'no message'}{where}."
