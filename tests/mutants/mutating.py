"""Small defects that can be put into a module: each is one change of its source text. Pure.

Left alone is what changes no behaviour: annotations, docstrings, assertions (`strict` of `zip` is one), errors' texts,
log lines, names of tasks, options of dataclasses, and numbers above ten, which are limits chosen by hand. And what only
PostgreSQL asks for: the defects are tried on SQLite.
"""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

LARGEST_NUMBER: Final = 10
LOG_METHODS: Final = frozenset({"debug", "info", "warning", "error", "exception"})
KEYS_AT: Final = {"select_where": 2, "update_where": 1, "delete_where": 1, "equal": 1}
"""The functions of `storage/database.py` that build statements, and which argument names their keys."""
NEUTRAL_KEYWORDS: Final = frozenset({"description", "frozen", "include_input", "include_url"})
"""Prose, what keeps us from changing what we do not change, and parts of a problem that nobody reads."""
COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One defect in one module."""

    module: str
    function: str
    """Its qualified name; elsewhere that of the class, or of what is assigned at the level of the module."""
    in_function: bool
    first: int
    last: int
    """The lines of the statement that it is in; of one with a body, those of its head."""
    line: str
    """The line that is changed, as it was."""
    change: str
    """What is changed, in words."""
    start: int
    end: int
    written: str
    """What stands in the source instead of its bytes from `start` to `end`."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Stays the same when other lines of the module change."""
        return self.module, self.function, self.line, self.change

    def source(self, before: str) -> str:
        """The whole module with the defect; as many lines as before, so that what follows is where it was."""
        text = before.encode()
        head, old, tail = text[: self.start], text[self.start : self.end], text[self.end :]
        lost = old.count(b"\n") - self.written.count("\n")
        padded = (head + self.written.encode() + b" \\\n" * lost + tail).decode()
        try:
            ast.parse(padded)
        except SyntaxError:
            return (head + self.written.encode() + tail).decode()
        return padded

    def diff(self, before: str) -> str:
        old, new = (each.replace(" \\\n", "").splitlines() for each in (before, self.source(before)))
        lines = difflib.unified_diff(old, new, lineterm="", n=1)
        return "\n".join(list(lines)[2:])


def mutants_of(source: str, module: str) -> list[Mutant]:
    """All defects that can be put into the module, in the order of their places."""
    text = source.encode()
    lines = text.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    seen: Counter[tuple[str, str, str]] = Counter()
    found: list[Mutant] = []
    for place, node, new, change, at in _changes(ast.parse(source)):
        line = lines[at - 1].decode().strip()
        seen[place.function, line, change] += 1
        if (count := seen[place.function, line, change]) > 1:
            change = f"{change}, number {count}"
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        written = new if isinstance(new, str) else f"({ast.unparse(new)})" if _is_open(new) else ast.unparse(new)
        found.append(Mutant(module, place.function, place.in_function, *place.lines, line, change, start, end, written))
    return found


def _is_open(node: ast.AST) -> bool:
    """Whether it might be read together with what stands around it."""
    return isinstance(node, ast.BoolOp | ast.UnaryOp | ast.Compare | ast.IfExp)


@dataclass(frozen=True, slots=True)
class _Place:
    function: str
    in_function: bool
    lines: tuple[int, int]


def _changes(tree: ast.Module) -> Iterator[tuple[_Place, Any, Any, str, int]]:
    """Where, the node that is changed, what is there instead, that in words, and the line to show."""
    for statement, function, in_function in _statements(tree.body, "", False):
        place = _Place(function or _assigned(statement), in_function, _head(statement))
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call | ast.Await):
            yield place, statement, "pass", f"removed {_name(statement.value)}()", statement.lineno
        if isinstance(statement, ast.Return) and statement.value is not None and not _is_none(statement.value):
            yield place, statement.value, "None", "returned None", statement.lineno
        if isinstance(statement, ast.If | ast.While):
            new = ast.UnaryOp(ast.Not(), statement.test)
            yield place, statement.test, new, "negated the condition", statement.lineno
        for part in _expressions_of(statement):
            for node, new, change, at in _changes_in(part):
                yield place, node, new, change, at


def _assigned(statement: ast.stmt) -> str:
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return target.id if isinstance(target, ast.Name) else ""


def _statements(body: list[ast.stmt], function: str, in_function: bool) -> Iterator[tuple[ast.stmt, str, bool]]:
    """Each statement that may be changed, with the function that it is in."""
    for each in body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _statements(each.body, f"{function}.{each.name}".lstrip("."), True)
            continue
        if isinstance(each, ast.ClassDef):
            yield from _statements(each.body, f"{function}.{each.name}".lstrip("."), in_function)
            continue
        if isinstance(each, ast.Assert | ast.Import | ast.ImportFrom | ast.Raise) or _is_said_only(each):
            continue
        if _is_of_postgresql(each):
            continue
        yield each, function, in_function
        for inner in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(each, inner, []), function, in_function)
        for handler in getattr(each, "handlers", []):
            yield from _statements(handler.body, function, in_function)
        for case in getattr(each, "cases", []):
            yield from _statements(case.body, function, in_function)


def _is_said_only(statement: ast.stmt) -> bool:
    """A docstring, a line for the log, or what only the type checker reads."""
    if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
        return True
    if isinstance(statement, ast.AnnAssign):
        return statement.value is None or "TypeAlias" in ast.unparse(statement.annotation)
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Subscript):
        return isinstance(statement.value.value, ast.Name) and statement.value.value.id == "Literal"
    if not isinstance(statement, ast.Expr):
        return False
    call = statement.value
    if not isinstance(call, ast.Call):
        return not isinstance(call, ast.Await)
    target = call.func
    return isinstance(target, ast.Attribute) and target.attr in LOG_METHODS and "log" in ast.unparse(target.value)


def _is_of_postgresql(statement: ast.stmt) -> bool:
    """What is done only there, or only announces what will be read: elsewhere that does nothing."""
    if isinstance(statement, ast.If | ast.For):
        head = statement.test if isinstance(statement, ast.If) else statement.iter
        return "dialect == 'postgresql'" in ast.unparse(head)
    return isinstance(statement, ast.Expr) and _name(statement.value).endswith(".prefetch")


def _head(statement: ast.stmt) -> tuple[int, int]:
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if not body:
        return statement.lineno, statement.end_lineno or statement.lineno
    first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
    return statement.lineno, max(first.lineno - 1, statement.lineno)


def _expressions_of(statement: ast.stmt) -> Iterator[ast.expr]:
    for name, value in ast.iter_fields(statement):
        if name in ("annotation", "targets", "target"):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.expr):
                yield each
            elif isinstance(each, ast.withitem):
                yield each.context_expr


def _changes_in(root: ast.expr) -> Iterator[tuple[Any, Any, str, int]]:
    for node in _walk(root):
        for new, change in _instead_of(node):
            yield node, new, change, getattr(node, "lineno", 0)
        if isinstance(node, ast.Call):
            yield from _dropped(node)
        for clause in getattr(node, "generators", []):
            for condition in clause.ifs:
                new = ast.UnaryOp(ast.Not(), condition)
                yield condition, new, "negated the condition", condition.lineno


def _instead_of(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in COMPARISONS:
            other = COMPARISONS[type(op)]()
            new = ast.Compare(node.left, [other, *node.ops[1:]], node.comparators)
            yield new, f"compared by {type(other).__name__}"
        case ast.BoolOp(op=ast.And()):
            yield ast.BoolOp(ast.Or(), node.values), "or instead of and"
        case ast.BoolOp(op=ast.Or()):
            yield ast.BoolOp(ast.And(), node.values), "and instead of or"
        case ast.IfExp():
            yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse), "negated the condition"
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value), f"{not value} instead of {value}"
        case ast.Constant(value=int(value)) if abs(value) <= LARGEST_NUMBER:
            yield ast.Constant(value + 1), f"{value + 1} instead of {value}"
            if value > 0:
                yield ast.Constant(value - 1), f"{value - 1} instead of {value}"
        case _:
            pass


def _dropped(call: ast.Call) -> Iterator[tuple[ast.AST, ast.AST, str, int]]:
    """The call without one of its keyword arguments; a WHERE without one of its conditions."""
    for at, keyword in enumerate(call.keywords):
        if keyword.arg is not None and not _is_neutral(call, keyword.arg):
            rest = call.keywords[:at] + call.keywords[at + 1 :]
            yield call, ast.Call(call.func, call.args, rest), f"dropped {keyword.arg}=", keyword.value.lineno
    if isinstance(call.func, ast.Attribute) and call.func.attr == "where":
        for at, condition in enumerate(call.args):
            rest = call.args[:at] + call.args[at + 1 :]
            new = ast.Call(call.func, rest, call.keywords)
            yield call, new, f"dropped WHERE {ast.unparse(condition)}", condition.lineno
    if isinstance(call.func, ast.Name) and call.func.id in KEYS_AT:
        yield from _without_key(call, KEYS_AT[call.func.id])


def _without_key(call: ast.Call, at: int) -> Iterator[tuple[ast.AST, ast.AST, str, int]]:
    """A statement built from names, without one of several keys, or without one of its other conditions."""
    keys = call.args[at] if at < len(call.args) else None
    names = keys.value.split(", ") if isinstance(keys, ast.Constant) and isinstance(keys.value, str) else []
    for name in names if len(names) > 1 else ():
        left = ast.Constant(", ".join(each for each in names if each != name))
        new = ast.Call(call.func, [*call.args[:at], left, *call.args[at + 1 :]], call.keywords)
        yield call, new, f"dropped WHERE {name}", call.args[at].lineno
    for other in range(at + 1, len(call.args)):
        new = ast.Call(call.func, call.args[:other] + call.args[other + 1 :], call.keywords)
        yield call, new, f"dropped WHERE {ast.unparse(call.args[other])}", call.args[other].lineno


def _is_neutral(call: ast.Call, keyword: str) -> bool:
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    of_postgresql = function == "with_for_update" or (function, keyword) == ("bindparam", "type_")
    return (
        keyword in NEUTRAL_KEYWORDS
        or of_postgresql
        or (function, keyword) in (("create_task", "name"), ("zip", "strict"))
    )


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """As `ast.walk`, but not into the texts of f-strings and into arguments that change no behaviour."""
    yield node
    if isinstance(node, ast.JoinedStr):
        return
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.Call) and isinstance(child, ast.keyword) and _is_neutral(node, child.arg or "")):
            yield from _walk(child)


def _name(node: ast.expr) -> str:
    call = node.value if isinstance(node, ast.Await) else node
    return ast.unparse(call.func) if isinstance(call, ast.Call) else ast.unparse(node)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
