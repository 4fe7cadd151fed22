"""A process that asks a panel and dies in the middle of the round."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from pydantic_ai.messages import ModelMessage, SystemPromptPart

from denizen import ManualClock, Runtime, failpoints
from denizen.models.scripted import Info, forever


def ask_and_die(url: str, journal: Path, point: str, after: int) -> None:
    """Ends with the status 42 at that point, passed so many times; whoever was asked stands in the journal."""
    asyncio.run(_ask(url, journal, point, after))


async def _ask(url: str, journal: Path, point: str, after: int) -> None:
    def speak(messages: list[ModelMessage], _info: Info) -> str:
        first = messages[0].parts[0]
        assert isinstance(first, SystemPromptPart)
        who = first.content.partition("You are ")[2].partition(".")[0]
        with journal.open("a") as file:
            file.write(f"{who}\n")
        return f"{who} before."

    locks = journal.parent / "instances"
    async with Runtime(url, clock=ManualClock(), models={"m": forever(speak)}, lock_folder=locks) as denizen:
        noor = await denizen.people.create("Noor")
        panel = await denizen.panels.create("Board", [noor], advisors=["A", "B", "C", "D"], model="m", at_once=2)
        await denizen.panels.ask(panel, noor, "Well?")
        failpoints.arm(point, lambda: os._exit(42), after=after)
        await denizen.run_until_idle()
