"""The house from inside: its database, as the one who owns it. Whoever can open it may do everything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import JsonValue, ValidationError
from sqlalchemy import bindparam, select

from denizen.agents import registry
from denizen.agents.definition import AgentDefinition
from denizen.agents.revising import revised, shown
from denizen.app import Runtime
from denizen.cli.chat.local import message_from
from denizen.client import Agent, AgentDetail, Me, Member, Message, Space
from denizen.client.shapes import Accepted, Resting
from denizen.clock import moment
from denizen.cycles import budgets
from denizen.errors import InvalidInput, NotFound
from denizen.ids import AgentId, EntityId, MessageId, OrganizationId, SpaceId, new_id
from denizen.spaces import directory, posting
from denizen.spaces.directory import ATTENTIONS, Attention, Entity, MemberRole
from denizen.spaces.handles import handle_from
from denizen.storage.database import Tx, statement
from denizen.storage.schema import memberships, spaces


class LocalDesk:
    """The owner's way to the house that is open in this process."""

    def __init__(self, runtime: Runtime, owner: Entity) -> None:
        self._runtime = runtime
        self._owner = owner
        self._home = owner.organization_id

    async def me(self) -> Me:
        return Me(id=self._owner.id, handle=self._owner.handle, name=self._owner.name)

    # Agents

    async def agents(self) -> list[Agent]:
        found = await self._runtime.db.read(registry.living_agents, self._home)
        told = [_agent(each, status) for each, status in found]
        return sorted(told, key=lambda each: each.handle)

    async def agent(self, agent: str) -> AgentDetail:
        return await self._runtime.db.read(_detail, self._home, agent)

    async def create_agent(self, name: str, fields: Mapping[str, JsonValue] | None = None) -> AgentDetail:
        given = cast("dict[str, Any]", dict(fields or {}))
        handle, joining = given.pop("handle", None), given.pop("spaces", ())
        defined = registry.define(**given)
        chosen = handle or handle_from(name)
        made = await self._runtime.db.write(_create_agent, self._home, name, chosen, defined, list(joining))
        return await self.agent(made)

    async def edit_agent(self, agent: str, changes: Mapping[str, JsonValue]) -> AgentDetail:
        await self._runtime.db.write(_edit_agent, self._home, agent, changes)
        return await self.agent(agent)

    async def suspend_agent(self, agent: str) -> Agent:
        await self._runtime.suspend_agent(await self._find_agent(agent))
        return await self.agent(agent)

    async def resume_agent(self, agent: str) -> Agent:
        await self._runtime.resume_agent(await self._find_agent(agent))
        return await self.agent(agent)

    async def delete_agent(self, agent: str) -> None:
        await self._runtime.delete_agent(await self._find_agent(agent))

    async def trigger(
        self,
        agent: str,
        service: str,
        text: str = "",
        *,
        data: JsonValue = None,
        id: str | None = None,
        urgent: bool = False,
    ) -> Accepted:
        chosen = id or new_id()
        await self._runtime.trigger(await self._find_agent(agent), service, data, text=text, id=chosen, urgent=urgent)
        return Accepted(id=chosen)

    async def _find_agent(self, named: str) -> AgentId:
        return await self._runtime.db.read(_find_agent, self._home, named)

    # Spaces

    async def spaces(self) -> list[Space]:
        return await self._runtime.db.read(_spaces, self._owner.id)

    async def space(self, space_id: str) -> Space:
        return await self._runtime.db.read(_space, self._home, space_id, self._owner.id)

    async def create_space(self, name: str, members: Iterable[str] = (), *, private: bool = False) -> Space:
        made = await self._runtime.db.write(_create_space, self._owner, name, private, list(members))
        return await self.space(made)

    async def change_space(self, space_id: str, *, name: str | None = None, private: bool | None = None) -> Space:
        await self._runtime.db.write(_change_space, self._home, space_id, name, private)
        return await self.space(space_id)

    async def add_member(
        self, space_id: str, entity: str, *, attention: str | None = None, role: str | None = None
    ) -> Member:
        await self._runtime.db.write(_join, self._home, space_id, entity, attention or "all", role or "member")
        return await self._member(space_id, entity)

    async def change_member(
        self, space_id: str, entity: str, *, attention: str | None = None, role: str | None = None
    ) -> Member:
        await self._runtime.db.write(_change_member, self._home, space_id, entity, attention, role)
        return await self._member(space_id, entity)

    async def remove_member(self, space_id: str, entity: str) -> None:
        await self._runtime.db.write(_leave, self._home, space_id, entity)

    async def _member(self, space_id: str, named: str) -> Member:
        found = await self._runtime.db.read(_find, self._home, named)
        return next(each for each in (await self.space(space_id)).members if each.id == found.id)

    async def messages(
        self, space_id: str, *, after: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[Message]:
        found = await self._runtime.db.read(_messages, self._home, space_id, after, before, limit)
        return [message_from(each) for each in found]

    async def post(self, space_id: str, text: str, *, key: str | None = None, **more: JsonValue) -> Message:
        there = await self.space(space_id)
        said = cast("dict[str, Any]", more)
        chosen = MessageId(key or new_id())
        posted = await self._runtime.post(SpaceId(there.id), self._owner, text, id=chosen, **said)
        return message_from(await self._runtime.db.read(posting.get_message, posted.id))


# Agents


def _find(tx: Tx, home: OrganizationId, named: str) -> Entity:
    """Whoever of the house has this handle or id."""
    try:
        return directory.find_entity(tx, home, named)
    except NotFound:
        pass
    try:
        found = directory.get_entity(tx, EntityId(named))
    except NotFound:
        found = None
    if found is None or found.organization_id != home:
        raise NotFound("entity", named)
    return found


def _find_agent(tx: Tx, home: OrganizationId, named: str) -> AgentId:
    try:
        return registry.get(tx, _find(tx, home, named).id).id
    except NotFound as error:
        raise NotFound("agent", named) from error


def _agent(agent: registry.Agent, status: str) -> Agent:
    return Agent(
        id=agent.id,
        handle=agent.entity.handle,
        name=agent.name,
        status=status,
        model=agent.definition.model,
        about=agent.definition.instructions.strip().partition("\n")[0],
    )


def _detail(tx: Tx, home: OrganizationId, named: str) -> AgentDetail:
    agent = registry.get(tx, _find_agent(tx, home, named))
    lived, resting = registry.life(tx, agent.id), budgets.resting(tx, agent.id)
    until = None if resting is None or resting.until is None else moment(resting.until)
    return AgentDetail(
        **_agent(agent, registry.status(tx, agent.id)).model_dump(),
        created_at=moment(lived.created_at),
        cycles=lived.cycles,
        resting=None if resting is None else Resting(scope=resting.scope, until=until),
        version=agent.version,
        definition=cast("dict[str, JsonValue]", shown(agent.definition)),
    )


def _create_agent(
    tx: Tx, home: OrganizationId, name: str, handle: str, definition: AgentDefinition, joining: list[str]
) -> str:
    made = registry.create(tx, home, name=name, handle=handle, definition=definition)
    for space_id in joining:
        _join(tx, home, space_id, made.id, "all", "member")
    return made.id


def _edit_agent(tx: Tx, home: OrganizationId, named: str, changes: Mapping[str, JsonValue]) -> None:
    agent = registry.get(tx, _find_agent(tx, home, named))
    fields = dict(changes)
    name = fields.pop("name", None)
    try:
        definition = revised(agent.definition, fields)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)]
        raise InvalidInput(f"{'; '.join(problems)}.") from None
    if isinstance(name, str) and name != agent.name:
        directory.rename(tx, agent.id, name)
    # Its name is part of its self as well.
    if name is not None or definition != agent.definition:
        registry.edit(tx, agent.id, definition)


# Spaces

_place = statement(
    select(spaces.c.created_at, spaces.c.last_seq, memberships.c.read_seq)
    .outerjoin(
        memberships, (memberships.c.space_id == spaces.c.id) & (memberships.c.entity_id == bindparam("entity_id"))
    )
    .where(spaces.c.id == bindparam("id"))
)


def _own(tx: Tx, home: OrganizationId, space_id: str) -> directory.Space:
    space = directory.get_space(tx, SpaceId(space_id))
    if space.organization_id != home:
        raise NotFound("space", space_id)
    return space


def _told(tx: Tx, space: directory.Space, entity_id: EntityId) -> Space:
    row = tx.one(_place, id=space.id, entity_id=entity_id)
    assert row is not None
    created_at, last_seq, read_seq = row
    return Space(
        id=space.id,
        name=space.name,
        kind=space.kind,
        private=space.private,
        last_seq=last_seq,
        members=tuple(_member(each) for each in directory.members(tx, space.id)),
        read_seq=read_seq or 0,
        unread=0 if read_seq is None else max(last_seq - read_seq, 0),
        created_at=moment(created_at),
    )


def _member(member: directory.Member) -> Member:
    who = member.entity
    return Member(
        id=who.id, kind=who.kind, handle=who.handle, name=who.name, attention=member.attention, role=member.role
    )


def _spaces(tx: Tx, entity_id: EntityId) -> list[Space]:
    return [_told(tx, each, entity_id) for each in directory.spaces_of(tx, entity_id)]


def _space(tx: Tx, home: OrganizationId, space_id: str, entity_id: EntityId) -> Space:
    return _told(tx, _own(tx, home, space_id), entity_id)


def _create_space(tx: Tx, owner: Entity, name: str, private: bool, members: list[str]) -> str:
    joining = [_find(tx, owner.organization_id, each).id for each in members]
    space = directory.create_space(tx, owner.organization_id, name=name, private=private)
    directory.join(tx, space.id, owner.id, role="owner")
    for each in joining:
        directory.join(tx, space.id, each)
    return space.id


def _change_space(tx: Tx, home: OrganizationId, space_id: str, name: str | None, private: bool | None) -> None:
    space = _own(tx, home, space_id)
    if name is not None:
        directory.rename_space(tx, space.id, name)
    if private is not None and private != space.private:
        directory.set_private(tx, space.id, private)


def _join(tx: Tx, home: OrganizationId, space_id: str, named: str, attention: str, role: str) -> None:
    space, who = _own(tx, home, space_id), _find(tx, home, named)
    directory.join(tx, space.id, who.id, role=role, attention=_attention(attention))


def _change_member(
    tx: Tx, home: OrganizationId, space_id: str, named: str, attention: str | None, role: str | None
) -> None:
    space, who = _own(tx, home, space_id), _find(tx, home, named)
    if attention is not None:
        directory.attend(tx, space.id, who.id, _attention(attention))
    if role is not None:
        directory.appoint(tx, space.id, who.id, cast("MemberRole", role))


def _attention(given: str) -> Attention:
    for each in ATTENTIONS:
        if given == each:
            return each
    raise InvalidInput(f"Attention is one of {', '.join(ATTENTIONS)}, not {given!r}.")


def _leave(tx: Tx, home: OrganizationId, space_id: str, named: str) -> None:
    space, who = _own(tx, home, space_id), _find(tx, home, named)
    if not directory.is_member(tx, space.id, who.id):
        raise NotFound("member", named)
    directory.leave(tx, space.id, who.id)


def _messages(
    tx: Tx, home: OrganizationId, space_id: str, after: int | None, before: int | None, limit: int
) -> list[posting.Message]:
    space = _own(tx, home, space_id)
    if after is not None:
        return posting.messages_after(tx, space.id, after, limit=limit)
    if before is not None:
        return posting.messages_before(tx, space.id, before, limit=limit)
    return posting.messages_before(tx, space.id, limit=limit)
