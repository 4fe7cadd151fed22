"""Other versions: databases of every older schema, and servers of an older version beside new ones."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

from denizen.storage.migrating import REVISIONS
from lab.world import World
from tests.storage.test_migrations import fixture_rows, load, migrate

ROOT: Final = Path(__file__).parents[1]
Rows = list[tuple[str, dict[str, Any]]]


def give_old_schema(world: World) -> None:
    """Its database is one that an older version left, with its data; its first server has to upgrade it."""
    revision = world.chance.choice(REVISIONS[:-1])
    world.history.add("schema", revision=revision)
    if world.database == "sqlite":
        home = world.instances[0].home
        home.mkdir(parents=True)
        url = f"sqlite:///{home / 'denizen.db'}"
    else:
        assert world.postgres is not None
        url = world.postgres.url.replace("/postgres?", f"/{world.database_name}?")
    migrate(url, revision)
    # Their secrets were sealed with keys that nobody has; without the keys no agent would begin to think.
    load(url, _with_real_ids([each for each in fixture_rows(revision) if each[0] != "secrets"]))
    world.may_check = False  # they have a row of everything, not a life that could have been lived


def _with_real_ids(rows: Rows) -> Rows:
    """The same rows. Their ids are words, which are easy to read; a server only knows UUIDs."""
    names = {str(row["id"]) for _, row in rows if isinstance(row.get("id"), str) and "-" in row["id"]}
    words = re.compile(
        "|".join(rf"(?<![\w-]){re.escape(each)}(?![\w-])" for each in sorted(names, key=len, reverse=True))
    )

    def real(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return words.sub(lambda found: str(uuid5(NAMESPACE_OID, found[0])), value)

    return [(table, {name: real(value) for name, value in row.items()}) for table, row in rows]


async def upgraded(world: World) -> None:
    """It was upgraded when the world began, and lives on under SIGKILL."""
    instance = world.some_instance
    await instance.kill()
    instance.start()


# Rolling deploy


def old_version() -> str | None:
    """The commit before this one on the main line, if this is a git checkout."""
    named = os.environ.get("LAB_OLD_VERSION", "HEAD~1")
    found = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{named}^{{commit}}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or None


def give_old_servers(world: World) -> None:
    """Its servers are of the version before."""
    commit = old_version()
    assert commit is not None
    folder = world.folder / "old"
    folder.mkdir()
    tree = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=tree.stdout, check=True)
    for instance in world.instances:
        instance.command = [sys.executable, "-m", "denizen", "up"]
        instance.environment["PYTHONPATH"] = str(folder / "src")
    world.history.add("old version", commit=commit)


async def roll(world: World) -> None:
    """One server after the other is stopped and started as the other version."""
    for instance in world.instances:
        instance.signal(signal.SIGTERM)
        if (status := await world.status_at_end(instance, 120)) != 0:
            world.find(f"{instance.name} ended with {status} after SIGTERM")
        instance.command = () if instance.command else [sys.executable, "-m", "denizen", "up"]
        instance.start()
        await world.until_ready(instance)
        await world.pause(1)
