"""The trials that were kept in a folder, those that were published with the repository, and what they come to."""

from __future__ import annotations

import json
import subprocess
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from lab.judge import Verdict
from lab.world import Database, Pace, Trial

ROOT: Final = Path(__file__).parents[1]
PUBLISHED: Final = Path(__file__).with_name("published.jsonl")
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
    commit: str,
) -> None:
    """One world is kept: a line for it, with its trials, and the commit that its servers were of."""
    line = {
        "commit": commit,
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
        "trials": [
            {"fault": t.fault, "strikes": t.strikes, "asked": len(t.asked), "wait_seconds": t.wait_seconds}
            for t in trials
        ],
    }
    with (folder / "worlds.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def kept(folder: Path) -> list[dict[str, Any]]:
    path = folder / "worlds.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def counted(folder: Path, database: str, file: Path = PUBLISHED) -> Counter[str]:
    """How often each fault struck this database, in what was published and in what was kept since."""
    struck: Counter[str] = Counter()
    for each in [*_published(file), *_compacted(kept(folder))]:
        if each["database"] == database:
            for fault, those in each["faults"].items():
                struck[fault] += those["strikes"]
    return struck


def summary(folder: Path, database: str) -> dict[str, Any]:
    """All that was kept for this database, in one line."""
    worlds = [each for each in kept(folder) if each["database"] == database]
    trials = [trial for each in worlds for trial in each["trials"]]
    return {
        "lab": database,
        "trials": len(trials),
        "strikes": sum(trial["strikes"] for trial in trials),
        "acknowledged": sum(each["acknowledged"] for each in worlds),
        **{name: sum(len(each[name]) for each in worlds) for name in WRONG},
        "longest_wait_s": max((trial["wait_seconds"] for trial in trials), default=0.0),
    }


def is_wrong(summary: dict[str, Any]) -> bool:
    return any(summary[name] for name in WRONG)


def publish(folder: Path, file: Path = PUBLISHED) -> int:
    """Append what was kept to the published results. Returns the number of lines: one for each commit, database and
    lease.

    What is published is set aside in the folder, so that it is never counted twice.
    """
    lines = _compacted(kept(folder))
    with file.open("a") as published:
        published.writelines(json.dumps(each) + "\n" for each in lines)
    path = folder / "worlds.jsonl"
    if lines:
        path.rename(folder / f"worlds-published-{len([*folder.glob('worlds-published-*')]) + 1}.jsonl")
    return len(lines)


def _published(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def present_commit() -> str:
    """The commit of this checkout; ends with `+` if files differ from it. Empty if this is none."""
    command = ["git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip()


def _compacted(worlds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str, float], list[dict[str, Any]]] = defaultdict(list)
    for each in worlds:
        groups[each.get("commit", ""), each["database"], each["lease_seconds"]].append(each)
    return [
        {
            "commit": commit,
            "database": database,
            "lease_seconds": lease,
            "worlds": len(group),
            "acknowledged": sum(each["acknowledged"] for each in group),
            **{name: sum(len(each[name]) for each in group) for name in WRONG},
            "faults": _by_fault(group),
        }
        for (commit, database, lease), group in sorted(groups.items())
    ]


def _by_fault(worlds: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    trials: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in worlds:
        for trial in each["trials"]:
            trials[trial["fault"]].append(trial)
    return {
        fault: {
            "trials": len(those),
            "strikes": sum(trial["strikes"] for trial in those),
            "longest_wait_s": max(trial["wait_seconds"] for trial in those),
        }
        for fault, those in sorted(trials.items())
    }


def table(folder: Path | None, file: Path = PUBLISHED) -> str:
    """Every fault on every database, with the number of trials and the longest wait, as Markdown: all that was
    published, and what was kept in the folder since.
    """
    runs = [*_published(file), *(_compacted(kept(folder)) if folder is not None else [])]
    columns = sorted({(each["database"], each["lease_seconds"]) for each in runs})
    cells: dict[str, dict[tuple[str, float], list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for each in runs:
        for fault, counted in each["faults"].items():
            cells[fault][each["database"], each["lease_seconds"]].append(counted)
    lines = [
        f"| fault | {' | '.join(f'{database}, leases of {lease:g} s' for database, lease in columns)} |",
        f"|---|{'--:|' * len(columns)}",
    ]
    for fault, row in sorted(cells.items()):
        lines.append(f"| {fault} | {' | '.join(_cell(row[column]) for column in columns)} |")
    for name in ("trials", "strikes"):
        row = [sum(each[name] for faults in cells.values() for each in faults[at]) for at in columns]
        lines.append(_sums(name, row))
    for name in ("acknowledged", *WRONG):
        row = [sum(each[name] for each in runs if (each["database"], each["lease_seconds"]) == at) for at in columns]
        lines.append(_sums(name, row))
    return "\n".join(lines)


def _sums(name: str, row: Sequence[int]) -> str:
    return f"| **{name}** | {' | '.join(f'**{each:,}**' for each in row)} |"


def _cell(counted: Sequence[dict[str, Any]]) -> str:
    if not counted:
        return "–"
    strikes = sum(each["strikes"] for each in counted)
    return f"{strikes:,} ({max(each['longest_wait_s'] for each in counted):.0f} s)"
