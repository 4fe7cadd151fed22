"""`openapi-python-client` makes a client of the whole OpenAPI document."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from denizen.app import Runtime
from denizen.server.application import create_app

CONFIG = Path(__file__).with_name("generator.yml")


def test_every_operation_is_generated(client_python: Path, tmp_path: Path) -> None:
    document, made = create_app(Runtime()).openapi(), tmp_path / "made"
    tool, path = client_python.with_name("openapi-python-client"), tmp_path / "openapi.json"
    path.write_text(json.dumps(document))
    done = subprocess.run(
        [
            str(tool),
            "generate",
            "--path",
            str(path),
            "--output-path",
            str(made),
            "--meta",
            "none",
            "--config",
            str(CONFIG),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    wanted = {
        operation["operationId"]
        for path in document["paths"].values()
        for method, operation in path.items()
        if method in ("get", "post", "put", "patch", "delete")
    }
    found = {each.stem for each in (made / "api").rglob("*.py")}
    assert sorted(wanted - found) == [], done.stdout
