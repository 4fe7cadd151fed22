"""The event loop of a server."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator

import pytest
import uvloop

from denizen.server.running import run_server


@pytest.fixture(autouse=True)
def _garbage_as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


async def kind_of_loop() -> type[asyncio.AbstractEventLoop]:
    return type(asyncio.get_running_loop())


def test_a_server_runs_on_uvloop() -> None:
    assert run_server(kind_of_loop()) is uvloop.Loop


def test_without_uvloop_a_server_runs_on_the_loop_of_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert run_server(kind_of_loop()) is not uvloop.Loop
