"""What an MCP server answers, as text and files for an agent; and the tool that stands for its resources."""

from __future__ import annotations

import json
import mimetypes
from base64 import b64decode
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from denizen.amounts import human_size
from denizen.tools.results import ToolFile

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, ContentBlock, Tool

READ_RESOURCE: Final = "read_resource"
"""The tool that reads resources of a server that has some."""
_RESOURCES_NAMED: Final = 30
LONGEST: Final = 1_000_000
"""How many characters of a result are kept."""


async def reading_tool(client: Client) -> Tool:
    """The tool that stands for the resources of a server."""
    from mcp_types import Tool, ToolAnnotations

    listed = (await client.list_resources()).resources
    known = "; ".join(f"{each.uri} ({each.title or each.name})" for each in listed[:_RESOURCES_NAMED])
    more = f" and {len(listed) - _RESOURCES_NAMED} more" if len(listed) > _RESOURCES_NAMED else ""
    there = f"There are: {known}{more}." if known else "Its tools name them."
    return Tool(
        name=READ_RESOURCE,
        description=f"Read a resource of this server by its URI. {there}",
        input_schema={"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]},
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )


def text_of(result: CallToolResult, *, with_files: bool = True) -> str:
    """The texts of a result; for everything else, what it is. Without files, if these are told elsewhere."""
    parts = [each for each in result.content if with_files or file_in(each) is None]
    text = "\n".join(_part(each) for each in parts)
    if not text and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    if len(text) > LONGEST:
        return f"{text[:LONGEST]}\n… [the result is longer; only its beginning was kept]"
    return text


def _part(content: ContentBlock) -> str:
    match content.type:
        case "text":
            return content.text
        case "image" | "audio":
            return f"[{content.type} {content.mime_type}, {_size(content.data)}]"
        case "resource_link":
            return f"[resource {content.name}: {content.uri}]"
        case "resource":
            held = content.resource
            if (text := getattr(held, "text", None)) is not None:
                return str(text)
            return f"[resource {held.uri}, {held.mime_type or 'no text'}, {_size(getattr(held, 'blob', ''))}]"


def file_in(content: ContentBlock) -> ToolFile | None:
    """A picture, sound, or an embedded resource that is not text."""
    match content.type:
        case "image" | "audio":
            name = f"{content.type}{mimetypes.guess_extension(content.mime_type) or ''}"
            return _decoded(content.data, name, content.mime_type)
        case "resource":
            held = content.resource
            blob = getattr(held, "blob", None)
            name = unquote(str(held.uri).partition("?")[0].rstrip("/").rpartition("/")[2]) or "file"
            return None if blob is None else _decoded(blob, name, held.mime_type)
        case _:
            return None


def _decoded(encoded: str, name: str, media_type: str | None) -> ToolFile | None:
    try:
        data = b64decode(encoded, validate=True)
    except ValueError:
        return None
    return ToolFile(data, name, media_type) if data else None


def _size(base64: str) -> str:
    return human_size(len(base64.rstrip("=")) * 3 // 4)
