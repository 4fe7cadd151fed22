"""Statements are written once and mean the same on both databases."""

from __future__ import annotations

import subprocess
import sys

from sqlalchemy import Select, bindparam, case, delete, exists, func, insert, select, text, update
from sqlalchemy.dialects import postgresql

from denizen.storage.database import (
    Database,
    Row,
    Statement,
    Tx,
    columns,
    delete_where,
    equal,
    insert_ignore,
    insert_into,
    select_where,
    statement,
    update_where,
)
from denizen.storage.schema import events, organizations, overflow, spaces, toolsets
from tests.storage.conftest import Opening
from tests.storage.notes import make_counters
from tests.storage.processes import ROOT

ALL = statement(select(toolsets.c.digest, toolsets.c.tools).order_by(toolsets.c.digest))


def put_three(tx: Tx) -> None:
    rows = [{"digest": name, "tools": f"{name}%:{name}"} for name in "abc"]
    tx.many(statement(insert(toolsets).values({name: bindparam(name) for name in ("digest", "tools")})), rows)


async def rows_after(database: Database, change: Statement, **params: str | int | None) -> list[Row]:
    """What three rows have become by `change`."""
    await database.write(put_three)
    await database.write(lambda tx: tx.run(change, **params))
    return await database.read(lambda tx: tx.all(ALL))


async def test_values_in_an_expression_are_part_of_the_statement(database: Database) -> None:
    """Lists, quotes, colons and percent signs too."""
    await database.write(put_three)
    some = statement(
        select(toolsets.c.digest)
        .where(toolsets.c.digest.in_(["a", "b", "it's"]), toolsets.c.tools != "a%:a", toolsets.c.tools.like("%:%"))
        .limit(5)
    )
    assert await database.read(lambda tx: tx.all(some)) == [("b",)]


async def test_a_limit_may_be_a_parameter(database: Database) -> None:
    await database.write(put_three)
    first = statement(select(toolsets.c.digest).order_by(toolsets.c.digest).limit(bindparam("limit")))
    assert await database.read(lambda tx: tx.all(first, limit=2)) == [("a",), ("b",)]


async def test_a_parameter_may_be_used_twice(database: Database) -> None:
    """In what is set and in what is looked for."""
    change = statement(
        update(toolsets)
        .where(toolsets.c.digest == bindparam("digest"))
        .values(digest=bindparam("digest"), tools=bindparam("new"))
    )
    assert await rows_after(database, change, digest="b", new=" ") == [("a", "a%:a"), ("b", " "), ("c", "c%:c")]


async def test_an_insert_may_update_instead(database: Database) -> None:
    """PostgreSQL's form of it is understood by both."""
    change = statement(
        postgresql.insert(toolsets)
        .values(digest=bindparam("digest"), tools=bindparam("tools"))
        .on_conflict_do_update(index_elements=["digest"], set_={"tools": bindparam("tools")})
    )
    assert await rows_after(database, change, digest="b", tools="!") == [("a", "a%:a"), ("b", "!"), ("c", "c%:c")]


async def test_a_delete_may_look_into_a_query(database: Database) -> None:
    last = select(toolsets.c.digest).order_by(toolsets.c.digest.desc()).limit(bindparam("count"))
    change = statement(delete(toolsets).where(toolsets.c.digest.in_(last)))
    assert await rows_after(database, change, count=2) == [("a", "a%:a")]


async def test_questions_have_the_same_answers(database: Database) -> None:
    """Truth is 1 or equal to it, counts are whole numbers, nothing is None."""
    await database.write(put_three)
    ask = statement(
        select(
            exists().where(toolsets.c.digest == bindparam("name")),
            func.count(),
            func.max(case((toolsets.c.digest == "b", 7), else_=0)),
            func.coalesce(func.max(toolsets.c.digest), "none"),
            func.min(case((toolsets.c.digest == "x", 1))),
        ).select_from(toolsets)
    )
    assert await database.read(lambda tx: tx.one(ask, name="a")) == (1, 3, 7, "c", None)


async def test_a_write_may_return_rows(database: Database) -> None:
    """One, several or none; and the transaction can be committed although not all were read."""
    await database.write(make_counters, "a", "b")
    count_all = statement(update(spaces).values(last_seq=spaces.c.last_seq + 1).returning(spaces.c.last_seq))
    assert await database.write(lambda tx: tx.one(count_all)) == (1,)
    assert await database.write(lambda tx: tx.all(count_all)) == [(2,), (2,)]
    ignored = postgresql.insert(spaces).values(id="a", organization_id="o", kind="", name="", created_at=0)
    again = statement(ignored.on_conflict_do_nothing().returning(spaces.c.id))
    assert await database.write(lambda tx: tx.one(again)) is None


async def test_an_update_says_how_many_rows_it_changed(database: Database) -> None:
    """Also where it begins with another word."""
    await database.write(make_counters, "a", "b")
    wanted = select(spaces.c.id).where(spaces.c.id == "a").cte("wanted")
    change = statement(update(spaces).where(spaces.c.id.in_(select(wanted.c.id))).values(last_seq=9).add_cte(wanted))
    assert await database.write(lambda tx: tx.run(change)) == 1
    assert await database.write(lambda tx: tx.run(statement(update(spaces).values(last_seq=1)))) == 2


async def test_a_table_that_numbers_its_rows_can_be_inserted_into(database: Database) -> None:
    """Nothing is asked back for it unless the statement says so."""
    numbered = statement(insert(events).values(agent_id="a", id=bindparam("id"), type="", created_at=0))
    assert "RETURNING" not in numbered.sqlite + numbered.postgresql[0]
    assert "number" not in insert_ignore(events).sqlite


async def test_a_partial_index_serves_a_query_that_repeats_its_condition(
    ready_sqlite_url: str, opening: Opening
) -> None:
    """SQLite does not conclude that what is pending is not done: the query has to say both."""
    database = await opening(ready_sqlite_url)
    mine = select(events.c.id).where(events.c.agent_id == bindparam("agent"), events.c.state == "pending")

    async def plan(query: Select[tuple[str]]) -> str:
        explain = statement(text(f"EXPLAIN QUERY PLAN {statement(query).sqlite}"))
        return str(await database.read(lambda tx: tx.all(explain, agent="a")))

    assert "ix_events_open" not in await plan(mine)
    assert "ix_events_open" in await plan(mine.where(events.c.state != "done"))


async def test_what_belongs_to_a_message_or_a_cycle_is_found_without_reading_the_rest(
    ready_sqlite_url: str, opening: Opening
) -> None:
    """An edit asks who has read the message, every skip what its cycle had kept: neither may grow with the house."""
    database = await opening(ready_sqlite_url)
    ways = {
        "ix_events_message": select(events.c.agent_id).where(events.c.message_id == bindparam("id")),
        "ix_overflow_cycle": delete(overflow).where(overflow.c.cycle_id == bindparam("id")),
    }
    for index, query in ways.items():
        explain = statement(text(f"EXPLAIN QUERY PLAN {statement(query).sqlite}"))
        (step,) = await database.read(lambda tx, explain=explain: tx.all(explain, id="x"))
        assert f"SEARCH {index.split('_')[1]} USING" in str(step)
        assert index in str(step)


def test_building_a_statement_compiles_nothing() -> None:
    """Modules are imported at every start; SQL is made when it is first run."""
    program = (
        "import sys\n"
        "from sqlalchemy import select\n"
        "from denizen.storage.database import insert_ignore, statement\n"
        "from denizen.storage.schema import toolsets\n"
        "made = [statement(select(toolsets)), insert_ignore(toolsets)]\n"
        "assert 'denizen.storage.compiling' not in sys.modules\n"
        "assert made[1].sqlite.startswith('INSERT INTO toolsets')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": str(ROOT / "src")})


async def test_an_insert_without_values_takes_every_column(database: Database) -> None:
    whole = statement(insert(organizations))
    await database.write(lambda tx: tx.run(whole, id="o", name="n", settings="{}", created_at=1))
    assert await database.read(lambda tx: tx.all(statement(select(organizations)))) == [("o", "n", "{}", 1)]


async def test_ordinary_statements_are_built_from_the_names_of_columns(database: Database) -> None:
    """Each key, and each column that is set, is a parameter of its own name."""
    put = insert_into(toolsets, "digest, tools")
    change = update_where(toolsets, "digest", toolsets.c.tools != "kept", set_="tools")
    blank = update_where(toolsets, "digest", tools="")
    drop = delete_where(toolsets, "digest, tools")

    def write(tx: Tx) -> list[int]:
        for name, text_ in (("a", "one"), ("b", "kept"), ("c", "three"), ("d", "four")):
            tx.run(put, digest=name, tools=text_)
        changed = [tx.run(change, digest=name, tools="new") for name in "ab"]
        return [*changed, tx.run(blank, digest="c"), tx.run(drop, digest="d", tools="other")]

    assert await database.write(write) == [1, 0, 1, 0]
    assert await database.read(lambda tx: tx.all(ALL)) == [("a", "new"), ("b", "kept"), ("c", ""), ("d", "four")]


async def test_a_select_is_ordered_and_limited_by_the_names_of_columns(database: Database) -> None:
    await database.write(put_three)
    above = toolsets.c.digest > bindparam("after")
    last = select_where(toolsets, columns(toolsets, "digest, tools"), "digest", order_by="digest desc", limit=1)
    assert await database.read(lambda tx: tx.all(last, digest="b")) == [("b", "b%:b")]
    of_key = select_where(toolsets, "digest", "tools", above, order_by="tools, digest desc", limit="limit")
    assert await database.read(lambda tx: tx.all(of_key, tools="c%:c", after="a", limit=1)) == [("c",)]
    assert await database.read(lambda tx: tx.all(of_key, tools="c%:c", after="a", limit=0)) == []


def test_keys_are_compared_with_the_parameters_of_their_names() -> None:
    found = statement(select(events.c.number).where(*equal(events, "agent_id, id"))).sqlite
    assert found.endswith("WHERE events.agent_id = :agent_id AND events.id = :id")
    locked = select_where(events, "number", "agent_id", for_update=True)
    assert locked.postgresql[0].endswith("FOR UPDATE")
