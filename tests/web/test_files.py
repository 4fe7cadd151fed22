"""Sending and seeing files, as people do it with a browser."""

from __future__ import annotations

import struct
import zlib

from playwright.async_api import FilePayload, Page, expect

from denizen.files.storing import FileLimits
from tests.server.conftest import House
from tests.web.conftest import PHONE, Visit


def picture(width: int = 240, height: int = 160) -> bytes:
    """A small PNG: a gradient."""
    colours = [[(x * 255 // width, y * 255 // height, 140) for x in range(width)] for y in range(height)]
    rows = b"".join(b"\0" + bytes(part for colour in row for part in colour) for row in colours)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PHOTO: FilePayload = {"name": "garden.png", "mimeType": "image/png", "buffer": picture()}
NOTES: FilePayload = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Tomatoes, basil."}


async def choose(page: Page, *files: FilePayload) -> None:
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name="Attach files").click()
    await (await choosing.value).set_files(list(files))


async def test_files_are_attached_and_seen(house: House, visit: Visit) -> None:
    noor, sam = await house.world.person("Noor"), await house.world.person("Sam")
    kitchen = await house.world.space("Kitchen", noor, sam)
    hers, his = await visit(noor), await visit(sam)
    page, other = await hers.open(f"/s/{kitchen.id}"), await his.open(f"/s/{kitchen.id}")
    await choose(page, PHOTO, NOTES)
    chosen = page.get_by_role("list", name="Files to send").get_by_role("listitem")
    await expect(chosen).to_have_count(2)
    await hers.check_accessibility()
    # Files need no text.
    await page.get_by_role("button", name="Send").click()
    await expect(chosen).to_have_count(0)
    for screen in (page, other):
        files = screen.get_by_role("list", name="Files", exact=True)
        await expect(files.get_by_role("link", name="notes.txt")).to_be_visible()
        shown = files.get_by_role("img", name="garden.png")
        await expect(shown).to_be_visible()
        await screen.wait_for_function(
            "img => img.complete && img.naturalWidth === 240", arg=await shown.element_handle()
        )
    await his.check_accessibility()
    link = other.get_by_role("link", name="notes.txt")
    async with other.expect_popup() as opening:
        await link.click()
    await expect((await opening.value).get_by_text("Tomatoes, basil.")).to_be_visible()


async def test_a_file_is_removed_before_it_is_sent(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    hers = await visit(noor, size=PHONE)
    page = await hers.open(f"/s/{kitchen.id}")
    await choose(page, PHOTO, NOTES)
    await page.get_by_role("button", name="Remove garden.png").click()
    await page.get_by_label("Message to Kitchen").fill("Only the notes.")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("link", name="notes.txt")).to_be_visible()
    [message] = await house.world.denizen.spaces.messages(kitchen)
    assert (message.text, [each.name for each in message.files]) == ("Only the notes.", ["notes.txt"])


async def test_files_are_pasted_and_dropped(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    page = await (await visit(noor)).open(f"/s/{kitchen.id}")
    for event in ("paste", "drop"):
        await page.get_by_label("Message to Kitchen").evaluate(
            """(box, event) => {
                const carried = new DataTransfer();
                carried.items.add(new File(["x"], `${event}.txt`, {type: "text/plain"}));
                box.dispatchEvent(event === "paste"
                    ? new ClipboardEvent("paste", {clipboardData: carried, bubbles: true, cancelable: true})
                    : new DragEvent("drop", {dataTransfer: carried, bubbles: true, cancelable: true}));
            }""",
            event,
        )
    chosen = page.get_by_role("list", name="Files to send").get_by_role("listitem")
    await expect(chosen).to_contain_text(["paste.txt", "drop.txt"])


async def test_too_large_a_file_says_so(house: House, visit: Visit) -> None:
    house.world.denizen.file_limits = FileLimits(file_bytes=10)
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    await choose(page, NOTES)
    await expect(page.get_by_role("alert")).to_contain_text("notes.txt has 16 bytes. A file may have 10.")
    await expect(page.get_by_role("button", name="Send")).to_be_disabled()
    hers.complaints.clear()  # the browser reports the refusal, too
