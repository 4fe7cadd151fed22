"""Uploading files over HTTP, and reading those of messages."""

from __future__ import annotations

from typing import Any

import pytest

from denizen.files.storing import CHUNK_BYTES, FileLimits
from denizen.server.context import ServerLimits
from denizen.server.gate import FORM_BYTES
from denizen.spaces.directory import Entity
from tests.files.documents import pdf
from tests.files.pictures import png
from tests.server.conftest import House, served
from tests.world import World

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(1000)
BYTES = {"Content-Type": "application/octet-stream"}


async def upload(house: House, who: Entity, name: str = "photo.png", data: bytes = PICTURE) -> dict[str, Any]:
    answer = await house.call("POST", "/api/files", who, files={"file": (name, data)})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_a_form_uploads_a_file_and_a_message_has_it(house: House) -> None:
    noor, sam = await house.world.person("Noor"), await house.world.person("Sam")
    kitchen = await house.world.space("Kitchen", noor, sam)
    file = await upload(house, noor)
    assert (file["name"], file["media_type"], file["complete"]) == ("photo.png", "image/png", True)
    said = await house.say(noor, "", kitchen, files=[file["id"]])
    assert said["files"] == [
        {"id": file["id"], "name": "photo.png", "media_type": "image/png", "size": len(PICTURE), "alt": None}
    ]
    answer = await house.call("GET", f"/api/files/{file['id']}/content", sam)
    assert answer.content == PICTURE
    assert answer.headers["content-type"] == "image/png"


async def test_bytes_are_sent_in_parts(house: House) -> None:
    noor = await house.world.person("Noor")
    data = bytes(range(256)) * 2048
    begun = await house.call("POST", "/api/files", noor, json={"name": "data.bin", "size": len(data)})
    path = f"/api/files/{begun.json()['id']}/content"
    first = await house.call("PUT", path, noor, headers=BYTES, content=data[: CHUNK_BYTES + 9])
    assert (first.json()["arrived"], first.json()["complete"]) == (CHUNK_BYTES, False)
    wrong = await house.call("PUT", f"{path}?offset=5", noor, headers=BYTES, content=b"x")
    assert (wrong.status_code, wrong.json()["code"]) == (409, "upload_conflict")
    rest = await house.call("PUT", f"{path}?offset={CHUNK_BYTES}", noor, headers=BYTES, content=data[CHUNK_BYTES:])
    assert rest.json()["complete"] is True
    assert (await house.call("GET", path, noor)).content == data


@pytest.mark.parametrize(
    ("wanted", "status", "first", "end"),
    [("bytes=0-0", 206, 0, 1), ("bytes=4-", 206, 4, 10), ("bytes=-3", 206, 7, 10), ("bytes=2-99", 206, 2, 10)],
)
async def test_a_part_of_a_file_is_read(house: House, wanted: str, status: int, first: int, end: int) -> None:
    noor = await house.world.person("Noor")
    file = await upload(house, noor, "a.txt", b"0123456789")
    answer = await house.call("GET", f"/api/files/{file['id']}/content", noor, headers={"Range": wanted})
    assert (answer.status_code, answer.content) == (status, b"0123456789"[first:end])
    assert answer.headers["content-range"] == f"bytes {first}-{end - 1}/10"


@pytest.mark.parametrize("wanted", ["bytes=10-", "bytes=5-2", "lines=1-2", "bytes=-", "bytes=0-1,3-4"])
async def test_a_part_that_does_not_exist_is_refused(house: House, wanted: str) -> None:
    noor = await house.world.person("Noor")
    file = await upload(house, noor, "a.txt", b"0123456789")
    answer = await house.call("GET", f"/api/files/{file['id']}/content", noor, headers={"Range": wanted})
    assert (answer.status_code, answer.json()["code"]) == (416, "range_not_satisfiable")


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("photo.png", "inline"),
        ("plan.pdf", "inline"),
        ("page.html", "attachment"),
        ("drawing.svg", "attachment"),
        ("code.js", "attachment"),
        ("feed.xml", "attachment"),
    ],
)
async def test_a_browser_never_runs_a_file(house: House, name: str, how: str) -> None:
    noor = await house.world.person("Noor")
    file = await upload(house, noor, name, b"<script>alert(1)</script>")
    answer = await house.call("GET", f"/api/files/{file['id']}/content", noor)
    assert answer.headers["content-disposition"] == f"{how}; filename*=UTF-8''{name}"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")


async def test_a_link_needs_no_token_and_cannot_be_guessed(house: House) -> None:
    noor = await house.world.person("Noor")
    file = await upload(house, noor)
    link = (await house.call("GET", f"/api/files/{file['id']}/link", noor)).json()["url"]
    assert (await house.call("GET", link)).content == PICTURE
    other = await upload(house, noor, "other.png", b"other")
    forged = f"/files/{file['id']}/x/photo.png"
    for wrong in (link.replace(file["id"], other["id"]), f"{link.rpartition('-')[0]}-0/photo.png", forged):
        assert (await house.call("GET", wrong)).status_code == 404
    house.world.clock.advance(3601)
    assert (await house.call("GET", link)).status_code == 404


async def test_a_link_is_kept_by_no_shared_cache(house: House) -> None:
    noor = await house.world.person("Noor")
    file = await upload(house, noor)
    link = (await house.call("GET", f"/api/files/{file['id']}/link", noor)).json()["url"]
    assert (await house.call("GET", link)).headers["cache-control"] == "private, max-age=600"
    assert (await house.call("GET", f"/api/files/{file['id']}/content", noor)).headers["cache-control"] == "no-store"


async def test_links_are_counted_by_address(small_world: World) -> None:
    """They have no token by which to count, and everyone can ask for them."""
    async with served(small_world, limits=ServerLimits(requests_per_minute=3)) as house:
        answers = [await house.call("GET", "/files/x/y/z.png") for _ in range(4)]
    assert [each.status_code for each in answers] == [404, 404, 404, 429]
    assert answers[-1].headers["retry-after"]


async def test_others_see_nothing_of_a_file(house: House) -> None:
    noor, sam = await house.world.person("Noor"), await house.world.person("Sam")
    file = await upload(house, noor)
    begun = (await house.call("POST", "/api/files", noor, json={"name": "a", "size": 1})).json()
    for method, path in (
        ("GET", f"/api/files/{file['id']}"),
        ("GET", f"/api/files/{file['id']}/content"),
        ("GET", f"/api/files/{file['id']}/link"),
        ("DELETE", f"/api/files/{file['id']}"),
        ("PUT", f"/api/files/{begun['id']}/content"),
    ):
        answer = await house.call(method, path, sam, headers=BYTES)
        assert answer.status_code == 404, (method, path)


async def test_an_upload_can_be_removed(house: House) -> None:
    noor = await house.world.person("Noor")
    file = await upload(house, noor)
    assert (await house.call("DELETE", f"/api/files/{file['id']}", noor)).status_code == 204
    assert (await house.call("GET", f"/api/files/{file['id']}", noor)).status_code == 404


async def test_a_file_of_a_message_is_not_removed(house: House) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    file = await upload(house, noor)
    await house.say(noor, "Look!", kitchen, files=[file["id"]])
    answer = await house.call("DELETE", f"/api/files/{file['id']}", noor)
    assert (answer.status_code, "Delete the message" in answer.json()["detail"]) == (422, True)


async def test_too_large_a_file_is_refused(house: House) -> None:
    house.world.denizen.file_limits = FileLimits(file_bytes=100)
    noor = await house.world.person("Noor")
    answer = await house.call("POST", "/api/files", noor, json={"name": "film.mp4", "size": 101})
    problem = answer.json()
    told = "film.mp4 is too large (101 bytes). Choose a file of at most 100 bytes."
    assert (answer.status_code, problem["detail"], problem["size"], problem["limit"]) == (413, told, 101, 100)
    answer = await house.call("POST", "/api/files", noor, files={"file": ("film.mp4", bytes(200_000))})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert answer.json()["limit"] == 100 + FORM_BYTES


@pytest.mark.parametrize("body", [{"name": "a"}, {"name": "", "size": 1}, {"name": "a", "size": -1}, [], "x"])
async def test_an_upload_without_a_size_is_refused(house: House, body: object) -> None:
    answer = await house.call("POST", "/api/files", await house.world.person("Noor"), json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


async def test_a_form_without_a_file_is_refused(house: House) -> None:
    noor = await house.world.person("Noor")
    answer = await house.call("POST", "/api/files", noor, files={"other": ("a.txt", b"x")})
    assert (answer.status_code, answer.json()["detail"]) == (422, "The form needs a field named `file` with a file.")


async def test_admins_see_how_much_room_files_take(house: House) -> None:
    """The same content counts once, and nobody sees what another organization uses."""
    home, elsewhere = [await house.world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor = await house.world.person("Noor", organization=home)
    other = await house.world.person("Other", organization=elsewhere)
    for name in ("one.png", "two.png"):
        await upload(house, noor, name)
    await upload(house, other, "three.png", PICTURE + b"!")
    answer = await house.call("GET", "/api/organization/files", noor)
    assert answer.json() == {"used": len(PICTURE), "limit": 10_000_000_000, "file_limit": 25_000_000}


async def test_a_link_shows_a_small_copy_and_saves_the_whole(house: House) -> None:
    noor = await house.world.person("Noor")
    made = png(800, 400)
    file = await upload(house, noor, "photo.png", made)
    link = (await house.call("GET", f"/api/files/{file['id']}/link", noor)).json()
    small = await house.client.get(link["thumbnail"])
    assert (small.status_code, small.headers["content-type"]) == (200, "image/jpeg")
    assert small.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert small.headers["x-content-type-options"] == "nosniff"
    assert (await house.client.get(f"{link['url']}?size=321")).status_code == 422
    saved = await house.client.get(f"{link['url']}?download=true")
    assert saved.headers["content-disposition"] == "attachment; filename*=UTF-8''photo.png"
    assert saved.content == made
    notes = await upload(house, noor, "notes.txt", b"Milk")
    plain = (await house.call("GET", f"/api/files/{notes['id']}/link", noor)).json()
    assert plain["thumbnail"] is None
    assert (await house.client.get(f"{plain['url']}?size=320")).status_code == 404


async def test_a_link_shows_the_pages_of_a_pdf(house: House) -> None:
    noor = await house.world.person("Noor")
    file = await upload(house, noor, "menu.pdf", pdf("Soup first.", "Then pie."))
    link = (await house.call("GET", f"/api/files/{file['id']}/link", noor)).json()
    page = await house.client.get(f"{link['url']}?page=2")
    assert (page.status_code, page.headers["content-type"], page.headers["denizen-pages"]) == (200, "image/jpeg", "2")
    assert page.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert (await house.client.get(f"{link['url']}?page=3")).status_code == 404
    forged = link["url"].replace("/menu.pdf", "x/menu.pdf")
    assert (await house.client.get(f"{forged}?page=1")).status_code == 404
    photo = await upload(house, noor, "photo.png", png(8, 4))
    picture = (await house.call("GET", f"/api/files/{photo['id']}/link", noor)).json()
    assert (await house.client.get(f"{picture['url']}?page=1")).status_code == 404


async def test_an_upload_that_cannot_begin_says_why_in_plain_words(house: House) -> None:
    noor = await house.world.person("Noor")
    for body, told in [
        ({"name": "empty.txt", "size": 0}, "empty.txt is empty."),
        ({"name": "a.txt", "size": -1}, "size: Input should be greater than or equal to 0."),
        ({"name": "a.txt"}, "size: Field required."),
    ]:
        answer = await house.call("POST", "/api/files", noor, json=body)
        assert (answer.status_code, answer.json()["detail"]) == (422, told)
    answer = await house.call("POST", "/api/files", noor, content=b"{", headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "Send `name` and `size` as JSON, or a form with the field `file`.",
    )
