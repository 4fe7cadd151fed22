"""PostgreSQL: a few threads, each with a connection of its own.

A write is retried after a deadlock or serialization failure, or if the server went away before COMMIT was sent; a
connection lost while committing is `OutcomeUnknown`, and announced as if it had been committed. Group commit is left to
the server.

Every transaction has time limits (`TransactionLimits`). The server ends one whose client has gone silent, so that a
stopped process or a dead network does not keep its locks; and this side gives up a connection on which no answer comes.

Statements are sent together, in the driver's pipeline mode, when the answer to one of them is needed: a round trip
takes longer than most statements.
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from queue import SimpleQueue
from typing import Any, Concatenate, Literal, LiteralString, NoReturn, ParamSpec, TypeVar, cast

import psycopg
from psycopg.abc import RV, Buffer, PQGen
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import ConnectionTimeout, Diagnostic, lookup
from psycopg.pq import TransactionStatus
from pydantic import JsonValue

from denizen import failpoints
from denizen.clock import Clock, Instant, SystemClock
from denizen.errors import DatabaseUnavailable, InvalidInput, OutcomeUnknown, StorageError
from denizen.storage.database import Announce, Announcement, Params, Row, Statement, Tx, is_long_running
from denizen.storage.postgresql_errors import (
    describe,
    is_lasting,
    is_lost,
    is_rolled_back,
    may_pass,
    translate,
)
from denizen.storage.work import FullDisk, Job, hand_back

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
"""How long `close` waits for answers. What is running then is cut off."""
LAST_SECONDS = 1
"""How long a call that begins after the deadline of `end_within` waits for an answer, until one got none."""
NETWORK = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 15_000,
}
"""Settings of our side of the connection: a dead network is noticed within about 20 seconds."""


@dataclass(frozen=True)
class TransactionLimits:
    """The time limits of a transaction in seconds, enforced by the server."""

    idle: float
    """Between two statements: how long a silent client keeps its locks."""
    lock: float
    """Waiting for one lock of another transaction."""
    statement: float
    """For one statement, waiting for locks included."""

    @cached_property
    def sql(self) -> str:
        """The statement that sets these limits.

        They apply to one transaction only. A pooler such as PgBouncer gives the connection to others after it.
        """
        settings = {
            "idle_in_transaction_session_timeout": self.idle,
            "lock_timeout": self.lock,
            "statement_timeout": self.statement,
            # The server's side of the connection, for an answer that is not read.
            "tcp_user_timeout": self.idle,
        }
        calls = (f"set_config('{name}', '{int(seconds * 1000)}', true)" for name, seconds in settings.items())
        return f"SELECT {', '.join(calls)}"


# How long a peer waits for a process that stops inside a transaction: one statement plus the idle limit, at most the
# lease (30 s) and 5 s more.
WRITING = TransactionLimits(idle=5, lock=20, statement=30)
# A read locks no rows. Working through its result may take time.
READING = TransactionLimits(idle=60, lock=30, statement=30)
LONG_RUNNING = TransactionLimits(idle=60, lock=20, statement=3600)

_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_SNAPSHOT = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
_PROCESS: LiteralString = "SELECT pg_backend_pid()"


class PostgresqlTx:
    """A transaction on one connection. After a failed statement, nothing of it is committed."""

    dialect: Literal["sqlite", "postgresql"] = "postgresql"

    def __init__(self, line: _Line, clock: Clock | None, announcements: list[Announcement] | None) -> None:
        self._line = line
        self._clock = clock
        self._announcements = announcements
        self._now: Instant | None = None
        self._time: _Request | None = None
        self._prefetched: dict[tuple[Statement, frozenset[tuple[str, Params]]], _Request] = {}

    @property
    def now(self) -> Instant:
        if self._now is None:
            self._now = self._clock.now() if self._clock else self._server_time()
        return self._now

    def run(self, statement: Statement, /, **params: Params) -> int:
        return self._answer(self._ask(statement, params)).rowcount

    def send(self, statement: Statement, /, **params: Params) -> None:
        self._ask(statement, params)

    def one(self, statement: Statement, /, **params: Params) -> Row | None:
        return self._answer(self._prefetched_or_asked(statement, params)).fetchone()

    def all(self, statement: Statement, /, **params: Params) -> list[Row]:
        return self._answer(self._prefetched_or_asked(statement, params)).fetchall()

    def many(self, statement: Statement, rows: Sequence[Mapping[str, Params]], /) -> None:
        for row in rows:
            self._ask(statement, row)

    def prefetch(self, statement: Statement, /, **params: Params) -> None:
        self._prefetched[statement, frozenset(params.items())] = self._ask(statement, params)

    def note_head(self, kind: str, id: str, position: int, digest: bytes) -> None:
        pass  # The server's write-ahead log is its own care: it does not start without it.

    def announce(self, topic: str, payload: Mapping[str, JsonValue]) -> None:
        if self._announcements is None:
            raise RuntimeError("A read has nothing to announce.")
        self._announcements.append((topic, payload))

    def call_up(self, key: str) -> None:
        pass  # Each write has a commit of its own.

    def _ask(self, statement: Statement, params: Mapping[str, Params]) -> _Request:
        sql, names = statement.postgresql
        return self._line.ask(sql, self._line.in_order(names, params))

    def _prefetched_or_asked(self, statement: Statement, params: Mapping[str, Params]) -> _Request:
        known = self._prefetched.pop((statement, frozenset(params.items())), None) if self._prefetched else None
        return known or self._ask(statement, params)

    def _answer(self, request: _Request) -> psycopg.Cursor[Row]:
        if request.cursor is None and self._time is None and self._clock is None and self._announcements is not None:
            # Most writes need the time. It is asked with the first statements and after them: they may wait for locks.
            self._time = self._line.ask(_NOW)
        return self._line.answer(request)

    def _server_time(self) -> Instant:
        if self._time is None:
            self._time = self._line.ask(_NOW)
        row = self._line.answer(self._time).fetchone()
        assert row is not None
        return Instant(row[0])


class PostgresqlDatabase:
    """A database on a PostgreSQL server."""

    def __init__(self, conninfo: str, *, clock: Clock, announce: Announce) -> None:
        self.commits = 0
        self.writes = 0
        self.missing: str | None = None
        self._full_disk = FullDisk()
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
        self._deadline = Deadline()
        self._lines = [_Line(conninfo, self._deadline) for _ in range(CONNECTIONS)]
        self._threads = [
            threading.Thread(target=self._serve_until_closed, args=(line,), name=f"postgresql {number}", daemon=True)
            for number, line in enumerate(self._lines)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def round_trips(self) -> int:
        """How often a thread has waited for the server's answers."""
        return sum(line.round_trips for line in self._lines)

    @property
    def blobs(self) -> PostgresqlDatabase:
        return self

    @property
    def is_full(self) -> bool:
        return bool(self._full_disk)

    async def write(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._enqueue(self._queue, Job(fn, args, kwargs, self._loop.create_future()))

    async def write_first(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._enqueue(self._first, Job(fn, args, kwargs, self._loop.create_future()))

    async def read(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._enqueue(self._queue, Job(fn, args, kwargs, self._loop.create_future()), reading=True)

    def stand_by(
        self,
        _key: str,
        _then: Callable[[], None],
        _fn: Callable[Concatenate[Tx, P], T],
        /,
        *_args: P.args,
        **_kwargs: P.kwargs,
    ) -> asyncio.Future[T]:
        return self._loop.create_future()

    def withdraw(self, _key: str, /) -> bool:
        return True

    def end_within(self, seconds: float) -> None:
        self._deadline.set(seconds)

    async def close(self) -> None:
        with self._handing_out:
            self._closing = True
            for bell in self._idle:
                bell.put(None)
        self._deadline.set(CLOSE_SECONDS)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _enqueue(self, queue: deque[_Call], job: Job, *, reading: bool = False) -> asyncio.Future[Any]:
        if self._closing:
            raise DatabaseUnavailable("The database is closed.")
        if self._deadline.missed:
            raise DatabaseUnavailable("The database does not answer, and this process is stopping.")
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
                if self._deadline.missed or (self._closing and line.trouble is not None and is_lost(line.trouble)):
                    self._fail_queued(error)
            self._full_disk.note([call.job])
            hand_back(self._loop, self._announce, [call.job])
        line.hang_up()

    def _fail_queued(self, error: BaseException) -> None:
        """Fails the queued calls: the server does not answer, and each would wait for it."""
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
                if not _may_try_again(
                    line.trouble, tries, call.give_up_at, ending=self._closing or self._deadline.missed
                ):
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
            line.answer(line.ask("COMMIT"))
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
    def limits(self) -> TransactionLimits:
        if is_long_running(self.job.fn):
            return LONG_RUNNING
        return READING if self.reading else WRITING


class _Request:
    """A statement to be sent; it has its answer when `cursor` is set."""

    __slots__ = ("cursor", "params", "sql")

    def __init__(self, sql: str, params: Sequence[Params] | None) -> None:
        self.sql = sql
        self.params = params
        self.cursor: psycopg.Cursor[Row] | None = None


class _Line:
    """The connection of one thread: made when first needed, and again after it was lost.

    Statements are kept until the answer to one of them is needed. Until then the server knows nothing of them, so that
    a client that goes silent between two of them is idle for it, and is ended.
    """

    def __init__(self, conninfo: str, deadline: Deadline) -> None:
        self.name = describe(conninfo)
        self.trouble: psycopg.Error | None = None
        """The first error of the server or of the connection."""
        self.round_trips = 0
        self._conninfo = conninfo
        self._connection: _Connection | None = None
        self._pipeline: psycopg.Pipeline | None = None
        self._until_hung_up = ExitStack()
        self._unsent: list[_Request] = []
        self._deadline = deadline
        self._patience = Patience(CONNECT_SECONDS, deadline)

    def begin(self, limits: TransactionLimits, mode: str) -> None:
        """Begins a transaction, connecting first if necessary."""
        self._patience.seconds = limits.statement + ANSWER_SECONDS
        try:
            if self._connection is None:
                self._connection = connect(self._conninfo, self._patience, self._deadline.connect_seconds)
                self._pipeline = self._until_hung_up.enter_context(self._connection.pipeline())
        except psycopg.Error as error:
            if isinstance(error, ConnectionTimeout):
                self._deadline.note_silence()
            self._fail(error)
        self._unsent = [_Request(f"BEGIN {mode}", None), _Request(limits.sql, None)]

    def in_order(self, names: Sequence[str], params: Mapping[str, Params]) -> list[Params]:
        """Returns the statement's parameters in the order and form of the driver."""
        try:
            return [params[name] for name in names]
        except KeyError as missing:
            self._fail(psycopg.ProgrammingError(f"the parameter {missing} was not given"))

    def ask(self, sql: str, params: Sequence[Params] | None = None) -> _Request:
        """Keeps the statement, to be sent with the next ones."""
        request = _Request(sql, params)
        self._unsent.append(request)
        return request

    def answer(self, request: _Request) -> psycopg.Cursor[Row]:
        """Returns the answer; sends what was kept if it has not been sent yet."""
        if request.cursor is None:
            self._send()
        assert request.cursor is not None
        return request.cursor

    def _send(self) -> None:
        assert self._connection is not None
        assert self._pipeline is not None
        unsent, self._unsent = self._unsent, []
        self.round_trips += 1
        try:
            for request in unsent:
                # The SQL is sent as it is: rewriting names to numbers at each call took longer than some statements,
                # above all with the many parameters of a list, for which the driver caches nothing.
                request.cursor = psycopg.RawCursor(self._connection)
                request.cursor.execute(cast("LiteralString", request.sql), request.params)
            self._pipeline.sync()
        except psycopg.Error as error:
            self._fail(self._connection.last_words or error)

    def clear(self) -> None:
        """Ends the transaction, and drops the connection if it was lost."""
        self._unsent = []
        if self.trouble is not None and is_lost(self.trouble):
            return self.hang_up()
        if self._connection is None or self._pipeline is None:
            return None
        try:
            with suppress(psycopg.Error):
                self._pipeline.sync()  # past what was still under way when a statement failed
            if self._connection.info.transaction_status != TransactionStatus.IDLE:
                self.round_trips += 1
                self._connection.execute("ROLLBACK")
                self._pipeline.sync()
        except psycopg.Error:
            self.hang_up()

    def hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            with suppress(psycopg.Error):
                self._until_hung_up.close()  # the pipeline, after the connection: it would wait for the server
            self._connection = self._pipeline = None

    def _fail(self, error: psycopg.Error) -> NoReturn:
        self.trouble = self.trouble or error
        raise translate(error, self.name)


class Deadline:
    """Until when a process that stops waits for the server. Shared by its connections; callable from any thread."""

    def __init__(self) -> None:
        self.missed = False
        """Whether the server did not answer in time: from then on nobody waits for it."""
        self._at: float | None = None

    def set(self, seconds: float) -> None:
        """Sets it so many seconds from now, unless it is earlier already."""
        at = time.monotonic() + seconds
        self._at = at if self._at is None else min(self._at, at)

    def is_over(self, since: float) -> bool:
        """Whether a wait since then should end."""
        return self.missed or (self._at is not None and time.monotonic() > max(self._at, since + LAST_SECONDS))

    def note_silence(self) -> None:
        """Notes that the server does not answer: after the deadline, the others need not find out too."""
        self.missed = self.missed or (self._at is not None and time.monotonic() > self._at)

    @property
    def connect_seconds(self) -> int:
        """How long connecting may take."""
        if self._at is None:
            return CONNECT_SECONDS
        # libpq knows no less than two seconds.
        return max(2, min(CONNECT_SECONDS, math.ceil(self._at - time.monotonic())))


class Patience:
    """How long a connection waits for an answer of the server before it is given up."""

    def __init__(self, seconds: float, deadline: Deadline) -> None:
        self.seconds = seconds
        self.deadline = deadline

    def is_over(self, since: float) -> bool:
        """Whether the wait since then should end."""
        return time.monotonic() - since > self.seconds or self.deadline.is_over(since)


class _Connection(psycopg.Connection[Row]):
    """A connection that gives up if no answer comes. A dead network is not always reported."""

    patience: Patience | None = None
    last_words: psycopg.Error | None = None
    """Why the server ended the connection while it was asked nothing: it says so in a notice."""

    def take_notice(self, notice: Diagnostic) -> None:
        if notice.severity_nonlocalized == "FATAL" and notice.sqlstate is not None:
            with suppress(KeyError):
                self.last_words = lookup(notice.sqlstate)(notice.message_primary or "")

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
                patience.deadline.note_silence()
                raise psycopg.OperationalError(f"no answer for {time.monotonic() - since:.0f} seconds")
            wanted = gen.send(ready)
    except StopIteration as done:
        return done.value


def with_network_settings(conninfo: str) -> str:
    """Adds our network settings to the connection string where it has none of its own."""
    return make_conninfo("", **{**NETWORK, **conninfo_to_dict(conninfo)})


def check_server(conninfo: str) -> None:
    """Raises `InvalidInput` for a database that cannot hold every text, and for a pooler that gives each transaction
    another connection, such as PgBouncer in transaction mode: prepared statements would be on the one before.
    """
    with closing(connect(conninfo)) as one, closing(connect(conninfo)) as other:
        encoding = _value(one, "SHOW server_encoding")
        if encoding != "UTF8":
            raise InvalidInput(
                f"{describe(conninfo)} stores text as {encoding}, which has no room for most languages. Denizen needs "
                "UTF8. Create another database: CREATE DATABASE denizen ENCODING 'UTF8' TEMPLATE template0."
            )
        # Two connections to the server itself have two processes there, always.
        pairs = [(_value(one, _PROCESS), _value(other, _PROCESS)) for _ in range(2)]
        if any(mine == theirs for mine, theirs in pairs):
            raise InvalidInput(
                f"Before {describe(conninfo)} stands a pooler that gives each transaction another connection, such as "
                "PgBouncer with pool_mode = transaction. Denizen keeps prepared statements and needs a connection of "
                "its own: connect to PostgreSQL itself, or set pool_mode = session for this database."
            )


def _value(connection: psycopg.Connection[Row], sql: LiteralString) -> object:
    row = connection.execute(sql).fetchone()
    return None if row is None else row[0]


def connect(conninfo: str, patience: Patience | None = None, seconds: int | None = None) -> _Connection:
    """Connects with our settings, in autocommit: transactions are begun and ended by statements."""
    connection = _Connection.connect(
        with_network_settings(conninfo),
        autocommit=True,
        connect_timeout=CONNECT_SECONDS if seconds is None else seconds,
        # All parameters are sent as untyped text and cast in the SQL, so that each statement is prepared once.
        prepare_threshold=2,
        client_encoding="utf8",
    )
    connection.patience = patience
    connection.add_notice_handler(connection.take_notice)
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


def _may_try_again(trouble: psycopg.Error | None, tries: int, give_up_at: float, *, ending: bool) -> bool:
    if trouble is None:
        return False
    if is_lost(trouble):
        # A second try in any case: it may have taken long to notice that the first connection was dead.
        return not ending and not is_lasting(trouble) and (tries == 1 or time.monotonic() < give_up_at)
    return may_pass(trouble) and tries < CONFLICT_TRIES


def _pause(tries: int) -> float:
    """Returns the seconds before the next try: longer each time, with jitter, so that conflicting transactions
    separate.
    """
    return min(0.01 * 2**tries, 0.5) * random.uniform(0.5, 1.0)  # noqa: S311
