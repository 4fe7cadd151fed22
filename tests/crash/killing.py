"""Killing processes and starting them again, and judging what is left."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import func, select

from denizen.checker import Violation, check_database
from denizen.memory import rolling
from denizen.storage.database import Database, Tx, statement
from denizen.storage.opening import open_database
from denizen.storage.schema import cycles, entities, ledger, memories, messages, rollings
from tests.crash.life import AT_ONCE, HastyClock, Life, Post, append_line, live, read_journal, was_said

T = TypeVar("T")

KILLED: Final = -9
PRELOADED: Final = [
    "tests.crash.life",
    "denizen.storage.migrating",
    "denizen.storage.postgresql",
    "denizen.storage.sqlite",
    "psycopg_binary",
    "tests.crash.approving",
    "tests.crash.bridging",
    "tests.crash.chaptering",
    "tests.crash.filing",
    "tests.crash.stopping",
    "tests.crash.thinking",
    "tests.panel.dying",
    "tests.crash.rehearsal",
]
DEADLINE_SECONDS: Final = 200.0
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


class _Service(BaseHTTPRequestHandler):
    """Writes each number that it is told, with the key of the request, into the book it is told, and says so."""

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        append_line(Path(told["book"]), f"{told['number']} {self.headers['Idempotency-Key']}")
        answer = f"noted {told['number']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is not ours
        """Nothing: what counts is in the book."""


@cache
def service() -> str:
    """The address of a service that outlives the processes."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Service)
    threading.Thread(target=server.serve_forever, daemon=True, name="service of the towns").start()
    return f"127.0.0.1:{server.server_address[1]}"


@dataclass
class Town:
    """A database that outlives its processes."""

    url: str
    folder: Path
    began: int = field(default_factory=time.time_ns)
    flushes: bool = True
    """As of `Life`."""
    lives: int = 0

    def begin(self, bursts: tuple[tuple[Post, ...], ...] = (), **how: Any) -> tuple[BaseProcess, Connection]:
        """A new process, and where it tells how it is."""
        self.lives += 1
        life = Life(self.lives, self.url, self.folder, self.began, service(), bursts, flushes=self.flushes, **how)
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


def lived(live: Callable[[T], None], life: T) -> int:
    """The exit code of a process that lives this life."""
    process = processes().Process(target=live, args=(life,), daemon=True)
    process.start()
    return ended(process)


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
    memory: list[str]
    """What is wrong with what conversations came to."""
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
            *self.memory,
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
        memory=[*await db.read(_misremembered)],
        violations=await check_database(db),
        defects=_text(town.folder / "defects").splitlines(),
        answered=len(times),
        resumed=_resumed(journal, await db.read(_ended_cycles)),
    )


_rolled = statement(select(rollings.c.space_id, rollings.c.summary, rollings.c.upto, rollings.c.passes))
_kept = statement(
    select(memories.c.owner, memories.c.text).where(memories.c.kind == "item", memories.c.superseded_by.is_(None))
)
_paid = statement(select(func.count()).select_from(ledger).where(ledger.c.detail == "memory"))


def _misremembered(tx: Tx) -> list[str]:
    """Each message was summed up once, in order, and what it says is remembered once; each pass was paid once."""
    wrong: list[str] = []
    remembered = Counter(tx.all(_kept))
    rolled = tx.all(_rolled)
    for space_id, summary, upto, _ in rolled:
        if summary.split() != [str(number) for number in range(1, upto + 1)]:
            wrong.append(f"{space_id} was summed up as {summary}, not as 1 to {upto}")
        times = [remembered[f"conversation:{space_id}", was_said(number)] for number in range(1, upto + 1)]
        if times != [1] * upto:
            wrong.append(f"{space_id}: its messages are remembered {times} times")
    waiting = rolling.long_unsummed(tx, AT_ONCE) if rolled else []
    wrong += [f"{space_id} was not summed up" for space_id in waiting]
    paid, passes = tx.one(_paid), sum(row[3] for row in rolled)
    if paid is not None and paid[0] != passes:
        wrong.append(f"{passes} passes were paid {paid[0]} times")
    return wrong


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
    sent, fetched = _requests(folder / "send"), _requests(folder / "fetch")
    wrong += [f"#{number} was sent {len(keys)} times" for number, keys in sent.items() if len(keys) > 1]
    wrong += [f"#{number} was fetched as different calls" for number, keys in fetched.items() if len(set(keys)) > 1]
    for number, kind, outcome in answers:
        if kind == "fetch" and (outcome != "noted" or number not in fetched):
            wrong.append(f"#{number} was never fetched")
        if kind == "send" and outcome == "noted" and number not in sent:
            wrong.append(f"#{number} was not sent, though its answer says so")
        if kind in ("mark", "both") and not marked[number]:
            wrong.append(f"#{number} was never marked")
        if kind == "confirm" and outcome != "confirmed":
            wrong.append(f"#{number} was answered without having been confirmed")
        if kind == "note" and outcome == "noted" and not noted[number]:
            wrong.append(f"#{number} was not noted, though its answer says so")
    return wrong


def _requests(path: Path) -> dict[int, list[str]]:
    """The keys of the requests that the service was sent, by number."""
    found: dict[int, list[str]] = {}
    for line in _text(path).splitlines():
        number, key = line.split()
        found.setdefault(int(number), []).append(key)
    return found


def _lines(path: Path) -> Counter[int]:
    return Counter(map(int, _text(path).split()))


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
