"""The environment with the real servers, made once and kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parents[2] / ".venv-bridges"
REQUIREMENTS = HERE / "requirements.txt"


def server_python() -> Path:
    """The Python of the environment with the servers, installed again where the list of them has changed."""
    python, done = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "requirements.txt"
    if not done.exists() or done.read_text() != REQUIREMENTS.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        install = ["-m", "pip", "-qq", "--disable-pip-version-check", "install", "-r", str(REQUIREMENTS)]
        subprocess.run([str(python), *install], check=True)
        done.write_text(REQUIREMENTS.read_text())
    return python
