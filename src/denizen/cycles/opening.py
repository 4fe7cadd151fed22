"""Opens or resumes a cycle: takes the events that wake the agent from its inbox, and puts them into one message.

Each function is one transaction, begins with the fence, and changes nothing but the database.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pydantic_ai.messages import ModelRequest, UserPromptPart
from sqlalchemy import bindparam, select

from denizen.bus.streams import AgentStatus, CycleChanged, StreamAborted, agent_topic, space_topic
from denizen.consciousness import eras, log, privacy, recollection, system_prompt
from denizen.consciousness.lease import Lease, fence
from denizen.consciousness.settings import Profile
from denizen.consciousness.system_prompt import Era, Identity
from denizen.cycles import requested, seeing, triage
from denizen.cycles.ending import interrupt_cycle, undo_cycle
from denizen.cycles.pausing import stays_paused
from denizen.cycles.records import OpenCycle, find_open
from denizen.cycles.seeing import Unread
from denizen.cycles.triage import TriagedSpaces
from denizen.ids import AgentId, CycleId, SpaceId, new_id
from denizen.inbox import delivery, parking
from denizen.inbox.events import Event
from denizen.inbox.format import format_inbox, take_that_fit
from denizen.inbox.sources import Source, sources_of_events
from denizen.memory import reminding
from denizen.models.pictures import Picture
from denizen.plans import agenda
from denizen.profiles import choosing
from denizen.profiles.choosing import Profiling
from denizen.spaces import directory
from denizen.storage.database import (
    Tx,
    columns,
    insert_ignore,
    insert_into,
    select_where,
    statement,
    update_where,
    value,
)
from denizen.storage.schema import agents, cycles, minds, toolsets
from denizen.tools import calls, privacy_guard
from denizen.tools.tool import Toolbox, spaces_of

EVENT_CHARACTERS: Final = 8_000
"""A longer event text is cut in the inbox message, with a pointer to the rest."""
_AROUND_EVENT_TOKENS: Final = 150
"""Tokens around the text of a single event in an inbox message."""


@dataclass(frozen=True, slots=True)
class Waking:
    """The input of a new cycle."""

    identity: Identity
    version: int
    """The version of the definition it was loaded with."""
    era: Era
    inbox_tokens: int
    toolboxes: Mapping[Profile, Toolbox]
    next_seq: int
    recalling: recollection.RecallInput | None = None
    """Passages of its own history that may be recalled because they match the inbox."""
    find_profiling: Callable[[], Profiling | None] | None = None
    """Returns the present basis for choosing its profiles, if the server has any."""
    reminding: reminding.FoundReminders | None = None
    """Long-term memories that it may be shown."""
    is_lookup_due: Callable[[frozenset[str]], bool] | None = None
    """Whether memories have to be looked up before it enters this conversation; None: never."""
    remembered: frozenset[str] = frozenset()
    """The ids of the memories that it was shown before and still sees."""
    profile: Profile = "normal"
    """The profile of its next era."""
    sees: bool = False
    """Whether its model can be shown pictures."""
    looked: bool = False
    """Whether it has waited for pictures that are still being read."""
    untriaged: TriagedSpaces | None = None
    """Where triage has yet to decide whether it thinks; None: nowhere."""


@dataclass(frozen=True, slots=True)
class OpenedCycle:
    """A cycle was opened."""

    cycle: OpenCycle
    era: Era | None
    """The new self, if it has changed."""
    more: bool
    """Whether something was left in the inbox."""


Stale = Literal["stale"]
"""The agent's definition has changed since it was loaded."""
Remind = Literal["remind"]
"""A memory lookup is due before the cycle can open."""
Untriaged = Literal["untriaged"]
"""Triage has to decide before the cycle can open."""

_state = statement(
    select(
        *columns(minds, "era_version, news, news_told, last_cycle_at"),
        agents.c.version,
        agents.c.parked_until,
        parking.HAS_TROUBLE,
        minds.c.outside,
    )
    .join(agents, agents.c.id == minds.c.agent_id)
    .where(minds.c.agent_id == bindparam("agent_id"))
)
_told = select_where(minds, "told", "agent_id")
_keep_tools = insert_ignore(toolsets, "digest, tools")
_open = insert_into(cycles, "id, agent_id, first_seq, started_at, active_space_id, told, outside_from")


def open_cycle(tx: Tx, lease: Lease, waking: Waking) -> OpenedCycle | Stale | Remind | Untriaged | Unread | None:
    """Take the events that wake the agent, and as many others as fit, into a new cycle. None if nothing wakes it."""
    fence(tx, lease, lambda tx: _prefetch(tx, lease.agent_id))
    agent_id = lease.agent_id
    waiting = delivery.pending(tx, agent_id)
    batch = delivery.next_batch(waiting)
    if not batch:
        return None
    row = tx.one(_state, agent_id=agent_id)
    assert row is not None
    era_version, news, news_told, last_cycle_at, version, parked_until, troubled, outside = row
    if parked_until is not None and parked_until > tx.now:
        return None
    if version != waking.version:
        return "stale"
    if waking.untriaged is not None and not triage.must_think(tx, waiting, waking.untriaged):
        return "untriaged"
    spaces = reminding.spaces_of(batch)
    if waking.is_lookup_due is not None and spaces and waking.is_lookup_due(spaces):
        return "remind"
    if waking.sees and not waking.looked and (unread := seeing.unread_pictures(tx, batch)):
        return unread
    plans, planned = agenda.next_few(tx, agent_id)
    room = waking.inbox_tokens - sum(len(line) for line in plans) // 4
    characters = event_characters(room)
    batch = batch[: take_that_fit(batch, max_tokens=room, text_chars=characters)]
    era, told = None, _Told()
    if system_prompt.era_ends(tx.now, version=version, era_version=era_version, last_cycle_at=last_cycle_at):
        era = _renew_self(tx, waking, news)
    elif news != news_told:
        told = _tell_news(tx, waking, news, batch)
    profiling = None if waking.find_profiling is None else waking.find_profiling()
    if profiling is not None:
        told = _tell_profiles(tx, waking, profiling, batch, told)
    own_tools = waking.toolboxes[(era or waking.era).profile]
    for toolbox in {own_tools, requested.toolbox_for(own_tools, batch)}:
        if not toolbox.archived:
            # They may differ from those of the era: a restarted process has its own.
            tx.run(_keep_tools, digest=toolbox.digest, tools=toolbox.encoded)
    pictures = seeing.pictures_of_events(tx, batch, waking.inbox_tokens) if waking.sees else ()
    shown = [Source("file", each.name.strip('"')) for each in pictures]
    brought = _Brought(bool(outside), (*sources_of_events(batch), *planned, *shown), pictures)
    cycle = _begin(tx, waking, batch, plans, told, characters, brought, troubled=bool(troubled))
    tx.announce(agent_topic(agent_id), AgentStatus(agent_id, "alive", lease.epoch).to_payload())
    tx.announce(agent_topic(agent_id), CycleChanged(agent_id, cycle.id, "opened").to_payload())
    return OpenedCycle(cycle, era, more=len(batch) < len(waiting) or len(waiting) >= delivery.LOOKED_AT)


def _prefetch(tx: Tx, agent_id: AgentId) -> None:
    delivery.prefetch_pending(tx, agent_id)
    tx.prefetch(_state, agent_id=agent_id)
    agenda.prefetch_next_few(tx, agent_id)
    privacy_guard.prefetch_private_spaces(tx, agent_id)


@dataclass(frozen=True, slots=True)
class _Told:
    """The changes around the agent, as it is shown them, and as its cycle keeps them until it ends."""

    lines: Sequence[str] = ()
    kept: str | None = None

    def kept_with(self, **more: object) -> str:
        """What the cycle keeps, with more values."""
        before: dict[str, Any] = {} if self.kept is None else json.loads(self.kept)
        return json.dumps({**before, **more}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Brought:
    """The text from outside that a cycle begins with."""

    in_mind: bool
    """Whether the agent's window holds some already."""
    sources: tuple[Source, ...]
    """The sources of such text in the inbox message."""
    pictures: Sequence[Picture] = ()
    """The pictures of the inbox message."""


def _tell_news(tx: Tx, waking: Waking, news: int, batch: Sequence[Event]) -> _Told:
    agent_id = waking.identity.entity.id
    at_hand = [SpaceId(event.space_id) for event in batch if event.space_id is not None]
    seen = system_prompt.surroundings(tx, agent_id, at_hand)
    before: dict[str, str] = json.loads(value(tx, _told, agent_id=agent_id) or "{}")
    unseen = system_prompt.out_of_sight(tx, agent_id, before, seen)
    before = {key: line for key, line in before.items() if key not in unseen}
    lines = system_prompt.news(before, seen, characters=system_prompt.list_characters(waking.inbox_tokens))
    return _Told(lines, json.dumps({"news": news, "facts": seen.facts}, ensure_ascii=False))


def _tell_profiles(tx: Tx, waking: Waking, by: Profiling, batch: Sequence[Event], told: _Told) -> _Told:
    """The text for the profiles of this cycle, added to `told`; with what the cycle stores of them until it ends."""
    characters = system_prompt.list_characters(waking.inbox_tokens)
    turns = choosing.choose_for(tx, waking.identity.entity.id, batch, by, characters=characters)
    if not turns:
        return told
    lines = [each.told for each in turns if each.told is not None]
    return _Told([*told.lines, *lines], told.kept_with(profiles=[each.kept() for each in turns]))


def _renew_self(tx: Tx, waking: Waking, news: int) -> Era | None:
    """Render the self anew. If it is unchanged, the old era continues: its prefix may still be cached."""
    agent_id, era = waking.identity.entity.id, waking.era
    seen = system_prompt.surroundings(tx, agent_id)
    characters = system_prompt.list_characters(waking.inbox_tokens)
    compacted, profile = era.layers is not None, waking.profile
    text = system_prompt.render(waking.identity, seen, characters=characters, compacted=compacted, profile=profile)
    new = era if text == era.text else replace(era, number=era.number + 1, text=text)
    if new is not era:
        eras.store(tx, agent_id, new)
    eras.begin(tx, agent_id, new, eras.SelfInputs(waking.version, news, seen.facts))
    return None if new is era else new


def event_characters(inbox_tokens: int) -> int:
    """How many characters of an event's text are shown: fewer in a small window, so that the longest event fits too."""
    return min(EVENT_CHARACTERS, max((inbox_tokens - _AROUND_EVENT_TOKENS) * 4, 200))


def _begin(
    tx: Tx,
    waking: Waking,
    batch: Sequence[Event],
    plans: Sequence[str],
    told: _Told,
    characters: int,
    brought: _Brought,
    *,
    troubled: bool,
) -> OpenCycle:
    agent_id, seq, zone = waking.identity.entity.id, waking.next_seq, waking.identity.zone
    cycle_id = CycleId(new_id())
    text = format_inbox(batch, now=tx.now, zone=zone, plans=plans, news=told.lines, text_chars=characters)
    message = ModelRequest(parts=[UserPromptPart(each) for each in (text, *(each.line() for each in brought.pictures))])
    entries = [log.entry(seq, cycle_id, "inbox", message, outside=brought.sources or None)]
    if waking.recalling is not None:
        recalled = recollection.come_to_mind(tx, agent_id, cycle_id, seq + 1, batch, waking.recalling)
        entries += [recalled] if recalled is not None else []
    remembered, kept = waking.remembered, told.kept
    if waking.reminding is not None:
        shown = reminding.AlreadyShown(waking.era.layers, entries[1:], waking.remembered)
        reminded = reminding.remind(tx, agent_id, cycle_id, seq + len(entries), batch, waking.reminding, shown)
        if reminded is not None:
            entries += [reminded.entry] if reminded.entry is not None else []
            kept = told.kept_with(retrieval=reminded.retrieval, recalled_in=sorted(waking.reminding.spaces))
        remembered |= reminding.shown_in(entries)
    active = _common_space(tx, agent_id, batch)
    outside_from = seq if brought.in_mind or any(entry.outside is not None for entry in entries) else None
    tx.send(
        _open,
        id=cycle_id,
        agent_id=agent_id,
        first_seq=seq,
        started_at=tx.now,
        active_space_id=active,
        told=kept,
        outside_from=outside_from,
    )
    delivery.take(tx, batch, cycle_id)
    log.append(tx, agent_id, entries)
    sources = [each for event in batch for each in privacy.sources_of_event(event)]
    privacy.add_sources(tx, agent_id, cycle_id, [*sources, *reminding.spaces_shown_in(tx, entries)])
    caution = privacy_guard.caution(tx, agent_id, spaces_of(batch, active), remembered)
    return OpenCycle(
        cycle_id,
        seq,
        tx.now,
        active,
        tuple(batch),
        tuple(entries),
        caution=caution,
        remembered=remembered,
        troubled=troubled,
        outside_from=outside_from,
    )


def _common_space(tx: Tx, agent_id: AgentId, events: Sequence[Event]) -> SpaceId | None:
    """The one space that all events come from, if there is one and the agent is still in it."""
    found = {event.space_id for event in events if event.space_id is not None}
    space_id = SpaceId(found.pop()) if len(found) == 1 else None
    return space_id if space_id is not None and directory.is_member(tx, space_id, agent_id) else None


_take_up = update_where(cycles, "id", set_="interruptions", not_before=0, handed_back=0, outcome="open")


def resume_cycle(tx: Tx, lease: Lease) -> OpenCycle | Literal["later"] | None:
    """The cycle that was cut off, to be resumed at the step it had reached. None if there is none.

    A cycle without a response is undone: its events are taken anew, and in the end one by one.
    """
    fence(tx, lease)
    if stays_paused(tx, lease.agent_id):
        return "later"
    found = find_open(tx, lease.agent_id)
    if found is None:
        return None
    if found.paused:
        # All answers have arrived, or something else has that does not wait for them.
        calls.release(tx, lease.agent_id)
    if found.not_before > tx.now:
        return "later"
    cycle = found.cycle
    _announce_takeover(tx, lease, cycle)
    if cycle.steps == 0:
        cut_off = "cut off before the first answer"
        if found.handed_back:
            undo_cycle(tx, lease, cycle, cut_off, counts=False, delay=False)
        else:
            interrupt_cycle(tx, lease, cycle, cut_off)
        return None
    # A failure was counted when the cycle was postponed; a crash is counted here, and apart: it is nobody's fault.
    crashed = not (found.handed_back or found.not_before)
    interruptions = cycle.interruptions + crashed
    tx.run(_take_up, id=cycle.id, interruptions=interruptions)
    tx.announce(agent_topic(lease.agent_id), AgentStatus(lease.agent_id, "alive", lease.epoch).to_payload())
    tx.announce(agent_topic(lease.agent_id), CycleChanged(lease.agent_id, cycle.id, "resumed").to_payload())
    return replace(cycle, interruptions=interruptions)


def _announce_takeover(tx: Tx, lease: Lease, cycle: OpenCycle) -> None:
    """Announce that streams of the former holder will not finish."""
    frame = StreamAborted(lease.agent_id, lease.epoch, None, "resumed").to_payload()
    tx.announce(agent_topic(lease.agent_id), frame)
    for space_id in {event.space_id for event in cycle.events} | {cycle.active_space_id}:
        if space_id is not None:
            tx.announce(space_topic(SpaceId(space_id)), frame)
