"""Every operation that changes something, asked by every kind of caller about their own organization.

docs/access.md says who may do what, and is made from the same routes. Whoever may is answered with success, and
everybody else with the stable code of a refusal, which changes nothing. A request is made from the example in the API's
description; `CASES` has those that need something else, and those where the table adds a condition in words.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2

from denizen.access import tokens
from denizen.access.roles import Role
from denizen.app import Runtime
from denizen.ids import EntityId, OrganizationId
from denizen.server.application import create_app
from denizen.server.context import ServerLimits
from denizen.server.permissions import Permission, permissions
from denizen.settings.shape import OidcSettings
from denizen.spaces import directory
from tests.server import small_town
from tests.server.conftest import SEALED_WITH, Built
from tests.server.small_town import Part
from tests.world import UNHURRIED, World, open_world


@dataclass(frozen=True)
class Caller:
    """Somebody of Home with a token."""

    role: Role
    """What the token and its bearer may do together."""
    person: str
    """Who it is: a role of the town, or a name of their own."""


CALLERS: Final[dict[str, Caller]] = {
    "owner": Caller("owner", "owner"),
    "owner with an admin token": Caller("admin", "owner"),
    "owner with a member token": Caller("member", "owner"),
    "admin": Caller("admin", "admin"),
    "member": Caller("member", "member"),
    "guest": Caller("guest", "guest"),
    "outsider": Caller("member", "outsider"),  # a member of the organization who is in none of the town's spaces
    "agent": Caller("agent", "agent"),
    "service": Caller("service", "service"),
    "outside service": Caller("service", "outside service"),
}
OWNERS: Final = frozenset(name for name, each in CALLERS.items() if each.role == "owner")
ADMINS: Final = OWNERS | {name for name, each in CALLERS.items() if each.role == "admin"}
PEOPLE: Final = ADMINS | {name for name, each in CALLERS.items() if each.role == "member"}
GUESTS: Final = frozenset(name for name, each in CALLERS.items() if each.role == "guest")
OWNER_IN_PERSON: Final = frozenset(name for name, each in CALLERS.items() if each.person == "owner")
OUTSIDE: Final = frozenset({"outsider", "outside service"})
IN_SPACE: Final = frozenset(CALLERS) - OUTSIDE


@dataclass(frozen=True, kw_only=True)
class Case:
    """One request of an operation. Texts like `{message}` are filled in from the town."""

    about: str = ""
    who: frozenset[str] | None = None
    """Who may; None: whom the table of docs/access.md names."""
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    """None: the example of the API's description."""
    code: str = ""
    """What those who may are answered, where the town has nothing that it could be done with."""


CASES: Final[dict[str, tuple[Case, ...]]] = {
    "POST /api/agents": (Case(body={"name": "Cleo", "model": "demo"}),),
    "POST /api/agents/{agent_id}/cycles/{number}/rethink": (Case(body={"model": "demo"}),),
    "POST /api/agents/{agent_id}/fork": (Case(body={"handle": "ada-2"}),),
    "POST /api/agents/{agent_id}/inbox/{event_id}/requeue": (Case(code="not_found"),),  # no event is dead
    "DELETE /api/agents/{agent_id}/plans/{name}": (Case(path={"name": "{plan}"}),),
    "POST /api/agents/{agent_id}/trigger": (Case(who=IN_SPACE - GUESTS),),
    "POST /api/agents/{agent_id}/try-again": (
        Case(about="in a space", who=PEOPLE - OUTSIDE, body={"space": "{space}"}),
        Case(about="everywhere", who=ADMINS, body={}),
    ),
    "PUT /api/models/default": (Case(who=OWNERS, body={"name": "demo"}),),
    "DELETE /api/models/default": (Case(who=OWNERS),),
    "POST /api/models/test": (Case(who=OWNERS, body={"name": "demo"}),),
    "POST /api/apply": (Case(who=ADMINS),),  # restricted parts of definitions: test_definition_policy.py
    "POST /api/bridges/{bridge_id}/channels": (Case(body={"space_id": "{space}", "room": "ticket-8"}),),
    "POST /api/bridges/{bridge_id}/codes": (Case(code="not_found"),),  # the account has never written
    "POST /api/bridges/{bridge_id}/addresses": (Case(code="not_found"),),
    "DELETE /api/bridges/{bridge_id}/addresses/{account}": (Case(code="not_found"),),
    "POST /api/calls/{call_id}/answer": (Case(who=IN_SPACE),),
    "POST /api/chat": (Case(body={"agent": "{agent}", "text": "Hello.", "seconds": 1e-9}),),
    "POST /api/entities": (
        Case(about="a member", who=ADMINS),
        Case(about="an admin", who=OWNERS, body={"name": "Sam", "role": "admin"}),
    ),
    "PATCH /api/entities/{entity_id}": (
        Case(about="a name", who=ADMINS, body={"name": "Samira"}),
        Case(about="a role", who=OWNERS, body={"role": "admin"}),
    ),
    "DELETE /api/entities/{entity_id}": (
        Case(about="a member", who=ADMINS),
        Case(about="an admin", who=OWNERS | {"admin"}, path={"entity_id": "@amin"}),
    ),
    "DELETE /api/entities/{entity_id}/identities": (  # nobody is linked
        Case(about="a member", who=ADMINS, code="not_found"),
        Case(about="an admin", who=OWNERS, path={"entity_id": "@amin"}, code="not_found"),
        Case(about="an owner", who=OWNERS, path={"entity_id": "@olga"}, code="not_found"),
    ),
    "POST /api/entities/{entity_id}/identities": (
        Case(about="a member", who=ADMINS),
        # Whoever comes by the identity provider has the whole role of that person, whatever the token had that linked.
        Case(about="an admin", who=OWNERS, path={"entity_id": "@amin"}),
        Case(about="an owner", who=OWNERS, path={"entity_id": "@olga"}),
    ),
    "DELETE /api/entities/{entity_id}/picture": (
        Case(about="an agent's", who=ADMINS, path={"entity_id": "{agent}"}),
        Case(about="one's own", who=frozenset({"member"}), path={"entity_id": "@mia"}),
    ),
    "PUT /api/entities/{entity_id}/picture": (  # nothing is sent
        Case(about="an agent's", who=ADMINS, path={"entity_id": "{agent}"}, code="invalid_input"),
        Case(about="one's own", who=frozenset({"member"}), path={"entity_id": "@mia"}, code="invalid_input"),
    ),
    "PATCH /api/files/{file_id}": (Case(code="invalid_input"),),  # it was sent already
    "DELETE /api/files/{file_id}": (Case(code="invalid_input"),),  # it is attached to a message
    "PUT /api/files/{file_id}/content": (Case(who=OWNER_IN_PERSON, code="upload_conflict"),),  # it has arrived
    "POST /api/forget": (
        Case(about="a message", who=ADMINS, body={"kind": "message", "id": "{message}"}),
        Case(about="a person", who=OWNERS, body={"kind": "person", "id": "@max"}),
        Case(about="a space", who=OWNERS, body={"kind": "space", "id": "{space}"}),
    ),
    "POST /api/import": (Case(code="import_invalid"),),
    "POST /api/push/subscriptions": (Case(code="invalid_input"),),  # web push is off here
    "DELETE /api/push/subscriptions/{subscription_id}": (Case(code="not_found"),),  # it is somebody else's
    "DELETE /api/keys/{name}": (
        Case(about="the organization's", who=ADMINS),
        Case(about="one's own", who=PEOPLE, query={"whose": "me"}, code="not_found"),
    ),
    "PUT /api/keys/{name}": (
        Case(about="the organization's", who=ADMINS),
        Case(about="one's own", who=PEOPLE, body={"value": "sk-1", "whose": "me"}),
        Case(about="another's", who=frozenset(), body={"value": "sk-1", "whose": "@max"}),
    ),
    "POST /api/logins": (
        Case(about="for oneself", who=PEOPLE),
        Case(about="for a member", who=ADMINS, body={"entity": "@max"}),
        Case(about="for an admin", who=OWNERS | {"admin"}, body={"entity": "@amin"}),
    ),
    "POST /api/mcp-servers/answer": (Case(code="not_found"),),  # no agent has such a server
    "POST /api/mcp-servers/{name}/sign-in": (Case(code="not_found"),),
    "DELETE /api/memory/{memory_id}": (Case(who=PEOPLE - OUTSIDE),),
    "PATCH /api/memory/{memory_id}": (Case(who=PEOPLE - OUTSIDE),),
    "POST /api/memory/{memory_id}/revert": (Case(who=PEOPLE - OUTSIDE, code="not_found"),),  # it has one version
    "PUT /api/panels/{panel_id}/advisors/group": (Case(code="not_found"),),  # no advisor is in a group
    "PUT /api/panels/{panel_id}/advisors/order": (Case(code="invalid_input"),),  # it names an unknown advisor
    "POST /api/session": (Case(who=PEOPLE | GUESTS, body={"secret": "{own secret}"}),),
    "POST /api/spaces": (Case(who=PEOPLE),),
    "POST /api/panels": (Case(who=PEOPLE),),
    "POST /api/spaces/{space_id}/agents/{agent_id}/ask-for-answer": (Case(code="invalid_input"),),  # none is owed
    "POST /api/spaces/{space_id}/members": (
        Case(about="a member", who=PEOPLE - OUTSIDE),
        Case(about="an owner", who=ADMINS, body={"entity": "{entity}", "role": "owner"}),
    ),
    "PATCH /api/spaces/{space_id}/members/{entity_id}": (
        Case(about="attention of a person", who=frozenset(), body={"attention": "none"}),
        Case(about="attention of an agent", who=PEOPLE - OUTSIDE, path={"entity_id": "@ada"}),
        Case(about="one's own attention", who=PEOPLE - OUTSIDE, path={"entity_id": "{own id}"}),
        Case(about="a role", who=ADMINS, body={"role": "owner"}),
    ),
    "DELETE /api/spaces/{space_id}/members/{entity_id}": (
        Case(about="a person", who=ADMINS),
        Case(about="an agent", who=PEOPLE - OUTSIDE, path={"entity_id": "@ada"}),
        Case(about="oneself", who=PEOPLE - OUTSIDE, path={"entity_id": "{own id}"}),
    ),
    "PUT /api/spaces/{space_id}/retention": (Case(who=ADMINS),),
    "PATCH /api/spaces/{space_id}/messages/{message_id}": (
        Case(about="one's own", who=IN_SPACE),
        Case(about="the owner's", who=OWNER_IN_PERSON, path={"message_id": "{message}"}),
    ),
    "DELETE /api/spaces/{space_id}/messages/{message_id}": (
        Case(about="one's own", who=IN_SPACE),
        Case(about="the owner's", who=OWNER_IN_PERSON, path={"message_id": "{message}"}),
    ),
    "POST /api/spaces/{space_id}/messages/{message_id}/try-again": (Case(code="invalid_input"),),  # a person wrote it
    "PUT /api/spaces/{space_id}/messages/{message_id}/pin": (Case(who=IN_SPACE),),
    "DELETE /api/spaces/{space_id}/messages/{message_id}/pin": (Case(who=IN_SPACE),),
    "PUT /api/spaces/{space_id}/messages/{message_id}/reactions/{emoji}": (Case(who=IN_SPACE),),
    "DELETE /api/spaces/{space_id}/messages/{message_id}/reactions/{emoji}": (Case(who=IN_SPACE),),
    "POST /api/spaces/{space_id}/open": (
        Case(about="a private one", path={"space_id": "{private space}"}),
        Case(about="another", code="invalid_input"),
    ),
    "POST /api/tokens": (
        Case(about="for oneself", who=PEOPLE),
        Case(about="for a member", who=ADMINS, body={"name": "x", "entity": "@max"}),
        Case(about="for a service", who=ADMINS, body={"name": "x", "entity": "@ci"}),
        Case(about="for an agent", who=ADMINS, body={"name": "x", "entity": "@ada"}),
        Case(about="for an admin", who=OWNERS | {"admin"}, body={"name": "x", "entity": "@amin"}),
        Case(about="for an owner", who=OWNER_IN_PERSON, body={"name": "x", "entity": "@olga"}),
    ),
    "DELETE /api/tokens/{token_id}": (
        Case(about="a member's", who=ADMINS),
        Case(about="an admin's", who=OWNERS | {"admin"}, path={"token_id": "{token of admin}"}),
        Case(about="an owner's", who=OWNER_IN_PERSON, path={"token_id": "{token of owner}"}),
    ),
    "POST /api/tokens/{token_id}/rotate": (
        Case(about="a member's", who=ADMINS),
        Case(about="an admin's", who=OWNERS | {"admin"}, path={"token_id": "{token of admin}"}),
        # A token of small scope must not become one of a greater scope.
        Case(about="an owner's", who=OWNERS, path={"token_id": "{token of owner}"}),
    ),
    "POST /hooks/calls/{call_id}": (Case(code="not_found"),),  # the key of the address is wrong
    "POST /hooks/{webhook_id}": (Case(code="signature_wrong"),),
    "POST /hooks/bridges/{bridge_id}": (Case(code="signature_wrong"),),
    "PUT /hooks/bridges/{bridge_id}/_matrix/app/v1/transactions/{transaction_id}": (Case(code="signature_wrong"),),
    "POST /v1/chat/completions": (Case(body={"model": "ada", "messages": [{"role": "user", "content": "Hello."}]}),),
    "POST /v1/responses": (Case(body={"model": "ada", "input": "Hello again."}),),
    "POST /v1/embeddings": (Case(code="invalid_input"),),  # there is no embedder
}


APP: Final = create_app(Runtime())
WRITES: Final = {f"{each.method} {each.path}": each for each in permissions(APP) if each.method != "GET"}
_OF_A_SPACE: Final = ("{file_id}", "{space_id}", "{panel_id}", "{memory_id}", "{call_id}")


def is_about_a_space(permission: Permission, case: Case) -> bool:
    return any(each in permission.path for each in _OF_A_SPACE) or (case.body is not None and "space" in case.body)


def expected_code(permission: Permission, case: Case, name: str) -> str:
    """The code of the answer; empty where it is a success."""
    caller = CALLERS[name]
    is_outside = name in OUTSIDE and is_about_a_space(permission, case) and permission.asked != "anyone"
    if not permission.allows(caller.role):
        return "not_allowed"
    if case.who is None:
        return "not_found" if is_outside else case.code
    if name in case.who:
        return case.code
    if permission.asked == "anyone":
        return "unauthorized"
    return "not_found" if is_outside else "not_allowed"


@dataclass
class Visit:
    """A copy of the town that is put back as it was after each change."""

    client: httpx2.AsyncClient
    home: Part
    secrets: dict[str, str]
    """Of each caller."""
    ids: dict[str, str]
    """What `{...}` in a case stands for."""
    own_ids: dict[str, str]
    database: sqlite3.Connection
    before: sqlite3.Connection

    def has_changed(self, version: int) -> bool:
        return self.version() != version

    def version(self) -> int:
        """Another number after each commit of the server."""
        return self.database.execute("PRAGMA data_version").fetchone()[0]

    def put_back(self) -> None:
        self.before.backup(self.database)

    async def send(self, permission: Permission, case: Case, name: str) -> httpx2.Response:
        description = small_town.description()
        operation = description["paths"][permission.path][permission.method.lower()]
        ids = {**self.ids, "own id": self.own_ids[name], "own secret": self.secrets[name]}
        path = permission.path
        for parameter, value in case.path.items():
            path = path.replace(f"{{{parameter}}}", _filled(value, ids))
        path = small_town.filled(path, self.home, CALLERS[name].person)
        body = _filled(case.body, ids)
        if body is None:
            body = small_town.body_of(description, operation, self.home, all_fields=False)
        return await self.client.request(
            permission.method,
            path.replace("@", "%40"),
            headers={"Authorization": f"Bearer {self.secrets[name]}"},
            params={**small_town.needed(operation), **case.query},
            json=body,
        )


def _filled(value: Any, ids: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, ids) for key, each in value.items()}
    if isinstance(value, str) and value.startswith("{"):
        return ids[value[1:-1]]
    return value


@asynccontextmanager
async def visit(built: Built, folder: Path) -> AsyncGenerator[Visit]:
    """Nobody lives there, so that only requests change something; answers are not waited for."""
    file = folder / "denizen.db"
    shutil.copy(built.database, file)
    limits = ServerLimits(requests_per_minute=0, failed_logins_per_minute=0, completion_seconds=0)
    oidc = OidcSettings(issuer="https://login.example.com", audience="denizen")
    presets = file.with_name("presets.json")
    async with open_world(f"sqlite:///{file}", secret_key=SEALED_WITH, pace=UNHURRIED, presets=presets) as world:
        app = create_app(world.denizen, limits=limits, oidc=oidc)
        client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1:8420")
        async with client:
            owner = await _me(client, built.town.secrets["owner"])
            home = OrganizationId(owner["organization"]["id"])
            secrets = await _secrets(world, home, EntityId(owner["id"]), built.town.secrets)
            mine = {name: await _me(client, secret) for name, secret in secrets.items()}
            own_ids = {name: each["id"] for name, each in mine.items()}
            private = await world.denizen.spaces.create(
                "Zoe's", [await world.denizen.people.find("zoe", organization=home)], private=True, organization=home
            )
            ids = {**built.town.home.ids, "private space": private.id}
            ids |= {f"token of {name}": each["token"]["id"] for name, each in mine.items()}
            with closing(sqlite3.connect(file)) as database, closing(sqlite3.connect(":memory:")) as before:
                database.backup(before)
                yield Visit(client, built.town.home, secrets, ids, own_ids, database, before)


async def _secrets(world: World, home: OrganizationId, owner: EntityId, of_town: Mapping[str, str]) -> dict[str, str]:
    write = world.denizen.db.write
    people = {
        "owner": owner,
        "outsider": (await world.denizen.people.create("Zoe", organization=home)).id,
        "outside service": (await write(directory.create_entity, home, "service", name="Cron", handle="cron")).id,
    }
    made = {
        name: (await write(tokens.create, people[caller.person], name, role=caller.role))[1]
        for name, caller in CALLERS.items()
        if name not in of_town
    }
    return {name: of_town.get(name) or made[name] for name in CALLERS}


async def _me(client: httpx2.AsyncClient, secret: str) -> dict[str, Any]:
    return (await client.get("/api/me", headers={"Authorization": f"Bearer {secret}"})).json()


async def test_writes_in_ones_own_organization_are_for_whom_the_access_table_names(
    built: Built, tmp_path: Path
) -> None:
    wrong: list[str] = []
    async with visit(built, tmp_path) as town:
        for operation, permission in WRITES.items():
            for case in CASES.get(operation, (Case(),)):
                # Elsewhere somebody who is in no space is a member or a service like others.
                for name in CALLERS if is_about_a_space(permission, case) else IN_SPACE:
                    version = town.version()
                    answer = await town.send(permission, case, name)
                    code, expected = _code(answer), expected_code(permission, case, name)
                    what = f"{operation} ({case.about or 'example'}) as {name}"
                    if code != expected:
                        wrong.append(f"{what}: {code or answer.status_code}, not {expected or 'a success'}")
                    if town.has_changed(version):
                        if expected and operation != "POST /api/session":  # where a failure is in the audit log
                            wrong.append(f"{what}: was refused and changed something")
                        town.put_back()
                    if "elsewhereonly" in answer.text or ("privateonly" in answer.text and name not in OWNER_IN_PERSON):
                        wrong.append(f"{what}: the answer tells of what is not theirs")
    assert not wrong, "\n".join(wrong)


def _code(answer: httpx2.Response) -> str:
    if answer.status_code < 400:
        return ""
    problem = json.loads(answer.text)
    return problem.get("error", problem)["code"]


def test_every_condition_of_the_access_table_has_cases() -> None:
    """A write whose line in docs/access.md adds something in words is tried as those words say."""
    assert {operation for operation, each in WRITES.items() if each.more} <= set(CASES)
    assert set(CASES) <= set(WRITES), "remove the cases of operations that are gone"
