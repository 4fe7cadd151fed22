"""Kills a process that thinks for agents, again and again, and looks for anything lost or done twice.

    python -m bench.crash [--kills N] [--database-url URL] [--seed N]

Half of the kills come at a random instant, the other half at a random one of the points around commits, model calls
and tool calls. Each process after a kill goes on with what the last one left. At the end, one is left alone until all
is quiet, and everything is counted. The exit status is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from bench._crash import DEADLINE_SECONDS, Town, Verdict, ended
from bench._crash_child import SPACES, Post, read_journal

LONGEST_SECONDS: Final = 0.4
"""How long a process lives before it is killed at a random instant, at most; it is quiet before, as often as not."""
KINDS: Final = (
    *("plain", "plain", "note", "note", "mark", "both", "both", "silent", "balk", "falter", "stammer"),
    *("send", "fetch", "confirm", "later", "timer"),
)


def main(arguments: list[str]) -> int:
    """The exit status: 0 if nothing was lost, nothing was done twice, and the database is whole."""
    parser = argparse.ArgumentParser(prog="python -m bench.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--database-url", help="an empty database; by default a temporary SQLite file")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="denizen-crash-") as folder:
        url = given.database_url or f"sqlite:///{folder}/denizen.db"
        verdict = run(Town(url, Path(folder)), given.kills, random.Random(given.seed))
    for line in verdict.wrong:
        print(line, file=sys.stderr)
    print(
        json.dumps(
            {
                "bench": "crash",
                "kills": given.kills,
                "answered": verdict.answered,
                "lost": len(verdict.lost),
                "duplicated": len(verdict.duplicated),
                "asked_again": len(verdict.asked_again),
                "outside_wrong": len(verdict.outside),
                "memory_wrong": len(verdict.memory),
                "resumed": verdict.resumed,
                "violations": len(verdict.violations),
                "defects": len(verdict.defects),
                "seed": given.seed,
            }
        )
    )
    return 1 if verdict.wrong else 0


def run(town: Town, kills: int, chance: random.Random) -> Verdict:
    """Kill so many processes, then let one finish."""
    questions = _questions(chance)
    asked = [next(questions) for _ in range(len(KINDS))]
    assert town.live((tuple(asked),), remembers=True) == 0
    points = sorted(town.points())
    for done in range(kills):
        asked += [next(questions) for _ in range(chance.randint(1, 4))]
        point = (chance.choice(points), chance.randint(1, 5)) if chance.random() < 0.5 else None
        _live_and_die(town, _unacknowledged(town, asked), point, chance.uniform(0, LONGEST_SECONDS))
        if (done + 1) % 20 == 0:
            print(f"{done + 1} of {kills} kills", file=sys.stderr, flush=True)
    assert town.live((_unacknowledged(town, asked),), remembers=True) == 0
    return town.verdict()


def _questions(chance: random.Random) -> Iterator[Post]:
    for number in count(1):
        space = chance.choice([*SPACES])
        there = SPACES[space]
        people = [each for each in there if each in ("noor", "finn")]
        agents = [each for each in there if each not in people]
        yield Post(number, space, chance.choice(people), chance.choice(agents), chance.choice(KINDS))


def _unacknowledged(town: Town, asked: list[Post]) -> tuple[Post, ...]:
    """What no life has been told is stored; a life leaves out what may be there and cannot be asked again."""
    known = {line["number"] for line in read_journal(town.folder) if line["what"] == "posted"}
    return tuple(post for post in asked if post.number not in known)


def _live_and_die(town: Town, posts: tuple[Post, ...], point: tuple[str, int] | None, seconds: float) -> None:
    """One life, killed at the point, after so many seconds, or when it has nothing left to do: whatever is first."""
    process, hearing = town.begin((posts,), kill=point, patient=False, remembers=True)
    with hearing:
        word = _hear(process, hearing, DEADLINE_SECONDS)
        if word is not None:
            left_alone = word == "tired" or point is not None
            _hear(process, hearing, DEADLINE_SECONDS if left_alone else seconds)
        process.kill()
        ended(process)


def _hear(process: BaseProcess, hearing: Connection, seconds: float) -> str | None:
    """What the process says next; None if it died, or said nothing in time."""
    ready = wait([process.sentinel, hearing], seconds)
    try:
        return hearing.recv() if hearing in ready else None
    except EOFError:
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
