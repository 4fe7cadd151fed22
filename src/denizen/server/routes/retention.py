"""How long the messages of a space are kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from denizen.access import space_changes
from denizen.access.requesters import Requester, find_space
from denizen.forgetting import expiring
from denizen.server.auth import Caller, Person
from denizen.server.router import new_router
from denizen.server.shapes.spaces import RetentionSet
from denizen.shapes.spaces import KeptFor, RetentionOut
from denizen.shapes.vocabulary import MOST_DAYS
from denizen.spaces import retention
from denizen.spaces.retention import Retention
from denizen.storage.database import Tx

router = new_router()

Days = Annotated[int | None, Query(ge=0, le=MOST_DAYS, description="As if messages were kept for so many days.")]


@router.get("/api/spaces/{space_id}/retention", summary="Get how long the messages of a space are kept")
async def get_retention(caller: Person, space_id: str, days: Days = None) -> RetentionOut:
    """Also how many messages have expired. With `days`, how many would have: a preview, which changes nothing."""
    return await caller.read(_retention, space_id, days)


@router.put(
    "/api/spaces/{space_id}/retention",
    summary="Set how long the messages of a space are kept",
    openapi_extra={"x-who": "owners and admins of the space; admins and owners who are in it"},
)
async def set_retention(caller: Person, space_id: str, wanted: RetentionSet) -> RetentionOut:
    """Messages that are older are removed for good, once a day, with what agents remember of them."""
    own = None if wanted.days is None else Retention(wanted.days, wanted.archive)
    return await caller.runtime.db.write(_set_retention, caller, space_id, own)


def _retention(tx: Tx, by: Requester, space_id: str, days: int | None = None) -> RetentionOut:
    space = find_space(tx, by, space_id)
    own, default = retention.own_of(tx, space.id), retention.default_of(tx, space.organization_id)
    applies = default if own is None else own
    return RetentionOut(
        days=applies.days,
        archive=applies.archive,
        own=own is not None,
        default=KeptFor(days=default.days, archive=default.archive),
        expired=expiring.count(tx, space.id, applies if days is None else Retention(days)),
    )


def _set_retention(tx: Tx, caller: Caller, space_id: str, own: Retention | None) -> RetentionOut:
    space_changes.set_retention(tx, caller.requester, space_id, own)
    return _retention(tx, caller.requester, space_id)
