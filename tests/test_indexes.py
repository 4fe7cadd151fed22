"""What statements look for in tables that grow is found by an index, however much there is."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sqlite3
from contextlib import closing

import denizen
from denizen.spaces import fan_out
from denizen.storage.database import Statement

FOLDERS = ("access", "consciousness", "cycles", "inbox", "memory", "panel", "plans", "tools", "trust")
"""Others look through everything now and then: what is to be forgotten, or what a clock that was set back put off."""
SMALL = {
    *("agents", "call_reservations", "heard_files", "instances", "organizations", "panel_reflecting", "recalls"),
    *("secrets", "spaces", "stop_requests"),
}
"""Tables that may be read from end to end; all others grow."""
READ_FROM_END_TO_END = {
    # All that an agent was ever given, when it is indexed anew.
    "denizen.consciousness.recall.file_passages._given",
    "denizen.consciousness.recall.file_passages._heard",
    # The panels of a server of which owners are told, now and then.
    "denizen.panel.unanswered._anywhere",
    "denizen.panel.unanswered._in_organization",
    "denizen.panel.unanswered._under_way",
}


def test_no_statement_reads_a_table_that_grows_from_end_to_end(ready_sqlite_url: str) -> None:
    """But for a partial index, which has only what is open."""
    scans: dict[str, list[str]] = {}
    with closing(sqlite3.connect(ready_sqlite_url.removeprefix("sqlite:///"))) as empty:
        indexes = empty.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index'").fetchall()
        of_open = {name for name, sql in indexes if sql and re.search(r" WHERE .*(state|settled)", sql)}
        growing = {name for (name,) in empty.execute("SELECT name FROM sqlite_master WHERE type = 'table'")} - SMALL
        for name, each in every_statement().items():
            given = dict.fromkeys(re.findall(r":(\w+)", each.sqlite), 1)
            plan = [step for *_, step in empty.execute(f"EXPLAIN QUERY PLAN {each.sqlite}", given)]
            scans[name] = [
                step
                for step in plan
                if step.startswith("SCAN") and step.split()[1] in growing and step.split()[-1] not in of_open
            ]
    assert len(scans) > 500
    assert {name for name, steps in scans.items() if steps} == READ_FROM_END_TO_END


def test_a_message_is_delivered_without_a_look_at_all_that_waits(ready_sqlite_url: str) -> None:
    """When an agent goes on in a space is asked for each agent, with each message."""
    with closing(sqlite3.connect(ready_sqlite_url.removeprefix("sqlite:///"))) as empty:
        sql = fan_out._listeners.sqlite
        given = dict.fromkeys(re.findall(r":(\w+)", sql), 1)
        plan = [step for *_, step in empty.execute(f"EXPLAIN QUERY PLAN {sql}", given)]
    assert [step.split(" USING ")[1] for step in plan if step.startswith("SEARCH events")] == [
        "INDEX ix_events_put_off (agent_id=? AND space_id=? AND not_before>?)"
    ]


def test_a_statement_with_numbered_parameters_is_the_one_that_is_explained() -> None:
    """SQLite runs it with its parameters by number; with their names in these places it is the same text."""
    for name, each in every_statement().items():
        sql, in_order = each.sqlite_call
        names = dict.fromkeys(re.findall(r":(\w+)", each.sqlite))
        ordered = in_order({name: name for name in names})
        parts = re.split(r"\?(\d+)", sql)  # every second one is a number
        parts[1::2] = [f":{ordered[int(number) - 1]}" for number in parts[1::2]]
        assert "".join(parts) == each.sqlite, name


def every_statement() -> dict[str, Statement]:
    found: dict[str, Statement] = {}
    for module in pkgutil.walk_packages(denizen.__path__, "denizen."):
        if module.name.split(".")[1] in FOLDERS:
            made = vars(importlib.import_module(module.name)).items()
            found |= {f"{module.name}.{name}": each for name, each in made if isinstance(each, Statement)}
    return {name: each for name, each in found.items() if not each.sqlite.startswith("LOCK")}
