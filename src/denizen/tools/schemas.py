"""Validates arguments by JSON Schema, for tools that are not Python functions: providers do not check them for us.

Schemas come from those who define tools and from the vendors of MCP servers, arguments from models, and validation
blocks everything else. So the work is bounded before it begins: patterns match in linear time, and schemas and
arguments have limits of size, of depth and of how often one value is visited.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from denizen.errors import InvalidInput
from denizen.shortening import shortened

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

MAX_SCHEMA_CHARACTERS: Final = 262_144
CACHED_CHARACTERS: Final = 10_000
"""Compiled schemas are cached up to this size, so that the cache stays small."""
CACHED_SCHEMAS: Final = 256
MAX_CHARACTERS: Final = 262_144
"""Of arguments, as JSON."""
MAX_DEPTH: Final = 64
"""How deeply objects and lists may be nested, in schemas and in arguments."""
MAX_PATTERNS: Final = 50
MAX_PATTERN_BYTES: Final = 2**15
"""Size limit of one compiled pattern. The cost of matching a character grows with it, up to some ten microseconds."""
MAX_MATCHING: Final = 100_000
"""Characters of arguments times patterns in the schema: a second in the worst case."""
MAX_VISITS: Final = 1_000
"""How many parts of a schema may apply to one value. Nested references multiply: thirty lines can make a billion."""
MAX_WORK: Final = 2_000_000
"""How many values times how many visits: a tenth of a second."""
_EXPLAINED: Final = 4_000
"""Up to this many characters of arguments every problem is reported: the library copies the arguments for each one."""
_SHOWN: Final = 5
"""How many problems are reported at once."""
_LONGEST: Final = 300
"""Maximum length of one problem: it may quote the whole value."""

Check = Callable[[str | Mapping[str, Any] | None], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """The schema of a tool's arguments, ready to check calls."""

    validator: Draft202012Validator
    without_patterns: Draft202012Validator | None
    """The validator for long arguments; None: they are refused."""
    visits: int
    """How often one value is visited, at most."""
    patterns: int
    unusable_patterns: tuple[str, ...]
    """The positions of patterns that cannot be matched in linear time. They are not checked."""


class UnusableSchema(InvalidInput):
    """No arguments can be checked by this schema. Its message says why."""


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """The problem with a schema of arguments, or None."""
    try:
        compiled = compile_schema(schema)
    except UnusableSchema as error:
        return str(error)
    if compiled.unusable_patterns:
        return (
            f"the pattern at {compiled.unusable_patterns[0]} cannot be used. Patterns are matched in linear time: "
            "rewrite it without look-around, back-references and very large repetitions"
        )
    return None


def compile_schema(schema: Mapping[str, Any], *, patterns_are_optional: bool = False) -> CompiledSchema:
    """The schema without the patterns that cannot be used. Raises `UnusableSchema` if it cannot be used at all.

    Patterns are optional if the receiver of the call checks them as well: then arguments that are too long to be
    matched pass.
    """
    if schema.get("type") != "object":
        raise UnusableSchema('parameters must be the schema of an object: `{"type": "object", "properties": {…}}`')
    measured = _measure(schema)
    if measured.depth > MAX_DEPTH or measured.characters > MAX_SCHEMA_CHARACTERS:
        raise UnusableSchema(
            f"parameters is too large. A schema may be nested {MAX_DEPTH} deep and have {MAX_SCHEMA_CHARACTERS:,} "
            "characters"
        )
    try:
        text = json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UnusableSchema(f"parameters is not JSON: {error}") from error
    if measured.patterns > MAX_PATTERNS:
        raise UnusableSchema(f"parameters has more than {MAX_PATTERNS} patterns. Use fewer")
    compiled = _compile_once if len(text) <= CACHED_CHARACTERS else _compile
    return compiled(text, measured.patterns, patterns_are_optional)


def _compile(text: str, patterns: int, patterns_are_optional: bool) -> CompiledSchema:
    from jsonschema_rs import Draft202012Validator, ReferencingError, RegexOptions, ValidationError

    usable = json.loads(text)
    try:
        visits = _visits(usable)
    except RecursionError as error:
        raise UnusableSchema("parameters is too complex: its references lead through too many others") from error
    unusable: list[str] = []
    options = RegexOptions(size_limit=MAX_PATTERN_BYTES)
    while True:
        try:
            validator = Draft202012Validator(usable, pattern_options=options, offline=True)
            if not patterns_are_optional:
                return CompiledSchema(validator, None, visits, patterns, tuple(unusable))
            _remove_patterns(usable)
            bare = Draft202012Validator(usable, pattern_options=options, offline=True)
            return CompiledSchema(validator, bare, visits, patterns, tuple(unusable))
        except ValidationError as error:
            where = ".".join(map(str, error.instance_path))
            if error.kind.as_dict() != {"format": "regex"}:
                at = f" at {where}" if where else ""
                raise UnusableSchema(
                    f"parameters is not a valid JSON Schema{at}: {shortened(error.message, _LONGEST)}"
                ) from error
            _remove(usable, error.instance_path)
            unusable.append(where)
        except (ReferencingError, ValueError) as error:
            raise UnusableSchema(f"parameters is not a valid JSON Schema: {shortened(str(error), _LONGEST)}") from error


_compile_once = lru_cache(CACHED_SCHEMAS)(_compile)
"""An agent's tools are built again whenever it wakes, and their schemas are mostly the same."""


def checker(name: str, schema: Mapping[str, Any] | CompiledSchema) -> Check:
    """A function that returns a call's arguments if they fit the schema, and raises `InvalidInput` otherwise.

    A schema that was stored under earlier limits may be unusable: then every call is refused.
    """
    try:
        compiled = schema if isinstance(schema, CompiledSchema) else compile_schema(schema)
    except UnusableSchema as error:
        compiled = error

    def check(arguments: str | Mapping[str, Any] | None) -> Mapping[str, Any]:
        if isinstance(compiled, UnusableSchema):
            raise InvalidInput(f"{name} was not called, because its schema cannot be used: {compiled}.") from compiled
        given = _parsed(name, arguments)
        if found := problems(name, compiled, given):
            raise InvalidInput(f"{name} was not called, because its arguments are wrong: {'; '.join(found)}.")
        return given

    return check


def problems(name: str, compiled: CompiledSchema, given: Mapping[str, Any]) -> list[str]:
    """The first problems, in words."""
    measured = _measure(given)
    if measured.depth > MAX_DEPTH:
        return [f"they are nested more than {MAX_DEPTH} deep"]
    too_long_to_match = measured.characters * compiled.patterns > MAX_MATCHING
    validator = compiled.without_patterns if too_long_to_match else compiled.validator
    too_large = measured.characters > MAX_CHARACTERS or measured.values * compiled.visits > MAX_WORK
    if too_large or validator is None:
        return [f"they are too large, with {measured.characters:,} characters. Send less at once"]
    try:
        if validator.is_valid(given):
            return []
        if measured.characters <= _EXPLAINED:
            return _in_words(validator, given)
        return _surely_wrong(validator, given) or [
            f"a value does not fit the schema. With {measured.characters:,} characters they are too long for details"
        ]
    except ValueError as error:  # a lone surrogate in a name
        raise InvalidInput(f"{name} was not called, because its arguments cannot be checked: {error}.") from error


def _in_words(validator: Draft202012Validator, given: Any, keywords: Iterable[str] | None = None) -> list[str]:
    errors = (each for each in validator.iter_errors(given) if keywords is None or each.kind.name in keywords)
    return [
        f"{'.'.join(map(str, each.instance_path)) or 'arguments'}: {shortened(each.message, _LONGEST)}"
        for each in islice(errors, _SHOWN)
    ]


def _surely_wrong(validator: Draft202012Validator, given: Mapping[str, Any]) -> list[str]:
    """Problems of long arguments that are problems of their beginning as well."""
    beginning = _cut(given)
    if _measure(beginning).characters > _EXPLAINED:
        return []
    return _in_words(validator, beginning, ("required", "type", "additionalProperties"))


def _cut(value: Any) -> Any:
    """The value with long strings and lists cut short. No member of an object is left out."""
    if isinstance(value, str):
        return value[:50]
    if isinstance(value, list):
        return [_cut(each) for each in cast("list[Any]", value)[:5]]
    if isinstance(value, dict):
        return {name: _cut(each) for name, each in cast("dict[str, Any]", value).items()}
    return value


def _parsed(name: str, arguments: str | Mapping[str, Any] | None) -> Mapping[str, Any]:
    if not isinstance(arguments, str):
        return arguments or {}
    try:
        given = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} was not called, because its arguments are not JSON: {error}.") from error
    if not isinstance(given, dict):
        raise InvalidInput(f"{name} was not called, because its arguments are not a JSON object.")
    return given  # pyright: ignore[reportUnknownVariableType]


@dataclass(frozen=True, slots=True)
class _Measured:
    """The size of a JSON value."""

    depth: int
    values: int
    characters: int
    patterns: int
    """If it is a schema."""


def _measure(value: object) -> _Measured:
    """Without recursion, and no deeper than is allowed."""
    depth = values = characters = patterns = 0
    level: list[Any] = [value]
    while level and depth <= MAX_DEPTH:
        below: list[Any] = []
        for each in level:
            values += 1
            if isinstance(each, Mapping):
                members = cast("Mapping[str, Any]", each)
                characters += 2 + sum(len(str(name)) + 4 for name in members)
                below.extend(members.values())
                by_pattern = members.get("patternProperties")
                patterns += isinstance(members.get("pattern"), str)
                patterns += len(cast("dict[str, Any]", by_pattern)) if isinstance(by_pattern, dict) else 0
            elif isinstance(each, (list, tuple)):
                items = cast("list[Any]", each)
                characters += 2 + len(items)
                below.extend(items)
            else:
                characters += len(each) if isinstance(each, str) else 5
        level = below
        depth += 1
    return _Measured(depth, values, characters, patterns)


def _remove(schema: Any, path: list[str | int]) -> None:
    """Remove the part at this path of the schema."""
    for part in path[:-1]:
        schema = schema[part]
    del schema[path[-1]]


def _remove_patterns(schema: Any) -> None:
    """Remove all patterns from the schema. Names of members are still matched: they are short."""
    if not isinstance(schema, dict):
        return
    part = cast("dict[str, Any]", schema)
    part.pop("pattern", None)
    for keyword in (*_SAME_VALUE, *_MEMBERS, *_ITEMS, "properties", "prefixItems", "$defs", "definitions"):
        for each in _schemas(part, keyword):
            _remove_patterns(each)


# Number of visits of one value

_SAME_VALUE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
"""Keywords whose schemas apply to the value itself."""
_MEMBERS: Final = ("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames")
"""Keywords whose schemas apply to members of an object, any number of them to the same one. Without `properties`, of
which at most one applies to a member."""
_ITEMS: Final = ("items", "contains", "unevaluatedItems")
"""The same for lists; of `prefixItems` at most one applies to an item."""
_KEYED: Final = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
"""Keywords with schemas by name."""
_Kind = Literal["any", "object", "list"]
_UNDER_WAY: Final = -1
_UNSUPPORTED: Final = ("$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor")


def _visits(root: dict[str, Any]) -> int:
    """How many parts of the schema apply to one value, at most. Raises `UnusableSchema` if they are too many."""
    counted = _Visits(root)
    most = 0
    for depth in range(MAX_DEPTH + 1):
        at_depth = counted.at(root, depth)
        if at_depth == 0:
            break
        most = max(most, at_depth)
    return most


class _Visits:
    """Counts how many parts of a schema apply to each value a number of levels below the one that the schema is applied
    to, following references."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._known: dict[tuple[int, int, _Kind], int] = {}

    def at(self, schema: Any, depth: int) -> int:
        """The maximum number of parts that apply to a value that many levels below."""
        if depth == 0:
            return self._for(schema, 0, "any")
        return max(self._for(schema, depth, "object"), self._for(schema, depth, "list"))

    def _for(self, schema: Any, depth: int, kind: _Kind) -> int:
        """The same if the schema applies to a value of this kind: alternatives for lists and objects do not add up."""
        if not isinstance(schema, dict):
            return int(depth == 0)
        part = cast("dict[str, Any]", schema)
        key = (id(part), depth, kind)
        if key not in self._known:
            self._known[key] = _UNDER_WAY
            self._look_at(part)
            same = [each for keyword in _SAME_VALUE for each in _schemas(part, keyword)]
            if "$ref" in part:
                same.append(self._referred(str(part["$ref"])))
            self._known[key] = self._below(part, depth, kind) + sum(self._for(each, depth, kind) for each in same)
            if self._known[key] > MAX_VISITS:
                raise UnusableSchema(
                    f"parameters is too complex: more than {MAX_VISITS:,} parts of it apply to one value. "
                    "Use fewer nested alternatives and references"
                )
        if self._known[key] == _UNDER_WAY:
            raise UnusableSchema("parameters has a part that refers to itself for the same value, without end")
        return self._known[key]

    def _below(self, part: dict[str, Any], depth: int, kind: _Kind) -> int:
        """The count of the part itself for values `depth` levels below; 1 for the value itself."""
        if depth == 0:
            return 1
        one_of, all_of = ("properties", _MEMBERS) if kind == "object" else ("prefixItems", _ITEMS)
        first = max((self.at(each, depth - 1) for each in _schemas(part, one_of)), default=0)
        return first + sum(self.at(each, depth - 1) for keyword in all_of for each in _schemas(part, keyword))

    def _referred(self, target: str) -> Any:
        found: Any = self._root
        try:
            for name in target.removeprefix("#").split("/")[1:]:
                plain = name.replace("~1", "/").replace("~0", "~")
                place = cast("list[Any] | dict[str, Any]", found)
                found = place[int(plain)] if isinstance(place, list) else place[plain]
        except (KeyError, IndexError, ValueError, TypeError):
            found = None
        if found is None or not (target == "#" or target.startswith("#/")) or "%" in target:
            raise UnusableSchema(
                f"parameters refers to {shortened(target, _LONGEST)!r}, which cannot be used. "
                "References lead to places in the same schema, as `#/$defs/name` does"
            )
        return found

    def _look_at(self, part: dict[str, Any]) -> None:
        for keyword in _UNSUPPORTED:
            if keyword in part:
                raise UnusableSchema(f"parameters uses {keyword}, which is not supported. Use `$ref`")
        if part is not self._root and isinstance(part.get("$id"), str):
            raise UnusableSchema("parameters has a part with an `$id` of its own. Only the whole schema may have one")


def _schemas(part: dict[str, Any], keyword: str) -> Iterator[Any]:
    """The schemas under a keyword: one, a list of them, or some by name."""
    given = part.get(keyword)
    if isinstance(given, list):
        yield from cast("list[Any]", given)
    elif isinstance(given, dict) and keyword in _KEYED:
        yield from cast("dict[str, Any]", given).values()
    elif given is not None:
        yield given
