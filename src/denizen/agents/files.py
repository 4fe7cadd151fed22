"""Definition files: parses YAML 1.2 or JSON text into validated documents, and writes documents as text. Pure.

All problems of all files are reported at once, with the file, the line, the position in the document, and the nearest
valid name. Values are read as YAML 1.2; tags, timestamps and merge keys have no special meaning.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from denizen.agents.documents import KINDS, AgentDocument, Document, Plain, SpaceDocument, plain
from denizen.errors import DefinitionsInvalid, InvalidInput
from denizen.nearest import nearest
from denizen.tools.skills import Skill, read_folder

MOST_VALUES: Final = 100_000
"""The limit for one file. Aliases of aliases make a small file a large one."""
MOST_PROBLEMS: Final = 50
"""How many problems of one document are explained."""
DEEPEST: Final = 50

Path: TypeAlias = tuple[str | int, ...]
"""A position in a document: keys and indexes."""


def _nothing_beside(name: str) -> str:
    raise FileNotFoundError(2, "No such file", name)


def _no_folder(name: str) -> Mapping[str, str]:
    raise FileNotFoundError(2, "No such folder", name)


@dataclass(frozen=True, slots=True)
class DefinitionFile:
    """A file that was read."""

    name: str
    """Its name in messages; a name that ends with `.json` means JSON, any other YAML."""
    text: str
    beside: Callable[[str], str] = _nothing_beside
    """Reads another file, named relative to this one. May raise `OSError` or `UnicodeDecodeError`."""
    folder: Callable[[str], Mapping[str, str]] = _no_folder
    """Reads all files of a folder, named relative to this one, by their paths in it. May raise the same."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A document, and its position."""

    document: Document
    place: str
    """`agents.yaml:12`."""


def read(sources: Iterable[DefinitionFile]) -> list[Declared]:
    """All documents of all files, in order. Raises one `DefinitionsInvalid` with all problems."""
    problems: list[str] = []
    found = [each for source in sources for each in _documents(source, problems)]
    problems += _twice(found)
    if problems:
        raise DefinitionsInvalid(*problems)
    return found


def declare(documents: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Declared]:
    """The same for documents that were parsed elsewhere, each with its position. None of them refers to a file."""
    problems: list[str] = []
    found: list[Declared] = []
    for place, value in documents:
        # Line numbers are unknown here: they were left behind with the file.
        document = _document(DefinitionFile("", ""), _Parsed(value, {}), told := list[str]())
        problems += [f"{place}: {each.partition(': ')[2]}" for each in told]
        if document is not None:
            found.append(Declared(document, place))
    problems += _twice(found)
    if problems:
        raise DefinitionsInvalid(*problems)
    return found


def render(documents: Sequence[Document]) -> str:
    """The documents as a YAML file."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = 110
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    for index, document in enumerate(documents):
        if index:
            out.write("---\n")
        yaml.dump(_in_blocks(_in_reading_order(document)), out)  # pyright: ignore[reportUnknownMemberType]
    return out.getvalue()


def _in_reading_order(document: Document) -> dict[str, Plain]:
    said = cast("dict[str, Plain]", plain(document))
    if isinstance(document, AgentDocument):
        del said["kind"]
    first = {key: said.pop(key) for key in ("kind", "name", "handle") if key in said}
    return first | said


_BLOCK: Final = re.compile(r"(?=\S)[^\r\t\x85\u2028\u2029]*\n[^\r\t\x85\u2028\u2029]*")
_RAGGED: Final = re.compile(r"[ \n]\Z|[ ]\n|\n[ ]")


def _in_blocks(value: Plain) -> Any:
    """The value with multi-line strings marked for block style, where that loses nothing."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    match value:
        case dict():
            return {key: _in_blocks(each) for key, each in value.items()}
        case list():
            return [_in_blocks(each) for each in value]
        case str() if _BLOCK.fullmatch(value) and not _RAGGED.search(value.removesuffix("\n")):
            lines = value.replace("\n", "")
            return LiteralScalarString(value) if lines.isprintable() else DoubleQuotedScalarString(value)
        case str() if not value.isprintable():
            return DoubleQuotedScalarString(value)
        case _:
            return value


# Reading


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A parsed document: its value, and the line of each part."""

    value: Any
    lines: Mapping[Path, int]

    def line(self, path: Path) -> int:
        """The line of that part, or of the nearest part around it."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)


class _Wrong(Exception):
    """The text cannot be read."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(message)


def _documents(source: DefinitionFile, problems: list[str]) -> Iterator[Declared]:
    try:
        parsed = _parse_json(source.text) if source.name.lower().endswith(".json") else _parse_yaml(source.text)
    except _Wrong as wrong:
        problems.append(f"{source.name}:{wrong.line}: {wrong}")
        return
    if not parsed:
        problems.append(f"{source.name}:1: it is empty")
    for each in parsed:
        document = _document(source, each, problems)
        if document is not None:
            yield Declared(document, f"{source.name}:{each.line(())}")


def _document(source: DefinitionFile, parsed: _Parsed, problems: list[str]) -> Document | None:
    def wrong(path: Path, message: str) -> None:
        where = f"{_shown(path)}: " if path else ""
        problems.append(f"{source.name}:{parsed.line(path)}: {where}{message}")

    value: Any = parsed.value
    if not isinstance(value, dict):
        wrong((), "a document has to be a mapping, such as `name: Ada`")
        return None
    value = cast("dict[str, Any]", value)
    kind = value.get("kind", "agent")
    if kind not in KINDS:
        wrong(("kind",), _not_one_of(kind, list(KINDS)))
        return None
    value = {**value, "kind": kind}
    if isinstance(value.get("instructions_file"), str) and kind == "agent":
        value = _with_instructions(source, value, wrong)
    if isinstance(value.get("skills"), dict) and kind == "agent":
        value = {**value, "skills": _with_folders(source, value["skills"], wrong)}
    try:
        return KINDS[kind].model_validate(value)
    except ValidationError as error:
        for path, message in sorted(_explain(error, KINDS[kind], value), key=lambda each: parsed.line(each[0])):
            wrong(path, message)
        return None


def _with_folders(source: DefinitionFile, skills: dict[str, Any], wrong: Callable[[Path, str], None]) -> dict[str, Any]:
    """The skills of the document; a text is replaced by the skill in the folder of that name."""
    found = dict(skills)
    for name, value in skills.items():
        if not isinstance(value, str):
            continue
        try:
            found[name] = {**plain_skill(read_folder(name, source.folder(value))), "source": value}
        except UnicodeDecodeError:
            wrong(("skills", name), f"{value!r} has a file that is not text. Remove it from the folder")
        except OSError as error:
            wrong(("skills", name), f"{value!r} cannot be read: {error.strerror or error}")
        except ValidationError as error:
            said = error.errors(include_url=False, include_input=False)[0]["msg"].removeprefix("Value error, ")
            wrong(("skills", name), f"{value!r}: {said}")
        except InvalidInput as error:
            wrong(("skills", name), f"{value!r}: {error}".rstrip("."))
        else:
            continue
        del found[name]
    return found


def plain_skill(skill: Skill) -> dict[str, Any]:
    return cast("dict[str, Any]", plain(skill))


def _with_instructions(
    source: DefinitionFile, value: dict[str, Any], wrong: Callable[[Path, str], None]
) -> dict[str, Any]:
    """The document with the content of its `instructions_file` as its instructions."""
    name = value.pop("instructions_file")
    if "instructions" in value:
        wrong(("instructions_file",), "give either 'instructions' or 'instructions_file', not both")
        return value
    try:
        return {**value, "instructions": source.beside(name)}
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        wrong(("instructions_file",), f"{name!r} cannot be read: {reason}")
        return value


def _twice(found: Sequence[Declared]) -> list[str]:
    """Problems with handles and spaces that are defined more than once."""
    first: dict[str, str] = {}
    problems: list[str] = []
    for each in found:
        document = each.document
        if isinstance(document, SpaceDocument):
            thing = f"the space {document.name!r}"
        else:
            thing = f"the handle {document.handle!r}"
        if thing in first:
            problems.append(f"{each.place}: {thing} is defined already at {first[thing]}")
        first.setdefault(thing, each.place)
    return problems


def _parse_json(text: str) -> list[_Parsed]:
    # The YAML reader knows line numbers; tabs are only white space in JSON, and never inside a string.
    as_yaml = text.replace("\t", " ")
    try:
        value = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise _Wrong(error.lineno, f"this is not JSON: {error.msg} (column {error.colno})") from error
    except RecursionError as error:
        raise _Wrong(1, "the nesting is too deep") from error
    except ValueError as error:  # a number with very many digits
        raise _Wrong(1, f"this is not JSON: {error}") from error
    except _Wrong:
        _parse_yaml(as_yaml)  # fails as well, with the line
        raise
    try:
        lines = [each.lines for each in _parse_yaml(as_yaml)]
    except _Wrong:
        lines = []
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    known = len(lines) == len(values)
    return [_Parsed(each, lines[index] if known else {}) for index, each in enumerate(values)]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Wrong(1, f"the key {key!r} appears twice")
        found[key] = value
    return found


def _parse_yaml(text: str) -> list[_Parsed]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    parsed: list[_Parsed] = []
    left = _Left(MOST_VALUES)
    try:
        for root in YAML(typ="safe", pure=True).compose_all(io.StringIO(text)):  # pyright: ignore[reportUnknownMemberType]
            items: list[Any] = root.value if root is not None and root.id == "sequence" else [root]
            parsed += [_built(item, left) for item in items if not _is_nothing(item)]
    except MarkedYAMLError as error:
        marked: Any = error
        mark = marked.problem_mark or marked.context_mark
        said = " ".join(part for part in (marked.context, marked.problem) if part)
        raise _Wrong(mark.line + 1 if mark else 1, f"this is not YAML: {said}") from error
    except RecursionError as error:
        raise _Wrong(1, "the nesting is too deep") from error
    except (YAMLError, ValueError) as error:
        raise _Wrong(1, f"this is not YAML: {' '.join(str(error).split())}") from error
    return parsed


def _is_nothing(node: Any) -> bool:
    return node is None or (node.id == "scalar" and node.tag == _TAG + "null")


@dataclass(slots=True)
class _Left:
    """How many values may still be read."""

    values: int


_TAG: Final = "tag:yaml.org,2002:"


def _built(root: Any, left: _Left) -> _Parsed:
    lines: dict[Path, int] = {(): root.start_mark.line + 1}
    return _Parsed(_value(root, (), lines, left), lines)


def _value(node: Any, path: Path, lines: dict[Path, int], left: _Left) -> Any:
    line = node.start_mark.line + 1
    left.values -= 1
    if left.values < 0:
        raise _Wrong(line, f"there are more than {MOST_VALUES:,} values in it")
    if len(path) > DEEPEST:
        raise _Wrong(line, "the nesting is too deep")
    if node.id == "mapping":
        return _mapping(node, path, lines, left)
    if node.id == "sequence":
        for index, each in enumerate(node.value):
            lines[(*path, index)] = each.start_mark.line + 1
        return [_value(each, (*path, index), lines, left) for index, each in enumerate(node.value)]
    return _scalar(node, line)


def _mapping(node: Any, path: Path, lines: dict[Path, int], left: _Left) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if key_node.id != "scalar":
            raise _Wrong(line, "a key must be a string")
        key = str(key_node.value)
        if key in found:
            raise _Wrong(line, f"the key {key!r} appears twice")
        lines[(*path, key)] = line
        found[key] = _value(value_node, (*path, key), lines, left)
    return found


def _scalar(node: Any, line: int) -> Any:
    text: str = node.value
    match str(node.tag).removeprefix(_TAG):
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return _whole_number(text)
        case "float":
            return float(re.sub(r"\.(?=inf|nan)", "", text.replace("_", ""), flags=re.IGNORECASE))
        case "str" | "timestamp":
            return text
        case tag:
            raise _Wrong(line, f"the tag {tag!r} is not supported: remove it")


def _whole_number(text: str) -> int:
    # In YAML 1.2 a leading zero means nothing; 0x and 0o do.
    digits = text.replace("_", "")
    return int(digits, 0) if re.match(r"[-+]?0[xob]", digits) else int(digits)


# Error messages

M = TypeVar("M", bound=BaseModel)


def checked(model: type[M], value: Mapping[str, Any]) -> M:
    """The validated value. Raises `ValidationError` in our words."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise plainly(error, model, value) from None


def plainly(error: ValidationError, model: type[BaseModel], value: Any) -> ValidationError:
    """The same error in our words: each problem at its position, with the nearest valid name."""
    return ValidationError.from_exception_data(
        model.__name__,
        [
            InitErrorDetails(
                # The message is not a template: it is inserted into one.
                type=PydanticCustomError("definition", "{message}", {"message": message}),
                loc=path,
                input=None,
            )
            for path, message in _explain(error, model, value)
        ],
    )


def _explain(error: ValidationError, model: type[BaseModel], value: Any) -> list[tuple[Path, str]]:
    """The problems that pydantic found, in our words: position and message."""
    errors = [each for each in error.errors(include_url=False) if each["type"] != "default_factory_not_called"]
    # Each is compared with all others below.
    errors, more = errors[:MOST_PROBLEMS], len(errors) - MOST_PROBLEMS
    found = [(_located(each["loc"], model, value, each["type"]), each) for each in errors]
    told: dict[Path, str] = {}
    for (path, types), each in found:
        # Where a union is allowed, pydantic reports each member: the deepest problem is about the member that was
        # meant, and a problem with the tag is more to the point than those of other members.
        deeper = any(other[: len(path)] == path and len(other) > len(path) for (other, _), _ in found)
        if deeper and (each["type"].endswith("_type") or each["type"] == "too_short"):
            continue
        if each["type"].startswith("union_tag"):
            told[path] = _message(each, path, types)
        told.setdefault(path, _message(each, path, types))
    return [*told.items(), *([((), f"there are {more:,} more problems")] if more > 0 else [])]


def _located(loc: Sequence[int | str], model: type[BaseModel], value: Any, problem: str) -> tuple[Path, list[Any]]:
    """The position of a problem in the document, and the possible types of its container.

    Between keys and indexes pydantic names the members of a union, which do not occur in the document.
    """
    path: Path = ()
    types: list[Any] = [model]
    around = types
    for index, part in enumerate(loc):
        is_key = isinstance(value, dict) and part in value
        is_position = isinstance(value, list) and isinstance(part, int) and part < len(cast("list[Any]", value))
        if is_key or is_position:
            around, types = [each for each in _kinds(types) if _may_be(each, value)], _inside(types, part)
            path, value = (*path, part), cast("Any", value)[part]
        elif index == len(loc) - 1 and problem == "missing":
            path = (*path, part)
    return path, around


def _kinds(types: Iterable[Any]) -> Iterator[Any]:
    """The types themselves, with unions and annotations resolved."""
    for each in types:
        origin = get_origin(each)
        if origin is Annotated:
            yield from _kinds(get_args(each)[:1])
        elif origin in (Union, UnionType):
            yield from _kinds(get_args(each))
        else:
            yield each


def _inside(types: Sequence[Any], part: int | str) -> list[Any]:
    """The possible types of that part of a value of one of these types."""
    found: list[Any] = []
    for each in _kinds(types):
        if isinstance(each, type) and issubclass(each, BaseModel):
            if part in each.model_fields:
                found.append(each.model_fields[str(part)].annotation)
        elif get_origin(each) in (dict, Mapping):
            found.append(get_args(each)[1])
        else:
            found += [argument for argument in get_args(each) if argument is not Ellipsis]
    return found


def _may_be(kind: Any, value: Any) -> bool:
    """Whether the value can be meant as this type: its `kind` says so."""
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)) or not isinstance(value, dict):
        return False
    for name, field in kind.model_fields.items():
        if name == "kind" and get_origin(field.annotation) is Literal:
            return cast("dict[str, Any]", value).get(name) in get_args(field.annotation)
    return True


def _message(problem: Any, path: Path, around: Sequence[Any]) -> str:
    said: str = problem["msg"]
    given: object = problem["input"]
    match problem["type"]:
        case "extra_forbidden":
            return _unknown_key(str(path[-1]), around)
        case "missing":
            return "this is missing"
        case "union_tag_not_found":
            return f"{problem['ctx']['discriminator']} is missing, which says what it is"
        case "literal_error":
            return _not_one_of(given, re.findall(r"'([^']*)'", problem["ctx"]["expected"]))
        case "union_tag_invalid":
            return _not_one_of(problem["ctx"]["tag"], re.findall(r"'([^']*)'", problem["ctx"]["expected_tags"]))
        case "value_error":
            return said.removeprefix("Value error, ")
        case "string_type" if isinstance(given, int | float):
            return f"should be a text: put {json.dumps(given)} in quotation marks"
        case "string_type":
            return "should be a text"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "should be a mapping of keys to values"
        case "tuple_type" | "list_type":
            return "should be a list: write each thing after a dash"
        case _:
            shown = f", not {json.dumps(given)}" if isinstance(given, int | float) else ""
            return said.replace("Input should", "should") + shown


def _unknown_key(key: str, around: Sequence[Any]) -> str:
    models = [each for each in around if isinstance(each, type) and issubclass(each, BaseModel)]
    names = list(dict.fromkeys(name for model in models for name in model.model_fields))
    near = _nearest(key, names) or next(_elsewhere(key, models), None)
    if near is not None:
        return f"unknown key {key!r} (did you mean {near!r}?)"
    return f"unknown key {key!r}; there is {', '.join(names)}" if names else f"unknown key {key!r}"


def _elsewhere(key: str, models: Sequence[type[BaseModel]]) -> Iterator[str]:
    """Where a key of that name would be valid: one level deeper."""
    for model in models:
        for name, field in model.model_fields.items():
            for kind in _kinds([field.annotation]):
                if isinstance(kind, type) and issubclass(kind, BaseModel) and key in kind.model_fields:
                    yield f"{name}.{key}"


def _not_one_of(given: object, allowed: Sequence[str]) -> str:
    near = _nearest(given, allowed) if isinstance(given, str) else None
    shown = repr(given) if isinstance(given, str) else json.dumps(given, default=str)
    hint = f" (did you mean {near!r}?)" if near is not None else ""
    return f"{shown} is none of {', '.join(map(repr, allowed))}{hint}"


def _nearest(name: str, names: Sequence[str]) -> str | None:
    lower = {each.lower(): each for each in names}
    return next((lower[each] for each in nearest(name.lower(), lower)), None)


def _shown(path: Path) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")
