"""Creates the routers of the route modules, with what is common to all routes."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import BaseModel

from denizen.server.bodies import BoundedRoute
from denizen.server.shapes.problem import Problem


def new_router(prefix: str = "", *, problem: type[BaseModel] = Problem) -> APIRouter:
    """Creates a router whose routes are complete, so that an app uses them as they are.

    FastAPI builds the routes of an included router a second time, one by one, while the first requests wait.
    """
    return APIRouter(
        prefix=prefix,
        route_class=BoundedRoute,
        responses={"default": {"model": problem, "description": "What went wrong."}},
        generate_unique_id_function=_operation_id,
    )


def _operation_id(route: APIRoute) -> str:
    return route.name
