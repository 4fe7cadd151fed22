"""The files in deploy/ for Prometheus, Grafana and Kubernetes say nothing that is not so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from ruamel.yaml import YAML

from denizen.server.route_modules import routes_of
from denizen.settings.loading import load

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "telemetry.md").read_text()
# The table of the page is made from the metrics, and a test of theirs keeps it so.
METRICS = dict(re.findall(r"^\| `(denizen_\w+)` \| \w+ \| ([^|]*) \|", PAGE, re.MULTILINE))


def yaml_of(name: str) -> list[Any]:
    return list(YAML(typ="safe", pure=True).load_all((DEPLOY / name).read_text()))  # pyright: ignore[reportUnknownMemberType]


def expressions() -> list[str]:
    rules = [rule["expr"] for group in yaml_of("prometheus-alerts.yaml")[0]["groups"] for rule in group["rules"]]
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    return [*rules, *(each["expr"] for panel in dashboard["panels"] for each in panel["targets"])]


@pytest.mark.parametrize("expression", expressions())
def test_every_expression_is_about_metrics_and_labels_that_there_are(expression: str) -> None:
    names = re.findall(r"denizen_\w+", expression)
    assert names
    for name in names:
        known = METRICS.get(name, METRICS.get(name.removesuffix("_bucket")))
        assert known is not None, name
        labels = re.findall(r"(\w+)=~?\"", expression) + re.findall(r"by \(([\w, ]+)\)", expression)
        for label in (each.strip() for group in labels for each in group.split(",")):
            assert label == "le" or f"`{label}`" in known, (name, label)


def test_the_dashboard_can_be_imported() -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    panels = dashboard["panels"]
    assert [each["id"] for each in panels] == list(range(1, len(panels) + 1))
    assert {each["datasource"]["uid"] for each in panels} == {"${source}"}
    taken = [(p["gridPos"]["x"] + x, p["gridPos"]["y"] + y) for p in panels for x in range(p["gridPos"]["w"]) for y in range(p["gridPos"]["h"])]  # fmt: skip  # noqa: E501
    assert len(taken) == len(set(taken)), "no panel lies over another"


def test_the_manifests_fit_together_and_to_the_server() -> None:
    parts = {each["kind"]: each for each in yaml_of("kubernetes.yaml")}
    assert parts.keys() == {"Secret", "Deployment", "Service", "PodDisruptionBudget", "Ingress"}
    spec = parts["Deployment"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert labels == spec["selector"]["matchLabels"] == parts["Service"]["spec"]["selector"]
    assert labels == parts["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]
    [container] = spec["template"]["spec"]["containers"]
    open_paths = {route.path for route in routes_of("health") if isinstance(route, APIRoute)}
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        [address] = re.findall(r"http://127\.0\.0\.1:8420(/\w+)", container[name]["exec"]["command"][-1])
        assert address in open_paths, "and asked from inside, because others are answered by HTTPS only"
    docker = (ROOT / "Dockerfile").read_text()
    assert f"EXPOSE {container['ports'][0]['containerPort']}" in docker
    user = spec["template"]["spec"]["securityContext"]
    assert f"USER {user['runAsUser']}:{user['runAsGroup']}" in docker
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] > load(environ={}).settings.agents.grace_seconds
    known = (ROOT / "docs" / "settings.md").read_text()
    named = {each["name"] for each in container["env"]} | parts["Secret"]["stringData"].keys()
    assert all(f"`{each}`" in known for each in named), named
