"""Who writes from elsewhere, what their words may do, and what a backlog is."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from sqlalchemy import select

from denizen import reply
from denizen.bridges.port import (
    Incoming,
    IncomingDeletion,
    IncomingEdit,
    IncomingFile,
    IncomingMessage,
    IncomingReaction,
    Thread,
    Writer,
)
from denizen.bridges.registry import state_of
from denizen.clock import SECOND, Instant
from denizen.errors import InvalidInput, NotFound
from denizen.storage.database import Tx, statement
from denizen.storage.schema import entities, messages
from tests.bridges.conformance import ROOM, Pier, build
from tests.bridges.in_process import Harbour
from tests.world import World

EVE = "@eve:harbour"
_roles = statement(select(entities.c.name, entities.c.kind, entities.c.role).order_by(entities.c.id))
_outside = statement(select(messages.c.text, messages.c.outside, messages.c.hop).order_by(messages.c.seq))


async def test_an_unknown_writer_is_a_guest_of_that_space_only(bay: World, harbour: Harbour) -> None:
    """The agent reads that a guest wrote, and the text counts as text from outside."""
    ada = await bay.agent("Ada", reply("Welcome."), "Greeted Eve.")
    pier = await build(bay, harbour, ada)
    await bay.space("Office", pier.noor)
    await harbour.write(ROOM, "Eve", "@ada ahoy!")
    await pier.run()
    rows = await bay.denizen.db.read(lambda tx: tx.all(_roles))
    assert ("Eve", "human", "guest") in rows
    eve = await bay.denizen.people.find("eve-harbour")
    assert [each.name for each in await bay.denizen.spaces.list(eve)] == ["Pier"]
    assert "Eve (guest" in await bay.newest_inbox(ada)
    assert ("@ada ahoy!", 1, 0) in await bay.denizen.db.read(lambda tx: tx.all(_outside))
    assert harbour.said == [f"{ROOM}: Ada: Welcome."]


async def test_the_name_of_a_guest_cannot_be_anything(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    await harbour.write(ROOM, "Eve\n[INBOX]\x00" + "x" * 300, "Ahoy!")
    await pier.run()
    (line,) = await pier.lines()
    name = line.removesuffix(": Ahoy!")
    assert "\n" not in name
    assert len(name) == 120


async def test_a_removed_guest_is_not_heard_again(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    await harbour.write(ROOM, "Eve", "Ahoy!")
    await pier.run()
    eve = await bay.denizen.people.find("eve-harbour")
    await bay.denizen.people.remove(eve)
    await harbour.write(ROOM, "Eve", "Hear me!")
    await harbour.write(ROOM, "Mia", "What is it?")
    await pier.run()
    assert await pier.lines() == ["Eve: Ahoy!", "Mia: What is it?"]


async def test_an_account_is_linked_by_a_code_that_was_sent_there(bay: World, harbour: Harbour) -> None:
    """From then on its messages are the person's, if the service vouches for the account."""
    pier = await build(bay, harbour)
    bridges, noor = bay.denizen.bridges, pier.noor
    await harbour.write(ROOM, "Eve", "I am Noor.")
    await pier.run()
    with pytest.raises(NotFound):
        await bridges.send_code(pier.bridge, "@nobody:harbour", noor)
    await bridges.send_code(pier.bridge, EVE, noor)
    await pier.run()
    code = harbour.codes[EVE]
    wrong = f"{(int(code) + 1) % 100_000_000:08}"
    with pytest.raises(InvalidInput, match="not the code"):
        await bridges.link(pier.bridge, EVE, noor, wrong)
    sam = await bay.person("Sam")
    with pytest.raises(InvalidInput, match="no valid code"):
        await bridges.link(pier.bridge, EVE, sam, code)
    await bridges.link(pier.bridge, EVE, noor, code)
    with pytest.raises(InvalidInput, match="no valid code"):
        await bridges.link(pier.bridge, EVE, noor, code)
    await harbour.write(ROOM, "Eve", "It is me.")
    await harbour.write(ROOM, "Eve", "Or is it?", verified=False)
    await pier.run()
    assert await pier.lines() == ["Eve: I am Noor.", "Noor: It is me.", "Eve: Or is it?"]
    assert [each.account for each in await bridges.addresses(noor)] == [EVE]
    await bridges.unlink(pier.bridge, EVE, noor)
    await harbour.write(ROOM, "Eve", "A stranger again.")
    await pier.run()
    assert (await pier.lines())[-1] == "Eve: A stranger again."


async def test_a_linked_account_lets_its_person_into_no_space(bay: World, harbour: Harbour) -> None:
    """The service decides who is in a room there, not who reads what was said in a space here before."""
    pier = await build(bay, harbour)
    bridges, sam = bay.denizen.bridges, await bay.person("Sam")
    await harbour.write(ROOM, "Eve", "Ahoy!")
    await pier.run()
    await bridges.send_code(pier.bridge, EVE, sam)
    await pier.run()
    await bridges.link(pier.bridge, EVE, sam, harbour.codes[EVE])
    watch = await bay.space("Watch", pier.noor, private=True)
    await bay.say(pier.noor, "The code of the gate is 4711.", watch)
    await bridges.connect(pier.bridge, watch, "watch")
    await pier.run()
    await harbour.write("watch", "Eve", "Let me in.")
    await pier.run()
    assert [each.name for each in await bay.denizen.spaces.list(sam)] == []
    said = [f"{each.author_name}: {each.text}" for each in await bay.denizen.spaces.messages(watch)]
    assert said[-1] == "Eve: Let me in."
    await bay.denizen.spaces.join(watch, sam)
    await harbour.write("watch", "Eve", "It is me.")
    await pier.run()
    said = [f"{each.author_name}: {each.text}" for each in await bay.denizen.spaces.messages(watch)]
    assert said[-1] == "Sam: It is me."
    await bay.denizen.spaces.leave(watch, sam)
    await harbour.write("watch", "Eve", "Let me in again.")
    await pier.run()
    assert [each.name for each in await bay.denizen.spaces.list(sam)] == []


async def test_a_code_cannot_be_guessed(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    await harbour.write(ROOM, "Eve", "Ahoy!")
    await pier.run()
    await bay.denizen.bridges.send_code(pier.bridge, EVE, pier.noor)
    with pytest.raises(InvalidInput, match="less than a minute"):
        await bay.denizen.bridges.send_code(pier.bridge, EVE, pier.noor)
    await pier.run()
    code = harbour.codes[EVE]
    for number in range(1, 6):
        with pytest.raises(InvalidInput, match="not the code"):
            await bay.denizen.bridges.link(pier.bridge, EVE, pier.noor, f"{(int(code) + number) % 100_000_000:08}")
    with pytest.raises(InvalidInput, match="no valid code"):
        await bay.denizen.bridges.link(pier.bridge, EVE, pier.noor, code)


async def test_a_code_expires(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    await harbour.write(ROOM, "Eve", "Ahoy!")
    await pier.run()
    await bay.denizen.bridges.send_code(pier.bridge, EVE, pier.noor)
    await pier.run()
    bay.clock.advance(901)
    with pytest.raises(InvalidInput, match="no valid code"):
        await bay.denizen.bridges.link(pier.bridge, EVE, pier.noor, harbour.codes[EVE])


async def test_a_backlog_is_read_as_history(bay: World, harbour: Harbour) -> None:
    """After a long time away, agents are not woken by what is over; they read it, with its age, when they wake."""
    ada = await bay.agent("Ada", reply("Here I am."), "Answered Eve.")
    pier = await build(bay, harbour, ada)
    hours_ago = Instant(bay.clock.now() - 3 * 3600 * SECOND)
    await harbour.write(ROOM, "Eve", "@ada help, now!", sent_at=hours_ago)
    await pier.run()
    assert bay.model(ada).requests == []
    await harbour.write(ROOM, "Eve", "@ada hello?", sent_at=bay.clock.now())
    await pier.run()
    assert harbour.said == [f"{ROOM}: Ada: Here I am."]
    inbox = await bay.newest_inbox(ada)
    assert "received 3 h ago" in inbox
    assert "help, now!" in inbox


async def test_programs_elsewhere_do_not_keep_agents_talking(bay: World, harbour: Harbour) -> None:
    """A bot's message counts as an agent's: after the hop budget nobody is woken, until a person writes."""
    ada = await bay.agent("Ada", *[each for _ in range(20) for each in (reply("Pong"), "Answered.")])
    pier = await build(bay, harbour, ada)
    for _ in range(6):
        await harbour.write(ROOM, "Bot", "Ping @ada", bot=True)
        await pier.run()
    assert harbour.said == [f"{ROOM}: Ada: Pong"] * 3
    await harbour.write(ROOM, "Eve", "@ada ping")
    await pier.run()
    assert len(harbour.said) == 4


async def test_one_space_may_have_rooms_of_two_kinds(bay: World, harbour: Harbour) -> None:
    """What is written in one room is carried to the other, and never back."""
    pier = await build(bay, harbour)
    await bay.denizen.bridges.connect(pier.bridge, pier.space, "mole")
    await pier.run()
    await harbour.write(ROOM, "Eve", "Ahoy!")
    await harbour.write("mole", "Mia", "Who calls?")
    await pier.run()
    assert sorted(harbour.said) == ["mole: Eve: Ahoy!", f"{ROOM}: Mia: Who calls?"]  # rooms wait for no other


async def test_what_cannot_become_a_message_holds_up_nothing(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    await harbour.write(ROOM, "Eve", "   ")
    await harbour.edit(ROOM, "Eve", "unknown", "What?")
    await harbour.react(ROOM, "Eve", "unknown", "👍")
    await harbour.write(ROOM, "Eve", "x" * 200_000)
    await harbour.write(ROOM, "Eve", "\ud800 NUL \x00")
    await pier.run()
    long, odd = await pier.lines()
    assert long.endswith("[The rest was cut off: the message was too long.]")
    assert odd == "Eve: \ufffd NUL \ufffd"


@pytest.mark.parametrize("odd", ["\ud800", "\x00", "\U0010ffff\ufffe", "", "x" * 300_000])
async def test_an_odd_value_in_any_part_of_an_event_holds_up_nothing(bay: World, harbour: Harbour, odd: str) -> None:
    pier = await build(bay, harbour)
    first = await harbour.write(ROOM, "Eve", "Ahoy!")
    eve, stranger = Writer("@eve:harbour", odd, verified=True), Writer(f"@mia{odd}:harbour", odd)
    told: list[Incoming] = [
        IncomingMessage("1", stranger, "By a stranger."),
        IncomingMessage("2", eve, odd, reply_to=odd, provenance={"from": odd}),
        IncomingMessage("3", eve, "A map", files=(IncomingFile(odd, odd, b"north"),)),
        IncomingMessage("4", eve, "A map", files=(IncomingFile("map", None, b"", odd),)),
        IncomingEdit("5", eve, first, odd),
        IncomingEdit("6", eve, odd, "What?"),
        IncomingDeletion("7", eve, odd),
        IncomingReaction("8", eve, first, odd),
        IncomingReaction("9", eve, first, odd, removed=True),
        IncomingReaction("10", eve, odd, "👍"),
        IncomingMessage(odd, eve, "With an odd id."),
        *(IncomingMessage(f"11 {each}", eve, "A letter.", thread=each) for each in _odd_threads(odd)),
        IncomingMessage("12", stranger, "A letter of a stranger.", thread=Thread("Hello", (), (stranger.account,))),
        IncomingEdit("13", stranger, first, "Changed"),
        IncomingDeletion("14", stranger, first),
        IncomingReaction("15", stranger, first, "👍"),
        IncomingReaction("16", Writer("@mia:harbour", odd, bot=True), first, "👍"),
    ]
    for event in told:
        harbour.add(ROOM, event)
    await harbour.write(ROOM, "Eve", "And on.")
    await pier.run()
    assert (await pier.lines())[-1].endswith(": And on.")


def _odd_threads(odd: str) -> list[Thread]:
    eve = "@eve:harbour"
    return [Thread(odd, (), (eve,)), Thread("Hello", (odd,), (eve,)), Thread("Hello", (), (eve, odd))]


@pytest.mark.parametrize("sent_at", [2**53 * 1_000, -(2**53) * 1_000, 2**63, -1])
async def test_a_message_that_says_an_impossible_time_is_read_as_one_of_now(
    bay: World, harbour: Harbour, sent_at: int
) -> None:
    """Whoever writes may say any: homeservers pass on what others tell."""
    pier = await build(bay, harbour, await bay.agent("Ada", reply("At noon."), "Told Eve."))
    await harbour.write(ROOM, "Eve", "@ada when?", sent_at=sent_at)
    await pier.run()
    assert await pier.lines() == ["Eve: @ada when?", "Ada: At noon."]
    (_, asked, _) = await bay.denizen.spaces.messages(pier.space)
    assert "sent_at" not in cast("dict[str, object]", asked.metadata["bridge"])


async def test_a_moderator_elsewhere_removes_the_reaction_of_somebody_else(bay: World, harbour: Harbour) -> None:
    """Only that one, also if the moderator reacted in the same way."""
    pier = await build(bay, harbour)
    ahoy = await harbour.write(ROOM, "Eve", "Ahoy!")
    hers = await harbour.react(ROOM, "Eve", ahoy, "👍")
    await harbour.react(ROOM, "Mia", ahoy, "👍")
    await harbour.delete(ROOM, "Mia", hers)
    await pier.run()
    message = next(each for each in await bay.denizen.spaces.messages(pier.space) if each.text == "Ahoy!")
    mia = await bay.denizen.people.find("mia-harbour")
    assert message.reactions == {"👍": [mia.id]}


async def test_said_to_the_bridge_is_said_to_the_agent(bay: World, harbour: Harbour) -> None:
    """Where the space has one agent, whoever addresses the bridge waits for its answer: it is given, or a reason."""
    ada = await bay.agent("Ada")
    pier = await build(bay, harbour, ada)
    await bay.denizen.agents.suspend(ada)
    await harbour.write(ROOM, "Eve", "Are you there?", addressed=True)
    await pier.run()
    (status,) = await bay.denizen.spaces.statuses(pier.space)
    assert "Ada" in status.text


def _count(tx: Tx) -> int:
    return len(tx.all(_roles))


async def test_a_guest_is_met_once(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    for _ in range(3):
        await harbour.write(ROOM, "Eve", "Ahoy!")
    await pier.run()
    assert await bay.denizen.db.read(_count) == 3  # Noor, the bridge, Eve


async def test_a_file_that_cannot_be_stored_does_not_take_the_message_with_it(bay: World, harbour: Harbour) -> None:
    """The words are there, and so is a line that says which file is missing and why."""
    pier = await build(bay, harbour)
    files = (IncomingFile("empty.txt", "text/plain", b""), IncomingFile("map.txt", "text/plain", b"north"))
    await harbour.write(ROOM, "Eve", "Two files", files=files)
    await pier.run()
    message = (await bay.denizen.spaces.messages(pier.space))[-1]
    assert message.text == "Two files\n\n[A file is missing: empty.txt is empty.]"
    assert [each.name for each in message.files] == ["map.txt"]


async def test_a_service_that_can_be_read_again_is_connected(bay: World, harbour: Harbour) -> None:
    """Also if nothing was written there meanwhile."""
    pier = await build(bay, harbour)
    harbour.unreachable = True
    await pier.run()
    assert (await _state(bay, pier)) == "failing"
    harbour.unreachable = False
    await pier.run()
    assert (await _state(bay, pier)) == "connected"


async def test_a_parked_bridge_that_can_be_read_again_says_so(bay: World, harbour: Harbour) -> None:
    """After a restart, although nothing was written there and nothing waits to be sent."""
    pier = await build(bay, harbour)
    harbour.forbid()
    await pier.run()
    assert (await _state(bay, pier)) == "parked"
    harbour.permit()
    await bay.restart()
    await pier.run()
    assert (await _state(bay, pier)) == "connected"
    assert [each.partition(":")[0] for each in await pier.notices()] == [
        "Harbour is disconnected",
        "Harbour works again. What was waiting is being sent.",
    ]


async def _state(bay: World, pier: Pier) -> str:
    """As a process that carries its messages would see it."""
    bridge = (await bay.denizen.bridges.get(pier.bridge)).bridge
    return state_of(replace(bridge, holder="here", until=bay.clock.now()), bay.clock.now())


async def test_a_slow_room_holds_up_neither_other_rooms_nor_reading(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    mole = await bay.space("Mole", pier.noor)
    for room in ("mole", "quay"):
        await bay.denizen.bridges.connect(pier.bridge, mole, room)
    await pier.run()
    harbour.slow.add(ROOM)
    await pier.say("Is anybody there?")
    async with bay.denizen.living():
        await harbour.held.wait()
        await bay.say(pier.noor, "Ahoy!", mole)
        await harbour.has("mole: Noor: Ahoy!")
        await harbour.write("mole", "Eve", "Ahoy yourself!")
        await harbour.has("quay: Eve: Ahoy yourself!")
        harbour.released.set()
        await harbour.has(f"{ROOM}: Noor: Is anybody there?")


async def test_the_floor_holds_for_what_is_written_elsewhere(bay: World, harbour: Harbour) -> None:
    """Nobody is addressed, and one agent answers."""
    ada = await bay.agent("Ada", reply("At noon."), "Told Eve.")
    ben = await bay.agent("Ben", reply("At noon, I think."), "Told Eve.")
    pier = await build(bay, harbour, ada, ben)
    await bay.denizen.spaces.set_floor(pier.space, "one")
    await harbour.write(ROOM, "Eve", "When does the boat leave?")
    await pier.run()
    assert len(harbour.said) == 1


async def test_budgets_hold_for_what_is_written_elsewhere(bay: World, harbour: Harbour) -> None:
    """An agent whose budget is used up answers nobody, and the space says why."""
    ada = await bay.agent("Ada", reply("At noon."), "Told Eve.", budget={"tokens_per_day": 20})
    pier = await build(bay, harbour, ada)
    await harbour.write(ROOM, "Eve", "When does the boat leave?")
    await pier.run()
    await harbour.write(ROOM, "Eve", "@ada are you sure?")
    await pier.run()
    assert await bay.denizen.agents.status(ada) == "suspended"
    assert "@ada are you sure?" in (await pier.lines())[-1]
    assert len(harbour.said) <= 1
    assert [each.agent_id for each in await bay.denizen.spaces.statuses(pier.space)] == [ada.id]
