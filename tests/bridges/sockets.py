"""What the stand-ins of services with a socket have in common: its connections, and replies that get lost."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import WSMsgType, web

from denizen.bridges.drafts import WRITING
from denizen.bridges.port import Outcome


class SocketStandIn:
    """A service with sockets. A subclass answers requests and frames."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.answers: list[Outcome] = []
        self.url = ""
        self.tells_deletions = True
        self.sends_once = True
        self.sockets: list[web.WebSocketResponse] = []
        self.connections = 0
        self.lose_replies = 0
        """So many of the next messages are taken, and the connection is cut before the reply."""
        self.may_show = asyncio.Event()
        """Until it is set, text that is still being written is on its way to the room."""
        self.may_show.set()
        self.on_its_way = asyncio.Event()
        self.requests: list[str] = []
        self.typed: list[str] = []
        """The rooms in which the bridge has shown somebody as typing."""
        self.typing = asyncio.Event()
        self.heard = asyncio.Event()
        self.settings: dict[str, Any] = {}
        self.streaming: dict[str, Any] = {"streaming": True, "speaker": "ada"}
        self._ours: dict[str, str] = {}
        """The messages of the bridge: which of `said` they are, by their id."""
        self._reacted: dict[str, str] = {}

    async def settle(self) -> None:
        return

    async def close(self) -> None:
        return

    def forget_events(self) -> None:
        """Tell nobody any more of what has happened: only the history of rooms has it."""
        raise NotImplementedError

    def forget_files(self) -> None:
        raise NotImplementedError

    async def greet(self, socket: web.WebSocketResponse) -> None:
        raise NotImplementedError

    async def take_frame(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        raise NotImplementedError

    async def serve_socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        self.connections += 1
        try:
            await self.greet(socket)
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await self.take_frame(socket, json.loads(message.data))
        finally:
            self.sockets.remove(socket)
        return socket

    async def tell(self, frame: dict[str, Any]) -> None:
        """Send a frame to everybody who is connected."""
        for socket in list(self.sockets):
            if not socket.closed:
                await socket.send_str(json.dumps(frame))

    async def hang_up(self, code: int = 1006) -> None:
        """End all connections."""
        for socket in list(self.sockets):
            await socket.close(code=code)

    def say(self, room: str, line: str, id: str | None = None) -> None:
        self.said.append(f"{room}: {line}")
        self.heard.set()
        if id is not None:
            self._ours[id] = f"out-{len(self.said)}"

    async def arrive(self, text: str) -> None:
        """Returns when this text of the bridge has reached the service."""
        if text.endswith(WRITING):
            self.on_its_way.set()
            await self.may_show.wait()

    async def until(self, ends: str) -> None:
        """Returns when the last thing that was said ends so."""
        while not self.said or not self.said[-1].endswith(ends):
            self.heard.clear()
            await self.heard.wait()

    def there(self, room: str) -> list[str]:
        """The texts of the bridge's messages that are in the room now."""
        raise NotImplementedError

    def ours(self, id: str) -> str:
        """How a message is called in `said`."""
        return self._ours.get(id, id)

    def react_from_bridge(self, room: str, of: str, emoji: str, *, removed: bool) -> None:
        if removed:
            self.say(room, f"unreact {emoji} ({self._reacted.pop(f'{of} {emoji}')})")
        else:
            self.say(room, f"react {emoji} ({self.ours(of)})")
            self._reacted[f"{of} {emoji}"] = f"out-{len(self.said)}"

    def lost(self, request: web.Request) -> bool:
        """Whether the reply to this request gets lost: then the connection is cut."""
        if not self.lose_replies:
            return False
        self.lose_replies -= 1
        assert request.transport is not None
        request.transport.abort()  # pyright: ignore[reportAttributeAccessIssue]
        return True
