"""SQLite: one thread writes, a few read.

Writes are queued. The writer runs the queued functions one after the other in one transaction and commits them
together, so that many callers share one fsync; writes that arrive meanwhile join, up to a limit. Callers are told only
after that commit.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Concatenate, Literal, NoReturn, ParamSpec, TypeVar

from pydantic import JsonValue

from denizen import failpoints
from denizen.clock import Clock, Instant
from denizen.errors import DatabaseUnavailable, StorageError
from denizen.storage.database import Announce, Announcement, Params, Row, Statement, Tx
from denizen.storage.heads import Head, HeadsFile
from denizen.storage.sqlite_errors import translate
from denizen.storage.work import FullDisk, Job, hand_back

P = ParamSpec("P")
T = TypeVar("T")

BATCH = 256
"""The most writes that share one commit: it limits how long the first of them waits."""
READERS = 4
"""The most threads that read."""
START_READER_SECONDS = 0.005
"""How long a read waits for a busy reader before one more is started: it has to open a connection, to read the schema
and to prepare its statements, which takes as long as ten short reads."""
PAGE_BYTES = 1_024
"""The page size of new databases. A commit writes every page that it has touched: half the size is 40 % less written.
With 512 it is less again, but long keys no longer fit on a page of an index, and recall takes a third more CPU."""
CHECKPOINT_BYTES = 16_000_000
"""How long the write-ahead log becomes before it is written back."""
BLOB_PAGE_BYTES = 16_384
"""The page size of the database of files. Its rows have 256 KB."""
LOCK_SECONDS = 5.0
"""How long a write waits for another process that holds the database."""
SYNCHRONOUS = "FULL"
"""Every commit is on the disk before its caller is told."""


class SqliteTx:
    """A transaction on one connection. After a failed statement, nothing of it is committed."""

    dialect: Literal["sqlite", "postgresql"] = "sqlite"

    def __init__(
        self,
        path: Path,
        cursor: sqlite3.Cursor,
        clock: Clock,
        announcements: list[Announcement] | None,
        heads: list[Head] | None = None,
        called: list[str] | None = None,
    ) -> None:
        self.error: StorageError | None = None
        """The error of the first statement that failed."""
        self._path = path
        self._cursor = cursor
        self._clock = clock
        self._announcements = announcements
        self._heads = heads
        self._called = called
        self._now: Instant | None = None

    @property
    def now(self) -> Instant:
        if self._now is None:
            self._now = self._clock.now()
        return self._now

    def run(self, statement: Statement, /, **params: Params) -> int:
        changed = self._execute(statement, params).rowcount
        # The driver counts only for statements that begin with INSERT, UPDATE, DELETE or REPLACE.
        return changed if changed >= 0 else self._cursor.execute("SELECT changes()").fetchone()[0]

    def send(self, statement: Statement, /, **params: Params) -> None:
        self._execute(statement, params)

    def prefetch(self, statement: Statement, /, **params: Params) -> None:
        pass  # Nothing is gained: it is in this process.

    def one(self, statement: Statement, /, **params: Params) -> Row | None:
        return self._execute(statement, params).fetchone()

    def all(self, statement: Statement, /, **params: Params) -> list[Row]:
        return self._execute(statement, params).fetchall()

    def many(self, statement: Statement, rows: Sequence[Mapping[str, Params]], /) -> None:
        sql, in_order = statement.sqlite_call
        try:
            self._cursor.executemany(sql, map(in_order, rows))
        except (sqlite3.Error, KeyError) as error:
            self._fail(error)

    def note_head(self, kind: str, id: str, position: int, digest: bytes) -> None:
        if self._heads is not None:
            self._heads.append(Head(kind, id, position, digest))

    def announce(self, topic: str, payload: Mapping[str, JsonValue]) -> None:
        if self._announcements is None:
            raise RuntimeError("A read has nothing to announce.")
        self._announcements.append((topic, payload))

    def call_up(self, key: str) -> None:
        if self._called is not None:
            self._called.append(key)

    def _execute(self, statement: Statement, params: Mapping[str, Params]) -> sqlite3.Cursor:
        sql, in_order = statement.sqlite_call
        try:
            return self._cursor.execute(sql, in_order(params))
        except (sqlite3.Error, KeyError) as error:
            self._fail(error)

    def _fail(self, error: sqlite3.Error | KeyError) -> NoReturn:
        if isinstance(error, KeyError):
            error = sqlite3.ProgrammingError(f"the parameter {error} was not given")
        ours = translate(error, self._path)
        self.error = self.error or ours
        raise ours


class SqliteDatabase:
    """The database in one file. The contents of files are in a second one beside it, with a writer of its own, so that
    uploads do not hold up cycles.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        announce: Announce,
        on_close: Callable[[], object] | None = None,
        readers: int = READERS,
        prepare: Callable[[Path], None] | None = None,
        heads: HeadsFile | None = None,
        missing: str | None = None,
    ) -> None:
        """`heads`: the file beside it that says how far it has come. `missing`: what was found missing in it."""
        self.commits = 0
        self.writes = 0
        self.missing = missing
        self._full_disk = FullDisk()
        self._heads = heads
        self._path = path
        self._most_readers = readers
        self._prepare = prepare
        self._prepared = threading.Lock()
        self._blobs: SqliteDatabase | None = None
        self._clock = clock
        self._announce = announce
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        self._first: deque[Job] = deque()
        self._queue: deque[Job] = deque()
        self._standing_by: dict[str, Job] = {}
        self._idle = False
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._reads: deque[Job] = deque()
        """Those that wait because every reader is busy."""
        self._idle_readers: list[SimpleQueue[Job | None]] = []
        """The last one to become idle is the next to read: the statements of its connection are prepared."""
        self._reading = threading.Lock()
        """Held to look at these two, or to change them."""
        self._closing = False
        self._one_closes = threading.Lock()
        self._threads = [threading.Thread(target=self._write_until_closed, name="sqlite writer", daemon=True)]
        self._threads[0].start()

    @property
    def is_full(self) -> bool:
        return bool(self._full_disk) or (self._blobs is not None and self._blobs.is_full)

    async def write(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._enqueue(self._queue, Job(fn, args, kwargs, self._loop.create_future()))

    async def write_first(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._enqueue(self._first, Job(fn, args, kwargs, self._loop.create_future()))

    async def read(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._refuse_if_closed()
        job = Job(fn, args, kwargs, self._loop.create_future())
        with self._reading:
            if self._idle_readers:
                self._idle_readers.pop().put(job)
            else:
                self._reads.append(job)
                if len(self._threads) == 1:
                    self._start_reader()
                elif len(self._threads) <= self._most_readers:
                    self._loop.call_later(START_READER_SECONDS, self._start_reader_if_late, job)
        return await job.future

    def _start_reader_if_late(self, job: Job) -> None:
        with self._reading:
            if job in self._reads and len(self._threads) <= self._most_readers:
                self._start_reader()

    def _start_reader(self) -> None:
        """One more, for the read that waits longest."""
        job, name = self._reads.popleft(), f"sqlite reader {len(self._threads)}"
        self._threads.append(threading.Thread(target=self._read_until_closed, args=(job,), name=name, daemon=True))
        self._threads[-1].start()

    def stand_by(
        self,
        key: str,
        then: Callable[[], None],
        fn: Callable[Concatenate[Tx, P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> asyncio.Future[T]:
        job = self._standing_by[key] = Job(fn, args, kwargs, self._loop.create_future(), then)
        return job.future

    def withdraw(self, key: str, /) -> bool:
        return self._standing_by.pop(key, None) is not None

    @property
    def blobs(self) -> SqliteDatabase:
        if self._blobs is None:
            self._refuse_if_closed()
            self._blobs = SqliteDatabase(
                blobs_path(self._path), clock=self._clock, announce=self._announce, readers=1, prepare=prepare_blobs
            )
        return self._blobs

    def end_within(self, seconds: float) -> None:
        pass  # A file answers, or the process hangs in the kernel.

    async def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._wake.put(None)
            with self._reading:
                while self._idle_readers:
                    self._idle_readers.pop().put(None)
        if self._blobs is not None:
            await self._blobs.close()
        await asyncio.to_thread(self._wait_for_threads)
        if self._on_close is not None:
            self._on_close()

    def _wait_for_threads(self) -> None:
        for thread in self._threads:
            thread.join()

    def _enqueue(self, queue: deque[Job], job: Job) -> asyncio.Future[Any]:
        self._refuse_if_closed()
        queue.append(job)
        # We append, then check whether the writer is idle; the writer declares itself idle, then checks the queue. So
        # one of us sees the other, and a busy writer is not signalled for every write.
        if self._idle:
            self._idle = False
            self._wake.put(None)
        return job.future

    def _refuse_if_closed(self) -> None:
        if self._closing:
            raise DatabaseUnavailable("The database is closed.")

    def _write_until_closed(self) -> None:
        cursor: sqlite3.Cursor | None = None
        while self._wait_for_writes():
            batch = [self._next()]
            try:
                cursor = cursor or self._connect().cursor()
                self._write_batch(cursor, batch)
            except BaseException as error:  # noqa: BLE001
                # Any error must reach every caller, and the thread must survive for the next batch.
                cursor = _rolled_back(cursor)
                _fail_all(batch, error, self._path)
            self._full_disk.note(batch)
            hand_back(self._loop, self._announce, batch)
        self._close(cursor)
        if self._heads is not None:
            self._heads.close()

    def _connect(self, *, reading: bool = False) -> sqlite3.Connection:
        with self._prepared:
            if self._prepare is not None:
                self._prepare(self._path)
                self._prepare = None
        return connect(self._path, reading=reading)

    def _wait_for_writes(self) -> bool:
        """Returns True when there is something to write, False when there will be nothing more."""
        while not (self._first or self._queue):
            if self._closing:
                return False
            self._idle = True
            if not (self._first or self._queue or self._closing):
                self._wake.get()
            self._idle = False
        return True

    def _next(self) -> Job:
        return self._first.popleft() if self._first else self._queue.popleft()

    def _join(self, batch: list[Job]) -> bool:
        """Takes one more queued write into the batch, if there is any and there is room."""
        if len(batch) >= BATCH or not (self._first or self._queue):
            return False
        batch.append(self._next())
        return True

    def _call_up(self, batch: list[Job]) -> bool:
        """Adds the stand-by writes that the batch has called up, if there are any."""
        keys = dict.fromkeys(key for job in batch for key in job.called)
        called = [job for key in keys if (job := self._standing_by.pop(key, None)) is not None]
        batch += called
        return bool(called)

    def _write_batch(self, cursor: sqlite3.Cursor, batch: list[Job]) -> None:
        while self._join(batch):
            pass
        cursor.execute("BEGIN IMMEDIATE")
        self._run_batch(cursor, batch)
        written = [job for job in batch if job.error is None]
        if failpoints.armed:
            for job in written:
                failpoints.reach(f"commit:{job.name}")
        cursor.execute("COMMIT")
        if written:
            self.commits += 1
            self.writes += len(written)
            if self._heads is not None:
                self._heads.keep(head for job in written for head in job.heads)
        if failpoints.armed:
            for job in written:
                failpoints.reach(f"committed:{job.name}")

    def _run_batch(self, cursor: sqlite3.Cursor, batch: list[Job]) -> None:
        """Runs the batch, and what is queued meanwhile, in the open transaction. A function that fails leaves nothing
        behind.

        Failures are rare and a savepoint costs two statements, so none are set until one fails: then all is rolled
        back, and what had succeeded before runs again, now with savepoints.
        """
        savepoints = False
        position = 0
        while position < len(batch) or self._join(batch) or self._call_up(batch):
            job = batch[position]
            position += 1
            if job.error is not None:
                continue
            if savepoints:
                cursor.execute("SAVEPOINT job")
            try:
                job.announcements, job.heads, job.called = [], [], []
                self._run(job, cursor, job.announcements)
            except BaseException as error:
                job.fail(_told(error, self._path))
                if not cursor.connection.in_transaction:
                    raise  # SQLite gave up the whole transaction: a full disk, a broken file.
                if savepoints:
                    cursor.execute("ROLLBACK TO job")
                else:
                    cursor.execute("ROLLBACK")
                    cursor.execute("BEGIN IMMEDIATE")
                    savepoints = any(earlier.error is None for earlier in batch[:position])
                    position = 0
            if savepoints and position > 0:
                cursor.execute("RELEASE job")

    def _run(self, job: Job, cursor: sqlite3.Cursor, announcements: list[Announcement] | None) -> None:
        tx = SqliteTx(self._path, cursor, self._clock, announcements, job.heads, job.called)
        job.run(tx)
        if tx.error is not None:
            raise tx.error  # The function continued after a failed statement; PostgreSQL would not have allowed that.

    def _read_until_closed(self, first: Job) -> None:
        cursor: sqlite3.Cursor | None = None
        given: SimpleQueue[Job | None] = SimpleQueue()
        job: Job | None = first
        while job is not None:
            try:
                cursor = cursor or self._connect(reading=True).cursor()
                cursor.execute("BEGIN")
                self._run(job, cursor, None)
            except BaseException as error:  # noqa: BLE001
                job.fail(_told(error, self._path))
            cursor = _rolled_back(cursor)
            # Before its caller is woken: what the caller reads next is for this thread, not for another one.
            self._take_next_or_be_idle(given)
            hand_back(self._loop, self._announce, [job])
            job = given.get()
        self._close(cursor)

    def _take_next_or_be_idle(self, given: SimpleQueue[Job | None]) -> None:
        """The reader of this queue is given the read that waits longest. If none waits, it is idle, or ends."""
        with self._reading:
            if self._reads:
                given.put(self._reads.popleft())
            elif self._closing:
                given.put(None)
            else:
                self._idle_readers.append(given)

    def _close(self, cursor: sqlite3.Cursor | None) -> None:
        # The last connection writes the log back and removes it. Of two that close at the same moment neither is the
        # last.
        if cursor is not None:
            with self._one_closes:
                cursor.connection.close()


def connect(path: Path, *, reading: bool = False) -> sqlite3.Connection:
    """Connects with our settings; a connection for reading refuses to write."""
    # Cached statements stay prepared; the domain has a few hundred.
    connection = sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None, cached_statements=1024)
    try:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # takes effect only before the first table is made
        _use_write_ahead_log(connection)
        connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -32000")
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()  # an older database keeps its own
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_BYTES // page_bytes}")
        if reading:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def blobs_path(path: Path) -> Path:
    """The file with the contents of files, beside the database at `path`."""
    return path.with_name(f"{path.stem}-files{path.suffix}")


def prepare_blobs(path: Path) -> None:
    """Creates the database of files, if it is missing."""
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # for its owner only
    with closing(sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {BLOB_PAGE_BYTES}")  # takes effect only before the first table is made
        connection.execute(chunks_sql())


def chunks_sql() -> str:
    """The statement that creates the table of files' contents, unless it is there."""
    from sqlalchemy.dialects import sqlite
    from sqlalchemy.schema import CreateTable

    from denizen.storage.schema import chunks

    return str(CreateTable(chunks, if_not_exists=True).compile(dialect=sqlite.dialect()))


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    # For a new file this takes a lock that SQLite itself does not wait for: another process may be creating it as well.
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(0.005)
        else:
            return


def _rolled_back(cursor: sqlite3.Cursor | None) -> sqlite3.Cursor | None:
    """Returns the cursor, outside any transaction; None, with its connection closed, if the rollback fails."""
    if cursor is not None and cursor.connection.in_transaction:
        try:
            cursor.execute("ROLLBACK")
        except sqlite3.Error:
            cursor.connection.close()
            return None
    return cursor


def _fail_all(batch: list[Job], error: BaseException, path: Path) -> None:
    for job in batch:
        if job.error is None:
            job.fail(_told(error, path))


def _told(error: BaseException, path: Path) -> BaseException:
    return translate(error, path) if isinstance(error, sqlite3.Error) else error
