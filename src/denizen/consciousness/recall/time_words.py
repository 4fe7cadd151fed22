"""How people write times in several languages: tables for `cues`. Pure.

Every word stands in the form that `terms.fold` gives it: small letters, no accents.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _numbered(*lines: str, first: int = 1) -> dict[str, int]:
    """The words of each line, numbered; words with a slash between them have the same number."""
    return {
        word: number
        for line in lines
        for number, words in enumerate(line.split(), start=first)
        for word in words.split("/")
    }


MONTHS: Final = _numbered(
    "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug september/sep/sept october/oct "
    "november/nov december/dec",
    "januar/janner februar marz april mai juni juli august september oktober/okt november dezember/dez",
    "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
)
WEEKDAYS: Final = _numbered(
    "monday tuesday wednesday thursday friday saturday sunday",
    "montag dienstag mittwoch donnerstag freitag samstag/sonnabend sonntag",
    "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "lunes martes miercoles jueves viernes sabado domingo",
    "lunedi martedi mercoledi giovedi venerdi sabato domenica",
    "segunda-feira terca-feira quarta-feira quinta-feira sexta-feira sabado domingo",
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
    first=0,
)
SEASONS: Final = _numbered(
    "spring summer autumn/fall winter",
    "fruhling/fruhjahr sommer herbst winter",
    "printemps ete automne hiver",
    "primavera verano otono invierno",
    "primavera verao outono inverno",
    first=0,
)
"""0 is spring."""
NUMBERS: Final = _numbered(
    "one/a/an two/couple three/few four five six seven eight nine ten",
    "ein/einem/einer/einen zwei drei vier funf sechs sieben acht neun zehn",
    "un/une deux trois quatre cinq six sept huit neuf dix",
    "uno/una dos tres cuatro cinco seis siete ocho nueve diez",
    "um/uma dois/duas tres quatro cinco seis sete oito nove dez",
)
UNITS: Final = {
    word: unit
    for unit, words in {
        "day": "day days tag tage tagen jour jours dia dias giorno giorni dag dagen",
        "week": "week weeks woche wochen semaine semaines semana semanas settimana settimane weken",
        "weekend": "weekend wochenende week-end",
        "month": "month months monat monate monaten monats mois mes meses mese mesi maand maanden",
        "year": "year years jahr jahre jahren an ans annee annees ano anos anno anni jaar",
        "quarter": "quarter quarters quartal trimestre",
    }.items()
    for word in words.split()
}
DAYS_BACK: Final = {
    word: back
    for back, words in enumerate(
        (
            "today tonight heute hoy oggi hoje vandaag сегодня 今日 本日 今天 오늘 bugun",
            "yesterday gestern ayer ieri ontem gisteren вчера 昨日 昨天 어제",
            "vorgestern avant-hier anteayer anteontem eergisteren позавчера 一昨日 おととい 前天 그저께",
        )
    )
    for word in words.split()
}
"""A day that is named: how many days ago it is. The longest that fits counts."""
SPANS_BACK: Final = {
    word: (unit, back)
    for (unit, back), words in {
        ("week", 1): "先週 上周 上週 上星期 지난주",
        ("week", 0): "今週 这周 這週 本周 이번주",
        ("month", 1): "先月 上个月 上個月 지난달",
        ("month", 0): "今月 这个月 這個月 이번달",
        ("year", 1): "昨年 去年 작년",
        ("year", 0): "今年 올해",
    }.items()
    for word in words.split()
}
"""A span that one word names in languages without spaces."""
LAST: Final = _words(
    "last past previous letzte letzten letzter letztes letztem vergangene vergangenen vergangenes vorige vorigen "
    "voriges derniere dernier pasada pasado scorsa scorso passada passado vorige afgelopen"
)
THIS: Final = _words("this diese dieser diesen dieses diesem cette ce esta este questa questo deze dit")
IN: Final = _words(
    "in during of since last this early late mid before after until for im seit letzten letzter vor en au depuis "
    "desde durante em nel ad"
)
"""Words before a month's name: alone, a month's name is a word like others ("may", "march")."""
FRENCH: Final = _words("le la les est et que j c qu nous vous pas avec une des dans du tu il elle")
"""Words that show that a text is French, in which `hier` means yesterday and not here."""


def easter(year: int) -> date:
    """Easter Sunday (the anonymous Gregorian rule)."""
    golden, century, rest = year % 19, year // 100, year % 100
    epact = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    month, day = divmod(epact + weekday - 7 * ((golden + 11 * epact + 22 * weekday) // 451) + 114, 31)
    return date(year, month, day + 1)


def _november_thursday(year: int) -> date:
    first = date(year, 11, 1)
    return first + timedelta(days=(3 - first.weekday()) % 7 + 21)


def holiday(name: str, year: int) -> tuple[date, date]:
    """The days of a holiday that begins in that year: the first, and the one after the last."""
    match name:
        case "christmas":
            return date(year, 12, 24), date(year, 12, 27)
        case "new year":
            return date(year, 12, 31), date(year + 1, 1, 2)
        case "easter":
            sunday = easter(year)
            return sunday - timedelta(days=2), sunday + timedelta(days=2)
        case "halloween":
            return date(year, 10, 31), date(year, 11, 1)
        case "valentine":
            return date(year, 2, 14), date(year, 2, 15)
        case _:
            thursday = _november_thursday(year)
            return thursday, thursday + timedelta(days=4)


HOLIDAYS: Final = {
    word: name
    for name, words in {
        "christmas": "christmas xmas weihnachten noel navidad natale kerst",
        "new year": "new-year silvester nochevieja capodanno",
        "easter": "easter ostern paques pascua pasqua pascoa pasen",
        "halloween": "halloween",
        "valentine": "valentine's valentines",
        "thanksgiving": "thanksgiving",
    }.items()
    for word in words.split()
}
MONTH_FIRST_ZONES: Final = ("US/", "America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles",
    "America/Phoenix", "America/Detroit", "America/Anchorage", "America/Boise", "America/Indiana/",
    "America/Kentucky/", "America/North_Dakota/", "Pacific/Honolulu", "America/Puerto_Rico", "Asia/Manila")  # fmt: skip
"""Where 3/5 is the fifth of March."""
SOUTHERN_ZONES: Final = ("Australia/", "Pacific/Auckland", "America/Sao_Paulo", "America/Argentina/",
    "America/Santiago", "America/Montevideo", "America/Asuncion", "Africa/Johannesburg", "Africa/Harare")  # fmt: skip
"""Where summer begins in December."""
