"""Files: uploading them, and reading those of messages."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, cast
from urllib.parse import quote

from fastapi import Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import UploadFile

from denizen.errors import InvalidInput, NotAllowed, NotFound, existing
from denizen.files.pictures import THUMBNAIL, is_picture
from denizen.files.storing import CHUNK_BYTES, File
from denizen.ids import FileId
from denizen.server.auth import Admin, Authenticated
from denizen.server.bodies import parse_json
from denizen.server.context import Context, context_of
from denizen.server.problems import Problem
from denizen.server.router import new_router
from denizen.server.shapes.filling import filled
from denizen.shapes.files import FileLink, FileOut, FileUsage

router = new_router()

SHOWN: Final = frozenset(
    {
        "application/pdf",
        "audio/mpeg",
        "audio/mp4",
        "audio/ogg",
        "audio/wav",
        "audio/webm",
        "image/avif",
        "image/gif",
        "image/jpeg",
        "image/png",
        "image/webp",
        "text/plain",
        "video/mp4",
        "video/ogg",
        "video/webm",
    }
)
"""Types that a browser may show itself. Everything else, HTML and SVG in particular, is only downloaded."""
_HEADERS: Final = {
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
    "Accept-Ranges": "bytes",
    # Of a link: only the browser that asked may keep it, and not for long. Below /api nothing is kept.
    "Cache-Control": "private, max-age=600",
}
PAGES_HEADER: Final = "Denizen-Pages"
"""How many pages a PDF has, with each of its pages that is drawn."""
_RANGE: Final = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")
_BINARY: Final = {"type": "string", "format": "binary", "examples": ["Soup, then pie."]}
_ANY: Final = {"content": {"*/*": {"schema": _BINARY}}}
_BYTES: Final = {"content": {"application/octet-stream": {"schema": _BINARY}}}


Alt = Annotated[
    str | None, Field(max_length=4_000, description="What the picture shows, for models and people that cannot see it.")
]


class NewFile(BaseModel):
    """An upload to begin."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "photo.jpg", "size": 48213}]})

    name: Annotated[str, Field(min_length=1, max_length=1_000)]
    size: Annotated[int, Field(ge=0, description="In bytes. An empty file is refused.")]
    media_type: Annotated[str | None, Field(max_length=200, description="Guessed from the name if missing.")] = None
    alt: Alt = None


class FileChange(BaseModel):
    """A description of an upload."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"alt": "A cat on a keyboard."}]})

    alt: Alt


@router.post(
    "/api/files",
    status_code=201,
    summary="Upload a file",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": NewFile.model_json_schema()},
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "properties": {"file": _BINARY},
                        "required": ["file"],
                    }
                },
            },
        }
    },
)
async def create_file(request: Request, caller: Authenticated) -> FileOut:
    """As a form with the field `file`; or as JSON, to send the bytes with `PUT /api/files/{id}/content`.

    Then name its id when you post a message. An upload that no message uses is removed after a day.
    """
    files = context_of(request).runtime.files
    if request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        async with request.form(max_files=1, max_fields=0) as form:
            given = form.get("file")
            if not isinstance(given, UploadFile) or given.size is None:
                raise InvalidInput("The form needs a field named `file` with a file.")
            begun = await files.begin(
                caller.entity.id, name=given.filename or "file", size=given.size, media_type=given.content_type
            )
            return await _out(request, await files.append(begun, 0, _pieces(given)))
    wanted = _new_file(await request.body())
    begun = await files.begin(
        caller.entity.id, name=wanted.name, size=wanted.size, media_type=wanted.media_type, alt=wanted.alt
    )
    return await _out(request, begun)


def _new_file(body: bytes) -> NewFile:
    try:
        return NewFile.model_validate(parse_json(body))
    except ValidationError as error:
        raise RequestValidationError([each | {"loc": ("body", *each["loc"])} for each in error.errors()]) from error
    except ValueError as error:
        raise InvalidInput("Send `name` and `size` as JSON, or a form with the field `file`.") from error


async def _pieces(given: UploadFile) -> AsyncIterator[bytes]:
    while data := await given.read(CHUNK_BYTES):
        yield data


@router.put(
    "/api/files/{file_id}/content",
    summary="Send the bytes of an upload",
    openapi_extra={"requestBody": {"required": True, **_BYTES}, "x-who": "the uploader"},
)
async def upload_content(
    request: Request,
    caller: Authenticated,
    file_id: str,
    offset: Annotated[int, Query(ge=0, description="Where these bytes begin: `arrived` of the upload.")] = 0,
) -> FileOut:
    """All at once or in parts, each beginning at `arrived`. Bytes are stored in pieces of 256 KB as they arrive."""
    files = context_of(request).runtime.files
    file = await files.get(FileId(file_id), reader=caller.entity.id)
    if file.uploader_id != caller.entity.id:
        raise NotAllowed("This upload was begun by somebody else. Begin one of your own.")
    return await _out(request, await files.append(file, offset, request.stream()))


@router.get("/api/organization/files", summary="Get the room that files take")
async def get_file_usage(caller: Admin) -> FileUsage:
    """And how much they may take. Operators set the limits (`files.organization_bytes`, `files.file_bytes`)."""
    runtime = caller.runtime
    limits = runtime.file_limits
    used = await runtime.files.used(caller.entity.organization_id)
    return FileUsage(used=used, limit=limits.organization_bytes, file_limit=limits.file_bytes)


@router.get("/api/files/{file_id}", summary="An upload, or a file of a message")
async def get_file(request: Request, caller: Authenticated, file_id: str) -> FileOut:
    """For members of the space of its message; until it is attached, for the person who uploaded it."""
    return await _out(request, await context_of(request).runtime.files.get(FileId(file_id), reader=caller.entity.id))


@router.patch("/api/files/{file_id}", summary="Describe an upload")
async def describe_file(request: Request, caller: Authenticated, file_id: str, change: FileChange) -> FileOut:
    """Before a message has it. Agents and screen readers are told what it says."""
    files = context_of(request).runtime.files
    return await _out(request, await files.describe(FileId(file_id), change.alt, by=caller.entity.id))


@router.delete("/api/files/{file_id}", status_code=204, summary="Remove an upload that no message uses")
async def delete_file(caller: Authenticated, file_id: str) -> None:
    """A file of a message is removed by deleting the message."""
    await caller.runtime.files.remove(FileId(file_id), by=caller.entity.id)


@router.get(
    "/api/files/{file_id}/content",
    summary="The bytes of a file",
    response_class=Response,
    responses={200: {"description": "The bytes.", **_ANY}, 206: {"description": "Some of them.", **_ANY}},
)
async def read_content(
    request: Request, caller: Authenticated, file_id: str, wanted: Annotated[str | None, Header(alias="Range")] = None
) -> Response:
    """Also in parts, with the header `Range`. Only harmless types are shown by browsers, others are downloaded."""
    context = context_of(request)
    return _send(context, await context.runtime.files.get(FileId(file_id), reader=caller.entity.id), wanted)


@router.get("/api/files/{file_id}/link", summary="An address of a file for browsers")
async def get_link(request: Request, caller: Authenticated, file_id: str) -> FileLink:
    """Pictures and players of a page cannot send a token: this address needs none, for an hour."""
    context = context_of(request)
    files = context.runtime.files
    file = await files.get(FileId(file_id), reader=caller.entity.id)
    signed = files.sign(file)
    until = datetime.fromtimestamp(int(signed.partition("-")[0]), UTC)
    url = f"{context.reach.path}/files/{file.id}/{signed}/{quote(file.name, safe='')}"
    thumbnail = f"{url}?size={THUMBNAIL}" if is_picture(file.media_type) else None
    return FileLink(url=url, thumbnail=thumbnail, expires_at=until)


@router.get("/files/{file_id}/{signed}/{name}", include_in_schema=False)
async def read_link(
    request: Request,
    file_id: str,
    signed: str,
    size: int | None = None,
    page: int | None = None,
    download: bool = False,
    wanted: Annotated[str | None, Header(alias="Range")] = None,
) -> Response:
    context = context_of(request)
    file = await context.runtime.files.get(FileId(file_id))
    if not context.runtime.files.is_signed(file, signed):
        raise NotFound("file", file_id)
    if page is not None:
        drawn = existing(await context.runtime.files.page(file, page), "page", str(page))
        headers = {**_headers(file, "inline", len(drawn.data)), PAGES_HEADER: str(drawn.pages)}
        return Response(drawn.data, media_type=drawn.media_type, headers=headers)
    if size is None:
        return _send(context, file, wanted, download=download)
    made = existing(await context.runtime.files.variant(file, size), "file", file_id)
    return Response(made.data, media_type=made.media_type, headers=_headers(file, "inline", len(made.data)))


def _headers(file: File, how: Literal["inline", "attachment"], size: int) -> dict[str, str]:
    return {
        **_HEADERS,
        "Content-Disposition": f"{how}; filename*=UTF-8''{quote(file.name, safe='')}",
        "Content-Length": str(size),
    }


def _send(context: Context, file: File, wanted: str | None, *, download: bool = False) -> Response:
    if not file.is_complete:
        raise InvalidInput(f"The upload of {file.name} is not finished.")
    first, end = _range(wanted, file.size)
    headers = _headers(file, "inline" if file.media_type in SHOWN and not download else "attachment", end - first)
    if wanted is not None:
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{file.size}"
    return StreamingResponse(
        context.runtime.files.parts(file, first=first, end=end),
        status_code=200 if wanted is None else 206,
        media_type="text/plain; charset=utf-8" if file.media_type == "text/plain" else file.media_type,
        headers=headers,
    )


def _range(wanted: str | None, size: int) -> tuple[int, int]:
    """The first byte, and the one after the last."""
    if wanted is None:
        return 0, size
    match = _RANGE.fullmatch(wanted.strip())
    start, stop = cast("tuple[str, str]", match.groups()) if match else ("", "")
    first = int(start) if start else max(size - int(stop or 0), 0)
    end = min(int(stop) + 1, size) if start and stop else size
    if match is None or first >= end:
        raise Problem(
            "range_not_satisfiable", f"The file has {size:,} bytes.", headers={"Content-Range": f"bytes */{size}"}
        )
    return first, end


async def _out(request: Request, file: File) -> FileOut:
    arrived = await context_of(request).runtime.files.arrived(file)
    return filled(FileOut, file, arrived=arrived, complete=file.is_complete)
