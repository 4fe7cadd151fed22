"""What is elsewhere: a program behind a bridge, a service that calls a webhook, a server of the Model Context Protocol.

The program takes what is said in the bridged space, under a transaction id, and writes there for somebody who has only
an account with it. The service tells an agent of events. The MCP server has one tool, `tell`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from lab.history import History

ROOM: Final = "pier"
"""The room elsewhere."""
SERVICE_EVENT: Final = "issues"

_PARAMETERS: Final = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
_TOOL: Final = {"name": "tell", "description": "Tell the world a number.", "inputSchema": _PARAMETERS}


def signed_by_service(secret: str, body: bytes) -> dict[str, str]:
    """The headers of a request to a webhook: the same for the same body, however often it is sent."""
    made = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "X-Hub-Signature-256": f"sha256={made}",
        "X-GitHub-Event": SERVICE_EVENT,
        "Content-Type": "application/json",
    }


def signed_by_program(secret: str, body: bytes) -> dict[str, str]:
    """The headers of a request to a bridge, for a few minutes."""
    now = int(time.time())
    made = hmac.new(secret.encode(), b"%d.%b" % (now, body), hashlib.sha256).hexdigest()
    return {"Denizen-Signature": f"t={now},v1={made}"}


def message_elsewhere(number: int, text: str) -> bytes:
    """What somebody writes in the room elsewhere, as the program sends it on."""
    event = {"type": "message", "id": f"e{number}", "room": ROOM, "account": "eve", "name": "Eve", "text": text}
    return json.dumps(event).encode()


@dataclass
class Elsewhere:
    """The program and the MCP server. What reaches them is in the history of the world that lives."""

    history: Callable[[], History | None]

    async def take(self, request: web.Request) -> web.Response:
        """What is said in the bridged space. Its id here is the transaction id: sent again, it is the same."""
        body, key = await request.json(), request.headers["Idempotency-Key"]
        if (history := self.history()) is not None:
            history.add("carried", key=key, type=body["type"], text=body.get("text", ""))
        return web.json_response({"id": key})

    async def speak(self, request: web.Request) -> web.Response:
        """The least of the protocol: one JSON answer for each request."""
        asked = await request.json()
        if "id" not in asked:
            return web.Response(status=202)
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": self._result(asked)})

    def _result(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked["method"]:
            case "initialize":
                version = asked["params"]["protocolVersion"]
                about = {"name": "lab", "version": "1"}
                return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            case "tools/list":
                return {"tools": [_TOOL]}
            case "tools/call":
                number = int(asked["params"]["arguments"]["number"])
                if (history := self.history()) is not None:
                    history.add("effect", tool="tell", number=number, key="")
                return {"content": [{"type": "text", "text": f"did {number}."}], "isError": False}
            case _:
                return {}
