"""Finds private words in what an agent wants to show, which the policy (`denizen.trust.policy`) then refuses.

They are eight words in a row, or more, of something said in a private space, unless everyone who would read it is in
that space as well, or the same words were said where they may be known (in the space it goes to, in one that is not
private, or in one that all its readers are in), or they stand in the agent's instructions. Tool calls that people see,
or are asked about, count too.

What an agent could repeat is found through an index of its passages (`quotation_index`), however the words got into its
mind, and in what it has read in the present window. The work of one send is bounded: `MOST_WORDS` of the message, the
texts of `MOST_TEXTS` passages, and the window. It is done in a read (`check_ahead`); in the transaction that sends,
only what is new since then is compared. An agent that was never in a private space costs one query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue
from sqlalchemy import bindparam, func, select

from denizen.access import audit
from denizen.access.audit import Actor
from denizen.consciousness import privacy
from denizen.consciousness.recall import settling
from denizen.files import storing
from denizen.files.storing import File
from denizen.ids import AgentId, CycleId, EntityId, SpaceId
from denizen.inbox.events import Event
from denizen.inbox.format import quoted_name
from denizen.memory import items
from denizen.memory.audience import audience
from denizen.memory.items import MemoryItem
from denizen.spaces import directory, posting
from denizen.spaces.posting import Draft, draft
from denizen.spaces.quotes import Gram, grams, quoted_grams, said
from denizen.storage.database import Database, Tx, columns, insert_into, select_where, statement, value, values
from denizen.storage.schema import crossings, memberships, passages, spaces
from denizen.tools import quotation_index
from denizen.tools.private_word_search import (
    SPACE_AND_TEXT,
    Comparison,
    WrittenText,
    forms_of_call,
    forms_of_message,
    guard_settings,
    instructed_words,
    longest_run,
    written_text,
)
from denizen.tools.quotation_index import MissingHashes
from denizen.tools.tool import SEND_MESSAGE
from denizen.trust.policy import PRIVATE_WORDS, Decision, EffectSettings, PlannedCall, PrivateWords, decide

_NO_RULES: Final = EffectSettings()
"""An agent's rules are about effects, and a message has none."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A message or a call that was stopped, because it would have carried private words elsewhere."""

    from_space: str
    """The name of the private space."""
    from_space_id: SpaceId
    to_space_id: SpaceId
    """Empty for a call that was made in no space: everyone who shares one with the agent would have seen it."""
    cycle_id: CycleId
    words: int
    """The number of words in a row."""
    created_at: int


_first_space = select(func.min(passages.c.space_id).label("space_id")).where(
    passages.c.agent_id == bindparam("agent_id")
)
_lived_in = _first_space.cte("lived_in", recursive=True)
# From one space to the next by the index: as many steps as there are spaces, however long the agent was in them.
_lived_in = _lived_in.union_all(
    select(
        select(func.min(passages.c.space_id))
        .where(passages.c.agent_id == bindparam("agent_id"), passages.c.space_id > _lived_in.c.space_id)
        .scalar_subquery()
    ).where(_lived_in.c.space_id.is_not(None))
)
_private_spaces = statement(
    select(spaces.c.id)
    .join(_lived_in, _lived_in.c.space_id == spaces.c.id)
    .where(spaces.c.private == 1)
    .union_all(
        select(spaces.c.id)
        .join(memberships, memberships.c.space_id == spaces.c.id)
        .where(memberships.c.entity_id == bindparam("agent_id"), spaces.c.private == 1)
    )
)
_record = insert_into(crossings, "agent_id, cycle_id, from_space_id, to_space_id, words, created_at")


@dataclass(frozen=True, slots=True)
class Caution:
    """Where an agent's messages have to be checked before they are shown."""

    free: frozenset[str]
    """The spaces in which nothing is stopped."""
    words: int
    """How many words in a row are not shown elsewhere before they have been checked."""
    unindexed: bool = False
    """Whether much of its past is not indexed yet: then `index_words` comes before a check."""


def prefetch_private_spaces(tx: Tx, agent_id: AgentId) -> None:
    """Announce `caution`, or a check of something that people would see."""
    tx.prefetch(_private_spaces, agent_id=agent_id)


def caution(tx: Tx, agent_id: AgentId, space_ids: Iterable[str], remembered: Iterable[str] = ()) -> Caution | None:
    """Which of these spaces need no check; None: nothing has to be checked. `remembered`: memories it was shown."""
    private, kept = _private_of(tx, agent_id), _kept(tx, remembered)
    settings = guard_settings(tx, agent_id) if private or kept else None
    if settings is None or not settings.enabled:
        return None
    free = frozenset(each for each in space_ids if _is_free(tx, agent_id, SpaceId(each), private, kept))
    ahead = settling.extent(tx, agent_id).settled - quotation_index.indexed(tx, agent_id, settings.words)
    return Caution(free, settings.words, ahead > _FEW)


_FEW: Final = 100
"""So many passages are compared word for word rather than indexed first."""


def next_batch(tx: Tx, agent_id: AgentId) -> MissingHashes | None:
    """The next passages to be indexed, if the agent is in a private space."""
    settings = guard_settings(tx, agent_id) if _private_of(tx, agent_id) else None
    if settings is None or not settings.enabled:
        return None
    return quotation_index.make_batch(tx, agent_id, settings.words)


async def index_words(db: Database, agent_id: AgentId) -> None:
    """Index everything that the agent has heard and said, if it is in a private space."""
    while (batch := await db.read(next_batch, agent_id)) is not None:
        await db.write(quotation_index.keep_batch, agent_id, batch)


def _is_free(tx: Tx, agent_id: AgentId, space_id: SpaceId, private: Iterable[str], kept: Sequence[MemoryItem]) -> bool:
    closed, readers = _closed(tx, agent_id, space_id, private)
    return not closed and not _not_theirs(tx, agent_id, space_id, kept, readers)


def passes(
    tx: Tx,
    agent_id: AgentId,
    cycle_id: CycleId,
    to_space_id: SpaceId,
    text: str,
    events: Sequence[Event],
    remembered: Iterable[str] = (),
) -> bool:
    """Whether this beginning of a message may be shown there. Nothing is recorded."""
    found = private_words(tx, agent_id, cycle_id, to_space_id, forms_of_message(draft(text)), events, remembered)
    return _decide_message(found).action == "allow"


def stopped_message(
    tx: Tx,
    agent_id: AgentId,
    cycle_id: CycleId,
    to_space_id: SpaceId,
    what: Draft,
    events: Sequence[Event],
    remembered: Iterable[str] = (),
    ahead: CheckedAhead | None = None,
) -> Decision | None:
    """Why this message may not be sent there, if it may not; a refusal is recorded. `events` are those of the cycle,
    `remembered` the ids of the memories that the agent was shown, `ahead` what was checked before this transaction."""
    found = private_words(tx, agent_id, cycle_id, to_space_id, forms_of_message(what), events, remembered, ahead)
    decided = _decide_message(found)
    if decided.action == "allow":
        return None
    record_refusal(tx, agent_id, cycle_id, SEND_MESSAGE, decided, found)
    return decided


def stopped_files(
    tx: Tx,
    agent_id: AgentId,
    cycle_id: CycleId,
    to_space_id: SpaceId,
    attached: Sequence[File],
    events: Sequence[Event],
) -> Decision | None:
    """Why these files may not be sent there, if they may not; a refusal is recorded.

    A file from a private space may be sent where everyone is in that space. The text of a file that the agent got from
    a tool is checked as a message is.
    """
    if not attached or not guard_settings(tx, agent_id).enabled:
        return None
    readers = _members(tx, to_space_id) - {agent_id}
    for file in attached:
        if file.message_id is None:
            text = storing.text_of(tx, file)
            found = private_words(tx, agent_id, cycle_id, to_space_id, (text,), events) if text else None
            decided = _decide_message(found)
        else:
            from_space_id = posting.get_message(tx, file.message_id).space_id
            if from_space_id == to_space_id or _may_know(tx, from_space_id, readers):
                continue
            found, name = None, directory.get_space(tx, from_space_id).name
            decided = Decision(
                "deny",
                PRIVATE_WORDS,
                f"{quoted_name(file.name)} was sent in the private space {quoted_name(name)}, and not everyone in the "
                "space that you send it to is there. Nothing was sent. Send your message without the file.",
            )
        if decided.action != "allow":
            record_refusal(tx, agent_id, cycle_id, SEND_MESSAGE, decided, found)
            return decided
    return None


def _decide_message(found: FoundWords | None) -> Decision:
    return decide(
        PlannedCall(SEND_MESSAGE, {}, tells="message", private=None if found is None else found.words), _NO_RULES
    )


def record_refusal(
    tx: Tx, agent_id: AgentId, cycle_id: CycleId, tool: str, decided: Decision, found: FoundWords | None = None
) -> None:
    """Record in the audit log which rule refused which tool; private words are recorded by space as well."""
    agent = directory.get_entity(tx, EntityId(agent_id))
    detail: dict[str, JsonValue] = {"tool": tool, "rule": decided.rule, "cycle": cycle_id}
    audit.record(tx, agent.organization_id, Actor(agent.id), "deny_effect", agent.id, **detail)
    if found is None:
        return
    tx.run(
        _record,
        agent_id=agent_id,
        cycle_id=cycle_id,
        from_space_id=found.from_space_id,
        to_space_id=found.to_space_id,
        words=found.words.words,
        created_at=tx.now,
    )
    # The refused text stays in the agent's log: it is as private as the space that it comes from.
    privacy.add_sources(tx, agent_id, cycle_id, [found.from_space_id])


@dataclass(frozen=True, slots=True)
class FoundWords:
    """Private words in what people would see, and between which spaces they would go."""

    words: PrivateWords
    from_space_id: SpaceId
    to_space_id: SpaceId
    """Empty for a call that is made in no space."""


@dataclass(frozen=True, slots=True)
class CheckedAhead:
    """What was found in a read, before the transaction in which the text would be shown."""

    written: WrittenText
    comparison: Comparison | None
    """With what was said in private spaces; None if there was nothing to compare."""


def check_ahead(
    tx: Tx,
    agent_id: AgentId,
    cycle_id: CycleId,
    to_space_id: SpaceId | None,
    forms: Sequence[str],
    events: Sequence[Event],
) -> CheckedAhead | None:
    """Compare what would be shown with everything that the agent has heard in private. No writer waits for it."""
    private = _private_of(tx, agent_id)
    settings = guard_settings(tx, agent_id)
    if not settings.enabled:
        return None
    written = written_text(forms, settings.words)
    closed, readers = _closed(tx, agent_id, to_space_id, private)
    if not closed or written.is_short:
        return CheckedAhead(written, None)
    begun = Comparison(written, to_space_id or "", frozenset(closed), frozenset(readers))
    return CheckedAhead(written, begun.with_new(tx, agent_id, cycle_id, events))


def check_call_ahead(
    tx: Tx, agent_id: AgentId, cycle_id: CycleId, space_id: SpaceId | None, arguments: str, events: Sequence[Event]
) -> CheckedAhead | None:
    """The same for a call with these arguments."""
    return check_ahead(tx, agent_id, cycle_id, space_id, forms_of_call(arguments), events)


def private_words(
    tx: Tx,
    agent_id: AgentId,
    cycle_id: CycleId,
    to_space_id: SpaceId | None,
    forms: Sequence[str],
    events: Sequence[Event],
    remembered: Iterable[str] = (),
    ahead: CheckedAhead | None = None,
) -> FoundWords | None:
    """The private words in what would be shown, if there are any.

    A call that is made in no space can be seen by everyone who shares one with the agent. With `ahead`, only what is
    newer than that is compared, unless other people would read it now.
    """
    private, kept = _private_of(tx, agent_id), _kept(tx, remembered)
    settings = guard_settings(tx, agent_id) if private or kept else None
    if settings is None or not settings.enabled:
        return None
    closed, readers = _closed(tx, agent_id, to_space_id, private)
    written = None if ahead is None else ahead.written
    if written is None or (written.forms, written.length) != (tuple(forms), settings.words):
        written = written_text(forms, settings.words)
    to = to_space_id or SpaceId("")
    if closed and not written.is_short:
        begun = None if ahead is None else ahead.comparison
        if begun is None or not begun.is_about(written, to, closed, readers):
            begun = Comparison(written, to, frozenset(closed), frozenset(readers))
        worst = _worst(tx, agent_id, begun.with_new(tx, agent_id, cycle_id, events))
        if worst is not None:
            name, space_id, many = worst
            return FoundWords(PrivateWords(name, many), SpaceId(space_id), to)
    quoted = _quoted_memory(tx, written, _not_theirs(tx, agent_id, to_space_id, kept, readers))
    if quoted is None:
        return None
    name, space_id, many = quoted
    return FoundWords(PrivateWords(name, many, remembered=True), SpaceId(space_id), to)


# Memories that the agent was shown


def _kept(tx: Tx, remembered: Iterable[str]) -> list[MemoryItem]:
    """The memories with these ids that still exist."""
    return items.of_ids(tx, sorted(remembered))


def _not_theirs(
    tx: Tx, agent_id: AgentId, to_space_id: SpaceId | None, kept: Sequence[MemoryItem], readers: set[str]
) -> list[MemoryItem]:
    """Those of these memories that not everyone who reads there may know."""
    if not kept:
        return []
    there = None if to_space_id is None else audience(tx, [to_space_id])
    theirs: set[str] = set() if there is None else {owner.key for owner in there.owners(agent_id)}
    return [each for each in kept if each.owner not in theirs and not _said_before(tx, each, to_space_id, readers)]


def _said_before(tx: Tx, memory: MemoryItem, to_space_id: SpaceId | None, readers: set[str]) -> bool:
    """Whether it is based on something that was said where all of them may know it."""
    said_in = {row[0] for source in memory.sources if (row := tx.one(SPACE_AND_TEXT, id=source)) is not None}
    return any(each == to_space_id or _may_know(tx, each, readers) for each in said_in)


_LEAST_WORDS: Final = 4
"""A shorter memory cannot be recognized by its words alone."""


def _quoted_memory(tx: Tx, written: WrittenText, closed: Sequence[MemoryItem]) -> tuple[str, str, int] | None:
    """The first of these memories that is repeated: a short one as a whole, a longer one in part."""
    for memory in closed:
        words = said(memory.text)
        many = min(written.length, len(words))
        if many < _LEAST_WORDS:
            continue
        held = set(grams(words, many))
        longest = max((longest_run(form, held, many) for form in written.words), default=0)
        longest = longest or (many if quoted_grams(words, many, set(), written.lettered) else 0)
        if longest:
            return value(tx, _space, id=memory.space_id) or "", memory.space_id, longest
    return None


def _closed(
    tx: Tx, agent_id: AgentId, to_space_id: SpaceId | None, private: Iterable[str]
) -> tuple[set[str], set[str]]:
    """The private spaces that not everyone who reads there was in, and those readers."""
    there = _neighbours(tx, agent_id) if to_space_id is None else _members(tx, to_space_id)
    readers = there - {agent_id}
    if not readers:
        return set(), readers
    return set(private) - {to_space_id} - _shared_by(tx, readers), readers


def _shared_by(tx: Tx, readers: set[str]) -> set[str]:
    """The spaces that all of them are in. One reader has mostly few spaces, however many the agent is in."""
    counted = [(tx.all(_how_many, entity_id=each)[0][0], each) for each in sorted(readers)[:_ASKED]]
    shared = _entered(tx, min(counted)[1])
    if len(shared) <= _ASKED:
        return {each for each in shared if readers <= _members(tx, each)}
    for each in sorted(readers):
        shared &= _entered(tx, each)
    return shared


def _entered(tx: Tx, entity_id: str) -> set[str]:
    return set(values(tx, _spaces_of, entity_id=entity_id))


_crossings = statement(
    select(spaces.c.name, *columns(crossings, "from_space_id, to_space_id, cycle_id, words, created_at"))
    .select_from(crossings.outerjoin(spaces, spaces.c.id == crossings.c.from_space_id))
    .where(crossings.c.agent_id == bindparam("agent_id"))
    .order_by(crossings.c.number)
)


def crossings_of(tx: Tx, agent_id: AgentId) -> list[Crossing]:
    """The messages and calls of this agent that were stopped, in order."""
    return [Crossing(name or "", *rest) for name, *rest in tx.all(_crossings, agent_id=agent_id)]


_crossings_before = statement(
    select(
        crossings.c.number,
        spaces.c.name,
        *columns(crossings, "from_space_id, to_space_id, cycle_id, words, created_at"),
    )
    .select_from(crossings.outerjoin(spaces, spaces.c.id == crossings.c.from_space_id))
    .where(crossings.c.agent_id == bindparam("agent_id"), crossings.c.number < bindparam("before"))
    .order_by(crossings.c.number.desc())
    .limit(bindparam("limit"))
)


def crossings_before(tx: Tx, agent_id: AgentId, before: int, *, limit: int) -> list[tuple[int, Crossing]]:
    """The newest of them before that number, each with its own, newest first."""
    rows = tx.all(_crossings_before, agent_id=agent_id, before=before, limit=limit)
    return [(number, Crossing(name or "", *rest)) for number, name, *rest in rows]


def _private_of(tx: Tx, agent_id: AgentId) -> set[str]:
    return set(values(tx, _private_spaces, agent_id=agent_id))


_ASKED: Final = 20
"""Among how many readers the one with the fewest spaces is looked up; for how many spaces the members are."""
_spaces_of = select_where(memberships, "space_id", "entity_id")
_how_many = statement(
    select(func.count()).select_from(memberships).where(memberships.c.entity_id == bindparam("entity_id"))
)
_members_of = select_where(memberships, "entity_id", "space_id")
_theirs = select(memberships.c.space_id).where(memberships.c.entity_id == bindparam("agent_id"))
_sharing_a_space = statement(select(memberships.c.entity_id).where(memberships.c.space_id.in_(_theirs)).distinct())
_space = select_where(spaces, "name, private", "id")


def _members(tx: Tx, space_id: str) -> set[str]:
    return set(values(tx, _members_of, space_id=space_id))


def _neighbours(tx: Tx, agent_id: AgentId) -> set[str]:
    return set(values(tx, _sharing_a_space, agent_id=agent_id))


def _worst(tx: Tx, agent_id: AgentId, found: Comparison) -> tuple[str, str, int] | None:
    """The longest run of words from a private space that the readers do not know: the space's name, id, the length."""
    known = _known(tx, agent_id, found)
    # A run that was found by its letters alone has at least this length.
    least = found.written.length
    runs = [
        (max(longest_run(words, left, least), least), space)
        for space, there in found.held.items()
        if (left := there - known)
        for words in found.written.words
    ]
    longest, space_id = max(runs, default=(0, ""))
    if not longest:
        return None
    return value(tx, _space, id=space_id) or "", space_id, longest


def _known(tx: Tx, agent_id: AgentId, found: Comparison) -> set[Gram]:
    """The runs that the readers may know from elsewhere, or that the agent would have without any private space: they
    stand in its instructions.
    """
    known: set[Gram] = found.written.quoted_in(instructed_words(tx, agent_id)) if found.held else set()
    free: dict[str, bool] = {found.to_space_id: True, "": False}
    # Most messages repeat nothing private: then it does not matter what their readers know.
    for source in found.elsewhere if found.held else ():
        if source.space_id not in free:
            free[source.space_id] = _may_know(tx, source.space_id, found.readers)
        if free[source.space_id]:
            known |= found.written.quoted_in(source.words)
    return known


def _may_know(tx: Tx, space_id: str, readers: AbstractSet[str]) -> bool:
    row = tx.one(_space, id=space_id)
    return row is not None and (not row[1] or readers <= _members(tx, space_id))
