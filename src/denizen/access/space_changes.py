"""Creating and changing spaces and their members, with permission checks.

The HTTP API and `denizen.spaces` call the same functions. A space is managed by its owners and admins, and by the
admins of the organization who are in it; whoever is in a space may rename it, and add and remove agents. Privacy is
ended only by those who manage the space, or by the only person in it.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import JsonValue

from denizen.access import audit, people
from denizen.access.requesters import THIS_PROCESS, Requester, find_space
from denizen.errors import IdempotencyKeyReused, NotAllowed, NotFound
from denizen.ids import EntityId, OrganizationId, SpaceId
from denizen.spaces import directory, leaving, organization_settings, retention
from denizen.spaces.directory import (
    AGENT_RUN_LIMIT,
    DEFAULT_FLOOR,
    Attention,
    Entity,
    Floor,
    MemberRole,
    Space,
    SpaceKind,
)
from denizen.spaces.handles import check_name
from denizen.spaces.retention import Retention
from denizen.storage.database import Tx, storable


def require_space_creator(tx: Tx, by: Requester, organization_id: OrganizationId) -> None:
    """Raises `NotAllowed` unless the requester may create spaces here: `spaces_by` of the organization says who may."""
    by.require_organization(organization_id)
    by.require(organization_settings.read(tx, organization_id).get("spaces_by", "member"))


def create(
    tx: Tx,
    by: Requester,
    organization_id: OrganizationId,
    name: str,
    members: Iterable[str] = (),
    *,
    kind: SpaceKind = "conversation",
    private: bool = False,
    floor: Floor | None = None,
    agent_run_limit: int | None = None,
    id: SpaceId | None = None,
) -> Space:
    """Create a space with these members, by id or `@handle`. A person who creates it is in it as its owner.

    Idempotent by `id`; raises `IdempotencyKeyReused` if it is the id of another space.
    """
    require_space_creator(tx, by, organization_id)
    if id is not None and (made := _made_before(tx, by, id)) is not None:
        same = (made.name, made.private) == (check_name(name), private)
        if not same or floor not in (None, made.floor) or agent_run_limit not in (None, made.agent_run_limit):
            raise IdempotencyKeyReused
        return made
    joining = [_newcomer(tx, by, organization_id, each) for each in members]
    space = directory.create_space(
        tx,
        organization_id,
        name=name,
        kind=kind,
        private=private,
        floor=DEFAULT_FLOOR if floor is None else floor,
        agent_run_limit=AGENT_RUN_LIMIT if agent_run_limit is None else agent_run_limit,
        id=id,
    )
    if by != THIS_PROCESS:
        directory.join(tx, space.id, by.entity_id, role="owner")
    for each in joining:
        directory.join(tx, space.id, each)
    return space


def _made_before(tx: Tx, by: Requester, id: SpaceId) -> Space | None:
    """The space of this id, if an earlier request has created it."""
    # Two requests with the same key at the same time: the second finds what the first has made.
    directory.hold(tx, by.entity_id)
    try:
        return directory.get_space(tx, id)
    except NotFound:
        return None


def change(
    tx: Tx,
    by: Requester,
    space_id: str,
    *,
    name: str | None = None,
    private: bool | None = None,
    floor: Floor | None = None,
    agent_run_limit: int | None = None,
) -> Space:
    """Change these settings of the space; those that are not given stay. For people in it.

    To end its privacy, for those who manage it, if other people are in it: they spoke there in private.
    """
    by.require("member")
    space = find_space(tx, by, space_id)
    if space.private and private is False and _has_other_people(tx, by, space.id):
        _require_manager(tx, by, space.id, "make a private space visible to others")
    directory.change_space(tx, space.id, name=name, private=private, floor=floor, agent_run_limit=agent_run_limit)
    return space


def set_retention(tx: Tx, by: Requester, space_id: str, wanted: Retention | None) -> Space:
    """Set how long the messages of the space are kept; None: as long as the organization's default says. For those who
    manage the space: what has expired is removed permanently.
    """
    by.require("member")
    space = find_space(tx, by, space_id)
    if by != THIS_PROCESS:
        _require_manager(tx, by, space.id, "set how long its messages are kept")
    retention.set_own(tx, space.id, wanted)
    given: dict[str, JsonValue] = {} if wanted is None else {"days": wanted.days, "archive": wanted.archive}
    audit.record(tx, space.organization_id, by.actor, "set_retention", space.id, **given)
    return space


def add_member(
    tx: Tx, by: Requester, space_id: str, named: str, *, role: MemberRole = "member", attention: Attention = "all"
) -> Entity:
    """Add this person, agent or service to the space. For people in it; to give a role, for those who manage it."""
    by.require("member")
    space = find_space(tx, by, space_id)
    entity_id = _newcomer(tx, by, space.organization_id, named)
    if role != "member":
        _require_manager(tx, by, space.id, "give a role in it")
    directory.join(tx, space.id, entity_id, role=role, attention=attention)
    return directory.get_entity(tx, entity_id)


def change_member(
    tx: Tx,
    by: Requester,
    space_id: str,
    named: str,
    *,
    attention: Attention | None = None,
    role: MemberRole | None = None,
) -> Entity:
    """Change which messages reach a member, and the member's role. A person's attention is theirs to change."""
    by.require("member")
    space = find_space(tx, by, space_id)
    entity = _member(tx, by, space, named)
    if attention is not None:
        if _is_another_person(by, entity):
            raise NotAllowed(f"Only {entity.name} can change which messages {entity.name} gets.")
        directory.attend(tx, space.id, entity.id, attention)
    if role is not None:
        _require_manager(tx, by, space.id, "give a role in it")
        directory.appoint(tx, space.id, entity.id, role)
    return entity


def remove_member(tx: Tx, by: Requester, space_id: str, named: str) -> None:
    """Remove a member from the space: oneself, an agent or a service; another person only if one manages it."""
    by.require("member")
    space = find_space(tx, by, space_id)
    entity = _member(tx, by, space, named)
    if _is_another_person(by, entity):
        _require_manager(tx, by, space.id, "remove another person")
    leaving.leave(tx, space.id, entity.id)


def _newcomer(tx: Tx, by: Requester, organization_id: OrganizationId, named: str) -> EntityId:
    return EntityId(named) if by == THIS_PROCESS else people.find_present(tx, organization_id, named).id


def _member(tx: Tx, by: Requester, space: Space, named: str) -> Entity:
    wanted = storable(named)
    try:
        if wanted.startswith("@"):
            entity = directory.find_entity(tx, space.organization_id, wanted)
        else:
            entity = directory.get_entity(tx, EntityId(wanted))
        if by == THIS_PROCESS or directory.is_member(tx, space.id, entity.id):
            return entity
    except NotFound:
        pass
    raise NotFound("member", named)


def _is_another_person(by: Requester, entity: Entity) -> bool:
    return by != THIS_PROCESS and entity.kind == "human" and entity.id != by.entity_id


def _has_other_people(tx: Tx, by: Requester, space_id: SpaceId) -> bool:
    return any(_is_another_person(by, each.entity) for each in directory.members(tx, space_id))


def _require_manager(tx: Tx, by: Requester, space_id: SpaceId, what: str) -> None:
    if by.reaches("admin") or directory.role_in(tx, space_id, by.entity_id) in ("owner", "admin"):
        return
    raise NotAllowed(f"Only an owner or admin of the space, or of the organization, may {what}.")
