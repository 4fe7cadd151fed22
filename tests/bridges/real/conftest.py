"""Real servers, in an environment of their own: `make test-bridges` makes it once and keeps it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.bridges.real.synapse import Synapse, running_synapse

if "DENIZEN_TEST_BRIDGES" not in os.environ:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def synapse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synapse]:
    with running_synapse(tmp_path_factory.mktemp("synapse")) as found:
        yield found
