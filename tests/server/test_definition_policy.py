"""One policy for every way to define an agent: each way refuses and allows the same things to the same people."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from denizen import scripted, tool
from denizen.access import roles
from denizen.agents import registry
from denizen.agents.files import DefinitionFile, read
from denizen.agents.registry import Agent, define
from denizen.agents.restrictions import RESTRICTIONS, DefinitionAuthor, DefinitionPolicy, HostAccess
from denizen.cli.in_process import client_of
from denizen.client import Client
from denizen.cycles import organization
from denizen.errors import NotAllowed, RequestRefused
from denizen.spaces.directory import Entity, Organization
from tests.portability.files import spoilt, written
from tests.server.conftest import House, served
from tests.world import World, open_world

Fields = Mapping[str, Any]
Who = Literal["first owner", "first admin", "second owner", "second admin"]
EVERYONE: tuple[Who, ...] = ("first owner", "first admin", "second owner", "second admin")
PAYER = "PAYER"
"""Stands for the handle of whoever is to pay."""


def http(**more: Any) -> dict[str, Any]:
    return {"kind": "http", "name": "web", "description": "d", "url": "https://far.example/x", **more}


RESTRICTED: dict[str, list[Fields]] = {
    "program": [{"mcp": {"files": {"command": "mcp-files", "args": ["--root", "/srv"], "env": {"MODE": "x"}}}}],
    "private_host": [
        {"tools": [http(allow_private=["wiki.lan"])]},
        {"mcp": {"far": {"url": "http://wiki.lan/mcp", "allow_private": ["wiki.lan:80"]}}},
    ],
    "tool": [{"tools": ["weather"]}],
    "function": [
        {"cycle": {"prepare_step": "careful"}},
        {"cycle": {"stop_when": ["responded_to_all", "careful"]}},
        {"cycle": {"routing": [{"by": "careful", "among": ["default"]}]}},
        {"cycle": {"triage": {"by": "careful"}}},
    ],
    "model": [
        {"model": "python:ada"},
        {"cycle": {"triage": {"model": "python:ada"}}},
        {"cycle": {"routing": [{"model": "python:ada"}]}},
        {"reflection": {"model": "python:ada"}},
    ],
    "secret": [
        {"tools": [http(headers={"X-Key": "${CRM_TOKEN}"})]},
        {"mcp": {"far": {"url": "https://far.example/mcp", "headers": {"Authorization": "Bearer ${CRM_TOKEN}"}}}},
    ],
    "policy": [
        {"tools": [http(results="trusted")]},
        {"tools": [http(effect=False)]},
        {"tools": [http(kinds={"to": "text"})]},
        {"tools": [http(kinds={"to": "flag"})]},
        {"tools": [http(makes={"file_id": "id"})]},
        {"mcp": {"far": {"url": "https://far.example/mcp", "results": "trusted"}}},
        {"mcp": {"far": {"url": "https://far.example/mcp", "only_read": ["*"]}}},
        {"effects": {"after_outside_text": "allow"}},
        {"effects": {"rules": [{"tool": "send_*", "do": "allow"}]}},
        {"private_guard": {"enabled": False}},
        {"private_guard": {"words": 9}},
    ],
    "payer": [{"pays": PAYER}],
}
"""By restriction, definitions that it is about."""

BY_DEFAULT: dict[str, set[Who]] = {
    "program": {"first owner"},
    "private_host": {"first owner"},
    "tool": {"first owner", "first admin"},
    "function": {"first owner", "first admin"},
    "model": {"first owner", "first admin"},
    "secret": {"first owner", "second owner"},
    "policy": {"first owner", "second owner"},
    "payer": set(),  # somebody else
}
IF_ALLOWED: dict[str, set[Who]] = {
    "program": {"first owner", "second owner"},
    "private_host": {"first owner", "second owner"},
    "tool": set(EVERYONE),
    "function": set(EVERYONE),
    "model": {"first owner", "first admin"},
    "secret": set(EVERYONE),
    "policy": {"first owner", "second owner"},
    "payer": set(EVERYONE),  # oneself
}
ACCESS = HostAccess(
    programs=("MODE= mcp-files --root /srv",), private_hosts=("wiki.lan",), tools=("weather",), functions=("careful",)
)
WITHOUT_LIMITS = DefinitionPolicy(ACCESS)


@tool
def weather() -> str:
    """The weather."""
    return "Sun."


@dataclass
class Stage:
    """Two organizations with people, and a way to their server."""

    house: House
    people: dict[Who, Entity]
    plain_export: Path
    made: int = 0

    @property
    def world(self) -> World:
        return self.house.world

    def handle(self) -> str:
        self.made += 1
        return f"agent-{self.made}"

    async def standing(self, who: Who, fields: Fields) -> Agent:
        """An agent of that person's organization which has lived a cycle, and is defined so without being asked."""
        home, denizen = self.people[who].organization_id, self.world.denizen
        denizen.models.register("quiet", scripted("Saw it."))
        made = await denizen.agents.create(self.handle(), model="quiet", organization=home)
        await denizen.agents.trigger(made, "Test")
        await denizen.run_until_idle()
        return await denizen.db.write(registry.edit, WITHOUT_LIMITS, made.id, define(**fields))

    def export(self, fields: Fields) -> Path:
        """An exported agent with this definition."""

        def change(lines: list[dict[str, Any]]) -> None:
            lines[1] |= {"definition": dict(fields), "handle": self.handle()}

        return spoilt(self.plain_export, change)


Way = Callable[[Stage, Who, Fields], Awaitable[bool]]
"""Defines an agent; gives whether that was allowed."""


async def asked(stage: Stage, who: Who, method: str, path: str, **body: Any) -> bool:
    answer = await stage.house.call(method, path, stage.people[who], **body)
    assert answer.status_code < 300 or answer.json()["code"] == "not_allowed", answer.text
    return answer.status_code < 300


async def create_over_http(stage: Stage, who: Who, fields: Fields) -> bool:
    return await asked(stage, who, "POST", "/api/agents", json={"name": stage.handle(), **fields})


async def edit_over_http(stage: Stage, who: Who, fields: Fields) -> bool:
    agent = await stage.standing(who, {})
    return await asked(stage, who, "PATCH", f"/api/agents/{agent.id}", json=dict(fields))


async def apply_new_over_http(stage: Stage, who: Who, fields: Fields) -> bool:
    document = {"place": "a.yaml:1", "document": {"name": stage.handle(), **fields}}
    return await asked(stage, who, "POST", "/api/apply", json={"documents": [document]})


async def apply_change_over_http(stage: Stage, who: Who, fields: Fields) -> bool:
    agent = await stage.standing(who, {})
    document = {"place": "a.yaml:1", "document": {"name": agent.name, "handle": agent.entity.handle, **fields}}
    return await asked(stage, who, "POST", "/api/apply", json={"documents": [document]})


async def import_over_http(stage: Stage, who: Who, fields: Fields) -> bool:
    headers = {"Content-Type": "application/jsonl"}
    return await asked(stage, who, "POST", "/api/import", headers=headers, content=stage.export(fields).read_bytes())


async def fork_over_http(stage: Stage, who: Who, fields: Fields) -> bool:
    agent = await stage.standing(who, fields)
    return await asked(stage, who, "POST", f"/api/agents/{agent.id}/fork", json={"handle": stage.handle()})


OVER_HTTP: dict[str, Way] = {
    "create": create_over_http,
    "edit": edit_over_http,
    "apply: new agent": apply_new_over_http,
    "apply: change": apply_change_over_http,
    "import": import_over_http,
    "fork": fork_over_http,
}


async def tried(doing: Awaitable[object]) -> bool:
    try:
        await doing
    except NotAllowed:
        return False
    except RequestRefused as refused:
        if refused.problem != NotAllowed.code:
            raise
        return False
    return True


async def asked_in_process(stage: Stage, who: Who, ask: Callable[[Client], Awaitable[object]]) -> bool:
    async with client_of(stage.world.denizen, stage.people[who]) as client:
        return await tried(ask(client))


async def create_in_process(stage: Stage, who: Who, fields: Fields) -> bool:
    return await asked_in_process(stage, who, lambda client: client.create_agent(stage.handle(), dict(fields)))


async def edit_in_process(stage: Stage, who: Who, fields: Fields) -> bool:
    agent = await stage.standing(who, {})
    return await asked_in_process(stage, who, lambda client: client.edit_agent(agent.id, dict(fields)))


async def apply_in_process(stage: Stage, who: Who, fields: Fields) -> bool:
    document = ("a.yaml:1", {"name": stage.handle(), **fields})
    return await asked_in_process(stage, who, lambda client: client.apply([document]))


async def import_in_process(stage: Stage, who: Who, fields: Fields) -> bool:
    return await asked_in_process(stage, who, lambda client: client.import_file(stage.export(fields)))


async def fork_in_process(stage: Stage, who: Who, fields: Fields) -> bool:
    agent = await stage.standing(who, fields)
    return await asked_in_process(stage, who, lambda client: client.fork_agent(agent.id, stage.handle()))


async def create_in_python(stage: Stage, who: Who, fields: Fields) -> bool:
    home = stage.people[who].organization_id
    return await tried(stage.world.denizen.agents.create(stage.handle(), organization=home, **fields))


async def edit_in_python(stage: Stage, who: Who, fields: Fields) -> bool:
    agent = await stage.standing(who, {})
    return await tried(stage.world.denizen.agents.edit(agent, **fields))


async def apply_file_in_python(stage: Stage, who: Who, fields: Fields) -> bool:
    file = DefinitionFile("agents.json", json.dumps({"name": stage.handle(), **fields}))
    home = stage.people[who].organization_id
    return await tried(stage.world.denizen.agents.apply(read([file]), organization=home))


async def import_in_python(stage: Stage, who: Who, fields: Fields) -> bool:
    home = stage.people[who].organization_id
    return await tried(stage.world.denizen.organizations.import_file(stage.export(fields), organization=home))


async def fork_in_python(stage: Stage, who: Who, fields: Fields) -> bool:
    return await tried(stage.world.denizen.agents.fork(await stage.standing(who, fields), handle=stage.handle()))


ON_THE_SERVER: dict[str, Way] = {
    "in process: create": create_in_process,
    "in process: edit": edit_in_process,
    "in process: apply": apply_in_process,
    "in process: import": import_in_process,
    "in process: fork": fork_in_process,
    "Python: create": create_in_python,
    "Python: edit": edit_in_python,
    "Python: apply a file": apply_file_in_python,
    "Python: import": import_in_python,
    "Python: fork": fork_in_python,
}


@asynccontextmanager
async def staged(url: str, folder: Path, access: HostAccess) -> AsyncGenerator[Stage]:
    async with open_world(url, host_access=access) as world, served(world) as house:
        people: dict[Who, Entity] = {}
        for name in ("first", "second"):
            home = await world.denizen.organizations.create(name)
            people |= await people_of(world, home)
        plain = await world.denizen.agents.create("Plain", organization=people["first owner"].organization_id)
        # Whoever is given a tool as an object in Python makes it a tool of the server.
        await world.denizen.agents.create("Knows", tools=[weather], organization=people["first owner"].organization_id)
        export = await written(world.denizen.agents.export(plain), folder / "plain.jsonl")
        yield Stage(house, people, export)


async def people_of(world: World, home: Organization) -> dict[Who, Entity]:
    owner, admin = [await world.person(f"{home.name} {role}", organization=home) for role in ("owner", "admin")]
    await world.denizen.db.write(roles.set_role, admin.id, "admin")
    await world.person("Somebody Else", handle="somebody-else", organization=home)
    return (
        {"first owner": owner, "first admin": admin}
        if home.name == "first"
        else {
            "second owner": owner,
            "second admin": admin,
        }
    )


def filled(fields: Fields, payer: str) -> Fields:
    return json.loads(json.dumps(fields).replace(PAYER, f"@{payer}"))


def test_every_restriction_has_definitions_to_try() -> None:
    assert RESTRICTED.keys() == BY_DEFAULT.keys() == IF_ALLOWED.keys() == RESTRICTIONS.keys()


@pytest.mark.parametrize("way", OVER_HTTP)
async def test_http_refuses_what_is_restricted(ready_sqlite_url: str, tmp_path: Path, way: str) -> None:
    async with staged(ready_sqlite_url, tmp_path, HostAccess()) as stage:
        for name, definitions in RESTRICTED.items():
            for fields in definitions:
                given = filled(fields, "somebody-else")
                allowed = {who for who in EVERYONE if await OVER_HTTP[way](stage, who, given)}
                expected = BY_DEFAULT[name] - ({"first admin", "second admin"} if way == "import" else set())
                assert allowed == expected, f"{way}: {fields}"


@pytest.mark.parametrize("way", OVER_HTTP)
async def test_http_allows_what_settings_allow(ready_sqlite_url: str, tmp_path: Path, way: str) -> None:
    async with staged(ready_sqlite_url, tmp_path, ACCESS) as stage:
        hosts = {"secret_hosts": {"CRM_TOKEN": ["far.example"]}}
        for home in {each.organization_id for each in stage.people.values()}:
            await stage.world.denizen.db.write(organization.change_settings, home, hosts)
        for name, definitions in RESTRICTED.items():
            for fields in definitions:
                people = stage.people.items()
                allowed = {who for who, me in people if await OVER_HTTP[way](stage, who, filled(fields, me.handle))}
                expected = IF_ALLOWED[name] - ({"first admin", "second admin"} if way == "import" else set())
                assert allowed == expected, f"{way}: {fields}"


@pytest.mark.parametrize("way", ON_THE_SERVER)
async def test_programs_on_the_server_may_do_what_owners_may(ready_sqlite_url: str, tmp_path: Path, way: str) -> None:
    """And say who pays, and name the models that they handed over. The organization decides about what reaches the
    host, as it does when the agent runs."""
    async with staged(ready_sqlite_url, tmp_path, HostAccess()) as stage:
        for name, definitions in RESTRICTED.items():
            for fields in definitions:
                given = filled(fields, "somebody-else")
                owners: tuple[Who, ...] = ("first owner", "second owner")
                allowed = {who for who in owners if await ON_THE_SERVER[way](stage, who, given)}
                expected = set(owners) if name in ("payer", "model") else BY_DEFAULT[name] & set(owners)
                assert allowed == expected, f"{way}: {fields}"


@pytest.mark.parametrize(
    "stricter",
    [
        {"tools": [http(needs="trusted", effect=True, kinds={"to": "email"})]},
        {"mcp": {"far": {"url": "https://far.example/mcp", "needs_trusted": ["*"]}}},
        {"effects": {"after_outside_text": "ask", "rules": [{"do": "deny"}, {"do": "ask"}], "approval_seconds": 60}},
        {"private_guard": {"words": 5}},
    ],
    ids=["tool", "server", "effects", "guard"],
)
async def test_admins_may_make_the_policy_stricter_and_go_back_to_the_default(
    small_world: World, stricter: dict[str, Any]
) -> None:
    home = await small_world.denizen.organizations.create("First")
    policy, strict = DefinitionPolicy(author=DefinitionAuthor("ann", "admin")), define(**stricter)
    await small_world.denizen.db.read(policy.check, home.id, None, strict)
    await small_world.denizen.db.read(policy.check, home.id, strict, define())


async def test_admins_may_keep_what_an_owner_has_said_of_a_tool_and_not_move_it(small_world: World) -> None:
    home = await small_world.denizen.organizations.create("First")
    policy, before = DefinitionPolicy(author=DefinitionAuthor("ann", "admin")), define(tools=[http(results="trusted")])
    await small_world.denizen.db.read(
        policy.check, home.id, before, define(tools=[http(results="trusted")], model="x:y")
    )
    moved = define(tools=[http(results="trusted", url="https://evil.example/")])
    with pytest.raises(NotAllowed, match=r"tools\.web says `results: trusted`, .* for owners .* you came as admin"):
        await small_world.denizen.db.read(policy.check, home.id, before, moved)


@pytest.mark.parametrize(
    "server",
    [
        {"command": "mcp-files", "args": ["--root", "/"]},
        {"command": "mcp-files", "args": ["--root", "/srv", "--more"]},
        {"command": "mcp-files --root /srv"},
        {"command": "/tmp/mcp-files", "args": ["--root", "/srv"]},
        {"command": "mcp-files", "args": ["--root", "/srv"], "env": {"LD_PRELOAD": "/tmp/evil.so"}},
        {"url": "http://wiki.lan/", "allow_private": ["wiki.lan", "127.0.0.1"]},
        {"url": "http://wiki.lan/", "allow_private": ["a.wiki.lan"]},
    ],
    ids=["argument", "one more argument", "one word", "path", "environment", "one more host", "subdomain"],
)
async def test_settings_allow_exactly_what_they_list(small_world: World, server: dict[str, Any]) -> None:
    first, second = [await small_world.denizen.organizations.create(name) for name in ("First", "Second")]
    policy, definition = DefinitionPolicy(ACCESS, DefinitionAuthor("ann", "owner")), define(mcp={"it": server})
    await small_world.denizen.db.read(policy.check, first.id, None, definition)
    with pytest.raises(NotAllowed, match=r"mcp\.it .* `organizations\.(programs|private_hosts)`"):
        await small_world.denizen.db.read(policy.check, second.id, None, definition)


@pytest.mark.parametrize(("access", "seen"), [(HostAccess(), []), (ACCESS, ["weather"])], ids=["default", "allowed"])
async def test_other_organizations_see_only_the_tools_they_may_use(
    ready_sqlite_url: str, tmp_path: Path, access: HostAccess, seen: list[str]
) -> None:
    async with staged(ready_sqlite_url, tmp_path, access) as stage:
        listed = [
            [each["name"] for each in (await stage.house.call("GET", "/api/tools", who)).json()["tools"]]
            for who in (stage.people["first admin"], stage.people["second owner"])
        ]
        assert listed == [["weather"], seen]
