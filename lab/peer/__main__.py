"""Kills a LangGraph server as the laboratory kills Denizen, and judges it by the same rules.

    python -m lab.peer [--trials N] [--seed N]

The peer is installed into `.lab/peer`, by pip, when it is first needed. It has no inbox, streams, timers or tools that
report: people ask one question at a time in each thread and repeat the request until it is answered, and what is judged
is whether an answered question is there, once, in order, and what happened to the world outside.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any, Final

import aiohttp

from lab.history import History
from lab.judge import judge
from lab.model import model_server, question
from tests.servers import free_port

PACKAGES: Final = ("langgraph", "langgraph-checkpoint-sqlite")
THREADS: Final = ("11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222")
KINDS: Final = ("plain", "note", "mark", "both")


def installed(folder: Path) -> Path:
    """The Python of the peer's own environment."""
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        (folder / "ready").touch()
    return python


class Peer:
    """A server that can be killed and started again."""

    def __init__(self, python: Path, folder: Path, model: str) -> None:
        self._command = [python, Path(__file__).with_name("server.py"), "", folder / "peer.db", model]
        self.port = free_port()
        self._command[2] = str(self.port)
        self.process = subprocess.Popen(self._command)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command)


async def _until_answered(session: aiohttp.ClientSession, peer: Peer, body: dict[str, str]) -> list[dict[str, Any]]:
    while True:
        try:
            async with session.post(f"http://127.0.0.1:{peer.port}", json=body) as answer:
                if answer.status == 200:
                    return await answer.json(content_type=None)
        except (aiohttp.ClientError, OSError, TimeoutError):
            pass
        await asyncio.sleep(0.05)


def _said(thread: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The thread as a transcript: questions, and what the agent sent."""
    said: list[tuple[str, str]] = []
    for each in messages:
        if each["role"] == "user":
            said.append(("human", each["content"]))
        called = [call["function"] for call in each.get("tool_calls") or ()]
        sent = [json.loads(call["arguments"])["text"] for call in called if call["name"] == "send_message"]
        said += [("agent", text) for text in sent]
    return [
        {"space": thread, "seq": seq, "id": f"{thread}-{seq}", "kind": kind, "text": text}
        for seq, (kind, text) in enumerate(said, 1)
    ]


async def run(trials: int, seed: int, python: Path) -> dict[str, Any]:
    chance = random.Random(seed)
    numbers = iter(range(1, 10**9))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        history = History(folder / "history.jsonl")
        async with model_server(chance) as model, aiohttp.ClientSession() as session:
            model.history = history
            peer = Peer(python, folder, f"http://127.0.0.1:{model.port}")

            async def talk(thread: str) -> None:
                for _ in range(chance.randint(1, 3)):
                    number, kind = next(numbers), chance.choice(KINDS)
                    history.add("asking", number=number, space=thread, agent="ines", kind=kind)
                    text = question(number, "ines", thread, kind)
                    await _until_answered(session, peer, {"thread": thread, "text": text})
                    history.add("acknowledged", number=number)

            for trial in range(trials):
                talking = asyncio.gather(*map(talk, THREADS))
                await asyncio.sleep(chance.uniform(0, 0.6))
                peer.kill()
                peer.start()
                await talking
                print(f"{trial + 1} of {trials} kills", file=sys.stderr, flush=True)
            for thread in THREADS:
                said = _said(thread, await _until_answered(session, peer, {"thread": thread}))
                for each in said:
                    history.add("message", **each)
                history.add("transcript", space=thread, messages=said)
            peer.kill()
        verdict = judge(history.lines)
        for each in verdict.wrong:
            print(each, file=sys.stderr)
        effects = {(line["tool"], line["number"]) for line in history.lines if line["what"] == "effect"}
        return {
            "lab": "langgraph",
            "trials": trials,
            "acknowledged": verdict.acknowledged,
            "lost": len(verdict.lost),
            "twice": len(verdict.twice),
            "out_of_order": len(verdict.out_of_order),
            "effects_twice": len(verdict.effects_twice),
            "effects": len(effects),
        }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.peer", description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--environment", type=Path, default=Path(".lab/peer"))
    given = parser.parse_args()
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    python = installed(given.environment.absolute())
    print(json.dumps(asyncio.run(run(given.trials, given.seed, python))))


if __name__ == "__main__":
    main()
