"""Pictures made smaller."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator

import pytest
from PIL import Image

from denizen.errors import InvalidInput
from denizen.files import jail, pictures, storing
from denizen.files.cleanup import tidy
from denizen.files.pictures import SEEN, THUMBNAIL, ScaledPicture
from tests.files.pictures import clear_png, photo, pixel_bomb, png
from tests.world import World, open_world


@pytest.fixture
async def world(ready_url: str) -> AsyncIterator[World]:
    async with open_world(ready_url) as world:
        yield world


async def shown(world: World, data: bytes, size: int = THUMBNAIL, name: str = "photo.png") -> ScaledPicture | None:
    file = await world.denizen.files.upload(await world.person("Noor"), data, name=name)
    return await world.denizen.files.variant(file, size)


async def test_a_picture_is_made_smaller_and_keeps_its_shape(world: World) -> None:
    made = await shown(world, png(3000, 1500), SEEN)
    assert made is not None
    assert (made.width, made.height, made.media_type) == (SEEN, SEEN // 2, "image/jpeg")
    assert Image.open(io.BytesIO(made.data)).size == (SEEN, SEEN // 2)


async def test_a_small_picture_stays_small(world: World) -> None:
    made = await shown(world, png(64, 48), SEEN)
    assert made is not None
    assert (made.width, made.height) == (64, 48)


async def test_a_photo_is_turned_upright_and_says_nothing_of_its_camera(world: World) -> None:
    made = await shown(world, photo(400, 200), name="photo.jpg")
    assert made is not None
    assert (made.width, made.height) == (160, 320)
    assert b"Secret place" not in made.data
    image = Image.open(io.BytesIO(made.data))
    assert not image.getexif()
    top = image.getpixel((80, 40))
    assert isinstance(top, tuple)
    assert top[0] > 200 > 100 > top[1]


async def test_what_is_clear_becomes_white(world: World) -> None:
    made = await shown(world, clear_png())
    assert made is not None
    assert Image.open(io.BytesIO(made.data)).getpixel((5, 5)) == (255, 255, 255)


@pytest.mark.parametrize(
    ("data", "name"), [(b"\x89PNG\0", "a.png"), (png(), "a.txt"), (b"<svg/>", "a.svg"), (png()[:60], "a.png")]
)
async def test_what_is_no_picture_has_no_variant(world: World, data: bytes, name: str) -> None:
    assert await shown(world, data, name=name) is None


async def test_a_picture_with_too_many_pixels_is_not_unpacked(world: World) -> None:
    file = await world.denizen.files.upload(await world.person("Noor"), pixel_bomb(), name="a.png")
    made = await pictures.variant(world.denizen.db, file.content_id, THUMBNAIL)
    assert made == pictures.BrokenPicture("it has more than 50,000,000 pixels")


async def test_a_variant_is_made_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    file = await world.denizen.files.upload(await world.person("Noor"), png(), name="a.png")
    first = await world.denizen.files.variant(file)

    async def never(*_: object) -> jail.JailOutput:
        raise AssertionError("it was made again")

    monkeypatch.setattr(jail, "run", never)
    assert first is not None
    assert await world.denizen.files.variant(file) == first


async def test_variants_are_deleted_with_their_picture(world: World) -> None:
    noor = await world.person("Noor")
    file = await world.denizen.files.upload(noor, png(), name="a.png")
    assert await world.denizen.files.variant(file, SEEN) is not None
    assert await world.denizen.files.variant(file, THUMBNAIL) is not None
    await world.denizen.files.remove(file, by=noor)
    await tidy(world.denizen.db)
    blobs = world.denizen.db.blobs
    assert await blobs.read(storing.read_variant, file.content_id, SEEN) is None
    assert await blobs.read(storing.read_variant, file.content_id, THUMBNAIL) is None
    assert await blobs.read(storing.read_chunk, file.content_id, 0) is None


async def test_other_sizes_are_refused(world: World) -> None:
    with pytest.raises(InvalidInput, match="320 or 1568"):
        await shown(world, png(), 100)


async def test_many_who_ask_at_once_make_it_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """All who open a space ask for its pictures: each request would hold the file in memory and start a process."""
    file = await world.denizen.files.upload(await world.person("Noor"), png(800, 600), name="garden.png")
    run, made = jail.run, list[str]()

    async def counted(task: str, argument: str, data: bytes | jail.Load) -> jail.JailOutput:
        made.append(argument)
        return await run(task, argument, data)

    monkeypatch.setattr(jail, "run", counted)
    found = await asyncio.gather(*(world.denizen.files.variant(file) for _ in range(20)))
    assert made == ["320"]
    assert {each.width for each in found if each is not None} == {320}
