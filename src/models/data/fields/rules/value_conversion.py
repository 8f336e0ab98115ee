"""Converting a value from one field kind to another; numbers and days as people write them.

Nothing is guessed: a text that could mean two things, such as `01/02/2026`, is lost, and the
preview of a conversion counts it.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any, Final, NoReturn, TypeGuard

from models.core import values as core_values
from models.data.fields.rules import fields
from models.data.fields.rules.settings import zone
from models.data.fields.rules.values import KIND_RULES


class Lost:
    """The type of `LOST`, which stands for a value that has no form in the new kind."""


LOST: Final = Lost()

TEXT_KINDS = frozenset(
    {fields.FieldKind.TEXT, fields.FieldKind.LONG_TEXT, fields.FieldKind.RICH_TEXT}
)
_WRITTEN = TEXT_KINDS | {fields.FieldKind.EMAIL, fields.FieldKind.URL, fields.FieldKind.PHONE}
_CHOSEN = frozenset({fields.FieldKind.SELECT, fields.FieldKind.STATUS})
_COUNTED = fields.NUMERIC_KINDS | {fields.FieldKind.RATING}
_NAMES = (
    _WRITTEN | _COUNTED | {fields.FieldKind.CHECKBOX, fields.FieldKind.DATE, fields.FieldKind.TIME}
)

_SOURCES: Mapping[fields.FieldKind, frozenset[fields.FieldKind]] = {
    **dict.fromkeys(TEXT_KINDS, fields.STORED_KINDS),
    fields.FieldKind.JSON: fields.STORED_KINDS,
    **dict.fromkeys(_WRITTEN - TEXT_KINDS, _WRITTEN | _CHOSEN),
    **dict.fromkeys(
        fields.NUMERIC_KINDS,
        _WRITTEN | _CHOSEN | _COUNTED | {fields.FieldKind.DURATION, fields.FieldKind.CHECKBOX},
    ),
    fields.FieldKind.RATING: _WRITTEN | _CHOSEN | fields.NUMERIC_KINDS,
    fields.FieldKind.DURATION: _WRITTEN | fields.NUMERIC_KINDS,
    fields.FieldKind.CHECKBOX: _WRITTEN | _CHOSEN | fields.NUMERIC_KINDS,
    fields.FieldKind.DATE: _WRITTEN | _CHOSEN | {fields.FieldKind.DATETIME},
    fields.FieldKind.DATETIME: _WRITTEN | _CHOSEN | {fields.FieldKind.DATE},
    fields.FieldKind.TIME: _WRITTEN | _CHOSEN | {fields.FieldKind.DATETIME},
    **dict.fromkeys(fields.OPTION_KINDS, fields.OPTION_KINDS | _NAMES),
    fields.FieldKind.LOCATION: _WRITTEN | {fields.FieldKind.JSON},
}


def convertible(from_kind: fields.FieldKind, to_kind: fields.FieldKind) -> bool:
    """True when values of one kind can be converted to another."""
    return from_kind is not to_kind and from_kind in _SOURCES.get(to_kind, frozenset())


def convert_value(
    from_spec: fields.FieldSpec, to_spec: fields.FieldSpec, value: fields.FieldValue
) -> fields.FieldValue | Lost:
    """The value in the stored form of the new field; LOST when it has none there."""
    check = KIND_RULES[to_spec.kind].check
    assert check is not None, "no field is converted to a kind that clients do not write"
    try:
        return check(to_spec, _READERS[to_spec.kind](from_spec, to_spec, value))
    except core_values.InvalidValueError:
        return LOST


def option_names(
    from_spec: fields.FieldSpec, to_spec: fields.FieldSpec, value: fields.FieldValue
) -> list[str]:
    """The names of the options that a value needs in a field of options."""
    if from_spec.kind in fields.OPTION_KINDS:
        known = from_spec.option_names
        return [known[key] for key in _listed(value) if isinstance(key, str) and key in known]
    try:
        text = as_text(from_spec, value)
    except core_values.InvalidValueError:
        return []
    if to_spec.kind is fields.FieldKind.MULTI_SELECT:
        return to_spec.names_in(text)
    name = text.strip()
    return [name] if name else []


def as_text(spec: fields.FieldSpec, value: fields.FieldValue) -> str:
    """A value as a person would write it."""
    if spec.kind in fields.OPTION_KINDS:
        return ", ".join(_chosen_names(spec, value))
    if spec.kind is fields.FieldKind.DURATION and not isinstance(value, str):
        return clock(value)
    if spec.kind is fields.FieldKind.LOCATION and isinstance(value, dict):
        label = value.get("label")
        return label if isinstance(label, str) else place_text(value)
    if spec.kind is fields.FieldKind.JSON and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(str(entry) for entry in value)
    return "true" if value is True else "false" if value is False else digits(value)


def _chosen_names(spec: fields.FieldSpec, value: fields.FieldValue) -> list[str]:
    names = option_names(spec, spec, value)
    if len(names) < len(_listed(value)):
        raise core_values.InvalidValueError("is not an option any more")
    return names


def _listed(value: fields.FieldValue) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(from_spec: fields.FieldSpec, _to: fields.FieldSpec, value: fields.FieldValue) -> str:
    return as_text(from_spec, value)


def _line(from_spec: fields.FieldSpec, _to: fields.FieldSpec, value: fields.FieldValue) -> str:
    return as_text(from_spec, value).strip()


_NUMBERS = frozenset({int, float})
_PLAIN = re.compile(r"-?[0-9]{1,9}(?:[.][0-9]{1,6})?")
"""Digits of which none is lost in a float."""


def _read_number(text: str, spec: fields.FieldSpec) -> Decimal:
    """A number as a field of this kind takes it: with a percent sign, or with its currency."""
    if spec.kind is not fields.FieldKind.CURRENCY:
        return read_number(text, "%" if spec.kind is fields.FieldKind.PERCENT else "")
    amount = read_amount(text)
    own = spec.settings.get("currencyCode")
    if own is not None and not is_one_currency({*amount.currencies, own}):
        raise core_values.InvalidValueError("is an amount of another currency")
    return amount.number


def _is_plain(value: fields.FieldValue) -> TypeGuard[str]:
    return isinstance(value, str) and _PLAIN.fullmatch(value) is not None


def _number(
    from_spec: fields.FieldSpec, to_spec: fields.FieldSpec, value: fields.FieldValue
) -> int | float:
    """A number, rounded half up to the decimals the new field shows, and in no other way."""
    precision = to_spec.settings.get("precision")
    if precision is None and from_spec.kind in _WRITTEN and _is_plain(value):
        value = float(value)
    if precision is None and type(value) in _NUMBERS:
        # Without rounding no decimals are needed, which take ten times as long.
        given = core_values.number(value)
        return int(given) if isinstance(given, float) and _is_short(given) else given
    if isinstance(value, bool):
        exact = Decimal(int(value))
    elif isinstance(value, int | float):
        exact = Decimal(repr(core_values.number(value)))
    else:
        exact = _read_number(as_text(from_spec, value), to_spec)
    if precision is not None and abs(exact) < Decimal(10) ** 15:
        exact = exact.quantize(Decimal(1).scaleb(-precision), ROUND_HALF_UP)
    # Integers of any length are kept where they are stored already.
    return value if type(value) is int and exact == value else core_values.exact_number(exact)


def _is_short(given: float) -> bool:
    return given.is_integer() and abs(given) < core_values.EXACT


def _duration(
    from_spec: fields.FieldSpec, to_spec: fields.FieldSpec, value: fields.FieldValue
) -> int | float:
    """Milliseconds: from a number of them, or from `H:MM`, `H:MM:SS`."""
    written = read_clock(as_text(from_spec, value))
    return _number(from_spec, to_spec, value) if written is None else written


def _checkbox(from_spec: fields.FieldSpec, _to: fields.FieldSpec, value: fields.FieldValue) -> bool:
    return read_yes_or_no(as_text(from_spec, value))


def _date(from_spec: fields.FieldSpec, to_spec: fields.FieldSpec, value: fields.FieldValue) -> str:
    """A day; of a moment, that in the time zone of either field, else the one that is written."""
    text = as_text(from_spec, value).strip()
    if found := _LOCAL.fullmatch(text):
        return _local(*found.groups()).date().isoformat()
    if from_spec.kind is not fields.FieldKind.DATETIME and "T" not in text:
        return read_day(text).isoformat()
    at = core_values.moment(text)
    zoned = next((spec for spec in (from_spec, to_spec) if spec.settings.get("timezone")), None)
    return text[:10] if zoned is None else _in_zone(at, zoned).date().isoformat()


_LOCAL = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,6})?)?)"
)


def _datetime(
    from_spec: fields.FieldSpec, to_spec: fields.FieldSpec, value: fields.FieldValue
) -> str:
    """A moment; a day begins, and a time without an offset is, in the new field's time zone."""
    text = as_text(from_spec, value).strip()
    if found := _LOCAL.fullmatch(text):
        return _placed(_local(*found.groups()), to_spec)
    try:
        return core_values.stored_moment(core_values.moment(text))
    except core_values.InvalidValueError:
        return _placed(datetime.combine(read_day(text), time()), to_spec)


def _local(on: str, at: str) -> datetime:
    try:
        return datetime.combine(core_values.day(on), time.fromisoformat(at))
    except ValueError as error:
        raise core_values.InvalidValueError("is not a valid date and time") from error


def _placed(local: datetime, spec: fields.FieldSpec) -> str:
    try:
        return core_values.stored_moment(local.replace(tzinfo=zone(spec.timezone)))
    except OverflowError as error:
        raise core_values.InvalidValueError("is not a valid date and time") from error


def _in_zone(at: datetime, spec: fields.FieldSpec) -> datetime:
    try:
        return at.astimezone(zone(spec.timezone))
    except OverflowError as error:
        raise core_values.InvalidValueError("is not a valid date and time there") from error


def _time(from_spec: fields.FieldSpec, _to: fields.FieldSpec, value: fields.FieldValue) -> str:
    text = as_text(from_spec, value).strip()
    if from_spec.kind is fields.FieldKind.DATETIME:
        return _in_zone(core_values.moment(text), from_spec).time().isoformat("seconds")
    return read_time(text)


def _option(
    from_spec: fields.FieldSpec, to_spec: fields.FieldSpec, value: fields.FieldValue
) -> str:
    """The key of the one option that has the value as its key or its name."""
    keys = _options(from_spec, to_spec, value)
    if len(keys) != 1:
        raise core_values.InvalidValueError("is not one option")
    return keys[0]


def _options(
    from_spec: fields.FieldSpec, to_spec: fields.FieldSpec, value: fields.FieldValue
) -> list[str]:
    if from_spec.kind in fields.OPTION_KINDS:
        keys = _listed(value)
        same = [key for key in keys if isinstance(key, str) and key in to_spec.option_keys]
        if len(same) == len(keys):
            return same
    named = to_spec.options_named
    names = option_names(from_spec, to_spec, value)
    if any(name.casefold() not in named for name in names) or not names:
        raise core_values.InvalidValueError("is not among the options")
    return [named[name.casefold()] for name in names]


def _json(
    from_spec: fields.FieldSpec, _to: fields.FieldSpec, value: fields.FieldValue
) -> fields.FieldValue:
    """The value itself; a text that is JSON is read as such."""
    if from_spec.kind not in _WRITTEN or not isinstance(value, str):
        return value
    try:
        read = json.loads(value, parse_constant=_refuse, parse_float=_exact)
    except (ValueError, RecursionError, core_values.InvalidValueError):
        return value
    return value if read is None else read


def _exact(written: str) -> int | float:
    return core_values.exact_number(Decimal(written))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_DEGREES = r"(-?[0-9]{1,3}(?:[.][0-9]{1,340})?)"
_PLACE = re.compile(rf"{_DEGREES}\s*[,;]\s*{_DEGREES}(?:\s+\((.+)\))?", re.DOTALL)


def place_text(place: Mapping[str, Any]) -> str:
    """A location as its degrees, `52.52, 13.405`, with its label in parentheses if it has one."""
    degrees = f"{digits(place.get('lat'))}, {digits(place.get('lng'))}"
    return f"{degrees} ({place['label']})" if place.get("label") else degrees


def _location(
    from_spec: fields.FieldSpec, _to: fields.FieldSpec, value: fields.FieldValue
) -> fields.FieldValue:
    if from_spec.kind is fields.FieldKind.JSON and not isinstance(value, str):
        return value
    found = _PLACE.fullmatch(as_text(from_spec, value).strip())
    if found is None:
        raise core_values.InvalidValueError("is not a location")
    place = {"lat": float(found[1]), "lng": float(found[2])}
    return {**place, "label": found[3]} if found[3] else place


_PLAIN_NUMBER = re.compile(
    r"[+-]?([0-9]{1,100}([.][0-9]{1,100})?|[.][0-9]{1,100})([eE][+-]?[0-9]{1,3})?"
)
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}((,[0-9]{3}){2,30}|(,[0-9]{3}){1,30}[.][0-9]{1,100})")


def digits(value: object) -> str:
    """A number without an exponent."""
    return core_values.all_digits(Decimal(repr(core_values.number(value))))


def read_number(text: str, units: str) -> Decimal:
    """A number with none or one of the characters of `units` around it.

    `1,234.5` is unambiguous; `1,234` is refused: some read it as 1234, others as 1.234.
    """
    stripped = text.strip().strip(units).strip()
    if _PLAIN_NUMBER.fullmatch(stripped):
        return Decimal(stripped)
    if _GROUPED.fullmatch(stripped):
        return Decimal(stripped.replace(",", ""))
    raise core_values.InvalidValueError("is not a number")


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
_DOLLARS = (
    "USD ARS AUD BBD BMD BND BSD BZD CAD CLP COP CUP DOP FJD GYD HKD JMD KYD LRD MXN NAD NIO NZD"
    " SBD SGD SRD TTD TWD UYU XCD ZWG"
)
_SIGNS: Mapping[str, frozenset[str]] = {
    sign: frozenset(codes.split())
    for sign, codes in {
        "$": _DOLLARS,
        "US$": "USD",
        "A$": "AUD",
        "AU$": "AUD",
        "C$": "CAD NIO",
        "CA$": "CAD",
        "HK$": "HKD",
        "NZ$": "NZD",
        "S$": "SGD",
        "NT$": "TWD",
        "MX$": "MXN",
        "R$": "BRL",
        "€": "EUR",
        "£": "GBP EGP FKP GIP LBP SDG SHP SSP SYP",
        "¥": "JPY CNY",
        "₹": "INR",
        "₽": "RUB",
        "₺": "TRY",
        "₩": "KRW KPW",
        "₪": "ILS",
        "₫": "VND",
        "₴": "UAH",
        "₦": "NGN",
        "฿": "THB",
        "kr": "SEK DKK ISK NOK",
        "zł": "PLN",
        "Kč": "CZK",
        "Fr": "CHF BIF DJF GNF KMF RWF XAF XOF XPF",
        "Rs": "INR LKR MUR NPR PKR SCR",
    }.items()
}
"""The currencies that a sign may mean; a sign that is not here may mean any."""
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


def is_one_currency(stated: Iterable[str]) -> bool:
    """True for signs and codes of currencies that may all mean the same one."""
    signs, codes = set[str](), set[str]()
    for each in stated:
        (codes if each in CURRENCIES else signs).add(each.removesuffix("."))
    if len(signs) > 1 or len(codes) > 1:
        return False
    return all(codes <= _SIGNS.get(sign, codes) for sign in signs)


def read_amount(text: str) -> Amount:
    """A number with none, one or two signs or codes of a currency around it."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise core_values.InvalidValueError("is not an amount")
    stated = tuple(each for each in (match["before"], match["after"]) if each)
    if any(each.isalpha() and each.isupper() and each not in CURRENCIES for each in stated):
        raise core_values.InvalidValueError("names no currency")
    return Amount(read_number(match["sign"] + match["number"], ""), stated)


_CLOCK = re.compile(r"([0-9]{1,10}):([0-5][0-9])(?::([0-5][0-9])(?:[.]([0-9]{1,3})0*)?)?")


def clock(value: object) -> str:
    """Milliseconds as `H:MM:SS`, with a fraction where there is one."""
    if not isinstance(value, int):
        raise core_values.InvalidValueError("is not a duration")
    seconds, milliseconds = divmod(value, 1000)
    shown = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{shown}.{milliseconds:03}" if milliseconds else shown


def read_clock(text: str) -> int | None:
    """The milliseconds of `H:MM`, `H:MM:SS` or `H:MM:SS.mmm`; None for any other text."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups()[:3])
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + int((found[4] or "").ljust(3, "0"))


_TIME_OF_DAY = re.compile(
    r"(?P<hour>[0-9]{1,2})(?P<rest>:[0-5][0-9](?::[0-5][0-9])?)(?:\s*(?P<half>[ap])[.]?\s?m[.]?)?",
    re.IGNORECASE,
)


def read_time(text: str) -> str:
    """A time such as `9:30` or `9:30 PM` as `HH:MM` or `HH:MM:SS`; another text as it is."""
    match = _TIME_OF_DAY.fullmatch(text)
    if match is None:
        return text
    hour, half = int(match["hour"]), (match["half"] or "").lower()
    if half and not 1 <= hour <= 12:
        return text
    hour = hour % 12 + 12 * (half == "p") if half else hour
    return f"{hour:02}{match['rest']}"


_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read_yes_or_no(text: str) -> bool:
    """True when a text says yes."""
    word = text.strip().lower()
    if word not in _WORDS:
        raise core_values.InvalidValueError("is neither yes nor no")
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
        return core_values.day(text)
    try:
        return date(*map(int, parts))
    except ValueError as error:
        raise core_values.InvalidValueError("is not a valid date") from error


_READERS: Mapping[fields.FieldKind, Callable[[fields.FieldSpec, fields.FieldSpec, Any], Any]] = {
    **dict.fromkeys(TEXT_KINDS, _text),
    **dict.fromkeys(_WRITTEN - TEXT_KINDS, _line),
    **dict.fromkeys(_COUNTED, _number),
    fields.FieldKind.DURATION: _duration,
    fields.FieldKind.CHECKBOX: _checkbox,
    fields.FieldKind.DATE: _date,
    fields.FieldKind.DATETIME: _datetime,
    fields.FieldKind.TIME: _time,
    **dict.fromkeys(_CHOSEN, _option),
    fields.FieldKind.MULTI_SELECT: _options,
    fields.FieldKind.JSON: _json,
    fields.FieldKind.LOCATION: _location,
}


def rounded(value: object, decimals: int) -> str:
    """A number with this number of decimals; a half is rounded away from zero."""
    with localcontext(rounding=ROUND_HALF_UP):
        return format(Decimal(repr(core_values.number(value))), f".{decimals}f")
