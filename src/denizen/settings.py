"""What this Denizen was told: one frozen object, and for each value where it came from.

Sources, the stronger first: options of the command line, the environment, `.env` in the current folder, `denizen.toml`
in the current folder (or else in the home folder), the defaults. Nothing is read at import; `load` reads it all and
reports every problem at once. pydantic checks the values; the sources are read here, because only so can each value
be traced to its line.
"""

from __future__ import annotations

import difflib
import io
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from denizen.errors import SettingsError
from denizen.masking import MASK, masked

TOML_NAME: Final = "denizen.toml"
DOTENV_NAME: Final = ".env"

PLAIN_VARIABLES: Final = {
    "database_url": "DATABASE_URL",
    "redis_url": "REDIS_URL",
    "openai_api_key": "OPENAI_API_KEY",
    "anthropic_api_key": "ANTHROPIC_API_KEY",
    "telemetry.otlp_endpoint": "OTEL_EXPORTER_OTLP_ENDPOINT",
    "memory.compaction_enabled": "MEMORY_COMPACTION_ENABLED",
    "memory.compaction_prompt_key": "MEMORY_COMPACTION_PROMPT_KEY",
    "memory.compaction_model_id": "MEMORY_COMPACTION_MODEL_ID",
    "memory.compaction_cooldown_ms": "MEMORY_COMPACTION_COOLDOWN_MS",
    "memory.compaction_tail_turns": "MEMORY_COMPACTION_TAIL_TURNS",
    "memory.compaction_min_turns": "MEMORY_COMPACTION_MIN_TURNS",
    "memory.compaction_max_turns_per_pass": "MEMORY_COMPACTION_MAX_TURNS_PER_PASS",
    "memory.compaction_max_summary_tokens": "MEMORY_COMPACTION_MAX_SUMMARY_TOKENS",
}
"""Settings that have a variable which other programs know as well. The others are DENIZEN_ and their name."""

OTHER_VARIABLES: Final = ("DENIZEN_URL", "DENIZEN_TOKEN")
"""Variables of ours that are no settings: where a client finds a server, and with what it is let in."""

SHARED_SECRETS: Final = "DENIZEN_SECRET_"
"""Variables that begin so are no settings either: secrets that every organization here may use."""

_ONLY_IN_ENVIRONMENT: Final = ("openai_api_key", "anthropic_api_key", "secret_key")


@dataclass(frozen=True, slots=True)
class Expects:
    """What a setting has to be, as the end of the sentence "It has to be …"."""

    text: str


def _no_truth(value: object) -> object:
    # To pydantic, true is the number 1.
    if isinstance(value, bool):
        raise ValueError("a number, not a truth value")
    return value


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path.expanduser()))  # noqa: PTH100  links stay: people know the folder by that name


def _known_database(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    driver = scheme.partition("+")[0]
    if (
        not separator
        or driver not in ("sqlite", "postgresql", "postgres")
        or (driver == "sqlite" and rest[:1] not in ("", "/"))
    ):
        raise ValueError("no such database")
    return f"postgresql{scheme[len('postgres') :]}://{rest}" if driver == "postgres" else url


def _known_redis(url: str) -> str:
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("no such server")
    return url


def _name_of_a_model(name: str) -> str:
    if name != "demo" and not all(part.strip() for part in (name.partition(":")[0], name.partition(":")[2])):
        raise ValueError("no provider")
    return name


def _name_of_an_embedder(name: str) -> str:
    return name if name in ("none", "local") else _name_of_a_model(name)


def _web_address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("it is no address of a server")
    return url.rstrip("/")


def _import_path(place: str) -> str:
    module, colon, name = place.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), name)):
        raise ValueError("no import path")
    return place


def _address(host: str) -> str:
    if not host or any(character.isspace() or character in "/@" for character in host):
        raise ValueError("no address")
    if ":" in host:
        ip_address(host)  # an IPv6 address; anything else with a colon has the port in it
    return host


def _networks(addresses: tuple[str, ...]) -> tuple[str, ...]:
    for each in addresses:
        ip_network(each, strict=False)
    return addresses


def _host_names(names: tuple[str, ...]) -> tuple[str, ...]:
    if any(not name or any(character in name for character in "/@* ") for name in names):
        raise ValueError("no host names")
    return tuple(name.lower() for name in names)


def _several(value: object) -> object:
    # Variables hold one text.
    return [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _from_json(value: object) -> object:
    # A table of denizen.toml is one already; a variable holds it as JSON.
    return json.loads(value) if isinstance(value, str) else value


Dollars = Annotated[Decimal, BeforeValidator(_no_truth), Field(ge=0, allow_inf_nan=False)]


class PriceSettings(BaseModel):
    """What a model costs, in dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    input: Dollars
    output: Dollars
    cached: Dollars | None = None


Seconds = Annotated[float, BeforeValidator(_no_truth), Field(gt=0, allow_inf_nan=False)]


class AgentsSettings(BaseModel):
    """How often and how long things happen in the life of an agent."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    lease_seconds: Annotated[Seconds, Field(ge=1), Expects("a number of seconds, 1 or more, such as 30")] = 30.0
    """How long an agent belongs to a process that no longer answers. Then another process takes over."""

    warm_seconds: Annotated[
        float,
        BeforeValidator(_no_truth),
        Field(ge=0, allow_inf_nan=False),
        Expects("a number of seconds, 0 or more, such as 60"),
    ] = 60.0
    """How long an agent that has nothing to do stays in memory, so that it answers the next message faster."""

    sweep_seconds: Annotated[Seconds, Expects("a number of seconds above 0, such as 2")] = 2.0
    """How often this process looks for agents that have something to do and were not woken."""

    grace_seconds: Annotated[
        float,
        BeforeValidator(_no_truth),
        Field(ge=0, allow_inf_nan=False),
        Expects("a number of seconds, 0 or more, such as 20"),
    ] = 20.0
    """How long agents may finish what they are doing when Denizen is told to stop. What is left goes on later."""


class TlsSettings(BaseModel):
    """With what the server shows who it is. Both or none."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    certificate: Annotated[
        Path | None, AfterValidator(lambda path: path and _absolute(path)), Expects("a file, such as tls/fullchain.pem")
    ] = None
    """The file with the server's certificate and those above it (PEM). With it, the server speaks HTTPS."""

    key: Annotated[
        Path | None, AfterValidator(lambda path: path and _absolute(path)), Expects("a file, such as tls/privkey.pem")
    ] = None
    """The file with the certificate's private key (PEM)."""


class OidcSettings(BaseModel):
    """An identity provider whose tokens are accepted."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    issuer: Annotated[
        str | None,
        AfterValidator(lambda url: url and _web_address(url) and url),
        Expects("an address such as https://login.example.com/team"),
    ] = None
    """The identity provider (OpenID Connect) whose tokens let people in, exactly as it calls itself."""

    audience: Annotated[str | None, Expects("a text, such as denizen")] = None
    """Whom its tokens have to be for: the client id that this server has there."""

    jwks_url: Annotated[
        str | None,
        AfterValidator(lambda url: url and _web_address(url.partition("?")[0]) and url),
        Expects("an address such as https://login.example.com/team/keys"),
    ] = None
    """Where its public keys are. By default, where the issuer's own description says."""

    create_people: Annotated[bool, Expects("true or false")] = False
    """Whether whoever comes with a good token and is nobody here yet becomes a member."""

    organization: Annotated[str | None, Expects("the id of an organization")] = None
    """Where people are created, if there are several organizations."""

    name_claim: Annotated[str, Expects("the name of a claim, such as name")] = "name"
    """What of a token is a new person's name."""

    handle_claim: Annotated[str, Expects("the name of a claim, such as preferred_username")] = "preferred_username"
    """What of a token a new person's handle is made from, up to its @."""


_Rate = Annotated[int, BeforeValidator(_no_truth), Field(ge=0)]


class LimitSettings(BaseModel):
    """How often one may ask. Each process counts for itself."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    requests_per_minute: Annotated[_Rate, Expects("a whole number, such as 6000 (0: as many as one likes)")] = 6_000
    """How many requests one access token or session may make in a minute."""

    failed_logins_per_minute: Annotated[_Rate, Expects("a whole number, such as 60 (0: as many as one likes)")] = 60
    """How many wrong tokens and login links one address may show in a minute, before it is not listened to."""


class ProfilesSettings(BaseModel):
    """Where the prompt profiles of the house are."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    presets: Annotated[Path, AfterValidator(_absolute), Expects("a file, such as config/metaprompt-presets.json")] = (
        Field(default=Path("config/metaprompt-presets.json"), validate_default=True)
    )
    """The file of presets, and of how memory is kept, seen from the current folder. Without it, none are chosen."""

    prompts: Annotated[Path, AfterValidator(_absolute), Expects("a folder, such as prompts")] = Field(
        default=Path("prompts"), validate_default=True
    )
    """The folder whose `_meta/*.md` are add-ons of the house; one named as one of ours is taken instead."""


class ReflectSettings(BaseModel):
    """What agents reflect with."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    classifier: Annotated[
        str | None,
        AfterValidator(lambda place: place and _import_path(place)),
        Expects("a function, as module:name, such as acme.feelings:score"),
    ] = None
    """A Python function that tells how somebody feels, for agents whose sentiment method is trained_classifier."""


class TelemetrySettings(BaseModel):
    """What those who run Denizen are told of it, beside its log."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    otlp_endpoint: Annotated[
        str | None,
        AfterValidator(lambda url: url and _web_address(url)),
        Expects("the address of a collector, such as http://localhost:4318"),
    ] = Field(default=None, repr=False)
    """Where traces are sent, by OTLP over HTTP (`pip install 'denizen[otel]'`). By default, nothing is traced."""

    content: Annotated[bool, Expects("true or false")] = False
    """Whether traces hold what people and agents say, too."""

    open_metrics: Annotated[bool, Expects("true or false")] = False
    """Whether /metrics is shown without a token. By default, it takes a token of an admin of the first organization."""


_Count = Annotated[int, BeforeValidator(_no_truth)]


class MemorySettings(BaseModel):
    """What is remembered beyond an agent's own life. What is not set, the profile of the presets file says."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    enabled: Annotated[bool, Expects("true or false")] = True
    """Whether conversations are summed up, and anything is remembered beyond them."""

    compaction_enabled: Annotated[bool | None, Expects("true or false")] = None
    """Whether conversations are summed up. False switches it off, whatever the profiles say."""

    compaction_prompt_key: Annotated[str | None, Expects("a name, such as memory_compactor_v2_json")] = None
    """With which prompt: ours, or the file of that name in the folder of prompts."""

    compaction_model_id: Annotated[
        str | None,
        AfterValidator(
            lambda name: name and (name if name == "default" else _name_of_a_model(name.replace("/", ":", 1)))
        ),
        Expects("provider:name, such as openai:gpt-5-mini, demo or default"),
    ] = None
    """The utility model that sums up. By default, the one of the profile, else the house's."""

    compaction_cooldown_ms: Annotated[
        _Count | None, Field(ge=0), Expects("a whole number of milliseconds, such as 60000")
    ] = None
    """How long a conversation is left alone after a pass."""

    compaction_tail_turns: Annotated[_Count | None, Field(ge=0), Expects("a whole number, such as 12")] = None
    """So many of the newest messages are not summed up."""

    compaction_min_turns: Annotated[_Count | None, Field(ge=1), Expects("a whole number above 0, such as 12")] = None
    """Fewer messages are not worth a pass."""

    compaction_max_turns_per_pass: Annotated[
        _Count | None, Field(ge=1), Expects("a whole number above 0, such as 48")
    ] = None
    """So many messages are summed up at once at most."""

    compaction_max_summary_tokens: Annotated[
        _Count | None, Field(ge=100), Expects("a whole number, 100 or more, such as 900")
    ] = None
    """So long the summary and the memory may be together."""

    sink: Annotated[
        str | None,
        AfterValidator(lambda place: place and _import_path(place)),
        Expects("an import path, such as acme.memory:Sink"),
    ] = None
    """Where memories are put instead of the database: called with the database and the embedder."""

    retriever: Annotated[
        str | None,
        AfterValidator(lambda place: place and _import_path(place)),
        Expects("an import path, such as acme.memory:Retriever"),
    ] = None
    """From where they are brought back."""


class Settings(BaseModel):
    """Everything that can be set. Each value has a default that works on a laptop."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    home: Annotated[Path, AfterValidator(_absolute), Expects("a folder, such as ~/.denizen")] = Field(
        default=Path("~/.denizen"), validate_default=True
    )
    """The folder where Denizen keeps its data."""

    database_url: Annotated[
        str,
        AfterValidator(_known_database),
        Expects("sqlite:///relative/path, sqlite:////absolute/path or postgresql://user:password@host:5432/name"),
    ] = Field(
        repr=False, default_factory=lambda given: f"sqlite:///{given['home'] / 'denizen.db'}" if "home" in given else ""
    )
    """The database: an SQLite file or a PostgreSQL server. By default, the file denizen.db in the home folder."""

    redis_url: Annotated[
        str | None,
        AfterValidator(lambda url: url and _known_redis(url)),
        Expects("a URL such as redis://host:6379/0 (rediss:// for TLS, unix:// for a socket)"),
    ] = Field(default=None, repr=False)
    """The Redis or Valkey that several processes wake each other through. One process needs none."""

    model: Annotated[
        str | None,
        AfterValidator(lambda name: name and _name_of_a_model(name)),
        Expects("provider:name, such as openai:gpt-5.2 or anthropic:claude-sonnet-4-5, or demo"),
    ] = None
    """The language model of agents that name none, as provider:name, or demo. By default, one that is found here."""

    embedder: Annotated[
        str,
        AfterValidator(_name_of_an_embedder),
        Expects("none, local, or provider:name, such as openai:text-embedding-3-small"),
    ] = "none"
    """With what agents recall by meaning: none, local (`pip install 'denizen[local]'`), or provider:name."""

    openai_api_key: Annotated[SecretStr | None, Expects("the key that OpenAI gave you")] = None
    """The key for models of OpenAI. Only from the environment or .env; shown nowhere."""

    anthropic_api_key: Annotated[SecretStr | None, Expects("the key that Anthropic gave you")] = None
    """The key for models of Anthropic. Only from the environment or .env; shown nowhere."""

    secret_key: Annotated[
        SecretStr | None, Expects("a key as `denizen secrets key` makes it, or several with commas, the newest first")
    ] = None
    """The key that seals secrets. Only from the environment or .env. By default, one made in the home folder."""

    tools: Annotated[
        tuple[str, ...],
        BeforeValidator(_several),
        Expects(
            'a list of files or modules, such as ["tools.py", "acme.tools"] (in the environment with commas between)'
        ),
    ] = ()
    """Python files, seen from the current folder, or modules: every `@tool` in them can be given to agents."""

    host: Annotated[
        str, AfterValidator(_address), Expects("an address or a host name without a port, such as 127.0.0.1")
    ] = "127.0.0.1"
    """The address the server listens on. 127.0.0.1 is reached from this machine only."""

    port: Annotated[
        int,
        BeforeValidator(_no_truth),
        Field(ge=0, le=65535),
        Expects("a whole number from 0 to 65535, such as 8420 (0 takes any free port)"),
    ] = 8420
    """The port the server listens on."""

    public_url: Annotated[
        str | None,
        AfterValidator(lambda url: url and _web_address(url)),
        Expects("an address such as https://agents.example.com"),
    ] = None
    """Where others reach this server, for services that answer later. By default, its host and port."""

    allowed_hosts: Annotated[
        tuple[str, ...],
        BeforeValidator(_several),
        AfterValidator(_host_names),
        Expects('a list of host names, such as ["agents.example.com"] (in the environment with commas between)'),
    ] = ()
    """The names, besides loopback ones and that of public_url, by which the server may be asked for."""

    trusted_proxy: Annotated[
        tuple[str, ...],
        BeforeValidator(_several),
        AfterValidator(_networks),
        Expects('a list of addresses or networks, such as ["10.0.0.5", "172.16.0.0/12"]'),
    ] = ()
    """The proxies before this server, which speak HTTPS: whom they forward for is believed from them alone."""

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        BeforeValidator(_lower),
        Expects("debug, info, warning or error"),
    ] = "info"
    """How much is logged: debug tells everything, error only what a person must act on."""

    log_format: Annotated[Literal["console", "json"], BeforeValidator(_lower), Expects("console or json")] = "console"
    """How log lines look: console for people, json (one object in a line) for programs."""

    prices: Annotated[
        dict[str, PriceSettings],
        BeforeValidator(_from_json),
        Expects('a table such as "ollama:llama3.2" = { input = 0, output = 0 }, with cached = 0.1 if that costs less'),
    ] = Field(default={})
    """What models cost whose price is not known, in dollars per million tokens. As a variable: the table as JSON."""

    agents: AgentsSettings = AgentsSettings()

    tls: TlsSettings = TlsSettings()

    oidc: OidcSettings = OidcSettings()

    limits: LimitSettings = LimitSettings()

    telemetry: TelemetrySettings = TelemetrySettings()

    memory: MemorySettings = MemorySettings()

    # Seen from the folder that is current when settings are read, not when this module is.
    profiles: ProfilesSettings = Field(default_factory=ProfilesSettings)

    reflection: ReflectSettings = ReflectSettings()

    @property
    def address(self) -> str:
        """Where the server is, as its own machine reaches it."""
        return address_of(self, self.port)


def address_of(settings: Settings, port: int) -> str:
    """Where a server with these settings is that listens on that port."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104  not bound here
    scheme = "http" if settings.tls.certificate is None else "https"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


_GROUPS: Final[Mapping[str, type[BaseModel]]] = {
    "agents": AgentsSettings,
    "tls": TlsSettings,
    "oidc": OidcSettings,
    "limits": LimitSettings,
    "telemetry": TelemetrySettings,
    "memory": MemorySettings,
    "profiles": ProfilesSettings,
    "reflection": ReflectSettings,
}


@dataclass(frozen=True, slots=True)
class Spec:
    """A setting as it is named everywhere, and what there is to say about it."""

    name: str
    """Its path in `Settings`: `port`, `agents.warm_seconds`."""
    variable: str
    """Its name in the environment and in .env."""
    description: str
    expects: str
    default: str
    secret: bool
    in_toml: bool


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was looked for."""

    path: Path
    found: bool
    used: bool
    """False where the file is there, and another one takes its place."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings and how they came about."""

    settings: Settings
    origins: Mapping[str, str]
    """For each setting by its name (`agents.warm_seconds`): default, environment NAME, .env line 3, …"""
    sources: tuple[Source, ...]
    dotenv: Mapping[str, str] = field(repr=False)
    """Every variable of .env that the environment does not set itself, such as keys of other providers."""

    def value(self, name: str) -> object:
        """The value of the setting of that name."""
        value: object = self.settings
        for part in name.split("."):
            value = getattr(value, part)
        return value

    def shown(self, name: str) -> str | int | float | None:
        """The value of that setting as it may be shown to anyone."""
        match self.value(name):
            case SecretStr():
                return MASK
            case str() as text:
                return masked(text)
            case Path() as path:
                return str(path)
            case tuple():
                return ", ".join(cast("tuple[str, ...]", self.value(name)))
            case dict():
                return ", ".join(cast("dict[str, object]", self.value(name)))
            case int() | float() | None as plain:
                return plain
            case other:
                raise TypeError(f"{name} is a {type(other).__name__}, which has no plain form.")


def specs() -> Iterator[Spec]:
    """Every setting there is, in the order of the page."""
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
) -> Loaded:
    """Read every source and return the settings, or raise one `SettingsError` with all that is wrong.

    `options` are what the command line was given, by name (`port`, `agents.warm_seconds`); None is not given.
    """
    reading = _Reading(os.environ if environ is None else environ, (folder or Path.cwd()).absolute(), options or {})
    reading.read()
    return reading.result()


def looked_for(*, environ: Mapping[str, str] | None = None, folder: Path | None = None) -> tuple[Source, ...]:
    """The files that `load` reads or would read, whatever is in them."""
    reading = _Reading(os.environ if environ is None else environ, (folder or Path.cwd()).absolute(), {})
    reading.read()
    return tuple(reading.sources)


def export_dotenv(loaded: Loaded) -> None:
    """Put what .env adds into this process's environment, where the providers' libraries look for their keys.

    Only an entry point calls this, once, before anything else runs.
    """
    os.environ.update(loaded.dotenv)


@dataclass(frozen=True, slots=True)
class _Given:
    """A value that a source gives, and where."""

    value: object
    origin: str


class _Reading:
    """One load: what was found so far, and what was wrong."""

    def __init__(self, environ: Mapping[str, str], folder: Path, options: Mapping[str, object]) -> None:
        self.environ = environ
        self.folder = folder
        self.options = options
        self.specs = {spec.name: spec for spec in specs()}
        self.given: dict[str, _Given] = {}
        self.problems: list[str] = []
        self.sources: list[Source] = []
        self.dotenv: dict[str, str] = {}

    def read(self) -> None:
        """Go through the sources from the strongest to the weakest; the first to give a value wins."""
        self._read_options()
        self._read_variables(((name, value, f"environment {name}") for name, value in self.environ.items()))
        self._read_dotenv(self.folder / DOTENV_NAME)
        here = self.folder / TOML_NAME
        found_here = self._read_toml(here)
        home = self._home()
        if home is not None and home / TOML_NAME != here:
            self._read_toml_at_home(home, found_here)

    def result(self) -> Loaded:
        settings = self._validated()
        if self.problems or settings is None:
            raise SettingsError(*self.problems)
        origins = {name: self.given[name].origin if name in self.given else "default" for name in self.specs}
        return Loaded(settings, origins, tuple(self.sources), self.dotenv)

    def _give(self, name: str, value: object, origin: str) -> None:
        self.given.setdefault(name, _Given(value, origin))

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
                if value:  # what is empty is not set, as everywhere
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
        """The assignments of a .env, in order, with `${NAME}` filled in from the environment and from those before."""
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
            self.sources.append(Source(path, _is_file(path), used=False))
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
        """What is in the file; None where it is not there or, with a problem noted, cannot be read."""
        found = _is_file(path)
        self.sources.append(Source(path, found, used=found))
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
        """The home folder as far as the sources read so far tell; None where what they say is no path."""
        given = self.given.get("home")
        try:
            return Settings.model_validate({"home": given.value} if given else {}).home
        except (ValidationError, RuntimeError):
            return None  # reported with the others, when all is validated

    def _validated(self) -> Settings | None:
        try:
            settings = Settings.model_validate(_nested({name: given.value for name, given in self.given.items()}))
        except ValidationError as error:
            # Of one setting several things may be wrong; what it has to be is said once.
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

    def _origin(self, name: str) -> str:
        return self.given[name].origin if name in self.given else "default"


class _Described(Protocol):
    """What is used of pydantic's own description of a field."""

    description: str | None
    metadata: list[Any]

    def get_default(self) -> Any: ...


def _spec(name: str, info: Any) -> Spec:
    described: _Described = info
    expects = next(each.text for each in described.metadata if isinstance(each, Expects))
    return Spec(
        name=name,
        variable=PLAIN_VARIABLES.get(name) or f"DENIZEN_{name.upper().replace('.', '__')}",
        description=described.description or "",
        expects=expects,
        default=_default_shown(name, described),
        secret=name in _ONLY_IN_ENVIRONMENT,
        in_toml=name not in _ONLY_IN_ENVIRONMENT,
    )


def _default_shown(name: str, info: _Described) -> str:
    if name == "database_url":
        return "sqlite:///~/.denizen/denizen.db"
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
    """The keys of a TOML document with their values; tables that are no group of ours are one unknown key."""
    for key, value in tables.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and name in groups:
            yield from _leaves(value, groups, f"{name}.")  # pyright: ignore[reportUnknownArgumentType]
        else:
            yield name, value


def _lines_of_keys(text: str) -> dict[str, int]:
    """The line where each key and each table of a valid TOML document begins.

    The parser does not tell, so the document is cut into its statements: a statement ends with the first line at which
    what stands since the one before is a document of its own.
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
    # Compared without what they all begin with, or everything would be near.
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
    """Where a line of .env stops being an assignment: at the quotation mark that is not closed, or in its name."""
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
