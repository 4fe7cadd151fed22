"""Signing in to MCP servers at an address, as a person in a browser: OAuth's authorization code with PKCE.

The server's authorization server is discovered, and Denizen registers itself there. What comes of a sign-in, tokens and
registration, is one text that the caller keeps as a secret; so is an attempt that was begun, so that any instance can
complete what another began. Tokens are renewed when they expire.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qs, quote, urlsplit

import httpx2
from pydantic import BaseModel, ConfigDict, ValidationError

from denizen.access.oidc_sign_in import challenge, with_query
from denizen.clock import SECOND, Clock
from denizen.errors import InvalidInput, SignInNeeded
from denizen.tools.settings import McpServer

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

    from denizen.tools.outbound import Outbound

ATTEMPT_SECONDS: Final = 600
"""How long a person may take at the authorization server."""
EARLY_SECONDS: Final = 30
"""So long before they expire, tokens are renewed."""
_SECONDS: Final = 30.0


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True)


class StartedSignIn(_Value):
    """A sign-in that was begun."""

    state: str
    verifier: str
    redirect_uri: str
    until: int


class McpSignIn(_Value):
    """What is known of a server that people sign in to: kept as a secret."""

    url: str
    """The server that the tokens are for. They are sent to no other."""
    issuer: str
    names_issuer: bool
    """Whether the authorization server says in its answer who it is."""
    authorization_endpoint: str
    token_endpoint: str
    client_id: str
    client_secret: str | None = None
    client_auth: str = "none"
    """How Denizen shows to the authorization server who it is."""
    resource: str | None = None
    scope: str | None = None
    access_token: str | None = None
    refresh_token: str | None = None
    expires_at: int | None = None
    signed_in_at: int | None = None
    attempt: StartedSignIn | None = None


def read_sign_in(kept: str | None, url: str) -> McpSignIn | None:
    """The sign-in for this server, if there is one."""
    try:
        found = McpSignIn.model_validate_json(kept or "")
    except ValidationError:
        return None
    return found if found.url == url else None


# Signing in


class _AtPerson(Exception):
    """Everything is known that is needed to send a person to the authorization server."""


class _Registration:
    """The registration of this client at the authorization server."""

    def __init__(self, known: OAuthClientInformationFull | None) -> None:
        self._client = known

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None: ...

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


async def begin(
    server: McpServer, outbound: Outbound, clock: Clock, *, name: str, redirect_uri: str, client_secret: str | None
) -> tuple[McpSignIn, str]:
    """The sign-in with its attempt, and the address where a person signs in.

    `name` comes back with the answer. Raises `InvalidInput` if the server cannot be reached or offers no sign-in.
    """
    assert server.url is not None
    assert server.sign_in is not None
    provider = _provider(server, redirect_uri, client_secret)
    wanted = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"Accept": "application/json, text/event-stream"}
    try:
        async with _client(server, outbound, auth=provider) as http:
            answer = await http.post(server.url, json=wanted, headers={**server.headers, **accept})
    except _AtPerson:
        pass
    except Exception as error:
        raise InvalidInput(f"Signing in to {server.url} cannot begin: {error}") from error
    else:
        raise InvalidInput(f"{server.url} asks for no sign-in: it answered with the status {answer.status_code}.")
    context = provider.context
    known, client = context.oauth_metadata, context.client_info
    if known is None or client is None or not client.client_id:
        raise InvalidInput(f"The authorization server of {server.url} does not say where people sign in.")
    attempt = StartedSignIn(
        state=f"{name}.{secrets.token_urlsafe(32)}",
        verifier=secrets.token_urlsafe(48),
        redirect_uri=redirect_uri,
        until=clock.now() + ATTEMPT_SECONDS * SECOND,
    )
    secret = client.client_secret
    sign_in = McpSignIn(
        url=server.url,
        issuer=str(known.issuer),
        names_issuer=bool(known.authorization_response_iss_parameter_supported),
        authorization_endpoint=str(known.authorization_endpoint),
        token_endpoint=str(known.token_endpoint),
        client_id=client.client_id,
        client_secret=secret,
        client_auth=client.token_endpoint_auth_method or ("client_secret_post" if secret else "none"),
        resource=context.get_resource_url(),
        scope=server.sign_in.scope or context.client_metadata.scope,
        attempt=attempt,
    )
    asked = {
        "response_type": "code",
        "client_id": sign_in.client_id,
        "redirect_uri": redirect_uri,
        "state": attempt.state,
        "code_challenge": challenge(attempt.verifier),
        "code_challenge_method": "S256",
        "resource": sign_in.resource or server.url,
    } | ({"scope": sign_in.scope} if sign_in.scope else {})
    if "offline_access" in (sign_in.scope or "").split():
        asked["prompt"] = "consent"
    return sign_in, with_query(sign_in.authorization_endpoint, asked)


def _provider(server: McpServer, redirect_uri: str, client_secret: str | None) -> OAuthClientProvider:
    """Discovers the authorization server, and registers there; then it raises `_AtPerson`."""
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

    assert server.url is not None
    assert server.sign_in is not None
    about: dict[str, Any] = {
        "redirect_uris": [redirect_uri],
        "client_name": "Denizen",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "scope": server.sign_in.scope,
    }
    known = None
    if server.sign_in.client_id is not None:
        known = OAuthClientInformationFull.model_validate(
            {**about, "client_id": server.sign_in.client_id, "client_secret": client_secret}
        )

    async def stop(_: str) -> None:
        raise _AtPerson

    async def never() -> AuthorizationCodeResult:
        raise AssertionError

    logging.getLogger("mcp.client.auth.oauth2").addFilter(_is_no_stop)
    return OAuthClientProvider(server.url, OAuthClientMetadata.model_validate(about), _Registration(known), stop, never)


def _is_no_stop(record: logging.LogRecord) -> bool:
    """The library logs what ends its flow as an error, also where that is meant."""
    return not (record.exc_info and isinstance(record.exc_info[1], _AtPerson))


async def finish(sign_in: McpSignIn, server: McpServer, outbound: Outbound, clock: Clock, *, answer: str) -> McpSignIn:
    """The sign-in with its tokens. `answer` is the address to which the authorization server sent the browser back.

    Raises `InvalidInput` if it does not belong to the attempt, or nobody has signed in.
    """
    given = {name: values[0] for name, values in parse_qs(urlsplit(answer).query).items()}
    attempt = sign_in.attempt
    if attempt is None or not secrets.compare_digest(attempt.state.encode(), given.get("state", "").encode()):
        raise InvalidInput("This answer belongs to no sign-in that was begun. Begin again.")
    if clock.now() > attempt.until:
        raise InvalidInput("This sign-in took too long. Begin again.")
    if given.get("iss", sign_in.issuer if not sign_in.names_issuer else "") != sign_in.issuer:
        raise InvalidInput("This answer comes from another authorization server. Begin again.")
    if "code" not in given:
        why = given.get("error_description") or given.get("error") or "it gave no reason"
        raise InvalidInput(f"The authorization server refused the sign-in: {why[:200]}")
    fields = {
        "grant_type": "authorization_code",
        "code": given["code"],
        "redirect_uri": attempt.redirect_uri,
        "code_verifier": attempt.verifier,
    }
    async with _client(server, outbound) as http:
        try:
            response = await http.send(_token_request(sign_in, fields))
            await response.aread()
        except httpx2.HTTPError as error:
            raise InvalidInput(f"The authorization server cannot be reached: {error}") from error
    if response.status_code not in (200, 201):
        raise InvalidInput(f"The authorization server gave no tokens: {response.text[:200]}")
    return _with_tokens(sign_in, response, clock).model_copy(update={"attempt": None, "signed_in_at": clock.now()})


def _client(server: McpServer, outbound: Outbound, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
    transport = outbound.transport(server.allow_private)
    return httpx2.AsyncClient(transport=transport, auth=auth, trust_env=False, timeout=_SECONDS)


def _token_request(sign_in: McpSignIn, fields: dict[str, str]) -> httpx2.Request:
    headers: dict[str, str] = {"Accept": "application/json"}
    fields = {**fields, "client_id": sign_in.client_id}
    if sign_in.resource is not None:
        fields["resource"] = sign_in.resource
    if sign_in.client_secret is not None and sign_in.client_auth == "client_secret_basic":
        pair = f"{quote(sign_in.client_id, safe='')}:{quote(sign_in.client_secret, safe='')}"
        headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    elif sign_in.client_secret is not None:
        fields["client_secret"] = sign_in.client_secret
    return httpx2.Request("POST", sign_in.token_endpoint, data=fields, headers=headers)


def _with_tokens(sign_in: McpSignIn, response: httpx2.Response, clock: Clock) -> McpSignIn:
    from mcp.shared.auth import OAuthToken

    try:
        tokens = OAuthToken.model_validate_json(response.content)
    except ValidationError as error:
        raise InvalidInput("The authorization server answered with something that holds no token.") from error
    return sign_in.model_copy(
        update={
            "access_token": tokens.access_token,
            # A server that does not replace it leaves it out.
            "refresh_token": tokens.refresh_token or sign_in.refresh_token,
            "expires_at": None if tokens.expires_in is None else clock.now() + tokens.expires_in * SECOND,
        }
    )


# Using the tokens


class StoredSignIns(Protocol):
    """What came of sign-ins, encrypted in the database."""

    def of(self, organization_id: str) -> SecretStore: ...


class SecretStore(Protocol):
    """The secrets of an organization."""

    async def load(self, name: str) -> str | None: ...

    async def save(self, name: str, value: str) -> None:
        """Replace the value of a secret. Without effect if the secret was deleted meanwhile."""
        ...


class SignedInTransport(httpx2.AsyncBaseTransport):
    """Requests with the access token of the sign-in, which is renewed when it expires or is refused."""

    def __init__(
        self, inner: httpx2.AsyncBaseTransport, url: str, secret_name: str, store: SecretStore, clock: Clock
    ) -> None:
        self._inner = inner
        self._url = url
        self._secret_name = secret_name
        self._store = store
        self._clock = clock
        self._renewing = asyncio.Lock()
        self._known: McpSignIn | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        sign_in = self._known or await self._loaded()
        if sign_in.expires_at is not None and sign_in.expires_at - EARLY_SECONDS * SECOND <= self._clock.now():
            sign_in = await self._renewed(sign_in)
        response = await self._sent(request, sign_in)
        if response.status_code != 401:
            return response
        await response.aclose()
        response = await self._sent(request, await self._renewed(sign_in))
        if response.status_code == 401:
            await response.aclose()
            raise self._needed()
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _sent(self, request: httpx2.Request, sign_in: McpSignIn) -> httpx2.Response:
        request.headers["Authorization"] = f"Bearer {sign_in.access_token}"
        return await self._inner.handle_async_request(request)

    async def _loaded(self) -> McpSignIn:
        found = read_sign_in(await self._store.load(self._secret_name), self._url)
        if found is None or found.access_token is None:
            raise self._needed()
        self._known = found
        return found

    async def _renewed(self, used: McpSignIn) -> McpSignIn:
        """The sign-in with other tokens than those that were used."""
        async with self._renewing:
            # Another task or instance may have renewed them already; some servers take each refresh token only once.
            current = await self._loaded()
            if current.access_token != used.access_token:
                return current
            if current.refresh_token is None:
                raise self._needed()
            fields = {"grant_type": "refresh_token", "refresh_token": current.refresh_token}
            response = await self._inner.handle_async_request(_token_request(current, fields))
            try:
                await response.aread()
            finally:
                await response.aclose()
            if response.status_code >= 500 or response.status_code == 429:
                raise httpx2.ConnectError(f"the authorization server answered with {response.status_code}")
            if response.status_code not in (200, 201):
                again = await self._loaded()
                if again.access_token != current.access_token:
                    return again
                raise self._needed()
            self._known = _with_tokens(current, response, self._clock)
            await self._store.save(self._secret_name, self._known.model_dump_json(exclude_none=True))
            return self._known

    def _needed(self) -> SignInNeeded:
        return SignInNeeded(
            "an admin has to sign in to it. Open Administration › MCP servers, or run "
            f"`denizen mcp connect {self._secret_name}`"
        )
