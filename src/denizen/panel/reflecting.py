"""Reflection of panels, after a turn and beside the rounds, which it never delays.

Turns are reflected on in order, once all advisors have answered. Each advisor that reflects does so on the turn as it
saw it: what people said and what it said itself. The results of all are stored in one transaction that moves the
panel's cursor. An instance claims a turn before it asks a model. If it dies in between, the cursor stays and its claim
expires: another instance finds the turn and reflects on it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, select

from denizen.cycles.utility_budget import UtilityBudget
from denizen.errors import NotFound
from denizen.ids import EntityId, MessageId, SpaceId
from denizen.inbox.format import one_line
from denizen.models.discovery import utility_model_for
from denizen.panel import advisor_stances, panels, rounds
from denizen.panel.advisor_stances import Voice
from denizen.panel.asking import PanelDeps
from denizen.panel.costs import PanelPayer
from denizen.panel.panels import Panel
from denizen.panel.rounds import QUESTION_GONE
from denizen.reflection import configuration, signals, thinking
from denizen.reflection.configuration import Configuration, Effective
from denizen.reflection.cursor import PANEL_CURSOR, Claimant
from denizen.reflection.sentiment import Classifier, Sentiment
from denizen.reflection.settings import Metaprompt
from denizen.reflection.stance_store import VOICES, Run
from denizen.reflection.thinking import (
    MetapromptTrial,
    NamedModel,
    Pending,
    PersonSentiment,
    Reflector,
    TurnToReflect,
    last_felt,
    quoted,
    reading_of,
    think_over_all,
)
from denizen.spaces import posting
from denizen.storage.database import Tx, equal, statement
from denizen.storage.schema import entities, messages, replies
from denizen.storage.schema import rounds as rounds_table

TURNS: Final = 5
"""Turns of a panel that a metaprompt is shown."""
TRIED_TURNS: Final = 20
"""Turns of a panel that are searched for an advisor's last replies."""
_ERROR_CHARACTERS: Final = 200


_asked = statement(
    select(rounds_table.c.message_id, rounds_table.c.asked_by, replies.c.voice, replies.c.state, replies.c.error_code)
    .select_from(rounds_table.join(replies, replies.c.round_id == rounds_table.c.id))
    .where(*equal(rounds_table, "space_id, turn"), rounds_table.c.step == 0, replies.c.part == "reply")
    .order_by(replies.c.position, replies.c.voice)
)


def next_held(tx: Tx, panel_id: SpaceId) -> tuple[Panel, dict[str, Voice], Pending[str]] | None:
    """Returns the next turn to reflect on, as each reflecting advisor that was asked saw it; None if there is none, or
    someone has still to answer it."""
    mark = PANEL_CURSOR.last_turn(tx, panel_id)
    panel = None if mark is None else panels.get(tx, panel_id)
    if mark is None or panel is None or panel.turns <= mark:
        return None
    asked = tx.all(_asked, space_id=panel_id, turn=mark + 1)
    if any(state not in rounds.OVER for *_, state, _code in asked):
        return None
    had = {voice for *_, voice, state, code in asked if state != "cancelled" and code != QUESTION_GONE}
    voices = {each.id: each for each in advisor_stances.voices_once_asked(tx, panel, had) if each.reflection.is_on}
    turns = _turns(tx, panel_id, mark + 1, voices.values(), *asked[0][:2]) if voices else {}
    return panel, voices, Pending(mark + 1, turns, PANEL_CURSOR.redactions_so_far(tx, panel_id))


def _turns(
    tx: Tx, panel_id: SpaceId, turn: int, voices: Iterable[Voice], message_id: MessageId, asked_by: EntityId
) -> dict[str, TurnToReflect]:
    """Reads the turn as each advisor saw it. The number of statements depends neither on the advisors nor on the
    panel's age.
    """
    said = _said(tx, message_id, asked_by)
    minds = advisor_stances.minds(tx, panel_id, turn, asked_by)
    exchanges, tried = _exchanges(tx, panel_id, turn), _tried(tx, panel_id, turn)
    return {
        each.id: TurnToReflect(
            stance=minds[each.id].stance,
            said=said,
            counted={asked_by: minds[each.id].counters},
            recent=_recent(exchanges, each),
            failed=tuple(error is not None for error in tried[each.id]),
            results=1,
            errors=_errors(tried[each.id]),
            last_line=minds[each.id].last_line,
        )
        for each in voices
    }


def _said(tx: Tx, message_id: MessageId, asked_by: EntityId) -> dict[EntityId, str]:
    try:
        message = posting.get_message(tx, message_id)
    except NotFound:
        return {}
    return {} if message.deleted_at is not None else {asked_by: message.text}


_answers = statement(
    select(replies.c.voice, replies.c.state, replies.c.error_code, replies.c.error)
    .select_from(rounds_table.join(replies, replies.c.round_id == rounds_table.c.id))
    .where(
        rounds_table.c.space_id == bindparam("space_id"),
        rounds_table.c.step == 0,
        rounds_table.c.turn <= bindparam("turn"),
        rounds_table.c.turn > bindparam("after"),
        replies.c.part == "reply",
        replies.c.state.in_(("done", "failed")),
    )
    .order_by(rounds_table.c.turn.desc())
)


def _tried(tx: Tx, panel_id: SpaceId, turn: int) -> dict[str, list[str | None]]:
    """Returns the errors of the last replies of each advisor, newest first; None for a reply without one."""
    found: dict[str, list[str | None]] = {}
    where: dict[str, Any] = {"space_id": panel_id, "turn": turn, "after": turn - TRIED_TURNS}
    for voice, state, code, error in tx.all(_answers, **where):
        tried = found.setdefault(voice, [])
        # A message that was deleted before anybody could answer it is not a failure.
        if code != QUESTION_GONE and len(tried) < signals.ENTRIES:
            tried.append((error or code) if state == "failed" else None)
    return found


def _errors(tried: list[str | None]) -> tuple[str, ...]:
    return tuple(one_line(error)[:_ERROR_CHARACTERS] for error in reversed(tried) if error is not None)


_exchanged = statement(
    select(
        rounds_table.c.turn, entities.c.name, messages.c.text, messages.c.deleted_at, replies.c.voice, replies.c.text
    )
    .select_from(
        rounds_table.join(messages, messages.c.id == rounds_table.c.message_id)
        .join(entities, entities.c.id == messages.c.author_id)
        .outerjoin(
            replies,
            (replies.c.round_id == rounds_table.c.id) & (replies.c.part == "reply") & (replies.c.state == "done"),
        )
    )
    .where(
        rounds_table.c.space_id == bindparam("space_id"),
        rounds_table.c.step == 0,
        rounds_table.c.turn <= bindparam("turn"),
        rounds_table.c.turn > bindparam("after"),
    )
    .order_by(rounds_table.c.turn)
)


@dataclass(slots=True)
class _Exchange:
    """What was said in a turn."""

    author: str
    text: str | None
    """None if it was deleted."""
    answers: dict[str, str]
    """By voice."""


def _exchanges(tx: Tx, panel_id: SpaceId, turn: int) -> list[_Exchange]:
    found: dict[int, _Exchange] = {}
    where: dict[str, Any] = {"space_id": panel_id, "turn": turn, "after": turn - TURNS}
    for number, author, text, deleted_at, voice, answer in tx.all(_exchanged, **where):
        one = found.setdefault(number, _Exchange(author, text if deleted_at is None else None, {}))
        if answer:
            one.answers[voice] = answer
    return list(found.values())


def _recent(exchanges: Sequence[_Exchange], voice: Voice) -> str:
    """Quotes what people said last, and what the advisor said: it sees nothing else of the conversation."""
    lines: list[str] = []
    for each in exchanges:
        lines += [] if each.text is None else [quoted(each.author, each.text)]
        lines += [quoted(voice.name, each.answers[voice.id])] if voice.id in each.answers else []
    return "\n".join(lines)


class PanelReflection:
    """Reflects on the turns of panels in this process."""

    def __init__(
        self,
        deps: PanelDeps,
        configuration: Callable[[], Configuration],
        classifier: Classifier | None = None,
        *,
        claimant: Claimant,
    ) -> None:
        self._panel_deps, self._db, self._claimant = deps, deps.db, claimant
        self._configuration, self._classifier = configuration, classifier

    async def reflect_on_next(self, panel_id: SpaceId) -> bool:
        """Reflects on the next turn that all have answered; False if there is none, or another instance does it."""
        held = await self._db.read(next_held, panel_id)
        if held is None:
            return False
        panel, voices, pending = held
        if not await self._db.write(PANEL_CURSOR.claim, panel_id, pending.number, self._claimant):
            return False
        came = await think_over_all(
            pending, lambda id: self._reflector(panel, voices[id]), at_once=panel.settings.at_once, read=_Readings()
        )
        forgotten, instance = pending.forgotten, self._claimant.instance
        where = panel_id, pending.number
        await self._db.write(advisor_stances.keep_panel_turn, *where, came, forgotten=forgotten, instance=instance)
        return True

    async def try_metaprompt(
        self, panel_id: SpaceId, voice_id: str, wanted: str | Metaprompt, *, apply: bool, by: EntityId | None
    ) -> MetapromptTrial:
        """Asks the metaprompt now for one advisor. Only with `apply` does the answer change anything; it is paid for in
        any case.
        """
        panel, voice, turn, felt, forgotten = await self._db.read(_situation, panel_id, voice_id)
        reflector = self._reflector(panel, voice)
        asked = configuration.find(reflector.settings, reflector.configuration, wanted)

        async def keep(run: Run) -> bool:
            return await self._db.write(advisor_stances.keep_tried, panel_id, voice_id, run, forgotten, by)

        return await thinking.try_metaprompt(reflector, turn, felt, asked, keep if apply else None)

    def _reflector(self, panel: Panel, voice: Voice) -> Reflector:
        async def model_for(name: str | None) -> NamedModel:
            own = self._panel_deps.server_models.default if voice.model == "default" else voice.model
            wanted = name or panel.settings.utility_model or utility_model_for(own)
            return await self._panel_deps.model_for(panel.organization_id, wanted)

        return Reflector(
            about={"panel": panel.id, "voice": voice.id},
            name=voice.name,
            settings=voice.reflection,
            configuration=self._configuration(),
            model_for=model_for,
            budget=panel_utility_budget(self._panel_deps, panel),
            classifier=self._classifier,
        )


def _situation(tx: Tx, panel_id: SpaceId, voice_id: str) -> tuple[Panel, Voice, TurnToReflect, PersonSentiment, int]:
    panel = panels.get(tx, panel_id)
    voice = advisor_stances.voice(tx, panel, voice_id)
    turn = TurnToReflect(
        advisor_stances.stance(tx, panel_id, voice_id),
        recent=_recent(_exchanges(tx, panel_id, panel.turns), voice),
        errors=_errors(_tried(tx, panel_id, panel.turns).get(voice_id, [])),
    )
    last = next(iter(tx.all(_asked, space_id=panel_id, turn=panel.turns)), None)
    felt = PersonSentiment() if last is None else last_felt(VOICES.counters(tx, voice_id, panel_id, last[1]))
    return panel, voice, turn, felt, PANEL_CURSOR.redactions_so_far(tx, panel_id)


class _Readings:
    """The sentiment of the person who asked: read once for all advisors that read it in the same way."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str | None, str], Sentiment | None] = {}
        self._one_at_a_time: dict[tuple[str, str | None, str], asyncio.Lock] = {}

    async def __call__(self, reflector: Reflector, settings: Effective, text: str) -> Sentiment | None:
        key = settings.sentiment.method, await _by_whom(reflector, settings), text
        async with self._one_at_a_time.setdefault(key, asyncio.Lock()):
            if key not in self._found:
                self._found[key] = await reading_of(reflector, settings, text)
        return self._found[key]


async def _by_whom(reflector: Reflector, settings: Effective) -> str | None:
    """Returns the name of the model that reads sentiment, if one does: the one set for it, or the advisor's own."""
    if settings.sentiment.method != "llm":
        return None
    return (await reflector.model_for(settings.sentiment.model or settings.model))[0]


def panel_utility_budget(deps: PanelDeps, panel: Panel) -> UtilityBudget:
    """Pays for the reflection of a panel."""
    return UtilityBudget(deps.utility_budget_deps, PanelPayer(panel))
