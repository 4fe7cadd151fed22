"""Classifies errors of a cycle: temporary, caused by the agent's settings, or caused by one message."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

from pydantic import JsonValue, ValidationError

from denizen.errors import (
    ContentRefused,
    InvalidInput,
    ModelAnswerUnusable,
    ModelError,
    ModelKeyMissing,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnknown,
    ModelUnreachable,
    ModelUnsuitable,
    PriceUnknown,
    RequestTooLarge,
    ResponsesApiMissing,
    SecretKeyMissing,
    SecretUnreadable,
    StepFunctionFailed,
    ToolMissing,
)
from denizen.inbox.statuses import CREDIT_USED_UP, EVENT_CAUSES, PARKING_CAUSES, EventCause, ParkingCause
from denizen.models.catalog import OWN, provider_of

PASSING: Final = {
    ModelOverloaded.code: "{provider} is overloaded or limits the rate of requests",
    ModelUnreachable.code: "{provider} cannot be reached",
    ModelAnswerUnusable.code: "{provider} gave no usable answer",
    ModelRejected.code: "{provider} rejected the request",
}
"""Why a model did not answer, where that passes by itself, by the code of the error. Panels say the same."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why an agent could not answer, in words for the person who waits."""

    cause: ParkingCause | EventCause | Literal["failing", "interrupted"]
    """`failing`: it passes by itself; `interrupted`: the process crashed too often."""
    detail: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The details of a status with this cause."""

    @property
    def parks(self) -> ParkingCause | None:
        """A cause in the agent: it fails until somebody changes something."""
        return next((cause for cause in PARKING_CAUSES if cause == self.cause), None)

    @property
    def sets_aside(self) -> EventCause | None:
        """A cause in the message: other messages may be answered."""
        return next((cause for cause in EVENT_CAUSES if cause == self.cause), None)


def classify(error: BaseException, model_name: str) -> Trouble:
    """Classify an error that was raised while the agent thought with this model, or was prepared to think."""
    model_name = (error.model if isinstance(error, ModelError) else "") or model_name
    trouble = _classify(error)
    known: dict[str, JsonValue] = {}
    if (provider := provider_of(model_name)) is not None:
        known["provider"] = provider
    if model_name and not model_name.startswith(OWN):
        known["model"] = model_name
    if trouble.cause == "failing" and "reason" in trouble.detail:
        said = str(trouble.detail["reason"]).format(provider=provider or "its model")
        return replace(trouble, detail={**known, "reason": said})
    return replace(trouble, detail={**known, **trouble.detail})


def _classify(error: BaseException) -> Trouble:
    match error:
        case ModelKeyMissing():
            return Trouble("key", {"missing": True})
        case ModelKeyRejected():
            return Trouble("key", {"reason": CREDIT_USED_UP} if _is_about_credit(error) else {})
        case ResponsesApiMissing(instead=name):
            return Trouble("model", {"reason": f"its server has no Responses API, which {name} does not need"})
        case ModelUnsuitable():
            reason = "it cannot use tools" if "tool" in str(error).lower() else "the provider does not have it"
            return Trouble("model", {"reason": reason})
        case ModelUnknown():
            return Trouble("model", {"reason": "this server does not know it"})
        case RequestTooLarge():
            return Trouble("too_large")
        case ContentRefused():
            return Trouble("refused")
        case PriceUnknown():
            return Trouble("price")
        case StepFunctionFailed():
            return Trouble("definition", {"reason": f"its function {error.function!r} failed: {error.what}"})
        case ToolMissing():
            return Trouble("tool", {"reason": str(error)})
        case InvalidInput() | SecretUnreadable() | SecretKeyMissing():
            return Trouble("definition", {"reason": str(error)})
        case ValidationError():
            return Trouble("definition", {"reason": "its stored settings cannot be read"})
        case ModelOverloaded() | ModelUnreachable() | ModelRejected():
            return Trouble("failing", {"reason": PASSING[error.code]})
        case _:
            return Trouble("failing")


_CREDIT = ("quota", "credit", "billing", "(402)", "balance")


def _is_about_credit(error: ModelKeyRejected) -> bool:
    said = str(error).lower()
    return any(word in said for word in _CREDIT)
