"""Stored summaries of conversations: a summary, a memory document, and the last message they cover.

A pass is claimed, run outside any transaction, and stored only if its input (the messages and the earlier summary) has
not changed since. So what is forgotten while a model writes does not come back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import bindparam, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from denizen.bus.streams import MetadataUpdated, space_topic
from denizen.clock import SECOND
from denizen.ids import AgentId, OrganizationId, SpaceId
from denizen.memory import documents, items, next_messages, permissions
from denizen.memory.documents import Memory, PassResult
from denizen.memory.settings import CompactionProfile
from denizen.spaces.posting import Message, messages_after
from denizen.spaces.quotes import Quotes
from denizen.storage.database import (
    Tx,
    columns,
    delete_where,
    select_where,
    statement,
    storable,
    update_where,
    value,
    values,
)
from denizen.storage.schema import advisors, agents, entities, memberships, messages, replies, rollings, rounds, spaces

EVERYONE: Final = ""
"""The reader of a conversation's own summary."""
ASSISTANT: Final = "assistant"
"""The author of replies in a panel without advisors."""


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """The stored summary of a conversation."""

    space_id: SpaceId
    reader_id: str
    """Empty for the conversation's own summary; otherwise the advisor's id."""
    summary: str
    memory: Memory
    upto: int
    """The number of the last message it covers; 0 if none."""
    passes: int = 0
    model: str = ""
    tried_at: int = 0
    """When a pass last ended; while one is running, its deadline."""
    failures: int = 0
    updated_at: int = 0
    outside: bool = False
    """Whether it is based on text from outside."""


_of = (rollings.c.space_id == bindparam("space_id"), rollings.c.reader_id == bindparam("reader_id"))
_state = statement(
    select(*columns(rollings, "summary, memory, upto, passes, model, tried_at, failures, updated_at, outside")).where(
        *_of
    )
)


def find(tx: Tx, space_id: SpaceId, reader_id: str = EVERYONE) -> ConversationSummary:
    """Returns the present summary; an empty one with the cursor at 0 if there is none."""
    row = tx.one(_state, space_id=space_id, reader_id=reader_id)
    if row is None:
        return ConversationSummary(space_id, reader_id, "", Memory(), 0)
    summary, memory, *rest, outside = row
    return ConversationSummary(space_id, reader_id, summary, documents.load(memory), *rest, outside=bool(outside))


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """The facts about a conversation that decide how it is summarized."""

    organization_id: OrganizationId
    kind: str
    agents: tuple[tuple[AgentId, str], ...]
    """The living agents in it, with their handles, in the order in which they joined."""
    space_id: SpaceId
    advisors: tuple[str, ...] = ()
    """In a panel: its advisors."""
    in_prompts: bool = False
    """Whether it is in the prompt of an advisor, or of an agent whose window strategy is `rolling`."""
    is_remembered: bool = False
    """Whether anything of it may become a long-term memory."""

    @property
    def modes(self) -> list[str]:
        """The names by which a profile may be chosen: the members, then the kind of the space."""
        return [*(handle for _, handle in self.agents), *(agent_id for agent_id, _ in self.agents), self.kind]


_space = select_where(spaces, "organization_id, kind", "id")
_agents = statement(
    select(agents.c.id, entities.c.handle, agents.c.definition)
    .join(memberships, memberships.c.entity_id == agents.c.id)
    .join(entities, entities.c.id == agents.c.id)
    .where(memberships.c.space_id == bindparam("space_id"), agents.c.status == "active")
    .order_by(memberships.c.joined_at, agents.c.id)
)


_voices = select_where(
    advisors, "id", "space_id", advisors.c.active == 1, advisors.c.removed_at.is_(None), order_by="position, id"
)


def conversation_info(tx: Tx, space_id: SpaceId) -> ConversationInfo | None:
    """Returns the space and its agents; None if the space is gone."""
    row = tx.one(_space, id=space_id)
    if row is None:
        return None
    organization_id, kind = row
    voices: tuple[str, ...] = ()
    if kind == "panel":
        voices = tuple(values(tx, _voices, space_id=space_id)) or (ASSISTANT,)
    found = tx.all(_agents, space_id=space_id)
    there = tuple((agent_id, handle) for agent_id, handle, _ in found)
    in_prompts = bool(voices) or any(_reads_summaries(definition) for _, _, definition in found)
    return ConversationInfo(
        organization_id, kind, there, space_id, voices, in_prompts, permissions.could_write(tx, space_id)
    )


def _reads_summaries(definition: str) -> bool:
    window: dict[str, Any] = json.loads(definition).get("window") or {}
    return window.get("strategy") == "rolling"


@dataclass(frozen=True, slots=True)
class Pass:
    """The messages being summarized."""

    before: ConversationSummary
    messages: tuple[Message, ...]
    digest: str
    """A digest of the whole input."""

    @property
    def last(self) -> int:
        return self.messages[-1].seq

    @property
    def outside(self) -> bool:
        """Whether the input has text from outside."""
        return self.before.outside or any(each.outside for each in self.messages)


def seen_by(said: Sequence[Message], reader_id: str) -> list[Message]:
    """Returns the messages that a reader sees: all; for an advisor, people's messages and its own replies."""
    if reader_id == EVERYONE:
        return list(said)
    return [each for each in said if each.author_kind == "human" or each.author_id == reader_id]


_replied = statement(
    select(messages.c.seq, replies.c.name, replies.c.text, replies.c.outside)
    .select_from(
        replies.join(rounds, rounds.c.id == replies.c.round_id).join(messages, messages.c.id == rounds.c.message_id)
    )
    .where(
        rounds.c.space_id == bindparam("space_id"),
        replies.c.voice == bindparam("voice"),
        replies.c.part.in_(("reply", "crosstalk")),
        replies.c.state == "done",
        messages.c.seq > bindparam("after"),
        messages.c.seq <= bindparam("last"),
    )
    .order_by(messages.c.seq, rounds.c.step)
)
_unanswered = statement(
    select(func.min(messages.c.seq))
    .select_from(rounds.join(messages, messages.c.id == rounds.c.message_id))
    .where(rounds.c.space_id == bindparam("space_id"), rounds.c.state == "open", rounds.c.kind != "vote")
)
_REPLY_CHARACTERS: Final = 1_900
"""The most characters of a message, and of a reply to it, that are summarized together."""


def _said(tx: Tx, space_id: SpaceId, reader_id: str, after: int, limit: int) -> list[Message]:
    """Returns the messages after that one; for an advisor, each with the advisor's replies appended."""
    page = messages_after(tx, space_id, after, limit=limit)
    if reader_id == EVERYONE or not page:
        return page
    answers: dict[int, list[str]] = {}
    marked: set[int] = set()
    for seq, name, text, outside in tx.all(
        _replied, space_id=space_id, voice=reader_id, after=after, last=page[-1].seq
    ):
        answers.setdefault(seq, []).append(f"[{name} answered:] {_short(text or '')}")
        marked |= {seq} if outside else set()
    return [
        _with_answers(each, answers[each.seq], each.seq in marked) if each.seq in answers else each for each in page
    ]


def _with_answers(message: Message, answers: Sequence[str], outside: bool) -> Message:
    return replace(message, text="\n\n".join([_short(message.text), *answers]), outside=message.outside or outside)


def _short(text: str) -> str:
    return text if len(text) <= _REPLY_CHARACTERS else text[: _REPLY_CHARACTERS - 1] + "…"


_PAGE: Final = 500


def unsummed(tx: Tx, state: ConversationSummary, profile: CompactionProfile) -> list[Message]:
    """Returns as many of the reader's messages after the cursor as decide what is summarized next."""
    found: list[Message] = []
    after, enough = state.upto, next_messages.wanted(profile)
    # Replies of other advisors are skipped.
    at_once = enough if state.reader_id == EVERYONE else _PAGE
    while len(found) < enough:
        page = _said(tx, state.space_id, state.reader_id, after, at_once)
        found += seen_by(page, state.reader_id)
        if len(page) < at_once:
            break
        after = page[-1].seq
    if state.reader_id != EVERYONE:
        found = _answered(tx, state.space_id, found)
    return found[:enough]


def _answered(tx: Tx, space_id: SpaceId, said: Sequence[Message]) -> list[Message]:
    """Returns the messages before the first that is still being answered: a summary includes the answers."""
    first = value(tx, _unanswered, space_id=space_id)
    return [each for each in said if first is None or each.seq < first]


def look(
    tx: Tx, space_id: SpaceId, reader_id: str, profile: CompactionProfile
) -> tuple[ConversationSummary, Pass | None]:
    """Returns the present summary, and what to summarize next, if anything: also during the cool-down."""
    state = find(tx, space_id, reader_id)
    chosen = next_messages.head(unsummed(tx, state, profile), profile, state.failures)
    return state, Pass(state, tuple(chosen), _digest(state, chosen)) if chosen else None


def _digest(state: ConversationSummary, said: Sequence[Message]) -> str:
    told: list[list[str | int]] = [[state.upto, state.summary, documents.dump(state.memory), int(state.outside)]]
    told += [[each.seq, each.author_name, each.text, each.edited_at or 0, each.deleted_at or 0] for each in said]
    return hashlib.blake2b(json.dumps(told).encode(), digest_size=16).hexdigest()


_claim = insert(rollings).values(
    space_id=bindparam("space_id"),
    reader_id=bindparam("reader_id"),
    summary="",
    memory="{}",
    upto=0,
    model="",
    tried_at=bindparam("until"),
    failures=1,
    updated_at=bindparam("at"),
)
_claim_pass = statement(
    _claim.on_conflict_do_update(
        index_elements=["space_id", "reader_id"],
        # Counted as a failure until it is stored: a process that dies meanwhile has not succeeded.
        set_={"tried_at": _claim.excluded.tried_at, "failures": rollings.c.failures + 1},
        where=or_(
            rollings.c.tried_at <= bindparam("not_since", type_=rollings.c.tried_at.type),
            # No claim is longer: the clock was set back since.
            rollings.c.tried_at > bindparam("until", type_=rollings.c.tried_at.type),
        ),
    )
)


def claim(tx: Tx, space_id: SpaceId, reader_id: str, cooldown_ms: int, seconds: int) -> bool:
    """Claims the next pass over this conversation until its deadline and cool-down have passed.

    False if another process has claimed it.
    """
    since, until = tx.now - cooldown_ms * 1_000, tx.now + seconds * SECOND
    return tx.run(_claim_pass, space_id=space_id, reader_id=reader_id, at=tx.now, until=until, not_since=since) > 0


_this = (rollings.c.space_id == bindparam("space"), rollings.c.reader_id == bindparam("reader"))
_give_up = statement(
    update(rollings)
    .where(*_this, rollings.c.tried_at > bindparam("at"))
    .values(tried_at=bindparam("at"), failures=bindparam("so_often"))
)


def give_up(tx: Tx, made: Pass, *, failed: bool = True) -> None:
    """Ends a pass without a result: the cool-down begins. Unless it failed, it is not counted as a failure."""
    so_often = made.before.failures + failed
    tx.run(_give_up, space=made.before.space_id, reader=made.before.reader_id, at=tx.now, so_often=so_often)


_hold = select_where(spaces, "id", "id", for_update=True)
_keep = statement(
    update(rollings)
    .where(*_this)
    .values(
        summary=bindparam("new_summary"),
        memory=bindparam("new_memory"),
        upto=bindparam("new_upto"),
        model=bindparam("by_model"),
        passes=rollings.c.passes + 1,
        outside=bindparam("from_outside"),
        failures=0,
        tried_at=bindparam("at"),
        updated_at=bindparam("at"),
    )
)


def keep(tx: Tx, made: Pass, written: PassResult, model: str) -> PassResult | None:
    """Stores the summary, without what was forgotten before, and returns it.

    Returns None, and changes nothing, if the input has changed.
    """
    space_id, reader_id = made.before.space_id, made.before.reader_id
    # Posts, edits, deletions and forgetting wait: what is compared here cannot change before the commit.
    tx.one(_hold, id=space_id)
    state = find(tx, space_id, reader_id)
    numbers = {each.seq for each in made.messages}
    first = made.messages[0].seq
    found = _said(tx, space_id, reader_id, first - 1, made.last - first + 1)
    said = [each for each in found if each.seq in numbers]
    if _digest(state, said) != made.digest:
        return None
    left = written.without(items.keeping_out(tx, f"conversation:{space_id}"))
    tx.run(
        _keep,
        space=space_id,
        reader=reader_id,
        new_summary=storable(left.summary_markdown),
        new_memory=storable(documents.dump(left.memory_json)),
        new_upto=made.last,
        by_model=model,
        from_outside=int(made.outside),
        at=tx.now,
    )
    tx.announce(space_topic(space_id), MetadataUpdated(space_id, "rolling_memory").to_payload())
    return left


# Forgetting

_all_there = select_where(rollings, "reader_id, summary, memory", "space_id")
_rewrite = statement(
    update(rollings).where(*_this).values(summary=bindparam("new_summary"), memory=bindparam("new_memory"))
)


def take_out(tx: Tx, space_id: str, text: str) -> int:
    """Removes this text from all summaries of the conversation, and from its snapshot."""
    quotes, hashed, changed = Quotes(), items.hash_of("", text), 0
    quotes.add(text)

    def left(summary: str, stored: str) -> tuple[str, str]:
        memory = documents.load(stored).without(lambda each: items.hash_of("", each) == hashed or quotes.occur_in(each))
        return quotes.redacted(summary), documents.dump(memory)

    for reader_id, summary, stored in tx.all(_all_there, space_id=space_id):
        new_summary, new_memory = left(summary, stored)
        if (new_summary, new_memory) != (summary, stored):
            tx.run(_rewrite, space=space_id, reader=reader_id, new_summary=new_summary, new_memory=new_memory)
            changed += 1
    items.take_out_of_snapshot(tx, space_id, left)
    return changed


def reword(tx: Tx, space_id: str, text: str, new: str) -> None:
    """Replaces one text with the other in the memory of the conversation, unless the conversation has forgotten it."""
    if items.keeping_out(tx, f"conversation:{space_id}")(new):
        return
    hashed = items.hash_of("", text)
    for reader_id, summary, stored in tx.all(_all_there, space_id=space_id):
        memory = documents.load(stored)
        said = memory.reworded(lambda each: new if items.hash_of("", each) == hashed else each)
        if said != memory:
            tx.run(_rewrite, space=space_id, reader=reader_id, new_summary=summary, new_memory=documents.dump(said))


_covering = select_where(rollings, "space_id", "space_id", rollings.c.upto >= bindparam("seq"), limit=1)
_drop = delete_where(rollings, "space_id")
_reset = update_where(
    rollings,
    "space_id",
    set_="updated_at",
    summary="",
    memory="{}",
    upto=0,
    passes=0,
    tried_at=0,
    failures=0,
    outside=0,
)


def covers(tx: Tx, space_id: str, seq: int) -> bool:
    """Whether a summary of the conversation covers that message."""
    return tx.one(_covering, space_id=space_id, seq=seq) is not None


def begin_anew(tx: Tx, space_id: str) -> int:
    """Deletes all summaries of the conversation: its messages are shown until it is summarized again."""
    items.drop_snapshot(tx, space_id)
    return tx.run(_reset, space_id=space_id, updated_at=tx.now)


def drop(tx: Tx, space_id: str) -> int:
    return tx.run(_drop, space_id=space_id)


_waiting = statement(
    select(spaces.c.id, spaces.c.last_seq, func.coalesce(rollings.c.upto, 0))
    .select_from(
        spaces.outerjoin(
            rollings, (rollings.c.space_id == spaces.c.id) & (rollings.c.reader_id == bindparam("reader_id"))
        )
    )
    .where(
        spaces.c.id > bindparam("after"),
        spaces.c.last_seq - func.coalesce(rollings.c.upto, 0) >= bindparam("least"),
    )
    .order_by(spaces.c.id)
    .limit(500)
)


def long_unsummed(tx: Tx, least: int, after: str = "") -> list[SpaceId]:
    """Returns the next spaces with at least so many unsummarized messages, for the scan at the start."""
    return [SpaceId(each) for each in values(tx, _waiting, after=after, least=least, reader_id=EVERYONE)]
