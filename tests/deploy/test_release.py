"""`make release`: a commit is tagged as a version if it can be released (`requirements/release.py`)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from requirements import release

RELEASED = "# Changelog\n\n## [Unreleased]\n\n## [0.1.0]\n\n### Added\n- Everything.\n"


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A repository with version 0.1.0, and nothing that the user of this machine has set up for git."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "noor@example.com")

    def run(*arguments: str) -> str:
        ran = subprocess.run(["git", *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        return ran.stdout.strip()

    (tmp_path / "src/denizen").mkdir(parents=True)
    (tmp_path / "src/denizen/__init__.py").write_text('"""Denizen."""\n\n__version__ = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(RELEASED)
    run("init", "--quiet")
    run("add", ".")
    run("commit", "--quiet", "--message", "release: Version 0.1.0.")
    return run


def test_a_commit_that_can_be_released_gets_the_tag_once(
    git: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release.main(tmp_path)
    assert git("describe", "--exact-match") == "v0.1.0"
    release.main(tmp_path)
    assert capsys.readouterr().out.splitlines()[-1] == "v0.1.0 is this commit already."


def test_changes_that_are_not_committed_are_named(git: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "new.py").touch()
    with pytest.raises(SystemExit, match=r"v0\.1\.0 cannot be released:\n- There are uncommitted changes\..*new\.py"):
        release.main(tmp_path)
    assert git("tag") == ""


@pytest.mark.parametrize(
    ("changelog", "told"),
    [
        (RELEASED.replace("[0.1.0]", "[0.0.9]"), r"no heading \[0\.1\.0\]"),
        (RELEASED.replace("[Unreleased]\n", "[Unreleased]\n\n### Fixed\n- A defect.\n"), r"under \[Unreleased\]"),
    ],
)
def test_the_changelog_has_to_tell_of_the_version(
    git: Callable[..., str], tmp_path: Path, changelog: str, told: str
) -> None:
    (tmp_path / "CHANGELOG.md").write_text(changelog)
    git("commit", "--quiet", "--all", "--message", "docs: Change the changelog.")
    with pytest.raises(SystemExit, match=told):
        release.main(tmp_path)
    assert git("tag") == ""


def test_a_version_is_one_commit(git: Callable[..., str], tmp_path: Path) -> None:
    release.main(tmp_path)
    git("commit", "--quiet", "--allow-empty", "--message", "spaces: Change something.")
    with pytest.raises(SystemExit, match=r"Another commit has the tag v0\.1\.0\. Raise __version__"):
        release.main(tmp_path)
    assert git("rev-list", "-1", "v0.1.0") == git("rev-parse", "HEAD~1")


def test_this_checkout_has_a_version_and_a_changelog_that_can_be_read() -> None:
    assert release.version_of(release.ROOT) in release.sections_of((release.ROOT / "CHANGELOG.md").read_text())
