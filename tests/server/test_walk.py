"""The walk: every route, asked by everyone there is, about their own and about what is not theirs.

What is expected comes from the routes themselves (`server/permissions.py`): the parameter by which each says whom it is
for, and its words where a door inside asks more. docs/access.md is made from the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from sqlalchemy import select

from denizen.access.roles import ROLES, Role
from denizen.access.vault import new_key
from denizen.app import Runtime
from denizen.cli.config import render_access
from denizen.server.application import create_app
from denizen.server.permissions import Permission, permissions
from denizen.server.route_modules import MODULES
from denizen.storage.database import Tx, statement
from denizen.storage.schema import metadata
from tests.server import small_town
from tests.server.conftest import Built, House, served, visited
from tests.server.small_town import Part, Town
from tests.world import UNHURRIED, open_world

APP = create_app(Runtime())
WALKED = {f"{each.method} {each.path}": each for each in permissions(APP)}
_ORDER = ("GET", "POST", "PUT", "PATCH", "DELETE")
"""What is looked at is still there, and what is taken away is taken away last."""


def _walk_of(room: ModuleType) -> list[Permission]:
    """The routes of a room, in the order in which they can be asked one after the other."""
    routes = {route.name for route in room.router.routes}
    there = [each for each in WALKED.values() if each.operation in routes]
    return sorted(there, key=lambda each: (_ORDER.index(each.method), each.path))


WALKS = {name: _walk_of(import_module(f"denizen.server.routes.{name}")) for name in MODULES}
ASKERS: tuple[Role | None, ...] = (None, *ROLES)
_ROWS = {table.name: statement(select(table)) for table in metadata.sorted_tables}


@dataclass(frozen=True)
class Answer:
    asked: str
    status: int
    code: str
    text: str


class Walker:
    """Asks one route of a town."""

    def __init__(self, house: House, town: Town, permission: Permission) -> None:
        self.house = house
        self.town = town
        self.permission = permission
        self.operation = small_town.description()["paths"][permission.path][permission.method.lower()]

    def __str__(self) -> str:
        return f"{self.permission.method} {self.permission.path}"

    async def ask(self, role: Role | None, part: Part, *, told: Part | None = None) -> Answer:
        """Ask about what is in that part; in query and body, about what is in `told`."""
        path = small_town.filled(self.permission.path, part, role or "")
        foreign = told is not None
        body = small_town.body_of(small_town.description(), self.operation, told or part, all_fields=foreign)
        query = small_town.needed(self.operation)
        query |= small_town.about(self.operation, told, self.permission.path) if foreign else {}
        headers = {} if role is None else {"Authorization": f"Bearer {self.town.secrets[role]}"}
        request = self.house.client.build_request(
            self.permission.method, path.replace("@", "%40"), headers=headers, params=query, json=body
        )
        response = await self.house.client.send(request, stream=True)
        try:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                return Answer(str(self), response.status_code, "", "")  # it would never end
            text = (await response.aread()).decode()
        finally:
            await response.aclose()
        return Answer(str(self), response.status_code, _code(text) if response.status_code >= 400 else "", text)


def _code(problem: str) -> str:
    told = json.loads(problem)
    return told.get("error", told)["code"]


def _of_elsewhere(tx: Tx, marks: list[str]) -> list[str]:
    """Every row that has to do with Elsewhere."""
    rows = [f"{name} {row}" for name, query in _ROWS.items() for row in tx.all(query)]
    return sorted(row for row in rows if any(mark in row for mark in marks))


@pytest.mark.parametrize("room", WALKS)
async def test_nobody_reads_or_writes_what_they_should_not(built: Built, tmp_path: Path, room: str) -> None:
    async with visited(built, tmp_path) as house:
        before = await _elsewhere(house, built.town)
        for permission in WALKS[room]:
            walker = Walker(house, built.town, permission)
            await _walk(walker)
            assert await _left(walker, before) == before, f"{walker}: something of Elsewhere was changed from Home"


async def test_nor_on_postgresql(ready_postgres_url: str) -> None:
    """Of every room what is most about somebody's own: one route that reads, and one that writes."""
    async with open_world(ready_postgres_url, secret_key=new_key(), pace=UNHURRIED) as world:
        town = await small_town.build(world)
        async with served(world) as house, world.denizen.living():
            sample = [each for walk in WALKS.values() for each in _most_telling(walk)]
            assert len(sample) > len(WALKS)
            before = await _elsewhere(house, town)
            walkers = [Walker(house, town, each) for each in sorted(sample, key=lambda each: _ORDER.index(each.method))]
            for walker in walkers:
                await _walk(walker)
            # Once: which route it would be, the walks through SQLite say.
            assert await _left(walkers[-1], before) == before, "something of Elsewhere was changed from Home"


def _most_telling(walk: list[Permission]) -> list[Permission]:
    reading = [each for each in walk if each.method == "GET"]
    writing = [each for each in walk if each.method in ("POST", "PUT", "PATCH")]
    return [max(some, key=lambda each: len(_identifying(each))) for some in (reading, writing) if some]


async def _walk(walker: Walker) -> None:
    """Everyone asks, about what is not theirs and about what is."""
    _names_are_known(walker.permission)
    for role in ASKERS:
        await _asks_about_what_is_not_theirs(walker, role)
    if walker.permission.method == "GET":  # what changes something is asked in test_own_writes.py
        for role in ASKERS:
            await _asks_about_their_own(walker, role)
    if not walker.permission.allows(None):
        assert (await walker.ask(None, walker.town.home)).status == 401, walker


async def _elsewhere(house: House, town: Town) -> list[str]:
    marks = ["elsewhereonly", *(each for name, each in town.elsewhere.ids.items() if name not in ("note", "plan"))]
    return await house.world.denizen.db.read(_of_elsewhere, marks)


def _names_are_known(permission: Permission) -> None:
    for name in small_town.names_in(permission.path):
        try:
            small_town.value(name, Part(dict.fromkeys(small_town._FILLED, "")), permission.path)
        except KeyError:
            pytest.fail(f"Tell tests/server/small_town.py what {{{name}}} of {permission.path} is.")


async def _left(walker: Walker, before: list[str]) -> list[str]:
    """What is there of what was before. Naming an id of Elsewhere in one's own data changes nothing there."""
    kept = set(before)
    return [row for row in await _elsewhere(walker.house, walker.town) if row in kept]


def _identifying(permission: Permission) -> list[str]:
    return [name for name in small_town.names_in(permission.path) if name not in small_town.NOT_TELLING]


async def _asks_about_what_is_not_theirs(walker: Walker, role: Role | None) -> None:
    """Another organization's things, or a diary: they are as if they were not there, whoever asks."""
    town, permission = walker.town, walker.permission
    parts = [town.elsewhere] if _identifying(permission) else []
    if "{space_id}" in permission.path and role != "owner":
        parts.append(town.diary)
    for part in parts:
        answer = await walker.ask(role, part)
        _tells_nothing(answer, part is town.elsewhere, role)
        _is_refused_as_declared(permission, role, answer)
        assert answer.status >= 400, f"{role} was answered about what is not theirs: {answer}"
        if permission.allows(role) and permission.asked != "anyone":
            assert answer.status in (404, 422) or (answer.status == 403 and permission.more), (role, answer)
    answer = await walker.ask(role, town.home, told=town.elsewhere)
    _tells_nothing(answer, True, role)
    _is_refused_as_declared(permission, role, answer)


async def _asks_about_their_own(walker: Walker, role: Role | None) -> None:
    permission = walker.permission
    answer = await walker.ask(role, walker.town.home)
    _tells_nothing(answer, False, role)
    _is_refused_as_declared(permission, role, answer)
    if permission.allows(role) and permission.asked != "anyone":
        assert answer.status != 401, (role, answer)
        assert answer.status != 403 or permission.more, f"{role} was refused, and the route does not say so: {answer}"
    if role == "owner":
        assert answer.status == 200, f"the walk does not reach it: {answer}"


def _tells_nothing(answer: Answer, foreign: bool, role: Role | None) -> None:
    """Nothing of Elsewhere is in it, and of the diary nothing but for its owner. A word that was sent may come back."""
    assert answer.status < 500, answer
    if answer.status < 400 or not foreign:
        assert "elsewhereonly" not in answer.text, (role, answer)
    if role != "owner":
        assert "privateonly" not in answer.text, (role, answer)


def _is_refused_as_declared(permission: Permission, role: Role | None, answer: Answer) -> None:
    if permission.allows(role):
        return
    assert (answer.status, answer.code) == ((401, "unauthorized") if role is None else (403, "not_allowed")), (
        role,
        answer,
    )


def test_the_walk_goes_everywhere() -> None:
    """Every request that the API describes is walked once, and the four words for whom a route is for are all used."""
    described = {f"{method} {path}" for method, path, _ in small_town.operations(small_town.description())}
    assert set(WALKED) == described
    assert sorted(f"{each.method} {each.path}" for walk in WALKS.values() for each in walk) == sorted(WALKED)
    assert {each.asked for each in WALKED.values()} >= {"anyone", "bearer", "member", "admin"}


def test_only_these_are_open_to_anyone() -> None:
    """Whatever needs no token is here by decision."""
    assert {asked for asked, each in WALKED.items() if each.asked == "anyone"} == {
        "GET /healthz",
        "GET /readyz",
        "POST /api/session",
        "POST /hooks/bridges/{bridge_id}",
        "PUT /hooks/bridges/{bridge_id}/_matrix/app/v1/transactions/{transaction_id}",
        "POST /hooks/calls/{call_id}",
        "POST /hooks/{webhook_id}",
    }


def test_the_page_has_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "access.md").read_text()
    assert render_access() in page, "put what `denizen config access` prints into docs/access.md"
