"""Whoever waits is answered, or told why: the same sentence by every way in, on both databases.

Ways in: Python, REST, server-sent events, `/api/chat`, `/v1` and `denizen chat --once`. The web client shows what REST
and the stream tell: tests/web/test_statuses.py has every cause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from denizen import ManualClock, call, reply, scripted, skip
from denizen.agents.registry import Agent
from denizen.cycles.budgets import BudgetSettings
from denizen.errors import ContentRefused, ModelKeyRejected, ModelUnreachable, ModelUnsuitable, RequestTooLarge
from denizen.models.scripted import ScriptedModel, forever
from denizen.spaces.directory import Entity
from tests.cli.chat.test_once import Ran, chat
from tests.server.conftest import House, served
from tests.world import UNHURRIED, World, open_world


def of_a_provider(turns: Sequence[Any]) -> ScriptedModel:
    """A model that costs something, so that the limit of the server applies."""
    model = scripted(*turns)
    model._provider_name = "acme"
    return model


async def _nothing(world: World, agent: Agent) -> None:
    pass


async def _suspend(world: World, agent: Agent) -> None:
    await world.denizen.agents.suspend(agent)


async def _name_an_unknown_model(world: World, agent: Agent) -> None:
    await world.denizen.agents.edit(agent, model="nowhere:gpt")


async def _name_an_unknown_tool(world: World, agent: Agent) -> None:
    await world.denizen.agents.edit(agent, tools=["order_pizza"])


async def _lose_the_price(world: World, agent: Agent) -> None:
    world.denizen.models.register(f"python:{agent.entity.handle}", of_a_provider([]))


class Hurrying(ManualClock):
    """Stands still, but that nobody waits for the next try of a model that failed."""

    async def sleep(self, seconds: float) -> None:
        if seconds > 2:
            await super().sleep(seconds)
        else:
            self.advance(seconds)
            await asyncio.sleep(0)


@dataclass(frozen=True)
class Case:
    turns: Sequence[Any]
    sentence: str
    """What is told, if nothing is answered."""
    answer: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    prepare: Callable[[World, Agent], Awaitable[None]] = _nothing
    world: dict[str, Any] = field(default_factory=dict)
    text: str = "When?"
    built_in: bool = False
    """Whether it begins with a model that costs nothing."""


CASES = {
    "key": Case([ModelKeyRejected("401")], "The provider rejected the API key of Bo. Check it under Administration"),
    "model": Case([ModelUnsuitable("404")], "Bo cannot use the model that it is set to: the provider does not have it"),
    "unknown model": Case([], "Bo cannot use the model nowhere:gpt", prepare=_name_an_unknown_model),
    "tool": Case([], "Bo cannot use one of its tools here", prepare=_name_an_unknown_tool),
    "refused": Case([ContentRefused("no")], "refused to process"),
    "too large": Case([RequestTooLarge("413")] * 3, "too long", text="When, and why? " * 400),
    "skip": Case([skip("busy")], "Bo read this and did not reply."),
    "limit": Case([call("get_plans"), "", ""], "limit", options={"cycle": {"max_steps": 1}}),
    "price": Case(
        [],
        "the price of the model",
        options={"budget": {"dollars_per_day": Decimal(1)}},
        prepare=_lose_the_price,
        built_in=True,
    ),
    "text without a call": Case(["At four."] * 2, "", answer="At four."),
    "budget": Case([], "The budget of Bo for today is used up.", options={"budget": {"tokens_per_day": 10}}),
    "server limit": Case(
        [], "The daily limit of this server is used up.", world={"server_budget": BudgetSettings(tokens_per_day=10)}
    ),
    "suspended": Case([], "Bo is suspended. Your message is kept.", prepare=_suspend),
    "an error that passes": Case(
        [ModelUnreachable("502"), reply("At four."), "Told Noor."],
        "",
        answer="At four.",
        world={"clock": Hurrying()},
    ),
    "answered": Case([reply("At four."), "Told Noor."], "", answer="At four."),
}


@dataclass
class Stage:
    house: House
    noor: Entity
    case: Case
    folder: Path
    asked: Agent | None = None

    async def bo(self, way: str) -> Agent:
        """An agent for this way in, which is in a space with Noor alone."""
        world = self.house.world
        model = scripted(*self.case.turns) if self.case.built_in else of_a_provider(self.case.turns)
        self.asked = await world.agent("Bo", handle=f"bo-{way}", model=model, **self.case.options)
        await self.case.prepare(world, self.asked)
        return self.asked


async def in_python(stage: Stage) -> str:
    world = stage.house.world
    two = await world.space("Python", stage.noor, await stage.bo("python"))
    async with stage.house.stream(stage.noor, two) as stream:
        await world.say(stage.noor, stage.case.text, two)
        await _told_in(stream, seq=2)
    said = [each.text for each in await world.denizen.spaces.messages(two)][1:]
    return "\n".join([*said, *(each.text for each in await world.denizen.spaces.statuses(two.id))])


async def by_rest(stage: Stage) -> str:
    house = stage.house
    two = await house.world.space("REST", stage.noor, await stage.bo("rest"))
    async with house.stream(stage.noor, two) as stream:
        await house.say(stage.noor, stage.case.text, two)
        await _told_in(stream, seq=2)
    messages = (await house.call("GET", f"/api/spaces/{two.id}/messages", stage.noor)).json()["messages"]
    shown = (await house.call("GET", f"/api/spaces/{two.id}", stage.noor)).json()["statuses"]
    return "\n".join([each["text"] for each in messages if each["seq"] > 1] + [each["text"] for each in shown])


async def by_stream(stage: Stage) -> str:
    house = stage.house
    two = await house.world.space("SSE", stage.noor, await stage.bo("sse"))
    async with house.listen(stage.noor, "/api/stream") as stream:
        await stream.until("ready")
        await house.say(stage.noor, stage.case.text, two)
        return await _told_in(stream, seq=2)


async def _told_in(stream: Any, seq: int) -> str:
    """The answer, or what the space shows instead; that somebody waits behind others is not the end of it."""
    while True:
        event = await stream.next()
        if event.name == "message" and event.data["seq"] >= seq:
            return event.data["text"]
        if event.name == "space.statuses":
            texts = [each["text"] for each in event.data["statuses"] if each["cause"] != "queued"]
            if texts:
                return "\n".join(texts)


async def by_chat(stage: Stage) -> str:
    bo = await stage.bo("chat")
    given = {"agent": f"@{bo.entity.handle}", "text": stage.case.text}
    answer = (await stage.house.call("POST", "/api/chat", stage.noor, json=given)).json()
    return "\n".join([*(each["text"] for each in answer["messages"]), answer["note"]])


async def by_openai(stage: Stage) -> str:
    bo = await stage.bo("v1")
    given = {"model": bo.entity.handle, "messages": [{"role": "user", "content": stage.case.text}]}
    answer = await stage.house.call("POST", "/v1/chat/completions", stage.noor, json=given)
    body = answer.json()
    return body["choices"][0]["message"]["content"] if answer.status_code == 200 else body["error"]["message"]


async def by_command(stage: Stage) -> str:
    house, bo = stage.house, await stage.bo("once")
    await house.world.space("Once", stage.noor, bo)
    token = await house.token(stage.noor)
    environ = {"DENIZEN_HOME": str(stage.folder), "DENIZEN_URL": house.address, "DENIZEN_TOKEN": token, "TZ": "UTC"}
    ran = await chat("Once", "--once", stage.case.text, environ=environ | {"PATH": "/usr/bin:/bin"}, cwd=stage.folder)
    if stage.case.answer:
        assert ran == Ran(0, f"Bo: {stage.case.answer}\n", "")
        return ran.out
    assert (ran.status, ran.out, len(ran.err.strip().splitlines())) == (1, "", 1), ran
    return ran.err


WAYS = (in_python, by_rest, by_stream, by_chat, by_openai, by_command)


@pytest.mark.parametrize("name", CASES)
async def test_whoever_waits_is_told_the_same_by_every_way_in(ready_url: str, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    async with open_world(ready_url, pace=UNHURRIED, **case.world) as world, served(world) as house:
        stage = Stage(house, await world.person("Noor"), case, tmp_path)
        async with world.denizen.living(), asyncio.timeout(120):
            told = {way.__name__: await way(stage) for way in WAYS}
    wanted = case.answer or case.sentence
    assert {way: text for way, text in told.items() if wanted not in text} == {}


@pytest.mark.parametrize(
    ("what", "sentence"), [("suspend", "Bo is suspended."), ("delete", "Bo was deleted and will not answer.")]
)
async def test_whoever_waits_is_told_that_the_agent_was_suspended_or_deleted_meanwhile(
    ready_url: str, tmp_path: Path, what: str, sentence: str
) -> None:
    began, over = asyncio.Event(), asyncio.Event()

    async def never(*_: Any) -> str:
        began.set()
        await over.wait()
        return "Never said."

    async with open_world(ready_url, pace=UNHURRIED) as world, served(world) as house:
        stage = Stage(house, await world.person("Noor"), Case([never], sentence), tmp_path)
        end = world.denizen.agents.suspend if what == "suspend" else world.denizen.agents.delete
        async with world.denizen.living(), asyncio.timeout(120):
            for way in WAYS:
                began.clear()
                async with asyncio.TaskGroup() as tasks:
                    told = tasks.create_task(way(stage))
                    await began.wait()
                    assert stage.asked is not None
                    await end(stage.asked)
                assert sentence in told.result(), way.__name__
            over.set()  # else the house waits for its grace when it closes


async def test_a_panel_in_which_nobody_can_answer_is_told_by_openai_clients_and_the_command_line(
    ready_url: str, tmp_path: Path
) -> None:
    """Python, REST and the streams: tests/server/test_statuses.py and tests/panel/test_unanswered.py."""
    async with open_world(ready_url, pace=UNHURRIED) as world, served(world) as house:
        noor = await world.person("Noor")
        world.denizen.models.register("m", forever(lambda *_: ModelKeyRejected("401")))
        panel = await world.denizen.panels.create("Board", [noor], advisors=["Seth", "Buber"], model="m")
        given = {"model": f"panel:{panel.id}", "messages": [{"role": "user", "content": "When?"}]}
        token = await house.token(noor)
        environ = {"DENIZEN_HOME": str(tmp_path), "DENIZEN_URL": house.address, "DENIZEN_TOKEN": token, "TZ": "UTC"}
        async with world.denizen.living(), asyncio.timeout(100):
            completed = await house.call("POST", "/v1/chat/completions", noor, json=given)
            streamed = await house.call("POST", "/v1/chat/completions", noor, json=given | {"stream": True})
            ran = await chat("Board", "--once", "When?", environ=environ | {"PATH": "/usr/bin:/bin"}, cwd=tmp_path)
    sentence = "The advisors could not answer: the provider rejected the API key. Check it under Administration"
    assert sentence in completed.json()["choices"][0]["message"]["content"]
    assert sentence in streamed.text
    assert (ran.status, ran.out, len(ran.err.strip().splitlines())) == (1, "", 1)
    assert sentence in ran.err
