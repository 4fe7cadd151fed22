"""What models see of the pictures in their inbox and in files that they open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from denizen.consciousness.mind import Mind
from denizen.errors import NotFound
from denizen.files import pictures, storing
from denizen.files.attaching import Attachment
from denizen.files.pictures import SEEN, VARIANT_TYPE, is_picture
from denizen.files.storing import File
from denizen.inbox.events import Event
from denizen.inbox.picture_lines import picture_of
from denizen.models.pictures import Picture, picture_tokens, pictures_of, sees, with_pictures
from denizen.storage.database import Database, Tx

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model


@dataclass(frozen=True, slots=True)
class Unread:
    """Pictures of the inbox are still being read: a cycle that opens now would not see them."""

    content_ids: Sequence[str]


def unread_pictures(tx: Tx, events: Iterable[Event]) -> Unread | None:
    """The pictures of these events that are still being read."""
    files = [file for each in _attached(events) if (file := _file(tx, each)) is not None]
    waiting = [each.content_id for each in files if storing.reading_of(tx, each).state == "waiting"]
    return Unread(waiting) if waiting else None


def pictures_of_events(tx: Tx, events: Iterable[Event], most_tokens: int) -> list[Picture]:
    """The pictures of these events that can be shown, as many as fit. The others are opened with `read_entry`."""
    shown: list[Picture] = []
    left = most_tokens
    for each in _attached(events):
        file = _file(tx, each)
        picture = None if file is None else picture_of(tx, file)
        if picture is not None and (tokens := picture_tokens(picture.width, picture.height)) <= left:
            left -= tokens
            shown.append(picture)
    return shown


def _attached(events: Iterable[Event]) -> list[Attachment]:
    return [file for event in events for file in event.files if is_picture(file.media_type)]


def _file(tx: Tx, attached: Attachment) -> File | None:
    try:
        return storing.get(tx, attached.id)
    except NotFound:  # its message was deleted
        return None


async def shown(db: Database, mind: Mind, model: Model) -> list[ModelMessage]:
    """The prompt as this model gets it: with pictures if it sees."""
    if not mind.pictured or not sees(model):
        return mind.prompt
    for message in mind.pictured:
        if id(message) not in mind.seen:
            mind.seen[id(message)] = message, await with_bytes(db, message)
    return [mind.seen[id(each)][1] if id(each) in mind.seen else each for each in mind.prompt]


async def with_bytes(db: Database, message: ModelMessage) -> ModelMessage:
    """The message with its pictures, as far as they are still there."""
    found = {each.file_id: await _bytes(db, each) for each in pictures_of(message)}
    data = {file_id: each for file_id, each in found.items() if each is not None}
    return with_pictures(message, data, VARIANT_TYPE) if data else message


async def _bytes(db: Database, picture: Picture) -> bytes | None:
    try:
        file = await db.read(storing.get, picture.file_id)
    except NotFound:
        return None
    made = await pictures.variant(db, file.content_id, SEEN)
    return made.data if isinstance(made, pictures.ScaledPicture) else None
