"""Python functions as tools: the signature is the schema, the docstring the description."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, overload

from pydantic import ValidationError
from pydantic_core import to_json

from denizen.errors import InvalidInput
from denizen.tools.results import Output, ToolFile
from denizen.tools.tool import CallIdentity, OnCrash, OutsideTool, Results, explain_arguments
from denizen.trust.values import Kind


@overload
def tool(function: Callable[..., Any], /) -> OutsideTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    on_crash: OnCrash = "report",
    independent: bool = False,
    seconds: float = 60.0,
    visible: bool = False,
    background: bool = False,
    results: Results = "trusted",
    effect: bool = True,
    needs_trusted: bool = False,
    kinds: Mapping[str, Kind] | None = None,
    makes: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., Any]], OutsideTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    on_crash: OnCrash = "report",
    independent: bool = False,
    seconds: float = 60.0,
    visible: bool = False,
    background: bool = False,
    results: Results = "trusted",
    effect: bool = True,
    needs_trusted: bool = False,
    kinds: Mapping[str, Kind] | None = None,
    makes: Mapping[str, str] | None = None,
) -> OutsideTool | Callable[[Callable[..., Any]], OutsideTool]:
    """Make a typed function a tool that agents can be given.

    Its docstring tells the model what it does and what its arguments mean. A plain function runs in a thread, an async
    one on the event loop. `on_crash="retry"` says that calling it twice does no harm; by default, if the process dies
    during a call, the model is told that the outcome is unknown.

    After `seconds` the cycle goes on; what the tool answers later is told to the agent as an event. With `background`
    the cycle does not wait at all. A `visible` call is shown to the people in the space, with its result.

    It may return a file (`ToolFile`), or a list of texts and files: the agent has the files then, and can send them.

    What it answers is trusted, as your code is. If it answers what others wrote (a web page, an e-mail, a file), say
    `results="outside"`. Once an agent has read such text, from this or any other tool, a function that has an effect
    runs by itself only if what matters in its arguments stands in a person's words; otherwise a person is asked.
    `effect=False` says that it only reads. `needs_trusted` always asks then. `kinds` and `makes`: see `HttpTool`.
    """

    def decorate(decorated: Callable[..., Any]) -> OutsideTool:
        made = _from_function(decorated, name)
        mode = "background" if background else "wait"
        made = replace(made, on_crash=on_crash, independent=independent, seconds=seconds, visible=visible, mode=mode)
        trust = {"results": results, "effect": effect, "needs_trusted": needs_trusted}
        return replace(made, **trust, kinds=dict(kinds or {}), makes=dict(makes or {}))

    return decorate if function is None else decorate(function)


def _from_function(function: Callable[..., Any], name: str | None) -> OutsideTool:
    from pydantic_ai.tools import Tool as SchemaTool

    made = SchemaTool[None](function, name=name, takes_ctx=False)
    validator = made.function_schema.validator
    definition = made.tool_def

    def check(arguments: str | Mapping[str, Any] | None) -> Mapping[str, Any]:
        try:
            if isinstance(arguments, str):
                return validator.validate_json(arguments or "{}")
            return validator.validate_python(arguments or {})
        except ValidationError as error:
            raise InvalidInput(explain_arguments(definition.name, error)) from error

    async def call(arguments: Mapping[str, Any], _: CallIdentity) -> str | Output:
        if inspect.iscoroutinefunction(function):
            return as_output(await function(**arguments))
        return as_output(await asyncio.to_thread(function, **arguments))

    return OutsideTool(definition, check, call, results="trusted")


def as_output(value: object) -> str | Output:
    """A returned value for the model: as text, and the files in it, if it is a file or a list with files."""
    several: tuple[object, ...] = (
        tuple(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else (value,)
    )
    files = tuple(each for each in several if isinstance(each, ToolFile))
    if not files:
        return as_text(cast("object", value))
    texts = [as_text(each) for each in several if not isinstance(each, ToolFile)]
    return Output("\n".join(texts), files)


def as_text(value: object) -> str:
    """A returned value as text for the model: text unchanged, everything else as JSON."""
    if isinstance(value, str):
        return value
    return to_json(value, fallback=str).decode()
