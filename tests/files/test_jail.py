"""Documents and bombs in the process that reads them. Each runs in a process of its own, with real limits."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path

import pytest
from PIL import Image

from denizen.files import jail, jailed
from tests.files import documents


async def pages(kind: str, data: bytes) -> list[str]:
    answer = await jail.run("text", kind, data)
    assert answer.trouble is None
    return answer.told["pages"]


async def test_text_and_pages_of_documents() -> None:
    assert await pages("pdf", documents.pdf("Soup first.", "Then pie.")) == ["Soup first.", "Then pie."]
    assert await pages("word", documents.word("Menu", "Soup", rows=[["Pie", "3"], ["Tea", "1"]])) == [
        "Menu\nSoup\nPie | 3\nTea | 1"
    ]
    assert await pages("slides", documents.slides("Soup", "Pie")) == [
        "Soup\nNotes: Say Soup slowly.",
        "Pie\nNotes: Say Pie slowly.",
    ]
    assert await pages("sheets", documents.sheet({(0, 0): "Pie", (0, 1): "3", (2, 0): "Tea"})) == [
        "Sheet: Prices\nPie\t3\nTea"
    ]
    source = b"<style>p{}</style><body><h1>Menu</h1><p>Soup <b>and</b> pie</p><script>evil()</script>"
    assert await pages("html", source) == ["Menu\nSoup and pie\n"]
    assert await pages("mail", documents.mail()) == [
        "From: noor@example.org\nTo: sam@example.org\nSubject: Supper\nAttachment: menu.pdf\n\nSoup at seven.\n"
    ]


async def test_a_page_of_a_pdf_is_drawn() -> None:
    answer = await jail.run("page", "2", documents.pdf("Soup first.", "Then pie."))
    assert answer.told == {"width": 1176, "height": 1568, "pages": 2}
    with Image.open(io.BytesIO(answer.payload)) as drawn:
        assert (drawn.format, drawn.size) == ("JPEG", (1176, 1568))
        assert sum(drawn.convert("L").histogram()[:100]) > 100  # its line of text


@pytest.mark.parametrize(
    ("number", "data", "trouble"),
    [
        ("3", documents.pdf("Soup first.", "Then pie."), "it has no such page"),
        ("0", documents.pdf("Soup first."), "it has no such page"),
        ("1", b"%PDF-1.4 nothing", "it is damaged"),
    ],
)
async def test_a_page_that_is_not_there_cannot_be_drawn(number: str, data: bytes, trouble: str) -> None:
    assert (await jail.run("page", number, data)).trouble == trouble


@pytest.mark.parametrize(
    ("kind", "data", "trouble"),
    [
        ("pdf", b"%PDF-1.4 nothing", "it is damaged"),
        ("pdf", documents.pdf(""), "it has no text"),
        ("word", b"PK\3\4 nothing", "it is damaged or encrypted"),
        ("word", b"", "it is damaged or encrypted"),
        ("sheets", b"nothing", "it is damaged"),
        ("html", b"<p> </p>", "it has no text"),
    ],
)
async def test_damaged_files_are_unreadable(kind: str, data: bytes, trouble: str) -> None:
    assert (await jail.run("text", kind, data)).trouble == trouble


async def test_bombs_end_in_their_own_process() -> None:
    assert (await jail.run("text", "word", documents.unpacking_bomb())).trouble == "it is too large when unpacked"
    assert (await jail.run("text", "word", documents.lying_bomb())).trouble is not None
    assert (await jail.run("text", "word", documents.entity_bomb())).trouble == "it declares entities"
    far = documents.sheet({(0, 0): "a", (1_048_575, 16_383): "z"})
    assert (await jail.run("text", "sheets", far)).trouble is not None


async def test_deep_and_endless_files_end() -> None:
    nested = await jail.run("text", "html", b"<div>" * 300_000 + b"deep", cpu_seconds=1)
    assert nested.trouble is not None or nested.told["pages"] == ["deep"]
    drawn = await jail.run("text", "pdf", documents.endless_page(), cpu_seconds=1)
    assert drawn.trouble is not None or sum(map(len, drawn.told["pages"])) <= jailed.MOST_CHARACTERS


async def test_a_process_that_takes_too_long_is_killed() -> None:
    answer = await jail.run("text", "pdf", documents.pdf("Soup"), wall_seconds=0.001)
    assert answer.trouble == "it takes too long to read"


async def test_a_reader_is_killed_when_nobody_waits_for_it_any_more() -> None:
    reading = asyncio.create_task(jail.run("text", "pdf", documents.pdf("Soup")))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert not readers()


def readers() -> list[Path]:
    """The readers that this process has started."""
    return [each for each in Path("/proc").glob("[0-9]*") if _is_child(each)]


def _is_child(process: Path) -> bool:
    try:
        parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        return parent == str(os.getpid()) and "jailed.py" in (process / "cmdline").read_text()
    except OSError:
        return False
