"""Real client packages, in an environment of their own: `make test-clients` makes it once and keeps it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import House

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parents[1] / ".venv-clients"
REQUIREMENTS = HERE / "requirements.txt"

if "DENIZEN_TEST_CLIENTS" not in os.environ:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def client_python() -> Path:
    """The Python of the environment with the packages, installed again where the list of them has changed."""
    python, done = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "requirements.txt"
    if not done.exists() or done.read_text() != REQUIREMENTS.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        install = ["-m", "pip", "-qq", "--disable-pip-version-check", "install", "-r", str(REQUIREMENTS)]
        subprocess.run([str(python), *install], check=True)
        done.write_text(REQUIREMENTS.read_text())
    return python


async def run_program(python: Path, name: str, house: House, token: str) -> Any:
    """What the program in `programs` prints: one line of JSON."""
    process = await asyncio.create_subprocess_exec(
        str(python),
        str(HERE / "programs" / name),
        env={"PATH": os.environ["PATH"], "DENIZEN_V1": f"{house.address}/v1", "DENIZEN_TOKEN": token},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return json.loads(out.decode().splitlines()[-1])
