"""What was shown is read, wherever one looks next: there is one mark for each space, and the house keeps it."""

from __future__ import annotations

from pathlib import Path

from denizen.cli.chat.once import say_once
from denizen.client import Client, Space
from tests.cli.chat.houses import House
from tests.cli.chat.test_answering import talking


async def space(client: Client, house: House, name: str) -> Space:
    return next(each for each in await client.spaces() if each.name == name)


async def marks(house: House, name: str = "Noor and Ada") -> tuple[int, int]:
    """How far Noor has read there, and how much is left."""
    async with house.client() as client:
        found = await space(client, house, name)
        return found.read_seq, found.unread


async def test_what_is_shown_is_read_and_what_is_not_is_counted(house: House, tmp_path: Path) -> None:
    for text in ("One.", "Two."):
        await house.runtime.spaces.post(house.room, house.ada.id, text)
    assert await marks(house) == (0, 2)
    async with talking(house, tmp_path, "@ada") as (paper, talk, _):
        await paper.until("Ada: Two.")
        await house.runtime.spaces.post(house.room, house.ada.id, "Three.")
        await paper.until("Ada: Three.")
        await house.runtime.spaces.post(house.kitchen, house.ada.id, "Elsewhere.")
        paper.type("/spaces")
        await paper.until(lambda: talk.unread.get(house.kitchen.id) == 1)
    assert await marks(house) == (3, 0)
    assert await marks(house, "Kitchen") == (0, 1)
    assert [each for each in paper.shown if each.startswith("--")] == ["-- Noor and Ada --"]
    async with talking(house, tmp_path, "@ada") as (paper, _, _):
        await paper.until("Ada: Three.")
    assert "-- new --" not in paper.shown, "what was read before is not new"


async def test_what_was_read_on_another_device_is_not_new_here(house: House, tmp_path: Path) -> None:
    for text in ("One.", "Two."):
        await house.runtime.spaces.post(house.room, house.ada.id, text)
    await house.runtime.spaces.mark_read(house.room, house.noor, 1)
    async with talking(house, tmp_path, "@ada") as (paper, _, _):
        await paper.until("Ada: Two.")
    assert paper.shown[1:4] == ["Ada: One.", "-- new --", "Ada: Two."]


async def test_an_errand_that_has_no_time_was_not_finished(house: House, client: Client) -> None:
    """Whoever hears nothing does not take that for the end of it."""
    room = await space(client, house, "Noor and Ada")
    heard = await say_once(client, room, "Hello", seconds=0, on_reply=lambda _: None, on_delay=lambda _: None)
    assert (heard.unfinished, heard.replies) == (("Ada",), ())


async def test_an_errand_leaves_nothing_unread(house: House, client: Client) -> None:
    room = await space(client, house, "Noor and Ada")
    heard = await say_once(client, room, "Hello", seconds=60, on_reply=lambda _: None, on_delay=lambda _: None)
    assert len(heard.replies) == 1
    after = await space(client, house, "Noor and Ada")
    assert (after.last_seq, after.read_seq, after.unread) == (2, 2, 0)
