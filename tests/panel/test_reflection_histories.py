"""Whatever happens in a panel, each voice reflects on each turn that it had while it reflected, and once."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from denizen import call
from denizen.checker import check_database
from denizen.errors import ModelRejected
from denizen.models.scripted import Info, Turn, forever
from denizen.panel.panels import Panel
from denizen.reflection.stance_store import VOICES
from denizen.spaces.directory import Entity
from tests.panel.test_rounds import a_panel, voices
from tests.reflection.kitchens import utility
from tests.world import World, as_text

NAMES = ("Seth", "Buber", "Pema")
LOOK_BACK = {
    "id": "look_back",
    "prompt_template": "{{recent_conversation}}",
    "trigger": {"type": "turn_interval", "interval_turns": 2},
}
ON = {"profile": "basic", "model": "utility", "metaprompts": [LOOK_BACK]}
OFF = {"profile": "off"}


def answering(who: str, messages: list[ModelMessage], _info: Info) -> Turn:
    if f"not {who.lower()}" in as_text(messages[-1]):
        return ModelRejected("no")
    return f"The words of {who}."


@dataclass
class Expected:
    """What should be so, restated plainly."""

    panel_on: bool = True
    own: dict[str, bool | None] = field(default_factory=lambda: dict.fromkeys(NAMES))
    turns: int = 0
    mark: int | None = 0
    had: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    reflected: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in NAMES})

    def switched(self) -> None:
        if not (self.panel_on or any(self.own.values())):
            self.mark = None
        elif self.mark is None:
            self.mark = self.turns

    def answered(self) -> None:
        """Everything that was asked is over."""
        if self.mark is None:
            return
        for turn in range(self.mark + 1, self.turns + 1):
            for name in self.had[turn]:
                own = self.own[name]
                if self.panel_on if own is None else own:
                    self.reflected[name].append(turn)
        self.mark = self.turns


class Story:
    """A panel in which anything may happen."""

    def __init__(self, world: World, noor: Entity, panel: Panel, random: Random) -> None:
        self._denizen, self._noor, self._panel, self._random = world.denizen, noor, panel, random
        self.expected = Expected()
        self._last: Any = None

    async def happen(self) -> None:
        what = self._random.choice(
            (self.ask, self.ask, self.ask, self._cancel, self._switch, self._switch, self._retry)
        )
        await what()
        if self._random.random() < 0.7:
            await self.settle()

    async def settle(self) -> None:
        await self._denizen.run_until_idle()
        self.expected.answered()

    async def ask(self) -> None:
        random, expected = self._random, self.expected
        meant = random.choice((NAMES, NAMES, tuple(random.sample(NAMES, 2))))
        text = " ".join([*(f"@{name.lower()}" for name in meant if meant != NAMES), "Hm.", *self._failing()])
        self._last = await self._denizen.panels.ask(self._panel, self._noor, text)
        expected.turns += 1
        expected.had[expected.turns] = meant

    def _failing(self) -> list[str]:
        return [f"not {name.lower()}" for name in NAMES if self._random.random() < 0.2]

    async def _cancel(self) -> None:
        """A turn is asked and cancelled before anybody answers: whole, or for one of them."""
        await self.ask()
        expected = self.expected
        who = self._random.choice((None, *expected.had[expected.turns]))
        ids = {each.name: each.id for each in await self._denizen.advisors.list(self._panel)}
        await self._denizen.rounds.cancel(self._last, None if who is None else ids[who])
        left = () if who is None else tuple(each for each in expected.had[expected.turns] if each != who)
        expected.had[expected.turns] = left

    async def _switch(self) -> None:
        if self._random.random() < 0.5:
            self.expected.panel_on = not self.expected.panel_on
            await self._denizen.panels.edit(self._panel, reflection=ON if self.expected.panel_on else OFF)
        else:
            advisor = self._random.choice(await self._denizen.advisors.list(self._panel))
            wanted = self._random.choice((True, False, None))
            self.expected.own[advisor.name] = wanted
            given = None if wanted is None else ON if wanted else OFF
            await self._denizen.advisors.edit(self._panel, advisor, reflection=given)
        self.expected.switched()

    async def _retry(self) -> None:
        """What was answered, and perhaps reflected on, is answered anew."""
        await self.settle()
        if self._last is None:
            return
        now = await self._denizen.rounds.get(self._last)
        done = [each.voice for each in now.spoken if each.state == "done"]
        if done:
            await self._denizen.rounds.retry(self._last, self._random.choice(done))


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_happens(small_world: World, seed: int) -> None:
    """Turns are counted exactly, metaprompts by interval come with each second, and none is shown another's words."""
    asked = utility(small_world, model=forever(lambda _messages, _info: call("adjust", mood="patient"), name="utility"))
    noor, panel = await a_panel(small_world, voices(answering), *NAMES, reflection=ON)
    story = Story(small_world, noor, panel, Random(seed))
    await story.ask()
    await story.settle()
    for _ in range(14):
        await story.happen()
    await story.settle()

    denizen, expected = small_world.denizen, story.expected.reflected
    assert any(expected.values())
    for each in await denizen.advisors.list(panel):
        turns = expected[each.name]
        assert (await denizen.advisors.stance(panel, each)).reflected_turns == len(turns), each.name
        assert (await denizen.db.read(VOICES.counters, each.id, panel.id, noor.id)).turns == len(turns)
        past = reversed(await denizen.advisors.states_of_mind(panel, each))
        assert [run.cycle for run in past if run.metaprompt == "look_back"] == turns[1::2]
    for request in asked.requests:
        own = as_text(request[0]).removeprefix("You are ").partition(",")[0]
        others = [name for name in NAMES if name != own and f"The words of {name}" in as_text(request[-1])]
        assert (own in NAMES, others) == (True, [])
    assert await check_database(denizen.db) == []
