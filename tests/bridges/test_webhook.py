"""The webhook bridge: the conformance suite over real HTTP, its signatures, and the example of the documentation."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from denizen.access.signatures import GENERIC_HEADER, generic_signature, verify
from denizen.bridges.port import BridgeKind, Later, Outcome, Refused, Revoked, Sent
from denizen.bridges.registry import Bridge
from denizen.bridges.sending import LONGEST_ASKED_SECONDS
from denizen.bridges.webhook.adapter import outcome
from denizen.bridges.webhook.events import parse
from denizen.bridges.webhook.kind import WEBHOOK
from denizen.clock import SECOND
from denizen.errors import InvalidInput, NotFound, SignatureExpired, SignatureWrong
from tests.bridges.conformance import ROOM, BridgeSuite, Killed, Service, build
from tests.bridges.status_suite import StatusSuite
from tests.world import World


class Program:
    """A program on the other side, with an HTTP server: it remembers what it has taken by its id."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.answers: list[Outcome] = []
        self.asks_for: list[str] = []
        """The texts of `Retry-After` that it answers with next."""
        self.codes: dict[str, str] = {}
        self.taken: dict[str, str] = {}
        self.forbidden = False
        self.events = 0
        self.first_cursor = "0"
        self.tells_deletions = True
        self.sends_once = True
        self.url = self.secret = ""
        self.bridge: Bridge
        self.world: World

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None]:
        async with await asyncio.start_server(self.serve, "127.0.0.1", 0) as server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/events"
            yield

    @property
    def kind(self) -> BridgeKind:
        return WEBHOOK

    async def attach(self, world: World) -> Bridge:
        self.world = world
        settings = {"url": self.url, "allow_private": ["127.0.0.1"]}
        self.bridge, secret = await world.denizen.bridges.create("Program", "webhook", settings)
        self.secret = secret or ""
        return self.bridge

    def room_id(self, name: str) -> str:
        return name

    async def settle(self) -> None:
        return

    async def close(self) -> None:
        return

    def forbid(self) -> None:
        self.forbidden = True

    def permit(self) -> None:
        self.forbidden = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in head[1:] if each)}
        body = await reader.readexactly(int(headers["content-length"]))
        verify("generic", self.secret, headers, body, self.world.clock.now() / SECOND)
        status, more, answer = self._answer(headers["idempotency-key"], json.loads(body))
        told = json.dumps(answer).encode()
        head_out = f"HTTP/1.1 {status} X\r\nContent-Length: {len(told)}\r\n{more}Connection: close\r\n\r\n"
        writer.write(head_out.encode() + told)
        await writer.drain()
        writer.close()

    def _answer(self, id: str, event: dict[str, Any]) -> tuple[int, str, dict[str, str]]:
        assert id == event["id"]
        if self.forbidden:
            return 401, "", {}
        if self.asks_for:
            return 429, f"Retry-After: {self.asks_for.pop(0)}\r\n", {}
        match self.answers.pop(0) if self.answers else None:
            case Later(_, seconds):
                return 429, f"Retry-After: {seconds or 0:.0f}\r\n", {}
            case Refused():
                return 413, "", {}
            case _:
                pass
        if id not in self.taken:
            self.taken[id] = f"out-{len(self.taken) + 1}"
            self.said.append(self._line(event))
        return 200, "", {"id": self.taken[id]}

    def _line(self, event: dict[str, Any]) -> str:
        if event["type"] == "code":
            self.codes[event["account"]] = event["code"]
            return "code"
        room = event["room"]
        match event["type"]:
            case "message":
                files = "".join(
                    f" [{each['name']}: {base64.b64decode(each['data']).decode()}]" for each in event["files"]
                )
                replied = f" (to {event['reply_to']})" if event["reply_to"] else ""
                by = f"{event['author']['name']}: " if event["author"]["name"] else ""
                return f"{room}: {by}{event['text']}{files}{replied}"
            case "edit":
                return f"{room}: edit ({event['of']}): {event['text']}"
            case "deletion":
                return f"{room}: delete ({event['of']})"
            case _:
                return f"{room}: {'unreact' if event['removed'] else 'react'} {event['emoji']} ({event['of']})"

    # What people there do

    async def tell(self, event: dict[str, Any], *, secret: str | None = None, bridge: str | None = None) -> None:
        body = json.dumps(event).encode()
        signature = generic_signature(secret or self.secret, self.world.clock.now() // SECOND, body)
        await self.world.denizen.bridges.receive(bridge or self.bridge.id, {GENERIC_HEADER: signature}, body)

    def _event(self, type_: str, room: str, who: str, **more: Any) -> dict[str, Any]:
        self.events += 1
        event = {"type": type_, "id": f"event-{self.events}", "room": room, "account": f"acct:{who}", "name": who}
        return {**event, "verified": True, **more}

    async def write(
        self, room: str, who: str, text: str, *, bot: bool = False, verified: bool = True, **more: Any
    ) -> str:
        if files := more.pop("files", ()):
            more["files"] = [
                {"name": each.name, "media_type": each.media_type, "data": base64.b64encode(each.data).decode()}
                for each in files
            ]
        event = self._event("message", room, who, text=text, bot=bot, **more) | {"verified": verified}
        with suppress(Killed):
            await self.tell(event)
        await self.tell(event)  # Programs send again when they do not know.
        return str(event["id"])

    async def edit(self, room: str, who: str, of: str, text: str) -> None:
        await self.tell(self._event("edit", room, who, of=of, text=text))

    async def delete(self, room: str, who: str, of: str) -> None:
        await self.tell(self._event("deletion", room, who, of=of))

    async def react(self, room: str, who: str, of: str, emoji: str, *, removed: bool = False) -> str:
        event = self._event("reaction", room, who, of=of, emoji=emoji, removed=removed)
        await self.tell(event)
        return event["id"]


@pytest.fixture
async def program() -> AsyncGenerator[Program]:
    found = Program()
    async with found.listening():
        yield found


class TestWebhook(StatusSuite, BridgeSuite):
    @pytest.fixture
    def service(self, program: Program) -> Service:
        return program


async def test_only_who_has_the_secret_can_write(bay: World, program: Program) -> None:
    pier = await build(bay, program)
    event = {"type": "message", "id": "1", "room": ROOM, "account": "eve", "text": "Let me in"}
    with pytest.raises(SignatureWrong):
        await program.tell(event, secret="another one")
    with pytest.raises(NotFound):
        await program.tell(event, bridge="unknown")
    body = json.dumps(event).encode()
    old = generic_signature(program.secret, bay.clock.now() // SECOND - 301, body)
    with pytest.raises(SignatureExpired):
        await bay.denizen.bridges.receive(pier.bridge.id, {GENERIC_HEADER: old}, body)
    with pytest.raises(NotFound, match="room"):
        await program.tell(event | {"room": "another"})
    assert await pier.lines() == []


async def test_events_that_are_not_valid_are_refused(bay: World, program: Program) -> None:
    await build(bay, program)
    event = {"type": "message", "id": "1", "room": ROOM, "account": "eve", "text": "Hello"}
    for wrong, why in (
        ({"type": "song"}, "type"),
        ({"id": ""}, "id"),
        ({"id": "x" * 501}, "id"),
        ({"more": 1}, "more"),
        ({"sent_at": "2026-01-05T09:00:00"}, "time zone"),
        ({"sent_at": "9999-12-31T23:59:59-12:00"}, "sent_at"),
        ({"sent_at": "0001-01-01T00:00:00+12:00"}, "sent_at"),
        ({"sent_at": 1e300}, "sent_at"),
        ({"files": [{"name": "a", "data": "?"}]}, "Base64"),
    ):
        with pytest.raises(InvalidInput, match=why):
            await program.tell(event | wrong)
    with pytest.raises(InvalidInput):
        parse(b"[" * 10_000)


@pytest.mark.parametrize(
    ("status", "meant"),
    [(200, Sent), (202, Sent), (401, Revoked), (403, Revoked), (410, Revoked), (404, Refused), (413, Refused)]
    + [(408, Later), (409, Later), (429, Later), (500, Later), (502, Later), (503, Later), (302, Later)],
)
def test_what_an_answer_means(status: int, meant: type[Outcome]) -> None:
    assert isinstance(outcome(status, None, b""), meant)


@pytest.mark.parametrize("asked", ["9" * 19, "9" * 400, "9" * 5_000])
async def test_an_address_cannot_ask_for_patience_without_end(asked: str, bay: World, program: Program) -> None:
    """It would hold up its room for ever, or end the bridge with a number that cannot be stored."""
    pier = await build(bay, program)
    program.asks_for.append(asked)
    await pier.say("Hello")
    await pier.run()
    assert program.said == []
    await bay.run_after(LONGEST_ASKED_SECONDS + 1)
    assert program.said == [f"{ROOM}: Noor: Hello"]


@pytest.mark.parametrize("told", [b"", b"{", b"[]", b'{"id": 5}', b'{"id": ""}', b"null"])
def test_an_answer_without_an_id_is_an_answer(told: bytes) -> None:
    assert outcome(200, None, told) == Sent(None)


async def test_an_address_that_is_not_there_is_tried_again(bay: World, program: Program) -> None:
    pier = await build(bay, program)
    await bay.denizen.bridges.change(pier.bridge, {"url": "http://127.0.0.1:9/", "allow_private": ["127.0.0.1"]})
    await pier.say("Hello")
    await pier.run()
    report = await bay.denizen.bridges.get(pier.bridge)
    assert "cannot be reached" in (report.bridge.error or "")
    assert report.backlog.waiting == 1
    await bay.denizen.bridges.change(pier.bridge, {"url": program.url, "allow_private": ["127.0.0.1"]})
    await bay.run_after(5)
    assert program.said == [f"{ROOM}: Noor: Hello"]


async def test_a_private_address_has_to_be_allowed(bay: World, program: Program) -> None:
    pier = await build(bay, program)
    await bay.denizen.bridges.change(pier.bridge, {"url": program.url})
    await pier.say("Hello")
    await pier.run()
    assert program.said == []
    assert (await bay.denizen.bridges.get(pier.bridge)).bridge.parked_reason
