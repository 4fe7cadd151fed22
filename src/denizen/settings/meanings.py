"""Reads the docstrings of a model's fields from its source. Pydantic could do so for each class that is defined, which
every process would pay for at its start.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache

from pydantic import BaseModel


@cache
def meanings(model: type[BaseModel]) -> Mapping[str, str]:
    """Returns the docstring of each field of the model and of its bases; the nearest wins."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if each.__module__.startswith("denizen."):
            found |= _below_fields(ast.parse(textwrap.dedent(inspect.getsource(each))).body)
    return found


def _below_fields(body: Sequence[ast.stmt]) -> dict[str, str]:
    (model,) = (each for each in body if isinstance(each, ast.ClassDef))
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in zip(model.body, model.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
