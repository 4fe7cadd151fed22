"""Lists, creates, changes, suspends and deletes the agents of the caller's organization; lists tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Final, TypeVar
from uuid import UUID, uuid5

from fastapi import Query
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from denizen.access import roles
from denizen.agents import fitness, managing, registry
from denizen.agents.definition import AgentDefinition
from denizen.agents.registry import Agent
from denizen.agents.restrictions import DefinitionPolicy
from denizen.agents.revising import revised
from denizen.cycles import budgets
from denizen.errors import HandleTaken
from denizen.ids import AgentId
from denizen.server.auth import Admin, Caller, Person
from denizen.server.idempotency import IdempotencyKey
from denizen.server.router import new_router
from denizen.server.shapes.agents import (
    CreateAgent,
    EditAgent,
    ForkAgent,
    TryAgain,
    agent_detail_out,
    agent_out,
    listed_agent_out,
)
from denizen.shapes.agents import AgentDetail, AgentOut, AgentPage, ToolList, ToolOut
from denizen.storage.database import Tx, storable

router = new_router()

T = TypeVar("T")

LONGEST_PAGE: Final = 200
_KEYS: Final = UUID("c9a5b2e4-3f0d-4b7e-8a54-1f6f0b7f9d20")
"""Under which idempotency keys become the ids of agents."""


@router.get("/api/agents", summary="List agents")
async def list_agents(
    caller: Person,
    after: Annotated[str, Query(max_length=100, description="From behind the agent of this handle on.")] = "",
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = LONGEST_PAGE,
) -> AgentPage:
    """The agents of your organization that were not deleted, ordered by handle."""
    home = caller.entity.organization_id
    found = await caller.runtime.db.read(
        registry.living_after, home, storable(after).removeprefix("@"), limit=limit + 1
    )
    unable = await caller.runtime.db.read(fitness.unable_of_organization, home)
    page = [listed_agent_out(each, unable.get(each.agent.id)) for each in found[:limit]]
    return AgentPage(agents=page, next=page[-1].handle if len(found) > limit else None)


@router.get("/api/tools", summary="List tools that agents can use by name")
async def list_tools(caller: Person) -> ToolList:
    """The tools of this server that your organization may use, in addition to the built-in ones. HTTP requests,
    questions and MCP are part of an agent's definition.
    """
    found = await caller.runtime.tools_for(caller.entity.organization_id)
    return ToolList(tools=[ToolOut(name=each.name, description=each.definition.description or "") for each in found])


@router.post("/api/agents", status_code=201, summary="Create an agent")
async def create_agent(caller: Admin, wanted: CreateAgent, key: IdempotencyKey = None) -> AgentDetail:
    """The agent starts asleep, in the given spaces. Only owners can define parts that start programs or reach
    private addresses, or send a secret to a host that is not in `secret_hosts`. In organizations other than the
    first, the server's settings must allow programs, private addresses and Python tools.
    """
    runtime = caller.runtime
    home = caller.entity.organization_id
    tools = frozenset(each.name for each in await runtime.tools_for(home))
    await runtime.agents.check_prices(home, wanted.definition)
    policy = runtime.definition_policy
    return await _once(lambda: runtime.db.write(_create, policy, caller, wanted, key, tools), key)


async def _once(create: Callable[[], Awaitable[T]], key: str | None) -> T:
    """Creates an agent. With a key, a taken handle is tried again: the same request may have been sent twice at once,
    and then the agent exists now.
    """
    try:
        return await create()
    except HandleTaken:
        if key is None:
            raise
        return await create()


def _id_for(caller: Caller, what: str, key: str | None) -> AgentId | None:
    """The id of the agent that is created with this key."""
    return None if key is None else AgentId(str(uuid5(_KEYS, f"{caller.entity.id} {what} {key}")))


def _create(
    tx: Tx, policy: DefinitionPolicy, caller: Caller, wanted: CreateAgent, key: str | None, tools: frozenset[str]
) -> AgentDetail:
    agent = managing.create(
        tx,
        caller.requester,
        policy,
        caller.entity.organization_id,
        name=wanted.name,
        handle=wanted.chosen_handle,
        definition=wanted.definition,
        spaces=wanted.spaces,
        id=_id_for(caller, "agent", key),
        known_tools=tools,
    )
    return _detail(tx, agent, caller)


@router.get("/api/agents/{agent_id}", summary="Get an agent")
async def get_agent(caller: Person, agent_id: str) -> AgentDetail:
    """Returns its status; for admins, also its definition. `agent_id` is an id or an `@handle`."""
    return await caller.runtime.db.read(_one, agent_id, caller)


def _one(tx: Tx, agent_id: str, caller: Caller) -> AgentDetail:
    return _detail(tx, managing.find(tx, caller.requester, agent_id), caller)


def _detail(tx: Tx, agent: Agent, caller: Caller) -> AgentDetail:
    lived, resting = registry.life(tx, agent.id), budgets.resting(tx, agent.id)
    is_admin = roles.reaches(caller.role, "admin")
    unable = fitness.unable(tx, agent.id)
    status = registry.status(tx, agent.id)
    return agent_detail_out(agent, status, lived, resting, with_definition=is_admin, unable=unable)


@router.patch("/api/agents/{agent_id}", summary="Change an agent")
async def edit_agent(caller: Admin, agent_id: str, changes: EditAgent) -> AgentDetail:
    """Fields that are not sent stay unchanged; null resets a field to its default. A new era begins with the agent's
    next cycle. With `version`, the change is refused with `changed_meanwhile` if the agent has another one by now.

    Parts that start programs or reach private addresses can be kept or removed; only owners can add or change them, or
    send a secret to a host that is not in `secret_hosts`. Only the person who pays for an agent can set that they do.
    """
    runtime = caller.runtime
    name, change = changes.name, partial(revised, changes=changes.fields)
    tools = frozenset(each.name for each in await runtime.tools_for(caller.entity.organization_id))
    try:
        before = (await caller.read(managing.find, agent_id)).definition
        await runtime.agents.check_prices(caller.entity.organization_id, change(before), before=before)
        given = (name, tools, changes.version)
        return await runtime.db.write(_edit, runtime.definition_policy, agent_id, caller, change, *given)
    except ValidationError as error:
        found = [{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_url=False)]
        raise RequestValidationError(found) from None


def _edit(
    tx: Tx,
    policy: DefinitionPolicy,
    agent_id: str,
    caller: Caller,
    change: Callable[[AgentDefinition], AgentDefinition],
    name: str | None,
    tools: frozenset[str],
    version: int | None,
) -> AgentDetail:
    agent = managing.edit(tx, caller.requester, policy, agent_id, change, name=name, known_tools=tools, version=version)
    return _detail(tx, agent, caller)


@router.post("/api/agents/{agent_id}/suspend", summary="Suspend an agent")
async def suspend_agent(caller: Admin, agent_id: str) -> AgentOut:
    """It stops thinking until it is resumed. New events wait in its inbox. A running cycle stops, and continues
    from there later.
    """
    return await caller.runtime.db.write(_suspend, agent_id, caller)


@router.post("/api/agents/{agent_id}/resume", summary="Resume an agent")
async def resume_agent(caller: Admin, agent_id: str) -> AgentOut:
    """Wakes the agent. If its budget is still used up, it is suspended again."""
    return await caller.runtime.db.write(_resume, agent_id, caller)


@router.post(
    "/api/agents/{agent_id}/try-again",
    summary="Let an agent try again now",
    openapi_extra={"x-who": "people who are in the space that they name; everywhere: admins and owners"},
)
async def try_again(caller: Person, agent_id: str, where: TryAgain) -> AgentOut:
    """An agent that cannot think tries again at once, and messages that were set aside are taken up again: those of
    one space, or of all spaces. If nothing has changed, it fails again, and its spaces show why.
    """
    return await caller.runtime.db.write(_try_again, agent_id, caller, where.space)


def _try_again(tx: Tx, agent_id: str, caller: Caller, space_id: str | None) -> AgentOut:
    return _shown(tx, managing.try_again(tx, caller.requester, agent_id, space_id))


def _suspend(tx: Tx, agent_id: str, caller: Caller) -> AgentOut:
    return _shown(tx, managing.suspend(tx, caller.requester, agent_id))


def _resume(tx: Tx, agent_id: str, caller: Caller) -> AgentOut:
    return _shown(tx, managing.resume(tx, caller.requester, agent_id))


def _shown(tx: Tx, agent: Agent) -> AgentOut:
    return agent_out(agent, registry.status(tx, agent.id), fitness.unable(tx, agent.id))


@router.delete("/api/agents/{agent_id}", status_code=204, summary="Delete an agent")
async def delete_agent(caller: Admin, agent_id: str) -> None:
    """The agent never wakes again. Its history can still be read by its id, and its handle is not reused."""
    await caller.runtime.agents.delete(AgentId(agent_id), by=caller.requester)


@router.post("/api/agents/{agent_id}/fork", status_code=201, summary="Fork an agent")
async def fork_agent(caller: Admin, agent_id: str, wanted: ForkAgent, key: IdempotencyKey = None) -> AgentDetail:
    """Creates a new agent with the history of this one, asleep and without spaces. This agent does not change. Only
    owners can fork an agent with parts that only owners can define.
    """
    runtime = caller.runtime
    original = (await caller.read(managing.find, agent_id, also_dead=True)).id
    made = await _once(
        lambda: runtime.db.write(
            managing.fork,
            caller.requester,
            runtime.definition_policy,
            original,
            handle=wanted.handle,
            at=wanted.at,
            name=wanted.name,
            id=_id_for(caller, f"fork of {original}", key),
        ),
        key,
    )
    return await runtime.db.read(_detail, made, caller)
