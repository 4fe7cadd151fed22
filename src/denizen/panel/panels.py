"""Panels: spaces of the kind `panel`, and their settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, select, update

from denizen.bus.streams import PanelChanged, space_topic
from denizen.errors import NotFound
from denizen.ids import EntityId, OrganizationId, SpaceId
from denizen.panel import reflection_cursor
from denizen.panel.settings import PanelSettings, checked
from denizen.spaces import directory
from denizen.spaces.directory import Space
from denizen.storage.database import Tx, insert_ignore, statement
from denizen.storage.schema import memberships, panels, spaces


@dataclass(frozen=True, slots=True)
class Panel:
    """A space whose advisors answer."""

    space: Space
    settings: PanelSettings
    turns: int
    """The number of messages that were put to it."""

    @property
    def id(self) -> SpaceId:
        return self.space.id

    @property
    def name(self) -> str:
        return self.space.name

    @property
    def organization_id(self) -> OrganizationId:
        return self.space.organization_id


_found = insert_ignore(panels, ("space_id", "organization_id", "settings", "turns", "created_at"))
_row = (*directory.SPACE_COLUMNS, panels.c.settings, panels.c.turns)
_get = statement(
    select(*_row)
    .select_from(spaces.outerjoin(panels, panels.c.space_id == spaces.c.id))
    .where(spaces.c.id == bindparam("id"), spaces.c.kind == "panel")
)
_of_member = statement(
    select(*_row)
    .select_from(
        spaces.join(memberships, memberships.c.space_id == spaces.c.id).outerjoin(
            panels, panels.c.space_id == spaces.c.id
        )
    )
    .where(memberships.c.entity_id == bindparam("entity_id"), spaces.c.kind == "panel")
    .order_by(spaces.c.id)
)
_set = statement(update(panels).where(panels.c.space_id == bindparam("space")).values(settings=bindparam("new")))
_hold = statement(select(panels.c.turns).where(panels.c.space_id == bindparam("space_id")).with_for_update())


def create(
    tx: Tx,
    organization_id: OrganizationId,
    name: str,
    *,
    private: bool = False,
    settings: Mapping[str, Any] | None = None,
    members: Iterable[EntityId] = (),
    owner: EntityId | None = None,
    id: SpaceId | None = None,
) -> Panel:
    """Creates a panel without advisors, with these members."""
    space = directory.create_space(tx, organization_id, name=name, kind="panel", private=private, floor="all", id=id)
    given = checked(PanelSettings, settings or {}, "a panel")
    _keep(tx, space, given)
    reflection_cursor.keep_reflecting(tx, space.id)
    if owner is not None:
        directory.join(tx, space.id, owner, role="owner")
    for each in members:
        directory.join(tx, space.id, each)
    return Panel(space, given, 0)


def get(tx: Tx, panel_id: SpaceId) -> Panel:
    row = tx.one(_get, id=panel_id)
    if row is None:
        raise NotFound("panel", panel_id)
    return _as_panel(row)


def require(tx: Tx, panel_id: SpaceId, entity_id: EntityId) -> Panel:
    """Returns the panel if this entity is a member: all access to a panel goes through here."""
    # Those who are not members are not told that it exists.
    if not directory.is_member(tx, panel_id, entity_id):
        raise NotFound("panel", panel_id)
    return get(tx, panel_id)


def panels_of(tx: Tx, entity_id: EntityId) -> list[Panel]:
    """The panels this entity is in."""
    return [_as_panel(row) for row in tx.all(_of_member, entity_id=entity_id)]


def hold(tx: Tx, panel_id: SpaceId) -> Panel:
    """Locks the panel until the commit, against changes and new rounds."""
    panel = get(tx, panel_id)
    # A space of this kind may be older than its row of panel settings.
    _keep(tx, panel.space, PanelSettings())
    tx.one(_hold, space_id=panel_id)
    return get(tx, panel_id)


def edit(tx: Tx, panel_id: SpaceId, changes: Mapping[str, Any]) -> Panel:
    """Changes these settings of the panel. Replies in progress keep the old ones."""
    panel = hold(tx, panel_id)
    settings = checked(PanelSettings, {**panel.settings.model_dump(), **changes}, "a panel")
    tx.run(_set, space=panel_id, new=_stored(settings))
    reflection_cursor.keep_reflecting(tx, panel_id)
    announce(tx, panel_id)
    return Panel(panel.space, settings, panel.turns)


def announce(tx: Tx, panel_id: SpaceId) -> None:
    """Announces that the panel, or its advisors, have changed."""
    tx.announce(space_topic(panel_id), PanelChanged(panel_id).to_payload())


def _keep(tx: Tx, space: Space, settings: PanelSettings) -> None:
    tx.run(
        _found,
        space_id=space.id,
        organization_id=space.organization_id,
        settings=_stored(settings),
        turns=0,
        created_at=tx.now,
    )


def _stored(settings: PanelSettings) -> str:
    return json.dumps(settings.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)


def _as_panel(row: tuple[Any, ...]) -> Panel:
    *space, settings, turns = row
    return Panel(directory.as_space(space), PanelSettings.model_validate_json(settings or "{}"), turns or 0)
