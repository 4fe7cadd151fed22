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

SHELL: Final = "chromium-headless-shell"
"""The same engine without the rest of a browser, for a quarter less CPU; so the package is called, too."""
NAMES: Final = (
    SHELL,
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
"""In the order of preference."""
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
    "--js-flags=--no-opt --no-maglev",  # pages live for seconds: to optimize their code takes longer than it saves
)


@asynccontextmanager
async def open_browser(*more_arguments: str) -> AsyncGenerator[Browser]:
    """A browser until the end, with nothing in it."""
    async with async_playwright() as playwright:
        executable = await asyncio.to_thread(find_or_install, Path(playwright.chromium.executable_path))
        browser = await launch(playwright, executable, *more_arguments)
        try:
            yield browser
        finally:
            await browser.close()


async def launch(playwright: Playwright, executable: Path, *more_arguments: str) -> Browser:
    return await playwright.chromium.launch(executable_path=executable, args=[*ARGUMENTS, *more_arguments])


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
    """`$CHROMIUM`, or a shell, or any other. Playwright names its whole Chromium, installed or not; its shell is
    in a folder beside that."""
    named = os.environ.get("CHROMIUM")
    if named:
        return Path(named)
    build = of_playwright.parent.parent
    shells = build.parent.glob(f"{build.name.replace('chromium-', 'chromium_headless_shell-')}/*/*headless*shell")
    others = (shutil.which(name) for name in NAMES[1:])
    candidates = (shutil.which(SHELL), *shells, *others, of_playwright if of_playwright.is_file() else None)
    return next((Path(each) for each in candidates if each), None)


def _install() -> None:
    """A shell: Debian's where we may install packages, or else Playwright's."""
    if not _install_package(download_seconds=300):
        _run(sys.executable, "-m", "playwright", "install", "chromium", "--only-shell", seconds=300)


def _install_package(*, download_seconds: float) -> bool:
    """Whether the shell of Debian is installed now. Another Chromium that is there is brought to the same version."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    apt = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    install = [*apt, "install", "-y", SHELL]
    # Only what downloads has a limit: it can be stopped at any moment.
    return (
        _run(*install, "--download-only", seconds=download_seconds)
        or (_run(*apt, "update", seconds=60) and _run(*install, "--download-only", seconds=download_seconds))
    ) and _run(*install)


def _run(*command: str, seconds: float | None = None) -> bool:
    """Whether the command ended well, and in time."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        ended = subprocess.run(command, check=False, env=environment, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


async def _main() -> None:
    async with async_playwright() as playwright:
        of_playwright = Path(playwright.chromium.executable_path)
    found = _found(of_playwright)
    if found is None:
        print("Installing a browser for the tests.", flush=True)  # noqa: T201
        find_or_install(of_playwright)
    elif "CHROMIUM" not in os.environ and "headless" not in found.name:
        # Any other will do as well, only slower.
        _install_package(download_seconds=60)


if __name__ == "__main__":
    # Before the tests: they run in several processes at once, and each may take only so long.
    asyncio.run(_main())
