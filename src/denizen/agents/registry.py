"""Agents in the database: create, edit, suspend, resume, delete; and what each is doing now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic import ValidationError
from sqlalchemy import bindparam, select, update

from denizen.agents.definition import AgentDefinition
from denizen.agents.restrictions import DefinitionPolicy
from denizen.bus.streams import WAKE, AgentStatus, agent_topic, wake_payload
from denizen.clock import SECOND, Instant
from denizen.consciousness import lease as leases
from denizen.consciousness import log
from denizen.consciousness.lease import Lease
from denizen.cycles import budgets, pausing
from denizen.cycles.budgets import BudgetSettings
from denizen.cycles.ledger import Charge
from denizen.cycles.troubles import classify
from denizen.errors import InvalidInput, NotFound, existing
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId
from denizen.inbox import delivery, parking, statuses
from denizen.inbox.delivery import BACK_OFF_SECONDS
from denizen.inbox.parking import PROBE_SECONDS
from denizen.inbox.statuses import PARKING_CAUSES
from denizen.models.prices import Usage, usage_of
from denizen.nearest import nearest
from denizen.plans import agenda
from denizen.reflection import records as reflection
from denizen.shapes.vocabulary import AgentState as Status
from denizen.spaces import ask_again, directory, floor
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx, columns, insert_into, statement, update_where, values
from denizen.storage.schema import agents, cycles, entities, events, memberships, minds, organizations, reflecting
from denizen.storage.schema import leases as leases_table
from denizen.tools import calls, grants

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from denizen.cycles.records import OpenCycle


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent with its definition."""

    entity: Entity
    definition: AgentDefinition
    version: int
    """The version of the definition; each edit increments it."""
    shared_budget: BudgetSettings | None = None
    """The budget of its organization, if it was loaded."""
    reflects: bool = False
    """Whether its cycles are reflected on, everywhere or in some conversation, if that was loaded."""

    @property
    def id(self) -> AgentId:
        return self.entity.id

    @property
    def name(self) -> str:
        return self.entity.name


def define(**fields: Any) -> AgentDefinition:
    """A checked definition. Raises `InvalidInput` that says which field is wrong and why."""
    try:
        return AgentDefinition.model_validate(fields)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, each['loc'])) or 'definition'}: {_problem(each)}"
            for each in error.errors(include_url=False)
        )
        raise InvalidInput(f"Invalid agent definition. {problems}{'' if problems.endswith('?') else '.'}") from error


def _problem(found: ErrorDetails) -> str:
    """What is wrong with a field, in words."""
    if found["type"] != "extra_forbidden":
        return found["msg"].removeprefix("Value error, ")
    *above, name = map(str, found["loc"])
    model: Any = AgentDefinition
    for each in above:
        types: tuple[Any, ...] = (model.model_fields[each].annotation,) if each in model.model_fields else ()
        models = [kind for given in types for kind in (given, *get_args(given)) if hasattr(kind, "model_fields")]
        if not models:
            return "there is no such field"
        model = models[0]
    near = next(iter(nearest(name, model.model_fields)), None)
    return "there is no such field" + (f"; did you mean {near!r}?" if near is not None else "")


_add = insert_into(agents, "id, organization_id, definition, urgent, zone, created_at")
_add_mind = insert_into(minds, "agent_id")
_agent = (*columns(entities, "id, organization_id, kind, handle, name"), agents.c.definition, agents.c.version)
_get = statement(
    select(*_agent, organizations.c.settings, reflecting.c.cycle)
    .join(agents, agents.c.id == entities.c.id)
    .join(organizations, organizations.c.id == agents.c.organization_id)
    .outerjoin(reflecting, reflecting.c.agent_id == agents.c.id)
    .where(agents.c.id == bindparam("id"))
)
_edit = update_where(agents, "id", set_="definition, urgent, zone", version=agents.c.version + 1)
_set_status = statement(
    update(agents)
    .where(agents.c.id == bindparam("agent"), agents.c.status != "dead")
    # A person's decision replaces that of its budget.
    .values(status=bindparam("new"), held_by=None, held_until=None)
)

_interrupt = statement(
    # As after a shutdown: resuming the cycle does not count as an attempt.
    update(cycles).where(cycles.c.agent_id == bindparam("agent"), cycles.c.number.is_(None)).values(handed_back=1)
)


def create(
    tx: Tx,
    policy: DefinitionPolicy,
    organization_id: OrganizationId,
    *,
    name: str,
    handle: str,
    definition: AgentDefinition,
    id: AgentId | None = None,
) -> Agent:
    """Create a sleeping agent in no space. Raises `NotAllowed` if the policy refuses the definition."""
    policy.check(tx, organization_id, None, definition)
    policy.check_possible(None, definition)
    entity = directory.create_entity(tx, organization_id, "agent", name=name, handle=handle, id=id)
    tx.run(
        _add,
        id=entity.id,
        organization_id=organization_id,
        definition=definition.model_dump_json(exclude_defaults=True),
        urgent=definition.urgent.model_dump_json(exclude_defaults=True),
        zone=definition.zone,
        created_at=tx.now,
    )
    tx.run(_add_mind, agent_id=entity.id)
    leases.create(tx, entity.id)
    if definition.heartbeat is not None:
        agenda.keep_heartbeat(tx, entity.id, definition.heartbeat)
    if definition.reflection.is_on:
        reflection.keep_reflecting(tx, entity.id, on=True)
    return Agent(entity, definition, 1, reflects=definition.reflection.is_on)


def get(tx: Tx, agent_id: AgentId) -> Agent:
    *entity, definition, version, settings, reflects = existing(tx.one(_get, id=agent_id), "agent", agent_id)
    shared = budgets.budget_in(json.loads(settings))
    return Agent(Entity(*entity), AgentDefinition.load(definition), version, shared, reflects is not None)


_lock = statement(select(agents.c.id).where(agents.c.id == bindparam("id")).with_for_update(key_share=True))
_life = statement(
    select(agents.c.created_at, minds.c.cycle_count)
    .join(minds, minds.c.agent_id == agents.c.id)
    .where(agents.c.id == bindparam("id"))
)


def lock(tx: Tx, agent_id: AgentId) -> None:
    """Lock the agent: nobody else edits it before this transaction ends."""
    tx.one(_lock, id=agent_id)


@dataclass(frozen=True, slots=True)
class Life:
    """How long an agent has existed."""

    created_at: Instant
    cycles: int


def life(tx: Tx, agent_id: AgentId) -> Life:
    created_at, cycles_lived = existing(tx.one(_life, id=agent_id), "agent", agent_id)
    return Life(Instant(created_at), cycles_lived)


def edit(tx: Tx, policy: DefinitionPolicy, agent_id: AgentId, definition: AgentDefinition) -> Agent:
    """Change the definition; a new era begins with the next cycle. An agent whose budget is raised resumes.

    Raises `NotAllowed` if the policy refuses the change.
    """
    agent = get(tx, agent_id)
    before = agent.definition
    policy.check(tx, agent.entity.organization_id, before, definition)
    policy.check_possible(before, definition)
    tx.run(
        _edit,
        id=agent_id,
        definition=definition.model_dump_json(exclude_defaults=True),
        urgent=definition.urgent.model_dump_json(exclude_defaults=True),
        zone=definition.zone,
    )
    if (before.tools, before.mcp) != (definition.tools, definition.mcp):
        grants.revoke_all(tx, agent_id)  # a tool of the same name may now do something else
    agenda.keep_heartbeat(tx, agent_id, definition.heartbeat)
    budgets.reconsider(tx, agent_id, before.budget, definition.budget)
    parking.retry(tx, agent_id)
    if agent.reflects or definition.reflection.is_on:
        reflection.keep_reflecting(tx, agent_id, on=definition.reflection.is_on)
    return get(tx, agent_id)


def suspend(tx: Tx, agent_id: AgentId) -> None:
    """Suspend the agent until it is resumed. Its events and plans wait; a running cycle stops where it is."""
    _change_status(tx, agent_id, "suspended")
    floor.hand_over(tx, agent_id)
    epoch = leases.seize(tx, agent_id)
    agenda.hold(tx, agent_id)
    tx.run(_interrupt, agent=agent_id)
    statuses.show_where_someone_waits(tx, agent_id, "suspended")
    tx.announce(agent_topic(agent_id), AgentStatus(agent_id, "suspended", epoch).to_payload())


def resume(tx: Tx, agent_id: AgentId) -> None:
    """Let the agent think again, and wake it."""
    _change_status(tx, agent_id, "active")
    agenda.release(tx, agent_id)
    statuses.clear(tx, agent_id, ["suspended", "budget"])
    tx.announce(WAKE, {"agents": [agent_id]})


_hurry_cycle = statement(
    # As after a shutdown: resuming the cycle does not count as an attempt.
    update(cycles)
    .where(cycles.c.agent_id == bindparam("agent"), cycles.c.number.is_(None), cycles.c.not_before > 0)
    .values(not_before=0, handed_back=1)
)


def try_again(tx: Tx, agent_id: AgentId, space_id: SpaceId | None = None) -> None:
    """Let the agent retry now what it could not do: end its parking, and requeue the events that were set aside and
    that somebody waits for, in that space or everywhere. What a cut-off cycle left unanswered is asked again."""
    get(tx, agent_id)
    parking.retry(tx, agent_id)
    tx.run(_hurry_cycle, agent=agent_id)
    ask_again.ask_about_cut_short(tx, agent_id, space_id)
    delivery.try_again(tx, agent_id, space_id)


def delete(tx: Tx, agent_id: AgentId) -> None:
    """Delete the agent: it never wakes again. Its history stays; a running cycle ends with a note that says so."""
    from denizen.cycles.records import find_open

    _change_status(tx, agent_id, "dead")
    floor.hand_over(tx, agent_id)
    epoch = leases.seize(tx, agent_id)
    calls.cancel(tx, agent_id)
    statuses.show_where_someone_waits(tx, agent_id, "deleted")
    statuses.clear(tx, agent_id, [cause for cause in statuses.CAUSES if cause != "deleted"])
    found = find_open(tx, agent_id)
    if found is not None:
        _end_with_note(tx, agent_id, epoch, found.cycle)
    agenda.clear(tx, agent_id)
    tx.announce(agent_topic(agent_id), AgentStatus(agent_id, "dead", epoch).to_payload())


def _end_with_note(tx: Tx, agent_id: AgentId, epoch: int, cycle: OpenCycle) -> None:
    # Imported here: of all that is done with agents, only this needs the think cycle.
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    from denizen.cycles.calling import answer_open_calls
    from denizen.cycles.ending import Ending, end_cycle_unfenced

    holder = Lease(agent_id, "", epoch)
    seq = cycle.entries[-1].seq + 1
    answered = answer_open_calls(cycle, seq, "Not finished: this agent was deleted.")
    after = [answered] if answered is not None else []
    note = ModelRequest(parts=[UserPromptPart("[NOTE] This agent was deleted. Its last cycle ended here.")])
    after.append(log.entry(seq + len(after), cycle.id, "note", note))
    end_cycle_unfenced(
        tx,
        holder,
        cycle,
        Ending("deleted", "Deleted.", tuple(after), cycle.steps, spent=_spent(cycle), outcome="failed"),
    )


def _spent(cycle: OpenCycle) -> Charge:
    used = sum((usage_of(response) for response in cycle.responses), Usage())
    return Charge(None, used.input, used.output, used.cache_read, used.cache_write)


def _change_status(tx: Tx, agent_id: AgentId, new: str) -> None:
    if tx.run(_set_status, agent=agent_id, new=new) == 0:
        raise NotFound("living agent", agent_id)


_state = (agents.c.status, cycles.c.outcome, leases_table.c.until)
_with_state = agents.join(leases_table, leases_table.c.agent_id == agents.c.id).outerjoin(
    cycles, (cycles.c.agent_id == agents.c.id) & cycles.c.number.is_(None)
)
_doing = statement(select(*_state).select_from(_with_state).where(agents.c.id == bindparam("id")))
_of_organization = statement(
    select(*_agent, *_state)
    .select_from(_with_state.join(entities, entities.c.id == agents.c.id))
    .where(agents.c.organization_id == bindparam("organization_id"), agents.c.status != "dead")
    .order_by(agents.c.id)
)
_page = statement(
    select(*_agent, *_state, minds.c.last_cycle_at)
    .select_from(_with_state.join(entities, entities.c.id == agents.c.id).join(minds, minds.c.agent_id == agents.c.id))
    .where(
        # By handle, because an organization's entities are indexed by it.
        entities.c.organization_id == bindparam("organization_id"),
        entities.c.handle > bindparam("after"),
        agents.c.status != "dead",
    )
    .order_by(entities.c.handle)
    .limit(bindparam("limit"))
)
_in_space = statement(
    select(agents.c.id, leases_table.c.epoch, *_state)
    .select_from(_with_state.join(memberships, memberships.c.entity_id == agents.c.id))
    .where(memberships.c.space_id == bindparam("space_id"))
    .order_by(agents.c.id)
)
_their_spaces = select(memberships.c.space_id).where(memberships.c.entity_id == bindparam("entity_id"))
_around = statement(
    select(agents.c.id, leases_table.c.epoch, *_state)
    .select_from(_with_state)
    .where(agents.c.id.in_(select(memberships.c.entity_id).where(memberships.c.space_id.in_(_their_spaces))))
    .order_by(agents.c.id)
)
_alone = statement(
    select(agents.c.id, leases_table.c.epoch, *_state).select_from(_with_state).where(agents.c.id == bindparam("id"))
)


@dataclass(frozen=True, slots=True)
class Presence:
    """An agent in a space: its status, and the epoch of its last cycle."""

    agent_id: AgentId
    epoch: int
    status: Status


def status(tx: Tx, agent_id: AgentId) -> Status:
    """What the agent is doing. Alive means thinking, and expires with the lease: nobody thinks for ever."""
    return _status(tx, *existing(tx.one(_doing, id=agent_id), "agent", agent_id))


def living_agents(tx: Tx, organization_id: OrganizationId) -> list[tuple[Agent, Status]]:
    """Every agent of the organization that is not dead, and what it is doing."""
    return [_with_status(tx, row) for row in tx.all(_of_organization, organization_id=organization_id)]


@dataclass(frozen=True, slots=True)
class AgentListing:
    """An agent in a list of them."""

    agent: Agent
    status: Status
    last_cycle_at: Instant | None
    """When its last cycle ended; None if there was none."""


def living_after(tx: Tx, organization_id: OrganizationId, after: str, *, limit: int) -> list[AgentListing]:
    """The living agents whose handles come after `after`, in the order of their handles."""
    rows = tx.all(_page, organization_id=organization_id, after=after, limit=limit)
    return [AgentListing(*_with_status(tx, row), Instant(ended_at) if ended_at else None) for *row, ended_at in rows]


def _with_status(tx: Tx, row: Sequence[Any]) -> tuple[Agent, Status]:
    *entity, definition, version, stored, open_cycle, until = row
    agent = Agent(Entity(*entity), AgentDefinition.load(definition), version)
    return agent, _status(tx, stored, open_cycle, until)


def present(tx: Tx, space_id: SpaceId) -> list[Presence]:
    """The agents that are members of the space."""
    return [_as_presence(tx, *row) for row in tx.all(_in_space, space_id=space_id)]


def around(tx: Tx, entity_id: EntityId) -> list[Presence]:
    """The agents in the spaces of this entity."""
    return [_as_presence(tx, *row) for row in tx.all(_around, entity_id=entity_id)]


def presence(tx: Tx, agent_id: AgentId) -> Presence:
    return _as_presence(tx, *existing(tx.one(_alone, id=agent_id), "agent", agent_id))


def _as_presence(tx: Tx, id: AgentId, epoch: int, stored: str, open_cycle: str | None, until: int) -> Presence:
    return Presence(id, epoch, _status(tx, stored, open_cycle, until))


def _status(tx: Tx, stored: str, open_cycle: str | None, until: int) -> Status:
    if stored == "dead":
        return "dead"
    if stored == "suspended":
        return "suspended"
    if open_cycle == "paused":
        return "paused"
    return "alive" if open_cycle is not None and until >= tx.now else "sleeping"


_due_cycles = select(cycles.c.agent_id).where(
    cycles.c.number.is_(None), cycles.c.outcome == "open", cycles.c.not_before <= bindparam("now")
)
_held_up = (
    select(cycles.c.agent_id)
    .where(cycles.c.number.is_(None), cycles.c.not_before > bindparam("now"))
    .union_all(pausing.WAITING)
)


def _due(who: Any) -> Any:
    return (
        select(agents.c.id, leases_table.c.holder, leases_table.c.until)
        .join(leases_table, leases_table.c.agent_id == agents.c.id)
        .where(agents.c.status == "active", parking.MAY_THINK, agents.c.id.in_(who))
    )


_with_events = statement(_due(delivery.WITH_DUE_EVENTS).where(agents.c.id.not_in(_held_up)))
_with_cycles = statement(_due(_due_cycles.union_all(pausing.READY)))


@dataclass(frozen=True, slots=True)
class DueAgent:
    """An agent with something to do."""

    agent_id: AgentId
    holder: str | None
    """The holder of its lease, if one is still valid."""


def due(tx: Tx) -> list[DueAgent]:
    """The agents that have something to do now: an event that wakes, or a cycle to resume."""
    rows = [*tx.all(_with_events, now=tx.now), *tx.all(_with_cycles, now=tx.now)]
    leases = {agent_id: (holder, until) for agent_id, holder, until in rows}
    return [DueAgent(agent_id, holder if until >= tx.now else None) for agent_id, (holder, until) in leases.items()]


_LONGEST_BACK_OFF: Final = max(BACK_OFF_SECONDS)
_far_event = (events.c.state != "done", events.c.state == "pending", events.c.not_before > bindparam("latest"))
_far_cycle = (cycles.c.number.is_(None), cycles.c.not_before > bindparam("latest"))
_far_probe = (agents.c.parked_cause.is_not(None), agents.c.parked_until > bindparam("latest_probe"))
_far_back_offs = statement(
    select(events.c.agent_id)
    .where(*_far_event)
    .union(select(cycles.c.agent_id).where(*_far_cycle), select(agents.c.id).where(*_far_probe))
)
# Not 0: a cycle that was put off was not cut off.
_end_far_events = statement(update(events).where(*_far_event).values(not_before=bindparam("now")))
_end_far_cycles = statement(update(cycles).where(*_far_cycle).values(not_before=bindparam("now")))
_end_far_probes = statement(update(agents).where(*_far_probe).values(parked_until=bindparam("now")))


def far_back_offs(tx: Tx) -> list[AgentId]:
    """The agents that are put off for longer than any back-off: the clock was set back since."""
    return [AgentId(each) for each in values(tx, _far_back_offs, **_latest(tx))]


def end_far_back_offs(tx: Tx) -> None:
    """Make everything that is put off for longer than any back-off due now."""
    woken, latest = far_back_offs(tx), _latest(tx)
    tx.run(_end_far_events, now=tx.now, latest=latest["latest"])
    tx.run(_end_far_cycles, now=tx.now, latest=latest["latest"])
    tx.run(_end_far_probes, now=tx.now, latest_probe=latest["latest_probe"])
    tx.announce(WAKE, wake_payload(woken))


def _latest(tx: Tx) -> dict[str, int]:
    longest = {"latest": _LONGEST_BACK_OFF, "latest_probe": max(PROBE_SECONDS)}
    return {name: tx.now + seconds * SECOND for name, seconds in longest.items()}


def tell_unable(tx: Tx, agent_id: AgentId, error: Exception) -> None:
    """Show in every space where somebody waits for the agent why it cannot think in this process. It is not parked,
    because another process may be able to run it."""
    try:
        model = get(tx, agent_id).definition.model
    except (NotFound, ValidationError):
        model = ""
    trouble = classify(error, "" if model == "default" else model)
    statuses.clear(tx, agent_id, [cause for cause in ("failing", *PARKING_CAUSES) if cause != trouble.cause])
    statuses.show_where_someone_waits(tx, agent_id, trouble.cause, retry_at=None, **trouble.detail)
