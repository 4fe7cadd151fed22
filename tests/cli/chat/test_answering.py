"""Someone who talks is asked, and answers: everything but the terminal, through the server and without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from rich.console import Console, ConsoleRenderable

from denizen.bus.streams import agent_topic
from denizen.cli.chat.remembering import LastSpace
from denizen.cli.chat.rendering import plain_line
from denizen.cli.chat.screen import bar_text
from denizen.cli.chat.talk import POLL_SECONDS, Talk
from denizen.client import Message
from denizen.clock import ManualClock
from denizen.tools.calls import Call
from tests.cli.chat.houses import House

ASKED = """Ada  asks: confirm action
  Deploy v2.1?
  where: the barn
  /yes, /no, or /answer and your own words"""


class Paper:
    """A `Display` that keeps what it shows, and what is typed beside it."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.free = asyncio.Event()
        """Whoever shows a question waits for this, as for a terminal that is slow."""
        self.free.set()
        self._changed = asyncio.Event()
        self._typed: asyncio.Queue[str] = asyncio.Queue()

    async def say(self, messages: Sequence[Message], own_id: str) -> None:
        del own_id
        self._write(*(plain_line(each) for each in messages))

    async def show(self, *blocks: ConsoleRenderable) -> None:
        console = Console(width=100, no_color=True)
        with console.capture() as capture:
            console.print(*blocks, sep="\n")
        text = capture.get().strip("\n")
        self._write(text)
        if " asks" in text:
            await self.free.wait()

    async def begin(self, title: str) -> None:
        self._write(f"-- {title} --")

    def refresh(self) -> None:
        self._changed.set()

    def give_back(self, text: str) -> None:
        self._write(f"> {text}")

    def type(self, line: str) -> None:
        self._typed.put_nowait(line)

    async def lines(self) -> AsyncIterator[str]:
        while True:
            yield await self._typed.get()

    async def until(self, seen: str | Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not (seen in self.shown if isinstance(seen, str) else seen()):
                self._changed.clear()
                await self._changed.wait()

    def _write(self, *texts: str) -> None:
        self.shown += texts
        self._changed.set()


@asynccontextmanager
async def talking(house: House, home: Path, where: str) -> AsyncGenerator[tuple[Paper, Talk, ManualClock]]:
    """Noor talks in that space. The clock stands still: nobody looks around unless it is moved."""
    paper, clock = Paper(), ManualClock()
    async with house.client() as client:
        me = await client.me()
        talk = Talk(client, paper, LastSpace(home, me.id), clock, me)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(talk.run(where, paper.lines()))
            yield paper, talk, clock
            paper.free.set()
            paper.type("/quit")
            await running


def bar(talk: Talk) -> str:
    return bar_text(talk, 80, leaving=False).strip()


async def test_a_question_is_shown_and_answered(house_that_asks: House, tmp_path: Path) -> None:
    async with talking(house_that_asks, tmp_path, "@ada") as (paper, talk, _):
        paper.type("Go")
        await paper.until(ASKED)
        await paper.until(lambda: bar(talk) == "Noor and Ada · Ada waits for an answer · /help")
        paper.type("/answer on Monday")
        await paper.until("Ada: So it is on Monday.")
        await paper.until(lambda: bar(talk) == "Noor and Ada · with Ada · /help")
        paper.type("/yes")
        await paper.until("Nobody waits for an answer here.")
    assert paper.shown[2:] == [
        "Noor: Go",
        ASKED,
        "You answered “Deploy v2.1?”: on Monday",
        "Ada: So it is on Monday.",
        "Nobody waits for an answer here.",
    ]


async def test_whoever_is_second_is_told_what_the_first_answered(house_that_asks: House, tmp_path: Path) -> None:
    """The question is on the screen, somebody else answers it, and the other answer is typed before that is seen."""
    house = house_that_asks
    sam = await house.runtime.people.create("Sam")
    await house.runtime.spaces.join(house.kitchen, sam)
    async with talking(house, tmp_path, "kitchen") as (paper, _, _):
        paper.free.clear()
        paper.type("Go")
        await paper.until(ASKED)
        (question,) = await house.runtime.calls.waiting(sam)
        await house.runtime.calls.answer(question, {"confirmed": True}, by=sam)
        paper.type("/no")
        await paper.until("Sam answered “Deploy v2.1?”: yes")
        paper.free.set()
        await paper.until('Ada: So it is {"confirmed":true}.')
    assert "Not answered: This call has its answer already. The first one stands." in paper.shown
    assert paper.shown.count("Sam answered “Deploy v2.1?”: yes") == 1


async def test_a_question_asked_in_no_space_is_shown_where_one_meets_the_agent(
    house_that_asks: House, tmp_path: Path
) -> None:
    """No stream tells of it: it is found on entering, and so is, now and then, that it was answered."""
    house = house_that_asks
    await house.runtime.agents.trigger(house.ada, "weather", text="It snows.")
    question = await asked(house)
    assert question.space_id is None
    async with talking(house, tmp_path, "@ada") as (paper, _, clock):
        await paper.until(ASKED)
        await house.runtime.calls.answer(question, "never mind", by=house.noor)
        await clock.sleeper(POLL_SECONDS)
        clock.advance(POLL_SECONDS)
        await paper.until("You answered “Deploy v2.1?”: never mind")


async def test_a_question_elsewhere_is_in_the_bar(house_that_asks: House, tmp_path: Path) -> None:
    house = house_that_asks
    await house.runtime.spaces.post(house.room, house.noor, "Go")
    await asked(house)
    async with talking(house, tmp_path, "cellar") as (paper, talk, _):
        await paper.until(lambda: "Noor and Ada: a question" in bar(talk))
        paper.type("/join @ada")
        await paper.until(ASKED)
        assert "a question" not in bar(talk)
        paper.type("/answer")
        await paper.until(lambda: paper.shown[-1].split() == ["1", "Ada", "Deploy", "v2.1?", "where:", "the", "barn"])


async def asked(house: House) -> Call:
    """What Ada asks, when she does."""
    async with asyncio.timeout(60), house.runtime.bus.subscribe(agent_topic(house.ada.id)) as frames:
        while not (found := await house.runtime.calls.waiting(house.noor)):
            await anext(frames)
    return found[0]
