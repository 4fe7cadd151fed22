"""Which tests run which lines of the core folders, and how long each test takes: traced once, then kept in a file.

A test file that has changed is traced anew; all are if what they share, or the source, has changed.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.mutants.forking import Job, forked, run_items
from tests.mutants.swapping import clear_caches, functions_in, swap

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "src"
TESTS: Final = ROOT / "tests"
CORE: Final = ("access", "consciousness", "cycles", "inbox", "memory", "panel", "tools")
KEPT_IN: Final = ROOT / ".mutants.json"
LEFT_OUT: Final = ("bus", "cli", "clients", "crash", "deploy", "lab", "models", "mutants", "storage", "surfaces", "web")
"""Folders of tests that are slow, start processes, or are about something else."""
SERVERS: Final = frozenset({"postgres_url", "postgres_server", "ready_postgres_url", "redis_url", "redis_server"})
OPTIONS: Final = ("-q", "-n0", "-pno:cacheprovider", "--assert=plain", "--timeout=60")
"""Of pytest. A test that takes a minute hangs."""
LONGEST: Final = 30.0
"""Seconds of a processor that a test may take to be of use."""
NOTING: Final = "_note_line"
"""The name by which code that is traced knows what it tells its lines."""


@dataclass(frozen=True, slots=True)
class Test:
    """A test that has passed."""

    id: str
    seconds: float
    """Of a processor."""
    lines: Mapping[str, int]
    """Of each module a number whose bits are the lines that the test has run."""

    @property
    def file(self) -> str:
        return self.id.partition("::")[0]

    @property
    def folder(self) -> str:
        return self.id.split("/")[1]

    def runs(self, module: str, lines: Iterable[int]) -> bool:
        ran = self.lines.get(module, 0)
        return any(ran >> line & 1 for line in lines)


def core_modules() -> dict[str, Path]:
    """The modules that defects are put into, by name."""
    paths = sorted(path for folder in CORE for path in (SOURCE / "denizen" / folder).rglob("*.py"))
    return {".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in paths}


def tests(items: Iterable[pytest.Item], workers: int) -> list[Test]:
    """Those of these tests that may find a defect; those whose file has changed are traced first."""
    shared, files = digests()
    items = list(items)
    kept: dict[str, Any] = json.loads(KEPT_IN.read_text()) if KEPT_IN.exists() else {}
    if kept.get("shared") != shared:
        kept = {"shared": shared, "files": {}}
    found = {name: each for name, each in kept["files"].items() if files.get(name) == each["digest"]}
    missing: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if (name := item.nodeid.partition("::")[0]) not in found and name in files:
            missing[name].append(item)
    if missing:
        print(f"Tracing the tests of {len(missing)} files.", file=sys.stderr, flush=True)
        for at, (name, traced) in enumerate(_trace_all(missing, workers), start=1):
            found[name] = {"digest": files[name], "tests": traced}
            if at % 10 == 0 or at == len(missing):
                KEPT_IN.write_text(json.dumps({"shared": shared, "files": found}))
                print(f"{at} of {len(missing)} files", file=sys.stderr, flush=True)
    asked = {item.nodeid for item in items}
    return [
        Test(id, seconds, {module: int(bits, 16) for module, bits in lines.items()})
        for each in found.values()
        for id, seconds, lines in each["tests"]
        if id in asked
    ]


def digests() -> tuple[str, dict[str, str]]:
    """Of the source with all that tests share, and of each test file."""
    paths = [path for path in sorted(TESTS.rglob("*.py")) if path.relative_to(TESTS).parts[0] not in LEFT_OUT]
    files = {path for path in paths if path.name.startswith("test_")}
    shared = [path for path in [*sorted(SOURCE.rglob("*.py")), *paths] if path not in files]
    return _digest(shared), {path.relative_to(ROOT).as_posix(): _digest([path]) for path in paths if path in files}


def _digest(paths: Iterable[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


def _trace_all(files: Mapping[str, list[pytest.Item]], workers: int) -> Iterator[tuple[str, list[Any]]]:
    """What the tests of each file run. A process for each file: what one leaves behind misleads no other."""

    def trace(items: list[pytest.Item]) -> list[Any]:
        tracer = _Tracer()
        items[0].config.pluginmanager.register(tracer)
        run_items(items, until_one_fails=False)
        return tracer.passed

    jobs = [Job(name, partial(trace, items), 5 * LONGEST + LONGEST * len(items)) for name, items in files.items()]
    with _lines_are_noted():
        for name, traced in forked(jobs, workers):
            if isinstance(traced, str):
                print(f"The tests of {name} take too long to be traced.", file=sys.stderr)
            yield name, [] if isinstance(traced, str) else traced


@contextmanager
def _lines_are_noted() -> Iterator[None]:
    """All functions of the core note their lines, until the end of this."""
    paths = core_modules()
    functions = functions_in(paths.values())
    clear_caches()
    before = [(each, each.__code__) for found in functions.values() for each in found]
    for module, path in paths.items():
        swap(functions[str(path)], compile(noting_lines(module, path.read_text()), str(path), "exec"))
    yield
    for each, code in before:
        each.__code__ = code


class _Tracer:
    """A plugin of pytest that notes the lines of each test while it runs, in all threads."""

    def __init__(self) -> None:
        self.passed: list[tuple[str, float, dict[str, str]]] = []
        self._seen: set[tuple[str, int]] = set()
        self._failed = False
        setattr(builtins, NOTING, self._seen.add)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._seen.clear()
        self._failed = False
        began = time.process_time()
        result = yield
        seconds = time.process_time() - began
        if not self._failed and seconds < LONGEST:
            bits: defaultdict[str, int] = defaultdict(int)
            for module, line in self._seen.copy():
                bits[module] |= 1 << line
            self.passed.append((item.nodeid, round(seconds, 3), {name: f"{each:x}" for name, each in bits.items()}))
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= not report.passed


def noting_lines(module: str, source: str) -> ast.Module:
    """The module, whose functions note where each of their statements begins: much faster than `sys.settrace`."""
    tree = ast.parse(source)
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    bodies = {
        id(body): body
        for function in functions
        for node in ast.walk(function)
        for body in (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
        if isinstance(body, list)
    }
    for body in bodies.values():
        noted = [(ast.parse(f"{NOTING}(({module!r}, {each.lineno}))").body[0], each) for each in body]
        body[:] = [each for pair in noted for each in pair]
    return tree


def is_of_use(item: pytest.Item) -> bool:
    """Whether a test needs no server: those that run on both databases are asked on SQLite only."""
    return "postgresql" not in item.name and not SERVERS.intersection(getattr(item, "fixturenames", ()))


class Users:
    """Which lines use what is assigned, or defined as a class, at the level of a module."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._trees = {module: ast.parse(source) for module, source in sources.items()}

    def lines(self, module: str, name: str) -> dict[str, set[int]]:
        """The first lines of the statements that refer to the name, or to what is made of it, by module."""
        found: defaultdict[str, set[int]] = defaultdict(set)
        todo, done = [(module, name)], set[tuple[str, str]]()
        while todo:
            each = todo.pop()
            if each in done:
                continue
            done.add(each)
            for where, known_as in self._known_as(*each):
                for top in self._trees[where].body:
                    reading = set(_lines_reading(top, known_as))
                    if not reading:
                        continue
                    if isinstance(top, ast.Assign | ast.AnnAssign):
                        todo += [(where, target) for target in targets_of(top)]
                        continue
                    if isinstance(top, ast.ClassDef):
                        todo.append((where, top.name))
                    found[where] |= reading
        return found

    def _known_as(self, module: str, name: str) -> Iterator[tuple[str, str]]:
        yield module, name
        for where, tree in self._trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module == module:
                    yield from ((where, each.asname or each.name) for each in node.names if each.name == name)
                elif isinstance(node, ast.ImportFrom) and node.module == module.rpartition(".")[0]:
                    own = module.rpartition(".")[2]
                    yield from ((where, f"{each.asname or own}.{name}") for each in node.names if each.name == own)


def _lines_reading(node: ast.AST, name: str, line: int = 0) -> Iterator[int]:
    """Where the statements begin that read the name: those are the lines that are traced."""
    if isinstance(node, ast.stmt):
        line = node.lineno
    if refers(node, name):
        yield line
    for child in ast.iter_child_nodes(node):
        yield from _lines_reading(child, name, line)


def refers(node: ast.AST, name: str) -> bool:
    """Whether it reads the name, which may be one of a module as `module.name`."""
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Load)
    return (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and f"{node.value.id}.{node.attr}" == name
    )


def targets_of(statement: ast.Assign | ast.AnnAssign) -> list[str]:
    """The names that it assigns."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [node.id for each in targets for node in ast.walk(each) if isinstance(node, ast.Name)]
