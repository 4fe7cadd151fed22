"""Forgets a message, a person, a space or a memory: removed everywhere, in one transaction, with a receipt.

A tombstone stays, so that numbers have no gaps and a replay shows what is missing. Quotes of the forgotten text (eight
words in a row, or all of a shorter text) are replaced by `[forgotten]`: in events, in the log, in summaries, layers and
selves of every era, in notes, goals and plans, in calls and their results, in others' messages. Passages for recall are
removed with their index. What an agent put in its own words stays, unless its answers are forgotten too.

Nobody writes meanwhile: SQLite has one writer, and on PostgreSQL the tables are locked first. So a cycle in progress
cannot keep the text: every agent concerned loses its lease, reloads its mind and begins a new era.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from sqlalchemy import bindparam, delete, select

from denizen.access import entity_pictures, roles
from denizen.access.requesters import Requester
from denizen.errors import InvalidInput
from denizen.forgetting.receipts import Receipt, receipt_of
from denizen.forgetting.removal import AT_ONCE, NOBODY, Removal, heard_in, shut_out_writers
from denizen.ids import AgentId, EntityId, MessageId, SpaceId
from denizen.memory import access, items, rolling
from denizen.spaces import directory, leaving, posting, reactions_and_pins
from denizen.spaces.posting import Message
from denizen.spaces.quotes import FORGOTTEN, said
from denizen.storage.database import Tx, delete_where, long_running, select_where, statement, update_where, values
from denizen.storage.schema import (
    addresses,
    calls,
    carried,
    channels,
    drafts,
    entities,
    feelings,
    identities,
    memberships,
    messages,
    outbox,
    push_subscriptions,
    secrets,
    signals,
    spaces,
    tokens,
    told_statuses,
    voice_feelings,
    voice_signals,
)


@long_running
def forget_message(tx: Tx, message_id: MessageId, by: EntityId | None = None, *, also_replies: bool = False) -> Receipt:
    """Forgets the message. With `also_replies`, also the cycles that it woke and their messages."""
    shut_out_writers(tx)
    message = posting.get_message(tx, message_id)
    home = directory.get_space(tx, message.space_id).organization_id
    before = receipt_of(tx, "message", message_id)
    if before is not None and not also_replies:
        return before
    work = Removal(tx, home)
    answered = _answers(tx, [message_id]) if also_replies else []
    work.blank_cycles(each[1] for each in answered)
    answers = [posting.get_message(tx, each) for each in _said_in(tx, {each[1] for each in answered})]
    work.forget_messages([message, *answers])
    if also_replies:
        work.forget_replies([message_id])
    for agent_id, _, number in answered:
        if number is not None:
            work.forget_traces(AgentId(agent_id), [number])
    return work.finish("message", message_id, by)


@long_running
def forget_person(
    tx: Tx, person_id: EntityId, by: EntityId | None = None, *, refuse_last_owner: bool = False
) -> Receipt:
    """Forgets everything this person said, with their name and handle, memberships, tokens and secrets.

    The last owner of an organization stays its owner, without a name; with `refuse_last_owner` they are not forgotten.
    """
    shut_out_writers(tx)
    person = directory.get_entity(tx, person_id)
    if person.kind == "agent":
        raise InvalidInput("Agents cannot be forgotten like people. Delete the agent, and forget its messages.")
    if (before := receipt_of(tx, "person", person_id)) is not None:
        return before
    if refuse_last_owner:
        roles.require_another_owner(tx, person_id, person.organization_id)
    work = Removal(tx, person.organization_id)
    work.everywhere = True
    work.names.add_name(person.name)
    work.names.add_name(person.handle)
    for (answer,) in tx.all(_answers_of, settled_by=person_id):
        work.spoken.append(str(answer))
    new_handle = f"forgotten-{person_id[-12:]}"
    work.rename_in_definitions(person.handle, new_handle)
    for each in directory.spaces_of(tx, person_id):
        leaving.leave(tx, each.id, person_id)
        work.removed["memberships"] += 1
        work.concern_space(each.id)
    work.forget_memories(items.of_person(tx, person_id))
    work.forget_messages(_all_messages(tx, _by_author, author_id=person_id), names=True)
    work.drop_mentions(person.handle)
    reactions_and_pins.forget_reactions_of(tx, person_id)
    tx.run(_forget_entity, id=person_id, name=NOBODY, handle=new_handle)
    tx.run(_revoke, entity_id=person_id, revoked_at=tx.now)
    tx.run(_drop_secrets, owner_id=person_id)
    work.removed["entity_pictures"] += entity_pictures.drop(tx, person_id)
    work.removed["push_subscriptions"] += tx.run(_drop_subscriptions, entity_id=person_id)
    for table, drop in _of_person.items():
        work.removed[table] += tx.run(drop, person=person_id)
    # A server without an owner could not be administered: the last one stays, without a name.
    if roles.role_of(tx, person_id) != "owner" or roles.count_owners(tx, person.organization_id) > 1:
        tx.run(_gone, id=person_id, left_at=tx.now)
    tx.run(_unlink, entity_id=person_id)
    work.removed["addresses"] += tx.run(_unlink_accounts, person_id=person_id) + _forget_accounts(tx, person_id)
    return work.finish("person", person_id, by)


@long_running
def forget_space(tx: Tx, space_id: SpaceId, by: EntityId | None = None) -> Receipt:
    """Forgets everything said in this space, with its name and its members."""
    shut_out_writers(tx)
    space = directory.get_space(tx, space_id)
    if (before := receipt_of(tx, "space", space_id)) is not None:
        return before
    work = Removal(tx, space.organization_id)
    # One word may also be the name of other things; several words together rarely are.
    work.everywhere = len(said(space.name)) > 1
    work.names.add_name(space.name, exactly=not work.everywhere)
    work.concern_space(space_id)
    work.empty_space(space_id)
    work.forget_memories(items.of_place(tx, space_id))
    work.sum_up_anew([space_id])
    work.removed["rollings"] += rolling.drop(tx, space_id)
    work.forget_messages(_all_messages(tx, _in_space, space_id=space_id), names=True)
    work.removed["memberships"] += tx.run(_leave_all, space_id=space_id)
    directory.strike_members(tx, space_id)
    tx.run(_forget_space, id=space_id, name=NOBODY)
    work.removed["channels"] += _disconnect(tx, space_id)
    directory.announce_change(tx, space_id)
    return work.finish("space", space_id, by)


@long_running
def forget_memory(tx: Tx, by: Requester, memory_id: str) -> Receipt:
    """Forgets the memory, with its copies of other owners, for good. The messages it is based on stay.

    People forget only what they may change: copies that belong to others or to the organization stay.
    """
    shut_out_writers(tx)
    # People must not learn whether it was forgotten before.
    if not by.is_limited and (before := receipt_of(tx, "memory", memory_id)) is not None:
        return before
    memory = access.find_changeable(tx, by, memory_id)
    copies = [each for each in items.copies_of(tx, memory) if access.may_change(tx, each, by)]
    work = Removal(tx, memory.organization_id)
    work.take_out_of_summaries(work.forget_memories([memory, *copies]))
    return work.finish("memory", memory_id, by.optional_entity_id)


class ForgetRehearsed(Exception):
    """The dry run is complete. Not an error: raising it rolls the transaction back."""

    def __init__(self, receipt: Receipt) -> None:
        super().__init__(receipt.id)
        self.receipt = receipt


@long_running
def rehearse(tx: Tx, forget: Callable[..., Receipt], /, *args: Any, **options: Any) -> NoReturn:
    """Forgets, and rolls back by raising `ForgetRehearsed` with the receipt that there would be."""
    raise ForgetRehearsed(forget(tx, *args, **options))


_by_agents = statement(
    select(messages.c.id, messages.c.cycle_id)
    .where(messages.c.cycle_id.is_not(None), messages.c.id > bindparam("after"))
    .order_by(messages.c.id)
    .limit(AT_ONCE)
)
_answers_of = select_where(calls, "result", "settled_by", calls.c.result.is_not(None))
_by_author = select_where(messages, "id", "author_id", messages.c.id > bindparam("after"), order_by="id", limit=AT_ONCE)
_in_space = select_where(messages, "id", "space_id", messages.c.id > bindparam("after"), order_by="id", limit=AT_ONCE)
_forget_entity = update_where(entities, "id", set_="name, handle", metadata="{}")
_gone = update_where(entities, "id", entities.c.left_at.is_(None), set_="left_at")
_revoke = update_where(tokens, "entity_id", set_="revoked_at", name=FORGOTTEN)
_drop_secrets = delete_where(secrets, "owner_id")
_drop_subscriptions = delete_where(push_subscriptions, "entity_id")
_unlink = delete_where(identities, "entity_id")
_unlink_accounts = update_where(
    addresses, "person_id", addresses.c.person_id.is_not(None), person_id=None, linked_at=None
)
# Nobody knows whose it was: whoever writes with it again is a new guest.
_rename_accounts = update_where(addresses, "guest_id", set_="account")
_codes_to = statement(
    delete(outbox).where(
        outbox.c.target.in_(select(addresses.c.account).where(addresses.c.guest_id == bindparam("guest"))),
        outbox.c.channel_id.is_(None),
    )
)
_channels_of = select_where(channels, "id", "space_id")
_of_channel = [
    statement(delete(table).where(column == bindparam("channel")))
    for table, column in (
        (outbox, outbox.c.channel_id),
        (carried, carried.c.channel_id),
        (drafts, drafts.c.channel_id),
        (told_statuses, told_statuses.c.channel_id),
        (channels, channels.c.id),
    )
]
_of_person = {
    table.name: statement(delete(table).where(table.c.person_id == bindparam("person")))
    for table in (feelings, signals, voice_feelings, voice_signals)
}
_leave_all = delete_where(memberships, "space_id")
_forget_space = update_where(spaces, "id", set_="name")


def _forget_accounts(tx: Tx, guest_id: EntityId) -> int:
    """Forgets the accounts elsewhere of this guest."""
    tx.run(_codes_to, guest=guest_id)
    return tx.run(_rename_accounts, guest_id=guest_id, account=f"forgotten-{guest_id}")


def _disconnect(tx: Tx, space_id: SpaceId) -> int:
    """Forgets the rooms elsewhere that the space was connected with, and what was carried."""
    found = values(tx, _channels_of, space_id=space_id)
    for channel_id in found:
        for drop in _of_channel:
            tx.run(drop, channel=channel_id)
    return len(found)


def _answers(tx: Tx, message_ids: Iterable[str]) -> list[tuple[str, str, int | None]]:
    """Returns the cycles that these messages woke: agent, id, and number if it has ended."""
    rows = [row for each in message_ids for row in heard_in(tx, each)]
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
        yield from (posting.get_message(tx, id) for (id,) in rows)
        after = rows[-1][0]
