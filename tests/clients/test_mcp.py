"""The MCP server at `/mcp`, by the conformance tests of the protocol's authors."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import test_utils, web

from tests.clients.conftest import NODE, output_of
from tests.server.conftest import House, served
from tests.world import open_world

SCENARIOS = ("server-initialize", "ping", "tools-list", "dns-rebinding-protection")
"""The scenarios for servers that need no tool, prompt or resource of a certain name."""


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_conformance(client_node: Path, tmp_path: Path, scenario: str) -> None:
    async with open_world("sqlite://") as world, served(world) as house:
        noor = await world.person("Noor")
        async with with_token(house, await house.token(noor)) as address:
            program = client_node / "node_modules" / ".bin" / "conformance"
            await output_of(
                str(NODE), str(program), "server", "--url", f"{address}/mcp", "--scenario", scenario, folder=tmp_path
            )


@asynccontextmanager
async def with_token(house: House, token: str) -> AsyncGenerator[str]:
    """The server behind a proxy that adds the token: the conformance tests cannot send one."""

    async def forward(request: web.Request) -> web.StreamResponse:
        headers = {**request.headers, "Authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                request.method, f"{house.address}{request.path_qs}", headers=headers, data=await request.read()
            ) as answer,
        ):
            kind = {"Content-Type": answer.headers.get("Content-Type", "application/json")}
            return web.Response(status=answer.status, body=await answer.read(), headers=kind)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", forward)
    async with test_utils.TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"
