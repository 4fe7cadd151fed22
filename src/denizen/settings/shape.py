"""Every setting: its type, what it may be, and what it is where nobody says."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import ip_address, ip_network
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr


@dataclass(frozen=True, slots=True)
class Expects:
    """The requirement of a setting, as the end of the sentence "It has to be …"."""

    text: str


@dataclass(frozen=True, slots=True)
class DefaultElsewhere:
    """The value that holds if a setting is not set, where another part decides it; for the page about settings."""

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
        raise ValueError("unknown database")
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
        raise ValueError("it is not a server address")
    return url.rstrip("/")


def _issuer(url: str) -> str:
    _web_address(url)
    return url  # with its slash: tokens name it exactly so


def _address_with_query(url: str) -> str:
    _web_address(url.partition("?")[0])
    return url


def _import_path(place: str) -> str:
    module, colon, name = place.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), name)):
        raise ValueError("no import path")
    return place


def _function_path(place: str) -> str:
    where, colon, name = place.rpartition(":")
    is_file = where.endswith(".py")
    if not colon or not name.isidentifier() or not (is_file or all(part.isidentifier() for part in where.split("."))):
        raise ValueError("no function path")
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


def program_of(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The variables that may be set for a program, written `NAME=` before it, and its command with its arguments."""
    words = shlex.split(text)
    variables = list(takewhile(re.compile(r"[A-Za-z_][A-Za-z0-9_]*=").fullmatch, words))
    command = tuple(words[len(variables) :])
    if not command:
        raise ValueError("no command")
    return frozenset(each.removesuffix("=") for each in variables), command


def _programs(texts: tuple[str, ...]) -> tuple[str, ...]:
    for each in texts:
        program_of(each)
    return texts


def _several(value: object) -> object:
    # Variables hold one text.
    return [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _from_json(value: object) -> object:
    # A table of denizen.toml is one already; a variable holds it as JSON.
    return json.loads(value) if isinstance(value, str) else value


def _unless_empty(check: Callable[[str], object]) -> AfterValidator:
    """Checks the text that is given, if any; null and an empty one mean that the setting is not set."""
    return AfterValidator(lambda given: given and check(given))


def _list_of(what: str) -> Expects:
    return Expects(f"a list of {what} (in the environment with commas between)")


# The types of settings

Flag = Annotated[bool, Expects("true or false")]
Count = Annotated[int, BeforeValidator(_no_truth)]
Limit = Annotated[Count, Field(ge=0)]
Dollars = Annotated[Decimal, BeforeValidator(_no_truth), Field(ge=0, allow_inf_nan=False)]
Seconds = Annotated[float, BeforeValidator(_no_truth), Field(gt=0, allow_inf_nan=False)]
SecondsOrZero = Annotated[float, BeforeValidator(_no_truth), Field(ge=0, allow_inf_nan=False)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_several)]
HostNames = Annotated[Texts, AfterValidator(_host_names)]
AFile = Annotated[Path, AfterValidator(_absolute)]
ImportPath = Annotated[str | None, _unless_empty(_import_path)]
WebAddress = Annotated[str | None, _unless_empty(_web_address)]
AddressWithQuery = Annotated[str | None, _unless_empty(_address_with_query)]
ModelName = Annotated[str | None, _unless_empty(_name_of_a_model)]


class _Group(BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """Settings that belong together."""


class PriceSettings(_Group, frozen=True):
    """What a model costs, in dollars per million tokens."""

    input: Dollars
    output: Dollars
    cached: Dollars | None = None


class AgentsSettings(_Group, frozen=True):
    """Intervals and time limits of agents."""

    lease_seconds: Annotated[Seconds, Field(ge=1), Expects("a number of seconds, 1 or more, such as 30")] = 30.0
    """How long the lease of an agent lasts if its process no longer answers. Then another process takes over."""

    warm_seconds: Annotated[SecondsOrZero, Expects("a number of seconds, 0 or more, such as 60")] = 60.0
    """How long an agent that has nothing to do stays in memory, so that it answers the next message faster."""

    sweep_seconds: Annotated[Seconds, Expects("a number of seconds above 0, such as 2")] = 2.0
    """How often this process looks for agents with work that were not woken."""

    grace_seconds: Annotated[SecondsOrZero, Expects("a number of seconds, 0 or more, such as 20")] = 20.0
    """How long agents may finish their work when Denizen is told to stop. Unfinished cycles continue later."""


class TlsSettings(_Group, frozen=True):
    """The certificate of the server. Set both or none."""

    certificate: Annotated[AFile | None, Expects("a file, such as tls/fullchain.pem")] = None
    """The file with the certificate chain of the server (PEM). With it, the server uses HTTPS."""

    key: Annotated[AFile | None, Expects("a file, such as tls/privkey.pem")] = None
    """The file with the certificate's private key (PEM)."""


class OidcSettings(_Group, frozen=True):
    """An identity provider where people sign in, and whose tokens are accepted."""

    issuer: Annotated[
        str | None, _unless_empty(_issuer), Expects("an address such as https://login.example.com/team")
    ] = None
    """The issuer of the identity provider (OpenID Connect) whose tokens are accepted, exactly as in its tokens."""

    audience: Annotated[str | None, Expects("a text, such as denizen")] = None
    """The audience of its tokens: the client id of this server there."""

    jwks_url: Annotated[AddressWithQuery, Expects("an address such as https://login.example.com/team/keys")] = None
    """The address of its public keys. By default, from the issuer's metadata."""

    create_people: Flag = False
    """Whether a person with a valid token and without an account becomes a member."""

    organization: Annotated[str | None, Expects("the id of an organization")] = None
    """The organization for new people, if there are several."""

    sign_in: Flag = False
    """Whether people can sign in there with a browser. Register `PUBLIC_URL/login/oidc/callback` with the provider."""

    label: Annotated[str, Field(max_length=60), Expects("a name, such as Example")] = ""
    """The provider's name on the button of the sign-in page. By default, the host of its issuer."""

    scopes: Annotated[tuple[str, ...], Expects('a list of scopes, such as ["openid", "profile"]')] = (
        "openid",
        "profile",
        "email",
    )
    """What a browser that signs in asks for. Some providers need one more for groups."""

    groups_claim: Annotated[str, Expects("the name of a claim, such as groups")] = "groups"
    """The claim of the ID token with the groups of a person."""

    roles: Annotated[
        dict[str, Literal["owner", "admin", "member"]], Expects('roles by group, such as {"staff" = "admin"}')
    ] = Field(default_factory=dict[str, Literal["owner", "admin", "member"]])
    """Roles by group. If set, everyone who signs in gets the highest role of their groups, otherwise `member`."""

    name_claim: Annotated[str, Expects("the name of a claim, such as name")] = "name"
    """The claim of the token with the name of a new person."""

    handle_claim: Annotated[str, Expects("the name of a claim, such as preferred_username")] = "preferred_username"
    """The claim of the token from which the handle of a new person is made, up to its @."""


class AlertsSettings(_Group, frozen=True):
    """Alerts for owners about agents and panels with problems."""

    webhook_url: Annotated[AddressWithQuery, Expects("an address such as https://alerts.example.com/denizen")] = None
    """The address for a POST, once for each cause, if an agent or a panel cannot answer or has set a message aside."""

    allow_private: Annotated[Texts, _list_of('hosts, such as ["alerts.lan", "10.0.0.5:9000"]')] = ()
    """Hosts of that address that may have private addresses."""


class PushSettings(_Group, frozen=True):
    """Web push: notifications while no tab of the web client is open."""

    enabled: Flag = True
    """Whether people can be notified through the push service of their browser. The texts are encrypted for it."""

    allow_private: Annotated[Texts, _list_of('hosts, such as ["push.lan", "10.0.0.5:9000"]')] = ()
    """Hosts of push services that may have private addresses."""


class OrganizationsSettings(_Group, frozen=True):
    """What organizations other than the first may use of this machine. The first may use everything."""

    programs: Annotated[
        Texts,
        AfterValidator(_programs),
        Expects(
            'a list of exact commands, such as ["GITHUB_TOKEN= npx -y @modelcontextprotocol/server-github"] '
            "(NAME= before a command lets agents set that variable for it)"
        ),
    ] = ()
    """Programs that agents of every organization may start as MCP servers, with exactly these arguments."""

    private_hosts: Annotated[HostNames, _list_of('hosts, such as ["wiki.lan", "10.0.0.5:9000"]')] = ()
    """Hosts with private addresses that tools of every organization may reach."""

    tools: Annotated[Texts, _list_of('names, such as ["weather"]')] = ()
    """Python tools of the setting `tools` that agents of every organization may be given."""

    functions: Annotated[Texts, _list_of('names, such as ["careful"]')] = ()
    """Python functions of the settings `functions.*` that definitions of every organization may name."""


class LimitSettings(_Group, frozen=True):
    """Limits of requests and connections. Each process counts for itself."""

    requests_per_minute: Annotated[Limit, Expects("a whole number, such as 6000 (0: as many as one likes)")] = 6_000
    """How many requests one access token or session may make in a minute."""

    failed_logins_per_minute: Annotated[Limit, Expects("a whole number, such as 60 (0: as many as one likes)")] = 60
    """How many wrong tokens and login links one address may send in a minute, before it is blocked."""

    connections: Annotated[Limit, Expects("a whole number, such as 2000 (0: as many as files may be open)")] = 2_000
    """How many connections may be open at the same time. Never more than the limit of open files allows."""

    connections_per_address: Annotated[Limit, Expects("a whole number, such as 200 (0: as many as one likes)")] = 200
    """How many connections one address may have open at the same time. A trusted proxy may have any number."""

    streams_per_person: Annotated[Limit, Expects("a whole number, such as 64 (0: as many as one likes)")] = 64
    """How many streams one person, agent or service may have open at the same time."""


class FileSettings(_Group, frozen=True):
    """How large files may be."""

    file_bytes: Annotated[Count, Field(ge=1), Expects("a whole number of bytes, such as 25000000")] = 25_000_000
    """How large one file may be."""

    organization_bytes: Annotated[Count, Field(ge=1), Expects("a whole number of bytes, such as 10000000000")] = (
        10_000_000_000
    )
    """How large all files of an organization together may be."""


class BudgetLimits(_Group, frozen=True):
    """The daily budget of all agents and panels of this server together. A day ends at 00:00 UTC."""

    dollars_per_day: Annotated[Dollars, Expects("a number of dollars, such as 10 (0: no limit)")] = Decimal(10)
    """The limit in dollars for models with a known price. It does not limit models without a price."""

    tokens_per_day: Annotated[Limit, Expects("a whole number, such as 10000000 (0: no limit)")] = 10_000_000
    """The limit of input and output tokens, for all models but the built-in ones."""


class ProfilesSettings(_Group, frozen=True):
    """The files of the server's prompt profiles."""

    presets: Annotated[AFile, Expects("a file, such as config/metaprompt-presets.json")] = Field(
        default=Path("config/metaprompt-presets.json"), validate_default=True
    )
    """The file with presets and memory settings, relative to the current folder. By default, Denizen's own."""

    prompts: Annotated[AFile, Expects("a folder, such as prompts")] = Field(
        default=Path("prompts"), validate_default=True
    )
    """The folder whose `_meta/*.md` are add-ons of the server; they replace built-in ones of the same name."""


class ReflectSettings(_Group, frozen=True):
    """Reflection of agents."""

    classifier: Annotated[ImportPath, Expects("a function, as module:name, such as acme.feelings:score")] = None
    """A Python function that returns the sentiment of a text, for agents with the method trained_classifier."""


_Functions = Annotated[
    dict[str, Annotated[str, AfterValidator(_function_path)]],
    BeforeValidator(_from_json),
    Expects('a table of names with functions in files or modules, such as careful = "steps.py:careful"'),
]


class FunctionSettings(_Group, frozen=True):
    """Python functions that definitions of agents name."""

    steps: _Functions = Field(default={})
    """Functions for `cycle.prepare_step`: called before each step of a cycle. As a variable: the table as JSON."""

    stops: _Functions = Field(default={})
    """Functions for `cycle.stop_when`: whether a cycle ends. As a variable: the table as JSON."""

    routes: _Functions = Field(default={})
    """Functions for `cycle.routing`: which model thinks. As a variable: the table as JSON."""

    triages: _Functions = Field(default={})
    """Functions for `cycle.triage`: which events are skipped. As a variable: the table as JSON."""


class TelemetrySettings(_Group, frozen=True):
    """Traces and metrics for operators."""

    otlp_endpoint: Annotated[WebAddress, Expects("the address of a collector, such as http://localhost:4318")] = Field(
        default=None, repr=False
    )
    """Where traces are sent, by OTLP over HTTP (`pip install 'denizen[otel]'`). By default, nothing is traced."""

    content: Flag = False
    """Whether traces contain what people and agents say."""

    open_metrics: Flag = False
    """Whether /metrics needs no token. By default, it needs a token of an admin of the first organization."""


class MemorySettings(_Group, frozen=True):
    """Summaries and long-term memory. What is not set comes from the profile of the presets file."""

    enabled: Flag = True
    """Whether conversations are summarized, and long-term memories are stored."""

    compaction_enabled: Annotated[bool | None, Expects("true or false"), DefaultElsewhere("true")] = None
    """Whether conversations are summarized. False switches it off, whatever the profiles say."""

    compaction_prompt_key: Annotated[
        str | None, Expects("a name, such as memory_compactor_v2_json"), DefaultElsewhere("memory_compactor_v2_json")
    ] = None
    """The prompt of the utility model: the built-in one, or the file of that name in the folder of prompts."""

    compaction_model_id: Annotated[
        str | None,
        AfterValidator(
            lambda name: name and (name if name == "default" else _name_of_a_model(name.replace("/", ":", 1)))
        ),
        Expects("provider:name, such as openai:gpt-5-mini, demo or default"),
        DefaultElsewhere("default"),
    ] = None
    """The utility model that summarizes; `default` is the cheap model of the server's provider."""

    compaction_cooldown_ms: Annotated[
        Count | None, Field(ge=0), Expects("a whole number of milliseconds, such as 60000"), DefaultElsewhere("60000")
    ] = None
    """The least time between two passes over a conversation."""

    compaction_tail_turns: Annotated[
        Count | None, Field(ge=0), Expects("a whole number, such as 12"), DefaultElsewhere("12")
    ] = None
    """How many of the newest messages are never summarized."""

    compaction_min_turns: Annotated[
        Count | None, Field(ge=1), Expects("a whole number above 0, such as 12"), DefaultElsewhere("12")
    ] = None
    """A pass needs at least this many messages."""

    compaction_max_turns_per_pass: Annotated[
        Count | None, Field(ge=1), Expects("a whole number above 0, such as 48"), DefaultElsewhere("48")
    ] = None
    """A pass summarizes at most this many messages."""

    compaction_max_summary_tokens: Annotated[
        Count | None, Field(ge=100), Expects("a whole number, 100 or more, such as 900"), DefaultElsewhere("900")
    ] = None
    """The limit of the summary and the memory together."""

    sink: Annotated[ImportPath, Expects("an import path, such as acme.memory:Sink")] = None
    """A Python function for another store of memories: called with the database and the embedder."""

    retriever: Annotated[ImportPath, Expects("an import path, such as acme.memory:Retriever")] = None
    """A Python function for the retrieval of memories."""


class Settings(_Group, frozen=True):
    """All settings. Each value has a default that works on a laptop."""

    home: Annotated[AFile, Expects("a folder, such as ~/.denizen")] = Field(
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
        _unless_empty(_known_redis),
        Expects(
            "the URL of one server such as redis://host:6379/0 (rediss:// for TLS, unix:// for a socket); of a cluster "
            "that of a node, and not that of a Sentinel"
        ),
    ] = Field(default=None, repr=False)
    """The Redis or Valkey through which several processes wake each other. A single process needs none."""

    model: Annotated[
        ModelName, Expects("provider:name, such as openai:gpt-5.2 or anthropic:claude-sonnet-4-5, or demo")
    ] = None
    """The default language model of agents, as provider:name, or demo. By default, one that is found here."""

    embedder: Annotated[
        str,
        AfterValidator(_name_of_an_embedder),
        Expects("none, local, or provider:name, such as openai:text-embedding-3-small"),
    ] = "none"
    """The embedder for recall by meaning: none, local (`pip install 'denizen[local]'`), or provider:name."""

    openai_api_key: Annotated[SecretStr | None, Expects("the key that OpenAI gave you")] = None
    """The API key of OpenAI. Only from the environment or .env; never shown."""

    anthropic_api_key: Annotated[SecretStr | None, Expects("the key that Anthropic gave you")] = None
    """The API key of Anthropic. Only from the environment or .env; never shown."""

    secret_key: Annotated[
        SecretStr | None, Expects("a key as `denizen secrets key` makes it, or several with commas, the newest first")
    ] = None
    """The key that encrypts secrets. Only from the environment or .env. By default, one is made in the home folder."""

    oidc_client_secret: Annotated[SecretStr | None, Expects("the secret that the identity provider gave you")] = None
    """The client secret at the identity provider, if it gave one. Only from the environment or .env; never shown."""

    alerts_secret: Annotated[SecretStr | None, Expects("a text that only you and the receiver know")] = None
    """The secret that signs requests to `alerts.webhook_url`. Only from the environment or .env; never shown."""

    tools: Annotated[Texts, _list_of('files or modules, such as ["tools.py", "acme.tools"]')] = ()
    """Python files, relative to the current folder, or modules: agents can use every `@tool` in them."""

    host: Annotated[
        str, AfterValidator(_address), Expects("an address or a host name without a port, such as 127.0.0.1")
    ] = "127.0.0.1"
    """The address the server listens on. 127.0.0.1 can be reached only from this machine."""

    port: Annotated[
        Count, Field(ge=0, le=65535), Expects("a whole number from 0 to 65535, such as 8420 (0 takes any free port)")
    ] = 8420
    """The port the server listens on."""

    public_url: Annotated[WebAddress, Expects("an address such as https://agents.example.com")] = None
    """The public URL of this server, for services that answer later. By default, its host and port."""

    allowed_hosts: Annotated[HostNames, _list_of('host names, such as ["agents.example.com"]')] = ()
    """Host names that requests may use, besides loopback ones and that of public_url."""

    trusted_proxy: Annotated[
        Texts,
        AfterValidator(_networks),
        Expects('a list of addresses or networks, such as ["10.0.0.5", "172.16.0.0/12"]'),
    ] = ()
    """Trusted proxies in front of this server, which use HTTPS: only their forwarded addresses are used."""

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], BeforeValidator(_lower), Expects("debug, info, warning or error")
    ] = "info"
    """The log level: debug logs everything, error only what a person must act on."""

    log_format: Annotated[Literal["console", "json"], BeforeValidator(_lower), Expects("console or json")] = "console"
    """The format of log lines: console for people, json (one object per line) for programs."""

    prices: Annotated[
        dict[str, PriceSettings],
        BeforeValidator(_from_json),
        Expects('a table such as "ollama:llama3.2" = { input = 0, output = 0 }, with cached = 0.1 if that costs less'),
    ] = Field(default={})
    """Prices of models without a known price, in dollars per million tokens. As a variable: the table as JSON."""

    contexts: Annotated[
        dict[str, Annotated[Count, Field(ge=1_024)]],
        BeforeValidator(_from_json),
        Expects('a table such as "openai-chat:my-model" = 8192, with "*" for all models that say nothing'),
    ] = Field(default={})
    """Context sizes of models that report none, or a wrong one, in tokens. As a variable: the table as JSON."""

    agents: AgentsSettings = AgentsSettings()

    budget: BudgetLimits = BudgetLimits()

    tls: TlsSettings = TlsSettings()

    oidc: OidcSettings = OidcSettings()

    limits: LimitSettings = LimitSettings()

    files: FileSettings = FileSettings()

    organizations: OrganizationsSettings = OrganizationsSettings()

    alerts: AlertsSettings = AlertsSettings()

    push: PushSettings = PushSettings()

    telemetry: TelemetrySettings = TelemetrySettings()

    memory: MemorySettings = MemorySettings()

    # Seen from the folder that is current when settings are read, not when this module is.
    profiles: ProfilesSettings = Field(default_factory=ProfilesSettings)

    reflection: ReflectSettings = ReflectSettings()

    functions: FunctionSettings = FunctionSettings()

    @property
    def address(self) -> str:
        """Where the server is, as its own machine reaches it."""
        return address_of(self, self.port)


def address_of(settings: Settings, port: int) -> str:
    """Where a server with these settings is that listens on that port."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104  not bound here
    scheme = "http" if settings.tls.certificate is None else "https"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
