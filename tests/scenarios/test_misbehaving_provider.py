"""An agent whose provider misbehaves: whoever waits is told so in plain words, and answered when it behaves again."""

from __future__ import annotations

import json

import httpx2
import pytest
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from denizen.checker import check_database
from denizen.inbox import statuses
from denizen.models.openai import accelerate
from tests.models.loopback import Failure, loopback
from tests.world import UNHURRIED, JumpingClock, open_world

MODEL = "openai:gpt-loopback"


def refusal(**error: str) -> Failure:
    return Failure(400, body={"error": error})


CASES: dict[str, tuple[Failure, str]] = {
    "wrong key": (Failure(401), "OpenAI rejected the API key of Bo."),
    "forbidden": (Failure(403), "OpenAI rejected the API key of Bo."),
    "no credit": (
        Failure(429, body={"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}),
        "OpenAI rejected the API key of Bo: its credit is used up. Add credit to its account, or set another key",
    ),
    "unknown model": (
        Failure(404),
        f"Bo cannot use the model {MODEL}: the provider does not have it.",
    ),
    "no tools": (
        refusal(message=f"{MODEL} does not support tools"),
        f"Bo cannot use the model {MODEL}: it cannot use tools.",
    ),
    "rate limit": (Failure(429), "Bo has trouble answering: OpenAI is overloaded or limits the rate of requests."),
    "server error": (Failure(500), "Bo has trouble answering: OpenAI gave no usable answer."),
    "cut off": (Failure(cut_after=1), "Bo has trouble answering: OpenAI gave no usable answer."),
    "bad request": (Failure(400), "Bo has trouble answering: OpenAI rejected the request."),
    "refused": (refusal(message="no", code="content_policy_violation"), "OpenAI refused to process this message."),
    "too large": (
        refusal(message="too long", code="context_length_exceeded"),
        f"This message is too long for the model {MODEL}.",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_provider_that_fails_is_told_of_and_answers_later(ready_url: str, case: str):
    failure, told = CASES[case]
    async with (
        loopback() as server,
        AsyncOpenAI(
            base_url=f"{server.url}/v1", api_key="k", max_retries=0, http_client=httpx2.AsyncClient(verify=False)
        ) as client,
        open_world(ready_url, clock=JumpingClock(), pace=UNHURRIED) as world,
    ):
        server.text, server.arguments = "", json.dumps({"text": "Here."})
        model = accelerate(OpenAIChatModel("gpt-loopback", provider=OpenAIProvider(openai_client=client)))
        world.denizen.models.register(MODEL, model)
        bo = await world.denizen.agents.create("Bo", model=MODEL, cycle={"stop_when": ["responded_to_all"]})
        noor = await world.person("Noor")
        two = await world.space("Noor and Bo", noor, bo)

        server.failure = failure
        await world.say(noor, "Please read this. " * 200, two)
        await world.run()
        [status] = await world.denizen.db.read(statuses.of_space, two.id)
        assert status.text.startswith(told)
        assert "status_code" not in status.text
        assert "try_again" in status.actions
        assert await check_database(world.denizen.db) == []

        server.failure = None
        await world.denizen.agents.try_again(bo, two)
        await world.run()
        assert (await world.transcript(two))[1:] == ["Bo: Here."]
        assert await world.denizen.db.read(statuses.of_space, two.id) == []
