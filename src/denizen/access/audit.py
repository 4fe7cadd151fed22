"""The audit log: who changed what, and when. Rows are added in the transaction of the change, and never changed.

An entry holds ids, not names: a forgotten person is forgotten here as well, and the fact stays. It never holds a
secret: what looks like one is masked, and values of keys and definitions are not in it at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pydantic import JsonValue
from sqlalchemy import Integer, bindparam, func, literal, select

from denizen.ids import EntityId, OrganizationId
from denizen.masking import masked
from denizen.shapes.vocabulary import AuditKind as Kind
from denizen.storage.database import Tx, insert_into, statement
from denizen.storage.schema import audit, entities, memberships, openings, spaces


class Action(NamedTuple):
    """An audited action."""

    kind: Kind
    words: str
    """A sentence without its subject."""


ACTIONS: Final[Mapping[str, Action]] = {
    "create_entity": Action("people", "added"),
    "change_entity": Action("people", "changed the name or role of"),
    "remove_entity": Action("people", "removed"),
    "link_identity": Action("people", "linked an identity provider account to"),
    "unlink_identity": Action("people", "unlinked an identity provider account from"),
    "create_token": Action("tokens", "created an access token for"),
    "rotate_token": Action("tokens", "gave a new secret to an access token of"),
    "revoke_token": Action("tokens", "revoked an access token of"),
    "create_login": Action("tokens", "created a login link for"),
    "open_session": Action("tokens", "signed in"),
    "failed_sign_in": Action("tokens", "failed to sign in"),
    "set_key": Action("keys", "saved the key"),
    "delete_key": Action("keys", "deleted the key"),
    "create_webhook": Action("webhooks", "created a webhook of"),
    "revoke_webhook": Action("webhooks", "closed a webhook of"),
    "create_bridge": Action("bridges", "created the bridge"),
    "change_bridge": Action("bridges", "changed the settings of the bridge"),
    "pause_bridge": Action("bridges", "paused the bridge"),
    "resume_bridge": Action("bridges", "resumed the bridge"),
    "retry_bridge": Action("bridges", "had messages sent again by the bridge"),
    "remove_bridge": Action("bridges", "removed the bridge"),
    "connect_room": Action("bridges", "connected a room elsewhere with the space"),
    "disconnect_room": Action("bridges", "disconnected a room elsewhere from the space"),
    "link_address": Action("bridges", "linked an account elsewhere to"),
    "unlink_address": Action("bridges", "unlinked an account elsewhere from"),
    "create_agent": Action("agents", "created the agent"),
    "edit_agent": Action("agents", "changed the agent"),
    "delete_agent": Action("agents", "deleted the agent"),
    "fork_agent": Action("agents", "forked the agent"),
    "suspend_agent": Action("agents", "suspended the agent"),
    "resume_agent": Action("agents", "resumed the agent"),
    "apply": Action("agents", "applied definitions"),
    "import_file": Action("agents", "imported"),
    "choose_model": Action("settings", "changed the server's default model"),
    "forget_chosen_model": Action("settings", "let the server find its default model"),
    "put_budget": Action("budgets", "changed the organization's budget"),
    "change_organization": Action("settings", "changed the organization's settings"),
    "change_organization_memory": Action("settings", "changed long-term memory settings"),
    "change_presets": Action("settings", "changed the prompt profiles"),
    "reset_presets": Action("settings", "reset the prompt profiles"),
    "export_agent": Action("exports", "exported the agent"),
    "export_space": Action("exports", "exported the space"),
    "export_audit": Action("exports", "exported the audit log"),
    "forget": Action("forgetting", "had something forgotten"),
    "forget_memory": Action("forgetting", "had a memory forgotten"),
    "set_retention": Action("forgetting", "set how long messages are kept in"),
    "expire": Action("forgetting", "removed messages that had expired from"),
    "open_private_space": Action("private spaces", "opened a private space"),
    "ask_approval": Action("approvals", "asked for the approval of an effect:"),
    "deny_effect": Action("approvals", "was refused an effect by a rule:"),
    "approve_effect": Action("approvals", "approved an effect of the agent"),
    "refuse_effect": Action("approvals", "refused an effect of the agent"),
    "revoke_approval": Action("approvals", "revoked an approval of the agent"),
}
"""By the name of the operation. A failed sign-in has none: it may fail at any of them."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change."""

    entity_id: EntityId | None = None
    """None: the person who runs the server, on its own machine."""
    token_id: str | None = None


OPERATOR: Final = Actor()

_add = insert_into(audit, "organization_id, created_at, by_id, token_id, kind, action, subject_id, detail")


def record(
    tx: Tx, organization_id: OrganizationId, by: Actor, action: str, subject_id: str | None = None, **detail: JsonValue
) -> None:
    """Add the change of this transaction to the audit log. `detail` holds no names of people."""
    tx.run(
        _add,
        organization_id=organization_id,
        created_at=tx.now,
        by_id=by.entity_id,
        token_id=by.token_id,
        kind=ACTIONS[action].kind,
        action=action,
        subject_id=subject_id,
        detail=json.dumps(_masked(detail), ensure_ascii=False),
    )


def _masked(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return masked(value)
        case dict():
            return {name: _masked(each) for name, each in value.items()}
        case list():
            return [_masked(each) for each in value]
        case _:
            return value


# Reading


class NamedSubject(NamedTuple):
    """Someone or something that an entry refers to, with its current name."""

    id: str
    handle: str
    """Empty for a space."""
    name: str


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One change."""

    number: int
    at: int
    by: NamedSubject | None
    """None: the person who runs the server, on its own machine."""
    token_id: str | None
    kind: str
    action: str
    subject_id: str | None
    subject: NamedSubject | None
    """The changed object, if it has a name that the reader may know."""
    detail: dict[str, Any]
    reason: str | None
    """For a private space that was opened."""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter for entries; None: any."""

    by: EntityId | None = None
    kind: Kind | None = None
    since: int | None = None
    until: int | None = None
    """Entries before this moment."""
    before: int | None = None
    """Only entries with a smaller number."""


_END: Final = 2**62
_by, _subject = entities.alias("by"), entities.alias("subject")
_visible = (spaces.c.private == 0) | (
    select(literal(1))
    .where(memberships.c.space_id == spaces.c.id, memberships.c.entity_id == bindparam("reader"))
    .exists()
)
_page = statement(
    select(
        audit.c.number, audit.c.created_at, audit.c.by_id, _by.c.handle, _by.c.name, audit.c.token_id, audit.c.kind,
        audit.c.action, audit.c.subject_id, _subject.c.handle, func.coalesce(_subject.c.name, spaces.c.name),
        audit.c.detail, openings.c.reason,
    )
    .select_from(
        audit.outerjoin(_by, _by.c.id == audit.c.by_id)
        .outerjoin(_subject, _subject.c.id == audit.c.subject_id)
        .outerjoin(spaces, (spaces.c.id == audit.c.subject_id) & _visible)
        .outerjoin(openings, (openings.c.id == audit.c.subject_id))
    )
    .where(
        audit.c.organization_id == bindparam("organization_id"),
        audit.c.number < bindparam("before"),
        audit.c.created_at >= bindparam("since"),
        audit.c.created_at < bindparam("until"),
        (bindparam("any_person", type_=Integer) == 1) | (audit.c.by_id == bindparam("person")),
        (bindparam("any_kind", type_=Integer) == 1) | (audit.c.kind == bindparam("kind")),
    )
    .order_by(audit.c.number.desc())
    .limit(bindparam("limit"))
)  # fmt: skip


def entries(
    tx: Tx, organization_id: OrganizationId, reader: EntityId, wanted: AuditFilter, *, limit: int
) -> list[AuditRecord]:
    """The newest matching entries, newest first. The names of private spaces are for their members."""
    rows = tx.all(
        _page,
        organization_id=organization_id,
        reader=reader,
        before=_END if wanted.before is None else wanted.before,
        since=0 if wanted.since is None else wanted.since,
        until=_END if wanted.until is None else wanted.until,
        any_person=int(wanted.by is None),
        person=wanted.by or "",
        any_kind=int(wanted.kind is None),
        kind=wanted.kind or "",
        limit=limit,
    )
    return [_entry(*row) for row in rows]


def _entry(*row: Any) -> AuditRecord:
    number, at, by, by_handle, by_name, token, kind, action, subject, handle, name, detail, reason = row
    return AuditRecord(
        number=number,
        at=at,
        by=None if by is None else NamedSubject(by, by_handle or "", by_name or ""),
        token_id=token,
        kind=kind,
        action=action,
        subject_id=subject,
        subject=None if name is None else NamedSubject(subject, handle or "", name),
        detail=json.loads(detail),
        reason=reason,
    )
