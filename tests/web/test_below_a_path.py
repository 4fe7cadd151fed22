"""The server below a path of its proxy: the whole web client, its streams, files, worker and sign-in work there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import test_utils, web
from playwright.async_api import expect

from denizen import reply
from denizen.server.reach import Reach
from tests.server.conftest import House
from tests.web.conftest import SharedBrowser, served_to_browsers, visiting
from tests.web.test_conversation import write
from tests.world import UNHURRIED, open_world

PATH = "/town"


@asynccontextmanager
async def proxied(house: House, *, strips: bool, elsewhere: list[str]) -> AsyncGenerator[str]:
    """The server behind a proxy that serves it below `PATH` only, and notes what is asked for elsewhere."""

    async def forward(request: web.Request) -> web.StreamResponse:
        path = request.raw_path
        if not path.startswith(f"{PATH}/"):
            elsewhere.append(path)
            return web.Response(status=404)
        target = house.address + (path.removeprefix(PATH) if strips else path)
        async with session.request(
            request.method, target, headers=request.headers, data=await request.read(), allow_redirects=False
        ) as answer:
            kept = answer.headers.copy()  # with all cookies
            kept.popall("Transfer-Encoding", None)
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(part)
            await response.write_eof()
            return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", forward)
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        test_utils.TestServer(app) as server,
    ):
        yield f"http://127.0.0.1:{server.port}"


@pytest.mark.parametrize("strips", [True, False])
async def test_the_web_client_works_below_a_path(browser: SharedBrowser, ready_sqlite_url: str, strips: bool) -> None:
    elsewhere: list[str] = []
    async with (
        open_world(ready_sqlite_url, pace=UNHURRIED) as world,
        served_to_browsers(world, reach=Reach(path=PATH)) as house,
        world.denizen.living(),
        proxied(house, strips=strips, elsewhere=elsewhere) as address,
    ):
        noor = await world.person("Noor")
        ada = await world.agent("Ada", reply("Hello, Noor."), "Greeted Noor.")
        kitchen = await world.space("Kitchen", noor, ada)
        login = (await house.call("POST", "/api/logins", noor, json={})).json()
        outside = replace(house, address=address)
        async with visiting(browser, outside, noor, signed_in=False, new_context=True) as hers:
            page = await hers.open(f"{PATH}/login#{login['secret']}")
            await write(page, "Hello, Ada.")
            await expect(page.get_by_role("article", name="Ada: Hello, Noor.")).to_be_visible()
            assert page.url == f"{address}{PATH}/s/{kitchen.id}"
            await page.locator("input[type=file]").first.set_input_files(
                {"name": "dot.svg", "mimeType": "text/plain", "buffer": b"A note."}
            )
            await page.get_by_role("button", name="Send").click()
            await expect(page.get_by_text("dot.svg").first).to_be_visible()
            await page.get_by_role("link", name="Agents").click()
            await expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
            assert page.url == f"{address}{PATH}/agents"
            await page.reload()
            await expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
            scope = await page.evaluate("navigator.serviceWorker.ready.then((each) => each.scope)")
            assert scope == f"{address}{PATH}/"
            await page.get_by_role("button", name="You").click()
            await page.get_by_role("menuitem", name="Sign out").click()
            await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
            assert page.url == f"{address}{PATH}/login"
            assert hers.complaints == []
    assert [each for each in elsewhere if each != "/favicon.ico"] == []
