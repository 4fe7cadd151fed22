"""MCP servers that ask a person in the middle of a call: the question in the space, its answer, and what ends it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import mcp
import pytest

from denizen import call, reply
from denizen.access import roles
from denizen.agents.registry import Agent
from denizen.agents.residents import Residents
from denizen.bus.streams import agent_topic
from denizen.errors import AlreadySettled, InvalidInput, NotAllowed
from denizen.spaces.directory import Entity, Space
from denizen.tools.background_calls import LATE_SECONDS
from denizen.tools.calls import Call
from denizen.tools.elicitation_forms import LONGEST_MESSAGE, ServerQuestion, is_complete, read_answer
from denizen.tools.elicitation_requests import ElicitationRequests
from denizen.tools.schemas import UnusableSchema
from denizen.tools.settings import McpServer
from tests import warm
from tests.servers import free_port
from tests.tools.test_mcp import serving
from tests.world import World, open_world

ASKING = str(Path(__file__).with_name("mcp_asking.py"))
BOOKED = {"action": "accept", "content": {"guests": 4}}
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"guests": {"type": "integer"}, "where": {"type": "string", "default": "garden"}},
    "required": ["guests"],
}


def restaurant(**settings: Any) -> McpServer:
    command, *args = warm.program(ASKING)
    return McpServer(command=command, args=tuple(args), results="trusted", **settings)


class Table:
    """A person who has asked an agent to book a table, and the question of the restaurant's server."""

    def __init__(self, world: World, noor: Entity, ada: Agent, room: Space, residents: Residents) -> None:
        self.world, self.noor, self.ada, self.room, self.residents = world, noor, ada, room, residents

    async def question(self, *, of: Entity | None = None) -> Call:
        """The question, as soon as it is there."""
        calls = self.world.denizen.calls
        async with self.world.denizen.bus.subscribe(agent_topic(self.ada.id)) as hints:
            while not (found := [each for each in await calls.waiting(of or self.noor) if each.mode == "elicitation"]):
                await anext(hints)
        return found[0]

    async def cycles(self, count: int) -> None:
        """Wait until the agent has ended so many cycles."""
        async with self.world.denizen.bus.subscribe(agent_topic(self.ada.id)) as hints:
            while len(await self.world.cycles(self.ada)) < count:
                await anext(hints)

    async def seen(self, id: str) -> Call:
        return next(each for each in await self.world.denizen.calls.list(self.room) if each.id == id)

    async def answer(self, result: Any, *, by: Entity | None = None) -> Call:
        question = await self.question()
        return await self.world.denizen.calls.answer(question, result, by=by or self.noor)

    async def results(self) -> list[str]:
        return [each for each in await self.world.history(self.ada) if each.startswith("results: ")]


Asked = tuple[Table, asyncio.Task[None]]


@asynccontextmanager
async def asked(
    url: str, server: McpServer, *turns: Any, **options: Any
) -> AsyncIterator[tuple[Table, asyncio.Task[None]]]:
    """An agent that has been asked to use the server, and is at it."""
    turns = turns or (call("book"), reply("Booked."), "Booked a table.")
    async with open_world(url) as world, world.denizen.living() as residents:
        noor = await world.person("Noor")
        ada = await world.agent("Ada", *turns, mcp={"restaurant": server})
        room = await world.space("Room", noor, ada)
        await world.say(noor, "A table, please.", room)
        running = asyncio.create_task(residents.run_until_idle())
        yield Table(world, noor, ada, room, residents), running
        await running


@pytest.fixture
async def table(ready_url: str) -> AsyncGenerator[Asked]:
    async with asked(ready_url, restaurant()) as found:
        yield found


async def test_a_question_of_a_server_is_shown_in_the_space_and_its_answer_reaches_the_server(table: Asked):
    there, running = table
    question = await there.question()
    assert (question.tool, question.space_id, question.shown) == ("book", there.room.id, True)
    fields = question.parsed_arguments
    assert isinstance(fields, dict)
    assert (fields["server"], fields["message"]) == ("restaurant", "For how many?")
    answered = await there.answer(BOOKED)
    await running
    assert (answered.state, answered.settled_by) == ("answered", there.noor.id)
    assert json.loads(answered.result or "") == {"action": "accept", "content": {"where": "garden", "guests": 4}}
    assert (await there.results())[0] == "results: book → booked for 4 in the garden"
    assert await there.world.inbox(there.ada) == [], "the agent is told by the result of its call, and by nothing else"


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_can_decline_and_cancel(ready_sqlite_url: str, action: str):
    async with asked(ready_sqlite_url, restaurant()) as (there, running):
        await there.answer({"action": action})
        await running
        assert (await there.results())[0] == f"results: book → not booked: {action}"


async def test_values_that_do_not_fit_the_form_are_refused_and_the_question_stays_open(ready_sqlite_url: str):
    async with asked(ready_sqlite_url, restaurant()) as (there, running):
        with pytest.raises(InvalidInput, match="do not fit the form: guests"):
            await there.answer({"action": "accept", "content": {"guests": "four"}})
        with pytest.raises(InvalidInput, match="do not fit the form"):
            await there.answer({"confirmed": True})
        with pytest.raises(InvalidInput, match="does not answer the question"):
            await there.answer("four")
        await there.answer(BOOKED)
        await running
        assert (await there.results())[0] == "results: book → booked for 4 in the garden"


async def test_only_a_trusted_person_answers_and_words_do_so_only_with_the_code(ready_sqlite_url: str):
    """What somebody writes to the agent must not go to a server elsewhere."""
    turns = call("cancel"), reply("Cancelled."), "Cancelled the tables.", reply("Ah."), "Heard it."
    async with asked(ready_sqlite_url, restaurant(), *turns) as (there, running):
        world = there.world
        guest = await world.person("Gil")
        await world.denizen.db.write(roles.set_role, guest.id, "guest")
        await world.denizen.spaces.join(there.room, guest)
        question = await there.question()
        with pytest.raises(NotAllowed):
            await world.denizen.calls.answer(question, {"confirmed": True}, by=guest)
        await world.say(there.noor, "Yes, go ahead!", there.room)
        await world.say(guest, f"yes {question.code}", there.room)
        assert (await there.seen(question.id)).state == "waiting"
        await world.say(there.noor, f"yes {question.code}", there.room)
        await running
        assert (await there.results())[0] == "results: cancel → cancelling: accept"


async def test_a_form_with_values_to_fill_in_is_not_accepted_by_a_code(ready_sqlite_url: str):
    turns = call("book"), reply("Not booked."), "No table.", reply("Ah."), "Heard it."
    async with asked(ready_sqlite_url, restaurant(), *turns) as (there, running):
        question = await there.question()
        await there.world.say(there.noor, f"yes {question.code}", there.room)
        assert (await there.seen(question.id)).state == "waiting"
        await there.world.say(there.noor, f"no {question.code}", there.room)
        await running
        assert (await there.results())[0] == "results: book → not booked: decline"


async def test_an_address_to_open_is_shown_and_others_than_http_are_refused(
    ready_sqlite_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(mcp, "Client", partial(mcp.Client, mode="legacy"))
    turns = (
        call("pay", address="javascript:alert(1)"),
        call("pay", address="https://pay.example/1"),
        reply("Paid."),
        "Paid.",
    )
    async with asked(ready_sqlite_url, restaurant(), *turns) as (there, running):
        question = await there.question()
        fields = question.parsed_arguments
        assert fields == {"server": "restaurant", "message": "Please pay.", "url": "https://pay.example/1"}
        await there.answer({"action": "accept"})
        await running
        refused, paid, *_ = await there.results()
        assert "The address to open must begin with https://" in refused
        assert paid == "results: pay → paying: accept"


@pytest.mark.parametrize("how", ["program", "address"])
async def test_a_server_of_an_earlier_version_asks_in_the_middle_of_the_call(
    ready_sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
):
    """It holds the call open, where the newer ones are called again with the answer."""
    monkeypatch.setattr(mcp, "Client", partial(mcp.Client, mode="legacy"))
    async with AsyncExitStack() as stack:
        server = restaurant()
        if how == "address":
            url = await stack.enter_async_context(serving(tmp_path, free_port(), ASKING))
            server = McpServer(url=url, allow_private=("127.0.0.1",), results="trusted")
        there, running = await stack.enter_async_context(asked(ready_sqlite_url, server))
        await there.answer(BOOKED)
        await running
        assert (await there.results())[0] == "results: book → booked for 4 in the garden"


async def test_a_cycle_that_no_longer_waits_is_told_that_a_person_was_asked(ready_sqlite_url: str):
    turns = call("book"), reply("One moment."), "Waiting for the table.", reply("Booked."), "Booked it."
    # Long enough for the server to ask, on a busy machine too.
    async with asked(ready_sqlite_url, restaurant(seconds=5), *turns) as (there, running):
        await there.question()
        await running
        assert (await there.results())[0] == (
            "results: book → The server that carries this out has asked the people here a question, and waits for the "
            "answer. The result will reach you as an event."
        )
        await there.answer(BOOKED)
        await there.cycles(2)
        assert "booked for 4 in the garden" in "\n".join(await there.world.history(there.ada))


async def test_a_question_expires_with_the_time_that_a_call_has(ready_sqlite_url: str):
    turns = call("book"), reply("One moment."), "Waiting for the table.", reply("No table."), "None."
    async with asked(ready_sqlite_url, restaurant(seconds=1), *turns) as (there, running):
        question = await there.question()
        await running
        assert question.expires_at == question.created_at + LATE_SECONDS * 1_000_000
        there.world.clock.advance(LATE_SECONDS)
        with pytest.raises(AlreadySettled):
            await there.world.denizen.calls.answer(question, BOOKED, by=there.noor)
        await there.residents.sweep()
        assert (await there.seen(question.id)).state == "expired"


async def test_a_call_that_ends_withdraws_its_question(ready_sqlite_url: str):
    turns = call("book"), reply("One moment."), "Waiting for the table."
    async with asked(ready_sqlite_url, restaurant(seconds=1), *turns) as (there, running):
        question = await there.question()
        await running
        await there.world.denizen._background_calls.stop()
        assert (await there.seen(question.id)).state == "cancelled"


async def test_a_question_whose_process_died_is_void_and_the_outcome_is_unknown(
    ready_url: str, monkeypatch: pytest.MonkeyPatch
):
    turns = call("book"), reply("One moment."), "Waiting for the table.", reply("I do not know."), "Unknown."
    async with asked(ready_url, restaurant(seconds=1), *turns) as (there, running):
        question = await there.question()
        await running
        monkeypatch.setattr(ElicitationRequests, "withdraw", _nothing)  # It dies: it has no time for that.
    again = World(ready_url)
    again._models.update(there.world._models)
    again.clock.advance(3 * 60)
    await again.open()
    try:
        await again.run()
        [left] = [each for each in await again.denizen.calls.list(there.room) if each.id == question.id]
        assert left.state == "cancelled"
        assert "Whether it did its work is unknown" in "\n".join(await again.history(there.ada))
    finally:
        await again.close()


async def _nothing(*_: object) -> None: ...


def test_what_a_server_asks_is_cut_and_its_form_checked():
    long = ServerQuestion("shop", "x" * 10_000, form=FORM)
    assert len(json.loads(long.to_arguments())["message"]) == LONGEST_MESSAGE
    with pytest.raises(UnusableSchema):
        ServerQuestion("shop", "Which?", form={"type": "object", "$ref": "https://elsewhere.example/"}).to_arguments()


def test_an_answer_has_the_values_that_the_form_has_by_default():
    asked = ServerQuestion("shop", "Which?", form=FORM).to_arguments()
    assert read_answer(asked, '{"action": "accept", "content": {"guests": 2}}').content == {
        "where": "garden",
        "guests": 2,
    }
    assert read_answer(asked, '{"action": "decline", "content": {"guests": 2}}').content is None
    assert not is_complete(asked)
    assert is_complete(ServerQuestion("shop", "Sure?").to_arguments())
    assert is_complete(ServerQuestion("shop", "Open this.", url="https://shop.example/").to_arguments())
