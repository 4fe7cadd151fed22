"""Killing processes and starting them again, and judging what is left. Used by the bench and by the crash tests."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select

from bench._crash_child import HastyClock, Life, Post, live, read_journal
from denizen.checker import Violation, check_database
from denizen.storage.database import Database, Tx, statement
from denizen.storage.opening import open_database
from denizen.storage.schema import cycles, entities, messages

KILLED: Final = -9
PRELOADED: Final = [
    "bench._crash_child",
    "denizen.storage.migrating",
    "denizen.storage.postgresql",
    "denizen.storage.sqlite",
    "psycopg_binary",
]
DEADLINE_SECONDS: Final = 60.0
"""After which a process that should have ended is taken to hang."""

_QUESTION = re.compile(r"#(\d+) for ")
_ANSWER = re.compile(r"^re #(\d+) by \w+, (\w+): (\w*)\.")


@cache
def processes() -> Any:
    """Processes are forked from one that has imported everything and runs nothing, so that a life costs no import."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    # The server does not inherit our path, and would silently go without what it cannot find.
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        forkserver.ensure_running()
    finally:
        if inherited is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = inherited
    return context


@dataclass
class Town:
    """A database that outlives its processes."""

    url: str
    folder: Path
    began: int = field(default_factory=time.time_ns)
    lives: int = 0

    def begin(self, bursts: tuple[tuple[Post, ...], ...] = (), **how: Any) -> tuple[BaseProcess, Connection]:
        """A new process, and where it tells how it is."""
        self.lives += 1
        life = Life(self.lives, self.url, self.folder, self.began, bursts, **how)
        context = processes()
        hearing, telling = context.Pipe(duplex=False)
        process = context.Process(target=live, args=(life, telling), name=f"life {life.number}", daemon=True)
        process.start()
        telling.close()
        return process, hearing

    def live(self, bursts: tuple[tuple[Post, ...], ...] = (), **how: Any) -> int:
        """One life from its beginning to its end, by itself or by the kill it was given; gives its exit code."""
        process, hearing = self.begin(bursts, **how)
        with hearing:
            return ended(process)

    def points(self) -> dict[str, int]:
        """The points that the last life passed, each with how often; only of one that ended by itself."""
        return json.loads((self.folder / "points").read_text())

    def verdict(self) -> Verdict:
        return asyncio.run(judge(self))


def ended(process: BaseProcess) -> int:
    """The exit code of a process that ends in time."""
    process.join(DEADLINE_SECONDS)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
        raise TimeoutError(f"{process.name} did not end within {DEADLINE_SECONDS:g} seconds")
    process.close()
    return code


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a town that has come to rest. Numbers are those of questions."""

    lost: list[int]
    """Acknowledged, and not there or not answered."""
    duplicated: list[int]
    """Asked or answered more than once."""
    asked_again: list[tuple[str, int]]
    """Cycle and step of model calls that were made again although their response was stored."""
    outside: list[str]
    """What the world outside saw and should not have, or the other way round."""
    violations: list[Violation]
    defects: list[str]
    """What a process logged as an error."""
    answered: int = 0
    resumed: int = 0
    """Cycles that one life began and another ended, from the step they had reached."""

    @property
    def wrong(self) -> list[str]:
        """Everything that is wrong, in words; empty if nothing is."""
        return [
            *(f"#{number} is lost" for number in self.lost),
            *(f"#{number} is duplicated" for number in self.duplicated),
            *(f"step {step} of cycle {cycle} was asked for again" for cycle, step in self.asked_again),
            *self.outside,
            *map(str, self.violations),
            *self.defects,
        ]


async def judge(town: Town) -> Verdict:
    """What is wrong with a town in which nobody thinks now."""
    db = await open_database(town.url, clock=HastyClock(town.began), announce=lambda _: None)
    try:
        return await _judged(town, db)
    finally:
        await db.close()


_said = statement(
    select(entities.c.kind, messages.c.text)
    .join(entities, entities.c.id == messages.c.author_id)
    .order_by(messages.c.id)
)
_ended = statement(select(cycles.c.id).where(cycles.c.number.is_not(None)))


def _everything_said(tx: Tx) -> list[tuple[Any, ...]]:
    return tx.all(_said)


def _ended_cycles(tx: Tx) -> set[str]:
    return {row[0] for row in tx.all(_ended)}


async def _judged(town: Town, db: Database) -> Verdict:
    said = await db.read(_everything_said)
    questions = Counter(int(found[1]) for kind, text in said if kind == "human" and (found := _QUESTION.search(text)))
    answers = [found for kind, text in said if kind == "agent" and (found := _ANSWER.match(text))]
    times = Counter(int(found[1]) for found in answers)
    journal = read_journal(town.folder)
    acknowledged = {line["number"] for line in journal if line["what"] == "posted"}
    return Verdict(
        lost=sorted(n for n in acknowledged | set(questions) if not questions[n] or not times[n]),
        duplicated=sorted(n for n in set(questions) | set(times) if questions[n] > 1 or times[n] > 1),
        asked_again=_asked_again(journal),
        outside=[*_outside(town.folder, [(int(a[1]), a[2], a[3]) for a in answers])],
        violations=await check_database(db),
        defects=_text(town.folder / "defects").splitlines(),
        answered=len(times),
        resumed=_resumed(journal, await db.read(_ended_cycles)),
    )


def _asked_again(journal: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """The model calls that were made although the life that made them found their response stored."""
    stored: dict[str, int] = {}
    again: list[tuple[str, int]] = []
    for line in journal:
        if line["what"] == "found":
            stored = line["stored"]
        elif line["what"] == "asked" and line["step"] < stored.get(line["cycle"], 0):
            again.append((line["cycle"], line["step"]))
    return again


def _resumed(journal: list[dict[str, Any]], ended_cycles: set[str]) -> int:
    found = [line for line in journal if line["what"] == "found"]
    return len({cycle for line in found for cycle in line["open"] if line["stored"].get(cycle)} & ended_cycles)


def _outside(folder: Path, answers: list[tuple[int, str, str]]) -> list[str]:
    """A reported effect happens at most once, and the model knows of it or knows that it does not know."""
    noted, marked = _lines(folder / "note"), _lines(folder / "mark")
    wrong = [f"#{number} was noted {times} times" for number, times in noted.items() if times > 1]
    for number, kind, outcome in answers:
        if kind in ("mark", "both") and not marked[number]:
            wrong.append(f"#{number} was never marked")
        if kind == "note" and outcome == "noted" and not noted[number]:
            wrong.append(f"#{number} was not noted, though its answer says so")
    return wrong


def _lines(path: Path) -> Counter[int]:
    return Counter(map(int, _text(path).split()))


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
