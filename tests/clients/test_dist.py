"""What `make dist` builds, in empty environments: the server starts and its demo answers; the client needs no server.

On every Python from 3.11 on that is on the path or in `$PYTHONS`. A name on the path may start nothing: pyenv has such
names for each version, also for those that it does not offer in this folder.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from denizen import __version__
from tests.clients.conftest import environment, output_of

ROOT = Path(__file__).parents[2]
NAMED = [each for each in os.environ.get("PYTHONS", "").split(os.pathsep) if each]


def starts(python: str) -> bool:
    return subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0


ON_PATH = [found for minor in range(11, 20) if (found := shutil.which(f"python3.{minor}"))]
PYTHONS = NAMED or [each for each in ON_PATH if starts(each)]
ASK = """
import asyncio, sys
from denizen.client import Client

async def ask():
    async with Client(sys.argv[1], sys.argv[2]) as client:
        agent, *_ = await client.agents()
        print((await client.chat(agent.id, "Hello!")).final_response.text)

asyncio.run(ask())
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(["make", "--no-print-directory", "dist", f"DIST={folder}"], cwd=ROOT, check=True)
    return folder


def empty(python: str, folder: Path, *packages: Path) -> Path:
    """A new environment with these packages and what they need."""
    uv = [sys.executable, "-m", "uv", "--quiet", "--system-certs"]
    subprocess.run([*uv, "venv", "--seed", "--python", python, str(folder)], check=True)
    made = folder / "bin" / "python"
    subprocess.run([*uv, "pip", "install", "--python", str(made), *packages], check=True)
    return made


def test_the_version_is_that_of_the_package(dist: Path) -> None:
    assert sorted(each.name for each in dist.iterdir()) == [
        f"denizen-{__version__}-py3-none-any.whl",
        f"denizen-{__version__}.tar.gz",
        f"denizen_client-{__version__}-py3-none-any.whl",
    ]


@pytest.mark.parametrize("python", PYTHONS)
async def test_a_server_from_the_wheel_answers_the_client_alone(dist: Path, tmp_path: Path, python: str) -> None:
    server = empty(python, tmp_path / "server", dist / f"denizen-{__version__}-py3-none-any.whl")
    client = empty(python, tmp_path / "client", dist / f"denizen_client-{__version__}-py3-none-any.whl")
    home = {"DENIZEN_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    process = await asyncio.create_subprocess_exec(
        str(server.with_name("denizen")), "up", "--port", "0", "--model", "demo",
        env=environment(**home), cwd=tmp_path, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        said = ""
        while not (address := re.search(r"http://127\.0\.0\.1:\d+", said)):
            line = (await process.stdout.readline()).decode()
            assert line, said
            said += line
        program = str(server.with_name("denizen"))
        token, _ = await output_of(program, "token", "create", "--name", "Test", folder=tmp_path, variables=home)
        secret = re.search(r"dz_\S+", token)
        assert secret is not None, token
        answer, _ = await output_of(str(client), "-c", ASK, address[0], secret[0], folder=tmp_path)
    finally:
        process.terminate()
        await process.wait()
    installed, _ = await output_of(str(client), "-m", "pip", "list", folder=tmp_path)
    assert answer.strip()
    assert not re.search(r"(?m)^(fastapi|sqlalchemy|numpy|openai) ", installed)


async def test_the_source_distribution_builds_the_same_package(dist: Path, tmp_path: Path) -> None:
    """In an empty environment too: it holds the web client, so that nothing has to build it."""
    made = empty(sys.executable, tmp_path / "env", dist / f"denizen-{__version__}.tar.gz")
    out, _ = await output_of(str(made.with_name("denizen")), "--version", folder=tmp_path)
    assert out.strip() == f"denizen {__version__}"
    assert list((tmp_path / "env").rglob("denizen/server/web/index.html"))
