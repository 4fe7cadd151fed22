"""A stand-in for Discord, as documented: the gateway with resuming, and the REST API with nonces and rate limits."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from denizen.bridges.discord.events import EPOCH
from denizen.bridges.discord.kind import DISCORD
from denizen.bridges.port import BridgeKind, Later, Refused
from denizen.bridges.registry import Bridge
from denizen.clock import SECOND
from tests.bridges.sockets import SocketStandIn
from tests.world import World

TOKEN = "token-of-the-tests"
CHANNELS = {"pier": "1001", "mole": "1002"}
BOT = "77"
BEGINNING = 2_000_000_000
PAGE = 3


class DiscordApi(SocketStandIn):
    """A server of Discord, with people in channels."""

    def __init__(self) -> None:
        super().__init__()
        self.first_cursor = "0"
        self.token = TOKEN
        self.allows_text = True
        self.channels: dict[str, list[dict[str, Any]]] = {id: [] for id in CHANNELS.values()}
        self.nonces: dict[str, dict[str, Any]] = {}
        """The messages of the last minutes, by nonce."""
        self.events: list[dict[str, Any]] = []
        """Events that a session missed, and gets when it is resumed."""
        self.sessions = 0
        self.resumed = 0
        self.limit_after: int | None = None
        """After so many more messages the bot has to wait."""
        self.notified: list[list[str]] = []
        self._names: dict[str, str] = {}
        self._files: dict[str, bytes] = {}
        self._made = 0
        self._number = 0
        self._open: set[web.WebSocketResponse] = set()

    @property
    def kind(self) -> BridgeKind:
        return DISCORD

    async def attach(self, world: World) -> Bridge:
        await world.denizen.secrets.set("DISCORD", TOKEN)
        settings = {"token": "${DISCORD}", "api": self.url, "allow_private": ["127.0.0.1"], **self.settings}
        bridge, _ = await world.denizen.bridges.create("Discord", "discord", settings)
        return bridge

    def room_id(self, name: str) -> str:
        return CHANNELS[name]

    def forbid(self) -> None:
        self.token = "another"

    def permit(self) -> None:
        self.token = TOKEN

    def forget_events(self) -> None:
        self.events.clear()

    def there(self, room: str) -> list[str]:
        return [each["content"] for each in self.channels[CHANNELS[room]] if each["author"]["id"] == BOT]

    def forget_files(self) -> None:
        self._files.clear()

    # What people there do

    async def write(
        self, room: str, who: str, text: str, *, bot: bool = False, verified: bool = True, **more: Any
    ) -> str:
        assert verified
        message = self._message(room, self._user(who, bot=bot), text)
        if more.get("reply_to"):
            message |= {"type": 19, "message_reference": {"message_id": more["reply_to"]}}
        for file in more.get("files", ()):
            self._files[file.name] = file.data
            told = {"filename": file.name, "content_type": file.media_type, "url": f"{self.url}/cdn/{file.name}"}
            message["attachments"] = [told]
        self.channels[CHANNELS[room]].append(message)
        await self._tell("MESSAGE_CREATE", {**message, "guild_id": "1"})
        return message["id"]

    async def edit(self, room: str, who: str, of: str, text: str) -> None:
        message = self._find(room, of)
        edited = {"content": text, "edited_timestamp": self._time().isoformat()}
        if message["author"]["username"] == who:
            message |= edited
        await self._tell("MESSAGE_UPDATE", {**message, **edited, "author": self._user(who), "guild_id": "1"})

    async def delete(self, room: str, who: str, of: str) -> None:
        del who
        self.channels[CHANNELS[room]].remove(self._find(room, of))
        await self._tell("MESSAGE_DELETE", {"id": of, "channel_id": CHANNELS[room], "guild_id": "1"})

    async def react(self, room: str, who: str, of: str, emoji: str, *, removed: bool = False) -> str:
        user = self._user(who)
        told = {"channel_id": CHANNELS[room], "message_id": of, "emoji": {"id": None, "name": emoji}, "guild_id": "1"}
        # Discord names the member only when a reaction is added.
        member = {} if removed else {"member": {"user": user}}
        await self._tell(
            "MESSAGE_REACTION_REMOVE" if removed else "MESSAGE_REACTION_ADD", {**told, "user_id": user["id"], **member}
        )
        return ""

    async def type(self, room: str, who: str) -> None:
        """Somebody types."""
        user = self._user(who)
        told = {"channel_id": CHANNELS[room], "user_id": user["id"], "guild_id": "1", "member": {"user": user}}
        await self._tell("TYPING_START", told)

    def _time(self) -> datetime:
        self._made += 1
        return datetime.fromtimestamp(BEGINNING + self._made, UTC)

    def _message(self, room: str, author: dict[str, Any], text: str) -> dict[str, Any]:
        id = (int(self._time().timestamp()) * SECOND - EPOCH) // 1_000 << 22
        content = text.strip()
        mentions = [{"id": id, "username": name} for id, name in self._names.items() if f"<@{id}>" in content]
        about = {"id": str(id), "channel_id": CHANNELS.get(room, room), "type": 0, "author": author}
        return {**about, "content": content, "attachments": [], "mentions": mentions, "edited_timestamp": None}

    def _user(self, who: str, *, bot: bool = False) -> dict[str, Any]:
        id = str(sum(who.encode()))
        self._names[id] = who
        return {"id": id, "username": who, "bot": bot}

    def _find(self, room: str, id: str) -> dict[str, Any]:
        return next(each for each in self.channels[CHANNELS[room]] if each["id"] == id)

    # The gateway

    async def _tell(self, kind: str, data: dict[str, Any]) -> None:
        self._number += 1
        frame = {"op": 0, "t": kind, "s": self._number, "d": data}
        self.events.append(frame)
        for socket in [each for each in self._open if not each.closed]:
            await socket.send_json(frame)

    async def greet(self, socket: web.WebSocketResponse) -> None:
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 45_000}})

    async def take_frame(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        data: Any = frame["d"]
        match frame["op"]:
            case 1:
                await socket.send_json({"op": 11})
            case 2:
                if data["token"] != self.token:
                    await socket.close(code=4004)
                elif not self.allows_text:
                    await socket.close(code=4014)
                else:
                    self.sessions += 1
                    self._number += 1
                    url = self.url.replace("http", "ws") + "/gateway"
                    ready = {"session_id": f"session-{self.sessions}", "resume_gateway_url": url, "user": {"id": BOT}}
                    await socket.send_json({"op": 0, "t": "READY", "s": self._number, "d": ready})
                    # So that tests of one who connects now need not be connected while things happen.
                    for each in self.events:
                        await socket.send_json(each)
                    self._open.add(socket)
            case 6:
                if data["session_id"] != f"session-{self.sessions}":
                    await socket.send_json({"op": 9, "d": False})
                    return
                self.resumed += 1
                for each in self.events:
                    if each["s"] > data["seq"]:
                        await socket.send_json(each)
                self._number += 1
                await socket.send_json({"op": 0, "t": "RESUMED", "s": self._number, "d": {}})
                self._open.add(socket)
            case _:
                raise NotImplementedError(frame)

    # The REST API

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = unquote(request.raw_path.partition("?")[0].removeprefix("/"))
        if path.startswith("gateway/") and path != "gateway/bot":
            return await self.serve_socket(request)
        if path.startswith("cdn/"):
            data = self._files.get(path.removeprefix("cdn/"))
            return web.Response(status=404) if data is None else web.Response(body=data)
        if request.headers.get("Authorization") != f"Bot {self.token}":
            return _refused(401, 0, "401: Unauthorized")
        self.requests.append(f"{request.method} {path}")
        match request.method, path.split("/"):
            case "GET", ["users", "@me"]:
                return web.json_response({"id": BOT, "username": "harbour"})
            case "GET", ["gateway", "bot"]:
                url = self.url.replace("http", "ws") + "/gateway"
                return web.json_response({"url": url, "session_start_limit": {"remaining": 1000}})
            case "POST", ["users", "@me", "channels"]:
                return web.json_response({"id": f"9{(await request.json())['recipient_id']}"})
            case method, ["channels", channel, *rest]:
                if channel not in self.channels and not channel.startswith("9"):
                    return _refused(404, 10003, "Unknown Channel")
                return await self._in_channel(request, method, channel, rest)
            case _:
                raise NotImplementedError(path)

    async def _in_channel(self, request: web.Request, method: str, channel: str, rest: list[str]) -> web.StreamResponse:
        room = next((name for name, id in CHANNELS.items() if id == channel), channel)
        match method, rest:
            case "GET", ["messages"]:
                return web.json_response(self._page(channel, request.query))
            case "POST", ["messages"]:
                return await self._post(request, room, channel)
            case "POST", ["typing"]:
                self.typed.append(room)
                self.typing.set()
            case "PATCH", ["messages", id]:
                wanted = await request.json()
                if id not in [each["id"] for each in self.channels[channel]]:
                    return _refused(404, 10008, "Unknown Message")
                self._find(room, id)["content"] = wanted["content"]
                text = wanted["content"]
                self.say(room, f"edit ({self.ours(id)}): {text.partition(': ')[2] or text}")
                return web.json_response(self._find(room, id))
            case "DELETE", ["messages", id]:
                if id not in [each["id"] for each in self.channels[channel]]:
                    return _refused(404, 10008, "Unknown Message")
                self.channels[channel].remove(self._find(room, id))
                self.say(room, f"delete ({self.ours(id)})")
            case "PUT" | "DELETE", ["messages", id, "reactions", emoji, "@me"]:
                self.react_from_bridge(room, id, emoji, removed=method == "DELETE")
            case _:
                raise NotImplementedError(rest)
        return web.Response(status=204)

    def _page(self, channel: str, query: Any) -> list[dict[str, Any]]:
        """The messages next to the one that is named, newest first."""
        found, limit = self.channels[channel], min(int(query["limit"]), PAGE)
        if "after" in query:
            found = [each for each in found if int(each["id"]) > int(query["after"])][:limit]
        elif "before" in query:
            found = [each for each in found if int(each["id"]) < int(query["before"])]
        return [{name: each for name, each in one.items() if name != "nonce"} for one in reversed(found[-limit:])]

    async def _post(self, request: web.Request, room: str, channel: str) -> web.StreamResponse:
        match self.answers.pop(0) if self.answers else None:
            case Later(_, seconds):
                return web.json_response({"message": "You are being rate limited.", "retry_after": seconds}, status=429)
            case Refused():
                return _refused(400, 50035, "Invalid Form Body")
            case _:
                pass
        files: list[tuple[str, bytes]] = []
        if request.content_type == "application/json":
            wanted = await request.json()
        else:
            form: Any = await request.post()
            wanted = json.loads(form["payload_json"])
            files = [(each.filename, each.file.read()) for name, each in form.items() if name.startswith("files[")]
        headers: dict[str, str] = {}
        if self.limit_after is not None:
            self.limit_after -= 1
            headers = {"X-RateLimit-Remaining": str(max(self.limit_after, 0)), "X-RateLimit-Reset-After": "5.0"}
        if len(wanted["nonce"]) > 25 or len(wanted["content"]) > 2_000:
            return _refused(400, 50035, "Invalid Form Body")
        await self.arrive(wanted["content"])
        message = self.nonces.get(wanted["nonce"])
        if message is None:
            message = self._take(room, channel, wanted, files)
        if self.lost(request):
            return web.Response()
        return web.json_response(message, headers=headers)

    def _take(self, room: str, channel: str, wanted: dict[str, Any], files: list[tuple[str, bytes]]) -> dict[str, Any]:
        message = self._message(channel, {"id": BOT, "username": "harbour", "bot": True}, wanted["content"])
        message["attachments"] = [{"filename": name, "size": len(data)} for name, data in files]
        self.channels.setdefault(channel, []).append(message)
        self.nonces[wanted["nonce"]] = message
        self.notified.append(wanted.get("allowed_mentions", {}).get("users", []))
        replied = wanted.get("message_reference", {}).get("message_id")
        about = f" (to {self.ours(replied)})" if replied else ""
        sent = "".join(f" [{name}: {data.decode()}]" for name, data in files)
        self.say(room, f"{message['content']}{sent}{about}", message["id"])
        return message


def _refused(status: int, code: int, why: str) -> web.Response:
    return web.json_response({"code": code, "message": why}, status=status)
