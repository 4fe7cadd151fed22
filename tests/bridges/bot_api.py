"""A stand-in for Telegram's Bot API, as documented: one queue of updates, chats, no transaction ids."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web

from denizen.bridges.port import BridgeKind, Later, Outcome, Refused
from denizen.bridges.registry import Bridge
from denizen.bridges.telegram.kind import TELEGRAM
from tests.world import World

TOKEN = "123:token-of-the-tests"
CHATS = {"pier": -1001, "mole": -1002, "private": 42}


class BotApi:
    """Telegram, with people in chats."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.answers: list[Outcome] = []
        self.url = ""
        self.token = TOKEN
        self.first_cursor = "1"
        self.tells_deletions = False
        self.sends_once = False
        self.updates: list[dict[str, Any]] = []
        self.confirmed = 0
        self.news = asyncio.Event()
        self.polls = 0
        self.typed: list[str] = []
        self.typing = asyncio.Event()
        self.drafts: list[tuple[int, str]] = []
        """Texts that the bot is writing, which end by themselves."""
        self.drafted = asyncio.Event()
        self._number = 0
        """The last number of an update."""
        self._messages = 0
        self._written: dict[str, dict[str, Any]] = {}
        self._ours: dict[int, str] = {}
        self._lines = 0
        self._reacted: dict[int, tuple[str, str]] = {}
        self._files: dict[str, bytes] = {}
        self.broken_files: set[str] = set()
        """The names of files whose download always fails."""

    @property
    def kind(self) -> BridgeKind:
        return TELEGRAM

    async def attach(self, world: World) -> Bridge:
        await world.denizen.secrets.set("TELEGRAM", TOKEN)
        settings = {"token": "${TELEGRAM}", "api": self.url, "allow_private": ["127.0.0.1"]}
        bridge, _ = await world.denizen.bridges.create("Telegram", "telegram", settings)
        return bridge

    def room_id(self, name: str) -> str:
        return str(CHATS[name])

    async def settle(self) -> None:
        return

    async def close(self) -> None:
        return

    def forbid(self) -> None:
        self.token = "another"

    def number_anew(self, number: int) -> None:
        """As after a week without updates: the next ones are numbered from anywhere."""
        self._number = number

    def permit(self) -> None:
        self.token = TOKEN

    # What people there do

    async def write(
        self, room: str, who: str, text: str, *, bot: bool = False, verified: bool = True, **more: Any
    ) -> str:
        assert verified
        message = self._message(room, who, bot=bot)
        if more.get("reply_to"):
            message["reply_to_message"] = {"message_id": int(more["reply_to"])}
        for file in more.get("files", ()):
            self._files[file.name] = file.data
            message["document"] = {"file_id": file.name, "file_name": file.name, "mime_type": file.media_type}
        message["caption" if "document" in message else "text"] = text
        self._add("message", message)
        return str(message["message_id"])

    def _message(self, room: str, who: str, *, bot: bool = False) -> dict[str, Any]:
        self._messages += 1
        kind = "private" if room == "private" else "supergroup"
        return {
            "message_id": self._messages,
            "from": _user(who, bot=bot),
            "chat": {"id": CHATS.get(room, 42), "type": kind},
            "date": 2_000_000_000,
        }

    def _add(self, kind: str, what: dict[str, Any]) -> None:
        self._number += 1
        self.updates.append({"update_id": self._number, kind: what})
        self.news.set()

    def garble(self) -> None:
        """The last update is one that nobody can read."""
        self.updates[-1]["message"]["photo"] = [{"file_id": "x", "file_size": "large"}]

    async def edit(self, room: str, who: str, of: str, text: str) -> None:
        message = self._message(room, who)
        self._add("edited_message", message | {"message_id": int(of), "text": text})

    async def delete(self, room: str, who: str, of: str) -> None:
        raise NotImplementedError

    async def react(self, room: str, who: str, of: str, emoji: str, *, removed: bool = False) -> str:
        before = self._written.setdefault(f"{of} {who}", {"emojis": []})["emojis"]
        after = [each for each in before if each != emoji] + ([] if removed else [emoji])
        told = {"chat": {"id": CHATS[room]}, "message_id": int(of), "user": _user(who), "date": 2_000_000_000}
        self._add("message_reaction", told | {"old_reaction": _emojis(before), "new_reaction": _emojis(after)})
        self._written[f"{of} {who}"]["emojis"] = after
        return ""

    # The API

    async def handle(self, request: web.Request) -> web.Response:
        path = request.path.removeprefix("/")
        if path.startswith("file/"):
            name = path.rpartition("/")[2]
            return web.Response(status=502) if name in self.broken_files else web.Response(body=self._files[name])
        token, _, method = path.removeprefix("bot").partition("/")
        if token != self.token:
            return _refused(401, "Unauthorized")
        if method == "sendDocument":
            return await self._document(await request.post())
        wanted: dict[str, Any] = await request.json()
        if method == "getUpdates":
            return _result(await self._get_updates(wanted))
        if method in ("sendMessage", "sendDocument"):
            match self.answers.pop(0) if self.answers else None:
                case Later(_, seconds):
                    return _refused(429, "Too Many Requests", {"retry_after": int(seconds or 0)})
                case Refused():
                    return _refused(400, "Bad Request: message is too long")
                case _:
                    pass
        return _result(self._do(method, wanted))

    async def _get_updates(self, wanted: dict[str, Any]) -> list[dict[str, Any]]:
        self.polls += 1
        offset = wanted["offset"]
        if offset < 0:
            self.updates = self.updates[offset:]
            return self.updates
        if offset > self._number + 10:
            offset = 0  # As its server does: a number that cannot be yet is none.
        self.updates = [each for each in self.updates if each["update_id"] >= offset]  # The others are confirmed.
        while wanted["timeout"] and not self.updates:
            self.news.clear()
            await self.news.wait()
        return self.updates[: wanted["limit"]]

    def _do(self, method: str, wanted: dict[str, Any]) -> Any:
        room = next((name for name, id in CHATS.items() if str(id) == str(wanted.get("chat_id"))), "private")
        match method:
            case "getMe":
                return {"id": 1, "is_bot": True, "username": "harbour_bot"}
            case "getFile":
                return {"file_path": f"documents/{wanted['file_id']}"}
            case "sendMessage":
                replied = wanted.get("reply_parameters", {}).get("message_id")
                about = f" (to {self._ours.get(replied, replied)})" if replied else ""
                return self._take(room, wanted["text"] + about)
            case "sendChatAction":
                self.typed.append(room)
                self.typing.set()
            case "sendMessageDraft":
                self.drafts.append((wanted["draft_id"], wanted["text"]))
                self.drafted.set()
            case "editMessageText":
                text = wanted["text"].partition(": ")[2]
                self._say(room, f"edit ({self._ours[wanted['message_id']]}): {text}")
            case "deleteMessage":
                self._say(room, f"delete ({self._ours[wanted['message_id']]})")
            case "setMessageReaction":
                self._react(room, wanted["message_id"], wanted["reaction"])
            case _:
                raise NotImplementedError(method)
        return True

    def _react(self, room: str, of: int, reaction: list[dict[str, Any]]) -> None:
        if reaction:
            self._say(room, f"react {reaction[0]['emoji']} ({self._ours.get(of, of)})")
            self._reacted[of] = reaction[0]["emoji"], f"out-{self._lines}"
        else:
            emoji, number = self._reacted.pop(of)
            self._say(room, f"unreact {emoji} ({number})")

    def _say(self, room: str, line: str) -> None:
        self._lines += 1
        self.said.append(f"{room}: {line}")

    def _take(self, room: str, line: str) -> dict[str, Any]:
        self._messages += 1
        self._say(room, line)
        self._ours[self._messages] = f"out-{self._lines}"
        return {"message_id": self._messages}

    async def _document(self, form: Any) -> web.Response:
        file = form["document"]
        self._messages += 1
        self.said[-1] += f" [{file.filename}: {file.file.read().decode()}]"
        return _result({"message_id": self._messages})


def _user(who: str, *, bot: bool = False) -> dict[str, Any]:
    return {"id": sum(who.encode()), "is_bot": bot, "first_name": who}


def _emojis(of: list[str]) -> list[dict[str, str]]:
    return [{"type": "emoji", "emoji": each} for each in of]


def _result(what: Any) -> web.Response:
    return web.json_response({"ok": True, "result": what}, dumps=json.dumps)


def _refused(status: int, why: str, parameters: dict[str, Any] | None = None) -> web.Response:
    told = {"ok": False, "error_code": status, "description": why, "parameters": parameters or {}}
    return web.json_response(told, status=status)
