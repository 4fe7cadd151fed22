"""Generates the table of the memory policy in docs/memory.md from the decisions themselves. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from denizen.access.roles import Role
from denizen.memory.policy import (
    SCOPES,
    WHY,
    Circumstances,
    Decision,
    OrganizationMemory,
    Policy,
    Scope,
    Scopes,
    decide,
)

_SAID: Final[dict[str, bool | None]] = {"–": None, "on": True, "off": False}
_ROLES: Final[tuple[Role, ...]] = ("member", "admin", "owner")
_YES: Final = {"yes": True, "no": False}
ANY: Final = "any"
DIMENSIONS: Final[tuple[tuple[str, ...], ...]] = (
    tuple(SCOPES),
    tuple(_SAID),
    tuple(_YES),
    tuple(_YES),
    _ROLES,
    tuple(_YES),
    ("no", "yes"),
)
"""Scope; what was said of it; whether a person speaks; whether the organization is named; the person's role; whether
it may be shared; whether the organization has switched the scope off."""
TITLES: Final = ("scope", "said", "a person speaks", "organization named", "role", "share", "switched off")

Case = tuple[str, ...]


def decided(case: Case) -> Decision:
    """Decides one case, given in all its dimensions."""
    scope, said, speaks, named, role, share, off = case
    which: Scope = next(each for each in SCOPES if each == scope)
    policy = Policy(scopes=Scopes(**{scope: _SAID[said]}), shareWithOrganization=_YES[share] or None)
    settings = OrganizationMemory.model_validate({scope: off == "no"})
    their_role: Role = next(each for each in _ROLES if each == role)
    return decide(policy, which, Circumstances(_YES[speaks], _YES[named], their_role, settings))


def every_case() -> Iterator[Case]:
    return product(*DIMENSIONS)


def merged() -> dict[Case, Decision]:
    """Merges the cases into few rows: a dimension that makes no difference is `any`."""
    rows = {case: decided(case) for case in every_case()}
    for at in reversed(range(1, len(DIMENSIONS))):
        left: dict[Case, Decision] = {}
        for case, decision in rows.items():
            siblings = [(*case[:at], value, *case[at + 1 :]) for value in DIMENSIONS[at]]
            same = all(rows.get(each) == decision for each in siblings)
            left[(*case[:at], ANY, *case[at + 1 :]) if same else case] = decision
        rows = left
    return rows


def render() -> str:
    """The table, in Markdown."""
    head = [*TITLES, "written", "brought back"]
    lines = [_row(head), _row(["---"] * len(head))]
    lines += [_row([*case, _told(each.write), _told(each.read)]) for case, each in merged().items()]
    meanings = [f"- `{code}`: {why}." for code, why in WHY.items() if why]
    return "\n".join([*lines, "", *meanings]) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _told(verdict: str) -> str:
    return "yes" if verdict == "yes" else f"`{verdict}`"
