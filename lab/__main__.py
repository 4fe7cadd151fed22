"""Runs the laboratory.

    python -m lab --database sqlite|postgresql [--faults all|NAME,...] [--hours N | --trials N | --short] [--seed N]
           [--lanes N] [--until-aims]

Each trial is one fault in a world of real processes and clients. After SIGTERM every world comes to rest, and the run
ends. Trials are added to the folder `--keep`, and the line
of JSON at the end sums up all that it holds for this database. Findings go to stderr, and make the exit status 1.
`--report` prints a table of them and of the published results instead; `--publish` adds them to `lab/published.jsonl`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import logging
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from lab import clocks, records
from lab.faults import FAULTS, PREPARE, TRIALS_IN_A_WORLD, Need, skipped
from lab.instances import Nursery
from lab.model import ModelServer, model_server
from lab.world import DEFAULTS, Database, Pace, rest, trial, world
from tests.servers import Server, private_postgres, private_valkey

SHORT: Final = Pace(lease_seconds=1.0, sweep_seconds=0.2)
SHORT_TRIALS: Final = 8
"""The most faults in one world of a short run."""
SLOW_TO_START: Final[tuple[Need, ...]] = ("own clock", "old servers")
SHORT_LANES: Final = 3
"""How many worlds live at the same time in a short run, unless `--lanes` says otherwise."""


def main(arguments: list[str]) -> int:
    """The exit status: 0 if there is nothing wrong in what was kept for this database."""
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--faults", default="all", help=f"all, or some of: {', '.join(FAULTS)}")
    parser.add_argument("--hours", type=float, default=0.0)
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--until-aims", action="store_true", help="end as soon as no fault is short of its aim")
    parser.add_argument("--short", action="store_true", help="each fault once")
    parser.add_argument("--defaults", action="store_true", help="leases of 30 s, as shipped, and agents that reflect")
    parser.add_argument("--lanes", type=int, default=0, help="how many worlds live at the same time")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--keep", type=Path, help="where trials and histories are kept and added up")
    parser.add_argument("--report", action="store_true", help="print what was published and kept as a table")
    parser.add_argument("--publish", action="store_true", help="add what was kept to lab/published.jsonl")
    given = parser.parse_args(arguments)
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)  # that clients of our model are killed is the point
    if given.publish:
        print(f"{records.publish(given.keep)} lines were added to {records.PUBLISHED.name}.")
    if given.report or given.publish:
        print(records.table(given.keep))
        return 0
    names = [*FAULTS] if given.faults == "all" else given.faults.split(",")
    if unknown := [name for name in names if name not in FAULTS]:
        parser.error(f"There is no fault {unknown[0]!r}. Choose from: {', '.join(FAULTS)}.")
    for name, why in skipped().items():
        print(f"Skipped: {name}, because {why}.", file=sys.stderr)
    names = [name for name in names if given.database in FAULTS[name].databases and name not in skipped()]
    # Worlds whose servers start slowly begin first: in short, the others live meanwhile.
    names.sort(
        key=lambda name: (FAULTS[name].needs not in SLOW_TO_START, [*TRIALS_IN_A_WORLD].index(FAULTS[name].needs))
    )
    folder = (
        given.keep or Path(tempfile.mkdtemp(prefix="denizen-lab-"))
    ).absolute()  # servers have folders of their own
    folder.mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(_run(given.database, names, folder, given))
        summary = records.summary(folder, given.database)
        print(json.dumps(summary))
        return 1 if records.is_wrong(summary) else 0
    finally:
        if given.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


async def _run(database: Database, names: list[str], folder: Path, given: argparse.Namespace) -> None:
    laboratory = _Laboratory(database, names, folder, given)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, laboratory.end)
    async with AsyncExitStack() as stack:
        laboratory.rehearsed = await stack.enter_async_context(model_server(random.Random(given.seed)))
        # Most of a trial is waiting, so that several worlds can live at the same time.
        lanes = given.lanes or (SHORT_LANES if given.short else 1)
        async with asyncio.TaskGroup() as tasks:
            for number in range(lanes):
                tasks.create_task(laboratory.work(), name=f"lane {number}")


class _Laboratory:
    """The worlds of one run."""

    def __init__(self, database: Database, names: list[str], folder: Path, given: argparse.Namespace) -> None:
        self.rehearsed: ModelServer | None = None
        """What servers talk to that rehearse."""
        self._nurseries: dict[bool, Nursery] = {}
        self._preparing = asyncio.Lock()
        self._database: Database = database
        self._names = names
        self._folder = folder
        self._short: bool = given.short
        self._seed: int = given.seed
        self._pace = DEFAULTS if given.defaults else SHORT if given.short else Pace()
        self._wanted = len(names) if given.short else given.trials or (10**9 if given.hours else 100)
        self._deadline = time.monotonic() + (given.hours * 3_600 or 10**9)
        self._endless: bool = not given.until_aims
        self._begun = 0
        self._worlds = self._plans()
        self._commit = records.present_commit()

    def end(self) -> None:
        """Each world comes to rest after the trial that it is in, and no other begins."""
        self._deadline = 0.0

    def _plans(self) -> Iterator[tuple[str, random.Random, Need, list[str]]]:
        """The worlds to come: the seed of each, what it must be given, and its faults."""
        for turn in itertools.count():
            if self._begun >= self._wanted or time.monotonic() > self._deadline:
                return
            seed = f"{self._seed}:{self._database}:{turn}"
            chance = random.Random(seed)
            if self._short:
                needs, plan = _in_order(self._names[self._begun :])
            else:
                missing = _missing(self._names, records.counted(self._folder, self._database))
                if not any(missing.values()) and not self._endless:
                    return
                needs, plan = _by_chance(missing, chance)
            plan = plan[: self._wanted - self._begun]
            self._begun += len(plan)
            yield seed, chance, needs, plan

    async def work(self) -> None:
        """One world after the other, on servers of its own."""
        async with AsyncExitStack() as stack:
            postgres = valkey = None
            if self._database == "postgresql":
                locks = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                postgres = await asyncio.to_thread(stack.enter_context, private_postgres(locks / "postgres"))
                valkey = await asyncio.to_thread(stack.enter_context, private_valkey(locks / "valkey"))
            for seed, chance, needs, plan in self._worlds:
                await self._live(seed, chance, needs, plan, postgres, valkey)

    async def _nursery(self, needs: Need) -> Nursery:
        """What forks the servers of such a world."""
        own_clock = needs == "own clock"
        async with self._preparing:
            if own_clock not in self._nurseries:
                assert self.rehearsed is not None
                environment = clocks.environment() if own_clock else None
                self._nurseries[own_clock] = await asyncio.to_thread(Nursery, self.rehearsed.port, environment)
        return self._nurseries[own_clock]

    async def _live(
        self,
        seed: str,
        chance: random.Random,
        needs: Need,
        plan: list[str],
        postgres: Server | None,
        valkey: Server | None,
    ) -> None:
        """One world with these faults, one after the other."""
        place = self._folder / "worlds" / f"{seed.replace(':', '-')}-{time.time_ns() // 10**6}"
        given = {"postgres": postgres, "valkey": valkey, "prepare": PREPARE.get(needs), "pace": self._pace}
        async with (
            model_server(random.Random(seed)) as model,
            world(self._database, place, await self._nursery(needs), model, chance, **given) as here,
        ):
            trials = []
            for name in plan:
                if time.monotonic() > self._deadline:
                    break
                fault = FAULTS[name]
                strikes = 1 + fault.hasty if self._short else chance.randint(1, fault.strikes)
                trials.append(await trial(here, name, fault.strike, strikes=strikes, hasty=fault.hasty))
                if trials[-1].silent:
                    break
                print(f"{name}: {strikes} times, {trials[-1].wait_seconds:g} s", file=sys.stderr, flush=True)
            verdict = await rest(here)
        records.add(
            self._folder, self._database, seed, place.name, self._pace, trials, verdict, here.findings, self._commit
        )
        wrong = [*verdict.wrong, *here.findings, *(s for t in trials for s in t.silent)]
        for each in wrong:
            print(f"{place.name}: {each}", file=sys.stderr, flush=True)
        if not wrong:
            for log in place.glob("*.log"):
                log.unlink()


def _in_order(names: list[str]) -> tuple[Need, list[str]]:
    """The faults of the next world, and what it must be given."""
    needs = FAULTS[names[0]].needs
    most = min(TRIALS_IN_A_WORLD[needs], SHORT_TRIALS)
    return needs, list(itertools.takewhile(lambda name: FAULTS[name].needs == needs, names))[:most]


def _missing(names: list[str], counted: Mapping[str, int]) -> dict[str, int]:
    """How many times each fault has yet to strike until its aim is reached."""
    return {name: max(FAULTS[name].aim - counted.get(name, 0), 0) for name in names}


def _by_chance(missing: Mapping[str, int], chance: random.Random) -> tuple[Need, list[str]]:
    """The same, the sooner the further a fault is from its aim."""
    names = [*missing]
    weights = {name: max(missing[name], 1) for name in names}
    worlds = [weight / TRIALS_IN_A_WORLD[FAULTS[name].needs] for name, weight in weights.items()]
    needs = FAULTS[chance.choices(names, worlds)[0]].needs
    fitting = [name for name in names if FAULTS[name].needs == needs]
    return needs, chance.choices(fitting, [weights[name] for name in fitting], k=TRIALS_IN_A_WORLD[needs])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
