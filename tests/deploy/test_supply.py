"""What we are made of: the SBOM in the wheel, and the comparison of locked packages with advisories."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest

from denizen import __version__
from hatch_build import NPM_LOCK, PROJECT_URL, Package, npm_packages, project_urls, python_packages
from requirements.audit import NO_ADVISORIES, findings, is_affected, locked_packages, main

ROOT = Path(__file__).parents[2]


ADDRESS = "https://forge.example.org/denizen/denizen"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    given = os.environ | {PROJECT_URL: ADDRESS}
    for project in (ROOT, ROOT / "packages" / "client"):
        subprocess.run(build, cwd=project, check=True, capture_output=True, env=given)
    return folder


@pytest.mark.parametrize("package", ["denizen", "denizen_client"])
def test_a_wheel_says_what_it_is(wheels: Path, package: str) -> None:
    """Its licence is in it, type checkers read its types, and an index shows its Pythons and its links."""
    info = f"{package}-{__version__}.dist-info"
    with zipfile.ZipFile(wheels / f"{package}-{__version__}-py3-none-any.whl") as archive:
        told = message_from_bytes(archive.read(f"{info}/METADATA"))
        assert archive.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert "denizen/py.typed" in archive.namelist()
    assert (told["License-Expression"], told["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    assert told["Summary"]
    assert (told["Description-Content-Type"], bool(told.get_payload())) == ("text/markdown", True)
    classifiers = told.get_all("Classifier", [])
    assert {"Typing :: Typed", "Framework :: AsyncIO", "Development Status :: 4 - Beta"} <= set(classifiers)
    assert [each for each in classifiers if "Python :: 3." in each] == [
        f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)
    ]
    assert told.get_all("Project-URL") == [
        f"Homepage, {ADDRESS}",
        f"Source, {ADDRESS}",
        f"Issues, {ADDRESS}/issues",
        f"Documentation, {ADDRESS}/blob/main/docs/README.md",
        f"Changelog, {ADDRESS}/blob/main/CHANGELOG.md",
    ]


def test_a_build_has_no_links_unless_its_publisher_gives_an_address() -> None:
    assert project_urls("") == {}
    for wrong in ("forge.example.org/denizen", "https://forge.example.org", "https://forge.example.org/a b"):
        with pytest.raises(ValueError, match="give the address of a repository"):
            project_urls(wrong)


def test_a_wheel_has_an_sbom_of_what_it_holds_and_was_tested_with(wheels: Path) -> None:
    [wheel] = wheels.glob("denizen-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        [name] = [each for each in archive.namelist() if "/sboms/" in each]
        assert name == f"denizen-{__version__}.dist-info/sboms/denizen.cdx.json"
        sbom = json.loads(archive.read(name))
        assert str(ROOT) not in archive.read(name).decode()
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    assert sbom["metadata"]["component"]["purl"] == f"pkg:pypi/denizen@{__version__}"
    purls = [each["purl"] for each in sbom["components"]]
    assert len(purls) == len(set(purls))
    assert sbom["dependencies"][0]["dependsOn"] == purls
    for start in ("pkg:pypi/fastapi@", "pkg:pypi/sqlalchemy@", "pkg:npm/react@", "pkg:npm/%40tanstack/react-query@"):
        assert [each for each in purls if each.startswith(start)], start
    # What only checks or builds the web client is not in the wheel.
    assert not [each for each in purls if each.startswith(("pkg:npm/vite@", "pkg:npm/axe-core@", "pkg:pypi/pytest@"))]
    bundled = [each for each in sbom["components"] if each["purl"].startswith("pkg:npm/")]
    assert all(len(each["hashes"][0]["content"]) == 128 for each in bundled)


def test_no_npm_package_asks_for_a_script_at_its_installation() -> None:
    """`npm ci --ignore-scripts` would leave such a package unfinished."""
    locked = json.loads((ROOT / NPM_LOCK).read_text())["packages"]
    assert [place for place, each in locked.items() if each.get("hasInstallScript")] == []


def test_lock_files_are_read_with_markers_and_aliases(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("Ruamel.YAML==0.19.1 ; sys_platform == 'win32' \\\n    --hash=sha256:ab\nnumpy==2.4.6\n# a==1\n")
    assert list(python_packages(lock)) == [Package("PyPI", "ruamel-yaml", "0.19.1"), Package("PyPI", "numpy", "2.4.6")]
    packages = {
        "": {"name": "web"},
        "node_modules/a/node_modules/@b/c": {"version": "1.0.0"},
        "node_modules/native": {"version": "7.0.2", "name": "typescript", "dev": True},
    }
    lock.write_text(json.dumps({"packages": packages}))
    assert list(npm_packages(lock, dev=False)) == [Package("npm", "@b/c", "1.0.0")]
    assert Package("npm", "typescript", "7.0.2") in npm_packages(lock, dev=True)


def in_range(*events: dict[str, str]) -> dict[str, Any]:
    return {"ranges": [{"type": "ECOSYSTEM", "events": list(events)}]}


@pytest.mark.parametrize(
    ("version", "affected", "expected"),
    [
        ("1.5.0", {"versions": ["1.4.0", "1.5.0"]}, True),
        ("1.6.0", {"versions": ["1.4.0", "1.5.0"]}, False),
        ("1.5.0", in_range({"introduced": "0"}, {"fixed": "1.5.1"}), True),
        ("1.5.1", in_range({"introduced": "0"}, {"fixed": "1.5.1"}), False),
        ("1.10.0", in_range({"introduced": "0"}, {"fixed": "1.9.0"}), False),
        ("1.9.9", in_range({"introduced": "2.0.0"}), False),
        ("2.0.0", in_range({"introduced": "2.0.0"}), True),
        ("1.5.0", in_range({"introduced": "1.0.0"}, {"last_affected": "1.5.0"}), True),
        ("1.5.1", in_range({"introduced": "1.0.0"}, {"last_affected": "1.5.0"}), False),
        # Events need not be in order, and a defect can come again.
        ("3.0.5", in_range({"fixed": "3.1.0"}, {"introduced": "0"}, {"introduced": "3.0.0"}, {"fixed": "2.0.0"}), True),
        (
            "2.5.0",
            in_range({"fixed": "3.1.0"}, {"introduced": "0"}, {"introduced": "3.0.0"}, {"fixed": "2.0.0"}),
            False,
        ),
        ("1.0.0", in_range({"introduced": "0"}, {"fixed": "as of tuesday"}), True),  # a person has to look
        ("1.0.0", {"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]}, False),
        ("1.0.0", {}, False),
    ],
)
@pytest.mark.parametrize("ecosystem", ["PyPI", "npm"])
def test_a_version_is_affected_as_osv_says(
    ecosystem: Any, version: str, affected: dict[str, Any], expected: bool
) -> None:
    assert is_affected(Package(ecosystem, "x", version), affected) is expected


@pytest.mark.parametrize(("ecosystem", "before"), [("PyPI", "2.0.0rc1"), ("npm", "2.0.0-rc.1"), ("npm", "2.0.0-rc.9")])
def test_a_pre_release_comes_before_its_release(ecosystem: Any, before: str) -> None:
    fixed = in_range({"introduced": "0"}, {"fixed": "2.0.0"})
    assert is_affected(Package(ecosystem, "x", before), fixed)
    since = in_range({"introduced": "2.0.0-rc.10" if ecosystem == "npm" else "2.0.0rc2"})
    assert not is_affected(Package(ecosystem, "x", before), since)


def advisory(ecosystem: str, name: str, **more: Any) -> dict[str, Any]:
    affected = {"package": {"ecosystem": ecosystem, "name": name}, **in_range({"introduced": "0"}, {"fixed": "99"})}
    return {"id": "GHSA-1", "aliases": ["CVE-1"], "summary": "It leaks.", "affected": [affected], **more}


def test_advisories_are_found_by_the_normal_name_and_ecosystem() -> None:
    ours = [Package("PyPI", "ruamel-yaml", "0.19.1")]
    [found] = findings(ours, [advisory("PyPI", "Ruamel.Yaml")])
    assert str(found) == "ruamel-yaml 0.19.1 (PyPI): GHSA-1, CVE-1. It leaks. Fixed in 99."
    assert findings(ours, [advisory("npm", "ruamel-yaml"), advisory("PyPI", "ruamel")]) == []
    assert findings(ours, [advisory("PyPI", "ruamel.yaml", withdrawn="2026-01-01T00:00:00Z")]) == []


def test_everything_that_is_locked_is_compared() -> None:
    names = {(each.ecosystem, each.name) for each in locked_packages(ROOT)}
    assert {("PyPI", "fastapi"), ("PyPI", "pytest"), ("npm", "react"), ("npm", "vite")} <= names


def test_audit_says_what_is_affected_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tmp_path / "PyPI.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("GHSA-1.json", json.dumps(advisory("PyPI", "fastapi")))
    harmless = tmp_path / "npm.json"
    harmless.write_text(json.dumps([advisory("npm", "left-pad", id="GHSA-2")]))
    assert main([str(archive), str(harmless)]) == 1
    told = capsys.readouterr().out
    assert "(PyPI): GHSA-1, CVE-1. It leaks." in told
    assert "GHSA-2" not in told
    assert main([str(harmless)]) == 0
    assert "0 of " in capsys.readouterr().out
    assert main([str(archive), "--ignore=GHSA-1"]) == 0


def test_audit_without_usable_advisories_says_how_to_get_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It never passes by comparing nothing."""
    assert main([]) == 2
    assert NO_ADVISORIES in capsys.readouterr().err
    wrong = tmp_path / "wrong.json"
    for text in ("{}", "[1]", "not JSON", json.dumps([advisory("Go", "x")])):
        wrong.write_text(text)
        assert main([str(wrong)]) == 2, text
        assert "advisor" in capsys.readouterr().err
    assert main([str(tmp_path / "missing.json")]) == 2


def test_make_audit_passes_on_the_files_and_the_status(tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"vulns": [advisory("npm", "react")]}))
    # Whether everything is installed is not what this is about.
    make = ["make", "--no-print-directory", "audit", "READY=", f"BIN={Path(sys.executable).parent}"]
    bad = subprocess.run([*make, f"ADVISORIES={file}"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert bad.returncode != 0
    assert "(npm): GHSA-1" in bad.stdout
    subprocess.run([*make, f"ADVISORIES={file}", "IGNORE=GHSA-1"], cwd=ROOT, capture_output=True, check=True)
