"""The tool by which an agent declares which tools it will use, before it reads anything from outside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import Field

from denizen.inbox.outside import parsed
from denizen.storage.database import Tx
from denizen.tools.effects import EffectRecord
from denizen.tools.tool import Arguments, Done, Hand, OwnTool

WILL_USE: Final = "will_use"


class WillUse(Arguments):
    tools: list[str] = Field(max_length=50, description="Their names.")


def will_use(_: Tx, hand: Hand, arguments: WillUse) -> Done:
    """Declare the tools: for the rest of this cycle every other tool that has an effect needs approval."""
    told = {"tools": arguments.tools, "before_text_from_outside": not hand.outside}
    return Done(json.dumps(told, ensure_ascii=False))


DECLARING: Final = OwnTool(
    WILL_USE,
    "Name the tools you will need for this task, before you read web pages, files or messages from outside. After "
    "reading, every other tool asks a person first.",
    WillUse,
    will_use,
)


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """The tools that an agent has declared in a cycle."""

    tools: frozenset[str]
    before_reading: bool
    """Whether no request before held text from outside: then only people can have caused the declaration."""


def declared(done: Sequence[EffectRecord]) -> DeclaredTool | None:
    """The agent's declaration in this cycle; None if there is none.

    After it has read text from outside, a declaration can only remove tools: no such text adds one.
    """
    found: DeclaredTool | None = None
    for each in done:
        named = parsed(each.result or "") if each.tool == WILL_USE and each.state == "done" else None
        if not isinstance(named, dict) or not isinstance(tools := named.get("tools"), list):
            continue
        new = DeclaredTool(frozenset(str(tool) for tool in tools), bool(named.get("before_text_from_outside")))
        if found is None:
            found = new
        elif new.before_reading:
            found = DeclaredTool(found.tools | new.tools, found.before_reading)
        else:
            found = DeclaredTool(found.tools & new.tools, found.before_reading)
    return found
