"""The program inside the jail: reads one file from standard input, and writes its text or a picture of it.

It meets hostile files, so it is a process of its own, started by `jail` for one file; it has limits before it reads the
first byte, no environment, and no network where the kernel allows it. It imports nothing of Denizen: only the parser
that it needs. Whatever goes wrong inside a parser ends this process and nothing else.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import resource
import signal
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, Final

MEMORY_BYTES: Final = 1024**3
WRITTEN_BYTES: Final = 16 * 1024**2
DESCRIPTORS: Final = 64
UNPACKED_BYTES: Final = 200 * 1024**2
"""How large all parts of an Office document may be together."""
MOST_PARTS: Final = 10_000
MOST_PIXELS: Final = 50_000_000
MOST_PAGES: Final = 2_000
MOST_CHARACTERS: Final = 4_000_000
"""Text beyond this is left out."""
_ONE_AT_A_TIME: Final = 1024**2
_PICTURES: Final = ("PNG", "JPEG", "GIF", "WEBP", "AVIF")
_QUALITIES: Final = (85, 70, 50)
PAGE_PIXELS: Final = 1568
"""The longer edge of a page of a PDF that is drawn."""
PICTURE_BYTES: Final = 1024**2
"""A picture is encoded with less quality if it would be larger."""
_NEW_NETWORK_AND_USER: Final = 0x40000000 | 0x10000000
_NEW_NETWORK: Final = 0x40000000
_DIE_WITH_PARENT, _NO_NEW_PRIVILEGES = 1, 38


class Unreadable(Exception):
    """Why a file has no text or cannot be shown, in words for people."""


def confine(cpu_seconds: int) -> None:
    """Limit this process, permanently."""
    for what, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, WRITTEN_BYTES),
        (resource.RLIMIT_NOFILE, DESCRIPTORS),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))
    os.nice(10)
    with contextlib.suppress(OSError, AttributeError):  # not on every system
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        if libc.unshare(_NEW_NETWORK_AND_USER) != 0:
            libc.unshare(_NEW_NETWORK)


# Text


def _open_pdf(data: bytes) -> Any:
    import pypdfium2  # pyright: ignore[reportMissingTypeStubs]

    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error).lower()
        raise Unreadable("it needs a password" if locked else "it is damaged") from error


def pdf_pages(data: bytes) -> Iterator[str]:
    document = _open_pdf(data)
    for number in range(min(len(document), MOST_PAGES)):
        page = document[number]
        yield page.get_textpage().get_text_bounded().replace("\r\n", "\n")
        page.close()


_WORD: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def word_pages(data: bytes) -> Iterator[str]:
    _check_parts(data)
    import docx

    lines: list[str] = []
    document: Any = docx.Document(io.BytesIO(data))
    for block in document.element.body:
        if block.tag == _WORD + "tbl":
            rows = block.iter(_WORD + "tr")
            lines.extend(" | ".join(_word_text(cell) for cell in row.iter(_WORD + "tc")) for row in rows)
        else:
            lines.extend(_word_text(each) for each in block.iter(_WORD + "p"))
    yield "\n".join(lines)


def _word_text(element: Any) -> str:
    told = {_WORD + "tab": "\t", _WORD + "br": "\n"}
    return "".join(told.get(each.tag) or each.text or "" for each in element.iter(_WORD + "t", *told))


def slide_pages(data: bytes) -> Iterator[str]:
    _check_parts(data)
    import pptx

    for slide in pptx.Presentation(io.BytesIO(data)).slides:
        lines = list(_shape_lines(slide.shapes))
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            lines += [f"Notes: {notes}"] if notes else []
        yield "\n".join(lines)


def _shape_lines(shapes: Any) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shape_lines(shape.shapes)
        elif getattr(shape, "has_table", False):
            for row in shape.table.rows:
                yield " | ".join(cell.text for cell in row.cells)
        elif getattr(shape, "has_text_frame", False) and shape.text_frame.text.strip():
            yield shape.text_frame.text


def sheet_pages(data: bytes) -> Iterator[str]:
    if data.startswith(b"PK"):
        _check_parts(data)
    import python_calamine

    book: Any = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
    for name in book.sheet_names:
        lines = [f"Sheet: {name}"]
        for row in book.get_sheet_by_name(name).iter_rows():
            cells = "\t".join("" if cell is None else str(cell) for cell in row).rstrip()
            if cells:
                lines.append(cells)
        yield "\n".join(lines)


_BLOCKS: Final = "p,div,br,li,tr,h1,h2,h3,h4,h5,h6,section,article,blockquote,pre,table,ul,ol,dt,dd,hr,header,footer"


def html_pages(data: bytes) -> Iterator[str]:
    yield _html_text(_decoded(data))


def _html_text(source: str) -> str:
    from selectolax.lexbor import LexborHTMLParser

    tree: Any = LexborHTMLParser(source)
    tree.strip_tags(["script", "style", "noscript", "template", "svg"])
    for cell in tree.css("td,th"):
        cell.insert_after("\t")
    for block in tree.css(_BLOCKS):
        block.insert_after("\n")
    text: str = tree.body.text() if tree.body is not None else ""
    lines = [" ".join(line.split(" ")).strip() for line in text.replace("\r", "").split("\n")]
    return "\n".join(line for at, line in enumerate(lines) if line or (at and lines[at - 1]))


def mail_pages(data: bytes) -> Iterator[str]:
    import email
    import email.policy

    message: Any = email.message_from_bytes(data, policy=email.policy.default)
    lines = [f"{name}: {message[name]}" for name in ("From", "To", "Cc", "Date", "Subject") if message[name]]
    lines += [f"Attachment: {part.get_filename() or 'unnamed'}" for part in message.iter_attachments()]
    body = message.get_body(("plain", "html"))
    if body is not None:
        text = body.get_content()
        lines += ["", _html_text(text) if body.get_content_subtype() == "html" else text]
    yield "\n".join(lines)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


_FORBIDDEN: Final = tuple(word.encode(code) for word in ("<!DOCTYPE", "<!ENTITY") for code in ("utf-8", "utf-16-le"))
_OVERLAP: Final = max(map(len, _FORBIDDEN))


def _check_parts(data: bytes) -> None:
    """Unpack an Office document once, without keeping it: it must not be a bomb, nor declare entities."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        parts = archive.infolist()
        if len(parts) > MOST_PARTS or sum(each.file_size for each in parts) > UNPACKED_BYTES:
            raise Unreadable("it is too large when unpacked")
        for part in parts:
            if part.filename.endswith((".xml", ".rels", ".vml")):
                _check_part(archive, part)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise Unreadable("it is damaged or encrypted") from error


def _check_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    with archive.open(part) as unpacked:
        before = b""
        while piece := unpacked.read(_ONE_AT_A_TIME):
            looked_at = before + piece
            if any(word in looked_at for word in _FORBIDDEN):
                raise Unreadable("it declares entities")
            before = piece[-_OVERLAP:]


READERS: Final[dict[str, Callable[[bytes], Iterator[str]]]] = {
    "pdf": pdf_pages,
    "word": word_pages,
    "slides": slide_pages,
    "sheets": sheet_pages,
    "html": html_pages,
    "mail": mail_pages,
}


def text(kind: str, data: bytes) -> dict[str, Any]:
    """The pages of the file, as far as they are not too long together."""
    pages: list[str] = []
    left = MOST_CHARACTERS
    for page in READERS[kind](data):
        shown = page[:left].replace("\0", "\ufffd").encode("utf-8", "replace").decode()
        left -= len(shown)
        pages.append(shown)
        if left <= 0:
            break
    if not any(page.strip() for page in pages):
        raise Unreadable("it has no text")
    return {"pages": pages}


# Pictures


def picture(size: int, data: bytes) -> tuple[dict[str, Any], bytes]:
    """The picture as a JPEG of at most `size` by `size` pixels, upright, on white, without what a camera wrote into
    it."""
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    try:
        image: Any = Image.open(io.BytesIO(data), formats=_PICTURES)
        before = image.size
        image.draft("RGB", (size, size))
        image.thumbnail((size, size))
        image = ImageOps.exif_transpose(image)
    except Image.UnidentifiedImageError as error:
        raise Unreadable("it is damaged, or not a PNG, JPEG, GIF, WebP or AVIF") from error
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise Unreadable(f"it has more than {MOST_PIXELS:,} pixels") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise Unreadable("it is damaged") from error
    if image.mode not in ("RGB", "L"):
        clear = image.convert("RGBA")
        image = Image.new("RGB", clear.size, "white")
        image.paste(clear, mask=clear.getchannel("A"))
    return {"width": image.size[0], "height": image.size[1], "from": before}, _jpeg(image)


def pdf_page(number: int, data: bytes) -> tuple[dict[str, Any], bytes]:
    """A page of a PDF as a JPEG; the first one is 1."""
    document = _open_pdf(data)
    pages = min(len(document), MOST_PAGES)
    if not 1 <= number <= pages:
        raise Unreadable("it has no such page")
    page = document[number - 1]
    drawn: Any = page.render(scale=PAGE_PIXELS / max(*page.get_size(), 1))
    image = drawn.to_pil().convert("RGB")
    return {"width": image.size[0], "height": image.size[1], "pages": pages}, _jpeg(image)


def _jpeg(image: Any) -> bytes:
    for quality in _QUALITIES:
        out = io.BytesIO()
        image.save(out, "JPEG", quality=quality, subsampling=0 if quality == _QUALITIES[0] else 2, optimize=True)
        if out.tell() <= PICTURE_BYTES:
            return out.getvalue()
    raise Unreadable("it is too large")


def main() -> None:
    """`jailed.py text KIND`, `jailed.py picture SIZE` or `jailed.py page NUMBER`: a line of JSON, then the bytes of the
    picture."""
    confine(cpu_seconds=int(sys.argv[3]))
    data = sys.stdin.buffer.read()
    payload = b""
    try:
        if sys.argv[1] == "picture":
            told, payload = picture(int(sys.argv[2]), data)
        elif sys.argv[1] == "page":
            told, payload = pdf_page(int(sys.argv[2]), data)
        else:
            told = text(sys.argv[2], data)
    except Unreadable as error:
        told = {"trouble": str(error)}
    except (MemoryError, RecursionError):
        told = {"trouble": "it is too large"}
    except Exception:  # noqa: BLE001  a parser raises whatever it likes for a file that is wrong
        told = {"trouble": "it is damaged"}
    sys.stdout.buffer.write(json.dumps(told).encode() + b"\n" + payload)
    sys.stdout.buffer.flush()
    # Whatever a parser left behind is not cleaned up: that may crash, too.
    os._exit(0)


if __name__ == "__main__":
    main()
