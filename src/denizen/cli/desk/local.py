"""The house from inside: its database, as the one who owns it. Whoever can open it may do everything."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from pydantic import JsonValue, ValidationError
from sqlalchemy import bindparam, select

from denizen.access import audit, openings, people, tokens
from denizen.access.audit import OPERATOR, Actor, Wanted
from denizen.access.audit import Kind as AuditKind
from denizen.access.roles import Role
from denizen.access.secrets import Secret
from denizen.access.signatures import Scheme
from denizen.agents import applying, fitness, forking, registry, space_statuses
from denizen.agents.definition import AgentDefinition
from denizen.agents.documents import plain
from denizen.agents.files import declare
from denizen.agents.inspection import Standing as Stood
from denizen.agents.inspection import inspect, standings
from denizen.agents.restrictions import DefinitionPolicy
from denizen.agents.revising import revised
from denizen.app import Runtime
from denizen.cli.desk.telling import message_from, space_from, spaces_from, told
from denizen.client import Agent, AgentDetail, Me, Member, Message, Space
from denizen.client import Entity as Person
from denizen.client.connection import those_given
from denizen.client.shapes.answers import Accepted
from denizen.client.shapes.custody import (
    Applied,
    AuditEntry,
    AuditPage,
    Imported,
    Key,
    Login,
    NewToken,
    NewWebhook,
    Opening,
    Receipt,
    Token,
    Webhook,
)
from denizen.client.shapes.minds import AnswerAgain, Mind, Request
from denizen.client.shapes.stances import Reflection as PastReflection
from denizen.client.shapes.stances import Signal, Signals, Stance, Standing, StatesOfMind, TriedMetaprompt
from denizen.clock import instant, moment
from denizen.consciousness import privacy
from denizen.cycles import budgets
from denizen.errors import InvalidInput, NotFound
from denizen.forgetting.forgetting import Kind
from denizen.forgetting.subjects import find_subject
from denizen.ids import AgentId, EntityId, MessageId, OrganizationId, SpaceId, new_id
from denizen.reflection import records
from denizen.server.schemas import AgentOut, WebhookOut
from denizen.server.shapes.access import KeyOut, KnownToken, ListedToken
from denizen.server.shapes.agents import AgentDetail as AgentDetailOut
from denizen.server.shapes.audit import AuditEntry as AuditEntryOut
from denizen.server.shapes.audit import OpeningOut
from denizen.server.shapes.definitions import Applied as AppliedOut
from denizen.server.shapes.forgetting import ReceiptOut
from denizen.server.shapes.minds import AnswerAgain as AnswerAgainOut
from denizen.server.shapes.minds import MindOut, RequestOut
from denizen.server.shapes.people import EntityOut
from denizen.server.shapes.portability import ImportedOut
from denizen.server.shapes.stances import RunOut, SignalOut, StanceOut, StandingOut, TriedOut
from denizen.spaces import directory, floor, leaving, posting, reading
from denizen.spaces.directory import ATTENTIONS, Attention, Entity, MemberRole
from denizen.spaces.handles import handle_from
from denizen.storage.database import Tx, long_running, statement
from denizen.storage.schema import spaces

P = ParamSpec("P")
T = TypeVar("T")


class LocalDesk:
    """The owner's way to the house that is open in this process."""

    def __init__(self, runtime: Runtime, owner: Entity) -> None:
        self._runtime = runtime
        self._owner = owner
        self._home = owner.organization_id

    @property
    def url(self) -> str:
        return self._runtime.public_url

    async def me(self) -> Me:
        return Me(id=self._owner.id, handle=self._owner.handle, name=self._owner.name)

    # Agents

    async def agents(self) -> list[Agent]:
        found = await self._runtime.db.read(registry.living_agents, self._home)
        unable = await self._runtime.db.read(fitness.unable_of_organization, self._home)
        listed = [told(Agent, AgentOut.of(each, status, unable.get(each.id))) for each, status in found]
        return sorted(listed, key=lambda each: each.handle)

    async def agent(self, agent: str) -> AgentDetail:
        return await self._runtime.db.read(_detail, self._home, agent)

    async def create_agent(self, name: str, fields: Mapping[str, JsonValue] | None = None) -> AgentDetail:
        given = cast("dict[str, Any]", dict(fields or {}))
        handle, joining = given.pop("handle", None), given.pop("spaces", ())
        defined = registry.define(**given)
        chosen = handle or handle_from(name)
        wanted = (self._runtime.definition_policy(), self._home, name, chosen, defined, list(joining))
        made = await self._change("create_agent", None, _create_agent, *wanted)
        return await self.agent(made)

    async def edit_agent(self, agent: str, changes: Mapping[str, JsonValue]) -> AgentDetail:
        found, policy = await self._find_agent(agent), self._runtime.definition_policy()
        await self._change("edit_agent", found, _edit_agent, policy, self._home, agent, changes)
        return await self.agent(agent)

    async def suspend_agent(self, agent: str) -> Agent:
        found = await self._find_agent(agent)
        await self._change("suspend_agent", found, registry.suspend, found)
        return await self.agent(agent)

    async def try_again(self, agent: str, *, space: str | None = None) -> Agent:
        await self._runtime.try_again(await self._find_agent(agent), None if space is None else SpaceId(space))
        return await self.agent(agent)

    async def resume_agent(self, agent: str) -> Agent:
        found = await self._find_agent(agent)
        await self._change("resume_agent", found, registry.resume, found)
        return await self.agent(agent)

    async def delete_agent(self, agent: str) -> None:
        found = await self._find_agent(agent)
        await self._change("delete_agent", found, registry.delete, found)

    async def fork_agent(
        self, agent: str, handle: str | None = None, *, name: str | None = None, at: int | None = None
    ) -> AgentDetail:
        found, policy = await self._find_agent(agent), self._runtime.definition_policy()
        made = await self._change("fork_agent", found, forking.fork, policy, found, handle=handle, at=at, name=name)
        return await self.agent(made.id)

    async def mind(self, agent: str) -> Mind:
        return await self._runtime.db.read(_mind, await self._find_agent(agent))

    async def replay(self, agent: str, cycle: int, *, step: int | None = None) -> list[Request]:
        found = await self._runtime.replay(await self._find_agent(agent), cycle, step=step)
        return [told(Request, RequestOut.of(each)) for each in found]

    async def rethink(self, agent: str, cycle: int, model: str, *, step: int | None = None) -> list[AnswerAgain]:
        found = await self._runtime.rethink(await self._find_agent(agent), cycle, model=model, step=step)
        return [told(AnswerAgain, AnswerAgainOut.of(each)) for each in found]

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

    # States of mind

    async def stances(self, agent: str) -> list[Standing]:
        found = await self._runtime.db.read(_standings, await self._find_agent(agent))
        return [told(Standing, StandingOut.standing(each)) for each in found]

    async def stance(self, agent: str, space_id: str) -> Stance:
        return told(Stance, StanceOut.of(await self._runtime.stance(*await self._there(agent, space_id))))

    async def set_stance_settings(self, agent: str, space_id: str, settings: Mapping[str, JsonValue]) -> Stance:
        where = await self._there(agent, space_id)
        return told(Stance, StanceOut.of(await self._runtime.set_stance_settings(*where, settings)))

    async def set_state_of_mind(self, agent: str, space_id: str, **state: str) -> Stance:
        where, wanted = await self._there(agent, space_id), cast("dict[str, Any]", state)
        return told(Stance, StanceOut.of(await self._runtime.set_state_of_mind(*where, **wanted, by=self._owner)))

    async def reset_state_of_mind(self, agent: str, space_id: str) -> None:
        await self._runtime.reset_state_of_mind(*await self._there(agent, space_id), by=self._owner)

    async def states_of_mind(self, agent: str, space_id: str, *, limit: int = 50) -> StatesOfMind:
        found = await self._runtime.states_of_mind(*await self._there(agent, space_id), limit=limit)
        return StatesOfMind(runs=tuple(told(PastReflection, RunOut.of(each)) for each in found))

    async def signals(self, agent: str, space_id: str, *, limit: int = 50) -> Signals:
        found = await self._runtime.signals(*await self._there(agent, space_id), limit=limit)
        return Signals(signals=tuple(told(Signal, SignalOut.of(each)) for each in found))

    async def try_metaprompt(
        self, agent: str, space_id: str, metaprompt: str, *, apply: bool = False
    ) -> TriedMetaprompt:
        where = await self._there(agent, space_id)
        tried = await self._runtime.try_metaprompt(*where, metaprompt, apply=apply, by=self._owner)
        return told(TriedMetaprompt, TriedOut.of(tried))

    async def _there(self, agent: str, space_id: str) -> tuple[AgentId, SpaceId]:
        return await self._runtime.db.read(_there, self._home, agent, space_id)

    # Spaces

    async def spaces(self) -> list[Space]:
        return await self._runtime.db.read(spaces_from, self._owner.id)

    async def spaces_named(self, name: str) -> list[Space]:
        return await self._runtime.db.read(_spaces_named, self._owner, name)

    async def space(self, space_id: str) -> Space:
        return await self._runtime.db.read(_space, self._home, space_id, self._owner.id)

    async def create_space(
        self,
        name: str,
        members: Iterable[str] = (),
        *,
        private: bool = False,
        floor: str | None = None,
        agent_run_limit: int | None = None,
    ) -> Space:
        settings = those_given(private=private, floor=floor, agent_run_limit=agent_run_limit)
        made = await self._runtime.db.write(_create_space, self._owner, name, list(members), settings)
        return await self.space(made)

    async def change_space(
        self,
        space_id: str,
        *,
        name: str | None = None,
        private: bool | None = None,
        floor: str | None = None,
        agent_run_limit: int | None = None,
    ) -> Space:
        change = those_given(name=name, private=private, floor=floor, agent_run_limit=agent_run_limit)
        await self._runtime.db.write(_change_space, self._home, space_id, change)
        return await self.space(space_id)

    async def let_agents_go_on(self, space_id: str) -> Space:
        await self._runtime.db.write(_let_agents_go_on, self._home, space_id, self._owner.id)
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

    async def message(self, message_id: str) -> Message:
        return message_from(await self._runtime.db.read(_message, self._home, message_id))

    async def post(self, space_id: str, text: str, *, key: str | None = None, **more: JsonValue) -> Message:
        there = await self.space(space_id)
        said = cast("dict[str, Any]", more)
        chosen = MessageId(key or new_id())
        posted = await self._runtime.post(SpaceId(there.id), self._owner, text, id=chosen, **said)
        return message_from(await self._runtime.db.read(posting.get_message, posted.id))

    # People, and what they want forgotten

    async def entity(self, entity: str) -> Person:
        return told(Person, EntityOut.of(await self._runtime.db.read(people.get, self._home, entity)))

    async def forget(self, kind: str, id: str, *, also_replies: bool = False, dry_run: bool = False) -> Receipt:
        by, wanted = self._owner.id, cast("Kind", kind)
        subject = await self._runtime.db.read(find_subject, self._home, wanted, id)
        match wanted:
            case "message":
                message = MessageId(subject)
                done = await self._runtime.forget_message(message, by=by, also_replies=also_replies, dry_run=dry_run)
            case "person":
                whom = EntityId(subject)
                done = await self._runtime.forget_person(whom, by=by, dry_run=dry_run, refuse_last_owner=True)
            case "space":
                done = await self._runtime.forget_space(SpaceId(subject), by=by, dry_run=dry_run)
            case "memory":
                done = await self._runtime.forget_memory(subject, by=by, dry_run=dry_run)
        return told(Receipt, ReceiptOut.of(done, dry_run=dry_run))

    # Keys and ways in

    async def keys(self) -> list[Key]:
        found = await self._runtime.secrets(organization=self._home)
        names = await self._runtime.db.read(_names, self._home)
        return [self._key(each, names) for each in found]

    async def set_key(self, name: str, value: str, *, whose: str = "organization") -> Key:
        person = await self._whose(whose)
        kept = await self._runtime.set_secret(name, value, person=person, organization=self._home)
        return self._key(kept, {} if person is None else {person.id: person.handle})

    async def delete_key(self, name: str, *, whose: str = "organization") -> None:
        await self._runtime.delete_secret(name, person=await self._whose(whose), organization=self._home)

    async def _whose(self, whose: str) -> Entity | None:
        if whose == "organization":
            return None
        return self._owner if whose == "me" else await self._runtime.find(whose, organization=self._home)

    def _key(self, secret: Secret, names: Mapping[EntityId, str]) -> Key:
        """Unlike a server, the house itself tells of everyone's."""
        key = told(Key, KeyOut.of(secret))
        owner = secret.owner_id
        return key if owner in (None, self._owner.id) else key.model_copy(update={"whose": f"@{names[owner]}"})

    async def tokens(self, entity: str | None = None, *, everyone: bool = False) -> list[Token]:
        return await self._runtime.db.read(_tokens, self._owner, entity, everyone)

    async def create_token(
        self, name: str, *, entity: str | None = None, role: str | None = None, expires_at: datetime | None = None
    ) -> NewToken:
        who = self._owner if entity is None else await self._runtime.find(entity, organization=self._home)
        until, scope = None if expires_at is None else instant(expires_at), cast("Role | None", role)
        made = await self._change("create_token", who.id, tokens.create, who.id, name, role=scope, expires_at=until)
        return _new_token(*made)

    async def rotate_token(self, token_id: str) -> NewToken:
        whose = (await self._runtime.db.read(tokens.get, token_id)).entity_id
        return _new_token(*await self._change("rotate_token", whose, tokens.rotate, token_id))

    async def revoke_token(self, token_id: str) -> None:
        whose = (await self._runtime.db.read(tokens.get, token_id)).entity_id
        await self._change("revoke_token", whose, tokens.revoke, token_id)

    async def create_login(self, entity: str | None = None) -> Login:
        who = self._owner if entity is None else await self._runtime.find(entity, organization=self._home)
        login, secret = await self._change("create_login", who.id, tokens.create_login, who.id)
        assert login.expires_at is not None
        return Login(url=tokens.login_url(self.url, secret), secret=secret, expires_at=moment(login.expires_at))

    async def webhooks(self, agent: str) -> list[Webhook]:
        found = await self._runtime.webhooks(await self._find_agent(agent))
        return [told(Webhook, WebhookOut.of(each)) for each in found]

    async def create_webhook(
        self, agent: str, name: str, *, scheme: str = "generic", secret: str | None = None, urgent: bool = False
    ) -> NewWebhook:
        found, signed = await self._find_agent(agent), cast("Scheme", scheme)
        made, made_secret = await self._runtime.create_webhook(found, name, scheme=signed, secret=secret, urgent=urgent)
        return NewWebhook(webhook=told(Webhook, WebhookOut.of(made)), secret=made_secret)

    async def revoke_webhook(self, webhook_id: str) -> None:
        await self._runtime.revoke_webhook(webhook_id)

    # Files

    async def apply(
        self, documents: Iterable[tuple[str, Mapping[str, JsonValue]]], *, dry_run: bool = False
    ) -> Applied:
        declared = declare(documents)
        changes = await self._runtime.apply(declared, dry_run=dry_run, creator=self._owner, organization=self._home)
        return told(Applied, AppliedOut.of(changes, declared, self._runtime.tool_names, dry_run=dry_run))

    async def document(self, agent: str) -> Mapping[str, JsonValue]:
        document = await self._runtime.db.read(applying.document_of, self._home, agent)
        return cast("dict[str, JsonValue]", plain(document))

    async def audit(
        self,
        *,
        by: str | None = None,
        kind: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> AuditPage:
        who = None if by is None else (await self._runtime.find(by, organization=self._home)).id
        wanted = Wanted(
            who,
            cast("AuditKind | None", kind),
            None if since is None else instant(since),
            None if until is None else instant(until),
            before,
        )
        found = await self._runtime.db.read(audit.entries, self._home, self._owner.id, wanted, limit=limit + 1)
        page = [told(AuditEntry, AuditEntryOut.of(each)) for each in found[:limit]]
        return AuditPage(entries=tuple(page), next=page[-1].number if len(found) > limit else None)

    async def open_private_space(self, space_id: str, reason: str) -> Opening:
        by = Actor(self._owner.id)
        made = await self._runtime.db.write(openings.open_private_space, self._home, by, SpaceId(space_id), reason)
        return told(Opening, OpeningOut.of(made))

    async def _change(
        self, action: str, subject: str | None, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `fn` changes is in the audit log, as a change of whoever runs the server."""
        return await self._runtime.db.write(_audited, self._home, action, subject, lambda tx: fn(tx, *args, **kwargs))

    async def export_agent(self, agent: str) -> AsyncGenerator[str]:
        async for line in self._runtime.export_agent(await self._find_agent(agent)):
            yield line

    async def export_space(self, space_id: str) -> AsyncGenerator[str]:
        async for line in self._runtime.export_space(SpaceId((await self.space(space_id)).id)):
            yield line

    async def import_file(self, path: Path, *, handle: str | None = None, name: str | None = None) -> Imported:
        made = await self._runtime.import_file(path, handle=handle, name=name, organization=self._home)
        return told(Imported, ImportedOut.of(made))


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


def _there(tx: Tx, home: OrganizationId, named: str, space_id: str) -> tuple[AgentId, SpaceId]:
    """The agent and the space, where it is in it."""
    agent, space = _find_agent(tx, home, named), SpaceId(space_id)
    records.require_there(tx, agent, space)
    return agent, space


def _detail(tx: Tx, home: OrganizationId, named: str) -> AgentDetail:
    agent = registry.get(tx, _find_agent(tx, home, named))
    status, life, resting = registry.status(tx, agent.id), registry.life(tx, agent.id), budgets.resting(tx, agent.id)
    unable = fitness.unable(tx, agent.id)
    return told(AgentDetail, AgentDetailOut.whole(agent, status, life, resting, with_definition=True, unable=unable))


def _mind(tx: Tx, agent_id: AgentId) -> Mind:
    found = inspect(tx, agent_id)
    return told(Mind, MindOut.of(found))


def _create_agent(
    tx: Tx,
    policy: DefinitionPolicy,
    home: OrganizationId,
    name: str,
    handle: str,
    definition: AgentDefinition,
    joining: list[str],
) -> str:
    made = registry.create(tx, policy, home, name=name, handle=handle, definition=definition)
    for space_id in joining:
        _join(tx, home, space_id, made.id, "all", "member")
    return made.id


def _edit_agent(
    tx: Tx, policy: DefinitionPolicy, home: OrganizationId, named: str, changes: Mapping[str, JsonValue]
) -> None:
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
        registry.edit(tx, policy, agent.id, definition)


# Spaces

_from_outside = statement(select(spaces.c.created_at, spaces.c.last_seq).where(spaces.c.id == bindparam("id")))


def _own(tx: Tx, home: OrganizationId, space_id: str) -> directory.Space:
    space = directory.get_space(tx, SpaceId(space_id))
    if space.organization_id != home:
        raise NotFound("space", space_id)
    return space


def _told(tx: Tx, space: directory.Space, entity_id: EntityId) -> Space:
    """The space as the entity finds it; one who is not in it has nothing to read there."""
    there = directory.members(tx, space.id)
    if any(each.entity.id == entity_id for each in there):
        statuses, unable = space_statuses.in_space(tx, space.id), fitness.unable_in_space(tx, space.id)
        return space_from(reading.place_of(tx, space.id, entity_id), there, statuses, unable)
    row = tx.one(_from_outside, id=space.id)
    assert row is not None
    created_at, last_seq = row
    return space_from(reading.Place(space, created_at, last_seq, last_seq), there)


def _spaces_named(tx: Tx, owner: Entity, name: str) -> list[Space]:
    return [_told(tx, each, owner.id) for each in directory.find_spaces(tx, owner.organization_id, name)]


def _space(tx: Tx, home: OrganizationId, space_id: str, entity_id: EntityId) -> Space:
    return _told(tx, _own(tx, home, space_id), entity_id)


def _message(tx: Tx, home: OrganizationId, message_id: str) -> posting.Message:
    found = posting.get_message(tx, MessageId(message_id))
    if directory.get_space(tx, found.space_id).organization_id != home:
        raise NotFound("message", message_id)
    return found


def _create_space(tx: Tx, owner: Entity, name: str, members: list[str], settings: dict[str, Any]) -> str:
    joining = [_find(tx, owner.organization_id, each).id for each in members]
    space = directory.create_space(tx, owner.organization_id, name=name, **settings)
    directory.join(tx, space.id, owner.id, role="owner")
    for each in joining:
        directory.join(tx, space.id, each)
    return space.id


def _change_space(tx: Tx, home: OrganizationId, space_id: str, change: dict[str, Any]) -> None:
    directory.change_space(tx, _own(tx, home, space_id), **change)


def _let_agents_go_on(tx: Tx, home: OrganizationId, space_id: str, by: EntityId) -> None:
    floor.let_agents_go_on(tx, _own(tx, home, space_id).id, by)


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
    leaving.leave(tx, space.id, who.id)


def _messages(
    tx: Tx, home: OrganizationId, space_id: str, after: int | None, before: int | None, limit: int
) -> list[posting.Message]:
    space = _own(tx, home, space_id)
    if after is not None:
        return posting.messages_after(tx, space.id, after, limit=limit)
    if before is not None:
        return posting.messages_before(tx, space.id, before, limit=limit)
    return posting.messages_before(tx, space.id, limit=limit)


# Ways in


def _names(tx: Tx, home: OrganizationId) -> dict[EntityId, str]:
    return {each.id: each.handle for each in directory.list_entities(tx, home, also_left=True)}


def _tokens(tx: Tx, owner: Entity, named: str | None, everyone: bool) -> list[Token]:
    home = owner.organization_id
    whose = directory.list_entities(tx, home) if everyone else [owner if named is None else _find(tx, home, named)]
    found = [(each, who.handle) for who in whose for each in tokens.tokens_of(tx, who.id)]
    return [told(Token, ListedToken.listed(each, handle)) for each, handle in found]


def _new_token(token: tokens.Token, secret: str) -> NewToken:
    return NewToken(token=told(Token, KnownToken.of(token)), secret=secret)


@long_running
def _audited(tx: Tx, home: OrganizationId, action: str, subject: str | None, change: Callable[[Tx], T]) -> T:
    changed = change(tx)
    audit.record(tx, home, OPERATOR, action, subject or (changed if isinstance(changed, str) else None))
    return changed


def _standings(tx: Tx, agent_id: AgentId) -> list[Stood]:
    return standings(tx, agent_id, privacy.reader(tx, agent_id, None))
