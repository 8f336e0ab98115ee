"""From the cells of rows to the values of records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from models.data.fields.rules.fields import FieldSpec, Option
from models.data.fields.rules.kinds import TITLE_KEY
from models.data.fields.rules.value_conversion import LOST
from models.data.records.rules.write.options import GrowingField, may_grow
from models.sources.tabular.rules.cells import Cell
from models.sources.tabular.rules.column_conversion import column_converter
from models.sources.tabular.rules.conversion import converter, growing
from models.sources.tabular.rules.formats import Conventions


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column, by its place in the rows, and the field it fills; without a place it is empty."""

    place: int | None
    spec: FieldSpec


@dataclass(slots=True)
class ConvertedRow:
    """The content a row has for a record; the cells of the fields `lost` had no form there.

    `skipped` says why the row makes no record.
    """

    title: str
    data: dict[str, Any] = field(default_factory=dict)
    lost: Sequence[str] = ()
    skipped: bool = False


class RowConversion:
    """The rows of one table as values of one database."""

    def __init__(self, columns: Sequence[MappedColumn], conventions: Conventions) -> None:
        self._lacks = any(one.spec.required for one in columns if one.place is None)
        placed = [(one.place, one.spec) for one in columns if one.place is not None]
        self._growing = {
            spec.key: GrowingField(spec, uuid4) for _, spec in placed if may_grow(spec)
        }
        self._keys = [spec.key for _, spec in placed]
        self._columns = []
        for place, spec in placed:
            grown = self._growing.get(spec.key)
            convert = converter(spec, conventions) if grown is None else growing(grown)
            convert_column = column_converter(spec, conventions, convert)
            self._columns.append((place, spec.required, convert_column))

    @property
    def grows(self) -> bool:
        """True when earlier rows decide what later ones mean."""
        return bool(self._growing)

    def grown(self) -> Mapping[str, Sequence[Option]]:
        """The options that rows brought into being, by the key of their field."""
        return {
            key: [option for option in field.spec.options if option not in field.before]
            for key, field in self._growing.items()
        }

    def convert(self, row: Sequence[Cell]) -> ConvertedRow:
        """The values of a row, as `convert_rows` gives them."""
        return self.convert_rows([row])[0]

    def convert_rows(self, rows: Sequence[Sequence[Cell]]) -> list[ConvertedRow]:
        """The values of each row; one that is empty, or lacks what is required, is skipped."""
        cells = [*zip(*rows, strict=True)]
        columns = [convert(cells[place]) for place, _, convert in self._columns]
        whole = not any(column.gaps for column in columns)
        keys, results = self._keys, []
        for values in zip(*(column.values for column in columns), strict=True):
            if whole or (None not in values and LOST not in values):
                data = dict(zip(keys, values, strict=True))
                title = data.pop(TITLE_KEY, "")
                results.append(ConvertedRow(title, data, skipped=self._lacks))
            else:
                results.append(self._with_gaps(values))
        return results

    def _with_gaps(self, values: Sequence[Any]) -> ConvertedRow:
        """A row some of whose values are missing, or lost."""
        result, lost = ConvertedRow("", skipped=self._lacks), []
        for key, (_, required, _), value in zip(self._keys, self._columns, values, strict=True):
            if value is None or value is LOST:
                if value is LOST:
                    lost.append(key)
                result.skipped = result.skipped or required
            else:
                result.data[key] = value
        result.lost = lost
        result.skipped = result.skipped or not result.data
        result.title = result.data.pop(TITLE_KEY, "")
        return result
