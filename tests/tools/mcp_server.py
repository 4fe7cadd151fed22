"""A real MCP server for the tests: over standard input and output, or over HTTP when it is given a port.

`FOLDER` in its environment is where it writes: its process id, and a line for each call of `note`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import BlobResourceContents, EmbeddedResource, ResourceLink, TextResourceContents, ToolAnnotations
from pydantic import Field

FOLDER = Path(os.environ["FOLDER"])
server = MCPServer("tests")


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def note(text: str) -> str:
    """Write a line down."""
    with (FOLDER / "notes").open("a") as notes:
        notes.write(f"{text}\n")
    return f"noted by {os.getpid()}"


@server.tool()
def environment(name: str) -> str:
    """Say what is in the environment."""
    return os.environ.get(name, "nothing")


@server.tool()
def long(characters: int) -> str:
    """Say something long."""
    return "x" * characters


@server.tool()
def fail(text: str) -> str:
    """Fail."""
    raise ToolError(text)


@server.tool()
def picture() -> list[str | Image]:
    """Show a picture."""
    return ["A dot:", Image(data=b"\x89PNG-dot", format="png")]


@server.tool()
def report() -> list[EmbeddedResource | ResourceLink]:
    """Return resources inside a result: texts, a file, one that is damaged, and a link."""
    text = TextResourceContents(uri="notes://today", text="Water the roses.")
    plan = BlobResourceContents(uri="file:///garden/The%20plan.pdf?v=2", mime_type="application/pdf", blob="JVBERi0=")
    damaged = BlobResourceContents(uri="file:///garden/torn.bin", blob="no base64!")
    embedded = [EmbeddedResource(type="resource", resource=each) for each in (text, plan, damaged)]
    return [*embedded, ResourceLink(type="resource_link", name="Roses", uri="notes://roses")]


@server.tool()
async def hang() -> str:
    """Ring, by the pipe `bell` in the folder, and never answer."""
    (FOLDER / "bell").write_text("rung")
    await asyncio.Event().wait()
    return ""


@server.tool()
def complain(text: str) -> str:
    """Write to standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
    return "done"


@server.tool()
def mail(to: Annotated[str, Field(json_schema_extra={"pattern": r"^(?!\.)[^@]+@[^@]+$"})]) -> str:
    """Have a pattern with look-ahead, as generators of schemas write it for e-mail addresses."""
    return f"mailed to {to}"


@server.tool()
def elsewhere(city: Annotated[str, Field(json_schema_extra={"$ref": "http://127.0.0.1:9/city.json"})]) -> str:
    """Have a schema that cannot be used."""
    return city


@server.tool()
async def learn(name: str, context: Context) -> str:
    """Offer another tool, and say so."""
    server.add_tool(lambda: f"{name} is known", name=name, description="Something new.")
    await context.notify_tools_changed()
    return "learned"


@server.resource("notes://today")
def today() -> str:
    """What is on today."""
    return "Water the roses."


@server.resource("notes://dot", mime_type="image/png")
def dot() -> bytes:
    """A picture."""
    return b"\x89PNG-dot"


@server.tool(name="odd.name/here")
def odd() -> str:
    """Have a name that models do not accept."""
    return "odd"


if __name__ == "__main__":
    with (FOLDER / "started").open("a") as started:
        started.write(f"{os.getpid()}\n")
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
