"""Numbers, durations, days and yes or no as people write them, read only when unambiguous."""

import re
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal, localcontext

from models.core.values import InvalidValueError, all_digits, day, number

_PLAIN = re.compile(r"[+-]?([0-9]{1,100}([.][0-9]{1,100})?|[.][0-9]{1,100})([eE][+-]?[0-9]{1,3})?")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}((,[0-9]{3}){2,30}|(,[0-9]{3}){1,30}[.][0-9]{1,100})")


def digits(value: object) -> str:
    """A number without an exponent."""
    return all_digits(Decimal(repr(number(value))))


def rounded(value: object, decimals: int) -> str:
    """A number with so many decimals; a half goes away from zero, as people round."""
    with localcontext(rounding=ROUND_HALF_UP):
        return format(Decimal(repr(number(value))), f".{decimals}f")


def read_number(text: str, units: str) -> Decimal:
    """A number with none or one of the characters of `units` around it.

    `1,234.5` is unambiguous; `1,234` is refused: some read it as 1234, others as 1.234.
    """
    stripped = text.strip().strip(units).strip()
    if _PLAIN.fullmatch(stripped):
        return Decimal(stripped)
    if _GROUPED.fullmatch(stripped):
        return Decimal(stripped.replace(",", ""))
    raise InvalidValueError("is no number")


_CODES = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN"
    " BZD CAD CDF CHF CLF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP"
    " GEL GHS GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS"
    " KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR"
    " MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF"
    " SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD"
    " TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG"
)
CURRENCIES = frozenset(_CODES.split())
"""The codes of currencies that are in use (ISO 4217)."""
_CURRENCY = (
    r"(?:[A-Z]{3}|[A-Z]{0,2}[$\u00a2-\u00a5\u058f\u060b\u09f2\u09f3\u0e3f\u17db\u20a0-\u20cf\ufdfc]"
    r"|kr[.]?|zł|Kč|Fr[.]|Rs[.]?)"
)
_AMOUNT = re.compile(
    rf"(?P<sign>[+-]?)\s*(?P<before>{_CURRENCY})?\s*(?P<number>[+-]?[0-9.,eE+-]+)"
    rf"\s*(?P<after>{_CURRENCY})?"
)


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of money, with what says its currency: signs or codes, before and behind it."""

    number: Decimal
    currencies: tuple[str, ...]

    @property
    def code(self) -> str | None:
        """The code of its currency, if it states one."""
        return next((each for each in self.currencies if each in CURRENCIES), None)


def read_amount(text: str) -> Amount:
    """A number with none, one or two signs or codes of a currency around it."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise InvalidValueError("is no amount")
    stated = tuple(each for each in (match["before"], match["after"]) if each)
    if any(each.isalpha() and each.isupper() and each not in CURRENCIES for each in stated):
        raise InvalidValueError("names no currency")
    return Amount(read_number(match["sign"] + match["number"], ""), stated)


_CLOCK = re.compile(r"([0-9]{1,10}):([0-5][0-9])(?::([0-5][0-9])(?:[.]([0-9]{3}))?)?")


def clock(value: object) -> str:
    """Milliseconds as `H:MM:SS`, with a fraction where there is one."""
    if not isinstance(value, int):
        raise InvalidValueError("is no duration")
    seconds, milliseconds = divmod(value, 1000)
    shown = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{shown}.{milliseconds:03}" if milliseconds else shown


def read_clock(text: str) -> int | None:
    """The milliseconds of `H:MM`, `H:MM:SS` or `H:MM:SS.mmm`; None for any other text."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return None
    hours, minutes, seconds, milliseconds = (int(part or 0) for part in found.groups())
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds


_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read_yes_or_no(text: str) -> bool:
    """True when a text says yes."""
    word = text.strip().lower()
    if word not in _WORDS:
        raise InvalidValueError("is neither yes nor no")
    return _WORDS[word]


_YEAR_FIRST = re.compile(r"([0-9]{4})[/.]([0-9]{1,2})[/.]([0-9]{1,2})")
_DAY_FIRST = re.compile(r"([0-9]{1,2})[.]([0-9]{1,2})[.]([0-9]{4})")


def read_day(text: str) -> date:
    """A day as `2026-01-31`, `2026/1/31` or `31.1.2026`; `1/2/2026` is ambiguous and refused."""
    if found := _YEAR_FIRST.fullmatch(text):
        parts = found.groups()
    elif found := _DAY_FIRST.fullmatch(text):
        parts = found.groups()[::-1]
    else:
        return day(text)
    try:
        return date(*map(int, parts))
    except ValueError as error:
        raise InvalidValueError("is no day") from error
