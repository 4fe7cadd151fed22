"""Compares the locked packages, Python and npm, with advisories in the format of OSV. Asks nobody over the network.

    python -m requirements.audit ADVISORIES...

ADVISORIES are JSON files (one advisory, a list, or `{"vulns": [...]}`), ZIP archives of them, or folders. The exit
status is 0 if no locked package is affected, 1 (after a list) if one is, and 2 if there is nothing to compare with.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from hatch_build import DEV_LOCK, NPM_LOCK, RUN_LOCK, Package, npm_packages, python_packages

ROOT = Path(__file__).parents[1]
NO_ADVISORIES = """No advisories were given. Get them, then: make audit ADVISORIES="PyPI.zip npm.zip"
OSV (https://osv.dev, "Data dumps") publishes all advisories of an ecosystem as one ZIP archive.
Only PyPI and npm are needed. Files can be carried to a machine without a network."""
SEMVER = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+.*)?")


@dataclass(frozen=True)
class Finding:
    """A locked package that an advisory is about."""

    package: Package
    names: tuple[str, ...]
    """The advisory's id and its other ids, such as a CVE."""
    summary: str
    fixed: tuple[str, ...]
    """Versions that an advisory names as mended."""

    def __str__(self) -> str:
        mended = f" Fixed in {', '.join(self.fixed)}." if self.fixed else " No fixed version is named."
        name = f"{self.package.name} {self.package.version} ({self.package.ecosystem})"
        return f"{name}: {', '.join(self.names)}. {self.summary.rstrip('.') or 'No summary'}.{mended}"


def read_advisories(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """All advisories in files, archives and folders."""
    for path in paths:
        if path.is_dir():
            yield from read_advisories(sorted(path.rglob("*.json")))
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.endswith(".json"):
                        yield from _advisories(archive.read(name))
        else:
            yield from _advisories(path.read_bytes())


def _advisories(text: bytes) -> Iterator[dict[str, Any]]:
    read = json.loads(text)
    listed = read if isinstance(read, list) else read.get("vulns", [read]) if isinstance(read, dict) else [read]
    for each in listed:
        if not isinstance(each, dict) or "id" not in each:
            raise ValueError("this is not an advisory in the format of OSV: it has no id")
        yield each


def findings(packages: Iterable[Package], advisories: Iterable[dict[str, Any]]) -> list[Finding]:
    """Each locked package with each advisory that affects it. Withdrawn advisories affect nothing."""
    by_name: dict[tuple[str, str], list[Package]] = {}
    for package in packages:
        by_name.setdefault((package.ecosystem, package.name), []).append(package)
    found: set[Finding] = set()
    for advisory in advisories:
        if advisory.get("withdrawn"):
            continue
        for affected in advisory.get("affected", []):
            for package in by_name.get(_name(affected), ()):
                if is_affected(package, affected):
                    names = (advisory["id"], *advisory.get("aliases", []))
                    found.add(Finding(package, names, advisory.get("summary", ""), tuple(_fixed(affected))))
    return sorted(found, key=lambda each: (each.package, each.names))


def _name(affected: dict[str, Any]) -> tuple[str, str]:
    package = affected.get("package", {})
    ecosystem, name = package.get("ecosystem", ""), package.get("name", "")
    return ecosystem, re.sub(r"[-_.]+", "-", name).lower() if ecosystem == "PyPI" else name


def _fixed(affected: dict[str, Any]) -> Iterator[str]:
    for events in _ranges(affected):
        yield from (event["fixed"] for event in events if "fixed" in event)


def _ranges(affected: dict[str, Any]) -> Iterator[list[dict[str, str]]]:
    """The events of each range of versions; ranges of commits tell nothing of a release."""
    yield from (each["events"] for each in affected.get("ranges", []) if each.get("type") != "GIT")


def is_affected(package: Package, affected: dict[str, Any]) -> bool:
    """Whether this version is affected. It is if versions cannot be compared: a person has to look."""
    if package.version in affected.get("versions", []):
        return True
    order = _python_order if package.ecosystem == "PyPI" else _npm_order
    try:
        return any(_is_in_range(package.version, events, order) for events in _ranges(affected))
    except (InvalidVersion, ValueError):
        return True


def _is_in_range(version: str, events: list[dict[str, str]], order: Callable[[str], Any]) -> bool:
    """Whether the last event up to this version, in the order of versions, leaves it affected."""

    def place(where: str) -> tuple[Any, ...]:
        return (0,) if where == "0" else (1, order(where))  # "0" is before every version

    ours, affected = place(version), False
    for at, kind in sorted(((place(where), kind) for event in events for kind, where in event.items()), key=_first):
        if kind == "introduced" and at <= ours:
            affected = True
        elif (kind == "fixed" and at <= ours) or (kind == "last_affected" and at < ours):
            affected = False
    return affected


def _first(pair: tuple[Any, str]) -> Any:
    return pair[0]


def _python_order(version: str) -> Version:
    return Version(version)


def _npm_order(version: str) -> tuple[Any, ...]:
    """A key that sorts as semantic versioning says: a pre-release comes before its release."""
    found = SEMVER.fullmatch(version)
    if found is None:
        raise ValueError(f"{version!r} is not a semantic version")
    numbers = tuple(int(each) for each in found.group(1, 2, 3))
    if found[4] is None:
        return (*numbers, 1, ())
    parts = tuple((0, int(each), "") if each.isdecimal() else (1, 0, each) for each in found[4].split("."))
    return (*numbers, 0, parts)


def locked_packages(root: Path) -> set[Package]:
    """Everything that is locked, for running, building and checking."""
    python = {*python_packages(root / RUN_LOCK), *python_packages(root / DEV_LOCK)}
    return python | set(npm_packages(root / NPM_LOCK, dev=True))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make audit", description="Look for locked packages that advisories affect.")
    parser.add_argument("advisories", nargs="*", type=Path, help="JSON files, ZIP archives or folders, as of OSV")
    parser.add_argument("--ignore", action="append", default=[], metavar="ID", help="an advisory that does not apply")
    asked = parser.parse_args(arguments)
    if not asked.advisories:
        return _fail(NO_ADVISORIES)
    try:
        read = list(read_advisories(asked.advisories))
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        return _fail(f"The advisories cannot be read: {error}")
    ours = [each for each in read if any(_name(one)[0] in ("PyPI", "npm") for one in each.get("affected", []))]
    if not ours:
        return _fail("There is no advisory about PyPI or npm in what was given.")
    packages = locked_packages(ROOT)
    found = findings(packages, (each for each in ours if each["id"] not in asked.ignore))
    for each in found:
        print(each)
    affected = len({each.package for each in found})
    print(f"{affected} of {len(packages)} locked packages affected; {len(ours)} advisories compared.")
    return 1 if found else 0


def _fail(why: str) -> int:
    print(why, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
