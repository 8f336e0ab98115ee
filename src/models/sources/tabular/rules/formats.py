"""Texts of cells as numbers, days and moments, by the conventions a table declares.

Nothing is guessed: `1/2/2026` is a day only where the order of days and months is declared.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Literal

from models.core.values import InvalidValueError

DateOrder = Literal["ymd", "dmy", "mdy"]

_GROUPED = {
    ".": re.compile(r"([^0-9]*[+-]?[0-9]{1,3})((?:,[0-9]{3})+)([.][0-9]+)?([^0-9]*)"),
    ",": re.compile(r"([^0-9]*[+-]?[0-9]{1,3})((?:[.][0-9]{3})+)([,][0-9]+)?([^0-9]*)"),
}
_DECIMAL_COMMA = re.compile(r"([^0-9]*[+-]?[0-9]*),([0-9]+)([^0-9]*)")
_DAY = re.compile(r"([0-9]{1,4})([-/.])([0-9]{1,2})\2([0-9]{1,4})(?:[T ](.+))?")


@dataclass(frozen=True, slots=True)
class Conventions:
    """The notation of the texts of a table."""

    date_order: DateOrder = "ymd"
    decimal_separator: Literal[".", ","] = "."

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
            return text
        first, separator, second, third, rest = found.groups()
        parts = self._ordered(first, second, third, dotted=separator == ".")
        if parts is None:
            return text
        try:
            day = date(*parts).isoformat()
        except ValueError as error:
            raise InvalidValueError("is no day") from error
        return f"{day}T{rest}" if rest else day

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
