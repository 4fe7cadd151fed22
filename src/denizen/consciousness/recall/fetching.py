"""Fetches passages with access control: the only way to read them. The SQL statement itself leaves out the others.

A passage from a private space is for that space alone: it is fetched only if the current cycle is in no other space. A
space that is deleted or unknown counts as private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sqlalchemy import Integer, bindparam, case, cast, exists, func, or_, select, union_all

from denizen.consciousness.recall.cues import Period
from denizen.consciousness.recall.passages import PASSAGE_CHARACTERS
from denizen.consciousness.recall.ranking import PassagePosition, reaches
from denizen.ids import AgentId
from denizen.storage.database import Params, Row, Tx, columns, statement, values
from denizen.storage.schema import entities, messages, passages, spaces

MOST_OF_A_PERIOD: Final = 200
"""How many passages are candidates only because the question names their time."""
MOST_OF_A_SPACE: Final = 5_000
"""Among how many passages of the current space, the newest, more candidates are looked for."""
_AT_ONCE: Final = 60
_STRETCHES: Final = 15
_LATEST: Final = 2**62


@dataclass(frozen=True, slots=True)
class Filter:
    """The exact conditions of a search."""

    period: Period | None = None
    speakers: frozenset[str] | None = None
    """Ids of entities, and names of speakers that are not entities; None: anyone."""
    space_id: str | None = None
    before_cycle: int | None = None
    """Only cycles before this one, such as those that have left the window."""


@dataclass(frozen=True, slots=True)
class RecalledPassage:
    """A passage, or a note, that was found."""

    number: int
    """The number of the passage; 0 for a note."""
    cycle: int
    """The number of its cycle; 0 for a note."""
    at: int
    kind: str
    """heard, said, did, summary, note"""
    space_id: str
    space: str
    """The name of the space; empty if it belongs to none."""
    who: str
    """The speaker; empty for the agent itself."""
    text: str
    pointer: str
    """The argument of `read_entry` that shows the whole text; empty if this is all."""
    score: float
    handle: str | None = None
    """The id of the entity that said it."""
    from_file: bool = False
    """Whether it is the text of a file: `who` names that and the page."""


_open = spaces.alias()
_NUMBERS = [f"n{at}" for at in range(_AT_ONCE)]
_listed = passages.c.number.in_([bindparam(name, type_=passages.c.number.type) for name in _NUMBERS])
_public = or_(
    passages.c.space_id == "",
    passages.c.space_id == bindparam("alone"),
    exists().where(_open.c.id == passages.c.space_id, _open.c.private == 0),
)
_asked_for = (
    passages.c.agent_id == bindparam("agent_id"),
    passages.c.kind != "forgotten",
    or_(bindparam("space", type_=passages.c.space_id.type) == "", passages.c.space_id == bindparam("space")),
    # Sums, so that the planner does not use these conditions for an index: the other conditions are better.
    passages.c.at + 0 >= bindparam("first"),
    passages.c.at + 0 < bindparam("end"),
    passages.c.cycle + 0 < bindparam("before"),
)
_seen = (*_asked_for, _public)
_place = (
    passages.c.number,
    passages.c.space_id,
    passages.c.place,
    case((passages.c.kind.in_(("heard", "said")), passages.c.characters), else_=0),
    func.coalesce(passages.c.speaker_id, passages.c.speaker, ""),
    passages.c.own_words,
    passages.c.at,
)
_places = statement(select(*_place).where(*_seen, _listed))
_together = union_all(
    *(
        select(*_place).where(
            # Near a passage that may be seen, in the same space: so this one may be seen as well.
            *_asked_for,
            passages.c.space_id == bindparam(f"space{at}"),
            passages.c.place >= bindparam(f"low{at}"),
            passages.c.place <= bindparam(f"high{at}"),
        )
        for at in range(_STRETCHES)
    )
)
_stretches = statement(_together.limit(bindparam("limit")))
_of_period = statement(
    select(*_place)
    .where(*_seen, passages.c.at >= bindparam("since"), passages.c.at < bindparam("until"))
    .order_by(passages.c.at.desc(), passages.c.number.desc())
    .limit(MOST_OF_A_PERIOD)
)
_of_here = statement(
    select(passages.c.number)
    .where(*_seen, passages.c.space_id == bindparam("here"))
    .order_by(passages.c.place.desc())
    .limit(MOST_OF_A_SPACE)
)
_of_cycle = statement(
    select(passages.c.number)
    .where(*_seen, passages.c.cycle == bindparam("cycle"))
    .order_by(passages.c.number)
    .limit(bindparam("limit"))
)
said = case(
    (passages.c.message_id.is_(None), passages.c.text),
    else_=func.substr(messages.c.text, cast(passages.c.start + 1, Integer), cast(passages.c.characters, Integer)),
)
"""The text of a passage, which is its own or a part of its message's."""
_is_part = case(
    (passages.c.message_id.is_(None), (passages.c.start > 0) | (passages.c.characters > PASSAGE_CHARACTERS // 2)),
    else_=func.length(messages.c.text) > passages.c.characters,
)
_texts = statement(
    select(
        *columns(passages, "number, cycle, at, kind, space_id"),
        spaces.c.name,
        entities.c.name,
        entities.c.handle,
        *columns(passages, "speaker, message_id, event_id, file_id, page"),
        said,
        _is_part,
    )
    .select_from(
        passages.outerjoin(messages, messages.c.id == passages.c.message_id)
        .outerjoin(spaces, spaces.c.id == passages.c.space_id)
        .outerjoin(entities, entities.c.id == passages.c.speaker_id)
    )
    .where(*_seen, _listed)
)

_SAID: Final = 13
"""The column of the text."""

_as_place: Callable[[Row], PassagePosition] = partial(tuple.__new__, PassagePosition)  # pyright: ignore[reportUnknownMemberType]
"""Converts a row of `_place`. A question needs hundreds, and `Place._make` takes several times as long."""


class PassageAccess:
    """One question's access to the passages of one agent."""

    def __init__(self, tx: Tx, agent_id: AgentId, audience: Iterable[str], only: Filter) -> None:
        self._tx = tx
        self.looked_at = 0
        """How many rows were fetched."""
        spaces_here = set(audience)
        period = only.period or Period(0, _LATEST)
        self._seeing: dict[str, Params] = {
            "agent_id": agent_id,
            # No space has an empty id, and passages without a space are seen anyway.
            "alone": spaces_here.pop() if len(spaces_here) == 1 else "",
            "space": only.space_id or "",
            "first": period.first,
            "end": period.end,
            "before": only.before_cycle or _LATEST,
        }

    def places(self, numbers: Sequence[int]) -> list[PassagePosition]:
        """The places of these passages, in the order of `numbers`, without those that may not be seen."""
        found = {row[0]: _as_place(row) for some in _in_parts(numbers) for row in self._all(_places, **_spelled(some))}
        return [found[number] for number in numbers if number in found]

    def around(self, sources: Sequence[PassagePosition], limit: int) -> list[PassagePosition]:
        """The neighbours of the sources, and the sources themselves; not many more than `limit`."""
        stretches = [(space_id, *each) for space_id, some in reaches(sources).items() for each in some]
        found: list[PassagePosition] = []
        for at in range(0, len(stretches), _STRETCHES):
            wanted: dict[str, Params] = {}
            for slot, (space_id, low, high) in enumerate((stretches[at:] + _NOWHERE)[:_STRETCHES]):
                wanted |= {f"space{slot}": space_id, f"low{slot}": low, f"high{slot}": high}
            rows = self._all(_stretches, **wanted, limit=max(limit - len(found), 1))
            found.extend(map(_as_place, rows))
        return found

    def of_period(self, period: Period) -> list[PassagePosition]:
        """The newest passages of this time."""
        return [_as_place(row) for row in self._all(_of_period, since=period.first, until=period.end)]

    def of_space(self, space_id: str) -> list[int]:
        """The numbers of the newest passages of this space."""
        return values(self._tx, _of_here, **self._seeing, here=space_id)

    def of_cycle(self, cycle: int, limit: int) -> list[RecalledPassage]:
        """The passages of that cycle, in order: what was heard and said in it, and what the agent did."""
        numbers = [number for (number,) in self._all(_of_cycle, cycle=cycle, limit=limit)]
        return list(self.texts(numbers, dict.fromkeys(numbers, 0.0)))

    def texts(self, numbers: Sequence[int], scores: Mapping[int, float]) -> Iterator[RecalledPassage]:
        """The passages in the order of `numbers`, fetched lazily."""
        for some in _in_parts(numbers):
            rows = {row[0]: row for row in self._all(_texts, **_spelled(some))}
            for number in some:
                if number in rows and rows[number][_SAID]:
                    yield _found(rows[number], scores[number])

    def _all(self, fetching: Any, **params: Params) -> list[tuple[Any, ...]]:
        rows = self._tx.all(fetching, **self._seeing, **params)
        self.looked_at += len(rows)
        return rows


_NOWHERE: Final = [("", 1, 0)] * _STRETCHES


def _in_parts(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for at in range(0, len(numbers), _AT_ONCE):
        yield numbers[at : at + _AT_ONCE]


def _spelled(numbers: Sequence[int]) -> dict[str, int | None]:
    return {name: numbers[at] if at < len(numbers) else None for at, name in enumerate(_NUMBERS)}


def _found(row: tuple[Any, ...], score: float) -> RecalledPassage:
    number, cycle, at, kind, space_id, space, name, handle, speaker, message_id, event_id, *rest = row
    file_id, page, text, part = rest
    who = (name or speaker or "someone") if kind == "heard" else ""
    source = f"message:{message_id}" if message_id else f"event:{event_id}" if event_id else ""
    if file_id:
        source, part = f"file:{file_id}:{page}", True
    pointer, of_file = source if part else "", file_id is not None
    return RecalledPassage(number, cycle, at, kind, space_id, space or "", who, text, pointer, score, handle, of_file)
