"""The defects that are put into the core: each kind, what is left alone, and that all of them are Python."""

from __future__ import annotations

import ast
import builtins
import gc
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants import tracing
from tests.mutants.__main__ import reasons
from tests.mutants.mutating import Mutant, mutants_of
from tests.mutants.rebinding import rebind
from tests.mutants.running import Picking
from tests.mutants.swapping import functions_in, swap
from tests.mutants.tracing import NOTING, ROOT, Users, core_modules, noting_lines


def changed(source: str) -> list[str]:
    """The source with each of its defects."""
    return [each.source(source) for each in mutants_of(source, "m")]


@pytest.mark.parametrize(
    ("source", "with_defects"),
    [
        ("x = a < b", ["x = (a <= b)"]),
        ("x = a == b", ["x = (a != b)"]),
        ("x = a is None", ["x = (a is not None)"]),
        ("x = a and b", ["x = (a or b)"]),
        ("x = a or b", ["x = (a and b)"]),
        ("x = a if b else c", ["x = (a if not b else c)"]),
        ("x = True", ["x = False"]),
        ("x = 0", ["x = 1"]),
        ("x = 3", ["x = 4", "x = 2"]),
        ("if a:\n    b = c", ["if (not a):\n    b = c"]),
        ("x = [a for a in b if c]", ["x = [a for a in b if (not c)]"]),
        ("def f():\n    return a", ["def f():\n    return None"]),
        ("tx.run(a)", ["pass"]),
        ("await tx.run(a)", ["pass"]),
        ("x = f(a, b=c, **d)", ["x = f(a, **d)"]),
        ("x = q.where(a, b)", ["x = q.where(b)", "x = q.where(a)"]),
        ("x = select_where(t, 'a', 'b, c')", ["x = select_where(t, 'a', 'c')", "x = select_where(t, 'a', 'b')"]),
        ("x = delete_where(t, 'b', c)", ["x = delete_where(t, 'b')"]),
    ],
)
def test_each_kind_of_defect(source: str, with_defects: list[str]) -> None:
    assert changed(source) == with_defects


@pytest.mark.parametrize(
    "source",
    [
        "import a",
        '"""A docstring."""',
        "x: int",
        "assert a < b",
        "raise ValueError(a < b)",
        "log.warning('gone', times=3)",
        "task = tasks.create_task(f(), name='work')",
        "x = zip(a, b, strict=True)",
        "x = q.with_for_update(read=True)",
        "x = bindparam('a', type_=Text())",
        "tx.prefetch(query, id=a)",
        "if a is None and tx.dialect == 'postgresql':\n    tx.run(a)",
        "for a in b if tx.dialect == 'postgresql' else ():\n    tx.run(a)",
        "X = Literal[1, 2]",
        "@dataclass(frozen=True)\nclass A:\n    x: int",
        "x = 300",
        "x = f'{a:>3}'",
        "def f():\n    return None",
    ],
)
def test_what_changes_no_behaviour_is_left_alone(source: str) -> None:
    assert changed(source) == []


def test_a_defect_knows_its_place() -> None:
    source = "class A:\n    def f(self):\n        x = g(\n            a < 300,\n        )\n\n\n_q = s.where(a == 300)\n"
    first, second, third = mutants_of(source, "m")
    assert (first.function, first.in_function, first.first, first.last) == ("A.f", True, 3, 5)
    assert (first.line, first.change) == ("a < 300,", "compared by LtE")
    assert (second.function, second.in_function, second.line) == ("_q", False, "_q = s.where(a == 300)")
    assert {second.change, third.change} == {"dropped WHERE a == 300", "compared by NotEq"}


def test_who_uses_what_a_module_makes_is_known() -> None:
    """Also by way of something else that is made of it, and from another module."""
    users = Users(
        {
            "p.a": "_q = 1\n_r = [_q]\n\ndef f():\n    return _r\n",
            "p.b": "from p.a import _r as r\n\ndef g():\n    return r\n",
            "p.c": "from p import a\n\ndef h():\n    return a._q\n",
        }
    )
    assert users.lines("p.a", "_q") == {"p.a": {5}, "p.b": {4}, "p.c": {4}}


def test_who_uses_it_in_the_middle_of_a_statement_is_known_by_its_first_line() -> None:
    """The only one that is traced: a defect in such a `_page` was said to survive, as no test seemed to use it."""
    source = "_q = 1\n\ndef f(a):\n    if a:\n        return g(\n            _q,\n        )\n    return None\n"
    assert Users({"p.a": source}).lines("p.a", "_q") == {"p.a": {5}}


def test_a_file_of_tests_that_names_something_private_of_another_module_is_not_among_the_first() -> None:
    """Those that it has are slow, and used up the time that there is: `audit._page` and `registry._page`."""
    module = "denizen.access.audit"
    source = core_modules()[module].read_text()
    mutant = next(each for each in mutants_of(source, module) if each.function == "_page")
    lines = {module: sum(1 << line for line in Users({module: source}).lines(module, "_page")[module])}
    assert "registry._page" in (ROOT / "tests/server/test_reading.py").read_text()
    tests = [tracing.Test(f"tests/server/{file}.py::test", 1.0, lines) for file in ("test_reading", "test_audit")]
    tried = Picking(tests, {module: source}).attempt(mutant).tests
    assert [each.file for each in tried] == ["tests/server/test_audit.py", "tests/server/test_reading.py"]


def test_what_no_traced_line_uses_is_tried_on_the_tests_that_run_its_module() -> None:
    """After those that use it: a condition of the inbox is part of a query of the agents, which are not traced."""
    module = "denizen.inbox.delivery"
    source = core_modules()[module].read_text()
    mutant = next(each for each in mutants_of(source, module) if each.function == "_behind")
    ran = {"test_indexes": {}, "inbox/test_states": {module: 1}, "test_clock": {}}
    tests = [tracing.Test(f"tests/{file}.py::test", 1.0, lines) for file, lines in ran.items()]
    tried = Picking(tests, {module: source}).attempt(mutant).tests
    assert [each.file for each in tried] == ["tests/test_indexes.py", "tests/inbox/test_states.py"]


def test_every_defect_of_a_module_has_a_name_of_its_own_and_is_python() -> None:
    source = core_modules()["denizen.inbox.delivery"].read_text()
    found = mutants_of(source, "denizen.inbox.delivery")
    before = ast.dump(ast.parse(source))
    assert all(ast.dump(ast.parse(each.source(source))) != before for each in found[::10])
    assert len({each.key for each in found}) == len(found) > 100


def test_what_a_module_has_assigned_is_made_anew_with_all_that_depends_on_it(tmp_path: Path) -> None:
    """But for a class and the default of a parameter, which keep what they were made with."""
    maker = "size = 1\ntwice = [size, size]\n\n\ndef read():\n    return twice\n"
    loaded = [
        a_module("tests.rebound_maker", maker, tmp_path),
        a_module(
            "tests.rebound_user", "from tests.rebound_maker import twice as seen\n\nboth = seen + seen\n", tmp_path
        ),
    ]
    try:
        assert rebind("tests.rebound_maker", maker.replace("1", "2"), 1)
        assert loaded[0].read() == [2, 2]
        assert loaded[1].both == [2, 2, 2, 2]
        assert not rebind("tests.rebound_maker", maker, 5), "it is no assignment"
        loaded.append(
            a_module("tests.rebound_late", "from tests.rebound_maker import size\n\n\ndef f(a=size): ...\n", tmp_path)
        )
        assert not rebind("tests.rebound_maker", maker, 1)
    finally:
        for each in loaded:
            del sys.modules[each.__name__]


def a_module(name: str, source: str, folder: Path) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_defect_that_is_ignored_can_still_be_made() -> None:
    """One whose line has changed is looked at anew."""
    ignored = reasons()
    paths = core_modules()
    there = {each.key for module in {key[0] for key in ignored} for each in _of(module, paths[module])}
    assert set(ignored) <= there


def _of(module: str, path: Path) -> list[Mutant]:
    return mutants_of(path.read_text(), module)


def test_functions_with_other_code_note_their_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in what is inside of them; and functions that the garbage collector does not look at, too."""
    source = "def f(a):\n    def g():\n        return 1\n\n    if a:\n        return g()\n    else:\n        return 2\n"
    loaded = a_module("tests.noted", source, tmp_path)
    seen: set[tuple[str, int]] = set()
    monkeypatch.setattr(builtins, NOTING, seen.add, raising=False)
    path = tmp_path / "tests.noted.py"
    try:
        gc.freeze()
        swap(functions_in([path])[str(path)], compile(noting_lines("noted", source), str(path), "exec"))
        assert loaded.f(True) == 1
        assert seen == {("noted", 2), ("noted", 3), ("noted", 5), ("noted", 6)}
        seen.clear()
        assert loaded.f(False) == 2
        assert seen == {("noted", 2), ("noted", 5), ("noted", 8)}
    finally:
        del sys.modules[loaded.__name__]
