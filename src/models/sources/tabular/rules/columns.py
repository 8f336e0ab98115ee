"""The columns of a table: which kind all cells of each agree on, and which field it suggests.

A kind is taken only when every cell agrees (decisions C10): digits with a leading zero and digits
beyond the precision of a number stay text, and no day is read from a bare number.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cache
from types import MappingProxyType
from typing import Any
from uuid import UUID

from models.core.keys import first_free, slug
from models.core.values import InvalidValueError
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.rules.kinds import TITLE_KEY, FieldKind
from models.data.fields.rules.value_conversion import LOST, convert_value
from models.data.fields.shapes import MAX_OPTION_NAME
from models.sources.tabular.rules.cells import Amount, Cell, Percent, shown_cell
from models.sources.tabular.rules.formats import Conventions

MAX_CHOICES = 12
"""Different texts that a column of choices has at most."""
MIN_ROWS_OF_CHOICES = 20
MAX_SAMPLES = 5
MAX_DIGITS = 15
"""Digits that every reader of a number keeps."""
_LONG_TEXT = 200
_TITLES = ("title", "name", "label")

_LEADING_ZERO = re.compile(r"[+-]?0[0-9]+")
_DIGITS = re.compile(r"[0-9]")
_CURRENCY = re.compile(r"[$€£¥]")

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
        time: frozenset({FieldKind.TIME}),
        timedelta: frozenset({FieldKind.DURATION}),
        list: frozenset({FieldKind.JSON}),
        dict: frozenset({FieldKind.JSON}),
    }
)


def _exact_number(text: str) -> bool:
    """True when a number says all that the text says."""
    return not _LEADING_ZERO.fullmatch(text) and len(_DIGITS.findall(text)) <= MAX_DIGITS


_GUARDS: Mapping[FieldKind, Callable[[str], bool]] = MappingProxyType(
    {
        FieldKind.CHECKBOX: lambda text: text.lower() in {"true", "false", "yes", "no"},
        FieldKind.NUMBER: _exact_number,
        FieldKind.PERCENT: lambda text: text.endswith("%") and _exact_number(text),
        FieldKind.CURRENCY: lambda text: bool(_CURRENCY.search(text)) and _exact_number(text),
        FieldKind.DATE: lambda text: "T" not in text and len(text) >= 8,
        FieldKind.DATETIME: lambda text: len(text) >= 8,
        FieldKind.TIME: lambda text: text.count(":") <= 2,
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
    return convert_value(_TEXT, _of_kind(kind), text) is not LOST


@cache
def _of_kind(kind: FieldKind) -> FieldSpec:
    return FieldSpec(id=UUID(int=0), key="column", label="", kind=kind)


_TEXT = _of_kind(FieldKind.TEXT)


@dataclass(slots=True)
class ColumnProfile:
    """The common traits of the cells of one column, gathered cell by cell."""

    conventions: Conventions
    kinds: frozenset[FieldKind] = frozenset(_PREFERRED)
    """The kinds that every cell so far agrees on."""
    filled: int = 0
    empty: int = 0
    choices: set[str] = field(default_factory=set)
    """Different texts, as long as there are few enough for a column of choices."""
    samples: list[Any] = field(default_factory=list)
    long: bool = False

    def add(self, value: Cell) -> None:
        """Take one more cell into account."""
        if value is None:
            self.empty += 1
            return
        self.filled += 1
        if len(self.samples) < MAX_SAMPLES:
            self.samples.append(shown_cell(value))
        if not isinstance(value, str):
            self.kinds &= _TYPED[type(value)]
            return
        if self.kinds:
            self.kinds &= self._kinds_of(value)
        if len(self.choices) <= MAX_CHOICES:
            self.choices.add(value.strip())
        self.long = self.long or len(value) > _LONG_TEXT or "\n" in value

    def _kinds_of(self, text: str) -> frozenset[FieldKind]:
        """The kinds a text could be, among those still open."""
        plain = text.strip()
        try:
            written = self.conventions.number(self.conventions.day(plain))
        except InvalidValueError:
            written = plain
        return frozenset(kind for kind in self.kinds if suggests(written, kind))

    @property
    def kind(self) -> FieldKind:
        """The kind of the field that takes this column."""
        if self.filled == 0:
            return FieldKind.TEXT
        agreed = next((kind for kind in _PREFERRED if kind in self.kinds), None)
        if agreed is not None:
            return agreed
        rows = self.filled + self.empty
        few = 0 < len(self.choices) <= MAX_CHOICES and rows >= MIN_ROWS_OF_CHOICES
        if few and all(_is_choice(each) for each in self.choices):
            return FieldKind.SELECT
        return FieldKind.LONG_TEXT if self.long else FieldKind.TEXT


def _is_choice(text: str) -> bool:
    """True when a text may name an option: bare digits are a number of something, not a choice."""
    return len(text) <= MAX_OPTION_NAME and not text.isdigit()


@dataclass(frozen=True, slots=True)
class InferredColumn:
    """A column with the field it suggests (decisions C10, preview)."""

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
    headers: Sequence[str], rows: Iterable[Sequence[Cell]], conventions: Conventions
) -> list[ColumnProfile]:
    """The profile of every column over these rows, each as wide as the headers."""
    columns = [ColumnProfile(conventions) for _ in headers]
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

    It is none that fills one of the fields by which rows are told apart.
    """
    title = _title_place(headers, column_profiles)
    if title is not None and slug(headers[title], "column") in {*row_keys} - {TITLE_KEY}:
        title = None
    taken = {TITLE_KEY}
    columns = []
    for place, (header, profile) in enumerate(zip(headers, column_profiles, strict=True)):
        kind = FieldKind.TEXT if place == title else profile.kind
        key = TITLE_KEY if place == title else first_free(slug(header, "column"), taken)
        taken.add(key)
        choices = sorted(profile.choices) if kind is FieldKind.SELECT else ()
        columns.append(
            InferredColumn(header, key, header[:200], kind, profile.empty, profile.samples, choices)
        )
    return columns


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
