"""Webhooks: addresses at which services notify an agent. Each accepts only requests signed with its secret.

A request that is sent twice is delivered once: the id of the event is made from what was signed, because nothing else
of a request can be trusted. An unknown address is answered only after as much work as a known one.
"""

from __future__ import annotations

import hashlib
import secrets as randomness
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final
from uuid import UUID, uuid5

from pydantic import JsonValue
from sqlalchemy import bindparam, or_, select

from denizen.access import payloads, signatures
from denizen.access.payloads import Greeting, SentFile, WebhookNotice
from denizen.access.signatures import SCHEMES, Scheme
from denizen.access.vault import Vault
from denizen.clock import SECOND, Instant
from denizen.errors import InvalidInput, NotFound, SignatureWrong, existing
from denizen.files import attaching
from denizen.ids import AgentId, FileId, new_id
from denizen.inbox import delivery
from denizen.inbox.delivery import Delivery
from denizen.inbox.events import FILES
from denizen.spaces.handles import check_name
from denizen.storage.database import Database, Tx, columns, insert_into, select_where, statement, storable, update_where
from denizen.storage.schema import agents, webhooks

PREFIX: Final = "dz_hook_"
SECRET_BYTES: Final = 32
SECRET_CHARACTERS: Final = range(16, 257)
"""The allowed lengths of a secret that someone else has chosen."""
USE_NOTED_SECONDS: Final = 60
"""The precision of a webhook's last use."""

_KEYS: Final = UUID("8f3f6a0c-0d6e-4a0e-8b8f-9a5d1c7e2b44")
"""Under which the id of an event and the position of a file become the id of the file."""
_DECOY: Final = "a secret that nobody has"


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address for one service, at one agent, without the secret, which is shown once, when it is made."""

    id: str
    agent_id: AgentId
    name: str
    """The name of the event's source for the agent."""
    scheme: Scheme
    urgent: bool
    created_at: Instant
    revoked_at: Instant | None = None
    last_used_at: Instant | None = None

    @property
    def path(self) -> str:
        """The path for the service, below the address of the server."""
        return f"/hooks/{self.id}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A validated webhook to be created."""

    id: str
    name: str
    scheme: Scheme
    secret: str
    urgent: bool

    @property
    def purpose(self) -> str:
        """The purpose that its secret is sealed for."""
        return _purpose(self.id)


_webhook = columns(webhooks, "id, agent_id, name, scheme, urgent, created_at, revoked_at, last_used_at")
_add = insert_into(webhooks, "id, agent_id, name, scheme, sealed, urgent, created_at")
_living = select_where(agents, "id", "id", agents.c.status != "dead")
_find = statement(
    select(*_webhook, webhooks.c.sealed)
    .join(agents, agents.c.id == webhooks.c.agent_id)
    .where(webhooks.c.id == bindparam("id"), webhooks.c.revoked_at.is_(None), agents.c.status != "dead")
)
_get = select_where(webhooks, _webhook, "id")
_of_agent = select_where(webhooks, _webhook, "agent_id", order_by="id")
_revoke = update_where(webhooks, "id", webhooks.c.revoked_at.is_(None), set_="revoked_at")
_note_use = update_where(
    webhooks,
    "id",
    or_(webhooks.c.last_used_at.is_(None), webhooks.c.last_used_at <= bindparam("before")),
    set_="last_used_at",
)


def draft(name: str, scheme: str, *, secret: str | None = None, urgent: bool = False) -> Draft:
    """A validated webhook, with a generated secret unless the service has chosen one. Raises `InvalidInput`."""
    if scheme not in SCHEMES:
        raise InvalidInput(f"The scheme of a webhook must be one of {', '.join(SCHEMES)}, not {scheme[:40]!r}.")
    if secret is None and scheme == "slack":
        raise InvalidInput("Slack sets the secret. Enter the signing secret from your app's page.")
    chosen = PREFIX + randomness.token_urlsafe(SECRET_BYTES) if secret is None else _checked(secret)
    return Draft(new_id(), check_name(name), scheme, chosen, urgent)


def create(tx: Tx, agent_id: AgentId, what: Draft, sealed: str) -> Webhook:
    """Create the webhook. `sealed` is the secret, sealed for the draft's purpose."""
    if tx.one(_living, id=agent_id) is None:
        raise NotFound("living agent", agent_id)
    tx.run(
        _add,
        id=what.id,
        agent_id=agent_id,
        name=what.name,
        scheme=what.scheme,
        sealed=sealed,
        urgent=int(what.urgent),
        created_at=tx.now,
    )
    return Webhook(what.id, agent_id, what.name, what.scheme, what.urgent, tx.now)


def get(tx: Tx, webhook_id: str) -> Webhook:
    return _of(*existing(tx.one(_get, id=storable(webhook_id)), "webhook", webhook_id))


def webhooks_of(tx: Tx, agent_id: AgentId) -> list[Webhook]:
    """Every webhook this agent ever had, oldest first."""
    return [_of(*row) for row in tx.all(_of_agent, agent_id=agent_id)]


def revoke(tx: Tx, webhook_id: str) -> None:
    """Revoke the webhook: it no longer receives anything. Idempotent."""
    if tx.run(_revoke, id=storable(webhook_id), revoked_at=tx.now) == 0:
        get(tx, webhook_id)


StoreFile = Callable[[AgentId, SentFile, FileId], Awaitable[object]]
"""Uploads a file in the name of the agent, under this id; once, however often it is called."""


async def receive(
    db: Database,
    vault: Vault,
    now: Instant,
    webhook_id: str,
    headers: Mapping[str, str],
    body: bytes,
    store: StoreFile,
) -> Greeting | None:
    """Deliver the request to the inbox of the webhook's agent; once, however often it is sent.

    The names of `headers` are lower case. Returns a `Greeting` if the service only sent a ping. Raises `NotFound` for
    webhooks that are unknown, revoked or of dead agents, and `SignatureWrong`.
    """
    webhook, secret = await db.read(_opened, vault, webhook_id)
    try:
        signed = signatures.verify(webhook.scheme if webhook else "github", secret, headers, body, now / SECOND)
    except SignatureWrong:
        if webhook is not None:
            raise
        signed = b""
    if webhook is None:
        raise NotFound("webhook", webhook_id)
    told = payloads.read(webhook.scheme, headers, body)
    event_id = _event_id(webhook.id, signed)
    files: dict[FileId, SentFile] = {}
    if isinstance(told, WebhookNotice):
        files = {FileId(str(uuid5(_KEYS, f"{event_id} {at}"))): each for at, each in enumerate(told.files)}
        for file_id, file in files.items():
            await store(webhook.agent_id, file, file_id)
    await db.write(_receive, webhook, event_id, told, tuple(files))
    return told if isinstance(told, Greeting) else None


def _opened(tx: Tx, vault: Vault, webhook_id: str) -> tuple[Webhook | None, str]:
    row = tx.one(_find, id=storable(webhook_id))
    if row is None:
        return None, _DECOY
    *public, sealed = row
    webhook = _of(*public)
    return webhook, vault.open(sealed, _purpose(webhook.id))


def _receive(tx: Tx, webhook: Webhook, event_id: str, told: WebhookNotice | Greeting, files: Sequence[FileId]) -> None:
    tx.run(_note_use, id=webhook.id, last_used_at=tx.now, before=tx.now - USE_NOTED_SECONDS * SECOND)
    if isinstance(told, Greeting):
        return
    payload: dict[str, JsonValue] = {"service": webhook.name, "text": told.text}
    if told.data is not None:
        payload["data"] = told.data
    if files:
        given = attaching.give(tx, webhook.agent_id, attaching.attachable(tx, webhook.agent_id, files))
        payload[FILES] = [asdict(each) for each in given]
    event = Delivery(webhook.agent_id, event_id, "service_trigger", tx.now, urgent=webhook.urgent, payload=payload)
    delivery.deliver(tx, [event])


def _event_id(webhook_id: str, signed: bytes) -> str:
    return f"hook-{hashlib.sha256(b'%b %b' % (webhook_id.encode(), signed)).hexdigest()[:32]}"


def _checked(secret: str) -> str:
    if len(secret) not in SECRET_CHARACTERS:
        least, most = SECRET_CHARACTERS[0], SECRET_CHARACTERS[-1]
        raise InvalidInput(f"The secret of a webhook has {least} to {most} characters; this one has {len(secret)}.")
    if not secret.isprintable() or secret != secret.strip():
        raise InvalidInput("The secret of a webhook must be one line without surrounding spaces.")
    return secret


def _purpose(webhook_id: str) -> str:
    return f"webhook {webhook_id}"


def _of(
    id: str,
    agent_id: AgentId,
    name: str,
    scheme: Scheme,
    urgent: int,
    created_at: Instant,
    revoked_at: Instant | None,
    last_used_at: Instant | None,
) -> Webhook:
    return Webhook(id, agent_id, name, scheme, bool(urgent), created_at, revoked_at, last_used_at)
