"""A real Chromium for tests and pictures: one that is there, or else one that is installed now."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, Playwright, async_playwright

NAMES: Final = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
"""In the order of preference: the shell is the same engine without the rest of a browser, for a quarter less CPU."""
ARGUMENTS: Final = (
    "--no-sandbox",  # tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
)


@asynccontextmanager
async def open_browser() -> AsyncGenerator[Browser]:
    """A browser until the end, with nothing in it."""
    async with async_playwright() as playwright:
        executable = await asyncio.to_thread(find_or_install, Path(playwright.chromium.executable_path))
        browser = await launch(playwright, executable)
        try:
            yield browser
        finally:
            await browser.close()


async def launch(playwright: Playwright, executable: Path) -> Browser:
    return await playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)


def find_or_install(of_playwright: Path) -> Path:
    """Where a browser is: `$CHROMIUM`, one on the path, Playwright's own; where there is none, it is installed."""
    found = _found(of_playwright)
    if found is None:
        _install()
        found = _found(of_playwright)
    if found is None:
        raise RuntimeError("There is no browser for the tests. Install Chromium, or say where one is with $CHROMIUM.")
    return found


def _found(of_playwright: Path) -> Path | None:
    named = os.environ.get("CHROMIUM")
    if named:
        return Path(named)
    on_path = next(filter(None, map(shutil.which, NAMES)), None)
    if on_path:
        return Path(on_path)
    return of_playwright if of_playwright.is_file() else None


def _install() -> None:
    """Playwright's; where that cannot be had, as root Debian's."""
    own = [sys.executable, "-m", "playwright", "install", "chromium", "--only-shell"]
    if subprocess.run(own, check=False, capture_output=True, timeout=300).returncode == 0:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    quietly = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    install = [*apt, "install", "-y", NAMES[0]]
    if subprocess.run(install, check=False, env=quietly, capture_output=True).returncode:
        subprocess.run([*apt, "update"], check=False, env=quietly, capture_output=True)
        subprocess.run(install, check=False, env=quietly, capture_output=True)


async def _main() -> None:
    async with async_playwright() as playwright:
        find_or_install(Path(playwright.chromium.executable_path))


if __name__ == "__main__":
    # Before the tests: they run in several processes at once, and each may take only so long.
    if _found(Path("none")) is None:
        print("Installing a browser for the tests.", flush=True)  # noqa: T201
        asyncio.run(_main())
