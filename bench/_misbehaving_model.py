"""A model server that speaks OpenAI's chat API and misbehaves as its model's name says, on a thread of its own."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REFUSALS: dict[str, tuple[int, str, str]] = {
    "wrong-key": (401, "invalid_api_key", "Incorrect API key provided."),
    "no-credit": (402, "insufficient_quota", "You exceeded your current quota."),
    "forbidden": (403, "forbidden", "This key may not use that model."),
    "unknown-model": (404, "model_not_found", "The model does not exist."),
    "no-tools": (400, "invalid_request_error", "This model does not support tools."),
    "too-large": (400, "context_length_exceeded", "This model's maximum context length is 1 token."),
    "refused": (400, "content_filter", "The response was filtered by the content management policy."),
}
"""Models that never answer, and how their server says so."""
PASSING: dict[str, int] = {"overloaded": 429, "broken": 500}
"""Models that fail twice and then answer."""
SPEAKING = ("answers", "text-only", "empty", "skips", "loops")
"""Models that do answer the request: well, with text and no call, with nothing, with a skip, or with tools for ever."""


@contextmanager
def misbehaving() -> Iterator[str]:
    """The address of the server, for OPENAI_BASE_URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="model server", daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()


_asked: Counter[str] = Counter()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ARG002  the parent's names
        return

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = str(body["model"]).partition("@")[0]
        _asked[body["model"]] += 1
        if kind in REFUSALS:
            status, code, message = REFUSALS[kind]
            self._send(status, {"error": {"message": message, "code": code, "type": code, "param": None}})
        elif kind in PASSING and _asked[body["model"]] <= 2:
            self._send(PASSING[kind], {"error": {"message": "Try again.", "code": None, "type": "server_error"}})
        else:
            self._stream(_answer(kind, body))

    def _send(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, delta: dict[str, Any]) -> None:
        finish = "tool_calls" if "tool_calls" in delta else "stop"
        chunks = [
            {"delta": {"role": "assistant", **delta}, "index": 0, "finish_reason": None},
            {"delta": {}, "index": 0, "finish_reason": finish},
        ]
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        lines = [f"data: {json.dumps({**head, 'choices': [each]})}\n\n" for each in chunks]
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        lines.append(f"data: {json.dumps({**head, 'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n")
        data = "".join(lines).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _answer(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    last = body["messages"][-1]
    has_called = last["role"] == "tool"
    match kind:
        case "text-only":
            return {"content": "It is four o'clock."}
        case "empty":
            return {"content": ""}
        case "skips":
            return _call("skip", {"reason": "not mine"})
        case "loops":
            return _call("read_messages", {})
        case _:
            return {"content": "Answered."} if has_called else _call("send_message", {"text": "It is four o'clock."})


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}
