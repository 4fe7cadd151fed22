"""What a program asks for with a message: tools of its own, and which tool is called first. Pure.

The program is a client of OpenAI's API. Its tools are client tools of the one cycle that takes its message: the cycle
waits for their results, which the program sends with its next request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from denizen.cycles.phases import Phase
from denizen.inbox.events import CALL_FIRST, OWN_TOOLS, Event
from denizen.plans.settings import STORED
from denizen.tools.asking import ask_tool
from denizen.tools.settings import ClientTool
from denizen.tools.tool import AskTool, Toolbox

SECONDS: Final = 600.0
"""How long a cycle waits for the result of a program's tool. Whatever arrives meanwhile goes on without it."""


def tool_of_program(described: Mapping[str, Any]) -> ClientTool:
    """The tool that a program describes. Raises `ValidationError`."""
    return ClientTool.model_validate({**described, "seconds": SECONDS, "visible": False})


def toolbox_for(toolbox: Toolbox, events: Iterable[Event]) -> Toolbox:
    """The agent's tools, and those of the programs that have sent these events. The agent's own come first."""
    added = [each for each in _tools_of(events) if each.name not in toolbox.by_name]
    if not added:
        return toolbox
    return Toolbox([*toolbox.by_name.values(), *added], toolbox.effects, toolbox.instructions)


def first_phase(events: Iterable[Event]) -> Phase | None:
    """A first step that calls one of the tools that a program wants to be called."""
    first = [str(name) for event in events for name in _listed(event, CALL_FIRST)]
    return Phase(name="request", until_step=0, tools=tuple(first), tool_choice="required") if first else None


def _tools_of(events: Iterable[Event]) -> list[AskTool]:
    described = [each for event in events for each in _listed(event, OWN_TOOLS)]
    return [ask_tool(ClientTool.model_validate(each, context=STORED)) for each in described]


def _listed(event: Event, key: str) -> list[Any]:
    found = event.payload.get(key)
    return cast("list[Any]", found) if isinstance(found, list) else []
