"""The manifests for Kubernetes, by the schemas of its API (`kubernetes-validate`)."""

from __future__ import annotations

import subprocess
from pathlib import Path

MANIFESTS = Path(__file__).parents[2] / "deploy" / "kubernetes.yaml"


def validate(python: Path, file: Path) -> subprocess.CompletedProcess[str]:
    program = python.with_name("kubernetes-validate")
    return subprocess.run([str(program), "--strict", str(file)], capture_output=True, text=True, check=False)


def test_the_manifests_fit_the_schemas_and_broken_ones_do_not(client_python: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(MANIFESTS.read_text().replace("replicas: ", "replicas: some-"))
    good, bad = validate(client_python, MANIFESTS), validate(client_python, broken)
    assert good.returncode == 0, good.stdout + good.stderr
    assert bad.returncode != 0
