"""Parses tool calls that a model wrote as text, because its server or its template does not support tool calls. Pure.

Taken as calls only if the whole text is nothing else, every tool is offered, and the text does not occur in what the
request holds from outside: otherwise anyone who can make a model repeat a text could make it act.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from denizen.consciousness.log import Entry
from denizen.tools.prebuilt import SKIP

MARK: Final = "calls_as_text"
"""Metadata key of a response in the log: its calls were written as text."""
MOST_CHARACTERS: Final = 50_000
MOST_CALLS: Final = 10

_FENCE = re.compile(r"```[\w-]*\s*\n?(?P<inner>.*?)\n?\s*```", re.DOTALL)
_TAGGED = re.compile(r"<(?P<tag>tool_call|function_call|tools?)>\s*(?P<inner>.*?)\s*(?:</(?P=tag)>|\Z)", re.DOTALL)
_MISTRAL = re.compile(r"\[TOOL_CALLS\]\s*(?P<name>\w*)(?:\[CALL_ID\]\w*)?(?:\[ARGS\])?")
_FUNCTION = re.compile(r"<function=(?P<name>[\w.-]+)>\s*(?P<inner>.*?)\s*(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=(?P<name>[\w.-]+)>\n?(?P<value>.*?)\n?</parameter>", re.DOTALL)
_LLAMA: Final = "<|python_tag|>"
_ANY_FORM = re.compile(r"[{(<\[`]")
"""Every form of a call has one of these characters, except the bare name of a tool."""
_FRAME = re.compile(r"</?(?:tool_call|function_call|tools?|tool_response)>|```[\w-]*|\[TOOL_CALLS\]|<\|python_tag\|>")
"""The markup around calls that are written as text."""
_NAMES: Final = ("name", "tool", "tool_name", "function", "function_name")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "tool_args", "tool_input", "input", "params")
_BESIDES: Final = frozenset({"type", "id", "call_id", "tool_call_id"})
"""Keys that may stand beside the name and the arguments of a call."""


class WrittenCall(NamedTuple):
    """One call as it was written."""

    name: str
    arguments: dict[str, Any]


def with_written_calls(
    response: ModelResponse, offered: Mapping[str, Sequence[str]], past: Iterable[Entry], layers: str | None = None
) -> ModelResponse:
    """The response with the calls that it wrote as text, marked as such; unchanged if it wrote none.

    `offered` are the tools, each with the names of its arguments in the order for calls without names: required ones
    first. A text that is only the frame of a call, such as `<tools></tools>`, is left out.
    """
    if any(not isinstance(part, TextPart | ThinkingPart) for part in response.parts):
        return response
    text = (response.text or "").strip()
    if text and not _FRAME.sub("", text).strip():
        return replace(response, parts=[part for part in response.parts if isinstance(part, ThinkingPart)])
    calls = calls_in(text, offered)
    if not calls or _is_from_outside(text, calls, past, layers):
        return response
    # Nine letters and digits: the narrowest format that a provider requires.
    made = [ToolCallPart(call.name, call.arguments, f"written{at:02}") for at, call in enumerate(calls)]
    kept = [part for part in response.parts if isinstance(part, ThinkingPart)]
    return replace(response, parts=[*kept, *made], metadata={**(response.metadata or {}), MARK: True})


def are_written(message: ModelMessage) -> bool:
    """Whether the calls of this response were written as text."""
    return isinstance(message, ModelResponse) and bool((message.metadata or {}).get(MARK))


def calls_in(text: str, offered: Mapping[str, Sequence[str]]) -> list[WrittenCall]:
    """The calls that the text consists of; none if it contains anything else, or a tool that is not offered."""
    if not text or len(text) > MOST_CHARACTERS or not (text.strip() in offered or _ANY_FORM.search(text)):
        return []
    found = _read(text.strip().removeprefix(_LLAMA).strip(), offered)
    if not found:
        return []
    # Beside other calls skip means that there is nothing more to do.
    calls = [each for each in found if each.name != SKIP] or found[:1]
    return calls if len(calls) <= MOST_CALLS and all(each.name in offered for each in calls) else []


def _read(text: str, offered: Mapping[str, Sequence[str]]) -> list[WrittenCall] | None:
    for form in (_FENCE, _TAGGED):
        if (inner := _only(form, text)) is not None:
            return _all(_read(each.strip(), offered) for each in inner)
    if (functions := _matches(_FUNCTION, text)) is not None:
        return _all(_function(each["name"], each["inner"]) for each in functions)
    if (mistral := _MISTRAL.match(text)) is not None:
        rest = text[mistral.end() :].strip()
        return _named(mistral["name"], rest) if mistral["name"] else _json_calls(rest)
    return _json_calls(text) or _python_calls(text, offered)


def _only(form: re.Pattern[str], text: str) -> list[str] | None:
    found = _matches(form, text)
    return None if found is None else [each["inner"] for each in found]


def _matches(form: re.Pattern[str], text: str) -> list[re.Match[str]] | None:
    """The matches of the form, if the text is nothing else."""
    found = list(form.finditer(text))
    return found if found and not form.sub("", text).strip() else None


def _all(parts: Iterable[list[WrittenCall] | None]) -> list[WrittenCall] | None:
    calls: list[WrittenCall] = []
    for part in parts:
        if not part:
            return None
        calls += part
    return calls


def _function(name: str, inner: str) -> list[WrittenCall] | None:
    """`<function=name>`, with JSON or with a tag for each argument."""
    parameters = _matches(_PARAMETER, inner)
    if parameters is not None:
        return [WrittenCall(name, {each["name"]: each["value"] for each in parameters})]
    return _named(name, inner or "{}")


def _named(name: str, text: str) -> list[WrittenCall] | None:
    arguments = _object(text)
    return None if arguments is None else [WrittenCall(name, arguments)]


def _json_calls(text: str) -> list[WrittenCall] | None:
    """JSON objects, one after the other or in a list; also in double braces, as some templates show them."""
    values = list(_values(text))
    if not values or values[-1] is _JUNK:
        return None
    listed: list[Any] = cast("list[Any]", values[0]) if len(values) == 1 and isinstance(values[0], list) else values
    return _all(_call(each) for each in listed)


_JUNK: Final = object()


def _values(text: str) -> Iterator[Any]:
    """The JSON values in sequence, separated only by spaces, commas and semicolons; otherwise `_JUNK`."""
    decoder, at = json.JSONDecoder(strict=False), 0
    while at < len(text):
        if text[at].isspace() or text[at] in ",;":
            at += 1
            continue
        doubled = text.startswith("{{", at)
        try:
            value, at = decoder.raw_decode(text, at + doubled)
        except (ValueError, RecursionError):
            yield _JUNK
            return
        # Small models double the first brace, and may forget to double the last.
        at += doubled and text.startswith("}", at)
        yield value


def _call(value: object) -> list[WrittenCall] | None:
    if not isinstance(value, dict):
        return None
    given = cast("dict[str, Any]", value)
    if isinstance(given.get("function"), dict) and not set(given) - {"function", *_BESIDES}:
        return _call(given["function"])
    named = [key for key in _NAMES if isinstance(given.get(key), str)]
    filled = [key for key in _ARGUMENTS if key in given]
    if len(named) != 1 or len(filled) > 1 or set(given) - {*named, *filled, *_BESIDES}:
        return None
    arguments: object = given[filled[0]] if filled else {}
    if isinstance(arguments, str):
        arguments = _object(arguments)
    return [WrittenCall(given[named[0]], cast("dict[str, Any]", arguments))] if isinstance(arguments, dict) else None


def _object(text: str) -> dict[str, Any] | None:
    values = list(_values(text.strip()))
    return cast("dict[str, Any]", values[0]) if len(values) == 1 and isinstance(values[0], dict) else None


def _python_calls(text: str, offered: Mapping[str, Sequence[str]]) -> list[WrittenCall] | None:
    """`send_message(text="Hello")`, also several in a list, or without the names of arguments; and the bare name of a
    tool that needs no arguments."""
    if text in offered:
        return [WrittenCall(text, {})]
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return _all(_python_call(each, offered) for each in (tree.elts if isinstance(tree, ast.List) else [tree]))


def _python_call(node: ast.expr, offered: Mapping[str, Sequence[str]]) -> list[WrittenCall] | None:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    names = offered.get(node.func.id, ())
    if len(node.args) > len(names):
        return None
    given = [*zip(names, node.args, strict=False), *((each.arg or "", each.value) for each in node.keywords)]
    arguments: dict[str, Any] = {}
    for name, value in given:
        if not name or name in arguments:
            return None
        try:
            arguments[name] = ast.literal_eval(value)
        except (ValueError, RecursionError, MemoryError):
            return None
    return [WrittenCall(node.func.id, arguments)]


# Whether somebody else wrote it

_TELLING: Final = 12
"""Fewer letters and digits than this may be equal by chance."""
_LETTER = re.compile(r"[^\W_]+")


def _is_from_outside(text: str, calls: Iterable[WrittenCall], past: Iterable[Entry], layers: str | None) -> bool:
    """Whether the text, or one of its calls in any form, occurs in what others have written."""
    outside = _bare("\n".join([*_texts(past), layers or ""]))
    arguments = [_bare(json.dumps(call.arguments, ensure_ascii=False)) for call in calls]
    return any(each in outside for each in [_bare(text), *arguments] if len(each) >= _TELLING)


def _texts(entries: Iterable[Entry]) -> Iterator[str]:
    """The texts in the entries that the agent has not written itself."""
    for entry in entries:
        if entry.kind in ("response", "nudge", "note"):
            continue
        for part in entry.message.parts:
            if isinstance(part, ToolReturnPart | UserPromptPart):
                yield str(part.content)


def _bare(text: str) -> str:
    """Letters and digits only, so that quoting, gutters and escapes do not hide where a text comes from."""
    return "".join(_LETTER.findall(text.replace("\\n", " ").replace("\\t", " "))).casefold()
