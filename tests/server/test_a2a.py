"""Public agents by A2A: their cards, tasks that are durable, and agents that give tasks to agents elsewhere.

The library of the protocol's authors is the client and the server in `tests/clients`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import test_utils, web

from denizen import A2aTool, call, reply, scripted
from denizen.access.vault import new_key
from denizen.agents.registry import Agent
from denizen.clock import SystemClock
from denizen.errors import ToolFailed
from denizen.ids import AgentId, CycleId
from denizen.server.context import ServerLimits
from denizen.spaces.directory import Entity
from denizen.tools.a2a import CARD, a2a_tool, result_of
from denizen.tools.outbound import Outbound
from denizen.tools.tool import CallIdentity
from tests.hesitation import Hesitation
from tests.server.conftest import House, served
from tests.server.test_chat import confirm
from tests.world import open_world

VERSION = {"A2A-Version": "1.0"}


async def rpc(house: House, who: Entity, agent: Agent, method: str, **params: Any) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    answer = await house.call("POST", f"/a2a/{agent.id}", who, json=body, headers=VERSION)
    assert answer.status_code == 200, answer.text
    assert answer.json()["id"] == 7
    return answer.json()


async def ok(house: House, who: Entity, agent: Agent, method: str, **params: Any) -> dict[str, Any]:
    answer = await rpc(house, who, agent, method, **params)
    assert "error" not in answer, answer
    return answer["result"]


async def refused(house: House, who: Entity, agent: Agent, method: str, **params: Any) -> int:
    return (await rpc(house, who, agent, method, **params))["error"]["code"]


def message(text: str, id: str = "m-1", **more: Any) -> dict[str, Any]:
    return {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}], **more}


def answer_in(task: dict[str, Any]) -> list[str]:
    return [part["text"] for artifact in task.get("artifacts", []) for part in artifact["parts"]]


async def test_only_a_public_agent_has_a_card_and_anybody_can_read_it(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", a2a=True, purpose="Watches the builds.", instructions="A secret.")
    bo = await world.agent("Bo", purpose="Private.")
    card = await small_house.call("GET", f"/a2a/{ada.id}/.well-known/agent-card.json")
    hidden = await small_house.call("GET", f"/a2a/{bo.id}/.well-known/agent-card.json")
    unknown = await small_house.call("GET", "/a2a/nobody/.well-known/agent-card.json")
    closed = await small_house.call("POST", f"/a2a/{bo.id}", noor, json={})
    without_token = await small_house.call("POST", f"/a2a/{ada.id}", json={})

    assert (card.status_code, hidden.status_code, unknown.status_code) == (200, 404, 404)
    assert (closed.status_code, without_token.status_code) == (404, 401)
    shown = card.json()
    assert (shown["name"], shown["description"]) == ("Ada", "Watches the builds.")
    assert shown["supportedInterfaces"][0]["url"] == f"{small_house.address}/a2a/{ada.id}"
    assert "A secret." not in card.text


async def test_a_task_is_answered_and_can_be_read_again(small_house: House) -> None:
    world = small_house.world
    noor, mira = await world.person("Noor"), await world.person("Mira")
    ada = await world.agent("Ada", reply("It **did**."), "Told Noor.", reply("Eight."), "Told.", a2a=True)
    async with world.denizen.living():
        task = (await ok(small_house, noor, ada, "SendMessage", message=message("Did the build pass?")))["task"]
        again = (await ok(small_house, noor, ada, "SendMessage", message=message("Did the build pass?")))["task"]
        other = (await ok(small_house, noor, ada, "SendMessage", message=message("Legs?", "m-2", contextId="legs")))[
            "task"
        ]
    read = await ok(small_house, noor, ada, "GetTask", id=task["id"])
    listed = await ok(small_house, noor, ada, "ListTasks", includeArtifacts=True)
    of_legs = await ok(small_house, noor, ada, "ListTasks", contextId="legs")
    first_page = await ok(small_house, noor, ada, "ListTasks", pageSize=1)
    second_page = await ok(small_house, noor, ada, "ListTasks", pageSize=1, pageToken=first_page["nextPageToken"])

    assert (task["status"]["state"], answer_in(task)) == ("TASK_STATE_COMPLETED", ["It **did**."])
    assert again == task, "the same message is the same task"
    assert read == task
    assert (other["contextId"], answer_in(other)) == ("legs", ["Eight."])
    assert task["contextId"] != "legs"
    assert {each["id"] for each in listed["tasks"]} == {task["id"], other["id"]}
    assert (listed["totalSize"], [each["id"] for each in of_legs["tasks"]]) == (2, [other["id"]])
    paged = [each["id"] for page in (first_page, second_page) for each in page["tasks"]]
    assert sorted(paged) == sorted([task["id"], other["id"]])
    assert await refused(small_house, mira, ada, "GetTask", id=task["id"]) == -32001
    assert (await ok(small_house, mira, ada, "ListTasks"))["tasks"] == []
    assert len(await world.cycles(ada)) == 2


async def test_who_has_left_the_space_of_a_task_reads_it_no_longer(small_house: House) -> None:
    """A task that was given in a space is answered there, for its members; the answer may come after the removal."""
    world = small_house.world
    noor, mira = await world.person("Noor"), await world.person("Mira")
    ada = await world.agent("Ada", reply("The code is 7."), "Told them.", a2a=True)
    den = await world.space("Den", noor, mira, ada, private=True)
    sent = message("What is the code?", contextId=den.id)
    task = (await ok(small_house, mira, ada, "SendMessage", message=sent, configuration={"returnImmediately": True}))[
        "task"
    ]
    await world.denizen.spaces.leave(den, mira)
    await world.run()

    assert (await ok(small_house, mira, ada, "ListTasks"))["tasks"] == []
    assert await refused(small_house, mira, ada, "GetTask", id=task["id"]) == -32001
    assert await refused(small_house, mira, ada, "SubscribeToTask", id=task["id"]) == -32001
    assert await refused(small_house, mira, ada, "CancelTask", id=task["id"]) == -32001


async def test_a_task_survives_a_restart(tmp_path: Path) -> None:
    """The task is an event in the inbox: given to one server, it is answered by the next."""
    url = f"sqlite:///{tmp_path / 'town.db'}"
    async with open_world(url) as world, served(world) as house:
        noor, ada = await world.person("Noor"), await world.agent("Ada", reply("Done."), "Told Noor.", a2a=True)
        sent = message("Tidy up.")
        task = (await ok(house, noor, ada, "SendMessage", message=sent, configuration={"returnImmediately": True}))[
            "task"
        ]
        secret = house.secrets[noor.id]
    assert task["status"]["state"] == "TASK_STATE_SUBMITTED"

    async with open_world(url) as world, served(world) as house:
        house.secrets[noor.id] = secret
        world.denizen.models.register("scripted", scripted(reply("Done."), "Told Noor."))
        await world.denizen.agents.edit(ada.id, model="scripted")
        async with world.denizen.living():
            again = (await ok(house, noor, ada, "SendMessage", message=sent))["task"]
        read = await ok(house, noor, ada, "GetTask", id=task["id"])
    assert again["id"] == task["id"]
    assert (read["status"]["state"], answer_in(read)) == ("TASK_STATE_COMPLETED", ["Done."])


async def test_a_question_back_is_input_required_and_answered(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    turns = call("confirm", what="deploy"), reply("Deployed."), "Deployed it."
    ada = await world.agent("Ada", *turns, tools=[confirm()], a2a=True)
    async with world.denizen.living():
        task = (await ok(small_house, noor, ada, "SendMessage", message=message("Deploy")))["task"]
        done = (await ok(small_house, noor, ada, "SendMessage", message=message("Yes", "m-2", taskId=task["id"])))[
            "task"
        ]
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert "deploy" in task["status"]["message"]["parts"][0]["text"]
    assert (done["id"], done["status"]["state"], answer_in(done)) == (task["id"], "TASK_STATE_COMPLETED", ["Deployed."])
    late = message("More", "m-3", taskId=task["id"])
    assert await refused(small_house, noor, ada, "SendMessage", message=late) == -32004


async def test_a_stream_has_the_task_the_text_and_the_end(small_house: House) -> None:
    world, hesitation = small_house.world, Hesitation()
    noor, counted = await world.person("Noor"), "One two three four five six seven."
    ada = await world.agent("Ada", model=scripted(reply(counted), "Counted.", pause=hesitation), a2a=True)
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message("Count!")}}
    told: list[dict[str, Any]] = []
    headers = await small_house.headers(noor)
    async with (
        world.denizen.living(),
        small_house.client.stream("POST", f"/a2a/{ada.id}", headers=headers, json=body) as stream,
    ):
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                told.append(json.loads(line[6:])["result"])
                if "artifactUpdate" in told[-1]:
                    hesitation.may_go_on.set()
    kinds = [next(iter(each)) for each in told]
    assert (kinds[0], kinds[1], kinds[-1]) == ("task", "statusUpdate", "statusUpdate")
    pieces = [each["artifactUpdate"] for each in told if "artifactUpdate" in each]
    assert len(pieces) > 2
    assert pieces[-1]["lastChunk"] is True
    assert pieces[-1]["artifact"]["parts"][0]["text"] == counted
    assert "".join(each["artifact"]["parts"][0]["text"] for each in pieces[:-1]) == counted
    assert told[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    ended = {**body, "method": "SubscribeToTask", "params": {"id": told[0]["task"]["id"]}}
    answer = await small_house.call("POST", f"/a2a/{ada.id}", noor, json=ended)
    assert answer.json()["error"]["code"] == -32004


async def test_a_task_that_is_worked_on_can_be_canceled_and_followed(small_house: House) -> None:
    world, hesitation = small_house.world, Hesitation()
    noor = await world.person("Noor")
    ada = await world.agent(
        "Ada", model=scripted(reply("One two three four five six seven."), "Counted.", pause=hesitation), a2a=True
    )
    at_once = {"returnImmediately": True}
    async with world.denizen.living():
        task = (await ok(small_house, noor, ada, "SendMessage", message=message("Count!"), configuration=at_once))[
            "task"
        ]
        headers = await small_house.headers(noor)
        body = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task["id"]}}
        followed: list[dict[str, Any]] = []
        canceled: dict[str, Any] = {}
        async with small_house.client.stream("POST", f"/a2a/{ada.id}", headers=headers, json=body) as stream:
            async for line in stream.aiter_lines():
                if not line.startswith("data: "):
                    continue
                followed.append(json.loads(line[6:])["result"])
                if "artifactUpdate" in followed[-1] and not canceled:
                    canceled = await ok(small_house, noor, ada, "CancelTask", id=task["id"])
    assert canceled["status"]["state"] == "TASK_STATE_CANCELED", (canceled, followed)
    assert followed[0]["task"]["id"] == task["id"]
    assert followed[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"
    assert await refused(small_house, noor, ada, "CancelTask", id=task["id"]) == -32002


async def test_an_agent_that_says_nothing_has_rejected_the_task(small_house: House) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada", call("skip", reason="Not mine."), a2a=True)
    async with world.denizen.living():
        task = (await ok(small_house, noor, ada, "SendMessage", message=message("Hm.")))["task"]
    assert task["status"]["state"] == "TASK_STATE_REJECTED"
    assert "did not reply" in task["status"]["message"]["parts"][0]["text"]


async def test_messages_that_wait_are_counted_as_streams() -> None:
    """Otherwise one person could have the server hold any number of them for minutes."""
    limits = ServerLimits(streams_per_person=1)
    async with open_world("sqlite://") as world, served(world, limits=limits) as house:
        noor, ada = await world.person("Noor"), await world.agent("Ada", a2a=True)
        headers = await house.headers(noor)
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message("Hi")}}
        async with house.client.stream("POST", f"/a2a/{ada.id}", headers=headers, json=body) as stream:
            lines = stream.aiter_lines()  # kept: without it, the connection would be closed
            await anext(lines)
            second = await rpc(house, noor, ada, "SendMessage", message=message("Hi", "m-2"))
            at_once = {"returnImmediately": True}
            third = await ok(house, noor, ada, "SendMessage", message=message("Hi", "m-3"), configuration=at_once)
        listed = await ok(house, noor, ada, "ListTasks")
    assert "streams open" in second["error"]["message"]
    assert third["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert listed["totalSize"] == 2, "what was refused is not a task"


async def test_errors_are_those_of_the_protocol(small_house: House) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada", a2a=True)

    async def code(body: Any, **headers: str) -> int:
        answer = await small_house.call("POST", f"/a2a/{ada.id}", noor, json=body, headers=headers)
        return answer.json()["error"]["code"]

    sent = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message("Hi")}}
    linked = {**message("Hi"), "parts": [{"url": "http://10.0.0.1/x.png"}]}
    assert await code({"method": "SendMessage"}) == -32600
    assert await code({**sent, "method": "Dance"}) == -32601
    assert await code({**sent, "method": "message/send"}) == -32009
    assert await code(sent, **{"A2A-Version": "0.3"}) == -32009
    assert await code({**sent, "params": {"message": {"messageId": "m"}}}) == -32602
    assert await code({**sent, "params": {"message": linked}}) == -32005
    assert await code({**sent, "method": "GetTask", "params": {"id": "none"}}) == -32001
    assert await code({**sent, "method": "ListTaskPushNotificationConfigs", "params": {"taskId": "1"}}) == -32003
    raw = await small_house.call(
        "POST", f"/a2a/{ada.id}", noor, content=b"{", headers={"Content-Type": "application/json"}
    )
    assert raw.json()["error"]["code"] == -32700


async def test_a_file_of_a_task_is_a_file_of_the_message(small_house: House) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada", reply("Read."), "Read it.", a2a=True)
    parts = [{"text": "Read this."}, {"raw": "aGVsbG8=", "filename": "note.txt", "mediaType": "text/plain"}]
    async with world.denizen.living():
        task = (await ok(small_house, noor, ada, "SendMessage", message={**message(""), "parts": parts}))["task"]
    said = await small_house.call("GET", f"/api/spaces/{task['contextId']}/messages", noor)
    assert [each["name"] for each in said.json()["messages"][0]["files"]] == ["note.txt"]


async def test_an_agent_gives_a_task_to_an_agent_elsewhere() -> None:
    """Both ends are Denizen here; the one elsewhere wants a token, which is a secret of the organization."""
    async with (
        open_world("sqlite://") as elsewhere,
        served(elsewhere) as other_house,
        elsewhere.denizen.living(),
        open_world("sqlite://", secret_key=new_key()) as world,
    ):
        visitor, noor = await elsewhere.person("Visitor"), await world.person("Noor")
        bo = await elsewhere.agent("Bo", reply("Shipped."), "Shipped it.", a2a=True)
        secret = await other_house.token(visitor)
        await world.denizen.secrets.set("BO_TOKEN", secret)
        tool = ask_bo(f"{other_house.address}/a2a/{bo.id}", headers={"Authorization": "Bearer ${BO_TOKEN}"})
        ada = await world.agent("Ada", call("ask_bo", text="Ship it."), reply("Bo did."), "Asked.", tools=[tool])
        await world.say(noor, "Have it shipped.", await world.space("Work", noor, ada))
        await world.run()
        history = "\n".join(await world.history(ada))
    assert "Shipped.\n\n[context_id " in history
    assert secret not in history


def ask_bo(url: str, **more: Any) -> A2aTool:
    return A2aTool(name="ask_bo", description="Ask Bo, who ships.", url=url, allow_private=("127.0.0.1",), **more)


async def test_a_card_that_leads_to_another_server_is_not_followed() -> None:
    """The requests carry secrets, which are meant for the server that the owner named."""
    card = {"supportedInterfaces": [{"url": "https://other.example/a2a", **JSON_RPC}]}
    async with serving(card) as address, Outbound() as outbound:
        tool = a2a_tool(ask_bo(address), secret=lambda _: None, outbound=outbound, clock=SystemClock())
        with pytest.raises(ToolFailed, match="leads to another server"):
            await tool.call({"text": "Hi"}, OCCASION)


async def test_an_agent_of_an_older_protocol_is_refused_with_a_sentence() -> None:
    async with serving({"url": "http://127.0.0.1/", "protocolVersion": "0.3.0"}) as address, Outbound() as outbound:
        tool = a2a_tool(ask_bo(address), secret=lambda _: None, outbound=outbound, clock=SystemClock())
        with pytest.raises(ToolFailed, match=r"no JSON-RPC of A2A 1\.0"):
            await tool.call({"text": "Hi"}, OCCASION)


async def test_a_task_is_followed_while_its_server_is_away_for_a_while() -> None:
    """The agent elsewhere has the task: that its server is busy, or breaks the connection, ends nothing."""
    looks = iter(["busy", "broken", "TASK_STATE_COMPLETED"])
    async with a_server_that_answers(looks) as address, Outbound() as outbound:
        tool = a2a_tool(ask_bo(address), secret=lambda _: None, outbound=outbound, clock=Hurried())
        assert await tool.call({"text": "Ship it."}, OCCASION) == "Shipped.\n\n[context_id c, task_id t]"
    assert list(looks) == []


async def test_a_failure_says_whether_the_agent_elsewhere_has_the_task() -> None:
    async def asked(address: str) -> str:
        tool = a2a_tool(ask_bo(address), secret=lambda _: None, outbound=outbound, clock=SystemClock())
        with pytest.raises(ToolFailed) as failed:
            await tool.call({"text": "Ship it."}, OCCASION)
        return str(failed.value)

    async with Outbound() as outbound:
        async with a_server_that_answers(iter(()), given="broken") as address:
            assert "Whether it has the task is unknown." in await asked(address)
        assert "could not be reached" in (told := await asked(address))
        assert told.endswith("The task was not given.")
        async with a_server_that_answers(iter(()), card="broken") as address:
            assert (await asked(address)).endswith("The task was not given.")


class Hurried(SystemClock):
    """Nothing waits."""

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        return event.is_set()


@asynccontextmanager
async def a_server_that_answers(looks: Iterator[str], *, card: str = "", given: str = "") -> AsyncGenerator[str]:
    """An agent whose task is worked on until `looks` says otherwise; `broken` ends the connection without an answer."""
    app = web.Application()

    def answered(asked: web.Request, how: str, what: dict[str, Any]) -> web.Response:
        if how == "broken":
            assert asked.transport is not None
            asked.transport.abort()
        return web.json_response(what, status=503 if how == "busy" else 200)

    async def describe(asked: web.Request) -> web.Response:
        address = f"http://127.0.0.1:{asked.url.port}/rpc"
        return answered(asked, card, {"supportedInterfaces": [{"url": address, **JSON_RPC}]})

    async def rpc_of(asked: web.Request) -> web.Response:
        task: dict[str, Any] = {"id": "t", "contextId": "c", "artifacts": [{"parts": [{"text": "Shipped."}]}]}
        if (await asked.json())["method"] == "SendMessage":
            task["status"] = {"state": "TASK_STATE_WORKING"}
            return answered(asked, given, {"jsonrpc": "2.0", "id": "1", "result": {"task": task}})
        task["status"] = {"state": (how := next(looks))}
        return answered(asked, how, {"jsonrpc": "2.0", "id": "1", "result": task})

    app.router.add_get(CARD, describe)
    app.router.add_post("/rpc", rpc_of)
    async with test_utils.TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"


JSON_RPC = {"protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
OCCASION = CallIdentity(AgentId("agent"), CycleId("cycle"), 0, 0, "call")


@asynccontextmanager
async def serving(card: dict[str, Any]) -> AsyncGenerator[str]:
    """A server with this card, and nothing else."""
    app = web.Application()

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(card)

    app.router.add_get(CARD, answer)
    async with test_utils.TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (
            {"status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [{"parts": [{"text": "A"}, {"data": [1]}]}]},
            'A\n\n[1]\n\n[context_id c, task_id t]',
        ),
        (
            {"status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": {"parts": [{"text": "Which?"}]}}},
            "It asks: Which?\n\n[Answer with bo: context_id c, task_id t]",
        ),
    ],
)  # fmt: skip
def test_the_result_of_a_task_for_the_model(task: dict[str, Any], expected: str) -> None:
    assert result_of("bo", {"id": "t", "contextId": "c", **task}) == expected


@pytest.mark.parametrize("state", ["FAILED", "REJECTED", "CANCELED"])
def test_a_task_that_did_not_succeed_is_a_failure_of_the_tool(state: str) -> None:
    note = {"parts": [{"text": "No time."}]}
    with pytest.raises(ToolFailed, match=r"No time\."):
        result_of("bo", {"id": "t", "status": {"state": f"TASK_STATE_{state}", "message": note}})
