"""Documents for tests, and hostile ones, made when they are needed."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from email.message import EmailMessage
from typing import Any


def pdf(*pages: str, flate: bool = False) -> bytes:
    """A PDF with these lines, one to a page."""
    count = len(pages)
    kids = " ".join(f"{3 + 2 * at} 0 R" for at in range(count))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>".encode(),
    ]
    font = f"{3 + 2 * count} 0 R"
    for at, text in enumerate(pages):
        resources = f"/Resources << /Font << /F1 {font} >> >> /MediaBox [0 0 600 800]"
        objects.append(f"<< /Type /Page /Parent 2 0 R {resources} /Contents {4 + 2 * at} 0 R >>".encode())
        drawn = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET".encode()
        coded = zlib.compress(drawn, 9) if flate else drawn
        how = "/Filter /FlateDecode " if flate else ""
        objects.append(f"<< {how}/Length {len(coded)} >>\nstream\n".encode() + coded + b"\nendstream")
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    out, offsets = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, each in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n".encode() + each + b"\nendobj\n"
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    out += f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def word(*paragraphs: str, rows: Sequence[Sequence[str]] = ()) -> bytes:
    import docx

    document: Any = docx.Document()
    for each in paragraphs:
        document.add_paragraph(each)
    if rows:
        table = document.add_table(len(rows), len(rows[0]))
        for at, row in enumerate(rows):
            for nth, text in enumerate(row):
                table.cell(at, nth).text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def slides(*titles: str) -> bytes:
    import pptx

    show: Any = pptx.Presentation()
    for title in titles:
        slide = show.slides.add_slide(show.slide_layouts[5])
        slide.shapes.title.text = title
        slide.notes_slide.notes_text_frame.text = f"Say {title} slowly."
    out = io.BytesIO()
    show.save(out)
    return out.getvalue()


def sheet(cells: dict[tuple[int, int], str], name: str = "Prices") -> bytes:
    import xlsxwriter  # pyright: ignore[reportMissingTypeStubs]

    out = io.BytesIO()
    book: Any = xlsxwriter.Workbook(out)
    page = book.add_worksheet(name)
    for (row, column), text in cells.items():
        page.write(row, column, text)
    book.close()
    return out.getvalue()


def mail() -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "noor@example.org", "sam@example.org", "Supper"
    message.set_content("Soup at seven.")
    message.add_alternative("<p>Soup at <b>seven</b>.</p>", subtype="html")
    message.add_attachment(b"x", maintype="application", subtype="pdf", filename="menu.pdf")
    return message.as_bytes()


def word_with(part: str, data: bytes) -> bytes:
    """A Word document with this part in place of its own."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(word("Hello"))) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for each in old.infolist():
            new.writestr(each.filename, data if each.filename == part else old.read(each))
    return out.getvalue()


def unpacking_bomb() -> bytes:
    """300 KB that become 300 MB."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new, new.open("word/document.xml", "w") as part:
        for _ in range(300):
            part.write(bytes(1024**2))
    return out.getvalue()


def lying_bomb() -> bytes:
    """The same, but it says that it is small."""
    data = bytearray(unpacking_bomb())
    size = (300 * 1024**2).to_bytes(4, "little")
    while (at := data.find(size)) >= 0:
        data[at : at + 4] = (1024).to_bytes(4, "little")
    return bytes(data)


def entity_bomb() -> bytes:
    lines = ['<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">']
    lines += [f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12)]
    return word_with("word/document.xml", ("".join(lines) + "]><x>&a11;</x>").encode())


def endless_page() -> bytes:
    """A PDF whose page draws itself without end, compressed."""
    return pdf("x) Tj " + "(y) Tj " * 3_000_000 + "(z", flate=True)
