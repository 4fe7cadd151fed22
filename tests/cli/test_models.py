"""`denizen models` on a machine that has a server of models."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.cli.conftest import Run

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
    said = run("models", "test", name).stdout
    assert ("called the tool, in" in said) is called


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
