# ruff: noqa: INP001  a program beside the page it writes, no package
"""Writes docs/walk.md: which functions run for one message, one panel round and one memory pass. Run `make walk`.

The functions come from a trace of real runs with the scripted model, the manual clock and SQLite in a file.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import logging
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

import structlog

import denizen
from denizen import ManualClock, Runtime, forever, reply, scripted
from denizen.api.memory import Memory
from denizen.api.panels import Panels
from denizen.api.spaces import Spaces
from denizen.memory.settings import MemoryOptions

PAGE: Final = Path(__file__).with_name("walk.md")
SOURCE: Final = Path(denizen.__file__).parent
MOST_MODULES: Final = 25
"""A message must not pass through more modules than this."""
LIBRARY: Final = ("storage/", "bus/", "models/", "telemetry/", "clock.py", "errors.py", "failpoints.py", "ids.py")
"""Ports and basics: the page names what uses them."""
WRITES: Final = {"SqliteTx.run", "SqliteTx.many", "SqliteTx.announce"}
JOB: Final = "storage/work.py"
STARTS: Final = (
    *(each.__qualname__ for each in (Spaces.post, Panels.ask, Memory.summarize)),
    *("Residents._live", "Moderator."),
)
"""Where runs begin: with a call of this program, and in the tasks of agents and of the moderator. Other loops of the
runtime look at the same time whether something is due: they are not part of a run."""
LOOPS: Final = SOURCE / "leased_tasks.py"
"""Calls what is due, of every kind: a run begins with what it calls."""
BY_CHANCE: Final = {
    ("panel/moderator.py", "Moderator._compare"),
    ("agents/residents.py", "Residents._worth_thinking"),
    ("agents/residents.py", "Residents._waking"),
    ("agents/residents.py", "Residents._open"),
}
"""What runs or not depending on which task is quicker: looking whether an answer under way has to stop, and an agent
that looks for more after its cycle because a hint about the same message came late."""

INTRODUCTION: Final = f"""# The walk

What runs for one message, one panel round and one memory pass: read these functions in this order to learn how Denizen
works. `docs/make_walk.py` writes this page from a trace of real runs, with the scripted model, the manual clock and
SQLite; `make walk` runs it, and `tests/test_walk.py` fails when the page is out of date.

A function is listed once, where it is first called, if it is a **step**: it waits (`async`) or it changes the database,
itself or through what it calls. The text is the beginning of its docstring. Not listed are steps without a docstring;
functions that only compute, format or read; and the ports and basics below all steps: `storage`, `bus`, `models`,
`telemetry`, `clock.py`, `errors.py`, `failpoints.py` and `ids.py`. A message passes through a module if a step runs in
it, listed or not: through {MOST_MODULES} modules at most, or `make walk` fails. Functions that these steps call to
compute, format or read are in some sixty modules more.
"""

Place = tuple[str, str]
"""The path of a module below src/denizen, and the qualified name of a function in it."""


@dataclass
class Trace:
    """Which functions of Denizen ran while `is_on`, by whom each was first called, and which of them are steps."""

    is_on: bool = False
    callers: dict[Place, tuple[Place, ...]] = field(default_factory=dict[Place, tuple[Place, ...]])
    steps: set[Place] = field(default_factory=set[Place])
    _jobs: dict[int, tuple[Place, ...]] = field(default_factory=dict[int, tuple[Place, ...]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def profile(self, frame: FrameType, event: str, _arg: object) -> None:
        """For `sys.setprofile`: note the call. A coroutine is called each time that it goes on."""
        if event != "call" or (place := place_of(frame.f_code)) is None:
            return
        with self._lock:
            if place == (JOB, "Job.__init__"):
                self._jobs[id(frame.f_locals["self"])] = self._callers_of(frame)
            if not self.is_on:
                return
            callers = self._callers_of(frame)
            chain = (*callers, place)
            if not chain[0][1].startswith(STARTS) or not BY_CHANCE.isdisjoint(chain):
                return
            if place[1] in WRITES:
                self.steps.update(callers)
            if frame.f_code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
                self.steps.add(place)
            self.callers.setdefault(place, callers)

    def _callers_of(self, frame: FrameType) -> tuple[Place, ...]:
        """The functions of Denizen that led here, outermost first. For a job of a database thread: who asked for it."""
        found: list[Place] = []
        caller = frame.f_back
        while caller is not None:
            place = place_of(caller.f_code)
            if place == (JOB, "Job.run"):
                return self._jobs[id(caller.f_locals["self"])] + tuple(reversed(found))
            if place is not None:
                found.append(place)
            caller = caller.f_back
        return tuple(reversed(found))

    def in_order(self) -> list[Place]:
        """The steps, each behind its first caller and before what that caller calls next, whatever ran beside it."""
        called: dict[Place | None, list[Place]] = {}
        for place in (each for each in self.callers if self._counts(each)):
            caller = next((each for each in reversed(self.callers[place]) if self._counts(each)), None)
            called.setdefault(caller, []).append(place)

        def below(caller: Place | None) -> Iterator[Place]:
            for place in called.get(caller, ()):
                yield place
                yield from below(place)

        return list(below(None))

    def _counts(self, place: Place) -> bool:
        return place in self.steps and not place[0].startswith(LIBRARY)


@cache
def place_of(code: CodeType) -> Place | None:
    """Where a function of Denizen is defined; None for functions of others, lambdas and comprehensions."""
    path = Path(code.co_filename)
    if not path.is_relative_to(SOURCE) or path == LOOPS or code.co_qualname.endswith(">"):
        return None
    return path.relative_to(SOURCE).as_posix(), code.co_qualname


@cache
def docstrings(path: str) -> dict[str, str]:
    """The first paragraph of the docstring of each function in a module that has one, by qualified name."""
    found: dict[str, str] = {}

    def read(node: ast.AST, prefix: str) -> None:
        for each in ast.iter_child_nodes(node):
            match each:
                case ast.ClassDef():
                    read(each, f"{prefix}{each.name}.")
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    if (text := ast.get_docstring(each)) is not None:
                        found[prefix + each.name] = " ".join(text.split("\n\n")[0].split())
                    read(each, f"{prefix}{each.name}.<locals>.")
                case _:
                    pass

    read(ast.parse((SOURCE / path).read_text()), "")
    return found


Run = Callable[[Runtime, Trace], Awaitable[None]]


async def message(runtime: Runtime, trace: Trace) -> None:
    """The second message, so that what happens once in a life (the first era, the first lease) is not in it."""
    noor = await runtime.people.create("Noor")
    model = scripted(reply("Two eggs."), "Told Noor how many.", reply("In the fridge."), "Told Noor where.")
    ada = await runtime.agents.create("Ada", model=model)
    kitchen = await runtime.spaces.create("Kitchen", [noor, ada])
    async with runtime.living():
        await runtime.spaces.post(kitchen, noor, "How many eggs?")
        await runtime.run_until_idle()
        with recording(trace):
            await runtime.spaces.post(kitchen, noor, "Where are they?")
            await runtime.run_until_idle()


async def panel_round(runtime: Runtime, trace: Trace) -> None:
    runtime.models.register("advisor", forever(lambda _messages, _info: "I would wait."))
    noor = await runtime.people.create("Noor")
    panel = await runtime.panels.create("Board", [noor], advisors=["Seth", "Pema"], model="advisor")
    async with runtime.living():
        with recording(trace):
            await runtime.panels.ask(panel, noor, "Shall we move?")
            await runtime.run_until_idle()


async def memory_pass(runtime: Runtime, trace: Trace) -> None:
    found = {"facts": [{"text": "Noor lives in Lisbon.", "sources": [1]}]}
    runtime.models.register("utility", scripted(json.dumps({"summary_markdown": "They met.", "memory_json": found})))
    noor = await runtime.people.create("Noor")
    kitchen = await runtime.spaces.create("Kitchen", [noor])
    await runtime.spaces.join(kitchen, await runtime.agents.create("Ada"), attention="none")
    for text in ("I live in Lisbon.", "It rains.", "Hm.", "Still."):
        await runtime.spaces.post(kitchen, noor, text)
    with recording(trace):
        await runtime.memory.summarize(kitchen)


FLOWS: Final[tuple[tuple[str, str, Run], ...]] = (
    ("One message", "A person writes to an agent that is awake. It answers with `send_message` and sleeps.", message),
    ("One panel round", "A person asks a panel with two advisors, and both answer.", panel_round),
    ("One memory pass", "A utility model sums up a conversation and finds one fact to remember.", memory_pass),
)
MEMORY: Final = {
    "memoryCompaction": {
        "profiles": {"quick": {"tailTurnsToKeep": 2, "minTurnsToSummarize": 2, "cooldownMs": 0, "modelId": "utility"}},
        "defaultProfile": "quick",
    }
}


@contextmanager
def recording(trace: Trace) -> Generator[None]:
    trace.is_on = True
    try:
        yield
    finally:
        trace.is_on = False


async def run(flow: Run, trace: Trace, folder: Path) -> None:
    """Open a runtime of its own and run the flow in it."""
    async with Runtime(
        f"sqlite:///{folder}/walk.db",
        clock=ManualClock(),
        default_model="demo",
        memory=MemoryOptions(presets=lambda: MEMORY) if flow is memory_pass else None,
    ) as runtime:
        await flow(runtime, trace)


def traced(flow: Run) -> Trace:
    """What ran in the flow, in all threads."""
    trace = Trace()
    with tempfile.TemporaryDirectory() as folder:
        threading.setprofile(trace.profile)
        sys.setprofile(trace.profile)
        try:
            asyncio.run(run(flow, trace, Path(folder)))
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return trace


def section(title: str, what: str, trace: Trace) -> str:
    steps = trace.in_order()
    passed = len({path for path, _ in steps})
    if title == FLOWS[0][0] and passed > MOST_MODULES:
        sys.exit(f"{title} passes through {passed} modules, and may through {MOST_MODULES}. Merge or bypass some.")
    rows: list[str] = []
    last = ""
    for path, name in steps:
        if (text := docstrings(path).get(name)) is not None:
            rows.append(f"| {'' if path == last else f'`{path}`'} | `{name}` | {text.replace('|', chr(92) + '|')} |")
            last = path
    counted = f"It has {len(steps)} steps in {passed} modules."
    return f"## {title}\n\n{what} {counted}\n\n| module | function | what it does |\n|---|---|---|\n" + "\n".join(rows)


def page() -> str:
    return (
        "\n\n".join([INTRODUCTION.strip(), *(section(title, what, traced(flow)) for title, what, flow in FLOWS)]) + "\n"
    )


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(page())
    else:
        PAGE.write_text(page())
