"""Finds private words in what an agent wants to show, which the policy (`denizen.trust.policy`) then refuses.

They are eight words in a row, or more, of something said in a private space, unless everyone who would read it is in
that space as well, or the same words were said where they may be known: in the space it goes to, in one that is not
private, or in one that all its readers are in. Tool calls that people see, or are asked about, count too.

What an agent could repeat is found through the index of its recall, however the words got into its mind, and in what it
has read in the present window. The work of one send is bounded: `MOST_WORDS` of the message, the postings of their
terms up to `MOST_POSTINGS`, the texts of `MOST_TEXTS` passages, and the window. An agent that was never in a private
space costs one query.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pydantic import JsonValue
from sqlalchemy import bindparam, func, literal, or_, select

from denizen.access import audit
from denizen.access.audit import Actor
from denizen.consciousness import privacy
from denizen.consciousness.recall import settling
from denizen.consciousness.recall.fetching import said as text_of_passage
from denizen.consciousness.recall.occurrences import SettledTerms
from denizen.consciousness.recall.settling import Extent
from denizen.consciousness.recall.terms import count_terms, terms_of_word
from denizen.files import storing
from denizen.files.attaching import Attachment, attachments_from
from denizen.files.storing import File
from denizen.folding import hidden_letters
from denizen.ids import AgentId, CycleId, EntityId, SpaceId
from denizen.inbox.events import Event
from denizen.inbox.format import quoted_name
from denizen.inbox.outside import parsed
from denizen.memory import items
from denizen.memory.audience import audience
from denizen.memory.items import MemoryItem
from denizen.spaces import directory, posting
from denizen.spaces.markdown import render
from denizen.spaces.posting import Draft, draft
from denizen.spaces.quotes import LETTERS, Gram, Lettered, grams, quoted_grams, said, spelled, spelt
from denizen.storage.database import Tx, insert_into, statement, values
from denizen.storage.schema import (
    agents,
    crossings,
    files,
    log,
    memberships,
    messages,
    minds,
    passages,
    spaces,
)
from denizen.tools import effects
from denizen.tools.settings import GuardSettings
from denizen.tools.tool import SEND_MESSAGE
from denizen.trust.policy import PRIVATE_WORDS, Attempt, Decision, EffectSettings, PrivateWords, decide

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

MOST_WORDS: Final = 20_000
"""How many words of a message are checked; a longer one has at most 100,000 characters, and the rest is compared with
the window only."""
MOST_POSTINGS: Final = 200_000
MOST_TEXTS: Final = 300
"""How many passages are compared with a message, those that share most with it first."""
NEWEST: Final = 40
"""How many of the passages that an agent heard or said last are compared with every message."""
_AT_ONCE: Final = 50
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


_definition = statement(select(agents.c.definition).where(agents.c.id == bindparam("agent_id")))
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
_record = insert_into(crossings, "agent_id", "cycle_id", "from_space_id", "to_space_id", "words", "created_at")


@dataclass(frozen=True, slots=True)
class Caution:
    """Where an agent's messages have to be checked before they are shown."""

    free: frozenset[str]
    """The spaces in which nothing is stopped."""
    words: int
    """How many words in a row are not shown elsewhere before they have been checked."""


def prefetch_private_spaces(tx: Tx, agent_id: AgentId) -> None:
    """Announce `caution`, or a check of something that people would see."""
    tx.prefetch(_private_spaces, agent_id=agent_id)


def caution(tx: Tx, agent_id: AgentId, space_ids: Iterable[str], remembered: Iterable[str] = ()) -> Caution | None:
    """Which of these spaces need no check; None: nothing has to be checked. `remembered`: memories it was shown."""
    private, kept = _private_of(tx, agent_id), _kept(tx, remembered)
    settings = _settings(tx, agent_id) if private or kept else None
    if settings is None or not settings.enabled:
        return None
    free = frozenset(each for each in space_ids if _is_free(tx, agent_id, SpaceId(each), private, kept))
    return Caution(free, settings.words)


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
    ahead: SearchedAhead | None = None,
) -> Decision | None:
    """Why this message may not be sent there, if it may not; a refusal is recorded. `events` are those of the cycle,
    `remembered` the ids of the memories that the agent was shown, `ahead` what was searched before this transaction."""
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
    if not attached or not _settings(tx, agent_id).enabled:
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
    return decide(Attempt(SEND_MESSAGE, {}, tells="message", private=None if found is None else found.words), _NO_RULES)


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


def forms_of_message(what: Draft) -> tuple[str, ...]:
    # The source, the plain text and the invisible letters: markup may split words, and may hide them.
    return what.rendered.plain, what.text, hidden_letters(what.text)


def forms_of_call(arguments: str) -> tuple[str, ...]:
    """The texts of the arguments: the values as plain text and as written, then with the keys, then hidden letters."""
    data = parsed(arguments)
    said_in = arguments if data is None else data
    values = " ".join(_texts_in(said_in, keys=False))
    return render(values).plain, values, " ".join(_texts_in(said_in, keys=True)), hidden_letters(arguments)


def _texts_in(value: Any, *, keys: bool) -> Iterator[str]:
    match value:
        case dict():
            for key, each in cast("dict[str, Any]", value).items():
                if keys:
                    yield key
                yield from _texts_in(each, keys=keys)
        case list():
            for each in cast("list[Any]", value):
                yield from _texts_in(each, keys=keys)
        case _:
            yield str(value)


@dataclass(frozen=True, slots=True)
class FoundWords:
    """Private words in what people would see, and between which spaces they would go."""

    words: PrivateWords
    from_space_id: SpaceId
    to_space_id: SpaceId
    """Empty for a call that is made in no space."""


def private_words(
    tx: Tx,
    agent_id: AgentId,
    cycle_id: CycleId,
    to_space_id: SpaceId | None,
    forms: Sequence[str],
    events: Sequence[Event],
    remembered: Iterable[str] = (),
    ahead: SearchedAhead | None = None,
) -> FoundWords | None:
    """The private words in what would be shown, if there are any.

    A call that is made in no space can be seen by everyone who shares one with the agent. With `ahead`, only what is
    newer than that is looked up in the index.
    """
    private, kept = _private_of(tx, agent_id), _kept(tx, remembered)
    settings = _settings(tx, agent_id) if private or kept else None
    if settings is None or not settings.enabled:
        return None
    closed, readers = _closed(tx, agent_id, to_space_id, private)
    if closed:
        search = _Search(tx, agent_id, cycle_id, settings.words, events, ahead)
        worst = _worst(search, forms, to_space_id or "", closed, readers)
        if worst is not None:
            name, space_id, many = worst
            return FoundWords(PrivateWords(name, many), SpaceId(space_id), to_space_id or SpaceId(""))
    quoted = _quoted_memory(tx, forms, settings.words, _not_theirs(tx, agent_id, to_space_id, kept, readers))
    if quoted is None:
        return None
    name, space_id, many = quoted
    return FoundWords(PrivateWords(name, many, remembered=True), SpaceId(space_id), to_space_id or SpaceId(""))


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
    said_in = {row[0] for source in memory.sources if (row := tx.one(_said, id=source)) is not None}
    return any(each == to_space_id or _may_know(tx, each, readers) for each in said_in)


_LEAST_WORDS: Final = 4
"""A shorter memory cannot be recognized by its words alone."""


def _quoted_memory(
    tx: Tx, forms: Sequence[str], length: int, closed: Sequence[MemoryItem]
) -> tuple[str, str, int] | None:
    """The first of these memories that is repeated: a short one as a whole, a longer one in part."""
    written = [said(form)[:MOST_WORDS] for form in dict.fromkeys(forms)] if closed else []
    lettered = Lettered(written)
    for memory in closed:
        words = said(memory.text)
        many = min(length, len(words))
        if many < _LEAST_WORDS:
            continue
        held = set(grams(words, many))
        longest = max((_longest(form, held, many) for form in written), default=0)
        longest = longest or (many if quoted_grams(words, many, set(), lettered) else 0)
        if longest:
            row = tx.one(_space, id=memory.space_id)
            return row[0] if row else "", memory.space_id, longest
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
    select(
        spaces.c.name,
        crossings.c.from_space_id,
        crossings.c.to_space_id,
        crossings.c.cycle_id,
        crossings.c.words,
        crossings.c.created_at,
    )
    .select_from(crossings.outerjoin(spaces, spaces.c.id == crossings.c.from_space_id))
    .where(crossings.c.agent_id == bindparam("agent_id"))
    .order_by(crossings.c.number)
)


def crossings_of(tx: Tx, agent_id: AgentId) -> list[Crossing]:
    """The messages and calls of this agent that were stopped, in order."""
    return [Crossing(row[0] or "", *row[1:]) for row in tx.all(_crossings, agent_id=agent_id)]


_crossings_before = statement(
    select(
        crossings.c.number,
        spaces.c.name,
        crossings.c.from_space_id,
        crossings.c.to_space_id,
        crossings.c.cycle_id,
        crossings.c.words,
        crossings.c.created_at,
    )
    .select_from(crossings.outerjoin(spaces, spaces.c.id == crossings.c.from_space_id))
    .where(crossings.c.agent_id == bindparam("agent_id"), crossings.c.number < bindparam("before"))
    .order_by(crossings.c.number.desc())
    .limit(bindparam("limit"))
)


def crossings_before(tx: Tx, agent_id: AgentId, before: int, *, limit: int) -> list[tuple[int, Crossing]]:
    """The newest of them before that number, each with its own, newest first."""
    rows = tx.all(_crossings_before, agent_id=agent_id, before=before, limit=limit)
    return [(row[0], Crossing(row[1] or "", *row[2:])) for row in rows]


def _private_of(tx: Tx, agent_id: AgentId) -> set[str]:
    return set(values(tx, _private_spaces, agent_id=agent_id))


def _settings(tx: Tx, agent_id: AgentId) -> GuardSettings:
    row = tx.one(_definition, agent_id=agent_id)
    given = json.loads(row[0]).get("private_guard") if row else None
    return GuardSettings.model_validate(given or {})


_ASKED: Final = 20
"""Among how many readers the one with the fewest spaces is looked up; for how many spaces the members are."""
_spaces_of = statement(select(memberships.c.space_id).where(memberships.c.entity_id == bindparam("entity_id")))
_how_many = statement(
    select(func.count()).select_from(memberships).where(memberships.c.entity_id == bindparam("entity_id"))
)
_members_of = statement(select(memberships.c.entity_id).where(memberships.c.space_id == bindparam("space_id")))
_theirs = select(memberships.c.space_id).where(memberships.c.entity_id == bindparam("agent_id"))
_sharing_a_space = statement(select(memberships.c.entity_id).where(memberships.c.space_id.in_(_theirs)).distinct())
_space = statement(select(spaces.c.name, spaces.c.private).where(spaces.c.id == bindparam("id")))


def _members(tx: Tx, space_id: str) -> set[str]:
    return set(values(tx, _members_of, space_id=space_id))


def _neighbours(tx: Tx, agent_id: AgentId) -> set[str]:
    return set(values(tx, _sharing_a_space, agent_id=agent_id))


@dataclass(frozen=True, slots=True)
class _Text:
    """A text, and the space in which it was said."""

    space_id: str
    text: str


class _Form(NamedTuple):
    """The words of something that would be shown."""

    spelled: tuple[str, ...]
    """As they are spelled, which is what the index has."""
    said: tuple[str, ...]
    """As they look, where letters of other scripts are substituted."""


def _forms(texts: Iterable[str]) -> list[_Form]:
    """The texts that have words and differ in them: most messages have no markup, and hide nothing."""
    forms = (_Form(tuple(spelled(text)[:MOST_WORDS]), tuple(said(text)[:MOST_WORDS])) for text in dict.fromkeys(texts))
    return [form for form in dict.fromkeys(forms) if form.said]


@dataclass(frozen=True, slots=True)
class SearchedAhead:
    """The passages that may hold words of a message, found in the index before the transaction that sends it."""

    length: int
    """How many words in a row were searched for."""
    settled: int
    """The newest passage that the index had."""
    numbers: Mapping[_Form, Sequence[int]]
    """Of passages, by the words of the message."""

    def serves(self, length: int, life: Extent) -> bool:
        """Whether what is newer can be compared word for word."""
        return self.length == length and life.passages - self.settled <= settling.MOST_UNSETTLED


def search_ahead(tx: Tx, agent_id: AgentId, what: Draft) -> SearchedAhead:
    """Search the index for the words of a message. It takes longer than all the rest, and no writer waits for it."""
    length, life = _settings(tx, agent_id).words, settling.extent(tx, agent_id)
    forms = _forms(forms_of_message(what))
    return SearchedAhead(length, life.settled, {form: _indexed(tx, agent_id, form, length, life) for form in forms})


class _Search:
    """Searches for the origin of the words of one message."""

    def __init__(
        self,
        tx: Tx,
        agent_id: AgentId,
        cycle_id: CycleId,
        length: int,
        events: Sequence[Event],
        ahead: SearchedAhead | None,
    ) -> None:
        self._ahead = ahead
        self.tx = tx
        self.length = length
        self._agent_id = agent_id
        self._cycle_id = cycle_id
        self._events = events

    def sources(self, forms: Iterable[_Form], closed: Container[str]) -> Iterator[_Text]:
        """Texts that may hold runs of their words: of this cycle, of the window, the newest, and all others."""
        for event in self._events:
            if event.space_id is not None:
                yield _Text(event.space_id, _with_names(event.text, event.files))
        for done in effects.of_cycle(self.tx, self._cycle_id):
            message_id = effects.message_in(done.result) if done.changes else None
            if message_id is not None and (row := self.tx.one(_said, id=message_id)) is not None:
                yield _Text(row[0], row[1])
        # Once for all of them: an agent that serves many people has a private space with each.
        for (encoded,) in self.tx.all(_read_in_window, agent_id=self._agent_id, **_MARKS):
            yield from _read_texts(self.tx, encoded, closed)
        # Words that are run together are in no index: the last passages are always compared, and with them everything
        # that the index does not have yet.
        life = settling.extent(self.tx, self._agent_id)
        ahead = self._ahead if self._ahead is not None and self._ahead.serves(self.length, life) else None
        unindexed = life.passages - (life.settled if ahead is None else min(ahead.settled, life.settled))
        newest = max(NEWEST, min(unindexed, settling.MOST_UNSETTLED))
        for space_id, text, attached in self.tx.all(_newest, agent_id=self._agent_id, limit=newest):
            yield _Text(space_id, _with_names(text or "", attachments_from(attached)))
        for form in forms:
            numbers = None if ahead is None else ahead.numbers.get(form)
            if numbers is None:
                numbers = _indexed(self.tx, self._agent_id, form, self.length, life)
            for at in range(0, len(numbers), _AT_ONCE):
                some = numbers[at : at + _AT_ONCE]
                for space_id, text in self.tx.all(_texts, agent_id=self._agent_id, **_spelled("n", some)):
                    yield _Text(space_id, text or "")


def _indexed(tx: Tx, agent_id: AgentId, form: _Form, length: int, life: Extent) -> list[int]:
    """Passages that hold all the terms of some run: no quotation is missed, although long texts are split."""
    runs = {run for words in {form.spelled, form.said} for run in _terms_of_runs(words, length)}
    shared: defaultdict[int, int] = defaultdict(int)
    for common in _common(SettledTerms(tx, agent_id, life), runs) if runs else ():
        for number in common.tolist():
            shared[number] += 1
    return sorted(shared, key=lambda number: (-shared[number], -number))[:MOST_TEXTS]


def _common(settled: SettledTerms, runs: Iterable[frozenset[str]]) -> Iterator[NDArray[int64]]:
    """The passages that hold all terms of each run, in themselves or in a neighbour."""
    index = _Occurrences(settled, sorted({term for run in runs for term in run}))
    # The rarest terms first: few runs have a passage that holds these, and only for those the others are read.
    possible = {index.rarest_first(run) for run in runs if run}
    for count in _RAREST:
        index.read({term for terms in possible for term in terms[:count]})
        possible = {terms for terms in possible if index.holding(terms[:count]).size}
    for terms in possible:
        yield index.holding(terms)


_RAREST: Final = (2, 3, 4, None)
"""How many terms of a run, the rarest, are looked at one after the other, as long as a passage holds them; then all."""


class _Occurrences:
    """In which passages the terms of one message occur, read as far as they are needed."""

    def __init__(self, settled: SettledTerms, terms: Sequence[str]) -> None:
        self._settled = settled
        self._sizes = settled.estimate(terms)
        self._ranks = {term: at for at, term in enumerate(sorted(terms, key=self._sizes.__getitem__))}
        self._read: set[str] = set()
        self._numbers: dict[str, NDArray[int64]] = {}
        self._holding: dict[tuple[str, ...], NDArray[int64]] = {}
        self._room = MOST_POSTINGS

    def rarest_first(self, terms: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(terms, key=self._ranks.__getitem__))

    def read(self, terms: Iterable[str]) -> None:
        """Read the passages of these terms, except of those that are too common to decide."""
        chosen: list[str] = []
        for term in self.rarest_first(set(terms) - self._read):
            self._read.add(term)
            if self._sizes[term] <= self._room:
                self._room -= self._sizes[term]
                chosen.append(term)
        self._numbers |= self._settled.passages(chosen)
        self._holding.clear()

    def holding(self, terms: tuple[str, ...]) -> NDArray[int64]:
        """The passages that hold all of these terms that were read; empty if none was."""
        known = self._holding.get(terms)
        if known is None:
            known = self._holding[terms] = self._hold(terms)
        return known

    def _hold(self, terms: Iterable[str]) -> NDArray[int64]:
        import numpy

        read = [self._numbers[term] for term in terms if term in self._numbers]
        common = read[0] if read else numpy.empty(0, numpy.int64)
        for numbers in read[1:]:
            if not common.size:
                break
            common = _near(common, numbers)
        return common


def _near(some: NDArray[int64], others: NDArray[int64]) -> NDArray[int64]:
    """Those of these passages that are, or are beside, one of the others; both ascending.

    A long text is several passages, and a run may cross the end of one.
    """
    if not others.size:
        return others
    at = others.searchsorted(some - 1)
    at[at == others.size] = others.size - 1
    return some[abs(others[at] - some) <= 1]


def _terms_of_runs(words: Sequence[str], length: int) -> Iterator[frozenset[str]]:
    """The terms of every run of `length` words."""
    if all(map(str.isascii, words)):
        terms = {word: terms_of_word(word) for word in set(words)}
        for at in range(len(words) - length + 1):
            yield frozenset(chain.from_iterable(map(terms.__getitem__, words[at : at + length])))
    else:
        # Letters that are written without spaces have terms across what counts as words.
        for gram in grams(words, length):
            yield frozenset(count_terms(spelt(gram)))


_MARKS: Final = {"page": "%spaceId: %", "file": "%[file:%", "message": "%[message:%"}
"""In results that show a page of a space, a file, or a message by its pointer."""
_said = statement(select(messages.c.space_id, messages.c.text).where(messages.c.id == bindparam("id")))
_read_in_window = statement(
    select(log.c.message)
    .join(minds, minds.c.agent_id == log.c.agent_id)
    .where(
        log.c.agent_id == bindparam("agent_id"),
        log.c.seq >= minds.c.window_from,
        log.c.kind == "results",
        or_(*(log.c.message.like(bindparam(name)) for name in _MARKS)),
    )
)
_newest = statement(
    select(passages.c.space_id, func.coalesce(messages.c.text, text_of_passage, literal("")), messages.c.files)
    .select_from(passages.outerjoin(messages, messages.c.id == passages.c.message_id))
    .where(passages.c.agent_id == bindparam("agent_id"), passages.c.kind.in_(("heard", "said")))
    .order_by(passages.c.number.desc())
    .limit(bindparam("limit"))
)
_NUMBERS = [bindparam(f"n{at}", type_=passages.c.number.type) for at in range(_AT_ONCE)]
_texts = statement(
    # Whole messages: a run of words may cross the end of a passage.
    select(passages.c.space_id, func.coalesce(messages.c.text, text_of_passage, literal("")))
    .select_from(passages.outerjoin(messages, messages.c.id == passages.c.message_id))
    .where(
        passages.c.agent_id == bindparam("agent_id"),
        passages.c.number.in_(_NUMBERS),
        passages.c.kind.in_(("heard", "said")),
    )
)


def _spelled(letter: str, values: Sequence[Any]) -> dict[str, Any]:
    return {f"{letter}{at}": values[at] if at < len(values) else None for at in range(_AT_ONCE)}


_MARK: Final = re.compile(r"spaceId: ([^\]\s]+)\]")
_POINTER: Final = re.compile(r"^\[(file|message):([^\]\s:]+)(?::[\d-]+)?: characters ", re.MULTILINE)
"""The header of what `read_entry` shows."""
_space_of_file = statement(
    select(messages.c.space_id).join(files, files.c.message_id == messages.c.id).where(files.c.id == bindparam("id"))
)
_space_of_message = statement(select(messages.c.space_id).where(messages.c.id == bindparam("id")))


def _read_texts(tx: Tx, encoded: str, closed: Container[str]) -> Iterator[_Text]:
    """The results in a log entry that are pages, messages or files of these spaces."""
    for part in json.loads(encoded).get("parts", ()):
        content = part.get("content")
        if isinstance(content, str):
            shown = dict.fromkeys([*_MARK.findall(content), *_spaces_of_pointers(tx, content)])
            yield from (_Text(space_id, content) for space_id in shown if space_id in closed)


def _spaces_of_pointers(tx: Tx, content: str) -> Iterator[str]:
    for kind, id in _POINTER.findall(content):
        yield from values(tx, _space_of_file if kind == "file" else _space_of_message, id=id)


def _with_names(text: str, attached: Sequence[Attachment]) -> str:
    """What an agent reads of a message: its text, and the names of its files."""
    return "\n".join([text, *(each.name for each in attached)])


def _worst(
    search: _Search, written: Sequence[str], to_space_id: str, closed: set[str], readers: set[str]
) -> tuple[str, str, int] | None:
    """The longest run of words from a private space that the readers do not know: the space's name, id, the length."""
    forms = _forms(written)
    if all(sum(map(len, form.said)) < LETTERS and len(form.said) < search.length for form in forms):
        return None
    held, known = _whereabouts(search, forms, to_space_id, closed, readers)
    # A run that was found by its letters alone has at least this length.
    runs = [
        (max(_longest(form.said, left, search.length), search.length), space)
        for space, grams_there in held.items()
        if (left := grams_there - known)
        for form in forms
    ]
    longest, space_id = max(runs, default=(0, ""))
    if not longest:
        return None
    row = search.tx.one(_space, id=space_id)
    return row[0] if row else "", space_id, longest


def _whereabouts(
    search: _Search,
    forms: Sequence[_Form],
    to_space_id: str,
    closed: set[str],
    readers: set[str],
) -> tuple[dict[str, set[Gram]], set[Gram]]:
    """Which runs were said in each private space, and which the readers may know."""
    held: defaultdict[str, set[Gram]] = defaultdict(set)
    known: set[Gram] = set()
    elsewhere: list[_Text] = []
    wanted = {gram for form in forms for gram in grams(form.said, search.length)}
    written = Lettered(form.said for form in forms)
    for source in search.sources(forms, closed):
        if source.space_id not in closed:
            elsewhere.append(source)
        elif there := quoted_grams(said(source.text), search.length, wanted, written):
            held[source.space_id] |= there
    # Most messages repeat nothing private: then it does not matter what their readers know.
    free: dict[str, bool] = {to_space_id: True, "": False}
    for source in elsewhere if held else ():
        if free.setdefault(source.space_id, _may_know(search.tx, source.space_id, readers)):
            known |= quoted_grams(said(source.text), search.length, wanted, written)
    return held, known


def _may_know(tx: Tx, space_id: str, readers: set[str]) -> bool:
    row = tx.one(_space, id=space_id)
    return row is not None and (not row[1] or readers <= _members(tx, space_id))


def _longest(form: Sequence[str], held: set[Gram], length: int) -> int:
    """How many words in a row of the message consist of these runs."""
    longest = row = 0
    for gram in grams(form, length):
        row = row + 1 if gram in held else 0
        longest = max(longest, row)
    return longest + length - 1 if longest else 0
