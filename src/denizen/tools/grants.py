"""Approvals of effects by people: for one tool and exactly these arguments, for a limited time and number of calls."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, ValidationError
from sqlalchemy import bindparam, select

from denizen.access import audit
from denizen.access.audit import Actor
from denizen.clock import SECOND
from denizen.errors import InvalidInput, existing
from denizen.ids import AgentId, EntityId, SpaceId, new_id
from denizen.inbox.outside import parsed
from denizen.spaces import directory
from denizen.storage.database import Tx, columns, delete_where, equal, insert_into, statement, update_where, value
from denizen.storage.schema import grants

DEFAULT_SECONDS: Final = 86_400


class Verdict(BaseModel, frozen=True, extra="ignore"):
    """What a person answers when an effect needs an approval."""

    confirmed: bool
    times: Annotated[int, Field(ge=1, le=10_000)] = 1
    """How often the same call may be made."""
    seconds: Annotated[float, Field(gt=0, le=30 * 86_400)] = DEFAULT_SECONDS
    """For how long."""


def verdict(result: str) -> Verdict:
    """The answer to an approval. Raises `InvalidInput` for anything else."""
    try:
        return Verdict.model_validate(parsed(result))
    except ValidationError as error:
        raise InvalidInput(
            'Answer an approval with {"confirmed": true} or {"confirmed": false}. With true you may add "times" (up to '
            '10,000, default 1) and "seconds" (up to 30 days, default one day): how often and how long the same call '
            "with the same arguments may be made."
        ) from error


@dataclass(frozen=True, slots=True)
class Grant:
    id: str
    agent_id: AgentId
    tool: str
    arguments: str
    uses_left: int
    expires_at: int
    given_by: EntityId
    call_id: str
    space_id: SpaceId | None
    created_at: int


_columns = columns(
    grants, "id, agent_id, tool, arguments, uses_left, expires_at, given_by, call_id, space_id, created_at"
)
_add = insert_into(
    grants, "id, agent_id, tool, digest, arguments, uses_left, expires_at, given_by, call_id, space_id, created_at"
)
_valid = (grants.c.uses_left > 0, grants.c.expires_at > bindparam("now"))
_find = statement(
    select(grants.c.id)
    .where(*equal(grants, "agent_id, tool, digest"), *_valid)
    .order_by(grants.c.expires_at, grants.c.id)
    .limit(1)
)
_use = update_where(grants, "id", grants.c.uses_left > 0, uses_left=grants.c.uses_left - 1)
_of_agent = statement(
    select(*_columns).where(grants.c.agent_id == bindparam("agent_id"), *_valid).order_by(grants.c.created_at)
)
_revoke_all = delete_where(grants, "agent_id")
_revoke = delete_where(grants, "id")
_over = delete_where(grants, "agent_id", (grants.c.uses_left <= 0) | (grants.c.expires_at <= bindparam("now")))


def digest_of(arguments: str) -> str:
    """A digest of the arguments: the same for the same values, whatever their order and spacing."""
    data: Any = parsed(arguments)
    canonical = arguments if data is None else json.dumps(data, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def give(
    tx: Tx,
    agent_id: AgentId,
    tool: str,
    arguments: str,
    given: Verdict,
    *,
    by: EntityId,
    call_id: str,
    space_id: SpaceId | None,
) -> None:
    """Allow the same call this often, for this long. Deletes approvals that are used up or expired."""
    tx.run(_over, agent_id=agent_id, now=tx.now)
    tx.run(
        _add,
        id=new_id(),
        agent_id=agent_id,
        tool=tool,
        digest=digest_of(arguments),
        arguments=arguments,
        uses_left=given.times,
        expires_at=tx.now + int(given.seconds * SECOND),
        given_by=by,
        call_id=call_id,
        space_id=space_id,
        created_at=tx.now,
    )


def take(tx: Tx, agent_id: AgentId, tool: str, arguments: str) -> bool:
    """Use an approval of exactly this call once; False if there is none."""
    grant_id = value(tx, _find, agent_id=agent_id, tool=tool, digest=digest_of(arguments), now=tx.now)
    return grant_id is not None and tx.run(_use, id=grant_id) == 1


def visible_to(tx: Tx, agent_id: AgentId, reader: EntityId | None) -> list[Grant]:
    """The valid approvals that this person gave or may know of, oldest first; None: all."""
    found = [Grant(*row) for row in tx.all(_of_agent, agent_id=agent_id, now=tx.now)]
    return [each for each in found if reader is None or _may_see(tx, each, reader)]


def _may_see(tx: Tx, grant: Grant, reader: EntityId) -> bool:
    return grant.given_by == reader or (grant.space_id is not None and directory.is_member(tx, grant.space_id, reader))


def revoke(tx: Tx, agent_id: AgentId, id: str, by: EntityId) -> None:
    """Revoke the approval. Raises `NotFound` if this person cannot see it."""
    grant = existing(next((each for each in visible_to(tx, agent_id, by) if each.id == id), None), "approval", id)
    tx.run(_revoke, id=id)
    who = directory.get_entity(tx, by)
    audit.record(tx, who.organization_id, Actor(by), "revoke_approval", agent_id, tool=grant.tool, call=grant.call_id)


def revoke_all(tx: Tx, agent_id: AgentId) -> None:
    """Revoke all approvals of the agent."""
    tx.run(_revoke_all, agent_id=agent_id)
