"""Whole think cycles with models that do anything: they always come to an end, no request is too large or malformed,
and what the model saw is what is stored. A process that dies at any of its writes loses nothing and repeats nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    SystemPromptPart,
)

from denizen.agents.pace import Pace
from denizen.agents.registry import Agent
from denizen.app import Runtime
from denizen.clock import ManualClock
from denizen.consciousness import mind
from denizen.consciousness.window import budget
from denizen.errors import DatabaseUnavailable, ModelOverloaded, ModelRejected, ModelUnreachable
from denizen.models import codec
from denizen.models.scripted import Call, Decide, Info, Say, Think, Turn, call, forever, reply, skip
from denizen.models.tokens import estimate, estimate_message
from denizen.spaces import posting
from denizen.spaces.directory import Space
from denizen.spaces.fan_out import HOP_BUDGET
from denizen.storage.database import Database
from denizen.tools.functions import tool
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import OutsideTool, Toolbox
from tests.properties.house import unfinished, violations
from tests.properties.lives import (
    EXAMPLES,
    PATIENCE,
    HurryingClock,
    NarrowModel,
    check_well_formed,
    come_to_rest,
    look,
    narrow,
)

pytestmark = pytest.mark.timeout(PATIENCE)

NEVER: Final = 1e9
PACE: Final = Pace(warm_seconds=NEVER)
REQUESTS: Final = 30
"""After so many a model only says that it is done: a house of chatterboxes would talk too long for a test."""


@tool
def stumble(where: str) -> str:
    """Fall."""
    raise RuntimeError(f"fell over {where}")


# What a model may do

Piece = Say | Think | Call | Exception


@dataclass(frozen=True)
class Going:
    """A call whose argument is known only when it is made."""

    tool: str
    at: int


sizes = st.sampled_from([1, 40, 1_000, 9_000])
calls = st.one_of(
    st.builds(lambda size: reply("w" * size), sizes),
    st.builds(lambda at: reply(f"Hello, @agent{at}."), st.integers(0, 2)),
    st.builds(Going, st.sampled_from(["enter_space", "read_messages", "read_entry"]), st.integers(0, 3)),
    st.builds(lambda size: call("look", size=size), st.sampled_from([0, 100, 3_000, 60_000])),
    st.just(call("stumble", where="a stone")),
    st.builds(
        Call,
        st.sampled_from(["send_message", "enter_space", "look", "nothing", "skip"]),
        st.sampled_from(["{", "[]", "null", '{"text": ""}', '{"size": "x"}', '{"text": "\\ud800"}', ""]),
    ),
)
errors = st.sampled_from([ModelOverloaded("busy"), ModelRejected("no"), ModelUnreachable("gone"), ValueError("a bug")])
words = st.builds(Say, st.sampled_from(["", "Done.", "Done: " + "d" * 2_000]))
several = st.lists(calls, min_size=1, max_size=4)
turns = st.sampled_from(
    [several] * 8
    + [words.map(lambda each: [each])] * 4
    + [st.just([skip("Not for me.")])] * 2
    + [
        st.builds(lambda text, more: [Think("Hm."), text, *more], words, several),
        st.builds(lambda one: [one, skip()], calls),
        errors.map(lambda error: [error]),
        st.builds(lambda error: [Say("I was about to"), error], errors),
    ]
).flatmap(lambda kind: kind)


@dataclass(frozen=True)
class Person:
    """What one person says at one moment."""

    space: int
    text: str
    urgent: bool


said = st.builds(
    Person,
    st.integers(0, 2),
    st.sampled_from(["Hello.", "@agent0, are you there?", "@agent1 @agent2 stop", "v" * 3_000, "v\n" * 9_000]),
    st.booleans(),
)


@dataclass(frozen=True)
class Moment:
    """Some time passes, something changes, and people speak; then the agents think."""

    seconds: int
    change: str
    said: list[Person]


moments = st.lists(
    st.builds(
        Moment,
        st.sampled_from([0, 1, 70, 400]),
        st.sampled_from(["nothing", "nothing", "edit", "person", "space"]),
        st.lists(said, min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=4,
)


@dataclass(frozen=True)
class Make:
    """How one agent is made."""

    turns: list[list[Any]]
    max_tokens: int
    context: int | None
    result_characters: int
    inbox_share: float
    max_steps: int
    silent_reply: str
    chunk: int | None


makes = st.builds(
    Make,
    st.lists(turns, min_size=2, max_size=6),
    st.sampled_from([4_000, 4_500, 6_000, 20_000]),
    st.sampled_from([None, None, 2_600, 4_000]),
    st.sampled_from([500, 4_000, 16_000]),
    st.sampled_from([0.05, 0.1, 0.5]),
    st.integers(1, 6),
    st.sampled_from(["nudge", "deliver", "ignore"]),
    st.sampled_from([None, 1000]),
)


@dataclass
class Scene:
    """A house during one example."""

    denizen: Runtime
    clock: ManualClock
    agents: list[Agent] = field(default_factory=list[Agent])
    models: list[NarrowModel] = field(default_factory=list[NarrowModel])
    spaces: list[Space] = field(default_factory=list[Space])

    def behave(self, make: Make) -> Decide:
        def decide(messages: list[ModelMessage], info: Info) -> Turn:
            if info.number >= REQUESTS:
                return "Enough."
            return [self.going(each, messages) for each in make.turns[info.number % len(make.turns)]]

        return decide

    def going(self, piece: Any, messages: list[ModelMessage]) -> Any:
        if not isinstance(piece, Going):
            return piece
        if piece.tool == "read_entry":
            shown = re.findall(r'read_entry\("([^"]*)", offset=(\d+)\)', str(messages))
            pointer, offset = shown[-1] if shown else ("result:none", "0")
            return call("read_entry", entry=pointer, offset=int(offset))
        return call(piece.tool, space_id=self.spaces[piece.at].id if piece.at < len(self.spaces) else "nowhere")


async def play(url: str, makes: Sequence[Make], moments: Sequence[Moment]) -> None:
    clock = HurryingClock()
    async with Runtime(url, clock=clock, pace=PACE, tools=[look, stumble]) as denizen:
        scene = Scene(denizen, clock)
        noor = await denizen.people.create("Noor")
        for number, make in enumerate(makes):
            model = narrow(scene.behave(make), make.context, make.chunk)
            agent = await denizen.agents.create(
                f"Agent {number}",
                handle=f"agent{number}",
                model=model,
                tools=["look", "stumble"],
                profile="normal",
                cycle={"max_steps": make.max_steps, "silent_reply": make.silent_reply},
                window={
                    "max_tokens": make.max_tokens,
                    "result_characters": make.result_characters,
                    "inbox_share": make.inbox_share,
                    "output_tokens": 256,
                },
            )
            scene.agents.append(agent)
            scene.models.append(model)
        scene.spaces.append(await denizen.spaces.create("Everyone", [noor, *scene.agents], floor="all"))
        scene.spaces.append(await denizen.spaces.create("Two", [noor, scene.agents[0]]))
        async with denizen.living() as residents:
            for number, moment in enumerate(moments):
                clock.advance(moment.seconds)
                await change(scene, moment, number)
                for each in moment.said:
                    space = scene.spaces[each.space % len(scene.spaces)]
                    await denizen.spaces.post(space, noor, each.text, urgent=each.urgent)
                await come_to_rest(denizen, clock, residents.run_until_idle)
            for agent, model in zip(scene.agents, scene.models, strict=True):
                await check_agent(denizen, await denizen.agents.get(agent), model)
        found = [each for each in await denizen.db.read(violations) if getattr(each, "invariant", 0) != 2]
        assert not found, found


async def change(scene: Scene, moment: Moment, number: int) -> None:
    denizen, agent = scene.denizen, scene.agents[number % len(scene.agents)]
    if moment.change == "edit":
        await denizen.agents.edit(agent, instructions=f"You are in chapter {number}.")
    elif moment.change == "person":
        await denizen.spaces.join(scene.spaces[0], await denizen.people.create(f"Guest {number}"))
    elif moment.change == "space":
        scene.spaces.append(await denizen.spaces.create(f"Room {number}", [await denizen.people.find("noor"), agent]))


# What must be true of every request

TOOLBOX: Final = Toolbox([*PREBUILT, look, stumble])


async def check_agent(denizen: Runtime, agent: Agent, model: NarrowModel) -> None:
    allowed = budget(agent.definition.window, model.context_window).request
    dumped = [[codec.dump(message) for message in each] for each in model.requests]
    for request in model.requests:
        assert size(request) <= allowed
        check_well_formed(request)
    lasting = [each[:-1] if is_preview(each[-1]) else each for each in dumped]
    for position in range(1, len(dumped)):
        check_grows(lasting[position - 1], lasting[position], model.requests[position - 1 :][:2], allowed)
    await check_stored_is_seen(denizen, agent, dumped)


def is_preview(dumped: str) -> bool:
    """Shown at the end of one request only: the next does not repeat it."""
    return '"[INBOX PREVIEW ' in dumped


def is_layers(dumped: str) -> bool:
    """What stands for the cycles before the window."""
    return '"[COMPACTED MEMORY ' in dumped or '"[EARLIER CYCLES ' in dumped


def size(request: Sequence[ModelMessage]) -> int:
    return estimate(self_of(request)) + TOOLBOX.tokens + sum(map(estimate_message, request[1:]))


def self_of(request: Sequence[ModelMessage]) -> str:
    (part,) = request[0].parts
    assert isinstance(part, SystemPromptPart)
    return part.content


def check_grows(old: list[str], new: list[str], both: Sequence[Sequence[ModelMessage]], allowed: int) -> None:
    """A request extends the one before it, unless its last cycle was undone, or it would not have fitted."""
    if new[: len(old)] == old or new[0] != old[0]:
        return
    begun = max(at for at, text in enumerate(old) if '"[INBOX - ' in text)
    if new[:begun] == old[:begun]:
        return  # the cycle was skipped or undone; what had been committed is still there
    moved = [at for at in range(2, len(old) + 1) if new[1 : 1 + len(old) - at] == old[at:]]
    undone = [at for at in range(2, begun + 1) if new[1 : 1 + begun - at] == old[at:begun]]
    assert moved or undone, "neither an extension nor a later window of the same history"
    if moved:
        left = sum(map(estimate_message, both[0][1 : moved[0]]))
        assert size(both[1]) + left > allowed, "the window moved although there was room"


async def check_stored_is_seen(denizen: Runtime, agent: Agent, dumped: list[list[str]]) -> None:
    """Every request whose response is in the log can be built again, to the letter, from what is stored."""
    entries = await denizen.minds.log(agent)
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    recorded = iter(dumped)
    for entry in entries:
        if entry.kind != "response":
            continue
        assert isinstance(entry.message, ModelResponse)
        made_of = json.loads(entry.request or "")
        assert made_of["to"] == entry.seq - 1
        built = await denizen.db.read(mind.request, agent.id, made_of)
        rebuilt = [codec.dump(message) for message in built]
        assert any(_same(rebuilt, each) for each in recorded), f"no request was like that of entry {entry.seq}"


def _same(rebuilt: list[str], seen: list[str]) -> bool:
    return len(rebuilt) == len(seen) and all(map(_same_message, rebuilt, seen, range(len(seen))))


def _same_message(rebuilt: str, seen: str, at: int) -> bool:
    # The self, the layers and a preview are not stored as messages: their timestamps are those of the request.
    if at == 0 or is_preview(seen) or is_layers(seen):
        return _content(rebuilt) == _content(seen)
    return rebuilt == seen


def _content(dumped: str) -> Any:
    return [part["content"] for part in json.loads(dumped)["parts"]]


@settings(max_examples=max(EXAMPLES // 5, 1))
@given(makes=st.lists(makes, min_size=1, max_size=3), moments=moments)
def test_thinking_ends_and_what_the_model_saw_is_what_is_stored(
    fresh: Callable[[], str], makes: list[Make], moments: list[Moment]
) -> None:
    asyncio.run(play(fresh(), makes, moments))


# A process that dies


class MortalDatabase:
    """The real database, until a given write: then this process is cut off from it, and nothing it does counts."""

    def __init__(self, db: Database, life: int, heard: bool) -> None:
        self._db = db
        self._life = life
        self._heard = heard
        """Whether the last write still happens, although nobody learns of it."""

    @property
    def dead(self) -> bool:
        return self._life < 0

    async def write(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        self._life -= 1
        if self._life == -1 and self._heard:
            await self._db.write(fn, *args, **kwargs)
        self._refuse_if_dead()
        return await self._db.write(fn, *args, **kwargs)

    write_first = write

    async def read(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        self._refuse_if_dead()
        return await self._db.read(fn, *args, **kwargs)

    async def close(self) -> None:
        await self._db.close()

    def _refuse_if_dead(self) -> None:
        if self.dead:
            raise DatabaseUnavailable("This process is dead.")


@dataclass
class World:
    """What happened outside, and how often the model was asked."""

    rung: Counter[str] = field(default_factory=Counter[str])
    written: Counter[str] = field(default_factory=Counter[str])
    asked: int = 0

    def tools(self) -> list[OutsideTool]:
        def ring(names: str) -> str:
            """Ring a bell: not to be done twice."""
            self.rung.update(names.split())
            return "rung"

        def note(names: str) -> str:
            """Write a note: doing it twice does no harm."""
            self.written.update(names.split())
            return "written"

        return [tool(ring), tool(on_crash="retry", independent=True)(note)]

    def decide(self, plan: Sequence[Sequence[str]]) -> Decide:
        """Each cycle goes through the plan, step by step, and ends with a line of text."""

        def decide(messages: list[ModelMessage], _: Info) -> Turn:
            self.asked += 1
            texts = [(at, str(each.parts[0])) for at, each in enumerate(messages) if "[INBOX - " in str(each.parts[0])]
            begun, inbox = texts[-1]
            names = " ".join(re.findall(r"n\d+n", inbox))
            step = sum(isinstance(each, ModelResponse) for each in messages[begun:])
            if step >= len(plan):
                return "Done."
            # Each message is another: the same one again would not be posted.
            return [
                reply(f"{names} /{step}.{at}") if each == "reply" else call(each, names=names)
                for at, each in enumerate(plan[step])
            ]

        return decide


plans = st.lists(st.lists(st.sampled_from(["reply", "ring", "note"]), min_size=1, max_size=3), min_size=1, max_size=3)
deaths = st.lists(st.tuples(st.integers(1, 14), st.booleans()), max_size=4)


async def live_and_die(url: str, plan: list[list[str]], said: list[int], deaths: list[tuple[int, bool]]) -> None:
    clock, world = HurryingClock(), World()
    model = forever(world.decide(plan), record=False)
    async with Runtime(url, clock=clock, models={"m": model}, tools=world.tools()) as denizen:
        noor = await denizen.people.create("Noor")
        agents = [await denizen.agents.create(f"Agent {at}", model="m", tools=["ring", "note"]) for at in range(2)]
        spaces = [await denizen.spaces.create(f"Room {at}", [noor, agent]) for at, agent in enumerate(agents)]
        names = [f"n{number}n" for number in range(len(said))]
        for name, at in zip(names, said, strict=True):
            await denizen.spaces.post(spaces[at], noor, name)
    for life, heard in deaths:
        async with Runtime(url, clock=clock, models={"m": model}, tools=world.tools(), pace=PACE) as denizen:
            denizen._db = mortal = MortalDatabase(denizen.db, life, heard)  # pyright: ignore[reportAttributeAccessIssue]
            try:
                await denizen.run_until_idle()
            except DatabaseUnavailable:
                assert mortal.dead
        clock.advance(61)
    async with Runtime(url, clock=clock, models={"m": model}, tools=world.tools(), pace=PACE) as denizen:
        await denizen.run_until_idle()
        heard = Counter[str]()
        for space in spaces:
            for message in await denizen.spaces.messages(space):
                if message.author_kind == "agent":
                    heard.update(message.text.split())
        check_world(world, plan, names, heard)
        usage = sum([each.steps for agent in agents for each in await denizen.minds.cycles(agent)])
        assert world.asked <= usage + 2 * len(deaths), "a model call whose answer was stored is never repeated"
        assert not await denizen.db.read(unfinished)
        assert not await denizen.db.read(violations)


def check_world(world: World, plan: list[list[str]], names: list[str], heard: Counter[str]) -> None:
    planned = Counter(each for step in plan for each in step)
    for name in names:
        assert heard[name] == planned["reply"], "what was to be said was said, and once"
        assert world.rung[name] <= planned["ring"], "what must not be done twice was not"
        assert world.written[name] >= planned["note"], "what may be done twice was done"


@settings(max_examples=max(EXAMPLES // 3, 1))
@given(plan=plans, said=st.lists(st.integers(0, 1), min_size=1, max_size=5), deaths=deaths)
def test_a_process_that_dies_at_any_write_loses_nothing_and_repeats_nothing(
    fresh: Callable[[], str], plan: list[list[str]], said: list[int], deaths: list[tuple[int, bool]]
) -> None:
    asyncio.run(live_and_die(fresh(), plan, said, deaths))


async def test_what_wakes_is_found_behind_any_number_of_events_that_do_not() -> None:
    async with Runtime(clock=HurryingClock(), pace=PACE) as denizen:
        noor = await denizen.people.create("Noor")
        agent = await denizen.agents.create(
            "Ada", model=forever(lambda _, __: "Done."), cycle={"silent_reply": "ignore"}
        )
        chatter = await denizen.agents.create("Ben", model=forever(lambda _, __: skip()))
        space = await denizen.spaces.create("Room", [noor, agent, chatter], floor="all")
        what = posting.draft("One more word.")
        for _ in range(250):
            await denizen.db.write(posting.post, space.id, chatter.id, what, hop=HOP_BUDGET + 1)
        await denizen.spaces.post(space, noor, "Ada?")
        async with asyncio.timeout(60):
            await denizen.run_until_idle()
        assert not await denizen.db.read(unfinished)
