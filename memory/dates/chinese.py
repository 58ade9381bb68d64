"""Chinese dates: rules for what stands alone, and the words around it that change it.

Years, months and days are found one by one and joined where they touch: 去年 + 三月 + 中旬. Lunar
months (农历, 正月, 腊月) are left out; feasts of the lunar calendar are known for 2000 to 2050.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

from memory.dates import calendar
from memory.dates.calendar import DAY, Period, Season
from memory.dates.reading import (
    NEVER,
    Language,
    Meant,
    Within,
    full_year,
    in_half,
    in_month,
    in_quarter,
    in_season,
    of_which,
    on_day,
    on_weekday,
    on_weekend,
    part_of_day,
    yearly,
)

_DIGITS: Final = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "○": 0, "两": 2}
_N = r"(?P<n>\d{1,3}|[一二两三四五六七八九十]{1,3}|好?几|数|半)"
_UNIT = r"(?P<unit>分钟|个?小时|个?钟头|天|日|个?星期|个?礼拜|周|个月|(?<=半)月|年)"
_MONTH = r"(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_DAY_NUMBER = r"3[01]|[12]\d|0?[1-9]|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九]"
_WEEK = r"(?:周|星期|礼拜)"


def number(said: str) -> int:
    """十二 is 12, 二十 is 20, 25 is 25."""
    if said.isdecimal():
        return int(said)
    tens, ten, ones = said.rpartition("十")
    if not ten:
        return int("".join(str(_DIGITS[c]) for c in said))
    return 10 * (_DIGITS[tens] if tens else 1) + (_DIGITS[ones] if ones else 0)


def _counted(match: re.Match[str]) -> tuple[float, float, str]:
    """The least and the most that is meant, and of what."""
    unit = match["unit"].removeprefix("个")
    said = match["n"]
    name = {
        "分钟": "minute",
        "小时": "hour",
        "钟头": "hour",
        "天": "day",
        "日": "day",
        "星期": "week",
        "礼拜": "week",
        "周": "week",
        "月": "month",
        "年": "year",
    }[unit]
    if said == "半":
        return 0.5, 0.5, name
    if said in ("几", "好几", "数"):
        return 2, 5, name
    half = 0.5 if match.groupdict().get("half") else 0
    return number(said) + half, number(said) + half, name


def _ago(match: re.Match[str], now: datetime) -> Meant:
    return calendar.ago(now, *_counted(match))


def _lately(match: re.Match[str], now: datetime) -> Meant:
    return calendar.ago(now, 1, 5 if match.group().endswith(("天", "日")) else 30, "day")


def _lasting(match: re.Match[str], now: datetime) -> Meant:
    _, most, unit = _counted(match)
    return calendar.lasting(now, most, unit)


def _coming(match: re.Match[str], now: datetime) -> Meant:
    _, most, unit = _counted(match)
    return calendar.coming(now, most, unit)


# --- days, weeks, months, years, seen from now --------------------------------------------------

_DAYS: Final = {
    "大前": -3,
    "前": -2,
    "昨": -1,
    "今": 0,
    "明": 1,
    "后": 2,
    "大后": 3,
}
_YEARS: Final = {"大前": -3, "前": -2, "去": -1, "今": 0, "本": 0, "明": 1, "后": 2}
_OFFSETS: Final = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
_WEEKDAYS: Final = {c: i for i, c in enumerate("一二三四五六日")} | {"天": 6}


def _day(match: re.Match[str], now: datetime) -> Meant:
    return calendar.day(now, _DAYS[match["which"]])


def _day_part(match: re.Match[str], now: datetime) -> Meant:
    part = "morning" if match["part"] in "早晨" else "evening"
    return part_of_day(calendar.day(now, _DAYS[match["which"]]), part)


def _week(match: re.Match[str], now: datetime) -> Meant:
    offset = _OFFSETS[match["which"]]
    if match["day"] is None:
        return calendar.week(now, offset)
    if match["day"] == "末":
        return calendar.weekend(now, offset)
    return calendar.weekday(now, _WEEKDAYS[match["day"]], week_offset=offset)


def _weekday(match: re.Match[str], now: datetime) -> Meant:
    return on_weekend() if match["day"] == "末" else on_weekday(_WEEKDAYS[match["day"]])


def _near_month(match: re.Match[str], now: datetime) -> Meant:
    return calendar.month(now, _OFFSETS[match["which"]])


def _near_quarter(match: re.Match[str], now: datetime) -> Meant:
    return calendar.quarter(now, _OFFSETS[match["which"]])


def _near_year(match: re.Match[str], now: datetime) -> Meant:
    return calendar.year(now.year + _YEARS[match["which"]])


# --- dates -------------------------------------------------------------------------------------


def _year(match: re.Match[str], now: datetime) -> Meant:
    said = match["year"]
    return calendar.year(full_year(said) if said.isdecimal() else number(said))


def _month(match: re.Match[str], now: datetime) -> Meant:
    return in_month(number(match["month"]))


def _month_day(match: re.Match[str], now: datetime) -> Meant:
    last = match["last"] and number(match["last"])
    month, day = number(match["month"]), number(match["day"])
    return on_day(month, day, last=last if last and last > day else None)


def _day_of_month(match: re.Match[str], now: datetime) -> Meant:
    day = number(match["day"])
    return Within("month", lambda start: calendar.day(start.replace(day=day)))


def _part_of_year(match: re.Match[str], now: datetime) -> Meant:
    third = _THIRDS[match["part"] or match["part2"]]
    return yearly(lambda of: calendar.within(calendar.year(of), third))


def _part_of_month(match: re.Match[str], now: datetime) -> Meant:
    third = _THIRDS[match["part"]]
    return Within("month", lambda start: calendar.within(calendar.month(start), third))


_THIRDS: Final = {"初": 0, "上旬": 0, "中": 1, "中旬": 1, "底": 2, "末": 2, "下旬": 2, "尾": 2}


def _half_year(match: re.Match[str], now: datetime) -> Meant:
    return in_half(1 if match["which"] == "上" else 2)


def _quarter(match: re.Match[str], now: datetime) -> Meant:
    return in_quarter(number(match["nth"]))


def _season(match: re.Match[str], now: datetime) -> Meant:
    season = {"春": Season.SPRING, "夏": Season.SUMMER, "秋": Season.AUTUMN, "冬": Season.WINTER}[
        match["season"]
    ]
    within = in_season(season)
    if isinstance(within, Within) and match.string[: match.start()].endswith(("上个", "上一个")):
        return of_which("last", within, now)
    return within


def _feast(match: re.Match[str], now: datetime) -> Meant:
    return yearly(_FEASTS[match["feast"]])


def _on(month: int, day: int, until: int = 0) -> Callable[[int], Period]:
    return lambda year: calendar.days(
        calendar.date(year, month, day), calendar.date(year, month, day) + until * DAY
    )


def _lunar(which: int, offset: int = 0, until: int = 0) -> Callable[[int], Period]:
    return lambda year: calendar.days(
        calendar.lunar(year, which) + offset * DAY,
        calendar.lunar(year, which) + (offset + until) * DAY,
    )


def _movable(month: int, weekday: int, nth: int) -> Callable[[int], Period]:
    return lambda year: calendar.day(calendar.nth_weekday(year, month, weekday, nth))


_FEASTS: Final[dict[str, Callable[[int], Period]]] = {
    **dict.fromkeys(("元旦节", "元旦", "新年"), _on(1, 1)),
    **dict.fromkeys(("春节", "过年"), _lunar(0, -1, 8)),
    **dict.fromkeys(("大年三十", "除夕夜", "除夕"), _lunar(0, -1)),
    **dict.fromkeys(("大年初一", "正月初一"), _lunar(0)),
    **dict.fromkeys(("元宵节", "元宵", "正月十五"), _lunar(0, 14)),
    **dict.fromkeys(("情人节",), _on(2, 14)),
    **dict.fromkeys(("妇女节", "三八节"), _on(3, 8)),
    **dict.fromkeys(("清明节", "清明"), _on(4, 4, 1)),
    **dict.fromkeys(("五一劳动节", "劳动节", "五一假期", "五一"), _on(5, 1, 4)),
    **dict.fromkeys(("青年节",), _on(5, 4)),
    **dict.fromkeys(("母亲节",), _movable(5, 6, 2)),
    **dict.fromkeys(("六一儿童节", "儿童节", "六一"), _on(6, 1)),
    **dict.fromkeys(("父亲节",), _movable(6, 6, 3)),
    **dict.fromkeys(("端午节", "端午"), _lunar(1)),
    **dict.fromkeys(("教师节",), _on(9, 10)),
    **dict.fromkeys(("中秋节", "中秋"), _lunar(2)),
    **dict.fromkeys(("十一国庆", "国庆节", "国庆", "十一长假", "十一假期"), _on(10, 1, 6)),
    **dict.fromkeys(("万圣节",), _on(10, 31)),
    **dict.fromkeys(("双十一", "双11"), _on(11, 11)),
    **dict.fromkeys(("感恩节",), _movable(11, 3, 4)),
    **dict.fromkeys(("双十二", "双12"), _on(12, 12)),
    **dict.fromkeys(("平安夜",), _on(12, 24)),
    **dict.fromkeys(("圣诞节", "圣诞"), _on(12, 24, 2)),
    **dict.fromkeys(("跨年夜",), _on(12, 31)),
    **dict.fromkeys(("暑假",), lambda year: calendar.months(year, 7, 2)),
    **dict.fromkeys(
        ("寒假",),
        lambda year: calendar.days(calendar.date(year, 1, 15), calendar.date(year, 2, 20)),
    ),
}


_APART = r"(?<![\d一二两三四五六七八九十几个第.])"
_SOLAR = rf"{_APART}(?<!农历)(?<!阴历){_MONTH}\s*月"
_NO_PLACE = r"(?![楼线店馆厅机房门车位桌床球院])"

_RULES: Final = (
    (r"(?P<which>大?(?<![之以])前|昨|今|明|大?后)[天日](?!本)", _day),
    (
        r"(?P<which>(?<![之以])前|昨|今|明)(?P<part>早|晨|晚|夜)上?(?!餐|饭|点|报|安|霜|会)",
        _day_part,
    ),
    (
        rf"(?P<which>上上|(?<![晚早马以之身])上|这|本|下下|(?<![以之])下)一?个?{_WEEK}"
        r"(?:(?P<day>[一二三四五六日天末])(?!次))?(?![年岁围边刊])",
        _week,
    ),
    (
        rf"(?<![每个\d一二两三四五六七八九十几]){_WEEK}(?P<day>[一二三四五六日天末])(?![次\d])",
        _weekday,
    ),
    (
        r"(?P<which>上上|(?<![晚早马以之])上|这|本|下下|(?<![以之])下)一?个?月份?(?![亮球饼台])",
        _near_month,
    ),
    (r"(?P<which>上|这|本|下)一?个?季度", _near_quarter),
    (r"(?P<which>大前|前|去|今|本|明|(?<!以)后)年(?![轻级纪])", _near_year),
    (rf"{_APART}{_N}(?P<half>个半)?{_UNIT}多?(?:之前|以前|前)(?![后台端往年])", _ago),
    (r"前[几两些][天日]|前阵子|前段时间|不久前|前不久", _lately),
    (
        rf"(?:最近|(?<![最附将靠临])近|刚?过去|(?=这[几两]))的?这?{_N}{_UNIT}"
        r"(?:之内|以来|来|里|内|间)?",
        _lasting,
    ),
    (rf"(?:未来|接下来|今后)的?{_N}{_UNIT}", _coming),
    (
        r"(?<![\d.])(?P<year>(?:19|20)\d\d|[一二][九零〇○][零〇○一二三四五六七八九]{2})\s*年(?![前后])",
        _year,
    ),
    (r"(?<![\d.第])(?P<year>\d\d)年(?=\d{1,2}月|的?[春夏秋冬][天季]|年?[初底末])", _year),
    (rf"{_SOLAR}份?(?!\s*\d)", _month),
    (
        rf"{_SOLAR}\s*(?P<day>{_DAY_NUMBER})"
        rf"(?:\s*[日号](?:\s*(?:至|到|-|–|—|~|、|和)\s*(?P<last>{_DAY_NUMBER})\s*[日号])?"
        r"|(?![\d日号个]))",
        _month_day,
    ),
    (
        rf"(?:(?<=[上这本下]月)|(?<=个月)|(?<=月的)|(?<=在))(?P<day>{_DAY_NUMBER})[号日]{_NO_PLACE}",
        _day_of_month,
    ),
    (r"(?<![一-龥\d])年(?P<part>初|中|底|末)|(?<=[在到从])年(?P<part2>初|中|底|末)", _part_of_year),
    (r"(?<![\d一二三四五六七八九十上个这本下每])月(?P<part>初|中|底|末)", _part_of_month),
    (r"(?P<which>上|下)半年", _half_year),
    (r"(?<![\d一二三四])(?:第)?(?P<nth>[一二三四1-4])个?季度", _quarter),
    (
        r"(?:(?<=年)|(?<=年的)|(?<=在)|(?<=这个)|(?<=上个)|(?<=[今去]))(?P<season>[春夏秋冬])[天季]?"
        r"(?![节游装衣眠至分])",
        _season,
    ),
    (rf"(?P<feast>{'|'.join(sorted(_FEASTS, key=len, reverse=True))})(?![岁快币])", _feast),
)


# --- what stands before or after and changes it --------------------------------------------------

_PARTS: Final = {
    **dict.fromkeys(("凌晨", "清晨", "一早"), "dawn"),
    **dict.fromkeys(("早上", "早晨", "上午", "早"), "morning"),
    **dict.fromkeys(("中午", "午间", "午饭时", "午休"), "noon"),
    **dict.fromkeys(("下午", "午后"), "afternoon"),
    **dict.fromkeys(("傍晚", "晚上", "晚间", "当晚", "晚"), "evening"),
    **dict.fromkeys(("夜里", "深夜", "夜间", "半夜"), "night"),
}


def _of_day(day: Period, match: re.Match[str], now: datetime) -> Period | None:
    if day.end - day.start > DAY:
        return None
    return part_of_day(day, _PARTS[match["part"]])


def _third(whole: Period, match: re.Match[str], now: datetime) -> Period | None:
    if whole.end - whole.start < 2 * DAY:
        return None
    return calendar.within(whole, _THIRDS[match["part"]])


def _half(whole: Period, match: re.Match[str], now: datetime) -> Period | None:
    return calendar.half(whole, 0 if match["which"] == "上" else 1)


def _nth_week(whole: Period, match: re.Match[str], now: datetime) -> Period | None:
    if whole.end - whole.start < 28 * DAY:
        return None
    if match["nth"] is None:
        return Period(whole.end - 7 * DAY, whole.end)
    start = whole.start + 7 * (number(match["nth"]) - 1) * DAY
    return Period(start, start + 7 * DAY)


def _distant(origin: Period, match: re.Match[str], now: datetime) -> Period | None:
    """前一天, 后三天, 前一周: the days before or after it."""
    _, most, unit = _counted(match)
    length = most * calendar.UNITS[unit]
    if match["way"] == "前":
        return Period(origin.start - length, origin.start)
    return Period(origin.end, origin.end + length)


LANGUAGE: Final = Language(
    gate=re.compile(
        r"[天日年月周旬晚早夜春夏秋冬节初底末]|星期|礼拜|季度|小时|分钟|钟头|元旦|除夕|清明|五一|六一|端午|"
        r"中秋|国庆|双十|双1|圣诞|元宵|假|近|过去|前不久|不久前|前阵子|前段"
    ),
    rules=tuple((re.compile(pattern), mean) for pattern, mean in _RULES),
    changes=(
        (
            "after",
            re.compile(r"的?年?(?P<part>上旬|中旬|下旬|初|底|末|尾|中(?![国心学午秋文旬]))"),
            _third,
        ),
        ("after", re.compile(r"的?(?P<which>上|下)半(?:年|个?月)"), _half),
        (
            "after",
            re.compile(
                r"的?(?:第(?P<nth>[一二三四五])|最后一?)个?(?:周(?!末|[一二三四五六日])|星期|礼拜)"
            ),
            _nth_week,
        ),
        (
            "after",
            re.compile(
                rf"[的\s]*(?P<part>{'|'.join(sorted(_PARTS, key=len, reverse=True))})(?!餐|饭|点)"
            ),
            _of_day,
        ),
        (
            "after",
            re.compile(
                r"[的之]?(?P<way>前|后)(?P<n>[一二两三四五六七\d])(?P<unit>天|周|个?星期|个?月)"
            ),
            _distant,
        ),
    ),
    bounds=(
        (
            "after",
            re.compile(
                r"(?:以来|起)(?P<since>)|(?:之后|以后|过后|后)(?P<after>)(?![来面悔续天年])"
            ),
        ),
        ("after", re.compile(r"(?P<before>之前|以前|前)(?![后往来面天年期辈])|(?P<until>为止)")),
        ("before", re.compile(r"(?P<since>自从|(?<![亲独各])自)$|(?P<until>截至|截止到?|直到)$")),
    ),
    between=NEVER,
    between_after=re.compile("之间|这段"),
    to=re.compile(r"\s*(?:到|至|直到|-|–|—+|~)\s*"),
    between_and=re.compile(r"\s*(?:和|与|跟|及)\s*"),
    also=re.compile(r"\s*(?:和|、|与|及|或者?|以及|跟)\s*"),
    join=re.compile(r"\s*的?\s*"),
)
