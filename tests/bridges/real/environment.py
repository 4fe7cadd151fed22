"""The environment with the real servers, made once and kept."""

from __future__ import annotations

from pathlib import Path

from tests.fresh import installed_python

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parents[2] / ".venv-bridges"
REQUIREMENTS = HERE / "requirements.txt"


def server_python() -> Path:
    """The Python of the environment with the servers, installed again where the list of them has changed."""
    return installed_python(ENVIRONMENT, REQUIREMENTS)
