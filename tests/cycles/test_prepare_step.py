"""A Python function per agent decides about each step, and what becomes of a cycle whose function fails."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.usage import RequestUsage

from denizen import NextStep, StepContext, call, failpoints, forever, reply, scripted, tool
from denizen.consciousness.log import Entry, EntryKind
from denizen.cycles import watching
from denizen.cycles.outside_calls import TOOL_CALLED
from denizen.errors import InvalidInput
from denizen.ids import CycleId
from denizen.inbox import statuses
from denizen.models.scripted import ScriptedModel, Turn
from denizen.spaces.directory import Space
from tests.world import World, as_text, open_world


@tool
async def book_hotel(city: str) -> str:
    """Book a hotel."""
    if city == "Atlantis":
        raise ValueError("no such city")
    return f"Booked in {city}."


async def shown(world: World, space: Space) -> list[str]:
    """What the space tells of agents that have not answered."""
    return [each.text for each in await world.denizen.db.read(statuses.of_space, space.id)]


async def asked(world: World, *turns: Turn, text: str = "Hello?", model: ScriptedModel | None = None, **cycle: Any):
    """An agent whose steps are prepared by the function `prepare`, after it was asked something."""
    model = model or scripted(*turns)
    cycle = {"prepare_step": "prepare", **cycle}
    ada = await world.agent("Ada", model=model, tools=[book_hotel], cycle=cycle)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, text, hall)
    await world.run()
    return ada, hall, model


async def test_the_function_sees_the_steps_so_far_with_their_calls_and_results():
    seen: list[StepContext] = []

    def prepare(context: StepContext) -> None:
        seen.append(context)

    async with open_world("sqlite://", steps={"prepare": prepare}) as world:
        turns = call("book_hotel", city="Atlantis"), call("book_hotel", city="Rome"), reply("Booked."), "Booked it."
        await asked(world, *turns, phases="observe-think-respond", text="A hotel in Rome")
    # The first two steps only observe: the calls are refused in them.
    assert [(context.step, context.phase) for context in seen] == [
        (0, "observe"),
        (1, "observe"),
        (2, "think"),
        (3, "think"),
    ]
    assert [event.text for event in seen[0].events] == ["A hotel in Rome"]
    assert "send_message" not in seen[0].tools
    assert "recall" in seen[0].tools
    assert "book_hotel" in seen[2].tools
    assert [(use.tool, use.arguments["city"], use.outcome) for use in seen[2].calls] == [
        ("book_hotel", "Atlantis", "failed"),
        ("book_hotel", "Rome", "failed"),
    ]
    last = seen[-1]
    assert [step.number for step in last.steps] == [0, 1, 2]
    assert last.sent == last.succeeded("send_message") == 1
    assert last.tokens > seen[0].tokens
    assert last.steps[0].output_tokens > 0
    assert last.steps[0].model == last.model == "python:ada"


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_the_function_sets_tools_choice_settings_and_context_for_one_step(asynchronous: bool):
    """What it adds stands at the end of that one request, and can be read again in a replay."""
    first = NextStep(
        tools=["read_messages"], tool_choice="required", settings={"temperature": 0.5}, context="It is Noor's birthday."
    )

    def prepare(context: StepContext) -> NextStep | None:
        return first if context.step == 0 else None

    async def prepare_later(context: StepContext) -> NextStep | None:
        return prepare(context)

    async with open_world("sqlite://", steps={"prepare": prepare_later if asynchronous else prepare}) as world:
        ada, hall, model = await asked(world, reply("Too early."), reply("Happy birthday!"), "Congratulated.")
        assert await world.transcript(hall) == ["Noor: Hello?", "Ada: Happy birthday!"]
        settings = [info.settings or {} for info in model.infos]
        assert [each.get("temperature") for each in settings] == [0.5, None, None]
        assert [each.get("tool_choice", "auto") for each in settings] == ["required", "auto", "auto"]
        assert len({info.tools for info in model.infos}) == 1, "the list of tools stays, and so does the prefix"
        told = "[THIS STEP] You may call only: read_messages, skip. Call one now.\n\nIt is Noor's birthday."
        assert [as_text(request[-1]) == told for request in model.requests] == [True, False, False]
        assert not any("birthday." in each for each in await world.history(ada))
        kept = await world.denizen.minds.replay(ada, 1)
        assert as_text(kept[0].messages[-1]) == told
        assert kept[0].settings["temperature"] == 0.5


async def test_the_function_may_ask_for_a_shorter_answer_but_not_for_a_longer_one():
    limits = [100, 10_000_000]

    def prepare(context: StepContext) -> NextStep | None:
        return NextStep(settings={"max_tokens": limits[context.step]}) if context.step < 2 else None

    async with open_world("sqlite://", steps={"prepare": prepare}) as world:
        _, _, model = await asked(world, call("read_messages"), reply("Hello."), "Answered.")
        shorter, longer, usual = [(info.settings or {}).get("max_tokens", 0) for info in model.infos]
        assert shorter == 100
        assert longer == usual > 100


async def test_the_function_chooses_the_model_of_a_step():
    def prepare(context: StepContext) -> NextStep:
        return NextStep(model="big" if context.step == 1 else None)

    async with open_world("sqlite://", steps={"prepare": prepare}) as world:
        world.denizen.models.register("big", forever(lambda *_: reply("Big answer."), name="big"))
        ada, hall, _ = await asked(world, call("read_messages"), "Answered.", step_models=["big"])
        assert (await world.transcript(hall))[1:] == ["Ada: Big answer."]
        log = await world.denizen.minds.log(ada)
        models = [json.loads(entry.request)["model"] for entry in log if entry.request]
        assert models == ["python:ada", "big", "python:ada"]


@pytest.mark.parametrize("step", [0, 2])
async def test_the_function_ends_the_cycle(step: int):
    """A person who waits is shown that there was no reply."""

    def prepare(context: StepContext) -> NextStep:
        return NextStep(stop=context.step == step)

    async with open_world("sqlite://", steps={"prepare": prepare}) as world:
        ada, hall, model = await asked(world, model=forever(lambda *_: call("read_messages")))
        assert len(model.requests) == step
        assert [(each.stop_reason, each.steps) for each in await world.cycles(ada)] == [("prepare", step)]
        assert [each.text for each in await world.denizen.db.read(statuses.of_space, hall.id)] == [
            "Ada read this and did not reply."
        ]


async def test_a_resumed_cycle_refuses_what_was_refused_before_it_was_cut_off(ready_url: str):
    """The function is not asked again about a step whose response is stored."""
    asked_for: list[int] = []

    def prepare(context: StepContext) -> NextStep:
        asked_for.append(context.step)
        return NextStep(tools=["book_hotel"] if len(asked_for) == 1 else None)

    def cut_off() -> None:
        raise RuntimeError("cut off")

    async with open_world(ready_url, steps={"prepare": prepare}) as world:
        failpoints.arm(TOOL_CALLED, cut_off)
        try:
            turns = [call("book_hotel", city="Rome"), reply("Too early.")], reply("Done."), "Answered."
            ada, hall, _ = await asked(world, *turns)
        finally:
            failpoints.disarm()
        assert asked_for == [0]
        await world.run_after(3_600)
        assert asked_for == [0, 1, 2]
        assert (
            "send_message may not be called in this step. Allowed are: skip, book_hotel."
            in (await world.history(ada))[2]
        )
        assert await world.transcript(hall) == ["Noor: Hello?", "Ada: Done."]


def _fails(_context: StepContext) -> NextStep:
    raise RuntimeError("no idea")


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (_fails, "RuntimeError: no idea"),
        (lambda _: {"model": "big"}, "it gave dict; it must give a NextStep or None"),
        (lambda _: NextStep(model="huge"), "it chose the model 'huge'; it may choose python:ada"),
        (lambda _: NextStep(tools=["fly"]), "it named tools that the agent does not have: fly"),
        (lambda _: NextStep(tools="skip"), "its `tools` are a text; they must be a list of names"),
        (lambda _: NextStep(tool_choice=cast(Any, "maybe")), "its tool_choice is 'maybe'; it must be auto,"),
        (lambda _: NextStep(settings={"tool_choice": "none"}), "give it as NextStep(tool_choice=...)"),
        (lambda _: NextStep(settings={"seed": object()}), "its settings cannot be stored as JSON"),
        (lambda _: NextStep(context="many words " * 200_000), "tokens, too many for the window"),
    ],
)
async def test_a_function_that_fails_is_told_to_whoever_waits_and_nothing_is_lost(function: Any, told: str):
    """The message waits, the space says why, the ledger has it; once the function is correct, it is answered."""
    steps: dict[str, Any] = {"prepare": function}
    async with open_world("sqlite://", steps=steps) as world:
        ada, hall, model = await asked(world, reply("Here."), "Answered.")
        assert model.requests == []
        (status,) = await shown(world, hall)
        assert "Ada cannot start here: its function 'prepare' failed: " in status
        assert told in status
        assert [kind for kind, _ in await world.ledger(ada)] == ["failure"]
        assert told in str((await world.ledger(ada))[0][1])
        world.denizen._steps["prepare"] = lambda _: None  # pyright: ignore[reportPrivateUsage]
        await world.denizen.agents.try_again(ada)
        await world.run()
        assert await world.transcript(hall) == ["Noor: Hello?", "Ada: Here."]


async def test_a_function_that_this_runtime_does_not_have_is_named(small_world: World):
    message = r"prepares its steps with a function that this runtime does not have: prepare\. .*steps=\{\.\.\.\}"
    with pytest.raises(InvalidInput, match=message):
        await asked(small_world, reply("Here."))
    (found,) = await small_world.denizen.agents.check()
    assert found.unable is not None
    assert "a function that this runtime does not have: prepare" in found.unable.text


async def test_models_without_a_function_that_chooses_them_are_refused(small_world: World):
    with pytest.raises(InvalidInput, match=r"`step_models` are for the function of `prepare_step`"):
        await small_world.agent("Ada", cycle={"step_models": ["big"]})


# Stopping by what was done


@pytest.mark.parametrize(
    "stop_when",
    [[{"after": "book_hotel"}], ["booked"], ["booked_later"]],
)
async def test_a_cycle_stops_after_a_tool_has_succeeded(stop_when: list[Any]):
    """Not after it has failed: declared in the definition, or by a function, which may be asynchronous."""

    async def booked_later(context: StepContext) -> bool:
        return context.succeeded("book_hotel") > 0

    stops: dict[str, Any] = {
        "booked": lambda context: any("Booked in" in use.result for use in context.calls),
        "booked_later": booked_later,
    }
    async with open_world("sqlite://", stops=stops) as world:
        turns = call("book_hotel", city="Atlantis"), call("book_hotel", city="Rome"), reply("Never said.")
        ada = await world.agent("Ada", *turns, tools=[book_hotel], cycle={"stop_when": stop_when})
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        await world.say(noor, "A hotel in Atlantis or else in Rome, please", hall)
        await world.run()
        (cycle,) = await world.cycles(ada)
        reason = "after book_hotel" if isinstance(stop_when[0], dict) else stop_when[0]
        assert (cycle.steps, cycle.stop_reason) == (2, reason)


async def test_a_condition_that_fails_is_told_as_well():
    stops: dict[str, Any] = {"broken": _fails}
    async with open_world("sqlite://", stops=stops) as world:
        ada = await world.agent("Ada", call("read_messages"), reply("Hi."), cycle={"stop_when": ["broken"]})
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        await world.say(noor, "Hello?", hall)
        await world.run()
        (status,) = await shown(world, hall)
        assert "its function 'broken' failed: RuntimeError: no idea. " in status


def test_steps_that_have_ended_are_told_with_their_calls_and_results() -> None:
    """A call without a result is not among them, nor what is no answer of the model."""
    asked = ModelRequest(parts=[UserPromptPart("Rome?")])
    calls = [ToolCallPart("look_up", {"city": "Rome"}, "1"), ToolCallPart("look_up", "no JSON", "2")]
    first = ModelResponse(
        parts=[TextPart("Let me see."), *calls], usage=RequestUsage(input_tokens=7, output_tokens=3), model_name="m"
    )
    told = ModelRequest(parts=[ToolReturnPart("look_up", "Error: it is closed.", "1")])
    last = ModelResponse(parts=[ToolCallPart("skip", {}, "3")])
    kinds: list[EntryKind] = ["inbox", "response", "results", "response"]
    entries = [
        Entry(seq, CycleId("c"), kind, message, 1, "", request='{"model": "acme:m"}' if message is first else None)
        for seq, (kind, message) in enumerate(zip(kinds, (asked, first, told, last), strict=True), start=1)
    ]
    context = StepContext(2, (), entries=entries)
    one, two = context.steps
    assert (one.number, one.model, one.text, one.input_tokens, one.output_tokens) == (0, "acme:m", "Let me see.", 7, 3)
    assert (two.number, two.model, two.text, two.calls) == (1, "", "", ())
    [use] = context.calls
    assert (use.tool, use.arguments, use.result) == ("look_up", {"city": "Rome"}, "Error: it is closed.")
    assert (context.called("look_up"), context.called("skip")) == (1, 0)
    assert context.succeeded("look_up") == int(use.outcome == "succeeded")


def test_messages_are_told_in_the_form_of_opentelemetry() -> None:
    asked = ModelRequest(parts=[UserPromptPart("Rome?")])
    told = ModelRequest(parts=[ToolReturnPart("look_up", "Open.", "1")])
    answers = [ModelResponse(parts=[TextPart("Yes.")], finish_reason="stop"), ModelResponse(parts=[TextPart("No.")])]
    found = json.loads(watching.in_words([asked, told, *answers]))
    assert [each["role"] for each in found] == ["user", "tool", "assistant", "assistant"]
    assert [each.get("finish_reason") for each in found] == [None, None, "stop", ""]
    assert all(len(each["parts"]) == 1 for each in found)
