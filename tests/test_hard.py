"""The runs of `make test-hard`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.hard import Impossible, Options, Run, runs_of


def test_conditions_joined_by_a_plus_sign_hold_in_one_run(tmp_path: Path) -> None:
    options = Options(only=(), workers=1, load=8, keep=tmp_path)
    [run] = runs_of("load+background+timezone-and-locale", options, ExitStack())
    assert (run.load, run.background, run.environ["TZ"]) == (8, True, "Pacific/Chatham")


def test_a_run_with_several_conditions_runs_all_that_one_of_them_wants() -> None:
    everything, web = Run("load", load=8), Run("browser", {"CHROMIUM": "/one"}, ("tests/web",))
    assert web.together(Run("fonts", only=("tests/web", "tests/cli"))).only == ("tests/web", "tests/cli")
    assert everything.together(web).only == web.together(everything).only == ()


def test_the_copy_of_another_user_brings_its_own_python(tmp_path: Path) -> None:
    copy = Run("other-user", python=tmp_path / "python", folder=tmp_path, user="nobody")
    for run in (copy.together(Run("load", load=8)), Run("load", load=8).together(copy)):
        assert (run.python, run.folder, run.user, run.load) == (tmp_path / "python", tmp_path, "nobody", 8)
    with pytest.raises(Impossible, match="a Python of their own"):
        copy.together(Run("python 3.13", python=Path(sys.executable).with_name("another")))
