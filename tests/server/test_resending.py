"""Retries, regeneration and parallel requests of clients of OpenAI's API: each message is said once."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2

from denizen import reply, scripted
from denizen.agents.resending import REPEATED_SECONDS
from denizen.models.scripted import forever
from denizen.spaces.directory import Entity
from tests.hesitation import Hesitation
from tests.server.conftest import House
from tests.server.test_openai import client, said


def counting(messages: Any, info: Any) -> Any:
    return reply(f"Answer {info.number // 2 + 1}.") if info.number % 2 == 0 else "Said it."


def turns(*spoken: str) -> Any:
    """A conversation: the person begins."""
    return [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(spoken)]


async def ask(house: House, who: Entity, messages: Any, **headers: str) -> tuple[str, str]:
    """The answer, and the id of the message that it answers."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {"model": "ada", "messages": messages}
    answer = await house.call("POST", "/v1/chat/completions", who, json=body, headers=sent)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]["content"], answer.json()["denizen"]["message_id"]


async def transcript(house: House, who: Entity) -> list[str]:
    [space] = (await house.call("GET", "/api/spaces", who)).json()["spaces"]
    return [each.text for each in await house.world.denizen.spaces.messages(space["id"])]


async def test_regenerating_asks_for_another_answer_to_the_same_message(house: House) -> None:
    """And the same words said once more, with the answer in the history, are a new message."""
    world = house.world
    noor = await world.person("Noor")
    await world.agent("Ada", model=forever(counting))
    async with world.denizen.living():
        first, message = await ask(house, noor, turns("Hi"))
        again, same = await ask(house, noor, turns("Hi"))
        third, still = await ask(house, noor, turns("Hi"))
        fourth, _ = await ask(house, noor, turns("Hi", third, "Tell me more"))
        regenerated, _ = await ask(house, noor, turns("Hi", third, "Tell me more"))
        _, new = await ask(house, noor, turns("Hi", third, "Tell me more", regenerated, "Tell me more"))
    assert [first, again, third, fourth, regenerated] == [f"Answer {number}." for number in range(1, 6)]
    assert message == same == still != new
    hi, more = ["Hi", "Answer 1.", "Answer 2.", "Answer 3."], ["Tell me more", "Answer 4.", "Answer 5."]
    assert await transcript(house, noor) == [*hi, *more, "Tell me more", "Answer 6."]


async def test_without_a_history_the_same_words_are_new_after_a_while(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    await world.agent("Ada", model=forever(counting))
    async with world.denizen.living():
        _, first = await ask(small_house, noor, turns("Status?"))
        world.clock.advance(REPEATED_SECONDS)
        _, second = await ask(small_house, noor, turns("Status?"))
    assert first != second
    assert await transcript(small_house, noor) == ["Status?", "Answer 1.", "Status?", "Answer 2."]


async def test_a_retry_gets_the_answer_that_is_there(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", model=forever(counting))
    async with world.denizen.living():
        first = await ask(small_house, noor, turns("Hi"), x_stainless_retry_count="0")
        retried = await ask(small_house, noor, turns("Hi"), x_stainless_retry_count="1")
        with_key = [await ask(small_house, noor, turns("Bye"), Idempotency_Key="k") for _ in range(2)]
    assert first == retried
    assert with_key[0] == with_key[1]
    assert len(await world.cycles(ada)) == 2


async def test_a_client_that_gave_up_and_asks_again_waits_for_the_same_answer(small_house: House) -> None:
    """As OpenAI's clients do by themselves after a timeout."""
    world = small_house.world
    noor = await world.person("Noor")
    hesitation = Hesitation()
    ada = await world.agent("Ada", model=scripted(reply("Here it is, after all."), "Told Noor.", pause=hesitation))
    async with client(small_house, noor) as noors, world.denizen.living():
        for _ in range(2):
            stream = await noors.chat.completions.create(model="ada", messages=said("Hi"), stream=True)
            await anext(aiter(stream))
            await stream.close()
        again: Any = {"x-stainless-retry-count": "2"}
        asking = asyncio.ensure_future(
            noors.chat.completions.create(model="ada", messages=said("Hi"), extra_headers=again)
        )
        hesitation.may_go_on.set()
        answer = await asking
    assert answer.choices[0].message.content == "Here it is, after all."
    assert len(await world.cycles(ada)) == 1
    assert await transcript(small_house, noor) == ["Hi", "Here it is, after all."]


async def test_a_retry_with_a_file_is_the_same_request(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    await world.agent("Ada", model=forever(counting))

    def with_file(text: str) -> Any:
        file = {"file_data": f"data:text/plain;base64,{text}", "filename": "note.txt"}
        return [{"role": "user", "content": [{"type": "text", "text": "Read"}, {"type": "file", "file": file}]}]

    async with world.denizen.living():
        _, one = await ask(small_house, noor, with_file("AAAA"))
        _, same = await ask(small_house, noor, with_file("AAAA"), x_stainless_retry_count="1")
        _, other = await ask(small_house, noor, with_file("BBBB"), x_stainless_retry_count="1")
    assert one == same != other


async def test_parallel_requests_get_their_own_answers(house: House) -> None:
    """Also while the agent sleeps, so that all wait in its inbox at once; other spaces are not held up."""
    world = house.world
    noor = await world.person("Noor")

    def echo(messages: Any, info: Any) -> Any:
        told = str(messages[-1])
        asked = [each for each in ("one", "two", "three", "four") if f"Say {each}" in told]
        return reply(" and ".join(asked)) if asked else "Said it."

    ada = await world.agent("Ada", model=forever(echo))

    async def say(word: str) -> httpx2.Response:
        body = {"model": "ada", "messages": [{"role": "user", "content": f"Say {word}"}]}
        return await house.call("POST", "/v1/chat/completions", noor, json=body)

    words = ["one", "two", "three", "four"]
    await house.token(noor)
    tasks = [asyncio.ensure_future(say(word)) for word in words]
    while len(await world.denizen.minds.inbox(ada)) < 4:
        pass
    async with world.denizen.living():
        answers = await asyncio.gather(*tasks)
    assert [each.json()["choices"][0]["message"]["content"] for each in answers] == words
