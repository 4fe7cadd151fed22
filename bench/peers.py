"""The same turn with other frameworks, each as its documentation sets it up for conversations that outlive the process.

    python -m bench.peers [--turns N] [--ages 0 1000 5000] [--only NAME]

A turn is what it is in `bench.turn`: a message in, a model call, a tool call, a model call, and everything stored. The
models are functions that answer at once. The others are installed into `.venv-peers`, which is kept. Each is measured
in a process of its own; the result has the CPU of a turn in milliseconds by age, the number of earlier messages.

What they promise differs. LangGraph stores a checkpoint before each step, so that a turn that was cut off is resumed,
as Denizen does. Agno stores the session after the turn; so do AutoGen and agent-framework here, in plain files, and
they do not wait for the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import tempfile
import venv
from pathlib import Path
from typing import Any

from bench import turn

ENVIRONMENT = Path(__file__).parents[1] / ".venv-peers"
PACKAGES = [
    "langgraph==1.2.22",
    "langgraph-checkpoint-sqlite==3.1.2",
    "agent-framework-core==1.23.0",
    "autogen-agentchat==0.7.5",
    "agno==3.1.10",
    "sqlalchemy[asyncio]",
    "aiosqlite",
]
PEERS = ("langgraph", "agent-framework", "autogen", "agno")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--turns", type=int, default=40)
    arguments.add_argument("--ages", type=int, nargs="*", default=[0, 1_000, 5_000])
    arguments.add_argument("--only", choices=["denizen", *PEERS])
    given = arguments.parse_args()
    python = interpreter()
    table = {name: measured(python, name, given) for name in ("denizen", *PEERS) if given.only in (None, name)}
    print(json.dumps({"bench": "peers", **turn.interpreter(), "cpu_ms": table}))


def interpreter() -> Path:
    """The Python of the environment that has the others."""
    python = ENVIRONMENT / "bin" / "python"
    marker = ENVIRONMENT / "packages.txt"
    wanted = "\n".join(PACKAGES)
    if not marker.exists() or marker.read_text() != wanted:
        venv.create(ENVIRONMENT, with_pip=True)
        subprocess.run([python, "-m", "pip", "--quiet", "install", *PACKAGES], check=True)
        marker.write_text(wanted)
    return python


def measured(python: Path, name: str, given: argparse.Namespace) -> dict[str, Any]:
    """The CPU of a turn of this one, by age."""
    ours: dict[str, Any] = {}
    for age in given.ages:
        if name == "denizen":
            with tempfile.TemporaryDirectory() as folder:
                ours[str(age)] = asyncio.run(turn.one_age(Path(folder), age, given.turns, None))["cpu_ms"]
        else:
            script = str(Path(__file__).with_name("_peers.py"))
            # -P: or bench/http.py would be taken for the module of the standard library.
            command = [python, "-P", script, name, str(age), str(given.turns)]
            told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            ours |= {"version": told["version"], str(age): told["cpu_ms"]}
    return ours


if __name__ == "__main__":
    main()
