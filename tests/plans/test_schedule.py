"""When plans run: cron, once, after a delay, heartbeats; through changes of the clocks, leap days and absurd input."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.clock import SECOND, Instant, instant, moment
from denizen.errors import InvalidInput
from denizen.plans.schedule import (
    WEEKDAYS,
    Cron,
    Heartbeat,
    Once,
    Schedule,
    cron,
    delay_seconds,
    describe,
    dump,
    load,
    named_zone,
    next_run,
    once_after,
    once_at,
    say,
)

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour
    "Africa/Casablanca",  # back for Ramadan
    "Asia/Kathmandu",  # a quarter past, never changed
    "America/Nuuk",
    "Pacific/Chatham",
    "Africa/Cairo",
    "America/Santiago",  # at midnight
]


def at(text: str) -> Instant:
    return instant(datetime.fromisoformat(text).replace(tzinfo=UTC))


def runs(schedule: Schedule, after: str, count: int) -> list[str]:
    """The next times, in UTC."""
    found: list[str] = []
    now: Instant | None = at(after)
    while len(found) < count and now is not None:
        now = next_run(schedule, now)
        found.append("never" if now is None else moment(now).strftime("%Y-%m-%d %H:%M"))
    return found


# Cron


def test_a_plan_runs_by_the_clocks_of_its_zone():
    """Nine o'clock in Berlin is eight in UTC in winter and seven in summer."""
    daily = cron("0 9 * * *", "Europe/Berlin")
    assert runs(daily, "2026-03-27T12:00", 3) == ["2026-03-28 08:00", "2026-03-29 07:00", "2026-03-30 07:00"]
    assert runs(daily, "2026-10-24T00:00", 3) == ["2026-10-24 07:00", "2026-10-25 08:00", "2026-10-26 08:00"]


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        # 02:30 does not exist in Berlin on 29 March: it is the moment of the jump, 03:00 = 01:00 UTC.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["2026-03-29 01:00", "2026-03-30 00:30"]),
        # Two skipped times, and one at the end of the gap, are one moment and one run.
        ("15,45 2 * * *", "Europe/Berlin", "2026-03-29T00:59", ["2026-03-29 01:00", "2026-03-30 00:15"]),
        ("0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00", ["2026-03-29 01:00", "2026-03-30 00:00"]),
        # 02:30 comes twice on 25 October: the first time counts, and once.
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["2026-10-25 00:30", "2026-10-26 01:30"]),
        # Someone who plans it between the two waits for the next day.
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10", ["2026-10-26 01:30"]),
        # Every half hour goes by real time: no pause in the one night, no rush in the other.
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:15",
            ["2026-03-29 00:30", "2026-03-29 01:00", "2026-03-29 01:30"],
        ),
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-10-25T00:15",
            ["2026-10-25 00:30", "2026-10-25 01:00", "2026-10-25 01:30", "2026-10-25 02:00"],
        ),
        # Lord Howe moves by half an hour: 02:00 becomes 02:30 on 4 October, at 15:30 UTC the day before.
        (
            "*/20 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T15:00",
            ["2026-10-03 15:40", "2026-10-04 15:00"],
        ),
        # A day that begins at one o'clock: Santiago skips midnight on 6 September.
        ("0 0 * * *", "America/Santiago", "2026-09-05T12:00", ["2026-09-06 04:00", "2026-09-07 03:00"]),
        # Leap days.
        ("0 12 29 2 *", "UTC", "2026-01-01T00:00", ["2028-02-29 12:00", "2032-02-29 12:00"]),
        ("0 12 29 2 *", "UTC", "2096-03-01T00:00", ["2104-02-29 12:00"]),
        # The last day of the month, names of days, ranges and steps.
        ("0 9 L * *", "UTC", "2026-01-31T10:00", ["2026-02-28 09:00"]),
        ("0 9 * * MON-FRI", "UTC", "2026-01-09T10:00", ["2026-01-12 09:00"]),
        ("0 9 1-10/3 * *", "UTC", "2026-01-02T00:00", ["2026-01-04 09:00", "2026-01-07 09:00", "2026-01-10 09:00"]),
    ],
)
def test_changes_of_the_clocks(expression: str, zone: str, after: str, expected: list[str]):
    assert runs(cron(expression, zone), after, len(expected)) == expected


@pytest.mark.parametrize(
    "expression", ["", "0 9 * *", "* * * * * *", "61 * * * *", "0 25 * * *", "0 0 31 2 *", "a b c d e"]
)
def test_what_is_no_cron_expression_is_said_to_be_none(expression: str):
    with pytest.raises(InvalidInput, match=r"is not a cron expression.*0 9 \* \* MON-FRI"):
        cron(expression, "UTC")


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("Berlin", "Did you mean Europe/Berlin?"),
        ("europe/berlin", "Did you mean Europe/Berlin?"),
        ("Europe/Berlinn", "Did you mean Europe/Berlin"),
        ("new york", "Did you mean America/New_York?"),
        ("../../etc/passwd", 'Use a name such as "Europe/Berlin" or "UTC".'),
        ("", "Use a name"),
        ("localtime", ""),
        ("nul\0", "Use a name"),
    ],
)
def test_an_unknown_zone_is_named_with_the_nearest(zone: str, hint: str):
    with pytest.raises(InvalidInput) as refused:
        named_zone(zone)
    assert str(refused.value).startswith(f"Unknown time zone {zone!r}. ")
    assert hint in str(refused.value)


fields = st.tuples(
    st.sampled_from(["*", "*/7", "0", "30", "15,45", "0-59/20", "59"]),
    st.sampled_from(["*", "*/5", "0", "1", "2", "3", "2,3", "0-4", "23"]),
    st.sampled_from(["*", "1", "15,29", "*/9", "L"]),
    st.sampled_from(["*", "*/2", "2", "3,4,10,11"]),
    st.sampled_from(["*", "SUN", "1-5", "0#2"]),
)
changes = st.sampled_from(
    [
        "2026-03-29T01:00",  # Europe
        "2026-10-25T01:00",
        "2026-03-08T07:00",  # New York
        "2026-11-01T06:00",
        "2026-10-03T15:30",  # Lord Howe
        "2026-04-04T15:00",
        "2026-02-15T02:00",  # Casablanca
        "2026-03-22T02:00",
        "2026-04-23T22:00",  # Cairo
        "2026-09-06T04:00",  # Santiago
        "2028-02-29T00:00",
    ]
)
moments = st.one_of(
    st.builds(
        lambda text, offset: Instant(at(text) + offset),
        changes,
        st.integers(-8 * 3600, 8 * 3600).map(lambda s: s * SECOND),
    ),
    st.builds(lambda micros: Instant(micros), st.integers(at("2025-01-01T00:00"), at("2030-01-01T00:00"))),
)


@given(parts=fields, zone=st.sampled_from(ZONES), after=moments)
def test_the_next_run_is_always_later_and_none_is_passed_over(parts: tuple[str, ...], zone: str, after: Instant):
    """From anywhere before it, a run is found: asking again half-way changes nothing."""
    schedule = cron(" ".join(parts), zone)
    found = next_run(schedule, after)
    assert found is not None
    assert found > after
    assert found % (60 * SECOND) == 0
    for between in (after, Instant((after + found) // 2), Instant(found - 1)):
        assert next_run(schedule, between) == found


@given(
    minute=st.sampled_from(["*", "*/7", "*/20", "0", "30", "5-50/9"]),
    hour=st.sampled_from(["*", "*/5", "2", "1-3"]),
    zone=st.sampled_from(ZONES),
    after=moments,
)
def test_real_time_is_what_the_wall_clock_shows_minute_by_minute(minute: str, hour: str, zone: str, after: Instant):
    """An expression with a star is compared with looking at the clock every minute."""
    if not (minute.startswith("*") or hour.startswith("*")):
        return
    schedule = cron(f"{minute} {hour} * * *", zone)
    place, now = ZoneInfo(zone), moment(after).replace(second=0, microsecond=0) + timedelta(minutes=1)
    while not matches(now.astimezone(place), minute, hour):
        now += timedelta(minutes=1)
    assert moment(next_run(schedule, after) or 0) == now


def matches(shown: datetime, minute: str, hour: str) -> bool:
    return shown.minute in numbers(minute, 60) and shown.hour in numbers(hour, 24)


def numbers(field: str, end: int) -> range | list[int]:
    spread, _, step = field.partition("/")
    if spread == "*":
        return range(0, end, int(step or 1))
    first, _, last = spread.partition("-")
    return range(int(first), int(last or first) + 1, int(step or 1))


@given(hour=st.integers(0, 23), minute=st.integers(0, 59), zone=st.sampled_from(ZONES), after=moments)
def test_a_daily_plan_runs_once_on_every_day(hour: int, minute: int, zone: str, after: Instant):
    """Whatever the clocks do, each day of the zone has one run."""
    schedule, place = cron(f"{minute} {hour} * * *", zone), ZoneInfo(zone)
    days = []
    now: Instant | None = after
    for _ in range(5):
        now = next_run(schedule, now or after)
        days.append(moment(now or 0).astimezone(place).date())
    assert [later - earlier for earlier, later in pairwise(days)] == [timedelta(days=1)] * 4


# Once, and after a delay


def test_one_time_is_run_to_and_not_again():
    assert runs(Once(at=at("2026-01-05T10:00")), "2026-01-05T09:00", 3) == ["2026-01-05 10:00", "never"]


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-02-19T09:00", "UTC", "2026-02-19T09:00"),
        ("2026-02-19T09:00", "Asia/Kathmandu", "2026-02-19T03:15"),
        ("2026-02-19T09:00:00Z", "Asia/Kathmandu", "2026-02-19T09:00"),
        ("2026-02-19 09:00:00+02:00", "Asia/Kathmandu", "2026-02-19T07:00"),
        ("2026-02-19", "UTC", "2026-02-19T00:00"),
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:00"),  # skipped
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30"),  # twice
        ("2028-02-29T12:00", "UTC", "2028-02-29T12:00"),
    ],
)
def test_a_time_without_an_offset_is_told_by_the_zone(text: str, zone: str, expected: str):
    assert once_at(text, zone, at("2026-01-05T09:00")) == Once(at=at(expected), zone=zone)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tomorrow", "is not a time. Use ISO 8601"),
        ("2026-02-30T09:00", "is not a time"),
        ("", "is not a time"),
        ("2026-01-05T09:00", "is past: it is 2026-01-05 09:00 UTC now."),
        ("2025-12-31", "is past"),
        ("2096-01-01", "is more than ten years away"),
        ("9999-12-31T23:59:59-12:00", ""),
        ("0001-01-01T00:00:00+12:00", ""),
    ],
)
def test_a_time_that_cannot_be_planned_for_is_refused(text: str, problem: str):
    with pytest.raises(InvalidInput) as refused:
        once_at(text, "UTC", at("2026-01-05T09:00"))
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2 hours", 7200),
        ("90 seconds", 90),
        ("1 day 2 hours", 93_600),
        ("1 day, 2 hours and 3 minutes", 93_780),
        ("in an hour", 3600),
        ("a week", 604_800),
        ("1h30m", 5400),
        ("1.5 hours", 5400),
        ("10 MIN", 600),
        ("PT2H", 7200),
        ("P1DT2H", 93_600),
        ("P2W", 1_209_600),
        ("pt90s", 90),
        ("PT0.5H", 1800),
    ],
)
def test_a_delay_is_understood_as_people_write_it(text: str, seconds: float):
    assert delay_seconds(text) == seconds
    assert once_after(text, "UTC", at("2026-01-05T09:00")).at == at("2026-01-05T09:00") + seconds * SECOND


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "5",
        "2 months",
        "1 year",
        "-1 hours",
        "P",
        "PT",
        "P1Y",
        "P1M",
        "PT1.2.3S",
        "2 hours maybe",
        "1 mississippi",
    ],
)
def test_what_is_no_delay_is_said_to_be_none(text: str):
    with pytest.raises(InvalidInput, match=r"is not a delay\. Use a number and a unit"):
        delay_seconds(text)


@pytest.mark.parametrize(
    ("text", "problem"), [("0 seconds", "too short"), ("0.2 s", "too short"), ("999 weeks", "too long")]
)
def test_a_delay_has_bounds(text: str, problem: str):
    with pytest.raises(InvalidInput, match=problem):
        delay_seconds(text)


@given(st.text(max_size=40))
def test_any_text_is_understood_or_refused_with_a_sentence(text: str):
    """Nothing that a model writes ends in another error."""
    now = at("2026-01-05T09:00")
    for read in (delay_seconds, lambda given: once_at(given, "UTC", now), lambda given: cron(given, "UTC")):
        assert refusal_of(read, text).endswith(".")


def refusal_of(read: Callable[[str], object], text: str) -> str:
    try:
        read(text)
    except InvalidInput as refused:
        return str(refused)
    return "None."


# Heartbeats


def test_a_heartbeat_beats_within_its_hours_on_its_days():
    beat = Heartbeat(minutes=90, start=time(9), end=time(12), weekdays=("Mon", "Fri"))
    assert runs(beat, "2026-01-05T09:00", 4) == [
        "2026-01-05 10:30",
        "2026-01-09 09:00",
        "2026-01-09 10:30",
        "2026-01-12 09:00",
    ]


def test_hours_may_go_past_midnight():
    """They belong to the day on which they begin."""
    beat = Heartbeat(minutes=120, start=time(22), end=time(3), weekdays=("Sat",), zone="Europe/Berlin")
    assert runs(beat, "2026-01-05T09:00", 4) == [
        "2026-01-10 21:00",
        "2026-01-10 23:00",
        "2026-01-11 01:00",
        "2026-01-17 21:00",
    ]


def test_a_heartbeat_without_hours_beats_all_day():
    assert runs(Heartbeat(minutes=480), "2026-01-05T09:00", 3) == [
        "2026-01-05 16:00",
        "2026-01-06 00:00",
        "2026-01-06 08:00",
    ]


def test_the_night_in_which_the_clocks_change_has_as_many_beats_as_it_has_hours():
    beat = Heartbeat(minutes=60, start=time(0), end=time(6), zone="Europe/Berlin")
    assert runs(beat, "2026-03-28T22:59", 6) == [
        "2026-03-28 23:00",
        "2026-03-29 00:00",
        "2026-03-29 01:00",
        "2026-03-29 02:00",
        "2026-03-29 03:00",
        "2026-03-29 22:00",
    ]
    assert len([each for each in runs(beat, "2026-10-24T21:59", 8) if each < "2026-10-25 12:00"]) == 7


@given(
    minutes=st.integers(1, 1440),
    start=st.times().map(lambda each: each.replace(second=0, microsecond=0)),
    end=st.times().map(lambda each: each.replace(second=0, microsecond=0)),
    days=st.lists(st.sampled_from(WEEKDAYS), min_size=1, unique=True),
    zone=st.sampled_from(ZONES),
    after=moments,
)
def test_a_beat_is_always_within_the_hours_and_none_is_passed_over(
    minutes: int, start: time, end: time, days: list, zone: str, after: Instant
):
    beat = Heartbeat(minutes=minutes, start=start, end=end, weekdays=tuple(days), zone=zone)
    found = next_run(beat, after)
    assert found is not None
    assert found > after
    assert next_run(beat, Instant(found - 1)) == found
    assert next_run(beat, Instant((after + found) // 2)) == found


# Clocks that are wrong, and the rest


@given(
    schedule=st.sampled_from(
        [cron("*/10 * * * *", "Europe/Berlin"), cron("30 2 * * *", "Europe/Berlin"), Heartbeat(minutes=25)]
    ),
    jumps=st.lists(st.integers(-3 * 86_400, 3 * 86_400), min_size=1, max_size=20),
)
def test_whatever_the_clock_does_no_time_runs_twice(schedule: Schedule, jumps: list[int]):
    """Reckoned from the later of now and the last run, runs only go forward; and there is always a next one."""
    now, ran = at("2026-03-28T12:00"), list[int]()
    due = next_run(schedule, now)
    for jump in jumps:
        now = Instant(now + jump * SECOND)
        assert due is not None
        if due <= now:
            ran.append(due)
            due = next_run(schedule, max(now, due))
    assert ran == sorted(set(ran))


@pytest.mark.parametrize(
    "schedule",
    [
        Cron(expression="0 9 * * *", zone="Asia/Tokyo"),
        Once(at=5),
        Heartbeat(minutes=5, start=time(9, 30), weekdays=("Sun",)),
    ],
)
def test_a_schedule_is_stored_as_it_is(schedule: Schedule):
    assert load(dump(schedule)) == schedule


def test_schedules_and_times_are_told_in_words():
    assert describe(cron("0  9 * * *", "Asia/Tokyo")) == "recurring, cron: 0 9 * * *, Asia/Tokyo"
    assert describe(Once(at=at("2026-01-05T20:00"), zone="Asia/Tokyo")) == (
        "once, at 2026-01-05 20:00 UTC (05:00 on 2026-01-06 Asia/Tokyo)"
    )
    hours = Heartbeat(minutes=30, start=time(9), end=time(17, 30), weekdays=("Mon", "Tue"))
    assert describe(hours) == "recurring, every 30 minutes, 09:00–17:30, Mon Tue, UTC"
    assert describe(Heartbeat(minutes=1)) == "recurring, every minute, UTC"
    assert say(at("2026-01-05T20:00:07"), "Europe/Berlin") == "2026-01-05 20:00:07 UTC (21:00 Europe/Berlin)"
