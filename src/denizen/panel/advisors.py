"""The advisors of a panel: created, edited, ordered, grouped, switched on and off, imported and exported as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, NewType, TypedDict, cast
from uuid import NAMESPACE_OID, uuid5

from pydantic import BaseModel, Field

from denizen.access import space_changes
from denizen.access.requesters import Requester
from denizen.errors import HandleTaken, InvalidInput, NotFound
from denizen.ids import OrganizationId, SpaceId, new_id
from denizen.panel import panels, reflection_cursor
from denizen.panel.panels import Panel
from denizen.panel.phases import Phase
from denizen.panel.settings import MOST_ADVISORS, AdvisorSettings, checked
from denizen.reflection.settings import ReflectionSettings
from denizen.spaces.handles import MAX_HANDLE_CHARS, check_handle, check_name, handle_from
from denizen.storage.database import Params, Tx, columns, insert_into, select_where, storable, update_where
from denizen.storage.schema import advisors

AdvisorId = NewType("AdvisorId", str)

FORMAT: Final = "denizen.advisors/1"
SUGGESTED_ADVISORS: Final = 8
MOST_SUGGESTED: Final = 20
"""How many advisors a model suggests for a topic, and how many at most."""
COLOURS: Final = (
    "#2f6f9f", "#a8552f", "#4d7c3a", "#7a4fa3", "#b08a1e", "#2a8580", "#a63d5c", "#5b6472", "#3f51a3", "#8a6a4f",
    "#1f7a4d", "#9a4a8c",
)  # fmt: skip
"""Assigned in turn to advisors without a colour of their own."""


class AdvisorFields(TypedDict, total=False):
    """The fields of an `AdvisorDraft`, as keyword arguments of `denizen.advisors.edit`."""

    name: str
    handle: str | None
    description: str
    colour: str
    group: str
    active: bool
    model: str | None
    max_tokens: int | None
    reasoning: bool
    phases: Iterable[Phase | Mapping[str, Any]] | None
    assertions: Iterable[str]
    reflection: ReflectionSettings | Mapping[str, Any] | None


class AdvisorDraft(BaseModel, frozen=True, extra="forbid"):
    """The description of an advisor: from a person, or from an exported file."""

    name: str
    handle: str | None = None
    """`@handle` addresses it; made from the name if not given."""
    description: str = Field(default="", max_length=20_000)
    """Who it is, in the second or third person: it follows "You are …."."""
    colour: str = Field(default="", pattern=r"^(#[0-9a-fA-F]{6})?$")
    group: str = Field(default="", max_length=60)
    active: bool = True
    model: str | None = None
    max_tokens: int | None = None
    reasoning: bool = False
    phases: tuple[Any, ...] | None = None
    assertions: tuple[str, ...] = ()
    reflection: Any = None


@dataclass(frozen=True, slots=True)
class Advisor:
    """An advisor of a panel."""

    id: AdvisorId
    panel_id: SpaceId
    position: int
    handle: str
    name: str
    description: str
    colour: str
    group: str
    active: bool
    settings: AdvisorSettings
    removed: bool = False


_OWN: Final = frozenset(AdvisorSettings.model_fields)
_add = insert_into(
    advisors, "id, space_id, position, handle, name, description, colour, in_group, active, settings, created_at"
)
_row = columns(
    advisors, "id, space_id, position, handle, name, description, colour, in_group, active, settings, removed_at"
)
_there = select_where(advisors, _row, "space_id", advisors.c.removed_at.is_(None), order_by="position, id")
_get = select_where(advisors, _row, "id")
_change = update_where(advisors, "id", set_="handle, name, description, colour, in_group, active, settings")
_move = update_where(advisors, "id", set_="position")
_remove = update_where(advisors, "id", advisors.c.removed_at.is_(None), set_="removed_at", active=0)


def list_of(tx: Tx, panel_id: SpaceId) -> list[Advisor]:
    """Returns all advisors of the panel, switched on or off, in order."""
    return [_as_advisor(row) for row in tx.all(_there, space_id=panel_id)]


def get(tx: Tx, panel_id: SpaceId, advisor_id: str) -> Advisor:
    """Returns an advisor of this panel by its id; also a removed one."""
    row = tx.one(_get, id=advisor_id)
    found = None if row is None else _as_advisor(row)
    if found is None or found.panel_id != panel_id:
        raise NotFound("advisor", advisor_id)
    return found


def create_panel(
    tx: Tx,
    by: Requester,
    organization_id: OrganizationId,
    name: str,
    members: Iterable[str] = (),
    given: Sequence[AdvisorDraft] = (),
    *,
    private: bool = False,
    settings: Mapping[str, Any] | None = None,
    id: SpaceId | None = None,
) -> Panel:
    """Creates a panel with these members and advisors: a space, as `space_changes.create` does. Idempotent by `id`."""
    space = space_changes.create(
        tx, by, organization_id, name, members, kind="panel", private=private, floor="all", id=id
    )
    if panels.found(tx, space, settings or {}):
        add(tx, by, space.id, given)
    return panels.get(tx, space.id)


def add(
    tx: Tx, by: Requester, panel_id: str, given: Sequence[AdvisorDraft], *, key: str | None = None
) -> list[Advisor]:
    """Adds these advisors after the present ones. Repeating the call with the same `key` returns those added before."""
    panel_id = panels.hold_for(tx, by, panel_id).id
    if (added := _added(tx, panel_id, key)) is not None:
        return added
    there = list_of(tx, panel_id)
    if len(there) + len(given) > MOST_ADVISORS:
        raise InvalidInput(f"A panel has room for {MOST_ADVISORS} advisors; this one has {len(there)}.")
    last = max((each.position for each in there), default=0)
    taken = {each.handle for each in there}
    made: list[Advisor] = []
    for at, draft in enumerate(given, start=1):
        handle = _handle(draft, taken)
        taken.add(handle)
        colour = draft.colour.lower() or COLOURS[(len(there) + at - 1) % len(COLOURS)]
        id = AdvisorId(new_id() if key is None else _keyed(key, at))
        made.append(_drafted(id, panel_id, last + at, handle, colour, draft))
    for each in made:
        tx.run(_add, space_id=panel_id, position=each.position, created_at=tx.now, **_as_row(each))
    reflection_cursor.keep_reflecting(tx, panel_id)
    panels.announce(tx, panel_id)
    return made


def _as_row(advisor: Advisor) -> dict[str, Params]:
    """Its columns, without those that never change and its position."""
    return {
        "id": advisor.id,
        "handle": advisor.handle,
        "name": advisor.name,
        "description": advisor.description,
        "colour": advisor.colour,
        "in_group": advisor.group,
        "active": int(advisor.active),
        "settings": _stored(advisor.settings),
    }


def _keyed(key: str, at: int) -> str:
    return str(uuid5(NAMESPACE_OID, f"{key} {at}"))


def _added(tx: Tx, panel_id: SpaceId, key: str | None) -> list[Advisor] | None:
    """Returns the advisors that were added with this key before, as they are now; None if there are none."""
    made: list[Advisor] = []
    while key is not None and (row := tx.one(_get, id=_keyed(key, len(made) + 1))) is not None:
        made.append(_as_advisor(row))
    return [each for each in made if each.panel_id == panel_id] or None


def edit(tx: Tx, by: Requester, panel_id: str, advisor_id: str, changes: Mapping[str, Any]) -> Advisor:
    """Changes these fields of the advisor. Its past replies stay its own, also under a new name."""
    panel_id = panels.hold_for(tx, by, panel_id).id
    before = get(tx, panel_id, advisor_id)
    if before.removed:
        raise NotFound("advisor", advisor_id)
    draft = checked(AdvisorDraft, {**exported(before), **changes}, "an advisor")
    taken = {each.handle for each in list_of(tx, panel_id) if each.id != advisor_id}
    handle = before.handle if draft.handle is None else check_handle(draft.handle)
    if handle in taken:
        raise HandleTaken(f"Another advisor of this panel has the handle @{handle}. Choose another handle.")
    after = _drafted(before.id, panel_id, before.position, handle, draft.colour.lower(), draft)
    tx.run(_change, **_as_row(after))
    reflection_cursor.keep_reflecting(tx, panel_id)
    panels.announce(tx, panel_id)
    return after


def remove(tx: Tx, by: Requester, panel_id: str, advisor_id: str) -> None:
    """Removes the advisor from the panel. Its past replies stay."""
    panel_id = panels.hold_for(tx, by, panel_id).id
    get(tx, panel_id, advisor_id)
    tx.run(_remove, id=advisor_id, removed_at=tx.now)
    reflection_cursor.keep_reflecting(tx, panel_id)
    panels.announce(tx, panel_id)


def reorder(tx: Tx, by: Requester, panel_id: str, order: Sequence[str]) -> list[Advisor]:
    """Puts the advisors in this order; those not named follow in their present order."""
    panel_id = panels.hold_for(tx, by, panel_id).id
    there = list_of(tx, panel_id)
    known = {str(each.id) for each in there}
    unknown = [each for each in order if each not in known]
    if unknown or len(set(order)) != len(order):
        raise InvalidInput(
            f"advisors: name each advisor of this panel once. {', '.join(unknown) or 'One is repeated.'}"
        )
    rest = [str(each.id) for each in there if each.id not in order]
    for place, advisor_id in enumerate([*order, *rest], start=1):
        tx.run(_move, id=advisor_id, position=place)
    panels.announce(tx, panel_id)
    return list_of(tx, panel_id)


def set_group_active(tx: Tx, by: Requester, panel_id: str, group: str, active: bool) -> list[Advisor]:
    """Switches all advisors of the group on or off."""
    panel_id = panels.hold_for(tx, by, panel_id).id
    members = [each for each in list_of(tx, panel_id) if each.group == group]
    if not members:
        raise NotFound("group of advisors", group)
    return [edit(tx, by, panel_id, each.id, {"active": active}) for each in members]


def bring_in(
    tx: Tx, by: Requester, panel_id: str, document: Mapping[str, Any], *, replace: bool = False, key: str | None = None
) -> list[Advisor]:
    """Adds the advisors of an exported file; with `replace`, removes the present ones.

    `key` works as in `add`.
    """
    drafts = read(document)
    panel_id = panels.hold_for(tx, by, panel_id).id
    if (made := _added(tx, panel_id, key)) is not None:
        return made
    if replace:
        for each in list_of(tx, panel_id):
            remove(tx, by, panel_id, each.id)
    return add(tx, by, panel_id, drafts, key=key)


def read(document: Mapping[str, Any]) -> list[AdvisorDraft]:
    """Parses the advisors in a document. Raises `InvalidInput` that says what is wrong with it."""
    if document.get("format", FORMAT) != FORMAT:
        raise InvalidInput(f"format: this is not a known file of advisors ({FORMAT}).")
    given: Any = document.get("advisors")
    if not isinstance(given, list):
        raise InvalidInput("advisors: a list of them is expected.")
    listed = cast("list[object]", given)
    return [drafted(each, f"advisor {at}") for at, each in enumerate(listed, start=1)]


def drafted(given: object, what: str = "an advisor") -> AdvisorDraft:
    """Validates an advisor from outside. Raises `InvalidInput` that says which field is wrong."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{what}: an object with at least a `name` is expected.")
    draft = checked(AdvisorDraft, given, what)  # pyright: ignore[reportUnknownArgumentType]
    check_name(draft.name)
    _settings(draft)
    return draft


def taken_out(listed: Iterable[Advisor]) -> dict[str, Any]:
    """Exports the advisors as a document that `bring_in` reads."""
    return {"format": FORMAT, "advisors": [exported(each) for each in listed]}


def exported(advisor: Advisor) -> dict[str, Any]:
    """Exports one advisor for such a document."""
    fields: dict[str, Any] = {"name": advisor.name, "handle": advisor.handle, "description": advisor.description}
    fields |= {"colour": advisor.colour, "group": advisor.group, "active": advisor.active}
    return fields | advisor.settings.model_dump(mode="json", exclude_defaults=True)


def addressed(listed: Sequence[Advisor], mentions: Iterable[str]) -> list[Advisor]:
    """Returns the advisors a message is for: those it mentions by handle or group, otherwise all that are switched on.

    Of a group, those that are switched on; if none is, all of it, because nobody else was meant.
    """
    named = {each.lower() for each in mentions}
    on = {each.group for each in listed if each.active}
    meant = [
        each
        for each in listed
        if each.handle in named
        or (each.group and handle_from(each.group) in named and (each.active or each.group not in on))
    ]
    return meant or [each for each in listed if each.active]


def _drafted(id: AdvisorId, panel_id: SpaceId, position: int, handle: str, colour: str, draft: AdvisorDraft) -> Advisor:
    return Advisor(
        id,
        panel_id,
        position,
        handle,
        check_name(draft.name),
        storable(draft.description),
        colour,
        storable(draft.group.strip()),
        draft.active,
        _settings(draft),
    )


def _settings(draft: AdvisorDraft) -> AdvisorSettings:
    return checked(AdvisorSettings, draft.model_dump(include=set(_OWN)), "an advisor")


def _handle(draft: AdvisorDraft, taken: set[str]) -> str:
    if draft.handle is not None:
        handle = check_handle(draft.handle)
        if handle in taken:
            raise HandleTaken(f"Another advisor of this panel has the handle @{handle}. Choose another handle.")
        return handle
    like = handle_from(draft.name)
    if like not in taken:
        return like
    for number in count(2):
        handle = f"{like[: MAX_HANDLE_CHARS - 4].rstrip('._-')}-{number}"
        if handle not in taken:
            return handle
    raise AssertionError("count ends nowhere")


def _stored(settings: AdvisorSettings) -> str:
    return json.dumps(settings.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)


def _as_advisor(row: tuple[Any, ...]) -> Advisor:
    *columns, active, settings, removed_at = row
    stored = AdvisorSettings.model_validate_json(settings)
    return Advisor(*columns, active=bool(active), settings=stored, removed=removed_at is not None)
