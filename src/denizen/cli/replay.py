"""`denizen replay`: what a model was asked in a past cycle, exactly, and what came back; or comes back from another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Final

import typer
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from denizen.cli.chat.rendering import printable
from denizen.cli.console import begin, print_json, stdout
from denizen.cli.house import open_house, open_records
from denizen.consciousness.replay import Rebuilt, as_object
from denizen.cycles.rethinking import Rethought
from denizen.models import codec
from denizen.models.prices import usage_of
from denizen.models.tokens import estimate_message
from denizen.settings import Settings

SHORT_LINES: Final = 3
SHORT_CHARACTERS: Final = 240
_STYLES: Final = {"self": "magenta", "user": "cyan", "tools": "yellow", "model": "green"}


def replay(
    context: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent's @handle.")],
    cycle: Annotated[int, typer.Option("--cycle", min=1, help="The number of the cycle.")],
    step: Annotated[
        int | None, typer.Option("--step", min=0, help="Only this step, the first being 0; else all.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Ask this model the same, and show how its answer differs.")
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="Only the beginning of each message.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show what a model was asked in a past cycle, to the letter, and what came back.

    With --model, another model is asked: no tool is run and nothing is written, but the call costs what it costs.
    """
    settings = begin(context).settings
    if model is not None:
        again = asyncio.run(_rethink(settings, agent, cycle, step, model))
        if as_json:
            print_json([as_object(each.asked) | {"again": _again(each)} for each in again])
        else:
            _show_again(stdout(), again)
        return
    found = asyncio.run(_replay(settings, agent, cycle, step))
    if as_json:
        print_json([as_object(each) for each in found])
    else:
        _show(stdout(), found, short=short)


async def _replay(settings: Settings, agent: str, cycle: int, step: int | None) -> list[Rebuilt]:
    async with open_records(settings) as (runtime, world):
        found = await runtime.find(agent, organization=world.owner.organization_id)
        return await runtime.replay((await runtime.get_agent(found.id)).id, cycle, step=step)


async def _rethink(settings: Settings, agent: str, cycle: int, step: int | None, model: str) -> list[Rethought]:
    async with open_house(settings) as house:
        found = await house.runtime.find(agent, organization=house.world.owner.organization_id)
        return await house.runtime.rethink(found.id, cycle, model=model, step=step)


# For people


def _show(console: Console, steps: Sequence[Rebuilt], *, short: bool) -> None:
    """The first request whole, then what each further one has more, so that nothing is shown twice."""
    shown: tuple[ModelMessage, ...] = ()
    for each in steps:
        console.print(Rule(_title(each), align="left", style="dim"))
        new = each.messages[len(shown) if _begins_with(each, shown) else 0 :]
        if len(new) < len(each.messages):
            console.print(Text(f"the {len(shown)} messages above, what came back among them, then", style="dim"))
        for message in new:
            _print_message(console, message, short=short)
        console.print(Text("what came back", style="bold"))
        _print_message(console, each.response, short=short)
        shown = (*each.messages[: len(each.messages) - each.has_preview], each.response)


def _begins_with(each: Rebuilt, shown: Sequence[ModelMessage]) -> bool:
    """Whether nothing has left the window since: then only what is new need be shown."""
    return [_content(message) for message in shown] == [_content(message) for message in each.messages[: len(shown)]]


def _content(message: ModelMessage) -> list[str]:
    return [f"{part.part_kind} {text}" for part in message.parts for text in _texts(part)]


def _title(each: Rebuilt) -> Text:
    tokens = sum(map(estimate_message, each.messages))
    choice = each.settings.get("tool_choice", "auto")
    told = f"{len(each.messages)} messages, about {tokens:,} tokens · {_tools(each)}"
    told += "" if choice == "auto" else f" · tool choice {choice}"
    return Text.assemble((f"cycle {each.cycle} · step {each.step} · {each.model}", "bold"), (f" · {told}", "dim"))


def _tools(each: Rebuilt) -> str:
    return f"{len(each.tools)} tools" if each.tools_kept else "tools not kept"


def _print_message(console: Console, message: ModelMessage, *, short: bool) -> None:
    role = _role(message)
    tokens = f" · {estimate_message(message):,} tokens"
    if isinstance(message, ModelResponse):
        used = usage_of(message)
        tokens = f" · {used.input:,} tokens read, {used.cache_read:,} of them cached; {used.output:,} written"
    console.print(Text.assemble((role, f"bold {_STYLES[role]}"), (tokens, "dim")))
    for part in message.parts:
        for text in _texts(part):
            _print_indented(console, printable(_cut(text) if short else text))


def _print_indented(console: Console, text: str) -> None:
    if console.is_terminal:
        console.print(Padding(Text(text), (0, 0, 0, 2), expand=False))
        return
    # Whoever reads this from a pipe gets the lines as they are.
    for line in text.split("\n"):
        console.print(Text(f"  {line}".rstrip()), soft_wrap=True)


def _role(message: ModelMessage) -> str:
    if not isinstance(message, ModelRequest):
        return "model"
    first = message.parts[0]
    return "self" if isinstance(first, SystemPromptPart) else "tools" if isinstance(first, ToolReturnPart) else "user"


def _texts(part: Any) -> Iterator[str]:
    if isinstance(part, ToolCallPart):
        yield f"→ {part.tool_name} {part.args_as_json_str()}"
    elif isinstance(part, ToolReturnPart):
        yield f"← {part.tool_name}: {part.content}"
    elif isinstance(part, ThinkingPart):
        yield f"(thinking) {part.content}"
    else:
        yield str(getattr(part, "content", ""))


def _cut(text: str) -> str:
    lines = text.splitlines()
    shown = "\n".join(lines[:SHORT_LINES])[:SHORT_CHARACTERS]
    return text if shown == text else f"{shown} … ({len(text):,} characters)"


def _show_again(console: Console, again: Sequence[Rethought]) -> None:
    for each in again:
        console.print(Rule(_title(each.asked), align="left", style="dim"))
        difference = each.difference
        if not difference:
            console.print(Text(f"{each.model} answers the same.", style="green"))
        for line in _told(difference):
            console.print(line, soft_wrap=True)
        used = usage_of(each.response)
        cost = "its price is unknown" if each.dollars is None else f"${each.dollars:.6f}"
        told = f"{used.input:,} tokens read, {used.cache_read:,} of them cached; {used.output:,} written; {cost}"
        console.print(Text(told, style="dim"))
    console.print(Text("No tool was run, and nothing was written.", style="dim"))


def _told(difference: Iterable[str]) -> Iterator[Text]:
    for line in difference:
        if not line.startswith("@@"):
            style = "red" if line.startswith("-") else "green" if line.startswith("+") else ""
            yield Text(printable(line), style=style)


# For programs


def _again(each: Rethought) -> dict[str, Any]:
    return {
        "model": each.model,
        "response": json.loads(codec.dump(each.response)),
        "difference": each.difference,
        "dollars": None if each.dollars is None else str(each.dollars),
    }
