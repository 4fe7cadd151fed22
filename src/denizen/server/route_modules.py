"""The route modules: imported all at once, or with the first request that needs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final, cast

from fastapi import APIRouter
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

MODULES: Final = (
    "messages", "streams", "spaces", "openai", "responses", "chat", "me", "health", "metrics", "session", "tokens",
    "keys", "models", "identities", "organization", "entities", "pictures", "members", "retention", "search", "panels",
    "voices", "agents", "definitions", "portability", "minds", "plans", "stances", "usage", "memory", "forgetting",
    "audit", "calls", "triggers", "webhooks", "bridges", "files", "mcp", "mcp_servers", "a2a", "push",
    "provider_sign_in",
)  # fmt: skip
"""Each has a `router`. A request is matched against one after the other: the busiest first."""

MODULES_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "a2a": ("a2a",),
    "addresses": ("bridges",),
    "agents": ("agents",),
    "agents/*/approvals": ("calls",),
    "agents/*/crossings": ("minds",),
    "agents/*/cycles": ("minds",),
    "agents/*/document": ("definitions",),
    "agents/*/export": ("portability",),
    "agents/*/goals": ("plans",),
    "agents/*/inbox": ("minds",),
    "agents/*/log": ("minds",),
    "agents/*/memories": ("memory",),
    "agents/*/mind": ("minds",),
    "agents/*/notes": ("plans",),
    "agents/*/plans": ("plans",),
    "agents/*/recall": ("minds",),
    "agents/*/space": ("spaces",),
    "agents/*/stances": ("stances",),
    "agents/*/stream": ("streams",),
    "agents/*/trigger": ("triggers",),
    "agents/*/webhooks": ("webhooks",),
    "apply": ("definitions",),
    "audit": ("audit",),
    "bridges": ("bridges",),
    "calls": ("calls",),
    "channels": ("bridges",),
    "chat": ("chat",),
    "entities": ("entities", "identities", "pictures"),
    "files": ("files",),
    "forget": ("forgetting",),
    "health": ("health",),
    "healthz": ("health",),
    "hooks": ("webhooks", "calls", "bridges"),
    "import": ("portability",),
    "keys": ("keys",),
    "login": ("session", "provider_sign_in"),
    "logins": ("session",),
    "mcp": ("mcp",),
    "mcp-servers": ("mcp_servers",),
    "me": ("me",),
    "memory": ("memory",),
    "messages": ("search",),
    "metrics": ("metrics",),
    "models": ("models",),
    "organization": ("organization", "usage", "memory", "files"),
    "panels": ("panels", "voices"),
    "pictures": ("pictures",),
    "profiles": ("stances",),
    "push": ("push",),
    "readyz": ("health",),
    "receipts": ("forgetting",),
    "reflection": ("stances",),
    "session": ("session",),
    "sign-in": ("provider_sign_in",),
    "spaces": ("spaces",),
    "spaces/*/calls": ("calls",),
    "spaces/*/export": ("portability",),
    "spaces/*/members": ("members",),
    "spaces/*/memories": ("memory",),
    "spaces/*/memory": ("memory",),
    "spaces/*/messages": ("messages",),
    "spaces/*/open": ("audit",),
    "spaces/*/pins": ("messages",),
    "spaces/*/retention": ("retention",),
    "spaces/*/stream": ("messages",),
    "spaces/*/transcript": ("messages",),
    "stream": ("streams",),
    "tokens": ("tokens",),
    "tools": ("agents",),
    "usage": ("usage",),
    "v1": ("openai", "responses"),
    "webhooks": ("webhooks",),
}  # fmt: skip
"""The modules with routes below `/api/NAME` or `/NAME`, and below `/api/NAME/{id}/SUBJECT` if another module has those.
The first with a matching route answers.
"""


def all_routes() -> list[BaseRoute]:
    """The routes of all modules."""
    return [route for name in MODULES for route in routes_of(name)]


def routes_of(module: str) -> list[BaseRoute]:
    """Returns the routes of the module, importing it if necessary."""
    return cast("APIRouter", import_module(f"denizen.server.routes.{module}").router).routes


def key_of(path: str) -> str:
    """Returns the key of a path in `MODULES_OF`: `agents/*/plans` of `/api/agents/ada/plans`, `hooks` of `/hooks/…`."""
    name, _, below = path.removeprefix("/api").lstrip("/").partition("/")
    key = f"{name}/*/{below.partition('/')[2].partition('/')[0]}"
    return key if key in MODULES_OF else name


class RoutesOnDemand(BaseRoute):
    """Stands for the routes of all modules, and imports those that may have a route for the request.

    Importing all of them would take longer than the work of most commands, and a third of the start of a server.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        partial: tuple[Match, Scope] = Match.NONE, {}
        for route in self._candidates(scope["path"]):
            match, child_scope = route.matches(scope)
            found = match, {**child_scope, "route": route}
            if match is Match.FULL:
                return found
            if match is Match.PARTIAL and partial[0] is Match.NONE:
                partial = found
        return partial

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await cast("BaseRoute", scope["route"]).handle(scope, receive, send)

    def _candidates(self, path: str) -> Iterator[BaseRoute]:
        for module in MODULES_OF.get(key_of(path), ()):
            yield from routes_of(module)
