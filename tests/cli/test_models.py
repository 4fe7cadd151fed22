"""`denizen models` on a machine that has a server of models."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from denizen.cli.main import app
from tests.cli.conftest import Run
from tests.cli.terminals import elsewhere

pytestmark = pytest.mark.usefixtures("ready_home")

NOWHERE = "http://127.0.0.1:1"


class _Server(BaseHTTPRequestHandler):
    """As llama.cpp does: one model of 8,192 tokens, which calls the first tool that it is offered."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the parent's name
        return

    def do_GET(self) -> None:
        meta = {"n_ctx": 8192, "n_ctx_train": 32768}
        self._answer(200, {"object": "list", "data": [{"id": "qwen", "owned_by": "llamacpp", "meta": meta}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body["model"] == "broken":
            self._answer(400, {"error": {"message": "this model is broken", "type": "x", "code": None}})
            return
        call = {"name": body["tools"][0]["function"]["name"], "arguments": '{"text": "ok"}'}
        calls = [{"index": 0, "id": "c", "type": "function", "function": call}]
        delta = {"content": "ok"} if body["model"] == "texts" else {"tool_calls": calls}
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": "stop"}]
        data = f"data: {json.dumps({**head, 'choices': choices})}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, name="model server", daemon=True).start()
        for variable in ("LMSTUDIO_BASE_URL", "VLLM_BASE_URL", "OLLAMA_BASE_URL"):
            monkeypatch.setenv(variable, NOWHERE)
        url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("LLAMACPP_BASE_URL", url)
        yield url
        server.shutdown()


def test_models_of_this_machine_are_listed_with_what_they_can(run: Run, server: str) -> None:
    result = run("models", "--json")
    assert result.exit_code == 0, result.output
    listed = {each["name"]: each for each in json.loads(result.stdout)}
    assert set(listed) == {"demo", "llamacpp:qwen"}
    assert (listed["demo"]["default"], listed["demo"]["abilities"]["thinking"]) == (True, "no")
    found = listed["llamacpp:qwen"]
    assert (found["reachable"], found["found"]) == (True, "llama.cpp serves it on this machine.")
    known = found["abilities"]
    assert (known["context_tokens"], known["context_source"]) == (8_192, "/v1/models of its server")
    assert (known["tools"], known["input_price"]) == (None, None)


def test_a_provider_with_a_key_is_listed_with_its_usual_models(
    run: Run, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-nobody")
    shown = run("models").stdout
    assert "anthropic:claude-sonnet-5-5" in shown
    assert "anthropic:claude-haiku-5-5" in shown
    assert "not asked" in shown
    listed = json.loads(run("models", "--all", "--json").stdout)
    assert len(listed) > 6


@pytest.mark.parametrize(("name", "called"), [("llamacpp:qwen", True), ("llamacpp:texts", False)])
def test_a_model_is_asked_for_one_call(run: Run, server: str, name: str, called: bool) -> None:
    result = run("models", "test", name, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["name"], told["called_tool"]) == (name, called)
    said = run("models", "test", name)
    assert ("called the tool, in" in said.stdout) is called
    assert ("Agents need a model that calls tools." in said.stderr) is not called


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("llamacpp:broken", "this model is broken. Check the settings of the model"),
        ("gpt-5", "Did you mean openai:gpt-5?"),
        ("lmstudio:x", "Check that the provider can be reached from this machine"),
    ],
)
def test_a_model_that_does_not_answer_is_told_with_what_to_do(run: Run, server: str, name: str, says: str) -> None:
    result = run("models", "test", name)
    assert result.exit_code == 1
    assert says in " ".join(result.stderr.split())


@pytest.mark.parametrize("width", [80, 60])
def test_the_list_fits_the_terminal(run: Run, server: str, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """A name, and what is known of it below. No word is broken."""
    monkeypatch.delenv("DENIZEN_MODEL")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-nobody")
    lines = run("models").stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert "anthropic:claude-sonnet-5-5 (default)" in lines
    at = lines.index("llamacpp:qwen")
    told = list(takewhile(lambda line: line.startswith("  "), lines[at + 1 :]))
    assert " ".join(" ".join(told).split()) == (
        "llama.cpp serves it on this machine. "
        "reachable: yes, tools: unknown, images: unknown, thinking: unknown "
        "context: 8,192 tokens (from /v1/models of its server) price: unknown"
    )


def test_a_default_is_chosen_and_taken_back(run: Run, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DENIZEN_MODEL")
    result = run("models", "use", "llamacpp:qwen")
    assert result.exit_code == 0, result.output
    assert "The default model is llamacpp:qwen." in result.stderr
    assert "Test it with `denizen models test default`." in result.stderr
    listed = {each["name"]: each for each in json.loads(run("models", "--json").stdout)}
    assert [name for name, each in listed.items() if each["default"]] == ["llamacpp:qwen"]
    assert "was chosen under Administration" in run("doctor").stdout
    assert json.loads(run("models", "test", "default", "--json").stdout)["called_tool"] is True
    told = json.loads(run("models", "use", "auto", "--json").stdout)
    assert (told["default"], "llama.cpp runs on this machine" in told["reason"]) == ("llamacpp:qwen", True)


def test_a_configured_model_cannot_be_replaced(run: Run, server: str) -> None:
    result = run("models", "use", "llamacpp:qwen")
    assert result.exit_code == 1
    assert "The configuration sets the model demo." in " ".join(result.stderr.split())


def test_a_key_is_read_from_stdin_and_kept(run: Run, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DENIZEN_MODEL")
    arguments = ["models", "use", "compatible:qwen", "--address", server, "--key"]
    result = CliRunner().invoke(app, arguments, input="sk-of-nobody-0123456789\n")
    assert result.exit_code == 0, result.output
    (kept,) = json.loads(run("secrets", "list", "--json").stdout)
    assert (kept["name"], kept["hint"]) == ("COMPATIBLE_API_KEY", "…6789")
    assert json.loads(run("models", "test", "compatible:qwen", "--json").stdout)["called_tool"] is True


async def test_a_server_is_asked_for_its_models(
    environ: dict[str, str], server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DENIZEN_MODEL")
    async with elsewhere(tmp_path / "elsewhere") as terminal:
        listed = {each["name"]: each for each in await terminal.told("models")}
        assert listed["llamacpp:qwen"]["default"] is True, "it was found on the machine of the server"
        assert listed["llamacpp:qwen"]["abilities"]["context_tokens"] == 8_192
        assert (await terminal.told("models", "test", "llamacpp:qwen"))["called_tool"] is True
        refused = await terminal("models", "test", "llamacpp:broken")
        assert (refused.exit_code, "this model is broken." in refused.stderr) == (1, True)
        assert (await terminal.told("models", "use", "demo"))["default"] == "demo"
        assert terminal.house.runtime.default_model == "demo"
        assert (await terminal.told("models", "use", "auto"))["default"] == "llamacpp:qwen"
        sam = await terminal.house.runtime.people.create("Sam")
        member = await terminal.of(sam)
        assert "demo" in {each["name"] for each in await member.told("models")}
        assert (await member("models", "use", "demo")).exit_code == 1
