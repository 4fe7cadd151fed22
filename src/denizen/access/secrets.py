"""Secrets: keys of providers and services, encrypted in the database. A secret belongs to an organization or a person.

They are named like environment variables. The settings of tools use them as `${NAME}`; models use those named like
their provider's own variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, delete, select, update

from denizen.access.vault import VARIABLE, Vault
from denizen.clock import Instant
from denizen.errors import InvalidInput, ModelKeyMissing, NotFound
from denizen.ids import EntityId, OrganizationId, new_id
from denizen.inbox import parking
from denizen.settings.loading import SHARED_SECRETS
from denizen.spaces import directory
from denizen.storage.database import Tx, insert_ignore, select_where, statement, value
from denizen.storage.schema import secrets

NAME: Final = r"[A-Z][A-Z0-9_]{1,63}"
VALUE_CHARACTERS: Final = 16_384
_HINT_CHARACTERS: Final = 4
_HINTED_FROM: Final = 16
"""The end of a shorter secret would reveal too much."""

_NAME = re.compile(NAME)
_REFERENCE = re.compile(rf"\$\{{({NAME})\}}")


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret for display: never its value."""

    name: str
    owner_id: EntityId | None
    """The person it belongs to; None: the organization."""
    hint: str
    """Its last characters, so that people recognize it; empty if that would reveal too much."""
    created_at: Instant
    updated_at: Instant


@dataclass(frozen=True, slots=True)
class SecretLocation:
    """Where a secret is stored, and the purpose it is sealed for."""

    organization_id: OrganizationId
    name: str
    owner_id: EntityId | None = None

    @property
    def purpose(self) -> str:
        return f"secret {self.organization_id} {self.owner_id or '-'} {self.name}"


_shown = (secrets.c.name, secrets.c.owner_id, secrets.c.hint, secrets.c.created_at, secrets.c.updated_at)
_at = (
    secrets.c.organization_id == bindparam("organization"),
    secrets.c.owner_id == bindparam("owner"),
    secrets.c.name == bindparam("called"),
)
_change = statement(
    update(secrets).where(*_at).values(sealed=bindparam("new"), hint=bindparam("end"), updated_at=bindparam("now"))
)
_add = insert_ignore(secrets)
_get = statement(select(secrets.c.sealed).where(*_at))
_list = select_where(secrets, _shown, "organization_id", order_by="name, owner_id")
_delete = statement(delete(secrets).where(*_at))


def check_name(name: str) -> str:
    """The name, if it is valid for a secret."""
    if _NAME.fullmatch(name) is None:
        raise InvalidInput(
            f"A secret cannot be called {name[:80]!r}: use capitals, digits and _, as in OPENAI_API_KEY, "
            "beginning with a letter; 2 to 64 characters."
        )
    return name


def check_value(value: str) -> str:
    """The value, if it can be stored."""
    if not value.strip():
        raise InvalidInput("This secret is empty.")
    if len(value) > VALUE_CHARACTERS:
        raise InvalidInput(f"A secret may have {VALUE_CHARACTERS:,} characters; this one has {len(value):,}.")
    if "\0" in value or any("\ud800" <= each <= "\udfff" for each in value):
        raise InvalidInput("This secret contains a NUL or an incomplete character. Only text is allowed.")
    return value


def hint(value: str) -> str:
    """The last characters of the value, if it is long enough for that to reveal nothing."""
    return f"…{value[-_HINT_CHARACTERS:]}" if len(value) >= _HINTED_FROM and value.isprintable() else ""


def put(tx: Tx, place: SecretLocation, sealed: str, ending: str) -> Secret:
    """Store the secret, in place of an old one. `sealed` was sealed for the place's purpose."""
    check_name(place.name)
    directory.get_organization(tx, place.organization_id)
    if place.owner_id is not None:
        _check_owner(tx, place.owner_id, place.organization_id)
    new = {"new": sealed, "end": ending, "now": tx.now}
    if tx.run(_change, **_where(place), **new) == 0:
        tx.run(
            _add,
            id=new_id(),
            organization_id=place.organization_id,
            owner_id=place.owner_id or "",
            name=place.name,
            sealed=sealed,
            hint=ending,
            created_at=tx.now,
            updated_at=tx.now,
        )
        # If someone else has added one meanwhile, the later one wins.
        tx.run(_change, **_where(place), **new)
    parking.retry_organization(tx, place.organization_id)
    return next(each for each in secrets_of(tx, place.organization_id) if _is_at(each, place))


def renew(tx: Tx, place: SecretLocation, sealed: str) -> None:
    """Replace the value of a secret that a service has renewed, such as tokens. Without effect if there is none."""
    tx.run(_change, **_where(place), new=sealed, end="", now=tx.now)


def secrets_of(tx: Tx, organization_id: OrganizationId) -> list[Secret]:
    """Every secret of the organization and of its people, by name; the organization's own first."""
    return [_secret(*row) for row in tx.all(_list, organization_id=organization_id)]


def remove(tx: Tx, place: SecretLocation) -> None:
    """Delete the secret."""
    if tx.run(_delete, **_where(place)) == 0:
        raise NotFound("secret", place.name)
    parking.retry_organization(tx, place.organization_id)


def value_at(tx: Tx, vault: Vault, place: SecretLocation) -> str | None:
    """The value of exactly this secret. Raises `SecretUnreadable` if it exists and no key decrypts it."""
    sealed = value(tx, _get, **_where(place))
    return None if sealed is None else vault.open(sealed, place.purpose)


def resolve(
    tx: Tx, vault: Vault, organization_id: OrganizationId, name: str, owner_id: EntityId | None = None
) -> str | None:
    """The person's own value, if a person is given; then the organization's; then what the server's operator shares."""
    owners = (None,) if owner_id is None else (owner_id, None)
    found = (value_at(tx, vault, SecretLocation(organization_id, name, owner)) for owner in owners)
    return next((value for value in found if value is not None), vault.shared.get(name))


def resolve_all(tx: Tx, vault: Vault, organization_id: OrganizationId, names: Iterable[str]) -> dict[str, str]:
    """The values of those `names` that exist."""
    found = {name: resolve(tx, vault, organization_id, name) for name in sorted(set(names))}
    return {name: value for name, value in found.items() if value is not None}


def paying_key(tx: Tx, vault: Vault, organization_id: OrganizationId, name: str, pays: str, payee: str) -> str | None:
    """The key with that name for an agent's model: the organization's, or the payer's own.

    None if the server's own key is to be used. Raises `ModelKeyMissing` if the person who pays has none.
    """
    if not pays:
        return resolve(tx, vault, organization_id, name)
    try:
        person = directory.find_entity(tx, organization_id, pays)
    except NotFound as error:
        raise ModelKeyMissing(f"{pays}, who pays for the agent @{payee}, has left. Let someone else pay.") from error
    key = value_at(tx, vault, SecretLocation(organization_id, name, person.id))
    if key is None:
        raise ModelKeyMissing(
            f"{pays}, who pays for the agent @{payee}, has no {name}. "
            f"Set it with `denizen secrets set {name} --person {pays}`, or let someone else pay."
        )
    return key


def names_in(text: str) -> set[str]:
    """The secrets that a settings text refers to, as `${NAME}`."""
    return set(_REFERENCE.findall(text))


def is_reference(text: str) -> bool:
    """Whether the text is one reference to a secret, and nothing else."""
    return _REFERENCE.fullmatch(text) is not None


def shared_in(environ: Mapping[str, str]) -> dict[str, str]:
    """The secrets that the environment shares with all organizations, DENIZEN_SECRET_<NAME>, without the vault's
    key."""
    return {
        name.removeprefix(SHARED_SECRETS): value
        for name, value in environ.items()
        if name.startswith(SHARED_SECRETS) and name != VARIABLE and value
    }


def _check_owner(tx: Tx, owner_id: EntityId, organization_id: OrganizationId) -> None:
    owner = directory.get_entity(tx, owner_id)
    if owner.organization_id != organization_id:
        raise NotFound("person", owner_id)
    if owner.kind != "human":
        raise InvalidInput(f"@{owner.handle} is not a person. A secret belongs to a person or to the organization.")


def _where(place: SecretLocation) -> dict[str, str]:
    return {"organization": place.organization_id, "owner": place.owner_id or "", "called": place.name}


def _is_at(secret: Secret, place: SecretLocation) -> bool:
    return (secret.name, secret.owner_id) == (place.name, place.owner_id)


def _secret(name: str, owner_id: str, ending: str, created_at: Instant, updated_at: Instant) -> Secret:
    return Secret(name, EntityId(owner_id) if owner_id else None, ending, created_at, updated_at)
