"""MCP servers that an admin signs in to in a browser."""

from __future__ import annotations

from denizen.server.auth import Admin
from denizen.server.router import new_router
from denizen.server.shapes.mcp_servers import FinishSignIn, sign_in_server_out
from denizen.shapes.mcp_servers import SignInBegun, SignInServerList, SignInServerOut

router = new_router()


@router.get("/api/mcp-servers", summary="List MCP servers to sign in to")
async def list_mcp_servers(caller: Admin) -> SignInServerList:
    """The servers of agents whose definition has `sign_in`."""
    found = await caller.runtime.mcp_servers.list(caller.entity.organization_id)
    return SignInServerList(servers=[sign_in_server_out(each) for each in found])


@router.post("/api/mcp-servers/{name}/sign-in", summary="Begin to sign in to an MCP server")
async def begin_mcp_sign_in(caller: Admin, name: str) -> SignInBegun:
    """Open `url` in a browser. It leads back to `/admin/mcp`; what stands in that address completes the sign-in."""
    url = await caller.runtime.mcp_servers.begin(name, organization=caller.entity.organization_id, by=caller.requester)
    return SignInBegun(url=url)


@router.post("/api/mcp-servers/answer", summary="Complete the sign-in to an MCP server")
async def finish_mcp_sign_in(caller: Admin, given: FinishSignIn) -> SignInServerOut:
    """Stores the tokens, encrypted. The agents that use the server have its tools when they wake next."""
    servers = caller.runtime.mcp_servers
    home = caller.entity.organization_id
    return sign_in_server_out(await servers.finish(given.answer, organization=home, by=caller.requester))
