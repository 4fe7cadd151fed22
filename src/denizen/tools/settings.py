"""Tools that an agent's owner defines without writing Python: HTTP requests, questions to people, agents elsewhere, MCP
servers; and the settings of the guard of private words.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from denizen.plans.settings import was_stored
from denizen.tools.tool import OnCrash, Results
from denizen.trust.values import Kind

NAME: Final = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
"""The names that models accept for a tool."""

_EMPTY: Final[dict[str, Any]] = {"type": "object", "properties": {}, "additionalProperties": False}
PLACE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A placeholder for an argument in a URL."""
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS: Final = ("host", "connection", "content-length", "transfer-encoding", "idempotency-key")


def _checked_url(url: str) -> str:
    if "${" in url:
        raise ValueError("a secret may not stand in a url, where others would see it: put it into a header")
    if not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("a url may not hold spaces, backslashes or control characters")
    host = re.split(r"[/?#]", url.split("://", 1)[1], maxsplit=1)[0]
    if "{" in host:
        raise ValueError("the host of a url must be fixed: arguments may stand in its path and query only")
    if "@" in host:
        raise ValueError("a url may not hold a user or a password: put them into a header, as secrets")
    parts = urlsplit(f"//{host}")
    try:
        known = bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise ValueError(f"the url has no usable port: {error}") from error
    if not known:
        raise ValueError("the url names no host")
    return url


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or not value.isprintable() or not value.isascii():
            raise ValueError(f"the header {name!r} cannot be sent: use ASCII, without line breaks")
        if name.lower() in _OURS:
            raise ValueError(f"the header {name} is set for every request and cannot be chosen")
    return headers


Url = Annotated[str, Field(pattern=r"^https?://"), AfterValidator(_checked_url)]
"""An address with a fixed host and without secrets."""
Headers = Annotated[dict[str, str], AfterValidator(_checked_headers)]
"""Headers that can be sent."""


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Named(_Settings):
    name: str = Field(pattern=NAME)
    description: str = Field(min_length=1)
    """What it does and when to use it; the model reads this."""
    visible: bool = False
    """Whether people in the space see the call as it is written, and its result."""
    independent: bool = False
    """May run together with its neighbours in the same response."""

    @model_serializer(mode="wrap")
    def _with_kind(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Its kind distinguishes it from others when it is read again: kept even where defaults are left out.
        return {"kind": getattr(self, "kind", None), **dump(self)}


class _Defined(_Named):
    parameters: dict[str, Any] = Field(default_factory=lambda: dict(_EMPTY))
    """JSON Schema of its arguments, an object. Arguments that do not fit are refused, and the model is told why."""

    @field_validator("parameters")
    @classmethod
    def _is_a_schema(cls, schema: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        from denizen.tools.schemas import schema_problem

        if was_stored(info):
            return schema
        if problem := schema_problem(schema):
            raise ValueError(problem)
        return schema


class HttpTool(_Defined):
    """An HTTP request that an agent may make.

    `{name}` in the URL stands for an argument, `${NAME}` in a header for a secret of the organization.
    """

    kind: Literal["http"] = "http"
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    url: Url
    """With `{argument}` where an argument belongs, percent-encoded when it is put there."""
    headers: Headers = Field(default_factory=dict[str, str])
    body: Literal["json", "form", "none"] | None = None
    """How arguments that are not in the URL are sent: as JSON (default but for GET and DELETE), as a form, or in the
    query (`none`)."""
    mode: Literal["wait", "async"] = "wait"
    """`async`: the service takes the request, and answers later to the address it was told in `Denizen-Answer-To`."""
    seconds: float = Field(default=30.0, gt=0, le=3_600)
    on_crash: OnCrash = "report"
    results: Results = "outside"
    """Whether what it answers is text from outside, or `trusted`: as if a person here had written it."""
    effect: bool | None = None
    """Whether it does more than read. Then, after text from outside, it may need an approval. By default every method
    but GET does, and a GET if an argument is a link: the owner of the address learns something."""
    needs: Literal["trusted"] | None = None
    """`trusted`: once the request held text from outside, a person approves each call."""
    kinds: dict[str, Kind] = Field(default_factory=dict[str, Kind])
    """What arguments are, where their names and forms do not tell: `{"permission": "flag", "memo": "text"}`."""
    makes: dict[str, str] = Field(default_factory=dict[str, str])
    """Which field of its result is the id of what it has made, by the argument of other tools that may name it later in
    the same cycle: `{"file_id": "id"}`."""
    allow_private: tuple[str, ...] = ()
    """Hosts (`name` or `name:port`) that may be reached although their addresses are private."""

    @model_validator(mode="after")
    def _places_are_arguments(self) -> HttpTool:
        known = set(self.parameters.get("properties", {}))
        unknown = [name for name in self.places if name not in known]
        if unknown:
            raise ValueError(f"the url uses {{{unknown[0]}}}, which parameters.properties does not define")
        return self

    @property
    def places(self) -> tuple[str, ...]:
        """The arguments that stand in the URL."""
        return tuple(PLACE.findall(self.url))


class ClientTool(_Defined):
    """A question to people: the call is shown in the space, and an answer through the API is its result."""

    kind: Literal["client"] = "client"
    mode: Literal["pause", "async"] = "pause"
    """`pause`: the cycle waits for the answer. `async`: it goes on, and the answer comes as an event."""
    seconds: float = Field(default=86_400.0, gt=0, le=30 * 86_400)
    """How long an answer is waited for."""
    approval: bool = False
    """Whether a person has to approve with the button, the command line, the API or the code shown with it. Anything
    else is a question, and what a person writes in the space answers it."""
    visible: bool = True


class A2aTool(_Named):
    """An agent elsewhere, which the agent here gives tasks to by A2A (Agent2Agent)."""

    kind: Literal["a2a"] = "a2a"
    url: Url
    """Where its card is: the address of the card itself, or the one that `/.well-known/agent-card.json` is below."""
    headers: Headers = Field(default_factory=dict[str, str])
    """Sent to the agent with each request; `${NAME}` stands for a secret."""
    seconds: float = Field(default=600.0, gt=0, le=3_600)
    """How long its answer is waited for."""
    on_crash: OnCrash = "report"
    """`retry` if the other side recognizes a message that it gets again by its id, as Denizen does."""
    results: Results = "outside"
    """Whether what it answers is text from outside, or `trusted`: as if a person here had written it."""
    effect: bool = True
    """Whether giving it a task does more than read: after text from outside it may then need an approval."""
    allow_private: tuple[str, ...] = ()
    """Hosts (`name` or `name:port`) that may be reached although their addresses are private."""


class McpOAuth(_Settings):
    """How to get access tokens for an MCP server: as a program, with the credentials of a client (OAuth 2.1)."""

    issuer: Url
    """The authorization server that the credentials belong to. They are sent nowhere else."""
    client_id: str = Field(min_length=1)
    client_secret: str = Field(pattern=r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$")
    """A secret of the organization: `${NAME}`."""
    scope: str | None = None
    """The scopes to ask for, with spaces between them; None: what the server asks for."""


class McpSignInSettings(_Settings):
    """A sign-in of an admin in a browser (OAuth 2.1, authorization code with PKCE)."""

    tokens: str = Field(pattern=r"^\$\{[A-Z][A-Z0-9_]{1,63}\}$")
    """The secret in which the tokens are kept: `${NAME}`. It is written by the sign-in, and when they are renewed."""
    client_id: str | None = None
    """The client at the authorization server, if Denizen cannot register itself there."""
    client_secret: str | None = Field(default=None, pattern=r"^\$\{[A-Z][A-Z0-9_]{1,63}\}$")
    """A secret of the organization: `${NAME}`."""
    scope: str | None = None
    """The scopes to ask for, with spaces between them; None: what the server asks for."""

    @property
    def name(self) -> str:
        return self.tokens[2:-1]


class McpServer(_Settings):
    """A server of the Model Context Protocol: a program that is started, or an address."""

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict[str, str])
    """Environment of the program; `${NAME}` stands for a secret. Of ours it gets only what programs need to run."""
    url: Url | None = None
    headers: Headers = Field(default_factory=dict[str, str])
    oauth: McpOAuth | None = None
    """For a server at an address that wants access tokens of an authorization server."""
    sign_in: McpSignInSettings | None = None
    """For a server at an address that wants a person to sign in. `denizen mcp connect` does so."""
    tools: tuple[str, ...] | None = None
    """The tools that may be used; None is all that the server offers."""
    prefix: str = Field(default="", pattern=r"^[A-Za-z0-9_-]{0,32}$")
    """Stands before the names of its tools."""
    seconds: float = Field(default=60.0, gt=0, le=3_600)
    on_crash: OnCrash = "report"
    visible: bool = False
    results: Results = "outside"
    """Whether what it answers is text from outside, or `trusted`: as if a person here had written it."""
    only_read: tuple[str, ...] = ()
    """Names of its tools that only read (`*` stands for any letters). Of a program, or of a server whose results are
    trusted, tools count as well that say so of themselves and reach nothing beyond the server. Every other needs an
    approval where an effect does."""
    needs_trusted: tuple[str, ...] = ()
    """Names of its tools that a person approves, call by call, once the request held text from outside."""
    allow_private: tuple[str, ...] = ()
    """Hosts (`name` or `name:port`) that may be reached although their addresses are private."""

    @model_validator(mode="after")
    def _one_of_two(self) -> McpServer:
        if (self.command is None) == (self.url is None):
            raise ValueError("say either `command` (a program to start) or `url` (an address)")
        if self.oauth is not None and self.url is None:
            raise ValueError("`oauth` is for servers at a `url`; a program gets its secrets with `env`")
        if self.sign_in is not None and (self.url is None or self.oauth is not None):
            raise ValueError("`sign_in` is for servers at a `url`, in place of `oauth`")
        return self


ToolSettings = Annotated[HttpTool | ClientTool | A2aTool, Field(discriminator="kind")]


def destination(url: str) -> tuple[str, int]:
    """The host and port of a checked URL."""
    parts = urlsplit(url.partition("{")[0])
    return (parts.hostname or "").rstrip("."), parts.port or (443 if parts.scheme == "https" else 80)


class GuardSettings(_Settings):
    """How an agent is kept from repeating elsewhere what was said in a private space."""

    enabled: bool = True
    """Whether what it wants to say is looked at before it is sent."""
    words: int = Field(default=8, ge=3, le=50)
    """So many words in a row that were said in a private space may not be repeated elsewhere."""
