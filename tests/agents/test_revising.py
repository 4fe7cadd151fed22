"""A definition is shown without secrets, and what comes back as it was shown stays as it is."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from denizen.agents.definition import AgentDefinition
from denizen.agents.registry import define
from denizen.agents.restrictions import HostAccess, Sending, new_host_uses, new_payer, new_sendings
from denizen.agents.revising import revised, said, shown
from denizen.errors import InvalidInput
from denizen.masking import MASK

LAMP: dict[str, Any] = {
    "kind": "http",
    "name": "lamp",
    "description": "Switches it.",
    "url": "https://lamps.example/on?token=canary-in-query",
    "headers": {"X-Key": "canary-in-header", "Accept": "text/plain"},
    "parameters": {"type": "object", "properties": {"password": {"type": "string"}}, "required": ["password"]},
}
FILES: dict[str, Any] = {
    "command": "mcp-files",
    "args": ["--token", "canary-in-argument", "--root=/srv", "--api-key=canary-in-option"],
    "env": {"PASS": "canary-in-environment", "LANG": "C", "KEY": "${FILES_KEY}"},
}
RICH = define(
    instructions="Never write canary-less things.",
    tools=["weather", LAMP],
    mcp={"files": FILES, "far": {"url": "https://mcp.example/x", "headers": {"Authorization": "Bearer canary-bearer"}}},
    cycle={"max_steps": 3, "max_dollars": "0.1", "phases": "observe-think-respond"},
    heartbeat={"every_minutes": 30, "active_from": "08:00"},
    budget={"dollars_per_day": "0.25"},
    pays="@noor",
)
CYCLE: Any = said(RICH)["cycle"]


def test_no_secret_is_shown() -> None:
    told: dict[str, Any] = shown(RICH)
    assert "canary-in" not in str(told)
    assert "canary-bearer" not in str(told)
    assert told["instructions"] == RICH.instructions
    [_, lamp] = told["tools"]
    assert lamp["parameters"] == LAMP["parameters"]
    assert told["mcp"]["files"]["env"] == {"PASS": MASK, "LANG": "C", "KEY": "${FILES_KEY}"}


def test_what_is_shown_can_be_sent_back() -> None:
    assert revised(RICH, shown(RICH)) == RICH
    assert revised(RICH, {}) == RICH
    assert revised(AgentDefinition(), said(RICH)) == RICH


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"cycle": {"max_steps": 9}}, {"cycle": {**CYCLE, "max_steps": 9}}),
        ({"cycle": None}, {"cycle": None}),
        ({"tools": ["weather"]}, {"tools": ["weather"]}),
        ({"mcp": {"far": None}}, {"mcp": {"files": FILES}}),
        ({"mcp": {"files": {"env": {"LANG": None}}}}, {"mcp": "…"}),
        ({"heartbeat": None, "pays": None}, {"heartbeat": None, "pays": None}),
    ],
    ids=["a key", "a mapping", "a list", "an entry", "deep inside", "two fields"],
)
def test_only_what_is_sent_is_changed(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    after = revised(RICH, changes)
    fields = {name: value for name, value in {**said(RICH), **expected}.items() if value is not None}
    if expected == {"mcp": "…"}:
        assert after.mcp["files"].env == {"PASS": "canary-in-environment", "KEY": "${FILES_KEY}"}
        fields["mcp"] = said(after)["mcp"]
    assert after == define(**fields)


@pytest.mark.parametrize(
    "changes",
    [
        {"tools": [{**LAMP, "name": "other", "headers": {"X-Key": MASK}}]},
        {"mcp": {"files": {"args": [MASK]}}},
        {"mcp": {"new": {"command": "x", "env": {"PASS": MASK}}}},
    ],
    ids=["another tool", "another argument", "a new server"],
)
def test_a_mark_is_no_value(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="hides a value"):
        revised(RICH, changes)


def test_what_is_wrong_is_told_in_our_words() -> None:
    with pytest.raises(ValidationError) as raised:
        revised(RICH, {"modl": "demo", "tools": [{"kind": "htp"}]})
    told = {each["loc"]: each["msg"] for each in raised.value.errors()}
    assert told[("modl",)] == "unknown key 'modl' (did you mean 'model'?)"
    assert "did you mean 'http'?" in told[("tools", 0)]


def new_parts(before: AgentDefinition | None, after: AgentDefinition) -> list[str]:
    return [f"{each.kind} {each.part}" for each in new_host_uses(before, after, HostAccess())]


def test_only_new_and_changed_parts_are_new_uses_of_the_host() -> None:
    inside = {**LAMP, "allow_private": ["lamps.example"]}
    assert new_parts(None, RICH) == ["program mcp.files", "tool tools.weather"]
    assert new_parts(RICH, RICH) == []
    assert new_parts(RICH, AgentDefinition()) == []
    assert new_parts(RICH, revised(RICH, {"tools": [inside]})) == ["private_host tools.lamp"]
    assert new_parts(RICH, revised(RICH, {"mcp": {"files": {"args": None}}})) == ["program mcp.files"]
    assert new_parts(RICH, revised(RICH, {"mcp": {"far": {"allow_private": ["a"]}}})) == ["private_host mcp.far"]
    assert (new_payer(None, RICH), new_payer(RICH, RICH), new_payer(RICH, AgentDefinition())) == ("@noor", None, None)


def test_where_a_secret_is_sent_is_told_apart_from_what_was_so_before() -> None:
    """By name and host: the same secret to the same host is nothing new, wherever in the definition it stands."""
    there = {"kind": "http", "name": "crm", "description": "d", "url": "https://api.crm.example/{id}?q=1"}
    there |= {"parameters": {"type": "object", "properties": {"id": {"type": "string"}}}}
    known = revised(AgentDefinition(), {"tools": [there | {"headers": {"X-Key": "${CRM} ${OTHER}", "Accept": "text"}}]})
    mcp = {"far": {"url": "http://CRM.example:8080", "headers": {"Authorization": "Bearer ${CRM}"}}}

    assert list(map(str, new_sendings(None, known))) == [
        "tools.crm sends CRM to api.crm.example",
        "tools.crm sends OTHER to api.crm.example",
    ]
    assert new_sendings(known, known) == new_sendings(known, AgentDefinition()) == []
    assert new_sendings(known, revised(known, {"tools": [there | {"name": "x", "headers": {"Y": "${CRM}"}}]})) == []
    assert new_sendings(known, revised(known, {"mcp": mcp})) == [Sending("mcp.far", "CRM", "crm.example", 8080)]
    plain = revised(known, {"tools": [there | {"url": "http://api.crm.example/"}]})
    assert new_sendings(known, plain) == []
    [to_port, _] = new_sendings(known, revised(plain, {"tools": [there | {"url": "http://api.crm.example/"} | KEYS]}))
    assert (to_port.secret, to_port.port) == ("CRM", 80)


KEYS = {"headers": {"X-Key": "${CRM} ${OTHER}"}}


def test_a_header_that_is_not_shown_cannot_be_moved_to_another_host_unnoticed() -> None:
    tool = {"kind": "http", "name": "crm", "description": "d", "url": "https://crm.example"}
    before = revised(AgentDefinition(), {"tools": [tool | {"headers": {"Authorization": "Bearer k-123", "X": "y"}}]})
    [kept] = shown(before)["tools"]  # type: ignore[misc]
    elsewhere = {**kept, "url": "https://evil.example"}  # type: ignore[dict-item]

    assert new_sendings(before, revised(before, {"tools": [kept]})) == []
    assert new_sendings(before, revised(before, {"tools": [elsewhere]})) == [
        Sending("tools.crm", "", "evil.example", 443)
    ]
    own = {**elsewhere, "headers": {"Authorization": "Bearer mine"}}
    assert new_sendings(before, revised(before, {"tools": [own]})) == []
