"""Parses times that a question names. Pure: what "last week" means depends on `now` and the zone only."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import Final

from denizen.clock import SECOND, Instant, moment, zone_or_utc
from denizen.consciousness.recall.terms import fold
from denizen.consciousness.recall.time_words import (
    DAYS_BACK,
    FRENCH,
    HOLIDAYS,
    IN,
    LAST,
    MONTH_FIRST_ZONES,
    MONTHS,
    NUMBERS,
    SEASONS,
    SOUTHERN_ZONES,
    SPANS_BACK,
    THIS,
    UNITS,
    WEEKDAYS,
    holiday,
)

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


@dataclass(frozen=True, slots=True)
class _Calendar:
    """What a time that is named depends on."""

    today: date
    zone: str


Days = tuple[date, date]
"""The first day, and the one after the last."""
Reader = Callable[[re.Match[str], _Calendar], Days | None]


def period_in(text: str, *, now: Instant, zone: str = "UTC") -> Period | None:
    """The first period that `text` names as a date, or relative to `now`; days are those of the zone.

    In English, and the common ways in other languages (`time_words`). 3/5 is the fifth of March if the zone is one of
    the United States, otherwise the third of May.
    """
    return without_period(text, now=now, zone=zone)[0]


def without_period(text: str, *, now: Instant, zone: str = "UTC") -> tuple[Period | None, str]:
    """The same, and the folded text without the words that name it."""
    calendar = _Calendar(_local(now, zone).date(), zone)
    folded = fold(text)
    for pattern, read in _readers():
        for match in pattern.finditer(folded):
            days = read(match, calendar)
            if days is not None:
                return _period(*days, zone), f"{folded[: match.start()]} {folded[match.end() :]}"
    return None, folded


def period_of(text: str, *, now: Instant, zone: str = "UTC") -> Period | None:
    """The period that `text` as a whole means: a date, `last week`, `since May`, `before 2024-02-01`, `A to B`."""
    folded = " ".join(fold(text).split())
    if found := re.fullmatch(r"(?:since|after|from|seit|depuis|desde) (.+)", folded):
        begun = period_in(found[1], now=now, zone=zone)
        if begun is not None and not re.search(r" to | until |\.\.", folded):
            return Period(begun.end if folded.startswith("after") else begun.first, _LATEST)
    if found := re.fullmatch(r"(?:before|until|bis) (.+)", folded):
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


def _number(word: str) -> int:
    return NUMBERS.get(word) or int(word)


def _read_day(match: re.Match[str], calendar: _Calendar) -> Days | None:
    """A day of a month; without a year, the most recent one."""
    given = match.groupdict()
    month = MONTHS.get(given["month"]) or int(given["month"])
    return _day_of(calendar, given.get("year"), month, int(given["day"]))


def _day_of(calendar: _Calendar, year: str | None, month: int, day: int) -> Days | None:
    today = calendar.today
    for each in [_full_year(year)] if year else [today.year, today.year - 1]:
        try:
            found = date(each, month, day)
        except ValueError:
            continue
        if found <= today or year:
            return _days(found)
    return None


def _full_year(year: str) -> int:
    return int(year) if len(year) == 4 else 2000 + int(year)


def _read_slashes(match: re.Match[str], calendar: _Calendar) -> Days | None:
    """`3/5/2026`: which of them is the month depends on the country, unless one is too large."""
    first, second = int(match["first"]), int(match["second"])
    month_first = calendar.zone.startswith(MONTH_FIRST_ZONES)
    if (month_first and first <= 12) or second > 12:
        return _day_of(calendar, match["year"], first, second)
    return _day_of(calendar, match["year"], second, first)


def _read_month(match: re.Match[str], calendar: _Calendar) -> Days | None:
    given = match.groupdict()
    month = MONTHS.get(given["month"]) or int(given["month"])
    if not 1 <= month <= 12:
        return None
    # Without a year, the most recent one that has begun.
    today = calendar.today
    year = int(given["year"]) if given.get("year") else today.year - (month > today.month)
    return _whole_month(year, month)


def _read_year(match: re.Match[str], _calendar: _Calendar) -> Days:
    year = int(match["year"])
    return date(year, 1, 1), date(year + 1, 1, 1)


def _read_quarter(match: re.Match[str], calendar: _Calendar) -> Days:
    quarter, year = int(match["quarter"]), match["year"]
    return _quarter(calendar, quarter, int(year) if year else None)


def _quarter(calendar: _Calendar, quarter: int, year: int | None) -> Days:
    today = calendar.today
    in_year = year or today.year - (3 * quarter - 2 > today.month)
    return date(in_year, 3 * quarter - 2, 1), _whole_month(in_year, 3 * quarter)[1]


def _read_season(match: re.Match[str], calendar: _Calendar) -> Days | None:
    """Three whole months; without a year, the most recent one that has begun, and with "last" one that has ended."""
    given, today = match.groupdict(), calendar.today
    southern = calendar.zone.startswith(SOUTHERN_ZONES)
    month = (3 + 3 * SEASONS[given["season"]] + (6 if southern else 0) - 1) % 12 + 1
    for year in [int(given["year"])] if given.get("year") else range(today.year, today.year - 3, -1):
        first, end = date(year, month, 1), date(year + (month > 9), (month + 2) % 12 + 1, 1)
        if given.get("year") or (end if given.get("last") else first) <= today:
            return first, end
    return None


def _read_holiday(match: re.Match[str], calendar: _Calendar) -> Days | None:
    given, today = match.groupdict(), calendar.today
    name = HOLIDAYS.get(given["holiday"], "new year")
    for year in [int(given["year"])] if given.get("year") else (today.year, today.year - 1):
        first, end = holiday(name, year)
        if given.get("year") or first <= today:
            return first, end
    return None


def _read_ago(match: re.Match[str], calendar: _Calendar) -> Days | None:
    return _back(calendar.today, UNITS.get(match["unit"]) or _SIGNS[match["unit"]], _number(match["count"]))


_SIGNS = {
    "日": "day",
    "天": "day",
    "週間": "week",
    "周": "week",
    "か月": "month",
    "ヶ月": "month",
    "个月": "month",
    "年": "year",
}


def _back(today: date, unit: str, count: int) -> Days | None:
    """The day, week, month, … that was so many ago: the whole of it."""
    match unit:
        case "day":
            return _days(today - timedelta(days=count))
        case "week":
            return _days(_monday(today) - timedelta(weeks=count), 7)
        case "weekend":
            # On a weekend, "last weekend" is the one before.
            return _days(_monday(today) + timedelta(days=5) - timedelta(weeks=count), 2)
        case "month":
            return _whole_month(*_months_before(today, count)) if count < 1200 else None
        case "quarter":
            quarters = today.year * 4 + (today.month - 1) // 3 - count
            return _quarter(_Calendar(today, ""), quarters % 4 + 1, quarters // 4)
        case _:
            return (date(today.year - count, 1, 1), date(today.year - count + 1, 1, 1)) if count < 1000 else None


def _read_last(match: re.Match[str], calendar: _Calendar) -> Days | None:
    return _back(calendar.today, UNITS[match["unit"]], 0 if match["which"] in THIS else 1)


def _read_span(match: re.Match[str], calendar: _Calendar) -> Days | None:
    return _back(calendar.today, *SPANS_BACK[match[0]])


def _read_weekday(match: re.Match[str], calendar: _Calendar) -> Days:
    """The last such day before today."""
    today = calendar.today
    back = (today.weekday() - WEEKDAYS[match["weekday"]] - 1) % 7 + 1
    return _days(today - timedelta(days=back))


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _read_named(match: re.Match[str], calendar: _Calendar) -> Days:
    return _days(calendar.today - timedelta(days=DAYS_BACK[match[0]]))


def _named(days_back: int) -> Reader:
    return lambda _match, calendar: _days(calendar.today - timedelta(days=days_back))


def _one_of(name: str, words: Iterable[str]) -> str:
    """A group that matches one of the words, the longest first."""
    return f"(?P<{name}>{'|'.join(sorted(map(re.escape, words), key=len, reverse=True))})"


@cache
def _readers() -> tuple[tuple[re.Pattern[str], Reader], ...]:
    """How times are written, the most certain first; made when first needed."""
    month, weekday = _one_of("month", MONTHS) + r"\b\.?", _one_of("weekday", WEEKDAYS) + r"\b"
    day = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th|er)?\b\.?"
    year = r"(?P<year>(?:19|20)\d\d)\b"
    of = r"(?:(?:of|de|del|di)\s+)?"
    count = rf"(?:a\s+)?(?P<count>\d{{1,3}}|{'|'.join(sorted(NUMBERS, key=len, reverse=True))})(?:\s+of)?"
    unit, last, this = _one_of("unit", UNITS), _one_of("which", LAST), _one_of("which", (*LAST, *THIS))
    season, within = _one_of("season", SEASONS) + r"\b", "|".join(IN)
    feast = rf"(?:{_one_of('holiday', HOLIDAYS)}|new year(?:'?s)?(?: eve| day)?)\b"
    beside = (
        r"\b(?:over|at|on|during|for|since|before|after|around|until|last|this|zu|uber|seit|letzte|letztes|letzten|"
        r"pour|por|en)"
    )
    given = (
        (rf"\b{year}-(?P<month>[01]\d)-{day}", _read_day),
        (r"(?P<year>\d{4})\s*年\s*(?P<month>\d{1,2})\s*月\s*(?P<day>\d{1,2})\s*日", _read_day),
        (r"(?P<year>\d{4})\s*年\s*(?P<month>\d{1,2})\s*月", _read_month),
        (r"(?<!\d)(?P<month>\d{1,2})\s*月\s*(?P<day>\d{1,2})\s*[日号號]", _read_day),
        (r"\b(?P<day>[0-3]?\d)\.\s?(?P<month>[01]?\d)\.\s?(?P<year>(?:19|20)\d\d|\d\d)\b", _read_day),
        (r"\b(?P<first>[0-3]?\d)/(?P<second>[0-3]?\d)/(?P<year>(?:19|20)\d\d|\d\d)\b", _read_slashes),
        (rf"\b{day}\s+{of}{month},?\s+{of}{year}", _read_day),
        (rf"\b{month}\s+{day},?\s+{year}", _read_day),
        (rf"\b{year}-(?P<month>[01]\d)\b(?!-)", _read_month),
        (rf"\b{month},?\s+{of}{year}", _read_month),
        (rf"\bq(?P<quarter>[1-4])(?:[\s/]+{year})?", _read_quarter),
        (rf"\b(?P<quarter>[1-4])\. quartal(?:\s+{year})?", _read_quarter),
        (rf"\b{season}\s+{of}{year}", _read_season),
        (rf"\b{feast}\s+{of}{year}", _read_holiday),
        (rf"\b{day}\s+{of}{month}", _read_day),
        (r"\b(?P<day>[0-3]?\d)\.\s?(?P<month>[01]?\d)\.(?!\d)", _read_day),
        (rf"\b{month}\s+{day}", _read_day),
        (rf"\b(?:{within})\s+{month}", _read_month),
        (rf"^{month}$", _read_month),
        (rf"\b(?:in|during|of|since|before|after|until|im jahr|seit|en|desde|depuis)\s+{year}", _read_year),
        (rf"^{year}$", _read_year),
        (r"\b(?:day before yesterday|avant-hier)\b", _named(2)),
        (r"\blast night\b", _named(1)),
        (rf"(?:^hier$|^(?=.*\b(?:{'|'.join(FRENCH)})\b)(?!.*\b(?:ist|und|der|das|ich)\b).*\bhier\b)", _named(1)),
        (r"\b(?:this morning|this afternoon|this evening|aujourd'?hui)\b", _named(0)),
        ("|".join(_as_word(word) for word in sorted(DAYS_BACK, key=len, reverse=True)), _read_named),
        ("|".join(sorted(SPANS_BACK, key=len, reverse=True)), _read_span),
        (rf"\b{count}\s+{unit}\s+(?:ago|fa|geleden)\b", _read_ago),
        (rf"\b(?:vor|il y a|hace|ha)\s+{count}\s+{unit}\b", _read_ago),
        (rf"(?P<count>\d{{1,3}})\s*{_one_of('unit', _SIGNS)}前", _read_ago),
        (rf"\b{this}\s+{unit}\b", _read_last),
        (rf"\b{unit}\s+{last}\b", _read_last),
        (rf"\b(?P<last>{'|'.join(LAST)})\s+{season}", _read_season),
        (rf"\b{season}\s+(?P<last>{'|'.join(LAST)})\b", _read_season),
        (rf"\b(?:in|during|this|im|diesen|en|au)\s+(?:the\s+)?{season}", _read_season),
        (rf"^{season}$", _read_season),
        (rf"{beside}\s+{feast}", _read_holiday),
        (rf"^{feast}$", _read_holiday),
        (rf"\b(?:on|am|el|{'|'.join((*LAST, *THIS))})\s+{weekday}", _read_weekday),
        (rf"\b{weekday}\s+{last}\b", _read_weekday),
        (rf"^{weekday}$", _read_weekday),
    )
    return tuple((re.compile(pattern), read) for pattern, read in given)


def _as_word(word: str) -> str:
    return rf"\b{word}\b" if word.isascii() or "\u0400" <= word[0] < "\u0500" else word
