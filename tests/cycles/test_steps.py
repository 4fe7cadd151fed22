"""The calls of one response: in order, together where they may, and answered so that the model can correct itself."""

from __future__ import annotations

import asyncio
import re
import threading

import structlog
from pydantic_ai.messages import ModelMessage

from denizen import call, forever, reply, scripted, think, tool
from denizen.cycles.settings import CycleSettings
from denizen.models.scripted import Call, Info, Turn
from denizen.tools.prebuilt import PREBUILT
from tests.world import World, as_text, in_a_hall


async def results(world: World, agent, at: int = 2) -> list[str]:
    """The results of one step, a line each."""
    return (await world.history(agent))[at].removeprefix("results: ").split("\n")


async def test_calls_of_one_response_run_in_their_order(world: World):
    """Parallel tool calls raced on the active space elsewhere: what was meant for one space went to the other."""
    ada = await world.agent("Ada")
    noor = await world.person("Noor")
    hall, attic = await world.space("Hall", noor, ada), await world.space("Attic", noor, ada)
    await world.restart(
        ada=scripted(
            [
                reply("In the hall."),
                call("enter_space", space_id=attic.id),
                reply("In the attic."),
                call("enter_space", space_id=hall.id),
                reply("Back in the hall."),
            ],
            "Walked around.",
        )
    )
    await world.say(noor, "Take a walk", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Take a walk", "Ada: In the hall.", "Ada: Back in the hall."]
    assert await world.transcript(attic) == ["Ada: In the attic."]


async def test_a_space_that_was_entered_stays_entered_for_the_next_steps(world: World):
    ada = await world.agent("Ada")
    noor = await world.person("Noor")
    hall, attic = await world.space("Hall", noor, ada), await world.space("Attic", noor, ada)
    await world.restart(ada=scripted(call("enter_space", space_id=attic.id), reply("Up here."), "Went up."))
    await world.say(noor, "Where are you?", hall)
    await world.run()
    assert await world.transcript(attic) == ["Ada: Up here."]
    assert await world.transcript(hall) == ["Noor: Where are you?"]


async def test_with_events_from_several_spaces_one_has_to_be_entered_first(world: World):
    ada = await world.agent("Ada", reply("Hello."), "Was in no space.")
    noor, bert = await world.person("Noor"), await world.person("Bert")
    third = await world.person("Third")
    hall = await world.space("Hall", noor, ada, third)
    attic = await world.space("Attic", bert, ada, third)
    await world.say(noor, "Hi", hall)
    await world.say(bert, "Hey", attic)
    await world.run()
    assert await results(world, ada) == [
        (
            'send_message → {"success": false, "error": "invalid_input", "message": '
            '"No space is active: the events come from several spaces. Name one of your spaces in '
            'space_id."}'
        )
    ]
    assert await world.transcript(hall) == ["Noor: Hi"]
    assert await world.transcript(attic) == ["Bert: Hey"]


async def test_an_agent_that_was_taken_out_of_a_space_is_in_no_space_when_it_reads_what_was_said_there(world: World):
    """It is told so at once, and can enter another; nothing of its cycle belongs to the space it has left."""
    ada = await world.agent("Ada", reply("Hello."), "Not there any more.")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Hello?", hall)
    await world.denizen.spaces.leave(hall, ada)
    await world.run()
    (told,) = await results(world, ada)
    assert "You are not a member of any space" in told
    assert await world.transcript(hall) == ["Noor: Hello?"]


async def test_an_agent_taken_out_of_one_of_its_spaces_is_told_to_enter_another(world: World):
    ada = await world.agent("Ada", reply("Hello."), "Not there any more.")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.space("Attic", noor, ada)
    await world.say(noor, "Hello?", hall)
    await world.denizen.spaces.leave(hall, ada)
    await world.run()
    (told,) = await results(world, ada)
    assert "you are no longer a member of the space that the events come from. Name one of your spaces" in told


async def test_wrong_calls_are_answered_so_that_the_model_can_correct_itself(world: World):
    """Whatever a model writes, each call gets its result and the cycle goes on."""

    @tool
    def add(a: int, b: int = 0) -> int:
        """Add two numbers."""
        return a + b

    ada, noor, hall = await in_a_hall(
        world,
        [
            call("fly", to="the moon"),
            Call("send_message", '{"text": "unfinished'),
            Call("send_message", "[1, 2]"),
            call("send_message"),
            call("send_message", text="Hi", loudly=True),
            call("send_message", text="   "),
            call("enter_space", space_id=7),
            call("read_messages", limit=1000),
            call("add", a="many"),
            Call("add", '{"a": 1'),
            call("add", a=1, c=2),
            call("add", a=1, b=2),
            Call("read_messages", ""),
            reply("Sorted it out."),
        ],
        "Tried many things.",
        tools=[add],
    )
    await world.say(noor, "Try", hall)
    await world.run()

    refusal = '{{"success": false, "error": "invalid_input", "message": "{}"}}'

    names = [*(each.name for each in PREBUILT), "add"]

    def wrong(name: str, problem: str) -> str:
        return f"{name} → " + refusal.format(f"{name} was not called, because its arguments are wrong: {problem}.")

    assert await results(world, ada) == [
        "fly → " + refusal.format(f"There is no tool 'fly'. Your tools are: {', '.join(names)}."),
        wrong("send_message", "arguments: Invalid JSON: EOF while parsing a string at line 1 column 20"),
        wrong("send_message", "arguments: Input should be an object"),
        wrong("send_message", "text: Field required"),
        (
            'send_message → {"success":true,"messageId":"<Hall 2>",'
            '"note":"Left out, because send_message has no such argument: loudly"}'
        ),
        "send_message → " + refusal.format("A message needs some text."),
        wrong("enter_space", "space_id: Input should be a valid string"),
        wrong("read_messages", "limit: Input should be less than or equal to 100"),
        wrong("add", "a: Input should be a valid integer, unable to parse string as an integer"),
        wrong("add", "arguments: Invalid JSON: EOF while parsing an object at line 1 column 7"),
        "add → 1",
        "[Left out, because add has no such argument: c]",
        "add → 3",
        'read_messages → [Space "Hall" | spaceId: <Hall>] Messages 1 to 2:',
        '1. 2026-01-05 09:00 Noor (human): "Try"',
        '2. 2026-01-05 09:00 You: "Hi"',
        'send_message → {"success":true,"messageId":"<Hall 3>"}',
    ]
    assert await world.transcript(hall) == ["Noor: Try", "Ada: Hi", "Ada: Sorted it out."]


async def test_independent_tools_run_together_and_others_in_order(world: World):
    order: list[str] = []
    both = asyncio.Barrier(2)

    @tool(independent=True)
    async def look(at: str) -> str:
        """Look at something."""
        order.append("look")
        await both.wait()  # passes only if two of these run at the same time
        return f"saw {at}"

    @tool
    async def step(name: str) -> str:
        """Do something that has to be in order."""
        order.append(f"begin {name}")
        await asyncio.sleep(0)
        order.append(f"end {name}")
        return name

    ada, noor, hall = await in_a_hall(
        world,
        [
            call("look", at="sun"),
            call("look", at="moon"),
            call("step", name="one"),
            call("step", name="two"),
            reply("Looked."),
            call("step", name="three"),
            call("look", at="door"),
            call("look", at="wall"),
        ],
        "Looked around.",
        tools=[look, step],
    )
    await world.say(noor, "Look", hall)
    await world.run()

    assert order == [
        *["look", "look", "begin one", "end one", "begin two", "end two"],
        *["begin three", "end three", "look", "look"],
    ]
    assert await results(world, ada) == [
        "look → saw sun",
        "look → saw moon",
        "step → one",
        "step → two",
        'send_message → {"success":true,"messageId":"<Hall 2>"}',
        "step → three",
        "look → saw door",
        "look → saw wall",
    ]


async def test_a_tool_that_takes_too_long_is_not_waited_for(world: World):
    @tool(seconds=0.01)
    async def hang() -> str:
        """Never come back."""
        await asyncio.Event().wait()
        return "unreachable"

    ada, noor, hall = await in_a_hall(world, call("hang"), reply("It hangs."), "Told Noor.", tools=[hang])
    await world.say(noor, "Try it", hall)
    await world.run()
    assert await results(world, ada) == [
        (
            "hang → hang has not answered within 0.01 seconds. Whether it did its work is unknown. "
            "If it answers later, the result will reach you as an event."
        )
    ]
    assert await world.transcript(hall) == ["Noor: Try it", "Ada: It hangs."]


async def test_what_a_tool_raises_is_told_to_the_model(world: World):
    @tool
    async def explode() -> str:
        """Raise."""
        raise RuntimeError("boom")

    @tool
    async def time_out() -> str:
        """Fail as a network library would."""
        raise TimeoutError("connecting to printer")

    @tool
    def explode_in_a_thread() -> str:
        """Raise, elsewhere."""
        raise KeyError("paper")

    ada, noor, hall = await in_a_hall(
        world,
        [call("explode"), call("time_out"), call("explode_in_a_thread")],
        reply("Everything broke."),
        "Told Noor.",
        tools=[explode, time_out, explode_in_a_thread],
    )
    await world.say(noor, "Print it", hall)
    await world.run()
    assert await results(world, ada) == [
        "explode → explode failed: RuntimeError: boom",
        "time_out → time_out failed: TimeoutError: connecting to printer",
        "explode_in_a_thread → explode_in_a_thread failed: KeyError: 'paper'",
    ]
    assert await world.transcript(hall) == ["Noor: Print it", "Ada: Everything broke."]


async def test_a_tool_whose_work_is_cancelled_has_failed_and_its_cycle_goes_on(small_world: World):
    """A library may cancel what a tool waits for. Nobody has told the agent to stop."""

    @tool(on_crash="retry")
    async def look() -> str:
        """Wait for something that will not be."""
        raise asyncio.CancelledError

    @tool(background=True)
    async def build() -> str:
        """The same, on the side."""
        raise asyncio.CancelledError

    turns = [call("look"), call("build")], "Tried both.", reply("Nothing worked."), "Told Noor."
    ada, noor, hall = await in_a_hall(
        small_world, *turns, tools=[look, build], cycle=CycleSettings(silent_reply="ignore")
    )
    await small_world.say(noor, "Look, and build", hall)
    await small_world.run()
    assert (await results(small_world, ada))[0] == "look → look failed: it was cancelled."
    assert '"Failed: it was cancelled."' in await small_world.newest_inbox(ada)
    assert await small_world.transcript(hall) == ["Noor: Look, and build", "Ada: Nothing worked."]


async def test_a_plain_function_runs_in_a_thread_and_does_not_stop_the_loop(small_world: World):
    world = small_world
    released = threading.Event()
    begun, loop = asyncio.Event(), asyncio.get_running_loop()

    @tool
    def wait_for_the_loop() -> str:
        """Block until the event loop has done something meanwhile."""
        loop.call_soon_threadsafe(begun.set)
        assert released.wait(60)
        return "released"

    _, noor, hall = await in_a_hall(
        world, call("wait_for_the_loop"), reply("Waited."), "Told Noor.", tools=[wait_for_the_loop]
    )
    await world.say(noor, "Wait", hall)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(world.run())
        await begun.wait()
        # The loop is free while the tool blocks: this write goes through, and only then is the tool released.
        await world.person("Somebody else")
        released.set()
    assert await world.transcript(hall) == ["Noor: Wait", "Ada: Waited."]


async def test_a_long_result_is_cut_and_can_be_read_to_its_end(world: World):
    text = "".join(f"{number:07d} " for number in range(1_000))

    @tool
    async def print_much() -> str:
        """Print much."""
        return text

    def read_on(messages: list[ModelMessage], _info: Info) -> Turn:
        said = as_text(messages[-1])
        if said.startswith("[INBOX"):
            return call("print_much")
        if match := re.search(r'read_entry\("(result:[^"]+)", offset=(\d+)\)', said):
            return call("read_entry", entry=match[1], offset=int(match[2]))
        return "Read it all." if said.startswith("send_message") else reply("Read it all.")

    seen: list[str] = []
    ada, noor, hall = await in_a_hall(
        world, model=forever(read_on), tools=[print_much], window={"result_characters": 1_000}
    )
    await world.say(noor, "Read", hall)
    await world.run()

    entries = [line for line in await world.history(ada) if line.startswith("results: ")]
    assert len(entries[0].removeprefix("results: print_much → ")) <= 1_000
    seen.append(entries[0].removeprefix("results: print_much → ").split("\n… [cut at")[0])
    for entry in entries[1:-1]:
        assert len(entry.removeprefix("results: read_entry → ")) <= 1_000
        seen.append(entry.split("]\n", 1)[1].split("\n… [read_entry")[0])
    assert "".join(seen) == text
    assert await world.transcript(hall) == ["Noor: Read", "Ada: Read it all."]


async def test_nobody_reads_what_was_cut_for_another(small_world: World):
    @tool
    def look_up() -> str:
        """Look something up."""
        return "secret " * 5_000

    world = small_world
    ada, noor, hall = await in_a_hall(world, call("look_up"), reply("Found it."), "Told Noor.", tools=[look_up])
    await world.say(noor, "Look it up", hall)
    await world.run()
    pointer = re.search(r'read_entry\("(result:[^"]+)"', (await world.history(ada))[2])
    assert pointer is not None
    bee = await world.agent("Bee", call("read_entry", entry=pointer[1]), reply("I cannot."), "Told Noor.")
    attic = await world.space("Attic", noor, bee)
    await world.say(noor, "What does it say?", attic)
    await world.run()
    (told,) = await results(world, bee)
    assert '"error": "not_found"' in told


async def test_results_may_hold_any_text_and_any_value(world: World):
    @tool
    async def odd() -> str:
        """Say what no database can hold."""
        return "a\0b \ud83d"

    @tool
    async def structured() -> dict[str, object]:
        """Give data."""
        return {"name": "Zoë", "parts": [1, 2.5, None, True]}

    @tool
    async def nothing() -> None:
        """Give nothing."""

    ada, noor, hall = await in_a_hall(
        world,
        [call("odd"), call("structured"), call("nothing"), reply("Odd.")],
        "Told.",
        tools=[odd, structured, nothing],
    )
    await world.say(noor, "Odd?", hall)
    await world.run()
    assert await results(world, ada) == [
        "odd → a\ufffdb \ufffd",
        'structured → {"name":"Zoë","parts":[1,2.5,null,true]}',
        "nothing → null",
        'send_message → {"success":true,"messageId":"<Hall 2>"}',
    ]


async def test_thinking_and_text_beside_calls_are_kept_as_they_were(world: World):
    ada, noor, hall = await in_a_hall(world, [think("Noor is polite."), "I greet.", reply("Hello.")], "Greeted Noor.")
    await world.say(noor, "Hi", hall)
    await world.run()
    assert (await world.history(ada))[1:] == [
        'response: (Noor is polite.)\nI greet.\nsend_message {"text":"Hello."}',
        'results: send_message → {"success":true,"messageId":"<Hall 2>"}',
        "response: Greeted Noor.",
    ]


async def test_numbers_that_no_database_takes_are_numbers_all_the_same(world: World):
    """They failed the cycle, and in the end killed the event."""
    huge = 10**30
    calls = [
        call("read_messages", before=huge),
        call("read_messages", after=huge),
        call("read_entry", entry=f"cycles:{huge}"),
    ]
    ada, noor, hall = await in_a_hall(world, calls, reply("Nothing new."), "Looked around.")
    await world.say(noor, "Look far", hall)
    await world.run()
    whole, nothing, cycles = re.split(r"\n(?=read_messages|read_entry)", (await world.history(ada))[2])
    assert "Look far" in whole
    assert "Look far" not in nothing
    assert "There is no entry" in cycles


async def test_an_agent_reads_what_was_said_in_pages(world: World):
    ada, noor, hall = await in_a_hall(
        world,
        [
            call("read_messages", limit=2),
            call("read_messages", before=3, limit=5),
            call("read_messages", after=3),
            call("read_messages", after=99),
            reply("Read."),
        ],
        "Read.",
    )
    for text in ("one", "two", "three", "four"):
        await world.say(noor, text, hall)
    await world.run()
    title = '[Space "Hall" | spaceId: <Hall>]'
    at = "2026-01-05 09:00 Noor (human)"
    assert (await world.history(ada))[2] == (
        f'results: read_messages → {title} Messages 3 to 4:\n3. {at}: "three"\n4. {at}: "four"\n'
        f'read_messages → {title} Messages 1 to 2:\n1. {at}: "one"\n2. {at}: "two"\n'
        f'read_messages → {title} Messages 4 to 4:\n4. {at}: "four"\n'
        f"read_messages → {title} No messages.\n"
        'send_message → {"success":true,"messageId":"<Hall 5>"}'
    )


async def test_what_is_logged_in_a_cycle_carries_its_id(small_world: World):
    """And nothing that is logged after it does."""
    bound: list[dict[str, object]] = []

    @tool(effect=False)
    async def look() -> str:
        """Look."""
        bound.append(structlog.contextvars.get_contextvars())
        return "Nothing."

    ada = await small_world.agent("Ada", call("look"), "Looked.", call("look"), "Looked.", tools=[look])
    for _ in range(2):
        await small_world.denizen.agents.trigger(ada, "bell")
        await small_world.run()
    assert bound == [{"agent": ada.id, "cycle": each.id} for each in await small_world.cycles(ada)]
    assert "cycle" not in structlog.contextvars.get_contextvars()
