"""What reaches the host is refused before it is used, however old the definition: the space says why, nothing runs."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from denizen import call, forever, reply, scripted, tool
from denizen.agents import registry, space_statuses
from denizen.agents.registry import Agent, define
from denizen.agents.restrictions import DefinitionPolicy, HostAccess
from denizen.cli.home import host_access
from denizen.errors import InvalidInput, ModelUnknown, SettingsError
from denizen.memory.settings import MemoryOptions
from denizen.settings.loading import load
from denizen.settings.shape import program_of
from denizen.spaces.directory import Space
from denizen.tools.addresses import is_listed
from tests.world import World, open_world

PROGRAM = str(Path(__file__).parents[1] / "tools" / "mcp_server.py")
FILES = {"command": sys.executable, "args": [PROGRAM], "prefix": "files_"}
COMMAND = f"FOLDER= {shlex.join([sys.executable, PROGRAM])}"


@tool
def reboot() -> str:
    """Restart the machine."""
    raise AssertionError("it was called")


async def agent_of_another_organization(world: World, **fields: Any) -> tuple[Agent, Space]:
    """An agent that was defined when everything was allowed, and a person who waits for its answer."""
    other = await world.denizen.organizations.create("Other")
    eve = await world.person("Eve", organization=other)
    ada = await world.agent("Ada", call("files_add", a=2, b=3), reply("Five."), "Added.", organization=other)
    old = DefinitionPolicy(
        HostAccess(programs=(COMMAND,), private_hosts=("127.0.0.1",), tools=("reboot",), functions=("careful",))
    )
    defined = define(model=ada.definition.model, **fields)
    ada = await world.denizen.db.write(registry.edit, old, ada.id, defined)
    den = await world.space("Den", eve, ada, organization=other)
    await world.say(eve, "Add two and three.", den)
    return ada, den


async def shown(world: World, space: Space) -> list[str]:
    return [each.text for each in await world.denizen.db.read(space_statuses.in_space, space.id)]


async def test_a_program_of_another_organization_is_not_started(ready_sqlite_url: str, tmp_path: Path) -> None:
    """Until the settings list its exact command: then the agent goes on by itself with the next start."""
    folder = tmp_path / "of the program"
    folder.mkdir()
    files = {**FILES, "env": {"FOLDER": str(folder)}}
    async with open_world(ready_sqlite_url) as world:
        await world.denizen.organizations.create("First")
        ada, den = await agent_of_another_organization(world, mcp={"files": files})
        with pytest.raises(InvalidInput, match=r"mcp\.files starts a program"):
            await world.run()
        [status] = await shown(world, den)
        assert status == (
            "Ada cannot start here: mcp.files starts a program, which this server does not allow to your organization "
            "(its operator can list it in `organizations.programs`). "
            "Correct the settings of Ada; it then answers by itself."
        )
        assert list(folder.iterdir()) == [], "the program was started"
        [unable] = [each.unable for each in await world.denizen.agents.check(ada.entity.organization_id)]
        assert unable is not None
        assert unable.cause == "definition"
        model = world.model(ada)
    async with open_world(ready_sqlite_url, host_access=HostAccess(programs=(COMMAND,)), clock=world.clock) as allowed:
        allowed.denizen.models.register(ada.definition.model, model)
        await allowed.run()
        assert (await allowed.transcript(den))[-1] == "Ada: Five."
        assert await shown(allowed, den) == []
        assert list(folder.iterdir()) != []


async def test_organizations_do_not_share_a_program(ready_sqlite_url: str, tmp_path: Path) -> None:
    """It may keep what it is told in memory: each organization has a process of its own."""
    folder = tmp_path / "of the program"
    folder.mkdir()
    files = {"files": {**FILES, "env": {"FOLDER": str(folder)}}}
    async with open_world(ready_sqlite_url, host_access=HostAccess(programs=(COMMAND,))) as world:
        for name in ("First", "Second"):
            home = await world.denizen.organizations.create(name)
            for handle in (f"{name}-a", f"{name}-b"):
                ada = await world.agent(handle, "Saw it.", mcp=files, organization=home)
                await world.denizen.agents.trigger(ada, "Test")
        await world.run()
        assert len(set((folder / "started").read_text().split())) == 2


@pytest.mark.parametrize(
    ("fields", "setting"),
    [
        ({"mcp": {"far": {"url": "http://127.0.0.1:9/", "allow_private": ["127.0.0.1"]}}}, "private_hosts"),
        ({"tools": ["reboot"]}, "tools"),
        ({"cycle": {"prepare_step": "careful"}}, "functions"),
    ],
    ids=["private address", "Python tool", "Python function"],
)
async def test_nothing_else_of_the_host_is_reached(small_world: World, fields: dict[str, Any], setting: str) -> None:
    await small_world.denizen.agents.create("Rex", model=scripted(), tools=[reboot])
    _, den = await agent_of_another_organization(small_world, **fields)
    with pytest.raises(InvalidInput, match="does not allow to your organization"):
        await small_world.run()
    [status] = await shown(small_world, den)
    assert f"list it in `organizations.{setting}`" in status


@pytest.mark.parametrize(
    ("entry", "listed", "covered"),
    [
        ("wiki.lan", ["wiki.lan"], True),
        ("WIKI.lan.", ["wiki.lan"], True),
        ("wiki.lan:80", ["wiki.lan"], True),
        ("wiki.lan:80", ["wiki.lan:80"], True),
        ("wiki.lan:81", ["wiki.lan:80"], False),
        ("wiki.lan", ["wiki.lan:80"], False),
        ("a.wiki.lan", ["wiki.lan"], False),
        ("::1", ["[::1]"], True),
        ("[::1]:80", ["::1"], True),
        ("[::1]:80", ["[::1]:80"], True),
        ("::1", ["[::1]:80"], False),
        ("wiki.lan", [], False),
    ],
)
def test_a_listed_host_covers_itself_and_its_ports(entry: str, listed: list[str], covered: bool) -> None:
    assert is_listed(entry, listed) is covered


@pytest.mark.parametrize(
    ("text", "variables", "command"),
    [
        ("mcp-files --root /srv", set(), ("mcp-files", "--root", "/srv")),
        ("TOKEN= MODE= npx -y 'a b'", {"TOKEN", "MODE"}, ("npx", "-y", "a b")),
        ("tool KEY= x", set(), ("tool", "KEY=", "x")),
        ("TOKEN=value tool", set(), ("TOKEN=value", "tool")),
    ],
)
def test_a_program_is_written_as_in_a_shell(text: str, variables: set[str], command: tuple[str, ...]) -> None:
    assert program_of(text) == (variables, command)


@pytest.mark.parametrize("text", ["", "TOKEN=", "tool 'open"])
def test_what_is_no_command_is_refused_at_the_start(text: str, tmp_path: Path) -> None:
    (tmp_path / "denizen.toml").write_text(f"[organizations]\nprograms = [{json.dumps(text)}]\n")
    with pytest.raises(SettingsError, match=r"organizations\.programs"):
        load(environ={"DENIZEN_HOME": str(tmp_path)}, folder=tmp_path)


def test_settings_reach_the_policy(tmp_path: Path) -> None:
    said = '[organizations]\nprograms = ["TOKEN= tool"]\nprivate_hosts = ["Wiki.lan"]\ntools = ["weather"]\n'
    said += 'functions = ["careful"]\n'
    (tmp_path / "denizen.toml").write_text(said)
    settings = load(environ={"DENIZEN_HOME": str(tmp_path)}, folder=tmp_path).settings
    assert host_access(settings) == HostAccess(("TOKEN= tool",), ("wiki.lan",), ("weather",), ("careful",))


async def test_models_of_python_programs_are_not_reached_through_presets_or_conversations(tmp_path: Path) -> None:
    """There, too, people of any organization name models. What a program gave to an agent of theirs stays theirs."""
    async with open_world("sqlite://", presets=tmp_path / "none.json", memory=MemoryOptions()) as world:
        denizen = world.denizen
        first = await denizen.organizations.create("First")
        theirs = forever(lambda messages, info: "{}")
        rex = await denizen.agents.create("Rex", model=theirs)
        other = await denizen.organizations.create("Other")
        eve = await world.person("Eve", organization=other)
        ada = await denizen.agents.create("Ada", model=scripted(*[reply("Yes."), "Done."] * 12), organization=other)
        den = await world.space("Den", eve, ada, organization=other)
        profile = {"modelId": rex.definition.model, "tailTurnsToKeep": 0, "minTurnsToSummarize": 1}
        document: dict[str, Any] = {
            "presets": [{"id": "x"}],
            "memoryCompaction": {"defaultProfile": "own", "profiles": {"own": profile}},
        }
        await denizen.organizations.change_presets(document, organization=other)
        await world.say(eve, "Hello.", den)
        await world.run()
        assert theirs.requests == [], "the model of another organization was asked"
        with pytest.raises(ModelUnknown, match="Your organization has no model"):
            await denizen.equipment().model_for(ada, rex.definition.model)
        assert (await denizen.equipment().model_for(ada, ada.definition.model))[0] == ada.definition.model
        mia = await denizen.agents.create("Mia", model=scripted(), organization=first)
        assert (await denizen.equipment().model_for(mia, rex.definition.model))[0] == rex.definition.model
