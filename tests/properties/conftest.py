"""Databases for examples: each finds an empty one, and making them anew would take longer than the examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from tests import servers
from tests.databases import with_tables


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    """Gives the URL of an empty SQLite database each time; the one before is gone then."""
    folder = tmp_path_factory.mktemp("databases")

    def copy() -> str:
        for old in folder.glob("denizen.db*"):
            old.unlink()
        return with_tables(folder / "denizen.db")

    return copy


@pytest.fixture(scope="module")
def used_postgres(_postgres_of_the_run: str, _migrated_postgres: str) -> Iterator[str]:
    """A PostgreSQL database with all its tables, one for all examples: each empties it first."""
    with servers.fresh_database(_postgres_of_the_run, f"test_{uuid4().hex}", template=_migrated_postgres) as url:
        yield url
