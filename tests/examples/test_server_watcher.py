"""The server watcher: it looks by itself, at a real server, and speaks only if something is wrong."""

from __future__ import annotations

import pytest
from aiohttp import web
from pydantic_ai.messages import ModelMessage

from denizen import call, forever, reply, skip
from denizen.models.scripted import Info, Turn
from denizen.tools.loading import load_tools
from tests.examples.playing import EXAMPLES, playing, space_id_in
from tests.world import as_text


def look_and_judge(messages: list[ModelMessage], _: Info) -> Turn:
    """What the instructions ask for: look; if it is well, skip; if not, say so in Ops."""
    last = as_text(messages[-1])
    if last.startswith("[INBOX"):
        return call("check_server")
    if last == "check_server → well":
        return skip("all is well")
    if last.startswith("check_server → "):
        found = last.removeprefix("check_server → ")
        return [call("enter_space", space_id=space_id_in(messages, "Ops")), reply(f"⚠️ The server is not well: {found}")]
    return "Warned Ops."


async def test_it_looks_every_ten_minutes_and_warns_when_it_must(
    ready_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Well, then out of order, then not there at all; nobody ever said anything to it."""
    states = iter([200, 503])

    async def health(_: web.Request) -> web.Response:
        return web.Response(status=next(states))

    app = web.Application()
    app.router.add_get("/", health)
    runner = web.AppRunner(app)
    await runner.setup()
    await (site := web.TCPSite(runner, "127.0.0.1", 0)).start()
    monkeypatch.setenv("WATCHED_URL", f"{site.name}/")
    tools = load_tools([str(EXAMPLES / "server-watcher" / "tools.py")])

    async with playing("server-watcher", ready_url, forever(look_and_judge), tools=tools) as house:
        await house.denizen.run_until_idle()
        assert await house.transcript("Ops") == []
        house.clock.advance(600)
        await house.denizen.run_until_idle()
        assert await house.transcript("Ops") == []
        watcher = await house.agent("watcher")
        assert [entry.kind for entry in await house.denizen.minds.log(watcher)][:3] == ["inbox", "response", "results"]
        house.clock.advance(600)
        await house.denizen.run_until_idle()
        await runner.cleanup()
        house.clock.advance(600)
        await house.denizen.run_until_idle()
        first, second = await house.transcript("Ops")
        assert first == "Watcher: ⚠️ The server is not well: status 503 Service Unavailable"
        assert second.startswith("Watcher: ⚠️ The server is not well: no answer: ")
