"""HTTP requests, agents elsewhere and MCP servers as tools. Opened when an agent first needs it.

The libraries are slow to import; a process without such tools never imports them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from denizen.clock import Clock
from denizen.tools.settings import A2aTool, HttpTool, McpServer
from denizen.tools.tool import OutsideTool

if TYPE_CHECKING:
    from denizen.tools.elicitation_requests import ElicitationRequests
    from denizen.tools.mcp import McpConnections, McpTrouble
    from denizen.tools.mcp_sign_in import StoredSignIns
    from denizen.tools.outbound import Outbound

Secret = Callable[[str], str | None]
"""The value of a secret by its name."""


class Outside:
    """What all agents of a process share: connections to services and to MCP servers."""

    def __init__(
        self,
        clock: Clock,
        answer_to: Callable[[str], str],
        elicitation: Callable[[], ElicitationRequests],
        sign_ins: StoredSignIns,
    ) -> None:
        self._clock = clock
        self._elicitation = elicitation
        self._sign_ins = sign_ins
        self._answer_to = answer_to
        self._outbound: Outbound | None = None
        self._mcp: McpConnections | None = None
        self._closing = AsyncExitStack()

    async def http_tool(self, settings: HttpTool, secret: Secret) -> OutsideTool:
        from denizen.tools.http import http_tool

        return http_tool(settings, secret=secret, outbound=await self.outbound(), answer_to=self._answer_to)

    async def a2a_tool(self, settings: A2aTool, secret: Secret) -> OutsideTool:
        from denizen.tools.a2a import a2a_tool

        return a2a_tool(settings, secret=secret, outbound=await self.outbound(), clock=self._clock)

    async def mcp_tools(
        self, servers: Mapping[str, McpServer], secret: Secret, taken: Collection[str], shared_by: str
    ) -> list[OutsideTool]:
        """The tools of these servers, without taken names. Agents with the same `shared_by` share connections."""
        if not servers:
            return []
        if self._mcp is None:
            from denizen.tools.mcp import McpConnections

            connections = McpConnections(await self.outbound(), self._clock, self._elicitation(), self._sign_ins)
            self._mcp = await self._closing.enter_async_context(connections)
        return await self._mcp.tools(servers, secret, taken=taken, shared_by=shared_by)

    @property
    def mcp_changes(self) -> int:
        """How often MCP servers have announced that their tools have changed."""
        return 0 if self._mcp is None else self._mcp.changes

    def mcp_troubles(self, shared_by: str) -> list[McpTrouble]:
        """The MCP servers of these agents that this process could not reach when it last tried."""
        return [] if self._mcp is None else self._mcp.troubles(shared_by)

    async def outbound(self) -> Outbound:
        """HTTP to public hosts, and to those that are allowed by name."""
        if self._outbound is None:
            from denizen.tools.outbound import Outbound

            self._outbound = await self._closing.enter_async_context(Outbound())
        return self._outbound

    async def close(self) -> None:
        """Close every connection, and end every program."""
        await self._closing.aclose()
