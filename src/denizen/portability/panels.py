"""Export and import of a panel: its settings, its rounds, and the states of mind of its voices.

Only complete rounds are exported: the others are still being answered here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from pydantic import BaseModel
from sqlalchemy import Table, Text, bindparam, cast, select

from denizen.ids import EntityId, OrganizationId, SpaceId
from denizen.panel import reflection_cursor
from denizen.panel.context import omissions_in, rebuilt
from denizen.panel.rounds import ASSISTANT, OVER, SYNTHESIS
from denizen.panel.settings import AdvisorSettings, PanelSettings, checked
from denizen.portability.lines import (
    AdvisorLine,
    OfPanel,
    OfVoice,
    PanelLine,
    ReplyPart,
    RoundLine,
    State,
    VoiceFeelingLine,
    VoiceReflectionLine,
    VoiceSignalLine,
    VoiceStanceLine,
)
from denizen.portability.reading import Fault, LineChecks
from denizen.portability.rows import Readers, Rows, columns, into, line_of, values
from denizen.portability.stance_lines import COUNTERS, check_counters
from denizen.reflection.state import StateOfMind
from denizen.spaces.handles import check_handle, check_name
from denizen.storage.database import Statement, Tx, insert_ignore, statement
from denizen.storage.schema import (
    advisors,
    panels,
    replies,
    rounds,
    voice_feelings,
    voice_reflections,
    voice_signals,
    voice_stances,
)

VOICES: Final = (ASSISTANT, SYNTHESIS)
"""Those that are not advisors."""

# Export

_id = cast(bindparam("id"), Text)
_ROUND: Final = columns(RoundLine, rounds, {"replies": rounds.c.id})
_panel = statement(select(*columns(PanelLine, panels)).where(panels.c.space_id == _id))
_advisors = statement(
    select(*columns(AdvisorLine, advisors))
    .where(advisors.c.space_id == _id)
    .order_by(advisors.c.position, advisors.c.created_at, advisors.c.id)
)
_complete = statement(
    select(*_ROUND)
    .where(
        rounds.c.space_id == _id,
        rounds.c.state == "complete",
        rounds.c.turn > bindparam("after"),
        rounds.c.turn <= bindparam("until"),
    )
    .order_by(rounds.c.turn, rounds.c.step)
)
_over = statement(
    select(*columns(ReplyPart, replies))
    .where(replies.c.round_id == _id, replies.c.state.in_(OVER))
    .order_by(replies.c.position, replies.c.voice, replies.c.part)
)


def _kept(line: type[BaseModel], table: Table, *order: Any) -> Statement:
    return statement(select(*columns(line, table)).where(table.c.space_id == _id).order_by(*order))


_OF_VOICES: Final[tuple[tuple[type[OfVoice], Statement, Readers], ...]] = (
    (VoiceStanceLine, _kept(VoiceStanceLine, voice_stances, voice_stances.c.voice), {"imprints": json.loads}),
    (
        VoiceFeelingLine,
        _kept(VoiceFeelingLine, voice_feelings, voice_feelings.c.voice, voice_feelings.c.person_id),
        {"counters": json.loads},
    ),
    (VoiceSignalLine, _kept(VoiceSignalLine, voice_signals, voice_signals.c.number), {}),
    (
        VoiceReflectionLine,
        _kept(VoiceReflectionLine, voice_reflections, voice_reflections.c.number),
        {"state": State.model_validate_json},
    ),
)


def of_space(tx: Tx, space_id: SpaceId) -> list[PanelLine | AdvisorLine | OfVoice]:
    """Returns the panel's settings, its present and past advisors, and their states of mind; nothing if it is not a
    panel.
    """
    row = tx.one(_panel, id=space_id)
    if row is None:
        return []
    known = [line_of(AdvisorLine, each, {"settings": json.loads}) for each in tx.all(_advisors, id=space_id)]
    minds = [line_of(kind, each, read) for kind, query, read in _OF_VOICES for each in tx.all(query, id=space_id)]
    return [line_of(PanelLine, row, {"settings": json.loads}), *known, *minds]


def rounds_of(tx: Tx, space_id: SpaceId, after: int, until: int, known: Collection[str]) -> list[RoundLine]:
    """Returns the complete rounds of these turns that are among the `known` ones: others may have been added since."""
    found = [_round(tx, row) for row in tx.all(_complete, id=space_id, after=after, until=until)]
    return [each for each in found if {each.asked_by, *(said.voice for said in each.replies)} <= {*known, *VOICES}]


def _round(tx: Tx, row: tuple[Any, ...]) -> RoundLine:
    said = tuple(
        line_of(ReplyPart, each, {"result": json.loads, "recipe": json.loads}) for each in tx.all(_over, id=row[0])
    )
    return line_of(RoundLine, (*row[:-1], said))


# Import


class Board:
    """The panel read from a file so far: later lines must not contradict it."""

    def __init__(self, fault: Fault) -> None:
        self._checks = LineChecks(fault)
        self._turns: int | None = None
        self._voices = set[str](VOICES)
        self._handles: set[str] = set()
        self._places: set[tuple[int, int]] = set()
        self._rounds: set[str] = set()
        self._stances: dict[str, int] = {}
        """How many turns each voice has reflected on."""
        self._feelings: set[tuple[str, str]] = set()

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the advisors and rounds in the file."""
        return frozenset(self._voices - {*VOICES} | self._rounds)

    def check(self, number: int, line: OfPanel, said: Collection[str], people: Collection[str]) -> None:
        """Checks a line. `said` and `people` are the messages and people of the file."""
        match line:
            case PanelLine():
                self._checks.require(number, self._turns is None, "a space is one panel")
                self._turns = line.turns
                self._checks.require_valid(number, lambda: checked(PanelSettings, line.settings, "a panel"))
            case AdvisorLine():
                self._checks.require(number, self._turns is not None, "there is no panel in which it could advise")
                self._check_advisor(number, line)
            case RoundLine():
                self._checks.require(number, 1 <= line.turn <= (self._turns or 0), f"there was no turn {line.turn:,}")
                self._checks.require(number, line.message_id in said, "the message that it answers is not in the file")
                self._checks.require(number, line.asked_by in people, "nobody of the file has asked for it")
                self._check_round(number, line)
            case VoiceStanceLine() | VoiceFeelingLine() | VoiceSignalLine() | VoiceReflectionLine():
                known = line.voice in self._voices and line.voice != SYNTHESIS
                self._checks.require(number, self._turns is not None and known, f"there is no advisor {line.voice}")
                self._check_mind(number, line, people)

    def _check_advisor(self, number: int, line: AdvisorLine) -> None:
        self._checks.require(number, line.id not in self._voices, "there was an advisor of this id before")
        self._voices.add(line.id)
        self._checks.require_valid(number, lambda: check_name(line.name))
        self._checks.require_valid(number, lambda: check_handle(line.handle))
        self._checks.require_valid(number, lambda: checked(AdvisorSettings, line.settings, "an advisor"))
        if line.removed_at is None:
            self._checks.require(number, line.handle not in self._handles, "there was an advisor of this handle before")
            self._handles.add(line.handle)

    def _check_round(self, number: int, line: RoundLine) -> None:
        place = line.turn, line.step
        self._checks.require(number, place not in self._places, "there was this round before")
        self._checks.require(number, line.id not in self._rounds, "there was a round of this id before")
        self._places.add(place)
        self._rounds.add(line.id)
        voices = [(each.voice, each.part) for each in line.replies]
        self._checks.require(number, len(set(voices)) == len(voices), "somebody answers in it twice")
        unknown = next((voice for voice, _ in voices if voice not in self._voices), None)
        self._checks.require(number, unknown is None, f"there is no advisor {unknown}")
        for each in line.replies:
            if (made_of := each.recipe) is not None:
                otherwise = "it does not say what its requests were made of"
                self._checks.require_valid(number, lambda made_of=made_of: _check_recipe(made_of), otherwise)

    def _check_mind(self, number: int, line: OfVoice, people: Collection[str]) -> None:
        turns = self._turns or 0
        match line:
            case VoiceStanceLine():
                self._checks.require(number, line.voice not in self._stances, "there was one of these before")
                self._checks.require(
                    number, line.reflected_turns <= turns, "it has reflected on turns that there were not"
                )
                self._stances[line.voice] = line.reflected_turns
            case VoiceFeelingLine():
                key = line.voice, line.person_id
                self._checks.require(number, key not in self._feelings, "there was one of these before")
                self._checks.require(number, line.person_id in people, "it is of nobody of whom the file speaks")
                self._feelings.add(key)
                self._checks.require_valid(number, lambda: check_counters(line.counters), COUNTERS)
                counted = int(str(line.counters["turns"])) <= self._stances.get(line.voice, 0)
                self._checks.require(number, counted, "it counts turns that were not reflected on")
            case VoiceSignalLine() | VoiceReflectionLine():
                known = line.turn is None or 1 <= line.turn <= turns
                self._checks.require(number, known, f"there was no turn {line.turn or 0:,}")


def _check_recipe(made_of: dict[str, Any]) -> None:
    rebuilt(made_of, lambda _message: None, lambda _round, _voice: None)
    omissions_in(made_of)
    if not isinstance(made_of["digest"], str):
        raise TypeError("digest")


_add_panel = into(panels, PanelLine, "space_id", "organization_id")
_add_advisor = into(advisors, AdvisorLine, "space_id")
_add_round = into(rounds, RoundLine, "space_id", "state")
_add_reply = into(replies, ReplyPart, "round_id", "space_id", "organization_id")
_ADD: Final[Mapping[type[OfVoice], Statement]] = {
    VoiceStanceLine: into(voice_stances, VoiceStanceLine, "space_id", "mind_line"),
    # Two people of the file may be the same here.
    VoiceFeelingLine: insert_ignore(voice_feelings),
    VoiceSignalLine: into(voice_signals, VoiceSignalLine, "space_id"),
    VoiceReflectionLine: into(voice_reflections, VoiceReflectionLine, "space_id"),
}


class Assembling:
    """Writes an imported panel."""

    def __init__(self, tx: Tx, home: OrganizationId, space_id: SpaceId, rows: Rows, trusted: bool) -> None:
        """`trusted`: keeps the file's marks of text from outside; otherwise every reply is marked."""
        self._tx = tx
        self._rows = rows
        self._space_id = space_id
        self._here = {"space_id": space_id}
        self._home = {"organization_id": home}
        self._trusted = trusted

    def add(self, line: OfPanel, own: Callable[[str], str], person: Callable[[str | None], EntityId | None]) -> None:
        """Adds the line to the panel, with the ids that `own` and `person` return."""
        match line:
            case PanelLine():
                self._tx.run(_add_panel, **values(line), **self._here, **self._home)
            case AdvisorLine():
                self._rows.add(_add_advisor, values(line) | self._here | {"id": own(line.id)})
            case RoundLine():
                ids = {"id": own(line.id), "message_id": own(line.message_id), "asked_by": person(line.asked_by)}
                # Before its replies, which are written in batches.
                self._tx.run(_add_round, **values(line, "replies", *ids), **ids, **self._here, state="complete")
                for each in line.replies:
                    made_of = None if each.recipe is None else _renamed(each.recipe, own)
                    outside = each.outside if self._trusted else 1
                    changed = {"voice": own(each.voice), "recipe": made_of, "outside": outside}
                    said = values(each.model_copy(update=changed))
                    self._rows.add(_add_reply, said | self._here | self._home | {"round_id": ids["id"]})
            case VoiceStanceLine() | VoiceFeelingLine() | VoiceSignalLine() | VoiceReflectionLine():
                row: dict[str, Any] = values(line) | self._here | {"voice": own(line.voice)}
                row |= {name: person(getattr(line, name)) for name in ("person_id", "by_id") if name in row}
                if isinstance(line, VoiceStanceLine):
                    row["mind_line"] = StateOfMind(line.mood, line.skill, line.complexity).line()
                self._rows.add(_ADD[type(line)], row)

    def finish(self) -> None:
        """Called after the last line: a panel that reflects does so from its next turn on. The exporting server has
        reflected on the past.
        """
        reflection_cursor.keep_reflecting(self._tx, self._space_id)


def _renamed(made_of: dict[str, Any], own: Callable[[str], str]) -> dict[str, Any]:
    """Returns the parts of a request, with the ids that messages, rounds and voices have here."""
    return made_of | {"lines": [_renamed_source(each, own) for each in made_of["lines"]]}


def _renamed_source(source: dict[str, Any], own: Callable[[str], str]) -> dict[str, Any]:
    match source:
        case {"message": id}:
            return {"message": own(id)}
        case {"reply": [round_id, voice]}:
            return {"reply": [own(round_id), own(voice)]}
        case {"heard": heard}:
            return source | {"heard": [[own(round_id), own(voice), name] for round_id, voice, name in heard]}
        case _:
            return source
