"""The people, agents and spaces of a world, made over the HTTP API like anything that its clients do."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lab.elsewhere import ROOM, message_elsewhere, signed_by_program, signed_by_service
from lab.model import question

AGENTS: Final = ("ines", "juri", "kato")
SPACES: Final = {"desk": ("ines",), "den": ("juri",), "shed": ("kato",), "dock": ("kato",), "square": AGENTS}
"""Who is there with the one person."""
BRIDGED: Final = "dock"
"""It is bound to a room elsewhere."""
HOOKED: Final = "desk"
"""Where its agent answers what a service tells it."""
PANEL: Final = "board"
ADVISORS: Final = ("left", "right")


@dataclass(frozen=True)
class Place:
    """A server, as its owner reaches it. It blocks: for setting up, not for measuring."""

    url: str
    home: str

    @property
    def headers(self) -> dict[str, str]:
        token = (Path(self.home) / "token").read_text().strip()
        return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def until_up(self, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                with urllib.request.urlopen(self.url + "/readyz", timeout=10):
                    return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def call(self, path: str, body: object | None = None, key: str = "") -> Any:
        data = None if body is None else json.dumps(body).encode()
        return self.send(path, data, {**self.headers, **({"Idempotency-Key": key} if key else {})})

    def send(self, path: str, data: bytes | None, headers: dict[str, str]) -> Any:
        request = urllib.request.Request(self.url + path, data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=100) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {error.read().decode()}") from error
        return json.loads(text) if text else None

    def ask_and_wait(self, settled: Setting, number: int, kind: str) -> None:
        """Ask the first agent a question, and wait for the answer."""
        space = settled.spaces["desk"]
        before = self.call(f"/api/spaces/{space}")["last_seq"]
        self.call(f"/api/spaces/{space}/messages", {"text": question(number, "ines", space, kind)}, key=f"r{number}")
        self._until(lambda: self.call(f"/api/spaces/{space}")["last_seq"] >= before + 2, kind)

    def look_around(self, settled: Setting, number: int) -> None:
        """Ask by every other way there is, and read all that is read of a world."""
        body = json.dumps({"said": question(number, "ines", settled.spaces[HOOKED], "hook")}).encode()
        self.send(settled.hook.path, body, signed_by_service(settled.hook.secret, body))
        body = message_elsewhere(number + 1, question(number + 1, "kato", settled.spaces[BRIDGED], "guest"))
        self.send(settled.bridge.path, body, signed_by_program(settled.bridge.secret, body))
        asked = {"text": question(number + 2, PANEL, settled.panel, "panel")}
        self.call(f"/api/spaces/{settled.panel}/messages", asked, key=f"r{number + 2}")
        for agent in settled.agents.values():
            self.call(f"/api/agents/{agent}/inbox?state=pending")
        for space in settled.spaces.values():
            self.call(f"/api/spaces/{space}/memory")
            self.call(f"/api/spaces/{space}/messages?after=0&limit=200")
        rounds = f"/api/panels/{settled.panel}/rounds"
        self._until(lambda: all(each["all_completed"] for each in self.call(rounds)["rounds"]), "panel")

    @staticmethod
    def _until(is_so: Callable[[], bool], kind: str) -> None:
        deadline = time.monotonic() + 100
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError(f"The rehearsal got no answer to {kind}.")
            time.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Door:
    """A path of the servers at which requests are signed, and the secret."""

    path: str = ""
    secret: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """The ids of what was made."""

    agents: dict[str, str]
    spaces: dict[str, str]
    panel: str = ""
    hook: Door = Door()
    """Where a service tells the first agent of events."""
    bridge: Door = Door()
    """Where a program sends what is written in the room elsewhere."""


def settle(place: Place, world: str, **more: Any) -> Setting:
    """The agents and spaces are there. `world` is where their tools reach; `more` is part of each definition."""
    agents = {
        handle: place.call("/api/agents", {**_agent(handle, world), **more}, key=f"agent-{handle}")["id"]
        for handle in AGENTS
    }
    spaces = {
        name: place.call(
            "/api/spaces", {"name": name, "members": [agents[each] for each in there]}, key=f"space-{name}"
        )["id"]
        for name, there in SPACES.items()
    }
    panel = place.call("/api/panels", {"name": PANEL}, key="panel")["id"]
    for name in ADVISORS:
        advisor = {"name": name, "model": f"openai-chat:{name}"}
        place.call(f"/api/panels/{panel}/advisors", advisor, key=f"advisor-{name}")
    hook, bridge = _hook(place, agents["ines"]), _bridge(place, spaces[BRIDGED], world)
    return Setting(agents, {**spaces, PANEL: panel}, panel, hook, bridge)


def _hook(place: Place, agent: str) -> Door:
    made = place.call(f"/api/agents/{agent}/webhooks", {"name": "Service", "scheme": "github"})
    return Door(made["webhook"]["path"], made["secret"])


def _bridge(place: Place, space: str, world: str) -> Door:
    settings = {"url": f"{world}/elsewhere", "allow_private": [world.removeprefix("http://")]}
    made = place.call("/api/bridges", {"name": "Pier", "kind": "webhook", "settings": settings})
    bridge = made["bridge"]["id"]
    place.call(f"/api/bridges/{bridge}/channels", {"space_id": space, "room": ROOM})
    return Door(f"/hooks/bridges/{bridge}", made["secret"])


def _agent(handle: str, world: str) -> dict[str, Any]:
    host = world.removeprefix("http://")
    number = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    tools = [
        {
            "kind": "http",
            "name": name,
            "description": "Tell the world a number.",
            "method": "POST",
            "url": f"{world}/world/{name}",
            "parameters": number,
            "on_crash": on_crash,
            "results": "trusted",
            "allow_private": [host],
        }
        for name, on_crash in (("note", "report"), ("mark", "retry"))
    ]
    mcp = {"url": f"{world}/mcp", "results": "trusted", "allow_private": [host]}
    named = {"name": handle.title(), "handle": handle, "model": f"openai-chat:{handle}"}
    # Of what a service or a guest writes nobody is asked: that people approve is tested elsewhere.
    return {**named, "tools": tools, "mcp": {"world": mcp}}
