"""Signing in with a browser at an identity provider: the authorization code flow of OpenID Connect, with PKCE. Pure.

The three secrets of an attempt are kept by the browser, in a cookie, until it comes back: `state` shows that the answer
belongs to this browser, `nonce` that the token was made for it, and `verifier` that the code is redeemed by the one who
asked for it. So any instance can complete what another began.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final
from urllib.parse import urlencode, urlsplit

from denizen.access.roles import PERSONAL, Role

ATTEMPT_SECONDS: Final = 600
"""How long a person may take at the provider."""
_BYTES: Final = 32
_KEPT: Final = re.compile(r"([\w-]{43})\.([\w-]{43})\.([\w-]{43})")


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """The secrets of one attempt to sign in."""

    state: str
    nonce: str
    verifier: str

    @property
    def cookie_value(self) -> str:
        return f"{self.state}.{self.nonce}.{self.verifier}"

    def is_answered_by(self, state: str) -> bool:
        """Whether an answer with this state belongs to it."""
        return compare_digest(self.state.encode(), state.encode("utf-8", "replace"))

    def is_meant_by(self, nonce: str) -> bool:
        """Whether a token with this nonce was made for it."""
        return compare_digest(self.nonce.encode(), nonce.encode("utf-8", "replace"))


def new_attempt() -> SignInAttempt:
    return SignInAttempt(*(secrets.token_urlsafe(_BYTES) for _ in range(3)))


def kept_attempt(cookie_value: str) -> SignInAttempt | None:
    """The attempt in a cookie, if there is one."""
    found = _KEPT.fullmatch(cookie_value)
    return None if found is None else SignInAttempt(*found.groups())


def challenge(verifier: str) -> str:
    """What the provider is told of the verifier (S256 of RFC 7636)."""
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def authorization_url(
    endpoint: str, client_id: str, redirect_uri: str, scopes: Iterable[str], attempt: SignInAttempt
) -> str:
    """Where the browser is sent."""
    asked = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "scope": " ".join(scopes),
        "state": attempt.state,
        "nonce": attempt.nonce,
        "code_challenge": challenge(attempt.verifier),
        "code_challenge_method": "S256",
    }
    return with_query(endpoint, asked)


def with_query(address: str, more: Mapping[str, str]) -> str:
    """The address with these parameters beside those it has."""
    parts = urlsplit(address)
    return parts._replace(query="&".join(each for each in (parts.query, urlencode(more)) if each)).geturl()


def role_of_groups(groups: Iterable[str], roles: Mapping[str, Role]) -> Role:
    """The highest role that the settings give to one of these groups; `member` if they give none."""
    given: set[Role] = {roles[each] for each in groups if each in roles}
    highest: Role | None = min(given, key=PERSONAL.index, default=None)
    return "member" if highest is None else highest
