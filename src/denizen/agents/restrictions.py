"""The parts of a definition that need a permission, and which: one table for every way to define an agent.

Creating, editing, applying, importing and forking all end in `registry.create` or `registry.edit`, which check the
policy. What reaches the host (programs, private addresses, Python tools of the server) is checked again before it is
used, because a definition can be older than the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from denizen.access import roles
from denizen.access.requesters import Requester
from denizen.access.roles import Role
from denizen.access.secrets import names_in
from denizen.agents.definition import AgentDefinition
from denizen.agents.differences import safe
from denizen.cycles import organization
from denizen.cycles.settings import RESPONDED_TO_ALL
from denizen.errors import NotAllowed
from denizen.ids import OrganizationId
from denizen.models.catalog import OWN
from denizen.reflection.settings import ReflectionSettings
from denizen.settings.shape import program_of
from denizen.spaces import directory
from denizen.storage.database import Tx
from denizen.tools.addresses import is_allowed, is_listed
from denizen.tools.settings import A2aTool, GuardSettings, HttpTool, McpServer, destination

# What reaches the host


@dataclass(frozen=True, slots=True)
class HostAccess:
    """The host access of organizations other than the first. The first may use everything."""

    programs: tuple[str, ...] = ()
    """Exact commands with their arguments, as in a shell; `NAME=` before one lets that variable be set."""
    private_hosts: tuple[str, ...] = ()
    """Hosts (`name` or `name:port`) with private addresses."""
    tools: tuple[str, ...] = ()
    """Names of Python tools of the server."""
    functions: tuple[str, ...] = ()
    """Names of Python functions of the server for steps, stops, routes and triage."""

    def allows_program(self, server: McpServer) -> bool:
        """Whether the command is listed with exactly these arguments, and every variable that is set with it."""
        wanted = (server.command, *server.args)
        return any(
            wanted == command and server.env.keys() <= variables
            for variables, command in map(program_of, self.programs)
        )

    def allows_hosts(self, hosts: Sequence[str]) -> bool:
        return all(is_listed(each, self.private_hosts) for each in hosts)


NO_ACCESS: Final = HostAccess()

HostUseKind = Literal["program", "private_host", "tool", "function"]
_SETTINGS: Final[Mapping[HostUseKind, tuple[str, str]]] = {
    "program": ("starts a program", "organizations.programs"),
    "private_host": ("reaches a private address", "organizations.private_hosts"),
    "tool": ("is a Python tool of the server", "organizations.tools"),
    "function": ("names a Python function of the server", "organizations.functions"),
}
"""What a part of each kind does, and the setting that allows it."""


@dataclass(frozen=True, slots=True)
class HostUse:
    """A part of a definition that reaches the host."""

    kind: HostUseKind
    part: str
    """Its path in the definition, such as `mcp.files`."""
    text: str = field(repr=False)
    """The exact content of the part: any change makes it another one."""
    allowed: bool
    """Whether the server's settings allow it for every organization."""


def host_uses(definition: AgentDefinition, access: HostAccess) -> list[HostUse]:
    """Every part that starts a program, reaches private addresses, or uses a Python tool or function of the server."""
    found: list[HostUse] = []
    for name, server in definition.mcp.items():
        part, text = f"mcp.{name}", server.model_dump_json()
        if server.command is not None:
            found.append(HostUse("program", part, text, access.allows_program(server)))
        if server.allow_private:
            found.append(HostUse("private_host", part, text, access.allows_hosts(server.allow_private)))
    for tool in definition.tools:
        if isinstance(tool, str):
            found.append(HostUse("tool", f"tools.{tool}", tool, tool in access.tools))
        elif isinstance(tool, HttpTool | A2aTool) and tool.allow_private:
            allowed = access.allows_hosts(tool.allow_private)
            found.append(HostUse("private_host", f"tools.{tool.name}", tool.model_dump_json(), allowed))
    for part, name in functions_in(definition):
        found.append(HostUse("function", part, name, name in access.functions))
    return found


def functions_in(definition: AgentDefinition) -> list[tuple[str, str]]:
    """The Python functions of the server that the definition names, each with its path."""
    cycle, triage = definition.cycle, definition.cycle.own_triage
    return [
        *([] if cycle.prepare_step is None else [("cycle.prepare_step", cycle.prepare_step)]),
        *(
            (f"cycle.stop_when.{each}", each)
            for each in cycle.stop_when
            if isinstance(each, str) and each != RESPONDED_TO_ALL
        ),
        *((f"cycle.routing.{number}", route.by) for number, route in enumerate(cycle.routing) if route.by is not None),
        *([] if triage is None or triage.by is None else [("cycle.triage", triage.by)]),
    ]


def new_host_uses(before: AgentDefinition | None, after: AgentDefinition, access: HostAccess) -> list[HostUse]:
    """The parts that were added or changed."""
    known = {(each.kind, each.text) for each in (host_uses(before, access) if before is not None else ())}
    return [each for each in host_uses(after, access) if (each.kind, each.text) not in known]


def dangerous_parts(definition: AgentDefinition) -> list[str]:
    """The names of the parts that start programs or reach private addresses."""
    uses = host_uses(definition, NO_ACCESS)
    return list(dict.fromkeys(each.part for each in uses if each.kind in ("program", "private_host")))


# Where secrets go


@dataclass(frozen=True, slots=True)
class Sending:
    """A part of a definition that sends a secret to a host."""

    part: str
    secret: str
    """The name of the secret; empty for one that was written into a header."""
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.part} sends {self.secret or 'a header that is not shown'} to {self.host}"


def sendings(definition: AgentDefinition) -> list[Sending]:
    """Every secret that is sent in a header, with its host. Secrets passed to programs cannot be traced."""
    return [
        Sending(part, name, host, port)
        for part, (host, port), headers in _going_out(definition)
        for name in sorted(names_in("\n".join(headers.values())))
    ]


def may_be_sent(sending: Sending, hosts: Mapping[str, Sequence[str]]) -> bool:
    """Whether the secret may be sent to that host; a secret without a list may be sent anywhere."""
    return sending.secret not in hosts or is_allowed(sending.host, sending.port, hosts[sending.secret])


def new_sendings(before: AgentDefinition | None, after: AgentDefinition) -> list[Sending]:
    """Secrets that are sent to a host for the first time, including those written into a header."""
    known = {(each.secret, each.host, each.port) for each in (sendings(before) if before is not None else ())}
    named = [each for each in sendings(after) if (each.secret, each.host, each.port) not in known]
    written = [] if before is None else _written(before)
    values, places = {value for _, value in written}, {(*where, value) for (_, *where), value in written}
    moved = [
        Sending(part, "", host, port)
        for (part, host, port), value in _written(after)
        if value in values and (host, port, value) not in places
    ]
    return [*named, *dict.fromkeys(moved)]


def _going_out(definition: AgentDefinition) -> Iterator[tuple[str, tuple[str, int], Mapping[str, str]]]:
    for tool in definition.tools:
        if isinstance(tool, HttpTool | A2aTool):
            yield f"tools.{tool.name}", destination(tool.url), tool.headers
    for name, server in definition.mcp.items():
        if server.url is not None:
            yield f"mcp.{name}", destination(server.url), server.headers
        if server.oauth is not None:
            credentials = {"client_secret": server.oauth.client_secret}
            yield f"mcp.{name}", destination(server.oauth.issuer), credentials
        if server.sign_in is not None and server.url is not None:
            kept = {"tokens": server.sign_in.tokens, "client_secret": server.sign_in.client_secret or ""}
            yield f"mcp.{name}", destination(server.url), kept


def _written(definition: AgentDefinition) -> list[tuple[tuple[str, str, int], str]]:
    """The secrets in headers that are masked for people who may change the definition."""
    return [
        ((part, host, port), value)
        for part, (host, port), headers in _going_out(definition)
        for name, value in headers.items()
        if not names_in(value) and safe((part.partition(".")[0], "headers", name), value) != value
    ]


# Weaker policies for effects and private words


def policy_exceptions(definition: AgentDefinition) -> list[tuple[str, str]]:
    """Every part that makes the policy weaker than the default, with its exact content."""
    found: list[tuple[str, str]] = []
    for tool in definition.tools:
        if isinstance(tool, HttpTool | A2aTool):
            said = _said_of_tool(tool)
            found += [(f"tools.{tool.name} says `{each}`", tool.model_dump_json()) for each in said]
    for name, server in definition.mcp.items():
        said = [
            *(["results: trusted"] if server.results == "trusted" else []),
            *(["only_read"] if server.only_read else []),
        ]
        found += [(f"mcp.{name} says `{each}`", server.model_dump_json()) for each in said]
    found += [
        (f"skills.{name} says `results: trusted`", skill.model_dump_json())
        for name, skill in definition.skills.items()
        if skill.results == "trusted"
    ]
    if definition.effects.after_outside_text == "allow":
        found.append(("effects.after_outside_text is `allow`", ""))
    rules = [each for each in definition.effects.rules if each.do == "allow"]
    found += [(f"effects.rules allows {each.tool}", each.model_dump_json()) for each in rules]
    guard, default = definition.private_guard, GuardSettings()
    if not guard.enabled:
        found.append(("private_guard.enabled is `false`", ""))
    if guard.words > default.words:
        found.append((f"private_guard.words is more than {default.words}", str(guard.words)))
    return found


def _said_of_tool(tool: HttpTool | A2aTool) -> list[str]:
    said = ["results: trusted"] if tool.results == "trusted" else []
    if tool.effect is False:
        said.append("effect: false")
    if isinstance(tool, A2aTool):
        return said
    # Such an argument is not compared with a person's words, or only addresses in it are.
    said += [f"kinds.{name}: {kind}" for name, kind in tool.kinds.items() if kind in ("text", "flag")]
    return [*said, "makes"] if tool.makes else said


def new_policy_exceptions(before: AgentDefinition | None, after: AgentDefinition) -> list[str]:
    """The exceptions that were added or changed."""
    known = set(policy_exceptions(before)) if before is not None else set[tuple[str, str]]()
    return [part for part, text in policy_exceptions(after) if (part, text) not in known]


# Who pays


def new_payer(before: AgentDefinition | None, after: AgentDefinition) -> str | None:
    """The `@handle` of a person who is newly named as the payer."""
    known = "" if before is None else before.pays
    return after.pays if after.pays not in ("", known) else None


# Models of Python programs


def own_models(definition: AgentDefinition) -> dict[str, str]:
    """Every model named here that a Python program registered for an agent, by its path."""
    cycle, reflection = definition.cycle, definition.reflection
    sentiment = None if reflection.sentiment is None else reflection.sentiment.model
    named = {
        "model": definition.model,
        "cycle.triage.model": None if cycle.own_triage is None else cycle.own_triage.model,
        "window.writer_model": definition.window.writer_model,
        "reflection.model": reflection.model,
        "reflection.sentiment.model": sentiment,
        **{f"reflection.metaprompts.{each.id}.model": each.model for each in reflection.metaprompts},
        **{
            f"cycle.routing.{number}": name
            for number, route in enumerate(cycle.routing)
            for name in route.models
            if name.startswith(OWN)
        },
        **{f"cycle.step_models.{number}": name for number, name in enumerate(cycle.step_models)},
    }
    return {part: name for part, name in named.items() if name is not None and name.startswith(OWN)}


def new_own_models(before: AgentDefinition | None, after: AgentDefinition) -> dict[str, str]:
    """The models that were not named before."""
    known: set[str] = set() if before is None else set(own_models(before).values())
    return {part: name for part, name in own_models(after).items() if name not in known}


# The table


@dataclass(frozen=True, slots=True)
class DefinitionAuthor:
    """The person who defines an agent over HTTP."""

    handle: str
    role: Role
    """Their permissions with the token that they used."""


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """The change of a definition, its author and organization."""

    author: DefinitionAuthor | None
    """None: a program on the server itself, which has the permissions of an owner."""
    in_first_organization: bool
    host_uses: Sequence[HostUse]
    sendings: Sequence[Sending]
    secret_hosts: Mapping[str, Sequence[str]]
    payer: str | None
    own_models: Mapping[str, str] = field(default_factory=dict[str, str])
    policy_exceptions: Sequence[str] = ()

    @property
    def by_owner(self) -> bool:
        return self.author is None or roles.reaches(self.author.role, "owner")

    @property
    def role(self) -> str:
        return "owner" if self.author is None else self.author.role


Refusals: TypeAlias = Callable[[DefinitionChange], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Restriction:
    """Something in a definition that needs a permission."""

    what: str
    who: str
    refusals: Refusals
    """Returns why a change is refused; empty if it is allowed."""


def _host_refusals(kind: HostUseKind, *, owners_only: bool) -> Refusals:
    def refusals(change: DefinitionChange) -> Iterator[str]:
        does, _ = _SETTINGS[kind]
        for use in change.host_uses:
            if use.kind != kind:
                continue
            if owners_only and not change.by_owner:
                yield (
                    f"{use.part} {does}, which is for owners of the organization; you came as {change.role}. "
                    "Leave it as it is, or remove it."
                )
            elif not change.in_first_organization and not use.allowed:
                yield f"{not_allowed_here(use)}."

    return refusals


def not_allowed_here(use: HostUse) -> str:
    """The message for a part that the organization may not use."""
    does, setting = _SETTINGS[use.kind]
    return (
        f"{use.part} {does}, which this server does not allow to your organization "
        f"(its operator can list it in `{setting}`)"
    )


def _secret_refusals(change: DefinitionChange) -> Iterator[str]:
    if change.by_owner:
        return
    for sending in change.sendings:
        if not is_allowed(sending.host, sending.port, change.secret_hosts.get(sending.secret, ())):
            yield (
                f"{sending}, and where a secret is sent is for owners of the organization to say; you came as "
                f"{change.role}. An owner can define this, or name the host in the organization's `secret_hosts`."
            )


def _policy_refusals(change: DefinitionChange) -> Iterator[str]:
    if change.by_owner:
        return
    for part in change.policy_exceptions:
        yield (
            f"{part}, which lets the agent do more without asking a person. That is for owners of the organization; "
            f"you came as {change.role}. Leave it out, or ask an owner to define it."
        )


def _payer_refusals(change: DefinitionChange) -> Iterator[str]:
    if change.payer is not None and change.author is not None and change.payer != f"@{change.author.handle}":
        yield f"pays: only {change.payer} can say that they pay for an agent."


def _model_refusals(change: DefinitionChange) -> Iterator[str]:
    # A program on the server registered the model itself.
    if change.author is None or change.in_first_organization:
        return
    for part, name in change.own_models.items():
        yield (
            f"{part} names {name}, a model of a Python program on the server, which is for the first organization. "
            "Name a model of a provider."
        )


RESTRICTIONS: Final[Mapping[str, Restriction]] = {
    "program": Restriction(
        "Start a program (`command` of an MCP server)",
        "owners of the first organization; owners of another one if `organizations.programs` lists the exact command",
        _host_refusals("program", owners_only=True),
    ),
    "private_host": Restriction(
        "Reach a private address (`allow_private` of an HTTP tool or MCP server)",
        "owners of the first organization; owners of another one if `organizations.private_hosts` lists the host",
        _host_refusals("private_host", owners_only=True),
    ),
    "tool": Restriction(
        "Use a Python tool of the server (a name in `tools`)",
        "admins and owners of the first organization; of another one if `organizations.tools` lists the tool",
        _host_refusals("tool", owners_only=False),
    ),
    "function": Restriction(
        "Name a Python function of the server (`cycle.prepare_step`, `stop_when`, `routing`, `triage`)",
        "admins and owners of the first organization; of another one if `organizations.functions` lists the function",
        _host_refusals("function", owners_only=False),
    ),
    "model": Restriction(
        "Name a model of a Python program on the server (`python:…`)",
        "admins and owners of the first organization; programs on the server",
        _model_refusals,
    ),
    "secret": Restriction(
        "Send a secret to a host (`${NAME}`, or a header that is not shown, of an HTTP tool or MCP server)",
        "owners; admins if the organization's `secret_hosts` lists the host for that secret",
        _secret_refusals,
    ),
    "policy": Restriction(
        "Weaken the policy for [effects](effects.md#who-may-weaken-the-policy) and private words (`results: trusted`, "
        "`effect: false`, `only_read`, `kinds` with `text` or `flag`, `makes`, `after_outside_text: allow`, rules that "
        "allow, `private_guard`)",
        "owners",
        _policy_refusals,
    ),
    "payer": Restriction("Make a person pay (`pays`)", "that person", _payer_refusals),
}


def render() -> str:
    """The table in Markdown, for docs/access.md."""
    rows = [f"| {each.what} | {each.who} |" for each in RESTRICTIONS.values()]
    return "\n".join(["| part of a definition | who may add or change it |", "|---|---|", *rows]) + "\n"


def models_in(definition: AgentDefinition) -> set[str]:
    """The names of the models that an agent thinks with."""
    triage = definition.cycle.own_triage
    judged = {triage.model} if triage is not None and triage.model is not None else set[str]()
    writer = definition.window.writer_model
    return {definition.model, *definition.cycle.models, *judged, *([] if writer is None else [writer])}


@dataclass(frozen=True, slots=True)
class DefinitionPolicy:
    """Decides whether somebody may define an agent in a certain way."""

    access: HostAccess = NO_ACCESS
    author: DefinitionAuthor | None = None
    check_model: Callable[[str], None] = lambda _: None
    """Raises `InvalidInput` for a model name that is unknown here."""

    check_reflection: Callable[[ReflectionSettings], None] = lambda _: None
    """Raises `InvalidInput` for reflection settings that are not possible here."""

    def for_requester(self, tx: Tx, by: Requester) -> DefinitionPolicy:
        """The same policy for what this person defines. A program on the server has no author."""
        who = by.actor.entity_id
        if who is None or by.role is None:
            return replace(self, author=None)
        return replace(self, author=DefinitionAuthor(directory.get_entity(tx, who).handle, by.role))

    def check(
        self, tx: Tx, organization_id: OrganizationId, before: AgentDefinition | None, after: AgentDefinition
    ) -> None:
        """Raises `NotAllowed` with everything that the author may not define, if there is any."""
        uses, sent = new_host_uses(before, after, self.access), new_sendings(before, after)
        models = new_own_models(before, after)
        change = DefinitionChange(
            self.author,
            not (uses or models) or directory.first_organization(tx) == organization_id,
            uses,
            sent,
            organization.settings_of(tx, organization_id).secret_hosts if sent else {},
            new_payer(before, after),
            models,
            new_policy_exceptions(before, after),
        )
        refused = [text for each in RESTRICTIONS.values() for text in each.refusals(change)]
        if refused:
            raise NotAllowed(" ".join(refused))

    def check_possible(self, before: AgentDefinition | None, after: AgentDefinition) -> None:
        """Raises `InvalidInput` if the definition newly names a model, or a way to reflect, that is missing here."""
        if before is None or before.reflection != after.reflection:
            self.check_reflection(after.reflection)
        known = set[str]() if before is None else models_in(before)
        for name in models_in(after) - known:
            self.check_model(name)

    def only_for_operators(self, definition: AgentDefinition) -> list[HostUse]:
        """The parts that only agents of the first organization may use."""
        return [each for each in host_uses(definition, self.access) if not each.allowed]


UNRESTRICTED_PARTS_ONLY: Final = DefinitionPolicy()
"""For agents that the server creates itself, whose definitions have no restricted parts."""
