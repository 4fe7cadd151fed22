"""The API against its own description: whatever the description allows is answered as the description says.

Schemathesis makes the requests, good ones and bad ones, always the same; they are sent over HTTP to a town where agents
live. Only streams are left out, which do not end.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from tests.server import small_town
from tests.server.conftest import Built, visited

EXAMPLES = max(settings().max_examples // 25, 1)
"""Of each kind, for each request. More find more: see the profiles in tests/conftest.py."""
PARTS = 8
"""All requests in as many parts, so that workers can share them."""
STREAMS = "text/event-stream"


def asked() -> list[tuple[str, str]]:
    """Method and path of every request that ends."""
    return [
        (method, path)
        for method, path, operation in small_town.operations(small_town.description())
        if not any(STREAMS in answer.get("content", {}) for answer in operation["responses"].values())
    ]


@contextmanager
def running(built: Built, folder: Path) -> Iterator[str]:
    """The town, served by a thread of its own; its address."""
    address: list[str] = []
    ready, loop, stop = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with visited(built, folder) as house:
            address.append(house.address)
            ready.set()
            await stop.wait()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=run, name="town")
    thread.start()
    ready.wait()
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@pytest.fixture(scope="module")
def address(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(built, tmp_path_factory.mktemp("described")) as address:
        yield address


@pytest.fixture(scope="module")
def described() -> Any:
    import schemathesis

    schemathesis.serializer("application/jsonl")(lambda context, value: str(value).encode())
    return schemathesis.openapi.from_dict(dict(small_town.description()))


# Hypothesis looks whether strategies use `random`; the server, in a thread of the same process, may at any moment.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
@pytest.mark.parametrize("part", range(PARTS))
def test_every_answer_is_as_described(built: Built, address: str, described: Any, part: int) -> None:
    """No 5xx, no status, type or shape that the description does not have: to good requests about what is there, and to
    bad ones about what is not."""
    wrong: list[Exception] = []
    requests = asked()
    assert len(requests) > 100
    for method, path in requests[part::PARTS]:
        try:
            _ask_both_ways(built, address, described[path][method], path)
        except Exception as error:  # noqa: BLE001  all of them are told together
            error.add_note(f"asked: {method} {path}")
            wrong.append(error)
    if wrong:
        raise ExceptionGroup("not as described", wrong)


def _ask_both_ways(built: Built, address: str, operation: Any, path: str) -> None:
    from schemathesis import GenerationMode

    there = {name: small_town.value(name, built.town.home, path) for name in small_town.names_in(path)}
    headers = {"Authorization": f"Bearer {built.town.secrets['owner']}"}
    _ask(operation.as_strategy(GenerationMode.POSITIVE, path_parameters=there or None), address, headers)
    try:
        _ask(operation.as_strategy(GenerationMode.NEGATIVE), address, headers)
    except Unsatisfiable:
        pass  # it is empty that could be wrong


def _ask(cases: Any, address: str, headers: dict[str, str]) -> None:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    expected = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @given(case=cases)
    def ask(case: Any) -> None:
        response = case.call(base_url=address, headers=headers, timeout=100)
        case.validate_response(response, checks=expected)

    ask()
