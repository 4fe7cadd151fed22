"""The parts of a definition that reach beyond the agent: programs it starts, private addresses, someone's money. Pure.

They are not for everyone who may define agents: who may, the caller decides.
"""

from __future__ import annotations

from denizen.agents.definition import AgentDefinition
from denizen.tools.settings import HttpTool


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


def new_payer(before: AgentDefinition | None, after: AgentDefinition) -> str | None:
    """The `@handle` of a person who is to pay and did not before."""
    known = "" if before is None else before.pays
    return after.pays if after.pays not in ("", known) else None
