"""Putting a defect into what a loaded module has assigned: that is made anew, and all that was made of it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

from tests.mutants.tracing import refers, targets_of


def rebind(module: str, source: str, line: int) -> bool:
    """Run the top-level assignment at this line of the changed source, and again whatever depends on it.

    False if it is no assignment, or if something depends on it that cannot be run again, as a class or the default of
    a parameter: then all has to be imported anew.
    """
    loaded = sys.modules[module]
    tree = ast.parse(source)
    changed = next((each for each in tree.body if each.lineno <= line <= (each.end_lineno or 0)), None)
    if not isinstance(changed, ast.Assign | ast.AnnAssign):
        return False
    _run(changed, loaded)
    todo = [(loaded, name) for name in targets_of(changed)]
    done: set[tuple[str, str]] = set()
    while todo:
        where, name = todo.pop()
        if (where.__name__, name) in done:
            continue
        done.add((where.__name__, name))
        for each, known_as in [(where, name), *_imported_as(where.__name__, name)]:
            if each is not where and "." not in known_as:
                vars(each)[known_as] = vars(where)[name]
                todo.append((each, known_as))
            for statement in _body(each):
                if statement.lineno == changed.lineno and each is loaded:
                    continue
                if not _depends(statement, known_as):
                    continue
                if not isinstance(statement, ast.Assign | ast.AnnAssign):
                    return False
                _run(statement, each)
                todo += [(each, target) for target in targets_of(statement)]
                done -= {(each.__name__, target) for target in targets_of(statement)}
    return True


def _run(statement: ast.stmt, module: ModuleType) -> None:
    code = compile(ast.Module([statement], []), module.__file__ or "", "exec", dont_inherit=True)
    exec(code, vars(module))


def _depends(statement: ast.stmt, name: str) -> bool:
    """Whether running the statement reads the name; what is inside functions reads it when they are called."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        read: list[ast.AST | None] = [*statement.args.defaults, *statement.args.kw_defaults, *statement.decorator_list]
    elif isinstance(statement, ast.ClassDef):
        keywords = [each.value for each in statement.keywords]
        read = [*statement.bases, *statement.decorator_list, *keywords]
        if any(_depends(each, name) for each in statement.body):
            return True
    elif isinstance(statement, ast.AnnAssign):
        read = [statement.value]
    else:
        read = [statement]
    return any(refers(node, name) for each in read if each is not None for node in ast.walk(each))


def _text(module: ModuleType) -> str:
    path = getattr(module, "__file__", None)
    return Path(path).read_text() if path is not None and path.endswith(".py") else ""


def _body(module: ModuleType) -> list[ast.stmt]:
    return ast.parse(_text(module)).body


def _imported_as(module: str, name: str) -> list[tuple[ModuleType, str]]:
    """The modules of ours that have imported it, and under which name."""
    found: list[tuple[ModuleType, str]] = []
    package, _, own = module.rpartition(".")
    for each in list(sys.modules.values()):
        if not getattr(each, "__name__", "").startswith(("denizen", "tests")) or own not in _text(each):
            continue
        for statement in _body(each):
            if isinstance(statement, ast.ImportFrom) and statement.module == module:
                found += [(each, alias.asname or name) for alias in statement.names if alias.name == name]
            elif isinstance(statement, ast.ImportFrom) and statement.module == package:
                found += [(each, f"{alias.asname or own}.{name}") for alias in statement.names if alias.name == own]
    return found
