"""The most common dates in further languages: German, French, Spanish, Italian, Portuguese,
Russian, Japanese and Korean.

A table of words each, not a grammar: days seen from now, weekdays, months with a day or a year or
after the language's "in", last, this and next week, month and year, so many days ago, and since
and before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple

from memory.dates import calendar
from memory.dates.reading import (
    NEVER,
    Language,
    Meant,
    Rule,
    in_month,
    of_which,
    on_day,
    on_weekday,
)


class _Words(NamedTuple):
    """A language in words; alternatives are regular expressions without groups."""

    days: dict[str, int]
    """Seen from now, in days."""
    months: str
    """Twelve, with spaces between them."""
    weekdays: str
    """Seven, from Monday."""
    within: str
    """What makes a month's bare name a date, before it."""
    periods: dict[str, tuple[str, int]]
    """A unit and an offset: last week is ("week", -1)."""
    last_weekday: tuple[str, str]
    """What makes a weekday the last one: before it, after it."""
    numbers: dict[str, int]
    ago: tuple[str, str]
    """What stands before and after so many units of the past."""
    units: dict[str, str]
    since: str
    before: str
    until: str
    to: str
    conjunction: str
    day_mark: str = r"\.?"
    """What follows the number of a day."""
    link: str = r"(?:de\s+|del\s+)?"
    """What stands between a day, its month and its year."""


_GERMAN = _Words(
    days={"vorgestern": -2, "gestern": -1, "heute": 0, "übermorgen": 2},
    months="januar|jänner februar märz|maerz april mai juni juli august september oktober "
    "november dezember",
    weekdays="montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag",
    within=r"im|seit|anfang|mitte|ende|vom|bis|vor|ab",
    periods={
        r"(?:letzte[nrs]?|vorige[nrs]?|vergangene[nrs]?)\s+woche": ("week", -1),
        r"(?:letzte[nrs]?|vorige[nrs]?|vergangene[nrs]?)\s+monats?": ("month", -1),
        r"(?:letzte[nrs]?|vorige[nrs]?|vergangene[nrs]?)\s+jahr(?:es)?": ("year", -1),
        r"(?:letzte[nrs]?|vorige[nrs]?|vergangene[nrs]?)\s+wochenende": ("weekend", -1),
        r"diese[rn]?\s+woche": ("week", 0),
        r"diese[nrs]\s+monat": ("month", 0),
        r"diese[ms]\s+jahr": ("year", 0),
        r"nächste[rn]?\s+woche": ("week", 1),
        r"nächste[rn]?\s+monat": ("month", 1),
        r"nächste[ns]?\s+jahr": ("year", 1),
    },
    last_weekday=(r"(?:letzte[nr]|vorige[nr]|vergangene[nr])\s+", ""),
    numbers={
        "eine[mnr]?": 1,
        "zwei": 2,
        "drei": 3,
        "vier": 4,
        "fünf": 5,
        "sechs": 6,
        "sieben": 7,
        "acht": 8,
        "neun": 9,
        "zehn": 10,
        "ein\\s+paar": -1,
        "einigen": -1,
        "wenigen": -1,
    },
    ago=(r"vor\s+", ""),
    units={"tag(?:en)?": "day", "wochen?": "week", "monat(?:en)?": "month", "jahr(?:en)?": "year"},
    since="seit(?:\\s+dem)?",
    before="vor(?:\\s+dem)?",
    until="bis(?:\\s+zum)?",
    to=r"bis(?:\s+zum)?",
    conjunction="und|oder",
    day_mark=r"\.",
    link="",
)
_FRENCH = _Words(
    days={
        "avant-hier": -2,
        "hier\\s+(?:soir|matin)": -1,
        "aujourd['’ ]hui": 0,
        "demain": 1,
        "après-demain": 2,
        "(?:d['’]|qu['’]|fait\\s+|dit\\s+|s'est\\s+passé\\s+)hier": -1,
    },
    months="janvier f[ée]vrier mars avril mai juin juillet ao[ûu]t septembre octobre novembre "
    "d[ée]cembre",
    weekdays="lundi mardi mercredi jeudi vendredi samedi dimanche",
    within=r"en|depuis|début|mi-?|fin|avant|après|mois\s+d['’e]",
    periods={
        r"la\s+semaine\s+(?:derni[èe]re|pass[ée]e)": ("week", -1),
        r"le\s+mois\s+(?:dernier|pass[ée])": ("month", -1),
        r"l['’]an(?:n[ée]e)?\s+(?:derni[èe]re?|pass[ée]e?)": ("year", -1),
        r"le\s+week-?end\s+(?:dernier|pass[ée])": ("weekend", -1),
        r"cette\s+semaine": ("week", 0),
        r"ce\s+mois(?:-ci)?": ("month", 0),
        r"cette\s+ann[ée]e": ("year", 0),
        r"la\s+semaine\s+prochaine": ("week", 1),
        r"le\s+mois\s+prochain": ("month", 1),
        r"l['’]ann[ée]e\s+prochaine": ("year", 1),
    },
    last_weekday=("", r"\s+dernier"),
    numbers={
        "une?": 1,
        "deux": 2,
        "trois": 3,
        "quatre": 4,
        "cinq": 5,
        "six": 6,
        "sept": 7,
        "huit": 8,
        "neuf": 9,
        "dix": 10,
        "quelques": -1,
    },
    ago=(r"il\s+y\s+a\s+", ""),
    units={"jours?": "day", "semaines?": "week", "mois": "month", "an(?:s|n[ée]es?)?": "year"},
    since="depuis(?:\\s+le)?",
    before="avant(?:\\s+le)?",
    until="jusqu['’](?:au|en|à)",
    to=r"au|à",
    conjunction="et|ou",
    day_mark=r"(?:er)?",
    link="",
)
_SPANISH = _Words(
    days={"anteayer|antes\\s+de\\s+ayer": -2, "ayer|anoche": -1, "hoy": 0, "pasado\\s+mañana": 2},
    months="enero febrero marzo abril mayo junio julio agosto sep?tiembre octubre noviembre "
    "diciembre",
    weekdays="lunes martes mi[ée]rcoles jueves viernes s[áa]bado domingo",
    within=r"en|desde|hasta|de|del\s+mes\s+de|(?:principios|mediados|finales)\s+de|antes\s+de",
    periods={
        r"la\s+semana\s+pasada": ("week", -1),
        r"el\s+mes\s+pasado": ("month", -1),
        r"el\s+año\s+pasado": ("year", -1),
        r"el\s+fin\s+de\s+semana\s+pasado": ("weekend", -1),
        r"esta\s+semana": ("week", 0),
        r"este\s+mes": ("month", 0),
        r"este\s+año": ("year", 0),
        r"la\s+(?:próxima\s+semana|semana\s+que\s+viene)": ("week", 1),
        r"el\s+(?:próximo\s+mes|mes\s+que\s+viene)": ("month", 1),
        r"el\s+(?:próximo\s+año|año\s+que\s+viene)": ("year", 1),
    },
    last_weekday=("", r"\s+pasado"),
    numbers={
        "una?": 1,
        "dos": 2,
        "tres": 3,
        "cuatro": 4,
        "cinco": 5,
        "seis": 6,
        "siete": 7,
        "ocho": 8,
        "nueve": 9,
        "diez": 10,
        "un\\s+par\\s+de": -1,
        "un[oa]s(?:\\s+poc[oa]s)?": -1,
    },
    ago=(r"hace\s+", ""),
    units={"d[íi]as?": "day", "semanas?": "week", "mes(?:es)?": "month", "años?": "year"},
    since="desde(?:\\s+el)?",
    before="antes\\s+del?",
    until="hasta(?:\\s+el)?",
    to=r"al?|hasta(?:\s+el)?",
    conjunction="[ye]|o",
    day_mark="",
)
_ITALIAN = _Words(
    days={"l['’]altro\\s+ieri": -2, "ieri": -1, "oggi": 0, "domani": 1, "dopodomani": 2},
    months="gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
    "dicembre",
    weekdays="luned[ìi] marted[ìi] mercoled[ìi] gioved[ìi] venerd[ìi] sabato domenica",
    within=r"a|in|da|dal|di|nel|fino\s+a|prima\s+di|inizio|metà|fine",
    periods={
        r"la\s+settimana\s+scorsa|la\s+scorsa\s+settimana": ("week", -1),
        r"il\s+mese\s+scorso|lo\s+scorso\s+mese": ("month", -1),
        r"l['’]anno\s+scorso|lo\s+scorso\s+anno": ("year", -1),
        r"lo\s+scorso\s+(?:fine\s+settimana|weekend)|il\s+weekend\s+scorso": ("weekend", -1),
        r"questa\s+settimana": ("week", 0),
        r"questo\s+mese": ("month", 0),
        r"quest['’]anno": ("year", 0),
        r"la\s+(?:prossima\s+settimana|settimana\s+prossima)": ("week", 1),
        r"il\s+(?:prossimo\s+mese|mese\s+prossimo)": ("month", 1),
        r"(?:l['’]anno\s+prossimo|il\s+prossimo\s+anno)": ("year", 1),
    },
    last_weekday=("", r"\s+scors[oa]"),
    numbers={
        "un['’oa]?": 1, "due": 2, "tre": 3, "quattro": 4, "cinque": 5, "sei": 6, "sette": 7,
        "otto": 8, "nove": 9, "dieci": 10, "un\\s+paio\\s+di": -1, "qualche|alcun[ei]": -1,
    },
    ago=("", r"\s+fa"),
    units={
        "giorn[oi]": "day", "settiman[ae]": "week", "mes[ei]": "month", "ann[oi]": "year",
    },
    since="da(?:l)?",
    before="prima\\s+del?",
    until="fino\\s+al?",
    to=r"al?",
    conjunction="e|o",
    day_mark="",
    link="",
)  # fmt: skip
_PORTUGUESE = _Words(
    days={"anteontem": -2, "ontem": -1, "hoje": 0, "amanhã": 1, "depois\\s+de\\s+amanhã": 2},
    months="janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro "
    "dezembro",
    weekdays="segunda-feira terça-feira quarta-feira quinta-feira sexta-feira s[áa]bado domingo",
    within=r"em|desde|até|de|(?:início|meados|final|fim)\s+de|antes\s+de",
    periods={
        r"(?:a|na)\s+semana\s+passada": ("week", -1),
        r"(?:o|no)\s+mês\s+passado": ("month", -1),
        r"(?:o|no)\s+ano\s+passado": ("year", -1),
        r"(?:o|no)\s+fim\s+de\s+semana\s+passado": ("weekend", -1),
        r"(?:n?esta)\s+semana": ("week", 0),
        r"(?:n?este)\s+mês": ("month", 0),
        r"(?:n?este)\s+ano": ("year", 0),
        r"(?:a|na)\s+(?:próxima\s+semana|semana\s+que\s+vem)": ("week", 1),
        r"(?:o|no)\s+(?:próximo\s+mês|mês\s+que\s+vem)": ("month", 1),
        r"(?:o|no)\s+(?:próximo\s+ano|ano\s+que\s+vem)": ("year", 1),
    },
    last_weekday=("", r"\s+passad[oa]"),
    numbers={
        "uma?": 1,
        "dois|duas": 2,
        "três": 3,
        "quatro": 4,
        "cinco": 5,
        "seis": 6,
        "sete": 7,
        "oito": 8,
        "nove": 9,
        "dez": 10,
        "algu(?:ns|mas)": -1,
    },
    ago=(r"há\s+", r"(?:\s+atrás)?"),
    units={"dias?": "day", "semanas?": "week", "m[êe]s(?:es)?": "month", "anos?": "year"},
    since="desde(?:\\s+o)?",
    before="antes\\s+d[eo]",
    until="até(?:\\s+o)?",
    to=r"até|a",
    conjunction="e|ou",
    day_mark="",
)
_RUSSIAN = _Words(
    days={"позавчера": -2, "вчера": -1, "сегодня": 0, "завтра": 1, "послезавтра": 2},
    months="январ[ьяе] феврал[ьяе] март[ае]? апрел[ьяе] ма[йяе] июн[ьяе] июл[ьяе] август[ае]? "
    "сентябр[ьяе] октябр[ьяе] ноябр[ьяе] декабр[ьяе]",
    weekdays="понедельник вторник сред[ау] четверг пятниц[ау] суббот[ау] воскресенье",
    within=r"в|с|до|после|начале|середине|конце",
    periods={
        r"прошл(?:ая|ой|ую)\s+недел[яеюи]": ("week", -1),
        r"прошл(?:ый|ом)\s+месяце?": ("month", -1),
        r"прошл(?:ый|ом)\s+году?": ("year", -1),
        r"прошлы[ехм]+\s+выходны[ехм]+": ("weekend", -1),
        r"эт(?:а|ой|у)\s+недел[яеюи]": ("week", 0),
        r"эт(?:от|ом)\s+месяце?": ("month", 0),
        r"эт(?:от|ом)\s+году?": ("year", 0),
        r"следующ(?:ая|ей|ую)\s+недел[яеюи]": ("week", 1),
        r"следующ(?:ий|ем)\s+месяце?": ("month", 1),
        r"следующ(?:ий|ем)\s+году?": ("year", 1),
    },
    last_weekday=(r"прошл(?:ый|ую|ое)\s+", ""),
    numbers={
        "одн[ау]|один": 1, "дв[ае]": 2, "три": 3, "четыре": 4, "пять": 5, "шесть": 6,
        "семь": 7, "восемь": 8, "девять": 9, "десять": 10, "пару|несколько": -1,
    },
    ago=("", r"\s+назад"),
    units={
        "день|дня|дней": "day", "недел[юиь]|недель": "week", "месяц(?:а|ев)?": "month",
        "год(?:а)?|лет": "year",
    },
    since="с",
    before="до",
    until="по",
    to="по|до",
    conjunction="и|или",
    day_mark="",
    link="",
)  # fmt: skip


def _any(words: Iterable[str]) -> str:
    return "|".join(words)


def _language(words: _Words) -> Language:
    months, weekdays = words.months.split(), words.weekdays.split()
    month, weekday = rf"(?P<month>{_any(months)})", rf"(?P<weekday>{_any(weekdays)})"
    number = rf"(?P<n>\d{{1,3}}|{_any(words.numbers)})"
    before, after = words.ago
    last_before, last_after = words.last_weekday
    year = r"(?P<year>(?:19|20)\d\d)\b(?![.,:/-]?\d)"

    def which(names: Iterable[str], said: str) -> int:
        return next(i for i, name in enumerate(names) if re.fullmatch(name, said, re.IGNORECASE))

    def of(table: dict[str, object], said: str) -> object:
        return list(table.values())[which(table, said)]

    def a_day(match: re.Match[str], now: datetime) -> Meant:
        offset = of(dict(words.days), match.group())
        return calendar.day(now, offset) if isinstance(offset, int) else None

    def a_period(match: re.Match[str], now: datetime) -> Meant:
        unit, offset = next(
            meant
            for said, meant in words.periods.items()
            if re.fullmatch(said, match.group(), re.IGNORECASE)
        )
        if unit == "year":
            return calendar.year(now.year + offset)
        if unit == "weekend":
            at = calendar.weekend(now)
            return at if at.end <= now else calendar.weekend(now, -1)
        return {"week": calendar.week, "month": calendar.month}[unit](now, offset)

    def ago(match: re.Match[str], now: datetime) -> Meant:
        said = match["n"]
        amount = int(said) if said.isdecimal() else of(dict(words.numbers), said)
        unit = of(dict(words.units), match["unit"])
        if not isinstance(amount, int) or not isinstance(unit, str):
            return None
        return calendar.ago(now, *((amount, amount) if amount > 0 else (2, 5)), unit)

    def a_date(match: re.Match[str], now: datetime) -> Meant:
        said = match["year"] and int(match["year"])
        return on_day(which(months, match["month"]) + 1, int(match["day"]), said or None)

    def a_month(match: re.Match[str], now: datetime) -> Meant:
        said = match["year"] and int(match["year"])
        if not said and not preposition.search(match.string[: match.start()][-24:]):
            return None
        return in_month(which(months, match["month"]) + 1, said or None)

    def a_weekday(match: re.Match[str], now: datetime) -> Meant:
        within = on_weekday(which(weekdays, match["weekday"]))
        is_last = len(match.group()) > len(match["weekday"])
        return of_which("last" if is_last else None, within, now)

    def a_year(match: re.Match[str], now: datetime) -> Meant:
        return calendar.year(int(match["year"]))

    preposition = re.compile(rf"\b(?:{words.within})[\s-]*$", re.IGNORECASE)
    patterns = (
        (rf"\b(?:{_any(words.days)})\b", a_day),
        (rf"\b(?:{_any(words.periods)})\b", a_period),
        (rf"\b{before}{number}\s+(?P<unit>{_any(words.units)}){after}\b", ago),
        (
            rf"(?<![\w.:/-])(?P<day>[12]\d|3[01]|0?[1-9]){words.day_mark}\s+{words.link}{month}\b"
            rf"(?:,?\s+{words.link}{year})?",
            a_date,
        ),
        (rf"\b{month}\b(?:\s+{words.link}{year})?", a_month),
        (rf"\b(?:{last_before})?{weekday}\b(?:{last_after})?", a_weekday),
        (rf"(?<=\b{_first_preposition(words)} ){year}", a_year),
    )
    return Language(
        gate=re.compile(
            rf"\b(?:{_any([*words.days, *months, *weekdays, *words.periods])})\b"
            rf"|\b{before}{number}\s+(?:{_any(words.units)}){after}\b",
            re.IGNORECASE,
        ),
        rules=tuple((re.compile(pattern, re.IGNORECASE), mean) for pattern, mean in patterns),
        changes=(),
        bounds=(
            (
                "before",
                re.compile(
                    rf"\b(?:(?P<since>{words.since})|(?P<before>{words.before})|"
                    rf"(?P<until>{words.until}))\s+$",
                    re.IGNORECASE,
                ),
            ),
        ),
        between=NEVER,
        between_after=NEVER,
        between_and=NEVER,
        to=re.compile(rf"\s*(?:\b(?:{words.to})\b|-|–)\s*", re.IGNORECASE),
        also=re.compile(rf"\s*(?:,|\b(?:{words.conjunction})\b)\s*", re.IGNORECASE),
        join=re.compile(r"\s+"),
    )


def _first_preposition(words: _Words) -> str:
    return words.within.split("|")[0]


# --- Japanese and Korean ------------------------------------------------------------------------

_JAPANESE_DAYS = {"一昨日": -2, "おととい": -2, "昨日": -1, "きのう": -1, "今日": 0, "明日": 1}
_KOREAN_DAYS = {"그저께": -2, "그제": -2, "어제": -1, "오늘": 0, "내일": 1, "모레": 2}
_JAPANESE_PERIODS = {
    "先々週": ("week", -2),
    "先週": ("week", -1),
    "今週": ("week", 0),
    "来週": ("week", 1),
    "先々月": ("month", -2),
    "先月": ("month", -1),
    "今月": ("month", 0),
    "来月": ("month", 1),
    "一昨年": ("year", -2),
    "去年": ("year", -1),
    "昨年": ("year", -1),
    "来年": ("year", 1),
}
_KOREAN_PERIODS = {
    r"지난\s*주": ("week", -1),
    r"이번\s*주": ("week", 0),
    r"다음\s*주": ("week", 1),
    r"지난\s*달": ("month", -1),
    r"이번\s*달": ("month", 0),
    r"다음\s*달": ("month", 1),
    "작년|지난해": ("year", -1),
    "올해": ("year", 0),
    "내년": ("year", 1),
}


def _eastern(
    days: dict[str, int],
    periods: dict[str, tuple[str, int]],
    *,
    year: str,
    month: str,
    day: str,
    weekdays: str,
    units: dict[str, str],
    ago: str,
    bounds: str,
    to: str,
) -> Language:
    def a_day(match: re.Match[str], now: datetime) -> Meant:
        return calendar.day(now, days[match.group()])

    def a_period(match: re.Match[str], now: datetime) -> Meant:
        unit, offset = next(v for k, v in periods.items() if re.fullmatch(k, match.group()))
        if unit == "year":
            return calendar.year(now.year + offset)
        return (calendar.week if unit == "week" else calendar.month)(now, offset)

    def so_long_ago(match: re.Match[str], now: datetime) -> Meant:
        unit = next(v for k, v in units.items() if re.fullmatch(k, match["unit"]))
        return calendar.ago(now, int(match["n"]), int(match["n"]), unit)

    def a_date(match: re.Match[str], now: datetime) -> Meant:
        said = match["year"] and int(match["year"])
        if match["day"] is None:
            return in_month(int(match["month"]), said or None)
        return on_day(int(match["month"]), int(match["day"]), said or None)

    def a_year(match: re.Match[str], now: datetime) -> Meant:
        return calendar.year(int(match["year"]))

    def a_weekday(match: re.Match[str], now: datetime) -> Meant:
        return on_weekday(weekdays.index(match["weekday"]))

    number_of_year = rf"(?<!\d)(?P<year>(?:19|20)\d\d)\s*{year}"
    weekday = rf"(?P<weekday>[{weekdays}])(?:曜日?|요일)"
    patterns: tuple[Rule, ...] = (
        (re.compile(_any(days)), a_day),
        (re.compile(_any(periods)), a_period),
        (re.compile(rf"(?<!\d)(?P<n>\d{{1,3}})\s*(?P<unit>{_any(units)})\s*{ago}"), so_long_ago),
        (
            re.compile(
                rf"(?:{number_of_year}\s*)?(?<!\d)(?P<month>1[0-2]|0?[1-9])\s*{month}"
                rf"(?:\s*(?P<day>3[01]|[12]\d|0?[1-9])\s*{day})?(?!\s*\d)"
            ),
            a_date,
        ),
        (re.compile(number_of_year), a_year),
        (re.compile(weekday), a_weekday),
    )
    return Language(
        gate=re.compile(
            rf"{_any(days)}|{_any(periods)}|{weekday}|\d\s*(?:{year}|{month}|{_any(units)})"
        ),
        rules=patterns,
        changes=(),
        bounds=(("after", re.compile(rf"\s*(?:{bounds})")),),
        between=NEVER,
        between_after=NEVER,
        between_and=NEVER,
        to=re.compile(rf"\s*(?:{to}|~|-|–)\s*"),
        also=re.compile(r"\s*(?:と|、|や|와|과|,)\s*"),
        join=re.compile(r"\s*(?:の|의)?\s*"),
    )


_JAPANESE = _eastern(
    _JAPANESE_DAYS,
    _JAPANESE_PERIODS,
    year="年",
    month="月",
    day="日",
    weekdays="月火水木金土日",
    units={"日": "day", "週間?": "week", "[かヶケカ箇]月": "month", "年": "year"},
    ago="前",
    bounds="以来(?P<since>)|(?:以降|から(?!.{0,12}まで))(?P<since2>)|(?:以前|より前|の前)(?P<before>)|まで(?P<until>)",
    to="から",
)
_KOREAN = _eastern(
    _KOREAN_DAYS,
    _KOREAN_PERIODS,
    year="년",
    month="월",
    day="일",
    weekdays="월화수목금토일",
    units={"일": "day", "주일?": "week", "개월|달": "month", "년": "year"},
    ago="전",
    bounds="(?:이후|이래|부터)(?P<since>)|(?:이전|전)(?P<before>)|까지(?P<until>)",
    to="부터|에서",
)

LANGUAGES: Final = (
    *map(_language, (_GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _RUSSIAN)),
    _JAPANESE,
    _KOREAN,
)
