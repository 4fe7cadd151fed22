"""`denizen chat` in a panel: its advisors answer, and their answers are shown."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from denizen.errors import ModelKeyRejected
from denizen.models.scripted import ScriptedModel, forever
from tests.cli.chat.houses import House
from tests.cli.chat.test_answering import talking
from tests.cli.chat.test_once import Ran, chat


def answering(name: str, waits_for: asyncio.Event | None = None) -> ScriptedModel:
    async def answer(*_: Any) -> str:
        if waits_for is not None:
            await waits_for.wait()
        return f"{name} says no."

    return forever(answer)


async def board(house: House, seth: ScriptedModel, buber: ScriptedModel) -> None:
    house.runtime.models.register("seth", seth)
    house.runtime.models.register("buber", buber)
    advisors = [{"name": "Seth", "model": "seth"}, {"name": "Buber", "model": "buber"}]
    await house.runtime.panels.create("Board", [house.noor], advisors=advisors)


async def test_once_prints_every_answer(house: House, tmp_path: Path) -> None:
    """It does not leave before the last advisor has answered."""
    await board(house, answering("Seth"), answering("Buber"))
    environ = house.environ(tmp_path)
    ran = await chat("board", "--once", "Shall we?", environ=environ, cwd=tmp_path)
    assert (ran.status, sorted(ran.out.splitlines()), ran.err) == (
        0,
        ["Buber: Buber says no.", "Seth: Seth says no."],
        "",
    )

    told = json.loads((await chat("board", "--json", "--once", "Why?", environ=environ, cwd=tmp_path)).out)
    assert (told["message"]["text"], told["finished"], told["errors"]) == ("Why?", True, [])
    assert {(each["author"]["name"], each["text"]) for each in told["replies"]} == {
        ("Seth", "Seth says no."),
        ("Buber", "Buber says no."),
    }


async def test_once_says_which_advisor_could_not_answer(house: House, tmp_path: Path) -> None:
    await board(house, answering("Seth"), forever(lambda *_: ModelKeyRejected("The key was rejected.")))
    ran = await chat("board", "--once", "Shall we?", environ=house.environ(tmp_path), cwd=tmp_path)
    assert ran == Ran(1, "Seth: Seth says no.\n", "Buber could not answer: The key was rejected.\n")


async def test_once_says_who_has_not_answered_in_time(house: House, tmp_path: Path) -> None:
    never = asyncio.Event()
    await board(house, answering("Seth"), answering("Buber", never))
    try:
        environ = house.environ(tmp_path)
        ran = await chat("board", "--once", "Shall we?", "--timeout", "3", environ=environ, cwd=tmp_path)
    finally:
        never.set()
    assert ran == Ran(1, "Seth: Seth says no.\n", "Not finished after 3 seconds: Buber.\n")


async def test_answers_are_shown_in_a_conversation(house: House, tmp_path: Path) -> None:
    """Each once, and earlier ones are named, not repeated."""
    await board(house, answering("Seth"), answering("Buber"))
    async with talking(house, tmp_path, "board") as (paper, _, _):
        paper.type("Shall we?")
        await paper.until("Seth: Seth says no.")
        await paper.until("Buber: Buber says no.")
    async with talking(house, tmp_path, "board") as (paper, _, _):
        await paper.until(lambda: any("denizen panel transcript" in each for each in paper.shown))
        assert "Seth: Seth says no." not in paper.shown
