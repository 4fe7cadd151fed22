"""Ways in, files, and what was forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import JsonValue

from denizen.client.shapes.value import Value


class Receipt(Value):
    """That something was forgotten, and how much was removed where; never what it said."""

    id: str | None
    kind: str
    subject_id: str
    by_id: str | None = None
    removed: Mapping[str, int]
    created_at: datetime
    dry_run: bool = False


class Receipts(Value):
    receipts: tuple[Receipt, ...]
    next: str | None = None


class Key(Value):
    """A key of a provider or service that is kept; never its value."""

    name: str
    whose: str
    hint: str
    created_at: datetime
    updated_at: datetime


class Token(Value):
    """What lets someone in; never its secret."""

    id: str
    entity_id: str
    kind: str
    role: str
    name: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    handle: str = ""
    """Of the one whom it lets in, where tokens are listed."""


class NewToken(Value):
    """A token under a new secret, which is not shown again."""

    token: Token
    secret: str


class Login(Value):
    """A link that is good once."""

    url: str
    secret: str
    expires_at: datetime


class Webhook(Value):
    """An address where a service tells an agent of things."""

    id: str
    name: str
    scheme: str
    urgent: bool
    path: str
    """Below the address of the server."""
    created_at: datetime
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


class NewWebhook(Value):
    """A webhook and its secret, which is not shown again."""

    webhook: Webhook
    secret: str


class FieldChange(Value):
    """A part of something that is different now; None is where there is nothing."""

    path: str
    old: JsonValue
    new: JsonValue


class Change(Value):
    """What became of one thing that a definition file names."""

    kind: str
    name: str
    action: str
    fields: tuple[FieldChange, ...]


class Applied(Value):
    """What became of definition files."""

    dry_run: bool
    changes: tuple[Change, ...]
    warnings: tuple[str, ...] = ()


class Imported(Value):
    """An agent or a space that was taken in."""

    kind: str
    id: str
    name: str
    handle: str | None = None
    counts: Mapping[str, int]
    secrets: tuple[str, ...] = ()
    """Names of secrets that the agent uses, and that are to be kept there as well."""
    dangers: tuple[str, ...] = ()
    """Parts of its definition that start programs or reach private addresses."""
    unpriced: tuple[str, ...] = ()
    """Models without a known price, where the agent has a budget in dollars: it cannot think until there is one."""
    people: tuple[str, ...] = ()
    """Handles of people and services that were not there before."""
    absent: tuple[str, ...] = ()
    """Handles of agents of a space that are not there: their words are."""


class Named(Value):
    """Someone or something, as it is called now."""

    id: str
    handle: str
    name: str


class AuditEntry(Value):
    """One change: who made it, when, and to what."""

    number: int
    at: datetime
    by: Named | None = None
    """None: whoever runs the server, on its own machine."""
    token_id: str | None = None
    kind: str
    action: str
    what: str
    subject_id: str | None = None
    subject: Named | None = None
    detail: Mapping[str, JsonValue]
    reason: str | None = None


class AuditPage(Value):
    """Some entries of the audit log, the newest first."""

    entries: tuple[AuditEntry, ...]
    next: int | None = None
    """Give it as `before` for the next page; None: there is none."""
    kinds: tuple[str, ...] = ()


class Opening(Value):
    """A private space that an owner may read for a while."""

    id: str
    space_id: str
    reason: str
    opened_at: datetime
    until: datetime
