"""A process killed while a file is uploaded, posted, read or made recallable loses nothing and leaves nothing over."""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import select

from denizen import Runtime
from denizen.agents.pace import Pace
from denizen.files import storing
from denizen.files.cleanup import tidy
from denizen.storage.database import Tx, statement, values
from denizen.storage.schema import chunks, contents, file_pages, files, heard_files, passages
from tests.crash.filing import DOCUMENT, FILE, MODEL, PAGES, Life, live, model
from tests.crash.killing import KILLED, lived

POINTS = [
    "commit:put_chunk",
    "committed:put_chunk",
    "committed:finish",
    "commit:post_message",
    "committed:post_message",
    "committed:claim_next",
    "file.read",
    "committed:end_reading",
    "commit:remember_some",
    "committed:remember_some",
]

_contents = statement(select(contents.c.id))
_used = statement(select(files.c.content_id))
_waiting = statement(select(heard_files.c.file_id))
_pages = statement(select(file_pages.c.text).order_by(file_pages.c.page))
_recalled = statement(select(passages.c.text).where(passages.c.file_id.is_not(None)))
_chunks = statement(select(chunks.c.content_id))


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at(point: str, database_url: str) -> None:
    async with Runtime(database_url, models={MODEL: model()}, pace=Pace()) as denizen:
        noor = await denizen.people.create("Noor")
        ada = await denizen.agents.create("Ada", model=MODEL)
        hall = await denizen.spaces.create("Hall", [noor, ada])
    killed = lived(live, Life(database_url, noor.id, hall.id, point))
    assert killed == KILLED, f"{point} was never passed"
    assert lived(live, Life(database_url, noor.id, hall.id, None)) == 0
    async with Runtime(database_url, models={MODEL: model()}) as denizen:
        await tidy(denizen.db)
        file = await denizen.files.get(FILE)
        assert await denizen.files.read(file) == DOCUMENT
        messages = await denizen.spaces.messages(hall)
        assert Counter(each.text for each in messages) == {"Keep this.": 1, "Thanks.": 1}
        assert [each.id for each in messages[0].files] == [FILE]
        assert await denizen.db.read(_all, _pages) == list(PAGES)
        assert sorted(await denizen.db.read(_all, _recalled)) == sorted(PAGES)
        assert await denizen.db.read(_all, _waiting) == []
        assert await denizen.db.read(_all, _contents) == await denizen.db.read(_all, _used) == [file.content_id]
        assert set(await denizen.db.blobs.read(_all, _chunks)) == {file.content_id}
        assert (await denizen.db.read(storing.reading_of, file)).state == "done"


def _all(tx: Tx, rows: object) -> list[str]:
    return values(tx, rows)  # pyright: ignore[reportArgumentType]
