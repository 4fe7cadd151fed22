"""The trials that were kept, and what they come to."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from lab.judge import Verdict
from lab.world import Database, Pace, Trial

WRONG: Final = ("lost", "twice", "out_of_order", "effects_twice", "silent", "findings")


def add(
    folder: Path,
    database: Database,
    seed: str,
    history: str,
    pace: Pace,
    trials: Sequence[Trial],
    verdict: Verdict,
    findings: Sequence[str],
) -> None:
    """One world is kept: a line for it, with its trials."""
    line = {
        "database": database,
        "seed": seed,
        "history": history,
        "lease_seconds": pace.lease_seconds,
        "acknowledged": verdict.acknowledged,
        "answered": verdict.answered,
        "lost": verdict.lost,
        "twice": verdict.twice,
        "out_of_order": verdict.out_of_order,
        "effects_twice": verdict.effects_twice,
        "silent": [each for trial in trials for each in trial.silent],
        "findings": [*findings],
        "trials": [{"fault": t.fault, "asked": len(t.asked), "wait_seconds": t.wait_seconds} for t in trials],
    }
    with (folder / "worlds.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def kept(folder: Path) -> list[dict[str, Any]]:
    path = folder / "worlds.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def counted(folder: Path, database: str) -> Counter[str]:
    """How many trials of each fault were kept."""
    worlds = [each for each in kept(folder) if each["database"] == database]
    return Counter(trial["fault"] for each in worlds for trial in each["trials"])


def summary(folder: Path, database: str) -> dict[str, Any]:
    """All that was kept for this database, in one line."""
    worlds = [each for each in kept(folder) if each["database"] == database]
    trials = [trial for each in worlds for trial in each["trials"]]
    return {
        "lab": database,
        "trials": len(trials),
        "acknowledged": sum(each["acknowledged"] for each in worlds),
        **{name: sum(len(each[name]) for each in worlds) for name in WRONG},
        "longest_wait_s": max((trial["wait_seconds"] for trial in trials), default=0.0),
    }


def is_wrong(summary: dict[str, Any]) -> bool:
    return any(summary[name] for name in WRONG)


def table(folder: Path) -> str:
    """Every fault on every database, as Markdown."""
    waits: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    asked: dict[tuple[str, str, float], int] = defaultdict(int)
    for each in kept(folder):
        for trial in each["trials"]:
            key = trial["fault"], each["database"], each.get("lease_seconds", 2.0)
            waits[key].append(trial["wait_seconds"])
            asked[key] += trial["asked"]
    lines = [
        "| fault | database | lease, s | trials | questions | median wait, s | longest wait, s |",
        f"|{'---|' * 7}",
    ]
    for key, times in sorted(waits.items()):
        fault, database, lease = key
        middle = sorted(times)[len(times) // 2]
        lines.append(
            f"| {fault} | {database} | {lease:g} | {len(times)} | {asked[key]} | {middle:.1f} | {max(times):.1f} |"
        )
    return "\n".join(lines)
