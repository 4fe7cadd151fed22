"""States of mind of the voices of a panel, as they are and as they change. Whoever writes here holds the panel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from denizen.errors import NotFound
from denizen.ids import EntityId, SpaceId
from denizen.panel import advisors, history, marks, panels
from denizen.panel.panels import Panel
from denizen.panel.rounds import ASSISTANT
from denizen.reflection.books import VOICES, Conversation, PastRun, Run, Stance
from denizen.reflection.settings import ReflectionSettings
from denizen.reflection.state import Adjustment
from denizen.storage.database import Tx

_LAST: Final = 2**62


@dataclass(frozen=True, slots=True)
class Voice:
    """One who answers in a panel, as it reflects."""

    id: str
    """Of the advisor, or `assistant`."""
    name: str
    model: str
    """What answers for it."""
    reflection: ReflectionSettings


@dataclass(frozen=True, slots=True)
class Standing:
    """How a voice stands to the people of its panel, and what last became of its state of mind."""

    voice: Voice
    stance: Stance
    last: PastRun | None


def voice(tx: Tx, panel: Panel, id: str) -> Voice:
    """The voice of this id. Raises `NotFound` where there is none, or it was removed."""
    settings = panel.settings
    if id == ASSISTANT:
        return Voice(id, "Assistant", settings.model, settings.reflection)
    found = advisors.get(tx, panel.id, id)
    if found.removed:
        raise NotFound("advisor", id)
    own = found.settings
    reflection = settings.reflection if own.reflection is None else own.reflection
    return Voice(id, found.name, own.model or settings.model, reflection)


def voices(tx: Tx, panel: Panel) -> list[Voice]:
    """Those who are there, in order; where there are no advisors, the plain assistant."""
    return [voice(tx, panel, each.id) for each in advisors.list_of(tx, panel.id)] or [voice(tx, panel, ASSISTANT)]


def stance(tx: Tx, panel_id: SpaceId, id: str) -> Stance:
    """The profile that the voice had when it answered last, and its state of mind."""
    kept = history.last_kept(tx, panel_id, id, _LAST).get("profile", {})
    return replace(
        VOICES.stance(tx, id, panel_id),
        preset=kept.get("preset"),
        preset_reason=kept.get("reason", ""),
        turns=kept.get("turn", 0),
    )


def standing(tx: Tx, panel: Panel, id: str) -> Standing:
    """The same, with who that is and why it is so. Raises `NotFound` as `voice` does."""
    found = voice(tx, panel, id)
    last = next(iter(VOICES.runs_of(tx, id, panel.id, limit=1)), None)
    return Standing(found, stance(tx, panel.id, id), last)


def standings(tx: Tx, panel: Panel) -> list[Standing]:
    """How those stand who are there, in order."""
    return [standing(tx, panel, each.id) for each in voices(tx, panel)]


def set_state(tx: Tx, panel_id: SpaceId, id: str, wanted: Adjustment, *, by: EntityId | None = None) -> Stance:
    """The state of mind is what somebody wants it to be; what they did not say stays."""
    return enter(tx, panel_id, id, Run(None, "set", wanted), by=by)


def enter(tx: Tx, panel_id: SpaceId, id: str, run: Run, *, by: EntityId | None = None) -> Stance:
    """What someone did by hand is in the history, and what it changed is so: the voice's next request tells it."""
    voice(tx, panels.hold(tx, panel_id), id)
    VOICES.enter(tx, id, panel_id, run, by=by)
    panels.announce(tx, panel_id)
    return stance(tx, panel_id, id)


def reset(tx: Tx, panel_id: SpaceId, id: str, *, by: EntityId | None = None) -> Stance:
    """Nothing is imprinted, nothing counted, and the voice has no particular state of mind. The history stays."""
    voice(tx, panels.hold(tx, panel_id), id)
    VOICES.reset(tx, id, panel_id, by=by)
    panels.announce(tx, panel_id)
    return stance(tx, panel_id, id)


def keep_tried(tx: Tx, panel_id: SpaceId, id: str, run: Run, forgotten: int, by: EntityId | None) -> bool:
    """It is in the history, and what it changed is so; False, and nothing, if something was forgotten meanwhile."""
    panels.hold(tx, panel_id)
    if marks.redactions_so_far(tx, panel_id) != forgotten:
        return False
    enter(tx, panel_id, id, run, by=by)
    return True


def keep_panel_turn(tx: Tx, panel_id: SpaceId, turn: int, came: Mapping[str, Conversation], *, forgotten: int) -> bool:
    """The turn was reflected on, and this came of it for each voice; False, and nothing, if someone else was faster.

    The same if more was forgotten than `redactions_so_far` said before: what a model was shown, and has perhaps
    repeated, may be just that.
    """
    panels.hold(tx, panel_id)
    if marks.redactions_so_far(tx, panel_id) != forgotten or not marks.advance(tx, panel_id, turn):
        return False
    there = {each.id for each in advisors.list_of(tx, panel_id)} | {ASSISTANT}
    for id, each in came.items():
        if id in there:
            VOICES.keep(tx, id, turn, each)
    if any(each.seen or each.runs for each in came.values()):
        panels.announce(tx, panel_id)
    return True
