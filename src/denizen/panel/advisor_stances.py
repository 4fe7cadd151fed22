"""The states of mind of the voices of a panel, and changes to them. Writers lock the panel first."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import bindparam, func, select

from denizen.access.requesters import Requester
from denizen.errors import NotFound
from denizen.ids import EntityId, SpaceId
from denizen.panel import advisors, history, panels
from denizen.panel.advisors import Advisor
from denizen.panel.panels import Panel
from denizen.panel.rounds import ASSISTANT
from denizen.reflection.cursor import PANEL_CURSOR
from denizen.reflection.settings import ReflectionSettings
from denizen.reflection.signals import Counters
from denizen.reflection.stance_store import VOICES, PastRun, ReflectedTurn, Run, Stance
from denizen.reflection.state import Adjustment, StateOfMind
from denizen.storage.database import Tx, columns, equal, statement
from denizen.storage.schema import replies, rounds, voice_feelings, voice_reflections, voice_stances

_LAST: Final = 2**62


@dataclass(frozen=True, slots=True)
class Voice:
    """A voice of a panel (an advisor, or the plain assistant) with what it reflects with."""

    id: str
    """The advisor's id, or `assistant`."""
    name: str
    model: str
    """The model that answers for it."""
    reflection: ReflectionSettings


@dataclass(frozen=True, slots=True)
class VoiceStance:
    """The stance of a voice in its panel, and the last change of its state of mind."""

    voice: Voice
    stance: Stance
    last: PastRun | None


def voice(tx: Tx, panel: Panel, id: str) -> Voice:
    """Returns the voice with this id. Raises `NotFound` if there is none, or it was removed."""
    if id == ASSISTANT:
        return _assistant(panel)
    found = advisors.get(tx, panel.id, id)
    if found.removed:
        raise NotFound("advisor", id)
    return _advisor(panel, found)


def voices(tx: Tx, panel: Panel) -> list[Voice]:
    """Returns the present voices in order; if there are no advisors, the plain assistant."""
    return [_advisor(panel, each) for each in advisors.list_of(tx, panel.id)] or [_assistant(panel)]


def voices_once_asked(tx: Tx, panel: Panel, asked: Collection[str]) -> list[Voice]:
    """Returns those that are still there; the plain assistant is, even if there are advisors now."""
    there = [*(_advisor(panel, each) for each in advisors.list_of(tx, panel.id)), _assistant(panel)]
    return [each for each in there if each.id in asked]


def _assistant(panel: Panel) -> Voice:
    return Voice(ASSISTANT, "Assistant", panel.settings.model, panel.settings.reflection)


def _advisor(panel: Panel, advisor: Advisor) -> Voice:
    settings, own = panel.settings, advisor.settings
    reflection = settings.reflection if own.reflection is None else own.reflection
    return Voice(advisor.id, advisor.name, own.model or settings.model, reflection)


def stance(tx: Tx, panel_id: SpaceId, id: str) -> Stance:
    """Returns the voice's profile at its last reply, and its state of mind."""
    kept = history.last_kept(tx, panel_id, id, _LAST).get("profile", {})
    return replace(
        VOICES.stance(tx, id, panel_id),
        preset=kept.get("preset"),
        preset_reason=kept.get("reason", ""),
        turns=kept.get("turn", 0),
    )


def standing(tx: Tx, panel: Panel, id: str) -> VoiceStance:
    """Returns the stance with its voice and its last change. Raises `NotFound` as `voice` does."""
    found = voice(tx, panel, id)
    last = next(iter(VOICES.runs_of(tx, id, panel.id, limit=1)), None)
    return VoiceStance(found, stance(tx, panel.id, id), last)


def standings(tx: Tx, panel: Panel) -> list[VoiceStance]:
    """Returns the stances of the present voices, in order."""
    return [standing(tx, panel, each.id) for each in voices(tx, panel)]


@dataclass(frozen=True, slots=True)
class Mind:
    """What is stored of a voice when it begins to reflect on somebody's turn."""

    stance: Stance
    """Without its profile, which does not matter here."""
    counters: Counters
    last_line: int
    """The value of `StanceStore.last_line`."""


_minds = statement(
    select(
        replies.c.voice,
        *columns(voice_stances, "mood, skill, complexity, imprints, reflected_turns"),
        voice_feelings.c.counters,
        select(func.max(voice_reflections.c.number))
        .where(voice_reflections.c.space_id == replies.c.space_id, voice_reflections.c.voice == replies.c.voice)
        .scalar_subquery(),
    )
    .select_from(
        rounds.join(replies, replies.c.round_id == rounds.c.id)
        .outerjoin(
            voice_stances,
            (voice_stances.c.space_id == replies.c.space_id) & (voice_stances.c.voice == replies.c.voice),
        )
        .outerjoin(
            voice_feelings,
            (voice_feelings.c.space_id == replies.c.space_id)
            & (voice_feelings.c.voice == replies.c.voice)
            & (voice_feelings.c.person_id == bindparam("person_id")),
        )
    )
    .where(*equal(rounds, "space_id, turn"), rounds.c.step == 0, replies.c.part == "reply")
)


def minds(tx: Tx, panel_id: SpaceId, turn: int, person_id: EntityId) -> dict[str, Mind]:
    """Reads the minds of all voices asked in the turn, with their counters of this person, in one statement."""
    found: dict[str, Mind] = {}
    rows = tx.all(_minds, space_id=panel_id, turn=turn, person_id=person_id)
    for voice_id, mood, skill, complexity, imprints, reflected, counters, last_line in rows:
        stance = Stance(panel_id, None, "", 0)
        if mood is not None:
            state = StateOfMind(mood, skill, complexity)
            stance = replace(stance, state=state, imprints=json.loads(imprints), reflected_turns=reflected)
        counted = Counters() if counters is None else Counters.from_json(counters)
        found[voice_id] = Mind(stance, counted, last_line or 0)
    return found


def set_state(tx: Tx, by: Requester, panel_id: str, id: str, wanted: Adjustment) -> Stance:
    """Sets the state of mind; values that are not given stay. For people in the panel."""
    panel = panels.hold_for(tx, by, panel_id)
    return enter(tx, panel.id, id, Run(None, "set", wanted), by=by.optional_entity_id)


def enter(tx: Tx, panel_id: SpaceId, id: str, run: Run, *, by: EntityId | None = None) -> Stance:
    """Records a change by hand in the history and applies it: the voice is told in its next request."""
    voice(tx, panels.hold(tx, panel_id), id)
    VOICES.enter(tx, id, panel_id, run, by=by)
    panels.announce(tx, panel_id)
    return stance(tx, panel_id, id)


def reset(tx: Tx, by: Requester, panel_id: str, id: str) -> Stance:
    """Clears imprints, counters and the state of mind. The history stays. For people in the panel."""
    panel = panels.hold_for(tx, by, panel_id)
    voice(tx, panel, id)
    VOICES.reset(tx, id, panel.id, by=by.optional_entity_id)
    panels.announce(tx, panel.id)
    return stance(tx, panel.id, id)


def keep_tried(tx: Tx, panel_id: SpaceId, id: str, run: Run, forgotten: int, by: EntityId | None) -> bool:
    """Records the run and applies its change. Returns False, and changes nothing, if something was forgotten
    meanwhile.
    """
    panels.hold(tx, panel_id)
    if PANEL_CURSOR.redactions_so_far(tx, panel_id) != forgotten:
        return False
    enter(tx, panel_id, id, run, by=by)
    return True


def keep_panel_turn(
    tx: Tx, panel_id: SpaceId, turn: int, came: Mapping[str, ReflectedTurn], *, forgotten: int, instance: str
) -> bool:
    """Stores the result of reflecting on the turn for each voice. Returns False, and changes nothing, if another
    instance does it, or something was forgotten meanwhile.
    """
    panels.hold(tx, panel_id)
    if not PANEL_CURSOR.advance(tx, panel_id, turn, instance, forgotten=forgotten):
        return False
    there = {each.id for each in advisors.list_of(tx, panel_id)} | {ASSISTANT}
    for id, each in came.items():
        if id in there:
            VOICES.keep(tx, id, turn, each)
    if any(each.seen or each.runs for each in came.values()):
        panels.announce(tx, panel_id)
    return True
