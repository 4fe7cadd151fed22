"""`denizen replay`: shows the exact model requests of a past cycle and their answers, or those of another model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Final

import typer
from pydantic import JsonValue
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

from denizen.cli.api import AgentName, Api
from denizen.cli.console import printable, stdout
from denizen.client import Client
from denizen.models import codec
from denizen.models.prices import usage_of
from denizen.models.tokens import estimate_message
from denizen.shapes.minds import AnswerAgain, RequestOut

SHORT_LINES: Final = 3
SHORT_CHARACTERS: Final = 240
_STYLES: Final = {"self": "magenta", "user": "cyan", "tools": "yellow", "model": "green"}


def replay(
    api: Api,
    agent: AgentName,
    cycle: Annotated[int, typer.Option("--cycle", min=1, help="The number of the cycle.")],
    step: Annotated[
        int | None, typer.Option("--step", min=0, help="Only this step, counted from 0 (default: all).")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Send the same requests to this model, and show the differences.")
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="Only the beginning of each message.")] = False,
) -> None:
    """Show the exact requests and answers of a past cycle.

    With --model, another model gets the same requests: no tools run and nothing is saved, but the calls cost money.
    """
    if model is None:
        found = api.use(lambda client: client.replay(agent, cycle, step=step))
        if not api.prints_json(found):
            _show(stdout(), found, short=short)
        return

    async def work(client: Client) -> list[tuple[RequestOut, AnswerAgain]]:
        # The original requests first: if they are missing, nothing is paid for.
        asked = await client.replay(agent, cycle, step=step)
        return list(zip(asked, await client.rethink(agent, cycle, model, step=step), strict=True))

    again = api.use(work, models=True)
    if not api.prints_json([asked.model_dump(mode="json") | {"again": each} for asked, each in again]):
        _show_again(stdout(), again)


# Output


def _show(console: Console, steps: Sequence[RequestOut], *, short: bool) -> None:
    """Prints the first request whole, then what each further one adds, so that nothing is shown twice."""
    shown: list[JsonValue] = []
    for each in steps:
        console.print(Rule(_title(each), align="left", style="dim"))
        known = _known(shown, each.messages)
        if known:
            console.print(Text(f"the {known} messages above, what came back among them, then", style="dim"))
        for message in map(_decoded, each.messages[known:]):
            _print_message(console, message, short=short)
        console.print(Text("what came back", style="bold"))
        _print_message(console, _decoded(each.response), short=short)
        shown = [*each.messages, each.response]


def _known(shown: Sequence[JsonValue], messages: Sequence[JsonValue]) -> int:
    """Returns how many of the messages were shown with the last request; 0 if some of them have left the window."""
    if not shown:
        return 0
    *before, answer = map(_content, map(_decoded, shown))
    now = [_content(_decoded(each)) for each in messages]
    # A preview of the inbox is at the end of one request only.
    for had in ([*before, answer], [*before[:-1], answer]):
        if now[: len(had)] == had:
            return len(had)
    return 0


def _decoded(message: JsonValue) -> ModelMessage:
    return codec.load(json.dumps(message))


def _content(message: ModelMessage) -> list[str]:
    return [f"{part.part_kind} {text}" for part in message.parts for text in _texts(part)]


def _title(each: RequestOut) -> Text:
    choice = each.settings.get("tool_choice", "auto")
    told = f"{len(each.messages)} messages, about {each.tokens:,} tokens · {_tools(each)}"
    told += "" if choice == "auto" else f" · tool choice {choice}"
    title = Text.assemble((f"cycle {each.cycle} · step {each.step} · {each.model}", "bold"), (f" · {told}", "dim"))
    return title.append(f" · {printable(each.outside)}", "yellow") if each.outside else title


def _tools(each: RequestOut) -> str:
    return "tools not kept" if each.tools is None else f"{len(each.tools)} tools"


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
    # Piped output gets the lines as they are.
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


def _show_again(console: Console, again: Sequence[tuple[RequestOut, AnswerAgain]]) -> None:
    for asked, each in again:
        console.print(Rule(_title(asked), align="left", style="dim"))
        if not each.difference:
            console.print(Text(f"{each.model} answers the same.", style="green"))
        for line in _told(each.difference):
            console.print(line, soft_wrap=True)
        used = each.usage
        cost = "its price is unknown" if each.dollars is None else f"${each.dollars:.6f}"
        told = (
            f"{used.input_tokens:,} tokens read, {used.cache_read_tokens:,} of them cached; "
            f"{used.output_tokens:,} written; {cost}"
        )
        console.print(Text(told, style="dim"))
    console.print(Text("No tool was run, and nothing was written.", style="dim"))


def _told(difference: Iterable[str]) -> Iterator[Text]:
    for line in difference:
        if not line.startswith("@@"):
            style = "red" if line.startswith("-") else "green" if line.startswith("+") else ""
            yield Text(printable(line), style=style)
