"""An MCP server over standard input and output that imports nothing: it starts in a hundredth of the time.

It offers the tools of mcp_server.py, which is made with the official library and takes a second to import it. Tests
that run with both show that they answer the same.

`FOLDER` in its environment is where it writes: its process id, and a line for each call of `note`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

# Not pathlib, nor anything else that has to be imported first.
FOLDER = os.environ["FOLDER"]
VERSION = "io.modelcontextprotocol/protocolVersion"


class Failed(Exception):
    """A call that failed; the text says why."""


def note(text: str) -> str:
    append("notes", text)
    return f"noted by {os.getpid()}"


def fail(text: str) -> str:
    raise Failed(f"Error executing tool fail: {text}")


def picture() -> list[dict[str, str]]:
    dot = {"type": "image", "data": "iVBORy1kb3Q=", "mimeType": "image/png"}
    return [{"type": "text", "text": "A dot:"}, dot]


def hang() -> None:
    with open(f"{FOLDER}/bell", "w") as bell:  # noqa: PTH123
        bell.write("rung")


def complain(text: str) -> str:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
    return "done"


TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
TOOLS: dict[str, tuple[str, dict[str, Any], Callable[..., Any]]] = {
    "add": ("Add two numbers.", {"a": NUMBER, "b": NUMBER}, lambda a, b: str(a + b)),
    "note": ("Write a line down.", {"text": TEXT}, note),
    "environment": ("Say what is in the environment.", {"name": TEXT}, lambda name: os.environ.get(name, "nothing")),
    "long": ("Say something long.", {"characters": NUMBER}, lambda characters: "x" * characters),
    "fail": ("Fail.", {"text": TEXT}, fail),
    "picture": ("Show a picture.", {}, picture),
    "hang": ("Ring, by the pipe `bell` in the folder, and never answer.", {}, hang),
    "complain": ("Write to standard error.", {"text": TEXT}, complain),
    "mail": (
        "Have a pattern with look-ahead, as generators of schemas write it for e-mail addresses.",
        {"to": {"type": "string", "pattern": r"^(?!\.)[^@]+@[^@]+$"}},
        lambda to: f"mailed to {to}",
    ),
    "elsewhere": (
        "Have a schema that cannot be used.",
        {"city": {"type": "string", "$ref": "http://127.0.0.1:9/city.json"}},
        lambda city: city,
    ),
    "odd.name/here": ("Have a name that models do not accept.", {}, lambda: "odd"),
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request, or None if there is never to be one."""
    if method == "server/discover":
        return {"supportedVersions": [params["_meta"][VERSION]], "capabilities": {"tools": {}}, **uncached()}
    if method == "tools/list":
        tools = [
            {
                "name": name,
                "description": description,
                "inputSchema": {"type": "object", "properties": properties, "required": list(properties)},
            }
            for name, (description, properties, _) in TOOLS.items()
        ]
        return {"tools": tools, **uncached()}
    if method != "tools/call":
        raise ValueError(f"{method} is not known here.")
    try:
        told = TOOLS[params["name"]][2](**params["arguments"])
    except Failed as failed:
        return called(str(failed), is_error=True)
    return None if told is None else called(told)


def uncached() -> dict[str, Any]:
    return {"resultType": "complete", "cacheScope": "private", "ttlMs": 0}


def called(told: str | list[dict[str, str]], *, is_error: bool = False) -> dict[str, Any]:
    content = [{"type": "text", "text": told}] if isinstance(told, str) else told
    return {"resultType": "complete", "content": content, "isError": is_error}


def append(name: str, line: str) -> None:
    with open(f"{FOLDER}/{name}", "a") as file:  # noqa: PTH123
        file.write(f"{line}\n")


def main() -> None:
    append("started", str(os.getpid()))
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and (result := answer(asked["method"], asked.get("params", {}))) is not None:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
