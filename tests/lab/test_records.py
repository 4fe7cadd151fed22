"""Trials of several runs are added up."""

from __future__ import annotations

from pathlib import Path

from lab import records
from lab.judge import Verdict
from lab.world import Pace, Trial


def test_runs_are_added_up_and_one_wrong_thing_is_enough(tmp_path: Path) -> None:
    good, bad = Verdict(3, 3), Verdict(2, 1, lost=["#2 was not answered"])
    records.add(tmp_path, "sqlite", "1:sqlite:0", "a", Pace(), [Trial("SIGKILL", [1, 2, 3], [], 1.5)], good, [], "c1")
    records.add(tmp_path, "postgresql", "1:postgresql:0", "b", Pace(), [Trial("SIGSTOP", [1], [], 9.0)], good, [], "c1")
    summary = records.summary(tmp_path, "sqlite")
    assert (summary["trials"], summary["acknowledged"], summary["longest_wait_s"]) == (1, 3, 1.5)
    assert not records.is_wrong(summary)

    records.add(
        tmp_path, "sqlite", "2:sqlite:0", "c", Pace(), [Trial("SIGKILL", [1, 2], [], 0.5, strikes=3)], bad, [], "c1"
    )
    summary = records.summary(tmp_path, "sqlite")
    assert (summary["trials"], summary["strikes"], summary["acknowledged"], summary["lost"]) == (2, 4, 5, 1)
    assert records.is_wrong(summary)
    assert records.counted(tmp_path, "sqlite", tmp_path / "nothing published.jsonl") == {"SIGKILL": 4}


def test_published_results_are_counted_once_and_added_to_what_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "published.jsonl"
    good = Verdict(3, 3)
    records.add(tmp_path, "sqlite", "1:sqlite:0", "a", Pace(), [Trial("SIGKILL", [1, 2, 3], [], 1.5)], good, [], "c1")
    records.add(tmp_path, "postgresql", "1:postgresql:0", "b", Pace(), [Trial("SIGSTOP", [1], [], 9.0)], good, [], "c1")
    assert records.publish(tmp_path, file) == 2
    assert records.publish(tmp_path, file) == 0

    records.add(
        tmp_path, "sqlite", "2:sqlite:0", "c", Pace(), [Trial("SIGKILL", [1, 2], [], 4.0, strikes=2)], good, [], "c2"
    )
    assert records.counted(tmp_path, "sqlite", file) == {"SIGKILL": 3}
    assert records.table(tmp_path, file).splitlines()[2:7] == [
        "| SIGKILL | – | 3 (4 s) |",
        "| SIGSTOP | 1 (9 s) | – |",
        "| **trials** | **1** | **2** |",
        "| **strikes** | **1** | **3** |",
        "| **acknowledged** | **3** | **6** |",
    ]
