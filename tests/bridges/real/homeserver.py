"""A room of a real homeserver, as the conformance suite wants it; and a gate before it that can refuse."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any
from uuid import uuid4

import aiohttp
from aiohttp import web

from denizen.bridges.matrix.events import MARK
from denizen.bridges.matrix.kind import MATRIX
from denizen.bridges.port import BridgeKind, Later, Outcome, Refused
from denizen.bridges.registry import Bridge
from tests.bridges.listening import listening
from tests.bridges.real.synapse import AS_TOKEN, HS_TOKEN, SERVER, Synapse
from tests.servers import free_port
from tests.world import World

PEOPLE = ("Eve", "Mia")


class Relay:
    """Where a homeserver sends the pushes of the application service. Until they are taken, it says no."""

    def __init__(self, port: int | None = None) -> None:
        self._port = port or free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.take: Callable[[str, bytes], Awaitable[None]] | None = None

    def listening(self) -> AbstractAsyncContextManager[str]:
        return listening(self._handle, self._port)

    async def _handle(self, request: web.Request) -> web.Response:
        if self.take is None:
            return web.json_response({}, status=503)
        await self.take(request.headers.get("Authorization", ""), await request.read())
        return web.json_response({})


class Matrix:
    """People who write in rooms of the homeserver."""

    def __init__(self, synapse: Synapse) -> None:
        self.synapse = synapse
        self.said: list[str] = []
        self.answers: list[Outcome] = []
        self.forbidden = False
        self.url = ""
        self.sent = 0
        """How often a message was sent to it, again too."""
        self._rooms: dict[str, str] = {}
        self._read: dict[str, str | None] = {}
        self._ours: dict[str, str] = {}
        self._of: dict[str, str] = {}
        self._reactions: dict[tuple[str, str, str], str] = {}
        self._world: World | None = None
        self._bridge: Bridge | None = None
        self.first_cursor = "0"
        self.tells_deletions = True
        self.sends_once = True
        self.settings: dict[str, Any] = {}
        self.streaming: dict[str, Any] = {"streaming": True}
        self.typed: list[str] = []
        """Who was shown as typing, or no longer: `@denizen_ada:test True`."""

    @property
    def kind(self) -> BridgeKind:
        return MATRIX

    async def attach(self, world: World) -> Bridge:
        for name, value in (("MATRIX_AS", AS_TOKEN), ("MATRIX_HS", HS_TOKEN)):
            await world.denizen.secrets.set(name, value)
        settings = {"homeserver": self.url, "allow_private": ["127.0.0.1"], "as_token": "${MATRIX_AS}"}
        settings |= {"hs_token": "${MATRIX_HS}"} | self.settings
        bridge, _ = await world.denizen.bridges.create("Matrix", "matrix", settings)
        self._world, self._bridge = world, bridge
        return bridge

    def room_id(self, name: str) -> str:
        """The alias of a room with this name."""
        if name not in self._rooms:
            alias = f"{name}-{uuid4()}"
            self._rooms[name] = self.synapse.room(alias, *PEOPLE)
            events, _ = self.synapse.timeline("Eve", self._rooms[name])
            told = self.synapse.call(
                "Eve", "GET", f"/rooms/{urllib.parse.quote(self._rooms[name])}/messages", dir="f", limit="1"
            )
            assert events
            self.first_cursor = told["start"]
            self._of[name] = f"#{alias}:{SERVER}"
        return self._of[name]

    def id_of(self, alias: str) -> str:
        return next(self._rooms[name] for name, each in self._of.items() if each == alias)

    def newest_code(self, who: str) -> str:
        """The code in the newest room that the bridge has invited this person to."""
        told = self.synapse.call(who, "GET", "/sync")
        room = next(iter(told["rooms"]["invite"]))
        self.synapse.call(who, "POST", f"/join/{urllib.parse.quote(room)}", {})
        found, _ = self.synapse.timeline(who, room)
        return re.findall(r"\d{12}", found[-2]["content"].get("body", "") + found[-1]["content"].get("body", ""))[0]

    async def close(self) -> None:
        return

    def forbid(self) -> None:
        self.forbidden = True

    def permit(self) -> None:
        self.forbidden = False

    # What people there do

    async def write(
        self, room: str, who: str, text: str, *, bot: bool = False, verified: bool = True, **more: Any
    ) -> str:
        assert verified
        content: dict[str, Any] = {"msgtype": "m.notice" if bot else "m.text", "body": text}
        if more.get("reply_to"):
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": more["reply_to"]}}
        for file in more.get("files", ()):
            content |= {"msgtype": "m.file", "filename": file.name, "url": self._upload(who, file.data)}
            content["info"] = {"mimetype": file.media_type, "size": len(file.data)}
        id = self._send(room, who, "m.room.message", content)
        if self._world is not None and self._bridge is not None:  # As the homeserver would push it.
            await self._world.denizen.bridges.receive_push(self._bridge.id, f"Bearer {HS_TOKEN}")
        return id

    def _send(self, room: str, who: str, kind: str, content: Any) -> str:
        self.room_id(room)
        return self.synapse.send(who, self._rooms[room], kind, content, str(uuid4()))

    def _upload(self, who: str, data: bytes) -> str:
        request = urllib.request.Request(f"{self.synapse.url}/_matrix/media/v3/upload", data)
        request.add_header("Authorization", f"Bearer {self.synapse.person(who)}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())["content_uri"]

    async def edit(self, room: str, who: str, of: str, text: str) -> None:
        new = {"msgtype": "m.text", "body": text}
        relation = {"rel_type": "m.replace", "event_id": of}
        content = {"msgtype": "m.text", "body": f"* {text}", "m.new_content": new, "m.relates_to": relation}
        self._send(room, who, "m.room.message", content)

    async def delete(self, room: str, who: str, of: str) -> None:
        path = f"/rooms/{urllib.parse.quote(self._rooms[room])}/redact/{urllib.parse.quote(of)}/{uuid4()}"
        self.synapse.call(who, "PUT", path, {})

    async def react(self, room: str, who: str, of: str, emoji: str, *, removed: bool = False) -> str:
        if removed:
            await self.delete(room, who, self._reactions[who, of, emoji])
            return ""
        relation = {"rel_type": "m.annotation", "event_id": of, "key": emoji}
        self._reactions[who, of, emoji] = self._send(room, who, "m.reaction", {"m.relates_to": relation})
        return self._reactions[who, of, emoji]

    # What arrived

    async def settle(self) -> None:
        """Read what our users have written since the last time."""
        for name, room in self._rooms.items():
            found, self._read[name] = self.synapse.timeline("Eve", room, self._read.get(name))
            for event in found:
                if event["sender"].startswith("@denizen") and "state_key" not in event:
                    self._take(name, event)

    async def until(self, ends: str) -> None:
        """Returns when the last thing that was said ends so."""
        while not self.said or not self.said[-1].endswith(ends):
            await asyncio.sleep(0.05)
            await self.settle()

    def there(self, room: str) -> list[str]:
        """The texts of the bridge's messages that are in the room now."""
        return self.synapse.texts("Eve", self._rooms[room], "@denizen_")

    def _take(self, room: str, event: dict[str, Any]) -> None:
        content, id = event["content"], event["event_id"]
        if not content and event["type"] != "m.room.redaction":
            return  # It was deleted since.
        relation = content.get("m.relates_to", {})
        author = event["sender"].partition(":")[0].removeprefix("@denizen_").capitalize()
        if content.get("msgtype") == "m.file":
            server, _, media = content["url"].removeprefix("mxc://").partition("/")
            path = f"/_matrix/client/v1/media/download/{server}/{media}"
            request = urllib.request.Request(self.synapse.url + path)
            request.add_header("Authorization", f"Bearer {self.synapse.person('Eve')}")
            with urllib.request.urlopen(request, timeout=30) as answer:
                self.said[-1] += f" [{content['filename']}: {answer.read().decode()}]"
            return
        if event["type"] == "m.room.redaction":
            of = self._ours.get(event["redacts"])
            if of is not None and of.startswith("react"):
                self._say(room, id, f"un{of}")
            elif of is not None:
                self._say(room, id, f"delete ({of})")
            return
        number = f"out-{sum('delete' not in each for each in self.said) + 1}"
        if event["type"] == "m.reaction":
            self._ours[id] = f"react {relation['key']} ({number})"
            self._say(
                room, id, f"react {relation['key']} ({self._ours.get(relation['event_id'], relation['event_id'])})"
            )
        elif relation.get("rel_type") == "m.replace":
            self._say(room, id, f"edit ({self._ours[relation['event_id']]}): {content['m.new_content']['body']}")
        else:
            replied = relation.get("m.in_reply_to", {}).get("event_id")
            about = f" (to {self._ours.get(replied, replied)})" if replied else ""
            assert content[MARK]["kind"]
            self._ours[id] = number
            by = "" if content["msgtype"] == "m.notice" else f"{author}: "  # A notice is the bridge's own.
            self._say(room, id, f"{by}{content['body']}{about}")

    def _say(self, room: str, id: str, line: str) -> None:
        self.said.append(f"{room}: {line}")

    # The gate

    async def pass_on(self, request: web.Request) -> web.Response:
        """Hand a request to the homeserver, or refuse it."""
        sends = "/send/" in request.path
        if "/typing/" in request.path:
            self.typed.append(f"{request.path.rpartition('/')[2]} {(await request.json())['typing']}")
        self.sent += sends
        if self.forbidden:
            return web.json_response({"errcode": "M_UNKNOWN_TOKEN"}, status=401)
        match self.answers.pop(0) if self.answers and sends else None:
            case Later(_, seconds):
                told = {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": (seconds or 0) * 1_000}
                return web.json_response(told, status=429)
            case Refused():
                return web.json_response({"errcode": "M_TOO_LARGE"}, status=413)
            case _:
                pass
        headers = {name: request.headers[name] for name in ("Authorization", "Content-Type") if name in request.headers}
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                request.method,
                self.synapse.url + request.raw_path,
                data=await request.read(),
                headers=headers,
            ) as answer,
        ):
            body = await answer.read()
            return web.Response(body=body, status=answer.status, content_type=answer.content_type)
