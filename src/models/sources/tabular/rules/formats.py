"""Texts of cells as numbers, days, moments, yes and no, by the conventions of a table.

Nothing is guessed: `1/2/2026` is a day only where the order of days and months is declared, or
where other cells leave one order alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from models.sources.tabular.rules.moments import MONTHS, WEEKDAYS, Written, read_written

DateOrder = Literal["ymd", "dmy", "mdy"]
DecimalSeparator = Literal[".", ","]

_SPACES = " \u00a0\u2007\u2009\u202f"
_MINUS = "\\-\u2212"


def _number_pattern(decimal: str, group: str) -> re.Pattern[str]:
    """A number whose groups of three digits are divided by one and the same sign."""
    indian = "[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}|" if group == "," else ""
    return re.compile(
        rf"(?P<before>[^0-9{decimal}]{{0,12}}+)"
        rf"(?P<whole>[0-9]{{1,3}}(?P<group>[{group}'\u2019{_SPACES}])[0-9]{{3}}"
        rf"(?:(?P=group)[0-9]{{3}})*|{indian}[0-9]+|(?=[{decimal}][0-9]))"
        rf"(?:[{decimal}](?P<fraction>[0-9]+))?(?P<exponent>[eE][+-]?[0-9]{{1,3}})?"
        rf"(?P<after>[^0-9]{{0,12}})"
    )


_NUMBERS = {".": _number_pattern(".", ","), ",": _number_pattern(",", ".")}
_PLAIN = re.compile(r"-?[0-9]+")
_SIGNS = re.compile(rf"[()+{_MINUS}]")
_NEGATIVE = re.compile(rf"[{_MINUS}][|]|[|][{_MINUS}]|[(][|][)]")
_NOT_DIGITS = re.compile(r"[^0-9]")
_DOUBTFUL = re.compile(
    rf"[0-9]{{3}}(?: [0-9]{{3}})+|[+][0-9]{{1,3}}(?: [0-9]{{3}})+|[(][0-9]+[)]|[0-9]+[{_MINUS}]"
)
_LONGEST_MOMENT = 120
_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_NAMES = "|".join(sorted({name[:3] for name in MONTHS} | WEEKDAYS))
_MAY_BE_DAY = re.compile(rf"[0-9]{{1,4}}[-/. a-z]|{_NAMES}", re.IGNORECASE)


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
        """Year, month and day; dots stand where the day comes first, whatever is declared."""
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
