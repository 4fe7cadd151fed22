"""A terminal for the tests of the command line."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner, Result

from denizen.cli.main import app
from denizen.telemetry.logs import CHATTY
from tests.cli.terminals import Terminal, at_its_machine, elsewhere
from tests.databases import with_tables
from tests.servers import free_port

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """A command sets up logging for its process, which here is everyone's: the next test finds nothing of it."""
    root = logging.getLogger()
    handlers, level, levels = list(root.handlers), root.level, {name: logging.getLogger(name).level for name in CHATTY}
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment of a person who has set nothing, in an empty folder, with a model that needs no key.

    Nothing of it is left afterwards, nor of what a command exports.
    """
    before = dict(os.environ)
    for name in before:
        if name.startswith("DENIZEN_") or name in ("DATABASE_URL", "REDIS_URL") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    chosen = {
        "HOME": str(tmp_path),
        "DENIZEN_HOME": str(tmp_path / "home"),
        "DENIZEN_MODEL": "demo",
        "DENIZEN_PORT": str(free_port()),
        "COLUMNS": "200",
        "NO_COLOR": "1",
    }
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    yield chosen
    for name in os.environ.keys() - before.keys() - chosen.keys():
        del os.environ[name]


@pytest.fixture
def ready_home(environ: dict[str, str]) -> None:
    """The database of the house has all its tables: most commands are not about making them."""
    home = Path(environ["DENIZEN_HOME"])
    home.mkdir(mode=0o700)
    with_tables(home / "denizen.db")


@pytest.fixture
def run(environ: dict[str, str]) -> Run:
    """Run `denizen` with these arguments, in this process."""
    runner = CliRunner()
    return lambda *arguments, **extra: runner.invoke(app, list(arguments), env=extra)


@pytest.fixture(params=["here", "elsewhere"])
async def terminal(ready_home: None, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[Terminal]:
    """What is true at the machine of the house is true elsewhere."""
    where = at_its_machine() if request.param == "here" else elsewhere(tmp_path / "elsewhere")
    async with where as terminal:
        yield terminal
