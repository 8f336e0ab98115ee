"""Texts of cells as numbers, days, moments, yes and no, by the conventions of a table.

Nothing is guessed: `1/2/2026` is a day only where the order of days and months is declared, or
where other cells leave one order alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Any, Literal, Self

from models.core.values import InvalidValueError

DateOrder = Literal["ymd", "dmy", "mdy"]
DecimalSeparator = Literal[".", ","]

_GROUPED = {
    ".": re.compile(r"([^0-9]*[+-]?[0-9]{1,3})((?:,[0-9]{3})+)([.][0-9]+)?([^0-9]*)"),
    ",": re.compile(r"([^0-9]*[+-]?[0-9]{1,3})((?:[.][0-9]{3})+)([,][0-9]+)?([^0-9]*)"),
}
_DECIMAL_COMMA = re.compile(r"([^0-9]*[+-]?[0-9]*),([0-9]+)([^0-9]*)")
_DAY = re.compile(r"([0-9]{1,4})([-/.])([0-9]{1,2})\2([0-9]{1,4})(?:[T ](.+))?")
_MONTHS: Mapping[str, int] = MappingProxyType(
    {
        name: number
        for number, names in enumerate(
            (
                "jan january januar jänner janvier janv enero ene",
                "feb february februar février févr febrero",
                "mar march märz mär mars marzo",
                "apr april avril avr abril abr",
                "may mai mayo",
                "jun june juni juin junio",
                "jul july juli juillet juil julio",
                "aug august août agosto ago",
                "sep sept september septembre septiembre",
                "oct october oktober okt octobre octubre",
                "nov november novembre noviembre",
                "dec december dezember dez décembre déc diciembre dic",
            ),
            start=1,
        )
        for name in names.split()
    }
)
"""The names of months in English, German, French and Spanish; none of them means two months."""
_DAY_OF_MONTH = r"([0-9]{1,2})(?:st|nd|rd|th|[.])?"
_NAME = r"([^\W\d_]{3,10})[.]?"
_TIME_OF_DAY = r"(?:,?[T ](?:at )?([0-9].*))?"
_MONTH_FIRST = re.compile(rf"{_NAME}[ ]+{_DAY_OF_MONTH},?[ ]+([0-9]{{4}}){_TIME_OF_DAY}")
_DAY_BEFORE_NAME = re.compile(
    rf"{_DAY_OF_MONTH}(?:[ ]+(?:de )?|-){_NAME},?(?:[ ]+(?:de )?|-)([0-9]{{4}}){_TIME_OF_DAY}"
)


@dataclass(frozen=True, slots=True)
class Declared:
    """What is said of the notation of a table; None leaves it to the cells.

    `words` are the texts that mean yes, and those that mean no, beside true and false.
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
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """The conventions that `to_json` wrote."""
        yes, no = frozenset(stored["yes"]), frozenset(stored["no"])
        return cls(stored["dateOrder"], stored["decimalSeparator"], yes, no)

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
        """The number in its plain form, `1234.5`; another text as it is."""
        grouped = _GROUPED[self.decimal_separator].fullmatch(text)
        if grouped is not None:
            before, groups, decimals, after = grouped.groups()
            fraction = "." + decimals[1:] if decimals else ""
            return f"{before}{re.sub('[.,]', '', groups)}{fraction}{after}"
        if self.decimal_separator == ",":
            return _DECIMAL_COMMA.sub(r"\1.\2\3", text) if _DECIMAL_COMMA.fullmatch(text) else text
        return text

    def day(self, text: str) -> str:
        """A day, or the day of a moment, written year first; another text as it is."""
        found = _DAY.fullmatch(text)
        if found is None:
            return text if self.date_order == "ymd" else _named_day(text)
        first, separator, second, third, rest = found.groups()
        parts = self._ordered(first, second, third, dotted=separator == ".")
        if parts is None:
            return text
        return _written_day(*parts, rest)

    def _ordered(
        self, first: str, second: str, third: str, *, dotted: bool
    ) -> tuple[int, int, int] | None:
        """Year, month and day; dots stand where the day comes first, whatever is declared."""
        if len(first) == 4:
            return int(first), int(second), int(third)
        if len(third) != 4 or len(first) > 2:
            return None
        if dotted or self.date_order == "dmy":
            return int(third), int(second), int(first)
        return (int(third), int(first), int(second)) if self.date_order == "mdy" else None


def _written_day(year: int, month: int, day: int, rest: str | None) -> str:
    try:
        written = date(year, month, day).isoformat()
    except ValueError as error:
        raise InvalidValueError("is not a valid date") from error
    return f"{written}T{rest}" if rest else written


def _named_day(text: str) -> str:
    """A day with the name of its month, written year first; another text as it is."""
    if found := _MONTH_FIRST.fullmatch(text):
        name, day, year, rest = found.groups()
    elif found := _DAY_BEFORE_NAME.fullmatch(text):
        day, name, year, rest = found.groups()
    else:
        return text
    month = _MONTHS.get(name.casefold())
    return text if month is None else _written_day(int(year), month, int(day), rest)
