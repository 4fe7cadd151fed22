"""Who may have what remembered, statement by statement, and in every combination."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from denizen.access.roles import Role
from denizen.memory.documents import SHARED
from denizen.memory.policy import SCOPES, Circumstances, Decision, OrganizationMemory, Policy, Scope, Scopes, decide
from denizen.server.shapes.chat import ChatRequest
from tests.memory.policy_page import ANY, Case, decided, every_case, merged, render

PAGE = Path(__file__).parents[2] / "docs" / "memory.md"


def given(*, person: bool = True, named: bool = False, role: Role | None = "member", **switches: Any) -> Circumstances:
    return Circumstances(person, named, role, OrganizationMemory(**switches))


def allowed(policy: Policy, circumstances: Circumstances) -> tuple[Sequence[str], Sequence[str]]:
    """What may be written and what may be read."""
    decisions = {scope: decide(policy, scope, circumstances) for scope in SCOPES}
    write = [scope for scope, each in decisions.items() if each.write == "yes"]
    return write, [scope for scope, each in decisions.items() if each.read == "yes"]


def expected(case: Case) -> Decision:
    """The rules, in plain sentences once more: what is said of writing it, and of bringing it back."""
    scope, said, speaks, named, role, share, off = case
    if off == "yes":
        return Decision("switched_off", "switched_off")
    if said == "off":
        return Decision("scope_off", "scope_off")
    if scope == "conversation":
        return Decision("yes", "yes")
    if speaks == "no":
        return Decision("not_authenticated", "not_authenticated")
    if scope in ("user", "persona"):
        return Decision("yes", "yes")
    if named == "no":
        return Decision("no_organization", "no_organization")
    if said != "on":
        return Decision("scope_off", "yes")
    if share == "no":
        return Decision("not_shared", "yes")
    return Decision("yes" if role in ("admin", "owner") else "admin_only", "yes")


def test_every_combination_is_decided_as_documented() -> None:
    """Authenticated or not, organization or not, role, scope, share, kill switch: allowed, or refused with its code."""
    cases = list(every_case())
    assert len(cases) == 4 * 3 * 2 * 2 * 3 * 2 * 2
    assert {case: decided(case) for case in cases} == {case: expected(case) for case in cases}


def test_the_table_of_the_page_tells_every_case() -> None:
    """Each case is in some row, and all its rows say what is decided."""
    rows = merged()
    for case in every_case():
        told = {
            decision for row, decision in rows.items() if all(a in (b, ANY) for a, b in zip(row, case, strict=True))
        }
        assert told == {decided(case)}


def test_the_page_has_the_table_as_it_is_decided() -> None:
    assert render() in PAGE.read_text()


def test_persistence_is_enabled_for_the_conversation_scope_only_where_no_person_speaks() -> None:
    """`user`, `persona` and `organization` are disabled by default."""
    assert allowed(Policy(), given(person=False)) == (["conversation"], ["conversation"])


def test_a_person_has_user_and_persona_scopes_unless_said_otherwise() -> None:
    assert allowed(Policy(), given())[0] == ["conversation", "user", "persona"]
    assert allowed(Policy(scopes=Scopes(user=False)), given())[0] == ["conversation", "persona"]


def test_naming_the_organization_brings_its_memories_back_and_writes_none() -> None:
    write, read = allowed(Policy(), given(named=True, role="owner"))
    assert ("organization" in write, "organization" in read) == (False, True)


def test_publishing_is_admin_only_even_if_the_conversation_was_shared_before() -> None:
    shared = Policy(scopes=Scopes(organization=True), shareWithOrganization=True)
    assert decide(shared, "organization", given(named=True, role="member")).write == "admin_only"
    assert decide(shared, "organization", given(named=True, role="admin")).write == "yes"


def test_sharing_has_to_be_said() -> None:
    on = Policy(scopes=Scopes(organization=True))
    assert decide(on, "organization", given(named=True, role="admin")).write == "not_shared"


def test_organization_scope_needs_the_id_on_the_request() -> None:
    shared = Policy(scopes=Scopes(organization=True), shareWithOrganization=True)
    assert decide(shared, "organization", given(role="owner")).write == "no_organization"
    assert decide(shared, "organization", given(role="owner")).read == "no_organization"


def test_opting_out_refuses_every_scope() -> None:
    out = Policy(enabled=False)
    verdicts = {decide(out, scope, given(named=True, role="owner")).write for scope in SCOPES}
    assert verdicts == {"opted_out"}


@pytest.mark.parametrize("scope", SCOPES)
def test_a_kill_switch_refuses_writing_and_reading(scope: Scope) -> None:
    everything = Policy(enabled=True, scopes=Scopes(**dict.fromkeys(SCOPES, True)), shareWithOrganization=True)
    for switch in ("enabled", scope):
        decision = decide(everything, scope, given(named=True, role="owner", **{switch: False}))
        assert (decision.write, decision.read) == ("switched_off", "switched_off")


def test_the_organization_may_stop_publishing_and_still_remember() -> None:
    shared = Policy(scopes=Scopes(organization=True), shareWithOrganization=True)
    decision = decide(shared, "organization", given(named=True, role="owner", publish=False))
    assert (decision.write, decision.read) == ("switched_off", "yes")


def test_settings_that_cannot_be_read_allow_nothing() -> None:
    """A lookup that fails fails closed."""
    for scope in SCOPES:
        decision = decide(Policy(enabled=True), scope, Circumstances(True, True, "owner", None))
        assert (decision.write, decision.read) == ("settings_unreadable", "settings_unreadable")


def test_explicit_beats_stored_beats_default() -> None:
    """An opt-out is not overwritten by what the next request leaves out."""
    stored = Policy(enabled=False, scopes=Scopes(user=False, persona=True))
    assert Policy().over(stored) == stored
    said = Policy(scopes=Scopes(user=True)).over(stored)
    assert (said.enabled, said.scopes.user, said.scopes.persona) == (False, True, True)
    assert Policy(enabled=True).over(stored).enabled is True


def test_the_documented_example_is_understood() -> None:
    """User and organization scope enabled, for the one who asks."""
    example = {
        "agent": "@ada",
        "text": "Hello.",
        "organizationId": "org_123",
        "memoryControl": {
            "longTermMemory": {
                "enabled": True,
                "scopes": {"conversation": True, "user": True, "organization": True},
                "shareWithOrganization": True,
            }
        },
    }
    said = ChatRequest.model_validate(example)
    assert said.memory_control is not None
    policy = said.memory_control.as_policy()
    assert said.organization_id == "org_123"
    assert policy == Policy(
        enabled=True, scopes=Scopes(conversation=True, user=True, organization=True), shareWithOrganization=True
    )


def test_only_four_categories_become_the_organizations_by_default() -> None:
    assert OrganizationMemory().categories == SHARED == ("facts", "people", "projects", "decisions")


def test_a_policy_is_written_in_either_spelling_and_what_it_does_not_know_is_refused() -> None:
    """A misspelt `shareWithOrganisation` must not pass for silence."""
    said = Policy.model_validate({"shareWithOrganization": True})
    assert said == Policy.model_validate({"share_with_organization": True})
    assert said.share_with_organization is True
    for wrong in ({"shareWithOrganisation": True}, {"scopes": {"everyone": True}}):
        with pytest.raises(ValidationError, match="Extra inputs"):
            Policy.model_validate(wrong)
