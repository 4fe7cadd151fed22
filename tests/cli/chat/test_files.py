"""Files in the terminal: sent with `/attach`, listed and saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.chat.houses import House
from tests.cli.chat.test_answering import talking


async def test_a_file_is_attached_shown_and_saved(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the whole path may be too long for a line
    (tmp_path / "my menu.txt").write_text("Soup")
    async with talking(house, tmp_path, "Kitchen") as (paper, _, _):
        paper.type("/attach nothing.txt")
        await paper.until(lambda: any("There is no file nothing.txt." in each for each in paper.shown))
        paper.type(f"/attach '{tmp_path / 'my menu.txt'}'")
        await paper.until(lambda: any("With your next message: my menu.txt" in each for each in paper.shown))
        paper.type("What is there to eat?")
        await paper.until("Noor: What is there to eat? [my menu.txt, 4 bytes]")
        paper.type("/files")
        await paper.until(lambda: any("/save my menu.txt" in each for each in paper.shown))
        paper.type("/save my menu.txt saved.txt")
        await paper.until(lambda: any("Saved as saved.txt." in each for each in paper.shown))
        paper.type("/save my menu.txt saved.txt")
        await paper.until(lambda: any("exists already" in each for each in paper.shown))
    assert (tmp_path / "saved.txt").read_text() == "Soup"
    message, *_ = await house.runtime.spaces.messages(house.kitchen)
    assert [each.name for each in message.files] == ["my menu.txt"]


async def test_enter_alone_sends_only_the_files(house: House, tmp_path: Path) -> None:
    (tmp_path / "menu.txt").write_text("Soup")
    async with talking(house, tmp_path, "Kitchen") as (paper, _, _):
        paper.type("/attach")
        await paper.until(lambda: any("No files go with your next message." in each for each in paper.shown))
        paper.type(f"/attach {tmp_path / 'menu.txt'}")
        await paper.until(lambda: any("With your next message: menu.txt" in each for each in paper.shown))
        paper.type("")
        await paper.until("Noor: [menu.txt, 4 bytes]")
