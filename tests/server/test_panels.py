"""Panels over HTTP: what they are asked and answer, as it happens, and as a model for clients of OpenAI's API."""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai.messages import ModelMessage

from denizen.client import Client
from denizen.errors import ModelKeyRejected
from denizen.models.scripted import Info, Turn, call, forever, think
from denizen.server.openai_panels import STOPPING
from tests.hesitation import Hesitation
from tests.server.conftest import House
from tests.world import as_text


def speaking(messages: list[ModelMessage], info: Info) -> Turn:
    """Says as whom it speaks; votes, reports and suggests where it is to."""
    system = as_text(messages[0])
    who = system.partition("You are ")[2].partition(".")[0]
    if info.tools == ("vote",):
        return call("vote", position="yes", confidence=0.9, reason="Why not?")
    if info.tools == ("suggest",):
        return call("suggest", advisors=[{"name": "Ada", "kind": "figure", "description": "You.", "reason": "Bread."}])
    if "## Agreements" in system:
        return "All agree."
    return [think(f"{who} ponders."), f"{who} says: this is what there is to say."]


async def test_a_panel_from_opening_to_transcript(small_house: House) -> None:
    house = small_house
    noor, sam = await house.world.person("Noor"), await house.world.person("Sam")
    house.world.denizen.models.register("m", forever(speaking))
    body: dict[str, Any] = {"name": "Board", "advisors": [{"name": "Seth"}], "settings": {"model": "m"}}
    made = (await house.call("POST", "/api/panels", noor, json=body, headers={"Idempotency-Key": "1"})).json()
    again = (await house.call("POST", "/api/panels", noor, json=body, headers={"Idempotency-Key": "1"})).json()
    assert again["id"] == made["id"]
    path = f"/api/panels/{made['id']}"
    buber = (await house.call("POST", f"{path}/advisors", noor, json={"name": "Buber", "group": "Wise"})).json()
    assert (buber["handle"], buber["position"], buber["colour"][0]) == ("buber", 2, "#")
    seth = made["advisors"][0]
    listed = await house.call("PUT", f"{path}/advisors/order", noor, json={"advisors": [buber["id"]]})
    assert [each["name"] for each in listed.json()["advisors"]] == ["Buber", "Seth"]
    await house.call("PUT", f"{path}/advisors/group", noor, json={"group": "Wise", "active": False})
    changed = await house.call("PATCH", f"{path}/advisors/{buber['id']}", noor, json={"active": True, "name": "Martin"})
    assert (changed.json()["active"], changed.json()["handle"]) == (True, "buber")
    wrong = await house.call("PATCH", path, noor, json={"settings": {"crosstalk": 99}})
    assert (wrong.status_code, "crosstalk" in wrong.json()["detail"]) == (422, True)
    found = await house.call("POST", f"{path}/advisors/suggest", noor, json={"topic": "Bread"})
    assert [each["name"] for each in found.json()["suggestions"]] == ["Ada"]
    cost = (await house.call("POST", f"{path}/cost", noor, json={"text": "Well?"})).json()
    assert (len(cost["advisors"]), cost["cost_micros"]) == (2, 0)

    asked = (await house.call("POST", f"{path}/rounds", noor, json={"text": "Well?"})).json()
    assert (asked["all_completed"], asked["message"]["text"]) == (False, "Well?")
    await house.world.run()
    of_round = f"{path}/rounds/{asked['id']}"
    told = (await house.call("GET", of_round, noor)).json()
    assert told["all_completed"]
    assert list(told["advisor_responses"]) == [buber["id"], seth["id"]]
    said = told["advisor_responses"][buber["id"]]
    assert (said["name"], said["content"], said["thinking"], said["completed"], said["phase"]) == (
        "Martin",
        "Martin says: this is what there is to say.",
        "Martin ponders.",
        True,
        {"name": "question", "turn": 1, "of": 3},
    )
    await house.call("POST", f"{of_round}/synthesis", noor)
    vote = (await house.call("POST", f"{of_round}/vote", noor, json={"question": "Go?"})).json()
    await house.call("POST", f"{of_round}/crosstalk", noor, json={"rounds": 1})
    await house.world.run()
    page = (await house.call("GET", f"{path}/rounds", noor)).json()
    assert [(each["kind"], each["all_completed"]) for each in page["rounds"]] == [
        ("ask", True), ("vote", True), ("crosstalk", True),
    ]  # fmt: skip
    assert page["rounds"][0]["synthesis"]["content"] == "All agree."
    assert page["rounds"][1]["id"] == vote["id"]
    assert page["rounds"][1]["tally"]["leading"] == "yes"
    shown = (await house.call("GET", f"{of_round}/replies/{seth['id']}/context", noor)).json()
    assert (shown["exact"], shown["lines"][-1]) == (True, {"role": "user", "text": "[2026-01-05T09:00] Well?"})
    text = (await house.call("GET", f"{path}/transcript", noor)).text
    assert "**Martin**\n\nMartin says: this is what there is to say." in text
    document = (await house.call("GET", f"{path}/advisors/export", noor)).json()
    other = (await house.call("POST", "/api/panels", noor, json={"name": "Other"})).json()
    brought = await house.call("POST", f"/api/panels/{other['id']}/advisors/import", noor, json=document)
    assert [each["name"] for each in brought.json()["advisors"]] == ["Martin", "Seth"]
    assert (await house.call("DELETE", f"{path}/advisors/{seth['id']}", noor)).status_code == 204
    for method, where in (("GET", path), ("GET", of_round), ("POST", f"{of_round}/retry")):
        answer = await house.call(method, where, sam, json={} if method == "POST" else None)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_round_as_it_happens(small_house: House) -> None:
    """Who comes in the middle is told what was said from its beginning; deltas make up exactly what is kept."""
    house = small_house
    noor = await house.world.person("Noor")
    hesitation = Hesitation()
    house.world.denizen.models.register("m", forever(speaking, pause=hesitation))
    panel = await house.world.denizen.panels.create("Board", [noor], advisors=["Seth"], model="m")
    async with house.world.denizen.living(), house.stream(noor, panel.space) as early:
        asked = await house.world.denizen.panels.ask(panel, noor, "Well?")
        await early.until("panel.delta")
        async with house.listen(noor, "/api/stream") as late:
            await late.until("panel.delta")
            hesitation.may_go_on.set()
            for stream in (early, late):
                while not any(_completed(each.data) for each in stream.seen if each.name == "panel.round"):
                    await stream.until("panel.round")
                deltas = [each.data for each in stream.seen if each.name == "panel.delta"]
                for thinking, text in ((False, "Seth says: this is what there is to say."), (True, "Seth ponders.")):
                    pieces = [each for each in deltas if each["thinking"] is thinking]
                    assert "".join(each["text"] for each in pieces) == text
                    assert [each["offset"] for each in pieces] == _offsets(pieces)
                replies = [each.data["reply"] for each in stream.seen if each.name == "panel.reply"]
                assert (replies[-1]["state"], replies[-1]["content"]) == (
                    "done",
                    "Seth says: this is what there is to say.",
                )
        await house.world.denizen.panels.edit(panel, crosstalk=1)
        assert (await early.until("panel.changed"))[-1].data["panel"] == panel.id
    assert next(each for each in early.seen if each.name == "panel.round").data["id"] == asked.id


def _completed(data: dict[str, Any]) -> bool:
    return data["all_completed"]


def _offsets(pieces: list[dict[str, Any]]) -> list[int]:
    offsets, length = [], 0
    for each in pieces:
        offsets.append(length)
        length += len(each["text"])
    return offsets


async def test_a_panel_as_a_model(small_house: House) -> None:
    house = small_house
    noor, sam = await house.world.person("Noor"), await house.world.person("Sam")
    house.world.denizen.models.register("m", forever(speaking))
    panel = await house.world.denizen.panels.create("The Board", [noor], advisors=["Seth", "Buber"], model="m")
    name = f"panel:{panel.id}"
    listed = (await house.call("GET", "/v1/models", noor)).json()
    assert [each["id"] for each in listed["data"]] == [name]
    assert (await house.call("GET", f"/v1/models/{name}", sam)).status_code == 404
    body = {"model": "panel:the-board", "messages": [{"role": "user", "content": "Well?"}]}
    path, once = "/v1/chat/completions", {"Idempotency-Key": "1"}
    async with house.world.denizen.living():
        answer = (await house.call("POST", path, noor, json=body, headers=once)).json()
        again = (await house.call("POST", path, noor, json=body, headers=once)).json()
        other = {**body, "messages": [{"role": "user", "content": "Else?"}]}
        reused = await house.call("POST", path, noor, json=other, headers=once)
    assert answer["choices"][0]["message"]["content"] == BOTH
    assert answer["usage"]["completion_tokens"] > 0
    assert (again["id"], again["choices"]) == (answer["id"], answer["choices"])
    assert reused.json()["error"]["code"] == "idempotency_key_reused"
    refused = await house.call("POST", path, sam, json=body)
    assert refused.status_code == 404


async def test_who_cannot_answer_is_told_as_a_sentence(small_house: House) -> None:
    """Once, at the end, with what to do; whether some of the advisors failed, or all. Never what a provider sent."""
    house = small_house
    noor = await house.world.person("Noor")
    raw = ModelKeyRejected("status_code: 401, body: {'error': {'message': 'bad key'}}")
    house.world.denizen.models.register("m", forever(speaking))
    house.world.denizen.models.register("locked", forever(lambda *_: raw))
    path, said = "/v1/chat/completions", [{"role": "user", "content": "Well?"}]
    told: list[str] = []
    for advisors in ([{"name": "Seth", "model": "locked"}, "Buber"], [{"name": "Seth", "model": "locked"}]):
        panel = await house.world.denizen.panels.create("Board", [noor], advisors=advisors, model="m")
        body = {"model": f"panel:{panel.id}", "messages": said}
        async with house.world.denizen.living():
            answer = (await house.call("POST", path, noor, json=body)).json()
        told.append(answer["choices"][0]["message"]["content"])
    check = "Check it under Administration › Keys, then try again."
    why = f"Seth could not answer: the provider rejected the API key. {check}"
    buber = "## Buber\n\nBuber says: this is what there is to say."
    assert told[0] == f"## Seth\n\n_(could not answer)_\n\n{buber}\n\n{why}"
    assert told[1] == f"## Seth\n\n_(could not answer)_\n\n{why}"


BOTH = "## Seth\n\nSeth says: this is what there is to say.\n\n## Buber\n\nBuber says: this is what there is to say."


async def test_a_panel_as_a_model_streams_while_it_is_written(small_house: House) -> None:
    """The first as it writes, in the panel's order, though the second is done before it; no thinking."""
    house = small_house
    noor = await house.world.person("Noor")
    hesitation, others = Hesitation(), forever(speaking)
    house.world.denizen.models.register("slow", forever(speaking, pause=hesitation))
    house.world.denizen.models.register("m", others)
    advisors = [{"name": "Seth", "model": "slow"}, "Buber"]
    panel = await house.world.denizen.panels.create("Board", [noor], advisors=advisors, model="m")
    body = {"model": f"panel:{panel.id}", "messages": [{"role": "user", "content": "Well?"}], "stream": True}
    body["stream_options"] = {"include_usage": True}
    headers, path = await house.headers(noor), "/v1/chat/completions"
    async with house.world.denizen.living():
        async with house.client.stream("POST", path, json=body, headers=headers) as response:
            lines, told = response.aiter_lines(), ""
            while not told.startswith("## Seth\n\nSeth says"):
                told += _content(await anext(lines))
            assert told in BOTH
            [asked] = await house.world.denizen.rounds.list(panel)
            while (await house.world.denizen.rounds.get(asked)).spoken[1].state != "done":
                pass
            hesitation.may_go_on.set()
            rest = [line async for line in lines if line]
        assert told + "".join(map(_content, rest)) == BOTH
        *_, end, usage, last = [line.removeprefix("data: ") for line in rest]
        assert json.loads(end)["choices"][0]["finish_reason"] == "stop"
        assert json.loads(end)["denizen"]["outcome"] == "acted"
        assert json.loads(usage)["usage"]["completion_tokens"] > 0
        assert last == "[DONE]"


async def test_who_waits_for_a_panel_is_told_that_the_server_stops(small_house: House) -> None:
    house = small_house
    noor = await house.world.person("Noor")
    hesitation = Hesitation()
    house.world.denizen.models.register("slow", forever(speaking, pause=hesitation))
    panel = await house.world.denizen.panels.create("Board", [noor], advisors=["Seth"], model="slow")
    body = {"model": f"panel:{panel.id}", "messages": [{"role": "user", "content": "Well?"}], "stream": True}
    headers = await house.headers(noor)
    async with house.world.denizen.living():
        async with house.client.stream("POST", "/v1/chat/completions", json=body, headers=headers) as response:
            lines, told = response.aiter_lines(), ""
            while not told.startswith("## Seth\n\nSeth says"):
                told += _content(await anext(lines))
            house.stop.set()
            rest = [line async for line in lines if line]
        hesitation.may_go_on.set()
        await house.world.run()
    assert "".join(map(_content, rest)) == f"\n\n{STOPPING}"
    assert json.loads(rest[-2].removeprefix("data: "))["choices"][0]["finish_reason"] == "length"
    assert "this is what there is to say" in await house.world.denizen.panels.transcript(panel)


def _content(line: str) -> str:
    """What a line of a stream adds to the answer."""
    data = line.removeprefix("data: ")
    if not line.startswith("data: {") or not (choices := json.loads(data)["choices"]):
        return ""
    return choices[0]["delta"].get("content", "")


async def test_the_client_knows_panels(small_house: House) -> None:
    house = small_house
    noor = await house.world.person("Noor")
    house.world.denizen.models.register("m", forever(speaking))
    async with Client(house.address, await house.token(noor)) as client:
        panel = await client.create_panel("Board", [{"name": "Seth"}], settings={"model": "m"})
        buber = await client.add_advisor(panel.id, {"name": "Buber"})
        assert (await client.change_advisor(panel.id, buber.id, reasoning=True)).reasoning
        assert [each.name for each in await client.order_advisors(panel.id, [buber.id])] == ["Buber", "Seth"]
        assert (await client.change_panel(panel.id, crosstalk=1)).settings["crosstalk"] == 1
        assert len((await client.export_advisors(panel.id))["advisors"]) == 2
        assert (await client.panel_cost(panel.id, "Well?")).input_tokens > 0
        assert [each.name for each in await client.suggest_advisors(panel.id, "Bread")] == ["Ada"]
        asked = await client.ask_panel(panel.id, "Well?", key="1")
        assert (await client.ask_panel(panel.id, "Well?", key="1")).id == asked.id
        assert (await client.cancel_round(panel.id, asked.id)).all_completed
        assert not (await client.retry_round(panel.id, asked.id, buber.id)).all_completed
        await house.world.run()
        told = await client.round(panel.id, asked.id)
        assert [each.state for each in told.advisor_responses.values()] == ["done", "cancelled"]
        await client.synthesize(panel.id, asked.id)
        await client.vote(panel.id, asked.id)
        await house.world.run()
        assert [each.kind for each in (await client.rounds(panel.id)).rounds] == ["ask", "vote"]
        assert (await client.reply_context(panel.id, asked.id, buber.id)).exact
        assert "## Turn 1" in await client.panel_transcript(panel.id)
        await client.remove_advisor(panel.id, buber.id)
        assert [each.name for each in (await client.panel(panel.id)).advisors] == ["Seth"]
        assert [each.id for each in await client.panels()] == [panel.id]
