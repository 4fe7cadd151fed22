"""The database does what it is told and its word is lost on the way back, or it does not do it: once, at each write.

Nobody dies here. The same process goes on, and what it did not hear must not keep it from anything.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest
from pydantic_ai.messages import ModelMessage

from denizen import call, failpoints, reply, skip, tool
from denizen.checker import check_database
from denizen.errors import ModelRejected, OutcomeUnknown, StorageError
from denizen.models.scripted import Info, Turn, forever
from denizen.spaces.directory import Space
from tests.world import World, as_text, open_world

WRITES = [
    "acquire",
    "answer",
    "carry_on",
    "end_cycle",
    "fire_due",
    "open_cycle",
    "postpone_cycle",
    "release",
    "renew",
    "resume_cycle",
    "skip_cycle",
    "store_reminder",
    "undo_cycle",
]


class Broken:
    """A connection that breaks once."""

    def __init__(self) -> None:
        self.once = False

    def __call__(self) -> None:
        if not self.once:
            self.once = True
            raise OutcomeUnknown("The connection broke.")


class Busy:
    """What an agent does who does what it is asked; some of it at the second try."""

    def __init__(self) -> None:
        self.hall: Space
        self._tries: Counter[str] = Counter()

    def __call__(self, messages: list[ModelMessage], _info: Info) -> Turn:
        before, last = as_text(messages[-2]), as_text(messages[-1])
        if last.startswith("[REMINDER"):
            return reply("Mumbled.")
        if last.startswith("[INBOX"):
            return self._begin(last)
        if before.startswith("look"):
            return reply("Seen it.")
        return self._second_time("stumble", "Got up.") if "Up again." in before else "Done."

    def _begin(self, inbox: str) -> Turn:
        turns: dict[str, Turn] = {
            "Built.": reply("It is built."),
            "Build": [call("build"), reply("Building.")],
            "Hush": skip("quiet"),
            "Look": call("look"),
            "Mumble": "I should say something.",
            "Later": [call("set_timer", reason="Tea time", after="10 seconds"), reply("In a moment.")],
            "Tea time": [call("enter_space", space_id=self.hall.id), reply("Tea is ready.")],
        }
        asked = next((word for word in turns if word in inbox), None)
        return turns[asked] if asked is not None else self._second_time("trip", reply("Up again."))

    def _second_time(self, what: str, turn: Turn) -> Turn:
        self._tries[what] += 1
        return ModelRejected("not yet") if self._tries[what] == 1 else turn


@pytest.mark.parametrize("when", ["commit", "committed"])
@pytest.mark.parametrize("write", WRITES)
async def test_what_was_not_heard_is_found_out(small_world: World, write: str, when: str) -> None:
    await found_out(small_world, write, when)


@pytest.mark.parametrize(
    ("write", "when"),
    [("acquire", "committed"), ("answer", "commit"), ("carry_on", "committed"), ("release", "commit")],
)
async def test_so_it_is_on_postgresql(ready_postgres_url: str, write: str, when: str) -> None:
    async with open_world(ready_postgres_url) as world:
        await found_out(world, write, when)


async def found_out(world: World, write: str, when: str) -> None:
    """Everything is answered once, in its order; a call that nobody knew to be stored is made, and one that was made
    is told. A lease that was given unheard, or given back unheard, was renewed for ever, and its agent never woke."""
    builds: list[str] = []

    @tool(background=True)
    async def build() -> str:
        """Build it."""
        builds.append("built")
        return "Built."

    @tool
    async def look() -> str:
        """Look."""
        return "Seen."

    busy, broken = Busy(), Broken()
    ada = await world.agent("Ada", model=forever(busy), tools=[build, look], cycle={"awareness": "none"})
    noor = await world.person("Noor")
    hall = busy.hall = await world.space("Hall", noor, ada)
    failpoints.arm(f"{when}:{write}", broken)
    try:
        async with world.denizen.living():
            for said in ("Build", "Hush", "Look", "Mumble", "Trip", "Later"):
                if said == "Hush":  # nobody waits for an answer to it, so the skip leaves no trace
                    await world.denizen.agents.trigger(ada, "bell", text=said)
                else:
                    await world.say(noor, said, hall)
                await past_its_warmth(world)
    finally:
        failpoints.disarm()
    assert broken.once
    assert await world.transcript(hall) == [
        *["Noor: Build", "Ada: Building.", "Ada: It is built.", "Noor: Look", "Ada: Seen it."],
        *["Noor: Mumble", "Ada: Mumbled.", "Noor: Trip", "Ada: Up again.", "Noor: Later", "Ada: In a moment."],
        "Ada: Tea is ready.",
    ]
    assert builds == ["built"]
    assert await world.waiting(ada) == []
    assert await check_database(world.denizen.db) == []


async def past_its_warmth(world: World) -> None:
    """All is done that is to be done, and the agent has let go; whoever hears that the database failed looks again."""
    for _ in range(8):
        with suppress(StorageError):
            await world.run()
        world.clock.advance(10)
