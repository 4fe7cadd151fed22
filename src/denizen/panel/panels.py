"""Panels: spaces of the kind `panel`, and their settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, select

from denizen.access import space_changes
from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.bus.streams import PanelChanged, space_topic
from denizen.errors import NotFound, existing
from denizen.ids import EntityId, OrganizationId, SpaceId
from denizen.panel import reflection_cursor
from denizen.panel.settings import PanelSettings, checked
from denizen.spaces import directory
from denizen.spaces.directory import Space
from denizen.storage.database import Tx, insert_ignore, select_where, statement, storable, update_where
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


_found = insert_ignore(panels, "space_id, organization_id, settings, turns, created_at")
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
_set = update_where(panels, "space_id", set_="settings")
_hold = select_where(panels, "turns", "space_id", for_update=True)


def found(tx: Tx, space: Space, settings: Mapping[str, Any]) -> bool:
    """Makes the space a panel with these settings; False if it is one already."""
    founded = _keep(tx, space, checked(PanelSettings, settings, "a panel"))
    reflection_cursor.keep_reflecting(tx, space.id)
    return founded


def get(tx: Tx, panel_id: SpaceId) -> Panel:
    return _as_panel(existing(tx.one(_get, id=panel_id), "panel", panel_id))


def find(tx: Tx, by: Requester, panel_id: str) -> Panel:
    """The panel, if the requester is in it; this process finds every panel. All access to a panel goes through here."""
    wanted = SpaceId(storable(panel_id))
    # Those who are not members are not told that it exists.
    if by != THIS_PROCESS and not directory.is_member(tx, wanted, by.entity_id):
        raise NotFound("panel", panel_id)
    return get(tx, wanted)


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


def hold_for(tx: Tx, by: Requester, panel_id: str) -> Panel:
    """The same for a change that somebody asks for: people in the panel may change it, and what was asked in it."""
    by.require("member")
    return hold(tx, find(tx, by, panel_id).id)


def edit(tx: Tx, by: Requester, panel_id: str, changes: Mapping[str, Any], *, name: str | None = None) -> Panel:
    """Changes these settings of the panel, and its name. Replies in progress keep the old settings."""
    panel = hold_for(tx, by, panel_id)
    if name is not None:
        space_changes.change(tx, by, panel.id, name=name)
    if changes:
        settings = checked(PanelSettings, {**panel.settings.model_dump(), **changes}, "a panel")
        tx.run(_set, space_id=panel.id, settings=_stored(settings))
        reflection_cursor.keep_reflecting(tx, panel.id)
        announce(tx, panel.id)
    return get(tx, panel.id)


def announce(tx: Tx, panel_id: SpaceId) -> None:
    """Announces that the panel, or its advisors, have changed."""
    tx.announce(space_topic(panel_id), PanelChanged(panel_id).to_payload())


def _keep(tx: Tx, space: Space, settings: PanelSettings) -> bool:
    kept = tx.run(
        _found,
        space_id=space.id,
        organization_id=space.organization_id,
        settings=_stored(settings),
        turns=0,
        created_at=tx.now,
    )
    return bool(kept)


def _stored(settings: PanelSettings) -> str:
    return json.dumps(settings.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)


def _as_panel(row: tuple[Any, ...]) -> Panel:
    *space, settings, turns = row
    return Panel(directory.as_space(space), PanelSettings.model_validate_json(settings or "{}"), turns or 0)
