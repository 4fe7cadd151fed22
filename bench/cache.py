"""How much of each request a provider's prompt cache can serve: what is an unchanged prefix of the request before it.

    python -m bench.cache [--cycles N]

An agent lives N cycles of two requests each, a minute apart, while its goals, plans and notes change, and people come
and go. Beside our layout stands another common one, over the same history: a system prompt with the time in it, written
anew for each cycle. The time is at the very end of that prompt, which is the best place it could have. Compared is what
goes out: texts, calls and results, not the times and counts that are stored with them. Tokens are characters ÷ 4.

Then somebody says something to another agent in a space that the three share, and what the skip of it costs is counted:
by the agent's own model, which reads its whole window and calls `skip`, and by triage, which asks a small model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, ToolReturnPart

from denizen import ManualClock, Runtime, forever, reply, skip
from denizen.agents.registry import Agent
from denizen.clock import moment
from denizen.models import codec
from denizen.models.scripted import Info

SENT = ("part_kind", "content", "tool_name", "args", "tool_call_id")
SAYS = "The kettle is on, the report is due on Friday, and Sarah would rather see charts than tables. " * 4


class Share:
    """Counts, request by request, how many characters the request before it began with as well."""

    def __init__(self) -> None:
        self._before: list[str] = []
        self.all = 0
        self.unchanged = 0

    def add(self, parts: list[str]) -> None:
        same = 0
        for old, new in zip(self._before, parts, strict=False):
            if old != new:
                same += next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), 0)
                break
            same += len(new)
        if self._before:
            self.all += sum(map(len, parts))
            self.unchanged += same
        self._before = parts

    @property
    def share(self) -> float:
        return round(self.unchanged / self.all, 4)


class Listener:
    """A scripted model that answers each question once, and looks at what it is sent."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.ours = Share()
        self.clock_in_prompt = Share()
        self._encoded: dict[int, tuple[ModelMessage, str]] = {}
        self._cycle_began = ""
        self.skips = False
        self.skip_tokens: dict[str, int] = {}
        """What a skip took, by who decided."""

    def decide(self, messages: list[ModelMessage], _info: Info) -> Any:
        first, rest = messages[0], [self._text(each) for each in messages[1:]]
        second_step = isinstance(messages[-1].parts[0], ToolReturnPart)
        if not second_step:
            self._cycle_began = moment(self.clock.now()).isoformat()
        self.ours.add([_self(first), *rest])
        self.clock_in_prompt.add([f"{_self(first)}\nNow: {self._cycle_began}", *rest])
        if self.skips:
            return skip("not for me")
        return "Answered Noor about the kettle. Nothing is pending." if second_step else reply(SAYS)

    def _text(self, message: ModelMessage) -> str:
        # By identity: a warm agent sends the same objects again.
        known = self._encoded.get(id(message))
        if known is None or known[0] is not message:
            known = self._encoded[id(message)] = (message, _sent(message))
        return known[1]


def _sent(message: ModelMessage) -> str:
    """What goes out of a message, on any wire: not its times, its usage or its ids."""
    stored = json.loads(codec.dump(message))["parts"]
    return json.dumps([{name: part[name] for name in SENT if name in part} for part in stored])


def _self(message: ModelMessage) -> str:
    assert isinstance(message, ModelRequest)
    (part,) = message.parts
    assert isinstance(part, SystemPromptPart)
    return str(part.content)


async def live(cycles: int) -> Listener:
    """So many cycles, and something changes around the agent in every third."""
    clock = ManualClock()
    listener = Listener(clock)
    async with Runtime(clock=clock) as runtime:
        noor = await runtime.people.create("Noor")
        sam = await runtime.people.create("Sam")
        ada = await runtime.agents.create("Ada", model=forever(listener.decide, record=False))
        kitchen = await runtime.spaces.create("Kitchen", [noor, ada])
        async with runtime.living() as residents:
            for number in range(cycles):
                match number % 12:
                    case 0:
                        await runtime.goals.set(ada, f"Bake bread number {number}.")
                    case 3:
                        await runtime.plans.set(
                            ada, "Report", f"Report on day {number}.", cron=f"{number % 60} 9 * * *"
                        )
                    case 6:
                        await runtime.spaces.join(kitchen, sam)
                    case 9:
                        await runtime.spaces.leave(kitchen, sam)
                        await runtime.notes.set(ada, "kettle", f"The kettle was last filled in cycle {number}.")
                    case _:
                        pass
                clock.advance(60)
                await runtime.spaces.post(kitchen, noor, f"Question {number}: {SAYS}")
                await residents.run_until_idle()
        await _count_skips(runtime, ada, listener)
    return listener


async def _count_skips(runtime: Runtime, ada: Agent, listener: Listener) -> None:
    """What the agent is not concerned with is said to another, once without triage and once with it."""
    listener.skips = True
    bo = await runtime.agents.create("Bo", model=forever(lambda *_: skip("not for me")))
    sue = await runtime.people.create("Sue")
    hall = await runtime.spaces.create("Hall", [sue, bo, ada], floor="all")
    runtime.models.register("small", forever(lambda *_: skip("not for Ada")))
    for who, triage in (("own_model", "off"), ("triage", {"model": "small"})):
        await runtime.agents.edit(ada, cycle={"triage": triage})
        before = await _used(runtime, ada)
        await runtime.spaces.post(hall, sue, "Bo, can you check the CSS on the login page? The button has moved again.")
        await runtime.run_until_idle()
        listener.skip_tokens[who] = await _used(runtime, ada) - before


async def _used(runtime: Runtime, agent: Agent) -> int:
    return sum(each.input_tokens + each.output_tokens for each in await runtime.budgets.spending(agent))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=500)
    given = parser.parse_args()
    heard = asyncio.run(live(given.cycles))
    result = {
        "bench": "cache",
        "cycles": given.cycles,
        "ours": heard.ours.share,
        "clock_in_prompt": heard.clock_in_prompt.share,
        "tokens_per_skip": heard.skip_tokens["own_model"],
        "tokens_per_skip_by_triage": heard.skip_tokens["triage"],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
