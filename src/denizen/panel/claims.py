"""Claims replies: takes one under a lease with its whole request, renews the lease, and ends the reply once.

Only the holder of a reply's lease works on it. Its epoch grows with each change of holder and each new attempt, and
every write carries it: so writes of a former holder are void, and a result is written once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, exists, func, or_, select, update

from denizen.bus.streams import PANEL
from denizen.clock import SECOND
from denizen.cycles import ledger
from denizen.cycles.ledger import Charge
from denizen.errors import LeaseLost, NotFound
from denizen.ids import OrganizationId, SpaceId
from denizen.inbox.delivery import INTERRUPTED_AT_MOST
from denizen.panel import advisors, assertions, crosstalk, history, panels, rounds, synthesis, voting
from denizen.panel.advisors import Advisor
from denizen.panel.attached import attached_files
from denizen.panel.background import Background, Brought, PendingTurn, VoiceBackground, VoiceTurn
from denizen.panel.context import (
    Omission,
    OtherReply,
    PanelTurn,
    Persona,
    PersonMessage,
    RequestMessage,
    assistant_prompt,
    context,
    digest,
    omissions,
    omissions_in,
    rebuilt,
    recipe,
    system_prompt,
)
from denizen.panel.panels import Panel
from denizen.panel.phases import Stage, stage_at
from denizen.panel.rounds import ASSISTANT, CAMPS, QUESTION_GONE, SYNTHESIS, UNFINISHED, Part, Round
from denizen.spaces import posting
from denizen.storage.database import Tx, columns, select_where, statement, storable, value
from denizen.storage.schema import messages, replies
from denizen.storage.schema import rounds as rounds_table

if TYPE_CHECKING:
    from pydantic_ai.tools import ToolDefinition

Key = tuple[str, str, str]
"""The key of a reply: round, voice, part."""

AT_A_LOOK: Final = 200
"""How many open replies are read to find those that may be taken."""
DIED_OF_IT: Final = f"It was begun {INTERRUPTED_AT_MOST} times, and the process ended each time before it was done."
GONE: Final = "The message was deleted before it was answered."


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to answer for one voice, until the lease ends or another takes it."""

    round_id: str
    voice: str
    part: Part
    epoch: int
    holder: str
    panel_id: SpaceId
    organization_id: OrganizationId

    @property
    def key(self) -> Key:
        return self.round_id, self.voice, self.part


@dataclass(frozen=True, slots=True)
class Work:
    """The request for a reply, and what is needed to ask it."""

    claim: Claim
    lines: tuple[RequestMessage, ...]
    model: str
    max_tokens: int
    reasoning: bool | None
    tool: ToolDefinition | None
    expected: tuple[str, ...]
    """The expectations, if it is a check; the positions, if they are to be grouped."""
    panel: Panel
    told: VoiceBackground = field(default_factory=VoiceBackground)
    """What the background tells the voice."""
    omitted: tuple[Omission, ...] = ()
    """What the request does not contain, and why."""


_older = rounds_table.alias("older")
_BLOCKED = exists(
    select(_older.c.id).where(
        _older.c.space_id == rounds_table.c.space_id,
        _older.c.state == "open",
        _older.c.kind != "vote",
        or_(
            _older.c.turn < rounds_table.c.turn,
            (_older.c.turn == rounds_table.c.turn) & (_older.c.step < rounds_table.c.step),
        ),
    )
)
_free = (
    UNFINISHED,
    replies.c.until < bindparam("now"),
    or_(replies.c.part.in_(("synthesis", "check", "camps")), ~_BLOCKED),
)
_IN_ORDER: Final = (replies.c.created_at, replies.c.round_id, replies.c.position)
_due = statement(
    select(*columns(replies, "round_id, voice, part, epoch, space_id, organization_id, attempts"))
    .select_from(replies.join(rounds_table, rounds_table.c.id == replies.c.round_id))
    .where(*_free)
    .order_by(*_IN_ORDER)
    .limit(AT_A_LOOK)
)
_running = statement(
    select(replies.c.space_id, func.count())
    .where(UNFINISHED, replies.c.state == "running", replies.c.until >= bindparam("now"))
    .group_by(replies.c.space_id)
)
_this = (
    replies.c.round_id == bindparam("round"),
    replies.c.voice == bindparam("of"),
    replies.c.part == bindparam("which"),
)
_held = (*_this, replies.c.epoch == bindparam("at_epoch"), replies.c.holder == bindparam("by"))
_take = statement(
    update(replies)
    .where(*_this, replies.c.epoch == bindparam("at_epoch") - 1, UNFINISHED)
    .values(
        state="running",
        holder=bindparam("by"),
        until=bindparam("then"),
        epoch=bindparam("at_epoch"),
        attempts=replies.c.attempts + 1,
        recipe=bindparam("made_of"),
        outside=bindparam("from_outside"),
        started_at=bindparam("now"),
    )
)
_renew = statement(
    update(replies)
    .where(replies.c.holder == bindparam("by"), UNFINISHED)
    .values(until=bindparam("then"))
    .returning(replies.c.round_id, replies.c.voice, replies.c.part, replies.c.epoch)
)
_begin_again = statement(update(replies).where(*_held).values(epoch=replies.c.epoch + 1).returning(replies.c.epoch))
_to_be_taken = {"state": "waiting", "holder": None, "until": 0, "reserved_tokens": 0, "reserved_micros": 0}
_hand_back = statement(update(replies).where(*_held).values(attempts=replies.c.attempts - 1, **_to_be_taken))
_release = statement(
    update(replies).where(*_this, replies.c.holder == bindparam("by"), UNFINISHED).values(_to_be_taken)
)
_free_all = statement(update(replies).where(replies.c.holder == bindparam("by"), UNFINISHED).values(_to_be_taken))
_at_epoch = statement(select(replies.c.epoch).where(*_this, replies.c.epoch == bindparam("at_epoch")))
_end = statement(
    update(replies)
    .where(*_held)
    .values(
        state=bindparam("new_state"),
        holder=None,
        until=0,
        text=bindparam("new_text"),
        thinking=bindparam("new_thinking"),
        result=bindparam("new_result"),
        error_code=bindparam("new_code"),
        error=bindparam("new_error"),
        reserved_tokens=0,
        reserved_micros=0,
        ended_at=bindparam("now"),
    )
)
_cost = bindparam("cost", type_=replies.c.cost_micros.type)
_count = statement(
    update(replies)
    .where(*_this)
    .values(
        model=bindparam("by_model"),
        input_tokens=replies.c.input_tokens + bindparam("input"),
        output_tokens=replies.c.output_tokens + bindparam("output"),
        cache_read_tokens=replies.c.cache_read_tokens + bindparam("cache_read"),
        cache_write_tokens=replies.c.cache_write_tokens + bindparam("cache_write"),
        # An unknown value adds nothing; the sum is unknown only if all values are.
        cost_micros=func.coalesce(replies.c.cost_micros + _cost, _cost, replies.c.cost_micros),
    )
)
_held_by = select_where(replies, "round_id, voice, part", "holder", UNFINISHED)


def held_by(tx: Tx, holder: str) -> set[Key]:
    """Returns the replies that this holder works on."""
    return {(round_id, voice, part) for round_id, voice, part in tx.all(_held_by, holder=holder)}


_turns_due = statement(
    select(replies.c.space_id, rounds_table.c.turn, messages.c.id, messages.c.text, messages.c.deleted_at)
    .select_from(
        replies.join(rounds_table, rounds_table.c.id == replies.c.round_id).outerjoin(
            messages, messages.c.id == rounds_table.c.message_id
        )
    )
    .where(*_free)
    .order_by(*_IN_ORDER)
    .limit(AT_A_LOOK)
)


def turns_due(tx: Tx) -> list[PendingTurn]:
    """Returns the turns of the replies that `take` would read; none if there is nothing to take."""
    found = (
        PendingTurn(space_id, turn, message_id, "" if text is None or deleted_at is not None else text)
        for space_id, turn, message_id, text, deleted_at in tx.all(_turns_due, now=tx.now)
    )
    return list(dict.fromkeys(found))


def take(
    tx: Tx,
    holder: str,
    seconds: float,
    most: int,
    background: Background | None = None,
    brought: Brought | None = None,
) -> list[Work]:
    """Takes as many replies as this holder may work on at once, up to `most`, each under a lease, with its request.

    With a background, only from panels for which it has looked up its data: the others are taken next time.
    """
    reading = _Reading(tx, background, brought or {})
    claims = _claims(tx, holder)
    while hopeless := [(claim, *why) for claim, attempts in claims if (why := reading.is_hopeless(claim, attempts))]:
        for each in hopeless:
            _give_up(tx, *each)
        # Replies that waited for them may be taken now.
        claims = _claims(tx, holder)
    under_way: Counter[str] = Counter(dict(tx.all(_running, now=tx.now)))  # pyright: ignore[reportArgumentType]
    taken: list[Work] = []
    for claim, _ in claims:
        panel_id = claim.panel_id
        if len(taken) >= most:
            break
        if under_way[panel_id] >= reading.panel(panel_id).settings.at_once:
            continue
        if brought is not None and panel_id not in brought:
            continue
        work, stage = reading.work(claim)
        until = tx.now + int(seconds * SECOND)
        outside = int(any(line.outside for line in work.lines))
        made_of = _recipe(work, stage)
        if tx.run(_take, **_whose(claim), then=until, made_of=made_of, from_outside=outside, now=tx.now):
            under_way[panel_id] += 1
            taken.append(work)
            rounds.tell_reply(tx, panel_id, claim.round_id, claim.voice, claim.part)
    return taken


def _claims(tx: Tx, holder: str) -> list[tuple[Claim, int]]:
    """Returns the claims that this holder may take, and how often each was taken before."""
    rows = tx.all(_due, now=tx.now)
    for space_id in sorted({row[4] for row in rows}):
        # Taking and ending lock the panel: so no panel exceeds its limit of concurrent replies.
        panels.hold(tx, space_id)
    return [
        (Claim(round_id, voice, part, epoch + 1, holder, space_id, organization_id), attempts)
        for round_id, voice, part, epoch, space_id, organization_id, attempts in rows
    ]


def renew(tx: Tx, holder: str, seconds: float) -> dict[Key, int]:
    """Renews all leases of this holder; returns the replies that it still holds, with their epochs."""
    rows = tx.all(_renew, by=holder, then=tx.now + int(seconds * SECOND))
    return {(round_id, voice, part): epoch for round_id, voice, part, epoch in rows}


def begin_again(tx: Tx, claim: Claim, charges: Sequence[Charge] = ()) -> Claim:
    """Begins a new attempt under the same lease: voids the text of the last one and records its usage."""
    epoch = value(tx, _begin_again, **_whose(claim))
    if epoch is None:
        raise LeaseLost("Another process answers for this advisor now, or the reply was cancelled.")
    _enter(tx, claim, charges)
    rounds.tell_reply(tx, claim.panel_id, claim.round_id, claim.voice, claim.part)
    return replace(claim, epoch=epoch)


def hand_back(tx: Tx, claim: Claim, charges: Sequence[Charge] = ()) -> None:
    """Returns the reply for another to take; that does not count as an attempt.

    If another holds it by now, or nobody, only the usage is recorded; if this holder has ended it, that was recorded.
    """
    if tx.run(_hand_back, **_whose(claim)):
        rounds.tell_all(tx, claim.panel_id, claim.round_id, claim.voice, claim.part)
    elif tx.one(_at_epoch, **_which(claim), at_epoch=claim.epoch) is not None:
        return
    _enter(tx, claim, charges)


def release(tx: Tx, holder: str, left: Iterable[Key]) -> None:
    """Releases the replies that this holder has but does not work on."""
    for round_id, voice, part in left:
        tx.run(_release, round=round_id, of=voice, which=part, by=holder)


def free_all_of(tx: Tx, holder: str) -> None:
    """Frees the replies of a holder that is gone, without waiting for its leases to expire."""
    if tx.run(_free_all, by=holder):
        tx.announce(PANEL, {"space": ""})


def _enter(tx: Tx, claim: Claim, charges: Sequence[Charge]) -> None:
    """Charges the usage of model calls to the reply and the panel, whatever their result."""
    for each in charges:
        ledger.enter_for_panel(tx, claim.panel_id, each)
        tx.run(
            _count,
            **_which(claim),
            by_model=each.model,
            input=each.input_tokens,
            output=each.output_tokens,
            cache_read=each.cache_read_tokens,
            cache_write=each.cache_write_tokens,
            cost=each.cost_micros,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of asking."""

    text: str | None = None
    thinking: str | None = None
    result: Mapping[str, Any] | None = None
    error_code: str | None = None
    error: str | None = None


def end_reply(tx: Tx, claim: Claim, outcome: Outcome, charges: Sequence[Charge] = ()) -> None:
    """Ends the reply as done or failed, and continues the round. Raises `LeaseLost` if another holds it."""
    panel = panels.hold(tx, claim.panel_id)
    _end_as(tx, claim, outcome)
    _enter(tx, claim, charges)
    rounds.tell_reply(tx, claim.panel_id, claim.round_id, claim.voice, claim.part)
    if claim.part == "reply" and outcome.error_code is None and claim.voice != ASSISTANT:
        rounds.want_check(tx, panel, claim.round_id, advisors.get(tx, claim.panel_id, claim.voice))
    rounds.advance(tx, claim.panel_id, claim.round_id)


def _end_as(tx: Tx, claim: Claim, outcome: Outcome) -> None:
    changed = tx.run(
        _end,
        **_whose(claim),
        new_state="done" if outcome.error_code is None else "failed",
        new_text=None if outcome.text is None else storable(outcome.text),
        new_thinking=None if not outcome.thinking else storable(outcome.thinking),
        new_result=None if outcome.result is None else storable(json.dumps(outcome.result, ensure_ascii=False)),
        new_code=outcome.error_code,
        new_error=None if outcome.error is None else storable(outcome.error)[:1_000],
        now=tx.now,
    )
    if not changed:
        raise LeaseLost("Another process answers for this advisor now, or the reply was cancelled.")


def _give_up(tx: Tx, claim: Claim, code: str, why: str) -> None:
    """Fails a reply that cannot be taken, and continues the round."""
    tx.run(_abandon, **_which(claim), at_epoch=claim.epoch, code=code, why=why, now=tx.now)
    rounds.tell_reply(tx, claim.panel_id, claim.round_id, claim.voice, claim.part)
    rounds.advance(tx, claim.panel_id, claim.round_id)


_abandon = statement(
    update(replies)
    .where(*_this, replies.c.epoch == bindparam("at_epoch") - 1)
    .values(
        state="failed",
        holder=None,
        until=0,
        epoch=bindparam("at_epoch"),
        error_code=bindparam("code"),
        error=bindparam("why"),
        reserved_tokens=0,
        reserved_micros=0,
        ended_at=bindparam("now"),
    )
)


def _which(claim: Claim) -> dict[str, Any]:
    return {"round": claim.round_id, "of": claim.voice, "which": claim.part}


def _whose(claim: Claim) -> dict[str, Any]:
    return {**_which(claim), "at_epoch": claim.epoch, "by": claim.holder}


def _recipe(work: Work, stage: Stage | None) -> str:
    made_of = recipe(work.lines, work.panel.settings.reference_characters, work.told.memory.strip())
    if work.told.kept:
        made_of["background"] = work.told.kept
    if work.omitted:
        made_of["omitted"] = [
            {"reason": each.reason, "count": each.count, "names": each.names} for each in work.omitted
        ]
    if stage is not None:
        made_of["phase"] = {"name": stage.name, "turn": stage.turn, "of": stage.of}
    return storable(json.dumps(made_of, ensure_ascii=False))


class _Reading:
    """Reads the parts of requests, each once for all voices of a round."""

    def __init__(self, tx: Tx, background: Background | None, brought: Brought) -> None:
        self._tx = tx
        self._background, self._brought = background, brought
        self._panels: dict[str, Panel] = {}
        self._rounds: dict[str, Round] = {}
        self._past: dict[str, list[PanelTurn]] = {}
        self._presents: dict[tuple[str, int], PanelTurn] = {}

    def panel(self, panel_id: SpaceId) -> Panel:
        if panel_id not in self._panels:
            self._panels[panel_id] = panels.get(self._tx, panel_id)
        return self._panels[panel_id]

    def is_hopeless(self, claim: Claim, attempts: int) -> tuple[str, str] | None:
        """Returns why this reply cannot succeed, if so: a code, and a sentence."""
        if attempts >= INTERRUPTED_AT_MOST:
            return "interrupted", DIED_OF_IT
        if claim.part == "reply" and self._present(claim, 0).message is None:
            return QUESTION_GONE, GONE
        return None

    def work(self, claim: Claim) -> tuple[Work, Stage | None]:
        """Returns the whole request, and the stage of its advisor."""
        tx, panel, asked = self._tx, self.panel(claim.panel_id), self._round(claim)
        settings = panel.settings
        characters, reference = settings.context_characters, settings.reference_characters
        stage: Stage | None = None
        tool: ToolDefinition | None = None
        expected: tuple[str, ...] = ()
        advisor = _advisor(tx, claim)
        told = VoiceBackground()
        omitted: Sequence[Omission] = ()
        if claim.part == "synthesis":
            lines = synthesis.lines(self._present(claim, asked.step + 1), reference)
        elif claim.part == "check":
            assert advisor is not None
            expected = advisor.settings.assertions
            said_now = asked.part("reply", claim.voice)
            text = "" if said_now is None else said_now.text or ""
            outside = said_now is not None and said_now.outside
            lines = assertions.lines(OtherReply(claim.round_id, claim.voice, advisor.name, text, outside), expected)
            tool = assertions.tool()
        elif claim.part == "camps":
            expected = voting.positions_to_group(asked.question, asked.votes.values())
            lines, tool = voting.group_lines(asked.question, expected), voting.group_tool()
        else:
            persona, stage, told = self._persona(claim, asked, advisor)
            past, present = self._past_of(claim, asked), self._present(claim, asked.step)
            others = settings.show_others
            task = ""
            if claim.part == "crosstalk":
                task = crosstalk.TASK
            elif claim.part == "vote":
                task, tool = voting.task(asked.question), voting.tool_for(asked.question)
            lines = context(
                persona,
                past,
                present,
                characters=characters,
                reference_characters=reference,
                show_others=others,
                task=task,
            )
            omitted = omissions(persona, past, lines, turns=asked.turn - 1, show_others=others)
        own = advisor.settings if advisor is not None and claim.part in rounds.SPOKEN else None
        model = (own.model if own is not None else None) or settings.model
        if claim.part in ("synthesis", "check") and settings.utility_model:
            model = settings.utility_model
        most = (own.max_tokens if own is not None else None) or settings.max_tokens
        thinks = None if own is None else own.reasoning
        return Work(claim, tuple(lines), model, most, thinks, tool, expected, panel, told, tuple(omitted)), stage

    def _round(self, claim: Claim) -> Round:
        if claim.round_id not in self._rounds:
            self._rounds[claim.round_id] = rounds.get(self._tx, claim.panel_id, claim.round_id)
        return self._rounds[claim.round_id]

    def _persona(
        self, claim: Claim, asked: Round, advisor: Advisor | None
    ) -> tuple[Persona, Stage | None, VoiceBackground]:
        had = history.turns_had(self._tx, claim.panel_id, claim.voice, asked.turn)
        told = self._told(claim, asked, ASSISTANT if advisor is None else advisor.handle, had)
        if advisor is None:
            prompt = assistant_prompt(memory=told.memory, profile=told.profile)
            return Persona(claim.voice, prompt, told.upto, told.outside), None, told
        turn = had + 1
        phases = advisor.settings.phases
        stage = stage_at(self.panel(claim.panel_id).settings.phases if phases is None else phases, turn)
        # The task of a phase, for example one question, does not apply to cross-talk and votes.
        instructions = stage.instructions if claim.part == "reply" else ""
        prompt = system_prompt(
            advisor.name, advisor.description, instructions, memory=told.memory, profile=told.profile
        )
        persona = Persona(claim.voice, prompt, told.upto, told.outside)
        return persona, stage if claim.part == "reply" else None, told

    def _told(self, claim: Claim, asked: Round, handle: str, had: int) -> VoiceBackground:
        if self._background is None:
            return VoiceBackground()
        said = PendingTurn(claim.panel_id, asked.turn, asked.message_id, _text_of(self._tx, asked.message_id))
        before = history.last_kept(self._tx, claim.panel_id, claim.voice, asked.turn)
        ask = VoiceTurn(said, claim.voice, handle, had, before)
        return self._background.tell(self._tx, ask, self._brought.get(claim.panel_id))

    def _present(self, claim: Claim, step: int) -> PanelTurn:
        key = claim.round_id, step
        if key not in self._presents:
            self._presents[key] = history.present(self._tx, claim.panel_id, self._round(claim).turn, step)
        return self._presents[key]

    def _past_of(self, claim: Claim, asked: Round) -> list[PanelTurn]:
        if claim.round_id not in self._past:
            voices = [each.voice for each in asked.spoken]
            most = self.panel(claim.panel_id).settings.context_characters
            self._past[claim.round_id] = history.past(self._tx, claim.panel_id, asked.turn, voices, most)
        return self._past[claim.round_id]


def _text_of(tx: Tx, message_id: str) -> str:
    try:
        found = posting.get_message(tx, message_id)  # pyright: ignore[reportArgumentType]
    except NotFound:
        return ""
    return "" if found.deleted_at is not None else found.text


def _advisor(tx: Tx, claim: Claim) -> Advisor | None:
    if claim.voice in (ASSISTANT, SYNTHESIS, CAMPS):
        return None
    try:
        return advisors.get(tx, claim.panel_id, claim.voice)
    except NotFound:
        return None


def context_of(tx: Tx, panel_id: SpaceId, round_id: str, voice: str, part: Part | None = None) -> AdvisorContext:
    """Rebuilds the request of a reply as it was sent, and tells whether it is still exactly that."""
    reply = rounds.reply_of(tx, panel_id, round_id, voice, part)
    if reply.recipe is None:
        raise NotFound("context of the reply", voice)

    def message(id: str) -> PersonMessage | None:
        try:
            found = posting.get_message(tx, id)  # pyright: ignore[reportArgumentType]
        except NotFound:
            return None
        files = attached_files(tx, found.files).text
        return (
            None if found.deleted_at is not None else PersonMessage(found.id, found.text, found.created_at, files=files)
        )

    def words(said_in: str, of: str) -> str | None:
        return value(tx, _words, round_id=said_in, voice=of)

    lines = rebuilt(reply.recipe, message, words)
    omitted = omissions_in(reply.recipe)
    if gone := 1 + len(reply.recipe["lines"]) - len(lines):
        omitted.append(Omission("deleted", gone))
    return AdvisorContext(tuple(lines), digest(lines) == reply.recipe["digest"], reply, tuple(omitted))


_words = select_where(replies, "text", "round_id, voice", replies.c.part.in_(("reply", "crosstalk")))


@dataclass(frozen=True, slots=True)
class AdvisorContext:
    """The request that a voice was sent."""

    lines: tuple[RequestMessage, ...]
    exact: bool
    """Whether nothing of it was changed, forgotten or answered anew since."""
    reply: rounds.Reply
    omitted: tuple[Omission, ...] = ()
    """What it does not contain, and why."""
