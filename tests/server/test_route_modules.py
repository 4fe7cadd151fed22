"""Routes that are imported on demand answer the same requests as all routes together."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Match

from denizen.server.application import create_app
from denizen.server.route_modules import MODULES, MODULES_OF, RoutesOnDemand, all_routes, key_of, routes_of
from tests.world import World


def test_every_module_is_found_by_the_paths_of_its_routes() -> None:
    found = {(key_of(path_of(route)), module) for module in MODULES for route in routes_of(module)}
    assert {(name, module) for name, modules in MODULES_OF.items() for module in modules} == found


def test_only_the_module_of_the_route_is_imported() -> None:
    """Every subject of an agent or a space is in one module: listing approvals needs none of the other ten."""
    for module in MODULES:
        for path in map(path_of, routes_of(module)):
            if path.startswith(("/api/agents", "/api/spaces")):
                assert MODULES_OF[key_of(path)] == (module,), path


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_on_demand_the_same_route_answers(method: str) -> None:
    """Also where several routes match, and where only the method is wrong."""
    whole = all_routes()
    for route in whole:
        path = re.sub(r"{[^}]*}", "x", path_of(route))
        scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
        match, child_scope = RoutesOnDemand().matches(scope)
        expected, expected_scope = first_match(whole, scope)
        assert (match, child_scope["route"]) == (expected, expected_scope["route"]), (method, path)
        assert child_scope["path_params"] == expected_scope["path_params"]


def test_a_path_without_a_route_matches_nothing() -> None:
    for path in ("/", "/api", "/api/nowhere", "/api/agents/a/b/c/d", "/nowhere"):
        scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": []}
        assert RoutesOnDemand().matches(scope)[0] is Match.NONE, path


async def test_on_demand_the_openapi_document_is_whole(small_world: World) -> None:
    on_demand = create_app(small_world.denizen, on_demand=True)
    assert on_demand.openapi() == create_app(small_world.denizen).openapi()


def first_match(routes: list[BaseRoute], scope: dict[str, Any]) -> tuple[Match, dict[str, Any]]:
    """What the router of an application would choose: the first full match, or else the first of a wrong method."""
    matches = [(*route.matches(scope), route) for route in routes]
    for wanted in (Match.FULL, Match.PARTIAL):
        for match, child_scope, route in matches:
            if match is wanted:
                return match, {**child_scope, "route": route}
    raise AssertionError(f"no route for {scope['path']}")


def path_of(route: BaseRoute) -> str:
    assert isinstance(route, APIRoute)
    return route.path
