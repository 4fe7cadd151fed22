"""Translates between events of Discord and messages. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from denizen.bridges.http_service import as_object, as_objects
from denizen.bridges.live_reading import EventContext
from denizen.bridges.port import (
    Incoming,
    IncomingDeletion,
    IncomingEdit,
    IncomingFile,
    IncomingMessage,
    IncomingReaction,
    Writer,
)
from denizen.clock import SECOND, Instant, instant

EPOCH: Final = 1_420_070_400 * SECOND
"""From when Discord counts time in its ids."""
_CARRIED: Final = (0, 19)
"""Types of messages: written, and written as an answer."""
_USER: Final = re.compile(r"<@!?(\d+)>")
_OTHER: Final = re.compile(r"<(?:#|@&)(\d+)>")
_EMOJI: Final = re.compile(r"<a?(:\w+:)\d+>")


def instant_of(id: str) -> Instant:
    """When something with this id was made."""
    return Instant((int(id) >> 22) * 1_000 + EPOCH)


def id_at(at: int) -> int:
    """The id that something made at this time has at least."""
    return max(at - EPOCH, 0) // 1_000 << 22


def nonce_of(id: str) -> str:
    """A transaction id in the 25 characters that Discord takes."""
    return hashlib.sha256(id.encode()).hexdigest()[:25]


def users_in(message: Mapping[str, Any]) -> set[str]:
    """The users who are mentioned in a message."""
    return set(_USER.findall(str(message.get("content") or "")))


def incoming(event: Mapping[str, Any], known: EventContext, files: Sequence[IncomingFile] = ()) -> list[Incoming]:
    """What an event of the gateway is here; empty for what is not carried."""
    match event.get("t"):
        case "MESSAGE_CREATE":
            message = message_of(event, known, files)
            return [] if message is None else [message]
        case "MESSAGE_UPDATE":
            edit = edit_of(event, known)
            return [] if edit is None else [edit]
        case "MESSAGE_DELETE":
            return [_deletion(str(event.get("id")))]
        case "MESSAGE_DELETE_BULK":
            ids: Any = event.get("ids")
            return [_deletion(str(each)) for each in ids]
        case "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE":
            return _reaction(event, known)
        case _:
            return []


def _deletion(id: str) -> IncomingDeletion:
    """Discord does not tell who deleted it."""
    return IncomingDeletion(f"{id}:deleted", Writer("deleted", "Somebody", verified=True), id)


def _reaction(event: Mapping[str, Any], known: EventContext) -> list[Incoming]:
    user, of, emoji = str(event.get("user_id")), str(event.get("message_id")), as_object(event.get("emoji"))
    if user == known.user:
        return []
    member = as_object(event.get("member"))
    writer = _writer(as_object(member.get("user")) or {"id": user}, member)
    name = str(emoji.get("name"))
    shown, removed = f":{name}:"[:16] if emoji.get("id") else name, event.get("t") == "MESSAGE_REACTION_REMOVE"
    return [IncomingReaction(f"{of}:{user}:{name}:{event.get('s')}", writer, of, shown, removed)]


def is_ours(message: Mapping[str, Any], known: EventContext) -> bool:
    return as_object(message.get("author")).get("id") == known.user


def message_of(
    message: Mapping[str, Any], known: EventContext, files: Sequence[IncomingFile] = ()
) -> IncomingMessage | None:
    """A message; None for what the bot has written, and for what Discord itself says."""
    text, id = text_of(message, known), str(message.get("id"))
    if is_ours(message, known) or message.get("type") not in _CARRIED or (not text and not files):
        return None
    answered = as_object(message.get("message_reference")).get("message_id")
    to_bot = as_object(as_object(message.get("referenced_message")).get("author")).get("id") == known.user
    named = any(each.get("id") == known.user for each in as_objects(message.get("mentions")))
    is_alone = message.get("t") == "MESSAGE_CREATE" and "guild_id" not in message
    return IncomingMessage(
        id,
        writer_of(message),
        text,
        sent_at=instant_of(id),
        reply_to=str(answered) if answered else None,
        files=tuple(files),
        addressed=to_bot or named or is_alone,
    )


def edited_at(message: Mapping[str, Any]) -> Instant | None:
    edited = message.get("edited_timestamp")
    try:
        return instant(datetime.fromisoformat(str(edited))) if edited else None
    except ValueError:
        return None


def edit_of(message: Mapping[str, Any], known: EventContext) -> IncomingEdit | None:
    """The newest edit of a message. Discord also tells of a message that got a preview of a link: that is none."""
    at = edited_at(message)
    if at is None or "content" not in message or is_ours(message, known):
        return None
    id = str(message.get("id"))
    return IncomingEdit(f"{id}:{at}", writer_of(message), id, text_of(message, known))


def writer_of(message: Mapping[str, Any]) -> Writer:
    is_program = "webhook_id" in message
    return _writer(as_object(message.get("author")), as_object(message.get("member")), is_program=is_program)


def _writer(user: Mapping[str, Any], member: Mapping[str, Any], *, is_program: bool = False) -> Writer:
    id = str(user.get("id"))
    name = member.get("nick") or user.get("global_name") or user.get("username") or id
    return Writer(id, str(name), bot=is_program or bool(user.get("bot")), verified=True)


def typing_of(event: Mapping[str, Any]) -> Writer | None:
    """Who types; None if Discord does not tell the name, as in direct messages."""
    member = as_object(event.get("member"))
    user = as_object(member.get("user"))
    return _writer(user, member) if user and not user.get("bot") else None


def text_of(message: Mapping[str, Any], known: EventContext) -> str:
    """The text, with `@handle` for people who are known here, and `@name` for others."""
    names = {str(each.get("id")): _writer(each, {}).name for each in as_objects(message.get("mentions"))}

    def mention(found: re.Match[str]) -> str:
        user = found[1]
        if user == known.user and known.speaker:
            return f"@{known.speaker.removeprefix('@')}"
        return f"@{known.handles.get(user) or names.get(user) or user}"

    text = _EMOJI.sub(r"\1", _USER.sub(mention, str(message.get("content") or "")))
    text = _OTHER.sub(lambda found: found[0].strip("<>"), text).strip()
    stickers = [f"[sticker: {each.get('name')}]" for each in as_objects(message.get("sticker_items"))]
    # Programs often say what they say in boxes.
    boxes = [str(box.get(part) or "") for box in as_objects(message.get("embeds")) for part in ("title", "description")]
    return text or "\n".join([*stickers, *[each for each in boxes if each]])
