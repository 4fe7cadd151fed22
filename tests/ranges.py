"""Tests the folder that uses them with the oldest and the newest of the packages that are bounded above.

`make test-ranges`, or `python -m tests.ranges`: each end is installed into a folder of its own under `.ranges`, which
stands before the environment on the path.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BOUNDED = re.compile(r"(?P<name>[a-z-]+)(?:\[[a-z,]+\])?>=(?P<low>[0-9.]+),<(?P<below>[0-9.]+)")
_TOGETHER = {"pydantic-ai-slim": ("pydantic-graph",)}
"""Packages that are released with another, in the same version."""


def ends() -> dict[str, list[str]]:
    """What to install for each end."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = [match for each in project["dependencies"] if (match := _BOUNDED.fullmatch(each))]
    names = [(name, each) for each in found for name in (each["name"], *_TOGETHER.get(each["name"], ()))]
    return {
        "oldest": [f"{name}=={each['low']}.0" for name, each in names],
        "newest": [f"{name}>={each['low']},<{each['below']}" for name, each in names],
    }


def main() -> int:
    for end, packages in ends().items():
        folder = ROOT / ".ranges" / end
        pip = [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", "install", "--no-deps", "--upgrade"]
        subprocess.run([*pip, "--target", str(folder), *packages], check=True)
        sys.stdout.write(f"{end}: {', '.join(packages)}\n")
        sys.stdout.flush()
        tests = [sys.executable, "-m", "pytest", "-q", *sys.argv[1:], "tests/models"]
        failed = subprocess.run(tests, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(folder)}, check=False).returncode
        if failed:
            return failed
    return 0


if __name__ == "__main__":
    sys.exit(main())
