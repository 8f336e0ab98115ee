"""From the cells of rows to the values of records."""

from collections.abc import Collection, Mapping, Sequence
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
    """The content a row has for a record.

    `lost_columns` are the columns, by their place in the mapping, whose cell has no form in its
    field; `missing` are columns whose value the row needs: it is required, or is a key that is
    lost. A row that is `skipped` makes no record.
    """

    title: str
    data: dict[str, Any] = field(default_factory=dict)
    lost_columns: Sequence[int] = ()
    missing: Sequence[int] = ()
    skipped: bool = False


class RowConversion:
    """The rows of one table as values of one database."""

    def __init__(
        self,
        columns: Sequence[MappedColumn],
        conventions: Conventions,
        row_keys: Collection[str] = (),
    ) -> None:
        """`row_keys` are the fields by which a row is told from the others."""
        self._row_keys = row_keys
        self._lacking = [
            at for at, one in enumerate(columns) if one.place is None and one.spec.required
        ]
        placed = [
            (at, one.place, one.spec) for at, one in enumerate(columns) if one.place is not None
        ]
        self._growing = {
            spec.key: GrowingField(spec, uuid4) for _, _, spec in placed if may_grow(spec)
        }
        self._keys = [spec.key for _, _, spec in placed]
        self._fields = [(at, spec.key, spec.required) for at, _, spec in placed]
        self._columns = []
        for _, place, spec in placed:
            grown = self._growing.get(spec.key)
            convert = converter(spec, conventions) if grown is None else growing(grown)
            convert_column = column_converter(spec, conventions, convert)
            self._columns.append((place, convert_column))

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
        """The values of each row; one that is empty, or lacks what is required, is skipped.

        So is a row whose key has no form in its field: nobody knows which record it means.
        """
        cells = [*zip(*rows, strict=True)]
        columns = [convert(cells[place]) for place, convert in self._columns]
        whole = not any(column.gaps for column in columns)
        keys, lacking, results = self._keys, self._lacking, []
        for values in zip(*(column.values for column in columns), strict=True):
            if whole or (None not in values and LOST not in values):
                data = dict(zip(keys, values, strict=True))
                title = data.pop(TITLE_KEY, "")
                results.append(ConvertedRow(title, data, (), lacking, bool(lacking)))
            else:
                results.append(self._with_gaps(values))
        return results

    def _with_gaps(self, values: Sequence[Any]) -> ConvertedRow:
        """A row some of whose values are missing, or lost."""
        data: dict[str, Any] = {}
        lost_columns, missing = [], [*self._lacking]
        for (at, key, required), value in zip(self._fields, values, strict=True):
            if value is not None and value is not LOST:
                data[key] = value
                continue
            if value is LOST:
                lost_columns.append(at)
            if required or (value is LOST and key in self._row_keys):
                missing.append(at)
        skipped = bool(missing) or not data
        return ConvertedRow(data.pop(TITLE_KEY, ""), data, lost_columns, missing, skipped)
