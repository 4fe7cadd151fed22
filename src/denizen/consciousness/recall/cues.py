"""Parses English time expressions in a question. Pure: what "last week" means depends on `now` and the zone only."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from denizen.clock import SECOND, Instant, moment, zone_or_utc

DAY: Final = 86_400 * SECOND
_FADES_AFTER: Final = 3 * DAY
"""How far from a period a passage still gets a fading score."""


@dataclass(frozen=True, slots=True)
class Period:
    """From `first` to before `end`."""

    first: int
    end: int

    def fit(self, at: int) -> float:
        """1 inside the period, and less the further from it."""
        beside = max(self.first - at, at - self.end + 1, 0)
        return math.exp(-beside / _FADES_AFTER)


_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = {
    spelled: number
    for number, name in enumerate(_MONTH_NAMES.split(), start=1)
    for spelled in (name, name[:3], name[:4] if name == "september" else name)
}
_WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday"
_WEEKDAYS = {name: number for number, name in enumerate(_WEEKDAY_NAMES.split())}
_NUMBER_NAMES = "one two three four five six seven eight nine ten"
_NUMBERS = {name: number for number, name in enumerate(_NUMBER_NAMES.split(), start=1)}
_VAGUE = {"a": 1, "an": 1, "a couple of": 2, "couple of": 2, "a few": 3, "few": 3}

_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?\b"
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_NUMBERS | _VAGUE, key=len, reverse=True))})"

Reader = Callable[[re.Match[str], date], tuple[date, date] | None]


def period_in(text: str, *, now: Instant, zone: str = "UTC") -> Period | None:
    """The first period that `text` names as a date, or relative to `now`; days are those of the zone."""
    today = _local(now, zone).date()
    folded = text.lower()
    for pattern, read in _READERS:
        for match in pattern.finditer(folded):
            days = read(match, today)
            if days is not None:
                return _period(*days, zone)
    return None


def period_of(text: str, *, now: Instant, zone: str = "UTC") -> Period | None:
    """The period that `text` as a whole means: a date, `last week`, `since May`, `before 2024-02-01`, `A to B`."""
    folded = " ".join(text.lower().split())
    if found := re.fullmatch(r"(?:since|after|from) (.+)", folded):
        begun = period_in(found[1], now=now, zone=zone)
        if begun is not None and not re.search(r" to | until |\.\.", folded):
            return Period(begun.end if folded.startswith("after") else begun.first, _LATEST)
    if found := re.fullmatch(r"(?:before|until) (.+)", folded):
        ended = period_in(found[1], now=now, zone=zone)
        return ended and Period(0, ended.first if folded.startswith("before") else ended.end)
    parts = re.split(r"\s*\.\.\s*| to | until | and ", folded.removeprefix("from ").removeprefix("between "))
    if len(parts) == 2:
        first, last = (period_in(part, now=now, zone=zone) for part in parts)
        return Period(first.first, last.end) if first and last and first.first < last.end else None
    return period_in(folded, now=now, zone=zone)


_LATEST = 2**62


def _local(now: Instant, zone: str) -> datetime:
    return moment(now).astimezone(zone_or_utc(zone))


def _period(first: date, end: date, zone: str) -> Period:
    return Period(_midnight(first, zone), _midnight(end, zone))


def _midnight(day: date, zone: str) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=zone_or_utc(zone)).timestamp()) * SECOND


def _days(first: date, count: int = 1) -> tuple[date, date]:
    return first, first + timedelta(days=count)


def _whole_month(year: int, month: int) -> tuple[date, date]:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _months_before(today: date, count: int) -> tuple[int, int]:
    months = today.year * 12 + today.month - 1 - count
    return months // 12, months % 12 + 1


def _read_day(match: re.Match[str], today: date) -> tuple[date, date] | None:
    """A day of a month; without a year, the most recent one."""
    given = match.groupdict()
    month = _MONTHS[given["month"]] if given["month"] in _MONTHS else int(given["month"])
    years = [int(given["year"])] if given.get("year") else [today.year, today.year - 1]
    for year in years:
        try:
            day = date(year, month, int(given["day"]))
        except ValueError:
            continue
        if day <= today or given.get("year"):
            return _days(day)
    return None


def _read_month(match: re.Match[str], today: date) -> tuple[date, date] | None:
    given = match.groupdict()
    month = _MONTHS[given["month"]] if given["month"] in _MONTHS else int(given["month"])
    if not 1 <= month <= 12:
        return None
    # Without a year, the most recent one that has begun.
    year = int(given["year"]) if given.get("year") else today.year - (month > today.month)
    return _whole_month(year, month)


def _read_year(match: re.Match[str], _today: date) -> tuple[date, date]:
    year = int(match["year"])
    return date(year, 1, 1), date(year + 1, 1, 1)


def _read_ago(match: re.Match[str], today: date) -> tuple[date, date] | None:
    count = (_NUMBERS | _VAGUE).get(match["count"]) or int(match["count"])
    match match["unit"]:
        case "day":
            return _days(today - timedelta(days=count))
        case "week":
            return _days(_monday(today) - timedelta(weeks=count), 7)
        case "month":
            return _whole_month(*_months_before(today, count)) if count < 1200 else None
        case _:
            return (date(today.year - count, 1, 1), date(today.year - count + 1, 1, 1)) if count < 1000 else None


def _read_last(match: re.Match[str], today: date) -> tuple[date, date]:
    back = 0 if match["which"] == "this" else 1
    match match["unit"]:
        case "week":
            return _days(_monday(today) - timedelta(weeks=back), 7)
        case "weekend":
            saturday = _monday(today) + timedelta(days=5)
            # On a weekend, "last weekend" is the one before.
            return _days(saturday - timedelta(weeks=1) if back else saturday, 2)
        case "month":
            return _whole_month(*_months_before(today, back))
        case _:
            return date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1)


def _read_weekday(match: re.Match[str], today: date) -> tuple[date, date]:
    """The last such day before today."""
    back = (today.weekday() - _WEEKDAYS[match["weekday"]] - 1) % 7 + 1
    return _days(today - timedelta(days=back))


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _named(days_back: int) -> Reader:
    return lambda _match, today: _days(today - timedelta(days=days_back))


_WEEKDAY = rf"(?P<weekday>{'|'.join(_WEEKDAYS)})\b"
# The most certain first. A month's name alone is a word like others ("may", "march"), so it needs one before it.
_READERS: tuple[tuple[re.Pattern[str], Reader], ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (rf"\b{_YEAR}-(?P<month>[01]\d)-{_DAY}", _read_day),
        (rf"\b{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}", _read_day),
        (rf"\b{_MONTH}\s+{_DAY},?\s+{_YEAR}", _read_day),
        (rf"\b{_YEAR}-(?P<month>[01]\d)\b(?!-)", _read_month),
        (rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}", _read_month),
        (rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}", _read_day),
        (rf"\b{_MONTH}\s+{_DAY}", _read_day),
        (rf"\b(?:in|during|of|since|last|this|early|late|mid|before|after|until|for)\s+{_MONTH}", _read_month),
        (rf"^{_MONTH}$", _read_month),
        (rf"\b(?:in|during|of|since|before|after|until)\s+{_YEAR}", _read_year),
        (rf"^{_YEAR}$", _read_year),
        (r"\bday before yesterday\b", _named(2)),
        (r"\b(?:yesterday|last night)\b", _named(1)),
        (r"\b(?:today|tonight|this morning|this afternoon|this evening)\b", _named(0)),
        (rf"\b{_COUNT}\s+(?P<unit>day|week|month|year)s?\s+ago\b", _read_ago),
        (r"\b(?P<which>last|this|past|previous)\s+(?P<unit>weekend|week|month|year)\b", _read_last),
        (rf"\b(?:on|last|this|past)\s+{_WEEKDAY}", _read_weekday),
        (rf"^{_WEEKDAY}$", _read_weekday),
    )
)
