"""Safety and privacy."""

from __future__ import annotations

import pytest

from denizen import NotAllowed, Requester
from denizen.access import audit
from denizen.access.audit import Actor
from tests.server import test_openings
from tests.server import test_provider_sign_in as provider_sign_in
from tests.server.conftest import served
from tests.tools import test_privacy_guard as guard
from tests.trust import test_approvals as approvals
from tests.trust.test_approvals import nothing_sent  # noqa: F401  a fixture
from tests.world import World, open_world


async def test_an_effect_that_a_page_may_have_asked_for_waits_for_a_person(small_world: World) -> None:
    """After an agent has read text from outside, an effect with values that no person named asks a person first.

    Docs: effects.md
    """
    await approvals.test_an_effect_that_text_from_outside_may_have_asked_for_waits_for_a_person(small_world)


async def test_what_a_person_has_said_is_done_at_once(small_world: World) -> None:
    """An effect whose recipient, amount and id stand in a person's words needs no question.

    Docs: effects.md
    """
    await approvals.test_what_stands_in_the_persons_words_happens_at_once(small_world)


async def test_an_approval_is_for_one_call_or_for_a_number_of_them(small_world: World) -> None:
    """An approval is for the exact arguments; it can be given for a number of times or for a time.

    Docs: effects.md
    """
    await approvals.test_an_approval_for_several_times(small_world)


async def test_an_approval_that_nobody_gives_is_a_refusal(small_world: World) -> None:
    """A request for approval that nobody answers in time is refused, and the agent is told so.

    Docs: effects.md
    """
    await approvals.test_nobody_approves_in_time(small_world)


async def test_rules_allow_or_deny_effects(small_world: World) -> None:
    """Rules of an agent allow, ask or deny effects by tool, argument, space and speaker.

    Docs: effects.md
    """
    await approvals.test_a_rule_that_denies_is_told_to_the_model(small_world)


async def test_the_mark_of_text_from_outside_is_inherited(small_world: World) -> None:
    """What an agent makes after reading text from outside is marked: the next cycle still asks.

    Docs: provenance.md
    """
    await approvals.test_the_next_cycle_still_remembers_the_page(small_world)


async def test_private_words_are_not_repeated(small_world: World) -> None:
    """An agent does not repeat to others what was said in a private space.

    Docs: privacy.md
    """
    await guard.test_private_words_are_stopped_and_the_agent_is_told_why(small_world, guard.SECRET)


async def test_files_of_a_private_space_are_not_repeated(small_world: World) -> None:
    """Nor does it repeat the text of a file of a private space.

    Docs: privacy.md
    """
    await guard.test_files_and_single_messages_of_a_private_space_are_private_too(small_world, "its text")


async def test_an_owner_reads_a_private_space_in_an_emergency() -> None:
    """An owner can read a private space for an hour, with a reason; its members are told, and the audit log shows it.

    Docs: privacy.md
    """
    async with open_world("sqlite://") as world, served(world) as house:
        await test_openings.test_an_owner_reads_for_an_hour_and_the_members_are_told(house)


async def test_members_cannot_change_agents(small_world: World) -> None:
    """Members use their spaces and talk to agents. Agents are created and changed by admins and owners.

    Docs: access.md
    """
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada")
    member = Requester(Actor(noor.id), noor.organization_id, "member")
    with pytest.raises(NotAllowed, match="Only admins of the organization can do this"):
        await small_world.denizen.agents.edit(ada, instructions="Obey me.", by=member)


async def test_changes_are_in_the_audit_log(small_world: World) -> None:
    """The audit log says who changed what: roles, tokens, secrets, definitions, exports; it cannot be edited.

    Docs: audit.md
    """
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada")
    owner = Requester(Actor(noor.id), noor.organization_id, "owner")
    await small_world.denizen.agents.edit(ada, instructions="You bake.", by=owner)
    read = small_world.denizen.db.read
    newest, *_ = await read(audit.entries, noor.organization_id, noor.id, audit.AuditFilter(), limit=50)
    assert newest.by is not None
    assert (newest.action, newest.by.name, newest.detail["fields"]) == ("edit_agent", "Noor", ["instructions"])


async def test_people_sign_in_at_an_identity_provider() -> None:
    """People sign in with a browser at an identity provider (OpenID Connect with PKCE); its groups decide their roles.

    Docs: access.md#an-identity-provider
    """
    async with provider_sign_in.two_of_them(roles={"staff": "admin"}) as (_, provider, browser):
        said = await provider_sign_in.asked(browser)
        provider.nonce, provider.claims = said["nonce"], {"groups": ["staff"]}
        headers = await browser.exchange(await browser.come_back(provider_sign_in.answer_to(said)))
        me = (await browser.me(headers)).json()
    assert (me["name"], me["role"]) == ("Mallory", "admin")
