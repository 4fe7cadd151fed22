"""Reads files in the background: the text of documents, and pictures for models that see.

A content waits until a process has claimed and read it, one at a time; a process that dies loses its claim after a
while. The result is stored in the transaction that ends the waiting, so it is there once. A file that ends its reader
is unreadable, and never holds up a cycle.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, or_, select, update

from denizen import failpoints
from denizen.clock import SECOND
from denizen.files import jail, pictures, storing
from denizen.files.pictures import ScaledPicture
from denizen.files.reading import Kind, cut_pages, kind_of
from denizen.storage.database import Database, Tx, select_where, statement, update_where, value
from denizen.storage.schema import contents, files
from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)

READ = failpoints.declare("file.read")

CLAIM_SECONDS: Final = 180
MOST_TRIES: Final = 3
"""After so many processes have died while they read it, a content is unreadable."""
WAIT_SECONDS: Final = 30.0
"""How long a cycle waits at most until a file has been read."""
_LOOK_AGAIN_SECONDS: Final = 0.1
_PAGELESS: Final = frozenset({"word", "html", "mail"})
"""Kinds without pages of their own."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A content that this process may read."""

    content_id: str
    kind: Kind | None
    """None: no process has survived reading it."""


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """What was read in a content."""

    pages: Sequence[str] = ()
    width: int | None = None
    height: int | None = None
    trouble: str | None = None


_unclaimed = (
    contents.c.reading == "waiting",
    or_(
        contents.c.claimed_until.is_(None),
        contents.c.claimed_until < bindparam("now"),
        # No claim is longer: the clock was set back since.
        contents.c.claimed_until > bindparam("latest", type_=contents.c.claimed_until.type),
    ),
)
_next = statement(select(contents.c.id, contents.c.tries).where(*_unclaimed).order_by(contents.c.created_at).limit(1))
_named = select_where(files, "name, media_type", "content_id", order_by="created_at")
_claim = statement(
    update(contents)
    .where(contents.c.id == bindparam("content"), *_unclaimed)
    .values(claimed_until=bindparam("until"), tries=bindparam("nth"))
    .returning(contents.c.id)
)
_end = statement(
    update(contents)
    .where(contents.c.id == bindparam("content"), contents.c.reading == "waiting")
    .values(
        reading=bindparam("state"),
        trouble=bindparam("why"),
        width=bindparam("across"),
        height=bindparam("down"),
        claimed_until=None,
    )
    .returning(contents.c.id)
)
_release = update_where(contents, "id", claimed_until=None, tries=contents.c.tries - 1)
_waiting = select_where(contents, "id", "id", contents.c.reading == "waiting")


def _some_wait(tx: Tx) -> bool:
    return tx.one(_next, now=tx.now, latest=_latest(tx)) is not None


def _latest(tx: Tx) -> int:
    """When a claim that is made now ends; none ends later."""
    return tx.now + CLAIM_SECONDS * SECOND


def claim_next(tx: Tx) -> Claim | None:
    """Claim the oldest content that waits and that nobody reads; None if there is none."""
    now, latest = tx.now, _latest(tx)
    row = tx.one(_next, now=now, latest=latest)
    if row is None:
        return None
    content_id, tries = row
    nth = (tries or 0) + 1
    if tx.one(_claim, content=content_id, now=now, latest=latest, until=latest, nth=nth) is None:
        return None  # another process was first
    # The same bytes may have several names.
    kinds: list[Kind | None] = [kind_of(name, media_type) for name, media_type in tx.all(_named, content_id=content_id)]
    return Claim(content_id, next(filter(None, kinds), None) if nth <= MOST_TRIES else None)


def end_reading(tx: Tx, content_id: str, found: ExtractedText) -> None:
    """Store what was read, once: unless somebody else has, or the content is gone."""
    state = "done" if found.trouble is None else "unreadable"
    ended = tx.one(_end, content=content_id, state=state, why=found.trouble, across=found.width, down=found.height)
    if ended is not None:
        storing.put_pages(tx, content_id, found.pages)


def release(tx: Tx, content_id: str) -> None:
    """Give a claim back: this process ends before it has read the content."""
    tx.run(_release, id=content_id)


def is_waiting(tx: Tx, content_ids: Sequence[str]) -> bool:
    """Whether any of these contents is still to be read."""
    return any(value(tx, _waiting, id=each) is not None for each in content_ids)


async def read_content(db: Database, claimed: Claim) -> ExtractedText:
    """Read the content in the jail."""
    if claimed.kind is None:
        return ExtractedText(trouble="reading it has failed several times")
    if claimed.kind == "picture":
        made = await pictures.variant(db, claimed.content_id, pictures.SEEN)
        return (
            ExtractedText(width=made.width, height=made.height)
            if isinstance(made, ScaledPicture)
            else ExtractedText(trouble=made.trouble)
        )
    data = await db.blobs.read(storing.all_bytes, claimed.content_id)
    answer = await jail.run("text", claimed.kind, data)
    if answer.trouble is not None:
        return ExtractedText(trouble=answer.trouble)
    pages: list[str] = answer.told["pages"]
    return ExtractedText([part for page in pages for part in cut_pages(page)] if claimed.kind in _PAGELESS else pages)


async def read_waiting(db: Database) -> None:
    """Read every content that waits and that nobody else reads."""
    while await db.read(_some_wait) and (claimed := await db.write(claim_next)) is not None:
        try:
            found = await read_content(db, claimed)
        except asyncio.CancelledError:
            await asyncio.shield(db.write(release, claimed.content_id))
            raise
        failpoints.reach(READ)
        await db.write(end_reading, claimed.content_id, found)


async def wait_until_read(db: Database, content_ids: Sequence[str], seconds: float = WAIT_SECONDS) -> bool:
    """Wait until these contents have been read, but not long. Returns whether they have been."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while await db.read(is_waiting, content_ids):
        if loop.time() >= until:
            return False
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)  # real time, whatever the clock says: a process is running
    return True


@dataclass(frozen=True, slots=True)
class Background:
    """The reading that goes on beside the cycles."""

    something: asyncio.Event
    idle: asyncio.Event

    def hint(self) -> None:
        """There may be something to read."""
        self.idle.clear()
        self.something.set()

    async def settled(self) -> None:
        """Wait until everything that waits here has been read."""
        await self.idle.wait()


@asynccontextmanager
async def following(db: Database, then: Callable[[Database], Awaitable[None]]) -> AsyncGenerator[Background]:
    """While entered, reads what waits, and does `then` afterwards."""
    something, idle = asyncio.Event(), asyncio.Event()
    something.set()

    async def follow() -> None:
        while True:
            if not something.is_set():
                idle.set()
            await something.wait()
            something.clear()
            try:
                await read_waiting(db)
                await then(db)
            except Exception as error:  # noqa: BLE001  the loop's boundary: what waits is found again
                log_line.warning("files not read", error=repr(error))

    task = asyncio.create_task(follow(), name="reading files")
    try:
        yield Background(something, idle)
    finally:
        task.cancel()
        await asyncio.wait([task])
