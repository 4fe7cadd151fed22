"""Posts messages: the message and an event in every inbox that attends to the space, in one transaction."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import JsonValue
from sqlalchemy import bindparam, case, func, select, update

from denizen.bus.streams import MessageCreated, space_topic
from denizen.errors import IdempotencyKeyReused, InvalidInput, NotAMember, NotFound
from denizen.files import attaching
from denizen.files.attaching import Attachment, attachments_from
from denizen.ids import AgentId, ChannelId, EntityId, MessageId, SpaceId, new_id
from denizen.inbox import delivery, parking, statuses, stop_requests
from denizen.inbox.delivery import Delivery
from denizen.inbox.urgency import rule_from, says_only_stop
from denizen.spaces import floor, outbox
from denizen.spaces.directory import Floor, is_member
from denizen.spaces.floor import Takers
from denizen.spaces.markdown import Rendered, render
from denizen.storage import chains
from denizen.storage.database import Tx, insert_into, statement, storable, value
from denizen.storage.schema import agents, cycles, entities, events, memberships, messages, spaces

HOP_BUDGET: Final = 6
"""How many agents in a row may answer each other before their messages stop waking anyone."""
MESSAGE_CHARACTERS: Final = 100_000
_SHORT_CHARACTERS: Final = 2_000
"""A text up to this length is rendered on the event loop."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A text that can be posted: checked, and rendered once, outside any transaction."""

    text: str
    rendered: Rendered


@dataclass(frozen=True, slots=True)
class Posted:
    """The position of a posted message."""

    id: MessageId
    seq: int
    space_kind: str


def draft(text: str, *, with_files: bool = False) -> Draft:
    """Check and render a text for posting; characters that databases cannot store (NUL, surrogates) become U+FFFD.

    A message with files needs no text.
    """
    text = storable(text)
    if not text.strip() and not with_files:
        raise InvalidInput("A message needs some text.")
    if len(text) > MESSAGE_CHARACTERS:
        raise InvalidInput(
            f"A message may have {MESSAGE_CHARACTERS:,} characters, this one has {len(text):,}. Send it in parts."
        )
    return Draft(text, render(text))


async def draft_off_loop(text: str, *, with_files: bool = False) -> Draft:
    """The same for callers on the event loop: a long text is rendered in a thread, because that takes up to half a
    second.
    """
    if len(text) <= _SHORT_CHARACTERS:
        return draft(text, with_files=with_files)
    return await asyncio.to_thread(draft, text, with_files=with_files)


_lock = statement(
    select(
        spaces.c.last_seq,
        spaces.c.head,
        spaces.c.kind,
        spaces.c.bridged,
        spaces.c.floor,
        spaces.c.agent_run,
        spaces.c.agent_run_limit,
    )
    .where(spaces.c.id == bindparam("id"))
    .with_for_update(key_share=True)
)
_advance = statement(
    update(spaces)
    .where(spaces.c.id == bindparam("space"))
    .values(last_seq=bindparam("new_seq"), head=bindparam("new_head"))
)
_author = statement(
    select(entities.c.kind, entities.c.handle, entities.c.role, statuses.is_shown(entities.c.id))
    .join(memberships, memberships.c.entity_id == entities.c.id)
    .where(memberships.c.space_id == bindparam("space_id"), entities.c.id == bindparam("author_id"))
)
_seq_of = statement(select(messages.c.seq, messages.c.space_id).where(messages.c.id == bindparam("id")))
_posted = statement(
    select(
        messages.c.seq,
        messages.c.space_id,
        messages.c.author_id,
        messages.c.text,
        messages.c.reply_to,
        messages.c.metadata,
        messages.c.files,
    ).where(messages.c.id == bindparam("id"))
)
_is_in_space = statement(
    select(messages.c.id).where(messages.c.id == bindparam("id"), messages.c.space_id == bindparam("space_id"))
)
_add = insert_into(
    messages,
    "id",
    "space_id",
    "seq",
    "author_id",
    "text",
    "plain",
    "mentions",
    "reply_to",
    "metadata",
    "hop",
    "cycle_id",
    "outside",
    "created_at",
    "salt",
    "digest",
)
_set_files = statement(update(messages).where(messages.c.id == bindparam("message")).values(files=bindparam("value")))
_read_own = statement(
    update(memberships)
    .where(memberships.c.space_id == bindparam("space"), memberships.c.entity_id == bindparam("author"))
    .values(read_seq=bindparam("last"))
)
_members = (
    select(func.count())
    .where(memberships.c.space_id == bindparam("space_id"))
    .select_from(memberships)
    .scalar_subquery()
)
# When the agent retries what failed: its open cycle, or earlier messages of this space.
_cycle_goes_on_at = (
    select(func.max(cycles.c.not_before))
    .where(cycles.c.agent_id == agents.c.id, cycles.c.number.is_(None))
    .scalar_subquery()
)
_space_goes_on_at = (
    select(func.max(events.c.not_before))
    .where(
        events.c.agent_id == agents.c.id,
        events.c.state != "done",
        events.c.state == "pending",
        events.c.space_id == bindparam("space_id"),
    )
    .scalar_subquery()
)
_listeners = statement(
    select(
        memberships.c.entity_id,
        memberships.c.attention,
        entities.c.handle,
        agents.c.urgent,
        agents.c.status,
        agents.c.held_by,
        agents.c.held_until,
        agents.c.parked_cause,
        memberships.c.joined_at,
        _members,
        _cycle_goes_on_at,
        # Not for those that cannot answer anyway: many events may wait for them.
        case(((agents.c.status == "active") & agents.c.parked_cause.is_(None), _space_goes_on_at)),
        statuses.is_shown(agents.c.id),
    )
    .join(agents, agents.c.id == memberships.c.entity_id)
    .join(entities, entities.c.id == memberships.c.entity_id)
    .where(
        memberships.c.space_id == bindparam("space_id"),
        memberships.c.entity_id != bindparam("author_id"),
        memberships.c.attention != "none",
    )
    .order_by(memberships.c.entity_id)
)


def prefetch_post(tx: Tx, space_id: SpaceId, author_id: EntityId, id: MessageId | None = None) -> None:
    """Announce a `post`, which locks the space's row."""
    tx.prefetch(_lock, id=space_id)
    if id is not None:
        tx.prefetch(_posted, id=id)
    tx.prefetch(_author, space_id=space_id, author_id=author_id)
    tx.prefetch(_listeners, space_id=space_id, author_id=author_id)


def post(
    tx: Tx,
    space_id: SpaceId,
    author_id: EntityId,
    what: Draft,
    *,
    id: MessageId | None = None,
    reply_to: MessageId | None = None,
    metadata: Mapping[str, JsonValue] | None = None,
    urgent: bool = False,
    hop: int = 0,
    cycle_id: str | None = None,
    asked: EntityId | None = None,
    request: Mapping[str, JsonValue] | None = None,
    answers: Collection[str] = (),
    outside: bool = False,
    files: Sequence[str] = (),
    via: ChannelId | None = None,
    history_from: int | None = None,
) -> Posted:
    """Post the message to the space, and to the inbox of every agent that attends to it. Every message is posted here.

    Raises `NotAMember` unless the author is in the space, and `IdempotencyKeyReused` if another message has the `id`.
    The same message with the same `id` is posted once.

    What a guest or a service writes is text from outside; so is what is posted with `outside`: by an agent that has
    read such text, or in the name of someone whom this server does not know.

    The floor of the space decides who is woken, and whose answer a person waits for. The message addresses the agents
    that it mentions, the agent `asked`, the author of what it replies to, and those whom it `answers`. `request` is
    what a program says that waits for the answer of the agent `asked`: it becomes part of that agent's event. `files`
    are ids of finished uploads.

    A message from elsewhere came `via` a channel, and is not sent back there. With `history_from`, when it was written,
    it is old: agents read it when they wake next, and nobody waits for an answer. A service's message with a `hop` is
    another server's agent's.
    """
    # First, because it locks the space's row: numbers and members stay the same until the commit.
    end, setting, run, limit = _lock_end(tx, space_id)
    if id is not None and (posted := tx.one(_posted, id=id)) is not None:
        number, *same, stored, with_files = posted
        known: object = json.loads(stored) if stored else {}
        if (*same, known) != (space_id, author_id, what.text, reply_to, dict(metadata or {})):
            raise IdempotencyKeyReused
        if not attaching.are_the_same(tx, author_id, attachments_from(with_files), files):
            raise IdempotencyKeyReused
        return Posted(id, number, end.kind)
    author = tx.one(_author, space_id=space_id, author_id=author_id)
    if author is None:
        raise NotAMember("Only members of a space can post in it. Join it first.")
    attached = attaching.attachable(tx, author_id, files) if files else ()
    kind, handle, role, has_status = author
    posted_id, seq = id or MessageId(new_id()), end.last_seq + 1
    mentions = what.rendered.mentions
    _store(
        tx,
        end,
        posted_id,
        author_id,
        what,
        mentions=json.dumps(mentions) if mentions else None,
        reply_to=reply_to,
        metadata=json.dumps(metadata) if metadata else None,
        hop=hop,
        cycle_id=cycle_id,
        outside=int(outside or is_outside_author(kind, role)),
    )
    if attached:
        tx.run(_set_files, message=posted_id, value=attaching.attach(tx, posted_id, author_id, attached))
    if cycle_id is None:
        # A person who posts has seen what came before. What an agent has seen is in its log.
        tx.send(_read_own, space=space_id, author=author_id, last=seq)
    if end.bridged:
        outbox.note(tx, space_id, posted_id, "post", via=via)
    if history_from is not None:
        # As a notice: a service's message shows no status, and is awaited by nobody.
        said = Said(posted_id, space_id, author_id, "service", handle, what, reply_to, hop, urgent=False)
        _deliver_quietly(tx, said, at=history_from)
        tx.announce(space_topic(space_id), MessageCreated(space_id, seq, posted_id, author_id).to_payload())
        return Posted(posted_id, seq, end.kind)
    said = Said(posted_id, space_id, author_id, kind, handle, what, reply_to, hop, urgent, asked, answers, request)
    addressed_to = decide_deliveries(tx, said, setting)
    if kind == "agent" or hop:
        if kind == "agent" and has_status:
            statuses.clear_in_space(tx, author_id, space_id, thinking=cycle_id is not None)
        if any(each.wakes for each in addressed_to) and not floor.may_wake(tx, space_id, run, limit):
            addressed_to = [replace(each, wakes=False) for each in addressed_to]
    elif kind == "human":
        floor.begin_anew(tx, space_id, run, limit)
        if end.kind == "conversation" and says_only_stop(what.rendered.plain):
            addressed_to = _stop_writing(tx, said, seq, addressed_to)
    delivery.deliver(tx, addressed_to)
    tx.announce(space_topic(space_id), MessageCreated(space_id, seq, posted_id, author_id).to_payload())
    return Posted(posted_id, seq, end.kind)


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a space's messages, while its row is locked."""

    space_id: SpaceId
    kind: str
    last_seq: int
    head: bytes
    """The head of the chain of digests."""
    bridged: bool
    """Whether it may be bound to rooms elsewhere."""


def _lock_end(tx: Tx, space_id: SpaceId) -> tuple[_End, Floor, int, int]:
    """Lock the space's row; returns where the next message goes, the floor, the run of agents and its limit."""
    row = tx.one(_lock, id=space_id)
    if row is None:
        raise NotFound("space", space_id)
    last_seq, head, kind, bridged, setting, run, limit = row
    return _End(space_id, kind, last_seq, head or chains.BEGINNING, bool(bridged)), setting, run, limit


def _store(
    tx: Tx,
    end: _End,
    id: MessageId,
    author_id: EntityId,
    what: Draft,
    *,
    mentions: str | None,
    reply_to: str | None,
    metadata: str | None,
    hop: int,
    cycle_id: str | None,
    outside: int,
) -> None:
    """Store the message as the next one of the space, and advance the space's number and chain."""
    seq, plain, salt = end.last_seq + 1, what.rendered.plain, chains.new_salt()
    digest = chains.message_digest(
        salt, end.head, end.space_id, seq, id, author_id, what.text, reply_to, cycle_id, tx.now
    )
    tx.send(_advance, space=end.space_id, new_seq=seq, new_head=digest)
    tx.note_head("space", end.space_id, seq, digest)
    tx.send(
        _add,
        id=id,
        space_id=end.space_id,
        seq=seq,
        author_id=author_id,
        text=what.text,
        plain=None if plain == what.text else plain,
        mentions=mentions,
        reply_to=reply_to,
        metadata=metadata,
        hop=hop,
        cycle_id=cycle_id,
        outside=outside,
        created_at=tx.now,
        salt=salt,
        digest=digest,
    )


_rules = statement(
    select(agents.c.id, agents.c.urgent)
    .join(memberships, memberships.c.entity_id == agents.c.id)
    .where(memberships.c.space_id == bindparam("space_id"))
)


def _stop_writing(tx: Tx, said: Said, seq: int, deliveries: Sequence[Delivery]) -> list[Delivery]:
    """Stop the agents that work for the author and are writing in the space; if it mentions some, only those.

    They have done what the message says, so they read it when they wake next, and nobody waits for an answer to it.
    """
    handle, kind = said.author_handle, said.author_kind
    mentioned = [each.agent_id for each in deliveries if each.type == "mention"]
    rules = tx.all(_rules, space_id=said.space_id)
    own = [id for id, rule in rules if rule_from(rule).is_for(handle=handle, kind=kind)]
    meant = [id for id in own if id in mentioned or not said.what.rendered.mentions]
    stopped = stop_requests.ask(tx, said.space_id, said.author_id, seq, meant)
    return [replace(each, wakes=False, waits=False) if each.agent_id in stopped else each for each in deliveries]


def is_outside_author(kind: str, role: str) -> bool:
    """Whether the author's messages are text from outside: a service, or a person who is only a guest."""
    return kind == "service" or role == "guest"


_who = statement(select(entities.c.kind, entities.c.role).where(entities.c.id == bindparam("id")))


def is_trusted_person(tx: Tx, entity_id: str) -> bool:
    """Whether this is a person of this server, and not only a guest."""
    row = tx.one(_who, id=entity_id)
    return row is not None and row[0] == "human" and not is_outside_author(*row)


_outsider = statement(select(entities.c.handle).where(entities.c.id == bindparam("author_id")))
NOTICE: Final = "notice"
"""Metadata key of a message: it is a notice, and about what. A notice cannot be edited or deleted."""


def post_notice(tx: Tx, space_id: SpaceId, author_id: EntityId, what: Draft, about: Mapping[str, JsonValue]) -> Posted:
    """Post a notice for everyone in the space; its author need not be a member. Agents read it when they wake next:
    nobody is woken, and nobody waits."""
    end, *_ = _lock_end(tx, space_id)
    author = tx.one(_outsider, author_id=author_id)
    if author is None:
        raise NotFound("entity", author_id)
    id, seq = MessageId(new_id()), end.last_seq + 1
    _store(
        tx,
        end,
        id,
        author_id,
        what,
        mentions=None,
        reply_to=None,
        metadata=json.dumps({NOTICE: dict(about)}),
        hop=0,
        cycle_id=None,
        outside=0,
    )
    said = Said(id, space_id, author_id, "service", author[0], what, None, 0, urgent=False)
    _deliver_quietly(tx, said, at=tx.now)
    tx.announce(space_topic(space_id), MessageCreated(space_id, seq, id, author_id).to_payload())
    return Posted(id, seq, end.kind)


def _deliver_quietly(tx: Tx, said: Said, *, at: int) -> None:
    """Deliver the message as one of that time that agents read when they wake next: it wakes nobody."""
    found = decide_deliveries(tx, said)
    delivery.deliver(tx, [replace(each, wakes=False, waits=False, urgent=False, created_at=at) for each in found])


@dataclass(frozen=True, slots=True)
class Said:
    """A message to be delivered to inboxes."""

    id: MessageId
    space_id: SpaceId
    author_id: EntityId
    author_kind: str
    author_handle: str
    what: Draft
    reply_to: MessageId | None
    hop: int
    urgent: bool
    asked: EntityId | None = None
    """The agent that its author waits for, in addition to those that it addresses."""
    answers: Collection[str] = ()
    """The agents that had asked its author for it."""
    request: Mapping[str, JsonValue] | None = None
    """What a program says that waits for the answer of the agent `asked`: a part of that agent's event."""


@dataclass(frozen=True, slots=True)
class _Listener:
    """An agent in the space that attends to it."""

    id: AgentId
    attention: str
    handle: str
    urgent: str | None
    """Its rule for urgent messages."""
    status: str
    held_by: str | None
    """The budget that suspended it, if one did."""
    held_until: int | None
    parked: str | None
    """Why it is parked, if it is."""
    joined_at: int
    members: int
    """How many members the space has."""
    cycle_goes_on_at: int | None
    """When it retries a cycle that failed."""
    space_goes_on_at: int | None
    """When it retries earlier messages of the space."""
    has_status: bool
    """Whether the space shows a status of it."""

    @property
    def able(self) -> bool:
        return self.status == "active" and self.parked is None


def decide_deliveries(tx: Tx, said: Said, setting: Floor = "all") -> list[Delivery]:
    """Decides who receives the message, and whom it wakes. Delivers nothing yet.

    Returns one event for every agent in the space whose attention covers the message, except its author.

    Where its author waits for an agent that cannot answer now, the space shows why.
    """
    rows = tx.all(_listeners, space_id=said.space_id, author_id=said.author_id)
    mentions = said.what.rendered.mentions
    listeners = [_Listener(*row) for row in rows]
    attending = [each for each in listeners if each.attention == "all" or each.handle in mentions]
    # Many agents share a rule, most of them the default one: each rule is evaluated once.
    interrupted = {
        rule: rule_from(rule).applies(handle=said.author_handle, kind=said.author_kind, plain=said.what.rendered.plain)
        for rule in {each.urgent for each in attending}
    }
    who = _takers(tx, said, setting, listeners, attending)
    # A person's message wakes the agents that the floor names; a chain of agents wakes as far as its budget goes.
    goes_on = said.hop <= HOP_BUDGET
    for each in attending:
        if each.id in who.awaited:
            _show_why_not(tx, said, each)
    return [
        Delivery(
            agent_id=each.id,
            id=said.id,
            type="mention" if each.handle in mentions else "space_message",
            created_at=tx.now,
            urgent=said.urgent or interrupted[each.urgent],
            wakes=goes_on and each.id in who.woken,
            waits=each.id in who.awaited,
            hop=said.hop,
            space_id=said.space_id,
            message_id=said.id,
            payload={
                **({"reply_to": said.reply_to} if said.reply_to else {}),
                **(said.request or {} if each.id == said.asked else {}),
            },
        )
        for each in attending
        if each.status != "dead"
    ]


def _takers(
    tx: Tx, said: Said, setting: Floor, listeners: Sequence[_Listener], attending: Sequence[_Listener]
) -> Takers:
    """The attending agents that take up the message, and those that its author waits for."""
    agents_here = sum(each.status != "dead" for each in listeners) + (said.author_kind == "agent")
    several = agents_here > 1
    replied = None
    if said.reply_to is not None and several and setting != "all":
        replied = floor.author_of(tx, said.space_id, said.reply_to)
    mentions = said.what.rendered.mentions
    meant = {said.asked, replied, *said.answers}
    heard = [
        floor.Listener(each.id, each.handle in mentions or each.id in meant, each.able, each.joined_at)
        for each in attending
    ]
    alone = bool(attending) and attending[0].members == 2
    found = floor.takers(setting, heard, author_kind=said.author_kind, several=several, alone=alone)
    if found is not None:
        return found
    awaited = not floor.is_for_a_person(tx, said.space_id, mentions)
    return floor.choose(heard, floor.last_speakers(tx, said.space_id), awaited=awaited)


def _show_why_not(tx: Tx, said: Said, listener: _Listener) -> None:
    """Show in the space why the agent cannot answer now, if it cannot; clears statuses of earlier messages."""
    if listener.has_status:
        statuses.clear_earlier(tx, listener.id, said.space_id, said.author_id)
    if not listener.able:
        parking.show_if_unable(
            tx,
            listener.id,
            said.space_id,
            said.id,
            status=listener.status,
            held_by=listener.held_by,
            held_until=listener.held_until,
        )
    elif (again_at := max(listener.cycle_goes_on_at or 0, listener.space_goes_on_at or 0)) > tx.now:
        statuses.show(tx, listener.id, said.space_id, "failing", message_id=said.id, retry_at=again_at)


@dataclass(frozen=True, slots=True)
class Message:
    """A message in a space, in its current version."""

    id: MessageId
    space_id: SpaceId
    seq: int
    author_id: EntityId
    author_name: str
    author_kind: str
    text: str
    plain: str
    mentions: tuple[str, ...]
    reply_to: MessageId | None
    metadata: Mapping[str, JsonValue]
    hop: int
    cycle_id: str | None
    created_at: int
    edited_at: int | None = None
    author_handle: str | None = None
    deleted_at: int | None = None
    """When its text was deleted or forgotten; its place stays."""
    outside: bool = False
    """Whether it is text from outside, or an agent wrote it after reading such text."""
    author_role: str | None = None
    files: tuple[Attachment, ...] = ()
    reactions: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """The ids of those who reacted, by emoji."""
    pinned_at: int | None = None
    marked_at: int | None = None
    """When a reaction or the pin last changed."""


_message = (
    messages.c.id,
    messages.c.space_id,
    messages.c.seq,
    messages.c.author_id,
    entities.c.name,
    entities.c.kind,
    messages.c.text,
    messages.c.plain,
    messages.c.mentions,
    messages.c.reply_to,
    messages.c.metadata,
    messages.c.hop,
    messages.c.cycle_id,
    messages.c.created_at,
    messages.c.edited_at,
    messages.c.deleted_at,
    entities.c.handle,
    messages.c.outside,
    entities.c.role,
    messages.c.files,
    messages.c.reactions,
    messages.c.pinned_at,
    messages.c.marked_at,
)
_after = statement(
    select(*_message)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(messages.c.space_id == bindparam("space_id"), messages.c.seq > bindparam("after"))
    .order_by(messages.c.seq)
    .limit(bindparam("limit"))
)
_before = statement(
    select(*_message)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(messages.c.space_id == bindparam("space_id"), messages.c.seq < bindparam("before"))
    .order_by(messages.c.seq.desc())
    .limit(bindparam("limit"))
)
_get = statement(
    select(*_message).join(entities, entities.c.id == messages.c.author_id).where(messages.c.id == bindparam("id"))
)
_of_cycle = statement(
    select(*_message)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(
        messages.c.space_id == bindparam("space_id"),
        messages.c.seq > bindparam("after"),
        messages.c.author_id == bindparam("author_id"),
        messages.c.cycle_id == bindparam("cycle_id"),
    )
    .order_by(messages.c.seq)
    .limit(bindparam("limit"))
)
_newest_of_others = statement(
    select(messages.c.seq, messages.c.hop)
    .where(
        messages.c.space_id == bindparam("space_id"),
        messages.c.seq <= bindparam("up_to"),
        messages.c.author_id != bindparam("reader_id"),
    )
    .order_by(messages.c.seq.desc())
    .limit(1)
)
_last_seq = statement(select(spaces.c.last_seq).where(spaces.c.id == bindparam("space_id")))
END: Final = 2**62
"""Greater than the number of any message."""


_pinned = statement(
    select(*_message)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(messages.c.space_id == bindparam("space_id"), messages.c.pinned_at.is_not(None))
    .order_by(messages.c.seq)
)


def pinned_messages(tx: Tx, space_id: SpaceId) -> list[Message]:
    """The pinned messages of the space, oldest first."""
    return [_as_message(row) for row in tx.all(_pinned, space_id=space_id)]


def messages_after(tx: Tx, space_id: SpaceId, after: int = 0, *, limit: int = 100) -> list[Message]:
    """The messages of the space after that sequence number, oldest first."""
    return [_as_message(row) for row in tx.all(_after, space_id=space_id, after=after, limit=limit)]


def prefetch_newest(tx: Tx, space_id: SpaceId) -> None:
    """Announce `messages_before` for the newest message alone."""
    tx.prefetch(_before, space_id=space_id, before=END, limit=1)


def messages_before(tx: Tx, space_id: SpaceId, before: int = END, *, limit: int = 100) -> list[Message]:
    """The last messages of the space before that sequence number, oldest first."""
    return [_as_message(row) for row in reversed(tx.all(_before, space_id=space_id, before=before, limit=limit))]


def said_by(
    tx: Tx, space_id: SpaceId, author_id: EntityId, cycle_id: str, *, after: int = 0, limit: int = 100
) -> list[Message]:
    """An agent's messages in the space from one of its cycles after that sequence number, oldest first."""
    rows = tx.all(_of_cycle, space_id=space_id, author_id=author_id, cycle_id=cycle_id, after=after, limit=limit)
    return [_as_message(row) for row in rows]


def last_seq(tx: Tx, space_id: SpaceId) -> int:
    """The sequence number of the last message in the space; 0 if there is none."""
    row = tx.one(_last_seq, space_id=space_id)
    if row is None:
        raise NotFound("space", space_id)
    return row[0]


@dataclass(frozen=True, slots=True)
class Numbered:
    """The position of a message in its space, and how many agents in a row led to it."""

    seq: int
    hop: int


def newest_of_others(tx: Tx, space_id: SpaceId, reader_id: EntityId, *, up_to: int) -> Numbered | None:
    """The newest message of the space up to that sequence number that the reader has not written itself."""
    row = tx.one(_newest_of_others, space_id=space_id, reader_id=reader_id, up_to=up_to)
    return None if row is None else Numbered(*row)


def seq_of(tx: Tx, message_id: str) -> int | None:
    """The sequence number of the message; None if there is no such message."""
    return value(tx, _seq_of, id=message_id)


def is_in_space(tx: Tx, message_id: MessageId, space_id: SpaceId) -> bool:
    """Whether the message is one of this space."""
    return tx.one(_is_in_space, id=message_id, space_id=space_id) is not None


def get_message(tx: Tx, message_id: MessageId) -> Message:
    message = find_message(tx, message_id)
    if message is None:
        raise NotFound("message", message_id)
    return message


def find_message(tx: Tx, message_id: MessageId) -> Message | None:
    """The message, if there is one with this id."""
    row = tx.one(_get, id=message_id)
    return None if row is None else _as_message(row)


def get_readable(tx: Tx, message_id: MessageId, reader: EntityId) -> Message:
    """The message, if the reader is in its space. Raises the same `NotFound` if not, or if it does not exist."""
    message = get_message(tx, message_id)
    if not is_member(tx, message.space_id, reader):
        raise NotFound("message", message_id)
    return message


def _as_message(row: tuple[Any, ...]) -> Message:
    """Decode a row with the columns of `_message`."""
    (
        id, space_id, seq, author_id, name, kind, text, plain, mentions, reply_to, metadata, hop, cycle_id, created_at,
        edited_at, deleted_at, handle, outside, role, files, reactions, pinned_at, marked_at,
    ) = row  # fmt: skip
    return Message(
        id,
        space_id,
        seq,
        author_id,
        name,
        kind,
        text,
        plain=text if plain is None else plain,
        mentions=tuple(json.loads(mentions)) if mentions else (),
        reply_to=reply_to,
        metadata=json.loads(metadata) if metadata else {},
        hop=hop,
        cycle_id=cycle_id,
        created_at=created_at,
        edited_at=edited_at,
        deleted_at=deleted_at,
        author_handle=handle,
        outside=bool(outside),
        author_role=role,
        files=attachments_from(files),
        reactions=json.loads(reactions) if reactions else {},
        pinned_at=pinned_at,
        marked_at=marked_at,
    )
