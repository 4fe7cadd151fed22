"""Agents for clients of OpenAI's API, by the package that most of them use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from pydantic_ai.messages import ModelResponse

from denizen import call, reply, scripted, skip
from denizen.agents.registry import Agent
from denizen.errors import ModelUnreachable
from denizen.inbox import parking, statuses
from denizen.models.scripted import Decide, ScriptedModel, Turn, forever
from denizen.server.answering import STOPPING
from denizen.server.context import ServerLimits
from denizen.server.growing_text import taken_back
from denizen.server.shapes.openai import space_meant
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx
from tests.hesitation import Hesitation
from tests.server.conftest import House, served
from tests.server.test_chat import confirm, shown_as
from tests.world import UNHURRIED, World, open_world


@asynccontextmanager
async def client(house: House, who: Entity) -> AsyncGenerator[AsyncOpenAI]:
    secret = house.secrets.get(who.id) or await house.token(who)
    async with AsyncOpenAI(base_url=f"{house.address}/v1", api_key=secret, max_retries=0) as client:
        yield client


def said(text: str) -> Any:
    return [{"role": "system", "content": "You are a pirate."}, {"role": "user", "content": text}]


async def chunks(client: AsyncOpenAI, text: str, **more: Any) -> list[Any]:
    stream = await client.chat.completions.create(model="ada", messages=said(text), stream=True, **more)
    return [chunk async for chunk in stream]


def text_of(told: list[Any]) -> str:
    return "".join(choice.delta.content or "" for chunk in told for choice in chunk.choices)


async def test_agents_are_models(house: House) -> None:
    world = house.world
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor = await world.person("Noor", organization=home)
    for name in ("Ada", "Bee"):
        await world.agent(name, organization=home)
    await world.agent("Theirs", organization=elsewhere)
    async with client(house, noor) as theirs:
        models = [each async for each in theirs.models.list()]
        assert [(each.id, each.object, each.owned_by) for each in models] == [
            ("ada", "model", "Home"),
            ("bee", "model", "Home"),
        ]
        assert await theirs.models.retrieve("ada") == models[0]
        with pytest.raises(openai.NotFoundError):
            await theirs.models.retrieve("theirs")


async def test_the_last_message_of_the_user_is_said_and_the_answer_is_all_that_the_agent_says(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("It did."), reply("All of it."), "Told Noor.", skip("not mine"))
    history = [
        {"role": "user", "content": "Earlier"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": [{"type": "text", "text": "Did it"}, {"type": "text", "text": "pass?"}]},
    ]
    async with client(house, noor) as noors, world.denizen.living():
        answer = await noors.chat.completions.create(model="ada", messages=history, temperature=0.3)  # type: ignore[arg-type]
        nothing = await noors.chat.completions.create(model=ada.id, messages=said("Thanks"))

    cycle, _ = await world.cycles(ada)
    assert (answer.object, answer.model) == ("chat.completion", "ada")
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("It did.\n\nAll of it.", "stop")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (cycle.input_tokens, cycle.output_tokens)
    about = answer.model_extra["denizen"]  # type: ignore[index]
    assert (about["outcome"], about["cycle"]) == ("acted", 1)
    nothing_said = "Ada read this and did not reply."
    assert (nothing.choices[0].message.content, nothing.choices[0].finish_reason) == (nothing_said, "stop")
    messages = await world.denizen.spaces.messages(about["space_id"])
    assert [each.text for each in messages] == ["Did it\npass?", "It did.", "All of it.", "Thanks"]


async def test_chunks_carry_the_text_while_it_is_written(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    hesitation = Hesitation()
    turns = reply("One two three four five six."), reply("And seven."), "Counted.", skip("enough")
    ada = await world.agent("Ada", model=scripted(*turns, pause=hesitation))
    async with client(house, noor) as noors, world.denizen.living():
        stream = await noors.chat.completions.create(
            model="ada", messages=said("Count"), stream=True, stream_options={"include_usage": True}
        )
        told: list[Any] = []
        async for chunk in stream:
            told.append(chunk)
            if text_of(told) and not hesitation.may_go_on.is_set():
                assert "One two three four five six.".startswith(text_of(told))
                hesitation.may_go_on.set()
        nothing = await chunks(noors, "More")

    assert hesitation.may_go_on.is_set()
    assert text_of(told) == "One two three four five six.\n\nAnd seven."
    assert told[0].choices[0].delta.role == "assistant"
    assert [each.choices[0].finish_reason for each in told if each.choices][-2:] == [None, "stop"]
    cycle, _ = await world.cycles(ada)
    assert (told[-1].choices, told[-1].usage.total_tokens) == ([], cycle.input_tokens + cycle.output_tokens)
    assert len({each.id for each in told}) == 1
    assert (text_of(nothing), nothing[-1].choices[0].finish_reason) == ("Ada read this and did not reply.", "stop")


async def test_in_a_space_of_several_agents_the_answer_may_be_that_of_another(house: House) -> None:
    """The agent that was asked skips; the floor passes to the next one, whose text is streamed and counted."""
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", skip("not mine"), skip("not mine"))
    ben = await world.agent("Ben", reply("One two three."), "Counted.", reply("Four."), "Counted.")
    hall = await world.space("Hall", noor, ada, ben)
    await world.denizen.spaces.set_floor(hall, "one")
    async with client(house, noor) as noors, world.denizen.living():
        told = await chunks(noors, "Count", user=hall.id, stream_options={"include_usage": True})
        answer = await house.call("POST", "/api/chat", noor, json={"agent": "@ada", "text": "On", "space": hall.id})
    assert text_of(told) == "One two three."
    first, _ = await world.cycles(ben)
    assert told[-1].usage.total_tokens == first.input_tokens + first.output_tokens
    assert [each["author"]["id"] for each in answer.json()["messages"]] == [ben.id]
    assert (answer.json()["outcome"], answer.json()["final_response"]["text"]) == ("acted", "Four.")


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ("Hello, Noor. Good morning.", "Hello, Noor. Good morning."),
        ("Good morning.", f"Hello, No\n\n{taken_back('Hello, No')}\n\nGood morning."),
    ],
    ids=["the same again", "something else"],
)
async def test_what_was_streamed_and_broke_off_is_not_repeated(ready_sqlite_url: str, second: str, told: str) -> None:
    limits = ServerLimits(completion_seconds=1_000_000)
    async with open_world(ready_sqlite_url, pace=UNHURRIED) as world, served(world, limits=limits) as house:
        noor = await world.person("Noor")
        hesitation = Hesitation()
        turns = [reply("Hello, No"), ModelUnreachable("line cut")], reply(second), "Greeted."
        model = scripted(*turns, pause=hesitation, chunk=4)
        await world.agent("Ada", model=model)
        async with client(house, noor) as noors, world.denizen.living(), asyncio.TaskGroup() as tasks:
            stream = await noors.chat.completions.create(model="ada", messages=said("Hi"), stream=True)
            got: list[Any] = []

            async def read() -> None:
                async for chunk in stream:
                    got.append(chunk)
                    if text_of(got):
                        hesitation.may_go_on.set()

            reading = tasks.create_task(read())
            while not reading.done():
                # The model is asked again after a while.
                await asyncio.sleep(0)
                world.clock.skip(1)
        assert text_of(got) == told


async def test_a_pause_says_what_it_waits_for_and_the_next_message_answers_it(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    turns = [reply("Wait."), call("confirm", what="deploy")], reply("Deployed."), "Did it."
    await world.agent("Ada", *turns, tools=[confirm()])
    waits = 'Wait.\n\nThe agent waits for an answer to what it has asked.\n- confirm: {"what":"deploy"}'
    async with client(small_house, noor) as noors, world.denizen.living():
        told = await chunks(noors, "Deploy")
        answer = await noors.chat.completions.create(model="ada", messages=said("Yes"))
    assert (text_of(told), told[-1].choices[0].finish_reason) == (waits, "stop")
    assert told[-1].model_extra["denizen"]["outcome"] == "paused"
    assert answer.choices[0].message.content == "Deployed."


async def test_an_agent_that_cannot_answer_is_an_error_that_is_not_tried_again(small_house: House) -> None:
    """A rejected key is the server's trouble, never a 401 of the caller; what was said is kept, and said once."""
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")

    def reject_key(tx: Tx) -> None:
        parking.park(tx, ada.id, "key", provider="OpenAI")

    secret = await small_house.token(noor)
    address = f"{small_house.address}/v1"
    async with AsyncOpenAI(base_url=address, api_key=secret, max_retries=2) as noors:
        for trouble, sentence in [
            (lambda: world.denizen.db.write(reject_key), "OpenAI rejected the API key of Ada."),
            (lambda: world.denizen.agents.suspend(ada), "Ada is suspended."),
        ]:
            await trouble()
            for stream in (False, True):
                with pytest.raises(openai.InternalServerError) as failure:
                    await noors.chat.completions.create(model="ada", messages=said(sentence), stream=stream)
                assert (failure.value.status_code, failure.value.code) == (503, "agent_unavailable")
                assert failure.value.type == "server_error"
                assert failure.value.body["message"].startswith(sentence)  # type: ignore[index]
    assert len(await world.denizen.minds.inbox(ada)) == 2


@pytest.mark.parametrize(("cause", "code"), [("model", "agent_unavailable"), ("too_large", "message_refused")])
async def test_trouble_that_comes_later_is_an_error_too(
    unhurried_house: House, cause: statuses.Cause, code: str
) -> None:
    """Whole, it has its status; in chunks, it is an event."""
    world = unhurried_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")

    async def trouble() -> None:
        while not (events := await world.denizen.minds.inbox(ada)):
            pass
        assert events[-1].space_id is not None
        assert events[-1].message_id is not None
        await world.denizen.db.write(shown_as(ada, cause, events[-1].space_id, events[-1].message_id))

    async with client(unhurried_house, noor) as noors, asyncio.TaskGroup() as tasks:
        stream = await noors.chat.completions.create(model="ada", messages=said("Hello?"), stream=True)
        await trouble()
        with pytest.raises(openai.APIError) as streamed:
            [_ async for _ in stream]
        await world.denizen.db.write(parking.unpark, ada.id)
        await world.denizen.db.write(statuses.clear, ada.id, statuses.CAUSES)

        async def ask() -> openai.APIStatusError:
            with pytest.raises(openai.APIStatusError) as failure:
                await noors.chat.completions.create(model="ada", messages=said("Hello?"), user="another")
            return failure.value

        asking = tasks.create_task(ask())
        while len(await world.denizen.minds.inbox(ada)) < 2:
            pass
        await trouble()
        whole = await asking
    assert (streamed.value.code, whole.code) == (code, code)
    assert whole.status_code == {"agent_unavailable": 503, "message_refused": 400}[code]
    assert streamed.value.body["message"] == whole.body["message"]  # type: ignore[index]


async def test_when_the_time_is_over_there_is_what_there_is(small_world: World) -> None:
    world = small_world
    noor = await world.person("Noor")
    await world.agent("Ada")
    async with served(world, limits=ServerLimits(completion_seconds=0)) as house, client(house, noor) as noors:
        answer = await noors.chat.completions.create(model="ada", messages=said("Hello?"))
        assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("", "length")
        assert answer.model_extra["denizen"]["outcome"] == "working"  # type: ignore[index]


async def test_when_the_server_stops_the_answer_ends_as_it_should(small_house: House) -> None:
    """Chunks have their last one, and what is not streamed is no error: a client would say it twice."""
    world = small_house.world
    noor = await world.person("Noor")
    hesitation = Hesitation()
    turns = reply("One two three four five six."), "Counted."
    await world.agent("Ada", model=scripted(*turns, pause=hesitation))
    async with client(small_house, noor) as noors, world.denizen.living(), asyncio.TaskGroup() as tasks:
        stream = await noors.chat.completions.create(model="ada", messages=said("Count"), stream=True)
        told: list[Any] = []
        while not text_of(told):
            told.append(await anext(stream))
        waiting = tasks.create_task(noors.chat.completions.create(model="ada", messages=said("More")))
        [space] = (await small_house.call("GET", "/api/spaces", noor)).json()["spaces"]
        while len(await world.denizen.spaces.messages(space["id"])) < 2:
            pass
        small_house.stop.set()
        told += [chunk async for chunk in stream]
        answer = await waiting
        hesitation.may_go_on.set()

    shown = text_of(told)
    assert "One two three four five six.".startswith(shown.partition("\n\n")[0])
    assert shown.endswith(STOPPING)
    assert told[-1].choices[0].finish_reason == "length"
    assert told[-1].model_extra["denizen"]["outcome"] == "working"
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == (STOPPING, "length")


async def test_the_space_can_be_chosen(house: House) -> None:
    """By `metadata.space`, by `user` where that is a space; any other user has a private space of its own."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada", model=forever(echo))
    hall, theirs = await world.space("Hall", noor, ada), await world.space("Theirs", sam, ada)
    async with client(house, noor) as noors, world.denizen.living():

        async def where(**more: Any) -> str:
            answer = await noors.chat.completions.create(model="@ada", messages=said("Hi"), **more)
            assert answer.choices[0].message.content == "Echo."
            return answer.model_extra["denizen"]["space_id"]  # type: ignore[index]

        assert await where(metadata={"space": hall.id}) == hall.id
        assert await where(user=hall.id) == hall.id
        private, one, two = await where(), await where(user="one"), await where(user="two")
        assert await where(user="one") == one
        assert len({private, one, two, hall.id}) == 4
        assert await where(user=f"space:{hall.id}") == hall.id
        # A space that one is not in is not entered, whatever it is called by; and no other is made for it.
        for mistyped in (theirs.id, hall.id[:-1], f"space:{theirs.id}", "space: Hall"):
            with pytest.raises(openai.BadRequestError, match="you are in no such space"):
                await where(user=mistyped)
        with pytest.raises(openai.NotFoundError):
            await where(metadata={"space": theirs.id})
    assert await world.transcript(theirs) == []


@pytest.mark.parametrize(
    ("user", "meant"),
    [
        ("019b8d3f-0a00-7d24-8c3b-5e6f7a8b9c0d", True),
        (" 019B8D3F-0A00-7D24-8C3B-5E6F7A8B9C0D", True),
        ("7c6f3a52-0d2f-5c0b-8b3e-5a0f6d1e9c47", True),
        ("019b8d3f-0a00-7d24-8c3b-5e6f7a8b9c0", True),
        ("019b8d3f-0a00-7d24-8c3b-5e6f7a8b9c0dd", True),
        ("Space:hall", True),
        ("7c6f3a52-0d2f-4c0b-8b3e-5a0f6d1e9c47", False),
        ("customer 019b8d3f-0a00-7d24-8c3b-5e6f7a8b9c0d", False),
        ("d41d8cd98f00b204e9800998ecf8427e", False),
        ("2026-03-05", False),
        ("noor@example.org", False),
        ("spaces are nice", False),
    ],
    ids=str,
)
def test_what_looks_like_the_id_of_a_space_is_meant_as_one(user: str, meant: bool) -> None:
    """Ids of other systems, most of which are random, are names."""
    assert space_meant(user)[1] is meant


async def test_what_the_provider_had_cached_is_told(small_house: House) -> None:
    """Of a cycle that has ended, all its steps together, and of one that was skipped."""
    world = small_house.world
    noor = await world.person("Noor")
    model = Cached(iter([reply("It did."), "Told Noor.", skip("not mine")]))
    await world.agent("Ada", model=model)
    async with client(small_house, noor) as noors, world.denizen.living():
        answers = [await noors.chat.completions.create(model="ada", messages=said("Hi")) for _ in range(2)]
    used: list[Any] = [each.usage for each in answers]
    assert [each.prompt_tokens_details.cached_tokens for each in used] == [2 * Cached.TOKENS, Cached.TOKENS]


class Cached(ScriptedModel):
    """A model whose provider had some of every request."""

    TOKENS = 7

    def __init__(self, turns: Iterator[Turn]) -> None:
        decide: Decide = lambda _messages, _info: next(turns)  # noqa: E731
        super().__init__(decide, name="cached", chunk=None, pause=None, record=False)

    async def answer(self, messages: Any, settings: Any, parameters: Any) -> Any:
        stream: Any = await super().answer(messages, settings, parameters)
        get = stream.get
        stream.get = lambda: self._with_cache(get())
        return stream

    def _with_cache(self, response: ModelResponse) -> ModelResponse:
        return replace(response, usage=replace(response.usage, cache_read_tokens=self.TOKENS))


def echo(messages: Any, info: Any) -> Any:
    return reply("Echo.") if info.number % 2 == 0 else "Echoed."


async def test_errors_have_the_shape_that_clients_understand(small_house: House) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    async with client(small_house, noor) as noors:
        with pytest.raises(openai.NotFoundError) as unknown:
            await noors.chat.completions.create(model="nobody", messages=said("Hi"))
        assert (unknown.value.code, unknown.value.type) == ("not_found", "invalid_request_error")
        with pytest.raises(openai.BadRequestError) as nothing:
            await noors.chat.completions.create(model="ada", messages=[{"role": "system", "content": "Be."}])
        assert (nothing.value.code, nothing.value.body["message"][:9]) == ("invalid_input", "messages:")  # type: ignore[index]
        with pytest.raises(openai.BadRequestError, match="one answer") as several:
            await noors.chat.completions.create(model="ada", messages=said("Hi"), n=2)
        assert several.value.param == "n"
        picture: Any = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
        with pytest.raises(openai.BadRequestError, match="a data URL begins with its type"):
            await noors.chat.completions.create(model="ada", messages=picture)
        with pytest.raises(openai.BadRequestError, match="This server has no embedder"):
            await noors.embeddings.create(model="any", input="Hi")
    async with AsyncOpenAI(base_url=f"{small_house.address}/v1", api_key="dz_wrong", max_retries=0) as stranger:
        with pytest.raises(openai.AuthenticationError) as refused:
            await stranger.models.list()
        assert (refused.value.code, refused.value.type) == ("unauthorized", "authentication_error")
    async with client(small_house, ada.entity) as agents:
        with pytest.raises(openai.PermissionDeniedError) as forbidden:
            await agents.chat.completions.create(model="ada", messages=said("Hi"))
        assert forbidden.value.code == "not_allowed"
    answer = await small_house.call("GET", "/v1/nothing", noor)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert answer.headers["content-type"] == "application/json"


class Compass:
    """An embedder that knows two directions. It stands in for a provider's."""

    name = "compass"

    async def embed(self, texts: Any, *, asking: bool = False) -> list[bytes]:
        return [bytes([127, 0]) if "north" in text else bytes([3, 0x100 - 4]) for text in texts]

    async def close(self) -> None:
        """Nothing was opened."""


async def test_embeddings_come_from_the_embedder_of_the_house(ready_sqlite_url: str) -> None:
    async with open_world(ready_sqlite_url, embedder=Compass()) as world, served(world) as house:
        noor = await world.person("Noor")
        async with client(house, noor) as noors:
            found = await noors.embeddings.create(model="any", input=["To the north", "elsewhere"])
            plain = await noors.embeddings.create(model="any", input="elsewhere", encoding_format="float")
            with pytest.raises(openai.BadRequestError, match="has 2"):
                await noors.embeddings.create(model="any", input="x", dimensions=3)
    assert [pytest.approx(each.embedding) for each in found.data] == [[1, 0], [0.6, -0.8]]
    assert (found.model, [each.index for each in found.data]) == ("compass", [0, 1])
    assert plain.data[0].embedding == pytest.approx([0.6, -0.8])
    assert plain.usage.total_tokens > 0


async def test_embeddings_of_tokens_are_those_of_their_text(ready_sqlite_url: str) -> None:
    async with open_world(ready_sqlite_url, embedder=Compass()) as world, served(world) as house:
        noor = await world.person("Noor")
        async with client(house, noor) as noors:
            several = await noors.embeddings.create(model="text-embedding-3-small", input=[[62995], [15339, 1917]])
            one = await noors.embeddings.create(model="any", input=[1820, 10411])
            newer = await noors.embeddings.create(model="gpt-4o", input=[3086, 16173])
            for model, tokens, reason in (
                ("ada", [1, 2], "a vocabulary that this server does not have"),
                ("any", [100_257], "100257 is not a token of text"),
                ("any", [], "input"),
            ):
                with pytest.raises(openai.BadRequestError, match=reason) as refused:
                    await noors.embeddings.create(model=model, input=tokens)
                assert not tokens or "check_embedding_ctx_length=False" in str(refused.value)
    elsewhere = pytest.approx([0.6, -0.8])
    assert [each.embedding for each in several.data] == [pytest.approx([1, 0]), elsewhere]
    assert one.data[0].embedding == pytest.approx([1, 0])
    assert newer.data[0].embedding == pytest.approx([1, 0])


async def test_a_client_that_leaves_does_not_stop_the_agent(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    hesitation = Hesitation()
    ada = await world.agent("Ada", model=scripted(reply("One two three four five six."), "Counted.", pause=hesitation))
    async with client(small_house, noor) as noors, world.denizen.living() as residents:
        stream = await noors.chat.completions.create(model="ada", messages=said("Count"), stream=True)
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.close()
        hesitation.may_go_on.set()
        await residents.run_until_idle()
    [cycle] = await world.cycles(ada)
    assert cycle.outcome == "acted"


async def test_a_stream_ends_when_the_server_does(small_world: World) -> None:
    world = small_world
    noor = await world.person("Noor")
    await world.agent("Ada")
    async with served(world) as house, client(house, noor) as noors:
        stream = await noors.chat.completions.create(model="ada", messages=said("Hello?"), stream=True)
        first = await anext(aiter(stream))
        assert first.choices[0].delta.role == "assistant"
        asking = asyncio.ensure_future(noors.chat.completions.create(model="ada", messages=said("Hello?")))
        [agent] = [each async for each in noors.models.list()]
        assert agent.id == "ada"
        house.stop.set()
        assert (await asking).choices[0].finish_reason == "length"


async def test_a_message_said_twice_with_one_key_is_said_once(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    ada: Agent = await world.agent("Ada", model=forever(echo))
    async with client(small_house, noor) as noors, world.denizen.living():
        for _ in range(2):
            await noors.chat.completions.create(
                model="ada", messages=said("Hi"), extra_headers={"Idempotency-Key": "once"}
            )
    assert len(await world.cycles(ada)) == 1
