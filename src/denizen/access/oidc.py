"""An identity provider (OpenID Connect) and its tokens: JWTs, accepted only if one of its public keys has signed them.

The keys are fetched from the issuer and kept for an hour. An unknown key is looked up at most once a minute, so that an
issuer may change keys at any time. Only algorithms with public keys are accepted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

import structlog

from denizen.clock import SECOND, Clock, Instant
from denizen.errors import IssuerUnreachable, TokenNotBelieved
from denizen.settings.shape import OidcSettings
from denizen.telemetry.logs import get_logger

if TYPE_CHECKING:
    from jwt import PyJWK

log: structlog.typing.FilteringBoundLogger = get_logger(__name__)

ALGORITHMS: Final = ("RS256", "ES256", "EdDSA")
KEPT_SECONDS: Final = 3_600
ASKED_AGAIN_SECONDS: Final = 60
LEEWAY_SECONDS: Final = 60
"""By how much the issuer's clock may be wrong."""
LONGEST: Final = 16_384
"""Maximum length of a token, in characters."""
_ANSWER_BYTES: Final = 1024 * 1024
_FETCH_SECONDS: Final = 10
_RSA_BITS: Final = 2_048


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a valid token."""

    issuer: str
    subject: str
    name: str
    handle: str
    expires_at: Instant
    nonce: str = ""
    """The nonce of the attempt to sign in that it was made for, if any."""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The addresses of a provider for browsers that sign in and out."""

    authorization: str
    token: str
    end_session: str | None
    takes_secret_in_form: bool
    """Whether it takes the client's secret only in the form, not in a header."""


def looks_like_jwt(secret: str) -> bool:
    """Whether this is a token of an identity provider, and not one of ours."""
    return secret.startswith("eyJ") and secret.count(".") == 2


class Issuer:
    """One identity provider, and its current public keys."""

    def __init__(self, settings: OidcSettings, clock: Clock, client_secret: str = "") -> None:
        self.settings = settings
        self._client_secret = client_secret
        self._endpoints: tuple[Instant, Endpoints] | None = None
        self.name = settings.issuer or ""
        self._clock = clock
        self._keys: dict[str, PyJWK] = {}
        self._asked_at: Instant | None = None
        self._fetching = asyncio.Lock()

    async def verify(self, token: str) -> Claims:
        """The claims of the token, if it is from the issuer, for us, and valid now. Raises `TokenNotBelieved`."""
        import jwt

        if len(token) > LONGEST:
            raise TokenNotBelieved("it is too long")
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise TokenNotBelieved("it is not a JWT") from error
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS or "crit" in header:
            raise TokenNotBelieved(f"it is not signed with one of {', '.join(ALGORITHMS)}")
        key = await self._key(header.get("kid"), algorithm)
        try:
            # Times are compared with our own clock below.
            said = jwt.decode(token, key, algorithms=[algorithm], options=_ONLY_THE_SIGNATURE)
        except jwt.PyJWTError as error:
            raise TokenNotBelieved("its signature is wrong") from error
        return self._believed(said)

    async def endpoints(self) -> Endpoints:
        """Where people sign in, from the issuer's metadata, which is kept for an hour."""
        now = self._clock.now()
        if self._endpoints is None or now - self._endpoints[0] > KEPT_SECONDS * SECOND:
            self._endpoints = now, _endpoints_in(self.name, await self._metadata())
        return self._endpoints[1]

    async def redeem(self, code: str, verifier: str, redirect_uri: str) -> str:
        """The ID token for a code that the provider gave to a browser. Raises `TokenNotBelieved` if it refuses."""
        endpoints, client_id = await self.endpoints(), self.settings.audience or ""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        form |= {"code_verifier": verifier}
        basic: tuple[str, str] | None = None
        if self._client_secret and not endpoints.takes_secret_in_form:
            basic = quote(client_id, safe=""), quote(self._client_secret, safe="")
        else:
            form |= {"client_id": client_id}
            form |= {"client_secret": self._client_secret} if self._client_secret else {}
        answer = await _fetch("POST", endpoints.token, accepted=(200, 400, 401), form=form, basic=basic)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise TokenNotBelieved(f"the provider gave no ID token: {str(answer.get('error'))[:100]}")
        return token

    def _believed(self, said: Mapping[str, Any]) -> Claims:
        now = self._clock.now()
        audience = said.get("aud")
        if said.get("iss") != self.name:
            raise TokenNotBelieved("it comes from another issuer")
        if self.settings.audience not in (audience if isinstance(audience, list) else [audience]):
            raise TokenNotBelieved("it is for another audience")
        expires_at = _instant(said.get("exp"))
        if expires_at is None or now >= expires_at + LEEWAY_SECONDS * SECOND:
            raise TokenNotBelieved("it has expired, or does not say when it does")
        begins = _instant(said.get("nbf", 0))
        if begins is None or now < begins - LEEWAY_SECONDS * SECOND:
            raise TokenNotBelieved("it is not valid yet")
        subject = said.get("sub")
        if not isinstance(subject, str) or not subject:
            raise TokenNotBelieved("it names no subject")
        end = Instant(expires_at + LEEWAY_SECONDS * SECOND)
        named = self._name(said, subject), self._handle(said, subject)
        return Claims(self.name, subject, *named, end, str(said.get("nonce", "")), self._groups(said))

    def _groups(self, said: Mapping[str, Any]) -> tuple[str, ...]:
        found = said.get(self.settings.groups_claim)
        given = cast("list[object]", found) if isinstance(found, list) else [found]
        return tuple(each for each in given if isinstance(each, str))

    def _name(self, said: Mapping[str, Any], subject: str) -> str:
        found = said.get(self.settings.name_claim)
        return found if isinstance(found, str) and found.strip() else self._handle(said, subject)

    def _handle(self, said: Mapping[str, Any], subject: str) -> str:
        found = said.get(self.settings.handle_claim)
        return found.partition("@")[0] if isinstance(found, str) and found.strip() else subject

    async def _key(self, kid: object, algorithm: str) -> PyJWK:
        """The issuer's key with that id and for that algorithm; without an id, the only one there is."""
        await self._know_keys(lambda: self._found(kid, algorithm) is not None)
        found = self._found(kid, algorithm)
        if found is None:
            raise TokenNotBelieved("none of the issuer's keys has signed it")
        return found

    def _found(self, kid: object, algorithm: str) -> PyJWK | None:
        fitting = [key for name, key in self._keys.items() if key.algorithm_name == algorithm and kid in (None, name)]
        return fitting[0] if len(fitting) == 1 else None

    async def _know_keys(self, is_known: Callable[[], bool]) -> None:
        """Fetch the issuer's keys, unless that was done within the last minute."""
        async with self._fetching:
            age = None if self._asked_at is None else (self._clock.now() - self._asked_at) / SECOND
            if age is not None and age < (KEPT_SECONDS if is_known() else ASKED_AGAIN_SECONDS):
                return
            self._asked_at = self._clock.now()
            try:
                self._keys = await self._fetch_keys()
            except IssuerUnreachable as error:
                if not self._keys:
                    self._asked_at = None
                    raise
                # The known keys stay valid: an issuer that is down for a while locks nobody out.
                log.warning("keys of the issuer could not be fetched", issuer=self.name, error=str(error))

    async def _fetch_keys(self) -> dict[str, PyJWK]:
        address = self.settings.jwks_url or await self._discovered()
        document = await _fetch("GET", address)
        found = document.get("keys")
        if not isinstance(found, list):
            raise IssuerUnreachable(f"What is at {address} is not a set of keys.")
        keys = [_usable(cast("dict[str, Any]", each)) for each in cast("list[object]", found) if isinstance(each, dict)]
        return {str(key.key_id or index): key for index, key in enumerate(keys) if key is not None}

    async def _discovered(self) -> str:
        return _address_in(await self._metadata(), "jwks_uri")

    async def _metadata(self) -> dict[str, Any]:
        address = f"{self.name.rstrip('/')}/.well-known/openid-configuration"
        document = await _fetch("GET", address)
        # Otherwise whoever can write that page could speak for another issuer.
        if document.get("issuer") != self.name:
            raise IssuerUnreachable(f"What is at {address} is not about {self.name}.")
        return document


def _endpoints_in(issuer: str, metadata: Mapping[str, Any]) -> Endpoints:
    methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    challenges = metadata.get("code_challenge_methods_supported", ["S256"])
    if "S256" not in challenges:
        raise IssuerUnreachable(f"{issuer} does not support PKCE with S256, which signing in here needs.")
    return Endpoints(
        _address_in(metadata, "authorization_endpoint"),
        _address_in(metadata, "token_endpoint"),
        _address_in(metadata, "end_session_endpoint") if metadata.get("end_session_endpoint") else None,
        "client_secret_post" in methods and "client_secret_basic" not in methods,
    )


def _address_in(metadata: Mapping[str, Any], name: str) -> str:
    address = metadata.get(name)
    if not isinstance(address, str) or not address.startswith(("https://", "http://")):
        raise IssuerUnreachable(f"The issuer's metadata has no web address as its {name}.")
    return address


_ONLY_THE_SIGNATURE: Final[Any] = {
    "verify_signature": True,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}
_ALGORITHM_OF: Final[Mapping[tuple[str, str | None], str]] = {
    ("RSA", None): "RS256",
    ("EC", "P-256"): "ES256",
    ("OKP", "Ed25519"): "EdDSA",
}


def _usable(described: dict[str, Any]) -> PyJWK | None:
    """The public key, if we accept its signatures; each key is for one algorithm, whatever a token says."""
    import jwt
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    kind = str(described.get("kty"))
    algorithm = _ALGORITHM_OF.get((kind, None if kind == "RSA" else str(described.get("crv"))))
    if algorithm is None or described.get("use", "sig") != "sig" or described.get("alg", algorithm) != algorithm:
        return None
    try:
        key = jwt.PyJWK({name: value for name, value in described.items() if name != "d"}, algorithm)
    except jwt.PyJWTError:
        return None
    return None if isinstance(key.key, RSAPublicKey) and key.key.key_size < _RSA_BITS else key


def _instant(said: object) -> Instant | None:
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said < 1e12:
        return None
    return Instant(int(said * SECOND))


async def _fetch(
    method: str,
    address: str,
    *,
    accepted: Sequence[int] = (200,),
    form: Mapping[str, str] | None = None,
    basic: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """The JSON object that the address answers with."""
    import httpx2

    tls = not address.startswith("http://")  # loading certificates takes longer than the answer
    try:
        async with (
            asyncio.timeout(_FETCH_SECONDS),
            httpx2.AsyncClient(follow_redirects=False, trust_env=False, verify=tls) as client,
            client.stream(method, address, headers={"Accept": "application/json"}, data=form, auth=basic) as response,
        ):
            if response.status_code not in accepted:
                raise IssuerUnreachable(f"{address} answers {response.status_code}.")
            body = bytearray()
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _ANSWER_BYTES:
                    raise IssuerUnreachable(f"{address} answers with more than a set of keys has.")
        found: object = json.loads(bytes(body))
    except (httpx2.HTTPError, TimeoutError, ValueError) as error:
        raise IssuerUnreachable(f"{address} could not be read: {type(error).__name__}.") from error
    if not isinstance(found, dict):
        raise IssuerUnreachable(f"What is at {address} is not a JSON object.")
    return cast("dict[str, Any]", found)
