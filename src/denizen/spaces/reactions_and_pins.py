"""Reactions to messages, and pinned messages. Both stand with the message; its text and its place stay as they are.

A reaction wakes nobody. An agent reads about reactions to its messages in its next inbox message.
"""

from __future__ import annotations

import json
from typing import Final

from pydantic import JsonValue
from sqlalchemy import bindparam, select

from denizen.bus.streams import MessageEdited, space_topic
from denizen.errors import InvalidInput
from denizen.ids import AgentId, ChannelId, EntityId, MessageId, SpaceId
from denizen.inbox import delivery
from denizen.inbox.delivery import Delivery
from denizen.inbox.events import ABOUT
from denizen.inbox.format import quoted_name, speaker
from denizen.spaces import directory, outbox, posting
from denizen.spaces.posting import Message
from denizen.storage.database import Tx, select_where, statement, storable, update_where
from denizen.storage.schema import agents, events, messages, spaces

EMOJI_CHARACTERS: Final = 16
MOST_REACTIONS: Final = 20
"""How many different reactions a message may have."""
MOST_PINNED: Final = 100
"""How many messages of a space may be pinned."""

_lock = select_where(spaces, "id", "id", for_update=True)
_set_reactions = update_where(messages, "id", set_="reactions, marked_at")
_set_pinned = update_where(messages, "id", set_="pinned_at, marked_at")
_lives = select_where(agents, "id", "id", agents.c.status != "dead")
_take_back = update_where(events, "agent_id, id", events.c.state != "done", events.c.state == "pending", state="done")


def react(tx: Tx, message_id: MessageId, by: EntityId, emoji: str, *, via: ChannelId | None = None) -> Message:
    """Add a member's reaction to the message. Idempotent. One from elsewhere came `via` a channel."""
    emoji = _checked(emoji)
    message = _lock_message(tx, message_id, by)
    found = {each: list(who) for each, who in message.reactions.items()}
    if by in found.get(emoji, ()):
        return message
    if emoji not in found and len(found) >= MOST_REACTIONS:
        raise InvalidInput(f"A message can have {MOST_REACTIONS} different reactions. Choose one of them.")
    found.setdefault(emoji, []).append(by)
    _tell_author(tx, message, by, emoji)
    if len(found[emoji]) == 1:
        outbox.note(tx, message.space_id, message.id, "react", via=via, detail=emoji)
    return _store_reactions(tx, message, found)


def take_reaction_back(
    tx: Tx, message_id: MessageId, by: EntityId, emoji: str, *, via: ChannelId | None = None
) -> Message:
    """Remove a member's own reaction from the message. Idempotent; an agent that has not read about it does not."""
    message = _lock_message(tx, message_id, by)
    if by not in message.reactions.get(emoji, ()):
        return message
    found = {each: [one for one in who if (each, one) != (emoji, by)] for each, who in message.reactions.items()}
    tx.run(_take_back, agent_id=message.author_id, id=_event_id(message.id, by, emoji))
    if not found[emoji]:
        outbox.note(tx, message.space_id, message.id, "unreact", via=via, detail=emoji)
    return _store_reactions(tx, message, {each: who for each, who in found.items() if who})


def pin(tx: Tx, message_id: MessageId, by: EntityId, *, pinned: bool = True) -> Message:
    """Pin the message for everyone in the space, or unpin it. Idempotent. For members of the space."""
    message = _lock_message(tx, message_id, by)
    if (message.pinned_at is not None) == pinned:
        return message
    if pinned and len(posting.pinned_messages(tx, message.space_id)) >= MOST_PINNED:
        raise InvalidInput(f"A space can have {MOST_PINNED} pinned messages. Unpin one first.")
    tx.run(_set_pinned, id=message.id, pinned_at=tx.now if pinned else None, marked_at=_next_mark(tx, message))
    return _announce(tx, message)


def pinned_in(tx: Tx, space_id: SpaceId, by: EntityId) -> list[Message]:
    """The pinned messages of a space, for its members; oldest first."""
    return posting.pinned_messages(tx, directory.require_member(tx, space_id, by).id)


def _checked(emoji: str) -> str:
    emoji = emoji.strip()
    is_text = emoji.isascii() or any(each.isspace() or each.isalpha() for each in emoji)
    if not emoji or len(emoji) > EMOJI_CHARACTERS or is_text or emoji != storable(emoji):
        raise InvalidInput(f"A reaction is one emoji, not {emoji[:EMOJI_CHARACTERS]!r}.")
    return emoji


def _lock_message(tx: Tx, message_id: MessageId, by: EntityId) -> Message:
    """The message, if they are in its space, with the space locked: nobody else changes it meanwhile."""
    space_id = posting.get_readable(tx, message_id, by).space_id
    tx.one(_lock, id=space_id)
    message = posting.get_message(tx, message_id)
    if message.deleted_at is not None:
        raise InvalidInput("This message was deleted.")
    return message


def _store_reactions(tx: Tx, message: Message, found: dict[str, list[str]]) -> Message:
    value = json.dumps(found, ensure_ascii=False) if found else None
    tx.run(_set_reactions, id=message.id, reactions=value, marked_at=_next_mark(tx, message))
    return _announce(tx, message)


def _next_mark(tx: Tx, message: Message) -> int:
    """A time after every change of the message so far, whatever the clock says: readers keep the newest state."""
    return max(tx.now, (message.marked_at or 0) + 1, (message.edited_at or 0) + 1)


def _announce(tx: Tx, message: Message) -> Message:
    tx.announce(space_topic(message.space_id), MessageEdited(message.space_id, message.seq, message.id).to_payload())
    return posting.get_message(tx, message.id)


def _event_id(message_id: str, by: str, emoji: str) -> str:
    return f"reaction:{message_id}:{by}:{emoji}"


def _tell_author(tx: Tx, message: Message, by: EntityId, emoji: str) -> None:
    """An agent reads of a reaction to its message when it wakes next."""
    if message.author_kind != "agent" or by == message.author_id or tx.one(_lives, id=message.author_id) is None:
        return
    person, space = directory.get_entity(tx, by), directory.get_space(tx, message.space_id)
    who = speaker(person.name, None, person.handle)
    text = f"{who} reacted {emoji} to your message {message.id} (number {message.seq} in {quoted_name(space.name)})."
    payload: dict[str, JsonValue] = {"text": text, ABOUT: message.id}
    agent_id, id = AgentId(message.author_id), _event_id(message.id, by, emoji)
    told = Delivery(agent_id, id, "notice", tx.now, wakes=False, space_id=message.space_id, payload=payload)
    delivery.deliver(tx, [told])


_reacted = statement(
    select(messages.c.id, messages.c.reactions).where(
        messages.c.reactions.is_not(None), messages.c.reactions.contains(bindparam("who"), autoescape=False)
    )
)


def forget_reactions_of(tx: Tx, entity_id: EntityId) -> None:
    """Remove every reaction of this person."""
    for id, stored in tx.all(_reacted, who=entity_id):
        left = {emoji: [each for each in who if each != entity_id] for emoji, who in json.loads(stored).items()}
        kept = {emoji: who for emoji, who in left.items() if who}
        tx.run(
            _set_reactions, id=id, reactions=json.dumps(kept, ensure_ascii=False) if kept else None, marked_at=tx.now
        )
