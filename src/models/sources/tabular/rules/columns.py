"""The columns of a table: which kind all cells of each agree on, and which field it suggests.

A kind is taken only when every cell agrees (interface.md#previews): digits with a leading zero and
digits beyond the precision of a number stay text, and no day is read from a bare number. What the
notation of the table leaves open is read in every way, until `conventions` of a column says which
counts.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias
from uuid import UUID

from models.core.keys import first_free, slug
from models.core.values import InvalidValueError
from models.data.fields.rules import value_conversion
from models.data.fields.rules.fields import NUMERIC_KINDS, TITLE_KEY, FieldKind, FieldSpec
from models.data.fields.shapes import MAX_OPTION_NAME
from models.sources.tabular.rules import cells, formats
from models.sources.tabular.rules.cells import Amount, Cell, MarkedText, Percent, shown_cell

MAX_CHOICES = 12
"""Different texts that a column of choices has at most."""
MIN_ROWS_OF_CHOICES = 20
MAX_SAMPLES = 5
MAX_DIGITS = 15
"""Digits that every reader of a number keeps."""
_LONG_TEXT = 200
_LONGEST_LABEL = 200
_TITLES = ("title", "name", "label")

_LEADING_ZERO = re.compile(r"[+-]?0[0-9]+")
_DIGITS = re.compile(r"[0-9]")
_CLOCK_OF_SPAN = re.compile(r"[0-9]:[0-9]{2}:[0-9]{2}")
_PART_NUMBER = re.compile(r"[0-9]+[eE][0-9]+")
_USUAL = "AUD BRL CHF CNY CZK DKK EUR GBP INR JPY NOK PLN SEK USD ZAR"
SURE_CODES = frozenset(_USUAL.split())
"""Codes that are no words: with another one an amount has decimals, for `TOP 10` is none."""
_READ_BY_CONVENTION = re.compile(rf"[-/.,][0-9]|[.,]{formats.NO_CENTS}")
"""A part of every text that means one thing by some conventions, and another by others."""
_ORDERS: tuple[formats.DateOrder | None, ...] = (None, "dmy", "mdy")
_SEPARATORS: tuple[formats.DecimalSeparator, ...] = (".", ",")

_PREFERRED = (
    FieldKind.CHECKBOX,
    FieldKind.PERCENT,
    FieldKind.CURRENCY,
    FieldKind.NUMBER,
    FieldKind.DATE,
    FieldKind.DATETIME,
    FieldKind.TIME,
    FieldKind.DURATION,
    FieldKind.EMAIL,
    FieldKind.URL,
    FieldKind.JSON,
)
"""The kinds that all cells may agree on, the most telling one first; text is what remains."""

_TYPED: Mapping[type, frozenset[FieldKind]] = MappingProxyType(
    {
        bool: frozenset({FieldKind.CHECKBOX}),
        int: frozenset({FieldKind.NUMBER}),
        float: frozenset({FieldKind.NUMBER}),
        Percent: frozenset({FieldKind.PERCENT, FieldKind.NUMBER}),
        Amount: frozenset({FieldKind.CURRENCY, FieldKind.NUMBER}),
        datetime: frozenset({FieldKind.DATETIME}),
        date: frozenset({FieldKind.DATE, FieldKind.DATETIME}),
        # A span of less than a day may be written as a time.
        time: frozenset({FieldKind.TIME, FieldKind.DURATION}),
        timedelta: frozenset({FieldKind.DURATION}),
        list: frozenset({FieldKind.JSON}),
        dict: frozenset({FieldKind.JSON}),
    }
)


def _exact_number(text: str) -> bool:
    """True when a number says all that the text says; `1E5` may be the number of a part."""
    code = _LEADING_ZERO.fullmatch(text) or _PART_NUMBER.fullmatch(text)
    return code is None and len(_DIGITS.findall(text)) <= MAX_DIGITS


def _is_amount(text: str) -> bool:
    """True for a number with what certainly is a currency."""
    try:
        amount = value_conversion.read_amount(text)
    except InvalidValueError:
        return False
    sure = amount.code is None or amount.code in SURE_CODES or "." in text
    return bool(amount.currencies) and sure and _exact_number(text)


_GUARDS: Mapping[FieldKind, Callable[[str], bool]] = MappingProxyType(
    {
        FieldKind.CHECKBOX: lambda text: text.lower() in {"true", "false", "yes", "no"},
        FieldKind.NUMBER: _exact_number,
        FieldKind.PERCENT: lambda text: text.endswith("%") and _exact_number(text),
        FieldKind.CURRENCY: _is_amount,
        FieldKind.DATE: lambda text: "T" not in text and len(text) >= 8,
        FieldKind.DATETIME: lambda text: len(text) >= 8,
        # A single digit of hours before minutes and seconds is that of a duration.
        FieldKind.TIME: lambda text: not _CLOCK_OF_SPAN.fullmatch(text),
        FieldKind.DURATION: lambda text: text.count(":") == 2,
        FieldKind.EMAIL: lambda text: "@" in text,
        FieldKind.URL: lambda text: "://" in text,
    }
)
"""Tests a text must pass, besides conversion, to suggest a kind; no text suggests the others."""


def suggests(text: str, kind: FieldKind) -> bool:
    """True when a text, in its plain form, is a value of the kind."""
    guard = _GUARDS.get(kind)
    if guard is None or not guard(text):
        return False
    return value_conversion.convert_value(_TEXT, _of_kind(kind), text) is not value_conversion.LOST


@cache
def _of_kind(kind: FieldKind) -> FieldSpec:
    return FieldSpec(id=UUID(int=0), key="column", label="", kind=kind)


_TEXT = _of_kind(FieldKind.TEXT)


_SLASHED = re.compile(
    r"(?:[A-Za-z]{3,9}[.,]{0,2}\s+)?([0-9]{1,2})([-/])([0-9]{1,2})\2[0-9]{4}(?:[T, ].+)?"
)
_MARKED = re.compile(r"[^0-9]*?[+-]?([0-9]*[.,][0-9.,]*[0-9])(?:[eE][+-]?[0-9]+)?[^0-9]*")
_WITHOUT_CENTS = re.compile(rf"[^0-9]*[0-9][0-9.,]*(?P<sign>[.,]){formats.NO_CENTS}[^0-9]*")
_GROUPS = re.compile(r"(?<=[0-9])[\s'\u2019](?=[0-9]{3}(?![0-9]))")
_ONE_GROUP = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")
_COMMA_FORMS = re.compile(r"[0-9]*,[0-9]+|[1-9][0-9]{0,2}(?:[.][0-9]{3})+(?:,[0-9]+)?")
_POINT_FORMS = re.compile(
    r"[0-9]*[.][0-9]+|[1-9][0-9]{0,2}(?:(?:,[0-9]{2})*,[0-9]{3})(?:,[0-9]{3})*(?:[.][0-9]+)?"
)


Way: TypeAlias = Literal["date_order", "decimal_separator"]


@dataclass(slots=True)
class Signs:
    """The conventions that alone give cells of a column a form; `either` for cells with several."""

    orders: set[str] = field(default_factory=set)
    separators: set[str] = field(default_factory=set)

    def note(self, text: str) -> Way | None:
        """Take a text into account; gives by what its meaning differs, None by nothing."""
        if match := _SLASHED.fullmatch(text):
            first, second = int(match[1]), int(match[3])
            if first <= 12 and second <= 12:
                self.orders.add("either")
            elif first <= 12 or second <= 12:
                self.orders.add("mdy" if first <= 12 else "dmy")
            return "date_order"
        plain = _GROUPS.sub("", text)
        if match := _WITHOUT_CENTS.fullmatch(plain):
            self.separators.add(match["sign"])
            return "decimal_separator"
        if match := _MARKED.fullmatch(plain):
            number = match[1]
            if _ONE_GROUP.fullmatch(number):
                self.separators.add("either")
            else:
                forms = {",": _COMMA_FORMS, ".": _POINT_FORMS}
                self.separators.update(sign for sign in forms if forms[sign].fullmatch(number))
            return "decimal_separator"
        return None


def candidates(declared: formats.Declared | formats.Conventions) -> list[formats.Conventions]:
    """The conventions by which cells may be read, the plainest first."""
    if isinstance(declared, formats.Conventions):
        return [declared]
    orders = _ORDERS if declared.date_order is None else (declared.date_order,)
    separator = declared.decimal_separator
    separators = _SEPARATORS if separator is None else (separator,)
    return [formats.Conventions(order, separator) for order in orders for separator in separators]


@dataclass(slots=True)
class ColumnProfile:
    """The common traits of the cells of one column, gathered cell by cell.

    The kind is that by the `conventions` which count, once they are settled. `says_yes_or_no` is
    for a column of words that mean it.
    """

    conventions: formats.Conventions
    _groups: list[tuple[frozenset[FieldKind], Sequence[formats.Conventions]]]
    """The kinds that every cell so far agrees on, and the conventions by which it does."""
    _open: frozenset[FieldKind] = frozenset(_PREFERRED)
    """The kinds that are left by any conventions."""
    is_open: bool = False
    """Several conventions are possible."""
    filled: int = 0
    empty: int = 0
    texts: int = 0
    choices: set[str] = field(default_factory=set)
    """Different texts, as long as there are few enough for a column of choices."""
    samples: list[Any] = field(default_factory=list)
    long: bool = False
    signs: Signs = field(default_factory=Signs)
    says_yes_or_no: bool = False
    certain: bool = False
    """True when a cell alone is what the kinds say."""
    currencies: set[str] = field(default_factory=set)
    """Signs and codes of its amounts, until they are of several currencies."""

    def add(self, value: Cell) -> None:
        """Take one more cell into account; one with an error has no value."""
        if value is None or isinstance(value, cells.ErrorCell):
            self.empty += 1
            return
        self.filled += 1
        if len(self.samples) < MAX_SAMPLES:
            self.samples.append(shown_cell(value))
        if not isinstance(value, str):
            self._keep(_TYPED[type(value)])
            self.certain = True
            if isinstance(value, Amount) and value.currency:
                self._note_currencies(value.currency)
        else:
            self._add_text(value)

    def _add_text(self, value: str) -> None:
        self.texts += 1
        if isinstance(value, MarkedText):
            self._keep(frozenset())
        plain = value.strip()
        self.certain = self.certain or not formats.is_doubtful(plain)
        way = None
        if self.is_open and _READ_BY_CONVENTION.search(plain):
            way = self.signs.note(plain)
        if self._open and way is None:
            self._keep(self._kinds_of(_written(plain, self.conventions)))
        elif self._open:
            self._part(plain, way)
        if FieldKind.CURRENCY in self._open:
            self._note_currencies(*_currencies_of(plain, self.readings))
        if len(self.choices) <= MAX_CHOICES:
            self.choices.add(plain)
        self.long = self.long or len(value) > _LONG_TEXT or "\n" in value

    def _keep(self, found: frozenset[FieldKind]) -> None:
        """Keep the kinds that a cell is by whichever conventions."""
        if found >= self._open:
            return
        self._groups = [(kinds & found, readings) for kinds, readings in self._groups]
        self._open &= found

    def _note_currencies(self, *stated: str) -> None:
        """Take the currency of an amount into account: 5 € and $5 are no numbers of one field."""
        self.currencies.update(stated)
        if not value_conversion.is_one_currency(self.currencies):
            self._keep(frozenset(_PREFERRED) - NUMERIC_KINDS)

    def _part(self, text: str, way: Way | None) -> None:
        """Keep the kinds that a text is by each of the conventions."""
        kinds_by_form: dict[str, frozenset[FieldKind]] = {}
        forms: dict[object, str] = {}
        groups: dict[frozenset[FieldKind], list[formats.Conventions]] = {}
        for kinds, readings in self._groups:
            for reading in readings:
                key = reading.date_order if way == "date_order" else reading.decimal_separator
                if key not in forms:
                    forms[key] = _written(text, reading)
                form = forms[key]
                if form not in kinds_by_form:
                    kinds_by_form[form] = self._kinds_of(form)
                groups.setdefault(kinds & kinds_by_form[form], []).append(reading)
        self._groups = [*groups.items()]
        self._open = frozenset().union(*groups)

    @property
    def readings(self) -> Mapping[formats.Conventions, frozenset[FieldKind]]:
        """The kinds that every cell agrees on, by the conventions it is read by."""
        return {reading: kinds for kinds, readings in self._groups for reading in readings}

    def _kinds_of(self, written: str) -> frozenset[FieldKind]:
        """The kinds a text could be, among those still open."""
        return frozenset(kind for kind in self._open if suggests(written, kind))

    @property
    def kind(self) -> FieldKind:
        """The kind of the field that takes this column."""
        if self.filled == 0:
            return FieldKind.TEXT
        if self.says_yes_or_no:
            return FieldKind.CHECKBOX
        kinds = self.readings.get(self.conventions, frozenset())
        if not self.certain:
            kinds -= NUMERIC_KINDS
        agreed = next((kind for kind in _PREFERRED if kind in kinds), None)
        if agreed is not None:
            return agreed
        rows = self.filled + self.empty
        few = 0 < len(self.choices) <= MAX_CHOICES and rows >= MIN_ROWS_OF_CHOICES
        if few and all(_is_choice(each) for each in self.choices):
            return FieldKind.SELECT
        return FieldKind.LONG_TEXT if self.long else FieldKind.TEXT


def _written(text: str, conventions: formats.Conventions) -> str:
    """The text in its plain form; what is no day by these conventions stays as it is."""
    try:
        return conventions.number(conventions.day(text))
    except InvalidValueError:
        return text


def _currencies_of(
    text: str, readings: Mapping[formats.Conventions, frozenset[FieldKind]]
) -> Sequence[str]:
    """The signs and codes of an amount, by the first conventions which make it one."""
    reading = next(one for one, kinds in readings.items() if FieldKind.CURRENCY in kinds)
    return value_conversion.read_amount(_written(text, reading)).currencies


def _is_choice(text: str) -> bool:
    """True when a text may name an option: bare digits are a number of something, not a choice."""
    return len(text) <= MAX_OPTION_NAME and not text.isdigit()


@dataclass(frozen=True, slots=True)
class InferredColumn:
    """A column with the field it suggests (interface.md#previews)."""

    source_path: str
    suggested_key: str
    label: str
    kind: FieldKind
    null_count: int
    samples: Sequence[Any]
    choices: Sequence[str] = ()
    """The names of the options of a column of choices."""

    @property
    def field(self) -> FieldSpec:
        """The field it suggests, as a field that is there."""
        return FieldSpec(id=UUID(int=0), key=self.suggested_key, label=self.label, kind=self.kind)


def profiles(
    headers: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    declared: formats.Declared | formats.Conventions,
    *,
    suggests_kinds: bool = True,
) -> list[ColumnProfile]:
    """The profile of every column over these rows, each as wide as the headers."""
    readings = candidates(declared)
    kinds = frozenset(_PREFERRED) if suggests_kinds else frozenset[FieldKind]()
    columns = [
        ColumnProfile(readings[0], [(kinds, readings)], kinds, is_open=len(readings) > 1)
        for _ in headers
    ]
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            column.add(value)
    return columns


def inferred_columns(
    headers: Sequence[str],
    column_profiles: Sequence[ColumnProfile],
    row_keys: Collection[str] = (),
) -> list[InferredColumn]:
    """The columns with their fields; one of them, if any is text, fills the title.

    It is none that fills a key field.
    """
    title = _title_place(headers, column_profiles)
    if title is not None and slug(headers[title], "column") in {*row_keys} - {TITLE_KEY}:
        title = None
    keys = {TITLE_KEY}
    labels: set[str] = set()
    columns = []
    for place, (header, profile) in enumerate(zip(headers, column_profiles, strict=True)):
        kind = FieldKind.TEXT if place == title else profile.kind
        key = TITLE_KEY if place == title else first_free(slug(header, "column"), keys)
        keys.add(key)
        choices = sorted(profile.choices) if kind is FieldKind.SELECT else ()
        label = _label(header, labels)
        labels.add(label)
        columns.append(
            InferredColumn(header, key, label, kind, profile.empty, profile.samples, choices)
        )
    return columns


def _label(header: str, taken: Collection[str]) -> str:
    """A header as a label: cut, and numbered where another one begins alike."""
    label, number = header[:_LONGEST_LABEL], 1
    while label in taken and len(header) > _LONGEST_LABEL:
        number += 1
        label = f"{header[: _LONGEST_LABEL - 6].rstrip()} ({number})"
    return label


def _title_place(headers: Sequence[str], found: Sequence[ColumnProfile]) -> int | None:
    """The column named as a title is, else the first of short texts."""
    named = {header.strip().lower(): place for place, header in reversed([*enumerate(headers)])}
    for name in _TITLES:
        if name in named and not found[named[name]].long:
            return named[name]
    texts = (
        place
        for place, profile in enumerate(found)
        if profile.kind in {FieldKind.TEXT, FieldKind.SELECT} and profile.filled
    )
    return next(texts, None)
