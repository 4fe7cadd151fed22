"""Which browser the tests take, of those that a machine has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import find_or_install


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return path


def test_a_shell_is_taken_before_any_other_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    of_playwright = program(tmp_path / "cache" / "chromium-7" / "chrome-linux64" / "chrome")
    assert find_or_install(of_playwright) == of_playwright
    chromium = program(tmp_path / "bin" / "chromium")
    assert find_or_install(of_playwright) == chromium
    program(tmp_path / "cache" / "chromium_headless_shell-6" / "linux64" / "chrome-headless-shell")
    assert find_or_install(of_playwright) == chromium, "the shell is of another version of Playwright"
    shell = program(tmp_path / "cache" / "chromium_headless_shell-7" / "linux64" / "chrome-headless-shell")
    assert find_or_install(of_playwright) == shell
    of_playwright.unlink()
    assert find_or_install(of_playwright) == shell, "Playwright can install its shell alone"
    on_path = program(tmp_path / "bin" / "chromium-headless-shell")
    assert find_or_install(of_playwright) == on_path


def test_whoever_names_a_browser_gets_that_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path / "bin" / "chromium-headless-shell").parent))
    monkeypatch.setenv("CHROMIUM", "/opt/mine")
    assert find_or_install(tmp_path / "none") == Path("/opt/mine")
