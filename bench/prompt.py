"""What an agent costs before anything has happened: the tokens of its first request.

    python -m bench.prompt

An agent without instructions, in one space with one person, is told one word. What its model is then sent (the self,
the tools and the inbox message) is rendered as Qwen2.5's chat template does it and counted by real tokenizers:
`smollm2`, which is among the development dependencies, and `qwen2.5`, where it is installed (see `_tokenizers`).
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic_ai.messages import ModelMessage

from bench._tokenizers import FILES, tokenizer
from denizen import ManualClock, Runtime, forever, reply
from tests.world import as_text

PROFILES: tuple[Literal["normal", "small"], ...] = ("normal", "small")

_TOOLS = """

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_SOME_UUID = "01a1e009-33f5-7bba-ac01-64d3ad3d5510"


async def first_request(
    folder: Path, profile: Literal["normal", "small"]
) -> tuple[list[ModelMessage], list[dict[str, Any]]]:
    """The messages and the tools of the first request of an empty agent."""
    seen: list[tuple[list[ModelMessage], list[dict[str, Any]]]] = []

    def answer(messages: list[ModelMessage], info: Any) -> Any:
        tools = [
            {"name": each.name, "description": each.description, "parameters": each.parameters_json_schema}
            for each in info.definitions
        ]
        seen.append((messages, tools))
        return reply("Hello.") if len(seen) == 1 else "Greeted Noor."

    async with Runtime(f"sqlite:///{folder}/{profile}.db", clock=ManualClock()) as denizen:
        noor = await denizen.people.create("Noor")
        ada = await denizen.agents.create("Ada", model=forever(answer), profile=profile)
        hall = await denizen.spaces.create("Hall", [noor, ada])
        await denizen.spaces.post(hall, noor, "Hello")
        await denizen.run_until_idle()
    return seen[0]


def rendered(messages: Sequence[ModelMessage], tools: Sequence[dict[str, Any]]) -> str:
    """The request as the chat template of Qwen2.5 writes it."""
    offered = "\n".join(json.dumps({"type": "function", "function": each}, ensure_ascii=False) for each in tools)
    first, *rest = [as_text(message) for message in messages]
    turns = [f"<|im_start|>system\n{first}{_TOOLS.format(tools=offered)}<|im_end|>"]
    turns += [f"<|im_start|>user\n{text}<|im_end|>" for text in rest]
    # Identifiers differ from run to run, and so do their tokens.
    return _UUID.sub(_SOME_UUID, "\n".join([*turns, "<|im_start|>assistant\n"]))


def count(text: str, name: str) -> int | None:
    """The tokens of the text; None where the tokenizer is not installed."""
    made = tokenizer(name)
    return None if made is None else len(made.encode(text).ids)


def main() -> None:
    result: dict[str, Any] = {"bench": "prompt"}
    with tempfile.TemporaryDirectory() as folder:
        for profile in PROFILES:
            text = rendered(*asyncio.run(first_request(Path(folder), profile)))
            counted = {name: count(text, name) for name in FILES}
            result[profile] = {name: tokens for name, tokens in counted.items() if tokens is not None}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
