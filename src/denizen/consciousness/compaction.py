"""Compaction: older cycles leave the window, and the layers summarize them. One transaction, after a cycle has ended.

It deletes nothing and changes no row of the log: a window is a view. Its cost is that of the new cycles only, because
digests of ten cycles are stored; an agent without layers gets them in several transactions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from sqlalchemy import bindparam, func, select

from denizen.consciousness import chapters, conversation_summaries, eras, layers, system_prompt
from denizen.consciousness.conversation_summaries import Summaries
from denizen.consciousness.layers import Digest, LayerCycle, Segment, Shape
from denizen.consciousness.lease import Lease, fence
from denizen.consciousness.log import Entry
from denizen.consciousness.mind import Mind
from denizen.consciousness.settings import Profile, WindowSettings
from denizen.consciousness.system_prompt import Era, Identity
from denizen.consciousness.window import Budget, first_of_last, keep, shown
from denizen.ids import AgentId
from denizen.inbox.format import speaker
from denizen.models.tokens import PER_MESSAGE, estimate
from denizen.storage.database import (
    Tx,
    delete_where,
    insert_ignore,
    select_where,
    statement,
    update_where,
    value,
    values,
)
from denizen.storage.schema import cycles, effects, entities, minds, passages, selves, spaces
from denizen.storage.schema import layers as layer_rows

GROUPS_AT_ONCE: Final = 40
"""How many digests of ten cycles one transaction makes at most."""
FULL: Final = 0.8
"""How full a window may be after a cycle, however large the cycles are: the next cycle should fit whole."""
NEARLY_FULL: Final = 0.9
"""How full it may be after a cycle, however small they are."""

WITH_A_WRITER: Final = ("rolling", "written")
"""The strategies with which a utility model writes in the background about earlier cycles."""

Unfinished = Literal["unfinished"]
"""Digests were made, but not all that are needed: the window is unchanged, and the next transaction continues."""


@dataclass(frozen=True, slots=True)
class FullMind:
    """A mind that needs room, between two cycles."""

    identity: Identity
    version: int
    window: WindowSettings
    budget: Budget
    era: Era
    past: tuple[Entry, ...]
    """The entries as they are shown."""
    shortened: Mapping[int, int]
    next_seq: int
    tool_tokens: int
    """Of the tools in that profile."""
    correction: float
    profile: Profile = "normal"
    """The profile of the new era."""
    has_room: bool = False
    """Whether nothing has to leave: only what is told of earlier cycles is rendered anew."""


class CompactedMind(NamedTuple):
    """The new content of the mind."""

    era: Era
    past: tuple[Entry, ...]


def is_due(mind: Mind, tool_tokens: int) -> bool:
    """Whether the layers lack something that left the window, or another cycle like the last might not fit."""
    room = _room(mind.budget, mind.correction, mind.era.text, tool_tokens)
    # Far enough from the target that compaction is rare, whatever the owner has set.
    least = max(FULL, (1 + mind.window.target_share) / 2)
    full = max(min(room - mind.last_cycle_tokens, NEARLY_FULL * room), least * room)
    return mind.unsettled or mind.tokens - mind.standing_tokens + mind.layer_tokens > full


def is_outdated(tx: Tx, mind: Mind) -> bool:
    """Whether a model may have written about earlier cycles what the window does not have, and a new era begins with
    the next cycle: then no cached prefix is lost if the window changes.
    """
    if mind.window.strategy not in WITH_A_WRITER:
        return False
    agent_id = mind.lease.agent_id
    row = tx.one(_era, agent_id=agent_id)
    assert row is not None
    version, last_cycle_at, began_at = row
    if not system_prompt.era_ends(tx.now, version=mind.version, era_version=version, last_cycle_at=last_cycle_at):
        return False
    return mind.window.strategy == "rolling" or chapters.any_since(tx, agent_id, began_at or 0)


def crowded(mind: Mind, tool_tokens: int, profile: Profile = "normal", *, has_room: bool = False) -> FullMind:
    """What compaction needs to know of a mind between two cycles."""
    who = (mind.identity, mind.version, mind.window, mind.budget, mind.era)
    shortened = {**mind.era.shortened, **mind.views}
    return FullMind(*who, tuple(mind.past), shortened, mind.next_seq, tool_tokens, mind.correction, profile, has_room)


def _room(budget: Budget, correction: float, self_text: str, tool_tokens: int) -> int:
    """How many tokens the layers, the past and the present may have together."""
    return max(int(budget.request / correction) - tool_tokens - PER_MESSAGE - estimate(self_text), 0)


_mind = select_where(minds, "cycle_count, window_from, news", "agent_id")
_number = select_where(cycles, "number", "id")
_first_seq = select_where(cycles, "first_seq", "agent_id, number")
_era = statement(
    select(minds.c.era_version, minds.c.last_cycle_at, selves.c.created_at)
    .select_from(minds.outerjoin(selves, (selves.c.agent_id == minds.c.agent_id) & (selves.c.era == minds.c.era)))
    .where(minds.c.agent_id == bindparam("agent_id"))
)
_read_outside = select_where(
    cycles, "id", "agent_id, number", cycles.c.number.is_not(None), cycles.c.outside_from.is_not(None)
)
_move_window = update_where(minds, "agent_id", set_="window_from")


def compact(tx: Tx, lease: Lease, mind: FullMind) -> CompactedMind | Unfinished:
    """Shrink the window to its target, and let the layers summarize everything before it. Only between cycles.

    A new era begins, unless nothing changes.
    """
    fence(tx, lease)
    row = tx.one(_mind, agent_id=lease.agent_id)
    assert row is not None
    count, window_from, news = row
    seen = system_prompt.surroundings(tx, lease.agent_id)
    characters = system_prompt.list_characters(mind.budget.inbox)
    text = system_prompt.render(mind.identity, seen, characters=characters, compacted=True, profile=mind.profile)
    room = _room(mind.budget, mind.correction, text, mind.tool_tokens)
    characters = _layer_characters(mind, room)
    written = _read_summaries(tx, mind, characters)
    shape = layers.shape(
        characters // 2 if written.text else characters, grouped=mind.window.strategy != "self_summary"
    )
    share = 1.0 if mind.has_room else mind.window.target_share
    target = int(room * share) - _most_tokens(shape, count) - len(written.text) // 4
    recent = mind.window.min_recent_cycles
    past = mind.past[_first_unsummarized(tx, mind, written) :]
    kept = keep(past, mind.shortened, target=target, half=room // 2, recent_cycles=recent)
    staying = past[kept.first :]
    last = _number_of(tx, staying[0]) - 1 if staying else count
    told = _text_of_layers(tx, lease.agent_id, last, shape, mind.identity.zone)
    if told is None:
        return "unfinished"
    # A cycle is marked if any before it was: the last one stands for all that the layers summarize.
    outside = bool(told) and tx.one(_read_outside, agent_id=lease.agent_id, number=last) is not None
    told, outside = conversation_summaries.before(written.text, told), outside or written.outside
    first = staying[0].seq if staying else mind.next_seq
    era = replace(mind.era, number=mind.era.number + 1, text=text, layers=told or None, shortened=kept.shortened)
    era = replace(era, outside=outside)
    if first == window_from and (era.layers, era.shortened) == (mind.era.layers, mind.era.shortened):
        return CompactedMind(mind.era, mind.past)
    eras.store(tx, lease.agent_id, era)
    eras.begin(tx, lease.agent_id, era, eras.SelfInputs(mind.version, news, seen.facts))
    tx.run(_move_window, agent_id=lease.agent_id, window_from=first)
    return CompactedMind(era, tuple(shown(staying, kept.shortened)))


def _number_of(tx: Tx, entry: Entry) -> int:
    number = value(tx, _number, id=entry.cycle_id)
    assert number is not None
    return number


def _layer_characters(mind: FullMind, room: int) -> int:
    """The size of the layers: by the window, not by how much of it the self takes now, unless that is very much."""
    tokens = min(int((mind.budget.request - mind.tool_tokens) * mind.window.layer_share), room // 4) - PER_MESSAGE
    return max(4 * tokens, 0)


def _read_summaries(tx: Tx, mind: FullMind, characters: int) -> Summaries:
    """The utility model's summaries of the agent's conversations, in at most half of the room of the layers.

    If there are none, the layers have all of it.
    """
    if mind.window.strategy != "rolling":
        return Summaries()
    return conversation_summaries.read(tx, mind.identity.entity.id, characters // 2)


def _first_unsummarized(tx: Tx, mind: FullMind, written: Summaries) -> int:
    """The index of the first entry that stays although there is room: cycles that are summarized leave the window,
    but for the most recent ones.
    """
    if not written.text or not mind.past:
        return 0
    agent_id = mind.identity.entity.id
    first = conversation_summaries.first_uncovered(tx, agent_id, _number_of(tx, mind.past[0]), written)
    seq = value(tx, _first_seq, agent_id=agent_id, number=first)
    recent = first_of_last(mind.past, mind.window.min_recent_cycles)
    uncovered = (at for at, entry in enumerate(mind.past[:recent]) if seq is not None and entry.seq >= seq)
    return next(uncovered, recent)


def _most_tokens(shape: Shape, cycles: int) -> int:
    return PER_MESSAGE + shape.most_characters(cycles) // 4 if cycles else 0


def _text_of_layers(tx: Tx, agent_id: AgentId, last: int, shape: Shape, zone: str) -> str | None:
    """The text of the layers for the cycles up to `last`; None if it needs more reads than one transaction may do."""
    making = _Digests(tx, agent_id, zone)
    segments = shape.segments(last)
    groups: list[tuple[Segment, Digest]] = []
    for segment in segments:
        if segment.level == 0:
            break
        found = making.all_until(segment.last) if segment.level > shape.levels else making.of(*segment[:2])
        if found is None:
            return None
        groups.append((segment, found))
    newest = lived(tx, agent_id, segments[len(groups)].first, last) if len(groups) < len(segments) else []
    return layers.render(groups, newest, shape, zone)


# Digests of groups of cycles

_digest = select_where(layer_rows, "digest", "agent_id, level, first")
_keep_digest = insert_ignore(layer_rows, "agent_id, level, first, digest, created_at")
_drop_digest = delete_where(layer_rows, "agent_id, level, first")
_HIGHEST: Final = 18


class _Digests:
    """The digests of an agent: the stored ones, and those that are made now, as many as one transaction may."""

    def __init__(self, tx: Tx, agent_id: AgentId, zone: str) -> None:
        self._tx = tx
        self._agent_id = agent_id
        self._zone = zone
        self._left = GROUPS_AT_ONCE

    def of(self, level: int, first: int) -> Digest | None:
        """The digest of the group at that level; None if it is too much to be made now."""
        stored = value(self._tx, _digest, agent_id=self._agent_id, level=level, first=first)
        if stored is not None:
            return layers.load(stored)
        made = self._make(level, first)
        if made is not None:
            encoded = layers.dump(made)
            row = {"agent_id": self._agent_id, "level": level, "first": first, "digest": encoded}
            self._tx.run(_keep_digest, **row, created_at=self._tx.now)
        return made

    def _make(self, level: int, first: int) -> Digest | None:
        if level == 1:
            self._left -= 1
            return self._of_cycles(first, first + 9) if self._left >= 0 else None
        found = self._each((level - 1, first + at * 10 ** (level - 1)) for at in range(10))
        return None if found is None else layers.merge(found)

    def all_until(self, last: int) -> Digest | None:
        """The digest of all cycles up to this one."""
        pieces = layers.pieces(last)
        found = self._each(piece for piece in pieces if piece[0] > 0)
        if found is None:
            return None
        single = next((first for level, first in pieces if level == 0), None)
        return layers.merge(found if single is None else [*found, self._of_cycles(single, last)])

    def _each(self, groups: Iterable[tuple[int, int]]) -> list[Digest] | None:
        found: list[Digest] = []
        for level, first in groups:
            each = self.of(level, first)
            if each is None:
                return None
            found.append(each)
        return found

    def _of_cycles(self, first: int, last: int) -> Digest:
        told = lived(self._tx, self._agent_id, first, last)
        before = {"first": first - layers.NEIGHBOURS, "last": first - 1}
        earlier: list[str | None] = values(self._tx, _summaries, agent_id=self._agent_id, **before)
        new = layers.novelties(told, [each for each in earlier if each])
        return layers.merge([layers.digest(each, self._zone, how) for each, how in zip(told, new, strict=True)])


def forget(tx: Tx, agent_id: AgentId, numbers: Iterable[int]) -> None:
    """Delete all digests that contain these cycles; those that are needed are made again from the current log."""
    groups = {(level, (number - 1) // 10**level) for number in numbers for level in range(1, _HIGHEST)}
    rows = [{"agent_id": agent_id, "level": level, "first": at * 10**level + 1} for level, at in sorted(groups)]
    if rows:
        tx.many(_drop_digest, rows)


# Reading cycles

_between = (
    cycles.c.agent_id == bindparam("agent_id"),
    cycles.c.number.is_not(None),
    cycles.c.number >= bindparam("first"),
    cycles.c.number <= bindparam("last"),
)
_ended = statement(
    select(cycles.c.number, cycles.c.ended_at, cycles.c.summary, cycles.c.outcome)
    .where(*_between)
    .order_by(cycles.c.number)
)
_summaries = statement(select(cycles.c.summary).where(*_between))
_done = statement(
    select(cycles.c.number, effects.c.tool, func.count())
    .join(effects, effects.c.cycle_id == cycles.c.id)
    .where(*_between, effects.c.changes == 1)
    .group_by(cycles.c.number, effects.c.tool)
    .order_by(cycles.c.number, func.min(effects.c.step), func.min(effects.c.position))
)
_there = (passages.c.cycle, passages.c.speaker_id, passages.c.speaker, entities.c.name, entities.c.handle)
_where = (spaces.c.id, spaces.c.name)
_heard = statement(
    select(*_there, *_where)
    .select_from(
        passages.outerjoin(entities, entities.c.id == passages.c.speaker_id).outerjoin(
            spaces, spaces.c.id == passages.c.space_id
        )
    )
    .where(
        passages.c.agent_id == bindparam("agent_id"),
        passages.c.cycle >= bindparam("first"),
        passages.c.cycle <= bindparam("last"),
        passages.c.kind.in_(("heard", "said")),
        passages.c.file_id.is_(None),  # The speaker of those is the name of a file.
    )
    .group_by(*_there, *_where)
    .order_by(passages.c.cycle, func.min(passages.c.number))
)


def lived(tx: Tx, agent_id: AgentId, first: int, last: int) -> list[LayerCycle]:
    """The cycles from `first` to `last`, in the form for the layers."""
    done: defaultdict[int, dict[str, int]] = defaultdict(dict)
    people: defaultdict[int, dict[str, str]] = defaultdict(dict)
    places: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for number, tool, count in tx.all(_done, agent_id=agent_id, first=first, last=last):
        done[number][tool] = count
    for row in tx.all(_heard, agent_id=agent_id, first=first, last=last):
        number, speaker_id, said_by, name, handle, space_id, space = row
        who = speaker_id or said_by
        if who and who != agent_id:
            people[number][who] = speaker(name or said_by or who, None, handle)
        if space_id:
            places[number][space_id] = space
    notes = chapters.notes_of(tx, agent_id, first, last)
    return [
        LayerCycle(
            number,
            at,
            summary or "",
            outcome == "failed",
            people[number],
            places[number],
            done[number],
            notes.get(number, ()),
        )
        for number, at, summary, outcome in tx.all(_ended, agent_id=agent_id, first=first, last=last)
    ]
