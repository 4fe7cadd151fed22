"""How long a stranger waits: from `make run` on a bare machine to the first answer, and for `denizen up` to be up.

    python -m bench.start [--no-fresh]

`up_s` is the time from starting an installed `denizen up` until it answers HTTP, on a database that is there already;
`first_up_s` the same when it has to make its small world; `make_run_s` the time from `make run` in an empty clone,
installing everything, to the first answer of an agent (left out with --no-fresh).

`killed_s` is the time from the kill of a process in which an agent was awake, with a message not yet answered, to
the answer of the next process, which is started at once; `killed_ready_s` the part of it after that one answers HTTP.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.fresh import ROOT, clone, started, until

STARTS = 5


def start_once(home: Path) -> float:
    command = [str(Path(sys.executable).parent / "denizen"), "up"]
    began = time.perf_counter()
    with started(command, ROOT, home, deadline_seconds=60):
        return time.perf_counter() - began


def killed(folder: Path) -> dict[str, float]:
    """A process is killed, and another goes on."""
    command = [str(Path(sys.executable).parent / "denizen"), "up"]
    with started(command, ROOT, folder / "home", deadline_seconds=60) as house:
        room = next(space for space in house.get("/api/spaces")["spaces"] if space["name"] != "Lobby")["id"]
        before = len(house.ask(room, "Hello!"))
        house.post(f"/api/spaces/{room}/messages", {"text": "Are you still there?"})
        house.process.kill()
        house.process.wait()
    began = time.perf_counter()
    with started(command, ROOT, folder / "home", deadline_seconds=60) as house:
        ready = time.perf_counter()
        until(lambda: len(house.said(room)) > before + 1, 100)
        answered = time.perf_counter()
    return {"killed_s": round(answered - began, 2), "killed_ready_s": round(answered - ready, 2)}


def fresh(folder: Path) -> dict[str, float]:
    """The whole way of a stranger."""
    copy = clone(folder / "clone")
    began = time.perf_counter()
    with started(["make", "run"], copy, folder / "fresh-home", deadline_seconds=600) as house:
        up = time.perf_counter() - began
        private = next(space for space in house.get("/api/spaces")["spaces"] if space["name"] != "Lobby")
        house.ask(private["id"], "Hello!")
        return {"make_run_up_s": round(up, 1), "make_run_s": round(time.perf_counter() - began, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-fresh", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = start_once(folder / "home")
        again = [start_once(folder / "home") for _ in range(STARTS)]
        result = {"bench": "start", "up_s": round(statistics.median(again), 2), "first_up_s": round(first, 2)}
        result |= killed(folder)
        if not given.no_fresh:
            result |= fresh(folder)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
