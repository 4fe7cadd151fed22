"""Translates between events of Matrix rooms and messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from denizen.bridges.http_service import as_object
from denizen.bridges.port import (
    Incoming,
    IncomingDeletion,
    IncomingEdit,
    IncomingFile,
    IncomingMessage,
    IncomingReaction,
    Outgoing,
    Writer,
)
from denizen.clock import Instant

MARK: Final = "org.denizen"
"""The key, in the content of what we send, of its id and of who wrote it."""
PART_BYTES: Final = 20_000
"""An event has at most 64 KB, and holds the text twice."""
_FALLBACK: Final = re.compile(r"\A(?:> .*\n)+\n?")
_SPOKEN: Final = ("m.text", "m.notice", "m.emote")
_FILES: Final = ("m.file", "m.image", "m.video", "m.audio")


@dataclass(frozen=True, slots=True)
class Room:
    """What is known of a room when its events are read."""

    bot: str
    """The user of the application service itself."""
    names: Mapping[str, str]
    """Display names of members, by user."""
    alone: bool = False
    """Whether there is one person besides our users."""


def is_ours(user: str, bot: str) -> bool:
    """Whether the user is the application service, or one that it made."""
    local, _, server = bot.partition(":")
    theirs, _, where = user.partition(":")
    return where == server and (theirs == local or theirs.startswith(f"{local}_"))


def handle_of(user: str, bot: str) -> str:
    """The handle of one of our users."""
    return user.partition(":")[0].removeprefix(bot.partition(":")[0]).removeprefix("_")


def user_for(handle: str, bot: str) -> str:
    """The user who writes there what somebody with this handle says here."""
    local, _, server = bot.partition(":")
    return f"{local}_{handle.lower()}:{server}"


def media_of(event: Mapping[str, Any]) -> tuple[str, str, str | None, int] | None:
    """The address, name, type and size of the file that an event holds."""
    content = as_object(event.get("content"))
    url = content.get("url")
    if event.get("type") != "m.room.message" or content.get("msgtype") not in _FILES or not isinstance(url, str):
        return None
    info = as_object(content.get("info"))
    name = str(content.get("filename") or content.get("body") or "file")
    size = info.get("size")
    kind = info.get("mimetype")
    return url, name, kind if isinstance(kind, str) else None, size if isinstance(size, int) else 0


def incoming(event: Mapping[str, Any], room: Room, files: Sequence[IncomingFile] = ()) -> Incoming | None:
    """What an event is here; None for what is not carried: states of the room, and what we have sent."""
    sender, id, kind = event.get("sender"), event.get("event_id"), event.get("type")
    content: Any = event.get("content")
    if not isinstance(sender, str) or not isinstance(id, str) or not isinstance(content, dict) or "state_key" in event:
        return None
    told = cast("dict[str, Any]", content)
    if is_ours(sender, room.bot):
        return None
    writer = Writer(sender, room.names.get(sender) or sender, _is_program(told), verified=True)
    relation = as_object(told.get("m.relates_to"))
    match kind:
        case "m.reaction":
            of, emoji = relation.get("event_id"), relation.get("key")
            usable = isinstance(of, str) and isinstance(emoji, str)
            return IncomingReaction(id, writer, of, emoji) if usable else None  # pyright: ignore[reportArgumentType]
        case "m.room.redaction":
            of = event.get("redacts") or told.get("redacts")
            return IncomingDeletion(id, writer, of) if isinstance(of, str) else None
        case "m.room.message":
            return _message(event, told, relation, writer, room, files)
        case _:
            return None


def _message(
    event: Mapping[str, Any],
    told: Mapping[str, Any],
    relation: Mapping[str, Any],
    writer: Writer,
    room: Room,
    files: Sequence[IncomingFile],
) -> Incoming | None:
    id = str(event["event_id"])
    if relation.get("rel_type") == "m.replace":
        of = relation.get("event_id")
        new = as_object(told.get("m.new_content"))
        return IncomingEdit(id, writer, of, _text(new, room)) if isinstance(of, str) else None
    text = _text(told, room)
    if not text and not files:
        return None
    sent = event.get("origin_server_ts")
    answered = as_object(relation.get("m.in_reply_to")).get("event_id")
    return IncomingMessage(
        id,
        writer,
        text,
        sent_at=Instant(sent * 1_000) if isinstance(sent, int) else None,
        reply_to=answered if isinstance(answered, str) else None,
        files=tuple(files),
        addressed=room.alone or room.bot in _mentioned(told),
    )


def _is_program(told: Mapping[str, Any]) -> bool:
    """Notices are what programs write, by convention; and what another Denizen's agent says is marked."""
    return told.get("msgtype") == "m.notice" or as_object(told.get(MARK)).get("kind") in ("agent", "service")


def _text(told: Mapping[str, Any], room: Room) -> str:
    kind = told.get("msgtype")
    text = str(told.get("body") or "")
    if kind in _FILES:
        # The body is a caption only beside the name of the file.
        text = text if told.get("filename") not in (None, text) else ""
    elif kind not in _SPOKEN and kind is not None:
        return f"[{kind}] {text}".strip()
    text = _FALLBACK.sub("", text).strip()
    if kind == "m.emote":
        text = f"*{text}*"
    named = [handle_of(each, room.bot) for each in _mentioned(told) if is_ours(each, room.bot) and each != room.bot]
    missing = [f"@{each}" for each in named if f"@{each}" not in text]
    return " ".join([*missing, text]).strip()


def _mentioned(told: Mapping[str, Any]) -> list[str]:
    users: Any = as_object(told.get("m.mentions")).get("user_ids")
    return [each for each in cast("list[Any]", users) if isinstance(each, str)] if isinstance(users, list) else []


# What is sent


def text_content(text: str, html: str | None, what: Outgoing) -> dict[str, Any]:
    """The content of a message with this text."""
    # A notice, which no program answers, is what the bridge itself says.
    kind = "m.text" if what.author else "m.notice"
    content: dict[str, Any] = {"msgtype": kind, "body": text, MARK: mark(what), "m.mentions": {}}
    if html is not None:
        content |= {"format": "org.matrix.custom.html", "formatted_body": html}
    return content


def mark(what: Outgoing) -> dict[str, Any]:
    return {"id": what.id, "kind": what.author_kind}


def reply_to(content: Mapping[str, Any], of: str) -> dict[str, Any]:
    return {**content, "m.relates_to": {"m.in_reply_to": {"event_id": of}}}


def edit_of(content: Mapping[str, Any], of: str) -> dict[str, Any]:
    """The content of an event that replaces the text of another."""
    return {
        **content,
        "body": f"* {content['body']}",
        "m.new_content": dict(content),
        "m.relates_to": {"rel_type": "m.replace", "event_id": of},
    }


def reaction(of: str, emoji: str) -> dict[str, Any]:
    return {"m.relates_to": {"rel_type": "m.annotation", "event_id": of, "key": emoji}}


def file_content(name: str, media_type: str, size: int, url: str, what: Outgoing) -> dict[str, Any]:
    """The content of an event with a file that was uploaded."""
    family = media_type.partition("/")[0]
    kind = f"m.{family}" if family in ("image", "video", "audio") else "m.file"
    info = {"mimetype": media_type, "size": size}
    return {"msgtype": kind, "body": name, "filename": name, "url": url, "info": info, MARK: mark(what)}
