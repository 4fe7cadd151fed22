"""The window: every request within its budget, whole cycles only, and a pointer that survives."""

from __future__ import annotations

from itertools import pairwise

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart

from denizen import call, forever, reply, tool
from denizen.agents.registry import Agent
from denizen.consciousness.log import Entry
from denizen.consciousness.settings import WindowSettings
from denizen.consciousness.window import budget, keep
from denizen.ids import CycleId
from denizen.models.scripted import Decide, Info, ScriptedModel, Turn
from denizen.models.tokens import estimate_message
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import OutsideTool, Toolbox
from tests.world import World, as_text, open_world

TOOLS = Toolbox(PREBUILT).tokens
"""What the tools that every agent has take of each request."""


class SmallModel(ScriptedModel):
    """A model that takes only so much."""

    def __init__(self, decide: Decide, tokens: int) -> None:
        super().__init__(decide, name="small", chunk=12, pause=None, record=True)
        self._tokens = tokens

    @property
    def context_window(self) -> int | None:
        return self._tokens


def answering(messages: list[ModelMessage], info: Info) -> Turn:
    """Answers each message with a long one, and ends with a note."""
    return reply(f"Answer {info.number} " + "a" * 300) if as_text(messages[-1]).startswith("[INBOX") else "Answered."


def assert_fits(request: list[ModelMessage], tokens: int, *tools: OutsideTool) -> None:
    assert sum(map(estimate_message, request)) + Toolbox([*PREBUILT, *tools]).tokens <= tokens


def assert_whole(request: list[ModelMessage]) -> None:
    """Every call is followed by its result and every result follows its call; whole cycles follow self and layers."""
    assert as_text(window_of(request)[0]).startswith("[INBOX")
    for at, message in enumerate(request):
        if isinstance(message, ModelResponse):
            calls = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
            if calls:
                after = request[at + 1].parts
                assert [part.tool_call_id for part in after if isinstance(part, ToolReturnPart)] == calls
        elif isinstance(message.parts[0], ToolReturnPart):
            assert isinstance(request[at - 1], ModelResponse)


def window_of(request: list[ModelMessage]) -> list[ModelMessage]:
    """What comes after the self and the layers."""
    layered = as_text(request[1]).startswith(("[COMPACTED MEMORY", "[EARLIER CYCLES"))
    return request[2:] if layered else request[1:]


async def long_life(world: World, agent: Agent, cycles: int) -> None:
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, agent)
    for number in range(cycles):
        await world.say(noor, f"Question {number} " + "q" * 300, hall)
        await world.run()


def entries(*cycles: str, tokens: int = 10) -> list[Entry]:
    """A log of entries that have 10 tokens each, one for each cycle named."""
    said = ModelRequest(parts=[UserPromptPart("Hello.")])
    return [Entry(seq, CycleId(cycle), "inbox", said, tokens, "") for seq, cycle in enumerate(cycles, start=1)]


@pytest.mark.parametrize(("tokens", "first"), [(0, 5), (9, 5), (10, 4), (29, 4), (30, 2), (39, 2), (49, 2), (50, 0)])
def test_whole_cycles_stay_up_to_and_with_the_last_token(tokens: int, first: int):
    """What fills the room exactly fits it."""
    life = entries("a", "a", "b", "b", "c")
    assert keep(life, {}, target=tokens, half=0, recent_cycles=0).first == first


@pytest.mark.parametrize(
    ("target", "half", "recent_cycles", "first"),
    [
        (10, 10, 3, 4),  # no room for more than one, however many are recent
        (10, 20, 3, 3),  # of the recent, as many as half the window holds
        (10, 50, 3, 2),  # all of the recent, but no older ones, though half the window would hold them
        (40, 20, 3, 1),  # the target holds more than the recent anyway
        (10, 50, 9, 0),  # more are recent than there are
        (10, 0, 3, 4),  # what fits the target stays, whatever half the window holds
    ],
)
def test_recent_cycles_stay_beyond_the_target_as_far_as_half_the_window_holds_them(
    target: int, half: int, recent_cycles: int, first: int
):
    life = entries("a", "b", "c", "d", "e")
    assert keep(life, {}, target=target, half=half, recent_cycles=recent_cycles).first == first


@pytest.mark.parametrize("beside_tools", [1_500, 2_500, 5_000])
async def test_no_request_of_a_long_life_is_over_the_owners_budget(world: World, beside_tools: int):
    tokens = TOOLS + beside_tools
    ada = await world.agent("Ada", model=forever(answering), window={"max_tokens": tokens})
    await long_life(world, ada, 25)
    requests = world.model(ada).requests
    assert len(requests) == 50
    for request in requests:
        assert_fits(request, tokens)
        assert_whole(request)
    assert as_text(window_of(requests[-1])[0]) != as_text(requests[0][1])


@pytest.mark.parametrize("beside_tools", [1_500, 4_000])
async def test_no_request_is_over_what_a_small_model_takes(world: World, beside_tools: int):
    context = (TOOLS + beside_tools) * 4 // 3
    ada = await world.agent("Ada", model=SmallModel(answering, context), profile="normal")
    await long_life(world, ada, 20)
    allowed = budget(WindowSettings(), context, Toolbox(PREBUILT).tokens)
    assert allowed.request + allowed.output <= context
    requests = world.model(ada).requests
    assert len(requests) == 40
    for request, info in zip(requests, world.model(ada).infos, strict=True):
        assert_fits(request, allowed.request)
        assert_whole(request)
        assert (info.settings or {}).get("max_tokens") == allowed.output


async def test_a_cycle_full_of_long_results_stays_within_the_budget_and_ends(world: World):
    @tool(effect=False)
    async def read_file(name: str) -> str:
        """Read a file."""
        return name * 20_000

    def decide(_messages: list[ModelMessage], info: Info) -> Turn:
        return (
            [call("read_file", name="a"), call("read_file", name="b")]
            if info.number % 2
            else call("read_file", name="c")
        )

    ada = await world.agent(
        "Ada", model=forever(decide), tools=[read_file], window={"max_tokens": 8_000}, cycle={"max_steps": 50}
    )
    await world.denizen.agents.trigger(ada, "bell")
    await world.run()
    for request in world.model(ada).requests:
        assert_fits(request, 8_000, read_file)
        assert_whole(request)
    assert [each.stop_reason for each in await world.cycles(ada)] == ["token_budget"]


async def test_when_the_window_moves_many_cycles_leave_at_once_so_that_it_is_rare(world: World):
    """Every move spoils the provider's cache: most requests begin as the one before them did."""
    ada = await world.agent("Ada", model=forever(answering), window={"max_tokens": TOOLS + 5_000})
    await long_life(world, ada, 60)
    firsts = [as_text(window_of(request)[0]) for request in world.model(ada).requests]
    moves = sum(before != after for before, after in pairwise(firsts))
    assert 0 < moves <= len(firsts) / 8


async def test_what_left_the_window_is_still_in_the_log(world: World):
    ada = await world.agent("Ada", model=forever(answering), window={"max_tokens": TOOLS + 2_000})
    await long_life(world, ada, 25)
    entries = await world.denizen.minds.log(ada)
    assert [entry.seq for entry in entries] == list(range(1, 25 * 4 + 1))
    assert [entry.kind for entry in entries] == ["inbox", "response", "results", "response"] * 25


async def test_the_window_begins_where_it_did_after_a_restart(ready_url: str):
    async with open_world(ready_url) as world:
        ada = await world.agent("Ada", model=forever(answering), window={"max_tokens": TOOLS + 5_000})
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        for number in range(30):
            await world.say(noor, f"Question {number} " + "q" * 300, hall)
            await world.run()
        before = [as_text(message) for message in window_of(world.model(ada).requests[-1])]
        assert "Question 0 " not in "".join(before)

        await world.restart(ada=forever(answering))
        await world.say(noor, "And now?", hall)
        await world.run()
        shown = [as_text(message) for message in window_of(world.model(ada).requests[0])]

        entries = [as_text(entry.message) for entry in await world.denizen.minds.log(ada)]
        at = entries.index(shown[0])
        assert entries[at : at + len(shown)] == shown
        assert shown[-1].splitlines()[3].endswith('"And now?"')
        assert shown[0] in before


async def test_a_model_that_cannot_hold_even_the_self_is_an_error_that_says_so(world: World):
    ada = await world.agent("Ada", model=SmallModel(answering, 1_000), profile="normal")
    await world.denizen.agents.trigger(ada, "bell")
    await world.run()
    assert await world.ledger(ada) == [
        ("failure", "The model's context is too small for this agent's self, tools and inbox.")
    ]
    assert world.model(ada).requests == []
