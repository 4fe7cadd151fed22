"""Organizations, entities, spaces and their members. All access to them goes through here."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final, get_args

from pydantic import JsonValue
from sqlalchemy import bindparam, case, func, select, update

from denizen.bus.streams import MembershipChanged, SpaceChanged, entity_topic, space_topic
from denizen.errors import HandleTaken, InvalidInput, NotFound, existing
from denizen.folding import fold
from denizen.ids import EntityId, OrganizationId, SpaceId, new_id
from denizen.nearest import nearest
from denizen.shapes.vocabulary import Attention, EntityKind, Floor, MemberRole, SpaceKind
from denizen.shortening import shortened
from denizen.spaces.handles import MAX_HANDLE_CHARS, check_handle, check_name
from denizen.storage.database import (
    Conflict,
    Statement,
    Tx,
    columns,
    delete_where,
    insert_ignore,
    insert_into,
    select_where,
    statement,
    update_where,
    value,
)
from denizen.storage.schema import (
    agents,
    entities,
    memberships,
    minds,
    organizations,
    passages,
    recalls,
    roster,
    spaces,
)

ATTENTIONS: Final[tuple[Attention, ...]] = ("all", "mentions", "none")
MEMBER_ROLES: Final[tuple[MemberRole, ...]] = ("owner", "admin", "member")
"""The roles in a space: owners and admins manage it."""
SPACE_KINDS: Final = get_args(SpaceKind)
FLOORS: Final[tuple[Floor, ...]] = ("all", "addressed", "one")
DEFAULT_FLOOR: Final[Floor] = "one"
AGENT_RUN_LIMIT: Final = 12
"""After this many messages with which agents woke each other, they stop until a person speaks."""
LARGEST_RUN_LIMIT: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Organization:
    """An isolated tenant: nothing crosses from one to another."""

    id: OrganizationId
    name: str


@dataclass(frozen=True, slots=True)
class Entity:
    """Someone who can be in a space: a person, an agent or a service."""

    id: EntityId
    organization_id: OrganizationId
    kind: EntityKind
    handle: str
    """Unique in the organization; `@handle` mentions it."""
    name: str


@dataclass(frozen=True, slots=True)
class Space:
    """A place where entities talk."""

    id: SpaceId
    organization_id: OrganizationId
    kind: SpaceKind
    name: str
    private: bool
    floor: Floor = DEFAULT_FLOOR
    """Which agents take up a message, if there are several."""
    agent_run_limit: int = AGENT_RUN_LIMIT
    """After this many messages with which agents woke each other, they stop; 0: no limit."""
    agent_run: int = field(default=0, compare=False)
    """How many messages of agents have woken others, or would have, since a person spoke or let them continue."""

    @property
    def stopped(self) -> bool:
        """Whether agents no longer wake each other here."""
        return is_stopped(self.agent_run, self.agent_run_limit)


def is_stopped(run: int, limit: int) -> bool:
    """Whether this number of messages with which agents wake each other is over the limit."""
    return 0 < limit < run


@dataclass(frozen=True, slots=True)
class Member:
    """An entity in a space, and which of its messages reach its inbox."""

    entity: Entity
    role: str
    attention: Attention


def namesakes(members: Sequence[Member]) -> frozenset[EntityId]:
    """The members whose names look like that of another member. Pure."""
    names = {each.entity.id: fold(each.entity.name) for each in members}
    how_many = Counter(names.values())
    return frozenset(id for id, name in names.items() if how_many[name] > 1)


_add_organization = insert_into(organizations, "id, name, created_at")
_get_organization = select_where(organizations, "id, name", "id")
_list_organizations = statement(select(organizations.c.id, organizations.c.name).order_by(organizations.c.id))
_first_organization = statement(select(func.min(organizations.c.id)))
_add_entity = insert_into(entities, "id, organization_id, kind, handle, name, metadata, role, created_at")
_rename_organization = update_where(organizations, "id", set_="name")
_anybody = select_where(
    entities, "id", "organization_id", entities.c.kind == "human", entities.c.role != "guest", limit=1
)
_entity = (entities.c.id, entities.c.organization_id, entities.c.kind, entities.c.handle, entities.c.name)
_get_entity = select_where(entities, _entity, "id")
_find_entity = select_where(entities, _entity, "organization_id, handle", entities.c.left_at.is_(None))
_COMPARED_HANDLES: Final = 1_000
"""How many handles of an organization are compared with one that nobody has."""
_some_handles = statement(
    select(entities.c.handle, entities.c.kind)
    .outerjoin(agents, agents.c.id == entities.c.id)
    .where(
        entities.c.organization_id == bindparam("organization_id"),
        entities.c.left_at.is_(None),
        func.coalesce(agents.c.status, "") != "dead",
    )
    .order_by(entities.c.handle)
    .limit(bindparam("most"))
)
_everyone = select(*_entity).where(entities.c.organization_id == bindparam("organization_id")).order_by(entities.c.id)
_list_everyone = statement(_everyone)
_list_entities = statement(_everyone.where(entities.c.left_at.is_(None)))
_holder = select_where(entities, "left_at", "organization_id, handle")
# Waits for a concurrent leave, and makes a concurrent join wait.
_left_at = statement(select(entities.c.left_at).where(entities.c.id == bindparam("id")).with_for_update(read=True))
_one_at_a_time = statement(
    select(entities.c.id).where(entities.c.id == bindparam("id")).with_for_update(key_share=True)
)


_enter = insert_ignore(roster)
_strike = delete_where(roster, "id, member_id", roster.c.kind == "member")
_strike_all = delete_where(roster, "id", roster.c.kind == "member")


def enter(tx: Tx, kind: str, id: str, member_id: str = "") -> None:
    """Enter a new organization, entity, space, member or question into the roster, which shows whether its row is
    lost.
    """
    tx.run(_enter, kind=kind, id=id, member_id=member_id)


def strike_members(tx: Tx, space_id: SpaceId) -> None:
    """Remove the members of the space, who are deleted, from the roster."""
    tx.run(_strike_all, id=space_id)


def create_organization(tx: Tx, name: str) -> Organization:
    """Create an empty organization."""
    organization = Organization(OrganizationId(new_id()), check_name(name))
    tx.run(_add_organization, id=organization.id, name=organization.name, created_at=tx.now)
    enter(tx, "organization", organization.id)
    return organization


def get_organization(tx: Tx, organization_id: OrganizationId) -> Organization:
    return Organization(*existing(tx.one(_get_organization, id=organization_id), "organization", organization_id))


def rename_organization(tx: Tx, organization_id: OrganizationId, name: str) -> None:
    if tx.run(_rename_organization, id=organization_id, name=check_name(name)) == 0:
        raise NotFound("organization", organization_id)


def list_organizations(tx: Tx) -> list[Organization]:
    return [Organization(*row) for row in tx.all(_list_organizations)]


def first_organization(tx: Tx) -> OrganizationId | None:
    """The organization that was created first, by the person who set the server up."""
    return value(tx, _first_organization)


def create_entity(
    tx: Tx,
    organization_id: OrganizationId,
    kind: EntityKind,
    *,
    name: str,
    handle: str,
    metadata: Mapping[str, JsonValue] | None = None,
    guest: bool = False,
    id: EntityId | None = None,
) -> Entity:
    """Create an entity, under a handle that nobody in the organization has or had. The first person is the owner.

    A person may be only a `guest`.
    """
    get_organization(tx, organization_id)
    role = kind if kind != "human" else "member" if tx.one(_anybody, organization_id=organization_id) else "owner"
    if guest:
        role = "guest"
    entity = Entity(id or EntityId(new_id()), organization_id, kind, check_handle(handle), check_name(name))
    _check_free(tx, organization_id, entity.handle)
    try:
        tx.run(
            _add_entity,
            id=entity.id,
            organization_id=organization_id,
            kind=kind,
            handle=entity.handle,
            name=entity.name,
            metadata=json.dumps(metadata or {}, ensure_ascii=False),
            role=role,
            created_at=tx.now,
        )
    except Conflict as conflict:
        raise HandleTaken(f"The handle @{entity.handle} is taken in this organization. Choose another.") from conflict
    enter(tx, "entity", entity.id)
    return entity


def _check_free(tx: Tx, organization_id: OrganizationId, handle: str) -> None:
    holder = tx.one(_holder, organization_id=organization_id, handle=handle)
    if holder is not None and holder[0] is not None:
        raise HandleTaken(
            f"The handle @{handle} belonged to someone who has left, and old messages still mention it. "
            "Choose another handle."
        )


def hold(tx: Tx, entity_id: EntityId) -> None:
    """Serialize this entity's requests with keys of its own, until the commit."""
    tx.one(_one_at_a_time, id=entity_id)


def get_entity(tx: Tx, entity_id: EntityId) -> Entity:
    return Entity(*existing(tx.one(_get_entity, id=entity_id), "entity", entity_id))


def find_entity(tx: Tx, organization_id: OrganizationId, handle: str) -> Entity:
    """The entity with this handle, with or without its `@`, that has not left."""
    row = tx.one(_find_entity, organization_id=organization_id, handle=handle.removeprefix("@").lower())
    if row is None:
        raise no_such_handle(tx, organization_id, handle)
    return Entity(*row)


def no_such_handle(tx: Tx, organization_id: OrganizationId, handle: str, kind: EntityKind | None = None) -> NotFound:
    """The error for a handle that nobody has, or none of this kind. It names the nearest one, which all of an
    organization may know.
    """
    wanted = handle.removeprefix("@").lower()
    rows = tx.all(_some_handles, organization_id=organization_id, most=_COMPARED_HANDLES)
    there = [known for known, its_kind in rows if kind in (None, its_kind)]
    near = next(iter(nearest(wanted, there, cutoff=0.65)), None)
    hint = "" if near is None else f" Did you mean @{near}?"
    return NotFound(kind or "entity", f"@{shortened(wanted, 40)}", hint=hint)


def free_handle(tx: Tx, organization_id: OrganizationId, like: str) -> str:
    """A handle that nobody in the organization has or had: this one with the lowest number from 2 on."""
    for number in count(2):
        ending = f"-{number}"
        handle = like[: MAX_HANDLE_CHARS - len(ending)].rstrip("._-") + ending
        if tx.one(_holder, organization_id=organization_id, handle=handle) is None:
            return handle
    raise AssertionError("count ends nowhere")


def list_entities(tx: Tx, organization_id: OrganizationId, *, also_left: bool = False) -> list[Entity]:
    """The entities in the organization; with `also_left`, also those that have left."""
    listed = _list_everyone if also_left else _list_entities
    return [Entity(*row) for row in tx.all(listed, organization_id=organization_id)]


_SPACE: Final = ("id", "organization_id", "kind", "name", "private", "floor", "agent_run_limit", "created_at")
_add_space = insert_into(spaces, *_SPACE)
_found_space = insert_ignore(spaces, _SPACE)
SPACE_COLUMNS: Final = columns(spaces, "id, organization_id, kind, name, private, floor, agent_run_limit, agent_run")
"""The columns that `as_space` reads."""
_space = SPACE_COLUMNS
_get_space = select_where(spaces, _space, "id")
_lock_space = statement(select(*_space, spaces.c.last_seq).where(spaces.c.id == bindparam("id")).with_for_update())
_named = select_where(spaces, _space, "organization_id, name", order_by="id")
_change_space = update_where(spaces, "id", set_="name, private, floor, agent_run_limit")
_heard_there = (
    select(passages.c.number)
    .where(passages.c.agent_id == recalls.c.agent_id, passages.c.space_id == bindparam("space_id"))
    .exists()
)
_index_again = statement(
    # Another value each time, so that whoever indexes meanwhile notices.
    update(recalls)
    .where(_heard_there)
    .values(fingerprinted=case((recalls.c.fingerprinted > 0, -1), else_=recalls.c.fingerprinted - 1))
)
_rename = update_where(entities, "id", set_="name")
_spaces_of = statement(
    select(*_space)
    .join(memberships, memberships.c.space_id == spaces.c.id)
    .where(memberships.c.entity_id == bindparam("entity_id"))
    .order_by(spaces.c.id)
)
_members = statement(
    select(*_entity, memberships.c.role, memberships.c.attention)
    .join(memberships, memberships.c.entity_id == entities.c.id)
    .where(memberships.c.space_id == bindparam("space_id"))
    .order_by(memberships.c.joined_at, entities.c.id)
)
_is_member = select_where(memberships, "role", "space_id, entity_id")
_space_and_role = statement(
    select(*_space, memberships.c.role)
    .outerjoin(
        memberships,
        (memberships.c.space_id == spaces.c.id) & (memberships.c.entity_id == bindparam("entity_id")),
    )
    .where(spaces.c.id == bindparam("id"))
)
_join = insert_ignore(memberships, "space_id, entity_id, role, attention, read_seq, joined_at")
_leave = delete_where(memberships, "space_id, entity_id")
_attend = update_where(memberships, "space_id, entity_id", set_="attention")
_appoint = update_where(memberships, "space_id, entity_id", set_="role")
_tell_members = statement(
    update(minds)
    .where(minds.c.agent_id.in_(select(memberships.c.entity_id).where(memberships.c.space_id == bindparam("space"))))
    .values(news=minds.c.news + 1)
)


def create_space(
    tx: Tx,
    organization_id: OrganizationId,
    *,
    name: str,
    kind: SpaceKind = "conversation",
    private: bool = False,
    floor: Floor = DEFAULT_FLOOR,
    agent_run_limit: int = AGENT_RUN_LIMIT,
    id: SpaceId | None = None,
) -> Space:
    """Create a space without members."""
    get_organization(tx, organization_id)
    _check_kind(kind)
    check_floor(floor)
    check_run_limit(agent_run_limit)
    space = Space(id or SpaceId(new_id()), organization_id, kind, check_name(name), private, floor, agent_run_limit)
    tx.run(
        _add_space,
        id=space.id,
        organization_id=organization_id,
        kind=kind,
        name=space.name,
        private=int(private),
        floor=floor,
        agent_run_limit=agent_run_limit,
        created_at=tx.now,
    )
    enter(tx, "space", space.id)
    return space


def found_space(
    tx: Tx, organization_id: OrganizationId, space_id: SpaceId, *, name: str, private: bool = False
) -> Space:
    """The space with an id that was agreed on beforehand: the existing one, otherwise a new one without members."""
    if tx.run(
        _found_space,
        id=space_id,
        organization_id=organization_id,
        kind="conversation",
        name=check_name(name),
        private=int(private),
        floor=DEFAULT_FLOOR,
        agent_run_limit=AGENT_RUN_LIMIT,
        created_at=tx.now,
    ):
        enter(tx, "space", space_id)
    return get_space(tx, space_id)


def get_space(tx: Tx, space_id: SpaceId) -> Space:
    return as_space(existing(tx.one(_get_space, id=space_id), "space", space_id))


def as_space(row: Sequence[Any]) -> Space:
    """Decode a row that begins with `SPACE_COLUMNS`."""
    id, organization_id, kind, name, private, floor, run_limit, run, *_ = row
    return Space(id, organization_id, kind, name, bool(private), floor, run_limit, run)


def find_spaces(tx: Tx, organization_id: OrganizationId, name: str) -> list[Space]:
    """The spaces with that name: names of spaces need not be unique."""
    rows = tx.all(_named, organization_id=organization_id, name=name)
    return [as_space(row) for row in rows]


def spaces_of(tx: Tx, entity_id: EntityId) -> list[Space]:
    """The spaces this entity is in."""
    return [as_space(row) for row in tx.all(_spaces_of, entity_id=entity_id)]


def members(tx: Tx, space_id: SpaceId) -> list[Member]:
    """The members of this space, in the order in which they joined."""
    return [Member(Entity(*entity), role, how) for *entity, role, how in tx.all(_members, space_id=space_id)]


@dataclass(frozen=True, slots=True)
class ShownMembers:
    """The members of a space: the first ones, and how many there are in total."""

    first: tuple[Member, ...]
    count: int


_own = memberships.alias("own")
_newest = (
    select(_own.c.space_id)
    .where(_own.c.entity_id == bindparam("entity_id"))
    .order_by(_own.c.space_id.desc())
    .limit(bindparam("limit"))
)


def _members_shown_in(where: Any) -> Statement:
    space, order = memberships.c.space_id, (memberships.c.joined_at, memberships.c.entity_id)
    there = (
        select(
            memberships,
            func.row_number().over(partition_by=space, order_by=order).label("place"),
            func.count().over(partition_by=space).label("in_all"),
        )
        .where(where)
        .subquery()
    )
    return statement(
        select(there.c.space_id, there.c.in_all, *_entity, there.c.role, there.c.attention)
        .join(entities, entities.c.id == there.c.entity_id)
        .where(there.c.place <= bindparam("shown"))
        .order_by(there.c.space_id, there.c.place)
    )


_shown_members_of = _members_shown_in(memberships.c.space_id.in_(_newest))
_shown_members_in = _members_shown_in(memberships.c.space_id == bindparam("space_id"))
_count_spaces = statement(
    select(func.count()).select_from(memberships).where(memberships.c.entity_id == bindparam("entity_id"))
)


def shown_members_of(tx: Tx, entity_id: EntityId, *, limit: int, shown: int) -> dict[SpaceId, ShownMembers]:
    """The members of each of the newest spaces of this entity: at most `limit` spaces, and `shown` members of each."""
    return _shown_members(tx.all(_shown_members_of, entity_id=entity_id, limit=limit, shown=shown))


def shown_members_in(tx: Tx, space_id: SpaceId, *, shown: int) -> ShownMembers:
    """The members of this space, at most `shown` of them."""
    found = _shown_members(tx.all(_shown_members_in, space_id=space_id, shown=shown))
    return found.get(space_id, ShownMembers((), 0))


def _shown_members(rows: Iterable[tuple[Any, ...]]) -> dict[SpaceId, ShownMembers]:
    found: defaultdict[SpaceId, list[Member]] = defaultdict(list)
    counts: dict[SpaceId, int] = {}
    for space_id, in_all, *who, role, attention in rows:
        found[space_id].append(Member(Entity(*who), role, attention))
        counts[space_id] = in_all
    return {space_id: ShownMembers(tuple(there), counts[space_id]) for space_id, there in found.items()}


def count_spaces(tx: Tx, entity_id: EntityId) -> int:
    """How many spaces this entity is in."""
    return value(tx, _count_spaces, entity_id=entity_id) or 0


def is_member(tx: Tx, space_id: SpaceId, entity_id: EntityId) -> bool:
    return role_in(tx, space_id, entity_id) is not None


def role_in(tx: Tx, space_id: SpaceId, entity_id: EntityId) -> str | None:
    """The entity's role in this space; None if it is not a member."""
    return value(tx, _is_member, space_id=space_id, entity_id=entity_id)


def prefetch_member(tx: Tx, space_id: SpaceId, entity_id: EntityId) -> None:
    """Announce `require_member`."""
    tx.prefetch(_space_and_role, id=space_id, entity_id=entity_id)


def require_member(tx: Tx, space_id: SpaceId, entity_id: EntityId) -> Space:
    """The space, if this entity may read it and speak in it. Every tool, route and screen calls this.

    Raises the same `NotFound` for a space that does not exist and for one that the entity is not in.
    """
    row = tx.one(_space_and_role, id=space_id, entity_id=entity_id)
    if row is None or row[-1] is None:
        raise NotFound("space", space_id)
    return as_space(row)


def has_left(tx: Tx, entity_id: EntityId) -> bool:
    """Whether the entity was removed from the organization."""
    return value(tx, _left_at, id=entity_id) is not None


def join(tx: Tx, space_id: SpaceId, entity_id: EntityId, *, role: str = "member", attention: Attention = "all") -> None:
    """Add the entity to the space, with everything said so far marked as read; announces it to the agents there.

    Idempotent.
    """
    entity = get_entity(tx, entity_id)
    if tx.one(_left_at, id=entity_id) != (None,):
        raise InvalidInput(f'"{entity.name}" has left the organization.')
    space, last_seq = _locked(tx, space_id)
    if entity.organization_id != space.organization_id:
        raise InvalidInput(f'"{entity.name}" belongs to another organization than the space "{space.name}".')
    _check_attention(attention)
    joined = {"role": role, "attention": attention, "read_seq": last_seq, "joined_at": tx.now}
    if tx.run(_join, space_id=space_id, entity_id=entity_id, **joined):
        enter(tx, "member", space_id, entity_id)
        announce_change(tx, space_id)
    tx.run(_tell_members, space=space_id)
    tx.announce(entity_topic(entity_id), MembershipChanged(entity_id, space_id).to_payload())


def end_membership(tx: Tx, space_id: SpaceId, entity_id: EntityId) -> None:
    """Remove the entity from the space; announces it to the agents there. To be called by `leaving.leave` only."""
    _locked(tx, space_id)
    tx.run(_tell_members, space=space_id)
    if tx.run(_leave, space_id=space_id, entity_id=entity_id):
        tx.run(_strike, id=space_id, member_id=entity_id)
        announce_change(tx, space_id)
    tx.announce(entity_topic(entity_id), MembershipChanged(entity_id, space_id).to_payload())


def attend(tx: Tx, space_id: SpaceId, entity_id: EntityId, attention: Attention) -> None:
    """Set which messages of the space reach the member's inbox."""
    _check_attention(attention)
    _change_member(tx, _attend, space_id, entity_id, attention=attention)


def appoint(tx: Tx, space_id: SpaceId, entity_id: EntityId, role: MemberRole) -> None:
    """Set the member's role in the space: owners and admins manage it."""
    if role not in MEMBER_ROLES:
        raise InvalidInput(f"In a space one is {', '.join(MEMBER_ROLES)}, not {role!r}.")
    _change_member(tx, _appoint, space_id, entity_id, role=role)


def _change_member(tx: Tx, change: Statement, space_id: SpaceId, entity_id: EntityId, **new: str) -> None:
    _locked(tx, space_id)
    if tx.run(change, space_id=space_id, entity_id=entity_id, **new) == 0:
        raise NotFound("member", entity_id)
    announce_change(tx, space_id)


def change_space(
    tx: Tx,
    space_id: SpaceId,
    *,
    name: str | None = None,
    private: bool | None = None,
    floor: Floor | None = None,
    agent_run_limit: int | None = None,
) -> None:
    """Change these settings of the space; those that are not given stay. Announces it to the agents in it if its name
    or its privacy changes.
    """
    before, _ = _locked(tx, space_id)
    after = replace(
        before,
        name=before.name if name is None else check_name(name),
        private=before.private if private is None else private,
        floor=before.floor if floor is None else check_floor(floor),
        agent_run_limit=before.agent_run_limit if agent_run_limit is None else check_run_limit(agent_run_limit),
    )
    if after == before:
        return
    tx.run(
        _change_space,
        id=space_id,
        name=after.name,
        private=int(after.private),
        floor=after.floor,
        agent_run_limit=after.agent_run_limit,
    )
    if (after.name, after.private) != (before.name, before.private):
        tx.run(_tell_members, space=space_id)
    if after.private and not before.private:
        # What agents have heard there may not be quoted elsewhere from now on (`tools.quotation_index`).
        tx.run(_index_again, space_id=space_id)
    announce_change(tx, space_id)


def rename(tx: Tx, entity_id: EntityId, name: str) -> None:
    """Rename the entity; announces it to the agents in its spaces."""
    for space in spaces_of(tx, entity_id):
        _locked(tx, space.id)
        tx.run(_tell_members, space=space.id)
        announce_change(tx, space.id)
    if tx.run(_rename, id=entity_id, name=check_name(name)) == 0:
        raise NotFound("entity", entity_id)


def announce_change(tx: Tx, space_id: SpaceId) -> None:
    """Tell clients that show the space to read it again."""
    tx.announce(space_topic(space_id), SpaceChanged(space_id).to_payload())


def _check_attention(attention: str) -> None:
    if attention not in ATTENTIONS:
        raise InvalidInput(f"Attention is one of {', '.join(ATTENTIONS)}, not {attention!r}.")


def _check_kind(kind: str) -> None:
    if kind not in SPACE_KINDS:
        raise InvalidInput(f"The kind of a space is one of {', '.join(SPACE_KINDS)}, not {kind!r}.")


def check_floor(floor: Floor) -> Floor:
    """Raises `InvalidInput` unless it is one of `FLOORS`."""
    if floor not in FLOORS:
        raise InvalidInput(f"The floor of a space is one of {', '.join(FLOORS)}, not {floor!r}.")
    return floor


def check_run_limit(limit: int) -> int:
    """Raises `InvalidInput` unless it is 0 or a positive number."""
    if not 0 <= limit <= LARGEST_RUN_LIMIT:
        raise InvalidInput(f"agent_run_limit is a number from 0 (no limit) to {LARGEST_RUN_LIMIT:,}, not {limit:,}.")
    return limit


def _locked(tx: Tx, space_id: SpaceId) -> tuple[Space, int]:
    """The space and the number of its last message, locked until the commit."""
    # Posting locks the same row: membership does not change between a message and its events.
    row = existing(tx.one(_lock_space, id=space_id), "space", space_id)
    return as_space(row), row[-1]
