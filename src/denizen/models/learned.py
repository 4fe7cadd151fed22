"""What this process has learned about model servers from their answers. Lost when the process ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic_ai.models import Model

MOST_SERVERS: Final = 1_024


@dataclass(slots=True)
class LearnedFacts:
    """What is known of one model at one address."""

    context_tokens: int | None = None
    """The size of the context: request and answer together."""
    context_source: str = ""
    """How the size was learned."""
    ask_again_at: float = 0.0
    """When its server may be asked for the size again, by the monotonic clock."""
    unfinished: int = 0
    """How many answers in a row have ended without a finish reason."""
    plain_answers: int = 0
    """How many answers in a row were complete and without thinking."""
    refused_settings: frozenset[str] = frozenset()
    """Settings that it does not accept, which are left out."""


_known: dict[tuple[str, str, str], LearnedFacts] = {}


def about(model: Model) -> LearnedFacts:
    """Returns what was learned about the model at its address. About a model without an address nothing is known."""
    address = model.base_url
    if address is None:
        return LearnedFacts()
    key = model.system, address, model.model_name
    if key not in _known:
        if len(_known) >= MOST_SERVERS:
            del _known[next(iter(_known))]
        _known[key] = LearnedFacts()
    return _known[key]


def learn_context(model: Model, tokens: int, source: str) -> None:
    """Records the size of the model's context."""
    learned = about(model)
    learned.context_tokens, learned.context_source = tokens, source


def acceptable(model: Model, settings: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings without those that this server has refused before."""
    refused = about(model).refused_settings
    return {name: value for name, value in settings.items() if name not in refused} if refused else settings
