"""One life of a process that is meant to be killed: a small town on a given database, whose people post numbered
questions and whose agents answer each by its number.

What the agents do follows from their history alone, so that a new life goes on where the last one was cut off. What
has to be known about a life afterwards is in its journal, a file of JSON lines that no kill can take back.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar, Final

import structlog
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart
from sqlalchemy import ColumnElement, ScalarSelect, func, select

from denizen import Runtime, failpoints, tool
from denizen.agents.pace import Pace
from denizen.agents.registry import Agent
from denizen.clock import Instant, SystemClock
from denizen.cycles.records import calls_of, open_cycle_id
from denizen.errors import AlreadySettled, ModelRejected, ModelUnreachable, NotFound
from denizen.ids import AgentId, MessageId, SpaceId
from denizen.memory import rolling
from denizen.memory.settings import MemoryOptions
from denizen.models.catalog import DEMO
from denizen.models.scripted import Call, Info, Piece, ScriptedModel, Turn, call, forever, reply, skip
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.storage import postgresql, sqlite
from denizen.storage.database import Tx, statement
from denizen.storage.schema import calls, cycles, events, log, plans
from denizen.tools.settings import ClientTool, HttpTool
from denizen.tools.tool import OnCrash, OutsideTool

HASTE: Final = 200
"""How many times faster than ours the town's clock runs: a lease of 30 s is over in 0.15."""
SWEEP_SECONDS: Final = 10.0
"""How often agents look for work that nobody told them of: as often as leases are renewed. At the usual two seconds,
which are 10 ms here, a life would look more often than it thinks."""
CONNECTIONS: Final = 3
"""To PostgreSQL. Enough to be in each other's way; each one more costs its server as much as a life costs the process,
because every connection reads the catalogue and plans every statement anew."""
TIRED: Final = 3
"""Failed attempts after which nobody should be killed once more: at five, the design gives up, and says so."""

AGENTS: Final = ("ada", "bo", "cleo")
PEOPLE: Final = ("noor", "finn")
SPACES: Final = {"desk": ("noor", "ada"), "den": ("finn", "bo"), "square": ("noor", "finn", "ada", "bo", "cleo")}

AFTERWARDS: Final = {"later": "late", "timer": "rung"}
"""Kinds of questions that are answered in another cycle, and what they are called there."""
CONFIRM: Final = ClientTool(
    name="confirm",
    description="Ask a person before you answer.",
    parameters={
        "type": "object",
        "properties": {"number": {"type": "integer"}, "then": {"type": "string"}},
        "required": ["number", "then"],
    },
)

_TASK = re.compile(r"#(\d+) for (\w+) in (\w+): (\w+)")
_PREVIEW: Final = "[INBOX PREVIEW"
_COMING = re.compile(r"^Your next plans: .*$", re.MULTILINE)
"""The line of an inbox message that tells which timers are still to ring."""
_ANSWER = re.compile(r"^re #(\d+) ")
_SPACE = re.compile(r"spaceId: ([0-9a-f-]{36})")


@dataclass(frozen=True, slots=True)
class Post:
    """A question that a person asks an agent."""

    number: int
    space: str
    author: str
    agent: str
    kind: str
    """plain; note, mark: by an outside tool; both: by both, and the answer in the same response; silent: after a
    reminder; balk, falter: the model fails before or after the answer; stammer: its stream breaks; linger: its last
    words take so long that the process is told to stop; send, fetch: by a request over HTTP; confirm: a person is
    asked first; later, timer: answered in another cycle, woken by the result of a call that nobody waited for or by a
    timer."""

    @property
    def text(self) -> str:
        return f"@{self.agent} #{self.number} for {self.agent} in {self.space}: {self.kind}"

    @property
    def id(self) -> MessageId | None:
        """Every other question has an id of its author's choosing, and is asked again if it was not acknowledged."""
        return MessageId(f"question-{self.number}") if self.number % 2 else None


@dataclass(frozen=True, slots=True)
class Life:
    """What one process is to do."""

    number: int
    url: str
    folder: Path
    began: int
    """When the town was founded, in nanoseconds."""
    outside: str
    """Where the service is that tools reach over HTTP."""
    bursts: tuple[tuple[Post, ...], ...] = ()
    """What is asked; all of a burst is answered before the next, if `patient`."""
    kill: tuple[str, int] | None = None
    """Die at this point, when it is passed for the so-manieth time."""
    patient: bool = True
    """Wait between bursts, and end when all is quiet. Otherwise live until killed."""
    remembers: bool = False
    """Whether conversations are summed up, and what they came to is remembered."""
    flushes: bool = True
    """Whether SQLite waits for the disk. What a process has written outlives it either way; a machine is another
    matter."""


@dataclass(frozen=True)
class HastyClock:
    """The machine's clock, but faster since the town was founded; the same for every process."""

    began: int

    def now(self) -> Instant:
        return Instant((self.began + (time.time_ns() - self.began) * HASTE) // 1_000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / HASTE)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        return await SystemClock().wait(event, seconds / HASTE)


@dataclass
class Journal:
    """What happened, in order. A line is either there or not."""

    path: Path
    life: int

    def write(self, what: str, **fields: Any) -> None:
        append_line(self.path, json.dumps({"life": self.life, "what": what, **fields}))


def append_line(path: Path, line: str) -> None:
    """The line outlives this process when this returns."""
    file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


def read_journal(folder: Path) -> list[dict[str, Any]]:
    path = folder / "journal"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# The agents


@dataclass(frozen=True, slots=True)
class _Task:
    number: int
    space: str
    kind: str


@dataclass(frozen=True, slots=True)
class _Cycle:
    """What a model can see of the cycle it is in."""

    inbox: str
    """What it was woken by, and what urgent came meanwhile."""
    steps: int
    called: tuple[tuple[str, dict[str, Any]], ...]
    heard: str
    """What it was told since, results and reminders. Not previews of the inbox: an answer that is shown there comes
    again with its event, and would be acted on twice."""

    @classmethod
    def of(cls, messages: Sequence[ModelMessage]) -> _Cycle:
        first = max(at for at, each in enumerate(messages) if _prompt(each).startswith("[INBOX - "))
        since = messages[first + 1 :]
        updates = [told for each in since if (told := _prompt(each)).startswith("[MID-CYCLE UPDATE")]
        responses = [each for each in since if isinstance(each, ModelResponse)]
        called = [(each.tool_name, each.args_as_dict()) for response in responses for each in calls_of(response)]
        told = [each for each in since if isinstance(each, ModelRequest) and not _prompt(each).startswith(_PREVIEW)]
        parts = [part for each in told for part in each.parts]
        heard = "\n".join(str(part.content) for part in parts if isinstance(part, UserPromptPart | ToolReturnPart))
        return cls("\n".join([_prompt(messages[first]), *updates]), len(responses), tuple(called), heard)

    def answered(self) -> set[int]:
        texts = [str(arguments.get("text", "")) for name, arguments in self.called if name == "send_message"]
        return {int(found[1]) for each in texts if (found := _ANSWER.match(each))}

    def puts_off(self, task: _Task) -> bool:
        """Whether it is answered in another cycle; so is what nobody has confirmed when something else came up."""
        return task.kind in AFTERWARDS or (task.kind == "confirm" and f"confirmed {task.number}" not in self.heard)

    def noted(self, tool_name: str) -> set[int]:
        if tool_name == "timer":
            set_for = [str(arguments["reason"]) for name, arguments in self.called if name == "set_timer"]
            return {int(found[1]) for each in set_for if (found := _TASK.match(each))}
        return {arguments["number"] for name, arguments in self.called if name == tool_name}


def _prompt(message: ModelMessage) -> str:
    part = message.parts[0] if message.parts else None
    return part.content if isinstance(part, UserPromptPart) and isinstance(part.content, str) else ""


@dataclass
class Script:
    """How one agent thinks: a function of its history, but for failures, of which it has each once in a life."""

    handle: str
    town: Town
    failed: set[int] = field(default_factory=set[int])
    lingering: bool = False

    def model(self) -> ScriptedModel:
        return forever(self.decide, name=self.handle, pause=self.pause, chunk=40, record=False)

    async def pause(self) -> None:
        if self.lingering:
            self.town.lingers.set()
            await asyncio.Event().wait()

    async def decide(self, messages: list[ModelMessage], _info: Info) -> Turn:
        cycle = _Cycle.of(messages)
        cycle_id = await self.town.runtime.db.read(open_cycle_id, self.town.agents[self.handle])
        self.town.journal.write("asked", cycle=cycle_id, step=cycle.steps)
        tasks = [
            _Task(int(number), space, kind)
            for number, agent, space, kind in _TASK.findall(_COMING.sub("", cycle.inbox))
            if agent == self.handle
        ]
        return self._turn(cycle, tasks) if tasks else skip("not for me")

    def _turn(self, cycle: _Cycle, tasks: list[_Task]) -> Turn:
        if (failure := self._failure(cycle, tasks)) is not None:
            return failure
        if all(task.kind == "silent" for task in tasks) and "[REMINDER]" not in cycle.heard and not cycle.called:
            return "Somebody should answer that."
        outside = self._outside(cycle, tasks)
        open_tasks = [task for task in tasks if task.number not in cycle.answered() and not cycle.puts_off(task)]
        if outside and not (open_tasks and all(task.kind == "both" for task in open_tasks)):
            return outside
        if open_tasks:
            return [*outside, *self._answers(cycle, open_tasks)]
        self.lingering = self.town.may_linger and any(task.kind == "linger" for task in tasks)
        return f"Answered {', '.join(str(task.number) for task in tasks)}. " + "Nothing is pending. " * 5

    def _failure(self, cycle: _Cycle, tasks: list[_Task]) -> Turn | None:
        """Each task of such a kind fails once in a life, at its own moment of the cycle."""
        for task in tasks:
            answered = task.number in cycle.answered()
            if task.number in self.failed or (task.kind == "falter") != answered:
                continue
            if task.kind in ("balk", "falter"):
                self.failed.add(task.number)
                return ModelRejected("The model does not like this question.")
            if task.kind == "stammer":
                self.failed.add(task.number)
                return [reply(_answer(task, self.handle, "")), ModelUnreachable("The stream broke.")]
        return None

    def _outside(self, cycle: _Cycle, tasks: list[_Task]) -> list[Piece]:
        return [
            self._call(name, task)
            for task in tasks
            for name in ("note", "mark", "send", "fetch", "confirm", "later", "timer")
            if task.kind == name or (task.kind == "both" and name in ("note", "mark"))
            if task.number not in cycle.noted(name)
        ]

    def _call(self, name: str, task: _Task) -> Piece:
        told = f"#{task.number} for {self.handle} in {task.space}: {AFTERWARDS.get(name)}"
        if name == "timer":
            return call("set_timer", after="1 minute", reason=told)
        if name in ("send", "fetch"):
            return call(name, number=task.number, book=str(self.town.life.folder / name))
        if name == "confirm":
            return call(name, number=task.number, then=f"#{task.number} for {self.handle} in {task.space}: confirmed")
        return call(name, number=task.number, then=told) if name == "later" else call(name, number=task.number)

    def _answers(self, cycle: _Cycle, tasks: list[_Task]) -> list[Piece]:
        pieces: list[Piece] = []
        # What comes afterwards may come from no space; so does an answer to a question that was asked in several.
        afterwards = any(task.kind in (*AFTERWARDS.values(), "confirmed") for task in tasks)
        several = afterwards or len(set(_SPACE.findall(cycle.inbox))) > 1
        for task in tasks:
            if several:
                pieces.append(call("enter_space", space_id=self.town.spaces[task.space]))
            pieces.append(_said(task, self.handle, cycle))
        return pieces


def _said(task: _Task, handle: str, cycle: _Cycle) -> Call:
    outcome = next((word for word in ("noted", "confirmed") if f"{word} {task.number}" in cycle.heard), "unknown")
    return reply(_answer(task, handle, outcome))


def _answer(task: _Task, handle: str, outcome: str) -> str:
    return f"re #{task.number} by {handle}, {task.kind}: {outcome}. " + "And some more words, to be streamed. " * 3


# What conversations come to

MEMORY_MODEL: Final = "script:memory"
AT_ONCE: Final = 2
"""Messages of a pass: a question and its answer."""
PRESETS: Final[dict[str, Any]] = {
    "memoryCompaction": {
        "profiles": {
            "hasty": {
                "cooldownMs": 0,
                "tailTurnsToKeep": 0,
                "minTurnsToSummarize": AT_ONCE,
                "maxTurnsToSummarizePerPass": AT_ONCE,
                "modelId": MEMORY_MODEL,
            }
        },
        "defaultProfile": "hasty",
    }
}
_NUMBERED = re.compile(r"^\[(\d+)\] ", re.MULTILINE)
_SUMMARY = re.compile(r'^summary_markdown: "([\d ]*)"$', re.MULTILINE)
_MEMORY = re.compile(r"^memory_json: (.*)$", re.MULTILINE)
_CARRIED: Final = 40
"""Things that a pass carries over from the one before."""


def sum_up(messages: list[ModelMessage], _info: Info) -> str:
    """The numbers of all messages so far, and of each that it was said: so it can be counted what was summed up."""
    told = _prompt(messages[1])
    numbers = [int(each) for each in _NUMBERED.findall(told)]
    summary, memory = _SUMMARY.search(told), _MEMORY.search(told)
    known = json.loads(memory[1]).get("facts", []) if memory else []
    facts = [*known, *({"text": was_said(number), "sources": [number]} for number in numbers)]
    said = " ".join([*([summary[1]] if summary else []), *map(str, numbers)])
    return json.dumps({"summary_markdown": said, "memory_json": {"facts": facts[-_CARRIED:]}})


def was_said(number: int) -> str:
    return f"Message {number} was said."


# The town


class Town:
    """The runtime of one life, with whoever lives in it."""

    def __init__(self, life: Life) -> None:
        self.life = life
        Books.folder = life.folder
        self.journal = Journal(life.folder / "journal", life.number)
        self.clock = HastyClock(life.began)
        self.lingers = asyncio.Event()
        self.may_linger = False
        self.agents: dict[str, AgentId] = {}
        self.people: dict[str, Entity] = {}
        self.spaces: dict[str, SpaceId] = {}
        self.scripts = {handle: Script(handle, self) for handle in AGENTS}
        self.runtime = Runtime(
            life.url,
            models={
                MEMORY_MODEL: forever(sum_up, record=False),
                **{f"script:{handle}": script.model() for handle, script in self.scripts.items()},
            },
            memory=MemoryOptions(presets=lambda: PRESETS) if life.remembers else None,
            tools=outside_tools(),
            clock=self.clock,
            pace=Pace(sweep_seconds=SWEEP_SECONDS, grace_seconds=0),
            # Named, or each life would first ask the machine which models it has: half of what a short one costs.
            default_model=DEMO,
        )

    async def settle(self) -> None:
        """Everyone is there: found, or created where an earlier life did not come so far."""
        for name in PEOPLE:
            self.people[name] = await _found_or(
                lambda name=name: self.runtime.people.find(name), lambda name=name: self.runtime.people.create(name)
            )
        for handle in AGENTS:
            agent = await _found_or(
                lambda handle=handle: self.runtime.people.find(handle), lambda handle=handle: self._create(handle)
            )
            self.agents[handle] = AgentId(agent.id)
        theirs = await self.runtime.db.read(_spaces_of_people, [each.id for each in self.people.values()])
        for name, members in SPACES.items():
            self.spaces[name] = theirs.get(name) or await self._open(name, members)
        await self.runtime.spaces.set_attention(self.spaces["square"], self.agents["cleo"], "mentions")

    async def _create(self, handle: str) -> Agent:
        return await self.runtime.agents.create(
            handle.title(),
            model=f"script:{handle}",
            tools=["note", "mark", "later", CONFIRM, *http_tools(self.life.outside)],
            window={"result_characters": 500},
            # What the service answers is text from outside, and marked; but no person stands by to approve each note.
            effects={"after_outside_text": "allow"},
        )

    async def _open(self, name: str, members: Sequence[str]) -> SpaceId:
        there = [await self.runtime.people.find(each) for each in members]
        space = await self.runtime.spaces.create(name, there, floor="all")
        return space.id

    async def ask(self, post: Post, known: set[int], begun: set[int]) -> None:
        """Post it, unless an earlier life did, or may have and there is no id by which to do it again."""
        if post.number in known or (post.id is None and post.number in begun):
            return
        self.journal.write("posting", number=post.number)
        await self.runtime.spaces.post(self.spaces[post.space], self.people[post.author], post.text, id=post.id)
        self.journal.write("posted", number=post.number)

    async def quiet(self) -> None:
        """No agent has anything to do, nor will have. Meanwhile people answer what they are asked."""
        looked_at = -1
        while True:
            # Nobody else writes: without a commit, the answer is the same as before.
            if (commits := self.runtime.db.commits) != looked_at:
                looked_at = commits
                unsettled, waiting = await self.runtime.db.read(_unsettled, self.life.remembers)
                if not unsettled:
                    return
                for person in self.people.values() if waiting else ():
                    await self._answer(person)
            await self.clock.sleep(1)

    async def _answer(self, person: Entity) -> None:
        for asked in await self.runtime.calls.waiting(person):
            told = json.loads(asked.arguments)
            try:
                await self.runtime.calls.answer(asked, f"confirmed {told['number']}: {told['then']}", by=person)
            except AlreadySettled:
                continue


async def _found_or(find: Callable[[], Awaitable[Any]], create: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await find()
    except NotFound:
        return await create()


class Books:
    """Where the tools of this process write: in the folder of its life."""

    folder: ClassVar[Path]


@cache
def outside_tools() -> list[OutsideTool]:
    """Three tools that leave a line in a file: the world outside, where it can be counted what happened.

    They are made once, before the lives are forked: to make them takes a tenth of a short life.
    """

    @tool(on_crash="report")
    def note(number: int) -> str:
        """Note a number, once."""
        append_line(Books.folder / "note", str(number))
        return f"noted {number}"

    @tool(on_crash="retry")
    def mark(number: int) -> str:
        """Mark a number, as often as you like."""
        append_line(Books.folder / "mark", str(number))
        return f"marked {number}. " + "A long story follows. " * 50

    @tool(on_crash="retry", background=True)
    def later(number: int, then: str) -> str:
        """Think of a number, and say something about it when nobody waits any more."""
        append_line(Books.folder / "later", str(number))
        return then

    return [note, mark, later]


def http_tools(address: str) -> list[HttpTool]:
    """The same two over HTTP, done by a service that no kill reaches: it writes into the book that it is told."""
    properties = {"number": {"type": "integer"}, "book": {"type": "string"}}
    both: list[tuple[str, OnCrash]] = [("send", "report"), ("fetch", "retry")]
    return [
        HttpTool(
            name=name,
            description="Tell a service a number.",
            method="POST",
            url=f"http://{address}/{name}",
            parameters={"type": "object", "properties": properties, "required": ["number", "book"]},
            allow_private=(address,),
            on_crash=on_crash,
        )
        for name, on_crash in both
    ]


def _spaces_of_people(tx: Tx, people: Sequence[str]) -> dict[str, SpaceId]:
    return {space.name: space.id for each in people for space in directory.spaces_of(tx, each)}  # pyright: ignore[reportArgumentType]


def _count(*conditions: ColumnElement[bool]) -> ScalarSelect[int]:
    return select(func.count()).where(*conditions).scalar_subquery()


# One query, because it is asked all the time while the agents think.
_left = statement(
    select(
        _count(calls.c.state == "waiting"),
        _count(cycles.c.number.is_(None)),
        _count(events.c.state.in_(("pending", "taken")), (events.c.wakes == 1) | (events.c.state == "taken")),
        _count(plans.c.state == "waiting"),
    )
)


def _unsettled(tx: Tx, remembers: bool) -> tuple[int, int]:
    """How much there is still to do, and how many calls somebody else has to answer."""
    row = tx.one(_left)
    assert row is not None
    to_sum_up = len(rolling.long_unsummed(tx, AT_ONCE)) if remembers else 0
    return to_sum_up + sum(row), row[0]


_responses = statement(select(log.c.cycle_id, func.count()).where(log.c.kind == "response").group_by(log.c.cycle_id))
_unended = statement(select(cycles.c.id).where(cycles.c.number.is_(None)))
_tried = statement(select(func.max(events.c.attempts)).where(events.c.state.in_(("pending", "taken"))))
_resumed = statement(select(func.max(cycles.c.attempts)).where(cycles.c.number.is_(None)))


@dataclass(frozen=True, slots=True)
class Legacy:
    """What a life finds when it begins."""

    stored: dict[str, int]
    """How many responses each cycle holds."""
    open: list[str]
    attempts: int


def legacy(tx: Tx) -> Legacy:
    attempts = [row[0] or 0 for query in (_tried, _resumed) if (row := tx.one(query)) is not None]
    return Legacy(dict(tx.all(_responses)), [row[0] for row in tx.all(_unended)], max(attempts, default=0))


# The life


@dataclass(frozen=True, slots=True)
class _Defects:
    """Keeps what is logged as an error: a trial in which there is one has failed, whatever else it shows."""

    path: Path

    def __call__(self, _logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
        if method in ("error", "exception", "critical"):
            event = structlog.processors.format_exc_info(_logger, method, event)
            append_line(self.path, json.dumps(event, default=repr))
        raise structlog.DropEvent


def live(life: Life, parent: Connection | None = None) -> None:
    """The whole life of a process. `parent` hears "living", or "tired" if it must not be killed now, and "quiet"."""
    structlog.configure(processors=[_Defects(life.folder / "defects")])
    postgresql.CONNECTIONS = CONNECTIONS
    if not life.flushes:
        sqlite.SYNCHRONOUS = "OFF"
    if life.kill is not None:
        point, passes = life.kill
        failpoints.arm(point, lambda: os.kill(os.getpid(), signal.SIGKILL), after=passes - 1)
    with failpoints.recording() if life.patient else nullcontext([]) as points:
        asyncio.run(_live(life, (lambda _word: None) if parent is None else parent.send))
    (life.folder / "points").write_text(json.dumps(Counter(points)))


async def _live(life: Life, tell: Callable[[str], None]) -> None:
    town = Town(life)
    before = read_journal(life.folder)
    known = {line["number"] for line in before if line["what"] == "posted"}
    begun = {line["number"] for line in before if line["what"] == "posting"}
    async with town.runtime:
        await town.settle()
        found = await town.runtime.db.read(legacy)
        town.journal.write("found", stored=found.stored, open=found.open)
        if found.attempts >= TIRED:
            failpoints.disarm()
        tell("tired" if found.attempts >= TIRED else "living")
        for burst in life.bursts or ((),):
            await _live_through(town, burst, known, begun)
            tell("quiet")
        if not life.patient:
            await asyncio.Event().wait()


async def _live_through(town: Town, burst: Sequence[Post], known: set[int], begun: set[int]) -> None:
    """Ask, and wait until all is answered; in the first life, be told to stop where an agent lingers."""
    town.may_linger = town.life.number == 1 and any(post.kind == "linger" for post in burst)
    async with town.runtime.living():
        for post in burst:
            await town.ask(post, known, begun)
        if town.may_linger:
            await _linger(town)
        else:
            await town.quiet()
    if town.may_linger:
        town.may_linger = False
        for script in town.scripts.values():
            script.lingering = False
        await _live_through(town, (), known, begun)


async def _linger(town: Town) -> None:
    """An agent is in the middle of its words, and its lease has been renewed meanwhile."""
    await town.lingers.wait()
    renewed = asyncio.Event()
    loop = asyncio.get_running_loop()
    if town.life.kill is None or town.life.kill[0] != "committed:renew":
        failpoints.arm("committed:renew", lambda: loop.call_soon_threadsafe(renewed.set))
    await renewed.wait()
    if town.life.kill is None or town.life.kill[0] != "committed:renew":
        failpoints.disarm("committed:renew")
