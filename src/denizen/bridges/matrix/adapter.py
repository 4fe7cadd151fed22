"""Reads and writes rooms of a homeserver.

Pushes of the homeserver are only hints, because it loses some when it is killed: what was written is read with the
cursor of the room. Everybody who speaks here has a user of their own there, with a device, so that the homeserver
recognizes a transaction id that it has seen before, also after it was restarted.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Literal, cast

from denizen.amounts import human_size
from denizen.bridges.http_service import ServiceError, as_object, as_objects
from denizen.bridges.matrix import events
from denizen.bridges.matrix.events import Room
from denizen.bridges.matrix.homeserver import DEVICE, Homeserver
from denizen.bridges.matrix.kind import MatrixSettings
from denizen.bridges.port import (
    Author,
    Batch,
    Incoming,
    IncomingFile,
    Means,
    NotReadable,
    Outcome,
    Outgoing,
    Refused,
    Sent,
    Writer,
)
from denizen.bridges.texts import bytes_in, draft_of, parts_of
from denizen.clock import SECOND
from denizen.ids import new_id
from denizen.spaces import markdown

READ_AT_ONCE: Final = 8
EVENTS_AT_ONCE: Final = 100
FILE_BYTES: Final = 25_000_000
REMEMBERED_SECONDS: Final = 20 * 3600
"""The homeserver forgets transaction ids after a day: what is older is looked for in the room before it is sent."""
TYPING_MS: Final = 10_000
CLIENT: Final = ("client", "v3")
_FILTER: Final = json.dumps({"lazy_load_members": True})


class MatrixAdapter:
    """The connection to one homeserver."""

    def __init__(self, settings: MatrixSettings, means: Means) -> None:
        self._means = means
        self._server = Homeserver(settings, means)
        self._bot = ""
        self._rooms: dict[str, str] = {}
        """The ids of the rooms that the bridge is in, by what they are called in channels."""
        self._people: dict[str, int] = {}
        self._users: dict[str, str] = {}
        """The display names of our users that are ready."""
        self._joined: set[tuple[str, str]] = set()
        self._slots = asyncio.Semaphore(READ_AT_ONCE)
        self._entering = asyncio.Lock()
        self.drafts: Literal["none", "kept", "vanishing"] = "kept" if settings.streaming else "none"

    async def close(self) -> None:
        return

    async def news(self) -> None:
        await asyncio.Event().wait()  # Pushes come in by HTTP.

    # Reading

    async def read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        try:
            await self._ready()
        except ServiceError as error:
            raise error.as_unreadable() from error
        read = await asyncio.gather(*[self._read_room(room, cursor) for room, cursor in rooms.items()])
        batches = [each for each in read if isinstance(each, Batch)]
        problems = [each for each in read if isinstance(each, NotReadable)]
        if problems and not batches:
            raise problems[0]
        return batches

    def hold(self, rooms: Collection[str]) -> None:
        pass  # Each room is read from its own cursor.

    async def _read_room(self, room: str, cursor: str | None) -> Batch | NotReadable | None:
        async with self._slots:
            try:
                id = await self._enter(room)
                if cursor is None:
                    return Batch(room, (), await self._end_of(id))
                asked = {"dir": "f", "from": cursor, "limit": str(EVENTS_AT_ONCE), "filter": _FILTER}
                told = await self._server.json("GET", *CLIENT, "rooms", id, "messages", params=asked)
                end = told.get("end")
                if not isinstance(end, str) or end == cursor:
                    return None
                return Batch(room, await self._incoming(id, told), end)
            except ServiceError as error:
                self._rooms.pop(room, None)
                problem = error.as_unreadable()
                return problem if error.means == "revoked" else NotReadable(f"{room} cannot be read: {problem}")
            except NotReadable as error:
                return error

    async def _end_of(self, id: str) -> str:
        told = await self._server.json("GET", *CLIENT, "rooms", id, "messages", params={"dir": "b", "limit": "1"})
        return str(told["start"])

    async def _incoming(self, id: str, told: Mapping[str, Any]) -> list[Incoming]:
        found = as_objects(told.get("chunk"))
        if any(each.get("type") == "m.room.member" for each in found):
            self._people.pop(id, None)
        room = Room(self._bot, _names(as_objects(told.get("state"))), await self._alone(id))
        read: list[Incoming] = []
        for event in found:
            each = events.incoming(event, room, await self._files(event, room))
            if each is not None:
                read.append(each)
        return read

    async def _alone(self, id: str) -> bool:
        if id not in self._people:
            told = await self._server.json("GET", *CLIENT, "rooms", id, "joined_members")
            members = cast("dict[str, Any]", told.get("joined") or {})
            self._people[id] = sum(not events.is_ours(each, self._bot) for each in members)
        return self._people[id] == 1

    async def _files(self, event: Mapping[str, Any], room: Room) -> tuple[IncomingFile, ...]:
        media = events.media_of(event)
        if media is None or events.is_ours(str(event.get("sender")), room.bot):
            return ()
        url, name, media_type, size = media
        problem = f"{name} is larger than {human_size(FILE_BYTES)}."
        if size > FILE_BYTES:
            return (IncomingFile(name, media_type, b"", problem),)
        server, _, media_id = url.removeprefix("mxc://").partition("/")
        path = ("client", "v1", "media", "download", server, media_id)
        try:
            data = await self._server.ask("GET", *path, at_most=FILE_BYTES)
        except ServiceError as error:
            if error.means != "refused":
                raise
            why = problem if error.status == 413 else f"The homeserver does not have {name}."
            return (IncomingFile(name, media_type, b"", why),)
        return (IncomingFile(name, media_type, data),)

    # Being there

    async def _ready(self) -> None:
        """Have the application service's own user, and know its id."""
        if not self._bot:
            told = await self._server.json("GET", *CLIENT, "account", "whoami")
            bot = str(told["user_id"])
            await self._prepare(bot, None)
            self._bot = bot

    async def _prepare(self, user: str, name: str | None) -> None:
        """Have this user, with its device and display name."""
        local = user.partition(":")[0].removeprefix("@")
        login = {"type": "m.login.application_service"}
        try:
            await self._server.json(
                "POST", *CLIENT, "register", json={**login, "username": local, "inhibit_login": True}
            )
        except ServiceError as error:
            if error.code != "M_USER_IN_USE":
                raise
        identifier = {"type": "m.id.user", "user": user}
        await self._server.json("POST", *CLIENT, "login", json={**login, "identifier": identifier, "device_id": DEVICE})
        if name is not None:
            path = ("profile", user, "displayname")
            await self._server.json("PUT", *CLIENT, *path, user=user, json={"displayname": name})

    async def _enter(self, room: str) -> str:
        """The id of the room, which the bridge is in then."""
        if room not in self._rooms:
            told = await self._server.json("POST", *CLIENT, "join", room, json={})
            id = str(told["room_id"])
            try:
                await self._server.json("GET", *CLIENT, "rooms", id, "state", "m.room.encryption")
            except ServiceError as error:
                if error.status != 404:
                    raise
            else:
                raise NotReadable(f"{room} is encrypted, which bridges cannot read. Connect a room without encryption.")
            self._rooms[room] = id
        return self._rooms[room]

    async def _author(self, room_id: str, what: Outgoing) -> str | None:
        """The user who writes for the author, and is in the room then; None if the bridge may not invite them."""
        if not what.author_handle:
            return None
        user = events.user_for(what.author_handle, self._bot)
        async with self._entering:
            if self._users.get(user) != what.author:
                await self._prepare(user, what.author)
                self._users[user] = what.author
            if (room_id, user) in self._joined:
                return user
            try:
                await self._server.json("POST", *CLIENT, "join", room_id, user=user, json={})
            except ServiceError:
                try:
                    await self._server.json("POST", *CLIENT, "rooms", room_id, "invite", json={"user_id": user})
                    await self._server.json("POST", *CLIENT, "join", room_id, user=user, json={})
                except ServiceError as error:
                    if error.code != "M_FORBIDDEN":
                        raise
                    return None
            self._joined.add((room_id, user))
            return user

    # Sending

    async def send(self, what: Outgoing) -> Outcome:
        try:
            await self._ready()
            if what.action == "code":
                return await self._send_code(what)
            room_id = await self._enter(what.target)
            return await self._send(room_id, what)
        except NotReadable as error:
            return Refused(str(error))
        except ServiceError as error:
            if error.code == "M_FORBIDDEN":  # Whoever was removed from the room joins anew the next time.
                self._rooms.pop(what.target, None)
                self._joined.clear()
            return error.as_outcome()

    async def _send(self, room_id: str, what: Outgoing) -> Outcome:
        match what.action:
            case "post":
                return await self._post(room_id, what)
            case "edit":
                return await self._edit(room_id, what)
            case "delete":
                if not what.author:
                    return await self._withdraw(room_id, what)
                for at, each in enumerate(await self._with_edits(room_id, what)):
                    await self._redact(room_id, each, f"{what.id}.{at}", what)
                return Sent(None)
            case "react":
                try:
                    content = events.reaction(what.of or "", what.emoji or "")
                    return Sent(await self._put(room_id, self._bot, "m.reaction", what.id, content))
                except ServiceError as error:
                    if error.code != "M_DUPLICATE_ANNOTATION":
                        raise
                    return Sent(None)
            case _:
                await self._redact(room_id, what.of or "", what.id, None)
                return Sent(None)

    async def _post(self, room_id: str, what: Outgoing) -> Outcome:
        contents = await self._contents(what)
        user = await self._author(room_id, what)
        before = await self._sent_before(room_id, what) if self._is_old(what) else {}
        sent: list[str] = []
        for at, content in enumerate(contents):
            id = what.id if at == 0 else f"{what.id}.{at}"
            content[events.MARK]["id"] = id
            if at == 0 and what.reply_to is not None:
                content = events.reply_to(content, what.reply_to)
            if at == 0 and what.draft is not None:
                edit = events.edit_of(self._named(content, user, what), what.draft)
                await self._put(room_id, user or self._bot, "m.room.message", id, edit)
                sent.append(what.draft)
                continue
            sent.append(
                before.get(id)
                or await self._put(room_id, user or self._bot, "m.room.message", id, self._named(content, user, what))
            )
        return Sent(sent[0], tuple(sent[1:]))

    def _named(self, content: dict[str, Any], user: str | None, what: Outgoing) -> dict[str, Any]:
        """The content, with the author's name where they have no user of their own in the room."""
        if user is not None or content["msgtype"] != "m.text":
            return content
        return {**events.text_content(f"{what.author}: {content['body']}", None, what), **_relation(content)}

    async def _contents(self, what: Outgoing) -> list[dict[str, Any]]:
        texts = parts_of(what.text, events.PART_BYTES, bytes_in) if what.text.strip() or not what.files else []
        contents = [events.text_content(each, markdown.as_html(each), what) for each in texts]
        for file in what.files:
            data = await self._means.read_file(file.id)
            told = await self._server.json(
                "POST",
                "media",
                "v3",
                "upload",
                params={"filename": file.name},
                data=data,
                media_type=file.media_type,
            )
            uploaded = str(told["content_uri"])
            contents.append(events.file_content(file.name, file.media_type, file.size, uploaded, what))
        return contents

    async def _edit(self, room_id: str, what: Outgoing) -> Outcome:
        """Replace the text of the message; a part that is no longer needed says so."""
        user = await self._author(room_id, what)
        texts, there = parts_of(what.text, events.PART_BYTES, bytes_in), (what.of or "", *what.also)
        # What does not fit into the parts that are there is said in the last of them, cut.
        texts = [*texts[: len(there) - 1], "\n".join(texts[len(there) - 1 :])[: events.PART_BYTES // 4]]
        for at, text in enumerate(texts):
            content = self._named(events.text_content(text, markdown.as_html(text), what), user, what)
            id = what.id if at == 0 else f"{what.id}.{at}"
            await self._put(room_id, user or self._bot, "m.room.message", id, events.edit_of(content, there[at]))
        return Sent(None)

    async def _with_edits(self, room_id: str, what: Outgoing) -> list[str]:
        """The events of the message, and those that changed it: redacting the message leaves those readable."""
        found: list[str] = []
        for each in (what.of or "", *what.also):
            path = ("client", "v1", "rooms", room_id, "relations", each, "m.replace")
            try:
                told = await self._server.json("GET", *path, params={"limit": "100"})
            except ServiceError as error:
                if error.status != 404:
                    raise
                told = {}
            edits = as_objects(told.get("chunk"))
            found += [each, *[str(edit["event_id"]) for edit in edits]]
        return found

    async def _redact(self, room_id: str, event: str, id: str, what: Outgoing | None) -> None:
        user = None if what is None else await self._author(room_id, what)
        path = ("rooms", room_id, "redact", event, id)
        await self._server.json("PUT", *CLIENT, *path, user=user or self._bot, device=True, json={})

    async def _put_text(self, room_id: str, what: Outgoing, id: str) -> str:
        user = await self._author(room_id, what)
        text = draft_of(what.text, events.PART_BYTES, bytes_in)
        content = self._named(events.text_content(text, markdown.as_html(text), what), user, what)
        edit = content if what.of is None else events.edit_of(content, what.of)
        return await self._put(room_id, user or self._bot, "m.room.message", id, edit)

    async def _withdraw(self, room_id: str, what: Outgoing) -> Outcome:
        """Remove a draft, as the user who wrote it: the bridge's own may not."""
        draft = what.of or (await self._sent_before(room_id, what)).get(what.id)
        if draft is not None:
            told = await self._server.json("GET", *CLIENT, "rooms", room_id, "event", draft)
            for at, each in enumerate(await self._with_edits(room_id, replace(what, of=draft))):
                path = ("rooms", room_id, "redact", each, f"{what.id}.{at}")
                user = str(told.get("sender") or self._bot)
                await self._server.json("PUT", *CLIENT, *path, user=user, device=True, json={})
        return Sent(None)

    async def show_typing(self, room: str, who: Author, *, typing: bool) -> None:
        with suppress(ServiceError, NotReadable):
            await self._ready()
            room_id = await self._enter(room)
            what = Outgoing("", "post", room, author=who.name, author_handle=who.handle, author_kind=who.kind)
            user = await self._author(room_id, what) or self._bot
            told = {"typing": typing, "timeout": TYPING_MS} if typing else {"typing": False}
            await self._server.json("PUT", *CLIENT, "rooms", room_id, "typing", user, user=user, json=told)

    def hear_push(self, typing: Mapping[str, Sequence[str]]) -> None:
        for room, id in self._rooms.items():
            for user in typing.get(id, ()):
                if not events.is_ours(user, self._bot):
                    self._means.heard_typing(room, Writer(user, user, verified=True))

    async def show_draft(self, draft: Outgoing) -> str | None:
        with suppress(ServiceError, NotReadable):
            await self._ready()
            room_id = await self._enter(draft.target)
            id = await self._put_text(room_id, draft, draft.id if draft.of is None else f"{draft.id}.{new_id()}")
            return draft.of or id
        return draft.of

    async def _put(self, room_id: str, user: str, kind: str, id: str, content: Mapping[str, Any]) -> str:
        told = await self._server.json(
            "PUT", *CLIENT, "rooms", room_id, "send", kind, id, user=user, device=True, json=content
        )
        return str(told["event_id"])

    def _is_old(self, what: Outgoing) -> bool:
        now = self._means.clock.now()
        return what.again and what.created_at is not None and now - what.created_at > REMEMBERED_SECONDS * SECOND

    async def _sent_before(self, room_id: str, what: Outgoing) -> dict[str, str]:
        """The events of this message that are in the room, by transaction id."""
        asked = {"dir": "b", "limit": "500"}
        told = await self._server.json("GET", *CLIENT, "rooms", room_id, "messages", params=asked)
        found: dict[str, str] = {}
        for event in as_objects(told.get("chunk")):
            id = str(as_object(as_object(event.get("content")).get(events.MARK)).get("id"))
            if events.is_ours(str(event.get("sender")), self._bot) and id.startswith(what.id):
                found[id] = str(event["event_id"])
        return found

    async def _send_code(self, what: Outgoing) -> Outcome:
        """Write the code to the account, in a room of their own."""
        room_id = await self._room_with(what.target)
        text = f"Your code to link this account: {what.text}\n\nDid you not ask for one? Then ignore this message."
        content = events.text_content(text, None, what)
        return Sent(await self._put(room_id, self._bot, "m.room.message", what.id, content))

    async def _room_with(self, account: str) -> str:
        """A room with this account alone. Its alias is made from the account: there is one for everybody who asks."""
        local, _, server = self._bot.removeprefix("@").partition(":")
        alias = f"{local}_{hashlib.sha256(account.encode()).hexdigest()[:24]}"
        wanted = {"room_alias_name": alias, "is_direct": True, "preset": "trusted_private_chat", "invite": [account]}
        try:
            return str((await self._server.json("POST", *CLIENT, "createRoom", json=wanted))["room_id"])
        except ServiceError as error:
            if error.code != "M_ROOM_IN_USE":
                raise
        told = await self._server.json("GET", *CLIENT, "directory", "room", f"#{alias}:{server}")
        room_id = str(told["room_id"])
        try:
            await self._server.json("POST", *CLIENT, "rooms", room_id, "invite", json={"user_id": account})
        except ServiceError as error:
            if error.code != "M_FORBIDDEN":  # They are in it.
                raise
        return room_id


def _names(state: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The display names of members, by user."""
    found: dict[str, str] = {}
    for each in state:
        name = as_object(each.get("content")).get("displayname")
        if each.get("type") == "m.room.member" and isinstance(name, str):
            found[str(each.get("state_key"))] = name
    return found


def _relation(content: Mapping[str, Any]) -> dict[str, Any]:
    return {"m.relates_to": content["m.relates_to"]} if "m.relates_to" in content else {}
