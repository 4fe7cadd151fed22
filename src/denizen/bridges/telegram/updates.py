"""Translates updates of the Bot API to events. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from denizen.bridges.http_service import as_object, as_objects
from denizen.bridges.port import Incoming, IncomingEdit, IncomingFile, IncomingMessage, IncomingReaction, Writer
from denizen.clock import SECOND, Instant

TEXT_CHARACTERS: Final = 4_000
"""A message has at most 4,096, counted as UTF-16."""
REACTION: Final = ":reaction"
"""Ends the id that a reaction of the bot has here: Telegram gives it none."""


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file of a message, which is not downloaded yet."""

    id: str
    name: str
    media_type: str | None
    size: int


def room_of(update: Mapping[str, Any]) -> str | None:
    """The chat that an update is about; None if it is about something else."""
    for kind in ("message", "edited_message", "message_reaction"):
        if kind in update:
            return str(as_object(as_object(update[kind]).get("chat")).get("id"))
    return None


def file_of(update: Mapping[str, Any]) -> FileRef | None:
    """The file of a new message. Of a picture, the largest."""
    message = as_object(update.get("message"))
    photos = as_objects(message.get("photo"))
    if photos:
        photo = photos[-1]
        return FileRef(str(photo.get("file_id")), "photo.jpg", "image/jpeg", int(photo.get("file_size") or 0))
    for kind in ("document", "audio", "video", "voice", "animation", "video_note"):
        found = as_object(message.get(kind))
        if found:
            media_type = found.get("mime_type")
            name = str(found.get("file_name") or kind)
            kept = media_type if isinstance(media_type, str) else None
            return FileRef(str(found.get("file_id")), name, kept, int(found.get("file_size") or 0))
    return None


def incoming(update: Mapping[str, Any], bot: str, files: Sequence[IncomingFile] = ()) -> list[Incoming]:
    """What an update is here; empty for what is not carried. `bot` is the user name of the bot."""
    number = update.get("update_id")
    if "message" in update:
        message = as_object(update["message"])
        text = _text(message)
        if not text and not files:
            return []
        return [_message(message, text, bot, files)]
    if "edited_message" in update:
        message = as_object(update["edited_message"])
        return [IncomingEdit(f"e{number}", _writer(message), str(message.get("message_id")), _text(message))]
    if "message_reaction" in update:
        return _reactions(as_object(update["message_reaction"]), number)
    return []


def _message(message: Mapping[str, Any], text: str, bot: str, files: Sequence[IncomingFile]) -> IncomingMessage:
    chat, sent = as_object(message.get("chat")), message.get("date")
    replied = as_object(message.get("reply_to_message"))
    to_bot = as_object(replied.get("from")).get("username") == bot
    return IncomingMessage(
        str(message.get("message_id")),
        _writer(message),
        text,
        sent_at=Instant(sent * SECOND) if isinstance(sent, int) else None,
        reply_to=str(replied["message_id"]) if "message_id" in replied else None,
        files=tuple(files),
        addressed=chat.get("type") == "private" or f"@{bot}".lower() in text.lower() or to_bot,
    )


def _text(message: Mapping[str, Any]) -> str:
    return str(message.get("text") or message.get("caption") or "").strip()


def _writer(message: Mapping[str, Any]) -> Writer:
    return _person(as_object(message.get("from")), as_object(message.get("sender_chat")))


def _person(user: Mapping[str, Any], chat: Mapping[str, Any]) -> Writer:
    if chat:  # Somebody who writes in the name of a channel or a group.
        return Writer(f"chat{chat.get('id')}", str(chat.get("title") or "Channel"), verified=True)
    name = " ".join(str(user[each]) for each in ("first_name", "last_name") if user.get(each))
    account = str(user.get("id"))
    return Writer(account, name or account, bool(user.get("is_bot")), verified=True)


def _reactions(told: Mapping[str, Any], number: Any) -> list[Incoming]:
    """One event for each emoji that was added or taken back."""
    writer = _person(as_object(told.get("user")), as_object(told.get("actor_chat")))
    old, new = (_emojis(told.get(each)) for each in ("old_reaction", "new_reaction"))
    changed = [(each, True) for each in old if each not in new] + [(each, False) for each in new if each not in old]
    of = str(told.get("message_id"))
    return [
        IncomingReaction(f"r{number}.{at}", writer, of, emoji, removed) for at, (emoji, removed) in enumerate(changed)
    ]


def _emojis(value: Any) -> list[str]:
    return [str(each["emoji"]) for each in as_objects(value) if each.get("type") == "emoji"]
