"""What both databases promise to whoever writes and reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from sqlalchemy import bindparam, insert, select, text

from denizen.clock import ManualClock, SystemClock
from denizen.errors import DatabaseUnavailable, StorageError
from denizen.storage.database import Conflict, Database, Tx, insert_ignore, statement
from denizen.storage.opening import open_database
from denizen.storage.postgresql import CONNECTIONS
from denizen.storage.schema import events, memberships, toolsets
from tests.storage.conftest import Opening
from tests.storage.notes import (
    GET,
    PUT,
    Gate,
    count,
    counted,
    everything,
    get,
    make_counters,
    names,
    put,
    put_and_fail,
)


async def test_what_was_written_is_read(database: Database) -> None:
    """A read that begins after a write has returned sees it."""
    await database.write(put, "a", "first")
    assert await database.read(get, "a") == "first"
    assert await database.read(get, "b") is None


async def test_a_write_returns_what_its_function_returns(database: Database) -> None:
    """And takes positional and keyword arguments."""
    assert await database.write(lambda tx, a, *, b: (a, b), 1, b=2) == (1, 2)


async def test_a_write_sees_its_own_changes(database: Database) -> None:
    def put_then_get(tx: Tx) -> str | None:
        put(tx, "a", "here")
        return get(tx, "a")

    assert await database.write(put_then_get) == "here"


async def test_what_was_sent_is_seen_by_the_next_statement_and_committed(database: Database) -> None:
    def send_then_get(tx: Tx) -> str | None:
        tx.send(PUT, name="a", text="here")
        found = get(tx, "a")
        tx.send(PUT, name="b", text="there")
        return found

    assert await database.write(send_then_get) == "here"
    assert await everything(database) == ["a", "b"]


async def test_what_cannot_be_sent_fails_the_write(database: Database, opening: Opening) -> None:
    """Wherever the error comes: at the next answer, or at the commit, which then does not happen."""
    await database.write(put, "a")
    for ask in (lambda tx: get(tx, "a"), lambda _: None):

        def send_twice(tx: Tx, ask: Callable[[Tx], object] = ask) -> None:
            tx.send(PUT, name="b", text="")
            tx.send(PUT, name="a", text="again")
            ask(tx)

        with pytest.raises(Conflict):
            await database.write(send_twice)
    assert await everything(database) == ["a"]
    assert len(opening.announced) == 1
    await database.write(put, "c")
    assert await everything(database) == ["a", "c"]


async def test_what_was_announced_is_answered_once_and_then_asked_again(database: Database) -> None:
    def get_twice(tx: Tx) -> list[str | None]:
        tx.prefetch(GET, name="a")
        tx.prefetch(GET, name="b")
        found = [get(tx, "b"), get(tx, "a")]
        tx.send(PUT, name="b", text="now")
        return [*found, get(tx, "b"), get(tx, "a")]

    await database.write(put, "a", "first")
    assert await database.write(get_twice) == [None, "first", "now", "first"]


async def test_a_function_that_raises_leaves_nothing_behind(database: Database, opening: Opening) -> None:
    """Its caller gets the error itself; nobody else notices."""
    with pytest.raises(LookupError, match="bad"):
        await database.write(put_and_fail, "bad")
    assert await everything(database) == []
    assert opening.announced == []


async def test_a_failure_among_many_leaves_the_others_alone(database: Database, opening: Opening) -> None:
    """Writes that wait for the same commit succeed and fail each for itself."""
    gate = Gate()
    held = asyncio.ensure_future(database.write(gate.hold))
    await asyncio.to_thread(gate.entered.wait)
    calls = [put if number % 3 else put_and_fail for number in range(30)]
    writes = [asyncio.ensure_future(database.write(call, f"{number:02}")) for number, call in enumerate(calls)]
    await asyncio.sleep(0)  # each has queued its write
    gate.open()
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    await held

    assert [isinstance(outcome, LookupError) for outcome in outcomes] == [call is put_and_fail for call in calls]
    good = [f"{number:02}" for number in range(30) if number % 3]
    assert await everything(database) == good
    assert sorted(payload["name"] for _, payload in opening.announced) == good


async def test_a_function_cannot_go_on_after_a_failed_statement(database: Database) -> None:
    """Catching a statement's error to turn it into another is fine; going on as if nothing had been is not."""

    def put_twice(tx: Tx) -> str:
        put(tx, "a")
        try:
            put(tx, "a")
        except Conflict:
            return "never mind"
        return ""

    with pytest.raises(Conflict):
        await database.write(put_twice)
    assert await everything(database) == []


async def test_concurrent_writers_lose_nothing(database: Database) -> None:
    """A hundred writers that count on the same row come to the sum."""
    await database.write(make_counters, "c")
    counts = await asyncio.gather(*(database.write(count, "c") for _ in range(100)))
    assert sorted(counts) == list(range(1, 101))
    assert await database.read(counted, "c") == 100


async def test_announcements_come_after_the_commit_and_in_its_order(database: Database, opening: Opening) -> None:
    """When a caller hears of its write, its announcements have gone out."""

    def put_both(tx: Tx, first: str, second: str) -> None:
        put(tx, first)
        assert opening.announced == before
        put(tx, second)

    before = list(opening.announced)
    await database.write(put_both, "a", "b")
    assert opening.announced == [("put", {"name": "a"}), ("put", {"name": "b"})]
    before = list(opening.announced)
    await database.write(put_both, "c", "d")
    assert [payload["name"] for _, payload in opening.announced] == ["a", "b", "c", "d"]


async def test_a_cancelled_caller_does_not_stop_its_write(ready_url: str, opening: Opening) -> None:
    """It happens whole, and is announced, although nobody waits for it any more."""
    database = await opening(ready_url)
    gate = Gate()
    held = asyncio.ensure_future(database.write(gate.hold))
    await asyncio.to_thread(gate.entered.wait)
    write = asyncio.ensure_future(database.write(put, "a"))
    await asyncio.sleep(0)  # it has queued its write
    write.cancel()
    with pytest.raises(asyncio.CancelledError):
        await write
    gate.open()
    await held
    await database.close()

    assert opening.announced == [("put", {"name": "a"})]
    again = await opening(ready_url)
    assert await everything(again) == ["a"]


async def test_an_announcement_that_nobody_can_hear_does_not_harm_the_write(ready_url: str) -> None:
    """Announcements are hints: the caller hears of its commit whatever becomes of them."""

    def deaf(_: object) -> None:
        raise ConnectionError("the bus is down")

    database = await open_database(ready_url, clock=SystemClock(), announce=deaf)
    await database.write(put, "a")
    assert await everything(database) == ["a"]
    await database.close()


async def test_a_read_is_one_snapshot(database: Database) -> None:
    """What others commit while a read goes on is not seen by it."""
    await database.write(put, "a")
    gate = Gate()

    def read_twice(tx: Tx) -> tuple[list[str], list[str]]:
        before = names(tx)
        gate.hold(tx)
        return before, names(tx)

    read = asyncio.ensure_future(database.read(read_twice))
    await asyncio.to_thread(gate.entered.wait)
    await database.write(put, "b")
    gate.open()
    assert await read == (["a"], ["a"])
    assert await everything(database) == ["a", "b"]


async def test_a_read_cannot_write(database: Database) -> None:
    with pytest.raises(StorageError):
        await database.read(lambda tx: tx.run(insert_ignore(toolsets), digest="a", tools=""))
    with pytest.raises(RuntimeError):
        await database.read(lambda tx: tx.announce("put", {}))
    assert await everything(database) == []


async def test_a_transaction_has_one_time(ready_url: str, opening: Opening) -> None:
    """It is the clock's that was put in, and moves with it from one transaction to the next."""
    clock = ManualClock()
    database = await opening(ready_url, clock)

    def twice(tx: Tx) -> tuple[int, int]:
        before = tx.now
        clock.advance(1)
        return before, tx.now

    first, second = await database.write(twice)
    assert first == second
    assert await database.read(lambda tx: tx.now) == first + 1_000_000


async def test_without_another_clock_it_is_about_now(database: Database) -> None:
    before = SystemClock().now()
    times = await database.write(lambda tx: [tx.now, tx.now])
    assert before <= times[0] <= SystemClock().now()
    assert times[0] == times[1]


async def test_many_runs_once_for_each_row(database: Database) -> None:
    """No row at all is fine too."""
    rows = [{"digest": f"{number:03}", "tools": str(number)} for number in range(300)]
    put_many = statement(insert(toolsets).values(digest=bindparam("digest"), tools=bindparam("tools")))
    await database.write(lambda tx: tx.many(put_many, rows))
    await database.write(lambda tx: tx.many(put_many, []))
    assert await everything(database) == [row["digest"] for row in rows]


async def test_a_broken_constraint_is_a_conflict(database: Database) -> None:
    """It names what it would have broken, so that the domain can say it in its own words."""
    await database.write(put, "a")
    with pytest.raises(Conflict) as taken:
        await database.write(put, "a")
    assert taken.value.constraint in ("toolsets.digest", "pk_toolsets")
    assert taken.value.__cause__ is not None


async def test_a_missing_parent_is_a_conflict(database: Database) -> None:
    """Foreign keys are enforced on both."""
    orphan = statement(insert(memberships).values(space_id="s", entity_id="e", joined_at=0))
    with pytest.raises(Conflict):
        await database.write(lambda tx: tx.run(orphan))


async def test_a_function_may_turn_a_conflict_into_its_own_error(database: Database) -> None:
    await database.write(put, "a")

    def put_politely(tx: Tx) -> None:
        try:
            put(tx, "a")
        except Conflict as conflict:
            raise KeyError("taken") from conflict

    with pytest.raises(KeyError, match="taken"):
        await database.write(put_politely)


async def test_run_says_how_many_rows_changed(database: Database) -> None:
    """An insert that was ignored changed none."""
    ignore = insert_ignore(toolsets)
    assert await database.write(lambda tx: tx.run(ignore, digest="a", tools="1")) == 1
    assert await database.write(lambda tx: tx.run(ignore, digest="a", tools="2")) == 0
    assert await database.read(get, "a") == "1"


async def test_values_come_back_as_they_went_in(database: Database) -> None:
    """Text of any kind, whole numbers of 63 bits, yes and no as 1 and 0, nothing as None."""
    put_event = insert_ignore(events, ["agent_id", "id", "type", "wakes", "hop", "payload", "created_at"])
    read = statement(select(events.c.id, events.c.wakes, events.c.hop, events.c.payload))
    words = "naïve 🦊 — it's 100% :name %(x)s \\ \"'"
    largest = 2**63 - 1

    def store(tx: Tx) -> None:
        for sql in (
            "INSERT INTO organizations (id, name, created_at) VALUES ('o', 'o', 0)",
            "INSERT INTO entities (id, organization_id, kind, handle, name, created_at) SELECT 'a','o','','a','a',0",
            "INSERT INTO agents (id, organization_id, definition, created_at) VALUES ('a', 'o', '', 0)",
        ):
            tx.run(statement(text(sql)))
        tx.run(put_event, agent_id="a", id=words, type="t", wakes=True, hop=largest, payload=None, created_at=-1)

    await database.write(store)
    assert await database.read(lambda tx: tx.all(read)) == [(words, 1, largest, None)]


async def test_sums_are_whole_numbers(database: Database) -> None:
    """PostgreSQL's sum of whole numbers is a decimal; ours is not."""
    await database.write(make_counters, "a", "b")
    total = statement(text("SELECT sum(last_seq), count(*), avg(last_seq) FROM spaces"))
    (row,) = await database.read(lambda tx: tx.all(total))
    assert [(type(value), value) for value in row] == [(int, 0), (int, 2), (float, 0.0)]


async def test_writes_that_must_not_wait_go_first(database: Database) -> None:
    """A lease's renewal passes all that is queued."""
    dialect = await database.read(lambda tx: tx.dialect)
    gates = [Gate() for _ in range({"sqlite": 1, "postgresql": CONNECTIONS}[dialect])]
    held = [asyncio.ensure_future(database.write(gate.hold)) for gate in gates]
    for gate in gates:
        await asyncio.to_thread(gate.entered.wait)
    order: list[str] = []
    writes = [
        asyncio.ensure_future(call(lambda tx, name=name: order.append(name)))
        for call, name in [(database.write, "a"), (database.write, "b"), (database.write_first, "first")]
    ]
    await asyncio.sleep(0)  # all three are queued
    gates[0].open()
    await asyncio.gather(*writes)
    assert order == ["first", "a", "b"]
    for gate in gates:
        gate.open()
    await asyncio.gather(*held)


async def test_closing_finishes_what_is_queued(ready_url: str, opening: Opening) -> None:
    """And takes nothing more."""
    database = await opening(ready_url)
    writes = [asyncio.ensure_future(database.write(put, f"{number:02}")) for number in range(50)]
    await asyncio.sleep(0)  # all are queued
    await database.close()
    await asyncio.gather(*writes)
    with pytest.raises(DatabaseUnavailable, match="closed"):
        await database.write(put, "late")
    with pytest.raises(DatabaseUnavailable, match="closed"):
        await database.read(names)

    again = await opening(ready_url)
    assert len(await everything(again)) == 50


async def test_it_counts_its_writes(database: Database) -> None:
    """A write that failed does not count, nor does a read."""
    await database.write(put, "a")
    with pytest.raises(LookupError):
        await database.write(put_and_fail, "b")
    await database.read(names)
    assert (database.writes, database.commits) == (1, 1)


async def test_a_function_without_a_name_is_fine(database: Database) -> None:
    await database.write(partial(put, name="a"))
    assert await everything(database) == ["a"]


async def test_an_unknown_parameter_is_an_error(database: Database) -> None:
    with pytest.raises(StorageError):
        await database.write(lambda tx: tx.run(statement(text("SELECT :missing"))))
