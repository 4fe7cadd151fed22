"""The scripted model says what it was told to say, as a provider would send it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from denizen.errors import DenizenError, ModelOverloaded, ModelUnreachable
from denizen.models.partial_json import PartialArguments
from denizen.models.request import RunningAnswer, stream
from denizen.models.scripted import Call, ScriptedModel, call, forever, reply, say, scripted, skip, think
from denizen.models.tokens import estimate_message


def asked(text: str = "Hello?") -> list[ModelMessage]:
    return [ModelRequest([UserPromptPart(text)])]


async def ask(model: ScriptedModel, messages: list[ModelMessage] | None = None, **kwargs: Any) -> ModelResponse:
    async with stream(model, asked() if messages is None else messages, **kwargs) as answer:
        async for _ in answer:
            pass
        return answer.response


async def test_turns_are_taken_in_order():
    model = scripted(
        "One.", say("Two."), reply("Hi", space="kitchen"), call("look", at="sky"), skip("not mine"), skip()
    )
    said = [(await ask(model)).parts[0] for _ in range(6)]
    assert said == [
        TextPart("One."),
        TextPart("Two."),
        ToolCallPart("send_message", '{"space": "kitchen", "text": "Hi"}', "call_0"),
        ToolCallPart("look", '{"at": "sky"}', "call_0"),
        ToolCallPart("skip", '{"reason": "not mine"}', "call_0"),
        ToolCallPart("skip", "{}", "call_0"),
    ]


async def test_one_response_may_hold_several_pieces_and_call_ids_repeat_between_responses():
    model = scripted([think("Hm."), reply("a"), Call("broken", "{oops"), "Bye."], (call("x"), call("y")))
    first, second = await ask(model), await ask(model)
    assert [part.part_kind for part in first.parts] == ["thinking", "tool-call", "tool-call", "text"]
    assert [part.tool_call_id for part in first.tool_calls] == ["call_0", "call_1"]
    assert [part.tool_call_id for part in second.tool_calls] == ["call_0", "call_1"]
    assert (first.finish_reason, first.state, first.model_name) == ("tool_call", "complete", "scripted")


async def test_asking_once_too_often_names_how_many_turns_there_were():
    model = scripted("Only this.")
    await ask(model)
    with pytest.raises(AssertionError, match="1 turn") as caught:
        await ask(model)
    assert isinstance(caught.value, DenizenError)


async def test_an_exception_is_raised_instead_of_an_answer_or_in_its_middle():
    overloaded, lost = ModelOverloaded(retry_after=3), ModelUnreachable()
    model = scripted(overloaded, [say("I was just"), lost])
    with pytest.raises(ModelOverloaded) as caught:
        await ask(model)
    assert caught.value is overloaded
    async with stream(model, asked()) as answer:
        with pytest.raises(ModelUnreachable) as caught:
            await read(answer)
    assert answer.response.parts == [TextPart("I was just")]
    assert answer.response.state == "incomplete"
    assert caught.value is lost
    assert caught.value.__cause__ is None


async def test_a_callable_decides_from_the_history_and_may_be_async():
    async def later(messages: list[ModelMessage], info: Any) -> str:
        return f"{len(messages)} messages, request {info.number}, tools {info.tools}"

    model = scripted(lambda messages, info: later)
    tool = ToolDefinition(name="look")
    assert (await ask(model, tools=[tool])).text == "1 messages, request 0, tools ('look',)"


async def test_forever_answers_every_request_from_the_history():
    model = forever(lambda messages, info: "again" if len(messages) > 1 else reply("first"))
    assert (await ask(model)).tool_calls
    assert (await ask(model, asked() * 2)).text == "again"
    assert (await ask(model)).tool_calls


async def test_requests_are_recorded_as_they_were_unless_told_not_to():
    model, history = scripted("a", "b"), asked()
    await ask(model, history, tools=[ToolDefinition(name="look")], settings={"tool_choice": "none"})
    history.append(ModelResponse([TextPart("a")]))
    assert model.requests == [history[:1]]
    assert (model.infos[0].tools, model.infos[0].settings) == (("look",), {"tool_choice": "none"})
    quiet = scripted("a", record=False)
    await ask(quiet)
    assert quiet.requests == []


@pytest.mark.parametrize("chunk", [1, 5, 12, None])
async def test_texts_and_arguments_arrive_in_pieces_that_add_up(chunk: int | None):
    model = scripted([think("Let me think."), reply("Tea? ☕ " * 5, space="kitchen"), "Done."], chunk=chunk)
    texts, starts, ends = ["", "", ""], [], []
    arguments = PartialArguments()
    async with stream(model, asked()) as answer:
        async for event in answer:
            match event:
                case PartStartEvent(index=index, part=TextPart(content=text) | ThinkingPart(content=text)):
                    starts.append(index)
                    texts[index] += text
                case PartStartEvent(index=index, part=ToolCallPart(args=str(text))):
                    starts.append(index)
                    arguments.feed(text)
                case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str(text))):
                    arguments.feed(text)
                case PartDeltaEvent(index=index, delta=TextPartDelta() | ThinkingPartDelta() as delta):
                    texts[index] += delta.content_delta or ""
                case PartEndEvent(index=index, part=part):
                    ends.append(part)
    assert (texts[0], texts[2]) == ("Let me think.", "Done.")
    assert arguments.known == {"space": "kitchen", "text": "Tea? ☕ " * 5}
    assert starts == [0, 1, 2]
    assert ends == answer.response.parts


class Gate:
    """Lets one delta through at a time, and says when the next one waits."""

    def __init__(self) -> None:
        self.waiting = asyncio.Semaphore(0)
        self.open = asyncio.Semaphore(0)

    async def __call__(self) -> None:
        self.waiting.release()
        await self.open.acquire()


async def read(answer: RunningAnswer) -> None:
    async for _ in answer:
        pass


async def test_a_test_can_act_in_the_middle_of_a_stream_and_cancel_it():
    gate = Gate()
    model = scripted(reply("A long message."), chunk=10, pause=gate)
    async with stream(model, asked()) as answer, asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(read(answer))
        await gate.waiting.acquire()
        assert answer.response.tool_calls[0].args == ""
        gate.open.release()
        await gate.waiting.acquire()
        assert answer.response.state == "incomplete"
        assert answer.response.tool_calls[0].args == '{"text": "'
        await answer.cancel()
        await reading
    assert answer.response.state == "interrupted"
    assert answer.response.tool_calls[0].args == '{"text": "'
    assert answer.response.usage.output_tokens > 0


async def test_cancelling_the_reader_is_not_swallowed():
    gate = Gate()
    model = scripted("A long message.", pause=gate)
    async with stream(model, asked()) as answer:
        reading = asyncio.create_task(read(answer), name="reading")
        await gate.waiting.acquire()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_usage_is_the_estimate_of_the_whole_request_however_it_grew():
    model = forever(lambda messages, info: "Yes, certainly.")
    history = asked()
    for _ in range(3):
        response = await ask(model, history)
        assert response.usage.input_tokens == sum(map(estimate_message, history))
        assert response.usage.output_tokens == 4
        history += [response, *asked("And then?")]
    shorter = [history[0], history[-1]]
    assert (await ask(model, shorter)).usage.input_tokens == sum(map(estimate_message, shorter))


async def test_it_answers_plain_requests_too():
    response = await scripted("Hello.").request(asked(), None, ModelRequestParameters())
    assert response.text == "Hello."
