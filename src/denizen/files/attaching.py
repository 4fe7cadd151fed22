"""Attaches files to messages and events, in the transaction that stores those, and says who may read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from sqlalchemy import bindparam, or_, select

from denizen.errors import InvalidInput, NotFound
from denizen.files.storing import File, get, new_file_id, remove, text_of
from denizen.ids import AgentId, EntityId, FileId, MessageId
from denizen.storage.database import Tx, insert_into, select_where, statement, update_where, value, values
from denizen.storage.schema import entities, files, memberships, messages

MOST_FILES: Final = 20
"""How many files a message may have."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message or an event. What it says never changes."""

    id: FileId
    name: str
    media_type: str
    size: int
    digest: str
    alt: str | None = None
    """What it shows, in the words of its uploader."""


_attach = update_where(files, "id", set_="message_id")
_give = update_where(files, "id", set_="agent_id")
_copy = insert_into(
    files, "id, organization_id, uploader_id, content_id, name, media_type, message_id, agent_id, alt, created_at"
)
_of_agent = select_where(files, "id", "agent_id")
_of_message = select_where(files, "id", "message_id")
_reads_message = statement(
    select(memberships.c.entity_id)
    .join(messages, messages.c.space_id == memberships.c.space_id)
    .where(messages.c.id == bindparam("message_id"), memberships.c.entity_id == bindparam("reader_id"))
)


def readable(tx: Tx, file_id: str, reader_id: EntityId) -> File:
    """The file, if the reader is in the space of its message, is the agent that has it, or uploaded it and nobody has
    it yet.

    Raises the same `NotFound` if not, or if it does not exist.
    """
    file = get(tx, file_id)
    if file.message_id is None:
        if (file.agent_id or file.uploader_id) == reader_id:
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


def are_the_same(tx: Tx, author_id: EntityId, attached: Sequence[Attachment], file_ids: Sequence[str]) -> bool:
    """Whether these files are the ones that the author attached before: the same, or others with the same content."""
    given = list(dict.fromkeys(file_ids))
    if len(given) != len(attached):
        return False
    return all(
        file_id == known.id or _digest(tx, author_id, file_id) == known.digest
        for file_id, known in zip(given, attached, strict=True)
    )


def _digest(tx: Tx, author_id: EntityId, file_id: str) -> str | None:
    try:
        return readable(tx, file_id, author_id).digest
    except NotFound:
        return None


def attach(tx: Tx, message_id: MessageId, author_id: EntityId, found: Sequence[File]) -> str:
    """Attach the files to a message that was posted in this transaction. Returns the JSON for its column.

    A file that a message or an agent has already stays there: this message gets a file of its own with the same
    content.
    """
    return json.dumps([asdict(_attached(tx, message_id, author_id, each)) for each in found])


def give(tx: Tx, agent_id: AgentId, found: Sequence[File]) -> list[Attachment]:
    """Let the agent keep these files: a tool's result, or what a service sent. Only the agent can read them.

    As in `attach`, a file that somebody has already is copied.
    """
    return [_given(tx, agent_id, each) for each in found]


def _attached(tx: Tx, message_id: MessageId, author_id: EntityId, file: File) -> Attachment:
    if file.message_id is not None or file.agent_id is not None:
        return _copied(tx, file, author_id, message_id=message_id)
    tx.run(_attach, id=file.id, message_id=message_id)
    return _as_attachment(file, file.id)


def _given(tx: Tx, agent_id: AgentId, file: File) -> Attachment:
    if file.agent_id == agent_id:
        return _as_attachment(file, file.id)
    if file.message_id is not None or file.agent_id is not None:
        return _copied(tx, file, agent_id, agent_id=agent_id)
    tx.run(_give, id=file.id, agent_id=agent_id)
    return _as_attachment(file, file.id)


def _copied(
    tx: Tx, file: File, owner_id: EntityId, *, message_id: MessageId | None = None, agent_id: AgentId | None = None
) -> Attachment:
    file_id = new_file_id()
    tx.run(
        _copy,
        id=file_id,
        organization_id=file.organization_id,
        uploader_id=owner_id,
        content_id=file.content_id,
        name=file.name,
        media_type=file.media_type,
        message_id=message_id,
        agent_id=agent_id,
        alt=file.alt,
        created_at=tx.now,
    )
    return _as_attachment(file, file_id)


def _as_attachment(file: File, file_id: FileId) -> Attachment:
    assert file.digest is not None
    return Attachment(file_id, file.name, file.media_type, file.size, file.digest, file.alt)


def attachments_from(column: str | None) -> tuple[Attachment, ...]:
    """Decode the column of a message."""
    return attachments_in(json.loads(column)) if column else ()


def attachments_in(stored: Any) -> tuple[Attachment, ...]:
    """The same, of JSON that was decoded: in the payload of an event."""
    return tuple(Attachment(**each) for each in stored)


def words_of(tx: Tx, attached: Sequence[Attachment]) -> list[str]:
    """What agents may have read of these files: their names, descriptions and text."""
    found = [(each.name, each.alt, text_of(tx, get(tx, each.id))) for each in attached]
    return [text for texts in found for text in texts if text]


_copies_of_agents = statement(
    select(files.c.id, files.c.message_id)
    .select_from(
        files.outerjoin(messages, messages.c.id == files.c.message_id).outerjoin(
            entities, entities.c.id == messages.c.author_id
        )
    )
    .where(
        files.c.content_id == bindparam("content_id"), or_(files.c.agent_id.is_not(None), entities.c.kind == "agent")
    )
    .order_by(files.c.id)
)
_files_of = select_where(messages, "files", "id")
_set_files = update_where(messages, "id", set_="files")


def remove_copies_of_agents(tx: Tx, attached: Sequence[Attachment]) -> list[tuple[FileId, MessageId | None]]:
    """These files are forgotten: so are the copies that agents have, or sent on. People's own messages keep theirs.

    Returns the ids of these copies, each with the message of an agent that has a file less, if it was in one.
    """
    removed: list[tuple[FileId, MessageId | None]] = []
    forgotten = dict.fromkeys(get(tx, each.id).content_id for each in attached)
    for content_id in forgotten:
        for file_id, message_id in tx.all(_copies_of_agents, content_id=content_id):
            if message_id is not None:
                left = [each for each in attachments_from(value(tx, _files_of, id=message_id)) if each.id != file_id]
                stored = json.dumps([asdict(each) for each in left]) if left else None
                tx.run(_set_files, id=message_id, files=stored)
            remove(tx, get(tx, file_id))
            removed.append((file_id, message_id))
    return removed


def remove_files_of(tx: Tx, message_id: str) -> None:
    """The message is deleted or forgotten: so are its files."""
    for file_id in values(tx, _of_message, message_id=message_id):
        remove(tx, get(tx, file_id))


def remove_files_of_agent(tx: Tx, agent_id: str) -> None:
    """The agent is deleted: so are the files that it got from tools and services. Those in messages stay."""
    for file_id in values(tx, _of_agent, agent_id=agent_id):
        remove(tx, get(tx, file_id))
