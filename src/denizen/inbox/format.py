"""Formats inbox events as text for an agent. Pure: values in, text out.

Text from outside cannot imitate our own lines. A text is quoted on the entry's line only if it is one line without
quotation marks; any other text stands below it, every line behind a gutter. The agent's own plans and reminders are not
quoted: they stand below their entry, every line behind `   > `. Our own lines begin at column 0 with `[` or a number,
or with `   → ` or `   … `, and no other lines do. Names and identifiers are kept to one line, and quoted unless they
are plain words. Characters that control a terminal or reorder a line are shown as `<U+202E>`.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from denizen.amounts import human_size
from denizen.clock import SECOND, moment, zone_or_utc
from denizen.folding import fold
from denizen.inbox.events import FORMAT, Event, EventType

if TYPE_CHECKING:  # commands that ask a server format texts, and do without a database
    from denizen.files.attaching import Attachment

MID_CYCLE_UPDATE = "MID-CYCLE UPDATE"
"""The label of events that are added to a running cycle: no time, no closing sentence."""

GUTTER = "   | "
"""Prefix of every line of a quoted block."""
OWN_GUTTER = "   > "
"""Prefix of every line of the agent's own plans and reminders."""

_CLOSING = "Handle these in any order. First see which are urgent and which belong together."
_PREVIEW_CLOSING = (
    "(You will read these in full in your next cycle. If one changes what you are doing now, adapt to it.)"
)
_PREVIEW_CHARS = 50
_FORMAT_LINE = (
    "   → A program reads your answer. Send one message that is a JSON object and nothing else, of this JSON Schema: "
    "{schema}"
)
OUTSIDE_MARK = "holds text from outside"
"""Marks text that is from outside, or made from such text, where the line names no guest, service or tool."""
PREVIEW_EVENTS = 20
"""How many events a preview shows."""
_NAME_CHARS = 120
_ABSURD_SECONDS = 1e11
"""Three thousand years: a longer delay is a mistake."""
_SLACK_CHARS = 200
"""Quoting may add this many characters to any text, however short."""
_FRAME_TOKENS = 60
"""For the header, the time and the closing sentence."""

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class _Origin(NamedTuple):
    """The label of an event that is not a message, and the payload keys of its name and identifier."""

    title: str
    name_key: str = ""
    id_key: str = ""
    id_label: str = ""


_ORIGINS: dict[EventType, _Origin] = {
    "plan_trigger": _Origin("Plan", "plan_name", "plan_id", "planId"),
    "timer": _Origin("Timer", "timer_name", "timer_id", "timerId"),
    "service_trigger": _Origin("Service", "service"),
    "tool_result": _Origin("Tool result", "tool", "call_id", "call"),
    "notice": _Origin("Notice"),
}

# The same line breaks as `str.splitlines`, but a break at the very end starts a last, empty line.
_LINE_BREAK = re.compile(r"\r\n|[\n-\r\x1c-\x1e\x85\u2028\u2029]")
# Control characters, embeddings, overrides and isolates of direction, interlinear marks, lone surrogates (which
# databases and networks reject) and tag characters, which carry ASCII that people do not see.
_UNSAFE = re.compile(
    r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f]"
)
_UNSAFE_OR_BREAK = re.compile(f"{_UNSAFE.pattern}|{_LINE_BREAK.pattern}")


def format_inbox(
    events: Sequence[Event],
    *,
    now: int,
    label: str = "INBOX",
    zone: str = "UTC",
    plans: Sequence[str] = (),
    news: Sequence[str] = (),
    text_chars: int = 8000,
) -> str:
    """The inbox message for an agent: `events` in their order, the next plans, and news."""
    head = [f"[{label} - {_count(len(events))}]"]
    if label != MID_CYCLE_UPDATE:
        head.append(_time_line(now, zone))
    if plans:
        head.append("Your next plans: " + "; ".join(one_line(plan) for plan in plans))
    if news:
        head += ["[CHANGES]", *(f"- {one_line(line)}" for line in news)]
    blocks = ["\n".join(head)]
    blocks += [_entry(number, event, now, text_chars) for number, event in enumerate(events, start=1)]
    if len(events) > 1 and label != MID_CYCLE_UPDATE:
        blocks.append(_CLOSING)
    return "\n\n".join(blocks)


def format_preview(events: Sequence[Event]) -> str:
    """One short line for each of the first waiting events, to be shown in the middle of a cycle."""
    lines = [f"[INBOX PREVIEW — {_count(len(events))} waiting]"]
    lines += [_preview_line(event) for event in events[:PREVIEW_EVENTS]]
    if len(events) > PREVIEW_EVENTS:
        lines.append(f"  … and {len(events) - PREVIEW_EVENTS} more")
    return "\n".join([*lines, _PREVIEW_CLOSING])


def _count(events: int) -> str:
    return f"{events} new event{'' if events == 1 else 's'}"


def event_tokens(event: Event, text_chars: int) -> int:
    """About how many tokens this event takes in an inbox message: a quarter of its characters."""
    # A wide number, a great age and the blank line before the event: the estimate holds wherever and whenever it is
    # shown.
    much_later = event.created_at + 1000 * 86_400 * SECOND
    return math.ceil((len(_entry(9999, event, much_later, text_chars)) + 2) / 4)


def take_that_fit(events: Sequence[Event], *, max_tokens: int, text_chars: int) -> int:
    """How many of the first `events` fit in an inbox message of `max_tokens`; at least one, if there is one."""
    if len(events) <= 1:
        return len(events)
    spent = _FRAME_TOKENS
    for taken, event in enumerate(events):
        spent += event_tokens(event, text_chars)
        if spent > max_tokens:
            return max(taken, 1)
    return len(events)


def entry_text(event: Event) -> str:
    """The whole text of an event, followed by its data as compact JSON on the next line unless it is a message.

    The offset in the pointer of a shortened entry counts the characters of this text.
    """
    if _is_message(event) or "data" not in event.payload:
        return event.text
    data = _compact_json(event.payload["data"])
    return f"{event.text}\n{data}" if event.text else data


def visible(text: str) -> str:
    """`text` on the same lines, with characters that control a terminal or reorder a line written as `<U+202E>`."""
    return text if text.isprintable() else _UNSAFE.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def quote(text: str) -> str:
    """`text` in quotation marks if it is one line without any, otherwise a block behind the gutter, on new lines."""
    if '"' not in text and text.isprintable():  # then it has no line break either
        return f'"{text}"'
    lines = _LINE_BREAK.split(text)
    if '"' not in text and len(lines) == 1:
        return f'"{visible(text)}"'
    return "".join(f"\n{GUTTER}{visible(line)}" for line in lines)


def own_words(text: str) -> str:
    """`text` as a block of the agent's own words, on new lines: without quotation marks, which mark others' words."""
    return "".join(f"\n{OWN_GUTTER}{visible(line)}" for line in _LINE_BREAK.split(text))


def one_line(text: str) -> str:
    """`text` on one line: every run of white space becomes one space, and hidden characters are shown."""
    return visible(" ".join(text.split()))


@lru_cache(maxsize=4096)
def plain_name(name: str) -> str:
    """A name on one line: unchanged if it consists of words, otherwise quoted, so that it cannot imitate other text."""
    return _cut_name(name) if _is_words(name) else quoted_name(name)


_NOT_IN_HANDLE = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=4096)
def speaker(name: str, kind: str | None, handle: str | None) -> str:
    """The speaker's label, distinct for everyone: `Noor (human)`, or `Noor (human, @noor-2)`.

    The handle is left out only if it is the one that follows from the name as it looks. Handles are unique, so among
    people whose names look the same, at most one has a label without it. The label depends only on these three.
    """
    usual = handle is None or _NOT_IN_HANDLE.sub("-", fold(name)).strip("-") == handle
    about = [each for each in (kind, None if usual else f"@{handle}") if each]
    return f"{plain_name(name)} ({', '.join(about)})" if about else plain_name(name)


_SPEAKER = re.compile(r"""(?:"[^"]*"|[\w .'’-]+)(?: \(@[a-z0-9-]+\))?""")


def kept_speaker(label: str) -> str:
    """A label that `speaker` wrote without a kind, unchanged; any other name as `plain_name` writes it."""
    return label if _SPEAKER.fullmatch(label) else plain_name(label)


@lru_cache(maxsize=4096)
def quoted_name(name: str) -> str:
    """A name on one line in quotation marks, with no quotation marks inside."""
    return f'"{_cut_name(name).replace(chr(34), chr(39))}"'


def _cut_name(name: str) -> str:
    line = one_line(name) or "unnamed"
    return line if len(line) <= _NAME_CHARS else line[: _NAME_CHARS - 1] + "…"


def _is_words(name: str) -> bool:
    # Marks are part of words in many scripts: vowels in Devanagari, points in Hebrew.
    return all(char.isalnum() or char in " .-_'’" or unicodedata.category(char)[0] == "M" for char in name)


def _time_line(now: int, zone: str) -> str:
    at = moment(now)
    clocks = zone_or_utc(zone)
    there = "" if zone == "UTC" or clocks is UTC else f" ({_clock_time(at.astimezone(clocks))} {zone})"
    return f"Now: {_clock_time(at)} UTC{there}"


def _clock_time(at: datetime) -> str:
    return f"{_WEEKDAYS[at.weekday()]} {at:%Y-%m-%d %H:%M}"


def _entry(number: int, event: Event, now: int, text_chars: int) -> str:
    said = f"{number}. {_source(event)}{_sender(event)}"
    text = entry_text(event)
    cut = _cut_at(event, text, text_chars)
    shown = _show(event, text[:cut])
    lines = [f"{said}{shown}" if shown.startswith("\n") else f"{said} {shown}"]
    if cut < len(text):
        lines.append(_pointer(event, cut, len(text)))
    lines += [file_line(each) for each in event.files]
    if FORMAT in event.payload:
        lines.append(_FORMAT_LINE.format(schema=visible(_compact_json(event.payload[FORMAT]))))
    lines.append(_age_line(event, now))
    return "\n".join(lines)


def _show(event: Event, text: str) -> str:
    return own_words(text) if is_own_plan(event) else quote(text)


def _cut_at(event: Event, text: str, text_chars: int) -> int:
    """How many characters of `text` to show; fewer than `text_chars` where quoting would more than double them."""
    cut = min(len(text), text_chars)
    while cut and len(_show(event, text[:cut])) > 2 * text_chars + _SLACK_CHARS:
        cut //= 2
    return cut


def _pointer(event: Event, cut: int, total: int) -> str:
    entry = f"event:{event.id}"
    if _is_message(event) and event.message_id:
        entry = f"message:{event.message_id}"
    call = f"read_entry({quoted_name(entry)}, offset={cut})"
    return f"   … [cut at {cut:,} of {total:,} characters; {call} shows the rest]"


def _source(event: Event) -> str:
    parts = [f"Space {_space(event)}" if _is_message(event) else _origin(event)]
    if event.space_id is not None and not _is_message(event):
        parts.append(f"space {_space(event)}")
    return f"[{' | '.join(parts + _marks(event))}]"


def _space(event: Event) -> str:
    return f"{quoted_name(event.space_name or '')} | spaceId: {plain_name(event.space_id or 'unknown')}"


def _origin(event: Event) -> str:
    origin = _ORIGINS[event.type]
    name, identifier = _text_of(event, origin.name_key), _text_of(event, origin.id_key)
    said = f"{origin.title} {quoted_name(name)}" if name else origin.title
    return f"{said} | {origin.id_label}: {plain_name(identifier)}" if identifier else said


def _marks(event: Event) -> list[str]:
    marks = ["urgent"] if event.lane == "urgent" else []
    if event.type == "mention":
        marks.append("mentions you")
    if reply_to := _text_of(event, "reply_to"):
        marks.append(f"reply to: {plain_name(reply_to)}")
    if event.outside and not _names_outside(event):
        marks.append(OUTSIDE_MARK)
    return marks


def _names_outside(event: Event) -> bool:
    """Whether the entry's line already shows that the text is from outside, because it names the source."""
    named = event.type in ("service_trigger", "tool_result") or event.sender_kind == "service"
    return named or is_guest(event.sender_kind, event.sender_role)


def is_guest(kind: str | None, role: str | None) -> bool:
    return kind == "human" and role == "guest"


def _sender(event: Event) -> str:
    """The sender of a message; a mark for the agent's own plans and timers; empty for other events."""
    if is_own_plan(event):
        return " Your plan:" if event.type == "plan_trigger" else " Your reminder:"
    if not _is_message(event):
        return ""
    return f" {speaker(*_sender_of(event), event.sender_handle)}:"


def _sender_of(event: Event) -> tuple[str, str | None]:
    guest = is_guest(event.sender_kind, event.sender_role)
    return event.sender_name or event.sender_id or "someone", "guest" if guest else event.sender_kind


def sender_name(event: Event) -> str:
    """The sender's name, with the handle where it does not follow from the name."""
    return speaker(_sender_of(event)[0], None, event.sender_handle)


def is_own_plan(event: Event) -> bool:
    """Whether the event comes from a plan or timer of the agent itself."""
    return event.type in ("plan_trigger", "timer")


def _is_message(event: Event) -> bool:
    return event.type in ("space_message", "mention")


def file_line(file: Attachment) -> str:
    """One line about a file of a message: `   → file "menu.txt" (text/plain, 2.1 kB): read_entry("file:…")`."""
    call = f"read_entry({quoted_name(f'file:{file.id}')})"
    shows = f", described as {quoted_name(file.alt)}" if file.alt else ""
    return f"   → file {quoted_name(file.name)} ({file.media_type}, {human_size(file.size)}{shows}): {call}"


def _age_line(event: Event, now: int) -> str:
    age = now - event.created_at
    received = "just now" if age < SECOND // 2 else f"{_span(age)} ago"
    late = event.payload.get("late_seconds")
    if isinstance(late, bool) or not isinstance(late, int | float) or not 1 <= late < _ABSURD_SECONDS:
        return f"   → received {received}"
    return f"   → received {received}, {_span(int(late * SECOND))} late"


def _span(microseconds: int) -> str:
    seconds = microseconds // SECOND
    if seconds < 10:
        return f"{microseconds // 100_000 / 10}s"
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    if seconds < 48 * 3600:
        return f"{seconds // 3600} h"
    return f"{seconds // 86_400} days"


def _preview_line(event: Event) -> str:
    where, who = _preview_source(event)
    said = one_line(entry_text(event)[: 20 * _PREVIEW_CHARS]).replace('"', "'")
    snippet = said if len(said) <= _PREVIEW_CHARS else said[:_PREVIEW_CHARS] + "..."
    place = " | ".join([where, *_marks(event)])
    text = f"> {snippet}" if is_own_plan(event) else f'"{snippet}"'
    return f"  [{place}] {who}: {text}" if who else f"  [{place}] {text}"


def _preview_source(event: Event) -> tuple[str, str]:
    if _is_message(event):
        return plain_name(event.space_name or event.space_id or "Space"), sender_name(event)
    origin = _ORIGINS[event.type]
    name = _text_of(event, origin.name_key)
    return origin.title, plain_name(name) if name else ""


def _text_of(event: Event, key: str) -> str:
    value = event.payload.get(key)
    return value if isinstance(value, str) else ""


def _compact_json(value: JsonValue) -> str:
    """`value` as JSON on one line; unsafe characters are escaped as JSON does it, so that the result stays JSON."""
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE_OR_BREAK.sub(lambda match: json.dumps(match[0])[1:-1], compact)
