"""The towns that the crash tests kill."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import connect

from tests import servers
from tests.crash.killing import Town
from tests.crash.towns import Founded

Once = Callable[[str, Callable[[], Any]], Any]
"""Gives what is made under that name, which is JSON and the same for all workers of a run: the first one makes it."""


@pytest.fixture(scope="session")
def once(run_folder: Path) -> Once:
    def made(name: str, make: Callable[[], Any]) -> Any:
        path = run_folder / f"{name}.json"
        with servers.exclusive_lock(path.with_suffix(".lock")):
            if not path.exists():
                path.write_text(json.dumps(make()))
        return json.loads(path.read_text())

    return made


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def founded(request: pytest.FixtureRequest, run_folder: Path, once: Once, worker_id: str) -> Iterator[Founded]:
    """A town, once on SQLite and once on PostgreSQL. It is only copied, so all workers of the run share it."""
    name, server_url = request.param, None
    if request.param == "postgresql":
        server_url = str(request.getfixturevalue("_postgres_of_the_run"))
        # A worker that comes when all others have left starts a server of its own, where no town was founded.
        name = f"{name}-{hashlib.md5(server_url.encode(), usedforsecurity=False).hexdigest()}"
    folder = run_folder / f"town-{name}"
    url = f"sqlite:///{folder / 'denizen.db'}"
    if server_url is not None:
        url = server_url.replace("/postgres?", "/founded_town?")

    def found() -> int:
        folder.mkdir()
        if server_url is not None:
            with connect(server_url, autocommit=True) as connection:
                connection.execute("CREATE DATABASE founded_town")
        town = Town(url, folder)
        assert town.live() == 0
        return town.began

    town = Town(url, folder, once(f"founded-{name}", found))
    if server_url is None:
        yield Founded(town, None)
        return
    with servers.fresh_database(server_url, f"town_{worker_id}", template="founded_town") as copy:
        yield Founded(town, servers.Filled(copy))
