"""The towns that the crash tests kill."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from bench._crash import Town
from tests import servers
from tests.crash.towns import Founded


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def founded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Founded]:
    """A town, once on SQLite and once on PostgreSQL."""
    folder = tmp_path_factory.mktemp("town")
    with ExitStack() as stack:
        server_url, url = None, f"sqlite:///{folder / 'denizen.db'}"
        if request.param == "postgresql":
            server_url = str(request.getfixturevalue("_postgres_of_the_run"))
            url = stack.enter_context(servers.fresh_database(server_url, f"town_{uuid4().hex}"))
        town = Town(url, folder)
        assert town.live() == 0
        yield Founded(town, server_url)
