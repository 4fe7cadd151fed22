"""Reads the updates of a bot and writes in its chats.

Telegram has one queue of updates for all chats of a bot: how far it is read is stored with each message, as the number
of its update. After a week without updates it numbers them from anywhere, also lower. It shows the next 100 and forgets
an update when a later one is asked for: while one waits to be taken in again, only those are read; it is left out if
more come. Telegram has no transaction ids: what was sent when a process died is sent again, and may be there twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, cast

from denizen.amounts import human_size
from denizen.bridges.http_service import (
    REQUEST_SECONDS,
    Answer,
    HttpService,
    ServiceError,
    as_object,
    as_seconds,
    parsed,
)
from denizen.bridges.port import (
    Author,
    Batch,
    Incoming,
    IncomingFile,
    Means,
    Outcome,
    Outgoing,
    Sent,
    Unfetched,
)
from denizen.bridges.telegram import updates
from denizen.bridges.telegram.kind import TelegramSettings
from denizen.bridges.texts import draft_of, named, parts_of, utf16_units

POLL_SECONDS: Final = 50
UPDATES_AT_ONCE: Final = 100
HOLDING_SECONDS: Final = 5
"""How often the updates are read while one of them waits: the service would answer a long poll at once."""
FILE_BYTES: Final = 20_000_000
"""The most that the Bot API hands out."""
_WANTED: Final = ["message", "edited_message", "message_reaction"]


class TelegramAdapter:
    """The connection of one bot."""

    def __init__(self, settings: TelegramSettings, means: Means) -> None:
        self._settings, self._means = settings, means
        self._http = HttpService("Telegram", means.outbound.client(settings.allow_private))
        self._name = ""
        self._passed = 0
        """The number of the last update that is behind us, also of chats that are not connected."""
        self._shown = 0
        """The number of the last update of a chat that is not connected; it was looked at once."""
        self._holds = False
        """Whether an update waits, so that nothing after it may be confirmed."""
        self.is_full = False
        self._poll: asyncio.Future[Any] | None = None
        self._reading = asyncio.Lock()
        self.drafts: Literal["none", "kept", "vanishing"] = "vanishing" if settings.streaming else "none"

    async def close(self) -> None:
        return

    async def news(self) -> None:
        """Wait for an update. Telegram answers only one who asks: reading cuts the wait short, and it begins anew."""
        wanted = {"timeout": POLL_SECONDS, "limit": 1, "allowed_updates": _WANTED}
        while True:
            if self._holds:
                await self._means.clock.sleep(HOLDING_SECONDS)
                return
            async with self._reading:
                asked = self._call("getUpdates", {**wanted, "offset": self._passed + 1}, POLL_SECONDS + REQUEST_SECONDS)
                poll = self._poll = asyncio.ensure_future(asked)
            try:
                await asyncio.wait([poll])
            finally:
                poll.cancel()
            if not poll.cancelled():
                break
        if isinstance(error := poll.exception(), ServiceError):
            raise error.as_unreadable() from error

    async def read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        async with self._reading:
            if self._poll is not None:
                self._poll.cancel()
            try:
                return await self._read(rooms)
            except ServiceError as error:
                raise error.as_unreadable() from error

    def keep_unread(self, *, holds: bool) -> None:
        self._holds = holds
        if not holds:
            self.is_full = False

    async def _read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        if not self._name:
            self._name = str(as_object(await self._call("getMe", {})).get("username"))
        if self._holds:
            # A chat that is connected meanwhile begins when the update was taken in: here is no place for it yet.
            found = await self._updates(self._passed + 1)
            self.is_full = len(found) >= UPDATES_AT_ONCE
            return await self._batches(found, rooms)
        known = [int(cursor) for cursor in rooms.values() if cursor is not None]
        self._passed = max([self._passed, *known])
        new = [room for room, cursor in rooms.items() if cursor is None]
        if new:
            if not known and not self._passed:
                newest = await self._updates(-1)
                self._passed = max([0, *[int(each["update_id"]) for each in newest]])
            return [Batch(room, (), str(self._passed)) for room in new]
        while found := await self._updates(self._passed + 1):
            if self._passed and (first := int(found[0]["update_id"])) <= self._passed:
                # After a week without any, Telegram numbers updates from anywhere. All of these are new.
                self._passed = self._shown = first - 1
                return [Batch(room, (), str(self._passed)) for room in rooms]
            if batches := await self._batches(found, rooms):
                return batches
            self._passed = int(found[-1]["update_id"])
        return ()

    async def _batches(self, found: Sequence[Mapping[str, Any]], rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        """One batch for each update, in their order: whichever is stored last is how far all chats are read."""
        return [each for update in found if (each := await self._batch(update, rooms)) is not None]

    async def _updates(self, offset: int) -> list[dict[str, Any]]:
        wanted = {"offset": offset, "timeout": 0, "limit": UPDATES_AT_ONCE, "allowed_updates": _WANTED}
        return cast("list[dict[str, Any]]", await self._call("getUpdates", wanted) or [])

    async def _batch(self, update: Mapping[str, Any], rooms: Mapping[str, str | None]) -> Batch | None:
        room, number = updates.room_of(update), int(update["update_id"])
        cursor = None if room is None else rooms.get(room)
        if room is None or cursor is None:
            if number > self._shown and room not in rooms:
                await self._tell_id(update, room)
                self._shown = number
            return None
        if number <= int(cursor):
            return None

        async def fetch(last: bool) -> Sequence[Incoming]:
            return updates.incoming(update, self._name, await self._files(update, last))

        return Batch(room, (Unfetched(f"u{number}", fetch),), str(number))

    async def _tell_id(self, update: Mapping[str, Any], room: str | None) -> None:
        """Say what the id of a chat is that is not connected, to somebody who asks with /start or /id."""
        text = str(as_object(update.get("message")).get("text") or "")
        if room is not None and text.partition("@")[0].split(" ")[0] in ("/start", "/id"):
            told = f"This chat is not connected. Its id is {room}: an admin can connect it with a space."
            try:
                await self._call("sendMessage", {"chat_id": room, "text": told})
            except ServiceError as error:
                if error.means == "revoked" or error.status == 0:
                    raise

    async def _files(self, update: Mapping[str, Any], last: bool) -> tuple[IncomingFile, ...]:
        file = updates.file_of(update)
        if file is None:
            return ()
        if file.size > FILE_BYTES:
            problem = f"{file.name} is larger than {human_size(FILE_BYTES)}."
            return (IncomingFile(file.name, file.media_type, b"", problem),)
        try:
            path = str(as_object(await self._call("getFile", {"file_id": file.id})).get("file_path"))
            url = f"{self._settings.api.rstrip('/')}/file/bot{self._settings.token}/{path}"
            data = await self._request("GET", url, REQUEST_SECONDS)
        except ServiceError as error:
            if error.means == "revoked" or (error.means == "later" and not last):
                raise error.as_unreadable() from error
            why = f"Telegram does not have {file.name}."
            if error.means == "later":
                why = f"{file.name} could not be fetched from Telegram."
            return (IncomingFile(file.name, file.media_type, b"", why),)
        return (IncomingFile(file.name, file.media_type, data),)

    # Sending

    async def send(self, what: Outgoing) -> Outcome:
        try:
            return await self._send(what)
        except ServiceError as error:
            return error.as_outcome()

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
        texts = self._parts(what) if what.text.strip() or not what.files else []
        for text in texts:
            sent.append(await self._say({"chat_id": what.target, "text": text, **replied}))
            replied = {}
        for file in what.files:
            caption = {} if texts else {"caption": named(what, self._settings.speaker).strip(": \n")}
            fields = {"chat_id": what.target, **caption, **{name: json.dumps(each) for name, each in replied.items()}}
            told = await self._upload(fields, file.name, file.media_type, await self._means.read_file(file.id))
            sent.append(str(told.get("message_id")))
        return Sent(sent[0], tuple(sent[1:]))

    def _parts(self, what: Outgoing) -> list[str]:
        return parts_of(named(what, self._settings.speaker), updates.TEXT_CHARACTERS, utf16_units)

    async def _edit(self, what: Outgoing) -> Outcome:
        """Replace the text of the message; what does not fit into the parts that are there is cut."""
        there = (what.of or "", *what.also)
        for id, text in zip(there, self._parts(what), strict=False):
            wanted = {"chat_id": what.target, "message_id": _number(id), "text": text}
            await self._quietly("editMessageText", wanted)
        return Sent(None)

    async def _react(self, chat: str, of: str, reaction: list[dict[str, Any]]) -> None:
        wanted = {"chat_id": chat, "message_id": _number(of), "reaction": reaction}
        await self._quietly("setMessageReaction", wanted)

    async def show_typing(self, room: str, who: Author, *, typing: bool) -> None:  # noqa: ARG002
        if typing:
            with suppress(ServiceError):
                await self._call("sendChatAction", {"chat_id": room, "action": "typing"})

    async def show_draft(self, draft: Outgoing) -> str | None:
        """Show a draft, which Telegram ends by itself. There are none in groups, whose ids are negative."""
        if not draft.target.startswith("-"):
            text = draft_of(named(draft, self._settings.speaker), updates.TEXT_CHARACTERS, utf16_units)
            number = int.from_bytes(hashlib.sha256(draft.id.encode()).digest()[:4]) // 2 + 1
            with suppress(ServiceError):
                await self._call("sendMessageDraft", {"chat_id": draft.target, "draft_id": number, "text": text})
        return None

    async def _say(self, wanted: Mapping[str, Any]) -> str:
        return str(as_object(await self._call("sendMessage", wanted)).get("message_id"))

    async def _quietly(self, method: str, wanted: Mapping[str, Any]) -> None:
        """Change something that may be gone, unchanged or not allowed there: nobody has to be told."""
        try:
            await self._call(method, wanted)
        except ServiceError as error:
            if error.status != 400:
                raise

    # Requests

    async def _call(self, method: str, wanted: Mapping[str, Any], seconds: float = REQUEST_SECONDS) -> Any:
        return _result(await self._request("POST", self._url(method), seconds, json=dict(wanted)))

    async def _upload(self, fields: Mapping[str, str], name: str, media_type: str, data: bytes) -> dict[str, Any]:
        files = {"document": (name, data, media_type)}
        body = await self._request("POST", self._url("sendDocument"), REQUEST_SECONDS, data=dict(fields), files=files)
        return as_object(_result(body))

    def _url(self, method: str) -> str:
        return f"{self._settings.api.rstrip('/')}/bot{self._settings.token}/{method}"

    async def _request(self, verb: str, url: str, seconds: float, **more: Any) -> bytes:
        answer = await self._http.ask(verb, url, seconds=seconds, at_most=FILE_BYTES * 2, **more)
        if answer.is_success:
            return answer.body
        raise _refusal(answer)


def _result(body: bytes) -> Any:
    told = parsed(body)
    if told.get("ok") is not True:
        raise ServiceError("Telegram's answer cannot be read.", status=502)
    return told.get("result")


def _refusal(answer: Answer) -> ServiceError:
    status, told = answer.status, answer.json
    if status in (401, 404):
        why = "Telegram does not accept the token of the bot. Get a new one from @BotFather."
        return ServiceError(why, "revoked", status=status)
    if status == 409:
        return ServiceError(
            "Another program reads the updates of this bot, or a webhook is set. End it.", status=status
        )
    why = f"Telegram refuses this ({str(told.get('description') or f'HTTP {status}')[:200]})."
    wait = as_seconds(as_object(told.get("parameters")).get("retry_after"))
    return ServiceError(
        why, "later" if status == 429 or status >= 500 else "refused", status=status, retry_seconds=wait
    )


def _number(id: str) -> int:
    return int(id) if id.isdecimal() else 0
