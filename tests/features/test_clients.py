"""Clients."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers

from denizen import Entity, ModelRejected, Panel, call, forever, reply, scripted, think
from denizen.client import Client
from denizen.server.web_files import WebFiles
from tests.cli.conftest import Run, _logs_as_before, environ, ready_home, run  # noqa: F401  fixtures
from tests.hesitation import Hesitation
from tests.memory.conftest import known, remembering, utility, written
from tests.memory.test_keeping import a_conversation
from tests.panel.test_rounds import voices
from tests.server import test_a2a
from tests.server.conftest import House, served
from tests.server.test_mcp_server import client_of
from tests.server.test_mcp_server import text as text_of_result
from tests.server.test_on_behalf_of import answering, as_user, say, speaking_token, texts_in
from tests.server.test_openai import client, said
from tests.server.test_openai_options import WEATHER
from tests.server.test_panels import BOTH, speaking
from tests.server.test_resending import ask, counting, transcript, turns
from tests.server.test_side_tasks import TITLE, task_or_life
from tests.world import open_world


@asynccontextmanager
async def a_house(**options: Any) -> AsyncGenerator[tuple[House, Entity]]:
    """A server with a person; agents and panels answer."""
    async with open_world("sqlite://", **options) as world, served(world) as house, world.denizen.living():
        yield house, await world.person("Noor")


@asynccontextmanager
async def a_panel(model: Any, *advisors: Any) -> AsyncGenerator[tuple[House, Entity, Panel]]:
    async with a_house() as (house, noor):
        house.world.denizen.models.register("m", model)
        panel = await house.world.denizen.panels.create("Board", [noor], advisors=advisors, model="m")
        yield house, noor, panel


async def answered_round(house: House, noor: Entity, panel: Panel, text: str = "Well?") -> dict[str, Any]:
    """A round over HTTP, when everybody has answered."""
    path = f"/api/panels/{panel.id}/rounds"
    asked = (await house.call("POST", path, noor, json={"text": text})).json()
    await house.world.denizen.run_until_idle()
    return (await house.call("GET", f"{path}/{asked['id']}", noor)).json()


# Agents


async def test_an_answer_comes_as_markdown_and_as_plain_text() -> None:
    """An answer comes as Markdown, and as plain text for speech and logs.

    Docs: http.md
    """
    async with a_house() as (house, noor):
        await house.world.agent("Ada", reply("**It** did: `all` of it."), "Told Noor.")
        body = {"agent": "@ada", "text": "Did it pass?"}
        answer = (await house.call("POST", "/api/chat", noor, json=body)).json()
    assert answer["final_response"] == {"markdown": "**It** did: `all` of it.", "text": "It did: all of it."}
    [message] = answer["messages"]
    assert (message["text"], message["plain"]) == ("**It** did: `all` of it.", "It did: all of it.")


async def test_an_answer_comes_with_metadata_and_usage() -> None:
    """An answer of `/api/chat` has the metadata that you sent, and the tokens that it used.

    Docs: http.md
    """
    async with a_house() as (house, noor):
        await house.world.agent("Ada", reply("Yes."), "Told Noor.")
        body = {"agent": "@ada", "text": "Did it pass?", "metadata": {"color": "red"}}
        answer = (await house.call("POST", "/api/chat", noor, json=body)).json()
    assert answer["metadata"]["color"] == "red"
    assert answer["usage"]["input_tokens"] > answer["usage"]["output_tokens"] > 0


async def test_a_text_streams_while_it_is_written() -> None:
    """Readers of a space get the text of an agent piece by piece while it is written, and then the whole message.

    Docs: streams.md
    """
    hesitation, counted = Hesitation(), "**One** two three four five six seven."
    async with a_house() as (house, noor):
        ada = await house.world.agent("Ada", model=scripted(reply(counted), "Counted.", pause=hesitation))
        room = await house.world.space("Room", noor, ada)
        async with house.stream(noor, room) as stream:
            await house.say(noor, "Count!", room)
            await stream.until("stream.delta")
            hesitation.may_go_on.set()
            await stream.until("message")
    deltas = [each.data["text"] for each in stream.seen if each.name == "stream.delta"]
    assert len(deltas) > 1
    assert "".join(deltas) == stream.seen[-1].data["text"] == counted


async def test_the_summary_of_a_conversation_can_be_read() -> None:
    """The summary of a conversation can be read at any time, as Markdown and as JSON.

    Docs: memory.md#conversation-summaries
    """
    async with open_world("sqlite://", memory=remembering()) as world, served(world) as house:
        utility(world, written("They **met**.", facts=[known("It rains.", 1)]))
        noor, kitchen = await a_conversation(world, 4)
        await world.denizen.memory.summarize(kitchen)
        told = (await house.call("GET", f"/api/spaces/{kitchen.id}/memory", noor)).json()
    assert (told["summary_markdown"], told["upto"]) == ("They **met**.", 2)
    assert [each["text"] for each in told["memory_json"]["facts"]] == ["It rains."]


async def test_agents_are_models_for_clients_of_openai() -> None:
    """For clients of OpenAI's API each agent is a model.

    Docs: openai.md
    """
    async with a_house() as (house, noor):
        await house.world.agent("Ada", reply("It did."), "Told Noor.")
        async with client(house, noor) as openai:
            answer = await openai.chat.completions.create(model="ada", messages=said("Did it pass?"))
    assert answer.choices[0].message.content == "It did."


async def test_each_user_of_a_chat_program_is_a_person() -> None:
    """Each user of a chat program such as Open WebUI is a person with a space of their own, behind one token.

    Docs: openai.md#people-behind-a-program
    """
    async with a_house() as (house, noor):
        await house.world.agent("Ada", model=forever(answering))
        _, secret = await speaking_token(house, noor)
        sams = await say(house, secret, "My code is 4711.", as_user("1", "Sam"))
        mias = await say(house, secret, "What is Sam's code?", as_user("2", "Mia"))
        assert [who for who, _ in await texts_in(house.world, sams)] == ["Sam", "Ada"]
        assert [who for who, _ in await texts_in(house.world, mias)] == ["Mia", "Ada"]


async def test_titles_are_no_part_of_an_agents_life() -> None:
    """Titles, tags and follow-up questions of chat programs are answered outside an agent's life.

    Docs: openai.md#titles-and-other-side-tasks
    """
    async with a_house() as (house, noor):
        ada = await house.world.agent("Ada", model=forever(task_or_life))
        async with client(house, noor) as openai:
            answer = await openai.chat.completions.create(model="ada", messages=said(TITLE))
        assert await house.world.cycles(ada) == []
    assert answer.choices[0].message.content == '{"title": "The build"}'


async def test_regenerating_says_nothing_twice() -> None:
    """A chat program that retries or regenerates says a message once; the agent gives another answer to it.

    Docs: openai.md#retries-regeneration-and-parallel-requests
    """
    async with a_house() as (house, noor):
        await house.world.agent("Ada", model=forever(counting))
        for _ in range(2):
            await ask(house, noor, turns("Hi"))
        assert await transcript(house, noor) == ["Hi", "Answer 1.", "Answer 2."]


async def test_a_program_gives_an_agent_tools_of_its_own() -> None:
    """A client of OpenAI's API sends its own tools with a message; the agent calls them and reads their results.

    Docs: openai.md#openais-api
    """
    async with a_house() as (house, noor):
        await house.world.agent("Ada", call("weather", town="Oslo"), reply("It rains."), "Told Noor.")
        async with client(house, noor) as openai:
            asked = said("Weather?")
            first = await openai.chat.completions.create(model="ada", messages=asked, tools=[WEATHER])
            [called] = first.choices[0].message.tool_calls or []
            result: Any = {"role": "tool", "tool_call_id": called.id, "content": "Rain"}
            answer = await openai.chat.completions.create(model="ada", messages=[*asked, result], tools=[WEATHER])
    assert answer.choices[0].message.content == "It rains."


async def test_a_program_is_told_which_of_its_settings_are_ignored() -> None:
    """A program that sends settings for a model, such as `temperature`, is told that they have no effect on an agent.

    Docs: openai.md
    Differs: an agent has its own settings and instructions. What a program cannot do without, such as `logprobs`, is
    refused.
    """
    async with a_house() as (house, noor), client(house, noor) as noors:
        await house.world.agent("Ada", reply("It did."), "Told Noor.")
        answer = await noors.chat.completions.with_raw_response.create(
            model="ada", messages=said("Did it pass?"), temperature=0.2
        )
    assert answer.headers["denizen-notice"].startswith("Ignored: temperature, system messages.")


async def test_the_responses_api_of_openai() -> None:
    """Clients of OpenAI's Responses API talk to agents, and continue with `previous_response_id`.

    Docs: openai.md#responses
    """
    async with a_house() as (house, noor):
        await house.world.agent("Ada", model=forever(counting))
        async with client(house, noor) as openai:
            first = await openai.responses.create(model="ada", input="Hi")
            second = await openai.responses.create(model="ada", input="And?", previous_response_id=first.id)
    assert (first.output_text, second.output_text) == ("Answer 1.", "Answer 2.")


# Panels


async def test_a_round_has_the_reply_of_each_advisor() -> None:
    """A round is JSON: for each advisor its name, text, thinking and whether it is complete, and the message itself.

    Docs: http.md
    """
    model = voices(lambda who, *_: [think("Hm."), f"{who} says."])
    async with a_panel(model, "Seth", "Buber") as (house, noor, panel):
        told = await answered_round(house, noor, panel)
    replies = list(told["advisor_responses"].values())
    assert [(each["name"], each["content"], each["completed"], each["thinking"]) for each in replies] == [
        ("Seth", "Seth says.", True, "Hm."), ("Buber", "Buber says.", True, "Hm."),
    ]  # fmt: skip
    assert (told["all_completed"], told["message"]["text"]) == (True, "Well?")
    assert told["created_at"] == told["message"]["created_at"] == "2026-01-05T09:00:00Z"


async def test_a_failed_reply_has_a_code_and_a_sentence() -> None:
    """A reply that failed is complete, and has a code and a sentence for people instead of a text.

    Docs: http.md
    """
    async with a_panel(voices(lambda *_: ModelRejected("no such model")), "Seth") as (house, noor, panel):
        told = await answered_round(house, noor, panel)
    [seth] = told["advisor_responses"].values()
    assert (seth["completed"], seth["content"], seth["error"]["code"]) == (True, "", "model_rejected")
    assert seth["error"]["message"]


async def test_the_replies_of_a_panel_stream() -> None:
    """Readers of a panel get the texts of all advisors while they are written, and each reply when it is complete.

    Docs: streams.md
    """
    hesitation, told = Hesitation(), "I have a lot to say about this, and it takes me more than one line."
    async with (
        a_panel(voices(lambda *_: told, pause=hesitation), "Seth") as (house, noor, panel),
        house.stream(noor, panel.space) as stream,
    ):
        await house.call("POST", f"/api/panels/{panel.id}/rounds", noor, json={"text": "Well?"})
        await stream.until("panel.delta")
        hesitation.may_go_on.set()
        while not any(each.data["all_completed"] for each in stream.seen if each.name == "panel.round"):
            await stream.next()
    deltas = [each.data["text"] for each in stream.seen if each.name == "panel.delta"]
    assert len(deltas) > 1
    assert "".join(deltas) == told
    replies = [each.data["reply"] for each in stream.seen if each.name == "panel.reply"]
    assert (replies[-1]["state"], replies[-1]["content"]) == ("done", told)


async def test_what_an_advisor_was_shown_can_be_viewed() -> None:
    """The request of any reply can be viewed over HTTP, message by message.

    Docs: panel.md#what-an-advisor-sees
    """
    async with a_panel(voices(lambda *_: "Yes."), "Seth") as (house, noor, panel):
        told = await answered_round(house, noor, panel)
        [advisor] = told["advisor_responses"]
        path = f"/api/panels/{panel.id}/rounds/{told['id']}/replies/{advisor}/context"
        shown = (await house.call("GET", path, noor)).json()
    assert [each["role"] for each in shown["lines"]] == ["system", "user"]
    assert (shown["exact"], shown["lines"][1]["text"]) == (True, "[2026-01-05T09:00] Well?")


async def test_a_request_needs_an_access_token() -> None:
    """A request needs the access token of a person; without it, or with a wrong one, it is refused.

    Docs: http.md
    """
    async with a_panel(voices(lambda *_: "Yes."), "Seth") as (house, noor, panel):
        path = f"/api/panels/{panel.id}"
        found = [(await house.call("GET", path)).status_code]
        wrong = {"Authorization": "Bearer wrong"}
        found.append((await house.call("GET", path, headers=wrong)).status_code)
        found.append((await house.call("GET", path, noor)).status_code)
    assert found == [401, 401, 200]


async def test_only_members_see_a_panel() -> None:
    """Only members of a panel can see it and ask it.

    Docs: panel.md
    """
    async with a_panel(voices(lambda *_: "Yes."), "Seth") as (house, _, panel):
        sam = await house.world.person("Sam")
        asked = await house.call("POST", f"/api/panels/{panel.id}/rounds", sam, json={"text": "Well?"})
    assert (asked.status_code, asked.json()["code"]) == (404, "not_found")


async def test_agents_are_tools_of_other_programs() -> None:
    """Coding assistants and other programs that use MCP ask agents at `/mcp`, with an access token.

    Docs: mcp-server.md
    """
    async with a_house() as (house, noor):
        await house.world.agent("Ada", reply("It did."), "Told Noor.")
        async with client_of(house, noor) as mcp:
            answer = await mcp.call_tool("ask", {"agent": "@ada", "text": "Did it pass?"})
    assert (text_of_result(answer), answer.is_error) == ("It did.", False)


async def test_a_public_agent_takes_tasks_of_agents_elsewhere() -> None:
    """An agent that is made public has an A2A card, and takes tasks that survive restarts.

    Docs: a2a.md
    """
    async with a_house() as (house, noor):
        ada = await house.world.agent("Ada", reply("It did."), "Told Noor.", a2a=True)
        card = await house.call("GET", f"/a2a/{ada.id}/.well-known/agent-card.json")
        task = (await test_a2a.ok(house, noor, ada, "SendMessage", message=test_a2a.message("Did it pass?")))["task"]
    assert card.json()["name"] == "Ada"
    assert (task["status"]["state"], test_a2a.answer_in(task)) == ("TASK_STATE_COMPLETED", ["It did."])


async def test_agents_give_tasks_to_agents_elsewhere() -> None:
    """A tool gives a task to an agent on another server, by A2A, and returns its answer.

    Docs: a2a.md#agents-elsewhere-as-tools
    """
    await test_a2a.test_an_agent_gives_a_task_to_an_agent_elsewhere()


async def test_a_panel_is_a_model_for_clients_of_openai() -> None:
    """For clients of OpenAI's API a panel is a model that answers with the replies of all advisors under their names.

    Docs: openai.md#panels
    """
    async with a_panel(forever(speaking), "Seth", "Buber") as (house, noor, panel), client(house, noor) as openai:
        answer = await openai.chat.completions.create(model=f"panel:{panel.id}", messages=said("Well?"))
    assert answer.choices[0].message.content == BOTH


async def test_clients_of_openai_get_chunks() -> None:
    """With `stream`, clients of OpenAI's API get lines `data: {"choices": [{"delta": {"content": …}}]}`.

    Docs: openai.md
    """
    async with a_panel(forever(speaking), "Seth", "Buber") as (house, noor, panel):
        body = {"model": f"panel:{panel.id}", "messages": said("Well?"), "stream": True}
        answer = await house.call("POST", "/v1/chat/completions", noor, json=body)
    *chunks, done = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert done == "[DONE]"
    assert "".join(json.loads(each)["choices"][0]["delta"].get("content", "") for each in chunks) == BOTH


async def test_the_python_client_asks_panels() -> None:
    """The typed Python client asks a panel and reads its rounds.

    Docs: client.md
    """
    async with (
        a_panel(voices(lambda who, *_: f"{who} says."), "Seth") as (house, noor, panel),
        Client(house.address, await house.token(noor)) as remote,
    ):
        asked = await remote.ask_panel(panel.id, "Well?")
        await house.world.denizen.run_until_idle()
        told = await remote.round(panel.id, asked.id)
    assert [each.content for each in told.advisor_responses.values()] == ["Seth says."]


@pytest.mark.usefixtures("ready_home")
def test_panels_on_the_command_line(run: Run) -> None:  # noqa: F811
    """`denizen panel` creates panels, asks them, shows the advisors side by side and writes a transcript.

    Docs: cli.md
    """
    run("panel", "create", "Board", "Seth Godin", "Martin Buber")
    asked = run("panel", "ask", "board", "Should I open a bakery?")
    assert asked.exit_code == 0, asked.stderr
    assert any("Seth Godin" in line and "Martin Buber" in line for line in asked.stdout.splitlines())
    assert "> Should I open a bakery?" in run("panel", "transcript", "board").stdout


# The web client


def test_diagrams_are_drawn_where_they_can_do_no_harm(tmp_path: Path) -> None:
    """A code block `mermaid` is drawn as a diagram, in a frame that can reach neither the page nor any server.

    Docs: web.md
    """
    (tmp_path / "index.html").write_text("<title>Denizen</title>")
    (tmp_path / "diagram.html").write_text("<title>Diagram</title>")
    frame = WebFiles(tmp_path).answer("GET", "/diagram.html", Headers())
    assert frame is not None
    policy = frame.headers["Content-Security-Policy"].split("; ")
    assert {"sandbox allow-scripts", "default-src 'none'", "script-src 'self'", "frame-ancestors 'self'"} <= set(policy)
    assert not any("allow-same-origin" in each or "connect-src" in each for each in policy)
