"""`denizen-client`: the client alone, from the same sources."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "packages" / "client" / "pyproject.toml"

IMPORTED = """
import json, sys
import denizen.client, denizen.client.in_process
ours = [getattr(each, "__file__") for name, each in sys.modules.items() if name.split(".")[0] == "denizen"]
theirs = sorted({name.split(".")[0] for name in sys.modules} - set(sys.stdlib_module_names))
print(json.dumps([ours, theirs]))
"""


def test_it_contains_what_the_client_imports_and_nothing_else() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    ours, theirs = json.loads(done.stdout)
    included = tomllib.loads(PACKAGE.read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    places = [(PACKAGE.parent / each).resolve() for each in included]
    files = {file for each in places for file in ([each] if each.is_file() else each.rglob("*.py"))}
    assert {Path(each) for each in ours} <= files
    assert not {"sqlalchemy", "fastapi", "numpy", "pydantic_ai", "mcp", "alembic"} & set(theirs)


def test_it_asks_for_the_same_versions_as_the_whole_package() -> None:
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    alone = tomllib.loads(PACKAGE.read_text())["project"]
    assert set(alone["dependencies"]) <= {each.replace("[ws]", "") for each in whole["dependencies"]}
    assert alone["requires-python"] == whole["requires-python"]


def test_a_server_starts_without_numpy() -> None:
    """Only recall needs it: importing it takes long, and memory."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys, denizen.app, denizen.server.application; print('numpy' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"
