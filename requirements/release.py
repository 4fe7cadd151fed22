"""Tags the commit that is checked out as a version of Denizen, if it can be released: `make release`.

    python -m requirements.release

Nothing may be uncommitted, CHANGELOG.md must have a heading for the version and nothing under *Unreleased*, and no
other commit may have the tag. The tag is signed if git has a key for that. Run again, it changes nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(root: Path = ROOT) -> None:
    version = version_of(root)
    tag = f"v{version}"
    if found := list(problems(root, version)):
        sys.exit("\n".join([f"{tag} cannot be released:", *(f"- {each}" for each in found)]))
    if _git(root, "tag", "--list", tag):
        print(f"{tag} is this commit already.")
        return
    how = "--sign" if _git(root, "config", "--default", "", "user.signingkey") else "--annotate"
    _git(root, "tag", how, tag, "--message", f"Denizen {version}")
    print(f"This commit is {tag} now. `git push origin {tag}` publishes the tag.")


def version_of(root: Path) -> str:
    """`__version__`, without importing the package."""
    found = re.search(r'^__version__ = "(.+)"$', (root / "src/denizen/__init__.py").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def problems(root: Path, version: str) -> Iterator[str]:
    """Why the commit that is checked out cannot be released."""
    if changed := _git(root, "status", "--porcelain"):
        files = ", ".join(line[3:] for line in changed.splitlines())
        yield f"There are uncommitted changes. Commit them first: {files}"
    sections = sections_of((root / "CHANGELOG.md").read_text())
    if version not in sections:
        yield f"CHANGELOG.md has no heading [{version}]. Move what is new there."
    if sections.get("Unreleased"):
        yield "CHANGELOG.md lists changes under [Unreleased]. Move them under the heading of the version."
    tagged = _git(root, "tag", "--list", f"v{version}", "--format=%(objectname) %(*objectname)").split()
    if tagged and _git(root, "rev-parse", "HEAD") not in tagged:
        yield f"Another commit has the tag v{version}. Raise __version__ in src/denizen/__init__.py."


def sections_of(changelog: str) -> dict[str, str]:
    """What stands under the heading of each version."""
    _, *parts = re.split(r"^## \[(.+?)\].*$", changelog, flags=re.MULTILINE)
    return {version: text.strip() for version, text in zip(parts[::2], parts[1::2], strict=True)}


def _git(root: Path, *arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    return run.stdout.strip()


if __name__ == "__main__":
    main()
