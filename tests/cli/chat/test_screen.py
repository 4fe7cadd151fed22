"""A person at a terminal talks with agents: the real command on a pseudo-terminal, a real server, scripted agents."""

from __future__ import annotations

import asyncio
import re
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage, ToolReturnPart

from denizen import tool
from denizen.models.scripted import ScriptedModel, Turn, call, forever, reply
from tests.cli.chat.houses import CONFIRM, House, has_replied, open_house
from tests.cli.chat.terminal import Terminal, terminal
from tests.servers import free_port

STORY = "Once upon a time there was a **very** long story.\n\nAnd then it ended."


class Valve:
    """Lets a model write so many pieces of its text, then holds it until it is opened."""

    def __init__(self, pieces: int) -> None:
        self._left = pieces
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    async def pause(self) -> None:
        if self._left > 0:
            self._left -= 1
        else:
            await self._open.wait()


def storyteller(valve: Valve) -> ScriptedModel:
    return forever(lambda messages, _: "Done." if has_replied(messages) else reply(STORY), pause=valve.pause, chunk=4)


@asynccontextmanager
async def sitting(house: House, home: Path, *arguments: str, **more: str) -> AsyncGenerator[Terminal]:
    """Noor at a terminal in the house, who leaves in the end: the program ends by itself, well."""
    columns, rows = int(more.pop("columns", "80")), int(more.pop("rows", "30"))
    environ = house.environ(home, **more)
    async with terminal("chat", *arguments, environ=environ, cwd=home, columns=columns, rows=rows) as (screen, process):
        yield screen
        screen.type("\x04")
        await screen.until(lambda: screen.ended)
        assert await process.wait() == 0


def in_order(screen: Terminal, *texts: str) -> bool:
    """Whether each of these stands on a line of its own, one below the other, on the screen or above it."""
    lines = [line.strip("─ ") for line in screen.text().splitlines()]
    return all(text in lines for text in texts) and sorted(texts, key=lines.index) == list(texts)


def times(screen: Terminal, *texts: str) -> list[int]:
    """How often each text stands on the screen or above it. To be waited for: a redraw is seen half done."""
    return [screen.text().count(text) for text in texts]


async def test_a_conversation(ready_sqlite_url: str, tmp_path: Path) -> None:
    """Type, complete a mention, watch the answer being written, see it once when it is there, go elsewhere, leave."""
    valve = Valve(pieces=12)
    async with open_house(ready_sqlite_url, ada=storyteller(valve)) as house, sitting(house, tmp_path, "kit") as screen:
        await screen.until("No messages yet. Ada and Bo will hear you.")
        await screen.until(lambda: screen.bar() == " Kitchen · with Ada, Bo · /help")

        screen.type("Tell me, @a\t")
        await screen.until("› Tell me, @ada")
        screen.type("a story\r")
        await screen.until("  Tell me, @ada a story")
        await screen.until("Ada  writing …")
        await screen.until("  Once upon a time")
        await screen.until(lambda: screen.bar() == " Kitchen · Ada is thinking · /help")
        assert "And then it ended" not in screen.text()

        valve.open()
        await screen.until("  And then it ended.")
        await screen.until(lambda: screen.bar() == " Kitchen · with Ada, Bo · /help")
        await screen.until(lambda: times(screen, "writing …", "Once upon a time", "a story", "**") == [0, 1, 1, 0])

        screen.type("/s cellar\r")
        await screen.until(lambda: screen.bar() == " Cellar · /help")
        screen.type("Anyone?\r")
        await screen.until("  Anyone?")
        await screen.until(lambda: times(screen, "sending …", "Anyone?") == [0, 1])
    assert await house_said(ready_sqlite_url) == ["Tell me, @ada a story", STORY, "Anyone?"]


async def house_said(url: str) -> list[str]:
    """Everything that was said in the house, by its rows."""
    from sqlalchemy import select

    from denizen import Runtime
    from denizen.storage.database import statement
    from denizen.storage.schema import messages

    rows = statement(select(messages.c.text).order_by(messages.c.created_at))
    async with Runtime(url) as runtime:
        return [row[0] for row in await runtime.db.read(lambda tx: tx.all(rows))]


async def test_a_question(ready_sqlite_url: str, tmp_path: Path) -> None:
    """Ada looks something up and asks: that is seen, the bar says that she waits, and a short answer lets her go on."""
    moves = ["look_up", "confirm_action"]

    @tool(visible=True)
    async def look_up(word: str) -> str:
        return f"{word}: a place"

    def decide(messages: list[ModelMessage], _: object) -> Turn:
        match moves:
            case ["look_up", *_]:
                return call(moves.pop(0), word="hall")
            case ["confirm_action"]:
                return call(moves.pop(0), question="Deploy v2.1?")
            case _:
                return "Done." if messages_sent(messages) else reply("Deployed.")

    async with (
        open_house(ready_sqlite_url, ada=forever(decide), tools=[look_up, CONFIRM]) as house,
        sitting(house, tmp_path, "@ada") as screen,
    ):
        await screen.until("Ada will hear you.")
        screen.type("Go\r")
        await screen.until("Ada used look_up(word: hall) → hall: a place")
        await screen.until("  /yes, /no, or /answer and your own words")
        await screen.until(lambda: in_order(screen, "Ada  asks: confirm action", "Deploy v2.1?"))
        await screen.until(lambda: screen.bar() == " Noor and Ada · Ada waits for an answer · /help")
        screen.type("/yes\r")
        await screen.until("You answered “Deploy v2.1?”: yes")
        await screen.until("  Deployed.")
        await screen.until(lambda: screen.bar() == " Noor and Ada · with Ada · /help")


def messages_sent(messages: list[ModelMessage]) -> bool:
    """Whether the last message is what became of a reply."""
    return any(isinstance(part, ToolReturnPart) and part.tool_name == "send_message" for part in messages[-1].parts)


async def test_what_is_typed_while_the_server_is_away_is_said_when_it_is_back(house: House, tmp_path: Path) -> None:
    """Nothing is lost and nothing is doubled, neither what others said meanwhile."""
    async with sitting(house, tmp_path, "cellar") as screen:
        await screen.until(lambda: screen.bar() == " Cellar · /help")
        await house.stop_server()
        await screen.until("The connection is lost.")
        await screen.until(lambda: "not connected" in screen.bar())
        screen.type("Hold the line\r")
        await screen.until("Noor  sending …")
        await house.runtime.spaces.post(house.cellar, house.noor, "From elsewhere")
        await house.start_server()
        await screen.until("Connected again.")
        await screen.until(lambda: times(screen, "sending …", "  Hold the line", "  From elsewhere") == [0, 1, 1])
    assert await house.runtime.spaces.transcript(house.cellar) == ["Noor: From elsewhere", "Noor: Hold the line"]


async def test_an_aborted_text_vanishes(ready_sqlite_url: str, tmp_path: Path) -> None:
    """The agent is suspended in the middle of a sentence: nobody goes on seeing it write."""
    async with (
        open_house(ready_sqlite_url, ada=storyteller(Valve(pieces=12))) as house,
        sitting(house, tmp_path, "@ada") as screen,
    ):
        await screen.until("Ada will hear you.")
        screen.type("A story!\r")
        await screen.until("  Once upon")
        await house.runtime.agents.suspend(house.ada)
        await screen.until(lambda: "Once upon" not in screen.text())
        await screen.until(lambda: "thinking" not in screen.bar())


async def test_one_chooses_where_to_go_and_finds_it_again(house: House, tmp_path: Path) -> None:
    """The first time there is a list; the next time one is where one was, and what was said since then is marked."""
    await house.runtime.spaces.post(house.cellar, house.noor, "Old wine")
    async with sitting(house, tmp_path) as screen:
        await screen.until("Where to?")
        screen.type("cel\t\r")
        await screen.until("  Old wine")
        await screen.until(lambda: screen.bar() == " Cellar · /help")
    await house.runtime.spaces.join(house.cellar, house.ada, attention="none")
    await house.runtime.spaces.post(house.cellar, house.ada.id, "New wine")
    async with sitting(house, tmp_path) as screen:
        # To be waited for: a redraw is seen half done.
        await screen.until(lambda: in_order(screen, "Old wine", "new", "New wine"))
    assert stat.S_IMODE((tmp_path / "chat_history").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "chat.json").stat().st_mode) == 0o600


async def test_commands(house: House, tmp_path: Path) -> None:
    """Every command answers; a wrong one says what comes nearest; earlier messages can be had."""
    for number in range(1, 31):
        await house.runtime.spaces.post(house.cellar, house.noor, f"text no. {number};")
    async with sitting(house, tmp_path, "cellar", rows="60") as screen:
        await screen.until("  text no. 30;")
        assert "  text no. 10;" not in screen.text()
        screen.type("/more\r")
        await screen.until("that was all, up to here")
        assert screen.text().count("  text no. 10;") == 1
        screen.type("/hlep\r")
        await screen.until("There is no command /hlep. Did you mean /help?")
        screen.type("/help\r")
        await screen.until("what was said before")
        await screen.until("answer what an agent asks")
        screen.type("/agents\r")
        await screen.until("Mends things.")
        screen.type("/spaces\r")
        await screen.until("▸ Cellar")
        screen.type("/who\r")
        await screen.until("@noor  you")
        screen.type("/join kichen\r")
        await screen.until("Did you mean 'Kitchen'?")


async def test_what_is_new_elsewhere_is_in_the_bar(house: House, tmp_path: Path) -> None:
    async with sitting(house, tmp_path, "cellar") as screen:
        await screen.until(lambda: screen.bar() == " Cellar · /help")
        await house.runtime.spaces.post(house.room, house.ada, "Psst")
        await screen.until(lambda: screen.bar() == " Cellar · Noor and Ada: 1 new · /help")
        screen.type("/join @ada\r")
        await screen.until("  Psst")
        await screen.until(lambda: "new" not in screen.bar())


async def test_keys(house: House, tmp_path: Path) -> None:
    """Alt-Enter breaks the line, Ctrl-C clears it and leaves when pressed twice, the history comes back."""
    environ = house.environ(tmp_path)
    async with terminal("chat", "cellar", environ=environ, cwd=tmp_path) as (screen, process):
        await screen.until(lambda: screen.bar() == " Cellar · /help")
        screen.type("one\x1b\rtwo\r")
        await screen.until("  one two")
        screen.type("never said")
        await screen.until("› never said")
        screen.type("\x03")
        await screen.until(lambda: screen.bar() == " Ctrl-C once more leaves; /help helps")
        await screen.until(lambda: "never said" not in screen.text())
        screen.type("\x1b[A")
        await screen.until("› one")
        screen.type("\x03")
        await screen.until("Ctrl-C once more")
        screen.type("\x03")
        await screen.until(lambda: screen.ended)
        assert await process.wait() == 0
    assert await house.runtime.spaces.transcript(house.cellar) == ["Noor: one\ntwo"]


@pytest.mark.parametrize("more", [{"columns": "40"}, {"NO_COLOR": "1"}, {"columns": "30", "rows": "10"}])
async def test_narrow_and_colourless_terminals_will_do(house: House, tmp_path: Path, more: dict[str, str]) -> None:
    async with sitting(house, tmp_path, "@ada", **more) as screen:
        await screen.until("No messages yet.")
        screen.type("Hello\r")
        await screen.until("  Ada hears you.")
        await screen.until(lambda: screen.bar().startswith(" Noor and Ada"))
        coloured = re.search(rb"\x1b\[(\d+;)*[39][0-7](;\d+)*m", screen.raw) is not None
        assert coloured == ("NO_COLOR" not in more)


async def test_a_dumb_terminal_gets_plain_lines(house: House, tmp_path: Path) -> None:
    """Nothing is drawn: a line for each message, and no escape sequence at all."""
    environ = house.environ(tmp_path, TERM="dumb")
    async with terminal("chat", "@ada", environ=environ, cwd=tmp_path) as (screen, process):
        await screen.until("Ada will hear you.")
        screen.type("Hello\n")
        await screen.until("Noor: Hello")
        await screen.until("Ada: Ada hears you.")
        screen.type("/quit\n")
        await screen.until(lambda: screen.ended)
        assert await process.wait() == 0
        assert b"\x1b" not in screen.raw


async def test_without_a_server_one_talks_all_the_same(tmp_path: Path, environ: dict[str, str]) -> None:
    """The agents live in the chat's own process; what they say is there the next time."""
    environ |= {"DENIZEN_PORT": str(free_port()), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    async with terminal("chat", "lobby", environ=environ, cwd=tmp_path) as (screen, process):
        await screen.until("the agents live in this process")
        await screen.until(lambda: screen.bar() == " Lobby · with Ada, Bo · /help")
        screen.type("Hello @ada\r")
        await screen.until("  Hello @ada")
        await screen.until(lambda: any(line.startswith("Ada  ") and ":" in line for line in screen.lines()))
        screen.type("/quit\r")
        await screen.until(lambda: screen.ended)
        assert await process.wait() == 0
