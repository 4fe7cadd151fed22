"""Checks whether every agent can think: by the running server, or in this process if there is none."""

from __future__ import annotations

import time
from collections.abc import Sequence

from denizen.cli.findings import Finding, counted
from denizen.settings.shape import Settings
from denizen.shapes.health import AgentHealth


async def examine(settings: Settings, *, probe: bool = False) -> list[Finding]:
    """Returns one finding for each agent that needs a person, with what to do; otherwise one that all can think."""
    found = await _ask_server(settings, probe=probe)
    if found is None:
        found = await _look_here(settings, probe=probe)
    return [] if found is None else findings(found)


def findings(agents: Sequence[AgentHealth]) -> list[Finding]:
    """Returns the findings for these agents."""
    troubled = [finding for each in agents if (finding := _finding(each)) is not None]
    able = sum(1 for each in agents if each.can_think)
    if agents and able == len(agents):
        troubled.append(Finding("Thinking", "ok", f"{counted(able, 'agent')} can think here."))
    return troubled


def _finding(agent: AgentHealth) -> Finding | None:
    if agent.trouble is None and not agent.needs_a_person:
        return None
    said = [] if agent.trouble is None else [agent.trouble.text]
    if agent.waiting and agent.waiting_since is not None:
        minutes = max(int((time.time() - agent.waiting_since.timestamp()) // 60), 0)
        said.append(
            f"{counted(agent.waiting, 'message')} of people {'waits' if agent.waiting == 1 else 'wait'} for it, the "
            f"oldest for {counted(minutes, 'minute')}."
        )
    if agent.dead:
        said.append(f"It has set {counted(agent.dead, 'message')} aside.")
    return Finding(f"@{agent.handle}", "problem" if agent.needs_a_person else "note", " ".join(said), _advice(agent))


def _advice(agent: AgentHealth) -> str:
    actions = () if agent.trouble is None else agent.trouble.actions
    if "resume" in actions:
        return f"`denizen agents resume {agent.handle}` lets it think again."
    if agent.dead or "try_again" in actions or agent.trouble is None:
        return f"`denizen agents retry {agent.handle}` has it try again at once."
    return ""


async def _ask_server(settings: Settings, *, probe: bool) -> Sequence[AgentHealth] | None:
    """Asks the local server; None if none answers, or there is no token for it."""
    from denizen.cli.home import kept_token, server_url
    from denizen.client import Client
    from denizen.errors import NotFound, RequestRefused, ServerError, ServerUnreachable, TokenRefused

    url = server_url(settings)
    secret = None if settings.port == 0 and url == settings.address else kept_token(settings, url)
    if secret is None:
        return None
    try:
        async with Client(url, secret) as client:
            return (await client.health_report(probe=probe)).agents
    except (ServerUnreachable, ServerError, TokenRefused, RequestRefused, NotFound):
        return None


async def _look_here(settings: Settings, *, probe: bool) -> Sequence[AgentHealth] | None:
    """Checks a database of this version in this process; None if there is none."""
    from denizen.cli.home import has_database, runtime_of
    from denizen.server.shapes.health import agent_health_out
    from denizen.spaces import directory

    if not await has_database(settings):
        return None
    runtime = await runtime_of(settings)
    async with runtime:
        organizations = await runtime.db.read(directory.list_organizations)
        found = [each for home in organizations for each in await runtime.agents.check(home, probe=probe)]
        now = runtime.clock.now()
    return [agent_health_out(each, now) for each in found]
