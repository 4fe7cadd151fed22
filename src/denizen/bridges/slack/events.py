"""Translates between events of Slack and messages. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
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
from denizen.bridges.slack.emoji import emoji_of
from denizen.clock import SECOND, Instant

EVENT_TYPE: Final = "denizen_message"
"""The type of the metadata of what we send."""
_CARRIED: Final = (None, "file_share", "thread_broadcast", "bot_message", "me_message")
_MENTION: Final = re.compile(r"<@([UWB][A-Z0-9]+)(?:\|[^>]*)?>")
_CODE: Final = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
_LINK: Final = re.compile(r"<((?:https?|mailto|tel):[^|>]+)(?:\|([^>]*))?>")
_CHANNEL: Final = re.compile(r"<#[A-Z0-9]+(?:\|([^>]*))?>")
_SPECIAL: Final = re.compile(r"<!([a-z]+)(?:\^[^|>]*)?(?:\|([^>]*))?>")
_BOLD: Final = re.compile(r"(?<![\w*])\*(\S(?:[^*\n]*\S)?)\*(?![\w*])")
_STRUCK: Final = re.compile(r"(?<![\w~])~(\S(?:[^~\n]*\S)?)~(?![\w~])")
_CALLS_ALL: Final = re.compile(r"<(?=!|@|#)")


@dataclass(frozen=True, slots=True)
class SlackContext(EventContext):
    """Slack also has names of users, and the app's bot has an id beside its user."""

    bot: str = ""
    """The id of the app's bot."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])


def at(ts: Any) -> Decimal:
    """The time of a message, by which messages are ordered."""
    try:
        return Decimal(str(ts))
    except InvalidOperation:
        return Decimal(0)


def instant_of(ts: str) -> Instant:
    return Instant(int(at(ts) * SECOND))


def room_of(event: Mapping[str, Any]) -> str | None:
    """The channel that an event is about; None if it is not carried."""
    match event.get("type"):
        case "message":
            return str(event.get("channel"))
        case "reaction_added" | "reaction_removed":
            item = as_object(event.get("item"))
            return str(item.get("channel")) if item.get("type") == "message" else None
        case _:
            return None


def users_in(event: Mapping[str, Any]) -> set[str]:
    """The users whose names and handles are needed to read an event."""
    message = as_object(event.get("message")) or event
    found = {str(each) for each in (message.get("user"), event.get("user")) if each}
    return found | set(_MENTION.findall(str(message.get("text") or "")))


def files_of(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The files of a new message."""
    is_new = event.get("type") == "message" and event.get("subtype") in _CARRIED
    return [each for each in as_objects(event.get("files")) if is_new and each.get("mode") != "tombstone"]


def is_ours(message: Mapping[str, Any], known: SlackContext) -> bool:
    """Whether the app itself wrote it."""
    return (known.bot, known.user) != ("", "") and (
        message.get("bot_id") == known.bot or message.get("user") == known.user
    )


def incoming(event: Mapping[str, Any], known: SlackContext, files: Sequence[IncomingFile] = ()) -> Incoming | None:
    """What an event is here; None for what is not carried, and for what the app has written."""
    match event.get("type"), event.get("subtype"):
        case "reaction_added" | "reaction_removed", _:
            return _reaction(event, known)
        case "message", "message_changed":
            return _changed(event, known)
        case "message", "message_deleted":
            before = as_object(event.get("previous_message"))
            of = str(event.get("deleted_ts"))
            return None if is_ours(before, known) else IncomingDeletion(f"{of}:deleted", _writer(before, known), of)
        case "message", subtype if subtype in _CARRIED:
            return _message(event, known, files)
        case _:
            return None


def edit_of(message: Mapping[str, Any], known: SlackContext) -> IncomingEdit | None:
    """The newest edit of a message; None if it was not edited, or is the app's own."""
    edited = as_object(message.get("edited")).get("ts")
    if edited is None or is_ours(message, known):
        return None
    ts = str(message.get("ts"))
    return IncomingEdit(f"{ts}:{edited}", _writer(message, known), ts, text_of(message, known))


def _changed(event: Mapping[str, Any], known: SlackContext) -> Incoming | None:
    message, before = as_object(event.get("message")), as_object(event.get("previous_message"))
    if message.get("subtype") == "tombstone":  # It was deleted, and has replies.
        ts = str(message.get("ts"))
        return None if is_ours(before, known) else IncomingDeletion(f"{ts}:deleted", _writer(before, known), ts)
    # Also told when a link gets a preview, or a thread an answer.
    return None if message.get("text") == before.get("text") else edit_of(message, known)


def _reaction(event: Mapping[str, Any], known: SlackContext) -> IncomingReaction | None:
    user, of = str(event.get("user")), str(as_object(event.get("item")).get("ts"))
    if user == known.user:
        return None
    name, removed = str(event.get("reaction")), event.get("type") == "reaction_removed"
    id = f"{of}:{user}:{name}:{event.get('event_ts')}"
    return IncomingReaction(id, _writer(event, known), of, emoji_of(name), removed)


def _message(event: Mapping[str, Any], known: SlackContext, files: Sequence[IncomingFile]) -> IncomingMessage | None:
    text, ts, thread = text_of(event, known), str(event.get("ts")), event.get("thread_ts")
    if is_ours(event, known) or (not text and not files):
        return None
    to_app = f"<@{known.user}" in str(event.get("text")) or event.get("parent_user_id") == known.user
    return IncomingMessage(
        ts,
        _writer(event, known),
        text,
        sent_at=instant_of(ts),
        reply_to=str(thread) if thread is not None and thread != ts else None,
        files=tuple(files),
        addressed=to_app or event.get("channel_type") == "im",
    )


def _writer(event: Mapping[str, Any], known: SlackContext) -> Writer:
    bot, user = event.get("bot_id"), event.get("user")
    if bot:
        profile = as_object(event.get("bot_profile"))
        name = event.get("username") or profile.get("name") or bot
        return Writer(str(bot), str(name), bot=True, verified=True)
    return Writer(str(user), known.names.get(str(user)) or str(user), verified=True)


def text_of(message: Mapping[str, Any], known: SlackContext) -> str:
    """The text of a message as Markdown, with `@handle` for people who are known here."""
    parts = _CODE.split(str(message.get("text") or ""))
    text = "".join(html.unescape(part if odd else _as_markdown(part, known)) for part, odd in _marked(parts)).strip()
    return f"*{text}*" if text and message.get("subtype") == "me_message" else text


def _marked(parts: Sequence[str]) -> list[tuple[str, bool]]:
    return [(each, position % 2 == 1) for position, each in enumerate(parts)]


def _as_markdown(text: str, known: SlackContext) -> str:
    def mention(found: re.Match[str]) -> str:
        user = found[1]
        if user == known.user and known.speaker:
            return f"@{known.speaker.removeprefix('@')}"
        return f"@{known.handles.get(user) or known.names.get(user) or user}"

    text = _BOLD.sub(r"**\1**", text)
    text = _STRUCK.sub(r"~~\1~~", text)
    text = _MENTION.sub(mention, text)
    text = _CHANNEL.sub(lambda found: f"#{found[1] or 'channel'}", text)
    text = _SPECIAL.sub(lambda found: found[2] or f"@{found[1]}", text)
    return _LINK.sub(lambda found: f"[{found[2]}]({found[1]})" if found[2] else found[1], text)


def harmless(text: str) -> str:
    """The text, in which nothing calls a whole channel or names a user by the id."""
    return _CALLS_ALL.sub("<\u200b", text)


def metadata(id: str, kind: str) -> dict[str, Any]:
    """What is stored with a message of ours: by it, it is found again after a crash."""
    return {"event_type": EVENT_TYPE, "event_payload": {"id": id, "kind": kind}}


def id_in(message: Mapping[str, Any]) -> str | None:
    """The id under which we have sent the message, if we have."""
    told = as_object(message.get("metadata"))
    id = as_object(told.get("event_payload")).get("id")
    return id if told.get("event_type") == EVENT_TYPE and isinstance(id, str) else None
