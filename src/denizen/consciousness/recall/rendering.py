"""Formats recalled passages as text for an agent. Pure: values in, text out.

As much as fits is chosen by rank and shown in order of time, under a header for each space and day. Text from outside
is quoted as in the inbox, so that it cannot imitate other text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from denizen.clock import Instant, moment, zone_or_utc
from denizen.consciousness.recall.fetching import RecalledPassage
from denizen.inbox.format import quote, quoted_name, speaker

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_OWN = {"said": "You", "did": "You did", "summary": "You summed up", "note": "Your note"}
_SLACK_CHARACTERS = 150
"""With less room than this left, no shorter passages are tried."""


def pack(found: Iterable[RecalledPassage], *, tokens: int, zone: str = "UTC") -> list[RecalledPassage]:
    """As many passages as fit, the best first, in order of time. If a long one does not fit, shorter ones are tried."""
    room = 4 * tokens
    chosen: list[RecalledPassage] = []
    headers: set[str] = set()
    for each in found:
        header = _header(each, zone)
        size = len(_line(each, zone)) + 1 + (0 if header in headers else len(header) + 2)
        if size <= room:
            room -= size
            headers.add(header)
            chosen.append(each)
        elif room < _SLACK_CHARACTERS:
            break
    return _in_order(chosen)


def _in_order(found: Iterable[RecalledPassage]) -> list[RecalledPassage]:
    return sorted(found, key=lambda each: (each.at, each.number))


def pack_cycles(
    found: Sequence[RecalledPassage], whole: Sequence[Sequence[RecalledPassage]], *, tokens: int, zone: str = "UTC"
) -> list[RecalledPassage]:
    """As many of these whole cycles as fit, then as many single passages, the best first; in order of time."""
    chosen: dict[int, RecalledPassage] = {}
    for group in (*whole, *([each] for each in found)):
        wider = chosen | {each.number: each for each in group}
        if len(render(_in_order(wider.values()), zone=zone)) <= 4 * tokens:
            chosen = wider
    return _in_order(chosen.values())


def render(chosen: Sequence[RecalledPassage], *, zone: str = "UTC") -> str:
    """The passages, which are in order of time, as text."""
    groups: dict[str, list[str]] = {}
    for each in chosen:
        groups.setdefault(_header(each, zone), []).append(_line(each, zone))
    return "\n\n".join("\n".join([header, *lines]) for header, lines in groups.items())


def _header(found: RecalledPassage, zone: str) -> str:
    if found.kind == "note":
        return "[Your notes]"
    at = _local(found.at, zone)
    day = f"{_WEEKDAYS[at.weekday()]} {at:%Y-%m-%d}"
    return f"[{quoted_name(found.space)} | {day}]" if found.space else f"[{day}]"


def _line(found: RecalledPassage, zone: str) -> str:
    who = _OWN.get(found.kind) or speaker(found.who, None, found.handle)
    when = "" if found.kind == "note" else f"Cycle {found.cycle}, {_local(found.at, zone):%H:%M}, "
    text = quote(found.text)
    said = f"{when}{who}:{text}" if text.startswith("\n") else f"{when}{who}: {text}"
    return f"{said}\n   … [a part; read_entry({quoted_name(found.pointer)}) shows the whole]" if found.pointer else said


def _local(at: int, zone: str) -> datetime:
    return moment(Instant(at)).astimezone(zone_or_utc(zone))
