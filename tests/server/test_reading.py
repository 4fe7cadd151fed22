"""What the API reads page by page is found by an index, however much there is."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from denizen.agents import registry
from denizen.consciousness import log
from denizen.cycles import accounting, ledger, records, skipped_cycles
from denizen.forgetting import receipts
from denizen.inbox import delivery
from denizen.panel import history
from denizen.spaces import reading
from denizen.storage.database import Statement
from denizen.tools import privacy_guard

PAGES = {
    "agents": registry._page,
    "inbox": delivery._in_lane,
    "cycles": records._before,
    "a cycle": records._of_number,
    "the open cycle": records._open_record,
    "a line of the ledger": ledger._line,
    "cycles that came to nothing": skipped_cycles._ends,
    "unread mentions": reading._mentions,
    "what cycles used": ledger._between,
    "what an agent did before": ledger._kept_before,
    "log forwards": log._after,
    "log backwards": log._before,
    "crossings": privacy_guard._crossings_before,
    "receipts": receipts._receipts_before,
    "usage by day": accounting._by_day,
    "usage by agent": accounting._by_payer,
    "usage by agent and day": accounting._by_payer_and_day,
    "usage by model": accounting._by_model,
}


@pytest.fixture
def empty(ready_sqlite_url: str) -> Iterator[sqlite3.Connection]:
    """A database with its tables and nothing in them."""
    with closing(sqlite3.connect(ready_sqlite_url.removeprefix("sqlite:///"))) as connection:
        yield connection


def plan_of(empty: sqlite3.Connection, query: Statement) -> list[str]:
    given = dict.fromkeys(re.findall(r":(\w+)", query.sqlite), 1)
    return [row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {query.sqlite}", given)]


@pytest.mark.parametrize("page", PAGES)
def test_no_page_is_read_through(empty: sqlite3.Connection, page: str) -> None:
    """Neither a scan of a table, nor sorting by what a page is cut by."""
    plan = plan_of(empty, PAGES[page])
    # What a part of the query has found by an index is gone through by the rest of it.
    found = {step.replace("CO-ROUTINE", "SCAN") for step in plan if step.startswith("CO-ROUTINE")}
    assert [step for step in plan if step.startswith("SCAN") and step not in found] == []
    assert page.startswith("usage") or "USE TEMP B-TREE FOR ORDER BY" not in plan


@pytest.mark.parametrize(
    "query", [skipped_cycles._ends, ledger._end, ledger._end_before], ids=["of a page", "of a cycle", "before"]
)
def test_how_cycles_ended_is_found_by_agent(empty: sqlite3.Connection, query: Statement) -> None:
    """Neither what others did is read, nor what was used, which is most of the ledger."""
    assert any("USING INDEX ix_ledger_others (agent_id=?" in step for step in plan_of(empty, query))


@pytest.mark.parametrize("query", [history._last_kept, history._answered_since], ids=["the last", "since"])
def test_what_an_advisor_answered_is_found_from_its_end(empty: sqlite3.Connection, query: Statement) -> None:
    """By the turn of the panel. By the voice, all that it ever answered would be read, each time that it is asked."""
    first, *rest = plan_of(empty, query)
    assert first.startswith("SEARCH rounds USING INDEX")
    assert "(space_id=? AND turn" in first
    assert not any("ORDER BY" in step for step in rest)
