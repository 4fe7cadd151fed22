"""Telemetry of the server: who may read the metrics, request ids, traces through requests, cycles and tools."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog
from aiohttp import web

from denizen import call, reply, tool
from denizen.access import roles
from denizen.access.vault import new_key
from denizen.errors import ModelOverloaded
from denizen.telemetry.logs import CHATTY, configure_logging
from denizen.telemetry.metrics import Metrics
from denizen.telemetry.telemetry import OFF, Telemetry
from denizen.tools.settings import HttpTool
from tests.server.conftest import House, served
from tests.telemetry.collector import Collector, attributes, collecting, watched
from tests.telemetry.test_metrics import read
from tests.world import UNHURRIED, JumpingClock, open_world

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture
async def collector() -> AsyncGenerator[Collector]:
    async with collecting() as collector:
        yield collector


@asynccontextmanager
async def house_of(url: str, telemetry: Telemetry) -> AsyncGenerator[House]:
    options: dict[str, Any] = {"pace": UNHURRIED, "secret_key": new_key(), "telemetry": telemetry}
    async with open_world(url, clock=JumpingClock(), **options) as world, served(world) as house:
        yield house


# Who may read the metrics


async def test_metrics_are_for_admins(small_house: House) -> None:
    world = small_house.world
    owner, admin, member = [await world.person(name) for name in ("Noor", "Sam", "Ann")]
    ada = await world.agent("Ada")
    await world.denizen.db.write(roles.set_role, admin.id, "admin")

    answers = [await small_house.call("GET", "/metrics", who) for who in (None, member, ada, owner, admin)]

    assert [answer.status_code for answer in answers] == [401, 403, 403, 200, 200]
    assert answers[-1].headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = read(answers[-1].text)
    assert found["denizen_http_requests_total", "GET", "unmatched", "401"] == 1
    assert found["denizen_http_requests_total", "GET", "/metrics", "403"] == 2
    assert found["denizen_build_info", "0.1.0"] == 1


async def test_metrics_of_all_are_for_the_first_organization_alone(house: House) -> None:
    """Who owns another one is told nothing of what the others do."""
    world = house.world
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor, eve = await world.person("Noor", organization=home), await world.person("Eve", organization=elsewhere)

    answers = [await house.call("GET", "/metrics", who) for who in (noor, eve)]

    assert [answer.status_code for answer in answers] == [200, 403]
    assert "denizen_" not in answers[1].text


async def test_metrics_are_open_where_the_owner_says_so(ready_sqlite_url: str) -> None:
    async with house_of(ready_sqlite_url, Telemetry(Metrics(), open_metrics=True)) as house:
        assert (await house.call("GET", "/metrics")).status_code == 200
        assert (await house.call("GET", "/api/me")).status_code == 401
        assert (await house.call("GET", "/metrics", headers={"Host": "evil.example"})).status_code == 421


async def test_without_metrics_there_is_no_such_page(ready_sqlite_url: str) -> None:
    async with house_of(ready_sqlite_url, OFF) as house:
        owner = await house.world.person("Noor")
        assert (await house.call("GET", "/metrics", owner)).status_code == 404


async def test_requests_are_told_by_route_and_streams_as_readers(small_house: House) -> None:
    """No identifier becomes a label, and a stream's hours are no request's duration."""
    world = small_house.world
    noor = await world.person("Noor")
    halls = [await world.space(name, noor) for name in ("Hall", "Cellar")]
    for hall in halls:
        await small_house.say(noor, "Hi", hall)
        await small_house.call("GET", f"/api/spaces/{hall.id}", noor)
        await small_house.call("GET", f"/api/nothing/{hall.id}", noor)
    await small_house.call("BREW", "/api/me", noor)

    async with small_house.stream(noor, halls[0]), small_house.stream(noor, halls[1]):
        assert read(await world.denizen.metrics())["denizen_stream_readers",] == 2

    small_house.stop.set()
    while read(await world.denizen.metrics())["denizen_stream_readers",]:
        await world.denizen.db.write(lambda tx: None)
    text = await world.denizen.metrics()
    found = read(text)
    assert not [hall.id for hall in halls if hall.id in text]
    assert found["denizen_http_requests_total", "POST", "/api/spaces/{space_id}/messages", "201"] == 2
    assert found["denizen_http_requests_total", "GET", "/api/spaces/{space_id}", "200"] == 2
    assert found["denizen_http_requests_total", "GET", "unmatched", "404"] == 2
    assert found["denizen_http_requests_total", "other", "/api/me", "405"] == 1
    assert found["denizen_http_requests_total", "GET", "/api/spaces/{space_id}/stream", "200"] == 2
    assert found["denizen_http_request_seconds_count", "/api/spaces/{space_id}/messages"] == 2
    assert ("denizen_http_request_seconds_count", "/api/spaces/{space_id}/stream") not in found


# Request ids


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-123", True), ("a" * 64, True), ("a" * 65, False), ("with space", False), ("", False)],
    ids=["its own", "long", "too long", "with a space", "none"],
)
async def test_every_answer_has_a_request_id(small_house: House, given: str, kept: bool) -> None:
    """The caller's own where it is one; else a new one."""
    for path in ("/healthz", "/api/me"):
        answer = await small_house.call("GET", path, headers={"X-Request-Id": given})
        assert (answer.headers["x-request-id"] == given) == kept
        assert answer.headers["x-request-id"].isprintable()


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, one JSON object a line, at the most talkative level."""
    root = logging.getLogger()
    handlers, level, levels = list(root.handlers), root.level, {name: logging.getLogger(name).level for name in CHATTY}
    stream = io.StringIO()
    configure_logging("debug", "json", stream=stream)
    yield stream
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def lines(log: io.StringIO, event: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, log.getvalue().splitlines()) if line["event"] == event]


async def test_log_lines_have_their_agent_and_cycle_and_none_of_a_request(ready_url: str, log: io.StringIO) -> None:
    """Two agents think at once, woken by requests: each line is of its own agent and cycle."""
    async with house_of(ready_url, OFF) as house:
        world = house.world
        busy = ModelOverloaded("busy")
        noor = await world.person("Noor")
        agents = [await world.agent(name, busy, reply("Hello."), "Greeted Noor.") for name in ("Ada", "Bob")]
        halls = [await world.space(agent.entity.name, noor, agent) for agent in agents]
        async with world.denizen.living() as residents:
            for hall in halls:
                await house.say(noor, "Hi", hall)
            await residents.run_until_idle()
        told = lines(log, "model asked again")
        cycles = {agent.id: (await world.cycles(agent))[0].id for agent in agents}
        assert {line["agent"]: line["cycle"] for line in told} == cycles
        assert not [line for line in told if "request" in line]


async def test_log_lines_of_a_request_have_its_id(ready_sqlite_url: str, log: io.StringIO) -> None:
    async with house_of(ready_sqlite_url, OFF) as house:
        noor = await house.world.person("Noor")
        await house.token(noor)
        await house.world.denizen.db.close()
        answer = await house.call("GET", "/api/me", noor, headers={"X-Request-Id": "r-1"})
        assert answer.status_code >= 500
        assert [line["request"] for line in lines(log, "request failed")] == ["r-1"]
        await house.world.open()


# Traces


async def test_a_trace_goes_from_the_request_through_the_cycle_to_a_service(
    ready_url: str, collector: Collector
) -> None:
    """What a caller brings is taken up, and what an HTTP tool calls can take it up in turn."""
    telemetry = watched(collector)
    heard: list[str] = []

    async def shop(request: web.Request) -> web.Response:
        heard.append(request.headers["traceparent"])
        return web.Response(text="ordered")

    async with house_of(ready_url, telemetry) as house, _service(shop) as port:
        world = house.world
        order = HttpTool(
            name="order",
            description="Order something.",
            method="POST",
            url=f"http://127.0.0.1:{port}/orders",
            allow_private=(f"127.0.0.1:{port}",),
        )
        ada = await world.agent("Ada", call("order"), reply("Ordered."), "Ordered it for Noor.", tools=[order])
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        sent = {"headers": {"traceparent": TRACEPARENT}, "json": {"text": "Order it"}}
        await house.call("POST", f"/api/spaces/{hall.id}/messages", noor, **sent)
        await world.run()
        await house.call("GET", "/healthz", headers={"traceparent": TRACEPARENT})
    await telemetry.aclose()

    spans = {span.name: span for span in collector.spans}
    posted = spans["POST /api/spaces/{space_id}/messages"]
    assert (posted.trace_id.hex(), posted.parent_span_id.hex()) == (TRACE, PARENT)
    assert attributes(posted)["http.response.status_code"] == 201
    cycle = spans["invoke_agent ada"]
    assert (cycle.trace_id.hex(), cycle.parent_span_id) == (TRACE, posted.span_id)
    ordered = spans["execute_tool order"]
    assert (ordered.trace_id.hex(), ordered.parent_span_id) == (TRACE, cycle.span_id)
    assert heard == [f"00-{TRACE}-{ordered.span_id.hex()}-01"]
    assert not [name for name in spans if "healthz" in name]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/chat", {"agent": "@ada", "text": "Hi"}),
        ("/v1/chat/completions", {"model": "ada", "messages": [{"role": "user", "content": "Hi"}]}),
        ("/v1/responses", {"model": "ada", "input": "Hi", "stream": True}),
    ],
)
async def test_a_trace_goes_on_through_requests_that_wait_for_an_answer(
    ready_sqlite_url: str, collector: Collector, path: str, body: dict[str, Any]
) -> None:
    telemetry = watched(collector)
    async with house_of(ready_sqlite_url, telemetry) as house, house.world.denizen.living() as residents:
        await house.world.agent("Ada", reply("Hello."), "Greeted.")
        noor = await house.world.person("Noor")
        answer = await house.call("POST", path, noor, json=body, headers={"traceparent": TRACEPARENT})
        assert answer.status_code == 200, answer.text
        await residents.run_until_idle()
    await telemetry.aclose()
    spans = {span.name: span for span in collector.spans}
    asked, cycle = spans[f"POST {path}"], spans["invoke_agent ada"]
    assert (asked.trace_id.hex(), asked.parent_span_id.hex()) == (TRACE, PARENT)
    assert (cycle.trace_id.hex(), cycle.parent_span_id) == (TRACE, asked.span_id)


@pytest.mark.parametrize("wrong", ["", "00-zz-1-01", f"00-{'0' * 32}-{PARENT}-01"])
async def test_what_is_no_traceparent_begins_a_trace_of_its_own(
    ready_sqlite_url: str, collector: Collector, wrong: str
) -> None:
    telemetry = watched(collector)
    async with house_of(ready_sqlite_url, telemetry) as house:
        noor = await house.world.person("Noor")
        assert (await house.call("GET", "/api/me", noor, headers={"traceparent": wrong})).status_code == 200
    await telemetry.aclose()
    [span] = collector.spans
    assert (span.name, span.parent_span_id) == ("GET /api/me", b"")
    assert any(span.trace_id)


async def test_without_tracing_services_are_told_of_no_trace(ready_sqlite_url: str) -> None:
    heard: list[bool] = []

    async def shop(request: web.Request) -> web.Response:
        heard.append("traceparent" in request.headers)
        return web.Response(text="ordered")

    async with house_of(ready_sqlite_url, Telemetry(Metrics())) as house, _service(shop) as port:
        private = (f"127.0.0.1:{port}",)
        order = HttpTool(name="order", description="Order.", url=f"http://127.0.0.1:{port}/", allow_private=private)
        ada = await house.world.agent("Ada", call("order"), reply("Ordered."), "Done.", tools=[order])
        noor = await house.world.person("Noor")
        await house.world.say(noor, "Order it", await house.world.space("Hall", noor, ada))
        await house.world.run()
    assert heard == [False]


@asynccontextmanager
async def _service(answer: Any) -> AsyncGenerator[int]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


# Canaries


async def test_nothing_that_was_said_or_kept_gets_out(
    ready_sqlite_url: str, collector: Collector, log: io.StringIO
) -> None:
    """Words and secrets planted wherever there are any are in no span, no metric and no log line."""
    canary, secret = "canary-kestrel", "s3cr3t-osprey-0123456789"
    telemetry = watched(collector)

    @tool
    async def look_up(name: str) -> str:
        """Look someone up."""
        return f"{name} lives at {canary}"

    async def shop(_: web.Request) -> web.Response:
        return web.Response(text=f"{canary} {secret}")

    async with house_of(ready_sqlite_url, telemetry) as house, _service(shop) as port:
        world = house.world
        await world.denizen.secrets.set("SHOP_KEY", secret)
        order = HttpTool(
            name="order",
            description=f"Order a {canary}.",
            method="POST",
            url=f"http://127.0.0.1:{port}/{canary}",
            headers={"X-Key": "${SHOP_KEY}"},
            parameters={"type": "object", "properties": {"what": {"type": "string"}}},
            allow_private=(f"127.0.0.1:{port}",),
        )
        turns = [
            [call("look_up", name=canary), call(f"{canary}_tool"), call("order", what=canary)],
            [call("set_memory", key=canary, text=canary), reply(f"Hello, {canary}.")],
            f"Greeted {canary}.",
            call("skip", reason=canary),
        ]
        ada = await world.agent("Ada", *turns, tools=[look_up, order], instructions=f"You are {canary}.")
        noor = await world.person(canary, handle="noor")
        hall = await world.space(canary, noor, ada)
        async with house.stream(noor, hall) as stream, world.denizen.living() as residents:
            await house.say(noor, f"Do you know {canary}?", hall)
            await residents.run_until_idle()
            await house.say(noor, f"Thanks, {canary}.", hall, metadata={"note": canary})
            await residents.run_until_idle()
            await stream.until("message", 3)
        await house.call("GET", f"/api/{canary}?q={canary}", noor, headers={"X-Request-Id": f"{canary} {secret}"})
        await house.call("GET", "/api/me", headers={"Authorization": f"Bearer {secret}"})
        assert any(canary in line for line in await world.transcript(hall))
        shown = await world.denizen.metrics()
        tokens = list(house.secrets.values())
    await telemetry.aclose()

    assert len(collector.named("execute_tool")) == 5
    assert len(collector.named("invoke_agent")) == 2
    for word in (canary, secret, *tokens):
        assert not any(word.encode() in body for body in collector.bodies)
        assert word not in shown
    # Clients of HTTP tell the addresses they ask for, but only to whoever wants to debug.
    ours = [line for line in log.getvalue().splitlines() if json.loads(line)["logger"].split(".")[0] not in CHATTY]
    assert not [line for line in ours if canary in line]
    assert not [word for word in (secret, *tokens) if word in log.getvalue()]
