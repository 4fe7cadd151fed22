"""A world: servers on one database, a model, and a person who talks to agents while faults strike."""

from __future__ import annotations

import asyncio
import base64
import os
import random
import re
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from lab import waiting
from lab.history import History
from lab.instances import Instance, Nursery, ended
from lab.judge import Verdict, judge, said_since, to_carry
from lab.model import KINDS, ModelServer
from lab.people import Person, number_of
from lab.proxy import Proxy, proxy
from lab.setting import BRIDGED, HOOKED, PANEL, SPACES, Place, Setting, settle
from tests.servers import Server, fresh_database

Database = Literal["sqlite", "postgresql"]

BOUND_LEASES: Final = 4
BOUND_SECONDS: Final = 60.0
"""Whoever waits is answered or told within so many leases and so many seconds after a fault is over. The seconds are
for a machine with other work to do."""
TRACEBACKS: Final = 10
"""More than so many for each time that a fault struck is a storm."""
NEVER: Final = ("never retrieved", "was never awaited", "Exception ignored in")
"""What no log may hold, whatever happened."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long leases and sweeps last. The short one is for many trials; the other is how Denizen ships."""

    lease_seconds: float = 2.0
    sweep_seconds: float = 0.3

    @property
    def is_default(self) -> bool:
        return self == DEFAULTS

    @property
    def environment(self) -> dict[str, str]:
        if self.is_default:
            return {}
        return {
            "DENIZEN_AGENTS__LEASE_SECONDS": f"{self.lease_seconds:g}",
            "DENIZEN_AGENTS__SWEEP_SECONDS": f"{self.sweep_seconds:g}",
            "DENIZEN_AGENTS__WARM_SECONDS": f"{self.lease_seconds * 2:g}",
            # A few messages at a time, so that a short life has many passes.
            "MEMORY_COMPACTION_COOLDOWN_MS": "0",
            "MEMORY_COMPACTION_TAIL_TURNS": "2",
            "MEMORY_COMPACTION_MIN_TURNS": "3",
            "MEMORY_COMPACTION_MAX_TURNS_PER_PASS": "6",
        }

    @property
    def bound_seconds(self) -> float:
        return BOUND_LEASES * self.lease_seconds + BOUND_SECONDS


DEFAULTS: Final = Pace(30.0, 2.0)


@dataclass
class World:
    """What a fault may touch."""

    database: Database
    folder: Path
    history: History
    chance: random.Random
    pace: Pace
    model: ModelServer
    instances: list[Instance]
    setting: Setting
    person: Person
    model_proxy: Proxy
    cleanup: AsyncExitStack
    """What is undone when all processes have ended, before the database is dropped."""
    database_proxies: list[Proxy] = field(default_factory=list[Proxy])
    """One for each instance; none before SQLite."""
    redis_proxy: Proxy | None = None
    postgres: Server | None = None
    valkey: Server | None = None
    database_name: str = ""
    listener: asyncio.Task[None] | None = None
    may_check: bool = True
    keeps_time: bool = True
    """Whether its servers have the time of its clients: what is signed is believed for a few minutes."""
    void: set[int] = field(default_factory=set[int])
    """Questions that were acknowledged after the backup that was restored later: nobody promised to keep them."""
    trials: int = 0
    findings: list[str] = field(default_factory=list[str])

    @property
    def some_instance(self) -> Instance:
        return self.chance.choice(self.instances)

    async def pause(self, most: float = 0.3) -> None:
        """A random moment passes."""
        await asyncio.sleep(self.chance.uniform(0, most))

    def find(self, sentence: str) -> None:
        self.findings.append(sentence)
        self.history.add("finding", sentence=sentence)

    def proxy_of(self, instance: Instance) -> Proxy:
        """What is between it and PostgreSQL."""
        return self.database_proxies[self.instances.index(instance)]

    async def happens(self, what: Awaitable[Any], seconds: float | None = None) -> bool:
        """Whether it does within the bound, or so many seconds, in which no process of this world waited for a
        processor.
        """

        def tell(starved: float) -> None:
            self.history.add("starved", seconds=starved)

        return await waiting.happens(what, seconds or self.pace.bound_seconds, self._pids, tell)

    async def status_at_end(self, instance: Instance, seconds: float) -> int | None:
        """The exit status of the instance, if it ends within so many such seconds. Otherwise it is killed."""
        assert instance.process is not None
        if await self.happens(ended(instance.process, None), seconds):
            return instance.process.exitcode
        await instance.kill()
        return None

    def _pids(self) -> list[int]:
        """Our own process, the servers and the database."""
        servers = [each.process.pid for each in self.instances if each.process is not None and each.alive]
        return [os.getpid(), *(pid for pid in servers if pid is not None), *self._database_pids()]

    def _database_pids(self) -> list[int]:
        if self.postgres is None:
            return []
        try:
            first = int((self.postgres.folder / "data" / "postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):  # it is stopped, or about to start
            return []
        return [first, *waiting.children(first)]

    async def until_ready(self, instance: Instance) -> None:
        """It takes work again, within the bound."""
        said: tuple[int, list[str]] = (0, [])

        async def is_ready() -> None:
            nonlocal said
            while (said := await self.person.ready(instance))[0] != 200:  # noqa: ASYNC110  it is another process
                await asyncio.sleep(0.05)

        if not await self.happens(is_ready()):
            self.find(f"{instance.name} is not ready after {self.pace.bound_seconds:g} s: {said}")

    async def until_all_ready(self) -> None:
        for instance in self.instances:
            await self.until_ready(instance)

    def listen(self) -> None:
        """Someone reads along, from now on."""
        self.person.reads = False
        self.listener = asyncio.create_task(self.person.listen())

    async def hush(self) -> None:
        """Nobody reads along any more."""
        if self.listener is not None:
            self.listener.cancel()
            await asyncio.gather(self.listener, return_exceptions=True)

    async def until_listening(self) -> None:
        if not await self.happens(self.person.sees(lambda: self.person.reads)):
            self.find("no instance gave a stream that begins")

    async def check(self) -> None:
        """`denizen check` finds nothing."""
        process = self.instances[0].run("check", "--json")
        await ended(process, 300)
        if process.exitcode != 0:
            self.find(f"denizen check ended with {process.exitcode}: {self.instances[0].new_log()[-2000:]}")

    async def judge_attempts(self, asked: Collection[int]) -> None:
        """No event has paid for what is not its fault: attempts count what it did itself, or its model."""
        for name, agent in self.setting.agents.items():
            for state in ("pending", "taken"):
                for event in (await self.person.get(f"/api/agents/{agent}/inbox?state={state}"))["events"]:
                    if event["attempts"] and " for " in event["text"] and number_of(event["text"]) in asked:
                        self.find(f"a fault counted as {event['attempts']} attempts of {name}: {event['text']}")

    def judge_logs(self, strikes: int) -> None:
        """No storm of tracebacks, and nothing that no log may hold."""
        for instance in self.instances:
            new = instance.new_log()
            tracebacks = new.count("Traceback (most recent call last)")
            if tracebacks > TRACEBACKS * strikes:
                self.find(f"{instance.name} logged {tracebacks} tracebacks in one trial: {_last_words(new)}")
            for words in NEVER:
                if words in new:
                    at = new.index(words)
                    self.find(f"{instance.name} logged: {new[max(at - 300, 0) : at + 700]}")


def _last_words(log: str) -> str:
    """The ends of the last tracebacks; each is part of a line of JSON."""
    lines = log.replace("\\n", "\n")
    return " | ".join(re.findall(r"^[\w.]*(?:Error|Exception|Unknown|Lost)[^\n]{0,150}", lines, re.MULTILINE)[-3:])


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault and what came of it."""

    fault: str
    asked: list[int]
    silent: list[str]
    wait_seconds: float
    """How long it took after the fault until everyone was answered or told."""
    strikes: int = 1
    """How often the fault struck, one time after the other."""


Strike = Any
"""An async function of a world: the fault begins, and is over when it returns."""


async def trial(world: World, fault: str, strike: Strike, *, strikes: int = 1, hasty: bool = False) -> Trial:
    """People ask whenever the fault strikes, and once more when it is over.

    It strikes again when everything is ready, or, if it is `hasty`, half of the time at once.
    """
    world.trials += 1
    number, first = world.trials, len(world.history.lines)
    # In a space one question is asked after the other, or nobody could say in which order they were meant.
    names = world.chance.sample([*SPACES, PANEL], strikes + 2)
    after = names.pop()
    asking = [asyncio.create_task(_talk(world, number, names.pop(), world.chance.randint(1, 3)))]
    try:
        for again in range(strikes):
            if again and not (hasty and world.chance.random() < 0.5):
                await world.until_all_ready()
            asking.append(asyncio.create_task(_talk(world, number, names.pop(), world.chance.randint(1, 2))))
            await world.pause()
            world.history.add("strike", trial=number, fault=fault)
            await strike(world)
        over = world.history.add("over", trial=number)["at"]
        asking.append(asyncio.create_task(_talk(world, number, after, 1)))
        all_asked = await world.happens(asyncio.gather(*asking), world.pace.bound_seconds * 2)
    finally:
        for each in asking:
            each.cancel()
    new = world.history.lines[first:]
    asked = {line["number"]: line for line in new if line["what"] == "asking" and line["number"] not in world.void}
    known = {line["number"]: line["at"] for line in new if line["what"] == "acknowledged"}
    if not fault.startswith("model"):
        await world.judge_attempts(asked.keys())
    if not all_asked:
        return Trial(fault, sorted(asked), [f"#{n} was not acknowledged" for n in asked.keys() - known.keys()], 0.0)
    silent = await _waited(world, asked)
    await world.until_all_ready()
    world.judge_logs(strikes)
    waits = [world.person.answered.get(n, world.history.now()) - max(over, known[n]) for n in asked]
    done = Trial(fault, sorted(asked), silent, round(max(0.0, *waits), 2), strikes)
    world.history.add("judged", trial=number, fault=fault, silent=silent, wait_seconds=done.wait_seconds)
    return done


async def _talk(world: World, trial: int, name: str, questions: int) -> None:
    """Questions in one space, each when the one before is acknowledged."""
    there = SPACES.get(name, (PANEL,))
    plan = [(world.chance.choice(there), world.chance.choice(KINDS)) for _ in range(questions)]
    if name == PANEL:
        plan = [(PANEL, "panel")]
    space = world.setting.spaces[name]
    for agent, kind in plan:
        if name in (HOOKED, BRIDGED) and world.keeps_time and world.chance.random() < 0.5:
            how = (world.setting.hook, "hook") if name == HOOKED else (world.setting.bridge, "guest")
            await world.person.ask_from_outside(how[0], space, agent, how[1], trial)
        else:
            await world.person.ask(space, agent, kind, trial)


async def _waited(world: World, asked: dict[int, Any]) -> list[str]:
    """Everyone was answered or told; those who were not within the bound."""
    person = world.person

    def unanswered() -> list[int]:
        return [
            n
            for n, line in asked.items()
            if n not in person.answered and not person.is_told(line["space"], line["agent"])
        ]

    if not await world.happens(person.sees(lambda: not unanswered())):
        return [f"#{n} got neither an answer nor a reason" for n in unanswered()]
    return []


async def _all_carried(world: World) -> None:
    """The program elsewhere has what is said in the bridged space, or time is up: the judge says what is missing."""
    said = await world.person.transcript(world.setting.spaces[BRIDGED])
    wanted = {each["text"] for each in to_carry(said, world.history.lines)}

    def carried() -> set[str]:
        return {line["text"] for line in world.history.lines if line["what"] == "carried"}

    async def all_carried() -> None:
        while not wanted <= carried():  # noqa: ASYNC110  it is another process
            await asyncio.sleep(0.05)

    await world.happens(all_carried())


async def rest(world: World) -> Verdict:
    """Everything is answered, or time is up. Then transcripts are read, the database is checked, and all is judged."""
    person = world.person
    asked = {line["number"]: line["kind"] for line in world.history.lines if line["what"] == "asking"}
    numbers = asked.keys() - world.void
    timers = {n for n in numbers if asked[n] == "timer"}
    await world.happens(person.sees(lambda: numbers <= person.answered.keys() and timers <= person.rung))
    await _all_carried(world)
    for name, agent in world.setting.agents.items():
        for event in (await world.person.get(f"/api/agents/{agent}/inbox?state=dead"))["events"]:
            world.find(f"{name} has set aside an innocent event: {event['text']}")
    for space in world.setting.spaces.values():
        messages = await world.person.transcript(space)
        if not any(line["what"] == "restored" for line in world.history.lines):
            await _streamed(world, {each["id"] for each in said_since(messages, world.history.lines)})
        world.history.add("transcript", space=space, messages=messages)
        memory = await person.get(f"/api/spaces/{space}/memory")
        world.history.add("summary", space=space, upto=memory["upto"], text=memory["summary_markdown"])
    world.history.add("rounds", rounds=await person.rounds(world.setting.panel))
    if world.may_check:
        await world.check()
    return judge(world.history.lines)


async def _streamed(world: World, ids: set[str]) -> None:
    """The stream has brought these messages as well, or time is up."""

    def arrived() -> bool:
        return ids <= {line["id"] for line in world.history.lines if line["what"] == "message"}

    await world.happens(world.person.sees(arrived))


@asynccontextmanager
async def world(
    database: Database,
    folder: Path,
    nursery: Nursery,
    model: ModelServer,
    chance: random.Random,
    *,
    pace: Pace | None = None,
    postgres: Server | None = None,
    valkey: Server | None = None,
    prepare: Callable[[World], None] | None = None,
) -> AsyncGenerator[World]:
    """A new world, in which everyone is there and someone reads along. Its history and logs are kept.

    `prepare` may change it before its first process starts.
    """
    folder.mkdir(parents=True)
    async with AsyncExitStack() as stack:
        history = History(folder / "history.jsonl")
        stack.callback(history.close)
        model.history = history
        here = World(
            database=database,
            folder=folder,
            history=history,
            chance=chance,
            pace=pace or Pace(),
            model=model,
            instances=[],
            setting=Setting({}, {}),
            person=Person(history, [], ""),
            model_proxy=await stack.enter_async_context(proxy("127.0.0.1", model.port)),
            cleanup=AsyncExitStack(),
            postgres=postgres,
            valkey=valkey,
        )
        common = {
            **here.pace.environment,
            "OPENAI_API_KEY": "none",
            # Every instance opens the secrets of bridges and webhooks.
            "DENIZEN_SECRET_KEY": base64.urlsafe_b64encode(chance.randbytes(32)).decode(),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{here.model_proxy.port}/v1",
            "DENIZEN_BUDGET__TOKENS_PER_DAY": "0",
            "MEMORY_COMPACTION_MODEL_ID": "openai-chat:scribe",
        }
        for each in await _environments(here, stack):
            number = len(here.instances) + 1
            name = f"instance-{number}"
            here.instances.append(Instance(name, folder / name, {**common, **each}, nursery))
        await stack.enter_async_context(here.cleanup)
        if prepare is not None:
            prepare(here)
        stack.push_async_callback(_end, here.instances)
        await _begin(here, stack)
        yield here
        model.history = None


async def _environments(here: World, stack: AsyncExitStack) -> list[dict[str, str]]:
    """What each instance is told of its database and bus."""
    if here.database == "sqlite":
        return [{}]
    assert here.postgres is not None
    assert here.valkey is not None
    here.database_name = f"lab_{here.chance.getrandbits(40):x}"
    stack.enter_context(fresh_database(here.postgres.url, here.database_name))
    socket = str(here.postgres.folder / ".s.PGSQL.5432")
    here.database_proxies = [
        await stack.enter_async_context(proxy(socket, None, speaks_postgresql=True)) for _ in range(2)
    ]
    port = int(here.valkey.url.split(":")[-1].split("/")[0])
    here.redis_proxy = await stack.enter_async_context(proxy("127.0.0.1", port))
    return [
        {
            "DATABASE_URL": f"postgresql://postgres@127.0.0.1:{each.port}/{here.database_name}",
            "REDIS_URL": f"redis://127.0.0.1:{here.redis_proxy.port}/0",
        }
        for each in here.database_proxies
    ]


async def _begin(here: World, stack: AsyncExitStack) -> None:
    """Its processes run, its people and agents are there, and someone reads along."""
    first, *others = here.instances
    first.start()
    place = Place(first.url, str(first.home))
    await asyncio.to_thread(place.until_up)
    for each in others:
        each.start()
    more = {"reflection": {"profile": "basic"}} if here.pace.is_default else {}
    here.setting = await asyncio.to_thread(settle, place, f"http://127.0.0.1:{here.model.port}", **more)
    bridged = here.setting.spaces[BRIDGED]
    told = await asyncio.to_thread(place.call, f"/api/spaces/{bridged}")
    here.history.add("bridged", space=bridged, seq=told["last_seq"])
    token = place.headers["Authorization"].removeprefix("Bearer ")
    await here.person.close()
    here.person = Person(here.history, here.instances, token, here.setting.panel)
    here.listen()
    stack.push_async_callback(_silence, here)
    await here.until_listening()
    await here.until_all_ready()


async def _silence(here: World) -> None:
    await here.hush()
    await here.person.close()


async def _end(instances: Sequence[Instance]) -> None:
    for each in instances:
        await each.kill()
        with suppress(OSError):
            each.log.rename(each.folder.with_suffix(".log"))
        shutil.rmtree(each.folder, ignore_errors=True)
