"""A world with a bridge to the harbour."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from denizen.access.vault import new_key
from tests.bridges.in_process import Harbour
from tests.world import UNHURRIED, World, open_world


@pytest.fixture
def harbour() -> Harbour:
    return Harbour()


@pytest.fixture
async def bay(ready_url: str, harbour: Harbour) -> AsyncIterator[World]:
    """A world whose server has bridges to the harbour."""
    async with open_world(ready_url, bridge_kinds=[harbour.kind], pace=UNHURRIED, secret_key=new_key()) as world:
        yield world
