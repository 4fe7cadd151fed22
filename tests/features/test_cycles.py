"""Think cycles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from denizen import NextStep, StepContext, call, forever, reply, scripted, skip, tool
from denizen.cli.home import runtime_of
from denizen.inbox.events import Event
from denizen.models.discovery import utility_model_for
from denizen.models.scripted import ScriptedModel, Turn
from denizen.settings.loading import load
from tests.cycles.test_routing import asked_models, house_of_two
from tests.scenarios import test_question_and_answer
from tests.world import World, as_text, open_world


@tool
async def book_hotel(city: str) -> str:
    """Book a hotel."""
    return f"Booked in {city}."


async def a_question(world: World, *turns: Turn, model: ScriptedModel | None = None, **cycle: Any):
    """Noor asks Ada something in a space of the two, and Ada thinks about it."""
    ada = await world.agent("Ada", model=model or scripted(*turns), tools=[book_hotel], cycle=cycle)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "A hotel in Rome, please", hall)
    await world.run()
    return ada, hall


async def test_a_function_runs_before_each_step() -> None:
    """A function of your own runs before each step of a cycle, with the number of the step and what was done before.

    Docs: cycles.md
    """
    seen: list[tuple[int, list[str]]] = []

    def look(context: StepContext) -> None:
        seen.append((context.step, [use.tool for use in context.calls]))

    async with open_world("sqlite://", steps={"look": look}) as world:
        await a_question(world, call("read_messages"), reply("Done."), "Answered.", prepare_step="look")
    assert seen == [(0, []), (1, ["read_messages"]), (2, ["read_messages", "send_message"])]


async def test_a_server_loads_functions_from_python_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`denizen up` loads functions for steps, stops, routes and triage from Python files that its settings name.

    Docs: cycles.md
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from denizen import NextStep\n\n"
        "def brief(context):\n    return NextStep(context='Be brief.')\n\n"
        "def answered(context):\n    return context.sent > 0\n"
    )
    (tmp_path / "denizen.toml").write_text(
        '[functions.steps]\nbrief = "mine.py:brief"\n[functions.stops]\nanswered = "mine.py:answered"\n'
    )
    environment = {"DENIZEN_HOME": str(tmp_path / "home"), "DENIZEN_MODEL": "demo", "DATABASE_URL": "sqlite://"}
    model = scripted(reply("Done."), "Never said.")
    async with await runtime_of(load(environ=environment, folder=tmp_path).settings) as denizen:
        noor = await denizen.people.create("Noor")
        cycle: Any = {"prepare_step": "brief", "stop_when": ["answered"]}
        ada = await denizen.agents.create("Ada", model=model, cycle=cycle)
        hall = await denizen.spaces.create("Hall", [noor, ada])
        await denizen.spaces.post(hall, noor, "A hotel in Rome, please")
        await denizen.run_until_idle()
        assert [each.stop_reason for each in await denizen.minds.cycles(ada)] == ["answered"]
    assert "Be brief." in as_text(model.requests[0][-1])


async def test_a_function_restricts_the_tools_of_a_step() -> None:
    """The function may restrict the tools of one step and force the model to call one of them.

    Docs: cycles.md
    """

    def look_first(context: StepContext) -> NextStep | None:
        return NextStep(tools=["read_messages"], tool_choice="required") if context.step == 0 else None

    async with open_world("sqlite://", steps={"look_first": look_first}) as world:
        turns = reply("Too early."), reply("Done."), "Answered."
        ada, hall = await a_question(world, *turns, prepare_step="look_first")
        assert (await world.transcript(hall))[1:] == ["Ada: Done."]
        assert (world.model(ada).infos[0].settings or {}).get("tool_choice") == "required"


async def test_a_function_adds_context_to_a_step() -> None:
    """The function may add text to one request; the next request does not have it.

    Docs: cycles.md
    """

    def tell(context: StepContext) -> NextStep:
        return NextStep(context="It rains." if context.step == 0 else "")

    async with open_world("sqlite://", steps={"tell": tell}) as world:
        ada, _ = await a_question(world, reply("Take an umbrella."), "Answered.", prepare_step="tell")
        requests = world.model(ada).requests
        assert [any("It rains." in as_text(each) for each in request) for request in requests] == [True, False]


async def test_a_function_chooses_the_model_of_a_step() -> None:
    """The function may choose another model, and other settings of it, for one step.

    Docs: cycles.md
    """

    def think_hard(context: StepContext) -> NextStep | None:
        return NextStep(model="big", settings={"temperature": 0.2}) if context.step == 1 else None

    async with open_world("sqlite://", steps={"think_hard": think_hard}) as world:
        big = scripted(reply("Here is the plan."), name="big")
        world.denizen.models.register("big", big)
        turns = call("read_messages"), "Answered."
        _, hall = await a_question(world, *turns, prepare_step="think_hard", step_models=["big"])
        assert (await world.transcript(hall))[1:] == ["Ada: Here is the plan."]
        assert [(info.settings or {}).get("temperature") for info in big.infos] == [0.2]


async def test_a_function_that_fails_leaves_nobody_in_silence() -> None:
    """If the function fails, the space of the person who waits says why, and the message is kept.

    Docs: cycles.md
    """

    def fail(_context: StepContext) -> None:
        raise RuntimeError("no idea")

    async with open_world("sqlite://", steps={"fail": fail}) as world:
        ada, hall = await a_question(world, prepare_step="fail")
        (status,) = await world.denizen.spaces.statuses(hall)
        assert "its function 'fail' failed: RuntimeError: no idea. " in status.text
        assert await world.inbox(ada) == ["A hotel in Rome, please"]


async def test_a_strict_phase_leaves_tools_out(world: World) -> None:
    """A strict phase leaves the tools that it does not allow out of the request.

    Docs: cycles.md
    Differs: only a strict one does. The list of tools is part of what a provider caches, so other phases leave it as it
    is: at OpenAI the other tools cannot be called, elsewhere such a call is refused.
    """
    phases = [{"until_step": 0, "reads": True, "strict": True}]
    ada, _ = await a_question(world, call("read_messages"), reply("Done."), "Answered.", phases=phases)
    first, second, _ = world.model(ada).infos
    assert first.tools == ("read_messages", "read_entry", "recall", "skip")
    assert "send_message" in second.tools


async def test_phases_restrict_tools_by_step(world: World) -> None:
    """Phases say which tools may be called at which step: first observe, then think and act, then only respond.

    Docs: cycles.md
    """
    looking = [call("read_messages")] * 7
    ada, hall = await a_question(
        world, *looking, call("book_hotel", city="Rome"), reply("Done."), "Answered.", phases="observe-think-respond"
    )
    assert (await world.transcript(hall))[1:] == ["Ada: Done."]
    assert "book_hotel may not be called in this step" in (await world.history(ada))[16]


async def test_the_model_is_told_its_phase(world: World) -> None:
    """The model is told which phase it is in and which tools it may call there.

    Docs: cycles.md
    """
    ada, _ = await a_question(
        world, call("recall", query="Rome"), reply("Done."), "Answered.", phases=[{"reads": True}]
    )
    told = as_text(world.model(ada).requests[0][-1])
    assert told == "[PHASE] You may call only: read_messages, read_entry, recall, skip."


async def test_a_cycle_stops_after_a_number_of_steps(world: World) -> None:
    """A cycle stops after a number of steps: 20, unless you set another.

    Docs: cycles.md
    Differs: a person who still waits is answered in one more step, or told that the limit was reached.
    """
    ada, _ = await a_question(world, model=forever(lambda *_: reply("And on.")), max_steps=3)
    assert [(each.stop_reason, each.steps) for each in await world.cycles(ada)] == [("max_steps", 3)]


async def test_a_cycle_stops_after_a_number_of_tokens(world: World) -> None:
    """A cycle stops after a number of tokens: 50,000, unless you set another.

    Docs: cycles.md
    Differs: only what the cycle adds is counted. The prompt that is sent again with each step would use the budget up
    after a few steps of an agent with a long life.
    """
    counting = forever(lambda _, info: reply(f"And {info.number}."))
    ada, _ = await a_question(world, model=counting, token_budget=500, max_steps=1_000)
    assert [each.stop_reason for each in await world.cycles(ada)] == ["token_budget"]


async def test_a_cycle_stops_when_every_event_has_an_answer(world: World) -> None:
    """A cycle may stop as soon as there is a message for each event.

    Docs: cycles.md
    """
    ada, _ = await a_question(world, model=forever(lambda *_: reply("Yes.")), stop_when=["responded_to_all"])
    assert [(each.stop_reason, each.steps) for each in await world.cycles(ada)] == [("responded_to_all", 1)]


async def test_a_cycle_stops_by_a_condition_of_your_own() -> None:
    """A condition of your own sees the steps with their calls and results, and may end the cycle.

    Docs: cycles.md
    """
    stops = {"booked": lambda context: any("Booked in Rome" in use.result for use in context.calls)}
    async with open_world("sqlite://", stops=stops) as world:
        ada, _ = await a_question(
            world, model=forever(lambda *_: call("book_hotel", city="Rome")), stop_when=["booked"]
        )
        assert [(each.stop_reason, each.steps) for each in await world.cycles(ada)] == [("booked", 1)]


async def test_a_cycle_stops_after_a_tool_has_succeeded(world: World) -> None:
    """A definition can say that a cycle stops after a certain tool has succeeded.

    Docs: cycles.md
    """
    booking = forever(lambda *_: call("book_hotel", city="Rome"))
    ada, _ = await a_question(world, model=booking, stop_when=[{"after": "book_hotel"}])
    assert [(each.stop_reason, each.steps) for each in await world.cycles(ada)] == [("after book_hotel", 1)]


async def test_a_cycle_ends_with_text_without_calls(world: World) -> None:
    """A cycle ends by itself when the model writes text and calls no tool.

    Docs: cycles.md
    """
    ada, _ = await a_question(world, reply("Booked."), "Booked a hotel for Noor.")
    assert await world.endings(ada) == [(1, "acted", "answered", "Booked a hotel for Noor.")]


async def while_it_works(world: World, text: str, **cycle: Any) -> list[str]:
    """Noor says something while a tool of Ada's runs: the last message of each of Ada's requests."""

    @tool
    async def work() -> str:
        """Work."""
        await world.say(noor, text, hall)
        return "worked"

    turns = call("work"), reply("Done."), "Worked.", reply("Noted."), "Noted it."
    ada = await world.agent("Ada", *turns, tools=[work], cycle=cycle)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Work!", hall)
    await world.run()
    return [as_text(request[-1]) for request in world.model(ada).requests]


async def test_what_arrives_meanwhile_is_previewed(world: World) -> None:
    """What arrives while the agent works is shown in a line each before its next step, and read in its next cycle.

    Docs: cycles.md
    """
    last = await while_it_works(world, "The deadline moved to Friday.")
    assert "[INBOX PREVIEW — 1 new event waiting]" in last[1]
    assert "The deadline moved to Friday." in last[3]


async def test_what_is_urgent_is_told_in_the_middle_of_a_cycle(world: World) -> None:
    """Urgent events are told whole before the next step, and belong to the cycle.

    Docs: cycles.md
    """
    last = await while_it_works(world, "Stop! Use the other one.")
    assert "[MID-CYCLE UPDATE - 1 new event]" in last[1]
    assert "Stop! Use the other one." in last[1]


async def test_everything_can_be_told_in_the_middle_of_a_cycle(world: World) -> None:
    """With one setting, every event is told whole before the next step, urgent or not.

    Docs: cycles.md
    """
    last = await while_it_works(world, "The deadline moved to Friday.", awareness="all")
    assert "[MID-CYCLE UPDATE - 1 new event]" in last[1]
    assert "The deadline moved to Friday." in last[1]


async def test_an_agent_can_be_left_alone_while_it_works(world: World) -> None:
    """With another, it is told nothing before its cycle has ended.

    Docs: cycles.md
    """
    last = await while_it_works(world, "Stop! Use the other one.", awareness="none")
    assert not any("Use the other one." in each for each in last[:3])
    assert "Use the other one." in last[3]


async def test_skip_leaves_no_trace(world: World) -> None:
    """An agent that is not concerned calls `skip`: no message, no cycle, nothing in its memory.

    Docs: cycles.md
    Differs: while a person waits for this agent and no other takes over, a skip ends the cycle as a normal one, and the
    space shows that there was no reply.
    """
    ada = await world.agent("Ada", skip("not for me"))
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert, ada)
    await world.say(noor, "Bert?", hall)
    await world.run()
    assert (await world.cycles(ada), await world.history(ada)) == ([], [])


async def test_a_skip_is_cheap(world: World) -> None:
    """In a space with several agents, what is not for an agent costs a few hundred tokens, however long its life is.

    Docs: cycles.md
    Differs: a small model decides, by who the agent is and what was said. The agent's own model would have to read its
    whole window to decide.
    """
    small = forever(lambda *_: skip("for Bo"))
    world.denizen.models.register("anthropic:large", forever(lambda *_: "Never asked."))
    world.denizen.models.register(utility_model_for("anthropic:large"), small)
    ada = await world.denizen.agents.create("Ada", model="anthropic:large")
    bo, noor = await world.agent("Bo", reply("Yes."), "Answered."), await world.person("Noor")
    hall = await world.space("Hall", noor, bo, ada)
    await world.say(noor, "@bo, is the login page all right?", hall)
    await world.run()
    # What Noor said, and what Bo answered.
    assert await world.ledger(ada) == [("skip", "triage: for Bo")] * 2
    (used,) = await world.denizen.budgets.spending(ada)
    assert used.input_tokens + used.output_tokens < 2 * 1_000


async def test_a_cycle_acts_in_several_spaces(world: World) -> None:
    """In one cycle an agent reads several spaces, sends messages to several, uses its own tools, and sets memories,
    goals and plans.

    Docs: cycles.md
    """
    ada, noor = await world.agent("Ada", tools=[book_hotel]), await world.person("Noor")
    hall, lab = await world.space("Hall", noor, ada), await world.space("Lab", noor, ada)
    turns = [
        [call("enter_space", space_id=lab.id), call("read_messages")],
        [call("book_hotel", city="Rome"), call("set_memories", memories={"trip": "Rome"})],
        [call("set_goals", text="Get to Rome"), call("set_timer", after="1 hour", reason="Pack.")],
        [reply("Rome it is."), call("enter_space", space_id=hall.id), reply("Booked.")],
        "Booked a hotel in Rome.",
    ]
    await world.restart(ada=scripted(*turns))
    await world.say(noor, "A hotel, please", hall)
    await world.run()
    assert (await world.transcript(hall))[1:] + await world.transcript(lab) == ["Ada: Booked.", "Ada: Rome it is."]
    assert [each.steps for each in await world.cycles(ada)] == [5]
    found = await world.denizen.minds.inspect(ada)
    assert [len(each) for each in (found.goals, found.notes, found.plans)] == [1, 1, 1]


async def test_results_of_a_step_are_read_in_the_next(world: World) -> None:
    """Each step is one answer of the model; the results of its calls are in the request of the next step.

    Docs: cycles.md
    """
    ada, _ = await a_question(world, call("book_hotel", city="Rome"), reply("Done."), "Booked it.")
    assert [as_text(request[-1]) for request in world.model(ada).requests][1] == "book_hotel → Booked in Rome."


async def test_a_phase_forces_the_agent_to_gather_information(world: World) -> None:
    """In the phase `observe` the model has to call a tool, and only tools that read; then it may call any.

    Docs: cycles.md
    """
    turns = call("read_messages"), call("read_messages"), call("book_hotel", city="Rome"), reply("Done."), "Booked it."
    ada, hall = await a_question(world, *turns, phases="observe-think-respond")
    chosen = [(info.settings or {}).get("tool_choice") for info in world.model(ada).infos]
    assert (chosen[:2], "required" in chosen[2:]) == (["required"] * 2, False)
    assert (await world.transcript(hall))[1:] == ["Ada: Done."]


async def test_the_phase_respond_allows_messages_and_memories(world: World) -> None:
    """In the phase `respond` an agent may only send messages, change spaces, and set memories and goals.

    Docs: cycles.md
    """
    turns = [call("read_messages")] * 7 + [reply("Done."), "Answered."]
    ada, _ = await a_question(world, *turns, phases="observe-think-respond")
    told = as_text(world.model(ada).requests[-1][-1])
    allowed = "enter_space, send_message, set_memories, set_goals, skip"
    assert told == f"[PHASE RESPOND] You may call only: {allowed}."


async def test_an_agent_has_a_model_of_its_own(world: World) -> None:
    """Each agent has its own model, which its owner can change.

    Docs: models.md
    """
    world.denizen.models.register("other", scripted(reply("Hello again."), "Greeted Noor."))
    ada, hall = await a_question(world, reply("Hello."), "Greeted Noor.")
    await world.denizen.agents.edit(ada, model="other")
    await world.say(await world.denizen.people.find("noor"), "And now?", hall)
    await world.run()
    assert [each for each in await world.transcript(hall) if each.startswith("Ada")] == [
        "Ada: Hello.",
        "Ada: Hello again.",
    ]


async def test_a_rule_chooses_the_model_of_a_cycle(world: World) -> None:
    """A rule chooses a strong model for what is hard and a cheap one for the rest.

    Docs: cycles.md
    """
    ada, noor, hall = await house_of_two(world, cycle={"routing": [{"model": "big", "when": {"words": ["hard"]}}]})
    for text in ("An easy one", "A hard one"):
        await world.say(noor, text, hall)
        await world.run()
    assert await asked_models(world, ada) == ["small", "small", "big", "big"]


async def test_a_cycle_stops_at_whichever_limit_comes_first(world: World) -> None:
    """Several conditions may be set at once; the first that is met ends the cycle.

    Docs: cycles.md
    """
    booking = forever(lambda *_: call("book_hotel", city="Rome"))
    ada, _ = await a_question(world, model=booking, max_steps=5, stop_when=[{"after": "book_hotel", "times": 2}])
    assert [(each.stop_reason, each.steps) for each in await world.cycles(ada)] == [("after book_hotel", 2)]


async def test_the_limits_of_a_cycle() -> None:
    """Without settings, a cycle has at most 20 steps and 50,000 tokens.

    Docs: cycles.md
    """
    async with open_world("sqlite://") as world:
        settings = (await world.agent("Ada")).definition.cycle
        assert (settings.max_steps, settings.token_budget) == (20, 50_000)


async def test_after_a_limit_the_inbox_is_read_again(world: World) -> None:
    """A cycle that was ended by a limit is complete: the agent looks into its inbox again and begins the next one.

    Docs: cycles.md
    """

    async def interrupt(*_: object) -> Turn:
        await world.say(await world.denizen.people.find("noor"), "And a train", hall)
        return reply("Booked.")

    ada = await world.agent("Ada", interrupt, reply("And a train."), cycle={"max_steps": 1})
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "A hotel, please", hall)
    await world.run()
    assert [each.stop_reason for each in await world.cycles(ada)] == ["max_steps", "max_steps"]
    assert (await world.transcript(hall))[-1] == "Ada: And a train."


async def test_cycles_of_an_agent_never_overlap(world: World) -> None:
    """An agent has one cycle at a time: messages that arrive meanwhile do not start another one.

    Docs: agents.md
    """

    @tool
    async def work() -> str:
        """Work."""
        for text in ("One", "Two", "Three"):
            await world.say(noor, text, hall)
        return "worked"

    ada = await world.agent("Ada", call("work"), reply("Done."), "Worked.", reply("Yes."), "Read three.", tools=[work])
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Work!", hall)
    await world.run()
    assert [each.summary for each in await world.cycles(ada)] == ["Worked.", "Read three."]


async def test_every_cycle_has_a_record(world: World) -> None:
    """Every cycle has a record: number, outcome, why it stopped, summary, steps, times, tokens and cost.

    Docs: cycles.md
    """
    ada, _ = await a_question(world, reply("Done."), "Answered.")
    (record,) = await world.cycles(ada)
    assert (record.number, record.outcome, record.stop_reason, record.summary) == (1, "acted", "answered", "Answered.")
    assert (record.steps, record.started_at, record.ended_at) == (2, world.clock.now(), world.clock.now())
    assert record.input_tokens > 0 < record.output_tokens


async def three_bots(world: World):
    """Ahmad asks FrontendBot something; BackendBot and DevOpsBot skip it."""
    back = await world.agent("BackendBot", skip("addressed to FrontendBot"), skip("not for me"))
    ops = await world.agent("DevOpsBot", skip("not ops-related"), skip("not for me"))
    front = await world.agent("FrontendBot", [reply("Sure, checking now...")], "Checking the page for Ahmad.")
    ahmad = await world.person("Ahmad")
    engineering = await world.space("Engineering", ahmad, front, back, ops)
    await world.say(ahmad, "Hey FrontendBot, can you check the CSS on the login page?", engineering)
    await world.run()
    return engineering, front, (back, ops)


async def test_of_three_agents_only_the_one_that_is_asked_answers(world: World) -> None:
    """In a space with several agents, the one that is asked answers; the others skip and remember nothing.

    Docs: cycles.md
    """
    engineering, front, others = await three_bots(world)
    assert (await world.transcript(engineering))[1:] == ["FrontendBot: Sure, checking now..."]
    assert [len(await world.cycles(bot)) for bot in (front, *others)] == [1, 0, 0]


async def test_the_reason_of_a_skip_is_logged_and_not_shown(world: World) -> None:
    """The reason of a skip is kept for the owner of the agent, and is not shown in the space.

    Docs: cycles.md
    """
    engineering, _, (back, _) = await three_bots(world)
    assert (await world.ledger(back))[0] == ("skip", "addressed to FrontendBot")
    assert not any("addressed to" in each for each in await world.transcript(engineering))


async def test_a_skip_is_one_step(world: World) -> None:
    """A skip ends the cycle at its first step: the model is asked once, and nothing else runs.

    Docs: cycles.md
    """
    *_, (back, ops) = await three_bots(world)
    assert [len(world.model(bot).requests) for bot in (back, ops)] == [len(await world.ledger(b)) for b in (back, ops)]


async def test_calls_beside_a_skip_do_not_run(world: World) -> None:
    """Other calls in the same answer as a skip do not run.

    Docs: cycles.md
    """
    ada = await world.agent("Ada", [call("set_memories", memories={"a": "b"}), skip("not for me")])
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert, ada)
    await world.say(noor, "Bert?", hall)
    await world.run()
    assert (await world.transcript(hall), await world.denizen.notes.list(ada)) == (["Noor: Bert?"], [])


async def test_the_mind_after_a_skip_is_as_before(world: World) -> None:
    """After a skip the agent is as it was before: the same history, number of cycles and summaries.

    Docs: cycles.md
    """
    ada = await world.agent("Ada", reply("Hello."), "Greeted Noor.", skip("for Bert"))
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert, ada)
    await world.say(noor, "Hello, @ada", hall)
    await world.run()
    before = await world.history(ada), await world.cycles(ada), (await world.denizen.minds.inspect(ada)).cycle_count
    await world.say(noor, "Bert, your turn", hall)
    await world.run()
    assert before == (
        await world.history(ada),
        await world.cycles(ada),
        (await world.denizen.minds.inspect(ada)).cycle_count,
    )
    assert await world.inbox(ada) == []


async def test_a_skip_after_an_effect_is_remembered(world: World) -> None:
    """A skip after the agent has already done something ends the cycle as a normal one.

    Docs: cycles.md
    Differs: an effect cannot be taken back, and an agent that forgot it would do it again.
    """
    ada, _ = await a_question(world, [reply("One moment.")], skip("never mind"))
    assert [(each.outcome, each.stop_reason) for each in await world.cycles(ada)] == [("acted", "skipped")]


async def test_text_that_says_skip_is_no_skip(world: World) -> None:
    """Only the call of `skip` is a skip. A text such as "[SKIP] not for me" is an ordinary text.

    Docs: cycles.md
    """
    ada = await world.agent("Ada", "[SKIP] not for me")
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert, ada)
    await world.say(noor, "Bert?", hall)
    await world.run()
    assert [each.summary for each in await world.cycles(ada)] == ["[SKIP] not for me"]


async def test_tokens_of_a_skip_are_counted(world: World) -> None:
    """A skipped cycle has no record, but its tokens are counted.

    Docs: cycles.md
    Differs: the provider charges for it, so a budget that left it out would be wrong.
    """
    *_, (back, _) = await three_bots(world)
    assert await world.cycles(back) == []
    assert [each.calls for each in await world.denizen.budgets.spending(back)] == [len(world.model(back).requests)]


async def test_an_agent_may_do_nothing(world: World) -> None:
    """An agent that has nothing to add writes no message: the cycle ends with its note.

    Docs: cycles.md
    """
    ada = await world.agent("Ada", "Nothing to add.")
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert, ada)
    await world.say(noor, "Bert, thanks", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Bert, thanks"]
    assert await world.endings(ada) == [(1, "acted", "answered", "Nothing to add.")]


async def test_a_question_is_answered_and_the_agent_sleeps_again(world: World) -> None:
    """A message wakes an agent; it answers once, remembers what it did, and sleeps again.

    Docs: cycles.md
    """
    await test_question_and_answer.test_a_question_is_answered_and_the_agent_sleeps_again(world)


async def test_triage_skips_before_the_agent_is_loaded() -> None:
    """A function or a small model can skip events before the agent's own model is asked.

    Docs: cycles.md
    """

    def from_bots(events: Sequence[Event]) -> str | None:
        return "from a bot" if all(event.sender_kind == "agent" for event in events) else None

    async with open_world("sqlite://", triages={"from_bots": from_bots}) as world:
        ada = await world.agent("Ada", cycle={"triage": {"by": "from_bots"}})
        bo, noor = await world.agent("Bo"), await world.person("Noor")
        hall = await world.space("Hall", noor, bo, ada)
        await world.say(bo, "Build 7 is green.", hall)
        await world.run()
        assert (await world.ledger(ada), world.model(ada).requests) == ([("skip", "triage: from a bot")], [])


async def test_a_cycle_stops_after_a_time(world: World) -> None:
    """A cycle may be limited to a number of seconds.

    Docs: cycles.md
    """

    def slowly(*_: object) -> Turn:
        world.clock.advance(30)
        return reply(f"{world.clock.now()}")

    ada, _ = await a_question(world, model=forever(slowly), max_seconds=60)
    assert [(each.stop_reason, each.steps) for each in await world.cycles(ada)] == [("max_seconds", 2)]


async def test_a_person_stops_an_answer() -> None:
    """A person can stop what an agent is writing: what was said stays and is marked, and the agent is told.

    Docs: cycles.md
    Differs: only what is written to that space stops; the same cycle still answers people elsewhere.
    """
    written = 0

    async def pause() -> None:
        nonlocal written
        written += 1
        if written == 10:
            await world.denizen.spaces.stop(hall, by=noor)

    async with open_world("sqlite://") as world:
        model = scripted(reply("One, two, three, four, five, six, seven, eight, nine."), chunk=4, pause=pause)
        ada, noor = await world.agent("Ada", model=model), await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        await world.say(noor, "Count.", hall)
        await world.run()
        (_, said) = await world.denizen.spaces.messages(hall)
        assert said.text.startswith("One, two")
        assert not said.text.endswith("nine.")
        assert said.metadata == {"stopped": {"by": noor.id}}
        assert "Noor stopped you here" in (await world.history(ada))[-1]
