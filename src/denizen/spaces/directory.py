"""Organizations, entities, spaces and their members. All access to them goes through here."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from pydantic import JsonValue
from sqlalchemy import bindparam, delete, func, select, update

from denizen.bus.streams import MembershipChanged, SpaceChanged, entity_topic, space_topic
from denizen.errors import HandleTaken, InvalidInput, NotFound
from denizen.folding import fold
from denizen.ids import EntityId, OrganizationId, SpaceId, new_id
from denizen.shapes.vocabulary import Attention, EntityKind, Floor, MemberRole, SpaceKind
from denizen.spaces.handles import MAX_HANDLE_CHARS, check_handle, check_name
from denizen.storage.database import Conflict, Statement, Tx, insert_ignore, insert_into, statement, value
from denizen.storage.schema import entities, memberships, minds, organizations, roster, spaces

ATTENTIONS: Final[tuple[Attention, ...]] = ("all", "mentions", "none")
MEMBER_ROLES: Final[tuple[MemberRole, ...]] = ("owner", "admin", "member")
"""The roles in a space: owners and admins manage it."""
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


_add_organization = insert_into(organizations, "id", "name", "created_at")
_get_organization = statement(
    select(organizations.c.id, organizations.c.name).where(organizations.c.id == bindparam("id"))
)
_list_organizations = statement(select(organizations.c.id, organizations.c.name).order_by(organizations.c.id))
_first_organization = statement(select(func.min(organizations.c.id)))
_add_entity = insert_into(entities, "id", "organization_id", "kind", "handle", "name", "metadata", "role", "created_at")
_rename_organization = statement(
    update(organizations).where(organizations.c.id == bindparam("organization")).values(name=bindparam("new_name"))
)
_anybody = statement(
    select(entities.c.id)
    .where(
        entities.c.organization_id == bindparam("organization_id"),
        entities.c.kind == "human",
        entities.c.role != "guest",
    )
    .limit(1)
)
_entity = (entities.c.id, entities.c.organization_id, entities.c.kind, entities.c.handle, entities.c.name)
_get_entity = statement(select(*_entity).where(entities.c.id == bindparam("id")))
_find_entity = statement(
    select(*_entity).where(
        entities.c.organization_id == bindparam("organization_id"),
        entities.c.handle == bindparam("handle"),
        entities.c.left_at.is_(None),
    )
)
_everyone = select(*_entity).where(entities.c.organization_id == bindparam("organization_id")).order_by(entities.c.id)
_list_everyone = statement(_everyone)
_list_entities = statement(_everyone.where(entities.c.left_at.is_(None)))
_holder = statement(
    select(entities.c.left_at).where(
        entities.c.organization_id == bindparam("organization_id"), entities.c.handle == bindparam("handle")
    )
)
# Waits for a concurrent leave, and makes a concurrent join wait.
_left_at = statement(select(entities.c.left_at).where(entities.c.id == bindparam("id")).with_for_update(read=True))
_one_at_a_time = statement(
    select(entities.c.id).where(entities.c.id == bindparam("id")).with_for_update(key_share=True)
)


_enter = insert_ignore(roster)
_strike = statement(
    delete(roster).where(
        roster.c.kind == "member", roster.c.id == bindparam("space"), roster.c.member_id == bindparam("member")
    )
)
_strike_all = statement(delete(roster).where(roster.c.kind == "member", roster.c.id == bindparam("space")))


def enter(tx: Tx, kind: str, id: str, member_id: str = "") -> None:
    """Enter a new organization, entity, space, member or question into the roster, which shows whether its row is
    lost.
    """
    tx.run(_enter, kind=kind, id=id, member_id=member_id)


def strike_members(tx: Tx, space_id: SpaceId) -> None:
    """Remove the members of the space, who are deleted, from the roster."""
    tx.run(_strike_all, space=space_id)


def create_organization(tx: Tx, name: str) -> Organization:
    """Create an empty organization."""
    organization = Organization(OrganizationId(new_id()), check_name(name))
    tx.run(_add_organization, id=organization.id, name=organization.name, created_at=tx.now)
    enter(tx, "organization", organization.id)
    return organization


def get_organization(tx: Tx, organization_id: OrganizationId) -> Organization:
    row = tx.one(_get_organization, id=organization_id)
    if row is None:
        raise NotFound("organization", organization_id)
    return Organization(*row)


def rename_organization(tx: Tx, organization_id: OrganizationId, name: str) -> None:
    if tx.run(_rename_organization, organization=organization_id, new_name=check_name(name)) == 0:
        raise NotFound("organization", organization_id)


def list_organizations(tx: Tx) -> list[Organization]:
    return [Organization(*row) for row in tx.all(_list_organizations)]


def first_organization(tx: Tx) -> OrganizationId | None:
    """The organization that was created first, by whoever set the server up."""
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
    row = tx.one(_get_entity, id=entity_id)
    if row is None:
        raise NotFound("entity", entity_id)
    return Entity(*row)


def find_entity(tx: Tx, organization_id: OrganizationId, handle: str) -> Entity:
    """The entity with this handle, with or without its `@`, that has not left."""
    row = tx.one(_find_entity, organization_id=organization_id, handle=handle.removeprefix("@").lower())
    if row is None:
        raise NotFound("entity with the handle", handle)
    return Entity(*row)


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
SPACE_COLUMNS: Final = (
    spaces.c.id,
    spaces.c.organization_id,
    spaces.c.kind,
    spaces.c.name,
    spaces.c.private,
    spaces.c.floor,
    spaces.c.agent_run_limit,
    spaces.c.agent_run,
)
"""The columns that `as_space` reads."""
_space = SPACE_COLUMNS
_get_space = statement(select(*_space).where(spaces.c.id == bindparam("id")))
_lock_space = statement(select(*_space, spaces.c.last_seq).where(spaces.c.id == bindparam("id")).with_for_update())
_named = statement(
    select(*_space)
    .where(spaces.c.organization_id == bindparam("organization_id"), spaces.c.name == bindparam("name"))
    .order_by(spaces.c.id)
)
_set_private = statement(update(spaces).where(spaces.c.id == bindparam("space")).values(private=bindparam("hidden")))
_set_floor = statement(update(spaces).where(spaces.c.id == bindparam("space")).values(floor=bindparam("new_floor")))
_set_run_limit = statement(
    update(spaces).where(spaces.c.id == bindparam("space")).values(agent_run_limit=bindparam("new_limit"))
)
_rename_space = statement(update(spaces).where(spaces.c.id == bindparam("space")).values(name=bindparam("new_name")))
_rename = statement(update(entities).where(entities.c.id == bindparam("entity")).values(name=bindparam("new_name")))
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
_is_member = statement(
    select(memberships.c.role).where(
        memberships.c.space_id == bindparam("space_id"), memberships.c.entity_id == bindparam("entity_id")
    )
)
_space_and_role = statement(
    select(*_space, memberships.c.role)
    .outerjoin(
        memberships,
        (memberships.c.space_id == spaces.c.id) & (memberships.c.entity_id == bindparam("entity_id")),
    )
    .where(spaces.c.id == bindparam("id"))
)
_join = insert_ignore(memberships, ("space_id", "entity_id", "role", "attention", "read_seq", "joined_at"))
_leave = statement(
    delete(memberships).where(
        memberships.c.space_id == bindparam("space"), memberships.c.entity_id == bindparam("entity")
    )
)
_attend = statement(
    update(memberships)
    .where(memberships.c.space_id == bindparam("space"), memberships.c.entity_id == bindparam("entity"))
    .values(attention=bindparam("how"))
)
_appoint = statement(
    update(memberships)
    .where(memberships.c.space_id == bindparam("space"), memberships.c.entity_id == bindparam("entity"))
    .values(role=bindparam("new_role"))
)
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
    row = tx.one(_get_space, id=space_id)
    if row is None:
        raise NotFound("space", space_id)
    return as_space(row)


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
    return [Member(Entity(*row[:5]), row[5], row[6]) for row in tx.all(_members, space_id=space_id)]


@dataclass(frozen=True, slots=True)
class Company:
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


def _company(where: Any) -> Statement:
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


_company_of = _company(memberships.c.space_id.in_(_newest))
_company_in = _company(memberships.c.space_id == bindparam("space_id"))
_count_spaces = statement(
    select(func.count()).select_from(memberships).where(memberships.c.entity_id == bindparam("entity_id"))
)


def companies_of(tx: Tx, entity_id: EntityId, *, limit: int, shown: int) -> dict[SpaceId, Company]:
    """The members of each of the newest spaces of this entity: at most `limit` spaces, and `shown` members of each."""
    return _companies(tx.all(_company_of, entity_id=entity_id, limit=limit, shown=shown))


def company_in(tx: Tx, space_id: SpaceId, *, shown: int) -> Company:
    """The members of this space, at most `shown` of them."""
    found = _companies(tx.all(_company_in, space_id=space_id, shown=shown))
    return found.get(space_id, Company((), 0))


def _companies(rows: Iterable[tuple[Any, ...]]) -> dict[SpaceId, Company]:
    found: defaultdict[SpaceId, list[Member]] = defaultdict(list)
    counts: dict[SpaceId, int] = {}
    for space_id, in_all, *who, role, attention in rows:
        found[space_id].append(Member(Entity(*who), role, attention))
        counts[space_id] = in_all
    return {space_id: Company(tuple(there), counts[space_id]) for space_id, there in found.items()}


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
    if tx.run(_leave, space=space_id, entity=entity_id):
        tx.run(_strike, space=space_id, member=entity_id)
        announce_change(tx, space_id)
    tx.announce(entity_topic(entity_id), MembershipChanged(entity_id, space_id).to_payload())


def attend(tx: Tx, space_id: SpaceId, entity_id: EntityId, attention: Attention) -> None:
    """Set which messages of the space reach the member's inbox."""
    _check_attention(attention)
    _locked(tx, space_id)
    if tx.run(_attend, space=space_id, entity=entity_id, how=attention) == 0:
        raise NotFound("member", entity_id)
    announce_change(tx, space_id)


def appoint(tx: Tx, space_id: SpaceId, entity_id: EntityId, role: MemberRole) -> None:
    """Set the member's role in the space: owners and admins manage it."""
    if role not in MEMBER_ROLES:
        raise InvalidInput(f"In a space one is {', '.join(MEMBER_ROLES)}, not {role!r}.")
    _locked(tx, space_id)
    if tx.run(_appoint, space=space_id, entity=entity_id, new_role=role) == 0:
        raise NotFound("member", entity_id)
    announce_change(tx, space_id)


def set_private(tx: Tx, space_id: SpaceId, private: bool) -> None:
    """Set whether the space is hidden from others; announces it to the agents in it."""
    _locked(tx, space_id)
    tx.run(_set_private, space=space_id, hidden=int(private))
    tx.run(_tell_members, space=space_id)
    announce_change(tx, space_id)


def set_floor(tx: Tx, space_id: SpaceId, floor: Floor) -> None:
    """Set which agents take up messages in the space."""
    check_floor(floor)
    _locked(tx, space_id)
    tx.run(_set_floor, space=space_id, new_floor=floor)
    announce_change(tx, space_id)


def set_agent_run_limit(tx: Tx, space_id: SpaceId, limit: int) -> None:
    """Set after how many messages with which agents woke each other in the space they stop; 0: no limit."""
    check_run_limit(limit)
    _locked(tx, space_id)
    tx.run(_set_run_limit, space=space_id, new_limit=limit)
    announce_change(tx, space_id)


def change_space(
    tx: Tx,
    space: Space,
    *,
    name: str | None = None,
    private: bool | None = None,
    floor: Floor | None = None,
    agent_run_limit: int | None = None,
) -> None:
    """Change these settings of the space; those that are not given stay."""
    if name is not None:
        rename_space(tx, space.id, name)
    if private is not None and private != space.private:
        set_private(tx, space.id, private)
    if floor is not None and floor != space.floor:
        set_floor(tx, space.id, floor)
    if agent_run_limit is not None and agent_run_limit != space.agent_run_limit:
        set_agent_run_limit(tx, space.id, agent_run_limit)


def rename_space(tx: Tx, space_id: SpaceId, name: str) -> None:
    """Rename the space; announces it to the agents in it."""
    _locked(tx, space_id)
    tx.run(_rename_space, space=space_id, new_name=check_name(name))
    tx.run(_tell_members, space=space_id)
    announce_change(tx, space_id)


def rename(tx: Tx, entity_id: EntityId, name: str) -> None:
    """Rename the entity; announces it to the agents in its spaces."""
    for space in spaces_of(tx, entity_id):
        _locked(tx, space.id)
        tx.run(_tell_members, space=space.id)
        announce_change(tx, space.id)
    if tx.run(_rename, entity=entity_id, new_name=check_name(name)) == 0:
        raise NotFound("entity", entity_id)


def announce_change(tx: Tx, space_id: SpaceId) -> None:
    """Tell clients that show the space to read it again."""
    tx.announce(space_topic(space_id), SpaceChanged(space_id).to_payload())


def _check_attention(attention: str) -> None:
    if attention not in ATTENTIONS:
        raise InvalidInput(f"Attention is one of {', '.join(ATTENTIONS)}, not {attention!r}.")


def check_floor(floor: str) -> None:
    """Raises `InvalidInput` unless it is one of `FLOORS`."""
    if floor not in FLOORS:
        raise InvalidInput(f"The floor of a space is one of {', '.join(FLOORS)}, not {floor!r}.")


def check_run_limit(limit: int) -> None:
    """Raises `InvalidInput` unless it is 0 or a positive number."""
    if not 0 <= limit <= LARGEST_RUN_LIMIT:
        raise InvalidInput(f"agent_run_limit is a number from 0 (no limit) to {LARGEST_RUN_LIMIT:,}, not {limit:,}.")


def _locked(tx: Tx, space_id: SpaceId) -> tuple[Space, int]:
    """The space and the number of its last message, locked until the commit."""
    # Posting locks the same row: membership does not change between a message and its events.
    row = tx.one(_lock_space, id=space_id)
    if row is None:
        raise NotFound("space", space_id)
    return as_space(row), row[-1]
