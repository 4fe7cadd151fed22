"""Attaches files to messages, in the transaction that posts the message, and says who may read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from sqlalchemy import bindparam, select, update

from denizen.errors import InvalidInput, NotFound
from denizen.files.storing import File, get, new_file_id, remove, text_of
from denizen.ids import EntityId, FileId, MessageId
from denizen.storage.database import Tx, insert_into, statement, values
from denizen.storage.schema import files, memberships, messages

MOST_FILES: Final = 20
"""How many files a message may have."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message. What it says never changes."""

    id: FileId
    name: str
    media_type: str
    size: int
    digest: str


_attach = statement(update(files).where(files.c.id == bindparam("file")).values(message_id=bindparam("message")))
_copy = insert_into(
    files, "id", "organization_id", "uploader_id", "content_id", "name", "media_type", "message_id", "created_at"
)
_of_message = statement(select(files.c.id).where(files.c.message_id == bindparam("message_id")))
_reads_message = statement(
    select(memberships.c.entity_id)
    .join(messages, messages.c.space_id == memberships.c.space_id)
    .where(messages.c.id == bindparam("message_id"), memberships.c.entity_id == bindparam("reader_id"))
)


def readable(tx: Tx, file_id: str, reader_id: EntityId) -> File:
    """The file, if the reader is in the space of its message, or uploaded it and it is not attached yet.

    Raises the same `NotFound` if not, or if it does not exist.
    """
    file = get(tx, file_id)
    if file.message_id is None:
        if file.uploader_id == reader_id:
            return file
    elif tx.one(_reads_message, message_id=file.message_id, reader_id=reader_id) is not None:
        return file
    raise NotFound("file", file_id)


def attachable(tx: Tx, author_id: EntityId, file_ids: Sequence[str]) -> list[File]:
    """The files, if the author may attach them to a message."""
    if len(file_ids) > MOST_FILES:
        raise InvalidInput(f"A message may have {MOST_FILES} files, this one has {len(file_ids)}.")
    found = [readable(tx, each, author_id) for each in dict.fromkeys(file_ids)]
    for file in found:
        if not file.is_complete:
            raise InvalidInput(f"The upload of {file.name} is not finished. Finish it, then send the message.")
    return found


def attach(tx: Tx, message_id: MessageId, author_id: EntityId, found: Sequence[File]) -> str:
    """Attach the files to a message that was posted in this transaction. Returns the JSON for its column.

    A file that another message has already stays there: this one gets a file of its own with the same content.
    """
    return json.dumps([asdict(_attached(tx, message_id, author_id, each)) for each in found])


def _attached(tx: Tx, message_id: MessageId, author_id: EntityId, file: File) -> Attachment:
    assert file.digest is not None
    file_id = file.id
    if file.message_id is None:
        tx.run(_attach, file=file_id, message=message_id)
    else:
        file_id = new_file_id()
        tx.run(
            _copy,
            id=file_id,
            organization_id=file.organization_id,
            uploader_id=author_id,
            content_id=file.content_id,
            name=file.name,
            media_type=file.media_type,
            message_id=message_id,
            created_at=tx.now,
        )
    return Attachment(file_id, file.name, file.media_type, file.size, file.digest)


def attachments_from(column: str | None) -> tuple[Attachment, ...]:
    """Decode the column of a message."""
    return tuple(Attachment(**each) for each in json.loads(column)) if column else ()


def words_of(tx: Tx, attached: Sequence[Attachment]) -> list[str]:
    """What agents may have read of these files: their names and their text."""
    found = [(each.name, text_of(tx, get(tx, each.id))) for each in attached]
    return [text for pair in found for text in pair if text]


def remove_files_of(tx: Tx, message_id: str) -> None:
    """The message is deleted or forgotten: so are its files."""
    for file_id in values(tx, _of_message, message_id=message_id):
        remove(tx, get(tx, file_id))
