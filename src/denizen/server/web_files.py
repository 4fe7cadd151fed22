"""Serves the files of the built web client, and the one page for all its addresses.

Names below `assets/` contain the hash of the file: browsers cache them for ever. Everything else is revalidated each
time, and answered 304 if unchanged. Nothing outside the list of built files can be requested.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import mimetypes
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response

from denizen.server.problems import problem_response

WEB_FOLDER: Final = Path(__file__).with_name("web")

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; font-src 'self'; "
    "frame-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
WITH_REMOTE_PICTURES: Final = CONTENT_SECURITY_POLICY.replace("img-src 'self' data:;", "img-src 'self' data: https:;")
"""For people whose organization shows pictures of other sites."""
_SCRIPT_POLICY: Final = "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'"
"""For scripts: a worker has the policy of its own file, not of the page that started it."""
_DIAGRAM: Final = "/diagram.html"
_DIAGRAM_POLICY: Final = (
    "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'self'"
)
"""For the frame that draws diagrams from texts of anyone: it has no origin, and reaches nothing but its scripts."""
SHELL_HEADER: Final = "Denizen-Shell"
"""Only the page has it: the service worker keeps that for times without a connection, and nothing else."""
_ASSETS: Final = "/assets/"
_INDEX: Final = "/index.html"
_BASE: Final = b'="./'
"""How addresses in the page begin, as it was built."""
_NOT_PAGES: Final = ("/api", "/v1", "/hooks", "/metrics", "/healthz", "/readyz", "/login/oidc")
"""Below these paths nothing is a page of the web client."""
_TYPES: Final = {".webmanifest": "application/manifest+json", ".js": "text/javascript", ".svg": "image/svg+xml"}
_UNBUILT: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Denizen</title>
<h1>Denizen</h1>
<p>The server runs, but its web client was not built. In the folder of its sources, run <code>make web</code>.</p>
<p><a href="/login">Sign in</a> · the API is described at <a href="/api/openapi.json">/api/openapi.json</a></p>
</html>
"""


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    gzipped: bytes | None
    media_type: str
    etag: str


class WebFiles:
    """The files of one build, read on the first request, and again after another build."""

    def __init__(self, folder: Path = WEB_FOLDER) -> None:
        self._folder = folder
        self._files: dict[str, _File] = {}
        self._pages: dict[str, _File] = {}
        """The one page, by the path that public addresses begin with."""
        self._built_at = 0

    @property
    def built(self) -> bool:
        """Whether the web client was built."""
        return (self._folder / "index.html").is_file()

    def answer(
        self, method: str, path: str, headers: Headers, base: str = "", *, remote_pictures: bool = False
    ) -> Response | None:
        """Returns the answer to a request for a file or a page; None if it is for neither.

        Addresses in the page begin with the path `base`.
        """
        if method not in ("GET", "HEAD") or path.startswith(_NOT_PAGES):
            return None
        self._read_again()
        if path in self._files and path != _INDEX:
            sent = _sent(self._files[path], headers, for_ever=path.startswith(_ASSETS))
            if path == _DIAGRAM:
                sent.headers["Content-Security-Policy"] = _DIAGRAM_POLICY
                sent.headers["X-Frame-Options"] = "SAMEORIGIN"
            return sent
        if path.startswith(_ASSETS):
            return problem_response("not_found", "There is no such file. Reload the page: it may be an older one.")
        if path != "/" and "text/html" not in headers.get("accept", ""):
            return None
        if _INDEX not in self._files:
            return Response(_UNBUILT, media_type="text/html") if path == "/" else None
        if base not in self._pages:
            self._pages[base] = _page(self._files[_INDEX], base)
        # A browser that has the page with the other policy has another page.
        page = _sent(self._pages[base], headers, for_ever=False, variant="-pictures" if remote_pictures else "")
        page.headers["Vary"] = "Accept-Encoding, Cookie"
        page.headers["Content-Security-Policy"] = WITH_REMOTE_PICTURES if remote_pictures else CONTENT_SECURITY_POLICY
        page.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        page.headers[SHELL_HEADER] = "page"
        return page

    def _read_again(self) -> None:
        try:
            built_at = (self._folder / "index.html").stat().st_mtime_ns
        except OSError:
            self._files, self._pages, self._built_at = {}, {}, 0
            return
        if built_at != self._built_at:
            self._files, self._pages, self._built_at = _read(self._folder), {}, built_at


def _read(folder: Path) -> dict[str, _File]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".gz"]
    return {f"/{path.relative_to(folder).as_posix()}": _file(path) for path in paths}


def _page(built: _File, base: str) -> _File:
    """The page, with addresses that are right at every address of the web client."""
    content = built.content.replace(_BASE, f'="{html.escape(base)}/'.encode())
    etag = hashlib.sha256(content).hexdigest()[:32]
    return _File(content, gzip.compress(content, mtime=0), built.media_type, etag)


def _file(path: Path) -> _File:
    content = path.read_bytes()
    beside = path.with_name(f"{path.name}.gz")
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    etag = hashlib.sha256(content).hexdigest()[:32]
    return _File(content, beside.read_bytes() if beside.is_file() else None, media_type, etag)


def _sent(file: _File, headers: Headers, *, for_ever: bool, variant: str = "") -> Response:
    squeezed = file.gzipped is not None and "gzip" in headers.get("accept-encoding", "")
    etag = f'"{file.etag}{variant}{"-gzip" if squeezed else ""}"'
    sent = {
        "Cache-Control": "public, max-age=31536000, immutable" if for_ever else "no-cache",
        "ETag": etag,
        "Vary": "Accept-Encoding",
    }
    if file.media_type == "text/javascript":
        sent["Content-Security-Policy"] = _SCRIPT_POLICY
    if for_ever:
        # A frame without an origin may load them: they are the same for everyone.
        sent["Access-Control-Allow-Origin"] = "*"
    if etag in headers.get("if-none-match", ""):
        return Response(status_code=304, headers=sent)
    if squeezed:
        sent["Content-Encoding"] = "gzip"
    return Response(file.gzipped if squeezed else file.content, headers=sent, media_type=file.media_type)
