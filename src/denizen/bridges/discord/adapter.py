"""Reads and writes channels of Discord, as a bot.

Each message is sent with a nonce made from its id, which Discord recognizes for a few minutes. What may have been sent
before is also looked for in the channel, among the messages after the last one that is known to be there.
"""

from __future__ import annotations

import json
from asyncio import Event
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Literal
from urllib.parse import quote

from denizen.amounts import human_size
from denizen.bridges.discord import events
from denizen.bridges.discord.kind import DiscordSettings
from denizen.bridges.discord.rest import NOT_ACCEPTED, Rest
from denizen.bridges.drafts import WRITING
from denizen.bridges.http_service import ServiceError, as_object, as_objects, as_seconds
from denizen.bridges.live_reading import EventContext, LiveFrame, LiveReader, SocketAdapter
from denizen.bridges.port import Author, Batch, Incoming, IncomingFile, Means, Outcome, Outgoing, Sent
from denizen.bridges.sockets import Socket, SocketEnded
from denizen.bridges.texts import draft_of, handles_in, named, parts_of, utf16_units, with_accounts
from denizen.clock import SECOND

TEXT_CHARACTERS: Final = 1_900
"""A message has at most 2,000."""
FILE_BYTES: Final = 25_000_000
INTENTS: Final = sum(1 << bit for bit in (9, 10, 11, 12, 13, 14, 15))
"""Messages, reactions and typing, of servers and of direct messages; and the text of messages."""
MOST_BEATS: Final = 60
"""Discord takes 120 frames a minute."""
_ENDS: Final = {
    4004: NOT_ACCEPTED,
    4013: "Discord does not know the intents that the bot asks for.",
    4014: "The bot may not read texts. Turn on the Message Content Intent in the Developer Portal, under Bot.",
}


class DiscordAdapter(SocketAdapter):
    """The connection of one bot."""

    def __init__(self, settings: DiscordSettings, means: Means) -> None:
        self._settings, self._means = settings, means
        self._rest = Rest(settings, means)
        self._socket = Socket("Discord", means.outbound.client(settings.allow_private), self._hear)
        self._reader = LiveReader(self, means.clock)
        self._known = EventContext(speaker=settings.speaker)
        self._session = ""
        """The session that can be resumed, and where; empty: none."""
        self._resume_url = ""
        self._number = 0
        """The number of the last event in it."""
        self._hello, self._begun, self._acknowledged = Event(), Event(), Event()
        self._beat_seconds = 40.0
        self._beats: list[int] = []
        self.drafts: Literal["none", "kept", "vanishing"] = "kept" if settings.streaming else "none"

    # The gateway

    async def connect(self) -> bool:
        await self._ready()
        session = self._session
        for each in (self._hello, self._begun):
            each.clear()
        await self._socket.open(f"{self._resume_url or await self._gateway()}/?v=10&encoding=json", self._keep_beating)
        token = self._settings.token
        if session:
            wanted = {"op": 6, "d": {"token": token, "session_id": session, "seq": self._number}}
        else:
            properties = {"os": "linux", "browser": "denizen", "device": "denizen"}
            wanted = {"op": 2, "d": {"token": token, "intents": INTENTS, "properties": properties}}
        try:
            await self._socket.send(wanted)
            await self._socket.until(self._begun.wait())
        except SocketEnded:
            self._check_end()
            raise
        return not session or session != self._session

    def _check_end(self) -> None:
        """Raises `ServiceError` if Discord ended the connection for good."""
        code = self._socket.close_code or 0
        if code in _ENDS:
            raise ServiceError(_ENDS[code], "revoked", status=401)
        if code in (4007, 4009):
            self._forget_session()

    async def _gateway(self) -> str:
        told = as_object(await self._rest.call("GET", "gateway/bot"))
        limit = as_object(told.get("session_start_limit"))
        if limit.get("remaining") == 0:
            wait = (as_seconds(limit.get("reset_after")) or 0) / 1_000
            raise ServiceError("Discord lets the bot connect again later.", retry_seconds=wait)
        return str(told.get("url")).rstrip("/")

    async def _ready(self) -> None:
        """Know who the bot is."""
        if not self._known.user:
            told = as_object(await self._rest.call("GET", "users/@me"))
            self._known = replace(self._known, user=str(told.get("id")))

    def _hear(self, frame: dict[str, Any]) -> None:
        data: Any = frame.get("d")
        match frame.get("op"):
            case 0:
                self._number = int(frame.get("s") or 0)
                self._take(str(frame.get("t")), as_object(data))
            case 1:
                self._reader.hear(LiveFrame("", {"beat": True}))
            case 7:
                self._reader.hear(LiveFrame("", {"reconnect": True}))
            case 9:
                if data is not True:
                    self._forget_session()
                self._reader.hear(LiveFrame("", {"reconnect": True}))
                self._begun.set()
            case 10:
                self._beat_seconds = (as_seconds(as_object(data).get("heartbeat_interval")) or 40_000) / 1_000
                self._hello.set()
            case 11:
                self._acknowledged.set()
            case _:
                pass

    def _take(self, kind: str, data: dict[str, Any]) -> None:
        if kind in ("READY", "RESUMED"):
            if kind == "READY":
                self._session = str(data.get("session_id"))
                self._resume_url = str(data.get("resume_gateway_url") or "").rstrip("/")
            self._begun.set()
        elif kind == "TYPING_START":
            who = events.typing_of(data)
            if who is not None:
                self._means.heard_typing(str(data.get("channel_id")), who)
        elif "channel_id" in data:
            self._reader.hear(LiveFrame(str(data["channel_id"]), {**data, "t": kind, "s": self._number}))

    def _forget_session(self) -> None:
        self._session, self._resume_url, self._number = "", "", 0

    async def confirm(self, frames: Sequence[LiveFrame]) -> None:
        if any("beat" in each.body for each in frames):
            await self._beat()
        if any("reconnect" in each.body for each in frames):
            await self._socket.close()

    async def _beat(self) -> None:
        self._acknowledged.clear()
        await self._socket.send({"op": 1, "d": self._number or None})

    async def _keep_beating(self) -> None:
        await self._hello.wait()
        while True:
            await self._means.clock.sleep(self._beat_seconds)
            await self._beat()
            await self._socket.until(self._acknowledged.wait())

    async def barrier(self) -> None:
        """Discord answers a beat after what it has sent before."""
        now = self._means.clock.now()
        self._beats = [at for at in self._beats if now - at < 60 * SECOND]
        if len(self._beats) < MOST_BEATS:
            self._beats.append(now)
            await self._beat()
            await self._socket.until(self._acknowledged.wait())

    # Reading

    async def newest(self, room: str) -> str:
        return max(["0", *[str(each["id"]) for each in await self._rest.messages(room, limit="1")]], key=int)

    async def history(self, room: str, cursor: str) -> Batch | None:
        new = await self._rest.messages(room, after=cursor)
        read = [await self._message(each) for each in new]
        return Batch(room, [each for each in read if each is not None], str(new[-1]["id"])) if new else None

    async def changes(self, room: str, cursor: str) -> Batch | None:
        since = events.instant_of(cursor)
        before = await self._rest.messages(room, before=str(int(cursor) + 1))
        edited = [each for each in before if (events.edited_at(each) or 0) > since]
        edits = [events.edit_of(each, await self._known_of(each)) for each in edited]
        found = [each for each in edits if each is not None]
        return Batch(room, found, None) if found else None

    async def batch(self, frame: LiveFrame, cursor: str) -> Batch | None:
        body = frame.body
        if body["t"] == "MESSAGE_CREATE":
            read = await self._message(body)
            found = [] if read is None else [read]
        else:
            found = events.incoming(body, await self._known_of(body))
        is_newer = body["t"] == "MESSAGE_CREATE" and int(body["id"]) > int(cursor)
        return Batch(frame.room, found, str(body["id"]) if is_newer else None) if found else None

    async def _message(self, message: Mapping[str, Any]) -> Incoming | None:
        if events.is_ours(message, self._known):
            return None
        files = [await self._file(each) for each in as_objects(message.get("attachments"))]
        return events.message_of(message, await self._known_of(message), files)

    async def _known_of(self, message: Mapping[str, Any]) -> EventContext:
        return replace(self._known, handles=await self._means.handles(events.users_in(message)))

    async def _file(self, file: Mapping[str, Any]) -> IncomingFile:
        name, media_type, size = str(file.get("filename") or "file"), file.get("content_type"), file.get("size")
        kept = media_type if isinstance(media_type, str) else None
        if isinstance(size, int) and size > FILE_BYTES:
            return IncomingFile(name, kept, b"", f"{name} is larger than {human_size(FILE_BYTES)}.")
        try:
            return IncomingFile(name, kept, await self._rest.download(str(file.get("url")), FILE_BYTES))
        except ServiceError as error:
            if error.means == "later":
                raise
            return IncomingFile(name, kept, b"", f"Discord does not have {name}.")

    # Sending

    async def send(self, what: Outgoing) -> Outcome:
        try:
            await self._ready()
            return await self._send(what)
        except ServiceError as error:
            return error.as_outcome()

    async def _send(self, what: Outgoing) -> Outcome:
        room = f"channels/{what.target}/messages"
        match what.action:
            case "post":
                return await self._post(what)
            case "edit":
                texts, mentions = await self._texts(what)
                for id, text in zip((what.of or "", *what.also), texts, strict=False):
                    await self._change(what.target, id, {"content": text, **mentions})
                return Sent(None)
            case "delete":
                for each in (what.of, *what.also) if what.of else await self._drafts_there(what):
                    await self._rest.call("DELETE", f"{room}/{each}", quiet=True)
                return Sent(None)
            case "react":
                await self._rest.call("PUT", _reaction(room, what.of or "", what.emoji or ""), quiet=True)
                return Sent(f"{what.of}:{what.emoji}")
            case "unreact":
                of, _, emoji = (what.of or "").partition(":")
                await self._rest.call("DELETE", _reaction(room, of, emoji), quiet=True)
                return Sent(None)
            case _:
                channel = as_object(
                    await self._rest.call("POST", "users/@me/channels", json={"recipient_id": what.target})
                )
                said = {"content": f"Your code to link this account: {what.text}", "nonce": events.nonce_of(what.id)}
                path = f"channels/{channel.get('id')}/messages"
                sent = await self._rest.call("POST", path, json={**said, "enforce_nonce": True})
                return Sent(str(as_object(sent).get("id")))

    async def show_typing(self, room: str, who: Author, *, typing: bool) -> None:  # noqa: ARG002
        if typing:
            with suppress(ServiceError):
                await self._rest.call("POST", f"channels/{room}/typing")

    async def show_draft(self, draft: Outgoing) -> str | None:
        text = draft_of(named(draft, self._settings.speaker), TEXT_CHARACTERS, utf16_units)
        said: dict[str, Any] = {"content": text, "allowed_mentions": {"parse": []}}
        with suppress(ServiceError):
            if draft.of is None:
                return await self._say(draft, {**said, "nonce": events.nonce_of(draft.id), "enforce_nonce": True})
            await self._change(draft.target, draft.of, said)
        return draft.of

    async def _change(self, room: str, id: str, content: Mapping[str, Any]) -> bool:
        """Change a message of ours. Returns whether it is still there."""
        return await self._rest.call("PATCH", f"channels/{room}/messages/{id}", quiet=True, json=content) is not None

    async def _texts(self, what: Outgoing) -> tuple[list[str], dict[str, Any]]:
        """The text in parts, and whom they may notify: nobody but those whom it names."""
        text = named(what, self._settings.speaker)
        accounts = await self._means.accounts(handles_in(text))
        parts = parts_of(with_accounts(text, accounts), TEXT_CHARACTERS, utf16_units)
        return parts, {"allowed_mentions": {"parse": [], "users": list(accounts.values())[:100], "replied_user": True}}

    async def _post(self, what: Outgoing) -> Outcome:
        texts, mentions = await self._texts(what)
        if what.files and not what.text.strip():
            texts = [texts[0].rstrip(": ")]
        before = await self._sent_before(what) if what.again else []
        sent: list[str] = []
        for at, text in enumerate(texts):
            id = what.id if at == 0 else f"{what.id}.{at}"
            wanted = {"content": text, "nonce": events.nonce_of(id), "enforce_nonce": True, **mentions}
            if at == 0 and what.reply_to is not None:
                wanted["message_reference"] = {"message_id": what.reply_to, "fail_if_not_exists": False}
            there = next((each for each in before if each.get("content") == text.strip()), None)
            has_files = at == len(texts) - 1 and bool(what.files)
            if there is not None:
                before.remove(there)
                sent.append(str(there["id"]))
            elif (
                at == 0
                and what.draft
                and not has_files
                and await self._change(what.target, what.draft, {"content": text, **mentions})
            ):
                sent.append(what.draft)
            else:
                sent.append(await self._say(what, wanted, with_files=has_files))
        return Sent(sent[0], tuple(sent[1:]))

    async def _say(self, what: Outgoing, wanted: Mapping[str, Any], *, with_files: bool = False) -> str:
        more: dict[str, Any] = {"json": wanted}
        if with_files:
            data = [await self._means.read_file(each.id) for each in what.files]
            files = {
                f"files[{at}]": (each.name, content, each.media_type)
                for at, (each, content) in enumerate(zip(what.files, data, strict=True))
            }
            more = {"data": {"payload_json": json.dumps(wanted)}, "files": files}
        told = as_object(await self._rest.call("POST", f"channels/{what.target}/messages", **more))
        return str(told.get("id"))

    async def _sent_before(self, what: Outgoing) -> list[dict[str, Any]]:
        """Messages of the bot after the last one that is known to be there."""
        since = events.id_at((what.created_at or 0) - 60 * SECOND)
        after = max(int(what.last_sent or 0), since)
        return [
            each
            for each in await self._rest.messages(what.target, after=str(after))
            if events.is_ours(each, self._known)
        ]

    async def _drafts_there(self, what: Outgoing) -> list[str]:
        """Drafts in the channel whose ids are not known: they are recognized by their end."""
        return [str(each["id"]) for each in await self._sent_before(what) if str(each.get("content")).endswith(WRITING)]


def _reaction(room: str, of: str, emoji: str) -> str:
    return f"{room}/{of}/reactions/{quote(emoji, safe='')}/@me"
