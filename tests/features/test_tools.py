"""Tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from denizen import call, reply, scripted, tool
from denizen.access.vault import new_key
from denizen.agents.registry import Agent
from denizen.models.scripted import Turn
from denizen.spaces.directory import Space
from denizen.tools.settings import McpServer
from tests.server.conftest import served
from tests.tools import test_mcp
from tests.tools.test_mcp import LIGHT
from tests.tools.test_outside_in_life import Service, service, statuses  # noqa: F401  fixture
from tests.world import World, listening, open_world

BUILT_IN = (
    "enter_space",
    "send_message",
    "read_messages",
    "read_entry",
    "recall",
    "set_memories",
    "set_goals",
    "set_timer",
    "skip",
)


async def asked(world: World, *turns: Turn, **options: Any) -> tuple[Agent, Space]:
    """Noor asks Ada something in a space of the two, and Ada thinks."""
    ada, noor = await world.agent("Ada", *turns, **options), await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Please", hall)
    await world.run()
    return ada, hall


async def test_every_agent_has_built_in_tools(world: World) -> None:
    """Every agent can send and read messages, change spaces, search its past, set memories, goals and timers, and skip.

    Docs: tools.md
    Differs: they are few, because every request pays for them. `read_entry` also lists plans, memories, the inbox and
    past cycles.
    """
    ada, _ = await asked(world, reply("Hi."), "Greeted Noor.")
    assert world.model(ada).infos[0].tools == BUILT_IN


async def test_a_python_function_is_a_tool(world: World) -> None:
    """A Python function becomes a tool: its signature is the schema, its docstring the description.

    Docs: tools.md
    """

    @tool
    def weather(city: str) -> str:
        """Tells the weather.

        Args:
            city: Where.
        """
        return f"Sunny in {city}."

    ada, _ = await asked(world, call("weather", city="Oslo"), reply("Sunny."), "Told Noor.", tools=[weather])
    offered = world.model(ada).infos[0].definitions[-1]
    assert (offered.name, offered.description) == ("weather", "Tells the weather.")
    assert offered.parameters_json_schema["properties"]["city"]["description"] == "Where."
    assert (await world.history(ada))[2] == "results: weather → Sunny in Oslo."


async def test_the_result_of_a_tool_is_remembered(world: World) -> None:
    """Calls of tools and their results stay in the history of the agent: it does not need to call them again.

    Docs: consciousness.md
    """

    @tool
    async def weather() -> str:
        """Tells the weather."""
        return "Sunny."

    turns = call("weather"), reply("Sunny."), "Told Noor.", reply("As I said, sunny."), "Told Noor again."
    ada, hall = await asked(world, *turns, tools=[weather])
    await world.say(await world.denizen.people.find("noor"), "What was it?", hall)
    await world.run()
    assert "tool: weather → Sunny." in (await world.prompts(ada))[-1]


async def test_an_error_of_a_tool_is_told_to_the_model(world: World) -> None:
    """If a tool fails, the model is told what went wrong, and decides what to do.

    Docs: tools.md
    """

    @tool
    async def weather() -> str:
        """Tells the weather."""
        raise RuntimeError("no connection")

    ada, hall = await asked(world, call("weather"), reply("I cannot tell."), "Failed.", tools=[weather])
    assert "no connection" in (await world.history(ada))[2]
    assert (await world.transcript(hall))[-1] == "Ada: I cannot tell."


async def test_an_unknown_tool_is_told_to_the_model(world: World) -> None:
    """If a model calls a tool that does not exist, it is told so with the most similar names.

    Docs: cycles.md
    """
    ada, _ = await asked(world, call("send_mesage", text="Hi."), reply("Hi."), "Greeted Noor.")
    assert "send_message" in (await world.history(ada))[2]


async def test_wrong_arguments_are_told_to_the_model(world: World) -> None:
    """If the arguments of a call are wrong, the tool is not called, and the model is told what is wrong.

    Docs: tools.md
    """
    ada, hall = await asked(world, call("send_message", words="Hi."), reply("Hi."), "Greeted Noor.")
    assert "text" in (await world.history(ada))[2]
    assert (await world.transcript(hall))[1:] == ["Ada: Hi."]


async def test_calls_of_one_answer_run_in_order(world: World) -> None:
    """The calls of one answer run one after the other, in their order.

    Docs: tools.md
    """
    order: list[int] = []

    @tool
    async def work(number: int) -> str:
        """Work."""
        order.append(number)
        return "done"

    await asked(world, [call("work", number=each) for each in (1, 2, 3)], reply("Done."), "Worked.", tools=[work])
    assert order == [1, 2, 3]


async def test_a_long_result_is_cut_and_can_be_read_on(world: World) -> None:
    """A long result is cut, and says how to read the rest.

    Docs: tools.md
    """

    @tool
    async def log() -> str:
        """Read the log."""
        return "z" * 40_000

    ada, _ = await asked(world, call("log"), reply("Long."), "Read it.", tools=[log])
    result = (await world.history(ada))[2]
    assert len(result) < 17_000
    assert 'read_entry("result:' in result


async def test_an_agent_looks_at_its_past_cycles(world: World) -> None:
    """An agent can list its own past cycles with their summaries.

    Docs: tools.md
    """
    turns = reply("Hi."), "Greeted Noor.", call("read_entry", entry="cycles"), reply("I greeted you."), "Told Noor."
    ada, hall = await asked(world, *turns)
    await world.say(await world.denizen.people.find("noor"), "What did you do?", hall)
    await world.run()
    assert "Greeted Noor." in (await world.history(ada))[6]


async def test_a_service_is_a_tool(world: World, service: Service) -> None:  # noqa: F811
    """A request to a service is a tool that needs no Python: it is part of the definition of the agent.

    Docs: tools.md
    """
    ordering = service.tool("/orders")
    ada, _ = await asked(world, call("order", number=4), reply("Ordered."), "Done.", tools=[ordering])
    assert [json.loads(body) for body, _ in service.asked] == [{"number": 4}]
    assert (await world.history(ada))[2] == "results: order → /orders has it"


async def test_a_service_answers_later(service: Service) -> None:  # noqa: F811
    """A tool may answer later: the agent is told that the result is pending and continues; the result is an event.

    Docs: tools.md
    """
    turns = call("order", number=4), reply("I ordered it."), "Done.", reply("It is here."), "Told Noor."
    async with open_world("sqlite://", secret_key=new_key()) as world, served(world) as house:
        ada, hall = await asked(world, *turns, tools=[service.tool("/later", mode="async")])
        first = json.loads((await world.history(ada))[2].removeprefix("results: order → "))
        assert (first["status"], first["response"]) == ("pending", "/later has it")
        path = service.asked[0][1]["Denizen-Answer-To"].removeprefix("http://127.0.0.1:8420")
        assert await statuses(house, path) == [200]
        await world.run()
        assert (await world.transcript(hall))[1:] == ["Ada: I ordered it.", "Ada: It is here."]
        assert '[Tool result "order" | call: ' in await world.newest_inbox(ada)


async def test_a_tool_runs_in_the_background(world: World) -> None:
    """A tool that takes long runs in the background: the cycle does not wait, and the result comes as an event.

    Docs: tools.md
    """

    @tool(background=True)
    async def build() -> str:
        """Build it."""
        return "Built."

    turns: list[Turn] = [[call("build"), reply("Building.")], "Waiting.", reply("It is built."), "Told Noor."]
    ada, hall = await asked(world, *turns, tools=[build])
    assert (await world.transcript(hall))[1:] == ["Ada: Building.", "Ada: It is built."]
    assert '"Built."' in await world.newest_inbox(ada)


async def test_an_unreachable_mcp_server_is_an_alert(tmp_path: Path) -> None:
    """An MCP server that cannot be reached is an alert under Health, with what its program wrote to standard error.

    Docs: tools.md#mcp-servers
    """
    await test_mcp.test_a_broken_server_is_an_alert_of_the_house(tmp_path)


async def test_agent_skills() -> None:
    """Agent Skills (`SKILL.md` folders): the self lists name and description, the agent reads the rest when needed.

    Docs: tools.md#skills
    """
    skill = {"description": "Bakes rye bread.", "text": "Let it rise for twelve hours."}
    async with open_world("sqlite://") as world:
        noor = await world.person("Noor")
        turns = call("read_entry", entry="skill:bread"), reply("Twelve hours."), "Told Noor."
        ada = await world.agent("Ada", *turns, skills={"bread": skill})
        room = await world.space("Room", noor, ada)
        await world.say(noor, "How long?", room)
        await world.run()
        first, second, *_ = world.model(ada).requests
    assert "bread: Bakes rye bread." in str(first[0])
    assert "twelve hours" not in str(first)
    assert "Let it rise for twelve hours." in str(second)


async def test_tools_of_an_mcp_server(world: World, tmp_path: Path) -> None:
    """The tools of an MCP server are tools of the agent.

    Docs: tools.md
    """
    server = McpServer(command=sys.executable, args=("-I", "-S", LIGHT), env={"FOLDER": str(tmp_path)})
    ada, _ = await asked(world, call("add", a=2, b=3), reply("Five."), "Added.", mcp={"files": server})
    assert (await world.history(ada))[2] == "results: add → 5"


async def a_visible_call(world: World) -> tuple[list[dict[str, Any]], Any]:
    """The frames of a visible call, and the call."""

    @tool(visible=True)
    async def look_up(word: str) -> str:
        """Look it up."""
        return f"{word}: a place"

    model = scripted(call("look_up", word="hall"), reply("A place."), "Looked it up.", chunk=5)
    ada, noor = await world.agent("Ada", model=model, tools=[look_up]), await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "What is a hall?", hall)
    async with listening(world, hall) as heard:
        await world.run()
        frames = await heard()
    (shown,) = await world.denizen.calls.list(hall)
    return [each for each in frames if each.get("id") == shown.id], shown


async def test_a_visible_call_is_shown_with_its_result(world: World) -> None:
    """The calls of a tool that is declared visible are shown to the people in the space, with their results.

    Docs: tools.md
    """
    frames, shown = await a_visible_call(world)
    assert (shown.tool, json.loads(shown.arguments), shown.result) == ("look_up", {"word": "hall"}, "hall: a place")
    assert [each["state"] for each in frames if each["type"] == "call.changed"] == ["waiting", "answered"]


async def test_the_arguments_of_a_visible_call_stream(world: World) -> None:
    """The arguments of a visible call stream to the space while the model writes them.

    Docs: streams.md
    """
    frames, _ = await a_visible_call(world)
    deltas = [each["text"] for each in frames if each["type"] == "call.delta"]
    assert frames[0]["type"] == "call.started"
    assert len(deltas) > 1
    assert json.loads("".join(deltas)) == {"word": "hall"}


async def test_other_calls_are_not_shown(world: World) -> None:
    """Calls of other tools are not shown in the space.

    Docs: tools.md
    """

    @tool
    async def look_up() -> str:
        """Look it up."""
        return "a place"

    _, hall = await asked(world, call("look_up"), reply("A place."), "Looked it up.", tools=[look_up])
    assert await world.denizen.calls.list(hall) == []


async def test_skip_is_always_offered(world: World) -> None:
    """Every request offers `skip`, with an optional reason.

    Docs: cycles.md
    """
    ada, _ = await asked(world, reply("Hi."), "Greeted Noor.", cycle={"phases": [{"reads": True, "strict": True}]})
    (offered,) = [each for each in world.model(ada).infos[0].definitions if each.name == "skip"]
    assert list(offered.parameters_json_schema["properties"]) == ["reason"]
    assert "required" not in offered.parameters_json_schema


async def test_the_result_of_a_message_is_its_id(world: World) -> None:
    """The result of `send_message` says that it was sent, and the id of the message.

    Docs: tools.md
    """
    ada, _ = await asked(world, reply("Hi."), "Greeted Noor.")
    assert (await world.history(ada))[2] == 'results: send_message → {"success":true,"messageId":"<Hall 2>"}'
