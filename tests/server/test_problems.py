"""Every answer has its headers, and every failure its form."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from denizen import __version__, errors
from denizen.server.problems import KINDS
from denizen.server.route_modules import all_routes
from tests.server.conftest import House, served
from tests.world import World


async def test_health_needs_no_token(small_house: House) -> None:
    head = await small_house.call("HEAD", "/healthz")
    assert (head.status_code, head.content) == (200, b""), "load balancers ask so"
    answer = await small_house.call("GET", "/healthz")
    assert (answer.status_code, answer.json()) == (200, {"ok": True, "version": __version__})


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/api/nothing", 404, "not_found"),
        ("GET", "/api/spaces/", 404, "not_found"),
        ("DELETE", "/api/me", 405, "method_not_allowed"),
        ("POST", "/api/me", 405, "method_not_allowed"),
        ("OPTIONS", "/api/me", 405, "method_not_allowed"),
    ],
)
async def test_a_path_or_method_that_is_not_there(
    small_house: House, method: str, path: str, status: int, code: str
) -> None:
    noor = await small_house.world.person("Noor")
    answer = await small_house.call(method, path, noor, headers={"Origin": "http://evil.example"})
    problem = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert set(problem) == {"type", "title", "status", "code", "detail"}
    assert (problem["status"], problem["code"]) == (status, code)
    assert ("allow" in answer.headers) == (status == 405)
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_every_answer_carries_the_headers_that_keep_it_to_itself(small_house: House) -> None:
    noor = await small_house.world.person("Noor")
    kitchen = await small_house.world.space("Kitchen", noor)
    for path, who, headers in [
        ("/healthz", None, {}),
        ("/api/me", noor, {}),
        ("/api/me", None, {}),
        ("/api/nothing", noor, {}),
        ("/api/me", noor, {"Host": "evil.example"}),
    ]:
        answer = await small_house.call("GET", path, who, headers=headers)
        _has_safe_headers(answer.headers, path)
    async with small_house.client.stream(
        "GET", f"/api/spaces/{kitchen.id}/stream", headers=await small_house.headers(noor)
    ) as answer:
        _has_safe_headers(answer.headers, "/api/")


def _has_safe_headers(headers, path: str) -> None:
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["date"].endswith("GMT")
    assert headers.get("cache-control") == ("no-store" if path.startswith("/api") else None)
    assert "server" not in headers


@pytest.fixture
async def broken_house(small_world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[House]:
    """A house with a route that fails in the way its path says."""
    made: list[FastAPI] = []
    async with served(small_world, made=made) as house:

        @made[0].get("/api/broken/{how}")
        async def broken(how: str) -> None:
            if how == "defect":
                raise RuntimeError("the password is swordfish")
            raise next(cls for cls in _error_classes() if cls.code == how)("at /home/noor/denizen.db")

        yield house


def _error_classes() -> list[type[errors.DenizenError]]:
    return [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.DenizenError)]


@pytest.mark.parametrize("how", ["defect", "lease_lost", "storage_error", "bus_error", "database_damaged"])
async def test_a_defect_is_logged_and_tells_the_caller_nothing(
    broken_house: House, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    noor = await broken_house.world.person("Noor")

    answer = await broken_house.call("GET", f"/api/broken/{how}", noor)

    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "swordfish" not in answer.text
    assert "/home/noor" not in answer.text
    logged = capsys.readouterr().out
    assert "request failed" in logged
    assert ("swordfish" in logged) or how != "defect"


@pytest.mark.parametrize(
    ("how", "status"), [("database_unavailable", 503), ("database_locked", 503), ("disk_full", 507)]
)
async def test_what_may_work_later_says_so(broken_house: House, how: str, status: int) -> None:
    noor = await broken_house.world.person("Noor")
    answer = await broken_house.call("GET", f"/api/broken/{how}", noor)
    assert (answer.status_code, answer.json()["code"]) == (status, how)
    assert "/home/noor" not in answer.text
    assert ("retry-after" in answer.headers) == (status == 503)


def test_codes_of_the_table_that_are_errors_of_ours_exist() -> None:
    """A renamed code is noticed."""
    of_http = {
        "bad_request", "invalid_json", "unauthorized", "method_not_allowed", "too_large", "unsupported_media_type",
        "host_refused", "idempotency_key_reused", "internal", "cross_site", "rate_limited", "not_ready",
        "agent_unavailable", "message_refused", "nested_too_deep", "request_timeout", "too_many_connections",
        "too_many_streams", "overloaded", "range_not_satisfiable", "answer_not_in_format",
    }  # fmt: skip
    assert set(KINDS) - of_http <= {each.code for each in _error_classes()}


async def test_the_api_describes_itself(small_house: House) -> None:
    """Every operation has a name, a summary, its errors; every body an example."""
    noor = await small_house.world.person("Noor")
    described = (await small_house.call("GET", "/api/openapi.json", noor)).json()
    operations = {each["operationId"]: each for path in described["paths"].values() for each in path.values()}
    assert sorted(operations) == sorted(
        route.name for route in cast("list[APIRoute]", all_routes()) if route.include_in_schema
    )
    for name, operation in operations.items():
        assert operation["summary"]
        assert "default" in operation["responses"]
        assert ("security" in operation) == (
            name
            not in (
                "health", "ready", "receive_webhook", "receive_bridge_event", "receive_matrix_push",
                "answer_by_address", "open_session",
            )
        )  # fmt: skip
    schemas = described["components"]["schemas"]
    assert all("examples" in schemas[name] for name in ("PostMessage", "MessageOut", "SpaceOut", "AgentOut", "Me"))
    assert "text/event-stream" in operations["stream"]["responses"]["200"]["content"]


def test_the_page_tells_every_code_with_its_status() -> None:
    """What is in the table is in docs/http.md, and nothing else is."""
    page = (Path(__file__).parents[2] / "docs" / "http.md").read_text().partition("## What goes wrong")[2]
    rows = re.findall(r"^\| (\d{3}) \| ([^|]+) \|", page, flags=re.MULTILINE)
    told = {code: int(status) for status, codes in rows for code in re.findall(r"`(\w+)`", codes)}
    assert told == {code: kind.status for code, kind in KINDS.items()}
