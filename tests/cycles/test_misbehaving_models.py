"""Cycles of agents whose model is behind a server on loopback that does what real servers do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from sqlalchemy import select

from denizen.bus.port import Frame
from denizen.bus.streams import agent_topic
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import ledger
from tests.models.loopback import Failure, Loopback, loopback
from tests.server.conftest import House, served
from tests.world import JumpingClock, World, open_world

SENDS: dict[str, Any] = {"text": "", "tool": "send_message", "arguments": json.dumps({"text": "Tea is ready."})}
ENDS: dict[str, Any] = {"text": "Told Noor about the tea.", "tool": None}


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Loopback]:
    async with loopback() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-loopback")
        yield server


@pytest.fixture
async def jumping(ready_sqlite_url: str) -> AsyncIterator[World]:
    """A world whose clock does not wait between attempts."""
    async with open_world(ready_sqlite_url, clock=JumpingClock()) as world:
        yield world


async def kitchen(world: World, **options: Any) -> tuple[Entity, Space]:
    noor = await world.person("Noor")
    ada = await world.denizen.agents.create("Ada", model="openai-chat:local-model", **options)
    return noor, await world.space("Kitchen", noor, ada)


def _used(tx: Tx) -> list[tuple[str | None, int, int]]:
    read = select(ledger.c.detail, ledger.c.input_tokens, ledger.c.output_tokens).order_by(ledger.c.number)
    return [(row[0], row[1], row[2]) for row in tx.all(statement(read))]


def last_message(server: Loopback, request: int) -> str:
    return str(server.received[request].body["messages"][-1]["content"])


async def test_a_stream_that_broke_off_is_asked_again_and_both_attempts_are_paid(
    jumping: World, server: Loopback
) -> None:
    world = jumping
    noor, space = await kitchen(world)
    server.turns = [{**SENDS, "ends": False}, SENDS, ENDS]
    await world.say(noor, "Tea?", space)
    await world.run()
    assert await world.denizen.spaces.transcript(space) == ["Noor: Tea?", "Ada: Tea is ready."]
    assert len(server.received) == 3
    (broken, read, written), *whole = await world.denizen.db.read(_used)
    assert (broken, whole) == ("broken off", [(None, 20, 7), (None, 20, 7)])
    assert read > 0
    assert written > 0


async def test_an_answer_that_was_cut_off_is_told_so_and_written_again(jumping: World, server: Loopback) -> None:
    world = jumping
    noor, space = await kitchen(world)
    server.turns = [{"text": "Well, tea is a plant that", "tool": None, "finish": "length"}, SENDS, ENDS]
    await world.say(noor, "Tea?", space)
    await world.run()
    assert await world.denizen.spaces.transcript(space) == ["Noor: Tea?", "Ada: Tea is ready."]
    assert "reached its limit of 8,192 tokens" in last_message(server, 1)


async def test_a_call_that_was_cut_off_is_told_so(jumping: World, server: Loopback) -> None:
    world = jumping
    noor, space = await kitchen(world)
    half = {"text": "", "tool": "send_message", "arguments": '{"text": "Tea is', "finish": "length"}
    server.turns = [half, SENDS, ENDS]
    await world.say(noor, "Tea?", space)
    await world.run()
    assert await world.denizen.spaces.transcript(space) == ["Noor: Tea?", "Ada: Tea is ready."]
    assert "reached its limit of tokens in the middle of this call" in last_message(server, 1)


async def test_a_model_that_is_always_cut_off_is_not_asked_for_ever(jumping: World, server: Loopback) -> None:
    world = jumping
    noor, space = await kitchen(world)
    server.text, server.tool, server.finish = "Tea is a plant that", None, "length"
    await world.say(noor, "Tea?", space)
    await world.run()
    assert len(server.received) <= 5


async def test_a_refusal_of_a_filter_is_told_to_the_person(jumping: World, server: Loopback) -> None:
    world = jumping
    noor, space = await kitchen(world)
    server.text, server.tool, server.finish = "Well,", None, "content_filter"
    await world.say(noor, "Tea?", space)
    await world.run()
    [status] = await world.denizen.spaces.statuses(space)
    assert "refused" in status.text


async def test_a_server_that_loads_its_model_is_asked_until_it_has(jumping: World, server: Loopback) -> None:
    world, asked = jumping, list[int]()
    noor, space = await kitchen(world)

    def judge(_body: dict[str, Any]) -> Failure | None:
        asked.append(1)
        loading = {"error": {"message": "Loading model", "code": 503, "type": "unavailable_error"}}
        return Failure(503, body=loading) if len(asked) < 12 else None

    server.judge = judge
    server.turns = [{}] * 11 + [SENDS, ENDS]
    await world.say(noor, "Tea?", space)
    await world.run()
    assert await world.denizen.spaces.transcript(space) == ["Noor: Tea?", "Ada: Tea is ready."]


def small(context_tokens: int, body_of_error: Callable[[int], dict[str, Any]]) -> Callable[..., Failure | None]:
    """A server that refuses what does not fit its context: the request and the room that it asks for."""

    def judge(body: dict[str, Any]) -> Failure | None:
        size = len(json.dumps(body["messages"])) + len(json.dumps(body.get("tools", [])))
        needed = size // 4 + body["max_tokens"]
        return Failure(400, body=body_of_error(needed)) if needed > context_tokens else None

    return judge


def of_vllm(needed: int) -> dict[str, Any]:
    said = f"This model's maximum context length is 4096 tokens. However, you requested {needed} tokens."
    return {"object": "error", "message": said, "type": "BadRequestError", "code": 400}


def of_llama_cpp(needed: int) -> dict[str, Any]:
    error = {"code": 400, "message": "the request exceeds the available context size", "n_prompt_tokens": needed}
    return {"error": {**error, "type": "exceed_context_size_error", "n_ctx": 4096}}


def without_a_number(_needed: int) -> dict[str, Any]:
    return {"error": {"message": "The prompt is too long for this model.", "type": "invalid_request_error"}}


@pytest.mark.parametrize("error", [of_vllm, of_llama_cpp, without_a_number])
async def test_a_server_of_4096_tokens_answers_every_turn(
    jumping: World, server: Loopback, error: Callable[[int], dict[str, Any]]
) -> None:
    """It answered seven turns and then never again."""
    assert await refusals_in_twenty_turns(jumping, server, small(4_096, error)) <= 6, "what was learned is remembered"


@pytest.mark.parametrize("error", [of_vllm, of_llama_cpp, without_a_number])
async def test_what_a_server_says_of_its_context_counts_even_if_the_owner_has_said_more(
    jumping: World, server: Loopback, error: Callable[[int], dict[str, Any]]
) -> None:
    """The owner's larger number used to come back with each cycle, and most turns were refused once more."""
    window = {"context_tokens": 100_000}
    assert await refusals_in_twenty_turns(jumping, server, small(4_096, error), window=window) <= 6


async def test_what_a_server_says_of_its_context_counts_even_if_a_setting_says_more(
    ready_sqlite_url: str, server: Loopback
) -> None:
    contexts = {"openai-chat:local-model": 100_000}
    async with open_world(ready_sqlite_url, clock=JumpingClock(), contexts=contexts) as world:
        assert await refusals_in_twenty_turns(world, server, small(4_096, of_vllm)) <= 6


async def contexts_too_large(house: House, who: Entity) -> list[str]:
    alerts = (await house.call("GET", "/api/health", who)).json()["alerts"]
    return [each["text"] for each in alerts if each["code"] == "context_too_large"]


async def test_the_owner_is_told_once_that_their_context_is_too_large(jumping: World, server: Loopback) -> None:
    world, alerts = jumping, list[str]()
    noor, space = await kitchen(world, window={"context_tokens": 100_000})
    [ada] = [each for each in await world.denizen.agents.list() if each.entity.name == "Ada"]
    refused = list[None]()

    def judge(_body: dict[str, Any]) -> Failure | None:
        if refused:
            return None
        refused.append(None)
        return Failure(400, body=of_vllm(5_000))

    server.judge = judge
    server.turns = [SENDS, SENDS, ENDS] + [SENDS, ENDS] * 2
    async with world.denizen.bus.subscribe(agent_topic(ada.id), limit=10_000) as frames:
        for text in ("Tea?", "More tea?", "Even more?"):
            await world.say(noor, text, space)
            await world.run()
        world.denizen.bus.publish(agent_topic(ada.id), {"type": "that was all"})
        async for frame in frames:
            assert isinstance(frame, Frame)
            if frame.payload["type"] == "that was all":
                break
            if frame.payload["type"] == "agent.alert":
                alerts.append(str(frame.payload["text"]))
    [told] = alerts
    assert told.startswith("window.context_tokens is 100,000, but the server of openai-chat:local-model accepts 4,096")
    async with served(world) as house:
        assert await contexts_too_large(house, noor) == [f"Ada: {told}"]


async def test_health_tells_of_a_context_that_is_set_too_large_for_all_agents(jumping: World, server: Loopback) -> None:
    """The size under [contexts] is wrong for as long as the server takes less, and only the log said so."""
    world, refused = jumping, list[None]()
    world.denizen.contexts["openai-chat:local-model"] = 50_000
    noor, space = await kitchen(world)

    def judge(_body: dict[str, Any]) -> Failure | None:
        if refused:
            return None
        refused.append(None)
        return Failure(400, body=of_vllm(5_000))

    server.judge = judge
    server.turns = [SENDS, SENDS, ENDS]
    async with served(world) as house:
        assert await contexts_too_large(house, noor) == []
        await world.say(noor, "Tea?", space)
        await world.run()
        [told] = await contexts_too_large(house, noor)
    assert told.startswith(
        'Ada: "openai-chat:local-model" under [contexts] is 50,000, but the server of openai-chat:local-model accepts'
    )


async def refusals_in_twenty_turns(
    world: World, server: Loopback, judge: Callable[[dict[str, Any]], Failure | None], **options: Any
) -> int:
    """How many requests the server refused while Ada answered twenty long messages, all of them."""
    noor, space = await kitchen(world, **options)

    def next_turn(body: dict[str, Any]) -> Failure | None:
        if (failure := judge(body)) is None:
            done = body["messages"][-1]["role"] == "tool"
            server.text, server.tool, server.arguments = (ENDS if done else SENDS).get("text", ""), None, ""
            if not done:
                server.tool, server.arguments = "send_message", SENDS["arguments"]
        return failure

    server.judge = next_turn
    for number in range(20):
        await world.say(noor, f"Question {number}: {'what about the tea ' * 8}?", space)
        await world.run()
    said = await world.denizen.spaces.transcript(space)
    assert sum(line == "Ada: Tea is ready." for line in said) == 20
    return sum(judge(each.body) is not None for each in server.received)
