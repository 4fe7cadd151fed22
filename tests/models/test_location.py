"""How long models may take, by where they run."""

from __future__ import annotations

import pytest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from denizen import scripted
from denizen.models.location import LOCAL_PATIENCE, is_local, patience
from tests.world import LocalScript


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost:11434/v1", True),
        ("http://192.168.1.7:8000/v1", True),
        ("http://models.lan/v1", True),
        ("https://api.example.com/v1", False),
    ],
)
def test_a_model_on_this_machine_or_network_has_longer(url: str, local: bool) -> None:
    model = OpenAIChatModel("any", provider=OpenAIProvider(base_url=url, api_key="none"))
    assert is_local(model) is local
    assert patience(model, 10) == (10 * LOCAL_PATIENCE if local else 10)


def test_a_scripted_model_can_stand_for_a_local_one() -> None:
    assert not is_local(scripted())
    assert is_local(LocalScript(scripted()))
