"""Checks attached files with their bytes, and long-term memories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import exists, literal, select

from denizen.checks.violation import Violation
from denizen.files import storing
from denizen.files.attaching import attachments_from
from denizen.storage.database import Database, Tx, long_running, select_where, statement, value
from denizen.storage.schema import contents, files, memories, memory_terms, messages

_with_files = statement(select(messages.c.id, messages.c.files).where(messages.c.files.is_not(None)))
_attached = statement(select(files.c.message_id, files.c.id).where(files.c.message_id.is_not(None)))
_of_memories: Final = (
    (
        "A memory is missing, and its words are still in the index.",
        statement(
            select(memory_terms.c.owner, memory_terms.c.number)
            .where(memory_terms.c.number > 0)
            .where(~exists(select(memories.c.number).where(memories.c.number == memory_terms.c.number)))
            .distinct()
        ),
    ),
    (
        "A memory belongs to somebody else than its index says.",
        statement(
            select(memories.c.id)
            .join(memory_terms, memory_terms.c.number == memories.c.number)
            .where(memory_terms.c.owner != memories.c.owner)
            .distinct()
        ),
    ),
    (
        "A memory has another scope than its owner.",
        statement(select(memories.c.id).where(memories.c.owner.not_like(memories.c.scope + literal(":%")))),
    ),
)


def check_files_and_memories(tx: Tx) -> Iterator[Violation]:
    attached = set(tx.all(_attached))
    for message_id, column in tx.all(_with_files):
        for each in attachments_from(column):
            if (message_id, each.id) not in attached:
                yield Violation(0, "A file of a message is missing.", (message_id, each.id))
    for sentence, query in _of_memories:
        for row in tx.all(query):
            yield Violation(10, sentence, tuple(map(str, row)))


_complete = statement(
    select(contents.c.id, contents.c.size, contents.c.digest)
    .where(contents.c.digest.is_not(None))
    .order_by(contents.c.id)
)
_digest = select_where(contents, "digest", "id")


async def check_bytes(db: Database, *, deep: bool) -> list[Violation]:
    """Returns the contents of files that are not there as a whole; with `deep`, also those that are not what was
    uploaded."""
    found: list[Violation] = []
    for content_id, size, digest in await db.read(_all_complete):
        if await db.blobs.read(storing.arrived, content_id) != size:
            sentence = "Bytes of a file are missing."
        elif deep and await db.blobs.read(storing.digest_of, content_id) != digest:
            sentence = "The bytes of a file are not those that were uploaded."
        else:
            continue
        # They are in another database, and a file may be deleted meanwhile.
        if await db.read(_is_complete, content_id):
            found.append(Violation(0, sentence, (content_id,)))
    return found


@long_running
def _all_complete(tx: Tx) -> list[tuple[str, int, str]]:
    return [(content_id, size, digest) for content_id, size, digest in tx.all(_complete)]


def _is_complete(tx: Tx, content_id: str) -> bool:
    return value(tx, _digest, id=content_id) is not None
