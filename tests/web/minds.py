"""A mind with something in it: an agent that has lived for some days, for tests and pictures of what is seen of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelResponse

from denizen import call, forever, reply, skip, think
from denizen.agents.registry import Agent
from denizen.errors import ModelRejected
from denizen.models.scripted import Call, Decide, Info, Turn
from denizen.plans.goals import GoalStatus, Priority
from denizen.spaces.directory import Entity, Space
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.server.conftest import House
from tests.world import World, as_text

WINDOW: Final = {"max_tokens": Toolbox(PREBUILT).tokens + 5_400, "strategy": "semantic", "min_recent_cycles": 4}
"""So small that cycles leave it."""
INSTRUCTIONS: Final = "You look after this house and everyone in it. Be brief, be kind, and write down what matters."

Line = tuple[str, str, str, Call | None]
"""What someone says, what the agent answers, how it sums that up, and what it does first."""

TALK: Final[Sequence[Line]] = [
    (
        "My violin is in the cellar, behind the skis. Please keep that in mind.",
        "I have written it down: cellar, behind the skis.",
        "Noor told me where her violin is; noted it. Nothing is pending.",
        call("set_memories", memories=[{"key": "violin", "text": "In the cellar, behind the skis."}]),
    ),
    (
        "What should we cook on Sunday? Six of us, one without gluten.",
        "A **risotto with mushrooms** suits all six; I would add a fennel salad.",
        "Proposed risotto for Sunday's six guests to Noor; she has not decided.",
        None,
    ),
    (
        "Risotto it is. Remind us to buy the rice on Friday.",
        "I will, on Friday at nine.",
        "Planned a reminder for Friday to buy rice, for Noor.",
        call("set_timer", name="Buy rice", reason="Remind everyone of the rice.", cron="0 9 * * FRI"),
    ),
    (
        "The boiler shows E17. What is that?",
        "E17 means low pressure. Open the filling valve until it shows *1.5 bar*.",
        "Explained boiler error E17 (low pressure) to Noor; pending whether it helped.",
        None,
    ),
    (
        "Where is my violin?",
        "In the cellar, behind the skis.",
        "Told Noor where her violin is. Nothing is pending.",
        call("recall", query="violin"),
    ),
    ("It helped, thank you!", "Glad to hear it.", "Noor says the boiler runs again. Closed.", None),
    (
        "We want to save energy this winter. Make it a goal.",
        "Done. I shall look at the meters every week.",
        "Took on the goal to save energy this winter, for Noor.",
        None,
    ),
    (
        "How many guests were there at the last party?",
        "Eleven, if I count the two who came late.",
        "Answered Noor: eleven guests at the last party.",
        None,
    ),
]

_GOALS: Final[list[tuple[str, GoalStatus, Priority]]] = [
    ("Use a tenth less energy than last winter", "active", "high"),
    ("Everyone finds their things", "long-term", "normal"),
    ("Get to know the neighbours", "done", "low"),
]


def talking(talk: Sequence[Line]) -> Decide:
    """Answers as the talk says it, thinks first, and ends with a line of its own."""

    def decide(messages: list[ModelMessage], info: Info) -> Turn:
        del info
        begun = max(at for at, each in enumerate(messages) if as_text(each).startswith("[INBOX"))
        inbox = as_text(messages[begun])
        has_answered = any(isinstance(each, ModelResponse) for each in messages[begun:])
        if "unreadable" in inbox:
            return ModelRejected("The provider refuses this request: the payload cannot be read.")
        for said, answer, summary, doing in talk:
            if said in inbox and has_answered:
                return summary
            if said in inbox:
                hint = think("Someone waits for an answer. I say it briefly, where they asked.")
                return [hint, doing, reply(answer)] if doing else [hint, reply(answer)]
        return skip("They talk among themselves; nothing is asked of me.")

    return decide


@dataclass
class Life:
    """Noor owns the house, Mia is a member of it. Ada has lived there for some days."""

    house: House
    noor: Entity
    mia: Entity
    ada: Agent
    kitchen: Space

    @property
    def world(self) -> World:
        return self.house.world

    def at(self, tab: str) -> str:
        return f"/agents/{self.ada.id}/{tab}"


async def a_life(house: House, *, rounds: int = 3) -> Life:
    """Ada has talked for some days, was woken for nothing, has failed at something, and means to do things."""
    world = house.world
    noor, mia = await world.person("Noor"), await world.person("Mia")
    ada = await world.agent("Ada", model=forever(talking(TALK)), instructions=INSTRUCTIONS, window=WINDOW)
    life = Life(house, noor, mia, ada, await world.space("Kitchen", noor, mia, ada))
    await live(life, rounds=rounds)
    return life


async def live(life: Life, *, rounds: int) -> None:
    """She has done so, in the kitchen."""
    world, noor, ada = life.world, life.noor, life.ada
    for _ in range(rounds):
        for said, *_rest in TALK:
            await _hear(life, noor, said, hours=2)
        await _hear(life, life.mia, "Noor, are you coming down?", hours=5)
    await world.denizen.agents.trigger(ada, "Meter", {"kwh": None}, text="An unreadable report of the meter.")
    for _ in range(7):
        await world.run_after(200)
    await _hear(life, noor, "Where is my violin?", hours=1)
    instruction = "Look whether the windows are closed."
    await world.denizen.plans.set(ada, "Morning round", instruction, cron="0 7 * * *", zone="UTC")
    for text, status, priority in _GOALS:
        await world.denizen.goals.set(ada, text, status=status, priority=priority)


async def _hear(life: Life, who: Entity, text: str, *, hours: float) -> None:
    await life.world.say(who, text, life.kitchen)
    await life.world.run()
    life.world.clock.advance(hours * 3_600)
