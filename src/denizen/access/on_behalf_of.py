"""People for whom a token speaks: each user whom a program names is one person here, linked to that token.

The link is an identity whose issuer is the token. So nobody who exists already is spoken for, unless an admin has
linked them, and two tokens that name the same user mean two people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from denizen.access import audit, identities, roles
from denizen.access.requesters import Requester
from denizen.access.roles import Role
from denizen.access.tokens import Token
from denizen.errors import InvalidInput, NotAllowed
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.spaces.handles import MAX_NAME_CHARS
from denizen.storage.database import Tx, storable

HIGHEST: Final[Role] = "member"
"""The highest role with which a token speaks for anyone, also for an admin who is linked."""


@dataclass(frozen=True, slots=True)
class NamedUser:
    """A user of another program, as it names them."""

    subject: str
    name: str = ""
    email: str = ""

    @property
    def shown_name(self) -> str:
        """What they are called here, on one line."""
        text = self.name or self.email.partition("@")[0] or self.subject
        line = " ".join("".join(char if char.isprintable() else " " for char in storable(text)).split())
        return line[:MAX_NAME_CHARS] or "User"


@dataclass(frozen=True, slots=True)
class RepresentedPerson:
    """The person whom a token speaks for, and what it may do as them."""

    person: Entity
    role: Role


def issuer_of(token_id: str) -> str:
    """The issuer of the identities that this token may name."""
    return f"{identities.OF_TOKENS}{token_id}"


def find(tx: Tx, token: Token, user: NamedUser) -> RepresentedPerson | None:
    """The person whom the token means by this user, if there is one. Raises `NotAllowed` if they have left."""
    known = identities.find(tx, issuer_of(token.id), user.subject)
    if known is None:
        return None
    person = directory.get_entity(tx, known.entity_id)
    role = roles.role_of(tx, person.id)
    if role is None:
        raise NotAllowed(f"{person.name} (@{person.handle}) has left the organization. An admin can unlink them.")
    return RepresentedPerson(person, roles.lesser(role, HIGHEST))


def take_in(tx: Tx, by: Requester, token: Token, user: NamedUser) -> RepresentedPerson:
    """The same; who is not known yet becomes a member of the organization. Raises `NotAllowed` without the right."""
    if not token.speaks_for_others or by.organization_id is None:
        raise NotAllowed("This token does not speak for others. An admin can create one that does.")
    if (known := find(tx, token, user)) is not None:
        return known
    if not user.subject or len(user.subject) > identities.SUBJECT_CHARACTERS or storable(user.subject) != user.subject:
        raise InvalidInput(f"The id of a user is a text of 1 to {identities.SUBJECT_CHARACTERS} characters.")
    name = user.shown_name
    person = identities.create_person(tx, by.organization_id, issuer_of(token.id), user.subject, name, name)
    audit.record(tx, by.organization_id, by.actor, "create_entity", person.id, spoken_for_by=token.id)
    return RepresentedPerson(person, HIGHEST)
