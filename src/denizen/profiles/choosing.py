"""The prompt profile of each conversation of an agent: chosen when a cycle begins, stored when it ends.

A cycle that leaves no trace stores no choice and counts no turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import bindparam
from sqlalchemy.dialects import postgresql

from denizen.bus.streams import StanceChanged, agent_topic
from denizen.consciousness.system_prompt import ANSWER_FROM_NOW, ANSWER_NO_LONGER, of_space
from denizen.ids import AgentId, SpaceId
from denizen.inbox.events import Event
from denizen.inbox.format import one_line
from denizen.plans import told_changes
from denizen.profiles.presets import Presets
from denizen.profiles.router import CachedChoice, PresetChoice, ProfileChoice, choose
from denizen.storage.database import Tx, select_where, statement, update_where
from denizen.storage.schema import stances

FACT: Final = "profile"
"""The prefix of the key of the fact that tells the profile of a space; the id of the space follows."""


@dataclass(frozen=True, slots=True)
class Profiling:
    """What an agent's profiles are chosen by."""

    find_presets: Callable[[Tx], Presets]
    """Returns the presets of its organization."""
    mode: str
    pinned: str = ""
    """A preset set by the agent's owner; it overrides the rules."""


@dataclass(frozen=True, slots=True)
class CycleProfile:
    """The profile of one conversation in one cycle."""

    space_id: SpaceId
    chosen: ProfileChoice
    line: str | None
    """The line that tells the agent; None if there is no profile."""
    fact: str | None
    """The same with the name of the space, as it stands in the self."""
    told: str | None
    """The sentence that tells the agent of a change; None if there is none."""
    fresh: bool
    """Whether more has to be stored than the count of turns."""

    def kept(self) -> dict[str, Any]:
        """Returns what the cycle stores until it ends."""
        choice = self.chosen.choice
        return {
            "space": self.space_id,
            "preset": choice.preset,
            "reason": choice.reason,
            "turn": self.chosen.turn,
            "reviewed": self.chosen.reviewed,
            "line": self.line,
            "fact": self.fact,
            "changed": self.told is not None,
            "fresh": self.fresh,
        }


_stance = select_where(
    stances, "turns, reviewed_turn, review_asked, preset, preset_reason, profile_line, overrides", "agent_id, space_id"
)


def choose_for(
    tx: Tx, agent_id: AgentId, events: Sequence[Event], by: Profiling, *, characters: int
) -> list[CycleProfile]:
    """Chooses the profiles for the conversations of these events. Writes nothing."""
    said: dict[str, list[Event]] = {}
    for event in events:
        if event.space_id is not None and event.message_id is not None:
            said.setdefault(event.space_id, []).append(event)
    if not said:
        return []
    chooser = _Chooser(by.find_presets(tx), by.mode, by.pinned, characters)
    return [_turn(tx, agent_id, SpaceId(space_id), heard, chooser) for space_id, heard in said.items()]


@dataclass(frozen=True, slots=True)
class _Chooser:
    presets: Presets
    mode: str
    pinned: str
    characters: int


def _turn(tx: Tx, agent_id: AgentId, space_id: SpaceId, heard: Sequence[Event], by: _Chooser) -> CycleProfile:
    row = tx.one(_stance, agent_id=agent_id, space_id=space_id)
    turns, reviewed, asked, preset, reason, before, overrides = row or (0, 0, 0, None, "", None, None)
    cached = None if row is None else CachedChoice(PresetChoice(preset, reason), turns, reviewed, bool(asked))
    own: dict[str, Any] = json.loads(overrides) if overrides else {}
    pinned = own.get("preset") or by.pinned
    if pinned in by.presets.presets:
        # Once it is unset, the rules decide again at once.
        chosen = ProfileChoice(PresetChoice(pinned, "set by hand"), turns + 1, 0)
    else:
        text = "\n".join(event.text for event in heard)
        chosen = choose(by.presets, own.get("mode") or by.mode, text, cached)
        if pinned and chosen.is_new:
            chosen = replace(chosen, choice=_without(pinned, chosen.choice))
    choice = chosen.choice
    line = line_of(by.presets, choice.preset, by.characters)
    fact = None if line is None else of_space(heard[0].space_name or "", space_id, line)
    told = None if line == before else _told(heard[0], before, fact)
    fresh = chosen.is_new or line != before or (choice.preset, choice.reason) != (preset, reason)
    return CycleProfile(space_id, chosen, line, fact, told, fresh)


def _without(pinned: str, choice: PresetChoice) -> PresetChoice:
    return PresetChoice(choice.preset, f"{choice.reason}; {pinned!r} was set by hand, and is not there")


def line_of(presets: Presets, preset: str | None, characters: int) -> str | None:
    """Returns the line that tells an agent of a preset."""
    text = "" if preset is None else one_line(presets.text(preset))
    if not text:
        return None
    return f"{preset}: {text if len(text) <= characters else text[: characters - 1] + '…'}"


def _told(heard: Event, before: str | None, fact: str | None) -> str:
    if fact is None:
        return f"{ANSWER_NO_LONGER}: {of_space(heard.space_name or '', heard.space_id or '', before or '')}"
    return f"{ANSWER_FROM_NOW}: {fact}"


_new = postgresql.insert(stances).values(
    agent_id=bindparam("agent_id"),
    space_id=bindparam("space_id"),
    turns=bindparam("turns"),
    reviewed_turn=bindparam("reviewed"),
    preset=bindparam("preset"),
    preset_reason=bindparam("reason"),
    profile_line=bindparam("line"),
    updated_at=bindparam("at"),
)
_keep = statement(
    _new.on_conflict_do_update(
        index_elements=list(stances.primary_key),
        set_={
            **{
                name: _new.excluded[name]
                for name in ("turns", "reviewed_turn", "preset", "preset_reason", "profile_line", "updated_at")
            },
            "review_asked": 0,
        },
    )
)
_count = update_where(stances, "agent_id, space_id", set_="turns")


def keep(tx: Tx, agent_id: AgentId, turns: Iterable[Mapping[str, Any]]) -> None:
    """Counts the turns of a cycle and stores the profiles chosen for them."""
    for each in turns:
        if not each["fresh"]:
            tx.run(_count, agent_id=agent_id, space_id=each["space"], turns=each["turn"])
            continue
        tx.run(
            _keep,
            agent_id=agent_id,
            space_id=each["space"],
            turns=each["turn"],
            reviewed=each["reviewed"],
            preset=each["preset"],
            reason=each["reason"],
            line=each["line"],
            at=tx.now,
        )
        frame = StanceChanged(agent_id, SpaceId(each["space"]))
        tx.announce(agent_topic(agent_id), frame.to_payload())
        if each["changed"]:
            told_changes.know(tx, agent_id, {f"{FACT}:{each['space']}": each["fact"]})


_ask = update_where(stances, "agent_id", review_asked=1)
_ask_here = update_where(stances, "agent_id, space_id", review_asked=1)


def ask_review(tx: Tx, agent_id: AgentId) -> None:
    """Has the profile chosen anew for the next turn of each conversation, after the agent's past was compacted."""
    tx.run(_ask, agent_id=agent_id)


def ask_review_in(tx: Tx, agent_id: AgentId, space_id: SpaceId) -> None:
    """Has the profile chosen anew for the conversation's next turn, after the conversation was summarized."""
    tx.run(_ask_here, agent_id=agent_id, space_id=space_id)
