"""A panel in which nobody can answer shows why, and what to do; until somebody answers."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from denizen.errors import (
    ContentRefused,
    ModelAnswerUnusable,
    ModelError,
    ModelKeyMissing,
    ModelKeyRejected,
    ModelRejected,
    ModelUnreachable,
    ModelUnsuitable,
    RequestTooLarge,
    ResponsesApiMissing,
)
from denizen.models.scripted import Info, Turn
from denizen.panel.panels import Panel
from denizen.panel.unanswered import Failure, explain
from tests.panel.test_rounds import a_panel, echoing, voices
from tests.world import World

OTHER_MODEL = "Choose another model in the settings of the panel or of the advisor, then try again."


async def shown(world: World, panel: Panel) -> list[tuple[str, str]]:
    return [(each.cause, each.text) for each in await world.denizen.spaces.statuses(panel.id)]


async def test_a_panel_whose_advisors_all_fail_shows_why_until_somebody_answers(world: World) -> None:
    rejected = [True]

    def answer(who: str, messages: list[ModelMessage], info: Info) -> Turn:
        return ModelKeyRejected("401") if rejected[0] else echoing(who, messages, info)

    noor, panel = await a_panel(world, voices(answer), "Seth", "Buber")
    turn = await world.denizen.panels.ask(panel, noor, "Hello?")
    assert await shown(world, panel) == []
    await world.run()
    said = "The advisors could not answer: the provider rejected the API key. Check it under Administration › Keys, "
    assert await shown(world, panel) == [("key", said + "then try again.")]
    [status] = await world.denizen.spaces.statuses(panel.id)
    assert (status.agent_id, status.agent_name, status.actions) == (None, "Board", ("try_again", "settings"))
    # While they are asked again, and when they have answered, there is nothing to tell.
    rejected[0] = False
    await world.denizen.rounds.retry(turn)
    assert await shown(world, panel) == []
    await world.run()
    assert await shown(world, panel) == []


async def test_a_later_message_that_is_answered_ends_it(world: World) -> None:
    def answer(who: str, messages: list[ModelMessage], info: Info) -> Turn:
        said = echoing(who, messages, info)
        return ModelUnsuitable("404") if "first" in said else said

    noor, panel = await a_panel(world, voices(answer), "Seth", "Buber")
    await world.denizen.panels.ask(panel, noor, "The first")
    await world.run()
    assert [cause for cause, _ in await shown(world, panel)] == ["model"]
    await world.denizen.panels.ask(panel, noor, "Another")
    await world.run()
    assert await shown(world, panel) == []


async def test_one_advisor_who_answers_is_an_answer(world: World) -> None:
    def answer(who: str, messages: list[ModelMessage], info: Info) -> Turn:
        return ModelRejected("no") if who == "Seth" else echoing(who, messages, info)

    noor, panel = await a_panel(world, voices(answer), "Seth", "Buber")
    await world.denizen.panels.ask(panel, noor, "Hello?")
    await world.run()
    assert await shown(world, panel) == []


async def test_what_a_person_cancelled_or_deleted_is_not_shown(world: World) -> None:
    noor, panel = await a_panel(world, voices(lambda *_: ModelRejected("no")), "Seth")
    turn = await world.denizen.panels.ask(panel, noor, "Hello?")
    await world.denizen.rounds.cancel(turn)
    assert await shown(world, panel) == []
    asked = await world.denizen.panels.ask(panel, noor, "And now?")
    await world.run()
    said = "Seth could not answer: the provider rejected the request. Try again."
    assert await shown(world, panel) == [("failing", said)]
    await world.denizen.spaces.delete_message(asked.message_id, by=noor)
    assert await shown(world, panel) == []


@pytest.mark.parametrize(
    ("settings", "cause", "text"),
    [
        (
            {"budget": {"tokens": 1}},
            "budget",
            "The assistant could not answer: the budget is used up. Try again when it begins anew, or raise it.",
        ),
        (
            {"model": "nobody:knows"},
            "model",
            f"The assistant could not answer: this server does not know the model nobody:knows. {OTHER_MODEL}",
        ),
    ],
    ids=["budget", "model"],
)
async def test_a_panel_without_advisors_shows_it_too(
    world: World, settings: dict[str, Any], cause: str, text: str
) -> None:
    noor, panel = await a_panel(world, voices(echoing))
    await world.denizen.panels.edit(panel, **settings)
    await world.denizen.panels.ask(panel, noor, "Hello?")
    await world.run()
    assert await shown(world, panel) == [(cause, text)]


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ([ModelKeyMissing], "there is no API key for OpenAI. Add one under Administration › Keys, then try again."),
        ([ContentRefused], "OpenAI refused to process this message. Ask in other words."),
        ([RequestTooLarge], "this message is too long for the model openai:gpt-5. Send it in parts, or choose"),
        ([ModelUnreachable], "OpenAI cannot be reached. Try again in a while."),
        ([ModelAnswerUnusable], "OpenAI gave no usable answer. Try again in a while."),
        (
            [ModelUnreachable, ModelKeyRejected, ModelUnreachable],
            "OpenAI rejected the API key, and OpenAI cannot be reached. Check it under Administration › Keys",
        ),
    ],
)
def test_what_can_be_mended_is_told_first(errors: list[type[ModelError]], told: str) -> None:
    _, text, _ = explain([Failure(str(at), "Seth", each.code, "openai:gpt-5") for at, each in enumerate(errors)])
    assert text.partition(" could not answer: ")[2].startswith(told)


def test_a_server_without_the_responses_api_is_told_with_the_model_to_choose() -> None:
    failed = [Failure("a", "Seth", ResponsesApiMissing.code, "openai:qwen3")]
    cause, text, _ = explain(failed)
    assert (cause, text) == (
        "model",
        (
            "Seth could not answer: the server of the model openai:qwen3 has no Responses API. "
            "Choose openai-chat:qwen3 in the settings of the panel or of the advisor, then try again."
        ),
    )


def test_an_error_that_has_no_words_is_told_all_the_same() -> None:
    assert explain([Failure("a", "Seth", "internal", "default")])[1] == (
        "Seth could not answer: the provider gave no usable answer. Try again."
    )


async def test_a_panel_of_another_organization_does_not_use_models_of_python_programs(world: World) -> None:
    """They were handed over for an agent of the first one, on whose account they may be."""
    ada = await world.agent("Ada", "Never said.")
    other = await world.denizen.organizations.create("Other")
    noor = await world.person("Noor", organization=other)
    panel = await world.denizen.panels.create("Board", [noor], model="python:ada", organization=other)
    await world.denizen.panels.ask(panel, noor, "Hello?")
    await world.run()
    assert [cause for cause, _ in await shown(world, panel)] == ["model"]
    assert world.model(ada).requests == []
