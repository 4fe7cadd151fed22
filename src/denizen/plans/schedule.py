"""Schedules and their next times. Pure: no clock, no storage.

Where the clocks of a zone are set forward, a time that they skip is the moment at which they jump. Where they are set
back, a time that comes twice is the first of the two. A cron expression whose minute or hour begins with `*` goes by
real time instead, as Debian's cron does: it neither waits nor hurries while the clocks change.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Annotated, Final, Literal, assert_never
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from denizen.clock import LATEST, SECOND, Instant, instant, moment
from denizen.errors import InvalidInput
from denizen.nearest import nearest

Weekday = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
WEEKDAYS: Final[tuple[Weekday, ...]] = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

LONGEST_DELAY_SECONDS: Final = 10 * 366 * 86_400
_MIDNIGHT: Final = time(0, 0)
_DAY: Final = timedelta(days=1)


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Cron(_Value):
    """Again and again, by a cron expression of five fields. Make one with `cron`, which checks it."""

    kind: Literal["cron"] = "cron"
    expression: str
    zone: str = "UTC"


class Once(_Value):
    """One time. The zone says only how the time is told."""

    kind: Literal["once"] = "once"
    at: int
    zone: str = "UTC"


class Heartbeat(_Value):
    """Every so many minutes from the beginning of the active hours until their end.

    Hours that end before they begin go on past midnight; those that end as they begin last the whole day. The weekday
    is that on which they begin.
    """

    kind: Literal["heartbeat"] = "heartbeat"
    minutes: int = Field(ge=1, le=1440)
    start: time = _MIDNIGHT
    end: time = _MIDNIGHT
    weekdays: tuple[Weekday, ...] = Field(default=WEEKDAYS, min_length=1)
    zone: str = "UTC"


Schedule = Cron | Once | Heartbeat

_STORED: Final = TypeAdapter[Schedule](Annotated[Schedule, Field(discriminator="kind")])


def dump(schedule: Schedule) -> str:
    return schedule.model_dump_json()


def load(stored: str) -> Schedule:
    return _STORED.validate_json(stored)


def checked(schedule: Schedule) -> Schedule:
    """The schedule, if it is valid here. Raises `InvalidInput` that says why it is not."""
    match schedule:
        case Cron():
            return cron(schedule.expression, schedule.zone)
        case Once():
            if not 0 <= schedule.at <= LATEST:
                raise InvalidInput("That time is too far in the future.")
        case Heartbeat():
            pass
        case _:
            assert_never(schedule)
    named_zone(schedule.zone)
    return schedule


def next_run(schedule: Schedule, after: Instant) -> Instant | None:
    """The first time after `after`, never that time itself; None if none is left."""
    match schedule:
        case Once():
            return Instant(schedule.at) if schedule.at > after else None
        case Cron():
            return _next_cron(schedule, moment(after))
        case Heartbeat():
            return _next_heartbeat(schedule, moment(after))
        case _:
            assert_never(schedule)


# Parsing what people and models write


def cron(expression: str, zone: str) -> Cron:
    """A schedule from a cron expression: minute, hour, day of month, month, day of week, in the given time zone."""
    made = Cron(expression=" ".join(expression.split()), zone=named_zone(zone).key)
    if len(made.expression.split()) != 5:
        raise InvalidInput(
            f"{expression!r} is not a cron expression: it needs five fields: minute, hour, day of month, month and day "
            'of week, such as "0 9 * * MON-FRI".'
        )
    try:
        CronSim(made.expression, datetime(2000, 1, 1))  # noqa: DTZ001  the wall clock of any zone
    except (CronSimError, AssertionError, ValueError) as error:
        problem = str(error)[:1].lower() + str(error)[1:] or "bad field"
        raise InvalidInput(
            f'{expression!r} is not a cron expression ({problem}). Use something like "0 9 * * MON-FRI".'
        ) from (error)
    return made


def once_at(text: str, zone: str, now: Instant) -> Once:
    """One time in ISO 8601; without an offset it is in `zone`."""
    place = named_zone(zone)
    try:
        given = datetime.fromisoformat(text.strip())
        at = _resolve(given, place) if given.tzinfo is None else given.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f'{text!r} is not a time. Use ISO 8601, such as "2026-02-19T09:00" (in {zone}) or "2026-02-19T09:00:00Z".'
        ) from error
    if at > moment(now) + timedelta(seconds=LONGEST_DELAY_SECONDS):
        raise InvalidInput(f"{text!r} is more than ten years away.")
    if instant(at) <= now:
        raise InvalidInput(f"{text!r} is past: it is {say(now, zone)} now.")
    return Once(at=instant(at), zone=place.key)


def once_after(text: str, zone: str, now: Instant) -> Once:
    """One time after a delay such as "2 hours". A day is 24 hours, whatever the clocks do."""
    return Once(at=now + round(delay_seconds(text) * SECOND), zone=named_zone(zone).key)


_UNITS: Final = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_WORDS: Final = re.compile(
    r"(?P<number>\d{1,9}(?:\.\d{1,6})?|an?)\s*"
    r"(?P<unit>weeks?|w|days?|d|hours?|hrs?|hr|h|minutes?|mins?|min|m|seconds?|secs?|sec|s)(?![a-z])",
    re.IGNORECASE,
)
_BETWEEN: Final = re.compile(r"[\s,]*(?:and\b)?[\s,]*", re.IGNORECASE)
_ISO: Final = re.compile(
    r"P(?=.)(?:(?P<w>[\d.]+)W)?(?:(?P<d>[\d.]+)D)?(?:T(?=.)(?:(?P<h>[\d.]+)H)?(?:(?P<m>[\d.]+)M)?(?:(?P<s>[\d.]+)S)?)?",
    re.IGNORECASE,
)


def delay_seconds(text: str) -> float:
    """The length of "2 hours", "90 seconds", "1 day 2 hours", "1h30m" or an ISO 8601 duration."""
    seconds = _iso_seconds(text.strip()) if text.strip()[:1] in ("P", "p") else _worded_seconds(text)
    if seconds is None:
        raise InvalidInput(
            f'{text!r} is not a delay. Use a number and a unit (seconds, minutes, hours, days, weeks), such as "90 '
            'seconds" or "1 day 2 hours", or an ISO 8601 duration such as "PT2H"; for longer, give a date.'
        )
    if not 1 <= seconds <= LONGEST_DELAY_SECONDS:
        raise InvalidInput(f"{text!r} is too {'short' if seconds < 1 else 'long'}: from one second to ten years.")
    return seconds


def _worded_seconds(text: str) -> float | None:
    rest = re.sub(r"^\s*(in|after)\b", "", text, flags=re.IGNORECASE).strip()
    total: float | None = None
    while rest:
        found = _WORDS.match(rest)
        if found is None:
            return None
        number = found["number"]
        total = (total or 0) + (1.0 if number[0] in "aA" else float(number)) * _UNITS[found["unit"][0].lower()]
        rest = _BETWEEN.sub("", rest[found.end() :], count=1)
    return total


def _iso_seconds(text: str) -> float | None:
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    try:
        return sum(float(number) * _UNITS[unit] for unit, number in found.groupdict().items() if number)
    except ValueError:
        return None


# Zones


@lru_cache(maxsize=512)
def named_zone(name: str) -> ZoneInfo:
    """The time zone of that name. Raises `InvalidInput` with the nearest names."""
    try:
        if name == "localtime":
            raise ValueError(name)  # it is another zone on every machine
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        near = _nearest_zones(name)
        raise InvalidInput(
            f"Unknown time zone {name!r}. "
            + (f"Did you mean {' or '.join(near)}?" if near else 'Use a name such as "Europe/Berlin" or "UTC".')
        ) from error


def _nearest_zones(name: str) -> list[str]:
    known = {each.lower(): each for each in available_timezones()}
    wanted = name.lower().replace(" ", "_")
    cities = [zone for lower, zone in known.items() if lower.rpartition("/")[2] == wanted.rpartition("/")[2]]
    return sorted(cities)[:3] or [known[each] for each in nearest(wanted, known, most=3)]


def say(at: int, zone: str = "UTC") -> str:
    """A time as text: `2026-02-19 08:00 UTC`, and in the zone's time if that differs."""
    utc = moment(at)
    told = f"{utc:%Y-%m-%d %H:%M}{f':{utc:%S}' if utc.second else ''} UTC"
    try:
        there = utc.astimezone(named_zone(zone))
    except InvalidInput:  # known where it was planned, but not on this machine
        return told
    if zone == "UTC":
        return told
    return f"{told} ({there:%H:%M}{'' if there.date() == utc.date() else f' on {there:%Y-%m-%d}'} {zone})"


def describe(schedule: Schedule) -> str:
    """A schedule in a few words that stay the same from run to run."""
    match schedule:
        case Once():
            return f"once, at {say(schedule.at, schedule.zone)}"
        case Cron():
            return f"recurring, cron: {schedule.expression}, {schedule.zone}"
        case Heartbeat():
            hours = "" if schedule.start == schedule.end else f", {schedule.start:%H:%M}–{schedule.end:%H:%M}"
            days = "" if set(schedule.weekdays) == set(WEEKDAYS) else f", {' '.join(schedule.weekdays)}"
            unit = "minute" if schedule.minutes == 1 else f"{schedule.minutes} minutes"
            return f"recurring, every {unit}{hours}{days}, {schedule.zone}"
        case _:
            assert_never(schedule)


# Computation


def _resolve(naive: datetime, zone: ZoneInfo) -> datetime:
    """The moment, in UTC, at which the clocks of the zone show this; the first one, or that of the jump over it."""
    at = naive.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if at.astimezone(zone).replace(tzinfo=None) == naive:
        return at
    # Skipped: read by the clocks before the jump it is `at`, by those after it, it is earlier.
    earlier = naive.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return _jump_between(earlier, at, zone)


def _jump_between(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The first moment, to the second, at which the zone's offset is no longer that of `before`."""
    before, after = before.replace(microsecond=0), after.replace(microsecond=0)
    offset = _offset(before, zone)
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=int((after - before).total_seconds()) // 2)
        before, after = (middle, after) if _offset(middle, zone) == offset else (before, middle)
    return after


def _offset(at: datetime, zone: ZoneInfo) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta(0)


def _next_cron(schedule: Cron, after: datetime) -> Instant | None:
    zone = named_zone(schedule.zone)
    minute, hour, *_ = schedule.expression.split()
    by_real_time = minute.startswith("*") or hour.startswith("*")
    found = (_by_real_time if by_real_time else _by_wall_clock)(schedule.expression, zone, after)
    return None if found is None else instant(found)


def _next_on_the_wall(expression: str, naive: datetime) -> datetime | None:
    """The next time after `naive` that matches, by a clock that is never changed."""
    try:
        return next(CronSim(expression, naive))
    except (StopIteration, CronSimError, OverflowError):
        return None


def _by_wall_clock(expression: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    # From a day before: what the wall clock showed there may come after `after` where clocks were set back since, or be
    # moved on to the moment of a jump.
    shown: datetime | None = after.astimezone(zone).replace(tzinfo=None, fold=0) - _DAY
    while (shown := _next_on_the_wall(expression, shown)) is not None:
        at = _resolve(shown, zone)
        if at > after:
            return at
    return None


def _by_real_time(expression: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    since, offset = after, _offset(after, zone)
    while instant(since) < LATEST:
        shown = _next_on_the_wall(expression, (after + offset).replace(tzinfo=None))
        if shown is None:
            return None
        at = shown.replace(tzinfo=UTC) - offset
        change = _first_change(since, at, zone)
        if change is None:
            return at
        # From just before the change, by the new offset: the moment of the change may itself be a time.
        since, after, offset = change, change - timedelta(microseconds=1), _offset(change, zone)
    return None


def _first_change(begin: datetime, end: datetime, zone: ZoneInfo) -> datetime | None:
    """The first moment after `begin`, up to `end`, at which the clocks are changed."""
    offset = _offset(begin, zone)
    while begin < end:
        upto = min(begin + _DAY, end)
        if _offset(upto, zone) != offset:
            return _jump_between(begin, upto, zone)
        begin = upto
    return None


def _next_heartbeat(schedule: Heartbeat, after: datetime) -> Instant | None:
    zone = named_zone(schedule.zone)
    today = after.astimezone(zone).date()
    # Hours of the day before may go on past midnight; the next active weekday is at most a week away.
    for days in range(-2, 16):
        found = _in_hours_of(schedule, zone, today + timedelta(days=days), after)
        if found is not None:
            return instant(found)
    return None


def _in_hours_of(schedule: Heartbeat, zone: ZoneInfo, day: date, after: datetime) -> datetime | None:
    if WEEKDAYS[day.weekday()] not in schedule.weekdays:
        return None
    begin = _resolve(datetime.combine(day, schedule.start), zone)
    last_day = day if schedule.start < schedule.end else day + _DAY
    end = _resolve(datetime.combine(last_day, schedule.end), zone)
    step = timedelta(minutes=schedule.minutes)
    at = begin if begin > after else begin + ((after - begin) // step + 1) * step
    return at if at < end else None
