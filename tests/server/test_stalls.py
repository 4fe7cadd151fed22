"""The event loop is never held up for long, whatever is sent: a held-up loop answers nobody.

Measured is the CPU time that the thread of the loop takes between two looks at its sockets, so that a busy machine
makes no difference. It is compared with a piece of work on the same machine.
"""

from __future__ import annotations

import asyncio
import gc
import json
import selectors
import statistics
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from denizen import call, reply
from denizen.server.bodies import MOST_VALUES
from denizen.spaces.posting import MESSAGE_CHARACTERS
from denizen.tools.settings import ClientTool
from tests.server import small_town
from tests.server.conftest import Built, served, visited
from tests.world import UNHURRIED, open_world

UNITS = 8
"""How many pieces of work the loop may be held up for: about a quarter of a second on a laptop."""
TRIES = 3
"""What holds the loop up does so each time. Other processes that fill the caches of the processor do not."""
_WORK = "[" + "0," * 500_000 + "0]"

HOSTILE = {
    "look-alike letters": "аⅰ\u0301\u0301\u200bｐ",
    "Markdown": "[![`*_<(",
    "mentions": "@a-",
    "links": "a @b https://c.d/e?f=g key: 1a2 ",
    "one letter": "a",
}


class WatchingSelector(selectors.DefaultSelector):
    """Measures how much CPU time the thread of the loop takes between two looks at its sockets."""

    def __init__(self) -> None:
        super().__init__()
        self.longest = 0.0
        self._since = time.thread_time()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.longest = max(self.longest, time.thread_time() - self._since)
        found = super().select(timeout)
        self._since = time.thread_time()
        return found

    def start(self) -> None:
        self.longest, self._since = 0.0, time.thread_time()


class Watch:
    """Notes what held the loop up for too long."""

    def __init__(self, selector: WatchingSelector) -> None:
        self._selector = selector
        self._limit = _limit()
        self.stalls: list[str] = []

    async def during(self, what: str, do: Callable[[], Awaitable[Any]], *, tries: int = TRIES) -> Any:
        self._selector.start()
        result = await do()
        await asyncio.sleep(0)
        if (longest := self._selector.longest) > self._limit:
            self._limit = _limit()
            if tries > 1:
                return await self.during(what, do, tries=tries - 1)
            self.stalls.append(f"{what}: {longest:.2f} s of at most {self._limit:.2f} s")
        return result


def _limit() -> float:
    return UNITS * statistics.median(map(_work, range(5)))


def _work(_: int) -> float:
    began = time.thread_time()
    json.loads(_WORK)
    return time.thread_time() - began


def watched(story: Callable[[Watch], Coroutine[Any, Any, None]]) -> None:
    """Run the story on a loop that is watched. Fails if something held it up."""
    selector = WatchingSelector()
    watch = Watch(selector)
    # To look through what was collected and what other tests have left takes longer than what is measured. It stays
    # frozen: looked through again and again, it would make all later tests slower.
    gc.freeze()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(story(watch))
    assert watch.stalls == []


def places(body: Any, kind: type, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of all values of this type."""
    if isinstance(body, kind):
        yield path
    inner: list[tuple[Any, Any]] = (
        list(body.items()) if isinstance(body, dict) else list(enumerate(body)) if isinstance(body, list) else []
    )
    for key, value in inner:
        yield from places(value, kind, (*path, key))


def at(body: Any, path: tuple[str | int, ...]) -> Any:
    return at(body[path[0]], path[1:]) if path else body


def changed(body: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """The body with another value there."""
    if not path:
        return value
    copied: Any = dict(body) if isinstance(body, dict) else list(body)
    copied[path[0]] = changed(body[path[0]], path[1:], value)
    return copied


def hostile_bodies(body: Any) -> Iterator[tuple[str, bytes]]:
    """The body with a huge text in place of each text, and with too many unknown fields in each object."""
    texts = [(each * (400_000 // len(each)), name) for name, each in HOSTILE.items()]
    for number, path in enumerate(places(body, str)):
        text, name = texts[number % len(texts)]
        yield f"{path} {name}", json.dumps(changed(body, path, text), ensure_ascii=False).encode()
    unknown = {f"unknown field {number}": number for number in range(MOST_VALUES - 1_000)}
    for path in places(body, dict):
        yield f"{path} unknown fields", json.dumps(changed(body, path, at(body, path) | unknown)).encode()


BROKEN = {
    "deep": b"[" * 1_000_000,
    "lists": b"[" + b"[]," * 600_000 + b"[]]",
    "allowed lists": b"[" + b"[]," * (MOST_VALUES - 10) + b"[]]",
    "numbers": b'{"name": ' + b"9" * 1_000_000 + b"}",
    "a text without an end": b'{"' + b'\\"' * 900_000,
}


def test_no_request_holds_up_the_event_loop(built: Built, tmp_path: Path) -> None:
    description = small_town.description()
    headers = {"Authorization": f"Bearer {built.town.secrets['owner']}", "Content-Type": "application/json"}

    async def story(watch: Watch) -> None:
        async with visited(built, tmp_path) as house:
            # In another thread, whose work is not measured.
            with httpx2.Client(base_url=house.address, timeout=600) as client:
                for method, path, operation in small_town.operations(description):
                    body = small_town.body_of(description, operation, built.town.home, all_fields=True)
                    if body is None:
                        continue
                    url = small_town.filled(path, built.town.home, "owner").replace("@", "%40")

                    def ask(content: bytes, method: str = method, url: str = url) -> Awaitable[httpx2.Response]:
                        return asyncio.to_thread(client.request, method, url, headers=headers, content=content)

                    # The first request to a route imports and compiles.
                    await ask(json.dumps(body).encode())
                    for name, content in hostile_bodies(body):
                        answer = await watch.during(f"{method} {path} {name}", partial(ask, content))
                        assert answer.status_code < 500, answer.text
                    if path in ("/api/agents", "/api/apply", "/api/spaces/{space_id}/messages"):
                        for name, content in BROKEN.items():
                            await watch.during(f"{method} {path} {name}", partial(ask, content))

    watched(story)


def test_no_request_with_files_in_it_holds_up_the_event_loop(built: Built, tmp_path: Path) -> None:
    """Such a body may have 50 MB."""
    headers = {"Authorization": f"Bearer {built.town.secrets['owner']}", "Content-Type": "application/json"}
    files = {
        "base64": "data:image/png;base64," + "A" * 50_000_000,
        "commas and escapes": ',\n"' * 12_500_000,
    }

    async def story(watch: Watch) -> None:
        async with visited(built, tmp_path) as house:
            with httpx2.Client(base_url=house.address, timeout=600) as client:

                def ask(content: bytes) -> Awaitable[httpx2.Response]:
                    return asyncio.to_thread(client.post, "/api/chat", headers=headers, content=content)

                await ask(json.dumps({"agent": "nobody", "text": "Look!"}).encode())
                for name, file in files.items():
                    body = json.dumps({"agent": "nobody", "text": "Look!", "files": [file]}).encode()
                    answer = await watch.during(name, partial(ask, body[: 52 * 1024 * 1024]))
                    assert 400 <= answer.status_code < 500, answer.text

    watched(story)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_message_or_answer_of_a_model_holds_up_the_event_loop(ready_sqlite_url: str, name: str) -> None:
    """An agent reads it, calls a tool with it, and says it."""
    text = (HOSTILE[name] * MESSAGE_CHARACTERS)[:MESSAGE_CHARACTERS]
    schema = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}
    check = ClientTool(name="check", description="Check.", parameters=schema)

    async def story(watch: Watch) -> None:
        async with open_world(ready_sqlite_url, pace=UNHURRIED) as world, served(world) as house:
            noor, mia = await world.person("Noor"), await world.person("Mia")
            turns = [call("check", text=text), reply(text), text[:19_000], "Done."]
            ada = await world.agent("Ada", reply("Hello."), "Done.", *turns, tools=[check])
            diary = await world.space("Diary", noor, ada, private=True)
            hall = await world.space("Hall", noor, mia, ada)
            for space in (diary, hall):
                await watch.during("post", partial(house.say, noor, text, space), tries=1)
                await watch.during("post a short one", partial(house.say, noor, text[:19_000], space), tries=1)
                await watch.during("think", world.run, tries=1)

    watched(story)


def test_no_import_holds_up_the_event_loop(built: Built, tmp_path: Path) -> None:
    agent = built.town.home.ids["agent"]
    headers = {"Authorization": f"Bearer {built.town.secrets['owner']}"}

    async def story(watch: Watch) -> None:
        async with visited(built, tmp_path) as house:
            with httpx2.Client(base_url=house.address, headers=headers, timeout=600) as client:
                exported = (await asyncio.to_thread(client.get, f"/api/agents/{agent}/export")).content
                lines = exported.splitlines(keepends=True)
                files = {
                    "many lines": b"".join([*lines[:-1], *lines[1:2] * 20_000, lines[-1]]),
                    "a long line": lines[0] + json.dumps({"row": "message", "text": "a" * 5_000_000}).encode() + b"\n",
                    "a deep line": lines[0] + b"[" * 5_000_000 + b"\n",
                    "lists": lines[0] + b"[" + b"[]," * 1_000_000 + b"[]]\n",
                }

                url, jsonl = "/api/import?handle=other", {"Content-Type": "application/jsonl"}

                def ask(content: bytes) -> Awaitable[httpx2.Response]:
                    return asyncio.to_thread(client.post, url, headers=jsonl, content=content)

                assert (await ask(exported)).status_code == 201
                for name, content in files.items():
                    answer = await watch.during(name, partial(ask, content))
                    assert answer.status_code == 422, answer.text

    watched(story)
