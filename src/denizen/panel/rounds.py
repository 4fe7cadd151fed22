"""Rounds: each time the advisors of a panel are asked, and the reply of each.

A person's message begins a turn; the replies to it are its first round. Cross-talk and votes are further rounds of the
turn. A round is complete when each of its replies is done, failed or cancelled. A failure is a state, never text. The
rounds of a panel are answered one after the other, in the order of their turns and steps; votes do not delay other
rounds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from sqlalchemy import bindparam, func, select, update

from denizen.access.requesters import Requester
from denizen.bus.streams import PANEL, ReplyChanged, RoundChanged, space_topic
from denizen.errors import InvalidInput, NotFound, existing
from denizen.ids import EntityId, MessageId, SpaceId, new_id
from denizen.models.discovery import utility_model_for
from denizen.panel import advisors, panels, voting
from denizen.panel.advisors import Advisor
from denizen.panel.panels import Panel
from denizen.panel.settings import MOST_CROSSTALK
from denizen.shapes.vocabulary import ReplyPart as Part
from denizen.shapes.vocabulary import ReplyState as State
from denizen.shapes.vocabulary import RoundKind as Kind
from denizen.spaces import directory
from denizen.spaces.posting import Posted
from denizen.storage.database import Tx, columns, insert_into, select_where, statement, storable, update_where, value
from denizen.storage.schema import panels as panels_table
from denizen.storage.schema import replies, rounds

ASSISTANT: Final = "assistant"
"""The voice that answers if there are no advisors."""
SYNTHESIS: Final = "synthesis"
"""The voice that combines what the others said."""
CAMPS: Final = "camps"
"""The voice that groups the positions of a vote without given options."""
SPOKEN: Final[tuple[Part, ...]] = ("reply", "crosstalk", "vote")
"""The parts that the voices of a round answer: it is complete when all of these are."""
OVER: Final[tuple[State, ...]] = ("done", "failed", "cancelled")
UNFINISHED: Final = replies.c.state.in_(("waiting", "running"))
"""Word for word the condition of the partial index that finds open replies."""
PART_OF: Final[Mapping[Kind, Part]] = {"ask": "reply", "crosstalk": "crosstalk", "vote": "vote"}
QUESTION_CHARACTERS: Final = 4_000
MOST_CURRENT: Final = 50
"""How many rounds a reader who missed them is sent at once."""
QUESTION_GONE: Final = "question_gone"
"""The error code of a reply whose question was deleted before it was answered."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of one voice in one round."""

    round_id: str
    voice: str
    part: Part
    name: str
    """The voice's name at that time."""
    state: State
    epoch: int
    attempts: int
    text: str | None
    thinking: str | None
    result: Mapping[str, Any] | None
    error_code: str | None
    error: str | None
    recipe: Mapping[str, Any] | None
    model: str | None
    input_tokens: int
    output_tokens: int
    cost_micros: int | None
    started_at: int | None
    ended_at: int | None
    outside: bool = False
    """Whether its request held text from outside."""

    @property
    def is_over(self) -> bool:
        return self.state in OVER


@dataclass(frozen=True, slots=True)
class Round:
    """One round: the voices that were asked, and their replies."""

    id: str
    panel_id: SpaceId
    turn: int
    step: int
    kind: Kind
    message_id: MessageId
    asked_by: EntityId
    question: str | None
    state: Literal["open", "complete"]
    crosstalk: int
    wants_synthesis: bool
    created_at: int
    completed_at: int | None
    replies: tuple[Reply, ...] = ()
    """All replies in the panel's order, with syntheses and checks."""

    @property
    def spoken(self) -> tuple[Reply, ...]:
        """The replies of its voices."""
        return tuple(each for each in self.replies if each.part in SPOKEN)

    @property
    def all_completed(self) -> bool:
        """Whether each voice is done, failed or cancelled."""
        return all(each.is_over for each in self.spoken)

    @property
    def votes(self) -> Mapping[str, Mapping[str, Any]]:
        """The votes by voice; empty if this is no vote."""
        return {each.voice: each.result for each in self.spoken if each.part == "vote" and each.result is not None}

    @property
    def groups(self) -> Sequence[Sequence[str]]:
        """The positions of a vote that mean the same, as far as they were grouped."""
        found = self.part("camps", CAMPS)
        return () if found is None or found.result is None else found.result["groups"]

    def part(self, part: Part, voice: str) -> Reply | None:
        return next((each for each in self.replies if (each.part, each.voice) == (part, voice)), None)


_round = columns(
    rounds,
    "id, space_id, turn, step, kind, message_id, asked_by, question, state, crosstalk, "
    "synthesis, created_at, completed_at",
)
_reply = columns(
    replies,
    "round_id, voice, part, name, state, epoch, attempts, text, thinking, result, error_code, "
    "error, recipe, model, input_tokens, output_tokens, cost_micros, started_at, ended_at, "
    "outside",
)
_get = select_where(rounds, _round, "id")
_begun_by = select_where(rounds, _round, "message_id", rounds.c.step == 0, rounds.c.kind == "ask")
_of_turn = select_where(rounds, _round, "space_id, turn", order_by="step")
_before = select_where(
    rounds, _round, "space_id", rounds.c.turn < bindparam("before"), order_by="turn desc, step desc", limit="limit"
)
_under_way = statement(
    select(*_round)
    .where(rounds.c.id.in_(select(replies.c.round_id).where(UNFINISHED, replies.c.space_id == bindparam("space_id"))))
    .order_by(rounds.c.turn, rounds.c.step)
)
_after = select_where(
    rounds, _round, "space_id", rounds.c.turn > bindparam("turn"), order_by="turn, step", limit=MOST_CURRENT
)
_turns = select_where(panels_table, "turns", "space_id")
_replies = select_where(replies, _reply, "round_id", order_by="position, voice")
_one_reply = select_where(replies, _reply, "round_id, voice, part")
_next_turn = statement(
    update(panels_table)
    .where(panels_table.c.space_id == bindparam("space"))
    .values(turns=panels_table.c.turns + 1)
    .returning(panels_table.c.turns)
)
_last_step = statement(
    select(func.max(rounds.c.step)).where(
        rounds.c.space_id == bindparam("space_id"), rounds.c.turn == bindparam("turn")
    )
)
_add_round = insert_into(
    rounds, "id, space_id, turn, step, kind, message_id, asked_by, question, crosstalk, synthesis, created_at"
)
_add_reply = insert_into(replies, "round_id, voice, part, space_id, organization_id, position, name, created_at")
_LAST: Final = 2**62
_AFTER_REPLIES: Final = 1_000


def begin_turn_of(tx: Tx, panel_id: SpaceId, message: Posted, author_id: EntityId, mentions: Sequence[str]) -> None:
    """Begins a turn with a message posted in a panel, if a person wrote it and it has not begun one already."""
    if directory.get_entity(tx, author_id).kind == "human" and tx.one(_begun_by, message_id=message.id) is None:
        begin_turn(tx, panel_id, message.id, author_id, mentions)


def begin_turn(
    tx: Tx, panel_id: SpaceId, message_id: MessageId, asked_by: EntityId, mentions: Sequence[str] = ()
) -> Round:
    """Asks everyone the message is for; if there are no advisors, the plain assistant."""
    panel = panels.hold(tx, panel_id)
    turns = value(tx, _next_turn, space=panel_id)
    assert turns is not None
    meant = advisors.addressed(advisors.list_of(tx, panel_id), mentions)
    voices = [(str(each.id), each.name) for each in meant] or [(ASSISTANT, "Assistant")]
    settings = panel.settings
    crosstalk = settings.crosstalk if len(voices) > 1 else 0
    synthesis = settings.synthesis == "always" and len(voices) > 1
    return _begin(tx, panel, (turns, 0), "ask", message_id, asked_by, voices, crosstalk, synthesis)


def begin_crosstalk(
    tx: Tx, by: Requester, panel_id: str, round_id: str, times: int = 1, *, id: str | None = None
) -> Round:
    """Asks the advisors who answered in this turn to answer each other, so many times. Only for the last turn, when it
    is over.

    Repeating the call with the same `id` has no further effect.
    """
    if not 1 <= times <= MOST_CROSSTALK:
        raise InvalidInput(f"rounds: use 1 to {MOST_CROSSTALK} rounds of cross-talk.")
    panel = panels.hold_for(tx, by, panel_id)
    panel_id = panel.id
    if (begun := _find(tx, panel_id, id)) is not None:
        return begun
    before = get(tx, panel_id, round_id)
    turn = of_turn(tx, panel_id, before.turn)
    if before.turn != panel.turns or any(each.state == "open" for each in turn if each.kind != "vote"):
        raise InvalidInput("Cross-talk is possible only on the last turn, after everyone has answered.")
    voices = _who_spoke(turn)
    if len(voices) < 2:
        raise InvalidInput("Cross-talk needs two advisors who have answered.")
    place = before.turn, _next_step(tx, panel_id, before.turn)
    synthesis = panel.settings.synthesis == "always"
    return _begin(tx, panel, place, "crosstalk", before.message_id, by.entity_id, voices, times - 1, synthesis, id=id)


def begin_vote(
    tx: Tx, by: Requester, panel_id: str, round_id: str, question: str = "", *, id: str | None = None
) -> Round:
    """Asks the advisors for their positions, confidence and reasons. Repeating the call with the same `id` has no
    further effect.
    """
    panel = panels.hold_for(tx, by, panel_id)
    panel_id = panel.id
    if (begun := _find(tx, panel_id, id)) is not None:
        return begun
    before = get(tx, panel_id, round_id)
    turn = of_turn(tx, panel_id, before.turn)
    voices = [(str(each.id), each.name) for each in advisors.list_of(tx, panel_id) if each.active]
    if not voices:
        raise InvalidInput("This panel has no advisors who can vote.")
    if not turn[0].all_completed:
        raise InvalidInput("A vote is possible only after everyone has answered.")
    asked = storable(question.strip())[:QUESTION_CHARACTERS] or None
    place = before.turn, _next_step(tx, panel_id, before.turn)
    return _begin(tx, panel, place, "vote", before.message_id, by.entity_id, voices, 0, False, asked, id=id)


def want_synthesis(tx: Tx, by: Requester, panel_id: str, round_id: str) -> Round:
    """Asks for a synthesis of the turn up to this round; replaces an earlier one."""
    panel = panels.hold_for(tx, by, panel_id)
    panel_id = panel.id
    wanted = get(tx, panel_id, round_id)
    if wanted.kind == "vote" or not any(each.state == "done" for each in wanted.spoken):
        raise InvalidInput("There is nothing to synthesize: nobody has answered in this round.")
    if not wanted.all_completed:
        raise InvalidInput("Some advisors are still answering. Wait for them, or cancel them.")
    if wanted.part("synthesis", SYNTHESIS) is None:
        _add(tx, panel, round_id, SYNTHESIS, "synthesis", _LAST, "Synthesis")
    else:
        tx.run(_again, round=round_id, of=SYNTHESIS, which="synthesis")
    tell_all(tx, panel_id, round_id, SYNTHESIS, "synthesis")
    return get(tx, panel_id, round_id)


def _begin(
    tx: Tx,
    panel: Panel,
    place: tuple[int, int],
    kind: Kind,
    message_id: MessageId,
    asked_by: EntityId,
    voices: Sequence[tuple[str, str]],
    crosstalk: int,
    synthesis: bool,
    question: str | None = None,
    id: str | None = None,
) -> Round:
    id = id or new_id()
    tx.run(
        _add_round,
        id=id,
        space_id=panel.id,
        turn=place[0],
        step=place[1],
        kind=kind,
        message_id=message_id,
        asked_by=asked_by,
        question=question,
        crosstalk=crosstalk,
        synthesis=int(synthesis),
        created_at=tx.now,
    )
    for position, (voice, name) in enumerate(voices):
        _add(tx, panel, id, voice, PART_OF[kind], position, name)
    tx.announce(space_topic(panel.id), RoundChanged(panel.id, id).to_payload())
    tx.announce(PANEL, {"space": panel.id})
    return get(tx, panel.id, id)


def _add(tx: Tx, panel: Panel, round_id: str, voice: str, part: Part, position: int, name: str) -> None:
    tx.run(
        _add_reply,
        round_id=round_id,
        voice=voice,
        part=part,
        space_id=panel.id,
        organization_id=panel.organization_id,
        position=position,
        name=name,
        created_at=tx.now,
    )


def _next_step(tx: Tx, panel_id: SpaceId, turn: int) -> int:
    last = value(tx, _last_step, space_id=panel_id, turn=turn)
    return 0 if last is None else last + 1


def _who_spoke(turn: Sequence[Round]) -> list[tuple[str, str]]:
    """Returns who has answered in the turn, in the order of the first round."""
    said = {each.voice: each.name for one in turn for each in one.spoken if each.state == "done"}
    return [(voice, name) for voice, name in said.items() if voice != ASSISTANT]


# Reading


def get(tx: Tx, panel_id: SpaceId, round_id: str) -> Round:
    """A round of this panel."""
    return existing(_find(tx, panel_id, round_id), "round", round_id)


def _find(tx: Tx, panel_id: SpaceId, round_id: str | None) -> Round | None:
    row = None if round_id is None else tx.one(_get, id=round_id)
    found = None if row is None else _as_round(tx, row)
    return None if found is None or found.panel_id != panel_id else found


def begun_by(tx: Tx, message_id: MessageId) -> Round | None:
    """The round that this message began."""
    row = tx.one(_begun_by, message_id=message_id)
    return None if row is None else _as_round(tx, row)


def of_turn(tx: Tx, panel_id: SpaceId, turn: int) -> list[Round]:
    """All rounds of a turn, in order."""
    return [_as_round(tx, row) for row in tx.all(_of_turn, space_id=panel_id, turn=turn)]


def before(tx: Tx, panel_id: SpaceId, turn: int | None = None, *, limit: int = 50) -> list[Round]:
    """The last rounds of turns before that one, or of all, the oldest first."""
    rows = tx.all(_before, space_id=panel_id, before=_LAST if turn is None else turn, limit=limit)
    return [_as_round(tx, row) for row in reversed(rows)]


def under_way(tx: Tx, panel_id: SpaceId) -> list[Round]:
    """Returns the rounds with a reply, a synthesis or a check that is not finished."""
    return [_as_round(tx, row) for row in tx.all(_under_way, space_id=panel_id)]


def current(tx: Tx, panel_id: SpaceId, after: int | None = None, known: Sequence[str] = ()) -> tuple[int, list[Round]]:
    """Returns the panel's last turn, and the rounds that a reader may have missed, in order: those in progress, those
    of the turns after that one, and `known`, which it has as in progress.
    """
    turn = value(tx, _turns, space_id=panel_id)
    if turn is None:
        return 0, []
    found = {each.id: each for each in under_way(tx, panel_id)}
    if after is not None and turn > after:
        later = [_as_round(tx, row) for row in tx.all(_after, space_id=panel_id, turn=after)]
        found.update((each.id, each) for each in later)
        turn = later[-1].turn if later else turn
    for id in known:
        if id not in found and (ended := _find(tx, panel_id, id)) is not None:
            found[id] = ended
    return turn, sorted(found.values(), key=lambda each: (each.turn, each.step))


def reply(tx: Tx, round_id: str, voice: str, part: str) -> Reply:
    return _as_reply(existing(tx.one(_one_reply, round_id=round_id, voice=voice, part=part), "reply", voice))


def reply_of(tx: Tx, panel_id: SpaceId, round_id: str, voice: str, part: Part | None = None) -> Reply:
    """Returns the reply of a voice in a round of this panel; without a part, what it says."""
    wanted = get(tx, panel_id, round_id)
    named = part or ("synthesis" if voice == SYNTHESIS else PART_OF[wanted.kind])
    return reply(tx, round_id, voice, named)


def _as_round(tx: Tx, row: tuple[Any, ...]) -> Round:
    *columns, wants_synthesis, created_at, completed_at = row
    found = Round(*columns, wants_synthesis=bool(wants_synthesis), created_at=created_at, completed_at=completed_at)
    return replace(found, replies=tuple(_as_reply(each) for each in tx.all(_replies, round_id=found.id)))


def _as_reply(row: tuple[Any, ...]) -> Reply:
    stored: dict[str, Any] = {column.name: each for column, each in zip(_reply, row, strict=True)}
    for name in ("result", "recipe"):
        stored[name] = None if stored[name] is None else json.loads(stored[name])
    stored["outside"] = bool(stored["outside"])
    return Reply(**stored)


# Cancelling and retrying


_this_one = (
    replies.c.round_id == bindparam("round"),
    replies.c.voice == bindparam("of"),
    replies.c.part == bindparam("which"),
)
_cancel_one = statement(
    update(replies)
    .where(*_this_one, UNFINISHED)
    .values(
        state="cancelled",
        holder=None,
        until=0,
        epoch=replies.c.epoch + 1,
        reserved_tokens=0,
        reserved_micros=0,
        ended_at=bindparam("now"),
    )
)
_begin_anew = {
    "state": "waiting",
    "holder": None,
    "until": 0,
    "epoch": replies.c.epoch + 1,
    "attempts": 0,
    "text": None,
    "thinking": None,
    "result": None,
    "error": None,
    "error_code": None,
    "started_at": None,
    "ended_at": None,
}
_retry_one = statement(
    update(replies).where(*_this_one, replies.c.state.in_(("failed", "cancelled"))).values(_begin_anew)
)
_again = statement(update(replies).where(*_this_one, replies.c.state.in_(OVER)).values(_begin_anew))
_anew = statement(update(replies).where(*_this_one).values(_begin_anew))
_void = statement(update(replies).where(*_this_one).values({**_begin_anew, "state": "cancelled"}))
_reopen = update_where(rounds, "id", state="open", completed_at=None)
_complete = update_where(rounds, "id", rounds.c.state == "open", set_="completed_at", state="complete")


def cancel(tx: Tx, by: Requester, panel_id: str, round_id: str, voice: str | None = None) -> Round:
    """Cancels the reply of the voice, or without one all unfinished replies of this round. Finished ones stay."""
    panel_id = panels.hold_for(tx, by, panel_id).id
    meant = _meant(get(tx, panel_id, round_id), voice)
    for each in meant:
        if tx.run(_cancel_one, round=round_id, of=each.voice, which=each.part, now=tx.now):
            tell_all(tx, panel_id, round_id, each.voice, each.part)
    advance(tx, panel_id, round_id, follow=voice is not None)
    return get(tx, panel_id, round_id)


def retry(tx: Tx, by: Requester, panel_id: str, round_id: str, voice: str | None = None) -> Round:
    """Asks the voice, or without one all that failed or were cancelled, again in this round.

    A named voice that has answered answers anew: its earlier reply is deleted.
    """
    panel_id = panels.hold_for(tx, by, panel_id).id
    wanted = get(tx, panel_id, round_id)
    # Positions are grouped again by themselves when everyone has voted.
    meant = [each for each in _meant(wanted, voice) if each.part != "camps"]
    changed = [each for each in meant if tx.run(_retry_one, round=round_id, of=each.voice, which=each.part)]
    if not changed and voice is not None:
        said = [each for each in meant if each.part != "check"]
        changed = [each for each in said if tx.run(_again, round=round_id, of=each.voice, which=each.part)]
    if not changed:
        raise InvalidInput(
            "There is nothing to try again: no chosen advisor has failed, was cancelled or has answered."
        )
    if again := [each.voice for each in changed if each.part in SPOKEN]:
        for each in again:
            # It was about the voice's earlier reply.
            if tx.run(_void, round=round_id, of=each, which="check"):
                tell_all(tx, panel_id, round_id, each, "check")
        tx.run(_reopen, id=round_id)
        tx.announce(space_topic(panel_id), RoundChanged(panel_id, round_id).to_payload())
    for each in changed:
        tell_all(tx, panel_id, round_id, each.voice, each.part)
    return get(tx, panel_id, round_id)


def _meant(wanted: Round, voice: str | None) -> list[Reply]:
    if voice is None:
        return list(wanted.replies)
    found = [each for each in wanted.replies if each.voice == voice]
    if not found:
        raise NotFound("advisor", voice)
    return found


def advance(tx: Tx, panel_id: SpaceId, round_id: str, *, follow: bool = True) -> None:
    """Completes the round if everyone has answered, and begins what follows it."""
    now = get(tx, panel_id, round_id)
    if not now.all_completed or tx.run(_complete, id=round_id, completed_at=tx.now) == 0:
        return
    tx.announce(space_topic(panel_id), RoundChanged(panel_id, round_id).to_payload())
    tx.announce(PANEL, {"space": panel_id})
    if follow and now.kind != "vote":
        _follow(tx, panel_id, now)
    elif follow:
        _want_groups(tx, panel_id, now)


def _follow(tx: Tx, panel_id: SpaceId, now: Round) -> None:
    panel = panels.get(tx, panel_id)
    later = [each for each in of_turn(tx, panel_id, now.turn) if each.step > now.step and each.kind != "vote"]
    voices = [each for each in _who_spoke([now]) if each[0] != ASSISTANT]
    if now.crosstalk and len(voices) > 1 and not later:
        place = now.turn, _next_step(tx, panel_id, now.turn)
        synthesis = now.wants_synthesis
        _begin(tx, panel, place, "crosstalk", now.message_id, now.asked_by, voices, now.crosstalk - 1, synthesis)
    elif now.wants_synthesis and voices and now.part("synthesis", SYNTHESIS) is None and not later:
        _add(tx, panel, now.id, SYNTHESIS, "synthesis", _LAST, "Synthesis")
        tell_all(tx, panel_id, now.id, SYNTHESIS, "synthesis")


def _want_groups(tx: Tx, panel_id: SpaceId, now: Round) -> None:
    """Asks for the groups of the positions, if they differ. Groups of an earlier vote of the round are void."""
    panel, kept = panels.get(tx, panel_id), tx.run(_void, round=now.id, of=CAMPS, which="camps")
    own = panel.settings.model
    # Whether the server's default has a cheaper model beside it is seen when it is asked.
    may_group = panel.settings.utility_model or own == "default" or utility_model_for(own) != own
    if not may_group or not voting.positions_to_group(now.question, now.votes.values()):
        return
    if kept:
        tx.run(_anew, round=now.id, of=CAMPS, which="camps")
    else:
        _add(tx, panel, now.id, CAMPS, "camps", _LAST, "Camps")
    tell_all(tx, panel_id, now.id, CAMPS, "camps")


def want_check(tx: Tx, panel: Panel, round_id: str, advisor: Advisor) -> None:
    """Asks for a check of the advisor's expectations on its reply in this round."""
    if not advisor.settings.assertions:
        return
    if not tx.run(_anew, round=round_id, of=advisor.id, which="check"):
        _add(tx, panel, round_id, advisor.id, "check", _AFTER_REPLIES + advisor.position, advisor.name)
    tell_all(tx, panel.id, round_id, advisor.id, "check")


def tell_reply(tx: Tx, panel_id: SpaceId, round_id: str, voice: str, part: str) -> None:
    """Announces to readers that this reply has changed its state. Groups of positions are part of the tally."""
    changed = RoundChanged(panel_id, round_id) if part == "camps" else ReplyChanged(panel_id, round_id, voice, part)
    tx.announce(space_topic(panel_id), changed.to_payload())


def tell_all(tx: Tx, panel_id: SpaceId, round_id: str, voice: str, part: str) -> None:
    """Announces it to the answering processes as well: there is something to take, or something to stop."""
    tell_reply(tx, panel_id, round_id, voice, part)
    tx.announce(PANEL, {"space": panel_id})
