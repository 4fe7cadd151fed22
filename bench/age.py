"""What a turn costs at different ages: an agent of 10,000 cycles should think as fast and as cheaply as one of 100.

    python -m bench.age [--turns N] [--oldest CYCLES] [--window TOKENS] [--database-url URL]

Each life is written straight into the database, as its cycles would have been, with effects and passages to recall but
without layers. What it takes to catch up on those is reported (`catch_up`: transactions, milliseconds in all, and of
the longest). Then turns are lived through the public path, as in bench.turn, in a window so small that compactions
happen among them: CPU and KB written per turn, the size of the last prompt and of the layers in it, in tokens, and how
long a compaction takes inside its transaction. `growth` is the CPU of a turn at the greatest age by that at the least.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ToolReturnPart
from sqlalchemy import bindparam, update

from bench._life import TEXT, messages_of_a_cycle
from bench.turn import io_and_cpu, turn
from denizen import Runtime, forever, reply
from denizen.agents.registry import Agent
from denizen.bus.streams import agent_topic
from denizen.consciousness import compaction, log
from denizen.consciousness.recall.passages import Piece, remember
from denizen.ids import AgentId, CycleId, new_id
from denizen.models.scripted import Info
from denizen.models.tokens import estimate_message
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx, insert_into, statement
from denizen.storage.schema import cycles, minds
from denizen.tools import effects

AGES = (100, 1_000, 10_000, 100_000)
WARM_UP = 20
AT_ONCE = 500
"""Cycles that are written in one transaction."""
SHOWN = 10
"""Cycles that are in the window to begin with."""

_cycle = insert_into(cycles, "id", "agent_id", "number", "outcome", "first_seq", "started_at", "ended_at", "summary")
_age = statement(
    update(minds)
    .where(minds.c.agent_id == bindparam("agent"))
    .values(cycle_count=bindparam("count"), window_from=bindparam("first"))
)


def write_past(tx: Tx, agent_id: AgentId, person: Entity, space: Space, first: int, last: int) -> None:
    """The cycles from `first` to `last` were lived."""
    for number in range(first, last + 1):
        id, seq = CycleId(new_id()), 4 * (number - 1) + 1
        row = {"id": id, "agent_id": agent_id, "number": number, "outcome": "acted", "first_seq": seq}
        summary = f"Told {person.name} about report {number} and what is pending."
        tx.run(_cycle, **row, started_at=tx.now, ended_at=tx.now, summary=summary)
        kinds = ("inbox", "response", "results", "response")
        past = zip(kinds, messages_of_a_cycle(), strict=True)
        log.append(tx, agent_id, [log.entry(seq + at, id, kind, each) for at, (kind, each) in enumerate(past)])
        effects.record(tx, id, 0, 0, "send_message", result="", changes=True)
        if number % 7 == 0:
            effects.record(tx, id, 0, 1, "set_timer", result="", changes=True)
        heard = Piece("heard", f"What of report {number}?", tx.now, space.id, person.id, person.name)
        remember(tx, agent_id, number, [heard, Piece("summary", summary, tx.now, space.id, agent_id)])
    tx.run(_age, agent=agent_id, count=last, first=4 * max(last - SHOWN, 0) + 1)


class Asked:
    """A scripted model that answers once and then sums up, and keeps the last prompt."""

    def __init__(self) -> None:
        self.prompt: list[ModelMessage] = []

    def decide(self, messages: list[ModelMessage], info: Info) -> Any:
        self.prompt = list(messages)
        return f"Answered {info.number}." if isinstance(messages[-1].parts[0], ToolReturnPart) else reply(TEXT)


class Probe:
    """Stands before `compact`, and notes how long each takes inside its transaction."""

    def __init__(self, compact: Callable[..., Any]) -> None:
        self._compact = compact
        self.__name__ = compact.__name__
        self.seconds: list[float] = []

    def __call__(self, *args: Any) -> Any:
        began = time.perf_counter()
        done = self._compact(*args)
        self.seconds.append(time.perf_counter() - began)
        return done

    def told(self) -> list[float]:
        """Milliseconds, and begins anew."""
        taken, self.seconds = [seconds * 1000 for seconds in self.seconds], []
        return taken


async def one_age(url: str, age: int, turns: int, window: int, probe: Probe) -> dict[str, Any]:
    """What a turn costs an agent that has lived so many cycles."""
    asked = Asked()
    async with Runtime(url) as runtime:
        person = await runtime.people.create("Noor", handle=f"noor-{age}")
        model = forever(asked.decide, chunk=None, record=False)
        agent: Agent = await runtime.agents.create(
            "Ada", handle=f"ada-{age}", model=model, window={"max_tokens": window}
        )
        space = await runtime.spaces.create("Home", [person, agent])
        for first in range(1, age + 1, AT_ONCE):
            last = min(first + AT_ONCE - 1, age)
            await runtime.db.write(write_past, agent.id, person, space, first, last)
        async with runtime.living(), runtime.bus.subscribe(agent_topic(agent.id)) as life:
            for _ in range(WARM_UP):
                await turn(runtime, person, space, life)
            await runtime.run_until_idle()
            caught_up = probe.told()
            gc.collect()
            before = io_and_cpu()
            for _ in range(turns):
                await turn(runtime, person, space, life)
            after = io_and_cpu()
        compactions = probe.told()
        return {
            "cpu_ms": round((after[0] - before[0]) / turns * 1000, 3),
            "kb": round((after[1] - before[1]) / turns / 1024, 1),
            "prompt_tokens": sum(map(estimate_message, asked.prompt)),
            "layer_tokens": estimate_message(asked.prompt[1]),
            "compactions": len(compactions),
            "compaction_ms": round(statistics.median(compactions), 2) if compactions else None,
            "compaction_ms_most": round(max(compactions), 2) if compactions else None,
            "catch_up": {
                "transactions": len(caught_up),
                "ms": round(sum(caught_up), 1),
                "ms_most": round(max(caught_up), 1),
            },
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=150)
    parser.add_argument("--oldest", type=int, default=10_000, help="the greatest age; 100000 takes minutes to write")
    parser.add_argument("--window", type=int, default=20_000)
    parser.add_argument("--database-url")
    given = parser.parse_args()
    probe = Probe(compaction.compact)
    compaction.compact = probe
    ages = [age for age in AGES if age <= given.oldest]
    with tempfile.TemporaryDirectory() as folder:
        by_age = {
            str(age): asyncio.run(
                one_age(
                    given.database_url or f"sqlite:///{Path(folder)}/age-{age}.db",
                    age,
                    given.turns,
                    given.window,
                    probe,
                )
            )
            for age in ages
        }
    oldest, youngest = by_age[str(ages[-1])], by_age[str(ages[0])]
    growth = round(oldest["cpu_ms"] / youngest["cpu_ms"], 2)
    print(json.dumps({"bench": "age", "window": given.window, "ages": by_age, "growth": growth}))


if __name__ == "__main__":
    main()
