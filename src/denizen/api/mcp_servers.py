"""`denizen.mcp_servers`: the MCP servers of agents that a person signs in to in a browser."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from denizen.access import secrets
from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.access.secrets import SecretLocation
from denizen.agents import registry
from denizen.api.secrets import Secrets
from denizen.api.subject import OrganizationRef, Subject
from denizen.clock import Instant
from denizen.errors import InvalidInput, NotFound
from denizen.ids import OrganizationId
from denizen.storage.database import Tx
from denizen.tools.mcp_sign_in import begin, finish, read_sign_in
from denizen.tools.settings import McpServer


@dataclass(frozen=True, slots=True)
class SignInServer:
    """An MCP server that an admin signs in to."""

    name: str
    """The secret in which what comes of the sign-in is kept."""
    url: str
    agents: tuple[str, ...]
    """The names of the agents that use it."""
    signed_in_at: Instant | None
    """When somebody last signed in; None: nobody has, or for another address."""


class McpServers(Subject):
    """MCP servers with `sign_in`: which there are, and signing in to them.

    ```python
    assert await denizen.mcp_servers.list() == []
    ```
    """

    async def list(self, organization: OrganizationRef | None = None) -> builtins.list[SignInServer]:
        """The servers that somebody signs in to, by name."""
        home = await self._runtime.organization_id(organization)
        return [each for each, _ in await self._runtime.db.read(self._found, home)]

    async def begin(
        self, name: str, *, organization: OrganizationRef | None = None, by: Requester = THIS_PROCESS
    ) -> str:
        """Begin to sign in. Returns the address that a person opens in a browser, within ten minutes.

        Raises `NotFound` if no agent has such a server, and `InvalidInput` if the server offers no sign-in.
        """
        home = await self._runtime.organization_id(organization)
        server = await self._runtime.db.read(self._server, home, name)
        sign_in, address = await begin(
            server,
            await self._runtime.outbound(),
            self._runtime.clock,
            name=name,
            redirect_uri=f"{self._runtime.public_url}/admin/mcp",
            client_secret=await self._client_secret(home, server),
        )
        # What was kept stays in use until the new sign-in is complete.
        kept = read_sign_in(await self._runtime.load_secret(home, name), sign_in.url)
        if kept is not None and (kept.issuer, kept.client_id) == (sign_in.issuer, sign_in.client_id):
            sign_in = kept.model_copy(update={"attempt": sign_in.attempt})
        await self._keep(home, name, sign_in.model_dump_json(exclude_none=True), by)
        return address

    async def finish(
        self, answer: str, *, organization: OrganizationRef | None = None, by: Requester = THIS_PROCESS
    ) -> SignInServer:
        """Complete a sign-in. `answer` is the whole address to which the browser was sent back.

        Raises `InvalidInput` if it belongs to no sign-in that was begun, or nobody has signed in.
        """
        home = await self._runtime.organization_id(organization)
        name = name_in(answer)
        server = await self._runtime.db.read(self._server, home, name)
        assert server.url is not None
        begun = read_sign_in(await self._runtime.load_secret(home, name), server.url)
        if begun is None:
            raise InvalidInput("This answer belongs to no sign-in that was begun. Begin again.")
        done = await finish(begun, server, await self._runtime.outbound(), self._runtime.clock, answer=answer)
        await self._keep(home, name, done.model_dump_json(exclude_none=True), by)
        return next(each for each in await self.list(home) if each.name == name)

    async def _keep(self, home: OrganizationId, name: str, value: str, by: Requester) -> None:
        await Secrets(self._runtime).set(name, value, organization=home, by=by)

    async def _client_secret(self, home: OrganizationId, server: McpServer) -> str | None:
        reference = None if server.sign_in is None else server.sign_in.client_secret
        if reference is None:
            return None
        name = reference[2:-1]
        value = await self._runtime.load_secret(home, name)
        if value is None:
            raise InvalidInput(f"The secret {name} is not set. Set it with `denizen secrets set {name}`.")
        return value

    def _server(self, tx: Tx, home: OrganizationId, name: str) -> McpServer:
        servers = [server for each, server in self._found(tx, home) if each.name == name]
        if not servers:
            raise NotFound("MCP server with the sign-in", name)
        if len({each.url for each in servers}) > 1:
            raise InvalidInput(f"Agents use {name} for different addresses. Give each server a name of its own.")
        return servers[0]

    def _found(self, tx: Tx, home: OrganizationId) -> builtins.list[tuple[SignInServer, McpServer]]:
        found: dict[tuple[str, str], tuple[builtins.list[str], McpServer]] = {}
        for agent, _ in registry.living_agents(tx, home):
            for server in agent.definition.mcp.values():
                if server.sign_in is not None and server.url is not None:
                    found.setdefault((server.sign_in.name, server.url), ([], server))[0].append(agent.name)
        return [
            (SignInServer(name, url, tuple(agents), self._signed_in_at(tx, home, name, url)), server)
            for (name, url), (agents, server) in sorted(found.items(), key=lambda each: each[0])
        ]

    def _signed_in_at(self, tx: Tx, home: OrganizationId, name: str, url: str) -> Instant | None:
        kept = read_sign_in(secrets.value_at(tx, self._runtime.vault, SecretLocation(home, name)), url)
        return None if kept is None or kept.signed_in_at is None else Instant(kept.signed_in_at)


def name_in(answer: str) -> str:
    """The name of the sign-in that an answer belongs to."""
    state = parse_qs(urlsplit(answer).query).get("state", [""])[0]
    name, _, rest = state.partition(".")
    if not rest:
        raise InvalidInput("This is not the address of an answer: it has no `state`. Copy the whole address.")
    return name
