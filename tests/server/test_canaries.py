"""Secrets are planted everywhere one can be kept, used and made to fail; then they are looked for everywhere else.

Found in no log of any level (the server's and the libraries' included), in no trace or metric, in no answer of any
route, in no error, inspection or replay, and in the database only sealed or hashed. What a process prints is looked
through in tests/cli/test_up.py.
"""

from __future__ import annotations

import io
import logging
import re
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import structlog
from aiohttp import web
from sqlalchemy import select, text

from denizen import call, reply
from denizen.access.vault import new_key
from denizen.cli.config import app as config
from denizen.settings.loading import load
from denizen.storage.database import Tx, statement
from denizen.storage.schema import metadata
from denizen.telemetry.logs import CHATTY, Level, configure_logging
from denizen.tools.settings import HttpTool, McpServer
from tests.server import small_town
from tests.server.conftest import House, served
from tests.server.small_town import Part
from tests.telemetry.collector import collecting, watched
from tests.world import open_world

MCP_PROGRAM = str(Path(__file__).parents[1] / "tools" / "mcp_server.py")
_PREFIX = re.compile(r"^(dz[a-z]?_|sk-)")
_BREAK = statement(text("ALTER TABLE tokens RENAME TO gone"))
_ROWS = [statement(select(table)) for table in metadata.sorted_tables]


@dataclass
class Canaries:
    """Secrets that are easy to find again, by where they were planted."""

    planted: dict[str, str] = field(default_factory=dict)

    def plant(self, where: str, value: str | None = None) -> str:
        self.planted[where] = value or f"canary-{where}-5d1f7c3e9b2a"
        return self.planted[where]

    def found_in(self, text: str) -> list[str]:
        """Where they were planted; without `dz_`, by which the last door of the logs would know them."""
        return [where for where, value in self.planted.items() if _PREFIX.sub("", value) in text]


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Everything that is logged, at the level that tells most."""
    root = logging.getLogger()
    handlers, level, levels = list(root.handlers), root.level, {name: logging.getLogger(name).level for name in CHATTY}
    stream = io.StringIO()
    most: Level = "debug"
    configure_logging(most, "json", stream=stream)
    yield stream
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


@asynccontextmanager
async def echo() -> AsyncGenerator[int]:
    """A service that tells everything it was sent, and with `/broken` fails over it; its port."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=f"You sent {dict(request.headers)}", status=500 if request.path == "/broken" else 200)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def tool(name: str, port: int, path: str, secret: str) -> HttpTool:
    return HttpTool(
        name=name,
        description="Ask the service.",
        url=f"http://127.0.0.1:{port}{path}",
        headers={"Authorization": f"Bearer ${{{secret}}}", "X-Key": f"${{{secret}}}"},
        allow_private=(f"127.0.0.1:{port}",),
    )


async def test_no_secret_is_found_where_it_should_not_be(ready_url: str, tmp_path: Path, logged: io.StringIO) -> None:
    canaries, seal = Canaries(), new_key()
    canaries.plant("seal", seal)
    shared = {"SHARED": canaries.plant("shared")}
    async with (
        echo() as port,
        collecting() as collector,
        open_world(ready_url, secret_key=seal, shared_secrets=shared, telemetry=watched(collector)) as world,
        served(world) as house,
    ):
        noor = await world.person("Noor")
        canaries.plant("token", await house.token(noor))
        for name in ("HTTP_KEY", "MCP_KEY", "OWN_KEY", "OPENAI_API_KEY"):
            value = canaries.plant(name.lower())
            body = {"value": value, "whose": "me" if name == "OWN_KEY" else "organization"}
            assert (await house.call("PUT", f"/api/keys/{name}", noor, json=body)).status_code == 200
        ada = await world.agent(
            "Ada",
            call("service"),
            call("broken"),
            call("shared"),
            call("environment", name="KEY"),
            reply("Done."),
            "I asked them all.",
            tools=[
                tool("service", port, "/", "HTTP_KEY"),
                tool("broken", port, "/broken", "HTTP_KEY"),
                tool("shared", port, "/", "SHARED"),
            ],
            mcp={
                "programs": McpServer(
                    command=sys.executable, args=(MCP_PROGRAM,), env={"FOLDER": str(tmp_path), "KEY": "${MCP_KEY}"}
                )
            },
            effects={"after_outside_text": "allow"},
        )
        kitchen = await world.space("Kitchen", noor, ada)
        await world.say(noor, "Ask them.", kitchen)
        await world.run()
        assert (await world.transcript(kitchen))[-1] == "Ada: Done."
        await _sign_in(house, noor, canaries)
        await _send_what_is_wrong(house, canaries)

        told = [
            repr(await world.denizen.minds.inspect(ada)),
            repr(await world.denizen.minds.replay(ada, 1)),
            repr(world.denizen),
        ]
        told += await world.history(ada)
        used = [each for each in told if "You sent" in each]
        assert used, "the tools were not used"
        for each in told:
            assert canaries.found_in(each) == []
        answers = await _everything_that_can_be_read(house, noor, Part({"space": kitchen.id, "agent": ada.id}))
        assert len(answers) >= 8
        for asked, answer in answers.items():
            assert canaries.found_in(answer) == [], asked
        assert "denizen_http_requests_total" in answers["/metrics"]
        rows = await world.denizen.db.read(_all_rows)
        assert canaries.found_in(rows) == []
        await _fail_with_secrets(house, canaries)
        await world.denizen.telemetry.aclose()
        names = {span.name for span in collector.spans}
        assert {"execute_tool broken", "PUT /api/keys/{name}", "POST /api/session"} <= names
        assert canaries.found_in(b"".join(collector.bodies).decode(errors="replace")) == []
    lines = logged.getvalue()
    assert "Traceback" in lines, "the defect was not logged"
    assert '"level": "debug"' in lines
    assert canaries.found_in(lines) == []


async def _sign_in(house: House, noor, canaries: Canaries) -> None:
    login = (await house.call("POST", "/api/logins", noor, json={})).json()
    canaries.plant("login", login["secret"])
    answer = await house.call("POST", "/api/session", json={"secret": login["secret"]})
    session = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
    canaries.plant("session", session)
    assert canaries.found_in(answer.text) == []
    canaries.plant("page key", answer.json()["page_key"])
    made = (await house.call("POST", "/api/tokens", noor, json={"name": "x"})).json()
    canaries.plant("made", made["secret"])
    hook = await house.call("POST", "/api/agents/@ada/webhooks", noor, json={"name": "x"})
    canaries.plant("hook", hook.json()["secret"])


async def _send_what_is_wrong(house: House, canaries: Canaries) -> None:
    """Whatever is refused is not repeated to whoever sent it."""
    noor = {"Authorization": f"Bearer {canaries.planted['token']}"}
    value = canaries.plant("wrong")
    for method, path, headers, body in [
        ("GET", "/api/me", {"Authorization": f"Bearer {value}"}, None),
        ("GET", "/api/me", {"Authorization": f"Basic {value}"}, None),
        ("GET", "/api/me", {"Cookie": f"denizen-1={value}"}, None),
        ("POST", "/api/session", {}, {"secret": value}),
        ("POST", "/api/session", {}, {"secret": [value]}),
        ("POST", "/api/session", {}, {"secret": value, "more": value}),
        ("PUT", "/api/keys/X", noor, {"value": value}),
        ("PUT", "/api/keys/OPENAI_API_KEY", noor, {"value": [value]}),
        ("PUT", "/api/keys/OPENAI_API_KEY", noor, {"value": value + "\0"}),
        ("POST", "/api/agents/@ada/webhooks", noor, {"name": "", "secret": value}),
        ("POST", "/hooks/calls/nothing?key=" + value, {}, {}),
    ]:
        answer = await house.client.request(method, path, headers=headers, json=body)
        assert 400 <= answer.status_code < 500, (path, answer.text)
        assert canaries.found_in(answer.text) == [], path


async def _fail_with_secrets(house: House, canaries: Canaries) -> None:
    """The database fails while secrets are looked up: its error, with statement and parameters, is logged."""

    def break_it(tx: Tx) -> None:
        tx.run(_BREAK)

    await house.world.denizen.db.write(break_it)
    token, session = canaries.planted["token"], canaries.planted["session"]
    page_key = {"Denizen-Page-Key": canaries.planted["page key"]}
    port = house.address.rpartition(":")[2]
    for method, path, headers, body in [
        ("GET", "/api/me", {"Authorization": f"Bearer {token}"}, None),
        ("GET", "/api/me", {"Cookie": f"denizen-{port}={session}", **page_key}, None),
        ("POST", "/api/session", {}, {"secret": canaries.planted["made"]}),
        ("PUT", "/api/keys/OPENAI_API_KEY", {"Authorization": f"Bearer {token}"}, {"value": canaries.planted["wrong"]}),
    ]:
        answer = await house.client.request(method, path, headers=headers, json=body)
        assert answer.status_code >= 500, (path, answer.text)
        assert canaries.found_in(answer.text) == [], path


async def _everything_that_can_be_read(house: House, who, part: Part) -> dict[str, str]:
    """The answer of every GET that the API describes and that the walk can fill in; streams aside."""
    answers: dict[str, str] = {}
    description = small_town.description()
    for method, path, operation in small_town.operations(description):
        streams = any("text/event-stream" in each.get("content", {}) for each in operation["responses"].values())
        if method == "GET" and not streams:
            try:
                asked = small_town.filled(path, part)
            except KeyError:
                continue
            answers[asked] = (await house.call("GET", asked, who)).text
    return answers


def _all_rows(tx: Tx) -> str:
    return "\n".join(str(row) for query in _ROWS for row in tx.all(query))


def test_settings_are_shown_without_their_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    canaries = Canaries()
    environ = {
        "OPENAI_API_KEY": canaries.plant("openai"),
        "ANTHROPIC_API_KEY": canaries.plant("anthropic"),
        "DENIZEN_SECRET_KEY": canaries.plant("key"),
        "DENIZEN_SECRET_CRM": canaries.plant("shared"),
        "DATABASE_URL": f"postgresql://noor:{canaries.plant('database')}@localhost/denizen",
        "REDIS_URL": f"redis://:{canaries.plant('redis')}@localhost:6379/0",
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    loaded = load()
    told = [repr(loaded), str(loaded.settings), loaded.settings.model_dump_json(exclude={"database_url", "redis_url"})]
    told += [CliRunner().invoke(config, arguments).output for arguments in ([], ["--json"])]
    assert [canaries.found_in(each) for each in told] == [[]] * 5


async def test_a_provider_that_repeats_the_key_tells_it_to_nobody(
    ready_url: str, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused key stands in the provider's own words; the cycle fails, and neither log nor mind has it."""
    canaries = Canaries()
    key = canaries.plant("provider", "sk-canary-5d1f7c3e9b2a77")

    async def refuse(request: web.Request) -> web.Response:
        said = f"Incorrect API key provided: {request.headers['authorization'].removeprefix('Bearer ')}."
        return web.json_response({"error": {"message": said, "code": "invalid_api_key"}}, status=401)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", key)
    try:
        async with open_world(ready_url) as world:
            noor = await world.person("Noor")
            ada = await world.denizen.agents.create("Ada", model="openai:gpt-5")
            kitchen = await world.space("Kitchen", noor, ada)
            await world.say(noor, "Hello?", kitchen)
            await world.run()
            told = [repr(await world.denizen.minds.inspect(ada)), await world.denizen.db.read(_all_rows)]
    finally:
        await runner.cleanup()
    assert "Incorrect API key" in told[1], "the provider was not heard"
    assert [canaries.found_in(each) for each in (*told, logged.getvalue())] == [[], [], []]
