"""The web client's own checks: its types, its pure functions, and that it knows the API as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.web import sizes
from denizen.app import Runtime
from denizen.server.application import create_app
from tests.web.conftest import ROOT

WEB = ROOT / "web"


def run(*command: str, stdin: bytes | None = None) -> str:
    """What the program says; that it succeeds."""
    environ = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT / "src"),
    }
    result = subprocess.run(command, cwd=WEB, env=environ, input=stdin, capture_output=True, check=False, timeout=110)
    assert result.returncode == 0, (result.stdout + result.stderr).decode()
    return result.stdout.decode()


@pytest.mark.usefixtures("_web_client")
def test_its_types_fit() -> None:
    # The native compiler takes a third of the time. The older one is there for openapi-typescript, which calls it.
    # On one thread: several would each check the types that all files share, for half as much CPU again.
    run("node", "node_modules/typescript-native/bin/tsc", "--noEmit", "--singleThreaded")


@pytest.mark.usefixtures("_web_client")
def test_its_pure_functions_do_what_they_say() -> None:
    # In one process: most of them take less time than to begin one.
    said = run("node", "--test", "--test-isolation=none", "--no-warnings", "src/**/*.test.ts")
    assert "fail 0" in said


@pytest.mark.usefixtures("_web_client")
def test_its_types_are_those_of_the_api() -> None:
    """`make schema` makes them anew."""
    described = json.dumps(create_app(Runtime()).openapi(), sort_keys=True).encode()
    made = run("node", "node_modules/openapi-typescript/bin/cli.js", stdin=described)
    assert made == (WEB / "src" / "denizen" / "schema.d.ts").read_text()


def test_no_source_asks_anyone_else() -> None:
    """Nothing is loaded from another host, and nothing stands in the page that its policy would refuse."""
    sources = [path for path in (WEB / "src").rglob("*.ts*") if ".test." not in path.name and path.suffix != ".md"]
    assert sources
    for path in [*sources, WEB / "index.html"]:
        text = path.read_text()
        assert "https://" not in text or path.name == "schema.d.ts", path
        assert "style={{" not in text, path


@pytest.mark.usefixtures("_web_client")
def test_the_first_page_loads_little() -> None:
    """Scripts and styles, gzipped, in KB. What is not needed at once is loaded when it is."""
    assert 50 < sum(sizes().values()) <= 180
