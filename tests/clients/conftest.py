"""Real client packages, in an environment of their own: `make test-clients` makes it once and keeps it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fresh import installed_python
from tests.server.conftest import House

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parents[1] / ".venv-clients"
REQUIREMENTS = HERE / "requirements.txt"
NPM, NODE = Path(sys.executable).with_name("npm"), Path(sys.executable).with_name("node")

if "DENIZEN_TEST_CLIENTS" not in os.environ:
    collect_ignore_glob = ["test_*.py"]
elif "OPEN_WEBUI" not in os.environ:
    collect_ignore = ["test_open_webui.py"]


@pytest.fixture(scope="session")
def client_python() -> Path:
    """The Python of the environment with the packages, installed again where the list of them has changed."""
    return installed_python(ENVIRONMENT, REQUIREMENTS)


@pytest.fixture(scope="session")
def client_node() -> Path:
    """The folder with the npm packages, installed again where the list of them has changed."""
    folder, wanted = ENVIRONMENT.with_name(".node-clients"), (HERE / "package.json").read_text()
    done = folder / "installed.json"
    if not done.exists() or done.read_text() != wanted:
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text(wanted)
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run([str(NPM), "install", *options], cwd=folder, env=environment(), check=True)
        done.write_text(wanted)
    return folder


def environment(**more: str) -> dict[str, str]:
    """The environment of a client: ours has settings of Denizen."""
    kept = ("HOME", "SSL_CERT_FILE", "NPM_CONFIG_REGISTRY", "NODE_EXTRA_CA_CERTS", "HTTPS_PROXY", "NO_PROXY")
    path = os.pathsep.join([str(NPM.parent), os.environ["PATH"]])
    return {"PATH": path, **{name: os.environ[name] for name in kept if name in os.environ}, **more}


async def run_program(program: Path, name: str, house: House, token: str, **more: str) -> Any:
    """What the program in `programs` prints: one line of JSON. `program` is a Python, or the folder of npm packages."""
    script, given = HERE / "programs" / name, {"DENIZEN_V1": f"{house.address}/v1", "DENIZEN_TOKEN": token, **more}
    if script.suffix == ".mjs":
        # Node looks for packages where the file is.
        script = Path(shutil.copy(script, program))
        program = NODE
    out, _ = await output_of(str(program), str(script), variables=given)
    return json.loads(out.splitlines()[-1])


async def output_of(
    *command: str, folder: Path | None = None, variables: Mapping[str, str] | None = None
) -> tuple[str, str]:
    """What a program that succeeds prints to its standard output and error."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment(**(variables or {})),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, out.decode() + errors.decode()
    return out.decode(), errors.decode()
