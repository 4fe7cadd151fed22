"""Whether tests find a defect: they run in a forked process, in which the code has it. The checkout is never touched.

The code of functions is replaced where it is, and what a module has assigned is made anew. For other things that happen
when a module is imported, as in the body of a class, all of ours is imported anew, which takes some seconds.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, Final, Literal

import pytest

from tests.mutants.forking import Job, forked, run_items
from tests.mutants.mutating import Mutant
from tests.mutants.rebinding import rebind
from tests.mutants.swapping import Functions, clear_caches, functions_in, swap
from tests.mutants.tracing import OPTIONS, ROOT, Test, Users, core_modules

MOST_SECONDS: Final = 60.0
"""Of a processor."""
PATIENCE: Final = (300.0, 20.0)
"""Seconds, and times as long as the tests took: after that a defect has made them hang. One test has less."""

ABOUT_ALL: Final = {"tests/test_indexes.py"}
"""Files of tests that look at what every module has assigned."""

Fate = Literal["killed", "survived", "not covered"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    fate: Fate
    by: str
    """The test that found it; what was tried otherwise."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The tests that are to find a mutant, those that are likely and quick first."""

    tests: tuple[Test, ...]
    imports: bool
    """Whether the defect is in what happens when its module is imported."""


class Picking:
    """Which tests are to find a mutant."""

    def __init__(self, tests: Sequence[Test], sources: Mapping[str, str]) -> None:
        self._tests = tests
        self._users = Users(sources)
        self._texts = {file: (ROOT / file).read_text() for file in {each.file for each in tests}}

    def attempt(self, mutant: Mutant) -> Attempt:
        lines = range(mutant.first, mutant.last + 1)
        package, _, own = mutant.module.rpartition(".")
        imports = re.compile(rf"{re.escape(package)}(\.{own}\b| import .*\b{own}\b)")
        importing = {file for file, text in self._texts.items() if imports.search(text)}
        if mutant.in_function and (found := [each for each in self._tests if each.runs(mutant.module, lines)]):
            return Attempt(_likely_and_quick(mutant, found, importing), imports=False)
        # It runs when the module is imported, if ever: whoever uses what it makes, or names it, may notice.
        name = mutant.function.partition(".")[0]
        # A private name is that of this module only where the module is imported: others have a `_page` as well.
        may_name = importing if name.startswith("_") else self._texts.keys()
        naming = {each for each in may_name if re.search(rf"\b{re.escape(name)}\b", self._texts[each])} | ABOUT_ALL
        used = self._users.lines(mutant.module, name)
        found = [
            each
            for each in self._tests
            if each.file in naming or any(each.runs(module, at) for module, at in used.items())
        ]
        # What other folders make of it is not traced: they may use it all the same.
        known = {each.id for each in found}
        others = [
            each
            for each in self._tests
            if not mutant.in_function and mutant.module in each.lines and each.id not in known
        ]
        first, then = (_likely_and_quick(mutant, each, importing, naming) for each in (found, others))
        return Attempt((*first, *then), imports=True)


def _likely_and_quick(
    mutant: Mutant, found: Sequence[Test], importing: Container[str], naming: Container[str] = ()
) -> tuple[Test, ...]:
    """First those whose file names what is changed or imports its module, then those of its folder."""
    folder = mutant.module.split(".")[1]
    seconds, picked = 0.0, list[Test]()
    for each in sorted(
        found,
        key=lambda each: (each.file not in naming, each.file not in importing, each.folder != folder, each.seconds),
    ):
        seconds += each.seconds
        if picked and seconds > MOST_SECONDS:
            break
        picked.append(each)
    return tuple(picked)


def verdicts(
    mutants: Sequence[Mutant], picking: Picking, items: Mapping[str, pytest.Item], workers: int
) -> Iterator[Verdict]:
    """What becomes of each mutant, as it turns out."""
    functions = functions_in(core_modules().values())
    clear_caches()
    jobs: list[Job] = []
    for mutant in mutants:
        attempt = picking.attempt(mutant)
        if not attempt.tests:
            yield Verdict(mutant, "not covered", "no test runs it")
            continue
        chosen = [items[each.id] for each in attempt.tests]
        do = partial(_import_and_try if attempt.imports else _swap_and_try, mutant, chosen, functions)
        seconds, times = PATIENCE
        jobs.append(Job((mutant, attempt), do, seconds + times * sum(each.seconds for each in attempt.tests)))
    for (mutant, attempt), failed in forked(jobs, workers):
        if failed is not None:
            yield Verdict(mutant, "killed", failed)
        elif mutant.in_function and attempt.imports:
            yield Verdict(mutant, "not covered", "no test runs it, and importing it is not enough")
        else:
            yield Verdict(mutant, "survived", f"{len(attempt.tests)} tests passed")


def _swap_and_try(mutant: Mutant, items: Sequence[pytest.Item], functions: Functions) -> str | None:
    path = core_modules()[mutant.module]
    changed = compile(mutant.source(path.read_text()), str(path), "exec", dont_inherit=True)
    swap(functions[str(path)], changed)
    return run_items(items)


def _import_and_try(mutant: Mutant, items: Sequence[pytest.Item], _functions: Functions) -> str | None:
    path = core_modules()[mutant.module]
    if not mutant.in_function and rebind(mutant.module, mutant.source(path.read_text()), mutant.first):
        return run_items(items)
    for name in [*sys.modules]:
        if name.startswith("denizen") or (name.startswith("tests.") and not name.startswith("tests.mutants")):
            del sys.modules[name]
    sys.meta_path.insert(0, _Finder(mutant.module, path, mutant.source(path.read_text())))
    order = [each.nodeid for each in items]
    told = _InOrder(order)
    options = (*OPTIONS, "-x")
    code = pytest.main([*options, *order], plugins=[told])
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise RuntimeError("The tests are gone.")
    return None if code == pytest.ExitCode.OK else told.failed or "it does not import"


class _InOrder:
    """A plugin of pytest that runs the tests in the order in which they are given, and notes which fails."""

    def __init__(self, order: Sequence[str]) -> None:
        self.failed = ""
        self._order = {name: at for at, name in enumerate(order)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda each: self._order[each.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


class _Finder:
    """Imports the one module from the changed source."""

    def __init__(self, module: str, path: Path, source: str) -> None:
        self._module, self._path, self._source = module, path, source

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if name != self._module:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=_Loader(name, self._path, self._source))


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: Path, source: str) -> None:
        super().__init__(name, str(path))
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)
