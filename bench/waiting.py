"""Whether whoever waits is answered, or told why: a real server, a model server that misbehaves, every way in.

    python -m bench.waiting [--only CASE]

Each case is one agent. It is asked through each surface: REST (a message in a space, and what the space shows), SSE
(the same, from the stream), `/api/chat`, `/v1/chat/completions` and `denizen chat --once`. `answered` counts answers,
`told` sentences that say why there is none, `silent` what brought neither within a minute, `drowned` spaces in which
one message led to more than twenty of agents. The names of those that were silent or drowned go to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from bench._misbehaving_model import PASSING, REFUSALS, SPEAKING, misbehaving
from tests.fresh import ROOT, House, started

SECONDS = 60
Outcome = Literal["answered", "told", "silent"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="one case")
    given = parser.parse_args()
    cases = [*SPEAKING, *PASSING, *REFUSALS, "suspended", "deleted", "unknown-provider"]
    wanted = [given.only] if given.only else cases
    command = [str(Path(sys.executable).parent / "denizen"), "up"]
    with misbehaving() as address, tempfile.TemporaryDirectory() as name:
        os.environ |= {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-bench"}
        keys = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "DENIZEN_MODEL")
        os.environ["DENIZEN_MODEL"] = "demo"
        with started(command, ROOT, Path(name) / "home", deadline_seconds=60, passing=keys) as house:
            found = {(case, way): ask(house, case) for case in wanted for way, ask in WAYS.items()}
            drowned = [name for name, count in house_talk(house) if count > 20] + lobby_drowned(house)
    silent = [f"{case} by {way}" for (case, way), outcome in found.items() if outcome == "silent"]
    for each in [*silent, *(f"{name} drowned" for name in drowned)]:
        print(each, file=sys.stderr)
    counts = {kind: sum(outcome == kind for outcome in found.values()) for kind in ("answered", "told", "silent")}
    print(json.dumps({"bench": "waiting", "cases": len(found), **counts, "drowned": len(drowned)}))


# One question, by each way


def by_rest(house: House, case: str) -> Outcome:
    agent, space = _setting(house, case, "rest")
    _say(house, space)
    return _wait(lambda: _seen(house, space, agent))


def by_stream(house: House, case: str) -> Outcome:
    agent, space = _setting(house, case, "sse")
    lines: list[str] = []
    request = urllib.request.Request(house.url("/api/stream"), headers=_headers(house))
    with urllib.request.urlopen(request, timeout=SECONDS) as stream:
        threading.Thread(target=_read_lines, args=(stream, lines), daemon=True).start()
        _wait(lambda: "answered" if any("event: ready" in each for each in lines) else None)
        _say(house, space)
        return _wait(lambda: _heard(lines, agent, space))


def by_chat(house: House, case: str) -> Outcome:
    agent, _ = _setting(house, case, "chat")
    try:
        answer = _post(house, "/api/chat", {"agent": agent, "text": "What time is it?"})
    except urllib.error.HTTPError as error:
        return "told" if json.load(error).get("detail") else "silent"
    return "answered" if answer["messages"] else "told" if answer["note"] else "silent"


def by_openai(house: House, case: str) -> Outcome:
    agent, _ = _setting(house, case, "v1")
    body = {"model": agent, "messages": [{"role": "user", "content": "What time is it?"}]}
    try:
        answer = _post(house, "/v1/chat/completions", body)
    except urllib.error.HTTPError as error:
        return "told" if json.load(error)["error"]["message"] else "silent"
    text = answer["choices"][0]["message"]["content"]
    return "silent" if not text else "answered" if "four o'clock" in text else "told"


def by_command(house: House, case: str) -> Outcome:
    _, _ = _setting(house, case, "once")
    program = [
        str(Path(sys.executable).parent / "denizen"),
        "chat",
        f"@{_handle(case, 'once')}",
        "--once",
        "What time?",
    ]
    environ = {
        **os.environ,
        "DENIZEN_URL": house.url(""),
        "DENIZEN_TOKEN": house.token,
        "DENIZEN_HOME": str(house.home),
    }
    ran = subprocess.run(program, env=environ, capture_output=True, text=True, timeout=SECONDS * 3, check=False)
    if ran.returncode == 0 and ran.stdout.strip():
        return "answered"
    return "told" if ran.returncode != 0 and ran.stderr.strip() else "silent"


WAYS: dict[str, Callable[[House, str], Outcome]] = {
    "REST": by_rest,
    "SSE": by_stream,
    "/api/chat": by_chat,
    "/v1": by_openai,
    "chat --once": by_command,
}


# What each needs


def _handle(case: str, way: str) -> str:
    return f"{case}-{way}"


def _setting(house: House, case: str, way: str) -> tuple[str, str]:
    """An agent of this case for this way, and a space with it: its id and that of the space."""
    model = "nowhere:model" if case == "unknown-provider" else f"openai-chat:{case}@{way}"
    if case in ("suspended", "deleted"):
        model = f"openai-chat:answers@{way}"
    handle = _handle(case, way)
    made = _post(house, "/api/agents", {"name": handle, "handle": handle, "model": model, "cycle": {"max_steps": 3}})
    space = _post(house, "/api/spaces", {"name": handle, "members": [made["id"]]})["id"]
    if case == "suspended":
        _post(house, f"/api/agents/{made['id']}/suspend", {})
    if case == "deleted":
        request = urllib.request.Request(
            house.url(f"/api/agents/{made['id']}"), method="DELETE", headers=_headers(house)
        )
        urllib.request.urlopen(request, timeout=SECONDS).close()
    return made["id"], space


def _say(house: House, space: str) -> None:
    _post(house, f"/api/spaces/{space}/messages", {"text": "What time is it?"})


def _seen(house: House, space: str, agent: str) -> Outcome | None:
    if any(each["author"]["id"] == agent for each in house.get(f"/api/spaces/{space}/messages")["messages"]):
        return "answered"
    shown = house.get(f"/api/spaces/{space}")["statuses"]
    return "told" if any(each["text"] and each["cause"] not in ("queued", "failing") for each in shown) else None


def _heard(lines: list[str], agent: str, space: str) -> Outcome | None:
    name = ""
    for line in list(lines):
        name = line.removeprefix("event: ") if line.startswith("event: ") else name
        if not line.startswith("data: ") or space not in line:
            continue
        told = json.loads(line.removeprefix("data: "))
        if name == "message" and told["author"]["id"] == agent:
            return "answered"
        if name == "space.statuses" and any(each["cause"] not in ("queued", "failing") for each in told["statuses"]):
            return "told"
    return None


def _read_lines(stream: Any, lines: list[str]) -> None:
    try:
        lines.extend(line.decode().rstrip("\n") for line in stream)
    except (OSError, ValueError, AttributeError):
        return  # closed by whoever opened it


def _wait(check: Callable[[], Outcome | None]) -> Outcome:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if outcome := check():
            return outcome
        time.sleep(0.05)
    return "silent"


def _headers(house: House) -> dict[str, str]:
    return {"Authorization": f"Bearer {house.token}", "Content-Type": "application/json"}


def _post(house: House, path: str, body: object) -> Any:
    request = urllib.request.Request(house.url(path), data=json.dumps(body).encode(), headers=_headers(house))
    with urllib.request.urlopen(request, timeout=SECONDS * 2) as answer:
        text = answer.read()
    return json.loads(text) if text else None


# Drowning


def house_talk(house: House) -> list[tuple[str, int]]:
    """Each space with how many messages stand in it."""
    return [(each["name"], each["last_seq"]) for each in house.get("/api/spaces?limit=200")["spaces"]]


def lobby_drowned(house: House) -> list[str]:
    """Whether "hi" in the first space leads to more than two answers, ten seconds later."""
    lobby = house.space("Lobby")["id"]
    before = len(house.said(lobby))
    _post(house, f"/api/spaces/{lobby}/messages", {"text": "hi"})
    time.sleep(10)
    answers = len(house.said(lobby)) - before - 1
    if answers == 0:
        print("nobody answered in the Lobby", file=sys.stderr)
    return ["Lobby"] if answers > 2 else []


if __name__ == "__main__":
    main()
