"""PostgreSQL: a few threads, each with a connection of its own.

A write is retried after a deadlock or serialization failure, or if the server went away before COMMIT was sent; a
connection lost while committing is `OutcomeUnknown`. Group commit is left to the server.

Every transaction has time limits (`Limits`). The server ends one whose client has gone silent, so that a stopped
process or a dead network does not keep its locks; and this side gives up a connection on which no answer comes.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from queue import SimpleQueue
from typing import Any, Concatenate, Literal, LiteralString, NoReturn, ParamSpec, TypeVar, cast

import psycopg
from psycopg.abc import RV, Buffer, PQGen
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from pydantic import JsonValue

from denizen import failpoints
from denizen.clock import Clock, Instant, SystemClock
from denizen.errors import DatabaseUnavailable, OutcomeUnknown, StorageError
from denizen.storage.database import Announce, Announcement, Params, Row, Statement, Tx, is_long_running
from denizen.storage.postgresql_errors import (
    describe,
    is_lasting,
    is_lost,
    is_rolled_back,
    may_pass,
    translate,
)
from denizen.storage.work import Job, hand_back

P = ParamSpec("P")
T = TypeVar("T")

CONNECTIONS = 8
CONFLICT_TRIES = 10
"""How often a transaction is tried at most if it conflicts with others."""
AWAY_SECONDS = 3.0
"""How long a call keeps trying to reach a server that is away."""
CONNECT_SECONDS = 5
ANSWER_SECONDS = 5
"""How much longer than the server's own limit a statement may take before its connection is given up as dead."""
LOOK_SECONDS = 0.1
"""How often a connection that waits for an answer checks whether it should go on waiting."""
CLOSE_SECONDS = 5
"""How long `close` waits for an answer on each connection. What is running then is cut off."""
NETWORK = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 15_000,
}
"""Settings of our side of the connection: a dead network is noticed within about 20 seconds."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The time limits of a transaction in seconds, enforced by the server."""

    idle: float
    """Between two statements: how long a silent client keeps its locks."""
    lock: float
    """Waiting for one lock of another transaction."""
    statement: float
    """For one statement, waiting for locks included."""

    def begin(self, mode: str = "") -> str:
        """Returns the statements that begin a transaction with these limits, as one message to the server.

        They apply to this transaction only. A pooler such as PgBouncer gives the connection to others after it.
        """
        settings = {
            "idle_in_transaction_session_timeout": self.idle,
            "lock_timeout": self.lock,
            "statement_timeout": self.statement,
            # The server's side of the connection, for an answer that is not read.
            "tcp_user_timeout": self.idle,
        }
        return ";".join(
            [f"BEGIN {mode}", *(f"SET LOCAL {name}={int(seconds * 1000)}" for name, seconds in settings.items())]
        )


# How long a peer waits for a process that stops inside a transaction: one statement plus the idle limit, at most the
# lease (30 s) and 5 s more.
WRITING = Limits(idle=5, lock=20, statement=30)
# A read locks no rows. Working through its result may take time.
READING = Limits(idle=60, lock=30, statement=30)
LONG_RUNNING = Limits(idle=60, lock=20, statement=3600)

_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_SNAPSHOT = "ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresqlTx:
    """A transaction on one connection. After a failed statement, nothing of it is committed."""

    dialect: Literal["sqlite", "postgresql"] = "postgresql"

    def __init__(self, line: _Line, clock: Clock | None, announcements: list[Announcement] | None) -> None:
        self._line = line
        self._clock = clock
        self._announcements = announcements
        self._now: Instant | None = None

    @property
    def now(self) -> Instant:
        if self._now is None:
            self._now = self._clock.now() if self._clock else self._server_time()
        return self._now

    def run(self, statement: Statement, /, **params: Params) -> int:
        return self._execute(statement, params).rowcount

    def one(self, statement: Statement, /, **params: Params) -> Row | None:
        return self._execute(statement, params).fetchone()

    def all(self, statement: Statement, /, **params: Params) -> list[Row]:
        return self._execute(statement, params).fetchall()

    def many(self, statement: Statement, rows: Sequence[Mapping[str, Params]], /) -> None:
        sql, names = statement.postgresql
        self._line.executemany(sql, [self._line.in_order(names, row) for row in rows])

    def note_head(self, kind: str, id: str, position: int, digest: bytes) -> None:
        pass  # The server's write-ahead log is its own care: it does not start without it.

    def announce(self, topic: str, payload: Mapping[str, JsonValue]) -> None:
        if self._announcements is None:
            raise RuntimeError("A read has nothing to announce.")
        self._announcements.append((topic, payload))

    def _execute(self, statement: Statement, params: Mapping[str, Params]) -> psycopg.Cursor[Row]:
        sql, names = statement.postgresql
        return self._line.execute(sql, self._line.in_order(names, params))

    def _server_time(self) -> Instant:
        row = self._line.execute(_NOW).fetchone()
        assert row is not None
        return Instant(row[0])


class PostgresqlDatabase:
    """A database on a PostgreSQL server."""

    def __init__(self, conninfo: str, *, clock: Clock, announce: Announce) -> None:
        self.commits = 0
        self.writes = 0
        self.missing: str | None = None
        # Instances on several machines share the server's clock; a clock given by a test is kept.
        self._clock = None if isinstance(clock, SystemClock) else clock
        self._announce = announce
        self._loop = asyncio.get_running_loop()
        self._first: deque[_Call] = deque()
        self._queue: deque[_Call] = deque()
        self._idle: list[SimpleQueue[None]] = []
        """The wake-up queues of the idle threads, the last one that worked at the end."""
        self._handing_out = threading.Lock()
        self._counting = threading.Lock()
        self._closing = False
        self._lines = [_Line(conninfo) for _ in range(CONNECTIONS)]
        self._threads = [
            threading.Thread(target=self._serve_until_closed, args=(line,), name=f"postgresql {number}", daemon=True)
            for number, line in enumerate(self._lines)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def blobs(self) -> PostgresqlDatabase:
        return self

    async def write(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._enqueue(self._queue, Job(fn, args, kwargs, self._loop.create_future()))

    async def write_first(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._enqueue(self._first, Job(fn, args, kwargs, self._loop.create_future()))

    async def read(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._enqueue(self._queue, Job(fn, args, kwargs, self._loop.create_future()), reading=True)

    async def close(self) -> None:
        with self._handing_out:
            self._closing = True
            for bell in self._idle:
                bell.put(None)
        for line in self._lines:
            line.hurry(CLOSE_SECONDS)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _enqueue(self, queue: deque[_Call], job: Job, *, reading: bool = False) -> asyncio.Future[Any]:
        if self._closing:
            raise DatabaseUnavailable("The database is closed.")
        with self._handing_out:
            queue.append(_Call(job, reading))
            # The last one that worked: its connection is warm, and connections that are not needed are never made.
            bell = self._idle.pop() if self._idle else None
        if bell is not None:
            bell.put(None)
        return job.future

    def _serve_until_closed(self, line: _Line) -> None:
        bell: SimpleQueue[None] = SimpleQueue()
        while (call := self._next(bell)) is not None:
            try:
                self._serve(line, call)
            except BaseException as error:  # noqa: BLE001
                # Any error must reach the caller, and the thread must survive for the next call.
                call.job.fail(error)
                if self._closing and line.trouble is not None and is_lost(line.trouble):
                    self._fail_queued(error)
            hand_back(self._loop, self._announce, [call.job])
        line.hang_up()

    def _fail_queued(self, error: BaseException) -> None:
        """Fails the queued calls while closing: the server does not answer, and each would wait for it."""
        with self._handing_out:
            queued = [call.job for call in (*self._first, *self._queue)]
            self._first.clear()
            self._queue.clear()
        for job in queued:
            job.fail(error)
        hand_back(self._loop, self._announce, queued)

    def _next(self, bell: SimpleQueue[None]) -> _Call | None:
        """Returns the next call, waiting if necessary; None if there will be no more."""
        while True:
            with self._handing_out:
                if self._first or self._queue:
                    return (self._first or self._queue).popleft()
                if self._closing:
                    return None
                self._idle.append(bell)
            bell.get()

    def _serve(self, line: _Line, call: _Call) -> None:
        """Runs the call, again where that is safe, until it is committed or has failed for good."""
        for tries in count(1):
            line.trouble = None
            try:
                self._attempt(line, call)
            except BaseException:
                line.clear()
                if not _may_try_again(line.trouble, tries, call.give_up_at, closing=self._closing):
                    raise
            else:
                break
            time.sleep(_pause(tries))

    def _attempt(self, line: _Line, call: _Call) -> None:
        line.begin(call.limits, _SNAPSHOT if call.reading else "")
        call.job.announcements = []
        call.job.run(PostgresqlTx(line, self._clock, None if call.reading else call.job.announcements))
        if line.trouble is not None:
            raise translate(line.trouble, line.name)  # The function continued after a failed statement.
        if call.reading:
            line.clear()
        else:
            self._commit(line, call.job)

    def _commit(self, line: _Line, job: Job) -> None:
        if failpoints.armed:
            failpoints.reach(f"commit:{job.name}")
        try:
            line.execute("COMMIT")
        except StorageError as error:
            if line.trouble is None or not is_lost(line.trouble) or is_rolled_back(line.trouble):
                raise
            line.trouble = None
            raise OutcomeUnknown(
                f"The connection to {line.name} broke while committing: the write may or may not have happened. "
                "Read what is there before you try again."
            ) from error
        with self._counting:
            self.commits += 1
            self.writes += 1
        if failpoints.armed:
            failpoints.reach(f"committed:{job.name}")


class _Call:
    """A queued job, with its deadline for a server that is away."""

    __slots__ = ("give_up_at", "job", "reading")

    def __init__(self, job: Job, reading: bool) -> None:
        self.job = job
        self.reading = reading
        self.give_up_at = time.monotonic() + AWAY_SECONDS

    @property
    def limits(self) -> Limits:
        if is_long_running(self.job.fn):
            return LONG_RUNNING
        return READING if self.reading else WRITING


class _Line:
    """The connection of one thread: made when first needed, and again after it was lost."""

    def __init__(self, conninfo: str) -> None:
        self.name = describe(conninfo)
        self.trouble: psycopg.Error | None = None
        """The first error of the server or of the connection."""
        self._conninfo = conninfo
        self._cursor: psycopg.Cursor[Row] | None = None
        self._patience = Patience(CONNECT_SECONDS)

    def hurry(self, seconds: float) -> None:
        """Makes the connection give up after so many seconds without an answer. Callable from any thread."""
        self._patience.hurry(seconds)

    def begin(self, limits: Limits, mode: str) -> None:
        """Begins a transaction, connecting first if necessary."""
        self._patience.seconds = limits.statement + ANSWER_SECONDS
        try:
            # The SQL is sent as it is: rewriting names to numbers at each call took longer than some statements, above
            # all with the many parameters of a list, for which the driver caches nothing.
            self._cursor = self._cursor or psycopg.RawCursor(connect(self._conninfo, self._patience))
            # Several statements in one message cannot be prepared.
            self._cursor.execute(cast("LiteralString", limits.begin(mode)), prepare=False)
        except psycopg.Error as error:
            self._fail(error)

    def in_order(self, names: Sequence[str], params: Mapping[str, Params]) -> list[Params]:
        """Returns the statement's parameters in the order and form of the driver."""
        try:
            return [params[name] for name in names]
        except KeyError as missing:
            self._fail(psycopg.ProgrammingError(f"the parameter {missing} was not given"))

    def execute(self, sql: str, params: Sequence[Params] | None = None) -> psycopg.Cursor[Row]:
        assert self._cursor is not None
        try:
            return self._cursor.execute(cast("LiteralString", sql), params)
        except psycopg.Error as error:
            self._fail(error)

    def executemany(self, sql: str, rows: Sequence[Sequence[Params]]) -> None:
        assert self._cursor is not None
        if len(rows) == 1:
            self.execute(sql, rows[0])
            return
        try:
            self._cursor.executemany(cast("LiteralString", sql), rows)
            # The driver ends this with a message after which the server does not count idle time: another one is
            # needed.
            self._cursor.execute("", prepare=False)
        except psycopg.Error as error:
            self._fail(error)

    def clear(self) -> None:
        """Ends the transaction, and drops the connection if it was lost."""
        if self.trouble is not None and is_lost(self.trouble):
            return self.hang_up()
        try:
            if self._cursor is not None and self._cursor.connection.info.transaction_status != TransactionStatus.IDLE:
                self._cursor.execute("ROLLBACK")
        except psycopg.Error:
            self.hang_up()

    def hang_up(self) -> None:
        if self._cursor is not None:
            self._cursor.connection.close()
            self._cursor = None

    def _fail(self, error: psycopg.Error) -> NoReturn:
        self.trouble = self.trouble or error
        raise translate(error, self.name)


class Patience:
    """How long a connection waits for an answer of the server before it is given up."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._hurried_at: float | None = None
        self._hurried_seconds = 0.0

    def hurry(self, seconds: float) -> None:
        self._hurried_seconds = seconds
        self._hurried_at = time.monotonic()

    def is_over(self, since: float) -> bool:
        """Whether the wait since then should end."""
        now = time.monotonic()
        if now - since > self.seconds:
            return True
        return self._hurried_at is not None and now - max(since, self._hurried_at) > self._hurried_seconds


class _Connection(psycopg.Connection[Row]):
    """A connection that gives up if no answer comes. A dead network is not always reported."""

    patience: Patience | None = None

    def wait(self, gen: PQGen[RV], interval: float = LOOK_SECONDS, timeout: float | None = None) -> RV:
        if self.patience is not None:
            gen = _given_up(gen, self.patience)
        return super().wait(gen, interval, timeout)


def _given_up(gen: PQGen[RV], patience: Patience) -> PQGen[RV]:
    """Wraps the driver's wait for an answer; raises when patience is over."""
    since = time.monotonic()
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and patience.is_over(since):
                raise psycopg.OperationalError(f"no answer for {time.monotonic() - since:.0f} seconds")
            wanted = gen.send(ready)
    except StopIteration as done:
        return done.value


def with_network_settings(conninfo: str) -> str:
    """Adds our network settings to the connection string where it has none of its own."""
    return make_conninfo("", **{**NETWORK, **conninfo_to_dict(conninfo)})


def connect(conninfo: str, patience: Patience | None = None) -> psycopg.Connection[Row]:
    """Connects with our settings, in autocommit: transactions are begun and ended by statements."""
    connection = _Connection.connect(
        with_network_settings(conninfo),
        autocommit=True,
        connect_timeout=CONNECT_SECONDS,
        # All parameters are sent as untyped text and cast in the SQL, so that each statement is prepared once.
        prepare_threshold=2,
        client_encoding="utf8",
    )
    connection.patience = patience
    connection.prepared_max = 1024
    connection.adapters.register_dumper(int, _IntDumper)
    connection.adapters.register_dumper(bool, _IntDumper)
    connection.adapters.register_loader("numeric", _NumberLoader)
    return connection


class _IntDumper(Dumper):
    def dump(self, obj: int) -> bytes:
        return b"%d" % obj


class _NumberLoader(Loader):
    """Sums of whole numbers are of type numeric: returns them as integers, as SQLite does."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return float(text) if b"." in text or b"N" in text else int(text)


def _may_try_again(trouble: psycopg.Error | None, tries: int, give_up_at: float, *, closing: bool) -> bool:
    if trouble is None:
        return False
    if is_lost(trouble):
        # A second try in any case: it may have taken long to notice that the first connection was dead.
        return not closing and not is_lasting(trouble) and (tries == 1 or time.monotonic() < give_up_at)
    return may_pass(trouble) and tries < CONFLICT_TRIES


def _pause(tries: int) -> float:
    """Returns the seconds before the next try: longer each time, with jitter, so that conflicting transactions
    separate.
    """
    return min(0.01 * 2**tries, 0.5) * random.uniform(0.5, 1.0)  # noqa: S311
