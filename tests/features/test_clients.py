"""Clients."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from denizen import Entity, ModelRejected, Panel, forever, reply, scripted, think
from denizen.client import Client
from tests.cli.conftest import Run, _logs_as_before, environ, ready_home, run  # noqa: F401  fixtures
from tests.hesitation import Hesitation
from tests.memory.conftest import known, remembering, utility, written
from tests.memory.test_keeping import a_conversation
from tests.panel.test_rounds import voices
from tests.server.conftest import House, served
from tests.server.test_openai import client, said
from tests.server.test_panels import BOTH, speaking
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
