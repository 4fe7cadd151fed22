"""The web client's files over HTTP: who gets which, how long they are kept, and what a page may do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from starlette.datastructures import Headers
from starlette.responses import Response

from denizen.server.web_files import CONTENT_SECURITY_POLICY, WebFiles
from tests.server.conftest import served
from tests.world import World

PAGE = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    web = tmp_path / "web"
    (web / "assets").mkdir(parents=True)
    (web / "index.html").write_text("<!doctype html>one")
    script = b"console.log(1)" * 100
    (web / "assets" / "index-abc.js").write_bytes(script)
    (web / "assets" / "index-abc.js.gz").write_bytes(gzip.compress(script))
    (web / "icon.svg").write_text("<svg/>")
    return web


def ask(files: WebFiles, path: str, method: str = "GET", **headers: str) -> Response | None:
    return files.answer(method, path, Headers({name.replace("_", "-"): value for name, value in headers.items()}))


def test_every_address_of_the_client_shows_its_page(folder: Path) -> None:
    files = WebFiles(folder)
    for path in ("/", "/s/1/m/2", "/login", "/agents/new", "/admin/people", "/index.html"):
        page = ask(files, path, **PAGE)
        assert page is not None, path
        assert bytes(page.body) == b"<!doctype html>one"
        assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert page.headers["cache-control"] == "no-cache"
        assert page.headers["content-type"].startswith("text/html")
        assert page.headers["denizen-shell"] == "page"


@pytest.mark.parametrize(
    "path", ["/api/me", "/api/nothing", "/v1/models", "/hooks/x", "/metrics", "/healthz", "/readyz"]
)
def test_what_is_no_page_is_left_to_others(folder: Path, path: str) -> None:
    assert ask(WebFiles(folder), path, **PAGE) is None


def test_what_does_not_ask_for_a_page_gets_none(folder: Path) -> None:
    files = WebFiles(folder)
    assert ask(files, "/nothing", accept="application/json") is None
    assert ask(files, "/", "POST", **PAGE) is None
    assert ask(files, "/../pyproject.toml") is None
    missing = ask(files, "/assets/index-old.js", **PAGE)
    assert missing is not None
    assert missing.status_code == 404


def test_assets_are_kept_for_ever_and_sent_squeezed_to_whoever_takes_that(folder: Path) -> None:
    files = WebFiles(folder)
    whole = ask(files, "/assets/index-abc.js")
    squeezed = ask(files, "/assets/index-abc.js", accept_encoding="br, gzip")
    assert whole is not None
    assert squeezed is not None
    assert whole.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "content-encoding" not in whole.headers
    assert squeezed.headers["content-encoding"] == "gzip"
    assert squeezed.headers["content-type"].startswith("text/javascript")
    assert gzip.decompress(bytes(squeezed.body)) == bytes(whole.body)
    assert whole.headers["etag"] != squeezed.headers["etag"]


def test_what_is_the_same_is_not_sent_again_and_another_build_is_seen(folder: Path) -> None:
    files = WebFiles(folder)
    first = ask(files, "/", **PAGE)
    assert first is not None
    again = ask(files, "/", if_none_match=first.headers["etag"], **PAGE)
    assert again is not None
    assert (again.status_code, bytes(again.body)) == (304, b"")
    (folder / "index.html").write_text("<!doctype html>two")
    another = ask(files, "/", if_none_match=first.headers["etag"], **PAGE)
    assert another is not None
    assert bytes(another.body) == b"<!doctype html>two"


async def test_a_server_without_a_built_client_says_how_to_build_it(small_world: World, tmp_path: Path) -> None:
    async with served(small_world, web=tmp_path / "nowhere") as house:
        answer = await house.call("GET", "/", headers=PAGE)
        assert (answer.status_code, "make web" in answer.text) == (200, True)
        assert (await house.call("GET", "/login", headers=PAGE)).status_code == 200  # the plain page is there
        assert (await house.call("GET", "/s/1", headers=PAGE)).status_code == 401


async def test_a_page_is_for_our_names_only_and_has_the_headers_of_every_answer(
    small_world: World, folder: Path
) -> None:
    async with served(small_world, web=folder) as house:
        page = await house.call("GET", "/s/1", headers=PAGE)
        assert page.status_code == 200
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        head = await house.call("HEAD", "/assets/index-abc.js")
        assert (head.status_code, head.content) == (200, b"")
        refused = await house.call("GET", "/", headers={**PAGE, "Host": "evil.example"})
        assert refused.status_code == 421
