"""Compares a message or a call that an agent is about to make with what it has heard in private spaces.

An index (`quotation_index`) finds the passages that may hold runs of its words; `privacy_guard` decides what follows.
Most of the work is done in a read before the transaction that sends; in the transaction only what is new is compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, cast

from sqlalchemy import bindparam, func, or_, select

from denizen.consciousness.recall import full_text, settling
from denizen.consciousness.recall.fetching import said as text_of_passage
from denizen.files.attaching import Attachment, attachments_from
from denizen.folding import hidden_letters
from denizen.ids import AgentId, CycleId
from denizen.inbox.events import Event
from denizen.inbox.outside import parsed
from denizen.spaces.markdown import render
from denizen.spaces.posting import Draft
from denizen.spaces.quotes import LETTERS, Gram, Lettered, grams, quoted_grams, said
from denizen.storage.database import Row, Statement, Tx, select_where, statement, value, values
from denizen.storage.schema import agents, files, log, messages, minds, passages, spaces
from denizen.tools import effects, quotation_index
from denizen.tools.settings import GuardSettings

MOST_WORDS: Final = 50_000
"""How many words of a text are checked: as many as the longest message can have."""
MOST_TEXTS: Final = 300
"""How many passages are compared with a message, those that share most with it first."""
NEWEST: Final = 40
"""How many of the passages that an agent heard or said last are compared with every message."""
_AT_ONCE: Final = 50
_definition = select_where(agents, "definition", "id")


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


def guard_settings(tx: Tx, agent_id: AgentId) -> GuardSettings:
    return _settings_in(value(tx, _definition, id=agent_id) or "{}")


@lru_cache(maxsize=64)
def _settings_in(definition: str) -> GuardSettings:
    return GuardSettings.model_validate(json.loads(definition).get("private_guard") or {})


def instructed_words(tx: Tx, agent_id: AgentId) -> tuple[str, ...]:
    """The words of the instructions that people have written for the agent."""
    return _instructed_in(value(tx, _definition, id=agent_id) or "{}")


@lru_cache(maxsize=64)
def _instructed_in(definition: str) -> tuple[str, ...]:
    return tuple(said(str(json.loads(definition).get("instructions") or "")))


@dataclass(frozen=True, slots=True)
class SpokenText:
    """The words of a text, and the space in which it was said."""

    space_id: str
    words: tuple[str, ...]


_SHORT: Final = 4_000
"""Longer texts are not kept: two passages have no more characters."""


@lru_cache(maxsize=256)
def _words_of(text: str) -> tuple[str, ...]:
    # The newest passages are compared with every message.
    return tuple(said(text))


def spoken(space_id: str, text: str) -> SpokenText:
    return SpokenText(space_id, _words_of(text) if len(text) <= _SHORT else tuple(said(text)))


@dataclass(frozen=True)
class WrittenText:
    """What would be shown, prepared for comparison. What only a comparison needs is made for the first one."""

    forms: tuple[str, ...]
    """Its texts, such as with markup and without."""
    length: int
    """How many words in a row are a quotation."""
    words: tuple[tuple[str, ...], ...]
    """The words of each form; most messages have no markup and hide nothing, so that there is only one."""

    @cached_property
    def runs(self) -> set[Gram]:
        return {gram for each in self.words for gram in grams(each, self.length)}

    @cached_property
    def lettered(self) -> Lettered:
        return Lettered(self.words)

    @property
    def is_short(self) -> bool:
        """Whether it has too few words and letters to quote anything."""
        return all(sum(map(len, words)) < LETTERS and len(words) < self.length for words in self.words)

    def quoted_in(self, words: Sequence[str]) -> set[Gram]:
        """The runs of words of this source that the text repeats."""
        return quoted_grams(words, self.length, self.runs, self.lettered)


def written_text(forms: Sequence[str], length: int) -> WrittenText:
    """Prepare the text in these forms."""
    words = dict.fromkeys(tuple(said(form)[:MOST_WORDS]) for form in dict.fromkeys(forms))
    return WrittenText(tuple(forms), length, tuple(each for each in words if each))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Which words of a text were said in private spaces, as of one transaction."""

    written: WrittenText
    to_space_id: str
    closed: frozenset[str]
    """The private spaces whose words may not be repeated there."""
    readers: frozenset[str]
    held: dict[str, set[Gram]] = field(default_factory=dict[str, set[Gram]])
    """The runs that were said in each of these spaces."""
    elsewhere: tuple[SpokenText, ...] = ()
    """Texts from other spaces that may hold the same runs."""
    passages: int = 0
    """The newest passage, and the newest entry of the log, that were compared."""
    entry: int = -1
    compared: frozenset[str] = frozenset()
    """The ids of the events and messages of this cycle that were compared."""

    def is_about(self, written: WrittenText, to_space_id: str, closed: set[str], readers: set[str]) -> bool:
        """Whether it can be continued: the same text for the same readers."""
        return (self.written, self.to_space_id, self.closed, self.readers) == (written, to_space_id, closed, readers)

    def with_new(self, tx: Tx, agent_id: AgentId, cycle_id: CycleId, events: Sequence[Event]) -> Comparison:
        """Compare the text with what is new since this comparison, and with everything if it has just begun."""
        sources = _Sources(tx, agent_id, self)
        held = {space_id: set(runs) for space_id, runs in self.held.items()}
        elsewhere = list(self.elsewhere)
        for source in sources.all(cycle_id, events):
            if source.space_id not in self.closed:
                elsewhere.append(source)
            elif there := self.written.quoted_in(source.words):
                held.setdefault(source.space_id, set()).update(there)
        if held != self.held:
            elsewhere += sources.with_words({word for runs in held.values() for run in runs for word in run})
        return Comparison(
            self.written,
            self.to_space_id,
            self.closed,
            self.readers,
            held,
            tuple(elsewhere),
            sources.newest_passage,
            sources.newest_entry,
            self.compared | sources.compared,
        )


class _Sources:
    """Reads the texts that may hold runs of the words of a text, except those that were compared with it before."""

    def __init__(self, tx: Tx, agent_id: AgentId, before: Comparison) -> None:
        self._tx = tx
        self._agent_id = agent_id
        self._before = before
        self.newest_passage = settling.extent(tx, agent_id).passages
        self.newest_entry = value(tx, _newest_entry, agent_id=agent_id) or 0
        self.compared: set[str] = set()

    def all(self, cycle_id: CycleId, events: Sequence[Event]) -> Iterator[SpokenText]:
        """Of this cycle, of the window, the newest passages, and those that the index names."""
        yield from self._of_cycle(cycle_id, events)
        # Once for all of them: an agent that serves many people has a private space with each.
        for encoded in values(self._tx, _read_in_window, agent_id=self._agent_id, after=self._before.entry, **_MARKS):
            yield from _read_texts(self._tx, encoded, self._before.closed)
        if self._before.entry >= 0:
            yield from self._newest_passages(_newest_private, self.newest_passage - self._before.passages)
            return
        # Words that are run together are in no index: the private ones of the last passages are always compared, and
        # with them those that the index does not have yet.
        written = self._before.written
        done = quotation_index.indexed(self._tx, self._agent_id, written.length)
        yield from self._newest_passages(_newest_private, max(NEWEST, self.newest_passage - done))
        hashes = {each for words in written.words for each in quotation_index.hashes_of(words, written.length)}
        shared = quotation_index.look_up(self._tx, self._agent_id, sorted(hashes) if done else ())
        yield from self._passages(sorted(shared, key=lambda number: (-shared[number], -number))[:MOST_TEXTS])

    def with_words(self, words: Collection[str]) -> Iterator[SpokenText]:
        """The newest passages, and those that have most of these words, of any space: readers may know them there."""
        yield from self._newest_passages(_newest, NEWEST)
        life = settling.extent(self._tx, self._agent_id)
        found = full_text.score(self._tx, self._agent_id, life, " ".join(sorted(words)))
        best = sorted(zip(found.scores.tolist(), found.numbers.tolist(), strict=True), reverse=True)[:MOST_TEXTS]
        yield from self._passages([number for _, number in best])

    def _of_cycle(self, cycle_id: CycleId, events: Sequence[Event]) -> Iterator[SpokenText]:
        for event in events:
            if event.space_id is not None and event.id not in self._before.compared:
                self.compared.add(event.id)
                yield spoken(event.space_id, _with_names(event.text, event.files))
        for done in effects.of_cycle(self._tx, cycle_id):
            message_id = effects.message_in(done.result) if done.changes else None
            if message_id is None or message_id in self._before.compared:
                continue
            self.compared.add(message_id)
            if (row := self._tx.one(SPACE_AND_TEXT, id=message_id)) is not None:
                yield spoken(*row)

    def _newest_passages(self, which: Statement, many: int) -> Iterator[SpokenText]:
        if many > 0:
            # One more, because a run of words may cross the end of a passage.
            limit = min(many, settling.MOST_UNSETTLED) + 1
            rows = self._tx.all(which, agent_id=self._agent_id, limit=limit)
            yield from _joined(rows[::-1])

    def _passages(self, numbers: Sequence[int]) -> Iterator[SpokenText]:
        rows = {row[0]: row for row in self._texts(numbers)}
        before = [number - 1 for number, (_, _, start, *_) in rows.items() if start and number - 1 not in rows]
        rows |= {row[0]: row for row in self._texts(before)}
        yield from _joined([rows[number] for number in sorted(rows)])

    def _texts(self, numbers: Sequence[int]) -> Iterator[Row]:
        for at in range(0, len(numbers), _AT_ONCE):
            named = {f"n{nth}": None for nth in range(_AT_ONCE)} | {
                f"n{nth}": number for nth, number in enumerate(numbers[at : at + _AT_ONCE])
            }
            yield from self._tx.all(_texts, agent_id=self._agent_id, **named)


def _joined(rows: Sequence[Row]) -> Iterator[SpokenText]:
    """The texts of these passages, in order; one that continues another together with that one."""
    last, before = 0, ""
    for number, space_id, start, text, attached in rows:
        whole = (before if start and number == last + 1 else "") + (text or "")
        yield spoken(space_id, whole if start else _with_names(whole, attachments_from(attached)))
        last, before = number, text or ""


_MARKS: Final = {"page": "%spaceId: %", "file": "%[file:%", "message": "%[message:%"}
"""In results that show a page of a space, a file, or a message by its pointer."""
SPACE_AND_TEXT = select_where(messages, "space_id, text", "id")
_newest_entry = statement(select(func.max(log.c.seq)).where(log.c.agent_id == bindparam("agent_id")))
_read_in_window = statement(
    select(log.c.message)
    .join(minds, minds.c.agent_id == log.c.agent_id)
    .where(
        log.c.agent_id == bindparam("agent_id"),
        log.c.seq >= minds.c.window_from,
        log.c.seq > bindparam("after"),
        log.c.kind == "results",
        or_(*(log.c.message.like(bindparam(name)) for name in _MARKS)),
    )
)
_heard_or_said = (passages.c.agent_id == bindparam("agent_id"), passages.c.kind.in_(("heard", "said")))
_of_passage = (
    select(passages.c.number, passages.c.space_id, passages.c.start, text_of_passage, messages.c.files)
    .select_from(passages.outerjoin(messages, messages.c.id == passages.c.message_id))
    .where(*_heard_or_said)
)
_newest = statement(_of_passage.order_by(passages.c.number.desc()).limit(bindparam("limit")))
_before_newest = (
    select(passages.c.number)
    .where(*_heard_or_said)
    .order_by(passages.c.number.desc())
    .limit(1)
    .offset(bindparam("limit"))
    .scalar_subquery()
)
_newest_private = statement(
    _of_passage.join(spaces, spaces.c.id == passages.c.space_id)
    .where(passages.c.number > func.coalesce(_before_newest, 0), spaces.c.private == 1)
    .order_by(passages.c.number.desc())
)
_texts = statement(
    _of_passage.where(
        passages.c.number.in_([bindparam(f"n{at}", type_=passages.c.number.type) for at in range(_AT_ONCE)])
    )
)


_MARK: Final = re.compile(r"spaceId: ([^\]\s]+)\]")
_POINTER: Final = re.compile(r"^\[(file|message):([^\]\s:]+)(?::[\d-]+)?: characters ", re.MULTILINE)
"""The header of what `read_entry` shows."""
_space_of_file = statement(
    select(messages.c.space_id).join(files, files.c.message_id == messages.c.id).where(files.c.id == bindparam("id"))
)
_space_of_message = select_where(messages, "space_id", "id")


def _read_texts(tx: Tx, encoded: str, closed: Container[str]) -> Iterator[SpokenText]:
    """The results in a log entry that are pages, messages or files of these spaces."""
    for part in json.loads(encoded).get("parts", ()):
        content = part.get("content")
        if isinstance(content, str):
            shown = dict.fromkeys([*_MARK.findall(content), *_spaces_of_pointers(tx, content)])
            yield from (spoken(space_id, content) for space_id in shown if space_id in closed)


def _spaces_of_pointers(tx: Tx, content: str) -> Iterator[str]:
    for kind, id in _POINTER.findall(content):
        yield from values(tx, _space_of_file if kind == "file" else _space_of_message, id=id)


def _with_names(text: str, attached: Sequence[Attachment]) -> str:
    """What an agent reads of a message: its text, and the names of its files."""
    return "\n".join([text, *(each.name for each in attached)])


def longest_run(form: Sequence[str], held: set[Gram], length: int) -> int:
    """How many words in a row of the message consist of these runs."""
    longest = row = 0
    for gram in grams(form, length):
        row = row + 1 if gram in held else 0
        longest = max(longest, row)
    return longest + length - 1 if longest else 0
