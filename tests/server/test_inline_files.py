"""Files inside requests: as data URLs in JSON, as parts of OpenAI's messages, as forms of webhooks."""

from __future__ import annotations

import base64
import random
from collections.abc import AsyncGenerator
from typing import Any

import openai
import pytest

from denizen import call, reply
from denizen.access.signatures import generic_signature
from denizen.access.vault import new_key
from denizen.clock import SECOND
from denizen.errors import InvalidInput, NotFound
from denizen.files.cleanup import tidy
from denizen.files.storing import CHUNK_BYTES, FileLimits
from denizen.server.inline_files import InlineFile, file_in
from denizen.spaces.directory import Entity
from tests.server.conftest import House, served
from tests.server.test_openai import client
from tests.server.test_triggers import tell
from tests.server.test_webhooks import make, send
from tests.world import as_text, open_world

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(1000)
LONG = random.Random(1).randbytes(2 * CHUNK_BYTES + 77)


def data_url(data: bytes, media_type: str = "image/png", name: str = "") -> str:
    named = f";name={name}" if name else ""
    return f"data:{media_type}{named};base64,{base64.b64encode(data).decode()}"


@pytest.fixture
async def secret_house(ready_url: str) -> AsyncGenerator[House]:
    async with open_world(ready_url, secret_key=new_key()) as world, served(world) as house:
        yield house


async def attached_in(house: House, space_id: str, who: Entity) -> list[tuple[str, str, bytes]]:
    """The files of all messages of a space: name, type and bytes."""
    told = (await house.call("GET", f"/api/spaces/{space_id}/messages", who)).json()["messages"]
    files = [each for message in told for each in message["files"]]
    return [
        (each["name"], each["media_type"], (await house.call("GET", f"/api/files/{each['id']}/content", who)).content)
        for each in files
    ]


async def test_parts_of_a_completion_become_files_of_the_message(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    await world.agent("Ada", reply("A picture."), "Told Noor.")
    uploaded = await house.call("POST", "/api/files", noor, files={"file": ("notes.txt", b"Buy milk.")})
    parts: Any = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": data_url(LONG)}},
        {"type": "file", "file": {"filename": "plan.pdf", "file_data": data_url(b"%PDF-1.7", "application/pdf")}},
        {"type": "input_audio", "input_audio": {"data": base64.b64encode(b"RIFF").decode(), "format": "wav"}},
        {"type": "file", "file": {"file_id": uploaded.json()["id"]}},
    ]
    async with client(house, noor) as noors, world.denizen.living():
        answer = await noors.chat.completions.create(model="ada", messages=[{"role": "user", "content": parts}])
    assert answer.choices[0].message.content == "A picture."
    about: Any = answer
    assert await attached_in(house, about.denizen["space_id"], noor) == [
        ("file.png", "image/png", LONG),
        ("plan.pdf", "application/pdf", b"%PDF-1.7"),
        ("audio.wav", "audio/wav", b"RIFF"),
        ("notes.txt", "text/plain", b"Buy milk."),
    ]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}, "does not fetch addresses"),
        ({"type": "image_url", "image_url": {"url": "http://169.254.169.254/"}}, "does not fetch addresses"),
        ({"type": "image_url", "image_url": {"url": "data:image/png,abc"}}, ";base64,"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,****"}}, "not encoded as base64"),
        ({"type": "image_url"}, "'image_url' cannot be read here"),
        ({"type": "video", "video": {}}, "'video' cannot be read here"),
        ({"type": "file", "file": {"file_id": "nothing"}}, "nothing"),
    ],
)
async def test_parts_that_cannot_be_read_are_refused_before_anything_is_said(
    house: House, part: Any, said: str
) -> None:
    noor = await house.world.person("Noor")
    ada = await house.world.agent("Ada")
    async with client(house, noor) as noors:
        with pytest.raises(openai.APIStatusError) as refused:
            await noors.chat.completions.create(model="ada", messages=[{"role": "user", "content": [part]}])
    assert refused.value.status_code in (400, 404)
    assert said in str(refused.value)
    assert await house.world.denizen.minds.inbox(ada) == []


async def test_a_panel_as_a_model_takes_files(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    board = await world.denizen.panels.create("Board", [noor], advisors=["Kai"], model="demo")
    parts: Any = [{"type": "text", "text": "Well?"}, {"type": "image_url", "image_url": {"url": data_url(PICTURE)}}]
    async with client(house, noor) as noors, world.denizen.living():
        await noors.chat.completions.create(model=f"panel:{board.id}", messages=[{"role": "user", "content": parts}])
    assert await attached_in(house, board.id, noor) == [("file.png", "image/png", PICTURE)]


async def test_a_chat_request_has_files_and_asking_again_stores_them_once(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    await world.agent("Ada", reply("Nice."), "Told Noor.")
    said = {"agent": "@ada", "text": "", "files": [data_url(PICTURE, name="cat%20photo.png"), data_url(LONG)]}
    async with world.denizen.living():
        answers = [
            await house.call("POST", "/api/chat", noor, json=said, headers={"Idempotency-Key": "k1"}) for _ in range(2)
        ]
    assert [each.status_code for each in answers] == [200, 200], answers[0].text
    assert answers[0].json()["message_id"] == answers[1].json()["message_id"]
    space_id = answers[0].json()["space_id"]
    names = [(name, len(data)) for name, _, data in await attached_in(house, space_id, noor)]
    assert names == [("cat photo.png", len(PICTURE)), ("file.png", len(LONG))]


async def test_a_file_that_is_too_large_is_refused_in_plain_words(ready_url: str) -> None:
    async with open_world(ready_url, file_limits=FileLimits(file_bytes=500)) as world, served(world) as house:
        noor = await world.person("Noor")
        await world.agent("Ada")
        said = {"agent": "@ada", "text": "Look", "files": [data_url(PICTURE, name="cat.png")]}
        answer = await house.call("POST", "/api/chat", noor, json=said)
    assert (answer.status_code, answer.json()["detail"]) == (
        413,
        "cat.png is too large (1 kB). Choose a file of at most 500 bytes.",
    )


async def test_what_happened_comes_with_files_that_only_the_agent_has(house: House) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada", "Looked into it.")
    for _ in range(2):
        answer = await tell(
            house, noor, ada, key="k", text="The build failed.", files=[data_url(b"line 1", "text/plain", "log.txt")]
        )
        assert answer.status_code == 202, answer.text
    other = await tell(house, noor, ada, key="k", text="Something else.")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")

    [event] = await world.denizen.minds.inbox(ada)
    [file] = event.files
    assert (file.name, file.media_type, file.size) == ("log.txt", "text/plain", 6)
    for who in (noor, sam):
        assert (await house.call("GET", f"/api/files/{file.id}", who)).status_code == 404
    await world.run()
    assert f'→ file "log.txt" (text/plain, 6 bytes): read_entry("file:{file.id}")' in await world.newest_inbox(ada)


async def test_an_agent_keeps_such_a_file_until_it_is_deleted(house: House) -> None:
    world = house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada", "Looked into it.")
    await tell(house, noor, ada, files=[data_url(b"line 1", "text/plain", "log.txt")])
    [file] = (await world.denizen.minds.inbox(ada))[0].files
    world.clock.advance(3 * 86_400)
    await tidy(world.denizen.db)
    assert await world.denizen.files.read(file.id) == b"line 1"
    await world.denizen.agents.delete(ada)
    with pytest.raises(NotFound):
        await world.denizen.files.read(file.id)


async def test_a_form_sent_to_a_webhook_has_files(secret_house: House) -> None:
    house = secret_house
    world = house.world
    await world.person("Noor")
    ada = await world.agent("Ada", call("skip", reason="seen"))
    webhook, secret = await make(house, scheme="generic")
    form = (
        b'--XyZ\r\nContent-Disposition: form-data; name="type"\r\n\r\nscan\r\n'
        b'--XyZ\r\nContent-Disposition: form-data; name="file"; filename="scan.bin"\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n" + LONG + b"\r\n--XyZ--\r\n"
    )
    signature = generic_signature(secret, world.clock.now() // SECOND, form)
    for _ in range(2):
        sent = await send(
            house,
            webhook["path"],
            form,
            Content_Type="multipart/form-data; boundary=XyZ",
            Denizen_Signature=signature,
        )
        assert sent.status_code == 200, sent.text
    [event] = await world.denizen.minds.inbox(ada)
    assert (event.text, event.payload["data"]) == ("scan", {"type": "scan"})
    assert [(each.name, each.size) for each in event.files] == [("scan.bin", len(LONG))]
    assert await world.denizen.files.read(event.files[0].id) == LONG


def test_a_data_url_is_parsed() -> None:
    file = file_in("files[0]", "data:text/plain;charset=utf-8;name=a%20b.txt;base64,SGk=")
    assert isinstance(file, InlineFile)
    assert (file, file.size) == (InlineFile("a b.txt", "text/plain", "SGk="), 2)
    assert file_in("files[0]", "0190-id") == "0190-id"
    with pytest.raises(InvalidInput, match="empty"):
        file_in("files[0]", "data:text/plain;base64,")


async def test_an_agent_reads_what_came_with_a_completion(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("Read it."), "Told Noor.")
    parts: Any = [{"type": "file", "file": {"filename": "menu.txt", "file_data": data_url(b"Soup", "text/plain")}}]
    async with client(house, noor) as noors, world.denizen.living():
        await noors.chat.completions.create(model="ada", messages=[{"role": "user", "content": parts}])
    assert '→ file "menu.txt" (text/plain, 4 bytes)' in as_text(world.model(ada).requests[0][-1])
