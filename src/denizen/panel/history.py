"""Reads the past turns of a panel, as far back as an advisor can be shown them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import bindparam, func, select

from denizen.files.attaching import attachments_from
from denizen.ids import SpaceId
from denizen.panel.attached import attached_files
from denizen.panel.context import Exchange, PanelTurn, PersonMessage, VoiceText
from denizen.storage.database import Tx, statement, value
from denizen.storage.schema import advisors, messages, replies, rounds

PAGE: Final = 40
"""Turns that are read at once."""
_LAST: Final = 2**62

_asked = statement(
    select(rounds.c.turn, rounds.c.step, rounds.c.id, messages.c.id, messages.c.text, messages.c.created_at,
           messages.c.deleted_at, messages.c.seq, messages.c.outside, messages.c.files)
    .select_from(rounds.outerjoin(messages, messages.c.id == rounds.c.message_id))
    .where(
        rounds.c.space_id == bindparam("space_id"),
        rounds.c.kind != "vote",
        rounds.c.turn >= bindparam("first"),
        rounds.c.turn <= bindparam("last"),
    )
    .order_by(rounds.c.turn, rounds.c.step)
)  # fmt: skip
# An advisor's words are its own under whatever name it has now.
_said = statement(
    select(
        replies.c.round_id,
        replies.c.voice,
        func.coalesce(advisors.c.name, replies.c.name),
        replies.c.text,
        replies.c.outside,
    )
    .select_from(
        replies.join(rounds, rounds.c.id == replies.c.round_id).outerjoin(advisors, advisors.c.id == replies.c.voice)
    )
    .where(
        rounds.c.space_id == bindparam("space_id"),
        rounds.c.turn >= bindparam("first"),
        rounds.c.turn <= bindparam("last"),
        replies.c.part.in_(("reply", "crosstalk")),
        replies.c.state == "done",
    )
    .order_by(replies.c.position, replies.c.voice)
)
_answered = (
    replies.c.voice == bindparam("voice"),
    replies.c.part == "reply",
    replies.c.state == "done",
)
_ever_answered = statement(
    select(func.count()).select_from(replies).where(replies.c.space_id == bindparam("space_id"), *_answered)
)
# By rounds, not by the advisor's replies: there are few since, and the newest of those before is found at once.
_by_turn = rounds.join(replies, replies.c.round_id == rounds.c.id)
_answered_since = statement(
    select(func.count())
    .select_from(_by_turn)
    .where(rounds.c.space_id == bindparam("space_id"), rounds.c.turn >= bindparam("turn"), *_answered)
)
_last_kept = statement(
    select(replies.c.recipe)
    .select_from(_by_turn)
    .where(rounds.c.space_id == bindparam("space_id"), rounds.c.turn < bindparam("turn"), *_answered)
    .order_by(rounds.c.turn.desc())
    .limit(1)
)


def turns_had(tx: Tx, panel_id: SpaceId, voice: str, turn: int) -> int:
    """Counts the earlier turns that the advisor has answered; failed replies do not count."""
    ever = tx.one(_ever_answered, space_id=panel_id, voice=voice)
    since = tx.one(_answered_since, space_id=panel_id, voice=voice, turn=turn)
    assert ever is not None
    assert since is not None
    return ever[0] - since[0]


def last_kept(tx: Tx, panel_id: SpaceId, voice: str, turn: int) -> dict[str, Any]:
    """Returns what the background stored with the advisor's last answered turn before that one; empty if nothing."""
    return json.loads(value(tx, _last_kept, space_id=panel_id, voice=voice, turn=turn) or "{}").get("background", {})


def past(tx: Tx, panel_id: SpaceId, turn: int, voices: Iterable[str], characters: int) -> list[PanelTurn]:
    """Returns the turns before that one, oldest first, at least as many as fit into so many characters for each of
    these advisors.
    """
    wanted = list(voices)
    found: list[PanelTurn] = []
    last = turn - 1
    while last >= 1 and any(_length(found, voice) < characters for voice in wanted):
        first = max(last - PAGE + 1, 1)
        found = [*_turns(tx, panel_id, first, last), *found]
        last = first - 1
    return found


def present(tx: Tx, panel_id: SpaceId, turn: int, step: int) -> PanelTurn:
    """Returns the turn as seen by the round of that step: the message, and the rounds before it."""
    (now,) = _turns(tx, panel_id, turn, turn, step)
    return now


def _turns(tx: Tx, panel_id: SpaceId, first: int, last: int, before_step: int = _LAST) -> list[PanelTurn]:
    where: dict[str, Any] = {"space_id": panel_id, "first": first, "last": last}
    words: dict[str, dict[str, VoiceText]] = {}
    for round_id, voice, name, text, outside in tx.all(_said, **where):
        words.setdefault(round_id, {})[voice] = VoiceText(name, text or "", bool(outside))
    messages_of: dict[int, PersonMessage | None] = {}
    exchanges: dict[int, list[Exchange]] = {}
    for number, step, round_id, message_id, text, at, deleted_at, seq, outside, files in tx.all(_asked, **where):
        there = deleted_at is None and message_id is not None
        with_files = attached_files(tx, attachments_from(files))
        said = PersonMessage(str(message_id), text, at, seq, bool(outside), with_files.text, with_files.pictures)
        messages_of[number] = said if there else None
        spoken = exchanges.setdefault(number, [])
        if step < before_step:
            spoken.append(Exchange(round_id, words.get(round_id, {})))
    return [PanelTurn(said, tuple(exchanges[number])) for number, said in sorted(messages_of.items())]


def _length(turns: Sequence[PanelTurn], voice: str) -> int:
    total = 0
    for turn in turns:
        total += 0 if turn.message is None else len(turn.message.text) + len(turn.message.files)
        total += sum(len(each.words[voice].text) for each in turn.exchanges if voice in each.words)
    return total
