"""The cells of a column as values of a field, all at once where they are alike.

A table has few kinds of cells in a column. What holds for each of them is found out by a few calls
for the column, in place of some for each cell.
"""

import re
from collections.abc import Callable, Sequence, Set
from datetime import date
from types import NoneType
from typing import Any, NamedTuple, TypeAlias, cast

from models.core.values import EXACT
from models.data.fields.rules.fields import FieldSpec, FieldValue
from models.data.fields.rules.kinds import NUMERIC_KINDS, FieldKind
from models.data.fields.rules.registry import KIND_RULES
from models.data.fields.rules.value_conversion import LOST, Lost
from models.sources.tabular.rules.cells import Cell
from models.sources.tabular.rules.conversion import Convert
from models.sources.tabular.rules.formats import Conventions

Values: TypeAlias = Sequence[FieldValue | Lost]
AtOnce: TypeAlias = Callable[[Set[type], Sequence[Any]], Values | None]
"""Gives the values of cells of these types, none of them empty; None where it cannot."""


class Column(NamedTuple):
    """The values of a column; `gaps` says that some are empty or lost."""

    values: Values
    gaps: bool


_NUMBER = re.compile(r"-?[0-9]{1,9}(?:[.][0-9]{1,6})?")
"""Digits that mean the same by every rule, and of which none is lost in a float."""


def column_converter(
    spec: FieldSpec, conventions: Conventions, convert: Convert
) -> Callable[[Sequence[Cell]], Column]:
    """The conversion of columns to values of a field, as `convert` gives them cell by cell."""
    at_once = _at_once(spec, conventions)

    def converted(cells: Sequence[Cell]) -> Column:
        types = {*map(type, cells)}
        gaps = NoneType in types
        filled = [cell for cell in cells if cell is not None] if gaps else cells
        types.discard(NoneType)
        values = at_once(types, filled) if at_once else None
        if values is None:
            values = [convert(cell) for cell in cells]
            return Column(values, None in values or LOST in values)
        if values is filled:
            return Column(cast("Values", cells), gaps)
        following = iter(values)
        values = [None if cell is None else next(following) for cell in cells] if gaps else values
        return Column(values, gaps)

    return converted


def _at_once(spec: FieldSpec, conventions: Conventions) -> AtOnce | None:
    plain = KIND_RULES[spec.kind].plain
    if plain is not None:
        return lambda types, cells: cells if types <= {str} and plain.takes(cells) else None
    if spec.kind in NUMERIC_KINDS and not spec.settings.keys() & {"min", "max", "precision"}:
        return lambda types, cells: _numbers(types, cells, conventions)
    if spec.kind is FieldKind.CHECKBOX:
        return lambda types, cells: cells if types <= {bool} else None
    if spec.kind is FieldKind.DATE:
        return lambda types, cells: [*map(date.isoformat, cells)] if types <= {date} else None
    return None


def _numbers(types: Set[type], cells: Sequence[Any], conventions: Conventions) -> Values | None:
    """Numbers, the whole ones as integers."""
    if types == {str}:
        if conventions.decimal_separator != "." or not all(map(_NUMBER.fullmatch, cells)):
            return None
        cells, types = [*map(float, cells)], {float}
    # Infinity, and what is no number, are in no sum below this.
    if not types <= {int, float} or not sum(map(abs, cells)) < EXACT:
        return None
    if types <= {int}:
        return cells
    return [int(each) if type(each) is float and each.is_integer() else each for each in cells]
