"""Generates the table of permissions of the HTTP API from the routes: each declares its role by a parameter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from denizen.access.roles import PERSONAL, ROLES, Role, reaches
from denizen.server.auth import ROLE_ASKED, who_asks

Asked = Role | Literal["anyone", "bearer"]
"""`bearer`: every caller with a token; `anyone`: also without one."""

WORDS: Final[dict[Asked, str]] = {
    "anyone": "anyone, without a token",
    "bearer": "everyone with a token",
    "member": "people",
    "admin": "admins and owners",
    "owner": "owners",
    "agent": "agents",
    "service": "services",
}


@dataclass(frozen=True, slots=True)
class Permission:
    """One request, and the role that it requires."""

    method: str
    path: str
    operation: str
    summary: str
    asked: Asked
    more: str
    """Further conditions, in words; empty if there are none."""

    def allows(self, role: Role | None) -> bool:
        """Whether the parameter admits a caller with this role (None: without a token)."""
        if self.asked == "anyone":
            return True
        if role is None:
            return False
        return role in ROLES if self.asked == "bearer" else reaches(role, self.asked)


def permissions(app: FastAPI) -> list[Permission]:
    """Returns the permissions of every request in the OpenAPI document, by path."""
    found = [
        Permission(method, path, route.name, route.summary or "", _asked(route), _more(route))
        for path, route in _routes(app)
        if route.include_in_schema
        for method in sorted(route.methods or ())
    ]
    return sorted(found, key=lambda each: (each.path, each.method))


def _routes(app: FastAPI) -> Iterator[tuple[str, APIRoute]]:
    for route in app.routes:
        if isinstance(route, APIRoute):
            # As in the OpenAPI document: without the converter of a parameter.
            yield re.sub(r":\w+}", "}", route.path), route


def _asked(route: APIRoute) -> Asked:
    calls = set(_calls(route.dependant))
    roles = [role for call, role in ROLE_ASKED.items() if call in calls]
    if roles:
        return next(role for role in PERSONAL if role in roles)
    return "bearer" if who_asks in calls else "anyone"


def _calls(dependant: Dependant) -> Iterator[object]:
    for each in dependant.dependencies:
        yield each.call
        yield from _calls(each)


def _more(route: APIRoute) -> str:
    return str((route.openapi_extra or {}).get("x-who", ""))


def render(app: FastAPI) -> str:
    """Renders the table of docs/access.md."""
    rows = [
        f"| `{each.method} {each.path}` | {each.summary} | {each.more or WORDS[each.asked]} |"
        for each in permissions(app)
    ]
    return "\n".join(["| request | | who |", "|---|---|---|", *rows]) + "\n"
