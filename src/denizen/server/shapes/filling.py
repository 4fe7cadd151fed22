"""Makes a shape from a value that has fields of the same names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin

from denizen.clock import moment
from denizen.shapes.value import Value

T = TypeVar("T", bound=Value)


def filled(shape: type[T], *sources: object, **other: Any) -> T:
    """Makes the shape: each field is that of `other`, otherwise the attribute of the first source that has its name.

    Instants become times, and values inside become shapes in the same way. A field with a single possible value needs
    no attribute. Raises `AttributeError` if another field is nowhere, also if it has a default: a renamed attribute
    must not be left out silently.
    """
    taken = {name: make(_attribute(sources, name)) for name, make in _makers(shape).items() if name not in other}
    return shape(**taken, **other)


def _attribute(sources: tuple[object, ...], name: str) -> Any:
    for source in sources[:-1]:
        if hasattr(source, name):
            return getattr(source, name)
    return getattr(sources[-1], name)


@cache
def _makers(shape: type[Value]) -> dict[str, Callable[[Any], Any]]:
    """Returns how each field is made from an attribute."""
    fields = {name: field.annotation for name, field in shape.model_fields.items()}
    return {name: _maker(annotation) for name, annotation in fields.items() if not _is_constant(annotation)}


def _is_constant(annotation: Any) -> bool:
    return get_origin(annotation) is Literal and len(get_args(annotation)) == 1


def _maker(annotation: Any) -> Callable[[Any], Any]:
    inner = get_args(annotation)
    if annotation is datetime or datetime in inner:
        return lambda at: None if at is None else moment(at)
    for each in (annotation, *inner):
        if isinstance(each, type) and issubclass(each, Value):
            if get_origin(annotation) is list:
                return lambda listed: [_made(each, one) for one in listed]
            return lambda value: None if value is None else _made(each, value)
    return lambda value: value


def _made(shape: type[Value], value: object) -> Value:
    return value if isinstance(value, shape) else filled(shape, value)
