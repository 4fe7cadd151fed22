"""A program's own tools and the form of an answer, asked for by clients of OpenAI's API."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from denizen import call, reply, scripted
from tests.server.conftest import House
from tests.server.test_openai import client, said

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a town.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}


async def test_a_programs_tool_is_called_and_its_result_continues_the_cycle(house: House) -> None:
    """The whole way of a tool in OpenAI's API: the call is the answer, and the result comes with the next request."""
    world = house.world
    noor = await world.person("Noor")
    model = scripted(
        [reply("Let me look."), call("weather", town="Oslo")],
        reply("It rains in Oslo."),
        "Told Noor.",
        reply("Yes."),
        "",
    )
    ada = await world.agent("Ada", model=model)
    asked: list[Any] = said("How is the weather in Oslo?")
    async with client(house, noor) as noors, world.denizen.living():
        first = await noors.chat.completions.create(model="ada", messages=asked, tools=[WEATHER])
        choice = first.choices[0]
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Let me look.")
        [called] = choice.message.tool_calls or []
        assert called.type == "function"
        assert (called.function.name, json.loads(called.function.arguments)) == ("weather", {"town": "Oslo"})
        result = {"role": "tool", "tool_call_id": called.id, "content": "Rain, 7 degrees"}
        messages: Any = [*asked, choice.message.model_dump(), result]
        second = await noors.chat.completions.create(model="ada", messages=messages, tools=[WEATHER])
        again = await noors.chat.completions.create(model="ada", messages=messages, tools=[WEATHER])
        elsewhere: Any = [*asked, {**result, "tool_call_id": f"{called.id.rpartition('.')[0]}.999"}]
        with pytest.raises(openai.NotFoundError):
            await noors.chat.completions.create(model="ada", messages=elsewhere)
        sam = await world.person("Sam")
        async with client(house, sam) as sams:
            with pytest.raises(openai.NotFoundError):
                await sams.chat.completions.create(model="ada", messages=messages)
        # Without the tools, the next message is a cycle with the agent's own tools only.
        await noors.chat.completions.create(model="ada", messages=said("Sure?"))
    assert (second.choices[0].message.content, second.choices[0].finish_reason) == ("It rains in Oslo.", "stop")
    assert again.choices[0].message.content == "It rains in Oslo."
    assert "Rain, 7 degrees" in str(model.requests[1])
    first_cycle, _ = await world.cycles(ada)
    assert first_cycle.outcome == "acted"


async def test_a_call_is_streamed_with_its_arguments(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    await world.agent("Ada", call("weather", town="Oslo"), reply("Rain."), "Told Noor.")
    async with (
        client(small_house, noor) as noors,
        world.denizen.living(),
        noors.chat.completions.stream(model="ada", messages=said("Weather?"), tools=[WEATHER]) as stream,
    ):
        answer = await stream.get_final_completion()
    choice = answer.choices[0]
    [called] = choice.message.tool_calls or []
    assert (choice.finish_reason, json.loads(called.function.arguments)) == ("tool_calls", {"town": "Oslo"})


async def test_a_tool_that_has_to_be_called_is_the_only_one_of_the_first_step(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    model = scripted(reply("I would rather talk."), call("weather", town="Oslo"), "Done.")
    await world.agent("Ada", model=model)
    async with client(small_house, noor) as noors, world.denizen.living():
        answer = await noors.chat.completions.create(
            model="ada", messages=said("Weather?"), tools=[WEATHER], tool_choice="required"
        )
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.choices[0].message.content is None
    assert "You may call only" in str(model.requests[0])


async def test_a_result_that_comes_too_late_is_answered_all_the_same(small_house: House) -> None:
    """Somebody else speaks to the agent meanwhile: the cycle goes on without the result, which comes as an event."""
    world = small_house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    turns = (
        call("weather", town="Oslo"),
        "Waits for the weather.",
        reply("Hello, Sam."),
        "Greeted.",
        reply("It rains."),
        "",
    )
    ada = await world.agent("Ada", *turns)
    hall = await world.space("Hall", sam, ada)
    asked: list[Any] = said("Weather?")
    async with client(small_house, noor) as noors, world.denizen.living() as residents:
        first = await noors.chat.completions.create(model="ada", messages=asked, tools=[WEATHER])
        [called] = first.choices[0].message.tool_calls or []
        await small_house.say(sam, "Hello!", hall)
        await residents.run_until_idle()
        result: Any = {"role": "tool", "tool_call_id": called.id, "content": "Rain"}
        messages: Any = [*asked, first.choices[0].message.model_dump(), result]
        second = await noors.chat.completions.create(model="ada", messages=messages, tools=[WEATHER])
    assert second.choices[0].message.content == "It rains."


class Verdict(BaseModel):
    passed: bool
    tests: int


async def test_an_answer_has_the_schema_that_was_asked_for(small_house: House) -> None:
    """The agent is told the schema, and what does not fit is an error instead of an answer."""
    world = small_house.world
    noor = await world.person("Noor")
    fenced = '```json\n{"passed": true, "tests": 212}\n```'
    model = scripted(
        reply(fenced), "Told.", reply(fenced), "Told.", reply("It passed."), "Told.", reply("[1]"), "Told."
    )
    await world.agent("Ada", model=model)
    async with client(small_house, noor) as noors, world.denizen.living():
        answer = await noors.chat.completions.parse(model="ada", messages=said("One?"), response_format=Verdict)
        async with noors.chat.completions.stream(model="ada", messages=said("Two?"), response_format=Verdict) as stream:
            streamed = await stream.get_final_completion()
        with pytest.raises(openai.InternalServerError) as failure:
            await noors.chat.completions.parse(model="ada", messages=said("Three?"), response_format=Verdict)
        with pytest.raises(openai.InternalServerError, match="not an object"):
            await noors.chat.completions.create(
                model="ada", messages=said("Four?"), response_format={"type": "json_object"}
            )
    assert answer.choices[0].message.parsed == streamed.choices[0].message.parsed == Verdict(passed=True, tests=212)
    assert (failure.value.code, "It passed." in str(failure.value)) == ("answer_not_in_format", True)
    told = str(model.requests[0])
    assert "A program reads your answer" in told
    assert '"tests"' in told


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools.0: agents call only functions of yours, not 'web_search'."),
        ({"functions": [WEATHER["function"]]}, "functions: "),
        ({"function_call": "auto"}, "function_call: "),
        ({"logprobs": True, "top_logprobs": 2}, "logprobs: "),
        ({"modalities": ["text", "audio"]}, "modalities: "),
        ({"audio": {"voice": "alloy", "format": "wav"}}, "audio: "),
        ({"web_search_options": {}}, "web_search_options: "),
        ({"model": "task:ada", "tools": [WEATHER]}, "side task"),
        ({"tools": [{"type": "function", "function": {"name": "send_message"}}]}, "of its own"),
        ({"tools": [{"type": "function", "function": {"name": "two words"}}]}, "tools[0].name"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "string"}}}]}, "tools[0]"),
        ({"tools": [WEATHER, WEATHER]}, "the same name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice"),
        ({"response_format": {"type": "grammar"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "array"}}}}, "response_format"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "call_1"}]}, "tool_call_id"),
    ],
)
async def test_what_no_agent_can_do_is_refused(small_house: House, body: dict[str, Any], words: str) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    asked = {"model": "ada", "messages": [{"role": "user", "content": "Hi"}], **body}
    answer = await small_house.call("POST", "/v1/chat/completions", noor, json=asked)
    assert (answer.status_code, words in answer.text) == (400, True), answer.text
    assert await world.denizen.minds.inbox(ada) == []


async def test_fields_that_are_ignored_are_named_in_the_answers_headers(small_house: House) -> None:
    """An agent has its own settings and instructions. A program that sends others is told that nothing came of them."""
    world = small_house.world
    noor = await world.person("Noor")
    await world.agent("Ada", *[reply("Hello."), "Told Noor."] * 3)
    nothing: Any = {"stop": [], "logprobs": False, "seed": None, "modalities": ["text"], "parallel_tool_calls": True}
    async with client(small_house, noor) as noors, world.denizen.living():
        chat = await noors.chat.completions.with_raw_response.create(
            model="ada",
            messages=said("Hi"),
            temperature=0,
            max_tokens=5,
            user="mia",
            parallel_tool_calls=False,
            extra_body={"x\r\n": 1},
        )
        plain = await noors.chat.completions.with_raw_response.create(
            model="ada", messages=[{"role": "user", "content": "Hi"}], **nothing
        )
        response = await noors.responses.with_raw_response.create(
            model="ada", input="Good morning", instructions="Be brief.", max_output_tokens=5
        )
    assert chat.headers["denizen-notice"] == (
        "Ignored: max_tokens, parallel_tool_calls, temperature, system messages. "
        "Agents have their own settings and instructions. "
        "`user` names a private space of the token's owner, not a person: this token does not speak for others."
    )
    assert "denizen-notice" not in plain.headers
    assert response.headers["denizen-notice"].startswith("Ignored: max_output_tokens, system messages.")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"conversation": "conv_1"}, "conversation: "),
        ({"prompt": {"id": "pmpt_1"}}, "prompt: "),
        ({"top_logprobs": 2}, "top_logprobs: "),
    ],
)
async def test_what_no_agent_can_do_is_refused_in_responses(
    small_house: House, body: dict[str, Any], words: str
) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    answer = await small_house.call("POST", "/v1/responses", noor, json={"model": "ada", "input": "Hi", **body})
    assert (answer.status_code, words in answer.text) == (400, True), answer.text
    assert await world.denizen.minds.inbox(ada) == []


async def test_apis_of_openai_that_are_missing_name_those_that_exist(small_house: House) -> None:
    noor = await small_house.world.person("Noor")
    async with client(small_house, noor) as noors:
        with pytest.raises(openai.NotFoundError, match="does not continue texts: use /v1/chat/completions"):
            await noors.completions.create(model="ada", prompt="Once upon a time")
        with pytest.raises(openai.NotFoundError, match="/v1/models, /v1/chat/completions, /v1/responses and /v1/emb"):
            await noors.images.generate(prompt="A cat")


async def test_a_panel_has_no_use_for_tools(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    panel = await world.denizen.panels.create("Board", [noor])
    body = {"model": f"panel:{panel.id}", "messages": [{"role": "user", "content": "Hi"}], "tools": [WEATHER]}
    answer = await small_house.call("POST", "/v1/chat/completions", noor, json=body)
    assert (answer.status_code, "a panel" in answer.text) == (400, True)
