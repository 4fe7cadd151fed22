"""The agents of the caller's organization: seen, made, changed, suspended, deleted; and the tools there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final
from uuid import UUID, uuid5

from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import JsonValue, ValidationError

from denizen.access import audit, roles
from denizen.agents import chatting, fitness, forking, managing, registry
from denizen.agents.definition import AgentDefinition, changed_fields
from denizen.agents.registry import Agent
from denizen.agents.restrictions import DefinitionPolicy
from denizen.agents.revising import revised
from denizen.cycles import budgets
from denizen.errors import HandleTaken, InvalidInput, NotAllowed, NotAMember, NotFound
from denizen.ids import AgentId
from denizen.nearest import nearest
from denizen.server.auth import Admin, Caller, Person
from denizen.server.context import context_of
from denizen.server.idempotency import IdempotencyKey
from denizen.server.problems import Problem
from denizen.server.router import new_router
from denizen.server.routes.spaces import enter
from denizen.server.routes.spaces import shown as shown_space
from denizen.server.routes.triggers import find_agent
from denizen.server.schemas import agent_out
from denizen.server.shapes.agents import CreateAgent, EditAgent, ForkAgent, TryAgain, agent_detail_out, listed_agent_out
from denizen.shapes.agents import AgentDetail, AgentOut, AgentPage, ToolList, ToolOut
from denizen.shapes.spaces import SpaceOut
from denizen.spaces import directory
from denizen.storage.database import Tx, storable

router = new_router()

LONGEST_PAGE: Final = 200
_KEYS: Final = UUID("c9a5b2e4-3f0d-4b7e-8a54-1f6f0b7f9d20")
"""Under which idempotency keys become the ids of agents."""


@router.get("/api/agents", summary="The agents of your organization")
async def list_agents(
    request: Request,
    caller: Person,
    after: Annotated[str, Query(max_length=100, description="From behind the agent of this handle on.")] = "",
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = LONGEST_PAGE,
) -> AgentPage:
    """Those that are not dead, in the order of their handles."""
    read = context_of(request).runtime.db.read
    home = caller.entity.organization_id
    found = await read(registry.living_after, home, storable(after).removeprefix("@"), limit=limit + 1)
    unable = await read(fitness.unable_of_organization, home)
    page = [listed_agent_out(each, unable.get(each.agent.id)) for each in found[:limit]]
    return AgentPage(agents=page, next=page[-1].handle if len(found) > limit else None)


@router.get("/api/tools", summary="The tools that agents can be given by name")
async def list_tools(request: Request, caller: Person) -> ToolList:
    """Those of this server that your organization may use, beside what every agent has. HTTP requests, questions and
    MCP are part of a definition."""
    found = await context_of(request).runtime.tools_for(caller.entity.organization_id)
    return ToolList(tools=[ToolOut(name=each.name, description=each.definition.description or "") for each in found])


@router.post("/api/agents", status_code=201, summary="Make an agent")
async def create_agent(request: Request, caller: Admin, wanted: CreateAgent, key: IdempotencyKey = None) -> AgentDetail:
    """It is asleep, in the spaces that are named. What starts programs or reaches private addresses is for owners, and
    so is where a secret is sent, but for hosts that they named in `secret_hosts`. In another organization than the
    first, the settings of the server have to allow programs, private addresses and Python tools.
    """
    runtime = context_of(request).runtime
    policy = runtime.definition_policy(caller.author)
    tools = frozenset(each.name for each in await runtime.tools_for(caller.entity.organization_id))
    await runtime.agents.check_prices(caller.entity.organization_id, wanted.definition)
    try:
        return await runtime.db.write(_create, policy, caller, wanted, key, tools)
    except HandleTaken:
        if key is None:
            raise
        # Perhaps by the same request, which was made twice at once: then the agent is there now.
        return await runtime.db.write(_create, policy, caller, wanted, key, tools)


def _made_with(tx: Tx, caller: Caller, what: str, key: str | None) -> tuple[AgentId | None, Agent | None]:
    """The id that an agent made with this key has, and that agent if it was made already."""
    if key is None:
        return None, None
    id = AgentId(str(uuid5(_KEYS, f"{caller.entity.id} {what} {key}")))
    try:
        return id, registry.get(tx, id)
    except NotFound:
        return id, None


def _create(
    tx: Tx, policy: DefinitionPolicy, caller: Caller, wanted: CreateAgent, key: str | None, tools: frozenset[str]
) -> AgentDetail:
    id, made = _made_with(tx, caller, "agent", key)
    if made is not None:
        same = (wanted.name, wanted.chosen_handle, wanted.definition)
        if (made.name, made.entity.handle, made.definition) != same:
            raise _reused()
        return _detail(tx, made, caller)
    home = caller.entity.organization_id
    agent = registry.create(
        tx, policy, home, name=wanted.name, handle=wanted.chosen_handle, definition=wanted.definition, id=id
    )
    _check_tools(wanted.definition, tools)
    for space_id in dict.fromkeys(wanted.spaces):
        try:
            directory.join(tx, enter(tx, space_id, caller.entity.id).id, agent.id)
        except (NotFound, NotAMember) as error:
            raise InvalidInput(f"spaces: you are in no space {space_id!r}.") from error
    audit.record(tx, home, caller.actor, "create_agent", agent.id)
    return _detail(tx, agent, caller)


def _reused() -> Problem:
    return Problem("idempotency_key_reused", "You made another agent with this Idempotency-Key: choose a new one.")


@router.get("/api/agents/{agent_id}", summary="One agent")
async def get_agent(request: Request, caller: Person, agent_id: str) -> AgentDetail:
    """How it is; for admins, how it is defined. `agent_id` is its id, or its `@handle`."""
    return await context_of(request).runtime.db.read(_one, agent_id, caller)


def _one(tx: Tx, agent_id: str, caller: Caller) -> AgentDetail:
    return _detail(tx, find_agent(tx, agent_id, caller), caller)


def _detail(tx: Tx, agent: Agent, caller: Caller) -> AgentDetail:
    lived, resting = registry.life(tx, agent.id), budgets.resting(tx, agent.id)
    is_admin = roles.reaches(caller.role, "admin")
    unable = fitness.unable(tx, agent.id)
    status = registry.status(tx, agent.id)
    return agent_detail_out(agent, status, lived, resting, with_definition=is_admin, unable=unable)


@router.put("/api/agents/{agent_id}/space", summary="The space of you and an agent alone")
async def private_space(request: Request, caller: Person, agent_id: str) -> SpaceOut:
    """It is there: the one in which `POST /api/chat` speaks where no space is named. Asking again is asking once."""
    return await context_of(request).runtime.db.write(_private_space, agent_id, caller)


def _private_space(tx: Tx, agent_id: str, caller: Caller) -> SpaceOut:
    space = chatting.private_space(tx, caller.entity, find_agent(tx, agent_id, caller))
    return shown_space(tx, space.id, caller.entity.id)


@router.patch("/api/agents/{agent_id}", summary="Change an agent")
async def edit_agent(request: Request, caller: Admin, agent_id: str, changes: EditAgent) -> AgentDetail:
    """Only what is sent is changed; null resets a field to its default. A new era begins with the agent's next cycle.

    Parts that start programs or reach private addresses may be left as they are, or removed; to add or change them is
    for owners, and so is to send a secret to another host than those in `secret_hosts`. That someone pays for an agent,
    only they can say themselves.
    """
    runtime = context_of(request).runtime
    try:
        if "budget" in changes.root:
            before, after = await runtime.db.read(_before_and_after, agent_id, caller, changes.root)
            await runtime.agents.check_prices(caller.entity.organization_id, after, before=before)
        policy = runtime.definition_policy(caller.author)
        tools = frozenset(each.name for each in await runtime.tools_for(caller.entity.organization_id))
        return await runtime.db.write(_edit, policy, agent_id, caller, changes.root, tools)
    except ValidationError as error:
        found = [{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_url=False)]
        raise RequestValidationError(found) from None


def _before_and_after(
    tx: Tx, agent_id: str, caller: Caller, changes: Mapping[str, JsonValue]
) -> tuple[AgentDefinition, AgentDefinition]:
    before = find_agent(tx, agent_id, caller).definition
    return before, revised(before, {name: value for name, value in changes.items() if name not in ("name", "handle")})


def _edit(
    tx: Tx,
    policy: DefinitionPolicy,
    agent_id: str,
    caller: Caller,
    changes: Mapping[str, JsonValue],
    tools: frozenset[str],
) -> AgentDetail:
    registry.lock(tx, find_agent(tx, agent_id, caller).id)
    agent = find_agent(tx, agent_id, caller)
    fields = dict(changes)
    name = _new_name(fields, agent)
    definition = revised(agent.definition, fields)
    if name != agent.name:
        directory.rename(tx, agent.id, name)
    # Its name is part of its self as well.
    if name != agent.name or definition != agent.definition:
        registry.edit(tx, policy, agent.id, definition)
        changed: list[JsonValue] = [
            *changed_fields(agent.definition, definition),
            *(["name"] if name != agent.name else []),
        ]
        audit.record(tx, caller.entity.organization_id, caller.actor, "edit_agent", agent.id, fields=changed)
    _check_tools(definition, tools | set(_named_tools(agent.definition)))
    return _detail(tx, registry.get(tx, agent.id), caller)


def _new_name(fields: dict[str, JsonValue], agent: Agent) -> str:
    if "handle" in fields:
        raise InvalidInput("handle: it cannot be changed, because others use it to mention the agent.")
    name = fields.pop("name", agent.name)
    if not isinstance(name, str):
        raise InvalidInput("name: it must be a text.")
    return name.strip()


def _check_tools(definition: AgentDefinition, known: Iterable[str]) -> None:
    for name in _named_tools(definition):
        if name not in known:
            near = next(iter(nearest(name, known)), None)
            hint = f" Did you mean {near!r}?" if near else ""
            raise InvalidInput(f"tools: this server has no tool {name!r}.{hint}")


def _named_tools(definition: AgentDefinition) -> list[str]:
    return [each for each in definition.tools if isinstance(each, str)]


@router.post("/api/agents/{agent_id}/suspend", summary="Let an agent think no more until it is resumed")
async def suspend_agent(request: Request, caller: Admin, agent_id: str) -> AgentOut:
    """What happens meanwhile waits in its inbox. A cycle under way stops where it is, and goes on from there."""
    return await context_of(request).runtime.db.write(_suspend, agent_id, caller)


@router.post("/api/agents/{agent_id}/resume", summary="Let an agent think again")
async def resume_agent(request: Request, caller: Admin, agent_id: str) -> AgentOut:
    """It is woken. One that its budget has suspended rests again if nothing is left of it."""
    return await context_of(request).runtime.db.write(_resume, agent_id, caller)


@router.post(
    "/api/agents/{agent_id}/try-again",
    summary="Have an agent try again now",
    openapi_extra={"x-who": "people who are in the space that they name; everywhere: admins and owners"},
)
async def try_again(request: Request, caller: Person, agent_id: str, where: TryAgain) -> AgentOut:
    """An agent that cannot think tries again at once, and messages that it has set aside are taken up again: those of
    one space, or of all. If nothing has changed, it fails again, and its spaces show why."""
    return await context_of(request).runtime.db.write(_try_again, agent_id, caller, where.space)


def _try_again(tx: Tx, agent_id: str, caller: Caller, space_id: str | None) -> AgentOut:
    agent = find_agent(tx, agent_id, caller)
    if space_id is None:
        if not roles.reaches(caller.role, "admin"):
            raise NotAllowed("Name a space that you and the agent are in. Only admins can try again everywhere.")
        registry.try_again(tx, agent.id)
    else:
        space = enter(tx, space_id, caller.entity.id)
        if not directory.is_member(tx, space.id, agent.id):
            raise InvalidInput(f"space: @{agent.entity.handle} is not in this space.")
        registry.try_again(tx, agent.id, space.id)
    return agent_out(agent, registry.status(tx, agent.id), fitness.unable(tx, agent.id))


def _suspend(tx: Tx, agent_id: str, caller: Caller) -> AgentOut:
    agent = managing.suspend(tx, caller.requester, agent_id)
    return agent_out(agent, registry.status(tx, agent.id), fitness.unable(tx, agent.id))


def _resume(tx: Tx, agent_id: str, caller: Caller) -> AgentOut:
    agent = managing.resume(tx, caller.requester, agent_id)
    return agent_out(agent, registry.status(tx, agent.id), fitness.unable(tx, agent.id))


@router.delete("/api/agents/{agent_id}", status_code=204, summary="Delete an agent")
async def delete_agent(request: Request, caller: Admin, agent_id: str) -> None:
    """It is dead, and never wakes again. Its past stays, and can be looked into by its id; its handle stays its own."""
    await context_of(request).runtime.agents.delete(AgentId(agent_id), by=caller.requester)


@router.post("/api/agents/{agent_id}/fork", status_code=201, summary="Make an agent with the past of this one")
async def fork_agent(
    request: Request, caller: Admin, agent_id: str, wanted: ForkAgent, key: IdempotencyKey = None
) -> AgentDetail:
    """It is asleep and in no space; this one is not touched. What is for owners to define is for owners to fork."""
    runtime = context_of(request).runtime
    policy = runtime.definition_policy(caller.author)
    try:
        return await runtime.db.write(_fork, policy, agent_id, caller, wanted, key)
    except HandleTaken:
        if key is None:
            raise
        return await runtime.db.write(_fork, policy, agent_id, caller, wanted, key)


def _fork(
    tx: Tx, policy: DefinitionPolicy, agent_id: str, caller: Caller, wanted: ForkAgent, key: str | None
) -> AgentDetail:
    original = find_agent(tx, agent_id, caller, also_dead=True)
    id, made = _made_with(tx, caller, f"fork of {original.id}", key)
    if made is not None:
        if (made.entity.handle, made.name) != (wanted.handle or made.entity.handle, wanted.name or original.name):
            raise _reused()
        return _detail(tx, made, caller)
    made = forking.fork(tx, policy, original.id, handle=wanted.handle, at=wanted.at, name=wanted.name, id=id)
    audit.record(tx, caller.entity.organization_id, caller.actor, "fork_agent", original.id, fork=made.id)
    return _detail(tx, made, caller)
