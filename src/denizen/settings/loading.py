"""Loads the settings: one frozen object, and for each value where it came from.

Sources, the strongest first: options of the command line, the environment, `.env` in the current folder, `denizen.toml`
in the current folder (otherwise in the home folder), the defaults. Nothing is read at import; `load` reads everything
and reports all problems at once. pydantic validates the values; the sources are read here, so that each value can be
traced to its line.
"""

from __future__ import annotations

import difflib
import io
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Protocol, cast, get_args

from pydantic import BaseModel, SecretStr, ValidationError

from denizen.errors import SettingsError
from denizen.masking import MASK, masked
from denizen.settings.meanings import meanings
from denizen.settings.shape import DefaultElsewhere, Expects, Settings

TOML_NAME: Final = "denizen.toml"
DOTENV_NAME: Final = ".env"

PLAIN_VARIABLES: Final = {
    "database_url": "DATABASE_URL",
    "redis_url": "REDIS_URL",
    "openai_api_key": "OPENAI_API_KEY",
    "anthropic_api_key": "ANTHROPIC_API_KEY",
    "telemetry.otlp_endpoint": "OTEL_EXPORTER_OTLP_ENDPOINT",
}
"""Settings with a variable that other programs use as well."""

UNPREFIXED: Final = "memory.compaction_"
"""The settings whose names begin so have a variable of their own name. The others are DENIZEN_ and their name."""

OTHER_VARIABLES: Final = ("DENIZEN_URL", "DENIZEN_TOKEN")
"""Variables of ours that are not settings: the address of a server and the token, for a client."""

SHARED_SECRETS: Final = "DENIZEN_SECRET_"
"""The prefix of variables that are not settings either: secrets that every organization here may use."""

_GROUPS: Final[Mapping[str, type[BaseModel]]] = {
    name: field.annotation
    for name, field in Settings.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
}


@dataclass(frozen=True, slots=True)
class Spec:
    """A setting, with its names and its description."""

    name: str
    """Its path in `Settings`: `port`, `agents.warm_seconds`."""
    variable: str
    """Its name in the environment and in .env."""
    expects: str
    default: str
    secret: bool

    @property
    def in_toml(self) -> bool:
        """Whether it may be set in denizen.toml, which people share."""
        return not self.secret

    @property
    def description(self) -> str:
        """What it is for: the docstring below its field."""
        group, _, field_name = self.name.rpartition(".")
        return meanings(_GROUPS[group] if group else Settings)[field_name]


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file that was looked for."""

    path: Path
    found: bool
    used: bool
    """False if the file exists, but another one takes precedence."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings and their origins."""

    settings: Settings
    origins: Mapping[str, str]
    """For each setting by its name (`agents.warm_seconds`): default, environment NAME, .env line 3, …"""
    sources: tuple[SettingsFile, ...]
    dotenv: Mapping[str, str] = field(repr=False)
    """Every variable of .env that the environment does not set, such as keys of other providers."""

    def value(self, name: str) -> object:
        """Returns the value of this setting."""
        value: object = self.settings
        for part in name.split("."):
            value = getattr(value, part)
        return value

    def shown(self, name: str) -> str | int | float | None:
        """Returns the value of this setting as it may be shown to anyone."""
        match self.value(name):
            case SecretStr():
                return MASK
            case str() as text:
                return masked(text)
            case Path() | Decimal() as value:
                return str(value)
            case tuple():
                return ", ".join(cast("tuple[str, ...]", self.value(name)))
            case dict():
                return ", ".join(cast("dict[str, object]", self.value(name)))
            case int() | float() | None as plain:
                return plain
            case other:
                raise TypeError(f"{name} is a {type(other).__name__}, which has no plain form.")


def specs() -> Iterator[Spec]:
    """Yields all settings, in the order of the docs page."""
    for name, info in Settings.model_fields.items():
        if name in _GROUPS:
            for inner, inner_info in _GROUPS[name].model_fields.items():
                yield _spec(f"{name}.{inner}", inner_info)
        else:
            yield _spec(name, info)


def load(
    options: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> LoadedSettings:
    """Reads every source and returns the settings, or raises one `SettingsError` with all problems.

    `options` are those of the command line, by name (`port`, `agents.warm_seconds`); None: not given.
    """
    reading = _Reading(os.environ if environ is None else environ, (folder or Path.cwd()).absolute(), options or {})
    reading.read()
    return reading.result()


def looked_for(*, environ: Mapping[str, str] | None = None, folder: Path | None = None) -> tuple[SettingsFile, ...]:
    """Returns the files that `load` reads or would read, whatever is in them."""
    reading = _Reading(os.environ if environ is None else environ, (folder or Path.cwd()).absolute(), {})
    reading.read()
    return tuple(reading.sources)


def export_dotenv(loaded: LoadedSettings) -> None:
    """Adds the variables of .env to this process's environment, where the providers' libraries look for their keys.

    Only an entry point calls this, once, before anything else runs.
    """
    os.environ.update(loaded.dotenv)


@dataclass(frozen=True, slots=True)
class _SourcedValue:
    """A value from a source, and its location."""

    value: object
    origin: str


class _Reading:
    """One load: the values found so far, and the problems."""

    def __init__(self, environ: Mapping[str, str], folder: Path, options: Mapping[str, object]) -> None:
        self.environ = environ
        self.folder = folder
        self.options = options
        self.specs = {spec.name: spec for spec in specs()}
        self.given: dict[str, _SourcedValue] = {}
        self.problems: list[str] = []
        self.sources: list[SettingsFile] = []
        self.dotenv: dict[str, str] = {}

    def read(self) -> None:
        """Reads the sources from the strongest to the weakest; the first to give a value wins."""
        self._read_options()
        self._read_variables(((name, value, f"environment {name}") for name, value in self.environ.items()))
        self._read_dotenv(self.folder / DOTENV_NAME)
        here = self.folder / TOML_NAME
        found_here = self._read_toml(here)
        home = self._home()
        if home is not None and home / TOML_NAME != here:
            self._read_toml_at_home(home, found_here)

    def result(self) -> LoadedSettings:
        settings = self._validated()
        if self.problems or settings is None:
            raise SettingsError(*self.problems)
        origins = {name: self.given[name].origin if name in self.given else "default" for name in self.specs}
        return LoadedSettings(settings, origins, tuple(self.sources), self.dotenv)

    def _give(self, name: str, value: object, origin: str) -> None:
        self.given.setdefault(name, _SourcedValue(value, origin))

    def _read_options(self) -> None:
        for name, value in self.options.items():
            if name not in self.specs:
                raise ValueError(f"There is no setting {name!r}.")
            if value is not None:
                self._give(name, value, f"option --{name.rpartition('.')[2].replace('_', '-')}")

    def _read_variables(self, variables: Iterator[tuple[str, str, str]]) -> None:
        names = {spec.variable: spec.name for spec in self.specs.values()}
        for variable, value, origin in variables:
            if variable in names:
                if value:  # An empty value is not set, as everywhere.
                    self._give(names[variable], value, origin)
            elif _is_ours(variable):
                self.problems.append(_unknown_variable(variable, origin, names))

    def _read_dotenv(self, path: Path) -> None:
        text = self._text_of(path)
        if text is None:
            return
        lines = {variable: (value, line) for variable, value, line in self._assignments(path, text)}
        self.dotenv = {name: value for name, (value, _) in lines.items() if name not in self.environ}
        self._read_variables(((name, value, f"{DOTENV_NAME} line {line}") for name, (value, line) in lines.items()))

    def _assignments(self, path: Path, text: str) -> Iterator[tuple[str, str, int]]:
        """Yields the assignments of a .env, in order, with `${NAME}` filled in from the environment and from earlier
        ones.
        """
        from dotenv.parser import parse_stream
        from dotenv.variables import parse_variables

        known: dict[str, str | None] = {}
        for binding in parse_stream(io.StringIO(text)):
            line = binding.original.line + _leading_lines(binding.original.string)
            if binding.error:
                self.problems.append(
                    f"{path} cannot be read at line {line}, column {_wrong_column(binding.original.string)}: "
                    "write NAME=value, and close every quotation mark."
                )
            elif binding.key is not None and binding.value is not None:
                names = {**known, **self.environ}
                value = "".join(atom.resolve(names) for atom in parse_variables(binding.value))
                known[binding.key] = value
                yield binding.key, value, line

    def _read_toml(self, path: Path) -> bool:
        text = self._text_of(path)
        if text is None:
            return self.sources[-1].found
        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            self.problems.append(f"{path} is not valid TOML: {_sentence(str(error))}")
            return True
        self._read_tables(path, tables, _lines_of_keys(text))
        return True

    def _read_toml_at_home(self, home: Path, found_here: bool) -> None:
        path = home / TOML_NAME
        if found_here:
            self.sources.append(SettingsFile(path, _is_file(path), used=False))
            return
        known = self.given.pop("home", None)
        self._read_toml(path)
        if self.given.pop("home", None) is not None:
            self.problems.append(
                f"{path} sets home, but it was found because home is {home}. "
                "Remove the line, and set DENIZEN_HOME in the environment instead."
            )
        if known is not None:
            self.given["home"] = known

    def _read_tables(self, path: Path, tables: Mapping[str, Any], lines: Mapping[str, int]) -> None:
        file = path.name if path.parent == self.folder else str(path)
        for name, value in _leaves(tables, {spec.name.rpartition(".")[0] for spec in self.specs.values()}):
            group = name.rpartition(".")[0]
            line = f" line {lines[name]}" if name in lines else ""
            origin = f"{file}{f' [{group}]' if group else ''}{line}"
            if name not in self.specs:
                self.problems.append(_unknown_key(name, value, f"{file}{line}", self.specs))
            elif not self.specs[name].in_toml:
                self.problems.append(
                    f"{file}{line}: {name} does not belong in {TOML_NAME}, which people share. "
                    f"Put {self.specs[name].variable} into the environment or into {DOTENV_NAME}."
                )
            else:
                self._give(name, value, origin)

    def _text_of(self, path: Path) -> str | None:
        """Returns the text of the file; None if it does not exist or, with a problem noted, cannot be read."""
        found = _is_file(path)
        self.sources.append(SettingsFile(path, found, used=found))
        if not found:
            return None
        try:
            content = path.read_bytes()
        except OSError as error:
            self.problems.append(f"{path} cannot be read: {error.strerror}. Let this user read it, or remove it.")
            return None
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line, column = _position(content, error.start)
            self.problems.append(f"{path} is not UTF-8 text (line {line}, column {column}). Save it as UTF-8.")
            return None

    def _home(self) -> Path | None:
        """Returns the home folder according to the sources read so far; None if it is not a valid path."""
        given = self.given.get("home")
        try:
            return Settings.model_validate({"home": given.value} if given else {}).home
        except (ValidationError, RuntimeError):
            return None  # Reported with the others, when everything is validated.

    def _validated(self) -> Settings | None:
        try:
            settings = Settings.model_validate(_nested({name: given.value for name, given in self.given.items()}))
        except ValidationError as error:
            # One setting may have several problems; what it has to be is said once.
            self.problems += dict.fromkeys(self._wrong(each["loc"]) for each in error.errors(include_url=False))
            return None
        except RuntimeError:
            self.problems.append("The folder of this user is not known. Set DENIZEN_HOME to a folder for the data.")
            return None
        self._find_contradictions(settings)
        return settings

    def _wrong(self, location: Sequence[int | str]) -> str:
        name = next(
            name for name in self.specs if name.split(".") == [str(part) for part in location][: name.count(".") + 1]
        )
        spec, given = self.specs[name], self.given[name]
        shown = MASK if spec.secret else masked(repr(given.value))
        return f"{given.origin}: {name} is {shown}. It has to be {spec.expects}."

    def _find_contradictions(self, settings: Settings) -> None:
        agents = settings.agents
        if agents.sweep_seconds > agents.lease_seconds:
            self.problems.append(
                f"agents.sweep_seconds ({agents.sweep_seconds:g}, from {self._origin('agents.sweep_seconds')}) is more "
                f"than agents.lease_seconds ({agents.lease_seconds:g}, from {self._origin('agents.lease_seconds')}): "
                "agents of a dead process would wait for the next look. Make sweep_seconds the smaller one."
            )
        if (settings.tls.certificate is None) != (settings.tls.key is None):
            there, missing = ("certificate", "key") if settings.tls.key is None else ("key", "certificate")
            self.problems.append(
                f"tls.{there} is set (from {self._origin(f'tls.{there}')}), and tls.{missing} is not: set both."
            )
        if settings.oidc.issuer is not None and settings.oidc.audience is None:
            self.problems.append(
                f"oidc.issuer is set (from {self._origin('oidc.issuer')}), and oidc.audience is not: without it, "
                "tokens that the issuer gave for other programs would let people in here. Set it to the client id."
            )
        if settings.oidc.sign_in and settings.oidc.issuer is None:
            self.problems.append(
                f"oidc.sign_in is set (from {self._origin('oidc.sign_in')}), and oidc.issuer is not: set both."
            )

    def _origin(self, name: str) -> str:
        return self.given[name].origin if name in self.given else "default"


class _Described(Protocol):
    """The part of pydantic's description of a field that we use."""

    annotation: Any
    metadata: list[Any]

    def get_default(self) -> Any: ...


def _variable_of(name: str) -> str:
    if name.startswith(UNPREFIXED):
        return name.upper().replace(".", "_")
    return PLAIN_VARIABLES.get(name) or f"DENIZEN_{name.upper().replace('.', '__')}"


def _spec(name: str, info: Any) -> Spec:
    described: _Described = info
    expects = next(each.text for each in described.metadata if isinstance(each, Expects))
    return Spec(
        name=name,
        variable=_variable_of(name),
        expects=expects,
        default=_default_shown(name, described),
        secret=SecretStr in get_args(described.annotation),
    )


def _default_shown(name: str, info: _Described) -> str:
    if name == "database_url":
        return "sqlite:///~/.denizen/denizen.db"
    elsewhere = next((each.text for each in info.metadata if isinstance(each, DefaultElsewhere)), None)
    if elsewhere is not None:
        return elsewhere
    default = info.get_default()
    if isinstance(default, bool):
        return str(default).lower()
    return "" if default in (None, (), {}) else f"{default:g}" if isinstance(default, float) else str(default)


def _nested(values: Mapping[str, object]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in values.items():
        group, _, inner = name.rpartition(".")
        (nested.setdefault(group, {}) if group else nested)[inner] = value
    return nested


def _leaves(tables: Mapping[str, Any], groups: set[str], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yields the keys of a TOML document with their values; a table that is not one of our groups is one
    unknown key.
    """
    for key, value in tables.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and name in groups:
            yield from _leaves(value, groups, f"{name}.")  # pyright: ignore[reportUnknownArgumentType]
        else:
            yield name, value


def _lines_of_keys(text: str) -> dict[str, int]:
    """Returns the line where each key and each table of a valid TOML document begins.

    The parser does not tell, so the document is split into its statements: a statement ends with the first line at
    which the text since the last one is a valid document by itself.
    """
    lines: dict[str, int] = {}
    table, statement, begin = "", "", 1
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        statement += line
        try:
            path = _first_path(tomllib.loads(statement))
        except tomllib.TOMLDecodeError:
            continue
        if statement.lstrip().startswith("["):
            table = f"{path}."
            lines.setdefault(path, begin)
        elif path:
            parts = f"{table}{path}".split(".")
            for depth in range(1, len(parts) + 1):
                lines.setdefault(".".join(parts[:depth]), begin)
        statement, begin = "", number + 1
    return lines


def _first_path(document: Any) -> str:
    parts: list[str] = []
    while document and isinstance(document, dict | list):
        first: Any = next(iter(cast("dict[str, Any] | list[Any]", document)))
        parts += [first] if isinstance(document, dict) else []
        document = cast("dict[str, Any]", document)[first] if isinstance(document, dict) else first
    return ".".join(parts)


def _is_ours(variable: str) -> bool:
    """Whether the variable looks like a setting."""
    if variable in OTHER_VARIABLES or variable.startswith(SHARED_SECRETS):
        return False
    return variable.startswith("DENIZEN_")


def _unknown_variable(variable: str, origin: str, names: Mapping[str, str]) -> str:
    # Compared without their common prefix, or everything would be similar.
    candidates = {each.removeprefix("DENIZEN_"): each for each in (*names, *OTHER_VARIABLES)}
    near = _nearest(variable.removeprefix("DENIZEN_"), list(candidates))
    nearest = candidates[near] if near else None
    where = "In the environment" if origin.startswith("environment") else f"In {origin}"
    advice = f"Did you mean {nearest}?" if nearest else "`denizen config` lists the variables there are."
    return f"{where}: there is no setting {variable}. {advice}"


def _unknown_key(name: str, value: object, where: str, known: Mapping[str, Spec]) -> str:
    thing = "table" if isinstance(value, dict) else "key"
    names = [spec.name for spec in known.values() if spec.in_toml]
    group, _, key = name.rpartition(".")
    shown = f"[{name}]" if thing == "table" else f"{key} in [{group}]" if group else name
    return f"{where}: there is no {thing} {shown}. {_advice(name, thing, names)}"


def _advice(name: str, thing: str, names: Sequence[str]) -> str:
    if thing == "table":
        nearest = _nearest(name, sorted({each.rpartition(".")[0] for each in names if "." in each}))
        return f"Did you mean [{nearest}]?" if nearest else "`denizen config` lists what can be set."
    if any(each.startswith(f"{name}.") for each in names):
        return f"It is a table: write [{name}], and its settings below that."
    key = name.rpartition(".")[2]
    nearest = next((each for each in names if each.rpartition(".")[2] == key), None) or _nearest(name, names)
    if nearest is None:
        return "`denizen config` lists what can be set."
    group, _, inner = nearest.rpartition(".")
    if group == name.rpartition(".")[0]:
        return f"Did you mean {inner}?"
    return f"Did you mean {inner} {f'in [{group}]' if group else 'above the first [table]'}?"


def _nearest(name: str, candidates: Sequence[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, candidates, n=1)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _position(content: bytes, offset: int) -> tuple[int, int]:
    line_start = content.rfind(b"\n", 0, offset) + 1
    return content.count(b"\n", 0, offset) + 1, offset - line_start + 1


def _leading_lines(text: str) -> int:
    return text[: len(text) - len(text.lstrip())].count("\n")


def _wrong_column(text: str) -> int:
    """Returns the column where a line of .env stops being an assignment: at an unclosed quotation mark, or in
    its name.
    """
    line = text.lstrip("\n").splitlines()[0] if text.strip() else ""
    name, equals, value = line.partition("=")
    if equals and value.lstrip()[:1] in ("'", '"'):
        return len(name) + 1 + (len(value) - len(value.lstrip())) + 1
    blank = len(name) - len(name.lstrip())
    stripped = name.strip().removeprefix("export ")
    bad = next((index for index, character in enumerate(stripped) if character.isspace()), 0)
    return blank + (len(name.strip()) - len(stripped)) + bad + 1


def _sentence(text: str) -> str:
    return f"{text[:1].lower()}{text[1:].rstrip('.')}."
