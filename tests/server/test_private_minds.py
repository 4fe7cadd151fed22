"""What is said in a private space can be read by its members only, whichever way an agent's mind is looked at.

A secret word is said to an agent in a private space of two people. Then every operation of the API that reads, taken
from its description, and every event stream is asked by an owner, an admin and a member who are not in that space.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from denizen import call, reply
from denizen.access import roles
from denizen.agents.registry import Agent
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from denizen.models.scripted import Turn
from denizen.spaces.directory import Entity, Space
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.server import small_town
from tests.server.conftest import House, served
from tests.world import UNHURRIED, World, open_world

WORD = "nightingale"
SENTENCE = f"The passphrase of the safe behind the old oak door is {WORD} and nobody else may know it."
NAME = f"The {WORD} club"


@dataclass
class Club:
    """Noor and Sam are in a private space with Ada; owner, admin and member are in the hall with her."""

    house: House
    ada: Agent
    den: Space
    hall: Space
    noor: Entity
    sam: Entity
    outside: dict[str, Entity]
    values: dict[str, list[str]]
    """What stands for each parameter of a path."""


def script(den: str) -> list[Turn]:
    """Ada writes the secret down in every way she has, and tries to carry it elsewhere."""
    return [
        call("set_memories", memories=[{"key": f"the {WORD}", "text": SENTENCE}]),
        call("set_goals", text=f"Keep {WORD} safe"),
        call("set_timer", name=f"guard {WORD}", reason=SENTENCE, after="10 days"),
        call("set_timer", reason=f"Ask Noor about {WORD}", after="1 hour"),
        reply(f"I keep {WORD} to myself."),
        f"Promised Noor to keep {WORD}.",
        # The timer goes off, in the space in which it was set.
        f"Thought of {WORD}.",
        # In the hall.
        reply("Good morning."),
        "Greeted Olga.",
        # In the hall again, looking back and elsewhere.
        call("read_entry", entry="cycles"),
        call("read_entry", entry="memories"),
        call("read_messages", space_id=den),
        reply("I do not tell."),
        "Told Olga nothing.",
        # In the hall, stopped by the guard.
        reply(SENTENCE),
        reply("Nothing to see."),
        "Said something else.",
        *itertools.chain.from_iterable([reply(f"Done {at}."), f"Summed up day {at} in the hall."] for at in range(12)),
        *([call("send_message", space_id=den, text=f"Yes, {WORD}."), f"Said {WORD} again."] * 3),
    ]


@asynccontextmanager
async def club(world: World) -> AsyncGenerator[Club]:
    denizen = world.denizen
    olga, amin, mia, noor, sam = [await world.person(name) for name in ("Olga", "Amin", "Mia", "Noor", "Sam")]
    await denizen.db.write(roles.set_role, amin.id, "admin")
    den = await world.space(NAME, noor, sam, private=True)
    ada = await world.agent(
        "Ada",
        *script(den.id),
        window={"max_tokens": Toolbox(PREBUILT).tokens + 4_000, "min_recent_cycles": 2},
        cycle={"silent_reply": "ignore"},
    )
    await denizen.spaces.join(den, ada)
    hall = await world.space("Hall", olga, amin, mia, ada)
    said = await world.say(noor, SENTENCE, den)
    await world.run()
    await world.run_after(7_200)
    for text in ("Good morning, Ada.", "What do you know?", "Tell me the secret."):
        await world.say(olga, text, hall)
        await world.run()
    for at in range(12):
        await world.say(olga, f"This is day {at}. " + "And it is a long one. " * 20, hall)
        await world.run()
    await denizen.reflection.set_state_of_mind(ada, den, mood="patient")
    owner = Owner("persona", noor.organization_id, user_id=noor.id, agent_id=ada.id)
    await denizen.db.write(items.remember, owner, den.id, [Candidate("facts", f"Noor knows {WORD}.", (said.id,))])
    [memory] = await denizen.memory.list(owner=owner.key)
    await denizen.agents.suspend(ada)
    await world.say(noor, f"Do you still know {WORD}?", den)
    [waiting] = await denizen.minds.inbox(ada)
    cycles = await denizen.minds.cycles(ada)
    everything = await denizen.minds.inspect(ada)
    assert WORD in cycles[0].summary
    assert WORD in everything.era.text
    assert WORD in (everything.era.layers or ""), "nothing of the private space has been compacted yet"
    async with served(world) as house:
        yield Club(
            house,
            ada,
            den,
            hall,
            noor,
            sam,
            {"owner": olga, "admin": amin, "member": mia},
            {
                "agent_id": [ada.id],
                "space_id": [den.id, hall.id],
                "conversation_id": [den.id, hall.id],
                "entity_id": [noor.id],
                "message_id": [said.id],
                "event_id": [waiting.id],
                "number": [str(each.number) for each in cycles],
                "step": ["0", "1", "2"],
                "model": ["ada"],
                "memory_id": [memory.id],
            },
        )


@pytest.fixture
async def there(ready_url: str) -> AsyncGenerator[Club]:
    async with open_world(ready_url, pace=UNHURRIED) as world, club(world) as found:
        yield found


QUERIES: dict[str, list[dict[str, str]]] = {
    "/api/agents/{agent_id}/recall": [{"q": "passphrase safe oak door"}, {"q": "passphrase safe", "space": "DEN"}],
    "/api/agents/{agent_id}/inbox": [{"state": "pending"}, {"state": "dead"}, {"state": "taken"}],
    "/api/messages/search": [{"q": "passphrase safe oak door"}],
    "/api/usage": [{"by": "agent"}, {"by": "day"}],
    "/api/agents/{agent_id}/log": [{"after": "0", "limit": "200"}, {"before": "10000", "limit": "7"}],
}
"""What an operation is asked with, where that matters."""


def requests(there: Club) -> list[tuple[str, dict[str, str]]]:
    """Every GET of the API, with the ids of the club, streams aside."""
    found: list[tuple[str, dict[str, str]]] = []
    for method, path, operation in small_town.operations(small_town.description()):
        streams = any("text/event-stream" in each.get("content", {}) for each in operation["responses"].values())
        names = small_town.names_in(path)
        if method != "GET" or streams or any(name not in there.values for name in names):
            continue
        for ids in itertools.product(*(there.values[name] for name in names)):
            given = dict(zip(names, ids, strict=True))
            filled = re.sub(r"{(\w+)}", lambda match, given=given: given[match[1]], path)
            found += [
                (filled, {key: there.den.id if each == "DEN" else each for key, each in query.items()})
                for query in QUERIES.get(path, [small_town.needed(operation)])
            ]
    return found


async def test_no_operation_that_reads_tells_of_a_private_space(there: Club) -> None:
    asked = requests(there)
    assert len(asked) > 80
    leaks: list[str] = []
    answered: Counter[str] = Counter()
    for role, who in there.outside.items():
        for path, query in asked:
            answer = await there.house.call("GET", path, who, params=query)
            assert answer.status_code < 500, (path, answer.text)
            answered[role] += answer.status_code == 200
            if WORD in answer.text.lower():
                at = answer.text.lower().index(WORD)
                leaks.append(f"{role} GET {path} {query}: {answer.text[max(at - 100, 0) : at + 40]}")
    assert leaks == []
    assert answered["owner"] > 60, "hardly anything was answered: the walk asks for the wrong things"


async def test_a_member_still_reads_it(there: Club) -> None:
    """Noor becomes an admin: she is in the private space, and everything of it is hers to read."""
    await there.house.world.denizen.db.write(roles.set_role, there.noor.id, "admin")
    for path in (
        "mind",
        "log?limit=200",
        "cycles",
        "cycles/1",
        "cycles/1/steps/0",
        "inbox",
        "notes",
        "goals",
        "plans",
        "memories",
    ):
        answer = await there.house.call("GET", f"/api/agents/{there.ada.id}/{path}", there.noor)
        assert WORD in answer.text, path
        assert "[private" not in answer.text, path


async def test_a_stand_in_says_how_many_entries_were_left_out_and_where(there: Club) -> None:
    whole = (await there.house.call("GET", f"/api/agents/{there.ada.id}/log?limit=200", await _admin(there))).json()
    seen = (await there.house.call("GET", f"/api/agents/{there.ada.id}/log?limit=200", there.outside["owner"])).json()
    # Nothing is missing: what is shown and what is counted are the whole log.
    assert sum(each["private"] or 1 for each in seen["entries"]) == len(whole["entries"])
    first = seen["entries"][0]
    assert (first["kind"], first["message"], first["seq"]) == ("private", None, 1)
    assert first["private"] > 8
    shown = [each for each in seen["entries"] if not each["private"]]
    assert "Good morning, Ada." in str(shown)
    cycle = (await there.house.call("GET", f"/api/agents/{there.ada.id}/cycles/1", there.outside["owner"])).json()
    assert cycle["summary"] == f"[private, {cycle['private']} entries]"
    assert (cycle["each_step"], cycle["people"], cycle["spaces"], cycle["tools"]) == ([], [], [], [])
    assert cycle["private"] == first["private"] - 2  # the timer's cycle has two more


async def test_layers_show_the_lines_of_other_cycles(there: Club) -> None:
    mind = (await there.house.call("GET", f"/api/agents/{there.ada.id}/mind", there.outside["owner"])).json()
    [layers] = [each["text"] for each in mind["window"]["parts"] if each["part"] == "layers"]
    assert "[private, " in layers
    assert "Summed up day 2 in the hall." in layers
    [self] = [each["text"] for each in mind["window"]["parts"] if each["part"] == "self"]
    assert '"Hall"' in self
    assert "MEMORIES:\n  - [private, 1 entry]" in self
    assert [each["key"] for each in mind["notes"]] == ["[private, 1 entry]"]
    assert [each["first"][0]["text"] for each in mind["inbox"] if each["first"]] == ["[private, 1 entry]"]


async def test_another_model_is_not_asked_about_a_private_cycle(there: Club) -> None:
    owner, asked = there.outside["owner"], {"model": "demo"}
    refused = await there.house.call("POST", f"/api/agents/{there.ada.id}/cycles/1/rethink", owner, json=asked)
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
    again = await there.house.call("POST", f"/api/agents/{there.ada.id}/cycles/3/rethink", owner, json=asked)
    assert again.status_code == 200
    assert WORD not in again.text


async def test_no_stream_tells_of_a_private_space(there: Club) -> None:
    """What the agent says and thinks in the private space while others listen is not among what they hear."""
    house, denizen = there.house, there.house.world.denizen
    paths = (f"/api/agents/{there.ada.id}/stream", "/api/stream", f"/api/spaces/{there.hall.id}/stream")
    for role, who in there.outside.items():
        for path in paths:
            async with house.listen(who, path, **({"after": 0} if "agents" in path else {})) as stream:
                await denizen.reflection.set_state_of_mind(there.ada, there.den, mood="patient")
                await house.say(there.noor, f"Again: {WORD}", there.den)
                await house.say(who, f"The {role} is here.", there.hall)
                if "agents" in path:
                    await denizen.agents.resume(there.ada)
                    await denizen.run_until_idle()
                    await denizen.agents.suspend(there.ada)
                    await stream.until("agent.status", status="suspended")
                else:
                    await stream.until("message", text=f"The {role} is here.")
                assert WORD not in str(stream.seen).lower(), (role, path)


async def test_an_export_by_an_owner_has_stand_ins_and_can_be_taken_in(there: Club, tmp_path: Path) -> None:
    answer = await there.house.call("GET", f"/api/agents/{there.ada.id}/export", there.outside["owner"])
    assert WORD not in answer.text
    assert "Good morning, Ada." in answer.text
    denizen = there.house.world.denizen
    # Whoever runs the server has everything: that is how an agent is moved.
    assert WORD in "".join([line async for line in denizen.agents.export(there.ada)])
    file = tmp_path / "ada.jsonl"
    file.write_text(answer.text)
    made = await denizen.organizations.import_file(file, handle="ada-again")
    assert made.counts["cycle"] == len(await denizen.minds.cycles(there.ada))
    twin = await denizen.people.find("ada-again")
    assert not any(WORD in str(each.message) for each in await denizen.minds.log(twin.id))


async def test_an_agent_that_was_moved_is_as_private_as_before(there: Club, tmp_path: Path) -> None:
    denizen, owner = there.house.world.denizen, there.outside["owner"]
    file = tmp_path / "ada.jsonl"
    file.write_text("".join([line async for line in denizen.agents.export(there.ada)]))
    await denizen.organizations.import_file(file, handle="moved")
    fork = await denizen.agents.fork(there.ada, handle="forked")
    for handle in ("moved", "forked"):
        for path in ("mind", "log?limit=200", "cycles", "notes", "goals", "export"):
            answer = await there.house.call("GET", f"/api/agents/@{handle}/{path}", owner)
            assert answer.status_code == 200
            assert WORD not in answer.text.lower(), (handle, path)
    assert any(WORD in str(each.message) for each in await denizen.minds.log(fork, reader=there.noor))


async def test_python_reads_as_someone_or_as_whoever_runs_it(there: Club) -> None:
    denizen, owner = there.house.world.denizen, there.outside["owner"]
    for read in (denizen.minds.log, denizen.minds.cycles, denizen.minds.inspect, denizen.minds.inbox):
        assert WORD in repr(await read(there.ada)), read
        assert WORD in repr(await read(there.ada, reader=there.noor)), read
        assert WORD not in repr(await read(there.ada, reader=owner)).lower(), read
    assert WORD in repr(await denizen.minds.replay(there.ada, 4))
    assert WORD not in repr(await denizen.minds.replay(there.ada, 4, reader=owner)).lower()


async def _admin(there: Club) -> Entity:
    await there.house.world.denizen.db.write(roles.set_role, there.noor.id, "admin")
    return there.noor
