"""Creating, changing, forking, suspending, deleting and waking agents, with permission checks and audit entries.

The HTTP API and `denizen.agents` call the same functions, in one transaction each. Which parts of a definition the
requester may write is in `restrictions`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace

from pydantic import JsonValue

from denizen.access import audit
from denizen.access.requesters import Requester, find_agent, find_managed_agent, find_space
from denizen.agents import registry
from denizen.agents.definition import AgentDefinition, changed_fields
from denizen.agents.registry import Agent
from denizen.agents.restrictions import DefinitionPolicy
from denizen.errors import ChangedMeanwhile, IdempotencyKeyReused, InvalidInput, NotAllowed, NotFound
from denizen.files import attaching
from denizen.ids import AgentId, OrganizationId
from denizen.inbox import delivery
from denizen.inbox.delivery import Delivery
from denizen.inbox.events import FILES
from denizen.nearest import nearest
from denizen.spaces import directory
from denizen.storage.database import Tx, long_running, storable


def find(tx: Tx, by: Requester, named: str, *, also_dead: bool = False) -> Agent:
    """The agent that `requesters.find_agent` finds."""
    return registry.get(tx, find_agent(tx, by, named, also_dead=also_dead))


def create(
    tx: Tx,
    by: Requester,
    policy: DefinitionPolicy,
    organization_id: OrganizationId,
    *,
    name: str,
    handle: str,
    definition: AgentDefinition,
    spaces: Iterable[str] = (),
    id: AgentId | None = None,
    known_tools: Collection[str] | None = None,
) -> Agent:
    """Create a sleeping agent in these spaces, which the requester must be in. For admins.

    Idempotent by `id`; raises `IdempotencyKeyReused` if it is the id of another agent. Raises `NotAllowed` for a
    definition that the requester may not write, and `InvalidInput` for a tool that is not among the `known_tools`.
    """
    by.require("admin")
    by.require_organization(organization_id)
    if (made := _made_before(tx, id)) is not None:
        if (made.name, made.entity.handle, made.definition) != (name, handle, definition):
            raise IdempotencyKeyReused
        return made
    allowed = policy.for_requester(tx, by)
    agent = registry.create(tx, allowed, organization_id, name=name, handle=handle, definition=definition, id=id)
    if known_tools is not None:
        _check_tools(definition, known_tools)
    for space_id in dict.fromkeys(spaces):
        try:
            directory.join(tx, find_space(tx, by, space_id).id, agent.id)
        except NotFound as error:
            raise InvalidInput(f"spaces: you are in no space {space_id!r}.") from error
    audit.record(tx, organization_id, by.actor, "create_agent", agent.id)
    return agent


def edit(
    tx: Tx,
    by: Requester,
    policy: DefinitionPolicy,
    named: str,
    change: Callable[[AgentDefinition], AgentDefinition],
    *,
    name: str | None = None,
    known_tools: Collection[str] | None = None,
    version: int | None = None,
) -> Agent:
    """Change the agent's definition, and its name if one is given. A new era begins with its next cycle. For admins.

    Raises `NotAllowed` for a change that the requester may not make, `InvalidInput` for a new tool that is not among
    the `known_tools`, and `ChangedMeanwhile` if the agent no longer has the `version` that the requester has seen.
    """
    registry.lock(tx, find_managed_agent(tx, by, named))
    agent = find(tx, by, named)
    if version is not None and version != agent.version:
        raise ChangedMeanwhile(
            f"@{agent.entity.handle} was changed meanwhile: it has version {agent.version}, not {version}. Read it "
            "again, then repeat your change."
        )
    definition = change(agent.definition)
    fields: list[JsonValue] = [*changed_fields(agent.definition, definition)]
    if name is not None and name != agent.name:
        directory.rename(tx, agent.id, name)
        fields.append("name")
    if fields:
        # For a new name as well: it is part of the self.
        registry.edit(tx, policy.for_requester(tx, by), agent.id, definition)
        audit.record(tx, agent.entity.organization_id, by.actor, "edit_agent", agent.id, fields=fields)
    if known_tools is not None:
        _check_tools(definition, {*known_tools, *_named_tools(agent.definition)})
    return registry.get(tx, agent.id)


@long_running
def fork(
    tx: Tx,
    by: Requester,
    policy: DefinitionPolicy,
    named: str,
    *,
    handle: str | None = None,
    at: int | None = None,
    name: str | None = None,
    id: AgentId | None = None,
) -> Agent:
    """Create an agent with the history of this one up to cycle `at`. The copy is in no space. For admins.

    Idempotent by `id`. Raises `NotAllowed` if the requester may not write the definition.
    """
    # Imported here: commands that show and change agents need nothing that reads histories.
    from denizen.agents import forking

    by.require("admin")
    original = find(tx, by, named, also_dead=True)
    if (made := _made_before(tx, id)) is not None:
        if (made.entity.handle, made.name) != (handle or made.entity.handle, name or original.name):
            raise IdempotencyKeyReused
        return made
    made = forking.fork(tx, policy.for_requester(tx, by), original.id, handle=handle, at=at, name=name, id=id)
    audit.record(tx, original.entity.organization_id, by.actor, "fork_agent", original.id, fork=made.id)
    return made


def _made_before(tx: Tx, id: AgentId | None) -> Agent | None:
    """The agent of this id, if an earlier request has created it."""
    try:
        return None if id is None else registry.get(tx, id)
    except NotFound:
        return None


def _check_tools(definition: AgentDefinition, known: Collection[str]) -> None:
    for name in _named_tools(definition):
        if name not in known:
            near = next(iter(nearest(name, known)), None)
            hint = f" Did you mean {near!r}?" if near else ""
            raise InvalidInput(f"tools: this server has no tool {name!r}.{hint}")


def _named_tools(definition: AgentDefinition) -> list[str]:
    return [each for each in definition.tools if isinstance(each, str)]


def suspend(tx: Tx, by: Requester, named: str) -> Agent:
    """Stop the agent from thinking until it is resumed. Its events wait; a running cycle stops where it is."""
    agent = registry.get(tx, find_managed_agent(tx, by, named))
    registry.suspend(tx, agent.id)
    audit.record(tx, agent.entity.organization_id, by.actor, "suspend_agent", agent.id)
    return agent


def resume(tx: Tx, by: Requester, named: str) -> Agent:
    """Let the agent think again, and wake it."""
    agent = registry.get(tx, find_managed_agent(tx, by, named))
    registry.resume(tx, agent.id)
    audit.record(tx, agent.entity.organization_id, by.actor, "resume_agent", agent.id)
    return agent


def try_again(tx: Tx, by: Requester, named: str, space_id: str | None = None) -> Agent:
    """Let the agent retry now what it could not do, in a space that the requester and the agent are in.

    Without a space everywhere: for admins.
    """
    by.require("member")
    agent = find(tx, by, named)
    if space_id is not None:
        space = find_space(tx, by, space_id)
        if not directory.is_member(tx, space.id, agent.id):
            raise InvalidInput(f"space: @{agent.entity.handle} is not in this space.")
        registry.try_again(tx, agent.id, space.id)
    elif by.reaches("admin"):
        registry.try_again(tx, agent.id)
    else:
        raise NotAllowed("Name a space that you and the agent are in. Only admins can try again everywhere.")
    return agent


def delete(tx: Tx, by: Requester, named: str) -> None:
    """Delete the agent: it never wakes again. Its history stays; the files that it got from tools and services go."""
    agent = registry.get(tx, find_managed_agent(tx, by, named))
    registry.delete(tx, agent.id)
    attaching.remove_files_of_agent(tx, agent.id)
    audit.record(tx, agent.entity.organization_id, by.actor, "delete_agent", agent.id)


def requeue(tx: Tx, by: Requester, named: str, event_id: str) -> None:
    """Let a dead event of the agent wait as if it were new. For admins."""
    delivery.requeue(tx, find_managed_agent(tx, by, named), storable(event_id))


def mark_urgent(tx: Tx, by: Requester, named: str, event_id: str) -> None:
    """Let the agent see a waiting event at its next step. For admins."""
    delivery.mark_urgent(tx, find_managed_agent(tx, by, named), storable(event_id))


def check_may_trigger(by: Requester) -> None:
    """Raises `NotAllowed` for guests: they write in the spaces that they are in, and reach no other agent."""
    if by.role == "guest":
        raise NotAllowed("Guests cannot send events to agents. Write to them in a space.")


def trigger(
    tx: Tx,
    by: Requester,
    named: str,
    id: str,
    payload: Mapping[str, JsonValue],
    *,
    urgent: bool = False,
    must_match: bool = False,
    files: Sequence[str] = (),
) -> None:
    """Put an event from outside into the agent's inbox, and wake the agent. Idempotent by `id`.

    `files` are ids of finished uploads: the agent has them from now on. With `must_match`, raises
    `IdempotencyKeyReused` if the inbox has another event with this `id`.
    """
    check_may_trigger(by)
    agent = find(tx, by, named)
    stored = delivery.find(tx, agent.id, id)
    if stored is None:
        event = Delivery(agent.id, id, "service_trigger", tx.now, urgent=urgent, payload=payload)
        if files:
            uploader = by.optional_entity_id or agent.id
            given = attaching.give(tx, agent.id, attaching.attachable(tx, uploader, files))
            event = replace(event, payload={**payload, FILES: [asdict(each) for each in given]})
        delivery.deliver(tx, [event])
    elif must_match and {key: value for key, value in stored.payload.items() if key != FILES} != payload:
        raise IdempotencyKeyReused
