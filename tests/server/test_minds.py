"""Looking into agents over HTTP: inbox, cycles, exact requests, log, recall; for admins of their own house only."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import httpx2

from denizen import call, reply, scripted, skip
from denizen.access import roles
from denizen.agents.registry import Agent
from denizen.cycles import ledger
from denizen.cycles.skipped_cycles import MOST_FOUND
from denizen.errors import ModelOverloaded, ModelRejected, ModelUnreachable
from denizen.ids import AgentId, CycleId, new_id
from denizen.models import codec
from denizen.models.request import ATTEMPTS
from denizen.models.scripted import Turn
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx
from denizen.tools.settings import ClientTool
from tests.server.conftest import House, served
from tests.world import JumpingClock, World, open_world

LOOKS = [
    "mind",
    "inbox",
    "cycles",
    "cycles/1",
    "cycles/1/steps/0",
    "log",
    "recall?q=tea",
    "crossings",
    "goals",
    "notes",
    "plans",
]


@dataclass
class Cast:
    """Noor owns the house and Sam is its admin; Mia is a member, Eve from elsewhere. Ada thinks as she is told to."""

    noor: Entity
    sam: Entity
    mia: Entity
    eve: Entity
    ada: Agent
    kitchen: Space


async def cast_of(world: World, *turns: Turn, **more: Any) -> Cast:
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor, sam, mia = [await world.person(name, organization=home) for name in ("Noor", "Sam", "Mia")]
    await world.denizen.db.write(roles.set_role, sam.id, "admin")
    eve = await world.person("Eve", organization=elsewhere)
    ada = await world.agent("Ada", *turns, organization=home, **more)
    kitchen = await world.space("Kitchen", noor, ada, organization=home)
    return Cast(noor, sam, mia, eve, ada, kitchen)


async def get(house: House, reader: Entity, path: str, **query: Any) -> Any:
    answer = await house.call("GET", f"/api/agents/@ada/{path}", reader, params=query or None)
    assert answer.status_code == 200, answer.text
    return answer.json()


def outcome(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_a_mind_is_for_admins_of_its_own_house(house: House) -> None:
    cast = await cast_of(house.world, reply("Hello."), "Greeted Noor.")
    await house.world.say(cast.noor, "Hello, Ada.", cast.kitchen)
    await house.world.run()
    for look in LOOKS:
        assert (await house.call("GET", f"/api/agents/@ada/{look}", cast.sam)).status_code == 200, look
        assert outcome(await house.call("GET", f"/api/agents/@ada/{look}", cast.mia)) == (403, "not_allowed"), look
        assert outcome(await house.call("GET", f"/api/agents/{cast.ada.id}/{look}", cast.eve)) == (404, "not_found")


# The inbox


async def test_what_waits_is_listed_in_the_order_in_which_it_is_taken(house: House) -> None:
    cast = await cast_of(house.world)
    for text in ("one", "two", "three"):
        await house.world.say(cast.noor, text, cast.kitchen)
    await house.world.denizen.agents.trigger(cast.ada, "CI", {"run": 7}, text="four", urgent=True)

    first = await get(house, cast.sam, "inbox", limit=3)
    rest = await get(house, cast.sam, "inbox", limit=3, after=first["next"])

    assert [each["text"] for each in first["events"]] == ["four", "one", "two"]
    assert ([each["text"] for each in rest["events"]], rest["next"]) == (["three"], None)
    urgent, normal = first["events"][:2]
    assert (urgent["lane"], urgent["type"], urgent["payload"]["data"]) == ("urgent", "service_trigger", {"run": 7})
    assert (normal["lane"], normal["state"], normal["sender"], normal["space"]) == (
        "normal",
        "pending",
        "Noor",
        "Kitchen",
    )
    assert normal["not_before"] is None
    for after in ("three", "urgent-", "urgent-x", "normal-9999999999999999999"):
        answer = await house.call("GET", "/api/agents/@ada/inbox", cast.sam, params={"after": after})
        assert outcome(answer) == (422, "invalid_input")


async def test_an_event_is_made_urgent(house: House) -> None:
    cast = await cast_of(house.world)
    await house.world.say(cast.noor, "one", cast.kitchen)
    second = await house.world.say(cast.noor, "two", cast.kitchen)

    made = await house.call("POST", f"/api/agents/@ada/inbox/{second.id}/urgent", cast.sam, json={})

    assert (made.status_code, made.content) == (204, b"")
    assert [(each["text"], each["lane"]) for each in (await get(house, cast.sam, "inbox"))["events"]] == [
        ("two", "urgent"),
        ("one", "normal"),
    ]
    for event in ("nothing", "%00"):
        again = await house.call("POST", f"/api/agents/@ada/inbox/{event}/urgent", cast.sam, json={})
        assert outcome(again) == (404, "not_found")


async def test_a_dead_event_is_tried_again(house: House) -> None:
    world = house.world
    cast = await cast_of(world, *[ModelRejected("no")] * 5, reply("Now."), "Answered.")
    await world.say(cast.noor, "Ada?", cast.kitchen)
    for _ in range(6):
        await world.run_after(100)
    [dead] = (await get(house, cast.sam, "inbox", state="dead"))["events"]
    assert (dead["text"], dead["state"], dead["attempts"]) == ("Ada?", "dead", 5)
    refused = await house.call("POST", f"/api/agents/@ada/inbox/{dead['id']}/requeue", cast.mia, json={})
    assert outcome(refused) == (403, "not_allowed")

    again = await house.call("POST", f"/api/agents/@ada/inbox/{dead['id']}/requeue", cast.sam, json={})
    await world.run()

    assert again.status_code == 204
    assert await world.transcript(cast.kitchen) == ["Noor: Ada?", "Ada: Now."]
    assert (await get(house, cast.sam, "inbox", state="dead"))["events"] == []


# Cycles


async def test_skipped_and_undone_cycles_are_shown_between_those_that_are_kept(house: House) -> None:
    world = house.world
    cast = await cast_of(
        world,
        "One.",
        skip("not for me"),
        ModelRejected("bad request"),
        "Two.",
        skip("nothing new"),
        "Three.",
    )
    for at in range(5):
        await world.denizen.agents.trigger(cast.ada, "Test", text=f"{at}")
        await world.run_after(60)
        await world.run_after(60)

    page = await get(house, cast.sam, "cycles")
    first = await get(house, cast.sam, "cycles", limit=1)
    second = await get(house, cast.sam, "cycles", limit=1, before=first["next"])
    third = await get(house, cast.sam, "cycles", limit=1, before=second["next"])

    told = [
        (each["number"], each["outcome"], each["kept"], each["summary"] or each["reason"]) for each in page["cycles"]
    ]
    assert told == [
        (3, "acted", True, "Three."),
        (None, "skipped", False, "nothing new"),
        (2, "acted", True, "Two."),
        (None, "undone", False, told[3][3]),
        (None, "skipped", False, "not for me"),
        (1, "acted", True, "One."),
    ]
    assert "bad request" in told[3][3]
    assert (page["complete"], page["next"]) == (True, None)
    assert [each["number"] for each in first["cycles"]] == [3]
    assert first["cycles"] + second["cycles"] + third["cycles"] == page["cycles"]
    assert third["next"] is None
    skipped = page["cycles"][1]
    assert skipped["input_tokens"] > 0
    assert (skipped["steps"], skipped["started_at"]) == (None, None)


async def test_skipped_cycles_are_found_whatever_others_did_meanwhile(house: House) -> None:
    """By their agent, not by leafing through the ledger of all; and a page says where there were too many."""
    world = house.world
    cast = await cast_of(world, "One.", [call("get_time_plans"), skip("mine")], "Two.")
    other = await world.agent("Bee", organization=cast.noor.organization_id)
    for _ in range(2):
        await world.denizen.agents.trigger(cast.ada, "Test")
        await world.run_after(1_000)
    await world.denizen.db.write(_skips, other.id, MOST_FOUND + 1)
    await world.denizen.agents.trigger(cast.ada, "Test")
    await world.run_after(1_000)

    page = await get(house, cast.sam, "cycles")
    await world.denizen.db.write(_skips, cast.ada.id, MOST_FOUND + 1)
    too_many = await get(house, cast.sam, "cycles")

    assert ([each["number"] for each in page["cycles"]], page["complete"]) == ([2, None, 1], True)
    assert page["cycles"][1]["reason"] == "mine"
    assert ([each["number"] for each in too_many["cycles"]], too_many["complete"]) == ([*[None] * 200, 2, 1], False)


def _skips(tx: Tx, agent_id: str, count: int) -> None:
    for _ in range(count):
        ledger.enter(tx, AgentId(agent_id), CycleId(new_id()), "skip", detail="theirs")


async def test_the_cycle_under_way_stands_first(house: House) -> None:
    ask = ClientTool(name="confirm", description="Ask.", parameters={"type": "object", "properties": {}})
    cast = await cast_of(house.world, "One.", call("confirm"), tools=[ask])
    await house.world.denizen.agents.trigger(cast.ada, "Test")
    await house.world.run()
    await house.world.say(cast.noor, "Go on.", cast.kitchen)
    await house.world.run()

    page = await get(house, cast.sam, "cycles")

    assert [(each["number"], each["outcome"]) for each in page["cycles"]] == [(None, "paused"), (1, "acted")]
    assert page["cycles"][0]["ended_at"] is None
    assert (await get(house, cast.sam, "mind"))["waiting_calls"][0]["tool"] == "confirm"
    [taken] = (await get(house, cast.sam, "inbox", state="taken"))["events"]
    assert (taken["text"], taken["cycle_id"]) == ("Go on.", page["cycles"][0]["id"])


async def test_a_cycle_is_shown_step_by_step(house: House) -> None:
    cast = await cast_of(
        house.world, [call("set_memories", memories=[{"key": "a", "text": "b"}]), reply("Noted.")], "Noted it."
    )
    await house.world.say(cast.noor, "Note this, Ada.", cast.kitchen)
    await house.world.run()

    cycle = await get(house, cast.sam, "cycles/1")

    assert (cycle["number"], cycle["outcome"], cycle["summary"], cycle["steps"]) == (1, "acted", "Noted it.", 2)
    first, last = cycle["each_step"]
    assert [each["kind"] for each in first["shown"]] == ["inbox"]
    assert "Note this, Ada." in first["shown"][0]["text"]
    assert [(each["tool"], json.loads(each["result"])["success"]) for each in first["calls"]] == [
        ("set_memories", True),
        ("send_message", True),
    ]
    assert first["calls"][1]["arguments"] == {"text": "Noted."}
    assert (last["step"], last["text"], last["calls"], last["model"]) == (1, "Noted it.", [], "python:ada")
    assert sum(each["usage"]["output_tokens"] for each in cycle["each_step"]) == cycle["output_tokens"]
    assert (cycle["tools"], cycle["people"], cycle["spaces"]) == (
        ["set_memories", "send_message"],
        ["Noor"],
        ["Kitchen"],
    )
    [listed] = (await get(house, cast.sam, "cycles"))["cycles"]
    assert listed == {name: cycle[name] for name in listed}


async def test_a_request_is_shown_exactly_as_it_was_sent(house: House) -> None:
    world = house.world
    cast = await cast_of(world, reply("Hello."), "Greeted Noor.", reply("Yes."), "Answered Noor.")
    for text in ("Hello, Ada.", "Are you there?"):
        await world.say(cast.noor, text, cast.kitchen)
        await world.run()
    sent = world.model(cast.ada).requests

    for number, step, asked in [(1, 0, sent[0]), (1, 1, sent[1]), (2, 0, sent[2]), (2, 1, sent[3])]:
        shown = await get(house, cast.sam, f"cycles/{number}/steps/{step}")
        assert [_content(each) for each in shown["messages"]] == [
            _content(json.loads(codec.dump(each))) for each in asked
        ]
        assert (shown["cycle"], shown["step"], shown["model"]) == (number, step, "python:ada")
        assert "send_message" in {each["name"] for each in shown["tools"]}
    for path in ("cycles/0", "cycles/3", "cycles/3/steps/0", "cycles/1/steps/2"):
        answer = await house.call("GET", f"/api/agents/@ada/{path}", cast.sam)
        assert outcome(answer) == (404, "not_found"), path


def _content(message: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (part["part_kind"], part.get("content"), part.get("tool_name"), part.get("args")) for part in message["parts"]
    ]


async def test_another_model_is_asked_the_same_and_nothing_is_written(house: House) -> None:
    world = house.world
    cast = await cast_of(world, reply("Hello."), "Greeted Noor.")
    await world.say(cast.noor, "Hello, Ada.", cast.kitchen)
    await world.run()
    other = scripted(reply("Good day."), "Greeted Noor.", ModelRejected("no"), ModelRejected("no"))
    world.denizen.models.register("other", other)
    path = "/api/agents/@ada/cycles/1/rethink"
    history = await world.history(cast.ada)

    again = await house.call("POST", path, cast.sam, json={"model": "other"})

    assert again.status_code == 200, again.text
    first, last = again.json()["answers"]
    assert [line for line in first["difference"] if line[:1] in "+-"][2:] == [
        "-    text: Hello.",
        "+    text: Good day.",
    ]
    assert (last["step"], last["difference"], last["dollars"]) == (1, [], 0.0)
    assert await world.history(cast.ada) == history
    assert await world.transcript(cast.kitchen) == ["Noor: Hello, Ada.", "Ada: Hello."]
    for body, told in [
        ({"model": "nobody"}, (422, "model_unknown")),
        ({"model": "other", "step": 2}, (404, "not_found")),
        ({"model": "other", "step": 0}, (422, "model_rejected")),
        ({"modl": "other"}, (422, "invalid_input")),
    ]:
        assert outcome(await house.call("POST", path, cast.sam, json=body)) == told
    assert outcome(await house.call("POST", path, cast.mia, json={"model": "other"})) == (403, "not_allowed")
    nowhere = await house.call("POST", "/api/agents/@ada/cycles/7/rethink", cast.sam, json={"model": "other"})
    assert outcome(nowhere) == (404, "not_found")


# The log, recall, the mind


async def test_the_log_is_read_page_by_page_in_both_directions(house: House) -> None:
    world = house.world
    cast = await cast_of(world, reply("Hello."), "Greeted Noor.", "Saw it.")
    await world.say(cast.noor, "Hello, Ada.", cast.kitchen)
    await world.run()
    await world.denizen.agents.trigger(cast.ada, "Test")
    await world.run()
    whole = (await get(house, cast.sam, "log"))["entries"]
    assert [(each["seq"], each["cycle"], each["kind"]) for each in whole] == [
        (1, 1, "inbox"),
        (2, 1, "response"),
        (3, 1, "results"),
        (4, 1, "response"),
        (5, 2, "inbox"),
        (6, 2, "response"),
    ]
    assert whole[3]["message"]["parts"][0]["content"] == "Greeted Noor."

    forwards, backwards = [], []
    after, before = 0, 7
    while after is not None:
        page = await get(house, cast.sam, "log", after=after, limit=4)
        forwards += page["entries"]
        after = page["next"]
    while before is not None:
        page = await get(house, cast.sam, "log", before=before, limit=4)
        backwards = page["entries"] + backwards
        before = page["next"]
    assert forwards == backwards == whole
    both = await house.call("GET", "/api/agents/@ada/log", cast.sam, params={"after": 1, "before": 3})
    assert outcome(both) == (422, "invalid_input")


async def test_a_life_is_searched_and_private_words_only_by_naming_their_space(house: House) -> None:
    world = house.world
    cast = await cast_of(world, *["Heard it."] * 3, cycle={"silent_reply": "ignore"})
    diary = await world.space(
        "Diary", cast.mia, cast.sam, cast.ada, private=True, organization=cast.mia.organization_id
    )
    await world.say(cast.noor, "The lamp in the hall is broken.", cast.kitchen)
    await world.run()
    await world.say(cast.mia, "I broke the lamp, tell nobody.", diary)
    await world.run()

    everywhere = (await get(house, cast.sam, "recall", q="lamp"))["found"]
    there = (await get(house, cast.sam, "recall", q="lamp", space=diary.id))["found"]
    by_name = (await get(house, cast.sam, "recall", q="lamp", space="Diary", who="@mia", when="today"))["found"]

    assert [(each["who"], each["space"], each["text"]) for each in everywhere if each["kind"] == "heard"] == [
        ("Noor", "Kitchen", "The lamp in the hall is broken.")
    ]
    assert [each["text"] for each in there if each["kind"] == "heard"] == ["I broke the lamp, tell nobody."]
    assert [each["text"] for each in by_name] == ["I broke the lamp, tell nobody."]
    assert by_name[0]["cycle"] == 2
    nowhere = await house.call("GET", "/api/agents/@ada/recall", cast.sam, params={"q": "lamp", "space": "Attic"})
    assert outcome(nowhere) == (404, "not_found")
    never = await house.call("GET", "/api/agents/@ada/recall", cast.sam, params={"q": "lamp", "when": "soon-ish"})
    assert outcome(never) == (422, "invalid_input")
    assert (await get(house, cast.sam, "recall", q="lamp", limit=1))["found"] == everywhere[:1]


async def test_what_was_stopped_is_listed_without_the_words(house: House) -> None:
    world = house.world
    secret = "the violet xylophone lies beneath seventeen crooked umbrellas in the attic"
    cast = await cast_of(world, "Heard it.", reply(secret), reply(secret), "Kept it.", cycle={"silent_reply": "ignore"})
    diary = await world.space("Diary", cast.mia, cast.ada, private=True, organization=cast.mia.organization_id)
    await world.say(cast.mia, secret, diary)
    await world.run()
    await world.say(cast.noor, "Ada, what do you know?", cast.kitchen)
    await world.run()

    first = await get(house, cast.sam, "crossings", limit=1)
    second = await get(house, cast.sam, "crossings", limit=1, before=first["next"])

    for page in (first, second):
        [crossing] = page["crossings"]
        # Sam is not in the private space: neither its name nor its id is told.
        assert (crossing["from_space"], crossing["from_space_id"]) == ("[private, 1 entry]", "")
        assert crossing["to_space_id"] == cast.kitchen.id
        assert crossing["words"] >= 8
        assert "xylophone" not in json.dumps(page)
    assert second["next"] is None


async def test_a_mind_is_shown_whole(house: House) -> None:
    world = house.world
    cast = await cast_of(world, reply("Hello."), "Greeted Noor.", budget={"tokens_per_day": 10_000_000})
    await world.denizen.goals.set(cast.ada, "Keep the pantry stocked.")
    await world.denizen.notes.set(cast.ada, "tea", "No sugar.")
    await world.denizen.plans.set(cast.ada, "round", "Look around.", cron="0 7 * * *")
    await world.say(cast.noor, "Hello, Ada.", cast.kitchen)
    await world.run()
    await world.denizen.agents.suspend(cast.ada)
    await world.say(cast.noor, "Still there?", cast.kitchen)

    mind = await get(house, cast.sam, "mind")

    assert (mind["handle"], mind["status"], mind["cycles"]) == ("ada", "suspended", 1)
    parts = {each["part"]: each for each in mind["window"]["parts"]}
    assert list(parts) == ["self", "tools", "recent", "free"]
    assert "Keep the pantry stocked." in parts["self"]["text"]
    assert (parts["recent"]["first_cycle"], parts["recent"]["last_cycle"]) == (1, 1)
    used = sum(each["tokens"] for name, each in parts.items() if name != "free")
    assert (used, parts["free"]["tokens"]) == (mind["window"]["used"], mind["window"]["limit"] - used)
    assert [(each["name"], each["waiting"]) for each in mind["inbox"]] == [("urgent", 0), ("normal", 1)]
    assert mind["inbox"][1]["first"][0]["text"] == "Still there?"
    assert [each["text"] for each in mind["goals"]] == ["Keep the pantry stocked."]
    assert mind["notes"] == [{"key": "tea", "text": "No sugar.", "outside": False}]
    assert [(each["name"], each["state"]) for each in mind["plans"]] == [("round", "held")]
    assert mind["budget"]["tokens_per_day"] == 10_000_000
    assert mind["organization_budget"] is None
    assert mind["today"]["calls"] == mind["seven_days"]["calls"] == 2
    assert [each["summary"] for each in mind["last_cycles"]] == ["Greeted Noor."]


async def test_an_overloaded_provider_is_not_a_defect(ready_sqlite_url: str) -> None:
    async with open_world(ready_sqlite_url, clock=JumpingClock()) as world, served(world) as house:
        noor, ada = await world.person("Noor"), await world.agent("Ada", "Saw it.")
        await world.denizen.agents.trigger(ada, "Test")
        await world.run()
        for error, told in [
            (ModelOverloaded("at secret.example"), (503, "model_overloaded")),
            (ModelUnreachable("at secret.example"), (502, "model_unreachable")),
        ]:
            world.denizen.models.register("busy", scripted(*[error] * ATTEMPTS))
            answer = await house.call("POST", "/api/agents/@ada/cycles/1/rethink", noor, json={"model": "busy"})
            assert outcome(answer) == told
            assert ("retry-after" in answer.headers) == (answer.status_code == 503)
            assert "secret.example" not in answer.text
