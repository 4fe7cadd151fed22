"""`denizen` exports what programs need: its functions, all errors, and every type in a signature of the Python API."""

from __future__ import annotations

import ast
import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any

import denizen
from denizen import Runtime, errors
from denizen.api.subject import Subject

BASIC_NAMES = {
    "ManualClock",
    "Runtime",
    "ToolFile",
    "call",
    "forever",
    "reply",
    "say",
    "scripted",
    "skip",
    "think",
    "tool",
}
IDS = {"AgentId", "EntityId", "FileId", "MessageId", "OrganizationId", "SpaceId"}


@cache
def names_for_types(module: str) -> dict[str, Any]:
    """What the module imports for its annotations only, below `if TYPE_CHECKING`."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    names: dict[str, Any] = {}
    for block in blocks:
        exec(ast.unparse(ast.Module(block.body, [])), names)
    return names


def hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types in the signature of the function."""
    return typing.get_type_hints(function, localns=names_for_types(function.__module__))


def subjects() -> dict[str, type[Subject]]:
    """The subjects of a runtime, by attribute."""
    properties = {name: each for name, each in vars(Runtime).items() if isinstance(each, cached_property)}
    return {name: hints(each.func)["return"] for name, each in properties.items()}


def methods(subject: type[Subject]) -> dict[str, Callable[..., Any]]:
    """The public methods of a subject."""
    return {name: each for name, each in vars(subject).items() if inspect.isfunction(each) and name[0] != "_"}


def our_types(annotation: Any) -> Iterator[type]:
    """The classes of Denizen in an annotation."""
    if isinstance(annotation, type) and annotation.__module__.startswith("denizen"):
        yield annotation
        if typing.is_typeddict(annotation):
            for field in typing.get_type_hints(annotation).values():
                yield from our_types(field)
    for part in [*annotation] if isinstance(annotation, list) else typing.get_args(annotation):
        yield from our_types(part)


def types_in_signatures() -> set[type]:
    functions = [Runtime.__init__, *(each for subject in subjects().values() for each in methods(subject).values())]
    return {found for each in functions for hint in hints(each).values() for found in our_types(hint)}


def all_errors() -> set[str]:
    return {name for name, each in vars(errors).items() if inspect.isclass(each) and issubclass(each, Exception)}


def test_every_type_of_a_signature_and_every_error_is_exported_and_nothing_else():
    exported = {name: getattr(denizen, name) for name in denizen.__all__}
    named = {name for name, value in exported.items() if value in types_in_signatures()}
    assert types_in_signatures() <= {exported[name] for name in named}
    assert set(denizen.__all__) == named | BASIC_NAMES | IDS | all_errors()


def test_every_public_name_is_documented():
    for name in denizen.__all__:
        assert getattr(denizen, name).__doc__, name


def test_every_subject_and_method_is_documented():
    for name, subject in subjects().items():
        assert "```python" in (subject.__doc__ or ""), f"denizen.{name} has no example"
        for method, function in methods(subject).items():
            assert function.__doc__, f"denizen.{name}.{method} has no docstring"


def test_no_method_takes_any_keyword():
    """Unknown keywords are found by a type checker, and completed by an editor."""
    for name, subject in subjects().items():
        for method, function in methods(subject).items():
            for parameter in inspect.signature(function).parameters.values():
                if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                    assert str(parameter.annotation).startswith("Unpack["), f"denizen.{name}.{method}"
