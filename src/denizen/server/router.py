"""What every module of routes begins with: what is true of all routes is said when they are made."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import BaseModel

from denizen.server.bodies import BoundedRoute
from denizen.server.schemas import Problem


def new_router(prefix: str = "", *, problem: type[BaseModel] = Problem) -> APIRouter:
    """A router whose routes are whole, so that an app takes them as they are.

    One that an app includes is built a second time for that app, route by route, while its first requests wait.
    """
    return APIRouter(
        prefix=prefix,
        route_class=BoundedRoute,
        responses={"default": {"model": problem, "description": "What went wrong."}},
        generate_unique_id_function=_operation_id,
    )


def _operation_id(route: APIRoute) -> str:
    return route.name
