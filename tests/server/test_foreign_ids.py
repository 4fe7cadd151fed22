"""An import cannot reach into another organization, whatever ids stand in the file.

Ids of another organization, in which every name and text is a canary, are put into every field of every kind of line of
real exports. What can be imported is imported, and then everything that the importing organization can read is read.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import pytest
from sqlalchemy import insert, select

from denizen import reply
from denizen.access import roles, tokens
from denizen.consciousness import layers, log
from denizen.errors import DenizenError, ImportInvalid
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId
from denizen.portability import lines as kinds_of_lines
from denizen.portability.agent_import import check_agent
from denizen.portability.reading import ExportFile
from denizen.portability.space_import import check_space
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.storage import schema
from denizen.storage.database import Tx, statement
from denizen.storage.schema import cycles, toolsets
from tests.databases import with_tables
from tests.memory.conftest import remembering
from tests.portability.files import Lines, parsed, written
from tests.portability.test_agents import full_life
from tests.portability.test_minds import felt
from tests.portability.test_panels import asked, moved
from tests.server import small_town
from tests.server.conftest import Built, House, visited
from tests.server.small_town import Part, Town
from tests.world import open_world

CANARY = "elsewhereonly"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
FOREIGN = ("space", "agent", "entity", "message", "event", "panel", "advisor", "round", "memory", "toolset")
PANELS = ("board", "minds")


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lines]:
    """Real exports from other servers: between them they have every kind of line."""
    folder = tmp_path_factory.mktemp("exports")

    async def export(name: str) -> Path:
        async with open_world(with_tables(folder / f"{name}.db"), memory=remembering()) as world:
            if name == "life":
                agent = (await full_life(world)).ada
                await world.denizen.db.write(_what_long_lives_have, agent.id)
                lines = world.denizen.agents.export(agent)
            elif name == "ada":
                lines = world.denizen.agents.export((await felt(world)).ada)
            elif name == "kitchen":
                past = await felt(world)
                menu = await world.denizen.files.upload(past.noor, b"Soup.", name="menu.txt")
                await world.denizen.spaces.post(past.kitchen, past.noor, "The menu.", files=[menu])
                lines = world.denizen.spaces.export(past.kitchen)
            else:
                panel = (await (asked(world) if name == "board" else moved(world)))[1]
                lines = world.denizen.spaces.export(panel.space)
            return await written(lines, folder / f"{name}.jsonl")

    return {name: parsed(asyncio.run(export(name))) for name in ("life", "ada", "kitchen", *PANELS)}


def _what_long_lives_have(tx: Tx, agent_id: AgentId) -> None:
    """A text that is too long for the window, and what ten cycles came to."""
    row = tx.one(statement(select(cycles.c.id).where(cycles.c.agent_id == agent_id, cycles.c.number == 1)))
    assert row is not None
    log.keep_long_text(tx, agent_id, row[0], f"{row[0]}:0:0", "A long text.")
    digest = layers.dump(layers.digest(layers.LayerCycle(1, tx.now, "Said hello."), "UTC"))
    values = {"agent_id": agent_id, "level": 1, "first": 1, "digest": digest, "created_at": tx.now}
    tx.run(statement(insert(schema.layers)), **values)


def test_the_exports_have_every_kind_of_line(exports: dict[str, Lines]) -> None:
    known = {str(each.model_fields["row"].default) for each in get_args(kinds_of_lines.Line)}
    assert {line["row"] for lines in exports.values() for line in lines[1:]} == known


async def test_an_import_does_not_link_to_private_spaces_that_the_importer_is_not_in(
    house: House, tmp_path: Path
) -> None:
    """The ids of a private space and of a message in it, in a file of one's own, show nothing of it."""
    world = house.world
    noor, mia = await world.person("Noor"), await world.person("Mia")
    ada = await world.agent("Ada", *[reply("Yes."), "Answered Noor."] * 2)
    kitchen = await world.space("Kitchen", noor, ada)
    asked = await world.say(noor, "Are you there?", kitchen)
    private = await world.denizen.spaces.create(f"{CANARY} club", [mia], private=True)
    secret = await world.denizen.spaces.post(private, mia, f"The {CANARY} word is swordfish.")
    await world.run()
    file = await written(world.denizen.agents.export(ada), tmp_path / "ada.jsonl")
    lines = [json.dumps(each) for each in parsed(file)]
    # Where a cycle comes from stays, or all of it would be hidden from whoever is not in the private space.
    lines = [each if '"cycle_space"' in each else each.replace(kitchen.id, private.id) for each in lines]
    forged = "\n".join(lines).replace(asked.id, secret.id) + "\n"

    async def import_as(who: Entity, handle: str) -> str:
        """What this person reads of an agent that they have imported."""
        path = f"/api/import?handle={handle}"
        made = await house.call("POST", path, who, content=forged, headers={"Content-Type": "application/jsonl"})
        assert made.status_code == 201, made.text
        pages = ("", "/log", "/cycles", "/inbox", "/window", "/recall?query=word+swordfish", "/export", "/stances")
        read = [await house.call("GET", f"/api/agents/{made.json()['id']}{page}", who) for page in pages]
        return "\n".join([made.text, *(each.text for each in read)])

    read = await import_as(noor, "stranger")
    assert CANARY not in read
    assert "swordfish" not in read
    assert "Are you there?" in read, "the words of the file itself are kept"
    await world.denizen.db.write(roles.set_role, mia.id, "owner")
    assert "swordfish" in await import_as(mia, "friend"), "a member of the space can link to it"


# Where something can stand in a file

Path_ = tuple[str | int, ...]


def leaves(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every text and null in a line, also in JSON that is kept as a text."""
    inner = as_json(value)
    if inner is not None:
        yield from leaves(inner, (*path, "json"))
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, (*path, key))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from leaves(each, (*path, at))
    elif value is None or isinstance(value, str):
        yield path, value


def as_json(value: Any) -> Any:
    if not isinstance(value, str) or value[:1] not in "{[":
        return None
    try:
        return json.loads(value)
    except ValueError:
        return None


def put(value: Any, path: Path_, new: str) -> Any:
    """The value with something else at that path; unchanged where it has no such path."""
    if not path:
        return new
    first, *rest = path
    if first == "json":
        inner = as_json(value)
        return value if inner is None else json.dumps(put(inner, tuple(rest), new))
    if isinstance(value, dict) and first in value:
        return {**value, first: put(value[first], tuple(rest), new)}
    if isinstance(value, list) and isinstance(first, int) and first < len(value):
        return [put(each, tuple(rest), new) if at == first else each for at, each in enumerate(value)]
    return value


def is_like_a_reference(path: Path_, value: Any) -> bool:
    """Whether this may name something by its id. The own id of a line does not: with that, all that names it would mean
    the line."""
    if path == ("id",):
        return False
    named = str(path[-1]).endswith(("id", "_by", "_to", "voice", "digest"))
    return value in (None, "") or named or re.fullmatch(r"[\w:-]{16,}", str(value)) is not None


def places(lines: Lines, *, only_references: bool) -> list[tuple[str, Path_]]:
    """Each path that a kind of line has, once."""
    found = {
        (line["row"], path): None
        for line in lines[1:-1]
        for path, value in leaves(line)
        if path != ("row",) and (not only_references or is_like_a_reference(path, value))
    }
    return list(found)


def with_id(lines: Lines, place: tuple[str, Path_], id: str, *, everywhere: bool) -> Lines:
    """The lines with the id at that place: of all lines of that kind, or of the first that has it."""
    row, path = place
    changed, done = list[dict[str, Any]](), False
    for line in lines:
        new = line if line.get("row") != row or (done and not everywhere) else put(line, path, id)
        done = done or new != line
        changed.append(new)
    return changed


def renamed(lines: Lines) -> Lines:
    """The same with ids that nobody has."""
    text = json.dumps(lines)
    for old in dict.fromkeys(UUID.findall(text)):
        text = text.replace(old, str(uuid4()))
    return json.loads(text)


@dataclass
class Fuzzing:
    folder: Path
    check: Callable[[ExportFile], object]

    def is_accepted(self, lines: Lines) -> bool:
        try:
            self.check(ExportFile(self.file(lines)))
        except ImportInvalid:
            return False
        return True

    def file(self, lines: Lines) -> Path:
        path = self.folder / "fuzzed.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in lines))
        return path

    def in_fields(self, lines: Lines, *, only_references: bool) -> list[tuple[tuple[str, Path_], bool]]:
        """The places where an id is accepted together, each with whether it is in all lines of its kind."""
        sample, kept = str(uuid4()), list[tuple[tuple[str, Path_], bool]]()
        for place in places(lines, only_references=only_references):
            for everywhere in (True, False):
                changed = with_id(lines, place, sample, everywhere=everywhere)
                if changed != lines and self.is_accepted(changed):
                    lines = changed
                    kept.append((place, everywhere))
                    break
        return kept


# What the importing organization can read


async def everything(house: House, town: Town, made: dict[str, Any], cycles: int) -> dict[str, str]:
    """By what was asked, everything that can be read of what was imported, and of what was there before."""
    denizen, token = house.world.denizen, {"Authorization": f"Bearer {town.secrets['owner']}"}
    kind, id = made["kind"], made["id"]
    owner = (await denizen.db.read(_whose, town.secrets["owner"])).entity_id
    told: dict[str, str] = {}
    part = Part({"agent": id, "message": "none"} if kind == "agent" else {"space": id, "panel": id})
    if kind == "space":
        await denizen.spaces.join(SpaceId(id), EntityId(owner))
        part.ids["message"] = (await denizen.spaces.messages(SpaceId(id)))[0].id
    for method, path, operation in small_town.operations(small_town.description()):
        streams = any("text/event-stream" in each.get("content", {}) for each in operation["responses"].values())
        if method != "GET" or streams:
            continue
        try:
            filled = small_town.filled(path, part)
        except KeyError:
            continue
        query = {**small_town.needed(operation), **({"q": "tell me about number"} if path.endswith("recall") else {})}
        answer = await house.client.get(filled, headers=token, params=query)
        assert answer.status_code < 500, filled
        told[filled] = answer.text
    told |= await (_of_agent(house, AgentId(id), cycles) if kind == "agent" else _of_space(house, SpaceId(id)))
    return told


def _whose(tx: Tx, secret: str) -> tokens.Token:
    found = tokens.find(tx, secret)
    assert found is not None
    return found


async def _of_agent(house: House, id: AgentId, cycles: int) -> dict[str, str]:
    denizen = house.world.denizen
    told = {"inspection": repr(await denizen.minds.inspect(id)), "log": repr(await denizen.minds.log(id))}
    told["cycles"] = repr(await denizen.minds.cycles(id))
    for number in range(1, cycles + 1):
        try:
            told[f"replay {number}"] = repr(await denizen.minds.replay(id, number))
        except DenizenError as error:
            told[f"replay {number}"] = str(error)
    return told


async def _of_space(house: House, id: SpaceId) -> dict[str, str]:
    denizen = house.world.denizen
    told = {"messages": repr(await denizen.spaces.messages(id)), "members": repr(await denizen.spaces.members(id))}
    space = await denizen.spaces.get(id)
    if space.kind == "panel":
        for each in await denizen.rounds.list(id):
            for said in each.spoken:
                told[f"context of {said.voice} in {each.id}"] = repr(await denizen.rounds.context(each, said.voice))
        told["advisors"] = repr(await denizen.advisors.list(id))
    return told


def foreign_toolset(tx: Tx) -> str:
    """Tools of the other organization, under the digest by which its requests name them."""
    tools = json.dumps([{"name": "x", "description": CANARY, "parameters": {"type": "object"}}])
    tx.run(statement(insert(toolsets)), digest="f" * 32, tools=tools)
    return "f" * 32


@pytest.mark.parametrize("name", ["life", "ada", "kitchen", *PANELS])
async def test_foreign_ids_in_an_import_show_nothing(
    exports: dict[str, Lines], built: Built, tmp_path: Path, name: str
) -> None:
    lines = exports[name]
    fuzzing = Fuzzing(tmp_path, check_agent if lines[0]["kind"] == "agent" else check_space)
    # The long life is only there for kinds of lines that the other has not.
    references = fuzzing.in_fields(lines, only_references=True)
    all_fields = references if name == "life" else fuzzing.in_fields(lines, only_references=False)
    assert len(references) > 5
    async with visited(built, tmp_path) as house:
        town = built.town
        foreign = {**town.elsewhere.ids, "toolset": await house.world.denizen.db.write(foreign_toolset)}
        for kind in ("space", "message", "entity", "toolset") if name == "life" else FOREIGN:
            for chosen in (references, all_fields) if kind in ("space", "message") else (references,):
                fuzzed = renamed(lines)
                for place, everywhere in chosen:
                    fuzzed = with_id(fuzzed, place, foreign[kind], everywhere=everywhere)
                await import_and_look(house, town, fuzzing.file(fuzzed))
        # And what the file speaks of in several places is something of the other organization in all of them.
        for old, kind in declared(lines).items():
            fuzzed = exchanged(lines, old, foreign[kind])
            assert fuzzing.is_accepted(fuzzed), (kind, old)
            await import_and_look(house, town, fuzzing.file(fuzzed))


async def test_a_space_that_another_organization_imports_later_stays_its_own(
    exports: dict[str, Lines], built: Built, tmp_path: Path
) -> None:
    """Home has an agent whose file names spaces that are nowhere yet. Elsewhere imports one of that id."""
    async with visited(built, tmp_path) as house:
        fuzzing = Fuzzing(tmp_path, check_agent)
        theirs = await house.world.denizen.db.read(_home_of, built.town.elsewhere.ids["agent"])
        for row, path in (("event", ("space_id",)), ("passage", ("space_id",)), ("cycle", ("active_space_id",))):
            named = with_id(renamed(exports["ada"]), (row, path), nowhere := str(uuid4()), everywhere=True)
            made = await import_and_look(house, built.town, fuzzing.file(named))
            space = [*exports["kitchen"]]
            space[1] = {**space[1], "name": f"{CANARY} {row}"}
            space = exchanged(space, space[1]["id"], nowhere)
            imported = await house.world.denizen.organizations.import_file(fuzzing.file(space), organization=theirs)
            assert imported.name == f"{CANARY} {row}"
            for what, text in (await everything(house, built.town, made, 1)).items():
                assert CANARY not in text.lower(), (row, what)


def _home_of(tx: Tx, agent_id: str) -> OrganizationId:
    return directory.get_entity(tx, EntityId(agent_id)).organization_id


def declared(lines: Lines) -> dict[str, str]:
    """Ids of the file, one for each place in which one stands, and what they are of."""
    found: dict[tuple[str, Path_], str] = {}
    for line in lines[1:-1]:
        for path, value in leaves(line):
            if isinstance(value, str) and UUID.fullmatch(value):
                found.setdefault((line["row"], path), value)
    kinds = {value: _kind(row, path) for (row, path), value in found.items()}
    return {value: kind for value, kind in kinds.items() if kind is not None}


def _kind(row: str, path: Path_) -> str | None:
    """What an id at this place is of."""
    names = [str(each) for each in path]
    by_name = {
        "space_id": "space",
        "user_id": "entity",
        "person_id": "entity",
        "sender_id": "entity",
        "said": "message",
    }
    if names == ["id"]:
        return {"place": "space", "plan": None, "event": "event"}.get(row, row)
    return next((kind for name, kind in by_name.items() if name in names[-2:]), None)


def exchanged(lines: Lines, old: str, new: str) -> Lines:
    """The lines with another id in the place of this one, and ids that nobody has in the place of all others."""
    return json.loads(json.dumps(renamed(json.loads(json.dumps(lines).replace(old, "OLD")))).replace("OLD", new))


async def import_and_look(house: House, town: Town, file: Path) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {town.secrets['owner']}", "Content-Type": "application/jsonl"}
    content = await asyncio.to_thread(file.read_bytes)
    query = {"handle": f"a-{uuid4()}"} if b'"kind": "agent"' in content.partition(b"\n")[0] else {}
    answer = await house.client.post("/api/import", headers=headers, params=query, content=content)
    assert CANARY not in answer.text.lower()
    assert answer.status_code == 201, answer.text
    made = answer.json()
    for what, text in (await everything(house, town, made, min(made["counts"].get("cycle", 0), 3))).items():
        at = text.lower().find(CANARY)
        assert at < 0, f"{what}: …{text[max(at - 200, 0) : at + 200]}…"
    return made
