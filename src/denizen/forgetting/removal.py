"""Removes text from everything that holds it: the work behind forgetting and retention, inside one transaction.

Quotes are searched for in every place where text is stored (`places`). Every agent concerned loses its lease and begins
a new era, so that a cycle in progress cannot keep the text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from sqlalchemy import Text, bindparam, case, delete, or_, select, text, update

from denizen.access import audit
from denizen.access.audit import Actor
from denizen.bus.streams import PANEL, WAKE, MessageEdited, space_topic
from denizen.consciousness import chapters, compaction, conversation_summaries, layers
from denizen.consciousness import lease as leases
from denizen.consciousness.recall import passages as recall
from denizen.files import attaching
from denizen.forgetting import redacting
from denizen.forgetting.changing import index_anew
from denizen.forgetting.receipts import Receipt, give_receipt
from denizen.forgetting.redacting import Redactor, each_once
from denizen.forgetting.text_columns import PAGE, PLACES, Row, TextTable
from denizen.ids import AgentId, EntityId, MessageId, OrganizationId, SpaceId, new_id
from denizen.inbox import statuses
from denizen.inbox.events import ABOUT, BEFORE
from denizen.inbox.format import OUTSIDE_MARK, file_line, one_line, quote, speaker
from denizen.memory import items, rolling
from denizen.memory.items import MemoryItem
from denizen.models import codec
from denizen.models.tokens import estimate_message
from denizen.plans import origins
from denizen.shapes.vocabulary import ReceiptKind
from denizen.spaces import editing, posting
from denizen.spaces import outbox as to_send
from denizen.spaces.markdown import render
from denizen.spaces.posting import Message
from denizen.spaces.quotes import FORGOTTEN, Quotes
from denizen.storage import chains
from denizen.storage.database import Tx, columns, delete_where, select_where, statement, update_where, value, values
from denizen.storage.schema import (
    advisors,
    agents,
    calls,
    cycles,
    events,
    feelings,
    log,
    memberships,
    messages,
    metadata,
    minds,
    notes,
    panels,
    passages,
    reflections,
    replies,
    rounds,
    selves,
    signals,
    spaces,
    stances,
    voice_feelings,
    voice_reflections,
    voice_signals,
    voice_stances,
)

NOBODY: Final = "(forgotten)"
"""The name of a forgotten person or space."""
AT_ONCE: Final = 1_000
"""Messages that are searched for in one pass through the database."""
PREVIEW_CHARACTERS: Final = 50
"""The length of a message's preview in the inbox."""
# Leases first, as in every write of a cycle and of a bridge, then spaces, as in every post: running transactions can
# finish.
_LOCKED_FIRST = ("leases", "bridges", "spaces", "messages", "minds", "events", "log")
_ordered = [*_LOCKED_FIRST, *sorted(set(metadata.tables) - {*_LOCKED_FIRST, "instances"})]
_lock = statement(text(f"LOCK TABLE {', '.join(_ordered)} IN EXCLUSIVE MODE"))
_overwrite_deleted = statement(text("PRAGMA secure_delete = ON"))
_leave_deleted = statement(text("PRAGMA secure_delete = OFF"))


def shut_out_writers(tx: Tx) -> None:
    """Locks out other writers until the commit, and makes SQLite overwrite what it deletes."""
    if tx.dialect == "postgresql":
        tx.run(_lock)
    else:
        tx.all(_overwrite_deleted)


_heard_by = statement(
    select(events.c.agent_id, events.c.cycle_id, cycles.c.number)
    .select_from(events.outerjoin(cycles, cycles.c.id == events.c.cycle_id))
    .where(events.c.message_id == bindparam("message_id"))
)
_agents_in = statement(
    select(agents.c.id)
    .join(memberships, memberships.c.entity_id == agents.c.id)
    .where(memberships.c.space_id == bindparam("space_id"))
)
_of_space_there = {
    table.name: statement(delete(table).where(table.c.space_id == bindparam("space")))
    for table in (feelings, signals, reflections, stances)
    + (voice_feelings, voice_signals, voice_reflections, voice_stances)
}
_notices = statement(
    select(events.c.number, events.c.agent_id, events.c.payload)
    .join(agents, agents.c.id == events.c.agent_id)
    .where(agents.c.organization_id == bindparam("organization_id"), events.c.type == "notice")
)
_rewrite_event = update_where(events, "number", set_="payload")
_reminders = statement(
    select(log.c.number, log.c.agent_id, log.c.message)
    .join(agents, agents.c.id == log.c.agent_id)
    .where(agents.c.organization_id == bindparam("organization_id"), log.c.kind == "remembered")
)
_told_advisors = select_where(
    replies,
    "round_id, voice, part, recipe",
    "organization_id",
    or_(bindparam("space_id", type_=Text()) == "", replies.c.space_id == bindparam("space_id", type_=Text())),
    replies.c.recipe.like('%"memory"%'),
)
_rewrite_recipe = update_where(replies, "round_id, voice, part", set_="recipe")
_rewrite_entry = update_where(log, "number", set_="message")
_rolled_selves = select_where(selves, "era, layers", "agent_id", selves.c.layers.like(bindparam("mark")))
_layered_selves = select_where(selves, "era, layers", "agent_id", selves.c.layers.is_not(None))
_number_of_cycle = select_where(cycles, "number", "id")
_rewrite_layers = update_where(selves, "agent_id, era", set_="layers")
_retoken = update_where(log, "number", set_="tokens")
_said_elsewhere = statement(
    select(*columns(messages, "id, text, plain, mentions, metadata, author_id"))
    .join(spaces, spaces.c.id == messages.c.space_id)
    .where(spaces.c.organization_id == bindparam("organization_id"), messages.c.id > bindparam("after"))
    .order_by(messages.c.id)
    .limit(PAGE)
)
_restate = update_where(messages, "id", set_="text, plain, mentions, metadata")
_own_passages = select_where(
    passages,
    "number, text, speaker",
    "agent_id",
    passages.c.number > bindparam("after"),
    passages.c.number <= bindparam("last"),
    or_(passages.c.text.is_not(None), passages.c.speaker.is_not(None)),
    passages.c.kind != "forgotten",
)
_last_passage = select_where(passages, "number", "agent_id", order_by="number desc", limit=1)
_of_space = select_where(passages, "agent_id, number", "space_id")
_agents_here = select_where(agents, "id, definition, urgent", "organization_id", order_by="id")
_redefine = update_where(agents, "id", set_="definition, urgent", version=agents.c.version + 1)
_keys_of_notes = select_where(notes, "agent_id, key", "agent_id")
_drop_note = delete_where(notes, "agent_id, key")
_new_era = update_where(minds, "agent_id", era_version=0, news=minds.c.news + 1)
_interrupt = statement(
    # As after a shutdown: resuming the cycle does not count as an attempt.
    update(cycles).where(cycles.c.agent_id == bindparam("agent"), cycles.c.number.is_(None)).values(handed_back=1)
)
_calls_there = update_where(calls, "space_id", arguments=json.dumps(FORGOTTEN), result=None)
_nothing_said: Final[dict[str, Any]] = {
    "text": case((replies.c.text.is_(None), None), else_=FORGOTTEN),
    "thinking": None,
    "result": None,
    "error": None,
    "recipe": None,
}
_interrupt_replies = statement(
    # A voice that is answering was shown the text: it loses the reply, which is asked for anew, without counting as an
    # attempt.
    update(replies)
    .where(replies.c.organization_id == bindparam("organization"), replies.c.state == "running")
    .values(
        state="waiting",
        holder=None,
        until=0,
        epoch=replies.c.epoch + 1,
        attempts=replies.c.attempts - 1,
        recipe=None,
        reserved_tokens=0,
        reserved_micros=0,
    )
)
_replies_to = statement(
    update(replies)
    .where(
        replies.c.round_id.in_(select(rounds.c.id).where(rounds.c.message_id == bindparam("message"))),
    )
    .values(_nothing_said)
)
_replies_there = update_where(replies, "space_id", name=NOBODY, **_nothing_said)
_questions_there = update_where(rounds, "space_id", question=None)
_panel_there = update_where(panels, "space_id", settings="{}")
_advisors_there = update_where(
    advisors,
    "space_id",
    set_="removed_at",
    name=NOBODY,
    handle=advisors.c.id,
    description="",
    in_group="",
    settings="{}",
    active=0,
)
_events_there = select_where(
    events, "number, agent_id, payload", "space_id", events.c.message_id.is_(None), events.c.payload.is_not(None)
)


@dataclass
class Removal:
    """One forgetting in progress: what was removed so far, and the agents concerned."""

    tx: Tx
    organization_id: OrganizationId
    removed: Counter[str] = field(default_factory=Counter[str])
    names: Quotes = field(default_factory=Quotes)
    """Names that are forgotten with the messages."""
    everywhere: bool = False
    """Whether the names are removed everywhere, or only from the minds of agents that were near."""
    spoken: list[str] = field(default_factory=list[str])
    """Texts that were said elsewhere than in messages."""
    concerned: set[str] = field(default_factory=set[str])
    """Agents that begin a new era."""
    blanked: set[str] = field(default_factory=set[str])
    """Cycles of which only the structure stays."""
    changed_cycles: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Cycles whose entries were changed, each with its agent."""

    def concern(self, agent_ids: Iterable[str]) -> None:
        self.concerned.update(agent_ids)

    def concern_space(self, space_id: SpaceId) -> None:
        """Notes that the agents in the space get a new mind."""
        self.concern(values(self.tx, _agents_in, space_id=space_id))

    def blank_cycles(self, cycle_ids: Iterable[str]) -> None:
        self.blanked.update(cycle_ids)

    def forget_traces(self, agent_id: AgentId, numbers: Sequence[int]) -> None:
        """Forgets what can be recalled of these cycles of the agent, and their lines in the layers of every era."""
        self.concerned.add(agent_id)
        self.removed["passages"] += recall.forget_cycles(self.tx, agent_id, numbers)
        self._forget_in_layers(agent_id, numbers)

    def _forget_in_layers(self, agent_id: AgentId, numbers: Sequence[int]) -> None:
        """Deletes these cycles from the layers of every era; digests are made again from what is left."""
        compaction.forget(self.tx, agent_id, numbers)
        for era, told in self.tx.all(_layered_selves, agent_id=agent_id) if numbers else ():
            left = layers.without_cycles(told, numbers, FORGOTTEN)
            if left != told:
                self.tx.run(_rewrite_layers, agent_id=agent_id, era=era, layers=left)
                self.removed["selves"] += 1
                self.concerned.add(agent_id)

    def forget_messages(self, said_there: Iterable[Message], *, names: bool = False) -> None:
        """Forgets these messages in batches, with what quotes them; the names with the first batch."""
        some: list[Message] = []
        first = True
        for message in said_there:
            some.append(message)
            if len(some) == AT_ONCE:
                self._pass(some, names=names and first)
                some, first = [], False
        if some or first:
            self._pass(some, names=names and first)

    def _pass(self, some: Sequence[Message], *, names: bool) -> None:
        gone = {message.id for message in some}
        earlier = self._earlier_texts(gone)
        near = _Near(self.tx, some, self.concerned)
        attached = [text for message in some for text in attaching.words_of(self.tx, message.files)]
        self._forget_copies_of_files(some, gone)
        for message in some:
            if message.deleted_at is None or message.text != FORGOTTEN:
                editing.empty(self.tx, message, FORGOTTEN)
                self.removed["messages"] += 1
        self.removed["passages"] += recall.forget_messages(self.tx, sorted(gone))
        self.removed["passages"] += recall.forget_files(self.tx, [file.id for each in some for file in each.files])
        texts = each_once([each.text for each in some if each.deleted_at is None] + attached + earlier + self.spoken)
        self.spoken = []
        far, close = self._redactors(texts, some, names=names)
        self._restate(far, close, near, gone)
        self._rewrite_places(far, close, near, people=names and self.everywhere)
        self._forget_passages(far, close, near)
        self._forget_what_rests_on(some, far, close, near)

    def _forget_copies_of_files(self, some: Sequence[Message], gone: set[MessageId]) -> None:
        """Removes the files of these messages also where agents have them, or sent them on."""
        removed = attaching.remove_copies_of_agents(self.tx, [file for each in some for file in each.files])
        self.removed["passages"] += recall.forget_files(self.tx, [file_id for file_id, _ in removed])
        for changed in dict.fromkeys(message_id for _, message_id in removed):
            if changed is not None and changed not in gone:
                message = posting.get_message(self.tx, changed)
                frame = MessageEdited(message.space_id, message.seq, message.id)
                self.tx.announce(space_topic(message.space_id), frame.to_payload())

    def forget_memories(self, what: Iterable[MemoryItem]) -> list[MemoryItem]:
        """Forgets these memories, also where agents were shown them; returns all that were deleted."""
        gone = items.forget(self.tx, what)
        self.removed["memories"] += len(gone)
        self._take_out_of_reminders(gone)
        return gone

    def _take_out_of_reminders(self, gone: Sequence[MemoryItem]) -> None:
        if not gone:
            return
        words = tuple(dict.fromkeys((one_line(each.text), FORGOTTEN) for each in gone if one_line(each.text)))
        redactor = Redactor(Quotes(), words)
        for number, agent_id, message in self.tx.all(_reminders, organization_id=self.organization_id):
            left = redactor.entry(message)
            if left != message:
                self.tx.run(_rewrite_entry, number=number, message=left)
                chains.amend_entry(self.tx, number)
                self.removed["log"] += 1
                self.concerned.add(agent_id)
        self._retell_advisors(redactor.text)

    def _retell_advisors(self, retold: Callable[[str], str], space_id: str = "") -> None:
        """Changes the stored memories of the advisors of all panels, or of that one, by this function."""
        where = {"organization_id": self.organization_id, "space_id": space_id}
        for round_id, voice, part, recipe in self.tx.all(_told_advisors, **where):
            made_of: dict[str, Any] = json.loads(recipe)
            left = retold(made_of.get("memory", ""))
            if left != made_of.get("memory", ""):
                kept = json.dumps({**made_of, "memory": left}, ensure_ascii=False)
                self.tx.run(_rewrite_recipe, round_id=round_id, voice=voice, part=part, recipe=kept)
                self.removed["replies"] += 1

    def _forget_what_rests_on(self, some: Sequence[Message], far: Redactor, close: Redactor, near: _Near) -> None:
        """Forgets what was learned from these messages or repeats them, and the summaries of their conversations."""
        resting = items.resting_on(self.tx, [message.id for message in some])
        quoting = [
            each
            for each, written in items.each_of(self.tx, self.organization_id)
            if (close if each.agent_id in near.agents or each.space_id in near.spaces else far).quotes.occur_in(written)
        ]
        self.forget_memories([*resting, *quoting])
        covered = {message.space_id for message in some if rolling.covers(self.tx, message.space_id, message.seq)}
        self.sum_up_anew(sorted(covered))

    def sum_up_anew(self, space_ids: Iterable[str]) -> None:
        """Deletes the summaries of these conversations, also from the minds of their agents."""
        for space_id in space_ids:
            self.removed["rollings"] += rolling.begin_anew(self.tx, space_id)
            self._retell_advisors(lambda told: FORGOTTEN if told else told, space_id)
            for (agent_id,) in self.tx.all(_agents_in, space_id=space_id):
                self._blank_rolled(agent_id)

    def _blank_rolled(self, agent_id: str) -> None:
        # In the model's own words: quotes cannot be found in it, so all of it is deleted.
        for era, told in self.tx.all(_rolled_selves, agent_id=agent_id, mark=f"%{conversation_summaries.MARK}%"):
            self.tx.run(
                _rewrite_layers, agent_id=agent_id, era=era, layers=conversation_summaries.blanked(told, FORGOTTEN)
            )
            self.removed["selves"] += 1
            self.concerned.add(agent_id)

    def _forget_chapters(self) -> None:
        """Deletes the chapters that were written from what was changed, also from the minds of their agents.

        They are in a model's own words: quotes cannot be found in them.
        """
        numbers: dict[str, list[int]] = {}
        for agent_id, cycle_id in sorted(self.changed_cycles):
            number = value(self.tx, _number_of_cycle, id=cycle_id)
            if number is not None:
                numbers.setdefault(agent_id, []).append(number)
        for agent_id, changed in numbers.items():
            self._forget_in_layers(AgentId(agent_id), chapters.forget(self.tx, AgentId(agent_id), changed))

    def take_out_of_summaries(self, gone: Iterable[MemoryItem]) -> None:
        """Removes these memories from the summaries of their conversations, also from those that an agent has read."""
        for space_id, words in dict.fromkeys((each.space_id, each.text) for each in gone):
            self._take_out_of_summary(space_id, words)

    def _take_out_of_summary(self, space_id: SpaceId, words: str) -> None:
        self.removed["rollings"] += rolling.take_out(self.tx, space_id, words)
        quotes = Quotes()
        quotes.add(words)
        redactor = Redactor(quotes, ((one_line(words), FORGOTTEN),))
        self._retell_advisors(redactor.text, space_id)
        for (agent_id,) in self.tx.all(_agents_in, space_id=space_id):
            for era, told in self.tx.all(_rolled_selves, agent_id=agent_id, mark=f"%{conversation_summaries.MARK}%"):
                left = redactor.text(told)
                if left != told:
                    self.tx.run(_rewrite_layers, agent_id=agent_id, era=era, layers=left)
                    self.removed["selves"] += 1
                    self.concerned.add(agent_id)

    def _earlier_texts(self, gone: set[MessageId]) -> list[str]:
        """Returns the earlier texts of these messages, and removes them from the notices of their edits and
        deletions.
        """
        found: list[str] = []
        for number, agent_id, payload in self.tx.all(_notices, organization_id=self.organization_id):
            told: dict[str, Any] = json.loads(payload) if payload else {}
            if told.get(ABOUT) in gone and BEFORE in told:
                found.append(told[BEFORE])
                left = json.dumps({"text": FORGOTTEN, ABOUT: told[ABOUT]})
                self.tx.run(_rewrite_event, number=number, payload=left)
                self.removed["events"] += 1
                self.concerned.add(agent_id)
        return found

    def _redactors(self, texts: Sequence[str], some: Sequence[Message], *, names: bool) -> tuple[Redactor, Redactor]:
        """Returns the redactor for everybody's texts, and the one for the minds of agents that were near."""
        far, close = Quotes(), Quotes()
        if names:
            far, close = self.names.copy() if self.everywhere else far, self.names.copy()
        for each in texts:
            for form in dict.fromkeys((each, render(each).plain)):
                far.add_long(form)
                close.add(form)
            for line in each.splitlines():
                close.add(line)
            close.add(_glance(each))
        exactly = tuple(pair for message in some for pair in _as_shown(message))
        return Redactor(far), Redactor(close, exactly, frozenset(each for each in texts if each))

    def _restate(self, far: Redactor, close: Redactor, near: _Near, gone: set[MessageId]) -> None:
        """Redacts the quotes in others' messages."""
        if not close.quotes:
            return
        after = ""
        changed: list[MessageId] = []
        while rows := self.tx.all(_said_elsewhere, organization_id=self.organization_id, after=after):
            after = rows[-1][0]
            for id, written, _, mentions, more, author_id in rows:
                redactor = close if author_id in near.agents else far
                left = redactor.quotes.redacted(written)
                left_more = None if more is None else redactor.text(more)
                if id in gone or (left, left_more) == (written, more):
                    continue
                plain = render(left).plain
                self.tx.run(
                    _restate,
                    id=id,
                    text=left,
                    plain=None if plain == left else plain,
                    mentions=mentions,
                    metadata=left_more,
                )
                chains.amend_message(self.tx, id)
                to_send.note(self.tx, posting.get_message(self.tx, id).space_id, id, "edit")
                changed.append(id)
        self.removed["messages"] += len(changed)
        index_anew(self.tx, changed)

    def drop_mentions(self, handle: str) -> None:
        """Removes the mentions of this handle from all messages."""
        after = ""
        while rows := self.tx.all(_said_elsewhere, organization_id=self.organization_id, after=after):
            after = rows[-1][0]
            for id, written, plain, mentions, more, _ in rows:
                left = [each for each in json.loads(mentions or "[]") if each != handle]
                kept = json.dumps(left) if left else None
                if mentions and kept != mentions:
                    self.tx.run(_restate, id=id, text=written, plain=plain, mentions=kept, metadata=more)

    def _rewrite_places(self, far: Redactor, close: Redactor, near: _Near, *, people: bool) -> None:
        for place in PLACES:
            if place.of_people and not people:
                continue
            for row in place.rows(self.tx, self.organization_id):
                left = self._left_of(place, row, far, close, near)
                if left != row.words:
                    place.rewrite(self.tx, row, left)
                    self.removed[place.name] += 1
                    if place.name == "log":
                        self._on_entry_changed(row, left)
                    if row.agent_id is not None:
                        self.concerned.add(row.agent_id)
        self._drop_notes(far, close, near)

    def _left_of(
        self, place: TextTable, row: Row, far: Redactor, close: Redactor, near: _Near
    ) -> Mapping[str, str | None]:
        if row.cycle_id in self.blanked and place.name == "events":
            return {name: None if text is None else _NOTHING_TOLD for name, text in row.words.items()}
        if row.cycle_id in self.blanked and place.name in _OF_A_CYCLE:
            return {name: _blank(how, row.words[name]) for name, how in place.columns.items()}
        redactor = _meant_for(place, row, far, close, near)
        if not redactor.takes_anything:
            return row.words
        return {name: _apply(redactor, how, row.words[name]) for name, how in place.columns.items()}

    def _on_entry_changed(self, row: Row, left: Mapping[str, str | None]) -> None:
        if row.agent_id is not None and row.cycle_id is not None:
            self.changed_cycles.add((row.agent_id, row.cycle_id))
        size = estimate_message(codec.load(left["message"] or ""))
        self.tx.run(_retoken, number=row.keys[0], tokens=size)
        chains.amend_entry(self.tx, row.keys[0])

    def _drop_notes(self, far: Redactor, close: Redactor, near: _Near) -> None:
        """Deletes the notes whose key contains the text: a note is found by its key."""
        for agent_id in values(self.tx, _agents_here, organization_id=self.organization_id):
            quotes = close.quotes if agent_id in near.agents else far.quotes
            for _, key in self.tx.all(_keys_of_notes, agent_id=agent_id):
                if quotes.occur_in(key):
                    self.tx.run(_drop_note, agent_id=agent_id, key=key)
                    origins.set_origin(self.tx, AgentId(agent_id), [f"note:{key}"])
                    self.removed["notes"] += 1
                    self.concerned.add(agent_id)

    def _forget_passages(self, far: Redactor, close: Redactor, near: _Near) -> None:
        """Deletes the passages of agents' actions and summaries that contain the text."""
        for agent_id, _, _ in self.tx.all(_agents_here, organization_id=self.organization_id):
            quotes = close.quotes if agent_id in near.agents else far.quotes
            number = value(self.tx, _last_passage, agent_id=agent_id)
            if number is None or not quotes:
                continue
            numbers: list[int] = []
            for after in range(0, number, AT_ONCE):
                rows = self.tx.all(_own_passages, agent_id=agent_id, after=after, last=after + AT_ONCE)
                numbers += [n for n, text, speaker in rows if quotes.occur_in(f"{speaker or ''}\n{text or ''}")]
            self.removed["passages"] += recall.forget(self.tx, agent_id, numbers)

    def empty_space(self, space_id: SpaceId) -> None:
        """Deletes what happened in the space besides messages: visible calls, events, effects."""
        for agent_id, number in self.tx.all(_of_space, space_id=space_id):
            self.removed["passages"] += recall.forget(self.tx, agent_id, [number])
        for number, agent_id, payload in self.tx.all(_events_there, space_id=space_id):
            self.spoken.append(str(json.loads(payload).get("text", "")))
            self.tx.run(_rewrite_event, number=number, payload=_NOTHING_TOLD)
            self.removed["events"] += 1
            self.concerned.add(agent_id)
        self.removed["calls"] += self.tx.run(_calls_there, space_id=space_id)
        self.removed["replies"] += self.tx.run(_replies_there, space_id=space_id)
        self.removed["advisors"] += self.tx.run(_advisors_there, space_id=space_id, removed_at=self.tx.now)
        self.tx.run(_questions_there, space_id=space_id)
        self.tx.run(_panel_there, space_id=space_id)
        for table, drop in _of_space_there.items():
            self.removed[table] += self.tx.run(drop, space=space_id)
        statuses.clear_space(self.tx, space_id)

    def rename_in_definitions(self, handle: str, new_handle: str) -> None:
        """Replaces the handle in the definitions of agents: owners may have written about the person."""
        redactor = Redactor(self.names)
        for agent_id, definition, urgent in self.tx.all(_agents_here, organization_id=self.organization_id):
            left = redacting.renamed(definition, handle, new_handle, redactor.value)
            rule = None if urgent is None else redacting.renamed(urgent, handle, new_handle, redactor.value)
            if (left, rule) != (definition, urgent):
                self.tx.run(_redefine, id=agent_id, definition=left, urgent=rule)
                self.removed["agents"] += 1
                self.concerned.add(agent_id)

    def forget_replies(self, message_ids: Iterable[str]) -> None:
        """Forgets what advisors of a panel answered to these messages."""
        for message_id in message_ids:
            self.removed["replies"] += self.tx.run(_replies_to, message=message_id)

    def finish(self, kind: ReceiptKind, subject_id: str, by: EntityId | None) -> Receipt:
        """Begins a new era for every agent concerned, and stops those that run with an old mind."""
        self._forget_chapters()
        for agent_id in sorted(self.concerned):
            leases.seize(self.tx, AgentId(agent_id))
            self.tx.run(_new_era, agent_id=agent_id)
            self.tx.run(_interrupt, agent=agent_id)
        if self.concerned:
            self.tx.announce(WAKE, {"agents": [*sorted(self.concerned)]})
        if self.tx.run(_interrupt_replies, organization=self.organization_id):
            self.tx.announce(PANEL, {"space": ""})
        if self.tx.dialect == "sqlite":
            self.tx.all(_leave_deleted)
        removed = {name: count for name, count in sorted(self.removed.items()) if count}
        receipt = Receipt(new_id(), self.organization_id, kind, subject_id, by, removed, self.tx.now)
        give_receipt(self.tx, receipt)
        action = {"memory": "forget_memory", "expired": "expire"}.get(kind, "forget")
        audit.record(self.tx, self.organization_id, Actor(by), action, subject_id, kind=kind, receipt=receipt.id)
        return receipt


def heard_in(tx: Tx, message_id: str) -> list[tuple[str, str | None, int | None]]:
    """Returns the agents that heard the message, with the id and the number of the cycle in which they did."""
    return [(agent_id, cycle_id, number) for agent_id, cycle_id, number in tx.all(_heard_by, message_id=message_id)]


class _Near:
    """Which agents were near when something was said: their minds are searched even for a few words of it."""

    def __init__(self, tx: Tx, some: Sequence[Message], agents_there: Iterable[str]) -> None:
        self.agents = set(agents_there)
        self.cycles: set[str | None] = set()
        self.spaces = {message.space_id for message in some}
        for message in some:
            for agent_id, cycle_id, _ in heard_in(tx, message.id):
                self.agents.add(agent_id)
                self.cycles.add(cycle_id)
            if message.cycle_id is not None:
                self.agents.add(message.author_id)
                self.cycles.add(message.cycle_id)
        for space_id in self.spaces:
            self.agents.update(values(tx, _agents_in, space_id=space_id))


_NOTHING_TOLD: Final = json.dumps({"text": FORGOTTEN})
_OF_A_CYCLE: Final = ("log", "cycles", "effects", "overflow", "calls")


def _meant_for(place: TextTable, row: Row, far: Redactor, close: Redactor, near: _Near) -> Redactor:
    """Chooses the redactor for a row: a text too short to be recognized is searched for only where it was heard, said
    or read again.
    """
    if row.agent_id not in near.agents:
        return far
    if row.cycle_id in near.cycles:
        return close
    read = place.name in ("effects", "overflow") or row.kind == "results"
    return Redactor(close.quotes, close.exactly if read else ())


def _blank(how: str, stored: str | None) -> str | None:
    if stored is None:
        return None
    if how == "request":
        return redacting.blank_request(stored)
    return redacting.blank_entry(stored) if how == "entry" else redacting.blank(stored)


def _apply(redactor: Redactor, how: str, stored: str | None) -> str | None:
    if stored is None:
        return None
    match how:
        case "entry":
            return redactor.entry(stored)
        case "request":
            return redactor.request(stored)
        case _:
            return redactor.text(stored)


def _as_shown(message: Message) -> Iterator[tuple[str, str]]:
    """Yields the forms in which agents read the message, in the inbox and in a transcript: for a text too short to be
    recognized.
    """
    text = quote(message.text)
    # With the handle, and without it as in older entries. A guest may be a member by now.
    handles = dict.fromkeys((message.author_handle, None))
    kinds = (message.author_kind, "guest") if message.author_kind == "human" else (message.author_kind,)
    for handle, kind, mark in product(handles, kinds, ("", f" [{OUTSIDE_MARK}]")):
        who = f"{speaker(message.author_name, kind, handle)}{mark}:"
        yield f"{who} {text}", f'{who} "{FORGOTTEN}"'
        if text.startswith("\n"):
            yield f"{who}{text}", f'{who} "{FORGOTTEN}"'
    for file in message.files:
        yield file_line(file), f"   → file {FORGOTTEN}"


def _glance(text: str) -> str:
    """Returns the whole words in the preview of a message."""
    line = one_line(text[: 20 * PREVIEW_CHARACTERS])
    return line if len(line) <= PREVIEW_CHARACTERS else line[:PREVIEW_CHARACTERS].rpartition(" ")[0]
