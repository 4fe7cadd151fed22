"""The files to deploy with: valid, pinned, without secrets, and in step with the code, even where no engine runs."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from denizen.settings.loading import load, specs
from denizen.settings.shape import AgentsSettings, LimitSettings
from tests.deploy.dockerfile import instructions, is_ignored, problems

ROOT = Path(__file__).parents[2]
INSTANCES = ("denizen-1", "denizen-2")
HAND_ME_DOWNS = {"POSTGRES_PASSWORD": "a1b2", "DENIZEN_SECRET_KEY": "k" * 43 + "="}
"""What whoever starts it has to set."""


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return YAML(typ="safe").load((ROOT / "compose.yaml").read_text())


def filled_in(value: str) -> str:
    """With the variables as a shell that has set only what it must."""
    return re.sub(r"\$\{(\w+)(?::([-?])([^}]*))?\}", lambda m: HAND_ME_DOWNS.get(m[1]) or (m[3] or ""), value)


# The Dockerfile


def test_the_dockerfile_is_as_we_want_it() -> None:
    assert problems((ROOT / "Dockerfile").read_text(), ROOT) == []


GOOD = """FROM python:3.11 AS build
COPY src src
FROM python:3.11
COPY --from=build /opt /opt
USER 10001:10001
HEALTHCHECK CMD ["true"]
ENTRYPOINT ["denizen"]
"""


@pytest.mark.parametrize(
    ("was", "now", "problem"),
    [
        ("", "", None),
        ("python:3.11 AS", "python:latest AS", "no version"),
        ("python:3.11\n", "python\n", "no version"),
        ("FROM python:3.11 AS", "ARG IMAGE=python:3.11\nFROM ${IMAGE} AS", None),
        ("FROM python:3.11 AS", "ARG IMAGE=python\nFROM ${IMAGE} AS", "no version"),
        ("FROM python:3.11 AS", "ARG IMAGE\nFROM ${IMAGE} AS", "no version"),
        ("COPY src src", "COPY src/nothing \\\n  src", "src/nothing is not there"),
        ("COPY src src", "COPY tests tests", "kept out by .dockerignore"),
        ("COPY src src", "ADD src src", "ADD is no instruction"),
        ("--from=build", "--from=built", "which is no stage"),
        ("USER 10001:10001\n", "", "runs as root"),
        ("10001:10001", "root", "runs as root"),
        ("10001:10001", "0:0", "runs as 0"),
        ('HEALTHCHECK CMD ["true"]\n', "", "whether it is well"),
        ('["denizen"]', "denizen", "starts a shell"),
    ],
)
def test_what_we_do_not_want_in_a_dockerfile_is_found(was: str, now: str, problem: str | None) -> None:
    found = problems(GOOD.replace(was, now), ROOT)
    assert (not found) if problem is None else (len(found) == 1 and problem in found[0]), found


def test_what_belongs_to_a_working_copy_does_not_get_into_the_image() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    for name in (".git", ".env", ".venv", "denizen.db", "tests", "deploy"):
        assert is_ignored(name, lines), name
    assert not is_ignored("src/denizen/app.py", lines)


def test_every_stage_starts_from_the_image_that_the_builder_names() -> None:
    """So that whoever builds it can pin the image by its digest."""
    stages = [each.rest.split()[0] for each in instructions((ROOT / "Dockerfile").read_text()) if each.name == "FROM"]
    assert set(stages) == {"${PYTHON_IMAGE}"}


def test_the_image_listens_where_it_says_and_asks_itself_there() -> None:
    told = {each.name: each.rest for each in instructions((ROOT / "Dockerfile").read_text())}
    port = str(next(spec.default for spec in specs() if spec.name == "port"))
    assert told["EXPOSE"] == port
    assert f"127.0.0.1:{port}/readyz" in told["HEALTHCHECK"]


def test_the_image_has_the_extras_that_are_small() -> None:
    """Nobody can add a package to an image whose file system is read-only."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    locked = set(re.findall(r"^([\w-]+)==", (ROOT / "requirements" / "run.txt").read_text(), re.MULTILINE))
    needed = {extra: {re.split(r"[>=]", each)[0] for each in packages} for extra, packages in extras.items()}
    assert {extra for extra, packages in needed.items() if packages <= locked} == {"tokens", "otel"}


# compose.yaml


def test_two_instances_share_everything_but_their_folder(compose: dict[str, Any]) -> None:
    one, two = ({**compose["services"][name]} for name in INSTANCES)
    for own in ("volumes", "hostname"):
        assert one.pop(own) != two.pop(own)
    assert one == two
    assert one["depends_on"] == {name: {"condition": "service_healthy"} for name in ("postgres", "redis")}
    assert one["environment"]["DATABASE_URL"].endswith("@postgres:5432/denizen")
    assert one["environment"]["REDIS_URL"].startswith("redis://redis:6379")


def test_what_an_instance_is_told_are_settings_that_there_are(
    compose: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And values that they can have."""
    told: dict[str, str | None] = compose["services"]["denizen-1"]["environment"]
    known = {spec.variable for spec in specs()}
    assert set(told) <= known
    monkeypatch.chdir(tmp_path)
    for name in known & set(told):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        if value is not None:
            monkeypatch.setenv(name, filled_in(value))
    monkeypatch.setenv("DENIZEN_HOME", str(tmp_path))
    settings = load().settings
    assert (settings.host, settings.public_url) == ("0.0.0.0", "https://localhost")


def test_no_secret_is_written_down(compose: dict[str, Any]) -> None:
    """Those that are needed have to be given; there is no default that everyone knows."""
    for service in compose["services"].values():
        for name, value in (service.get("environment") or {}).items():
            if re.search("PASSWORD|KEY|DATABASE_URL", name) and value is not None:
                assert re.search(r"\$\{\w+:\?", value), name


def test_only_the_proxy_is_reached_from_outside_and_only_from_here(compose: dict[str, Any]) -> None:
    published = {name: each["ports"] for name, each in compose["services"].items() if "ports" in each}
    assert list(published) == ["proxy"]
    assert all(filled_in(port).startswith("127.0.0.1:") for port in published["proxy"])
    assert compose["networks"]["inside"]["internal"] is True
    for name in ("postgres", "redis"):
        assert compose["services"][name]["networks"] == ["inside"]


def test_the_proxy_that_is_believed_is_the_one_that_is_there(compose: dict[str, Any]) -> None:
    address = compose["services"]["proxy"]["networks"]["front"]["ipv4_address"]
    assert compose["services"]["denizen-1"]["environment"]["DENIZEN_TRUSTED_PROXY"] == address
    caddy = (ROOT / "deploy" / "Caddyfile").read_text()
    assert re.search(r"reverse_proxy (.*) \{", caddy)[1].split() == [f"{name}:8420" for name in INSTANCES]  # pyright: ignore[reportOptionalSubscript]
    assert "health_uri /readyz" in caddy
    assert caddy.count("{") == caddy.count("}")


def test_every_service_is_pinned_watched_and_restarted(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        tag = service["image"].partition(":")[2]
        assert tag not in ("", "latest"), name
        assert service["restart"] == "unless-stopped"
        # The image of the instances brings its own.
        assert name in INSTANCES or service["healthcheck"]["test"][0] == "CMD"


def test_what_is_mounted_is_there(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for mount in service.get("volumes", []):
            source = mount.partition(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in compose["volumes"], mount


def test_agents_have_time_to_finish_before_they_are_killed(compose: dict[str, Any]) -> None:
    grace = AgentsSettings().grace_seconds + 10
    assert int(compose["x-denizen"]["stop_grace_period"].removesuffix("s")) > grace
    stop = re.search(r"^TimeoutStopSec=(\d+)$", (ROOT / "deploy" / "denizen.service").read_text(), re.MULTILINE)
    assert stop is not None
    assert int(stop[1]) > grace


# systemd


def test_the_unit_says_each_thing_once_and_takes_what_it_can_do_without() -> None:
    unit = (ROOT / "deploy" / "denizen.service").read_text()
    assert re.findall(r"^\[(\w+)\]$", unit, re.MULTILINE) == ["Unit", "Service", "Install"]
    parts = [line.partition("=") for line in unit.splitlines() if line and line[0] not in "#["]
    pairs = [(name, value) for name, _, value in parts]
    names = [name for name, _ in pairs]
    assert {name for name in names if names.count(name) > 1} == {"SystemCallFilter"}
    told = dict(pairs)
    for name in ("NoNewPrivileges", "PrivateTmp", "ProtectHome", "DynamicUser"):
        assert told[name] == "yes"
    assert (told["ProtectSystem"], told["CapabilityBoundingSet"]) == ("strict", "")
    assert told["ExecStart"].split()[1:] == ["up"]
    assert int(told["LimitNOFILE"]) >= LimitSettings().connections * 4


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_the_unit_and_finds_it_safe(tmp_path: Path) -> None:
    unit = (ROOT / "deploy" / "denizen.service").read_text()
    # It wants to see the program, which is not installed here.
    (tmp_path / "denizen.service").write_text(unit.replace("/opt/denizen/bin/denizen up", "/bin/true"))
    for command in (["verify"], ["security", "--offline=true", "--threshold=20"]):
        done = subprocess.run(
            ["systemd-analyze", "--no-pager", *command, tmp_path / "denizen.service"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr if command == ["verify"] else "") == (0, ""), done.stdout + done.stderr
