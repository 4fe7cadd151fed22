"""Sending and seeing files, as people do it with a browser."""

from __future__ import annotations

import asyncio
import io
import struct
import wave
import zlib
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import FilePayload, Page, Route, expect

from denizen import scripted
from denizen.files.storing import FileLimits
from denizen.spaces.directory import Entity, Space
from tests.files.documents import pdf
from tests.server.conftest import House
from tests.web.conftest import PHONE, WIDE, Visit


def picture(width: int = 240, height: int = 160) -> bytes:
    """A small PNG: a gradient."""
    colours = [[(x * 255 // width, y * 255 // height, 140) for x in range(width)] for y in range(height)]
    rows = b"".join(b"\0" + bytes(part for colour in row for part in colour) for row in colours)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def wav() -> bytes:
    """Half a second of silence."""
    kept = io.BytesIO()
    with wave.open(kept, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(8000))
    return kept.getvalue()


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
    # Like a draft, they stay while she looks at another screen.
    await hers.turn_to("/agents")
    await expect(chosen).to_have_count(0)
    await hers.turn_to(f"/s/{kitchen.id}")
    await expect(chosen).to_have_count(2)
    # Files need no text.
    await page.get_by_role("button", name="Send").click()
    await expect(chosen).to_have_count(0)
    for screen in (page, other):
        files = screen.get_by_role("list", name="Files", exact=True)
        await expect(files.get_by_role("link", name="notes.txt")).to_be_visible()
        shown = files.get_by_role("img", name="garden.png")
        await expect(shown).to_be_visible()
        await screen.wait_for_function("img => img.complete && img.naturalWidth > 0", arg=await shown.element_handle())
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
    await expect(page.get_by_role("article")).to_have_attribute("data-seq", "1")  # until then it is on its way
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


async def test_a_file_dropped_where_nothing_takes_files_does_not_leave_the_page(house: House, visit: Visit) -> None:
    page = await (await visit(await house.world.person("Noor"))).open("/me")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    for event in ("dragover", "drop"):
        is_prevented = await page.evaluate(
            """(event) => {
                const carried = new DataTransfer();
                carried.items.add(new File(["x"], "x.txt", {type: "text/plain"}));
                const dropped = new DragEvent(event, {dataTransfer: carried, bubbles: true, cancelable: true});
                return !document.body.dispatchEvent(dropped);
            }""",
            event,
        )
        assert is_prevented


async def test_while_files_are_dragged_the_page_says_where_to_drop_them(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    page = await (await visit(noor)).open(f"/s/{kitchen.id}")
    hint = page.get_by_text("Drop files to attach them")
    await expect(page.get_by_label("Message to Kitchen")).to_be_visible()

    async def drag(event: str, what: str = "carried.items.add(new File(['x'], 'x.txt'))") -> None:
        await page.evaluate(
            f"""() => {{
                const carried = new DataTransfer();
                {what};
                const given = {{dataTransfer: carried, bubbles: true, cancelable: true}};
                document.body.dispatchEvent(new DragEvent("{event}", given));
            }}"""
        )

    await drag("dragover", "carried.setData('text/plain', 'a word')")
    await expect(hint).to_have_count(0)
    await drag("dragover")
    await expect(hint).to_be_visible()
    await drag("dragleave")
    await expect(hint).to_have_count(0)
    await drag("dragover")
    await drag("drop")
    await expect(hint).to_have_count(0)
    await expect(page.get_by_role("list", name="Files to send").get_by_role("listitem")).to_contain_text(["x.txt"])


async def test_too_large_a_file_says_so(house: House, visit: Visit) -> None:
    house.world.denizen.file_limits = FileLimits(file_bytes=10)
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    await choose(page, NOTES)
    await expect(page.get_by_role("alert")).to_contain_text(
        "notes.txt is too large (16 bytes). Choose a file of at most 10 bytes."
    )
    await expect(page.get_by_role("button", name="Send")).to_be_disabled()
    # It would be as large the next time.
    await expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    hers.complaints.clear()  # the browser reports the refusal, too


async def test_an_empty_file_says_so_and_its_name_can_be_read(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    hers = await visit(noor, size=PHONE)
    page = await hers.open(f"/s/{kitchen.id}")
    await choose(page, {"name": "empty.txt", "mimeType": "text/plain", "buffer": b""})
    await expect(page.get_by_role("alert")).to_have_text("empty.txt is empty.")
    name = page.get_by_role("list", name="Files to send").get_by_text("empty.txt", exact=True)
    assert await name.evaluate("each => each.scrollWidth <= each.clientWidth")

    # What could not be sent with the others is not forgotten when they are sent.
    await choose(page, NOTES)
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("link", name="notes.txt")).to_be_visible()
    chosen = page.get_by_role("list", name="Files to send").get_by_role("listitem")
    await expect(chosen).to_have_text(["empty.txtempty.txt is empty."])
    await page.get_by_role("button", name="Remove empty.txt").click()
    await expect(chosen).to_have_count(0)
    hers.complaints.clear()  # the browser reports the refusal, too


PLAN: FilePayload = {"name": "plan.pdf", "mimeType": "application/pdf", "buffer": pdf("The plan", "Then pie")}
LARGE: FilePayload = {"name": "large.png", "mimeType": "image/png", "buffer": picture(900, 600)}


_DARK_PIXELS = """img => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [img.naturalWidth, img.naturalHeight];
    const context = canvas.getContext("2d");
    context.drawImage(img, 0, 0);
    const {data} = context.getImageData(0, 0, canvas.width, canvas.height);
    let dark = 0;
    for (let at = 0; at < data.length; at += 4) dark += data[at] < 100 ? 1 : 0;
    return dark;
}"""


async def post_files(house: House, who: Entity, where: Space, *files: FilePayload) -> None:
    uploaded = [
        await house.world.denizen.files.upload(who, each["buffer"], name=each["name"], media_type=each["mimeType"])
        for each in files
    ]
    await house.world.denizen.spaces.post(where, who, "Look.", files=uploaded)


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
async def test_pictures_and_documents_are_viewed(
    house: House, visit: Visit, size: Any, scheme: str, tmp_path: Path
) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    await post_files(house, noor, kitchen, PHOTO, LARGE, PLAN, NOTES)
    hers = await visit(noor, size=size, color_scheme=scheme)
    page = await hers.open(f"/s/{kitchen.id}")
    small = page.get_by_role("img", name="large.png")
    await page.wait_for_function("img => img.complete && img.naturalWidth === 320", arg=await small.element_handle())
    await hers.check_accessibility()
    await page.screenshot(path=tmp_path / "files.png")

    await page.get_by_role("button", name="View garden.png").click()
    viewer = page.get_by_role("dialog", name="garden.png")
    await expect(viewer.get_by_text("1 of 3")).to_be_visible()
    await page.keyboard.press("ArrowRight")
    viewer = page.get_by_role("dialog", name="large.png")
    whole = viewer.get_by_role("img", name="large.png")
    await page.wait_for_function("img => img.complete && img.naturalWidth === 900", arg=await whole.element_handle())
    await hers.check_accessibility()
    await page.screenshot(path=tmp_path / "picture.png")
    await page.keyboard.press("ArrowRight")
    viewer = page.get_by_role("dialog", name="plan.pdf")
    drawn = viewer.get_by_role("img", name="Page 2 of 2")
    await drawn.scroll_into_view_if_needed()
    await page.wait_for_function("img => img.complete && img.naturalWidth > 1000", arg=await drawn.element_handle())
    assert await drawn.evaluate(_DARK_PIXELS) > 100  # its line of text
    source = await viewer.get_by_role("link", name="Open in a new tab").get_attribute("href")
    answer = await hers.context.request.get(f"{house.address}{source}")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/pdf")
    assert answer.headers["content-disposition"].startswith("inline")
    await expect(viewer.get_by_role("button", name="Next")).to_be_disabled()
    await hers.check_accessibility()
    await page.screenshot(path=tmp_path / "document.png")
    async with page.expect_download() as saving:
        await viewer.get_by_role("link", name="Download").click()
    saved = await saving.value
    assert saved.suggested_filename == "plan.pdf"
    assert await asyncio.to_thread((await saved.path()).read_bytes) == PLAN["buffer"]
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    # The focus is where it was.
    await expect(page.get_by_role("button", name="View garden.png")).to_be_focused()


async def test_a_damaged_pdf_is_a_file_to_download(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    await post_files(house, noor, kitchen, {**PLAN, "buffer": b"%PDF-1.4 nothing"})
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    await page.get_by_role("button", name="plan.pdf").click()
    viewer = page.get_by_role("dialog", name="plan.pdf")
    await expect(viewer.get_by_text("This file cannot be shown. Download it instead.")).to_be_visible()
    await expect(viewer.get_by_role("link", name="Download")).to_be_visible()
    hers.complaints.clear()  # the browser reports the answer, too


async def test_a_picture_that_is_broken_is_a_file_to_download(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    await post_files(house, noor, kitchen, {"name": "torn.png", "mimeType": "image/png", "buffer": b"\x89PNG torn"})
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    await expect(page.get_by_role("link", name="torn.png")).to_be_visible()
    hers.complaints.clear()  # the browser reports that it was not found


async def test_sound_and_film_are_played_and_saved(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    sound: FilePayload = {"name": "bell.wav", "mimeType": "audio/wav", "buffer": wav()}
    await post_files(house, noor, kitchen, sound)
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    player = page.get_by_label("bell.wav")
    await expect(player).to_be_visible()
    await player.evaluate("player => player.play()")
    await page.wait_for_function("player => player.duration > 0.4", arg=await player.element_handle())
    async with page.expect_download() as saving:
        await page.get_by_role("link", name="bell.wav").click()
    assert (await saving.value).suggested_filename == "bell.wav"
    await hers.check_accessibility()


async def test_an_upload_that_was_cut_goes_on_where_it_stopped(house: House, visit: Visit) -> None:
    """The browser tries by itself; after that, a person does."""
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    data = bytes(range(256)) * 12_000
    sent: list[str] = []
    cut = True

    async def cutting(route: Route) -> None:
        offset = route.request.url.rpartition("offset=")[2]
        if cut and offset != "0":
            await route.abort("connectionreset")
        else:
            sent.append(offset)
            await route.continue_()

    await page.route("**/api/files/*/content*", cutting)
    # Its pauses between tries are the browser's own: here they are over at once.
    await page.evaluate(
        "() => { const wait = setTimeout; window.setTimeout = (f, pause) => wait(f, pause < 60_000 ? 0 : pause) }"
    )
    await choose(page, {"name": "data.bin", "mimeType": "application/octet-stream", "buffer": data})
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(page.get_by_role("button", name="Send")).to_be_disabled()
    cut = False
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("button", name="Send")).to_be_enabled()
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("link", name="data.bin")).to_be_visible()
    assert sent == ["0", "1048576", "2097152"]
    await expect(page.get_by_role("article")).to_have_attribute("data-seq", "1")  # until then it is on its way
    [message] = await house.world.denizen.spaces.messages(kitchen)
    assert await house.world.denizen.files.read(message.files[0].id) == data
    hers.complaints.clear()  # the browser reports the cut connection


async def test_an_upload_shows_how_far_it_is_and_can_be_cancelled(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    hers = await visit(noor, size=PHONE)
    page = await hers.open(f"/s/{kitchen.id}")
    held = asyncio.Event()

    async def hold(route: Route) -> None:
        if "offset=0" not in route.request.url:
            await held.wait()
            await route.abort()
        else:
            await route.continue_()

    await page.route("**/api/files/*/content*", hold)
    await choose(page, {"name": "data.bin", "mimeType": "application/octet-stream", "buffer": bytes(2 * 1024 * 1024)})
    bar = page.get_by_role("progressbar", name="Uploading data.bin")
    await expect(bar).to_have_js_property("value", 0.5)
    await hers.check_accessibility()
    async with page.expect_response(lambda each: each.request.method == "DELETE") as removed:
        await page.get_by_role("button", name="Remove data.bin").click()
    assert (await removed.value).status == 204
    await expect(page.get_by_role("list", name="Files to send")).to_have_count(0)
    held.set()


async def test_no_room_in_the_organization_says_so(house: House, visit: Visit) -> None:
    house.world.denizen.file_limits = FileLimits(organization_bytes=10)
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    await choose(page, NOTES)
    await expect(page.get_by_role("alert")).to_contain_text("there is no room for notes.txt")
    hers.complaints.clear()  # the browser reports the refusal, too


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
async def test_administration_shows_how_much_room_files_take(
    house: House, visit: Visit, size: Any, scheme: str, tmp_path: Path
) -> None:
    house.world.denizen.file_limits = FileLimits(organization_bytes=2000)
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    await post_files(house, noor, kitchen, {"name": "a.bin", "mimeType": "", "buffer": bytes(1700)})
    hers = await visit(noor, size=size, color_scheme=scheme)
    page = await hers.open("/admin/usage")
    await expect(page.get_by_role("meter", name="Room for files")).to_have_attribute("aria-valuenow", "1700")
    await expect(page.get_by_text("1.7 kB of 2 kB")).to_be_visible()
    await hers.check_accessibility()
    await page.get_by_role("meter", name="Room for files").scroll_into_view_if_needed()
    await page.screenshot(path=tmp_path / "room.png")


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
async def test_a_picture_is_described_for_those_who_cannot_see_it(
    house: House, visit: Visit, size: Any, scheme: str, tmp_path: Path
) -> None:
    noor, sam = await house.world.person("Noor"), await house.world.person("Sam")
    kitchen = await house.world.space("Kitchen", noor, sam)
    hers = await visit(noor, size=size, color_scheme=scheme)
    page = await hers.open(f"/s/{kitchen.id}")
    await choose(page, PHOTO, NOTES)
    chosen = page.get_by_role("list", name="Files to send").get_by_role("listitem")
    await expect(chosen).to_have_count(2)
    # Only a picture is described.
    await expect(page.get_by_role("button", name="Describe notes.txt")).to_have_count(0)
    await page.get_by_role("button", name="Describe garden.png").click()
    dialog = page.get_by_role("dialog", name="Describe garden.png")
    await expect(dialog.get_by_label("Description")).to_be_focused()
    await dialog.get_by_label("Description").fill("Tomatoes behind a fence.")
    await hers.check_accessibility()
    await page.screenshot(path=tmp_path / "describe.png")
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("button", name="Edit description garden.png")).to_be_visible()
    await hers.check_accessibility()
    await page.get_by_role("button", name="Send").click()

    shown = page.get_by_role("article").get_by_role("img", name="Tomatoes behind a fence.")
    await expect(shown).to_be_visible()
    await page.get_by_role("button", name="View Tomatoes behind a fence.").click()
    viewer = page.get_by_role("dialog", name="garden.png")
    await expect(viewer.get_by_role("img", name="Tomatoes behind a fence.")).to_be_visible()
    await expect(viewer.locator("figcaption")).to_have_text("Tomatoes behind a fence.")
    await hers.check_accessibility()
    await page.screenshot(path=tmp_path / "described.png")
    await expect(page.get_by_role("article")).to_have_attribute("data-seq", "1")  # until then it is on its way
    [message] = await house.world.denizen.spaces.messages(kitchen)
    assert [each.alt for each in message.files] == ["Tomatoes behind a fence.", None]


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
async def test_a_question_to_a_panel_has_files(
    house: House, visit: Visit, size: Any, scheme: str, tmp_path: Path
) -> None:
    denizen = house.world.denizen
    noor = await house.world.person("Noor")
    model = scripted("Plant basil between them.", sees=True)
    denizen.models.register("advisor", model)
    board = await denizen.panels.create("Board", [noor], advisors=["Kai"], model="advisor")
    hers = await visit(noor, size=size, color_scheme=scheme)
    page = await hers.open(f"/s/{board.id}")
    await choose(page, PHOTO, NOTES)
    await expect(page.get_by_role("list", name="Files to send").get_by_role("listitem")).to_have_count(2)
    await hers.check_accessibility()
    await page.get_by_label("Message to Board").fill("What is missing?")
    await page.get_by_role("button", name="Ask", exact=True).click()
    await expect(page.get_by_text("Plant basil between them.")).to_be_visible()
    turn = page.get_by_role("article", name="Turn 1")
    await expect(turn.get_by_role("img", name="garden.png")).to_be_visible()
    await expect(turn.get_by_text("notes.txt")).to_be_visible()
    await expect(page.get_by_role("list", name="Files to send")).to_have_count(0)
    await hers.check_accessibility()
    await page.screenshot(path=tmp_path / "panel.png")
    [request] = model.requests
    assert "Tomatoes, basil." in str(request)
    assert "BinaryContent" in str(request)
