"""What the API reads page by page is found by an index, however much there is."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from denizen.agents import registry
from denizen.consciousness import log
from denizen.cycles import accounting, records, unkept
from denizen.forgetting import forgetting
from denizen.inbox import delivery
from denizen.storage.database import Statement
from denizen.tools import guard

PAGES = {
    "agents": registry._page,
    "inbox": delivery._in_lane,
    "cycles": records._before,
    "a cycle": records._of_number,
    "the open cycle": records._open_record,
    "a line of the ledger": unkept._line,
    "log forwards": log._after,
    "log backwards": log._before,
    "crossings": guard._crossings_before,
    "receipts": forgetting._receipts_before,
    "usage by day": accounting._by_day,
    "usage by agent": accounting._by_agent,
    "usage by model": accounting._by_model,
    "usage of an agent": accounting._days_of_agent,
}


@pytest.fixture
def empty(ready_sqlite_url: str) -> Iterator[sqlite3.Connection]:
    """A database with its tables and nothing in them."""
    with closing(sqlite3.connect(ready_sqlite_url.removeprefix("sqlite:///"))) as connection:
        yield connection


@pytest.mark.parametrize("page", PAGES)
def test_no_page_is_read_through(empty: sqlite3.Connection, page: str) -> None:
    """Neither a scan of a table, nor sorting by what a page is cut by."""
    query: Statement = PAGES[page]
    given = dict.fromkeys(re.findall(r":(\w+)", query.sqlite), 1)
    plan = [row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {query.sqlite}", given)]
    assert [step for step in plan if step.startswith("SCAN")] == []
    assert page.startswith("usage") or "USE TEMP B-TREE FOR ORDER BY" not in plan


def test_of_the_ledger_only_so_many_lines_are_looked_at(empty: sqlite3.Connection) -> None:
    plan = [
        row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {unkept._of_agent.sqlite}", {"last": 1, "agent_id": ""})
    ]
    assert "SEARCH ledger USING INTEGER PRIMARY KEY (rowid<?)" in plan
    assert [step for step in plan if step.startswith("SCAN")] == ["SCAN lines"]
    assert f"LIMIT {unkept.LOOKED_AT}" in unkept._of_agent.sqlite
