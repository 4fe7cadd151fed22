"""Models."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.cycles import test_misbehaving_models as misbehaving
from tests.cycles import test_profile, test_written_calls
from tests.cycles.test_misbehaving_models import jumping, server  # noqa: F401  fixtures
from tests.models import test_discovery
from tests.models.loopback import Loopback
from tests.panel import test_rounds
from tests.prompts import test_size
from tests.tools import test_generous
from tests.world import World


async def test_a_model_server_on_this_machine_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local model server (Ollama, llama.cpp, LM Studio, vLLM) is found by itself.

    Docs: local-models.md
    """
    await test_discovery.test_a_server_that_speaks_openais_api_on_this_machine_is_found(
        "LLAMACPP_BASE_URL", "llamacpp:qwen2.5-coder", "llama.cpp", monkeypatch
    )


async def test_a_model_is_named_with_its_provider() -> None:
    """A model without its provider is refused, with the name that was probably meant.

    Docs: models.md
    """
    await test_discovery.test_a_model_without_its_provider_is_refused()


async def test_an_agent_of_a_small_model_has_a_short_prompt(small_world: World) -> None:
    """A model with a small context gets a short system prompt and few tools.

    Docs: local-models.md
    """
    await test_profile.test_a_model_that_takes_little_gets_a_short_self_and_few_tools(small_world)


async def test_an_empty_agent_costs_few_tokens(tmp_path: Path) -> None:
    """The first request of an agent has at most 1,500 tokens, and 800 in the small profile.

    Docs: local-models.md
    """
    sizes: dict[Literal["normal", "small"], dict[str, int]] = {
        "normal": {"smollm2": 1_610, "qwen2.5": 1_500},
        "small": {"smollm2": 870, "qwen2.5": 800},
    }
    for profile, ceilings in sizes.items():
        (folder := tmp_path / profile).mkdir()
        await test_size.test_an_empty_agent_costs_no_more_than_this(profile, ceilings, folder)


async def test_calls_that_a_model_writes_as_text_are_made(small_world: World) -> None:
    """A tool call that a weak model writes as text is carried out, and marked in the log.

    Docs: local-models.md
    """
    await test_written_calls.test_a_call_written_as_text_is_carried_out_and_marked_in_the_log(small_world)


async def test_a_model_without_tools_answers_with_text(small_world: World) -> None:
    """Models that cannot use tools work: what they write is the answer.

    Docs: local-models.md
    """
    await test_written_calls.test_a_model_that_cannot_use_tools_is_asked_without_them_and_its_text_is_the_answer(
        small_world
    )


async def test_a_call_that_fails_again_and_again_ends_the_cycle(small_world: World) -> None:
    """The same failing call three times ends in one last step in which the agent can only answer.

    Docs: cycles.md
    """
    await test_generous.test_the_same_failing_call_three_times_ends_in_the_last_step(small_world)


async def test_the_same_message_is_not_sent_twice(small_world: World) -> None:
    """An agent that sends the same message again, before somebody else has spoken, sends it once.

    Docs: cycles.md
    """
    await test_generous.test_the_same_message_again_is_not_posted_until_somebody_has_spoken(small_world)


async def test_an_answer_that_was_cut_off_is_written_again(jumping: World, server: Loopback) -> None:  # noqa: F811
    """A model whose answer reached its limit is told so and writes a shorter one.

    Docs: models.md
    """
    await misbehaving.test_an_answer_that_was_cut_off_is_told_so_and_written_again(jumping, server)


async def test_a_refusal_of_the_provider_is_told(jumping: World, server: Loopback) -> None:  # noqa: F811
    """If a filter of the provider refuses to answer, the person is told so.

    Docs: models.md
    """
    await misbehaving.test_a_refusal_of_a_filter_is_told_to_the_person(jumping, server)


async def test_votes_that_mean_the_same_are_one_camp(small_world: World) -> None:
    """Votes of advisors that mean the same in other words are counted together.

    Docs: panel.md
    """
    await test_rounds.test_positions_that_mean_the_same_are_grouped_by_the_utility_model(small_world)
