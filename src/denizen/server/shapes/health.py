"""The JSON of an organization's health."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from denizen.agents.fitness import Fitness
from denizen.agents.health import SHOWN, Health, Instance, Trouble
from denizen.clock import Instant, moment
from denizen.server.shapes.agents import agent_trouble_out
from denizen.server.shapes.filling import filled
from denizen.shapes.health import AgentHealth, AlertCode, AlertOut, HealthOut, InstanceOut, TroubleOut

if TYPE_CHECKING:  # it takes long to import
    from denizen.tools.mcp import McpTrouble

MOST_ALERT_CHARACTERS = 2_000
NAMED = 5
"""The most agents that cannot think that are listed one by one."""


def instance_out(instance: Instance, answering: str) -> InstanceOut:
    return filled(InstanceOut, instance, answers=instance.id == answering)


def trouble_out(trouble: Trouble) -> TroubleOut:
    return filled(TroubleOut, trouble)


def agent_health_out(found: Fitness, now: int) -> AgentHealth:
    return filled(
        AgentHealth,
        found,
        can_think=found.unable is None,
        trouble=agent_trouble_out(found.unable),
        needs_a_person=found.needs_a_person(now),
    )


def health_out(
    found: Health,
    agents: Sequence[Fitness],
    *,
    now: int,
    version: str,
    missing: list[str],
    answering: str,
    lost: str | None = None,
    disk_full: bool = False,
    mcp: Sequence[McpTrouble] = (),
) -> HealthOut:
    """`lost`: what the database has lost, as a sentence. `disk_full`: whether it cannot be written to.
    `mcp`: the MCP servers that this instance cannot reach.
    """
    shown = sorted([agent_health_out(each, now) for each in agents], key=lambda each: not each.needs_a_person)
    return HealthOut(
        version=version,
        missing=missing,
        instances=[instance_out(each, answering) for each in found.instances],
        agents=shown[:SHOWN],
        agents_checked=len(shown),
        dead=[trouble_out(each) for each in found.dead],
        late=[trouble_out(each) for each in found.late],
        alerts=[
            *([AlertOut(code="data_missing", text=lost)] if lost is not None else []),
            *([AlertOut(code="disk_full", text=_DISK_FULL)] if disk_full else []),
            # On a full disk no instance can say that it thinks.
            *(
                AlertOut(code=code, text=text)
                for code, text in _alerts(found, missing, shown, now)
                if not (disk_full and code == "nobody_thinks")
            ),
            *(AlertOut(code="context_too_large", text=text) for text in _contexts_too_large(agents)),
            *(AlertOut(code="mcp_unreachable", text=_unreachable(each)) for each in mcp[:NAMED]),
        ],
    )


_DISK_FULL: Final = (
    "The disk of the database is full: nothing can be written, and no agent answers. Free some room; then everything "
    "goes on by itself."
)


def _contexts_too_large(agents: Sequence[Fitness]) -> list[str]:
    return [each.context_too_large for each in agents if each.context_too_large is not None][:NAMED]


def _unreachable(trouble: McpTrouble) -> str:
    wrote = f" It wrote: {' | '.join(trouble.last_words)}" if trouble.last_words else ""
    return f"{trouble.text}{wrote}"[:MOST_ALERT_CHARACTERS]


def _alerts(found: Health, missing: list[str], agents: Sequence[AgentHealth], now: int) -> list[tuple[AlertCode, str]]:
    alerts: list[tuple[AlertCode, str]] = []
    if missing:
        alerts.append(("not_ready", f"This instance lacks: {', '.join(missing)}."))
    if not found.instances:
        alerts.append(("nobody_thinks", "No instance thinks for the agents: start one with denizen up."))
    unable = [each for each in agents if each.trouble is not None and each.trouble.cause not in ("suspended", "budget")]
    for each in unable[:NAMED]:
        assert each.trouble is not None
        alerts.append(("agents_unable", each.trouble.text))
    if len(unable) > NAMED:
        alerts.append(("agents_unable", f"{len(unable) - NAMED:,} more agents cannot think."))
    alerts.extend(("panels_unable", text) for text in found.panels[:NAMED])
    if len(found.panels) > NAMED:
        alerts.append(("panels_unable", f"Nobody can answer in {len(found.panels) - NAMED:,} more panels."))
    if dead := sum(each.events for each in found.dead):
        what = "1 event was given up: look at it" if dead == 1 else f"{dead:,} events were given up: look at them"
        alerts.append(("dead_events", f"{what}, and try again or leave it."))
    if late := sum(each.events for each in found.late):
        what = "1 event has waited" if late == 1 else f"{late:,} events have waited"
        alerts.append(("late_events", f"{what} for more than ten minutes: the model may be failing."))
    waiting = [each for each in agents if each.waiting_since is not None and each.needs_a_person]
    if waiting:
        oldest = min(waiting, key=lambda each: each.waiting_since or moment(Instant(now)))
        minutes = int((moment(Instant(now)) - (oldest.waiting_since or moment(Instant(now)))).total_seconds() // 60)
        people = f"A person has waited {minutes:,} {'minute' if minutes == 1 else 'minutes'} for {oldest.name}"
        alerts.append(("people_wait", f"{people}: see why, and try again."))
    if found.resting:
        what = "1 agent rests" if found.resting == 1 else f"{found.resting:,} agents rest"
        alerts.append(("budget_spent", f"{what} because a budget is used up."))
    return alerts
