"""Uploads: chunks, digests, quotas, and what is removed."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from denizen import InvalidInput, NotFound, QuotaExceeded, UploadConflict
from denizen.clock import SECOND
from denizen.files.cleanup import tidy
from denizen.files.storing import CHUNK_BYTES, UNUSED_FILES, FileLimits, clean_media_type, clean_name
from denizen.storage.database import statement, value
from denizen.storage.schema import chunks, contents
from tests.world import World, open_world

_chunks = statement(select(func.count()).select_from(chunks))
_contents = statement(select(func.count()).select_from(contents))
LARGE = bytes(range(256)) * 4096  # 1 MB


@pytest.fixture
async def world(ready_url: str) -> AsyncIterator[World]:
    async with open_world(ready_url) as world:
        yield world


async def parts(*data: bytes) -> AsyncIterator[bytes]:
    for each in data:
        yield each


async def stored(world: World) -> tuple[int, int]:
    """How many contents and chunks there are."""
    return await world.denizen.db.read(value, _contents), await world.denizen.db.blobs.read(value, _chunks)


async def test_an_upload_is_read_back(world: World) -> None:
    noor = await world.person("Noor")
    file = await world.denizen.files.upload(noor, LARGE, name="data.bin")
    assert (file.size, file.digest) == (len(LARGE), hashlib.sha256(LARGE).hexdigest())
    assert await world.denizen.files.read(file) == LARGE
    found = [each async for each in world.denizen.files.parts(file, first=CHUNK_BYTES - 2, end=CHUNK_BYTES + 3)]
    assert b"".join(found) == LARGE[CHUNK_BYTES - 2 : CHUNK_BYTES + 3]


async def test_an_upload_continues_where_it_broke_off(world: World) -> None:
    files = world.denizen.files
    begun = await files.begin(await world.person("Noor"), name="data.bin", size=len(LARGE))
    half = await files.append(begun, 0, parts(LARGE[: CHUNK_BYTES + 5]))
    assert not half.is_complete
    # What did not fill a chunk is sent again.
    assert await files.arrived(begun) == CHUNK_BYTES
    with pytest.raises(UploadConflict, match="continue at offset 262144"):
        await files.append(begun, CHUNK_BYTES + 5, parts(LARGE[CHUNK_BYTES + 5 :]))
    whole = await files.append(begun, CHUNK_BYTES, parts(LARGE[CHUNK_BYTES:]))
    assert whole.is_complete
    assert await files.read(whole) == LARGE


async def test_more_bytes_than_announced_are_refused(world: World) -> None:
    begun = await world.denizen.files.begin(await world.person("Noor"), name="a.txt", size=3)
    with pytest.raises(InvalidInput, match="announced with 3"):
        await world.denizen.files.append(begun, 0, parts(b"four"))


async def test_the_same_bytes_are_stored_once_in_an_organization(world: World) -> None:
    noor, bo = await world.person("Noor"), await world.person("Bo")
    first = await world.denizen.files.upload(noor, LARGE, name="a.bin")
    second = await world.denizen.files.upload(bo, LARGE, name="b.bin")
    assert first.content_id == second.content_id
    await tidy(world.denizen.db)
    assert await stored(world) == (2, 4)  # the dropped row stays for a while, its chunks do not
    world.clock.advance(700)
    await tidy(world.denizen.db)
    assert await stored(world) == (1, 4)


async def test_organizations_do_not_share_bytes(world: World) -> None:
    noor = await world.person("Noor")
    other = await world.denizen.organizations.create("Other")
    stranger = await world.denizen.people.create("Stranger", organization=other)
    first = await world.denizen.files.upload(noor, b"secret", name="a.txt")
    second = await world.denizen.files.upload(stranger, b"secret", name="a.txt")
    assert first.content_id != second.content_id


async def test_an_upload_that_no_message_uses_is_removed_after_a_day(world: World) -> None:
    noor, ada = await world.person("Noor"), await world.person("Ada")
    hall = await world.space("Hall", noor, ada)
    unused = await world.denizen.files.upload(noor, LARGE, name="unused.bin")
    used = await world.denizen.files.upload(noor, b"used", name="used.txt")
    await world.denizen.spaces.post(hall, noor, "See this.", files=[used])
    world.clock.advance(23 * 3600)
    await tidy(world.denizen.db)
    assert await world.denizen.files.read(unused) == LARGE
    world.clock.advance(2 * 3600)
    await tidy(world.denizen.db)
    with pytest.raises(NotFound):
        await world.denizen.files.get(unused)
    assert await world.denizen.files.read(used) == b"used"
    world.clock.advance(700)
    await tidy(world.denizen.db)
    assert await stored(world) == (1, 1)


async def test_sizes_are_limited() -> None:
    async with open_world("sqlite://", file_limits=FileLimits(file_bytes=10, organization_bytes=15)) as world:
        noor, files = await world.person("Noor"), world.denizen.files
        with pytest.raises(InvalidInput, match=r"big\.txt is too large \(11 bytes\)"):
            await files.upload(noor, b"x" * 11, name="big.txt")
        with pytest.raises(InvalidInput, match="is empty"):
            await files.upload(noor, b"", name="empty.txt")
        first = await files.upload(noor, b"x" * 10, name="a.txt")
        with pytest.raises(QuotaExceeded, match="10 bytes of 15 bytes") as refused:
            await files.upload(noor, b"y" * 6, name="b.txt")
        assert (refused.value.size, refused.value.used, refused.value.limit) == (6, 10, 15)
        await files.remove(first, by=noor)
        await files.upload(noor, b"y" * 6, name="b.txt")


async def test_a_path_is_uploaded_under_its_name(world: World, tmp_path: Path) -> None:
    path = tmp_path / "menu.html"
    path.write_text("<p>Soup</p>")
    file = await world.denizen.files.upload(await world.person("Noor"), path)
    assert (file.name, file.media_type) == ("menu.html", "text/html")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("photo.jpg", "photo.jpg"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\noor\\a.txt", "a.txt"),
        ("a\x00b\u202egpj.exe", "a\ufffdbgpj.exe"),
        (" . ", "file"),
        ("x" * 300 + ".jpeg", "x" * 250 + ".jpeg"),
    ],
)
def test_names_are_cleaned(given: str, name: str) -> None:
    assert clean_name(given) == name


@pytest.mark.parametrize(
    ("given", "cleaned"),
    [
        ("image/png", "image/png"),
        ("Text/Plain; charset=utf-8", "text/plain"),
        ("nonsense", "application/octet-stream"),
        ("text/html\r\nX: y", "application/octet-stream"),
    ],
)
def test_media_types_are_cleaned(given: str, cleaned: str) -> None:
    assert clean_media_type(given) == cleaned


async def test_a_link_is_valid_for_an_hour(world: World) -> None:
    files = world.denizen.files
    file = await files.upload(await world.person("Noor"), b"x", name="a.txt")
    same_bytes = await files.upload(await world.person("Bo"), b"x", name="b.txt")
    signed = files.sign(file)
    assert files.is_signed(file, signed)
    assert not files.is_signed(same_bytes, signed)
    assert not files.is_signed(file, f"{world.clock.now() // SECOND + 9999}-{signed.partition('-')[2]}")
    world.clock.advance(3601)
    assert not files.is_signed(file, signed)


async def test_one_person_cannot_take_up_all_the_room(world: World) -> None:
    """An upload takes up its room before its first byte arrives, so there are not many that no message uses."""
    files = world.denizen.files
    noor, sam = await world.person("Noor"), await world.person("Sam")
    begun = [await files.begin(noor, name="large.bin", size=1000) for _ in range(UNUSED_FILES - 1)]
    note = await files.upload(noor, b"Soup", name="menu.txt")
    with pytest.raises(QuotaExceeded, match="You have 50 uploads that no message uses"):
        await files.begin(noor, name="one-more.bin", size=1)
    await files.begin(sam, name="other.bin", size=1)
    await world.denizen.spaces.post(await world.space("Kitchen", noor), noor, "Look.", files=[note])
    await files.begin(noor, name="one-more.bin", size=1)
    await files.remove(begun[0], by=noor)
    await files.begin(noor, name="another.bin", size=1)
