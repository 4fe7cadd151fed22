"""Pictures of people and agents, and descriptions of pictures in messages."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from denizen.access import roles
from denizen.files.cleanup import tidy
from denizen.storage.database import statement, values
from denizen.storage.schema import entity_pictures
from tests.files.pictures import photo, pixel_bomb, png
from tests.server.conftest import House

PNG = {"Content-Type": "image/png"}
JPEG = {"Content-Type": "image/jpeg"}


async def test_one_sets_and_removes_ones_own_picture(house: House) -> None:
    noor, sam = await house.world.person("Noor"), await house.world.person("Sam")
    path = f"/api/entities/{noor.id}/picture"
    assert (await house.call("GET", "/api/pictures", sam)).json() == {"pictures": {}}
    answer = await house.call("PUT", path, noor, content=photo(800, 400), headers=JPEG)
    assert answer.status_code == 200, answer.text
    url = answer.json()["url"]
    assert (await house.call("GET", "/api/pictures", sam)).json() == {"pictures": {noor.id: url}}

    # A browser sends no token for a picture.
    shown = await house.call("GET", url)
    assert (shown.status_code, shown.headers["content-type"]) == (200, "image/jpeg")
    assert "immutable" in shown.headers["cache-control"]
    made = Image.open(io.BytesIO(shown.content))
    assert made.size == (128, 256), "small, and upright"
    assert (b"Secret place" in shown.content, dict(made.getexif())) == (False, {})

    again = (await house.call("PUT", path, noor, content=png(), headers=PNG)).json()["url"]
    assert (again != url, (await house.call("GET", url)).status_code) == (True, 404)
    assert (await house.call("DELETE", path, noor)).status_code == 204
    assert (await house.call("DELETE", path, noor)).status_code == 204
    assert (await house.call("GET", again)).status_code == 404
    assert (await house.call("GET", "/api/pictures", sam)).json() == {"pictures": {}}


async def test_nobody_chooses_the_picture_of_another_person(house: House) -> None:
    """An admin chooses those of agents."""
    world = house.world
    noor, sam, ada = await world.person("Noor"), await world.person("Sam"), await world.agent("Ada")
    await world.denizen.db.write(roles.set_role, sam.id, "member")
    for who, whose, status in [(noor, sam.id, 403), (sam, ada.id, 403), (noor, ada.id, 200), (noor, "nobody", 404)]:
        path = f"/api/entities/{whose}/picture"
        put = await house.call("PUT", path, who, content=png(), headers=PNG)
        assert put.status_code == status, put.text
        assert (await house.call("DELETE", path, who)).status_code == {200: 204}.get(status, status)
    for_agent = await house.call("PUT", "/api/entities/@ada/picture", noor, content=png(), headers=PNG)
    assert for_agent.status_code == 200


@pytest.mark.parametrize("what", ["text", "bomb", "svg", "large"])
async def test_what_is_no_picture_is_refused(house: House, what: str) -> None:
    noor = await house.world.person("Noor")
    path = f"/api/entities/{noor.id}/picture"
    content, kind, status = {
        "text": (b"Hello", "image/png", 422),
        "bomb": (pixel_bomb(), "image/png", 422),
        "svg": (b"<svg/>", "image/svg+xml", 415),
        "large": (bytes(11 * 1024 * 1024), "image/png", 413),
    }[what]
    answer = await house.call("PUT", path, noor, content=content, headers={"Content-Type": kind})
    assert answer.status_code == status, answer.text
    assert (await house.call("GET", "/api/pictures", noor)).json() == {"pictures": {}}


async def test_a_person_who_is_forgotten_has_no_picture(house: House) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    for who in (noor, sam):
        await world.denizen.people.set_picture(who, png())
    url = (await house.call("GET", "/api/pictures", noor)).json()["pictures"][sam.id]
    receipt = await world.denizen.people.forget(sam)
    assert receipt.removed["entity_pictures"] == 1
    assert (await house.call("GET", url)).status_code == 404
    left = statement(entity_pictures.select().with_only_columns(entity_pictures.c.entity_id))
    assert await world.denizen.db.read(lambda tx: values(tx, left)) == [noor.id]
    await world.denizen.people.remove_picture(noor)
    assert await world.denizen.db.read(lambda tx: values(tx, left)) == []


async def test_a_picture_is_described_over_http(house: House) -> None:
    noor, sam = await house.world.person("Noor"), await house.world.person("Sam")
    hall = await house.world.space("Hall", noor, sam)
    begun = await house.call("POST", "/api/files", noor, json={"name": "a.png", "size": len(png()), "alt": "A cat."})
    file = begun.json()
    assert file["alt"] == "A cat."
    path = f"/api/files/{file['id']}"
    await house.call(
        "PUT", f"{path}/content", noor, content=png(), headers={"Content-Type": "application/octet-stream"}
    )
    assert (await house.call("PATCH", path, sam, json={"alt": "A dog."})).status_code == 404
    assert (await house.call("PATCH", path, noor, json={"alt": "Two cats."})).json()["alt"] == "Two cats."
    posted = await house.call("POST", f"/api/spaces/{hall.id}/messages", noor, json={"text": "", "files": [file["id"]]})
    assert posted.json()["files"][0]["alt"] == "Two cats."
    refused = await house.call("PATCH", path, noor, json={"alt": "A dog."})
    assert (refused.status_code, "was sent already" in refused.json()["detail"]) == (422, True)
    await tidy(house.world.denizen.db)
    assert (await house.call("GET", path, sam)).json()["alt"] == "Two cats."
