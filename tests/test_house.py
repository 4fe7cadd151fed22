"""The house stands as drawn: arrows point inward, packages do not re-export, errors are all on the map."""

from __future__ import annotations

import ast
import fnmatch
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from denizen import errors

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "denizen"

LAYERS = [
    {"__main__"},
    {"cli"},
    {"server", "client"},
    {"__init__"},  # the public names: who is further in imports them from where they live
    {"first_start"},
    {"app"},
    {"api", "checker"},
    {"checks"},  # what the checker checks
    {"bridges"},  # they post, edit and delete
    {"forgetting", "portability"},  # they reach into every room that keeps words
    {"agents"},
    {"notifications"},
    {"panel"},  # its advisors are paid as agents are
    {"cycles"},
    {"tools"},
    {"trust"},
    {"profiles", "memory", "reflection"},
    {"consciousness"},
    {"plans"},  # the self lists them
    {"access"},
    {"spaces"},
    {"inbox"},
    {"files"},
    {"models", "bus", "storage", "leased_tasks"},
    {"ids", "clock", "failpoints", "telemetry", "settings"},
    {"errors", "masking", "folding", "nearest", "shapes"},
    {"amounts", "shortening"},
]
"""The rooms of the house, outermost first. A module imports from its own room and from layers further in, never from
a layer further out nor from another room of its own layer."""

DEPTH = {room: depth for depth, layer in enumerate(LAYERS) for room in layer}

# Put together here, so that this file does not contain what it looks for.
FOREIGN = [
    "".join(parts)
    for parts in [
        ("pypi", ".org"),
        ("python", "hosted.org"),
        ("registry.npm", "js.org"),
        ("registry.yarn", "pkg.com"),
        ("/work", "/main"),
        ("/work", "/shared"),
        ("/opt", "/wheels"),
        ("/opt", "/pypi"),
        (".pyenv", "/versions"),
    ]
]
"""Hosts of package registries and paths of machines that Denizen was written on."""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name_in_repository(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def room_of(path: Path) -> str:
    """The top-level module or package that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The rooms a module imports from, with the lines that do; inside functions and for type checkers only as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for package, *rest in (name.split(".") for name in names):
            if package == "denizen":
                yield node.lineno, rest[0] if rest and is_room(rest[0]) else "__init__"


def is_room(name: str) -> bool:
    return name in DEPTH or (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def may_import(importer: str, imported: str) -> bool:
    return importer == imported or DEPTH[importer] < DEPTH[imported]


def test_every_import_points_inward() -> None:
    """No module imports from a layer further out, or from a neighbour."""
    homeless = {room_of(path) for path in modules()} - DEPTH.keys()
    assert not homeless, f"{homeless} have no place in the house yet: give them one in LAYERS"
    wrong = [
        f"{name_in_repository(path)}:{line}: {room_of(path)} may not import {imported}"
        for path in modules()
        for line, imported in imported_rooms(parsed(path))
        if not may_import(room_of(path), imported)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "rooms"),
    [
        ("import denizen.bus.port", ["bus"]),
        ("from denizen.bus import port, local", ["bus", "bus"]),
        ("from denizen import errors, Runtime", ["errors", "__init__"]),
        ("def f():\n    from denizen.cli.main import run", ["cli"]),
        ("import denizens.bus", []),
    ],
)
def test_every_form_of_import_is_seen(source: str, rooms: list[str]) -> None:
    """An arrow cannot hide in another spelling."""
    assert [room for _, room in imported_rooms(ast.parse(source))] == rooms


def test_arrows_are_told_apart() -> None:
    """Inward and at home is fine; outward and sideways is not."""
    assert may_import("app", "storage")
    assert may_import("inbox", "inbox")
    assert not may_import("storage", "inbox")
    assert not may_import("profiles", "memory")


def test_inner_packages_do_not_reexport() -> None:
    """An `__init__.py` says what its package is, and nothing else; only the outermost lists names, and the client's,
    which is a library of its own."""
    wrong: list[str] = []
    for path in modules():
        if path.name != "__init__.py":
            continue
        module = parsed(path)
        if not ast.get_docstring(module):
            wrong.append(f"{name_in_repository(path)} does not say what it is")
        if len(module.body) != 1 and path.parent not in (PACKAGE, PACKAGE / "client"):
            wrong.append(f"{name_in_repository(path)} holds more than its docstring")
    assert not wrong, "\n".join(wrong)


def test_every_module_has_its_logger_from_one_place() -> None:
    """`structlog.get_logger` alone would print every line on the stdout of a program that uses Denizen."""
    printing = [
        name_in_repository(path)
        for path in modules()
        if "structlog.get_logger" in path.read_text() and path != PACKAGE / "telemetry" / "logs.py"
    ]
    assert printing == []


def test_no_file_names_a_registry_or_a_machine() -> None:
    """What is in the repository works anywhere."""
    found = [
        f"{name_in_repository(path)} names {needle}"
        for path in files_of_the_repository()
        for content in [path.read_bytes()]
        for needle in FOREIGN
        if needle.encode() in content
    ]
    assert not found, "\n".join(found)


def files_of_the_repository() -> Iterator[Path]:
    """Every file that git tracks or would track, as .gitignore tells, without git: it may not be there."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text().split()] + [".git"]

    def kept(name: str) -> bool:
        return not any(fnmatch.fnmatch(name, pattern) for pattern in ignored)

    for folder, folders, files in os.walk(ROOT):
        folders[:] = filter(kept, folders)
        yield from (Path(folder, file) for file in files if kept(file))


def error_classes() -> list[type[errors.DenizenError]]:
    return [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, errors.DenizenError)]


def test_every_error_has_a_code_of_its_own() -> None:
    """A code names one error, for ever: clients decide by it."""
    codes = [vars(cls).get("code") for cls in error_classes()]
    assert None not in codes, "an error without a code of its own"
    assert len(set(codes)) == len(codes), f"a code is used twice: {sorted(map(str, codes))}"


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    """The docstring of errors.py shows every error, under the one it is a kind of."""
    assert drawn_parents(errors.__doc__ or "") == {cls.__name__: parent_name(cls) for cls in error_classes()}


def parent_name(cls: type[errors.DenizenError]) -> str | None:
    return None if cls is errors.DenizenError else cls.__bases__[0].__name__


def drawn_parents(docstring: str) -> dict[str, str | None]:
    """Each name in the drawing with the name it hangs from. A level is four characters wide."""
    _, _, drawing = docstring.partition("\n\n")
    path: list[str] = []
    parents: dict[str, str | None] = {}
    for branch, name in re.findall(r"^([│├└─ ]*)(\w+)", drawing, flags=re.MULTILINE):
        del path[len(branch) // 4 :]
        parents[name] = path[-1] if path else None
        path.append(name)
    return parents


UNFENCED = {
    *{"fence", "release"},  # the lease's own
    *{"load", "_load_mind"},  # they read
    # Parts of writes that are fenced, or of a seizure.
    *{"pause", "end_cycle_unfenced", "_undo", "_announce", "_announce_takeover"},
}
"""Functions of a transaction and a lease that do not begin with the fence."""


def test_every_write_of_a_cycle_begins_with_the_fence() -> None:
    """One thinker: whoever has lost the lease writes nothing, not in what is written next year either."""
    leased = {each.name for each in _functions_with_a_lease()}
    assert leased - fenced_writes() == UNFENCED


def fenced_writes() -> set[str]:
    """The names of the functions that begin with the fence, or with another of them."""
    begins = {each.name: _first_call(each) for each in _functions_with_a_lease()}
    fenced = {name for name, first in begins.items() if first == "fence"}
    return fenced | {name for name, first in begins.items() if first in fenced}


def _functions_with_a_lease() -> Iterator[ast.FunctionDef]:
    """The functions that take a transaction first, and a lease."""
    named = [path for path in modules() if "Lease" in path.read_text()]  # to parse all takes ten times as long
    for node in (each for path in named for each in ast.walk(parsed(path))):
        if isinstance(node, ast.FunctionDef) and node.args.args[:1] and node.args.args[0].arg == "tx":
            of = [ast.unparse(each.annotation) for each in node.args.args if each.annotation is not None]
            if "Lease" in of:
                yield node


def _first_call(function: ast.FunctionDef) -> str | None:
    """The name of what its first statement hands the transaction and the lease to."""
    first = function.body[1] if ast.get_docstring(function) is not None else function.body[0]
    for node in ast.walk(first):
        if isinstance(node, ast.Call) and [ast.unparse(each) for each in node.args[:2]] == ["tx", "lease"]:
            return ast.unparse(node.func).rpartition(".")[2]
    return None


_DEFINE_AGENTS = {"agents/applying.py", "agents/managing.py", "portability/agent_import.py"}
_MANAGE_AGENTS = {"agents/managing.py"}
ONLY_CALLED_BY = {
    "access.identities.unlink": {"access/people_changes.py"},
    "access.secrets.put": {"access/secret_changes.py", "api/model_setup.py"},
    "access.secrets.remove": {"access/secret_changes.py"},
    "access.tokens.rotate": {"access/token_changes.py"},
    "agents.forking.fork": _MANAGE_AGENTS,
    "agents.registry.create": {*_DEFINE_AGENTS, "agents/forking.py", "portability/entity_mapping.py", "first_start.py"},
    "agents.registry.delete": {"agents/managing.py", "portability/entity_mapping.py"},
    "agents.registry.edit": _DEFINE_AGENTS,
    "agents.registry.resume": _MANAGE_AGENTS,
    "agents.registry.suspend": {"agents/managing.py", "portability/agent_import.py"},
    "agents.registry.try_again": _MANAGE_AGENTS,
    "cycles.budgets.set_organization_budget": {"cycles/organization.py"},
    "inbox.delivery.mark_urgent": _MANAGE_AGENTS,
    "inbox.delivery.requeue": _MANAGE_AGENTS,
    "memory.items.correct": {"memory/access.py"},
    "memory.stored_policies.change_organization": {"memory/access.py"},
    "memory.stored_policies.settle": {"agents/chatting.py", "memory/access.py"},
    "panel.panels.hold": {"panel/advisor_stances.py", "panel/costs.py", "panel/rounds.py", "panel/claims.py"},
    "plans.agenda.remove_plans": {"plans/admin_changes.py", "tools/planning.py"},
    "plans.agenda.set_plans": {"plans/admin_changes.py", "tools/planning.py"},
    "plans.agenda.set_timer": {"plans/admin_changes.py", "tools/planning.py"},
    "plans.goals.change_goals": {"plans/admin_changes.py", "tools/planning.py"},
    "plans.goals.remove_goals": {"plans/admin_changes.py", "tools/planning.py"},
    "plans.notes.remove_notes": {"plans/admin_changes.py", "tools/planning.py"},
    "plans.notes.set_notes": {"plans/admin_changes.py", "tools/planning.py"},
    "profiles.organization_presets.store": {"agents/preset_changes.py"},
    "reflection.records.reset": {"agents/stance_changes.py"},
    "reflection.records.set_state": {"agents/stance_changes.py"},
    "spaces.directory.appoint": {"access/space_changes.py"},
    "spaces.directory.attend": {"access/space_changes.py", "agents/applying.py"},
    "spaces.directory.change_space": {"access/space_changes.py", "agents/applying.py"},
    "spaces.directory.create_space": {
        *{"access/space_changes.py", "agents/applying.py", "bridges/receiving.py", "first_start.py"},
        *{"portability/space_import.py", "portability/stance_lines.py"},
    },
    "spaces.directory.join": {
        *{"access/space_changes.py", "agents/applying.py", "agents/managing.py", "agents/private_spaces.py"},
        *{"bridges/managing.py", "bridges/receiving.py", "first_start.py"},
    },
    "spaces.directory.rename": {
        *{"access/people_changes.py", "agents/applying.py", "agents/managing.py", "bridges/applying.py"},
        "portability/agent_import.py",
    },
    "spaces.directory.rename_organization": {"cycles/organization.py"},
    "spaces.leaving.leave": {
        *{"access/people.py", "access/space_changes.py", "bridges/managing.py", "forgetting/forgetting.py"},
    },
    "spaces.posting.post": {"agents/messaging.py", "cycles/answering.py", "tools/prebuilt.py"},
}
"""Functions that change the database without checking who asks, and the modules with the use cases that check it."""


def test_changes_go_through_use_cases_that_check_permissions() -> None:
    """No route, command or method of the runtime reaches a change past the check."""
    wrong = [
        f"{name_in_repository(path)}:{line}: call a use case instead of {name}"
        for path in modules()
        if _may_call_one(path)  # to parse all takes ten times as long
        for line, name in called_functions(parsed(path))
        if name in ONLY_CALLED_BY and path.relative_to(PACKAGE).as_posix() not in ONLY_CALLED_BY[name]
    ]
    assert not wrong, "\n".join(wrong)


def _may_call_one(path: Path) -> bool:
    """Whether a module may call one of these functions: it names one, and the module that it is in."""
    text = path.read_text()
    return any(all(part in text for part in name.split(".")[1:]) for name in ONLY_CALLED_BY)


def test_use_cases_call_what_only_they_may_call() -> None:
    """The table has no function or module that was renamed."""
    for name, callers in ONLY_CALLED_BY.items():
        for caller in callers:
            assert name in {each for _, each in called_functions(parsed(PACKAGE / caller))}, f"{caller}: {name}"


def called_functions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The functions of other modules that a module names, as `spaces.posting.post`, with the lines that do."""
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("denizen."):
            imported |= {each.asname or each.name: f"{(node.module or '')[8:]}.{each.name}" for each in node.names}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in imported:
                yield node.lineno, f"{imported[owner]}.{name}"
            case ast.Name(id=name) if name in imported:
                yield node.lineno, imported[name]
            case _:
                pass
