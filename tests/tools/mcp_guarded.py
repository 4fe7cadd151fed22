"""A real MCP server over HTTP that wants access tokens: `python mcp_guarded.py PORT ISSUER`."""

from __future__ import annotations

import sys

from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

PORT, ISSUER = int(sys.argv[1]), sys.argv[2]


class Verifier:
    """Knows the tokens that the authorization server of the test issues."""

    async def verify_token(self, token: str) -> AccessToken | None:
        if not token.startswith("issued-"):
            return None
        return AccessToken(token=token, client_id="denizen", scopes=["tools"])


# As texts: an address of the type `AnyHttpUrl` would end with a slash, and issuers are compared exactly.
settings = AuthSettings.model_validate(
    {
        "issuer_url": ISSUER,
        "resource_server_url": f"http://127.0.0.1:{PORT}/mcp",
        "required_scopes": ["tools"],
        "validate_token_resource": False,
    }
)
server = MCPServer("guarded", auth=settings, token_verifier=Verifier())


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


server.run("streamable-http", host="127.0.0.1", port=PORT)
