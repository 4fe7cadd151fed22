"""What people are notified of: mentions, answers they waited for, and questions of agents.

The same as the web client shows while a tab is open (`web/src/shell/news.ts`). Nobody is notified of what they have
read or written, of what was said before they subscribed, or of what is older than a day.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import JsonValue
from sqlalchemy import and_, bindparam, delete, or_, select, update

from denizen.clock import SECOND
from denizen.errors import NotFound
from denizen.ids import EntityId, MessageId
from denizen.shapes.vocabulary import ASKED
from denizen.shortening import shortened
from denizen.spaces import directory, posting
from denizen.spaces.posting import Message
from denizen.storage.database import Tx, columns, insert_ignore, select_where, statement, update_where, value
from denizen.storage.schema import calls as call_rows
from denizen.storage.schema import entities, memberships, messages, push_notices, push_subscriptions, spaces
from denizen.tools import calls
from denizen.tools.calls import Call

FRESH_SECONDS: Final = 86_400
"""Older news is not sent."""
LONGEST: Final = 240
"""The most characters of a text in a notification."""
AT_ONCE: Final = 200
"""The most spaces, and the most messages of a space, that are looked at in one transaction."""

Kind = Literal["message", "call"]


@dataclass(frozen=True, slots=True)
class News:
    """The text of a notification."""

    tag: str
    """A browser shows what has the same tag once, also if an open tab told it as well."""
    title: str
    body: str
    path: str
    """The page of the web client that it leads to."""
    call: str | None = None
    """The question that can be answered in the notification with yes or no: all of it is in the body."""

    def to_json(self) -> bytes:
        fields = {"tag": self.tag, "title": self.title, "body": self.body, "path": self.path, "call": self.call}
        return json.dumps(fields, ensure_ascii=False).encode()


def is_news(message: Message, person: EntityId, handle: str, asked_by: EntityId | None) -> bool:
    """Whether a person is notified of a message: it mentions them, or an agent answers them.

    `asked_by` is the author of what it replies to or, without a reply, the last person who wrote before it.
    """
    if message.author_id == person or message.deleted_at is not None:
        return False
    if handle in message.mentions or person in message.mentions:
        return True
    return message.author_kind == "agent" and asked_by == person


def of_message(message: Message, space_name: str) -> News:
    where = f" in {space_name}" if space_name else ""
    return News(
        message.id,
        f"{message.author_name}{where}",
        shortened(message.plain or message.text, LONGEST),
        f"/s/{message.space_id}/m/{message.seq}",
    )


def of_call(call: Call, agent_name: str) -> News:
    """A question can be answered in the notification only if all of it is shown: what is approved must be what is
    read.
    """
    given = call.parsed_arguments
    asked = f"{call.tool}\n{_readable(given)}" if call.approval else _readable(_question(given))
    body = f"{call.why}\n{asked}" if call.why else asked
    title = f"{agent_name} asks for approval" if call.approval else f"{agent_name} asks"
    path = "/" if call.space_id is None else f"/s/{call.space_id}"
    return News(call.id, title, shortened(body, LONGEST), path, call.id if len(body) <= LONGEST else None)


_SENTENCES: Final = ("question", "message", "prompt", "text", "action", "title")
_ALSO_UNSEEN: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe00-\ufe0f\u180b-\u180d\u180f]")


def _question(given: JsonValue) -> JsonValue:
    """The text that the arguments of a call ask with, or all of them."""
    if isinstance(given, dict):
        for name in _SENTENCES:
            said = given.get(name)
            if isinstance(said, str) and said.strip():
                return said
        texts = [each for each in given.values() if isinstance(each, str)]
        if len(texts) == 1:
            return texts[0]
    return given


def _readable(given: JsonValue) -> str:
    """The text with every character in sight."""
    text = given if isinstance(given, str) else json.dumps(given, indent=2, ensure_ascii=False)
    return "".join(f"\\u{{{ord(each):x}}}" if _is_unseen(each) else each for each in text)


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in ("Cf", "Co", "Cn") or _ALSO_UNSEEN.match(character) is not None


_subscribers = select(push_subscriptions.c.entity_id)
_unseen = (
    select(
        memberships.c.space_id,
        memberships.c.entity_id,
        entities.c.handle,
        memberships.c.read_seq,
        memberships.c.notified_seq,
        spaces.c.last_seq,
    )
    .join(spaces, spaces.c.id == memberships.c.space_id)
    .join(entities, entities.c.id == memberships.c.entity_id)
    .where(
        memberships.c.entity_id.in_(_subscribers),
        spaces.c.last_seq > memberships.c.read_seq,
        spaces.c.last_seq > memberships.c.notified_seq,
    )
    .order_by(memberships.c.space_id, memberships.c.entity_id)
)
_unseen_places = statement(_unseen.limit(AT_ONCE))
_has_unseen = statement(_unseen.with_only_columns(memberships.c.space_id).order_by(None).limit(1))
_decided = update_where(memberships, "space_id, entity_id", set_="notified_seq")
_author_of = select_where(messages, "author_id", "id")
_last_person_before = statement(
    select(messages.c.author_id)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(
        messages.c.space_id == bindparam("space_id"), messages.c.seq < bindparam("before"), entities.c.kind == "human"
    )
    .order_by(messages.c.seq.desc())
    .limit(1)
)
# One that was made later than now was made before the clock was set back.
_made_later_than_now = push_subscriptions.c.created_at > bindparam("now")
_browsers = select_where(
    push_subscriptions,
    "id",
    "entity_id",
    or_(push_subscriptions.c.created_at <= bindparam("at"), _made_later_than_now),
)
_add = insert_ignore(push_notices, "subscription_id, subject_id, kind, next_at, created_at")

_known_notice = (
    select(push_notices.c.subject_id)
    .where(push_notices.c.subscription_id == push_subscriptions.c.id, push_notices.c.subject_id == call_rows.c.id)
    .exists()
)
_waiting = call_rows.c.state == "waiting"
_new_questions = (
    select(push_subscriptions.c.id, call_rows.c.id)
    .select_from(
        push_subscriptions.join(memberships, memberships.c.entity_id == push_subscriptions.c.entity_id).join(
            call_rows, call_rows.c.space_id == memberships.c.space_id
        )
    )
    .where(
        _waiting,
        call_rows.c.mode.in_(ASKED),
        or_(call_rows.c.created_at >= push_subscriptions.c.created_at, _made_later_than_now),
        call_rows.c.created_at > bindparam("after"),
        or_(call_rows.c.expires_at.is_(None), call_rows.c.expires_at > bindparam("now")),
        ~_known_notice,
    )
    .limit(AT_ONCE)
)
_questions = statement(_new_questions)
_has_question = statement(_new_questions.limit(1))
_settled = statement(
    delete(push_notices).where(
        push_notices.c.done_at.is_not(None), push_notices.c.subject_id.not_in(select(call_rows.c.id).where(_waiting))
    )
)


def has_news(tx: Tx) -> bool:
    """Whether there is something that `collect` would decide on."""
    if tx.one(_has_unseen) is not None:
        return True
    return tx.one(_has_question, after=_oldest(tx), now=tx.now) is not None


def collect(tx: Tx) -> None:
    """Notes what is to be told to which browser, once, and how far that is decided."""
    for space_id, person, handle, read_seq, notified_seq, last_seq in tx.all(_unseen_places):
        after = max(read_seq, notified_seq, last_seq - AT_ONCE)
        for message in posting.messages_after(tx, space_id, after, limit=AT_ONCE):
            if message.created_at > _oldest(tx) and is_news(message, person, handle, _asked_by(tx, message)):
                browsers = [id for (id,) in tx.all(_browsers, entity_id=person, at=message.created_at, now=tx.now)]
                _note(tx, browsers, message.id, "message")
        tx.run(_decided, space_id=space_id, entity_id=person, notified_seq=last_seq)
    tx.run(_settled)
    for browser, call_id in tx.all(_questions, after=_oldest(tx), now=tx.now):
        _note(tx, [browser], call_id, "call")


def _note(tx: Tx, browsers: Iterable[str], subject_id: str, kind: Kind) -> None:
    for browser in browsers:
        tx.run(_add, subscription_id=browser, subject_id=subject_id, kind=kind, next_at=tx.now, created_at=tx.now)


def _oldest(tx: Tx) -> int:
    return tx.now - FRESH_SECONDS * SECOND


def _asked_by(tx: Tx, message: Message) -> EntityId | None:
    if message.author_kind != "agent":
        return None
    if message.reply_to is not None:
        return value(tx, _author_of, id=message.reply_to)
    return value(tx, _last_person_before, space_id=message.space_id, before=message.seq)


_position = statement(
    select(spaces.c.name, memberships.c.read_seq)
    .join(memberships, memberships.c.space_id == spaces.c.id)
    .where(spaces.c.id == bindparam("space_id"), memberships.c.entity_id == bindparam("person"))
)


def current(tx: Tx, kind: Kind, subject_id: str, person: EntityId) -> News | None:
    """The notification as it is now; None if the person has read or answered it, or may no longer see it."""
    try:
        return _of_message_now(tx, subject_id, person) if kind == "message" else _of_call_now(tx, subject_id, person)
    except NotFound:
        return None


def _of_message_now(tx: Tx, message_id: str, person: EntityId) -> News | None:
    message = posting.get_message(tx, MessageId(message_id))
    row = tx.one(_position, space_id=message.space_id, person=person)
    if row is None or message.deleted_at is not None:
        return None
    name, read_seq = row
    return None if read_seq >= message.seq else of_message(message, name)


def _of_call_now(tx: Tx, call_id: str, person: EntityId) -> News | None:
    call = calls.require_visible(tx, call_id, person)
    if call.state != "waiting" or calls.is_overdue(call, tx.now):
        return None
    return of_call(call, directory.get_entity(tx, call.agent_id).name)


@dataclass(frozen=True, slots=True)
class DueNotification:
    """A notification to be sent to one browser."""

    subscription_id: str
    subject_id: str
    kind: Kind
    tries: int
    """This one included."""
    endpoint: str
    p256dh: str
    auth: str
    news: News


CLAIM_SECONDS: Final = 60
"""After this time, what a process has claimed and not sent is sent by another."""
LONGEST_PAUSE_SECONDS: Final = 3600
"""The longest time for which a notification is put off."""
_is_due = and_(
    push_notices.c.done_at.is_(None),
    # No pause is longer: if this one is, the clock was set back since.
    or_(push_notices.c.next_at <= bindparam("now"), push_notices.c.next_at > bindparam("latest")),
)
_due = statement(
    select(
        *columns(push_notices, "subscription_id, subject_id, kind, tries"),
        *columns(push_subscriptions, "entity_id, endpoint, p256dh, auth"),
    )
    .join(push_subscriptions, push_subscriptions.c.id == push_notices.c.subscription_id)
    .where(_is_due)
    .order_by(push_notices.c.created_at, push_notices.c.subject_id, push_notices.c.subscription_id)
    .limit(bindparam("limit"))
)
_has_due = statement(select(push_notices.c.subject_id).where(_is_due).limit(1))
_is_notice = (
    push_notices.c.subscription_id == bindparam("subscription"),
    push_notices.c.subject_id == bindparam("subject"),
)
_claim = statement(
    update(push_notices)
    .where(*_is_notice, push_notices.c.tries == bindparam("known_tries"), push_notices.c.done_at.is_(None))
    .values(tries=push_notices.c.tries + 1, next_at=bindparam("later"))
)
_postpone = statement(update(push_notices).where(*_is_notice).values(next_at=bindparam("later")))
_drop = statement(delete(push_notices).where(*_is_notice))
_finish = statement(update(push_notices).where(*_is_notice).values(done_at=bindparam("at")))


def has_due(tx: Tx) -> bool:
    return tx.one(_has_due, **_now(tx)) is not None


def _now(tx: Tx) -> dict[str, int]:
    return {"now": tx.now, "latest": tx.now + LONGEST_PAUSE_SECONDS * SECOND}


def claim(tx: Tx, limit: int) -> Sequence[DueNotification]:
    """Takes what is due, so that no other process sends it. What is no longer news is dropped."""
    found: list[DueNotification] = []
    for subscription_id, subject_id, kind, tries, person, endpoint, p256dh, auth in tx.all(
        _due, **_now(tx), limit=limit
    ):
        news = current(tx, kind, subject_id, person)
        which: dict[str, Any] = {"subscription": subscription_id, "subject": subject_id}
        if news is None:
            tx.run(_drop, **which)
        elif tx.run(_claim, **which, known_tries=tries, later=tx.now + CLAIM_SECONDS * SECOND):
            found.append(DueNotification(subscription_id, subject_id, kind, tries + 1, endpoint, p256dh, auth, news))
    return found


def finish(tx: Tx, sent: DueNotification) -> None:
    """Notes that it was sent, or given up. A question stays until it is settled, so that it is told once."""
    which: dict[str, Any] = {"subscription": sent.subscription_id, "subject": sent.subject_id}
    if sent.kind == "call":
        tx.run(_finish, **which, at=tx.now)
    else:
        tx.run(_drop, **which)


def postpone(tx: Tx, sent: DueNotification, seconds: int) -> None:
    tx.run(_postpone, subscription=sent.subscription_id, subject=sent.subject_id, later=tx.now + seconds * SECOND)
