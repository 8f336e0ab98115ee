"""Texts of cells as numbers, days, moments, yes and no, by the conventions of a table. Pure.

Nothing is guessed: `1/2/2026` is a day only where the order of days and months is declared, or
where other cells leave one order alone.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo, available_timezones

from models.core.values import InvalidValueError

MONTHS: Mapping[str, int] = MappingProxyType(
    {
        name: number
        for number, names in enumerate(
            (
                "jan january januar jänner janvier janv enero ene gennaio gen januari janeiro",
                "feb february februar février févr febrero febbraio februari fevereiro fev",
                "mar march märz mär mars marzo maart mrt março",
                "apr april avril avr abril abr aprile",
                "may mai mayo maggio mag mei maio maj",
                "jun june juni juin junio giugno giu junho",
                "jul july juli juillet juil julio luglio lug julho",
                "aug august août agosto ago augustus augusti",
                "sep sept september septembre septiembre settembre set setembro",
                "oct october oktober okt octobre octubre ottobre ott outubro out",
                "nov november novembre noviembre novembro",
                "dec december dezember dez décembre déc diciembre dic dicembre dezembro desember",
            ),
            start=1,
        )
        for name in names.split()
    }
)
"""The names of months, of which none means two.

The languages are English, German, French, Spanish, Italian, Dutch, Portuguese, Swedish, Danish
and Norwegian.
"""
WEEKDAYS = frozenset({"mon", "tue", "wed", "thu", "fri", "sat", "sun"})
_NAME = r"[^\W\d_]{3,10}"
_BEHIND_DAY = "(?:st|nd|rd|th|er|[ºª°])?"
_WRITTEN = re.compile(
    rf"(?:(?:{'|'.join(sorted(WEEKDAYS))})[a-z]{{0,6}}[.,]{{0,2}}\s+)?"
    r"(?:(?P<first>[0-9]{1,4})(?P<between>[-/.])(?P<second>[0-9]{1,2})(?P=between)(?P<third>[0-9]{1,4})"
    rf"|(?P<month>{_NAME})[.]?\s+(?P<day>[0-9]{{1,2}}){_BEHIND_DAY},?\s+(?P<year>[0-9]{{4}})"
    rf"|(?P<day2>[0-9]{{1,2}}){_BEHIND_DAY}[.]?[\s-]\s*(?:de\s+)?(?P<month2>{_NAME})[.,]{{0,2}}[\s-]\s*"
    r"(?:de\s+)?(?P<year2>[0-9]{4}))"
    r"(?:(?:,?\s+(?:at\s+)?|t)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<seconds>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
    r"(?:\s*(?P<half>[ap])[.]?m[.]?(?![a-z]))?)?"
    r"(?:\s*(?P<zone>\S.*))?",
    re.IGNORECASE,
)

_SIGN = "[-+\u2212]"
_OFFSET = re.compile(
    rf"(?P<open>[(\[])?(?:UTC|GMT|UT)?\s*(?P<sign>{_SIGN})\s*(?P<hours>[0-9]{{1,2}})"
    r"(?::?(?P<minutes>[0-9]{2}))?(?(open)[)\]])(?:\s*\([^()]*\))?",
    re.IGNORECASE,
)
_LABEL = re.compile(
    rf"\((?:UTC|GMT)(?:(?P<sign>{_SIGN})(?P<hours>[0-9]{{1,2}}):(?P<minutes>[0-9]{{2}}))?\)\s+(?P<name>.+)"
)
"""The name of a zone in Windows: the offset is that of the winter, on any day."""
_UTC = frozenset({"z", "utc", "gmt", "ut", "coordinated universal time", "greenwich mean time"})
_ABBREVIATIONS: Mapping[str, float] = {
    # RFC 5322 says what these mean.
    "EST": -5,
    "EDT": -4,
    "CST": -6,
    "CDT": -5,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
    "WET": 0,
    "WEST": 1,
    "BST": 1,
    "CET": 1,
    "CEST": 2,
    "MEZ": 1,
    "MESZ": 2,
    "EET": 2,
    "EEST": 3,
    "MSK": 3,
    "SAST": 2,
    "PKT": 5,
    "WIB": 7,
    "HKT": 8,
    "SGT": 8,
    "AWST": 8,
    "JST": 9,
    "KST": 9,
    "ACST": 9.5,
    "ACDT": 10.5,
    "AEST": 10,
    "AEDT": 11,
    "NZST": 12,
    "NZDT": 13,
    "AKST": -9,
    "AKDT": -8,
    "HST": -10,
    "ADT": -3,
    "NST": -3.5,
    "NDT": -2.5,
}
"""Hours from UTC of the abbreviations that mean one zone; IST may be one of three."""
_NAMED: Mapping[str, str] = {
    "pacific": "America/Los_Angeles",
    "mountain": "America/Denver",
    "central": "America/Chicago",
    "eastern": "America/New_York",
    "atlantic": "America/Halifax",
    "newfoundland": "America/St_Johns",
    "alaska": "America/Anchorage",
    "alaskan": "America/Anchorage",
    "hawaii": "Pacific/Honolulu",
    "hawaiian": "Pacific/Honolulu",
    "arizona": "America/Phoenix",
    "us mountain": "America/Phoenix",
    "gmt": "Europe/London",
    "british": "Europe/London",
    "greenwich": "Africa/Abidjan",
    "w. europe": "Europe/Berlin",
    "central europe": "Europe/Budapest",
    "central european": "Europe/Warsaw",
    "romance": "Europe/Paris",
    "western european": "Europe/Lisbon",
    "e. europe": "Europe/Chisinau",
    "eastern european": "Europe/Bucharest",
    "fle": "Europe/Kyiv",
    "gtb": "Europe/Bucharest",
    "turkey": "Europe/Istanbul",
    "russian": "Europe/Moscow",
    "moscow": "Europe/Moscow",
    "israel": "Asia/Jerusalem",
    "south africa": "Africa/Johannesburg",
    "arabian": "Asia/Dubai",
    "arab": "Asia/Riyadh",
    "pakistan": "Asia/Karachi",
    "india": "Asia/Kolkata",
    "se asia": "Asia/Bangkok",
    "indochina": "Asia/Bangkok",
    "china": "Asia/Shanghai",
    "singapore": "Asia/Singapore",
    "hong kong": "Asia/Hong_Kong",
    "taipei": "Asia/Taipei",
    "tokyo": "Asia/Tokyo",
    "japan": "Asia/Tokyo",
    "korea": "Asia/Seoul",
    "korean": "Asia/Seoul",
    "w. australia": "Australia/Perth",
    "aus eastern": "Australia/Sydney",
    "australian eastern": "Australia/Sydney",
    "new zealand": "Pacific/Auckland",
    "e. south america": "America/Sao_Paulo",
    "brasilia": "America/Sao_Paulo",
    "argentina": "America/Argentina/Buenos_Aires",
}
"""Zones by the names that Windows and browsers give them, without what says that they are one."""
_TIME_OF = re.compile(
    r"(?P<name>.+?)(?P<part>\s+(?:standard|daylight|summer))?\s+time(?:\s+\(.*\))?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Written:
    """A day, its time if one is written, and the time zone behind it as it is written."""

    day: date
    at: time | None = None
    zone: str | None = None

    def plain(self, zone: str | None = None) -> str:
        """ISO 8601: a day, a time without an offset, or a moment.

        A time without a zone is meant in `zone`, if that is given. Raises InvalidValueError for a
        zone that is not known.
        """
        if self.at is None:
            return self.day.isoformat()
        local = datetime.combine(self.day, self.at)
        if self.zone is not None:
            offset = offset_of(self.zone, local)
            if offset is None:
                raise InvalidValueError("has a time zone that is not known")
            return local.replace(tzinfo=timezone(offset)).isoformat()
        return local.replace(tzinfo=None if zone is None else ZoneInfo(zone)).isoformat()


Order = Callable[[str, str, str, bool], tuple[int, int, int] | None]
"""Year, month and day of three numbers; the last argument says that dots divide them."""


def read_written(text: str, order: Order) -> Written | None:
    """The day or moment that a text is; None for another text.

    Raises InvalidValueError for a day that no calendar has.

    Months may be names or numbers, times go by twelve or by twenty-four hours, and zones are read
    as Notion, Airtable, Outlook, e-mail and JavaScript write them. With a zone that is not known a
    time is no moment.
    """
    match = _WRITTEN.fullmatch(text)
    if match is None:
        return None
    at = _time(match)
    parts = _day(match, order)
    if parts is None or (match["hour"] and at is None):
        return None
    try:
        day = date(*parts)
    except ValueError as error:
        raise InvalidValueError("is not a valid date") from error
    if at is None and match["zone"]:
        # A day is the same in each zone; what else stands behind it makes it another text.
        known = offset_of(match["zone"], datetime.combine(day, time()))
        return None if known is None else Written(day)
    return Written(day, at, match["zone"])


def _day(found: re.Match[str], order: Order) -> tuple[int, int, int] | None:
    if found["first"]:
        return order(found["first"], found["second"], found["third"], found["between"] == ".")
    month = MONTHS.get((found["month"] or found["month2"]).casefold())
    if month is None:
        return None
    day, year = found["day"] or found["day2"], found["year"] or found["year2"]
    return int(year), month, int(day)


def _time(found: re.Match[str]) -> time | None:
    if not found["hour"]:
        return None
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    if half and not 1 <= hour <= 12:
        return None
    hour = hour % 12 + 12 * (half == "p") if half else hour
    fraction = int((found["fraction"] or "").ljust(6, "0")[:6])
    try:
        return time(hour, int(found["minute"]), int(found["seconds"] or 0), fraction)
    except ValueError:
        return None


def offset_of(zone: str, local: datetime) -> timedelta | None:
    """The offset from UTC that a zone has at a local time; None for one that is not known."""
    stated = _OFFSET.fullmatch(zone)
    if stated is not None:
        return _offset(stated)
    label = _LABEL.fullmatch(zone)
    if label is not None:
        return _labelled(label, local)
    name = zone[1:-1] if (zone[0], zone[-1]) in {("(", ")"), ("[", "]")} else zone
    if name.casefold() in _UTC:
        return timedelta()
    hours = _ABBREVIATIONS.get(name.upper())
    if hours is not None:
        return timedelta(hours=hours)
    if name in _zones() and "/" in name:
        return ZoneInfo(name).utcoffset(local)
    return _named(name, local)


def _offset(found: re.Match[str]) -> timedelta | None:
    minutes = 60 * int(found["hours"] or 0) + int(found["minutes"] or 0)
    if minutes > 14 * 60 or int(found["minutes"] or 0) > 59:
        return None
    return timedelta(minutes=minutes if found["sign"] == "+" else -minutes)


def _named(name: str, local: datetime) -> timedelta | None:
    """The offset of a zone such as `Pacific Time (US & Canada)`, `W. Europe Standard Time`."""
    found = _TIME_OF.fullmatch(name)
    known = None if found is None else _NAMED.get(found["name"].lower())
    return None if known is None else ZoneInfo(known).utcoffset(local)


def _labelled(label: re.Match[str], local: datetime) -> timedelta | None:
    """The offset of a zone that is named as in Windows: by an offset, and by some of its cities."""
    winter = _offset(label) if label["sign"] else timedelta()
    found = _TIME_OF.fullmatch(label["name"])
    names = [] if found is None else [_NAMED.get(found["name"].lower())]
    names += [_cities().get(city.strip().casefold()) for city in label["name"].split(",")]
    for name in names:
        if name is not None:
            zone = ZoneInfo(name)
            offsets = {zone.utcoffset(local.replace(month=month, day=1)) for month in (1, 7)}
            if winter in offsets:
                return zone.utcoffset(local)
    return winter if label["name"].casefold() in _UTC else None


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


@cache
def _cities() -> Mapping[str, str]:
    """Zones by the last part of their names."""
    return {
        name.rpartition("/")[2].replace("_", " ").casefold(): name
        for name in sorted(_zones(), reverse=True)
        if "/" in name and not name.startswith(("Etc/", "posix/", "right/"))
    }


DateOrder = Literal["ymd", "dmy", "mdy"]
DecimalSeparator = Literal[".", ","]

NO_CENTS = "[-\u2012-\u2014]{1,2}(?![0-9])"
"""Dashes in place of decimals, as in `12.-` and `12,—`."""
_SPACES = " \u00a0\u2007\u2009\u202f"
_MINUS = "\\-\u2212"


def _number_pattern(decimal: str, group: str) -> re.Pattern[str]:
    """A number whose groups of three digits are divided by one and the same sign."""
    indian = "[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}|" if group == "," else ""
    return re.compile(
        rf"(?P<before>[^0-9{decimal}]{{0,12}}+)"
        rf"(?P<whole>[0-9]{{1,3}}(?P<group>[{group}'\u2019{_SPACES}])[0-9]{{3}}"
        rf"(?:(?P=group)[0-9]{{3}})*|{indian}[0-9]+|(?=[{decimal}][0-9]))"
        rf"(?:[{decimal}](?:(?P<fraction>[0-9]+)|{NO_CENTS}))?(?P<exponent>[eE][+-]?[0-9]{{1,3}})?"
        rf"(?P<after>[^0-9]{{0,12}})"
    )


_NUMBERS = {".": _number_pattern(".", ","), ",": _number_pattern(",", ".")}
_PLAIN = re.compile(r"-?[0-9]+")
_ZERO = re.compile(
    r"(?P<before>[^\w\s.,()+%-]|[A-Z]{3})\s*-|-\s*(?P<after>[^\w\s.,()+%-]|[A-Z]{3})"
)
"""A dash with a currency, which is how accounts show zero."""
_SIGNS = re.compile(rf"[()+{_MINUS}]")
_NEGATIVE = re.compile(rf"[{_MINUS}][|]|[|][{_MINUS}]|[(][|][)]")
_NOT_DIGITS = re.compile(r"[^0-9]")
_DOUBTFUL = re.compile(
    rf"[0-9]{{3}}(?: [0-9]{{3}})+|[+][0-9]{{1,3}}(?: [0-9]{{3}})+|[+][0-9]{{7,15}}"
    rf"|[(][0-9]+[)]|[0-9]+[{_MINUS}]"
)
_LONGEST_MOMENT = 120
_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_NAMES = "|".join(sorted({name[:3] for name in MONTHS} | WEEKDAYS))
_MAY_BE_DAY = re.compile(rf"[0-9]{{1,4}}[-/. a-zºª°]|{_NAMES}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Declared:
    """The notation of a table as it was declared; None leaves it to the cells.

    `words` are the texts that mean yes, and the texts that mean no, beside true and false.
    """

    date_order: DateOrder | None = None
    decimal_separator: DecimalSeparator | None = None
    words: tuple[frozenset[str], frozenset[str]] | None = None


@dataclass(frozen=True, slots=True)
class Conventions:
    """The notation of the texts of a table.

    Without a `date_order` no order of days and months is known: a day has the name of its month,
    or begins with its year. `yes` and `no` are words, in small letters, beside true and false.
    """

    date_order: DateOrder | None = "ymd"
    decimal_separator: DecimalSeparator = "."
    yes: frozenset[str] = frozenset()
    no: frozenset[str] = frozenset()

    @classmethod
    def of(cls, notation: Mapping[str, Any]) -> Self:
        """The conventions that `to_json` wrote."""
        yes, no = frozenset(notation["yes"]), frozenset(notation["no"])
        return cls(notation["dateOrder"], notation["decimalSeparator"], yes, no)

    def to_json(self) -> dict[str, Any]:
        """The conventions as a run remembers them."""
        return {
            "dateOrder": self.date_order,
            "decimalSeparator": self.decimal_separator,
            "yes": sorted(self.yes),
            "no": sorted(self.no),
        }

    def truth(self, text: str) -> str:
        """`true` or `false` for a word that means it; another text as it is."""
        word = text.casefold()
        return "true" if word in self.yes else "false" if word in self.no else text

    def number(self, text: str) -> str:
        """The number in its plain form, `-1234.5`; another text as it is.

        Its sign moves to the digits, from before or behind a currency; `(5)` is -5 as in accounts.
        """
        if _PLAIN.fullmatch(text):
            return text
        if zero := _ZERO.fullmatch(text):
            return f"{zero['before'] or ''}0{zero['after'] or ''}"
        match = _NUMBERS[self.decimal_separator].fullmatch(text)
        if match is None:
            return text
        before, after = match["before"], match["after"]
        signs = "".join(_SIGNS.findall(before)) + "|" + "".join(_SIGNS.findall(after))
        negative = _NEGATIVE.fullmatch(signs) is not None
        if not negative and signs not in {"|", "+|"}:
            return text
        whole = _NOT_DIGITS.sub("", match["whole"])
        fraction = f".{match['fraction']}" if match["fraction"] else ""
        digits = f"{'-' if negative else ''}{whole}{fraction}{match['exponent'] or ''}"
        return f"{_SIGNS.sub('', before).strip()}{digits}{_SIGNS.sub('', after).strip()}"

    def day(self, text: str) -> str:
        """A day or a moment by ISO 8601; another text as it is.

        Raises InvalidValueError for a day that no calendar has, and for a time zone that is not
        known.
        """
        if not _MAY_BE_DAY.match(text) or len(text) > _LONGEST_MOMENT or _ISO.fullmatch(text):
            return text
        written = self.written(text)
        return text if written is None else written.plain()

    def written(self, text: str) -> Written | None:
        """The day or moment that a text is, with the time zone behind it; None for another text."""
        return read_written(text, self._ordered)

    def _ordered(
        self,
        first: str,
        second: str,
        third: str,
        dotted: bool,  # as it is called back
    ) -> tuple[int, int, int] | None:
        """Year, month and day; dots mean that the day is first, in any declared order."""
        if len(first) == 4:
            return int(first), int(second), int(third)
        if len(third) != 4 or len(first) > 2:
            return None
        if dotted or self.date_order == "dmy":
            return int(third), int(second), int(first)
        return (int(third), int(first), int(second)) if self.date_order == "mdy" else None


def is_doubtful(text: str) -> bool:
    """True for a text that is a number only among others that certainly are.

    Groups of three without decimals are written in telephone numbers, `(1)` in lists.
    """
    return _DOUBTFUL.fullmatch(text) is not None
