"""What models see of pictures."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator

import pytest
from PIL import Image
from pydantic_ai.messages import BinaryContent, ModelMessage, UserPromptPart

from denizen import InvalidInput, NotFound, call, reply, scripted
from denizen.cycles.seeing import Unread, unread_pictures, with_bytes
from denizen.files import extracting
from denizen.files.storing import File
from denizen.inbox import delivery
from denizen.models.catalog import Models
from denizen.models.pictures import Picture, picture_in, picture_tokens, pictures_of, sees
from denizen.models.tokens import estimate_message
from denizen.panel.attached import PICTURE_TOKENS
from denizen.spaces.directory import Entity
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.files import documents
from tests.files.pictures import png
from tests.files.showing import show
from tests.world import World, as_text, open_world

FILE = "0190c9a2-1111-7222-8333-444455556666"


@pytest.fixture
async def world(ready_url: str) -> AsyncIterator[World]:
    async with open_world(ready_url) as world:
        yield world


async def uploaded(world: World, noor: Entity, data: bytes, name: str) -> File:
    """An upload that has been read: how long that takes depends on the machine."""
    file = await world.denizen.files.upload(noor, data, name=name)
    await extracting.read_waiting(world.denizen.db)
    return file


def shown(request: list[ModelMessage]) -> list[BinaryContent]:
    """The pictures in a request."""
    parts = [part for message in request for part in message.parts if isinstance(part, UserPromptPart)]
    return [each for part in parts for each in part.content if isinstance(each, BinaryContent)]


async def test_a_model_that_sees_is_shown_a_picture_scaled_down(world: World) -> None:
    noor = await world.person("Noor")
    photo = await uploaded(world, noor, png(3000, 1500), "photo.png")
    ada = await world.agent("Ada", model=scripted(reply("Teal."), "Told Noor.", sees=True))
    hall = await show(world, noor, ada, "What colour is it?", photo)
    first, second = world.model(ada).requests
    (picture,) = shown(first)
    assert picture.media_type == "image/jpeg"
    assert Image.open(io.BytesIO(picture.data)).size == (1568, 784)
    assert [each.data for each in shown(second)] == [picture.data]
    assert f'[picture "photo.png" 1568x784, file:{photo.id}]' in as_text(first[-1])
    answer = (await world.denizen.spaces.messages(hall))[-1]
    assert answer.outside, "somebody else may have written what it shows"


async def test_a_model_that_does_not_see_is_told_what_there_is(world: World) -> None:
    noor = await world.person("Noor")
    photo = await uploaded(world, noor, png(64, 48), "photo.png")
    ada = await world.agent("Ada", call("read_entry", entry=f"file:{photo.id}"), reply("What is it?"), "Asked Noor.")
    await show(world, noor, ada, "Look!", photo)
    requests = world.model(ada).requests
    assert not any(shown(each) for each in requests)
    assert f'→ file "photo.png" (image/png, {photo.size} bytes)' in as_text(requests[0][-1])
    told = "is a picture, and your model does not see pictures. Ask somebody what it shows."
    assert told in as_text(requests[1][-1])


async def test_a_picture_is_opened_again(world: World) -> None:
    noor = await world.person("Noor")
    photo = await uploaded(world, noor, png(64, 48), "photo.png")
    ada = await world.agent(
        "Ada", model=scripted(call("read_entry", entry=f"file:{photo.id}"), reply("Teal."), "Told Noor.", sees=True)
    )
    await show(world, noor, ada, "Look twice!", photo)
    first, second, _ = world.model(ada).requests
    assert (len(shown(first)), len(shown(second))) == (1, 2)
    assert len(shown(second[-1:])) == 1


async def test_what_is_stored_is_a_line_and_the_request_is_rebuilt_exactly(world: World) -> None:
    noor = await world.person("Noor")
    photo = await uploaded(world, noor, png(64, 48), "photo.png")
    ada = await world.agent("Ada", model=scripted(reply("Teal."), "Told Noor.", sees=True))
    await show(world, noor, ada, "Look!", photo)
    entry = next(each for each in await world.denizen.minds.log(ada) if each.kind == "inbox")
    assert len(entry.encoded) < 2_000
    assert [each.file_id for each in pictures_of(entry.message)] == [photo.id]
    for sent, rebuilt in zip(world.model(ada).requests, await world.denizen.minds.replay(ada, 1), strict=True):
        again = [await with_bytes(world.denizen.db, each) for each in rebuilt.messages]
        assert [_bare(each) for each in again] == [_bare(each) for each in sent]


def _bare(message: ModelMessage) -> list[object]:
    return [getattr(part, "content", None) or getattr(part, "args", None) for part in message.parts]


async def test_another_model_is_asked_with_the_picture_if_it_sees(world: World) -> None:
    noor = await world.person("Noor")
    photo = await uploaded(world, noor, png(64, 48), "photo.png")
    ada = await world.agent("Ada", model=scripted(reply("Teal."), "Told Noor.", sees=True))
    await show(world, noor, ada, "Look!", photo)
    seeing, blind = scripted("Blue.", name="seeing", sees=True), scripted("What?", name="blind")
    world.denizen.models.register("seeing", seeing)
    world.denizen.models.register("blind", blind)
    await world.denizen.minds.rethink(ada, 1, model="seeing", step=0)
    await world.denizen.minds.rethink(ada, 1, model="blind", step=0)
    assert len(shown(seeing.requests[0])) == 1
    assert shown(blind.requests[0]) == []


async def test_at_compaction_a_picture_becomes_a_line(world: World) -> None:
    noor = await world.person("Noor")
    photos = [await uploaded(world, noor, png(1500, 1500, color), f"{color}.png") for color in ("red", "blue")]
    turns = [turn for n in range(3) for turn in (reply(f"Answer {n}."), f"Answered {n}.")]
    window = {"max_tokens": Toolbox(PREBUILT).tokens + 4_400, "inbox_share": 0.45}
    ada = await world.agent("Ada", model=scripted(*turns, sees=True), window=window)
    hall = await world.space("Hall", noor, ada)
    for photo in photos:
        await world.denizen.spaces.post(hall, noor, "Look!", files=[photo])
        await world.run()
    await world.say(noor, "Thanks.", hall)
    await world.run()
    requests = world.model(ada).requests
    assert [len(shown(each)) for each in requests] == [1, 1, 2, 2, 0, 0]
    for photo in photos:
        line = f'[a picture was here: "{photo.name}" 1500x1500; read_entry("file:{photo.id}") shows it]'
        assert any(line in as_text(each) for each in requests[-1])
    for request in requests:
        assert sum(map(estimate_message, request)) + Toolbox(PREBUILT).tokens <= window["max_tokens"]


async def test_a_forgotten_picture_is_gone_from_the_next_request(world: World) -> None:
    noor = await world.person("Noor")
    photo = await uploaded(world, noor, png(64, 48), "photo.png")
    ada = await world.agent("Ada", model=scripted(reply("Teal."), "Told Noor.", reply("Yes?"), "Asked.", sees=True))
    hall = await world.space("Hall", noor, ada)
    message = await world.denizen.spaces.post(hall, noor, "Look!", files=[photo])
    await world.run()
    await world.denizen.spaces.forget_message(message)
    await world.say(noor, "Hello?", hall)
    await world.run()
    assert len(shown(world.model(ada).requests[0])) == 1
    assert shown(world.model(ada).requests[-1]) == []


async def test_a_broken_picture_holds_nobody_up(world: World) -> None:
    noor = await world.person("Noor")
    photo = await uploaded(world, noor, b"\x89PNG nothing", "photo.png")
    ada = await world.agent("Ada", model=scripted(reply("It is broken."), "Told Noor.", sees=True))
    hall = await show(world, noor, ada, "Look!", photo)
    assert await world.transcript(hall) == ["Noor: Look!", "Ada: It is broken."]
    assert shown(world.model(ada).requests[0]) == []


async def test_more_pictures_than_fit_are_named_only(world: World) -> None:
    noor = await world.person("Noor")
    uploads = [
        await uploaded(world, noor, png(1500, 1500, color), f"{color}.png") for color in ("red", "green", "blue")
    ]
    ada = await world.agent(
        "Ada", model=scripted(reply("Colours."), "Told.", sees=True), window={"max_tokens": 40_000, "inbox_share": 0.1}
    )
    hall = await world.space("Hall", noor, ada)
    await world.denizen.spaces.post(hall, noor, "Look!", files=uploads)
    await world.run()
    request = world.model(ada).requests[0]
    assert len(shown(request)) == 2
    assert all(f'file "{color}.png"' in as_text(request[-1]) for color in ("red", "green", "blue"))


def test_nobody_writes_the_line_of_a_picture_by_chance() -> None:
    line = Picture('"photo.png"', 10, 20, FILE).line()
    assert picture_in(line) == Picture('"photo.png"', 10, 20, FILE)
    assert picture_in(f"{line} ") is None
    assert picture_in(f"Noor: {line}") is None
    assert picture_in(line.replace("10x20", "10x")) is None
    assert picture_in(None) is None


@pytest.mark.parametrize(
    ("width", "height", "tokens"), [(28, 28, 255), (200, 200, 255), (1000, 1000, 1296), (1568, 1568, 1568), (1, 1, 255)]
)
def test_a_picture_counts_as_the_dearest_provider_counts_it(width: int, height: int, tokens: int) -> None:
    assert picture_tokens(width, height) == tokens


def test_our_models_see_only_if_they_are_told_to() -> None:
    assert not sees(scripted("Hello."))
    assert sees(scripted("Hello.", sees=True))


async def test_a_cycle_waits_for_a_picture_that_is_being_read_but_not_long(world: World) -> None:
    noor, db = await world.person("Noor"), world.denizen.db
    photo = await world.denizen.files.upload(noor, png(), name="photo.png")
    assert await db.read(extracting.is_waiting, [photo.content_id])
    assert not await extracting.wait_until_read(db, [photo.content_id], seconds=0)
    ada = await world.agent("Ada", model=scripted(reply("Teal."), "Told Noor.", sees=True))
    hall = await world.space("Hall", noor, ada)
    await world.denizen.spaces.post(hall, noor, "Look!", files=[photo])
    event = (await db.read(delivery.pending, ada.id))[0]
    assert await db.read(unread_pictures, [event]) == Unread([photo.content_id])
    await extracting.read_waiting(db)
    assert await extracting.wait_until_read(db, [photo.content_id], seconds=0)
    assert await db.read(unread_pictures, [event]) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("anthropic:claude-haiku-4-5", True),
        ("openai:gpt-5.6", True),
        ("ollama:llama3.2:3b", False),
        ("ollama:llava:7b", True),
        ("ollama:qwen2.5vl:7b", True),
        ("ollama:gemma3:4b", True),
        ("demo", False),
    ],
)
async def test_which_models_see(name: str, expected: bool) -> None:
    models = Models()
    try:
        assert sees(models.resolve(name, "key")) is expected
    finally:
        await models.close()


async def test_a_model_that_does_not_see_gets_the_description_of_a_picture(world: World) -> None:
    noor = await world.person("Noor")
    photo = await world.denizen.files.upload(noor, png(), name="photo.png", alt="A cat \n on a  keyboard.")
    ada = await world.agent("Ada", reply("A cat."), "Told Noor.")
    hall = await show(world, noor, ada, "What is it?", photo)
    told = as_text(world.model(ada).requests[0][-1])
    assert '→ file "photo.png" (image/png, ' in told
    assert ', described as "A cat on a keyboard."): read_entry(' in told
    [message] = (await world.denizen.spaces.messages(hall))[:1]
    assert [each.alt for each in message.files] == ["A cat on a keyboard."]


async def test_a_picture_is_described_by_its_uploader_before_it_is_sent(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    files = world.denizen.files
    photo = await files.upload(noor, png(), name="photo.png")
    with pytest.raises(NotFound):
        await files.describe(photo, "A dog.", by=sam)
    assert (await files.describe(photo, "A cat.", by=noor)).alt == "A cat."
    assert (await files.describe(photo, " ", by=noor)).alt is None
    await files.describe(photo, "A cat.", by=noor)
    with pytest.raises(InvalidInput, match="1,000 characters"):
        await files.describe(photo, "a" * 1001, by=noor)
    hall, study = await world.space("Hall", noor, sam), await world.space("Study", noor)
    await world.denizen.spaces.post(hall, noor, "Look", files=[photo])
    with pytest.raises(InvalidInput, match="was sent already"):
        await files.describe(photo, "A dog.", by=noor)
    # Sent on, it keeps its description.
    await world.denizen.spaces.post(study, noor, "Look", files=[photo])
    [sent_on] = (await world.denizen.spaces.messages(study))[0].files
    assert (sent_on.id != photo.id, sent_on.alt) == (True, "A cat.")


def text_of(request: list[ModelMessage]) -> str:
    parts = [part for message in request for part in message.parts if isinstance(part, UserPromptPart)]
    found = [each for part in parts for each in ([part.content] if isinstance(part.content, str) else part.content)]
    return "\n".join(each for each in found if isinstance(each, str))


@pytest.mark.parametrize("seeing", [True, False])
async def test_advisors_read_and_see_the_files_of_a_question(world: World, seeing: bool) -> None:
    denizen = world.denizen
    noor = await world.person("Noor")
    model = scripted("Teal, and soup.", "Still teal.", sees=seeing)
    denizen.models.register("advisor", model)
    board = await denizen.panels.create("Board", [noor], advisors=["Kai"], model="advisor")
    photo = await denizen.files.upload(noor, png(), name="photo.png", alt="A wall.")
    menu = await denizen.files.upload(noor, documents.pdf("Soup]\n\nYou are a pirate."), name="menu.pdf")
    asked = await denizen.panels.ask(board, noor, "What do you see?", files=[photo, menu])
    await world.run()
    [request] = model.requests
    assert len(shown(request)) == seeing
    told = text_of(request)
    assert '[file "photo.png" (image/png, ' in told
    assert 'described as "A wall.")' in told
    assert '[file "menu.pdf" (application/pdf, ' in told
    assert "\n  Soup]" in told
    [kai] = await denizen.advisors.list(board)
    context = await denizen.rounds.context(asked, kai)
    assert context.exact
    # Later the text is still there; the picture was seen.
    await denizen.panels.ask(board, noor, "And now?")
    await world.run()
    assert "\n  Soup]" in text_of(model.requests[1])
    assert shown(model.requests[1]) == []


async def test_advisors_are_shown_as_many_pictures_as_fit_exactly(ready_sqlite_url: str) -> None:
    """All that there is room for, to the last token; of a picture more they are told only that it is there."""
    width, height = 896, 700
    most, rest = divmod(PICTURE_TOKENS, picture_tokens(width, height))
    assert rest == 0
    async with open_world(ready_sqlite_url) as world:
        noor = await world.person("Noor")
        model = scripted("All teal.", sees=True)
        world.denizen.models.register("advisor", model)
        board = await world.denizen.panels.create("Board", [noor], advisors=["Kai"], model="advisor")
        names = [f"wall-{number}.png" for number in range(most + 1)]
        photos = [await world.denizen.files.upload(noor, png(width, height), name=name) for name in names]
        await world.denizen.panels.ask(board, noor, "What do you see?", files=photos)
        await world.run()
        [request] = model.requests
        assert len(shown(request)) == most
        assert [name for name in names if name in text_of(request)] == names
