"""The parts of a definition that reach beyond the agent: programs, private addresses, secrets, someone's money. Pure.

They are not for everyone who may define agents: who may, the caller decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from denizen.access.secrets import names_in
from denizen.agents.definition import AgentDefinition
from denizen.agents.differences import safe
from denizen.tools.addresses import is_allowed
from denizen.tools.settings import HttpTool, destination


def dangerous_parts(definition: AgentDefinition) -> dict[str, str]:
    """Each part that starts a program or reaches private addresses, to the letter, and what it is called."""
    found: dict[str, str] = {}
    for name, server in definition.mcp.items():
        if server.command is not None or server.allow_private:
            found[server.model_dump_json()] = f"mcp.{name}"
    for tool in definition.tools:
        if isinstance(tool, HttpTool) and tool.allow_private:
            found[tool.model_dump_json()] = f"tools.{tool.name}"
    return found


def new_dangers(before: AgentDefinition | None, after: AgentDefinition) -> list[str]:
    """What of these parts is new or was changed; what stays as it was, or goes, is none."""
    known = {} if before is None else dangerous_parts(before)
    return [name for said, name in dangerous_parts(after).items() if said not in known]


@dataclass(frozen=True, slots=True)
class Sending:
    """That a part of a definition sends a secret to a host."""

    part: str
    secret: str
    """Its name; empty for one that somebody wrote into a header."""
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.part} sends {self.secret or 'a header that is not shown'} to {self.host}"


def sendings(definition: AgentDefinition) -> list[Sending]:
    """Every secret that goes out in a header, and where to. What programs do with theirs nobody can say."""
    return [
        Sending(part, name, host, port)
        for part, (host, port), headers in _going_out(definition)
        for name in sorted(names_in("\n".join(headers.values())))
    ]


def may_be_sent(sending: Sending, hosts: Mapping[str, Sequence[str]]) -> bool:
    """Whether the secret may go there, as far as it is said where it may go."""
    return sending.secret not in hosts or is_allowed(sending.host, sending.port, hosts[sending.secret])


def new_sendings(before: AgentDefinition | None, after: AgentDefinition) -> list[Sending]:
    """Secrets that go to a host to which they did not go before; those too that were written into a header."""
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
        if isinstance(tool, HttpTool):
            yield f"tools.{tool.name}", destination(tool.url), tool.headers
    for name, server in definition.mcp.items():
        if server.url is not None:
            yield f"mcp.{name}", destination(server.url), server.headers


def _written(definition: AgentDefinition) -> list[tuple[tuple[str, str, int], str]]:
    """What stands in headers and is not shown to those who may change the definition."""
    return [
        ((part, host, port), value)
        for part, (host, port), headers in _going_out(definition)
        for name, value in headers.items()
        if not names_in(value) and safe((part.partition(".")[0], "headers", name), value) != value
    ]


def new_payer(before: AgentDefinition | None, after: AgentDefinition) -> str | None:
    """The `@handle` of a person who is to pay and did not before."""
    known = "" if before is None else before.pays
    return after.pays if after.pays not in ("", known) else None
