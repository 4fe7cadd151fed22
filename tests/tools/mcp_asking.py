"""A real MCP server that asks people in the middle of its calls: by standard input and output, or on a given port."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("restaurant")


class Table(BaseModel):
    """What the restaurant has to know."""

    guests: int
    where: Literal["inside", "garden"] = "garden"


class Nothing(BaseModel):
    """A question that only wants a yes."""


async def ask_table() -> Elicit[Table]:
    return Elicit("For how many?", Table)


async def ask_yes() -> Elicit[Nothing]:
    return Elicit("Cancel everything?", Nothing)


@server.tool()
async def book(table: Annotated[ElicitationResult[Table], Resolve(ask_table)]) -> str:
    """Book a table."""
    if table.action != "accept":
        return f"not booked: {table.action}"
    return f"booked for {table.data.guests} in the {table.data.where}"


@server.tool()
async def cancel(sure: Annotated[ElicitationResult[Nothing], Resolve(ask_yes)]) -> str:
    """Cancel all tables."""
    return f"cancelling: {sure.action}"


@server.tool()
async def pay(address: str, context: Context) -> str:
    """Have somebody pay at an address."""
    paid = await context.elicit_url("Please pay.", address, "payment-1")
    return f"paying: {paid.action}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
