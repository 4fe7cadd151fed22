"""No chain of steps loses the mark: whatever agents, models and memory make of a text from outside is marked.

Every model here repeats all words from outside that its request holds. So wherever such a word is stored, it came there
by some chain, and what holds it has to be marked. Where nothing came from outside, nothing is marked.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from pydantic_ai.messages import ModelMessage
from sqlalchemy import text

from denizen import call, forever, reply, tool
from denizen.models.scripted import Info
from denizen.storage.database import Tx, statement
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.databases import with_tables
from tests.memory.conftest import known, remembering, written
from tests.trust.test_origins import make_guest
from tests.world import World, as_text, open_world

WORD: Final = re.compile(r"zout\d+z")
"""A word that came from outside."""
AGENTS: Final = ("ada", "bo", "cleo")
WINDOW: Final = {"max_tokens": Toolbox(PREBUILT).tokens + 3_400, "min_recent_cycles": 1, "strategy": "rolling"}
PADDING: Final = "Well. " * 120
"""So much that older cycles leave the window soon."""
DEEDS: Final = ("relay", "note", "goal", "plan", "timer", "recall", "read", "stock")


def words_in(messages: Sequence[ModelMessage]) -> str:
    return " ".join(dict.fromkeys(WORD.findall("\n".join(as_text(each) for each in messages)))) or "nothing"


def doing(messages: list[ModelMessage], _info: Info) -> Any:
    """Does what the last inbox asks for, and repeats all words from outside that it can see."""
    seen, last = words_in(messages), as_text(messages[-1])
    inbox = next(as_text(each) for each in reversed(messages) if as_text(each).startswith("[INBOX"))
    if last.startswith(("recall →", "read_messages →", "get_page →", "get_stock →")):
        return reply(f"I have seen {seen}.")
    if not last.startswith(("[INBOX", "[REMEMBERED", "[RECALLED")):
        return f"Done with {seen}."
    found = re.search(r"do:(\w+):(\w*)", inbox)
    match found[1] if found else "relay":
        case "note":
            return call("set_memories", memories=[{"key": "k", "text": seen}])
        case "goal":
            return call("set_goals", goals=[{"text": seen}])
        case "plan":
            return call("set_plans", plans=[{"name": "p", "instruction": seen, "after": "1 hour"}])
        case "timer":
            return call("set_timer", reason=seen, after="1 hour")
        case "recall":
            return call("recall", query="seen zout")
        case "read":
            return call("read_messages")
        case "fetch":
            return call("get_page")
        case "stock":
            return call("get_stock")
        case _:
            other = found[2] if found else ""
            return reply(f"@{other} I say {seen}." if other in AGENTS else f"I say {seen}.")


def summing_up(messages: list[ModelMessage], _info: Info) -> str:
    """A utility model that keeps every word from outside."""
    seen = words_in(messages)
    return written(f"They said {seen}.", facts=[known(f"It was {seen}.", 1)])


_STORED: Final = {
    "messages": "SELECT text, outside FROM messages",
    "notes": "SELECT text, outside FROM notes",
    "goals": "SELECT text, outside FROM goals",
    "plans": "SELECT instruction, outside FROM plans",
    "rollings": "SELECT summary || memory, outside FROM rollings",
    "memories": "SELECT text || COALESCE(document, ''), outside FROM memories",
    "log": "SELECT message, outside IS NOT NULL FROM log",
    "layers": "SELECT COALESCE(layers, ''), outside FROM selves",
    "selves": "SELECT selves.text, minds.outside FROM selves JOIN minds ON minds.agent_id = selves.agent_id",
    "summaries": "SELECT COALESCE(summary, ''), outside_from IS NOT NULL FROM cycles",
}
_READ: Final = {name: statement(text(query)) for name, query in _STORED.items()}


def stored(tx: Tx) -> list[tuple[str, str, bool]]:
    """Every text that is kept: where, what, and whether it is marked."""
    return [(name, said, bool(mark)) for name, query in _READ.items() for said, mark in tx.all(query)]


class Chains(RuleBasedStateMachine):
    """Three agents and two people in a hall; one of the people is a guest."""

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._open = AsyncExitStack()
        self._count = 0
        self._folder = tempfile.TemporaryDirectory()

    @initialize()
    def begin(self) -> None:
        self._run(self._begin)

    async def _begin(self) -> None:
        url = with_tables(Path(self._folder.name) / "denizen.db")
        self.world: World = await self._open.enter_async_context(open_world(url, memory=remembering()))

        @tool(results="outside", effect=False)
        def get_page() -> str:
            """Read a page."""
            return f"Here is {self._new_word()}."

        @tool(results="trusted")
        def get_stock() -> str:
            """Read our stock."""
            return "12 eggs"

        self.world.denizen.models.register("utility", forever(summing_up))
        self.noor, self.eve = await self.world.person("Noor"), await self.world.person("Eve")
        await make_guest(self.world, self.eve)
        self.hall = await self.world.space("Hall", self.noor, self.eve)
        self.agents = [
            await self.world.agent(
                name.title(),
                model=forever(doing),
                tools=[get_page, get_stock],
                window=WINDOW,
                cycle={"silent_reply": "ignore"},
            )
            for name in AGENTS
        ]
        for each in self.agents:
            await self.world.denizen.spaces.join(self.hall, each, attention="mentions")

    def _run(self, do: Callable[..., Awaitable[object]], *args: Any) -> None:
        async def work() -> None:
            await do(*args)

        self._runner.run(work())

    def _new_word(self) -> str:
        self._count += 1
        return f"zout{self._count}z"

    @rule(agent=st.sampled_from(AGENTS), deed=st.sampled_from(DEEDS), other=st.sampled_from(AGENTS))
    def ask(self, agent: str, deed: str, other: str) -> None:
        """A member asks an agent to do something."""
        self._run(self._say, self.noor, f"@{agent} do:{deed}:{other if other != agent else ''}. {PADDING}")

    @rule(agent=st.sampled_from(AGENTS))
    def fetch(self, agent: str) -> None:
        """An agent reads a page."""
        self._run(self._say, self.noor, f"@{agent} do:fetch:")

    @rule(agent=st.sampled_from(AGENTS), deed=st.sampled_from(DEEDS))
    def be_a_guest(self, agent: str, deed: str) -> None:
        self._run(self._say, self.eve, f"@{agent} {self._new_word()} do:{deed}:")

    @rule(agent=st.sampled_from(range(len(AGENTS))))
    def trigger(self, agent: int) -> None:
        """A service tells an agent of something."""
        word = self._new_word()

        async def work() -> None:
            await self.world.denizen.agents.trigger(self.agents[agent], "Feed", text=word)
            await self.world.run()

        self._run(work)

    @rule()
    def wait(self) -> None:
        """Plans and timers come due."""
        self._run(self.world.run_after, 3_700)

    @rule()
    def restart(self) -> None:
        self._run(self._restart)

    async def _restart(self) -> None:
        await self.world.restart()
        self.world.denizen.models.register("utility", forever(summing_up))

    async def _say(self, who: Any, words: str) -> None:
        await self.world.say(who, words, self.hall)
        await self.world.run()

    @invariant()
    def whatever_holds_words_from_outside_is_marked(self) -> None:
        if not hasattr(self, "world"):
            return
        kept = self._runner.run(self._kept())
        assert [each for each in kept if WORD.search(each[1]) and not each[2]] == []
        if self._count == 0:
            assert [each for each in kept if each[2]] == []

    async def _kept(self) -> list[tuple[str, str, bool]]:
        return await self.world.denizen.db.read(stored)

    def teardown(self) -> None:
        self._runner.run(self._open.aclose())
        self._runner.close()
        self._folder.cleanup()


def test_no_chain_loses_the_mark() -> None:
    # A few chains in `make test`, many in `make test-all`.
    how = settings(max_examples=max(settings().max_examples // 10, 1), stateful_step_count=12)
    run_state_machine_as_test(Chains, settings=how)
