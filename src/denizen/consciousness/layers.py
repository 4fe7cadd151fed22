"""The layers, a summary of the cycles that have left the window: a line for each of the newest, then groups of ten, of
a hundred, of a thousand, and one for all the rest. Pure: no clock, no storage, no model.

A group is summarized by its digest: counts, and the most significant lines of its own cycles. Digests are merged, never
their text, and the most significant lines of all are among those of each part: the digest of ten groups is exactly the
digest of their hundred cycles. However long the history, the text has the same size.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nlargest
from typing import Any, Final, Literal, NamedTuple

from denizen.clock import Instant, moment, zone_or_utc
from denizen.consciousness.line_weights import line_weight
from denizen.consciousness.summary import is_derived
from denizen.inbox.format import kept_speaker, one_line, plain_name, quoted_name

LINES_HEADER: Final = "[EARLIER CYCLES — self-summaries]"
GROUP_HEADER: Final = "[COMPACTED MEMORY — cycles {first}–{last}]"

FEWEST: Final = 10
"""Fewer lines, or groups of a level, are not worth a level of their own: the next one takes ten at once."""
MOST_GROUPS: Final = 12
MOST_LINES: Final = 200
TELLING: Final = 24
"""How many lines a digest keeps."""
NEIGHBOURS: Final = 100
"""How many cycles before a group are looked at to see what is new in it."""
_NOVELTY: Final = 80
"""What a line is worth that has only words of its own."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_REPETITION: Final = 60
"""What a line loses if all its words are in a line that is shown."""
TELLING_CHARACTERS: Final = 240
MOST_COUNTED: Final = 100
"""How many people, places and tools a digest counts one by one; the rest are counted together."""
_NAME_CHARACTERS: Final = 40
_SHORTEST_LINE: Final = 60


# Assigning cycles to levels


class Segment(NamedTuple):
    """Cycles that are summarized together. Level 0: one by one; 1: ten; 2: a hundred; the topmost: all older ones."""

    level: int
    first: int
    last: int


def segments(last: int, lines: int, groups: int = 0, levels: int = 0) -> list[Segment]:
    """The cycles from 1 to `last`, each once, oldest first: at most `lines` lines, and `groups` groups of each level.

    As `last` grows, a cycle only ever moves to a higher level. With groups, there are at least `FEWEST` of each.
    """
    edge = _edge(last, lines, 1) if lines else last
    found = [Segment(0, number, number) for number in range(edge + 1, last + 1)]
    for level in range(1, levels + 1):
        size = 10**level
        start = _edge(edge, groups, size)
        found[:0] = [Segment(level, each + 1, each + size) for each in range(start, edge, size)]
        edge = start
    return [Segment(levels + 1, 1, edge), *found] if edge > 0 else found


def _edge(last: int, count: int, size: int) -> int:
    """The last cycle of the next level, in whole groups of its own, so that this level has at most `count`."""
    beyond = max(last - count * size, 0)
    return -(-beyond // (10 * size)) * 10 * size


def pieces(last: int) -> list[tuple[int, int]]:
    """The cycles from 1 to `last` in as few groups as possible, each by its level and its first cycle."""
    found: list[tuple[int, int]] = []
    level, done = len(str(last)) - 1, 0
    while done < last:
        if done + 10**level <= last:
            found.append((level, done + 1))
            done += 10**level
        else:
            level -= 1
    return found


# Size


@dataclass(frozen=True, slots=True)
class Shape:
    """How much is shown of the cycles before the window."""

    lines: int
    line_characters: int
    groups: int
    """For each level."""
    levels: int
    group_characters: int
    rest_characters: int
    """For the digest of everything older."""

    def segments(self, last: int) -> list[Segment]:
        return segments(last, self.lines, self.groups, self.levels)

    def most_characters(self, last: int) -> int:
        """The maximum length of the text."""
        return _FRAME + sum(self.characters(each) + 2 for each in self.segments(last))

    def characters(self, segment: Segment) -> int:
        """The room of this part. What it does not need, other parts may use."""
        if segment.level == 0:
            return self.line_characters
        return self.group_characters if segment.level <= self.levels else self.rest_characters


_FRAME: Final = len(LINES_HEADER) + 2
_GROUPS_SHARE: Final = 0.6
_SIZES: Final = ((3, 1_100, 400), (3, 700, 320), (2, 700, 320), (2, 450, 240), (1, 450, 240))
"""Levels, characters of a group and of a line: the first that fits is used."""


def shape(characters: int, *, grouped: bool = True) -> Shape:
    """The shape of a text of at most this many characters, for any number of cycles; at least one digest."""
    room = characters - _FRAME
    for levels, group, line in _SIZES if grouped else ():
        groups = min(int(room * _GROUPS_SHARE) // (levels * (group + 2)), MOST_GROUPS)
        if groups >= FEWEST:
            left = room - (levels * groups + 1) * (group + 2)
            return Shape(min(left // (line + 2), MOST_LINES), line, groups, levels, group, group)
    line, rest = (400, 1_100) if room >= 10_000 else (240, 700)
    lines = (room - rest - 2) // (line + 2)
    if lines < FEWEST:
        return Shape(0, line, 0, 0, 0, min(max(room - 2, 0), 2_200))
    return Shape(min(lines, MOST_LINES), line, 0, 0, 0, rest)


# One cycle

NoteKind = Literal["decision", "promise", "question", "fact", "person", "done"]
RECEIPT: Final = "also"
"""The kind of the note that lists what the other notes of a cycle leave out."""
_WORTH: Final = {"decision": 30, "promise": 30, "question": 20, "fact": 15, "person": 10, "done": 5}
"""What a note is worth by its kind, besides what its text holds."""


class Note(NamedTuple):
    """One thing that a utility model wrote of a cycle."""

    kind: NoteKind | Literal["also"]
    text: str


@dataclass(frozen=True, slots=True)
class LayerCycle:
    """One cycle, in the form for the layers."""

    number: int
    at: int
    summary: str
    failed: bool = False
    people: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names of the people and agents it heard, by id."""
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    effects: Mapping[str, int] = field(default_factory=dict[str, int])
    """How often each tool changed something."""
    notes: Sequence[Note] = ()
    """What a utility model wrote of it; instead of the summary, unless there is only a receipt."""

    @property
    def texts(self) -> list[str]:
        """What is told of the cycle, in parts that can be shown one by one."""
        written = [f"{each.kind.capitalize()}: {each.text}" for each in self.notes]
        return written if any(each.kind != RECEIPT for each in self.notes) else [self.summary, *written]


def line(lived: LayerCycle, zone: str, characters: int, part: str | None = None) -> str:
    """The cycle on one line, or only this part of its texts; if it is too long, the text is cut, so that what was done
    stays listed.
    """
    texts = lived.texts if part is None else [part]
    text = texts[0] if len(texts) == 1 else " ".join(_sentence(each) for each in texts)
    where = [quoted_name(name) for name in lived.places.values()][:2]
    who = [kept_speaker(name) for name in lived.people.values()]
    who = [*who[:2], f"{len(who) - 2} more"] if len(who) > 3 else who
    about = ", ".join([_day(lived.at, zone), *where, *who])
    head = f"Cycle {lived.number} ({_cut(about, characters // 3)}): "
    done = _cut(_effects(lived.effects), characters // 3)
    tail = f" [{done}]" if done else ""
    return head + _cut(one_line(text), characters - len(head) - len(tail)) + tail


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _effects(counts: Mapping[str, int]) -> str:
    return ", ".join(_times(plain_name(tool), count) for tool, count in counts.items())


def _times(name: str, count: int) -> str:
    return name if count == 1 else f"{name} ×{count}"


def _cut(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    return text[: characters - 1].rstrip() + "…" if characters > 0 else ""


def _day(at: int, zone: str) -> str:
    day: datetime = moment(Instant(at)).astimezone(zone_or_utc(zone))
    return f"{day:%Y-%m-%d}"


def novelties(lived: Sequence[LayerCycle], earlier: Sequence[str]) -> list[float]:
    """For each cycle, the share of its words that are in no other of these summaries, nor in `earlier` ones.

    Small talk repeats itself; what was said once has words of its own.
    """
    words = [_words(" ".join(each.texts)) for each in lived]
    seen = Counter(word for each in (*words, *map(_words, earlier)) for word in each)
    return [sum(seen[word] == 1 for word in each) / len(each) if each else 0.0 for each in words]


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.casefold()) if len(word) > 2}


def weight(lived: LayerCycle, novelty: float = 0.0) -> int:
    """How significant a cycle is: what its own words hold, what is new in them, what it did besides talking, whom it
    was with. Not how long it is: a short decision outweighs a long chat.
    """
    known = (*lived.people.values(), *lived.places.values())
    words = 0 if is_derived(lived.summary) else 20 + line_weight(lived.summary, known) + int(_NOVELTY * novelty)
    return words + _weight_of_deeds(lived)


def _note_weight(note: Note, lived: LayerCycle, novelty: float) -> int:
    """How significant a note is. A receipt is a list of names and numbers: it only counts as new."""
    known = (*lived.people.values(), *lived.places.values())
    holds = 0 if note.kind == RECEIPT else _WORTH[note.kind] + line_weight(note.text, known)
    return 20 + holds + int(_NOVELTY * novelty) + _weight_of_deeds(lived)


def _weight_of_deeds(lived: LayerCycle) -> int:
    other = [tool for tool in lived.effects if tool != "send_message"]
    return 15 * min(len(other), 4) + 3 * min(len(lived.people), 4) + (15 if lived.failed else 0)


# Digests of many cycles


class WeightedLine(NamedTuple):
    """A line and its weight; of equal weights, the newer wins. `words` are the summary's, to leave out repetitions."""

    weight: int
    number: int
    words: str
    text: str


@dataclass(frozen=True, slots=True)
class Tally:
    """A count for each, with its name; beyond the limit, only a total."""

    counts: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    others: int = 0


@dataclass(frozen=True, slots=True)
class Digest:
    """A summary of several cycles."""

    cycles: int
    since: int
    until: int
    people: Tally
    """In how many cycles each was heard."""
    places: Tally
    effects: Tally
    lines: tuple[WeightedLine, ...]
    """The most significant cycles, without repetitions, most significant first."""


def digest(lived: LayerCycle, zone: str, novelty: float = 0.0) -> Digest:
    """The digest of one cycle, to be merged with others."""
    return Digest(
        1,
        lived.at,
        lived.at,
        Tally({id: (name, 1) for id, name in lived.people.items()}),
        Tally({id: (name, 1) for id, name in lived.places.items()}),
        Tally({tool: (tool, count) for tool, count in lived.effects.items()}),
        tuple(_tellings(lived, zone, novelty)),
    )


def _tellings(lived: LayerCycle, zone: str, novelty: float) -> Iterator[WeightedLine]:
    """A line for the summary; or, where a model wrote notes, one for each of them."""
    weights = [_note_weight(each, lived, novelty) for each in lived.notes]
    if len(weights) < len(lived.texts):
        weights.insert(0, weight(lived, novelty))
    for worth, text in zip(weights, lived.texts, strict=True):
        words = " ".join(text.casefold().split())[:TELLING_CHARACTERS]
        yield WeightedLine(worth, lived.number, words, line(lived, zone, TELLING_CHARACTERS, text))


def merge(digests: Sequence[Digest]) -> Digest:
    """The digest of all of these; the same in whatever order they are merged.

    Except for those that occur rarely among more than `MOST_COUNTED`: they may be counted with the others.
    """
    return Digest(
        sum(each.cycles for each in digests),
        min(each.since for each in digests),
        max(each.until for each in digests),
        _merged([each.people for each in digests]),
        _merged([each.places for each in digests]),
        _merged([each.effects for each in digests]),
        _most_telling(line for each in digests for line in each.lines),
    )


def _merged(tallies: Sequence[Tally]) -> Tally:
    counts: dict[str, tuple[str, int]] = {}
    for tally in tallies:
        for key, (name, count) in tally.counts.items():
            counts[key] = (name, count + counts.get(key, ("", 0))[1])
    others = sum(tally.others for tally in tallies)
    if len(counts) <= MOST_COUNTED:
        return Tally(counts, others)
    kept = dict(nlargest(MOST_COUNTED, counts.items(), key=lambda item: (item[1][1], item[0])))
    return Tally(kept, others + sum(count for _, count in counts.values()) - sum(count for _, count in kept.values()))


def _most_telling(lines: Iterable[WeightedLine]) -> tuple[WeightedLine, ...]:
    best: dict[str, WeightedLine] = {}
    for each in lines:
        best[each.words] = max(each, best.get(each.words, each))
    return tuple(nlargest(TELLING, best.values()))


def dump(digest: Digest) -> str:
    tallies = ([each.counts, each.others] for each in (digest.people, digest.places, digest.effects))
    known = [digest.cycles, digest.since, digest.until, *tallies, [list(each) for each in digest.lines]]
    return json.dumps(known, ensure_ascii=False, separators=(",", ":"))


def load(encoded: str) -> Digest:
    cycles, since, until, people, places, effects, lines = json.loads(encoded)
    told = tuple(WeightedLine(*each) for each in lines)
    return Digest(cycles, since, until, _tally(people), _tally(places), _tally(effects), told)


def _tally(encoded: Any) -> Tally:
    counts, others = encoded
    return Tally({key: (name, count) for key, (name, count) in counts.items()}, others)


# The text


def render(groups: Sequence[tuple[Segment, Digest]], lived: Sequence[LayerCycle], shape: Shape, zone: str) -> str:
    """The text of the layers for the model, oldest first.

    What the lines of single cycles leave of their room goes to the most significant lines of all groups.
    """
    lines = [line(each, zone, shape.line_characters) for each in lived]
    spare = sum(shape.line_characters - len(each) for each in lines)
    told: list[_Group] = []
    for segment, each in groups:
        group = _Group(segment, each, zone, shape.characters(segment))
        spare += group.fill()
        told.append(group)
    left = sorted(((each, group) for group in told for each in group.left()), key=lambda pair: pair[0], reverse=True)
    for each, group in left:
        if len(each.text) < spare:
            group.show(each)
            spare -= len(each.text) + 1
    blocks = [group.text() for group in told]
    if lines:
        blocks.append("\n".join([LINES_HEADER, *lines]))
    return "\n\n".join(blocks)


class _Group:
    """The text of a group while it is put together."""

    def __init__(self, segment: Segment, digest: Digest, zone: str, characters: int) -> None:
        self._header = GROUP_HEADER.format(first=segment.first, last=segment.last)
        self._head = _cut(_head(digest, zone), characters - len(self._header) - 1)
        self._room = characters - len(self._header) - len(self._head) - 2
        self._lines = digest.lines
        self._shown: list[WeightedLine] = []

    def fill(self) -> int:
        """Show as many lines as the room allows: the most significant first, and what they repeat last. Returns the
        characters that are left.
        """
        left = self._room
        while (best := self._best()) is not None and left >= min(_SHORTEST_LINE, len(best.text)):
            shown = best._replace(text=_cut(best.text, left))
            self.show(shown)
            left -= len(shown.text) + 1
        return max(left, 0)

    def _best(self) -> WeightedLine | None:
        return max(self.left(), key=lambda each: (each.weight - self._repeated(each), each), default=None)

    def _repeated(self, told: WeightedLine) -> float:
        words = set(told.words.split())
        shares = (len(words & set(each.words.split())) / len(words) for each in self._shown if words)
        return _REPETITION * max(shares, default=0)

    def show(self, told: WeightedLine) -> None:
        self._shown.append(told)

    def left(self) -> list[WeightedLine]:
        """The lines that are not shown."""
        shown = {(each.number, each.words) for each in self._shown}
        return [each for each in self._lines if (each.number, each.words) not in shown]

    def text(self) -> str:
        lines = [each.text for each in sorted(self._shown, key=lambda each: each.number)]
        return "\n".join([self._header, *([self._head] if self._head else []), *lines])


def _head(digest: Digest, zone: str) -> str:
    since, until = _day(digest.since, zone), _day(digest.until, zone)
    span = since if since == until else f"{since} to {until}"
    count = f"{digest.cycles:,} cycle{'' if digest.cycles == 1 else 's'}"
    done = _listed(digest.effects, 6, lambda name, count: _times(plain_name(name), count))
    people = _listed(digest.people, 4, lambda name, count: f"{kept_speaker(name)} ({count:,})")
    places = _listed(digest.places, 3, lambda name, count: f"{quoted_name(name)} ({count:,})")
    told = [f"{count}, {span}.", f"Done: {done}." if done else "", f"With {people}." if people else ""]
    return " ".join(each for each in [*told, f"In {places}." if places else ""] if each)


class Block(NamedTuple):
    """A part of the text: the digest of a group of cycles, or a line for each of the newest."""

    lines: bool
    first: int
    last: int
    text: str
    """Without its header."""


_GROUP: Final = re.compile(re.escape(GROUP_HEADER).replace(r"\{first\}", r"(\d+)").replace(r"\{last\}", r"(\d+)"))
_LINE: Final = re.compile(r"Cycle (\d+) ")


def blocks(text: str) -> list[Block]:
    """The parts of a text that `render` has written, oldest first. Anything of another form is left out."""
    found: list[Block] = []
    for each in text.split("\n\n"):
        header, _, rest = each.partition("\n")
        group = _GROUP.fullmatch(header)
        numbers = [int(line[1]) for line in map(_LINE.match, rest.split("\n")) if line]
        if group is not None:
            found.append(Block(False, int(group[1]), int(group[2]), rest))
        elif header == LINES_HEADER and numbers:
            found.append(Block(True, numbers[0], numbers[-1], rest))
    return found


def without_cycles(text: str, numbers: Iterable[int], instead: str) -> str:
    """The layers with these words instead of the lines of these cycles."""
    gone = set(numbers)

    def left(told: str) -> str:
        found = _LINE.match(told)
        return f"Cycle {found[1]} {instead}" if found and int(found[1]) in gone else told

    return "\n".join(map(left, text.split("\n")))


def _listed(tally: Tally, most: int, tell: Callable[[str, int], str]) -> str:
    ranked = nlargest(most, tally.counts.items(), key=lambda item: (item[1][1], item[0]))
    told = [tell(_cut(name, _NAME_CHARACTERS), count) for _, (name, count) in ranked]
    left = len(tally.counts) - len(ranked)
    if tally.others:
        return f"{', '.join(told)} and many more"
    return ", ".join(told) + (f" and {left} more" if left else "")
