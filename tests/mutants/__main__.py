"""Put small defects into the core, one at a time, and see whether the tests find them.

    python -m tests.mutants --sample 200 --seed 1

Prints each defect that no test found, and at the end one line of JSON. `ignored.toml` lists those that do not matter.
Stopped and started again, it goes on where it was; a defect that a test has found is tried anew when the source or that
test has changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutants.mutating import Mutant, mutants_of
from tests.mutants.running import Picking, Verdict, verdicts
from tests.mutants.tracing import CORE, LEFT_OUT, OPTIONS, ROOT, TESTS, core_modules, digests, is_of_use, tests

IGNORED = Path(__file__).with_name("ignored.toml")
FOUND = ROOT / ".mutants-found.jsonl"
"""Each defect that was found, with what it depends on: the source, and the file of the test."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=200, help="how many defects, evenly over the core folders")
    parser.add_argument("--seed", default="1", help="which ones")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="print those that were found, too, and by which test")
    parser.add_argument("--only", default="", help="only those of modules, functions or changes that contain this")
    parser.add_argument("folders", nargs="*", help="of tests, as cycles or server/api; all if none is named")
    asked = parser.parse_args()
    folders = [str(TESTS / each) for each in asked.folders or ["."]]
    left_out = [f"--ignore={TESTS / each}" for each in LEFT_OUT]
    sys.exit(pytest.main([*OPTIONS, "-s", *left_out, *folders], plugins=[_Trials(asked)]))


class _Trials:
    """A plugin of pytest that tries mutants instead of running all tests once."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self._asked = asked

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [each for each in items if is_of_use(each)]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("Some tests could not be collected.")
        try_mutants(session.items, self._asked)
        return True


def try_mutants(items: Sequence[pytest.Item], asked: argparse.Namespace) -> None:
    """Print what becomes of those asked for."""
    sources = {module: path.read_text() for module, path in core_modules().items()}
    picked = sample(sources, asked.sample, asked.seed)
    picked = [each for each in picked if asked.only in " ".join(each.key)]
    ignored, found = reasons(), found_before()
    picking = Picking(tests(items, asked.workers), sources)
    by_id = {each.nodeid: each for each in items}
    to_try = [each for each in picked if each.key not in ignored]
    began, fates = time.monotonic(), Counter(killed=sum(each.key in found for each in to_try))
    for each in verdicts([each for each in to_try if each.key not in found], picking, by_id, asked.workers):
        fates[each.fate] += 1
        if each.fate == "killed":
            remember(each)
        if each.fate != "killed":
            show(each, sources[each.mutant.module])
        elif asked.all:
            print(f"killed: {each.mutant.module} {each.mutant.function}: {each.mutant.change} ({each.by})", flush=True)
    tried = sum(fates.values())
    told = {
        "mutants": tried,
        "killed": fates["killed"],
        "survived": fates["survived"],
        "not_covered": fates["not covered"],
        "ratio": round(fates["killed"] / max(tried, 1), 4),
        "ignored": len(picked) - tried,
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(told))


def sample(sources: dict[str, str], size: int, seed: str) -> list[Mutant]:
    """Evenly of each core folder, by the seed; which are picked in one place does not depend on the others."""
    picked: list[Mutant] = []
    for at, folder in enumerate(CORE):
        room = size // len(CORE) + (at < size % len(CORE))
        found = [
            mutant
            for module, source in sources.items()
            if module.split(".")[1] == folder
            for mutant in mutants_of(source, module)
        ]
        picked += sorted(found, key=lambda each: _rank(seed, each.key))[:room]
    return sorted(picked, key=lambda each: _rank(seed, each.key))


def _rank(seed: str, key: Sequence[str]) -> bytes:
    return hashlib.sha256("\0".join([seed, *key]).encode()).digest()


def reasons() -> dict[tuple[str, str, str, str], str]:
    """Why a defect does not matter, by its key."""
    listed = tomllib.loads(IGNORED.read_text())["mutant"] if IGNORED.exists() else []
    return {(each["module"], each["function"], each["line"], each["change"]): each["reason"] for each in listed}


def found_before() -> set[tuple[str, ...]]:
    """The keys of those that were found before, by tests and in a source that have not changed since."""
    shared, files = digests()
    lines = [json.loads(line) for line in FOUND.read_text().splitlines()] if FOUND.exists() else []
    return {tuple(key) for of, file, digest, key in lines if of == shared and files.get(file, "") == digest}


def remember(verdict: Verdict) -> None:
    shared, files = digests()
    file = verdict.by.partition("::")[0]
    with FOUND.open("a") as kept:
        print(json.dumps([shared, file, files.get(file, ""), verdict.mutant.key]), file=kept)


def show(verdict: Verdict, before: str) -> None:
    mutant = verdict.mutant
    path = core_modules()[mutant.module].relative_to(Path.cwd())
    print(f"\n{verdict.fate}: {path}:{mutant.first} {mutant.function}: {mutant.change} ({verdict.by})")
    print(f"{mutant.diff(before)}\n", flush=True)


if __name__ == "__main__":
    main()
