"""A real MCP server that people sign in to, with the authorization server of the official library.

`FOLDER` in its environment has what happens meanwhile: `expired` with the access tokens that are not valid any more,
and `revoked` once nothing is renewed.
"""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Any

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

PORT = int(sys.argv[1])
FOLDER = Path(os.environ["FOLDER"])


class Provider:
    """Everybody who comes is Noor, and agrees."""

    def __init__(self) -> None:
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._access: dict[str, AccessToken] = {}
        self._refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self._clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = secrets.token_urlsafe(32)
        self._codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or ["tools"],
            expires_at=4_000_000_000,
            client_id=client.client_id or "",
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._codes[authorization_code.code]
        return self._issue(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return None if (FOLDER / "revoked").exists() else self._refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self._refresh[refresh_token.token]  # Each is taken once.
        with (FOLDER / "renewed").open("a") as renewed:
            renewed.write("again\n")
        return self._issue(client, scopes, f"http://127.0.0.1:{PORT}/mcp")

    async def load_access_token(self, token: str) -> AccessToken | None:
        expired = FOLDER / "expired"
        return None if expired.exists() and token in expired.read_text() else self._access.get(token)

    async def revoke_token(self, token: Any) -> None: ...

    async def exchange_identity_assertion(self, client: Any, params: Any) -> OAuthToken:
        raise NotImplementedError

    def _issue(self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh, of = f"access-{secrets.token_urlsafe(16)}", secrets.token_urlsafe(32), client.client_id or ""
        self._access[access] = AccessToken(token=access, client_id=of, scopes=scopes, resource=resource)
        self._refresh[refresh] = RefreshToken(token=refresh, client_id=of, scopes=scopes)
        return OAuthToken(access_token=access, token_type="Bearer", expires_in=3600, refresh_token=refresh)


settings = AuthSettings.model_validate(
    {
        "issuer_url": f"http://127.0.0.1:{PORT}",
        "resource_server_url": f"http://127.0.0.1:{PORT}/mcp",
        "required_scopes": ["tools"],
        "validate_token_resource": True,
        "client_registration_options": {"enabled": True, "valid_scopes": ["tools"], "default_scopes": ["tools"]},
    }
)
server = MCPServer("tracker", auth=settings, auth_server_provider=Provider())


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


server.run("streamable-http", host="127.0.0.1", port=PORT)
