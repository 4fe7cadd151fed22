"""OpenAI's Responses API, by its own package."""

from __future__ import annotations

import base64
import json
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from denizen import call, reply, scripted
from denizen.models.scripted import forever
from tests.server.conftest import House
from tests.server.test_openai import client
from tests.server.test_openai_options import Verdict
from tests.server.test_resending import counting
from tests.server.test_side_tasks import TITLE, task_or_life

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a town.",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    "strict": False,
}
TEXT = base64.b64encode(b"green").decode()


async def test_a_response_is_everything_the_agent_says_and_the_next_one_continues_it(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", model=forever(counting))
    hall = await world.space("Hall", noor, ada)
    async with client(house, noor) as noors, world.denizen.living():
        first = await noors.responses.create(model="ada", input="Hi", metadata={"space": hall.id})
        second = await noors.responses.create(model="ada", input="Go on", previous_response_id=first.id)
        again = await noors.responses.create(model="ada", input="Go on", previous_response_id=first.id)
        same_words = await noors.responses.create(model="ada", input="Go on", previous_response_id=again.id)
        with pytest.raises(openai.NotFoundError):
            await noors.responses.create(model="ada", input="Hi", previous_response_id="resp_nothing")
        sam = await world.person("Sam")
        async with client(house, sam) as sams:
            with pytest.raises(openai.NotFoundError):
                await sams.responses.create(model="ada", input="Hi", previous_response_id=first.id)
    answers = [each.output_text for each in (first, second, again, same_words)]
    assert answers == [f"Answer {number}." for number in range(1, 5)]
    assert (first.status, first.model, second.previous_response_id) == ("completed", "ada", first.id)
    assert first.usage is not None
    assert first.usage.total_tokens > 0
    # The second is regenerated, because its answer was not known; the last one is new.
    said = [each.text for each in await world.denizen.spaces.messages(hall)]
    assert said == ["Hi", "Answer 1.", "Go on", "Answer 2.", "Answer 3.", "Go on", "Answer 4."]


async def test_events_are_those_that_the_package_reads(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    await world.agent("Ada", reply("One two three."), reply("Four."), "Counted.")
    async with (
        client(small_house, noor) as noors,
        world.denizen.living(),
        noors.responses.stream(model="ada", input="Count") as stream,
    ):
        kinds = [each.type async for each in stream]
        whole = await stream.get_final_response()
    assert whole.output_text == "One two three.\n\nFour."
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.output_text.delta") > 1


async def test_functions_are_called_and_their_outputs_continue_the_cycle(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    turns = [reply("Let me look."), call("weather", town="Oslo")], reply("It rains."), "Told Noor."
    await world.agent("Ada", *turns, call("weather", town="Bergen"), reply("There too."), "Told.")
    async with client(small_house, noor) as noors, world.denizen.living():
        first = await noors.responses.create(model="ada", input="Weather?", tools=[WEATHER])
        output: Any = first.output
        message, called = output
        assert (message.type, called.type) == ("message", "function_call")
        outputs: Any = [{"type": "function_call_output", "call_id": called.call_id, "output": "Rain"}]
        second = await noors.responses.create(
            model="ada", input=outputs, previous_response_id=first.id, tools=[WEATHER]
        )
        async with noors.responses.stream(model="ada", input="And Bergen?", tools=[WEATHER]) as stream:
            streamed = await stream.get_final_response()
    assert (first.output_text, json.loads(called.arguments)) == ("Let me look.", {"town": "Oslo"})
    assert second.output_text == "It rains."
    parts: Any = streamed.output
    [other] = parts
    assert (other.type, json.loads(other.arguments)) == ("function_call", {"town": "Bergen"})


async def test_files_formats_and_side_tasks(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    model = scripted(reply("Green."), "Read it.", reply('{"passed": true, "tests": 3}'), "Told.")
    await world.agent("Ada", model=model)
    await world.agent("Bob", model=forever(task_or_life))
    file = {"type": "input_file", "file_data": f"data:text/plain;base64,{TEXT}", "filename": "log.txt"}
    asked: Any = [{"role": "user", "content": [{"type": "input_text", "text": "Read this"}, file]}]
    async with client(small_house, noor) as noors, world.denizen.living():
        read = await noors.responses.create(model="ada", input=asked)
        parsed = await noors.responses.parse(model="ada", input="Did it pass?", text_format=Verdict)
        title = await noors.responses.create(model="bob", input=TITLE)
        for wrong in ({"tools": [{"type": "web_search"}]}, {"background": True}):
            with pytest.raises(openai.BadRequestError):
                await noors.responses.create(model="ada", input="Hi", **wrong)  # type: ignore[arg-type]
        far: Any = [{"role": "user", "content": [{"type": "input_file", "file_url": "https://example.org/x"}]}]
        with pytest.raises(openai.BadRequestError, match="does not fetch"):
            await noors.responses.create(model="ada", input=far)
    assert read.output_text == "Green."
    assert "log.txt" in str(model.requests[0])
    assert parsed.output_parsed == Verdict(passed=True, tests=3)
    assert title.output_text == '{"title": "The build"}'


async def test_an_agent_that_cannot_answer_is_an_error(small_house: House) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    await world.denizen.agents.suspend(ada)
    secret = await small_house.token(noor)
    async with AsyncOpenAI(base_url=f"{small_house.address}/v1", api_key=secret, max_retries=0) as noors:
        for stream in (False, True):
            with pytest.raises(openai.InternalServerError) as failure:
                await noors.responses.create(model="ada", input="Hello?", stream=stream)
            assert (failure.value.status_code, failure.value.code) == (503, "agent_unavailable")
