"""The options of reading that a table itself suggests: its header row and its notation. Pure.

Each is taken from what leaves no other way: a day such as 21/11/2026, a price such as 2842,61, a
column of Y and N. Where columns contradict each other, or nothing decides, nothing is proposed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from models.core.base import JsonObject
from models.data.fields.rules.fields import NUMERIC_KINDS, FieldKind
from models.sources.tabular.rules.cells import Cell
from models.sources.tabular.rules.columns import MAX_CHOICES, ColumnProfile
from models.sources.tabular.rules.formats import Conventions, Declared

Undecided: TypeAlias = Literal["ambiguous", "mixed"]
"""Cells that fit every way, or columns that contradict each other or themselves."""

HEADER_SEARCH = 50
"""Rows among which a header is looked for."""
_LONGEST_HEADER = 100
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")

_BY_DAY = frozenset({FieldKind.DATE, FieldKind.DATETIME})
_BY_NUMBER = NUMERIC_KINDS | {FieldKind.RATING}
_PLAIN_WORDS = frozenset({"true", "false", "yes", "no", "1", "0"})
_Pair: TypeAlias = tuple[frozenset[str], frozenset[str]]
_PAIRS: Sequence[_Pair] = [
    (frozenset(yes.split()), frozenset(no.split()))
    for yes, no in (
        ("y", "n"),
        ("t", "f"),
        ("ja", "nein"),
        ("j", "n"),
        ("ja", "nej nee"),
        ("oui", "non"),
        ("sí si", "no"),
        ("sim", "não nao"),
        ("да", "нет"),
        ("tak", "nie"),
        ("wahr", "falsch"),
        ("vrai", "faux"),
        ("vero", "falso"),
        ("verdadero", "falso"),
        ("verdadeiro", "falso"),
        ("waar", "onwaar"),
        ("sant", "falskt"),
        ("sand", "falsk"),
        ("tosi", "epätosi"),
        ("prawda", "fałsz"),
        ("pravda", "nepravda"),
        ("igaz", "hamis"),
        ("adevărat", "fals"),
        ("doğru", "yanliş"),
        ("истина", "ложь"),
        ("sì", "no"),
        ("ano", "ne"),
        ("igen", "nem"),
        ("kyllä", "ei"),
        ("はい", "いいえ"),
        ("是", "否"),
        ("예", "아니요 아니오"),
        ("checked", "unchecked"),
        ("✓ ✔ ☑ ✅", "✗ ✘ ☐ ❌"),
    )
]
"""Words of yes and no; a column says so when it has both of a pair, and no other word."""
_ALONE = frozenset({"checked"})
"""A word that says yes by itself: Airtable exports a box that is not checked as an empty cell."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The notation a table is read by, and what its cells left open: option → columns, by why."""

    conventions: Conventions
    undecided: Mapping[str, tuple[Undecided, Sequence[str]]] = field(default_factory=dict)

    def shown(self) -> JsonObject:
        """The options that read the table in the same way; what is undecided is not among them."""
        options: JsonObject = {}
        if self.conventions.date_order is not None:
            options["dateOrder"] = self.conventions.date_order
        if "decimalSeparator" not in self.undecided:
            options["decimalSeparator"] = self.conventions.decimal_separator
        if self.conventions.yes or self.conventions.no:
            options["booleanWords"] = {
                "true": sorted(self.conventions.yes),
                "false": sorted(self.conventions.no),
            }
        options["undecided"] = [
            {"option": option, "reason": reason, "columns": [*columns]}
            for option, (reason, columns) in self.undecided.items()
        ]
        return options


@dataclass(slots=True)
class _Votes:
    """The columns for each way to read them."""

    ways: dict[str, list[str]] = field(default_factory=dict)
    mixed: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def by_signs(self, name: str, signs: Set[str]) -> None:
        """Take a column of the kind into account, with any other cells in it."""
        found = [*(signs - {"either"})]
        if len(found) == 1:
            self.ways.setdefault(found[0], []).append(name)
        elif found:
            self.mixed.append(name)
        elif signs:
            self.open.append(name)

    def decided(self) -> str | None:
        return next(iter(self.ways)) if len(self.ways) == 1 else None

    def undecided(self) -> tuple[Undecided, Sequence[str]] | None:
        if len(self.ways) > 1:
            return "mixed", [name for names in self.ways.values() for name in names]
        if self.ways:
            return None
        return ("mixed", self.mixed) if self.mixed else ("ambiguous", self.open)


def settle(
    headers: Sequence[str],
    columns: Sequence[ColumnProfile],
    declared: Declared,
    kinds: Sequence[FieldKind | None],
    before: Conventions | None = None,
) -> Proposal:
    """Decide what was left open, and give each column the conventions that count for it.

    `kinds` are the kinds of fields that columns fill, None where the column itself suggests one.
    `before` is how the same source was read last, which counts where its cells decide nothing.
    """
    undecided = {}
    order, separator = declared.date_order, declared.decimal_separator
    if order is None:
        votes = _order_votes(headers, columns, kinds)
        found = votes.decided() or (before and before.date_order)
        order = next((one for one in ("dmy", "mdy") if one == found), None)
        if order is None:
            undecided["dateOrder"] = votes.undecided()
    if separator is None:
        votes = _separator_votes(headers, columns, kinds)
        decided = votes.decided() or (before and before.decimal_separator)
        separator = "," if decided == "," else "."
        if decided is None:
            undecided["decimalSeparator"] = votes.undecided()
    yes, no = _words(columns, declared, kinds, before)
    for column in columns:
        column.conventions = Conventions(order, separator)
    found_open = {option: why for option, why in undecided.items() if why and why[1]}
    return Proposal(Conventions(order, separator, yes, no), found_open)


def _order_votes(
    headers: Sequence[str], columns: Sequence[ColumnProfile], kinds: Sequence[FieldKind | None]
) -> _Votes:
    votes = _Votes()
    for name, column, kind in zip(headers, columns, kinds, strict=True):
        if kind in _BY_DAY:
            votes.by_signs(name, column.signs.orders)
        elif kind is None and column.texts:
            ways = {
                reading.date_order for reading, found in column.readings.items() if found & _BY_DAY
            }
            if not ways and column.signs.orders >= {"dmy", "mdy"}:
                votes.mixed.append(name)
            elif ways and None not in ways:
                votes.by_signs(name, column.signs.orders)
    return votes


def _separator_votes(
    headers: Sequence[str], columns: Sequence[ColumnProfile], kinds: Sequence[FieldKind | None]
) -> _Votes:
    votes = _Votes()
    for name, column, kind in zip(headers, columns, kinds, strict=True):
        is_number = any(found & _BY_NUMBER for found in column.readings.values())
        if kind in _BY_NUMBER or (kind is None and is_number):
            votes.by_signs(name, column.signs.separators)
    return votes


def _words(
    columns: Sequence[ColumnProfile],
    declared: Declared,
    kinds: Sequence[FieldKind | None],
    before: Conventions | None,
) -> tuple[frozenset[str], frozenset[str]]:
    """The words that mean yes and no; columns of nothing else become checkboxes."""
    pairs = [declared.words] if declared.words is not None else _PAIRS
    yes = no = frozenset[str]()
    if declared.words is not None:
        yes, no = declared.words
    elif before is not None:
        yes, no = before.yes, before.no
    for column, kind in zip(columns, kinds, strict=True):
        if kind not in {None, FieldKind.CHECKBOX} or not column.choices:
            continue
        choices = {text.casefold() for text in column.choices}
        used_pairs = [pair for pair in pairs if _uses(pair, choices, declared.words is not None)]
        covered = [pair for pair in used_pairs if choices <= pair[0] | pair[1] | _PLAIN_WORDS]
        if kind is None:
            used_pairs = covered if _all_told(column) else []
            column.says_yes_or_no = bool(used_pairs) and not choices <= _PLAIN_WORDS
        if len(used_pairs) == 1 or covered:
            chosen = (covered or used_pairs)[0]
            yes, no = yes | (chosen[0] & choices), no | (chosen[1] & choices)
    return yes, no


def _uses(
    pair: tuple[frozenset[str], frozenset[str]], choices: Set[str], is_declared: bool
) -> bool:
    said = [bool(words & choices) for words in pair]
    return any(said) if is_declared or choices <= _ALONE else all(said)


def _all_told(column: ColumnProfile) -> bool:
    """True when the texts of a column are all there is in it."""
    return column.texts == column.filled and len(column.choices) <= MAX_CHOICES


def header_row(rows: Iterable[Sequence[Cell]]) -> int:
    """The row that names the columns, counted from 1: the first, but for a title above it.

    Rows of a title fill few of the columns. The header below fills all of them with different
    names, and rows of data follow. Anything else leaves the first row with content what it is.
    """
    looked_at = [*rows]
    filled = [[value for value in row if value is not None] for row in looked_at]
    width = max(map(len, filled), default=0)
    first = next((place for place, row in enumerate(filled) if row), 0)
    header = next((place for place, row in enumerate(filled) if len(row) == width), first)
    below = [row for row in filled[header + 1 :] if len(row) > 1]
    if header == first or not below or not _names(filled[header]):
        return first + 1
    above = looked_at[first:header]
    is_title = all(_fills_few(row, width) for row in above) or _is_typed(below)
    return header + 1 if is_title else first + 1


def _fills_few(row: Sequence[Cell], width: int) -> bool:
    """True for cells that cannot be the header of so wide a table, unless most have no name."""
    count = len(row) - row.count(None)
    return count * 2 <= width and (width > 2 or len(row) < width or count == 0)


def _names(row: Sequence[Cell]) -> bool:
    """True when cells may be names of columns."""
    texts = [value.strip() for value in row if isinstance(value, str)]
    # Banks name both columns of currencies alike.
    names = {text.casefold() for text in texts}
    if len(texts) < len(row) or (len(names) < len(texts) and len(names) * 4 < len(texts) * 3):
        return False
    if max(map(len, texts)) > _LONGEST_HEADER:
        return False
    unnamed = [text for text in texts if not any(map(str.isalpha, text))]
    return len(unnamed) < len(texts) and all(map(_YEAR.fullmatch, unnamed))


def _is_typed(rows: Sequence[Sequence[Cell]]) -> bool:
    """True when most rows have a cell that is no name of anything."""
    typed = sum(
        any(not isinstance(value, str) or not any(map(str.isalpha, value)) for value in row)
        for row in rows
    )
    return typed * 2 > len(rows)
