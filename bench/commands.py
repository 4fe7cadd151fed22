"""How much CPU a command of the command line costs, with a server that runs on its home and without one.

    python -m bench.commands [--runs 5]

Seconds of CPU (user and system) of the whole process, the median of several runs; `server` where `denizen up` runs on
the same home, `alone` where the command calls the application in its own process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fresh import ROOT, started

RUNS = 5
COMMANDS = {
    "version": ["--version"],
    "agents_list": ["agents", "list"],
    "spaces_list": ["spaces", "list"],
    "spaces_show": ["spaces", "show", "Lobby"],
    "send": ["send", "Lobby", "Hello."],
    "inspect": ["inspect", "@ada"],
    "memory_list": ["memory", "list"],
    "token_list": ["token", "list"],
}


def cpu_seconds(home: Path, arguments: list[str]) -> float:
    """What one run of the command costs."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home.parent), "DENIZEN_HOME": str(home), "DENIZEN_MODEL": "demo"}
    process = subprocess.Popen(
        [sys.executable, "-m", "denizen", *arguments],
        cwd=home.parent,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"denizen {' '.join(arguments)} failed"
    return used.ru_utime + used.ru_stime


def measured(home: Path, runs: int) -> dict[str, float]:
    return {
        name: round(statistics.median(cpu_seconds(home, arguments) for _ in range(runs)), 2)
        for name, arguments in COMMANDS.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "home"
        cpu_seconds(home, COMMANDS["agents_list"])  # makes the database, and compiles what is not compiled yet
        alone = measured(home, given.runs)
        command = [str(Path(sys.executable).parent / "denizen"), "up"]
        with started(command, ROOT, home, deadline_seconds=60, settings={"DENIZEN_MODEL": "demo"}):
            server = measured(home, given.runs)
    print(json.dumps({"bench": "commands", "alone_cpu_s": alone, "server_cpu_s": server}))


if __name__ == "__main__":
    main()
