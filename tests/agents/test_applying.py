"""Definition files applied to a house: created, changed, left alone; all of it or nothing; and written out again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import select

from denizen import ManualClock, Runtime, reply, scripted, skip
from denizen.agents import applying
from denizen.agents.differences import Change, FieldChange
from denizen.agents.documents import AgentDocument
from denizen.agents.files import DefinitionFile, read, render
from denizen.errors import DefinitionsInvalid, NotFound
from denizen.ids import OrganizationId
from denizen.spaces import directory
from denizen.storage.database import Row, Tx, statement
from denizen.storage.schema import agents, minds, plans
from tests.world import World

TEAM = """
name: Pat
instructions: You plan.
spaces: [Planning, {name: Ops, attention: mentions}]
goals: [Ship it, {text: Rest, status: long-term, priority: low}]
notes: {server: It is called hal.}
plans:
  - {name: Report, cron: 0 17 * * FRI, instruction: Sum up the week.}
  - {name: Launch, at: "2026-03-01T09:00", zone: Europe/Berlin, instruction: Launch it.}
heartbeat: {every_minutes: 60}
---
kind: person
name: Noor
---
kind: space
name: Planning
private: true
members: [noor, pat]
"""


async def applied(denizen: Runtime, *texts: str, **options: Any) -> list[Change]:
    files = [DefinitionFile(f"{number}.yaml", text) for number, text in enumerate(texts, start=1)]
    return await denizen.agents.apply(read(files), **options)


def in_short(changes: Sequence[Change]) -> list[str]:
    return [f"{each.kind} {each.name} {each.action}" for each in changes]


_versions = statement(select(agents.c.id, agents.c.version, minds.c.era, minds.c.news).join(minds))
_times = statement(select(plans.c.id, plans.c.next_run).order_by(plans.c.id))


def as_stored(tx: Tx) -> list[Row]:
    """Versions, eras and news of agents, and when their plans are due."""
    return tx.all(_versions) + tx.all(_times)


def members(tx: Tx, home: OrganizationId, name: str) -> list[str]:
    (space,) = directory.find_spaces(tx, home, name)
    return [f"{each.entity.handle} {each.attention}" for each in directory.members(tx, space.id)]


async def exported(denizen: Runtime, handle: str) -> AgentDocument:
    entity = await denizen.people.find(handle)
    return await denizen.db.read(applying.document_of, entity.organization_id, handle)


async def test_a_file_makes_an_agent_and_all_it_names(world: World) -> None:
    """Its definition, where it is, what it means to do; a space that is missing is made, with the creator in it."""
    denizen = world.denizen
    owner = await denizen.people.create("Owner")
    changes = await applied(denizen, TEAM, creator=owner)

    assert in_short(changes) == [
        "space Ops created",
        "agent pat created",
        "person noor created",
        "space Planning created",
    ]
    pat = await denizen.people.find("pat")
    agent = await denizen.agents.get(pat.id)
    assert (agent.name, agent.definition.instructions, agent.version) == ("Pat", "You plan.", 1)
    home = pat.organization_id
    assert await denizen.db.read(members, home, "Planning") == ["owner all", "noor all", "pat all"]
    assert await denizen.db.read(members, home, "Ops") == ["owner all", "pat mentions"]
    assert [(goal.text, goal.status, goal.priority) for goal in await denizen.goals.list(agent)] == [
        ("Ship it", "active", "normal"),
        ("Rest", "long-term", "low"),
    ]
    assert [(note.key, note.text) for note in await denizen.notes.list(agent)] == [("server", "It is called hal.")]
    assert [plan.name for plan in await denizen.plans.list(agent)] == ["Heartbeat", "Report", "Launch"]


async def test_applying_again_changes_nothing(world: World) -> None:
    """No new version, no new era, no news; also what the house writes out is what it has."""
    denizen = world.denizen
    await applied(denizen, TEAM)
    before = await denizen.db.read(as_stored)
    for text in (TEAM, render([await exported(denizen, "pat")])):
        changes = await applied(denizen, text)
        assert {each.action for each in changes} == {"unchanged"}
        assert [each.fields for each in changes] == [()] * len(changes)
    assert await denizen.db.read(as_stored) == before
    assert (await denizen.agents.get((await denizen.people.find("pat")).id)).version == 1


async def test_what_is_written_out_makes_the_same_in_another_house(world: World) -> None:
    """A file is all that an agent needs to move, but for its past."""
    denizen = world.denizen
    await applied(denizen, TEAM)
    document = await exported(denizen, "pat")
    async with Runtime(clock=ManualClock()) as other:
        await applied(other, render([document]))
        assert await exported(other, "pat") == document


async def test_what_changed_is_told_field_by_field(world: World) -> None:
    """And what the file does not name is left as it is."""
    denizen = world.denizen
    await applied(denizen, TEAM)
    pat = await denizen.agents.get((await denizen.people.find("pat")).id)
    await denizen.goals.set(pat, number=1, status="done")
    await denizen.notes.set(pat, "mine", "Noor likes tea.")
    (change,) = await applied(
        denizen,
        "name: Patricia\nhandle: pat\ninstructions: You plan well.\nspaces: [{name: Ops, attention: all}]\n"
        "goals: [Ship it, {text: Rest, status: paused}]\nnotes: {server: It is called bob.}\n"
        "plans: [{name: Report, cron: 0 18 * * FRI, instruction: Sum up the week.}]\n",
    )
    assert change == Change(
        "agent",
        "pat",
        "changed",
        (
            FieldChange("name", "Pat", "Patricia"),
            FieldChange("instructions", "You plan.", "You plan well."),
            FieldChange("heartbeat.every_minutes", 60, None),
            FieldChange("spaces.Ops", "mentions", "all"),
            FieldChange("goals.Rest", "long-term, low priority", "paused, low priority"),
            FieldChange("notes.server", "It is called hal.", "It is called bob."),
            FieldChange(
                "plans.Report",
                "recurring, cron: 0 17 * * FRI, UTC: Sum up the week.",
                "recurring, cron: 0 18 * * FRI, UTC: Sum up the week.",
            ),
        ),
    )
    after = await denizen.agents.get(pat.id)
    assert (after.name, after.version, after.definition.heartbeat) == ("Patricia", 2, None)
    assert [note.key for note in await denizen.notes.list(pat)] == ["mine", "server"]
    assert {goal.text: goal.status for goal in await denizen.goals.list(pat)} == {"Ship it": "done", "Rest": "paused"}
    assert [plan.name for plan in await denizen.plans.list(pat)] == ["Report", "Launch"]


async def test_a_dry_run_tells_the_same_and_does_nothing(world: World) -> None:
    """It is the very same work, undone."""
    denizen = world.denizen
    rehearsed = await applied(denizen, TEAM, dry_run=True)
    with pytest.raises(NotFound):
        await denizen.people.find("pat")
    assert rehearsed == await applied(denizen, TEAM)


async def test_if_anything_cannot_be_nothing_is(world: World) -> None:
    """Every problem is told, with the place of its document, and no document is applied."""
    denizen = world.denizen
    await denizen.people.create("Eli")
    gone = await denizen.agents.create("Gone")
    await denizen.agents.delete(gone)
    for _ in range(2):
        await denizen.spaces.create("Twin")
    with pytest.raises(DefinitionsInvalid) as failure:
        await applied(
            denizen,
            "name: Pat\n---\nname: Eli\n---\nname: Gone\n---\nname: Zoe\nspaces: [Twin]\n",
            "kind: space\nname: Ops\nmembers: [ely]\n",
        )
    assert failure.value.problems == (
        "1.yaml:3: The handle @eli is taken: its owner's kind is human. Choose another.",
        "1.yaml:5: The agent @gone was deleted. Choose another handle.",
        (
            "2.yaml:1: members: There is no person, agent or service '@ely'. Did you mean @eli? "
            "Define it in a document of its own if it is new."
        ),
        "1.yaml:7: There are 2 spaces named 'Twin'. Rename all but one, because a file refers to spaces by name.",
    )
    with pytest.raises(NotFound):
        await denizen.people.find("pat")


async def test_times_that_are_past_are_not_planned_again(world: World) -> None:
    """A file keeps what was planned in it; `after` counts from when it was first applied."""
    denizen = world.denizen
    text = (
        "name: Pat\nplans:\n  - {name: Soon, after: 2 hours, instruction: Look.}\n"
        '  - {name: Then, at: "2026-01-05T10:00", instruction: Go.}\n'
    )
    await applied(denizen, text)
    pat = await denizen.agents.get((await denizen.people.find("pat")).id)
    due = [(plan.name, plan.next_run) for plan in await denizen.plans.list(pat)]
    world.clock.advance(1800)
    assert in_short(await applied(denizen, text)) == ["agent pat unchanged"]
    assert [(plan.name, plan.next_run) for plan in await denizen.plans.list(pat)] == due
    await denizen.plans.delete(pat, "Then")
    world.clock.advance(3600)
    assert in_short(await applied(denizen, text)) == ["agent pat unchanged"]
    assert [plan.name for plan in await denizen.plans.list(pat)] == ["Soon"]


async def test_a_space_and_a_person_are_changed_too(world: World) -> None:
    """Whether it is private, who is in it, what they are called; members that are not named stay."""
    denizen = world.denizen
    await applied(denizen, "kind: person\nname: Noor\n---\nkind: space\nname: Ops\nmembers: [noor]\n---\nname: Pat\n")
    changes = await applied(
        denizen,
        "kind: space\nname: Ops\nprivate: true\nfloor: addressed\nmembers: [{handle: pat, attention: mentions}]\n---\n"
        "kind: person\nname: Noor Al-Amin\nhandle: noor\n",
    )
    assert changes == [
        Change(
            "space",
            "Ops",
            "changed",
            (
                FieldChange("private", False, True),
                FieldChange("floor", "one", "addressed"),
                FieldChange("members.pat", None, "mentions"),
            ),
        ),
        Change("person", "noor", "changed", (FieldChange("name", "Noor", "Noor Al-Amin"),)),
    ]
    noor = await denizen.people.find("noor")
    assert noor.name == "Noor Al-Amin"
    assert await denizen.db.read(members, noor.organization_id, "Ops") == ["noor all", "pat mentions"]
    (ops,) = await denizen.db.read(directory.find_spaces, noor.organization_id, "Ops")
    assert (ops.private, ops.floor, ops.agent_run_limit) == (True, "addressed", 12)


async def test_a_new_space_has_the_floor_that_its_file_says(world: World) -> None:
    changes = await applied(world.denizen, "kind: space\nname: Ops\nfloor: all\nagent_run_limit: 0\n")
    fields = (FieldChange("floor", None, "all"), FieldChange("agent_run_limit", None, 0))
    assert changes == [Change("space", "Ops", "created", fields)]
    organization = await world.denizen.people.create("Noor")
    (ops,) = await world.denizen.db.read(directory.find_spaces, organization.organization_id, "Ops")
    assert (ops.floor, ops.agent_run_limit) == ("all", 0)


async def test_a_suspended_agent_may_be_defined_anew(world: World) -> None:
    """And stays suspended."""
    denizen = world.denizen
    await applied(denizen, "name: Pat\n")
    pat = await denizen.agents.get((await denizen.people.find("pat")).id)
    await denizen.agents.suspend(pat)
    assert in_short(await applied(denizen, "name: Pat\ninstructions: New.\n")) == ["agent pat changed"]
    assert await denizen.agents.status(pat) == "suspended"


async def test_a_living_agent_takes_what_another_process_applied(ready_url: str) -> None:
    """With its next cycle: its name, its role and its plans, without a restart."""
    model = scripted(reply("Hello."), "Greeted Noor.", reply("Aye."), "Answered Noor.", skip(), name="parrot")
    clock = ManualClock()
    async with (
        Runtime(ready_url, clock=clock, models={"parrot": model}) as here,
        Runtime(ready_url, clock=clock) as elsewhere,
    ):
        noor = await here.people.create("Noor")
        await applied(here, "name: Pol\nmodel: parrot\ninstructions: Speak.\nspaces: [Deck]\n", creator=noor)
        (deck,) = await here.db.read(directory.spaces_of, noor.id)
        async with here.living():
            await here.spaces.post(deck, noor, "Hello!")
            await here.run_until_idle()
            await applied(elsewhere, "name: Polly\nhandle: pol\nmodel: parrot\ninstructions: Speak like a pirate.\n")
            await here.spaces.post(deck, noor, "Who are you?")
            await here.run_until_idle()
        first, last = (str(model.requests[index][0]) for index in (0, -1))
        assert ('name: "Pol"' in first, 'name: "Polly"' in last) == (True, True)
        assert ("pirate" in first, "pirate" in last) == (False, True)
        assert await here.spaces.transcript(deck) == [
            "Noor: Hello!",
            "Polly: Hello.",
            "Noor: Who are you?",
            "Polly: Aye.",
        ]


async def test_two_who_apply_the_same_at_once_make_it_once(ready_url: str) -> None:
    """The second finds what the first has made."""
    async with Runtime(ready_url) as here, Runtime(ready_url) as there:
        await here.people.create("Noor")
        done = await asyncio.gather(applied(here, TEAM), applied(there, TEAM))
        assert sorted({each.action for changes in done for each in changes}) == ["created", "unchanged"]
        home = (await here.people.find("noor")).organization_id
        assert await here.db.read(members, home, "Ops") == ["pat mentions"]
