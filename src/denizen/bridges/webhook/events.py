"""The JSON of requests from the other side of a webhook bridge. Pure."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from denizen.bridges.port import (
    Incoming,
    IncomingDeletion,
    IncomingEdit,
    IncomingFile,
    IncomingMessage,
    IncomingReaction,
    Writer,
)
from denizen.clock import LATEST, Instant, instant
from denizen.errors import InvalidInput

MOST_FILES: Final = 20


class _Event(BaseModel, extra="forbid"):
    id: Annotated[str, Field(min_length=1, max_length=500)]
    room: Annotated[str, Field(min_length=1, max_length=255)]
    account: Annotated[str, Field(min_length=1, max_length=255)]
    name: Annotated[str, Field(max_length=500)] = ""
    bot: bool = False
    verified: bool = False

    @property
    def writer(self) -> Writer:
        return Writer(self.account, self.name or self.account, self.bot, self.verified)


class _File(BaseModel, extra="forbid"):
    name: Annotated[str, Field(min_length=1, max_length=255)]
    media_type: str | None = None
    data: str

    def decoded(self) -> IncomingFile:
        try:
            return IncomingFile(self.name, self.media_type, base64.b64decode(self.data, validate=True))
        except (binascii.Error, ValueError) as error:
            raise InvalidInput(f"The data of the file {self.name!r} is not Base64.") from error


class _Message(_Event):
    type: Literal["message"]
    text: str = ""
    sent_at: datetime | None = None
    reply_to: str | None = None
    addressed: bool = False
    files: Annotated[list[_File], Field(max_length=MOST_FILES)] = []


class _Edit(_Event):
    type: Literal["edit"]
    of: str
    text: str


class _Deletion(_Event):
    type: Literal["deletion"]
    of: str


class _Reaction(_Event):
    type: Literal["reaction"]
    of: str
    emoji: str
    removed: bool = False


_EVENT: TypeAdapter[_Message | _Edit | _Deletion | _Reaction] = TypeAdapter(
    Annotated[_Message | _Edit | _Deletion | _Reaction, Field(discriminator="type")]
)


def _instant(sent_at: datetime) -> Instant:
    if sent_at.tzinfo is None:
        raise InvalidInput("The event is not valid: sent_at needs a time zone.")
    at = instant(sent_at)
    if not 0 < at <= LATEST:
        raise InvalidInput("The event is not valid: sent_at is not a time at which it can have been written.")
    return at


def parse(body: bytes) -> tuple[str, Incoming]:
    """The room and the event in the JSON of a request. Raises `InvalidInput`. Pure."""
    try:
        event = _EVENT.validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(each) for each in first["loc"]) or "body"
        raise InvalidInput(f"The event is not valid: {where}: {first['msg']}.") from error
    match event:
        case _Message():
            sent_at = None if event.sent_at is None else _instant(event.sent_at)
            files = tuple(each.decoded() for each in event.files)
            return event.room, IncomingMessage(
                event.id, event.writer, event.text, sent_at, event.reply_to, files, event.addressed
            )
        case _Edit():
            return event.room, IncomingEdit(event.id, event.writer, event.of, event.text)
        case _Deletion():
            return event.room, IncomingDeletion(event.id, event.writer, event.of)
        case _Reaction():
            return event.room, IncomingReaction(event.id, event.writer, event.of, event.emoji, event.removed)
