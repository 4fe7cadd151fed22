"""A stand-in for Slack, as documented: the Web API, socket mode, and no transaction ids."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from aiohttp import web

from denizen.bridges.port import BridgeKind, Later, Refused
from denizen.bridges.registry import Bridge
from denizen.bridges.slack.emoji import emoji_of, name_of
from denizen.bridges.slack.kind import SLACK
from tests.bridges.sockets import SocketStandIn
from tests.world import World

BOT_TOKEN, APP_TOKEN = "xoxb-of-the-tests", "xapp-of-the-tests"
CHANNELS = {"pier": "C0PIER", "mole": "C0MOLE"}
BOT_USER, BOT = "U0APP", "B0APP"
BEGINNING = 2_000_000_000


class SlackApi(SocketStandIn):
    """A workspace, with people in channels."""

    def __init__(self) -> None:
        super().__init__()
        self.first_cursor = "0"
        self.tokens = {BOT_TOKEN, APP_TOKEN}
        self.customizes = True
        self.channels: dict[str, list[dict[str, Any]]] = {id: [] for id in CHANNELS.values()}
        self.unconfirmed: dict[str, dict[str, Any]] = {}
        """Events that were not acknowledged: they are told again over the next connection."""
        self.icons: list[str] = []
        self._people: dict[str, str] = {}
        self._files: dict[str, dict[str, Any]] = {}
        self._times = 0
        self._envelopes = 0

    @property
    def kind(self) -> BridgeKind:
        return SLACK

    async def attach(self, world: World) -> Bridge:
        await world.denizen.secrets.set("SLACK_BOT", BOT_TOKEN)
        await world.denizen.secrets.set("SLACK_APP", APP_TOKEN)
        tokens = {"bot_token": "${SLACK_BOT}", "app_token": "${SLACK_APP}"}
        settings = {**tokens, "api": f"{self.url}/api", "allow_private": ["127.0.0.1"], **self.settings}
        bridge, _ = await world.denizen.bridges.create("Slack", "slack", settings)
        return bridge

    def room_id(self, name: str) -> str:
        return CHANNELS[name]

    def forbid(self) -> None:
        self.tokens.clear()

    def permit(self) -> None:
        self.tokens |= {BOT_TOKEN, APP_TOKEN}

    # What people there do

    async def write(
        self, room: str, who: str, text: str, *, bot: bool = False, verified: bool = True, **more: Any
    ) -> str:
        assert verified
        message: dict[str, Any] = {"type": "message", "text": text, "ts": self._ts(), **self._writer(who, bot=bot)}
        if more.get("reply_to"):
            message["thread_ts"] = more["reply_to"]
            self._find(room, more["reply_to"])["latest_reply"] = message["ts"]
        for file in more.get("files", ()):
            id = self._add_file(file.name, file.data)
            url = f"{self.url}/files/{id}"
            told = {"id": id, "name": file.name, "mimetype": file.media_type, "url_private_download": url}
            message |= {"subtype": "file_share", "files": [told]}
        self.channels[CHANNELS[room]].append(message)
        await self._tell({**message, "channel": CHANNELS[room], "channel_type": "channel"})
        return message["ts"]

    async def edit(self, room: str, who: str, of: str, text: str) -> None:
        message = self._find(room, of)
        before = dict(message)
        after = {**message, "text": text, "edited": {"user": self._user(who), "ts": self._ts()}}
        if message["user"] == self._user(who):
            message |= after
        # Slack lets nobody else do this; a bridge must not rely on that.
        told = {"message": {**after, "user": self._user(who)}, "previous_message": before, "ts": self._ts()}
        await self._tell({"type": "message", "subtype": "message_changed", "channel": CHANNELS[room], **told})

    async def delete(self, room: str, who: str, of: str) -> None:
        message = self._find(room, of)
        self.channels[CHANNELS[room]].remove(message)
        told = {"deleted_ts": of, "previous_message": message, "ts": self._ts()}
        await self._tell({"type": "message", "subtype": "message_deleted", "channel": CHANNELS[room], **told})

    async def react(self, room: str, who: str, of: str, emoji: str, *, removed: bool = False) -> str:
        item = {"type": "message", "channel": CHANNELS[room], "ts": of}
        told = {"user": self._user(who), "reaction": name_of(emoji), "item": item, "event_ts": self._ts()}
        await self._tell({"type": "reaction_removed" if removed else "reaction_added", **told})
        return ""

    def _ts(self) -> str:
        self._times += 1
        return f"{BEGINNING + self._times}.000100"

    def _user(self, who: str) -> str:
        id = f"U{who.upper()}"
        self._people[id] = who
        return id

    def _writer(self, who: str, *, bot: bool) -> dict[str, str]:
        return {"bot_id": f"B{who.upper()}", "username": who} if bot else {"user": self._user(who)}

    def _find(self, room: str, ts: str) -> dict[str, Any]:
        return next(each for each in self.channels[CHANNELS[room]] if each["ts"] == ts)

    def _add_file(self, name: str, data: bytes) -> str:
        id = f"F{len(self._files)}"
        self._files[id] = {"name": name, "data": data}
        return id

    def forget_events(self) -> None:
        self.unconfirmed.clear()

    def there(self, room: str) -> list[str]:
        return [each["text"] for each in self.channels[CHANNELS[room]] if each.get("user") == BOT_USER]

    def forget_files(self) -> None:
        self._files.clear()

    # The socket

    async def _tell(self, event: dict[str, Any]) -> None:
        self._envelopes += 1
        id = f"envelope-{self._envelopes}"
        payload = {"type": "event_callback", "event_id": f"Ev{self._envelopes}", "event": event}
        self.unconfirmed[id] = {"type": "events_api", "envelope_id": id, "payload": payload}
        await self.tell(self.unconfirmed[id])

    async def greet(self, socket: web.WebSocketResponse) -> None:
        await socket.send_json({"type": "hello", "num_connections": len(self.sockets)})
        for each in list(self.unconfirmed.values()):
            await socket.send_json(each)

    async def take_frame(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        del socket
        self.unconfirmed.pop(str(frame.get("envelope_id")), None)

    # The Web API

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix("/")
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if path == "socket":
            return await self.serve_socket(request)
        if path.startswith("upload/"):
            form: Any = await request.post()
            self._files[path.removeprefix("upload/")]["data"] = form["file"].file.read()
            return web.Response(text="OK")
        if token not in self.tokens:
            return web.json_response({"ok": False, "error": "invalid_auth"})
        if path.startswith("files/"):
            file = self._files.get(path.removeprefix("files/"))
            return web.Response(status=404) if file is None else web.Response(body=file["data"])
        method = path.removeprefix("api/")
        wanted: dict[str, Any] = dict(await request.post())
        self.requests.append(method)
        if method == "chat.postMessage":
            match self.answers.pop(0) if self.answers else None:
                case Later(_, seconds):
                    after = {"Retry-After": str(int(seconds or 0))}
                    return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=after)
                case Refused():
                    return web.json_response({"ok": False, "error": "msg_too_long"})
                case _:
                    await self.arrive(wanted["markdown_text"])
        told = self._do(method, wanted, token)
        if method in ("chat.postMessage", "files.completeUploadExternal") and self.lost(request):
            return web.Response()
        scopes = "chat:write,chat:write.customize" if self.customizes else "chat:write"
        return web.json_response({"ok": "error" not in told, **told}, headers={"X-OAuth-Scopes": scopes})

    def _do(self, method: str, wanted: dict[str, Any], token: str) -> dict[str, Any]:
        match method:
            case "auth.test":
                return {"user_id": BOT_USER, "bot_id": BOT, "team_id": "T0"}
            case "apps.connections.open":
                assert token == APP_TOKEN
                return {"url": f"{self.url.replace('http', 'ws')}/socket?ticket=1"}
            case "users.info":
                return {"user": {"name": wanted["user"], "profile": {"display_name": self._people[wanted["user"]]}}}
            case "conversations.history" | "conversations.replies":
                return self._pages(wanted, method)
            case "conversations.open":
                return {"channel": {"id": f"D{wanted['users']}"}}
            case "files.getUploadURLExternal":
                id = self._add_file(wanted["filename"], b"")
                return {"upload_url": f"{self.url}/upload/{id}", "file_id": id}
            case _:
                return self._change(method, wanted)

    def _pages(self, wanted: dict[str, Any], method: str) -> dict[str, Any]:
        """Newest first in a channel, oldest first in a thread, a few at once; metadata only on request."""
        if wanted["channel"] not in self.channels:
            return {"error": "channel_not_found"}
        found = list(self.channels[wanted["channel"]])
        if method == "conversations.replies":
            asked = next((each for each in found if each["ts"] == wanted["ts"]), None)
            if asked is None:
                return {"error": "thread_not_found"}
            root = asked.get("thread_ts", asked["ts"])
            found = [each for each in found if root in (each["ts"], each.get("thread_ts"))]
            if len(found) > 1:
                found[0] = {**found[0], "thread_ts": root}
        else:
            found = [each for each in reversed(found) if each.get("thread_ts", each["ts"]) == each["ts"]]
        inclusive = wanted.get("inclusive") == "true"

        def fits(message: dict[str, Any]) -> bool:
            at, oldest = Decimal(message["ts"]), Decimal(wanted.get("oldest") or 0)
            latest = Decimal(wanted.get("latest") or "9999999999")
            return oldest < at < latest or (inclusive and at in (oldest, latest))

        found = [each for each in found if fits(each)]
        begin = int(wanted.get("cursor") or 0)
        limit = min(int(wanted["limit"]), 3)
        page = found[begin : begin + limit]
        if wanted.get("include_all_metadata") != "true":
            page = [{name: each for name, each in one.items() if name != "metadata"} for one in page]
        more = str(begin + limit) if begin + limit < len(found) else ""
        return {"messages": page, "has_more": bool(more), "response_metadata": {"next_cursor": more}}

    def _change(self, method: str, wanted: dict[str, Any]) -> dict[str, Any]:
        channel = wanted.get("channel") or wanted.get("channel_id") or ""
        room = next((name for name, id in CHANNELS.items() if id == channel), channel)
        match method:
            case "chat.postMessage":
                return self._post(room, channel, wanted)
            case "chat.update" | "chat.delete" if wanted["ts"] not in [each["ts"] for each in self.channels[channel]]:
                return {"error": "message_not_found"}
            case "chat.update":
                self._find(room, wanted["ts"])["text"] = wanted["markdown_text"]
                self.say(room, f"edit ({self.ours(wanted['ts'])}): {wanted['markdown_text']}")
            case "chat.delete":
                self.channels[channel].remove(self._find(room, wanted["ts"]))
                self.say(room, f"delete ({self.ours(wanted['ts'])})")
            case "reactions.add" | "reactions.remove":
                emoji, removed = emoji_of(wanted["name"]), method == "reactions.remove"
                self.react_from_bridge(room, wanted["timestamp"], emoji, removed=removed)
            case "files.completeUploadExternal":
                for each in json.loads(wanted["files"]):
                    file = self._files[each["id"]]
                    shared = {"id": each["id"], "name": file["name"], "size": len(file["data"])}
                    message = {"type": "message", "ts": self._ts(), "text": "", "user": BOT_USER, "files": [shared]}
                    self.channels[channel].append(message)
                    self.said[-1] += f" [{file['name']}: {file['data'].decode()}]"
            case _:
                raise NotImplementedError(method)
        return {}

    def _post(self, room: str, channel: str, wanted: dict[str, Any]) -> dict[str, Any]:
        if "username" in wanted and not self.customizes:
            return {"error": "missing_scope", "needed": "chat:write.customize"}
        ts, thread = self._ts(), wanted.get("thread_ts")
        text = wanted.get("markdown_text") or wanted["text"]
        message = {"type": "message", "ts": ts, "text": text, "user": BOT_USER, "bot_id": BOT}
        if "metadata" in wanted:
            message["metadata"] = json.loads(wanted["metadata"])
        if thread:
            message["thread_ts"] = thread
        self.icons += [wanted[each] for each in ("icon_emoji", "icon_url") if each in wanted]
        self.channels.setdefault(channel, []).append(message)
        about = f" (to {self.ours(thread)})" if thread else ""
        by = f"{wanted['username']}: " if "username" in wanted else ""
        self.say(room, f"{by}{text}{about}", ts)
        return {"ts": ts, "channel": channel}
