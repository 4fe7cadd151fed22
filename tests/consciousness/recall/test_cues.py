"""What questions say about time."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from denizen.clock import Instant, instant, moment
from denizen.consciousness.recall.cues import Period, period_in, period_of
from denizen.consciousness.recall.time_words import easter, holiday

NEW_YEAR = instant(datetime(2024, 1, 1, 12, tzinfo=UTC))
"""A Monday."""
LEAP_DAY = instant(datetime(2024, 2, 29, 12, tzinfo=UTC))


def days(period: Period | None) -> tuple[str, str] | None:
    if period is None:
        return None
    return f"{moment(period.first):%Y-%m-%d}", "" if period.end > 2**61 else f"{moment(period.end):%Y-%m-%d}"


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("What happened on 7 May 2023?", "2023-05-07", "2023-05-08"),
        ("on May 7th, 2023", "2023-05-07", "2023-05-08"),
        ("the 31st of December", "2023-12-31", "2024-01-01"),
        ("2022-12-31", "2022-12-31", "2023-01-01"),
        ("in December 2023", "2023-12-01", "2024-01-01"),
        ("last december", "2023-12-01", "2024-01-01"),
        ("in january", "2024-01-01", "2024-02-01"),
        ("in 2021", "2021-01-01", "2022-01-01"),
        ("yesterday", "2023-12-31", "2024-01-01"),
        ("the day before yesterday", "2023-12-30", "2023-12-31"),
        ("today", "2024-01-01", "2024-01-02"),
        ("3 days ago", "2023-12-29", "2023-12-30"),
        ("last week", "2023-12-25", "2024-01-01"),
        ("this week", "2024-01-01", "2024-01-08"),
        ("two weeks ago", "2023-12-18", "2023-12-25"),
        ("last weekend", "2023-12-30", "2024-01-01"),
        ("last month", "2023-12-01", "2024-01-01"),
        ("a month ago", "2023-12-01", "2024-01-01"),
        ("13 months ago", "2022-12-01", "2023-01-01"),
        ("last year", "2023-01-01", "2024-01-01"),
        ("on Friday", "2023-12-29", "2023-12-30"),
        ("last Monday", "2023-12-25", "2023-12-26"),
        ("on Sunday", "2023-12-31", "2024-01-01"),
        ("on Tuesday", "2023-12-26", "2023-12-27"),
        ("in Sept 2022", "2022-09-01", "2022-10-01"),
        ("9 Sep", "2023-09-09", "2023-09-10"),
        ("this weekend", "2024-01-06", "2024-01-08"),
        ("this month", "2024-01-01", "2024-02-01"),
        ("this year", "2024-01-01", "2025-01-01"),
        ("last night", "2023-12-31", "2024-01-01"),
        ("a few days ago", "2023-12-29", "2023-12-30"),
        ("a couple of weeks ago", "2023-12-18", "2023-12-25"),
        ("ten years ago", "2014-01-01", "2015-01-01"),
        ("1 January", "2024-01-01", "2024-01-02"),
        ("2 January", "2023-01-02", "2023-01-03"),
    ],
)
def test_a_question_asked_at_the_turn_of_the_year(text: str, first: str, end: str) -> None:
    """Days, weeks, months and years before now are found across the year's end."""
    assert days(period_in(text, now=NEW_YEAR)) == (first, end)


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("Was war gestern?", "2023-12-31", "2024-01-01"),
        ("vorgestern", "2023-12-30", "2023-12-31"),
        ("am 05.03.2023", "2023-03-05", "2023-03-06"),
        ("am 5.3.", "2023-03-05", "2023-03-06"),
        ("letzte Woche", "2023-12-25", "2024-01-01"),
        ("im März 2023", "2023-03-01", "2023-04-01"),
        ("am 7. Mai 2023", "2023-05-07", "2023-05-08"),
        ("vor drei Tagen", "2023-12-29", "2023-12-30"),
        ("letzten Freitag", "2023-12-29", "2023-12-30"),
        ("letzten Sommer", "2023-06-01", "2023-09-01"),
        ("Was war hier los?", None, None),
        ("qu'est-ce qu'on a dit hier ?", "2023-12-31", "2024-01-01"),
        ("la semaine dernière", "2023-12-25", "2024-01-01"),
        ("le 3 février 2023", "2023-02-03", "2023-02-04"),
        ("il y a 2 mois", "2023-11-01", "2023-12-01"),
        ("ayer", "2023-12-31", "2024-01-01"),
        ("el mes pasado", "2023-12-01", "2024-01-01"),
        ("hace tres días", "2023-12-29", "2023-12-30"),
        ("el 5 de mayo de 2023", "2023-05-05", "2023-05-06"),
        ("ieri", "2023-12-31", "2024-01-01"),
        ("ontem", "2023-12-31", "2024-01-01"),
        ("вчера", "2023-12-31", "2024-01-01"),
        ("昨日は何をした？", "2023-12-31", "2024-01-01"),
        ("一昨日", "2023-12-30", "2023-12-31"),
        ("先週の会議", "2023-12-25", "2024-01-01"),
        ("3日前", "2023-12-29", "2023-12-30"),
        ("2023年5月7日", "2023-05-07", "2023-05-08"),
        ("昨天", "2023-12-31", "2024-01-01"),
        ("어제", "2023-12-31", "2024-01-01"),
        ("Q3 2022", "2022-07-01", "2022-10-01"),
        ("in Q4", "2023-10-01", "2024-01-01"),
        ("last quarter", "2023-10-01", "2024-01-01"),
        ("last summer", "2023-06-01", "2023-09-01"),
        ("in the summer of 2022", "2022-06-01", "2022-09-01"),
        ("last winter", "2022-12-01", "2023-03-01"),
        ("over Christmas", "2023-12-24", "2023-12-27"),
        ("Christmas 2021", "2021-12-24", "2021-12-27"),
        ("at Easter", "2023-04-07", "2023-04-11"),
        ("3/5/2023", "2023-05-03", "2023-05-04"),
        ("12/31/2022", "2022-12-31", "2023-01-01"),
    ],
)
def test_times_as_people_write_them(text: str, first: str | None, end: str | None) -> None:
    """In several languages, with numbers, seasons, quarters and holidays."""
    assert days(period_in(text, now=NEW_YEAR)) == (None if first is None else (first, end))


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("in June", "2024-06-01", "2024-07-01"),
        ("in July", "2023-07-01", "2023-08-01"),
        ("on June 15", "2024-06-15", "2024-06-16"),
        ("on June 16", "2023-06-16", "2023-06-17"),
        ("in Q2", "2024-04-01", "2024-07-01"),
        ("in Q3", "2023-07-01", "2023-10-01"),
        ("last quarter", "2024-01-01", "2024-04-01"),
        ("in summer", "2024-06-01", "2024-09-01"),
        ("last summer", "2023-06-01", "2023-09-01"),
        ("last spring", "2024-03-01", "2024-06-01"),
        ("in the autumn", "2023-09-01", "2023-12-01"),
        ("in winter", "2023-12-01", "2024-03-01"),
        ("last weekend", "2024-06-08", "2024-06-10"),
        ("this weekend", "2024-06-15", "2024-06-17"),
        ("on Saturday", "2024-06-08", "2024-06-09"),
        ("on Friday", "2024-06-14", "2024-06-15"),
        ("last week", "2024-06-03", "2024-06-10"),
        ("six months ago", "2023-12-01", "2024-01-01"),
        ("999 years ago", "1025-01-01", "1026-01-01"),
        ("999 months ago", "1941-03-01", "1941-04-01"),
        ("12/6/2024", "2024-06-12", "2024-06-13"),
        ("3/13/24", "2024-03-13", "2024-03-14"),
        ("over Christmas", "2023-12-24", "2023-12-27"),
        ("at Easter", "2024-03-29", "2024-04-02"),
        ("on Valentine's", "2024-02-14", "2024-02-15"),
        ("at Halloween", "2023-10-31", "2023-11-01"),
        ("at Thanksgiving", "2023-11-23", "2023-11-27"),
        ("on new year's eve", "2023-12-31", "2024-01-02"),
    ],
)
def test_a_question_asked_in_the_middle_of_the_year(text: str, first: str, end: str) -> None:
    """What has begun counts, with today; "last" is what has ended. It is a Saturday."""
    now = instant(datetime(2024, 6, 15, 12, tzinfo=UTC))
    assert days(period_in(text, now=now)) == (first, end)


@pytest.mark.parametrize(
    "sunday",
    [
        "1704-03-23",
        "1818-03-22",
        "1943-04-25",
        "1954-04-18",
        "1981-04-19",
        "2000-04-23",
        "2023-04-09",
        "2024-03-31",
        "2038-04-25",
    ],
)
def test_easter_is_when_the_church_says(sunday: str) -> None:
    """Among them the earliest and the latest day, and the two exceptions of the rule."""
    assert easter(int(sunday[:4])).isoformat() == sunday


@pytest.mark.parametrize(("year", "day"), [(2018, 22), (2019, 28), (2022, 24), (2023, 23), (2024, 28)])
def test_thanksgiving_is_the_fourth_thursday_of_november(year: int, day: int) -> None:
    assert holiday("thanksgiving", year) == (date(year, 11, day), date(year, 11, day) + timedelta(days=4))


def test_which_number_is_the_month_depends_on_the_country() -> None:
    assert days(period_in("on 3/5/2023", now=NEW_YEAR)) == ("2023-05-03", "2023-05-04")
    there = period_in("on 3/5/2023", now=NEW_YEAR, zone="America/Chicago")
    assert there is not None
    assert moment(there.first).isoformat() == "2023-03-05T06:00:00+00:00"
    assert days(period_in("last summer", now=NEW_YEAR, zone="Australia/Brisbane")) == ("2022-11-30", "2023-02-28")


@pytest.mark.parametrize(
    "text", ["a Christmas tree", "I fall asleep", "the estate of 12/2", "hier ist es", "a new year"]
)
def test_words_beside_a_time_that_name_none(text: str) -> None:
    assert period_in(text, now=NEW_YEAR) is None


@pytest.mark.parametrize("text", ["I may go", "a long march", "no time at all", "on the 45th", "99999 days ago", ""])
def test_words_that_are_no_time(text: str) -> None:
    assert period_in(text, now=NEW_YEAR) is None


def test_a_day_that_this_year_does_not_have() -> None:
    """The 29th of February is the last one there was."""
    assert days(period_in("on 29 February", now=LEAP_DAY)) == ("2024-02-29", "2024-03-01")
    assert days(period_in("one year ago", now=LEAP_DAY)) == ("2023-01-01", "2024-01-01")
    assert days(period_in("30 February 2023", now=NEW_YEAR)) in (None, ("2023-02-01", "2023-03-01"))


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("since May", "2023-05-01", ""),
        ("after yesterday", "2024-01-01", ""),
        ("before 2023-05-01", "1970-01-01", "2023-05-01"),
        ("until 2023-05-01", "1970-01-01", "2023-05-02"),
        ("2023-05-01 to 2023-05-03", "2023-05-01", "2023-05-04"),
        ("2023-05..2023-06", "2023-05-01", "2023-07-01"),
        ("from May 2023 to June 2023", "2023-05-01", "2023-07-01"),
        ("between May and June", "2023-05-01", "2023-07-01"),
        ("May", "2023-05-01", "2023-06-01"),
        ("monday", "2023-12-25", "2023-12-26"),
        ("2023", "2023-01-01", "2024-01-01"),
    ],
)
def test_a_period_is_asked_for(text: str, first: str, end: str) -> None:
    """A filter is a date, a time relative to now, or a span of them."""
    assert days(period_of(text, now=NEW_YEAR)) == (first, end)


@pytest.mark.parametrize("text", ["nonsense", "2023-06 to 2023-05", "since whenever", "before sunrise"])
def test_a_period_that_cannot_be_told(text: str) -> None:
    assert period_of(text, now=NEW_YEAR) is None


def test_days_are_those_of_the_zone() -> None:
    """At noon in London it is tomorrow already on the Line Islands."""
    there = period_in("today", now=NEW_YEAR, zone="Pacific/Kiritimati")
    assert there is not None
    assert moment(there.first).isoformat() == "2024-01-01T10:00:00+00:00"


def test_what_is_near_a_period_fits_less() -> None:
    """Inside it fits wholly, and the further away the less."""
    day = period_in("2023-05-07", now=NEW_YEAR)
    assert day is not None
    noon = [instant(datetime(2023, 5, date, 12, tzinfo=UTC)) for date in (7, 8, 10, 30)]
    fits = [day.fit(Instant(at)) for at in noon]
    assert fits[0] == 1.0
    assert fits == sorted(fits, reverse=True)
    assert fits[-1] < 0.01
