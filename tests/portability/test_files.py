"""Files of exported spaces and agents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from denizen import ToolFile, call, reply, tool
from denizen.errors import ImportInvalid, NotFound, QuotaExceeded
from denizen.files.cleanup import tidy
from denizen.files.storing import CHUNK_BYTES, FileLimits
from denizen.storage.database import statement
from denizen.storage.schema import chunks
from tests.portability.files import parsed, written
from tests.world import World, open_world

_CHUNKS = statement(select(chunks.c.n))
LONG = bytes(range(256)) * (CHUNK_BYTES // 128) + b"!"


async def exported_space(world: World, path: Path) -> Path:
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor)
    menu = await world.denizen.files.upload(noor, b"Soup, then pie.", name="menu.txt")
    data = await world.denizen.files.upload(noor, LONG, name="data.bin")
    await world.denizen.spaces.post(hall, noor, "The menu.", files=[menu, data])
    await world.denizen.spaces.post(hall, noor, "Again.", files=[menu])
    return await written(world.denizen.spaces.export(hall), path)


async def files_of(world: World, space_id: Any) -> list[list[tuple[str, str, bytes]]]:
    return [
        [(each.name, each.media_type, await world.denizen.files.read(each.id)) for each in message.files]
        for message in await world.denizen.spaces.messages(space_id)
    ]


async def test_a_space_takes_its_files_along(world: World, tmp_path: Path) -> None:
    """Out of a house, into another, and out again: the same file; and into the first one once more."""
    file = await exported_space(world, tmp_path / "hall.jsonl")
    chunks = [line for line in parsed(file) if line.get("row") == "chunk"]
    assert len(chunks) == 1 + 3, "the same content stands there once"
    menu, data = ("menu.txt", "text/plain", b"Soup, then pie."), ("data.bin", "application/octet-stream", LONG)
    async with open_world("sqlite://") as other:
        made = await other.denizen.organizations.import_file(file)
        assert await files_of(other, made.id) == [[menu, data], [menu]]
        again = await written(other.denizen.spaces.export(made.id), tmp_path / "again.jsonl")  # pyright: ignore[reportArgumentType]
        assert [line for line in parsed(again) if line.get("row") in ("file", "file_page", "chunk")] == [
            line for line in parsed(file) if line.get("row") in ("file", "file_page", "chunk")
        ]
        await tidy(other.denizen.db)
        assert await files_of(other, made.id) == [[menu, data], [menu]]
    second = await world.denizen.organizations.import_file(file, name="Second hall")
    assert await files_of(world, second.id) == [[menu, data], [menu]]
    assert await world.denizen.files.used() == len(LONG) + 15, "stored once within the organization"


def without_last_chunk(lines: list[dict[str, Any]]) -> None:
    last = max(at for at, each in enumerate(lines) if each.get("row") == "chunk")
    del lines[last]


def other_bytes(lines: list[dict[str, Any]]) -> None:
    chunk = next(each for each in lines if each.get("row") == "chunk")
    chunk["data"] = "U291cCwgdGhlbiBwaSE="


def unknown_message(lines: list[dict[str, Any]]) -> None:
    next(each for each in lines if each.get("row") == "file")["message_id"] = "nobody"


@pytest.mark.parametrize("change", [without_last_chunk, other_bytes, unknown_message])
async def test_a_damaged_file_is_refused_and_leaves_nothing(
    world: World, tmp_path: Path, change: Callable[[list[dict[str, Any]]], None]
) -> None:
    file = await exported_space(world, tmp_path / "hall.jsonl")
    lines = parsed(file)
    change(lines)
    lines[-1]["lines"] = len(lines)
    (tmp_path / "bad.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    async with open_world("sqlite://") as other:
        with pytest.raises(ImportInvalid):
            await other.denizen.organizations.import_file(tmp_path / "bad.jsonl")
        assert await other.denizen.files.used() == 0


async def test_an_import_that_fails_late_leaves_no_bytes(world: World, tmp_path: Path, monkeypatch: Any) -> None:
    """The contents are stored before the transaction: those that no file has are deleted after a day."""
    file = await exported_space(world, tmp_path / "hall.jsonl")
    async with open_world("sqlite://") as other:

        def fail(*_: object, **__: object) -> None:
            raise NotFound("space", "gone")

        monkeypatch.setattr("denizen.portability.importing.import_space", fail)
        with pytest.raises(NotFound):
            await other.denizen.organizations.import_file(file)
        assert await left(other) > 0
        other.clock.advance(86_400 + 1)
        await tidy(other.denizen.db)
        assert await left(other) == 0


async def left(world: World) -> int:
    return await world.denizen.db.blobs.read(lambda tx: len(tx.all(_CHUNKS)))


async def test_an_import_needs_room(world: World, tmp_path: Path) -> None:
    file = await exported_space(world, tmp_path / "hall.jsonl")
    async with open_world("sqlite://", file_limits=FileLimits(organization_bytes=100)) as other:
        with pytest.raises(QuotaExceeded, match="The files of this import have"):
            await other.denizen.organizations.import_file(file)


@tool
def draw_chart() -> ToolFile:
    """Draw a chart."""
    return ToolFile(b"PNG", "chart.png")


async def test_an_agent_takes_along_what_it_got_from_tools_and_services(world: World, tmp_path: Path) -> None:
    noor = await world.person("Noor")
    ada = await world.agent(
        "Ada", call("draw_chart"), reply("Drew it."), "Drew it.", call("skip"), "Seen.", tools=[draw_chart]
    )
    hall = await world.space("Hall", noor, ada)
    await world.denizen.spaces.post(hall, noor, "Draw.")
    await world.run()
    scan = await world.denizen.files.upload(ada, b"scan", name="scan.txt")
    await world.denizen.agents.trigger(ada, "scanner", text="A page.", files=[scan])
    file = await written(world.denizen.agents.export(ada), tmp_path / "ada.jsonl")
    names = [line["name"] for line in parsed(file) if line.get("row") == "file"]
    assert sorted(names) == ["chart.png", "scan.txt"]
    for name in ("scan.txt", "chart.png"):
        assert len([line for line in parsed(file) if line.get("row") == "file" and line["name"] == name]) == 1
    async with open_world("sqlite://") as other:
        made = await other.denizen.organizations.import_file(file)
        old = await world.denizen.files.get(scan.id, reader=ada)
        new = await other.denizen.files.get(scan.id)
        assert (new.agent_id, new.name, new.digest) == (made.id, old.name, old.digest)
        assert await other.denizen.files.read(scan.id) == b"scan"
    second = await world.denizen.organizations.import_file(file, handle="bea")
    exported = await written(world.denizen.agents.export(second.id), tmp_path / "bea.jsonl")  # pyright: ignore[reportArgumentType]
    ids = {line["id"] for line in parsed(exported) if line.get("row") == "file"}
    assert len(ids) == 2
    assert ids.isdisjoint(line["id"] for line in parsed(file) if line.get("row") == "file")
