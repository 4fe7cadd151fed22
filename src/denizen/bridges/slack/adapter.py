"""Reads and writes channels of Slack, as an app in socket mode.

Slack confirms nothing by a transaction id. Each message is sent with its id in the metadata, and looked for in the
channel before it is sent again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from denizen.amounts import human_size
from denizen.bridges.http_service import ServiceError, as_object, as_objects
from denizen.bridges.live_reading import LiveFrame, LiveReader, SocketAdapter
from denizen.bridges.pacing import Pace
from denizen.bridges.port import Author, Batch, Incoming, IncomingFile, Means, Outcome, Outgoing, OutgoingFile, Sent
from denizen.bridges.slack import events
from denizen.bridges.slack.emoji import name_of
from denizen.bridges.slack.events import SlackContext, at
from denizen.bridges.slack.kind import SlackSettings
from denizen.bridges.slack.web_api import WebApi
from denizen.bridges.sockets import Socket
from denizen.bridges.texts import draft_of, handles_in, named, parts_of, with_accounts
from denizen.clock import SECOND

TEXT_CHARACTERS: Final = 11_000
"""A message has at most 12,000 of Markdown."""
FILE_BYTES: Final = 25_000_000
HISTORY: Final = "conversations.history"
CUSTOMIZE: Final = "chat:write.customize"
_GONE: Final = ("message_not_found", "cant_update_message", "cant_delete_message", "file_not_found", "file_deleted")


class SlackAdapter(SocketAdapter):
    """The connection of one app."""

    def __init__(self, settings: SlackSettings, means: Means) -> None:
        self._settings, self._means = settings, means
        self._api = WebApi(settings, means)
        self._socket = Socket("Slack", means.outbound.client(settings.allow_private), self._hear)
        self._reader = LiveReader(self, means.clock)
        self._pace = Pace(means.clock, seconds=1, burst=10)
        self._known = SlackContext(speaker=settings.speaker)
        self._names: dict[str, str] = {}
        self._customizes = True
        """Whether messages may have the name of their author."""
        self.drafts: Literal["none", "kept", "vanishing"] = "kept" if settings.streaming else "none"

    # The socket

    async def connect(self) -> bool:
        await self._ready()
        told = await self._api.call("apps.connections.open", app=True)
        await self._socket.open(str(told.get("url")))
        return True

    async def _ready(self) -> None:
        """Know who the app is."""
        if not self._known.user:
            told = await self._api.call("auth.test")
            self._customizes = CUSTOMIZE in (self._api.scopes or CUSTOMIZE)
            self._known = replace(self._known, user=str(told.get("user_id")), bot=str(told.get("bot_id")))

    def _hear(self, envelope: dict[str, Any]) -> None:
        if envelope.get("type") == "disconnect":
            # Slack renews connections. What follows comes over the next one.
            self._reader.hear(LiveFrame("", {"reconnect": True}))
        elif "envelope_id" in envelope:
            event = as_object(as_object(envelope.get("payload")).get("event"))
            self._reader.hear(LiveFrame(events.room_of(event) or "", event, str(envelope["envelope_id"])))

    async def confirm(self, frames: Sequence[LiveFrame]) -> None:
        for each in frames:
            if each.tag:
                await self._socket.send({"envelope_id": each.tag})
        if any("reconnect" in each.body for each in frames):
            await self._socket.close()

    async def barrier(self) -> None:
        await self._socket.ping()

    # Reading

    async def newest(self, room: str) -> str:
        told = await self._api.call(HISTORY, {"channel": room, "limit": "1"})
        times = [str(each.get(name)) for each in as_objects(told.get("messages")) for name in ("ts", "latest_reply")]
        return max(["0", *times], key=at)

    async def history(self, room: str, cursor: str) -> Batch | None:
        """Also answers in threads, which the history of the channel does not have."""
        new = await self._api.pages(HISTORY, {"channel": room, "oldest": cursor})
        for parent in [*new, *await self._before(room, cursor)]:
            if at(parent.get("latest_reply")) > at(cursor):
                thread = {"channel": room, "ts": str(parent["ts"]), "oldest": cursor}
                new += await self._api.pages("conversations.replies", thread)
        by_ts = {str(each["ts"]): each for each in new if at(each.get("ts")) > at(cursor)}
        read = [await self._incoming({"type": "message", **by_ts[ts]}) for ts in sorted(by_ts, key=at)]
        return Batch(room, [each for each in read if each is not None], max(by_ts, key=at)) if by_ts else None

    async def changes(self, room: str, cursor: str) -> Batch | None:
        before = await self._before(room, cursor)
        edited = [each for each in before if at(as_object(each.get("edited")).get("ts")) > at(cursor)]
        edits = [events.edit_of(each, await self._known_of(each)) for each in edited]
        found = [each for each in edits if each is not None]
        return Batch(room, found, None) if found else None

    async def _before(self, room: str, cursor: str) -> list[dict[str, Any]]:
        return await self._api.pages(HISTORY, {"channel": room, "latest": cursor, "inclusive": "true"}, 1)

    async def batch(self, frame: LiveFrame, cursor: str) -> Batch | None:
        event = await self._incoming(frame.body)
        if event is None:
            return None
        ts = str(frame.body.get("ts")) if frame.body.get("type") == "message" else cursor
        return Batch(frame.room, (event,), ts if at(ts) > at(cursor) else None)

    async def _incoming(self, event: Mapping[str, Any]) -> Incoming | None:
        if events.is_ours(event, self._known):
            return None
        files = [await self._file(each) for each in events.files_of(event)]
        return events.incoming(event, await self._known_of(event), files)

    async def _known_of(self, event: Mapping[str, Any]) -> SlackContext:
        users = events.users_in(event)
        for user in users - self._names.keys() - {self._known.user}:
            self._names[user] = await self._name(user)
        return replace(self._known, names=self._names, handles=await self._means.handles(users))

    async def _name(self, user: str) -> str:
        try:
            told = as_object((await self._api.call("users.info", {"user": user})).get("user"))
        except ServiceError as error:
            if error.means != "refused":
                raise
            return ""
        profile = as_object(told.get("profile"))
        names = (profile.get("display_name"), profile.get("real_name"), told.get("real_name"), told.get("name"))
        return next((str(each) for each in names if each), "")

    async def _file(self, file: Mapping[str, Any]) -> IncomingFile:
        name, media_type = str(file.get("name") or file.get("title") or "file"), file.get("mimetype")
        kept = media_type if isinstance(media_type, str) else None
        size = file.get("size")
        if isinstance(size, int) and size > FILE_BYTES:
            return IncomingFile(name, kept, b"", f"{name} is larger than {human_size(FILE_BYTES)}.")
        try:
            url = str(file.get("url_private_download") or file.get("url_private"))
            return IncomingFile(name, kept, await self._api.download(url, FILE_BYTES))
        except ServiceError as error:
            if error.means != "refused":
                raise
            return IncomingFile(name, kept, b"", f"Slack does not have {name}.")

    # Sending

    async def send(self, what: Outgoing) -> Outcome:
        try:
            await self._ready()
            await self._pace.turn(what.target)
            return await self._send(what)
        except ServiceError as error:
            return error.as_outcome()

    async def _send(self, what: Outgoing) -> Outcome:
        room = what.target
        match what.action:
            case "post":
                return await self._post(what)
            case "edit":
                for id, text in zip((what.of or "", *what.also), await self._texts(what), strict=False):
                    await self._update(room, id, text)
                return Sent(None)
            case "delete":
                there = what.of or (await self._sent_before(what, {})).get(what.id)
                for each in (there, *what.also):
                    if each is not None:
                        await self._delete(room, each)
                return Sent(None)
            case "react":
                name = name_of(what.emoji or "")
                quiet = ("already_reacted", "invalid_name", "too_many_emoji", *_GONE)
                await self._api.call("reactions.add", _reaction(room, what.of, name), quiet=quiet)
                return Sent(f"{what.of}:{name}")
            case "unreact":
                of, _, name = (what.of or "").rpartition(":")
                quiet = ("no_reaction", "invalid_name", *_GONE)
                await self._api.call("reactions.remove", _reaction(room, of, name), quiet=quiet)
                return Sent(None)
            case _:
                told = await self._api.call("conversations.open", {"users": what.target})
                channel = str(as_object(told.get("channel")).get("id"))
                said = {"channel": channel, "text": f"Your code to link this account: {what.text}"}
                return Sent(str((await self._api.call("chat.postMessage", said)).get("ts")))

    async def show_typing(self, room: str, who: Author, *, typing: bool) -> None:
        """Slack does not let apps show that."""

    async def show_draft(self, draft: Outgoing) -> str | None:
        text = draft_of(await self._text(draft), TEXT_CHARACTERS)
        try:
            if draft.of is None:
                return await self._say(draft, draft.id, text, {})
            await self._update(draft.target, draft.of, text)
        except ServiceError:
            pass  # The next one may work, and the message itself is sent in any case.
        return draft.of

    async def _text(self, what: Outgoing) -> str:
        text = what.text if self._customizes else named(what, self._settings.speaker)
        return with_accounts(events.harmless(text), await self._means.accounts(handles_in(text)))

    async def _texts(self, what: Outgoing) -> list[str]:
        return parts_of(await self._text(what), TEXT_CHARACTERS)

    async def _post(self, what: Outgoing) -> Outcome:
        thread = {} if what.reply_to is None else {"thread_ts": await self._thread_of(what.target, what.reply_to)}
        before = await self._sent_before(what, thread) if what.again else {}
        sent: list[str] = []
        for at_, text in enumerate(await self._texts(what) if what.text.strip() or not what.files else ()):
            id = what.id if at_ == 0 else f"{what.id}.{at_}"
            is_replaced = at_ == 0 and what.draft is not None and await self._update(what.target, what.draft, text)
            there = what.draft if is_replaced else before.get(id)
            sent.append(there or await self._say(what, id, text, thread))
        for file in what.files:
            there = before.get(_key(file.name, file.size))
            sent.append(there or await self._share(what, file, thread))
        return Sent(sent[0], tuple(sent[1:]))

    async def _say(self, what: Outgoing, id: str, text: str, thread: Mapping[str, str]) -> str:
        metadata = events.metadata(id, what.author_kind)
        wanted = {"channel": what.target, "markdown_text": text, "metadata": metadata, **thread, **self._face(what)}
        return str((await self._api.call("chat.postMessage", wanted)).get("ts"))

    def _face(self, what: Outgoing) -> dict[str, str]:
        """The name and icon of the author, unless that is the bridge itself, or the agent that the app is."""
        speaker = self._settings.speaker.removeprefix("@")
        is_app = not what.author or (bool(speaker) and what.author_handle == speaker)
        if is_app or not self._customizes:
            return {}
        icon = self._settings.icons.get(what.author_handle, "")
        shown = {"icon_emoji" if icon.startswith(":") else "icon_url": icon} if icon else {}
        return {"username": what.author, **shown}

    async def _share(self, what: Outgoing, file: OutgoingFile, thread: Mapping[str, str]) -> str:
        """Put a file into the channel. Slack gives no id of the message that comes of it, but one of the file."""
        id = await self._api.upload(file.name, file.media_type, await self._means.read_file(file.id))
        shared = [{"id": id, "title": file.name}]
        said = {} if what.text.strip() else {"initial_comment": f"{what.author}:"}
        wanted = {"files": shared, "channel_id": what.target, **thread, **said}
        await self._api.call("files.completeUploadExternal", wanted)
        return id

    async def _delete(self, room: str, id: str) -> None:
        if "." in id:
            await self._api.call("chat.delete", {"channel": room, "ts": id}, quiet=_GONE)
        else:
            await self._api.call("files.delete", {"file": id}, quiet=_GONE)

    async def _update(self, room: str, ts: str, text: str) -> bool:
        """Change a message of ours. Returns whether it is still there."""
        wanted = {"channel": room, "ts": ts, "markdown_text": text}
        return bool(await self._api.call("chat.update", wanted, quiet=_GONE))

    async def _thread_of(self, room: str, ts: str) -> str:
        """The message that a thread begins with: Slack takes answers only to that."""
        wanted = {"channel": room, "ts": ts, "limit": "1"}
        told = await self._api.call("conversations.replies", wanted, quiet=("thread_not_found",))
        return next((str(each["thread_ts"]) for each in as_objects(told.get("messages")) if "thread_ts" in each), ts)

    async def _sent_before(self, what: Outgoing, thread: Mapping[str, str]) -> dict[str, str]:
        """What of this message is in the channel: the times of texts by their id, the ids of files by name and size."""
        since = (what.created_at or 0) // SECOND - 60
        wanted = {"channel": what.target, "oldest": str(max(since, 0)), "include_all_metadata": "true"}
        method = "conversations.replies" if thread else HISTORY
        found: dict[str, str] = {}
        for each in await self._api.pages(method, wanted | ({"ts": thread["thread_ts"]} if thread else {})):
            if events.is_ours(each, self._known):
                if (id := events.id_in(each)) is not None:
                    found[id] = str(each["ts"])
                for file in as_objects(each.get("files")):
                    found[_key(str(file.get("name")), file.get("size"))] = str(file.get("id"))
        return found


def _key(name: str, size: Any) -> str:
    return f"file {size} {name}"


def _reaction(room: str, of: str | None, name: str) -> dict[str, str]:
    return {"channel": room, "timestamp": of or "", "name": name}
