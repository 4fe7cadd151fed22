"""What advisors read and see of the files of a message. They have no tools: text is in the request, shortened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from denizen.amounts import human_size
from denizen.errors import NotFound
from denizen.files import pictures, storing
from denizen.files.attaching import Attachment
from denizen.files.pictures import SEEN, ScaledPicture, is_picture
from denizen.inbox.format import quoted_name
from denizen.inbox.picture_lines import picture_of
from denizen.models.pictures import Picture, picture_tokens, sees
from denizen.panel.context import RequestMessage
from denizen.shortening import shortened
from denizen.storage.database import Database, Tx

if TYPE_CHECKING:
    from pydantic_ai.models import Model

TEXT_CHARACTERS: Final = 12_000
"""How much of the text of all files of a message is in a request."""
PICTURE_TOKENS: Final = 8_000
"""What all pictures of a message may take."""


@dataclass(frozen=True, slots=True)
class AttachedFiles:
    """The files of a message, as a request has them."""

    text: str = ""
    pictures: tuple[Picture, ...] = ()


def attached_files(tx: Tx, attached: Sequence[Attachment]) -> AttachedFiles:
    """Describes the files: their names, their text as far as it fits, and the pictures that can be shown."""
    if not attached:
        return AttachedFiles()
    each_may = TEXT_CHARACTERS // len(attached)
    parts: list[str] = []
    shown: list[Picture] = []
    left = PICTURE_TOKENS
    for file in attached:
        text, picture = _read(tx, file)
        parts.append(_about(file, shortened(text, each_may)))
        if picture is not None and (tokens := picture_tokens(picture.width, picture.height)) <= left:
            left -= tokens
            shown.append(picture)
    return AttachedFiles("".join(parts), tuple(shown))


def _read(tx: Tx, attached: Attachment) -> tuple[str, Picture | None]:
    try:
        file = storing.get(tx, attached.id)
    except NotFound:  # its message was deleted
        return "", None
    picture = picture_of(tx, file) if is_picture(file.media_type) else None
    return storing.text_of(tx, file) or "", picture


def _about(file: Attachment, text: str) -> str:
    shows = f", described as {quoted_name(file.alt)}" if file.alt else ""
    head = f"[file {quoted_name(file.name)} ({file.media_type}, {human_size(file.size)}{shows})"
    # Indented, so that a text cannot end the bracket and speak in another's name.
    body = "".join(f"\n  {line}" for line in text.splitlines()) if text.strip() else ""
    return f"\n\n{head}{':' + body if body else ''}]"


async def picture_bytes(db: Database, model: Model, lines: Sequence[RequestMessage]) -> dict[str, bytes]:
    """The pictures of these lines by file, for a model that sees; none for others."""
    if not sees(model):
        return {}
    wanted = {each.file_id for line in lines for each in line.pictures}
    return {file_id: data for file_id in wanted if (data := await _bytes(db, file_id)) is not None}


async def _bytes(db: Database, file_id: str) -> bytes | None:
    try:
        file = await db.read(storing.get, file_id)
    except NotFound:
        return None
    made = await pictures.variant(db, file.content_id, SEEN)
    return made.data if isinstance(made, ScaledPicture) else None
