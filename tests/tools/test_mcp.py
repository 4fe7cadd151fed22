"""MCP servers in processes of their own: what they offer, what calls tell, and how they come and go.

What is said to them and what they answer is tested with a server made with the official library as well (`real`). To
import that takes a second, so tests that are about programs, however they speak, start one that imports nothing.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import structlog
from aiohttp import BasicAuth, test_utils, web
from mcp import Client, MCPError
from mcp.client.subscriptions import Subscription
from mcp_types import ListToolsResult
from pydantic import ValidationError

from denizen import call, reply
from denizen.clock import ManualClock
from denizen.errors import InvalidInput, ToolFailed
from denizen.ids import AgentId, CycleId
from denizen.tools import mcp, mcp_transport, whole_lines
from denizen.tools.mcp import IDLE_SECONDS, McpConnections, _callable_name
from denizen.tools.mcp_results import LONGEST
from denizen.tools.outbound import Outbound
from denizen.tools.results import Output, ToolFile
from denizen.tools.settings import McpOAuth, McpServer
from denizen.tools.tool import CallIdentity, OutsideTool
from tests import warm
from tests.server.conftest import served
from tests.servers import free_port
from tests.world import UNHURRIED, open_world

REAL = str(Path(__file__).with_name("mcp_server.py"))
GUARDED = str(Path(__file__).with_name("mcp_guarded.py"))
LIGHT = str(Path(__file__).with_name("mcp_light.py"))
OCCASION = CallIdentity(AgentId("agent"), CycleId("cycle"), 0, 0, "")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def connections(tmp_path: Path, clock: ManualClock) -> AsyncIterator[McpConnections]:
    """Connections; at the end every program that was started has ended."""
    async with Outbound() as outbound, McpConnections(outbound, clock) as made:
        yield made
    assert [pid for pid in started(tmp_path) if alive(pid)] == []


def started(folder: Path) -> list[int]:
    path = folder / "started"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def program(folder: Path, *, real: bool = False, **settings: Any) -> McpServer:
    env = {"FOLDER": str(folder), **settings.pop("env", {})}
    return McpServer(command=sys.executable, args=(REAL,) if real else ("-I", "-S", LIGHT), env=env, **settings)


either = pytest.mark.parametrize("real", [True, False], ids=["real", "light"])


async def offered(connections: McpConnections, server: McpServer, **secrets: str) -> dict[str, OutsideTool]:
    return {tool.name: tool for tool in await connections.tools({"tests": server}, secrets.get)}


async def use(tool: OutsideTool, **arguments: Any) -> str:
    told = await tool.call(tool.check(arguments), OCCASION)
    assert isinstance(told, str)
    return told


async def gone(connections: McpConnections) -> None:
    """The connection has noticed that the other side is not there any more."""
    for server in connections._servers.values():
        assert server._link is not None
        await server._link.over.wait()


# What is offered


@either
async def test_a_program_offers_its_tools_and_carries_them_out(connections: McpConnections, tmp_path: Path, real: bool):
    tools = await offered(connections, program(tmp_path, real=real, seconds=7, on_crash="retry", visible=True))
    add = tools["add"]
    assert add.definition.description == "Add two numbers."
    assert add.definition.parameters_json_schema["required"] == ["a", "b"]
    assert (add.seconds, add.on_crash, add.visible, add.independent) == (7, "retry", True, False)
    assert await use(add, a=2, b=3) == "5"
    assert await use(tools["odd_name_here"]) == "odd", "a name that models accept"


async def test_only_what_is_allowed_is_offered_in_that_order(connections: McpConnections, tmp_path: Path):
    server = program(tmp_path, tools=("note", "sing", "add"), prefix="t_")
    with structlog.testing.capture_logs() as logs:
        assert list(await offered(connections, server)) == ["t_note", "t_add"]
        await offered(connections, server)
    missing = [each for each in logs if each["event"] == "mcp server does not offer an allowed tool"]
    assert [(each["server"], each["what"]) for each in missing] == [("tests", "sing")]


async def test_a_name_that_is_taken_is_left_out(connections: McpConnections, tmp_path: Path):
    """A server cannot put its own tool in the place of one of ours, nor of another server's."""
    servers = {"one": program(tmp_path), "two": program(tmp_path, tools=("add", "long"))}
    names = [tool.name for tool in await connections.tools(servers, {}.get, taken={"note"})]
    assert "note" not in names
    assert names.count("add") == names.count("long") == 1


@either
async def test_a_pattern_that_cannot_be_used_is_not_checked_and_an_unusable_schema_is_left_out(
    connections: McpConnections, tmp_path: Path, real: bool
):
    """The model is still shown the pattern, and the server still checks it."""
    with structlog.testing.capture_logs() as logs:
        tools = await offered(connections, program(tmp_path, real=real))
        await offered(connections, program(tmp_path, real=real))
    assert "elsewhere" not in tools
    assert "(?!" in tools["mail"].definition.parameters_json_schema["properties"]["to"]["pattern"]
    assert await use(tools["mail"], to="noor@example.com") == "mailed to noor@example.com"
    with pytest.raises(InvalidInput, match="is not of type"):
        tools["mail"].check({"to": 3})
    warned = [each["what"].split(":")[0] for each in logs if "pattern" in each["event"] or "schema" in each["event"]]
    assert warned == ["mail", "elsewhere"]


async def test_equal_settings_share_one_program_and_other_secrets_do_not(connections: McpConnections, tmp_path: Path):
    server = program(tmp_path, env={"KEY": "${KEY}"})
    await asyncio.gather(*(offered(connections, server, KEY="first") for _ in range(3)))
    await offered(connections, server.model_copy(update={"prefix": "x_", "tools": ("add",)}), KEY="first")
    assert len(started(tmp_path)) == 1
    await offered(connections, server, KEY="second")
    assert len(started(tmp_path)) == 2


# Calls


@either
async def test_a_call_tells_what_came_of_it(connections: McpConnections, tmp_path: Path, real: bool):
    """Wrong arguments are refused, failures are failures, long texts are cut, what is no text is named."""
    tools = await offered(connections, program(tmp_path, real=real))
    with pytest.raises(InvalidInput, match=r'add was not called.*"b" is a required property'):
        tools["add"].check('{"a": 1}')
    with pytest.raises(InvalidInput, match='is not of type "integer"'):
        tools["add"].check('{"a": 1, "b": "two"}')
    with pytest.raises(ToolFailed, match="no paper left"):
        await use(tools["fail"], text="no paper left")
    assert await tools["picture"].call({}, OCCASION) == Output(
        "A dot:", (ToolFile(b"\x89PNG-dot", "image.png", "image/png"),)
    )
    told = await use(tools["long"], characters=LONGEST * 2)
    assert told.startswith("x" * LONGEST + "\n… [")
    assert len(told) < LONGEST + 100


async def test_a_program_gets_its_own_environment_and_no_other(
    connections: McpConnections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """And what it gives away of its secrets does not get further."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-you")
    monkeypatch.setenv("LANG", "C.UTF-8")
    tools = await offered(connections, program(tmp_path, env={"COLOUR": "blue", "KEY": "${KEY}"}), KEY="very-secret")
    ask = tools["environment"]
    assert await use(ask, name="COLOUR") == "blue"
    assert await use(ask, name="LANG") == "C.UTF-8"
    assert await use(ask, name="PATH") == os.environ["PATH"]
    assert await use(ask, name="OPENAI_API_KEY") == "nothing"
    assert await use(ask, name="KEY") == "•••"
    with pytest.raises(ToolFailed, match="no paper for •••"):
        await use(tools["fail"], text="no paper for very-secret")
    assert (await logged(tools["complain"], "no ink for very-secret"))["text"] == "no ink for •••"


async def test_what_a_program_logs_does_not_name_the_agent_that_was_the_first_to_use_it(
    connections: McpConnections, tmp_path: Path
):
    with structlog.contextvars.bound_contextvars(agent="ada"):
        tools = await offered(connections, program(tmp_path))
    assert "agent" not in await logged(tools["complain"], "no ink")


async def logged(complain: OutsideTool, text: str) -> dict[str, Any]:
    """What our log says when the program writes this to its standard error."""
    written: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    def hear(_: object, __: str, event: Any) -> Any:
        if event["event"] == "mcp server wrote" and "ink" in event["text"]:
            written.set_result(dict(event))
        raise structlog.DropEvent

    old = structlog.get_config()["processors"]
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, hear])
    try:
        await use(complain, text=text)
        return await written
    finally:
        structlog.configure(processors=old)


# Coming and going


async def test_a_program_that_was_killed_is_started_again_at_the_next_call(connections: McpConnections, tmp_path: Path):
    tools = await offered(connections, program(tmp_path))
    assert await use(tools["note"], text="one") == f"noted by {started(tmp_path)[0]}"
    os.kill(started(tmp_path)[0], signal.SIGKILL)
    await gone(connections)
    assert await use(tools["note"], text="two") == f"noted by {started(tmp_path)[1]}"
    assert (tmp_path / "notes").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(("on_crash", "starts"), [("report", 1), ("retry", 2)])
async def test_a_call_cut_off_in_the_middle_is_made_again_only_if_that_does_no_harm(
    connections: McpConnections, tmp_path: Path, on_crash: Any, starts: int
):
    os.mkfifo(tmp_path / "bell")
    tools = await offered(connections, program(tmp_path, on_crash=on_crash))
    async with asyncio.TaskGroup() as tasks:
        call = tasks.create_task(told(tools["hang"]))
        for at in range(starts):
            assert await asyncio.to_thread((tmp_path / "bell").read_text) == "rung"
            os.kill(started(tmp_path)[at], signal.SIGKILL)
    assert "Whether it did what was asked is unknown." in call.result()
    assert len(started(tmp_path)) == starts


async def told(tool: OutsideTool) -> str:
    return await failure(tool)


async def test_an_answer_that_is_too_long_fails_its_call_and_no_other(connections: McpConnections, tmp_path: Path):
    """The process was busy for a minute with an answer of 50 MB, because its text was joined again for each piece."""
    tools = await offered(connections, program(tmp_path))
    assert "The answer is larger than 16 MB." in await failure(tools["long"], characters=whole_lines.LINE_BYTES)
    whole = await use(tools["long"], characters=whole_lines.LINE_BYTES // 2)
    assert whole.startswith("xxx")
    assert await use(tools["add"], a=1, b=1) == "2"
    assert len(started(tmp_path)) == 1


async def failure(tool: OutsideTool, **arguments: Any) -> str:
    with pytest.raises(ToolFailed) as failed:
        await use(tool, **arguments)
    return str(failed.value)


@either
async def test_a_call_that_is_given_up_leaves_the_connection_whole(
    connections: McpConnections, tmp_path: Path, real: bool
):
    os.mkfifo(tmp_path / "bell")
    tools = await offered(connections, program(tmp_path, real=real))
    call = asyncio.create_task(use(tools["hang"]))
    assert await asyncio.to_thread((tmp_path / "bell").read_text) == "rung"
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await use(tools["add"], a=1, b=1) == "2"
    assert len(started(tmp_path)) == 1


async def test_a_connection_that_nobody_uses_is_closed_and_opened_when_needed(
    connections: McpConnections, tmp_path: Path, clock: ManualClock
):
    server = program(tmp_path)
    tools = await offered(connections, server)
    link = next(iter(connections._servers.values()))._link
    assert link is not None
    await clock.sleeper(IDLE_SECONDS)
    clock.advance(IDLE_SECONDS)
    await asyncio.wait({link._task})
    assert not alive(started(tmp_path)[0])
    assert (await offered(connections, server)).keys() == tools.keys()
    assert len(started(tmp_path)) == 1
    assert await use(tools["add"], a=1, b=1) == "2"
    assert len(started(tmp_path)) == 2


async def test_a_server_is_not_left_alone_for_longer_because_the_clock_was_set_back(
    connections: McpConnections, tmp_path: Path, clock: ManualClock
):
    path = tmp_path / "server"
    server = McpServer(command=str(path), env={"FOLDER": str(tmp_path)})
    assert await offered(connections, server) == {}
    path.write_text(f"#!/bin/sh\nexec {sys.executable} -I -S {LIGHT}\n")
    path.chmod(0o755)
    clock.advance(-86_400)
    assert "add" in await offered(connections, server)


async def test_a_server_that_cannot_be_reached_is_left_out_and_tried_again_later(
    connections: McpConnections, tmp_path: Path, clock: ManualClock
):
    path = tmp_path / "server"
    server = McpServer(command=str(path), env={"FOLDER": str(tmp_path)})
    with structlog.testing.capture_logs() as logs:
        assert await offered(connections, server) == {}
        path.write_text(f"#!/bin/sh\nexec {sys.executable} -I -S {LIGHT}\n")
        path.chmod(0o755)
        assert await offered(connections, server) == {}, "it is left alone for a while"
    assert [each["tools_known"] for each in logs if each["event"] == "mcp server unreachable"] == [False]
    clock.advance(mcp.BACK_OFF_SECONDS[0])
    tools = await offered(connections, server)
    assert await use(tools["add"], a=1, b=1) == "2"

    path.unlink()
    os.kill(started(tmp_path)[0], signal.SIGKILL)
    await gone(connections)
    assert (await offered(connections, server)).keys() == tools.keys(), "what it offered last"
    with pytest.raises(ToolFailed, match=r"The MCP server tests cannot be reached: .* It was not called"):
        await use(tools["add"], a=1, b=1)


async def test_a_program_that_is_no_mcp_server_is_left_out(connections: McpConnections):
    assert await offered(connections, McpServer(command="true")) == {}


async def test_a_missing_secret_leaves_the_server_out(connections: McpConnections, tmp_path: Path):
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            assert await offered(connections, program(tmp_path, env={"KEY": "${KEY}"})) == {}
    assert started(tmp_path) == []
    (told,) = logs
    assert (told["event"], told["server"]) == ("mcp server left out", "tests")
    assert "KEY" in told["what"]


async def test_nothing_is_started_after_the_end(tmp_path: Path):
    async with Outbound() as outbound:
        async with McpConnections(outbound) as connections:
            tools = await offered(connections, program(tmp_path))
        assert not alive(started(tmp_path)[0])
        with pytest.raises(ToolFailed, match="Denizen is closing"):
            await use(tools["add"], a=1, b=1)
    assert len(started(tmp_path)) == 1


# Over HTTP


@asynccontextmanager
async def serving(folder: Path, port: int, program: str = REAL, *more: str) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        *warm.program(program),
        str(port),
        *more,
        env={**os.environ, "FOLDER": str(folder)},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async for line in process.stderr:
            if b"Uvicorn running" in line:
                break
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGHUP)  # as a kill, but that it returns when the server is gone
        await process.communicate()


async def test_a_server_elsewhere_is_not_believed_that_a_tool_only_reads(connections: McpConnections, tmp_path: Path):
    """A hostile server would say so of every tool, and no call of it would ask a person. A program runs here anyway."""
    assert not (await offered(connections, program(tmp_path, real=True)))["add"].effect
    async with serving(tmp_path, free_port()) as url:
        effects: list[bool] = []
        for more in ({}, {"results": "trusted"}, {"only_read": ["add"]}):
            server = McpServer(url=url, allow_private=("127.0.0.1",), **more)  # pyright: ignore[reportArgumentType]
            effects.append((await offered(connections, server))["add"].effect)
        assert effects == [True, False, False]


@asynccontextmanager
async def issuing(asked: list[tuple[str, str]]) -> AsyncIterator[str]:
    """An authorization server that gives a token to the client `denizen` with the secret `right`."""
    app, address = web.Application(), ""

    async def metadata(_: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": address,
                "authorization_endpoint": f"{address}/authorize",
                "token_endpoint": f"{address}/token",
                "response_types_supported": ["code"],
                "grant_types_supported": ["client_credentials"],
            }
        )

    async def token(request: web.Request) -> web.Response:
        given, form = BasicAuth.decode(request.headers["Authorization"]), await request.post()
        asked.append((str(form["grant_type"]), str(form.get("scope", ""))))
        if (given.login, given.password) != ("denizen", "right"):
            return web.json_response({"error": "invalid_client"}, status=401)
        issued = {"access_token": f"issued-{len(asked)}", "token_type": "Bearer", "expires_in": 3600, "scope": "tools"}
        return web.json_response(issued)

    app.router.add_get("/.well-known/oauth-authorization-server", metadata)
    app.router.add_post("/token", token)
    async with test_utils.TestServer(app) as server:
        address = f"http://127.0.0.1:{server.port}"
        yield address


async def test_a_server_that_wants_access_tokens_gets_them(connections: McpConnections, tmp_path: Path):
    asked: list[tuple[str, str]] = []
    async with issuing(asked) as issuer, serving(tmp_path, free_port(), GUARDED, issuer) as url:
        oauth = McpOAuth(issuer=issuer, client_id="denizen", client_secret="${TRACKER}", scope="tools")
        server = McpServer(url=url, allow_private=("127.0.0.1",), oauth=oauth)
        tools = await offered(connections, server, TRACKER="right")
        assert await use(tools["add"], a=2, b=3) == "5"
        assert asked == [("client_credentials", "tools")], "one token serves all requests"
        assert await offered(connections, server, TRACKER="wrong") == {}
        assert await offered(connections, McpServer(url=url, allow_private=("127.0.0.1",))) == {}


async def test_credentials_are_sent_to_the_configured_issuer_only(connections: McpConnections, tmp_path: Path):
    """A server cannot name another authorization server to have them."""
    asked: list[tuple[str, str]] = []
    async with issuing(asked) as issuer, serving(tmp_path, free_port(), GUARDED, issuer) as url:
        oauth = McpOAuth(issuer="https://auth.example.com", client_id="denizen", client_secret="${TRACKER}")
        server = McpServer(url=url, allow_private=("127.0.0.1",), oauth=oauth)
        assert await offered(connections, server, TRACKER="right") == {}
    assert asked == []


async def test_a_server_at_an_address_comes_and_goes(connections: McpConnections, tmp_path: Path):
    port = free_port()
    async with serving(tmp_path, port) as url:
        server = McpServer(url=url, allow_private=("127.0.0.1",))
        tools = await offered(connections, server)
        assert await use(tools["add"], a=2, b=3) == "5"
        assert len(await use(tools["long"], characters=LONGEST * 2)) < LONGEST + 100
        with pytest.raises(ToolFailed, match="no paper"):
            await use(tools["fail"], text="no paper")
    with pytest.raises(ToolFailed, match="It was not called"):
        await use(tools["add"], a=2, b=3)
    async with serving(tmp_path, port):
        assert await use(tools["add"], a=2, b=3) == "5"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_server_cannot_redirect_headers_to_another_origin(connections: McpConnections, status: int):
    """Nothing is sent there: headers and messages are for the address of the definition."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.host} {request.path}")
        # The same machine under another name is another origin.
        return web.Response(status=status, headers={"Location": f"http://localhost:{request.url.port}/away"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    try:
        allowed = ("127.0.0.1", "localhost")
        server = McpServer(url=f"http://127.0.0.1:{port}/mcp", headers={"X-Key": "key"}, allow_private=allowed)
        assert await offered(connections, server) == {}
    finally:
        await runner.cleanup()
    assert asked
    assert {each.partition(":")[0] for each in asked} == {"127.0.0.1"}


async def test_a_server_that_is_killed_in_the_middle_of_a_call_leaves_the_outcome_unknown(
    connections: McpConnections, tmp_path: Path
):
    os.mkfifo(tmp_path / "bell")
    async with serving(tmp_path, free_port()) as url:
        tools = await offered(connections, McpServer(url=url, allow_private=("127.0.0.1",)))
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(told(tools["hang"]))
            assert await asyncio.to_thread((tmp_path / "bell").read_text) == "rung"
            os.kill(started(tmp_path)[0], signal.SIGKILL)
    assert "Whether it did what was asked is unknown." in call.result()


async def test_a_server_at_a_private_address_is_refused_unless_allowed(connections: McpConnections):
    """Nothing is sent to it, and it is not even connected to."""
    called: list[str] = []

    async def hear(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.append("connected")
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        with structlog.testing.capture_logs() as logs:
            assert await offered(connections, McpServer(url=url)) == {}
        assert "127.0.0.1 is not on the public internet" in logs[-1]["error"]
        assert called == []
        assert await offered(connections, McpServer(url=url, allow_private=("127.0.0.1",))) == {}
        assert called


async def test_a_session_that_the_server_has_forgotten_was_surely_not_served():
    async def forgotten(_: web.Request) -> web.Response:
        return web.Response(status=404)

    app = web.Application()
    app.router.add_post("/", forgotten)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    outbound = Outbound()
    async with httpx2.AsyncClient(transport=mcp_transport.wire(outbound.transport(["127.0.0.1"]))) as http:
        known = await http.post(url, headers={"Mcp-Session-Id": "1"})
        unknown = await http.post(url)
        await runner.cleanup()
        nobody = await http.post(url)
    assert known.json()["error"]["code"] == mcp_transport.FORGOTTEN
    assert unknown.status_code == 404
    assert nobody.json()["error"]["code"] == mcp_transport.NOT_SENT


@pytest.mark.parametrize(
    "settings", [{}, {"command": "x", "url": "https://x.example"}, {"url": "https://a:b@x.example"}]
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]):
    with pytest.raises(ValidationError):
        McpServer(**settings)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("look", "look"),
        ("_look", "_look"),
        ("2fa", "_2fa"),
        ("-x", "_-x"),
        ("look up/Ünits", "look_up__nits"),
        ("a" * 70, "a" * 64),
    ],
)
def test_the_name_of_a_tool_is_one_that_models_take(given: str, name: str) -> None:
    assert _callable_name(given) == name


async def test_a_request_that_the_network_fails_is_answered_with_whether_it_was_sent() -> None:
    """Not sent, broken on the way, or of a session that the server has forgotten: each has a code of its own."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async def not_found(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async def code(port: int, method: str = "POST", **headers: str) -> int:
        async with httpx2.AsyncClient(transport=mcp_transport.wire(httpx2.AsyncHTTPTransport())) as client:
            answer = await client.request(method, f"http://127.0.0.1:{port}/", headers=headers)
        return answer.json()["error"]["code"] if answer.status_code == 503 else answer.status_code

    breaking = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    forgetful = await asyncio.start_server(not_found, "127.0.0.1", 0)
    async with breaking, forgetful:
        broken, forgot = (each.sockets[0].getsockname()[1] for each in (breaking, forgetful))
        session = {"mcp-session-id": "one"}
        assert await code(free_port(), **session) == mcp_transport.NOT_SENT
        assert await code(broken, **session) == mcp_transport.BROKEN
        assert await code(forgot, **session) == mcp_transport.FORGOTTEN
        assert await code(forgot) == 404
        assert await code(forgot, "GET", **session) == 404


async def test_a_program_that_is_being_connected_ends_with_whoever_waits_for_it(
    connections: McpConnections, tmp_path: Path
):
    """It was cancelled before there was a connection: nothing else knows of the program."""
    fifo = tmp_path / "pid"
    os.mkfifo(fifo)
    silent = f"import os, signal\nopen({str(fifo)!r}, 'w').write(str(os.getpid()))\nsignal.pause()"
    server = McpServer(command=sys.executable, args=("-c", silent))
    asking = asyncio.create_task(offered(connections, server))
    pid = int(await asyncio.to_thread(fifo.read_text))
    asking.cancel()
    await asyncio.wait({asking})
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_stream_that_is_left_is_closed_and_over() -> None:
    sending, reading = anyio.create_memory_object_stream[str](1)
    over = asyncio.Event()
    async with mcp_transport.WatchedStream(reading, over) as watched:
        await sending.send("Hello.")
        assert await watched.receive() == "Hello."
        assert not over.is_set()
    assert over.is_set()
    with pytest.raises(anyio.BrokenResourceError):
        await sending.send("Is anybody there?")
    await sending.aclose()


# What changes, what can be read, and what is wrong


@pytest.mark.parametrize("how", ["program", "address"])
async def test_a_server_says_that_its_tools_have_changed(connections: McpConnections, tmp_path: Path, how: str) -> None:
    """Whoever asks next has the new tool, and agents that are awake know that they have to ask."""
    async with _running(tmp_path, how) as server:
        tools = await offered(connections, server)
        assert "sing" not in tools
        before = connections.changes
        heard = asyncio.Event()
        [known] = connections._servers.values()
        assert known._link is not None
        note, known._link._on_change = known._link._on_change, heard.set
        await use(tools["learn"], name="sing")
        await heard.wait()
        note()
        assert connections.changes == before + 1
        assert await use((await offered(connections, server))["sing"]) == "sing is known"


async def test_a_change_before_the_server_knows_of_the_listener_is_noticed(
    connections: McpConnections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers announce a change only to those who listen: whoever begins to listen asks for the tools once more."""
    listen, slow = Client.listen, asyncio.Event()

    @asynccontextmanager
    async def listen_late(client: Client, *, tools_list_changed: bool) -> AsyncIterator[Subscription]:
        await slow.wait()
        async with listen(client, tools_list_changed=tools_list_changed) as changes:
            yield changes

    monkeypatch.setattr(Client, "listen", listen_late)
    async with _running(tmp_path, "address") as server:
        tools = await offered(connections, server)
        heard = asyncio.Event()
        [known] = connections._servers.values()
        assert known._link is not None
        known._link._on_change = heard.set
        await use(tools["learn"], name="sing")
        assert not heard.is_set()
        slow.set()
        await heard.wait()
        assert "sing" in await offered(connections, server)


async def test_tools_stay_known_while_their_server_fails_to_list_them_again(
    connections: McpConnections, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server whose sign-in was revoked, or that is being rebuilt, ends no life of an agent."""
    server = program(tmp_path, real=True)
    before = list(await offered(connections, server))
    [known] = connections._servers.values()
    assert known._link is not None
    known._link.changed = True

    async def refuse(client: Client, **options: object) -> ListToolsResult:
        raise MCPError(code=-32603, message="sign in first")

    with monkeypatch.context() as refusing:
        refusing.setattr(Client, "list_tools", refuse)
        assert list(await offered(connections, server)) == before
    assert known.trouble is not None
    assert known.trouble.text == "The MCP server tests does not list its tools: sign in first."
    clock.advance(mcp.BACK_OFF_SECONDS[0])
    assert list(await offered(connections, server)) == before
    assert known.trouble is None


@asynccontextmanager
async def _running(folder: Path, how: str) -> AsyncIterator[McpServer]:
    if how == "program":
        yield program(folder, real=True)
        return
    async with serving(folder, free_port()) as url:
        yield McpServer(url=url, allow_private=("127.0.0.1",))


async def test_resources_are_read_by_a_tool(connections: McpConnections, tmp_path: Path) -> None:
    tools = await offered(connections, program(tmp_path, real=True))
    reading = tools["read_resource"]
    assert reading.definition.description is not None
    assert "notes://today (today)" in reading.definition.description
    assert not reading.effect
    assert await use(reading, uri="notes://today") == "Water the roses."
    picture = await reading.call({"uri": "notes://dot"}, OCCASION)
    assert isinstance(picture, Output)
    assert picture.files == (ToolFile(b"\x89PNG-dot", "dot", "image/png"),)
    with pytest.raises(ToolFailed, match="notes://none"):
        await use(reading, uri="notes://none")
    only = await offered(connections, program(tmp_path, real=True, tools=("add",)))
    assert list(only) == ["add"], "it is a tool like any other"


async def test_resources_embedded_in_a_result_become_text_files_or_their_description(
    connections: McpConnections, tmp_path: Path
) -> None:
    tools = await offered(connections, program(tmp_path, real=True))
    assert await tools["report"].call({}, OCCASION) == Output(
        "Water the roses.\n[resource file:///garden/torn.bin, no text, 7 bytes]\n[resource Roses: notes://roses]",
        (ToolFile(b"%PDF-", "The plan.pdf", "application/pdf"),),
    )


async def test_the_name_of_a_file_does_not_give_away_a_secret(connections: McpConnections, tmp_path: Path) -> None:
    tools = await offered(connections, program(tmp_path, real=True, env={"KEY": "${KEY}"}), KEY="The plan")
    told = await tools["report"].call({}, OCCASION)
    assert isinstance(told, Output)
    assert [each.name for each in told.files] == ["•••.pdf"]


async def test_what_is_wrong_with_a_server_is_known_with_its_last_words(
    connections: McpConnections, tmp_path: Path, clock: ManualClock
) -> None:
    path = tmp_path / "server"
    path.write_text("#!/bin/sh\nseq 12 >&2\necho no licence for very-secret >&2\nexit 3\n")
    path.chmod(0o755)
    server = McpServer(command=str(path), env={"FOLDER": str(tmp_path), "KEY": "${KEY}"})
    assert await connections.tools({"tests": server}, {"KEY": "very-secret"}.get, shared_by="home") == []
    [trouble] = connections.troubles("home")
    assert trouble.server == "tests"
    assert "cannot be reached" in trouble.text
    assert len(trouble.last_words) == mcp_transport.LAST_WORDS
    assert trouble.last_words[-2] == "12"
    assert trouble.last_words[-1].startswith("no licence for ")
    assert "very-secret" not in trouble.last_words[-1]
    assert connections.troubles("elsewhere") == []
    path.write_text(f"#!/bin/sh\nexec {sys.executable} -I -S {LIGHT}\n")
    clock.advance(mcp.BACK_OFF_SECONDS[0])
    assert await connections.tools({"tests": server}, {"KEY": "very-secret"}.get, shared_by="home")
    assert connections.troubles("home") == []


async def test_a_server_of_the_older_transport_is_refused_with_a_sentence(connections: McpConnections) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.method != "GET":
            return web.Response(status=405)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"event: endpoint\ndata: /messages?session=1\n\n")
        return response

    app = web.Application()
    app.router.add_route("*", "/sse", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        address = f"http://127.0.0.1:{runner.addresses[0][1]}/sse"
        server = McpServer(url=address, allow_private=("127.0.0.1",))
        assert await connections.tools({"old": server}, {}.get, shared_by="home") == []
        [trouble] = connections.troubles("home")
        assert "it offers the older transport HTTP+SSE, which Denizen does not use." in trouble.text
    finally:
        await runner.cleanup()


async def test_an_agent_that_is_awake_has_new_tools_with_its_next_cycle(tmp_path: Path) -> None:
    async with open_world("sqlite://", pace=UNHURRIED) as world, world.denizen.living() as residents:
        noor = await world.person("Noor")
        ada = await world.agent(
            "Ada",
            *(reply("Hi."), "Said hi."),
            *(call("learn", name="sing"), reply("Done."), "Learned it."),
            *(call("sing"), reply("La la."), "Sang."),
            mcp={"tests": program(tmp_path, real=True, results="trusted")},
        )
        room = await world.space("Room", noor, ada)
        await world.say(noor, "Hello.", room)
        await residents.run_until_idle()
        connections = world.denizen._outside._mcp
        assert connections is not None
        [known] = connections._servers.values()
        assert known._link is not None
        heard, note = asyncio.Event(), known._link._on_change
        known._link._on_change = lambda: (note(), heard.set())[0]
        await world.say(noor, "Learn to sing.", room)
        await residents.run_until_idle()
        await heard.wait()
        await world.say(noor, "Sing.", room)
        await residents.run_until_idle()
        told = [each for each in await world.history(ada) if each.startswith("results: sing")]
        assert len(told) == 1
        assert "sing is known" in told[0]


async def test_a_broken_server_is_an_alert_of_the_house(tmp_path: Path) -> None:
    """For admins of its organization, with what the program wrote."""
    path = tmp_path / "server"
    path.write_text("#!/bin/sh\necho no licence >&2\nexit 3\n")
    path.chmod(0o755)
    async with open_world("sqlite://") as world, served(world) as house, world.denizen.living() as residents:
        noor = await world.person("Noor")
        broken = McpServer(command=str(path), env={"FOLDER": str(tmp_path)})
        ada = await world.agent("Ada", reply("Hi."), "Said hi.", mcp={"files": broken})
        await world.say(noor, "Hello.", await world.space("Room", noor, ada))
        await residents.run_until_idle()
        [alert] = (await house.call("GET", "/api/health", noor)).json()["alerts"]
        other = await world.denizen.organizations.create("Elsewhere")
        eve = await world.person("Eve", organization=other)
        elsewhere = (await house.call("GET", "/api/health", eve)).json()["alerts"]
    assert alert["code"] == "mcp_unreachable"
    assert alert["text"].startswith("The MCP server files cannot be reached: ")
    assert alert["text"].endswith(" It wrote: no licence")
    assert elsewhere == []
