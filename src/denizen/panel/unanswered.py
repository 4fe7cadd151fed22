"""Why nobody has answered the last message in a panel, for the person who asked.

It is not stored: it follows from the replies of the last turn, each of which keeps its error. It ends when somebody
answers that message or a later one, and while a retry is running.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, exists, select

from denizen.cycles.troubles import PASSING
from denizen.errors import (
    BudgetSpent,
    ContentRefused,
    ModelAnswerUnusable,
    ModelKeyMissing,
    ModelKeyRejected,
    ModelRejected,
    ModelUnknown,
    ModelUnsuitable,
    PriceUnknown,
    RequestTooLarge,
    ResponsesApiMissing,
    SecretKeyMissing,
    SecretUnreadable,
)
from denizen.ids import EntityId, MessageId, OrganizationId, SpaceId
from denizen.inbox.statuses import Action, Cause
from denizen.models.catalog import OWN, provider_of
from denizen.panel import advisors, panels
from denizen.panel.rounds import ASSISTANT, QUESTION_GONE, Reply
from denizen.storage.database import Tx, statement, values
from denizen.storage.schema import memberships, messages, replies, rounds, spaces
from denizen.storage.schema import panels as panels_table


@dataclass(frozen=True, slots=True)
class PanelStatus:
    """The status of a panel without an answer, in the shape of an agent's status."""

    space_id: SpaceId
    agent_name: str
    """The name of the panel."""
    cause: Cause
    text: str
    """What prevented the answers and what to do, for people."""
    actions: tuple[Action, ...]
    message_id: MessageId
    round_id: str
    created_at: int
    reason: str
    """The same for those who are not in the panel: it names nobody."""
    agent_id: None = None
    retry_at: None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The failed reply of one advisor."""

    voice: str
    name: str
    code: str
    model: str = ""
    """The name of its model, if known."""


@dataclass(frozen=True, slots=True)
class _Wording:
    cause: Cause
    why: str
    then: str
    actions: tuple[Action, ...] = ("try_again",)


_KEY: Final = "Check it under Administration › Keys, then try again."
_NO_KEY: Final = "Add one under Administration › Keys, then try again."
_MODEL: Final = "Choose another model in the settings of the panel or of the advisor, then try again."
_MENDABLE: Final[tuple[Action, ...]] = ("try_again", "settings")
_WORDINGS: Final = {
    ModelKeyRejected.code: _Wording("key", "{provider} rejected the API key", _KEY, _MENDABLE),
    ModelKeyMissing.code: _Wording("key", "there is no API key for {provider}", _NO_KEY, _MENDABLE),
    ModelUnknown.code: _Wording("model", "this server does not know the model {model}", _MODEL, _MENDABLE),
    ModelUnsuitable.code: _Wording("model", "{provider} does not offer the model {model}", _MODEL, _MENDABLE),
    ResponsesApiMissing.code: _Wording(
        "model",
        "the server of the model {model} has no Responses API",
        "Choose {instead} in the settings of the panel or of the advisor, then try again.",
        _MENDABLE,
    ),
    PriceUnknown.code: _Wording(
        "price",
        "there is a budget in dollars, and the price of the model {model} is unknown",
        "Set a price, or a budget in tokens, then try again.",
        _MENDABLE,
    ),
    SecretUnreadable.code: _Wording("definition", "the stored API key cannot be read", _KEY, _MENDABLE),
    SecretKeyMissing.code: _Wording("definition", "the stored API key cannot be read", _KEY, _MENDABLE),
    BudgetSpent.code: _Wording(
        "budget",
        "the budget is used up",
        "Try again when it begins anew, or raise it.",
        ("try_again", "budget"),
    ),
    ContentRefused.code: _Wording("refused", "{provider} refused to process this message", "Ask in other words."),
    RequestTooLarge.code: _Wording(
        "too_large",
        "this message is too long for the model {model}",
        "Send it in parts, or choose a model with a larger window.",
        _MENDABLE,
    ),
    **{code: _Wording("failing", why, "Try again in a while.") for code, why in PASSING.items()},
    ModelRejected.code: _Wording("failing", PASSING[ModelRejected.code], "Try again."),
    "timed_out": _Wording("failing", "{provider} took too long", "Try again in a while."),
}
"""By error code; those that can be fixed come first."""
_OTHERWISE: Final = _Wording("gave_up", PASSING[ModelAnswerUnusable.code], "Try again.")


def explain(failures: Sequence[Failure]) -> tuple[Cause, str, tuple[Action, ...]]:
    """Returns the cause, the sentences and the actions for a message that all these advisors failed to answer."""
    wording, reason = _explain(failures)
    return wording.cause, f"{_subject(failures)} could not answer: {reason}", wording.actions


def _explain(failures: Sequence[Failure]) -> tuple[_Wording, str]:
    order = list(_WORDINGS)
    found = sorted(failures, key=lambda each: order.index(each.code) if each.code in order else len(order))
    wordings = [_WORDINGS.get(each.code, _OTHERWISE) for each in found]
    reasons = dict.fromkeys(wording.why.format_map(_names(each)) for wording, each in zip(wordings, found, strict=True))
    then = wordings[0].then.format_map(_names(found[0]))
    return wordings[0], f"{', and '.join(list(reasons)[:2])}. {then}"


def _subject(failures: Sequence[Failure]) -> str:
    if len(failures) > 1:
        return "The advisors"
    return "The assistant" if failures[0].voice == ASSISTANT else failures[0].name


def _names(failure: Failure) -> dict[str, str]:
    known = "" if failure.model == "default" or failure.model.startswith(OWN) else failure.model
    return {
        "provider": provider_of(known) or "the provider",
        "model": known or "that is set",
        "instead": f"openai-chat:{known.partition(':')[2] or 'NAME'}",
    }


_done = replies.alias("done")
_failed = (
    select(
        rounds.c.space_id,
        spaces.c.name,
        rounds.c.id,
        rounds.c.message_id,
        rounds.c.completed_at,
        replies.c.voice,
        replies.c.name,
        replies.c.error_code,
    )
    .select_from(
        panels_table.join(spaces, spaces.c.id == panels_table.c.space_id)
        .join(
            rounds,
            (rounds.c.space_id == panels_table.c.space_id)
            & (rounds.c.turn == panels_table.c.turns)
            & (rounds.c.step == 0),
        )
        .join(messages, messages.c.id == rounds.c.message_id)
        .join(replies, replies.c.round_id == rounds.c.id)
    )
    .where(
        rounds.c.state == "complete",
        messages.c.deleted_at.is_(None),
        replies.c.part == "reply",
        replies.c.state == "failed",
        replies.c.error_code != QUESTION_GONE,
        ~exists(
            select(_done.c.voice).where(
                _done.c.round_id == rounds.c.id, _done.c.part == "reply", _done.c.state == "done"
            )
        ),
    )
    .order_by(rounds.c.space_id, replies.c.position, replies.c.voice)
)
_in_panel = statement(_failed.where(panels_table.c.space_id == bindparam("space_id")))
_in_panels_of = statement(
    _failed.where(
        panels_table.c.space_id.in_(
            select(memberships.c.space_id).where(memberships.c.entity_id == bindparam("entity_id"))
        )
    )
)
_in_organization = statement(_failed.where(spaces.c.organization_id == bindparam("organization_id")))
_anywhere = statement(_failed)
_under_way = statement(
    select(panels_table.c.space_id)
    .join(rounds, (rounds.c.space_id == panels_table.c.space_id) & (rounds.c.turn == panels_table.c.turns))
    .where(rounds.c.step == 0, rounds.c.state != "complete")
)


def in_space(tx: Tx, space_id: SpaceId) -> list[PanelStatus]:
    """Returns why nobody has answered the last message there; empty if somebody has, or if it is not a panel."""
    return _statuses(tx, tx.all(_in_panel, space_id=space_id))


def in_spaces_of(tx: Tx, entity_id: EntityId) -> list[PanelStatus]:
    """The same for every panel of this entity."""
    return _statuses(tx, tx.all(_in_panels_of, entity_id=entity_id))


def in_organization(tx: Tx, organization_id: OrganizationId) -> list[PanelStatus]:
    """The same for every panel of this organization."""
    return _statuses(tx, tx.all(_in_organization, organization_id=organization_id))


def anywhere(tx: Tx) -> list[PanelStatus]:
    """The same for every panel of the server."""
    return _statuses(tx, tx.all(_anywhere))


def why_some_failed(tx: Tx, panel_id: SpaceId, failed: Sequence[Reply]) -> str:
    """Returns which advisors of a round could not answer, why, and what to do; empty if none failed."""
    failures = _failures(tx, panel_id, [(each.voice, each.name, each.error_code) for each in failed])
    if not failures:
        return ""
    _, reason = _explain(failures)
    return f"{' and '.join(each.name for each in failures)} could not answer: {reason}"


def being_answered(tx: Tx) -> set[SpaceId]:
    """Returns the panels whose last message is being answered now."""
    return set(values(tx, _under_way))


def _statuses(tx: Tx, rows: Iterable[tuple[Any, ...]]) -> list[PanelStatus]:
    failed: dict[SpaceId, list[tuple[Any, ...]]] = {}
    for row in rows:
        space_id, *_ = row
        failed.setdefault(space_id, []).append(row)
    return [_status(tx, space_id, found) for space_id, found in failed.items()]


def _status(tx: Tx, space_id: SpaceId, found: Sequence[tuple[Any, ...]]) -> PanelStatus:
    failures = _failures(tx, space_id, [row[-3:] for row in found])
    cause, text, actions = explain(failures)
    _, reason = _explain(failures)
    _, name, round_id, message_id, completed_at, *_ = found[0]
    return PanelStatus(space_id, name, cause, text, actions, message_id, round_id, completed_at, reason)


def _failures(tx: Tx, panel_id: SpaceId, found: Sequence[tuple[Any, ...]]) -> list[Failure]:
    usual = panels.get(tx, panel_id).settings.model
    own = {str(each.id): each.settings.model or usual for each in advisors.list_of(tx, panel_id)}
    return [Failure(voice, name, code or "", own.get(voice, usual)) for voice, name, code in found]
