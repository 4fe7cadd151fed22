"""Forgets a message, a person, a space or a memory: removed everywhere, in one transaction, with a receipt.

A tombstone stays, so that numbers have no gaps and a replay shows what is missing. Quotes of the forgotten text (eight
words in a row, or all of a shorter text) are replaced by `[forgotten]`: in events, in the log, in summaries, layers and
selves of every era, in notes, goals and plans, in calls and their results, in others' messages. Passages for recall are
removed with their index. What an agent put in its own words stays, unless its answers are forgotten too.

Nobody writes meanwhile: SQLite has one writer, and on PostgreSQL the tables are locked first. So a cycle in progress
cannot keep the text: every agent concerned loses its lease, reloads its mind and begins a new era.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, NoReturn

from sqlalchemy import Text, bindparam, case, delete, or_, select, text, update

from denizen.access import audit, entity_pictures, roles
from denizen.access.audit import Actor
from denizen.access.requesters import Requester
from denizen.bus.streams import PANEL, WAKE, MessageEdited, space_topic
from denizen.consciousness import chapters, compaction, conversation_summaries, layers
from denizen.consciousness import lease as leases
from denizen.consciousness.recall import passages as recall
from denizen.errors import InvalidInput, NotFound
from denizen.files import attaching
from denizen.forgetting import redacting
from denizen.forgetting.changing import index_anew
from denizen.forgetting.places import PAGE, PLACES, Row, TextTable
from denizen.forgetting.redacting import Redactor, each_once
from denizen.ids import AgentId, EntityId, MessageId, OrganizationId, SpaceId, new_id
from denizen.inbox import statuses
from denizen.inbox.events import ABOUT, BEFORE
from denizen.inbox.format import OUTSIDE_MARK, file_line, one_line, quote, speaker
from denizen.memory import access, items, rolling
from denizen.memory.items import MemoryItem
from denizen.models import codec
from denizen.models.tokens import estimate_message
from denizen.plans import origins
from denizen.shapes.vocabulary import ForgetKind as Kind
from denizen.spaces import directory, editing, leaving, marking, posting
from denizen.spaces import outbox as to_send
from denizen.spaces.markdown import render
from denizen.spaces.posting import Message
from denizen.spaces.quotes import FORGOTTEN, Quotes, said
from denizen.storage import chains
from denizen.storage.database import Tx, insert_into, long_running, statement, values
from denizen.storage.schema import (
    addresses,
    advisors,
    agents,
    calls,
    carried,
    channels,
    cycles,
    entities,
    events,
    feelings,
    identities,
    log,
    memberships,
    messages,
    metadata,
    minds,
    notes,
    outbox,
    panels,
    passages,
    push_subscriptions,
    redactions,
    reflections,
    replies,
    rounds,
    secrets,
    selves,
    signals,
    spaces,
    stances,
    tokens,
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
_LATEST: Final = 2**62


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record that something was forgotten, and how much was removed where. Never the text."""

    id: str
    organization_id: OrganizationId
    kind: Kind
    subject_id: str
    by_id: EntityId | None
    removed: Mapping[str, int]
    """How many rows of each table were emptied or changed."""
    created_at: int


_receipt = (
    redactions.c.id,
    redactions.c.organization_id,
    redactions.c.kind,
    redactions.c.subject_id,
    redactions.c.by_id,
    redactions.c.receipt,
    redactions.c.created_at,
)
_receipts = statement(
    select(*_receipt)
    .where(redactions.c.organization_id == bindparam("organization_id"))
    .order_by(redactions.c.created_at, redactions.c.id)
)
_receipt_of = statement(
    select(*_receipt)
    .where(redactions.c.kind == bindparam("kind"), redactions.c.subject_id == bindparam("subject_id"))
    .order_by(redactions.c.created_at, redactions.c.id)
    .limit(1)
)
_give_receipt = insert_into(redactions, "id", "organization_id", "kind", "subject_id", "by_id", "receipt", "created_at")


def receipts(tx: Tx, organization_id: OrganizationId) -> list[Receipt]:
    """Returns the receipts of this organization, oldest first."""
    return [_as_receipt(row) for row in tx.all(_receipts, organization_id=organization_id)]


_receipts_before = statement(
    select(*_receipt)
    .where(
        redactions.c.organization_id == bindparam("organization_id"),
        redactions.c.created_at <= bindparam("at"),
        or_(redactions.c.created_at < bindparam("at"), redactions.c.id < bindparam("id")),
    )
    .order_by(redactions.c.created_at.desc(), redactions.c.id.desc())
    .limit(bindparam("limit"))
)
_one_receipt = statement(select(*_receipt).where(redactions.c.id == bindparam("id")))


def receipts_before(tx: Tx, organization_id: OrganizationId, receipt_id: str | None, *, limit: int) -> list[Receipt]:
    """Returns the receipts before that one, or the newest, newest first."""
    at, id = _LATEST, ""
    if receipt_id is not None:
        row = tx.one(_one_receipt, id=receipt_id)
        receipt = None if row is None else _as_receipt(row)
        if receipt is None or receipt.organization_id != organization_id:
            raise NotFound("receipt", receipt_id)
        at, id = receipt.created_at, receipt_id
    rows = tx.all(_receipts_before, organization_id=organization_id, at=at, id=id, limit=limit)
    return [_as_receipt(row) for row in rows]


def _as_receipt(row: tuple[Any, ...]) -> Receipt:
    id, organization_id, kind, subject_id, by_id, removed, created_at = row
    return Receipt(id, organization_id, kind, subject_id, by_id, json.loads(removed), created_at)


@long_running
def forget_message(tx: Tx, message_id: MessageId, by: EntityId | None = None, *, also_replies: bool = False) -> Receipt:
    """Forgets the message. With `also_replies`, also the cycles that it woke and their messages."""
    _shut_out_writers(tx)
    message = posting.get_message(tx, message_id)
    home = directory.get_space(tx, message.space_id).organization_id
    before = _given(tx, "message", message_id)
    if before is not None and not also_replies:
        return before
    work = _Work(tx, home)
    answered = _answers(tx, [message_id]) if also_replies else []
    work.blank_cycles(each[1] for each in answered)
    answers = [posting.get_message(tx, each) for each in _said_in(tx, {each[1] for each in answered})]
    work.forget_messages([message, *answers])
    if also_replies:
        work.removed["replies"] += tx.run(_replies_to, message=message_id)
    for agent_id, _, number in answered:
        if number is not None:
            work.removed["passages"] += recall.forget_cycles(tx, AgentId(agent_id), [number])
    return work.finish("message", message_id, by)


@long_running
def forget_person(
    tx: Tx, person_id: EntityId, by: EntityId | None = None, *, refuse_last_owner: bool = False
) -> Receipt:
    """Forgets everything this person said, with their name and handle, memberships, tokens and secrets.

    The last owner of an organization stays its owner, without a name; with `refuse_last_owner` they are not forgotten.
    """
    _shut_out_writers(tx)
    person = directory.get_entity(tx, person_id)
    if person.kind == "agent":
        raise InvalidInput("Agents cannot be forgotten like people. Delete the agent, and forget its messages.")
    if (before := _given(tx, "person", person_id)) is not None:
        return before
    if refuse_last_owner:
        roles.require_another_owner(tx, person_id, person.organization_id)
    work = _Work(tx, person.organization_id)
    work.everywhere = True
    work.names.add_name(person.name)
    work.names.add_name(person.handle)
    for (answer,) in tx.all(_answers_of, person_id=person_id):
        work.spoken.append(str(answer))
    new_handle = f"forgotten-{person_id[-12:]}"
    work.rename_in_definitions(person.handle, new_handle)
    for each in directory.spaces_of(tx, person_id):
        leaving.leave(tx, each.id, person_id)
        work.removed["memberships"] += 1
        work.concern(values(tx, _agents_in, space_id=each.id))
    work.forget_memories(items.of_person(tx, person_id))
    work.forget_messages(_all_messages(tx, _by_author, author_id=person_id), names=True)
    work.drop_mentions(person.handle)
    marking.forget_reactions_of(tx, person_id)
    tx.run(_forget_entity, entity=person_id, new_name=NOBODY, new_handle=new_handle)
    tx.run(_revoke, entity=person_id, at=tx.now)
    tx.run(_drop_secrets, owner=person_id)
    work.removed["entity_pictures"] += entity_pictures.drop(tx, person_id)
    work.removed["push_subscriptions"] += tx.run(_drop_subscriptions, entity=person_id)
    for table, drop in _of_person.items():
        work.removed[table] += tx.run(drop, person=person_id)
    # A server without an owner could not be administered: the last one stays, without a name.
    if roles.role_of(tx, person_id) != "owner" or roles.count_owners(tx, person.organization_id) > 1:
        tx.run(_gone, entity=person_id, at=tx.now)
    tx.run(_unlink, entity=person_id)
    work.removed["addresses"] += tx.run(_unlink_accounts, entity=person_id) + _forget_accounts(tx, person_id)
    return work.finish("person", person_id, by)


@long_running
def forget_space(tx: Tx, space_id: SpaceId, by: EntityId | None = None) -> Receipt:
    """Forgets everything said in this space, with its name and its members."""
    _shut_out_writers(tx)
    space = directory.get_space(tx, space_id)
    if (before := _given(tx, "space", space_id)) is not None:
        return before
    work = _Work(tx, space.organization_id)
    # One word may also be the name of other things; several words together rarely are.
    work.everywhere = len(said(space.name)) > 1
    work.names.add_name(space.name, exactly=not work.everywhere)
    work.concern(values(tx, _agents_in, space_id=space_id))
    work.empty_space(space_id)
    work.forget_memories(items.of_place(tx, space_id))
    work.sum_up_anew([space_id])
    work.removed["rollings"] += rolling.drop(tx, space_id)
    work.forget_messages(_all_messages(tx, _in_space, space_id=space_id), names=True)
    work.removed["memberships"] += tx.run(_leave_all, space=space_id)
    directory.strike_members(tx, space_id)
    tx.run(_forget_space, space=space_id, new_name=NOBODY)
    work.removed["channels"] += _disconnect(tx, space_id)
    directory.announce_change(tx, space_id)
    return work.finish("space", space_id, by)


@long_running
def forget_memory(tx: Tx, by: Requester, memory_id: str) -> Receipt:
    """Forgets the memory, with its copies of other owners, for good. The messages it is based on stay.

    People forget only what they may change: copies that belong to others or to the organization stay.
    """
    _shut_out_writers(tx)
    # People must not learn whether it was forgotten before.
    if not by.is_limited and (before := _given(tx, "memory", memory_id)) is not None:
        return before
    memory = access.find_changeable(tx, by, memory_id)
    copies = [each for each in items.copies_of(tx, memory) if access.may_change(tx, each, by)]
    work = _Work(tx, memory.organization_id)
    work.take_out_of_summaries(work.forget_memories([memory, *copies]))
    return work.finish("memory", memory_id, by.optional_entity_id)


class Rehearsed(Exception):
    """The dry run is complete. Not an error: raising it rolls the transaction back."""

    def __init__(self, receipt: Receipt) -> None:
        super().__init__(receipt.id)
        self.receipt = receipt


@long_running
def rehearse(tx: Tx, forget: Callable[..., Receipt], /, *args: Any, **options: Any) -> NoReturn:
    """Forgets, and rolls back by raising `Rehearsed` with the receipt that there would be."""
    raise Rehearsed(forget(tx, *args, **options))


def _given(tx: Tx, kind: Kind, subject_id: str) -> Receipt | None:
    row = tx.one(_receipt_of, kind=kind, subject_id=subject_id)
    return None if row is None else _as_receipt(row)


# Leases first, as in every write of a cycle and of a bridge, then spaces, as in every post: running transactions can
# finish.
_LOCKED_FIRST = ("leases", "bridges", "spaces", "messages", "minds", "events", "log")
_ordered = [*_LOCKED_FIRST, *sorted(set(metadata.tables) - {*_LOCKED_FIRST, "instances"})]
_lock = statement(text(f"LOCK TABLE {', '.join(_ordered)} IN EXCLUSIVE MODE"))
_overwrite_deleted = statement(text("PRAGMA secure_delete = ON"))
_leave_deleted = statement(text("PRAGMA secure_delete = OFF"))


def _shut_out_writers(tx: Tx) -> None:
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
_by_agents = statement(
    select(messages.c.id, messages.c.cycle_id)
    .where(messages.c.cycle_id.is_not(None), messages.c.id > bindparam("after"))
    .order_by(messages.c.id)
    .limit(AT_ONCE)
)
_answers_of = statement(
    select(calls.c.result).where(calls.c.settled_by == bindparam("person_id"), calls.c.result.is_not(None))
)
_agents_in = statement(
    select(agents.c.id)
    .join(memberships, memberships.c.entity_id == agents.c.id)
    .where(memberships.c.space_id == bindparam("space_id"))
)
_by_author = statement(
    select(messages.c.id)
    .where(messages.c.author_id == bindparam("author_id"), messages.c.id > bindparam("after"))
    .order_by(messages.c.id)
    .limit(AT_ONCE)
)
_in_space = statement(
    select(messages.c.id)
    .where(messages.c.space_id == bindparam("space_id"), messages.c.id > bindparam("after"))
    .order_by(messages.c.id)
    .limit(AT_ONCE)
)
_forget_entity = statement(
    update(entities)
    .where(entities.c.id == bindparam("entity"))
    .values(name=bindparam("new_name"), handle=bindparam("new_handle"), metadata="{}")
)
_gone = statement(
    update(entities)
    .where(entities.c.id == bindparam("entity"), entities.c.left_at.is_(None))
    .values(left_at=bindparam("at"))
)
_revoke = statement(
    update(tokens).where(tokens.c.entity_id == bindparam("entity")).values(name=FORGOTTEN, revoked_at=bindparam("at"))
)
_drop_secrets = statement(delete(secrets).where(secrets.c.owner_id == bindparam("owner")))
_drop_subscriptions = statement(delete(push_subscriptions).where(push_subscriptions.c.entity_id == bindparam("entity")))
_unlink = statement(delete(identities).where(identities.c.entity_id == bindparam("entity")))
_unlink_accounts = statement(
    update(addresses)
    .where(addresses.c.person_id == bindparam("entity"), addresses.c.person_id.is_not(None))
    .values(person_id=None, linked_at=None)
)
# Nobody knows whose it was: whoever writes with it again is a new guest.
_rename_accounts = statement(
    update(addresses).where(addresses.c.guest_id == bindparam("guest")).values(account=bindparam("nobody"))
)
_codes_to = statement(
    delete(outbox).where(
        outbox.c.target.in_(select(addresses.c.account).where(addresses.c.guest_id == bindparam("guest"))),
        outbox.c.channel_id.is_(None),
    )
)
_channels_of = statement(select(channels.c.id).where(channels.c.space_id == bindparam("space_id")))
_of_channel = [
    statement(delete(table).where(column == bindparam("channel")))
    for table, column in ((outbox, outbox.c.channel_id), (carried, carried.c.channel_id), (channels, channels.c.id))
]
_of_person = {
    table.name: statement(delete(table).where(table.c.person_id == bindparam("person")))
    for table in (feelings, signals, voice_feelings, voice_signals)
}
_of_space_there = {
    table.name: statement(delete(table).where(table.c.space_id == bindparam("space")))
    for table in (feelings, signals, reflections, stances)
    + (voice_feelings, voice_signals, voice_reflections, voice_stances)
}
_leave_all = statement(delete(memberships).where(memberships.c.space_id == bindparam("space")))
_forget_space = statement(update(spaces).where(spaces.c.id == bindparam("space")).values(name=bindparam("new_name")))


def _forget_accounts(tx: Tx, guest_id: EntityId) -> int:
    """Forgets the accounts elsewhere of this guest."""
    tx.run(_codes_to, guest=guest_id)
    return tx.run(_rename_accounts, guest=guest_id, nobody=f"forgotten-{guest_id}")


def _disconnect(tx: Tx, space_id: SpaceId) -> int:
    """Forgets the rooms elsewhere that the space was connected with, and what was carried."""
    found = values(tx, _channels_of, space_id=space_id)
    for channel_id in found:
        for drop in _of_channel:
            tx.run(drop, channel=channel_id)
    return len(found)


def _answers(tx: Tx, message_ids: Iterable[str]) -> list[tuple[str, str, int | None]]:
    """Returns the cycles that these messages woke: agent, id, and number if it has ended."""
    rows = [row for each in message_ids for row in tx.all(_heard_by, message_id=each)]
    return [(agent_id, cycle_id, number) for agent_id, cycle_id, number in rows if cycle_id is not None]


def _said_in(tx: Tx, cycle_ids: set[str]) -> list[MessageId]:
    # There is no index from a cycle to its messages, because only this needs it: all are read, once for all cycles.
    found: list[MessageId] = []
    after = ""
    while cycle_ids and (rows := tx.all(_by_agents, after=after)):
        found += [MessageId(id) for id, cycle_id in rows if cycle_id in cycle_ids]
        after = rows[-1][0]
    return found


def _all_messages(tx: Tx, query: Any, **which: str) -> Iterator[Message]:
    after = ""
    while rows := tx.all(query, after=after, **which):
        yield from (posting.get_message(tx, row[0]) for row in rows)
        after = rows[-1][0]


_notices = statement(
    select(events.c.number, events.c.agent_id, events.c.payload)
    .join(agents, agents.c.id == events.c.agent_id)
    .where(agents.c.organization_id == bindparam("organization_id"), events.c.type == "notice")
)
_rewrite_event = statement(
    update(events).where(events.c.number == bindparam("event")).values(payload=bindparam("new_payload"))
)
_reminders = statement(
    select(log.c.number, log.c.agent_id, log.c.message)
    .join(agents, agents.c.id == log.c.agent_id)
    .where(agents.c.organization_id == bindparam("organization_id"), log.c.kind == "remembered")
)
_told_advisors = statement(
    select(replies.c.round_id, replies.c.voice, replies.c.part, replies.c.recipe).where(
        replies.c.organization_id == bindparam("organization_id"),
        or_(bindparam("space_id", type_=Text()) == "", replies.c.space_id == bindparam("space_id", type_=Text())),
        replies.c.recipe.like('%"memory"%'),
    )
)
_rewrite_recipe = statement(
    update(replies)
    .where(
        replies.c.round_id == bindparam("round"),
        replies.c.voice == bindparam("of"),
        replies.c.part == bindparam("which"),
    )
    .values(recipe=bindparam("new_recipe"))
)
_rewrite_entry = statement(
    update(log).where(log.c.number == bindparam("entry")).values(message=bindparam("new_message"))
)
_rolled_selves = statement(
    select(selves.c.era, selves.c.layers).where(
        selves.c.agent_id == bindparam("agent_id"), selves.c.layers.like(bindparam("mark"))
    )
)
_layered_selves = statement(
    select(selves.c.era, selves.c.layers).where(
        selves.c.agent_id == bindparam("agent_id"), selves.c.layers.is_not(None)
    )
)
_number_of_cycle = statement(select(cycles.c.number).where(cycles.c.id == bindparam("id")))
_rewrite_layers = statement(
    update(selves)
    .where(selves.c.agent_id == bindparam("agent"), selves.c.era == bindparam("of_era"))
    .values(layers=bindparam("new_layers"))
)
_retoken = statement(update(log).where(log.c.number == bindparam("entry")).values(tokens=bindparam("new_tokens")))
_said_elsewhere = statement(
    select(
        messages.c.id,
        messages.c.text,
        messages.c.plain,
        messages.c.mentions,
        messages.c.metadata,
        messages.c.author_id,
    )
    .join(spaces, spaces.c.id == messages.c.space_id)
    .where(spaces.c.organization_id == bindparam("organization_id"), messages.c.id > bindparam("after"))
    .order_by(messages.c.id)
    .limit(PAGE)
)
_restate = statement(
    update(messages)
    .where(messages.c.id == bindparam("message"))
    .values(
        text=bindparam("new_text"),
        plain=bindparam("new_plain"),
        mentions=bindparam("new_mentions"),
        metadata=bindparam("new_metadata"),
    )
)
_own_passages = statement(
    select(passages.c.number, passages.c.text, passages.c.speaker).where(
        passages.c.agent_id == bindparam("agent_id"),
        passages.c.number > bindparam("after"),
        passages.c.number <= bindparam("last"),
        or_(passages.c.text.is_not(None), passages.c.speaker.is_not(None)),
        passages.c.kind != "forgotten",
    )
)
_last_passage = statement(
    select(passages.c.number)
    .where(passages.c.agent_id == bindparam("agent_id"))
    .order_by(passages.c.number.desc())
    .limit(1)
)
_of_space = statement(
    select(passages.c.agent_id, passages.c.number).where(passages.c.space_id == bindparam("space_id"))
)
_agents_here = statement(
    select(agents.c.id, agents.c.definition, agents.c.urgent)
    .where(agents.c.organization_id == bindparam("organization_id"))
    .order_by(agents.c.id)
)
_redefine = statement(
    update(agents)
    .where(agents.c.id == bindparam("agent"))
    .values(definition=bindparam("new_definition"), urgent=bindparam("new_urgent"), version=agents.c.version + 1)
)
_keys_of_notes = statement(select(notes.c.agent_id, notes.c.key).where(notes.c.agent_id == bindparam("agent_id")))
_drop_note = statement(delete(notes).where(notes.c.agent_id == bindparam("agent"), notes.c.key == bindparam("named")))
_new_era = statement(
    update(minds).where(minds.c.agent_id == bindparam("agent")).values(era_version=0, news=minds.c.news + 1)
)
_interrupt = statement(
    # As after a shutdown: resuming the cycle does not count as an attempt.
    update(cycles).where(cycles.c.agent_id == bindparam("agent"), cycles.c.number.is_(None)).values(handed_back=1)
)
_calls_there = statement(
    update(calls).where(calls.c.space_id == bindparam("space")).values(arguments=json.dumps(FORGOTTEN), result=None)
)
_nothing_said = {
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
_replies_there = statement(
    update(replies).where(replies.c.space_id == bindparam("space")).values(name=NOBODY, **_nothing_said)
)
_questions_there = statement(update(rounds).where(rounds.c.space_id == bindparam("space")).values(question=None))
_panel_there = statement(update(panels).where(panels.c.space_id == bindparam("space")).values(settings="{}"))
_advisors_there = statement(
    update(advisors)
    .where(advisors.c.space_id == bindparam("space"))
    .values(
        name=NOBODY,
        handle=advisors.c.id,
        description="",
        in_group="",
        settings="{}",
        active=0,
        removed_at=bindparam("at"),
    )
)
_events_there = statement(
    select(events.c.number, events.c.agent_id, events.c.payload).where(
        events.c.space_id == bindparam("space_id"), events.c.message_id.is_(None), events.c.payload.is_not(None)
    )
)


@dataclass
class _Work:
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

    def blank_cycles(self, cycle_ids: Iterable[str]) -> None:
        self.blanked.update(cycle_ids)

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
                self.tx.run(_rewrite_entry, entry=number, new_message=left)
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
                self.tx.run(_rewrite_recipe, round=round_id, of=voice, which=part, new_recipe=kept)
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
                _rewrite_layers, agent=agent_id, of_era=era, new_layers=conversation_summaries.blanked(told, FORGOTTEN)
            )
            self.removed["selves"] += 1
            self.concerned.add(agent_id)

    def _forget_chapters(self) -> None:
        """Deletes the chapters that were written from what was changed, also from the minds of their agents.

        They are in a model's own words: quotes cannot be found in them.
        """
        numbers: dict[str, list[int]] = {}
        for agent_id, cycle_id in sorted(self.changed_cycles):
            row = self.tx.one(_number_of_cycle, id=cycle_id)
            if row is not None and row[0] is not None:
                numbers.setdefault(agent_id, []).append(row[0])
        for agent_id, changed in numbers.items():
            gone = chapters.forget(self.tx, AgentId(agent_id), changed)
            compaction.forget(self.tx, AgentId(agent_id), gone)
            for era, told in self.tx.all(_layered_selves, agent_id=agent_id) if gone else ():
                left = layers.without_cycles(told, gone, FORGOTTEN)
                if left != told:
                    self.tx.run(_rewrite_layers, agent=agent_id, of_era=era, new_layers=left)
                    self.removed["selves"] += 1
                    self.concerned.add(agent_id)

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
                    self.tx.run(_rewrite_layers, agent=agent_id, of_era=era, new_layers=left)
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
                self.tx.run(_rewrite_event, event=number, new_payload=left)
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
                    message=id,
                    new_text=left,
                    new_plain=None if plain == left else plain,
                    new_mentions=mentions,
                    new_metadata=left_more,
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
                    self.tx.run(
                        _restate, message=id, new_text=written, new_plain=plain, new_mentions=kept, new_metadata=more
                    )

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
        self.tx.run(_retoken, entry=row.keys[0], new_tokens=size)
        chains.amend_entry(self.tx, row.keys[0])

    def _drop_notes(self, far: Redactor, close: Redactor, near: _Near) -> None:
        """Deletes the notes whose key contains the text: a note is found by its key."""
        for agent_id in values(self.tx, _agents_here, organization_id=self.organization_id):
            quotes = close.quotes if agent_id in near.agents else far.quotes
            for _, key in self.tx.all(_keys_of_notes, agent_id=agent_id):
                if quotes.occur_in(key):
                    self.tx.run(_drop_note, agent=agent_id, named=key)
                    origins.set_origin(self.tx, AgentId(agent_id), [f"note:{key}"])
                    self.removed["notes"] += 1
                    self.concerned.add(agent_id)

    def _forget_passages(self, far: Redactor, close: Redactor, near: _Near) -> None:
        """Deletes the passages of agents' actions and summaries that contain the text."""
        for agent_id, _, _ in self.tx.all(_agents_here, organization_id=self.organization_id):
            quotes = close.quotes if agent_id in near.agents else far.quotes
            newest = self.tx.one(_last_passage, agent_id=agent_id)
            if newest is None or not quotes:
                continue
            numbers: list[int] = []
            for after in range(0, newest[0], AT_ONCE):
                rows = self.tx.all(_own_passages, agent_id=agent_id, after=after, last=after + AT_ONCE)
                numbers += [row[0] for row in rows if quotes.occur_in(f"{row[2] or ''}\n{row[1] or ''}")]
            self.removed["passages"] += recall.forget(self.tx, agent_id, numbers)

    def empty_space(self, space_id: SpaceId) -> None:
        """Deletes what happened in the space besides messages: visible calls, events, effects."""
        for agent_id, number in self.tx.all(_of_space, space_id=space_id):
            self.removed["passages"] += recall.forget(self.tx, agent_id, [number])
        for number, agent_id, payload in self.tx.all(_events_there, space_id=space_id):
            self.spoken.append(str(json.loads(payload).get("text", "")))
            self.tx.run(_rewrite_event, event=number, new_payload=json.dumps({"text": FORGOTTEN}))
            self.removed["events"] += 1
            self.concerned.add(agent_id)
        self.removed["calls"] += self.tx.run(_calls_there, space=space_id)
        self.removed["replies"] += self.tx.run(_replies_there, space=space_id)
        self.removed["advisors"] += self.tx.run(_advisors_there, space=space_id, at=self.tx.now)
        self.tx.run(_questions_there, space=space_id)
        self.tx.run(_panel_there, space=space_id)
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
                self.tx.run(_redefine, agent=agent_id, new_definition=left, new_urgent=rule)
                self.removed["agents"] += 1
                self.concerned.add(agent_id)

    def finish(self, kind: Kind, subject_id: str, by: EntityId | None) -> Receipt:
        """Begins a new era for every agent concerned, and stops those that run with an old mind."""
        self._forget_chapters()
        for agent_id in sorted(self.concerned):
            leases.seize(self.tx, AgentId(agent_id))
            self.tx.run(_new_era, agent=agent_id)
            self.tx.run(_interrupt, agent=agent_id)
        if self.concerned:
            self.tx.announce(WAKE, {"agents": [*sorted(self.concerned)]})
        if self.tx.run(_interrupt_replies, organization=self.organization_id):
            self.tx.announce(PANEL, {"space": ""})
        if self.tx.dialect == "sqlite":
            self.tx.all(_leave_deleted)
        removed = {name: count for name, count in sorted(self.removed.items()) if count}
        receipt = Receipt(new_id(), self.organization_id, kind, subject_id, by, removed, self.tx.now)
        self.tx.run(
            _give_receipt,
            id=receipt.id,
            organization_id=receipt.organization_id,
            kind=kind,
            subject_id=subject_id,
            by_id=by,
            receipt=json.dumps(removed),
            created_at=receipt.created_at,
        )
        action = "forget_memory" if kind == "memory" else "forget"
        audit.record(self.tx, self.organization_id, Actor(by), action, subject_id, kind=kind, receipt=receipt.id)
        return receipt


class _Near:
    """Which agents were near when something was said: their minds are searched even for a few words of it."""

    def __init__(self, tx: Tx, some: Sequence[Message], agents_there: Iterable[str]) -> None:
        self.agents = set(agents_there)
        self.cycles: set[str] = set()
        self.spaces = {message.space_id for message in some}
        for message in some:
            for agent_id, cycle_id, _ in tx.all(_heard_by, message_id=message.id):
                self.agents.add(agent_id)
                self.cycles.add(cycle_id)
            if message.cycle_id is not None:
                self.agents.add(message.author_id)
                self.cycles.add(message.cycle_id)
        for space_id in self.spaces:
            self.agents.update(values(tx, _agents_in, space_id=space_id))


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
