"""Reads the updates of a bot and writes in its chats.

Telegram has one queue of updates for all chats of a bot: how far it is read is stored with each message, as the number
of its update. Telegram has no transaction ids: what was sent when a process died is sent again, and may be there twice.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import httpx2

from denizen.bridges.port import (
    AccessRevoked,
    Batch,
    Incoming,
    IncomingFile,
    Later,
    Means,
    NotReadable,
    Outcome,
    Outgoing,
    Refused,
    Revoked,
    Sent,
)
from denizen.bridges.telegram import updates
from denizen.bridges.telegram.kind import TelegramSettings
from denizen.errors import AddressRefused

REQUEST_SECONDS: Final = 30.0
POLL_SECONDS: Final = 50
UPDATES_AT_ONCE: Final = 100
FILE_BYTES: Final = 20_000_000
"""The most that the Bot API hands out."""
_WANTED: Final = ["message", "edited_message", "message_reaction"]


class TelegramError(Exception):
    """The Bot API refused a request, or could not be reached (status 0)."""

    def __init__(self, status: int, text: str, retry_seconds: float | None = None) -> None:
        super().__init__(text)
        self.status, self.retry_seconds = status, retry_seconds


class TelegramAdapter:
    """The connection of one bot."""

    def __init__(self, settings: TelegramSettings, means: Means) -> None:
        self._settings, self._means = settings, means
        self._client = means.outbound.client(settings.allow_private)
        self._name = ""
        self._passed = 0
        """The number of the last update that is behind us, also of chats that are not connected."""
        self._poll: asyncio.Future[Any] | None = None
        self._reading = asyncio.Lock()

    async def close(self) -> None:
        return

    async def news(self) -> None:
        """Wait for an update. Telegram answers only one who asks: reading cuts the wait short, and it begins anew."""
        wanted = {"timeout": POLL_SECONDS, "limit": 1, "allowed_updates": _WANTED}
        while True:
            async with self._reading:
                asked = self._call("getUpdates", {**wanted, "offset": self._passed + 1}, POLL_SECONDS + REQUEST_SECONDS)
                poll = self._poll = asyncio.ensure_future(asked)
            try:
                await asyncio.wait([poll])
            finally:
                poll.cancel()
            if not poll.cancelled():
                break
        if isinstance(error := poll.exception(), TelegramError):
            raise _unreadable(error) from error

    async def read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        async with self._reading:
            if self._poll is not None:
                self._poll.cancel()
            try:
                return await self._read(rooms)
            except TelegramError as error:
                raise _unreadable(error) from error

    async def _read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        if not self._name:
            self._name = str(updates.as_object(await self._call("getMe", {})).get("username"))
        known = [int(cursor) for cursor in rooms.values() if cursor is not None]
        self._passed = max([self._passed, *known])
        new = [room for room, cursor in rooms.items() if cursor is None]
        if new:
            if not known and not self._passed:
                newest = await self._updates(-1)
                self._passed = max([0, *[int(each["update_id"]) for each in newest]])
            return [Batch(room, (), str(self._passed)) for room in new]
        while found := await self._updates(self._passed + 1):
            if batches := [each for update in found if (each := await self._batch(update, rooms)) is not None]:
                # One batch for each update, in their order: whichever is stored last is how far all chats are read.
                return batches
            self._passed = int(found[-1]["update_id"])
        return ()

    async def _updates(self, offset: int) -> list[dict[str, Any]]:
        wanted = {"offset": offset, "timeout": 0, "limit": UPDATES_AT_ONCE, "allowed_updates": _WANTED}
        return cast("list[dict[str, Any]]", await self._call("getUpdates", wanted) or [])

    async def _batch(self, update: Mapping[str, Any], rooms: Mapping[str, str | None]) -> Batch | None:
        room = updates.room_of(update)
        if room is None or room not in rooms:
            await self._tell_id(update, room)
            return None
        if int(update["update_id"]) <= int(rooms[room] or 0):
            return None
        events: list[Incoming] = updates.incoming(update, self._name, await self._files(update))
        return Batch(room, events, str(update["update_id"]))

    async def _tell_id(self, update: Mapping[str, Any], room: str | None) -> None:
        """Say what the id of a chat is that is not connected, to somebody who asks with /start or /id."""
        text = str(updates.as_object(update.get("message")).get("text") or "")
        if room is not None and text.partition("@")[0].split(" ")[0] in ("/start", "/id"):
            told = f"This chat is not connected. Its id is {room}: an admin can connect it with a space."
            try:
                await self._call("sendMessage", {"chat_id": room, "text": told})
            except TelegramError as error:
                if error.status in (0, 401, 404):
                    raise

    async def _files(self, update: Mapping[str, Any]) -> tuple[IncomingFile, ...]:
        file = updates.file_of(update)
        if file is None:
            return ()
        if file.size > FILE_BYTES:
            problem = f"{file.name} has more than {FILE_BYTES:,} bytes."
            return (IncomingFile(file.name, file.media_type, b"", problem),)
        try:
            path = str(updates.as_object(await self._call("getFile", {"file_id": file.id})).get("file_path"))
            url = f"{self._settings.api.rstrip('/')}/file/bot{self._settings.token}/{path}"
            data = await self._request("GET", url, REQUEST_SECONDS)
        except TelegramError as error:
            if error.status in (0, 401, 429) or error.status >= 500:
                raise
            return (IncomingFile(file.name, file.media_type, b"", f"Telegram does not have {file.name}."),)
        return (IncomingFile(file.name, file.media_type, data),)

    # Sending

    async def send(self, what: Outgoing) -> Outcome:
        try:
            return await self._send(what)
        except TelegramError as error:
            return _outcome(error)

    async def _send(self, what: Outgoing) -> Outcome:
        match what.action:
            case "post":
                return await self._post(what)
            case "edit":
                return await self._edit(what)
            case "delete":
                for each in (what.of or "", *what.also):
                    await self._quietly("deleteMessage", {"chat_id": what.target, "message_id": _number(each)})
                return Sent(None)
            case "react":
                reaction = [{"type": "emoji", "emoji": what.emoji}]
                await self._react(what.target, what.of or "", reaction)
                return Sent(f"{what.of}{updates.REACTION}")
            case "unreact":
                await self._react(what.target, (what.of or "").removesuffix(updates.REACTION), [])
                return Sent(None)
            case _:
                text = f"Your code to link this account: {what.text}"
                return Sent(await self._say({"chat_id": what.target, "text": text}))

    async def _post(self, what: Outgoing) -> Outcome:
        sent: list[str] = []
        replied: dict[str, Any] = {}
        if what.reply_to is not None:
            of = {"message_id": _number(what.reply_to), "allow_sending_without_reply": True}
            replied = {"reply_parameters": of}
        texts = updates.parts_of(self._named(what)) if what.text.strip() or not what.files else []
        for text in texts:
            sent.append(await self._say({"chat_id": what.target, "text": text, **replied}))
            replied = {}
        for file in what.files:
            caption = {} if texts else {"caption": self._named(what).strip(": \n")}
            fields = {"chat_id": what.target, **caption, **{name: json.dumps(each) for name, each in replied.items()}}
            told = await self._upload(fields, file.name, file.media_type, await self._means.read_file(file.id))
            sent.append(str(told.get("message_id")))
        return Sent(sent[0], tuple(sent[1:]))

    def _named(self, what: Outgoing) -> str:
        """The text, with the author before it unless the bot is the author."""
        is_bot = bool(self._settings.speaker) and what.author_handle == self._settings.speaker.removeprefix("@")
        return what.text if is_bot else f"{what.author}: {what.text}"

    async def _edit(self, what: Outgoing) -> Outcome:
        """Replace the text of the message; what does not fit into the parts that are there is cut."""
        there = (what.of or "", *what.also)
        for id, text in zip(there, updates.parts_of(self._named(what)), strict=False):
            wanted = {"chat_id": what.target, "message_id": _number(id), "text": text}
            await self._quietly("editMessageText", wanted)
        return Sent(None)

    async def _react(self, chat: str, of: str, reaction: list[dict[str, Any]]) -> None:
        wanted = {"chat_id": chat, "message_id": _number(of), "reaction": reaction}
        await self._quietly("setMessageReaction", wanted)

    async def _say(self, wanted: Mapping[str, Any]) -> str:
        return str(updates.as_object(await self._call("sendMessage", wanted)).get("message_id"))

    async def _quietly(self, method: str, wanted: Mapping[str, Any]) -> None:
        """Change something that may be gone, unchanged or not allowed there: nobody has to be told."""
        try:
            await self._call(method, wanted)
        except TelegramError as error:
            if error.status != 400:
                raise

    # Requests

    async def _call(self, method: str, wanted: Mapping[str, Any], seconds: float = REQUEST_SECONDS) -> Any:
        return _result(await self._request("POST", self._url(method), seconds, json=dict(wanted)))

    async def _upload(self, fields: Mapping[str, str], name: str, media_type: str, data: bytes) -> dict[str, Any]:
        files = {"document": (name, data, media_type)}
        body = await self._request("POST", self._url("sendDocument"), REQUEST_SECONDS, data=dict(fields), files=files)
        return updates.as_object(_result(body))

    def _url(self, method: str) -> str:
        return f"{self._settings.api.rstrip('/')}/bot{self._settings.token}/{method}"

    async def _request(self, verb: str, url: str, seconds: float, **more: Any) -> bytes:
        """The body of an answer. No error holds the address: the token is in it."""
        try:
            async with asyncio.timeout(seconds), self._client.stream(verb, url, **more) as answer:
                body = b""
                async for part in answer.aiter_bytes():
                    body += part
                    if len(body) > FILE_BYTES * 2:
                        raise TelegramError(400, "Telegram's answer is too large.")
        except AddressRefused as error:
            raise TelegramError(401, str(error)) from error
        except TimeoutError:
            raise TelegramError(0, f"Telegram did not answer within {seconds:g} seconds.") from None
        except httpx2.HTTPError as error:
            raise TelegramError(0, f"Telegram cannot be reached ({type(error).__name__}).") from None
        if answer.is_success:
            return body
        raise _refusal(answer.status_code, body)


def _result(body: bytes) -> Any:
    try:
        told = updates.as_object(json.loads(body))
    except ValueError:
        told = {}
    if told.get("ok") is not True:
        raise TelegramError(502, "Telegram's answer cannot be read.")
    return told.get("result")


def _refusal(status: int, body: bytes) -> TelegramError:
    try:
        told = updates.as_object(json.loads(body))
    except ValueError:
        told = {}
    wait = updates.as_object(told.get("parameters")).get("retry_after")
    why = str(told.get("description") or f"HTTP {status}")[:200]
    return TelegramError(status, f"Telegram refuses this ({why}).", float(wait) if isinstance(wait, int) else None)


def _unreadable(error: TelegramError) -> NotReadable:
    if error.status in (401, 404):
        return AccessRevoked("Telegram does not accept the token of the bot. Get a new one from @BotFather.")
    if error.status == 409:
        return NotReadable("Another program reads the updates of this bot, or a webhook is set. End it.")
    return NotReadable(str(error))


def _outcome(error: TelegramError) -> Outcome:
    """What an error means for something that was to be sent. Pure."""
    if error.status in (401, 404):
        return Revoked("Telegram does not accept the token of the bot. Get a new one from @BotFather.")
    if error.status in (0, 409, 429) or error.status >= 500:
        return Later(str(error), error.retry_seconds)
    return Refused(str(error))


def _number(id: str) -> int:
    return int(id) if id.isdecimal() else 0
