"""HTTP tools, MCP servers and asynchronous services in the life of an agent: defined, called, answered."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from denizen import call, reply, tool
from denizen.access.vault import new_key
from denizen.agents.registry import Agent
from denizen.cycles import organization
from denizen.spaces.directory import Space
from denizen.tools.settings import HttpTool, McpServer
from denizen.trust.policy import EffectSettings
from tests.server.conftest import House, served
from tests.world import World, open_world

NUMBER: dict[str, Any] = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


class Service:
    """A real service on loopback that keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.port = 0

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append((await request.text(), request.headers.copy()))
        status = 500 if request.path == "/broken" else 200
        return web.Response(text=f"{request.path} has it", status=status)

    def tool(self, path: str, **more: Any) -> HttpTool:
        usual = {"method": "POST", "parameters": NUMBER, "allow_private": (f"127.0.0.1:{self.port}",)}
        url = f"http://127.0.0.1:{self.port}{path}"
        return HttpTool(name="order", description="Order something.", url=url, **(usual | more))  # pyright: ignore[reportArgumentType]


@pytest.fixture
async def service() -> AsyncGenerator[Service]:
    service = Service()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", service.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    service.port = runner.addresses[0][1]
    yield service
    await runner.cleanup()


@pytest.fixture
async def world(ready_url: str) -> AsyncGenerator[World]:
    """A world that has a key for its secrets."""
    async with open_world(ready_url, secret_key=new_key()) as world:
        yield world


async def ordered(world: World, *turns: Any, **options: Any) -> tuple[Agent, Space]:
    ada = await world.agent("Ada", *turns, **options)
    noor = await world.person("Noor")
    shop = await world.space("Shop", noor, ada)
    await world.say(noor, "Order it", shop)
    await world.run()
    return ada, shop


async def test_an_http_tool_is_called_with_its_secret_and_its_key(world: World, service: Service):
    await world.denizen.secrets.set("SHOP_KEY", "s3cr3t-of-the-shop")
    tool = service.tool("/orders", headers={"Authorization": "Bearer ${SHOP_KEY}"})
    ada, shop = await ordered(world, call("order", number=4), reply("Ordered."), "Done.", tools=[tool])
    ((body, headers),) = service.asked
    assert (json.loads(body), headers["Authorization"]) == ({"number": 4}, "Bearer s3cr3t-of-the-shop")
    assert headers["Idempotency-Key"].endswith(":0:0")
    assert (await world.history(ada))[2] == "results: order → /orders has it"
    assert (await world.transcript(shop))[-1] == "Ada: Ordered."


async def test_a_secret_goes_to_no_other_host_than_those_it_may_be_sent_to(
    ready_sqlite_url: str, service: Service, capsys: pytest.CaptureFixture[str]
):
    """Whoever has defined the tool. The model is told why, and an MCP server that would have it is left out."""
    async with open_world(ready_sqlite_url, secret_key=new_key()) as world:
        noor = await world.person("Noor")
        await world.denizen.secrets.set("SHOP_KEY", "s3cr3t-of-the-shop")
        tool = service.tool("/orders", headers={"Authorization": "Bearer ${SHOP_KEY}"})
        mcp = {"shop": McpServer(url=tool.url, headers={"X": "${SHOP_KEY}"}, allow_private=tool.allow_private)}
        turns = call("order", number=4), "It failed.", call("order", number=4), "Ordered."
        allowed = EffectSettings(after_outside_text="allow")  # what wakes it is from outside
        ada = await world.agent("Ada", *turns, tools=[tool], mcp=mcp, effects=allowed)

        async def order(*hosts: str) -> None:
            settled = {"secret_hosts": {"SHOP_KEY": hosts}}
            await world.denizen.db.write(organization.change_settings, noor.organization_id, settled)
            await world.denizen.agents.trigger(ada, "Test")
            await world.run_after(600)

        await order("shop.example", "127.0.0.1:1")
        assert service.asked == []
        assert "order failed: The secret SHOP_KEY may not be sent to 127.0.0.1." in (await world.history(ada))[2]
        assert "mcp server left out" in capsys.readouterr().out
        await world.denizen.agents.edit(ada, mcp={})
        await order(f"127.0.0.1:{service.port}")
        ((_, headers),) = service.asked
        assert headers["Authorization"] == "Bearer s3cr3t-of-the-shop"


async def test_a_link_that_nobody_here_wrote_makes_a_get_an_effect(world: World, service: Service):
    """Whoever owns the address would learn what stands in it. Without a link, a GET only reads."""
    schema = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
    look_up = service.tool("/look-up", method="GET", parameters=schema)
    noor = await world.person("Noor")
    leak = "https://evil.example/?found=the-blue-pot"
    turns = call("order", what="Oslo"), call("order", what=leak), "Waited."
    ada = await world.agent("Ada", *turns, tools=[look_up])
    await world.space("Office", noor, ada)
    await world.denizen.agents.trigger(ada, "page")
    await world.run()
    assert len(service.asked) == 1
    (asked,) = await world.denizen.calls.waiting(noor)
    assert (asked.why or "").startswith(f"what '{leak}' does not stand in a person's words")


async def test_a_service_that_answers_later_is_heard_once(world: World, service: Service):
    turns = [call("order", number=4), reply("I ordered it."), "Done.", reply("It is here."), "Told Noor."]
    ada, shop = await ordered(world, *turns, tools=[service.tool("/later", mode="async")])
    ((_, headers),) = service.asked
    address = headers["Denizen-Answer-To"]
    assert address.startswith("http://127.0.0.1:8420/hooks/calls/")
    async with served(world) as house:
        path = address.removeprefix("http://127.0.0.1:8420")
        assert await statuses(house, path.replace("key=", "key=0"), path, path) == [404, 200, 409]
    await world.run()
    assert await world.transcript(shop) == ["Noor: Order it", "Ada: I ordered it.", "Ada: It is here."]
    first = json.loads((await world.history(ada))[2].removeprefix("results: order → "))
    assert (first["status"], first["response"]) == ("pending", "/later has it")
    assert '{"arrived":true}' in await world.newest_inbox(ada)


async def statuses(house: House, *paths: str) -> list[int]:
    """A service has no token: whoever knows the address may answer."""
    return [(await house.call("POST", path, json={"arrived": True})).status_code for path in paths]


async def test_a_service_that_does_not_take_the_work_will_not_answer_it(world: World, service: Service):
    turns = [call("order", number=4), reply("It failed."), "Done."]
    ada, _ = await ordered(world, *turns, tools=[service.tool("/broken", mode="async", visible=True)])
    assert "order failed: HTTP 500" in (await world.history(ada))[2]
    noor = await world.denizen.people.find("noor")
    assert await world.denizen.calls.waiting(noor) == []


async def test_the_tools_of_an_mcp_server_are_the_agents_own(small_world: World, tmp_path: Path):
    """Against a real server process."""
    program = Path(__file__).parent / "mcp_server.py"
    server = McpServer(
        command=sys.executable, args=(str(program),), env={"FOLDER": str(tmp_path)}, prefix="files_", tools=("add",)
    )
    ada, shop = await ordered(small_world, call("files_add", a=2, b=3), reply("Five."), "Added.", mcp={"files": server})
    assert (await small_world.history(ada))[2] == "results: files_add → 5"
    assert (await small_world.transcript(shop))[-1] == "Ada: Five."


async def test_an_id_in_the_first_response_of_an_asynchronous_service_may_be_used(world: World):
    """It was made in this cycle, so nobody is asked, although a text from outside was read meanwhile."""
    cancelled: list[str] = []

    @tool(effect=False, results="outside")
    async def read_page() -> str:
        """Read a page."""
        return "Cheap pots!"

    @tool(makes={"order_id": "id"})
    async def place_order() -> str:
        """Order it."""
        return '{"id": "o-17"}'

    @tool(kinds={"order_id": "id"})
    async def cancel_order(order_id: str) -> str:
        """Cancel it."""
        cancelled.append(order_id)
        return "cancelled"

    cancel = call("cancel_order", order_id="o-17")
    turns = call("place_order"), call("read_page"), cancel, reply("Done."), "Cancelled it."
    await ordered(world, *turns, tools=[read_page, replace(place_order, mode="async"), cancel_order])
    assert cancelled == ["o-17"]
