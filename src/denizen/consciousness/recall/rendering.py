"""Formats recalled passages as text for an agent. Pure: values in, text out.

As much as fits is chosen by rank and shown in order of time, under a header for each space and day, which says the
cycles. Text from outside is quoted as in the inbox, so that it cannot imitate other text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from denizen.clock import SECOND, Instant, moment, zone_or_utc
from denizen.consciousness.recall.fetching import RecalledPassage
from denizen.inbox.format import quote, quoted_name, speaker

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_OWN = {"said": "You", "did": "You did", "summary": "You summed up", "note": "Your note"}
_CYCLES_CHARACTERS = 30
"""What the numbers of cycles and a blank line add to a header, at most."""
_SAME_TIME = 600 * SECOND
"""A line that is less later than the last time above it has no time of its own."""
_SLACK_CHARACTERS = 150
"""With less room than this left, no shorter passages are tried."""


def pack(found: Iterable[RecalledPassage], *, tokens: int, zone: str = "UTC") -> list[RecalledPassage]:
    """As many passages as fit, the best first, in order of time. If a long one does not fit, shorter ones are tried."""
    return _pack(([each] for each in found), tokens, zone)


def pack_cycles(
    found: Sequence[RecalledPassage], whole: Sequence[Sequence[RecalledPassage]], *, tokens: int, zone: str = "UTC"
) -> list[RecalledPassage]:
    """As many of these whole cycles as fit, then as many single passages, the best first; in order of time."""
    return _pack((*whole, *([each] for each in found)), tokens, zone)


def _pack(groups: Iterable[Sequence[RecalledPassage]], tokens: int, zone: str) -> list[RecalledPassage]:
    room, is_exact = 4 * tokens, True
    chosen: dict[tuple[int, str], RecalledPassage] = {}
    headers: set[str] = set()
    for group in groups:
        new = {_key(each): each for each in group if _key(each) not in chosen}
        size, above = _size(new.values(), headers, zone)
        if size > room and not is_exact:
            # A line is shorter below one of the same speaker or time, so more may fit than was expected.
            room, is_exact = 4 * tokens - len(render(_in_order(chosen.values()), zone=zone)) - 1, True
        if size <= room:
            room, is_exact = room - size, False
            headers |= above
            chosen |= new
        elif room < _SLACK_CHARACTERS:
            break
    # A line between two of the same speaker makes the second of them longer.
    while len(render(_in_order(chosen.values()), zone=zone)) > 4 * tokens:
        chosen.popitem()
    return _in_order(chosen.values())


def _key(found: RecalledPassage) -> tuple[int, str]:
    return found.number, found.text if found.kind == "note" else ""


def _size(new: Iterable[RecalledPassage], headers: set[str], zone: str) -> tuple[int, set[str]]:
    """The most characters that these may take, and their headers that are new."""
    lines = [(_header(each, zone), _line(each, zone)) for each in new]
    above = {header for header, _ in lines} - headers
    return sum(len(line) + 1 for _, line in lines) + sum(len(header) + _CYCLES_CHARACTERS for header in above), above


def _in_order(found: Iterable[RecalledPassage]) -> list[RecalledPassage]:
    return sorted(found, key=lambda each: (each.at, each.number))


def render(chosen: Sequence[RecalledPassage], *, zone: str = "UTC") -> str:
    """The passages, which are in order of time, as text."""
    groups: dict[str, list[RecalledPassage]] = {}
    for each in chosen:
        groups.setdefault(_header(each, zone), []).append(each)
    return "\n\n".join("\n".join([_with_cycles(header, some), *_lines(some, zone)]) for header, some in groups.items())


def _header(found: RecalledPassage, zone: str) -> str:
    if found.kind == "note":
        return "[Your notes]"
    at = _local(found.at, zone)
    day = f"{_WEEKDAYS[at.weekday()]} {at:%Y-%m-%d}"
    return f"[{quoted_name(found.space)} | {day}]" if found.space else f"[{day}]"


def _with_cycles(header: str, below: Sequence[RecalledPassage]) -> str:
    """The header with the numbers of the first and the last cycle below it."""
    first, last = min(each.cycle for each in below), max(each.cycle for each in below)
    if not first:
        return header
    return f"{header[:-1]} | cycle {first}]" if first == last else f"{header[:-1]} | cycles {first}–{last}]"


def _lines(below: Sequence[RecalledPassage], zone: str) -> Iterator[str]:
    """A line for each; without the time if one just above says it, and in the same line if the speaker is the same."""
    line, speaker_above = "", ""
    timed_at: int | None = None
    for each in below:
        text, same_time = quote(each.text), timed_at is not None and each.at - timed_at < _SAME_TIME
        short = each.kind in ("heard", "said") and not each.pointer and not text.startswith("\n")
        if same_time and speaker_above == _speaker(each) and short and "\n" not in line:
            line += f" {text}"
            continue
        if line:
            yield line
        line, speaker_above = _line(each, zone, with_time=not same_time), _speaker(each)
        timed_at = timed_at if same_time else each.at
    if line:
        yield line


def _line(found: RecalledPassage, zone: str, *, with_time: bool = True) -> str:
    when = f"{_time(found, zone)} " if with_time and found.kind != "note" else ""
    text = quote(found.text)
    said = f"{when}{_speaker(found)}:{text}" if text.startswith("\n") else f"{when}{_speaker(found)}: {text}"
    return f"{said}\n   … [a part; read_entry({quoted_name(found.pointer)}) shows the whole]" if found.pointer else said


def _speaker(found: RecalledPassage) -> str:
    return _OWN.get(found.kind) or speaker(found.who, None, found.handle)


def _time(found: RecalledPassage, zone: str) -> str:
    return f"{_local(found.at, zone):%H:%M}"


def _local(at: int, zone: str) -> datetime:
    return moment(Instant(at)).astimezone(zone_or_utc(zone))
