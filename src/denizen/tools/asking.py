"""Questions to people as tools: nothing is carried out here, and the answer comes from outside."""

from __future__ import annotations

from pydantic_ai.tools import ToolDefinition

from denizen.tools.schemas import checker
from denizen.tools.settings import ClientTool
from denizen.tools.tool import AskTool


def ask_tool(settings: ClientTool) -> AskTool:
    """The tool that these settings describe."""
    return AskTool(
        definition=ToolDefinition(
            name=settings.name, description=settings.description, parameters_json_schema=settings.parameters
        ),
        check=checker(settings.name, settings.parameters),
        mode=settings.mode,
        seconds=settings.seconds,
        approval=settings.approval,
        independent=settings.independent,
        visible=settings.visible,
    )
