"""Converted rows as lines of COPY, in the order of the columns that are copied."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic_core import to_json

from models.core.base import Id
from models.data.fields.rules.kinds import TITLE_KEY
from models.data.records.rules.write.copied import copied_record
from models.sources.tabular.rules.row_conversion import ConvertedRow
from runtime import copy_format
from runtime.copy_format import LENGTH, LENGTH_OF_JSON

STAGED_COLUMNS = ("run_id", "position", "row_number", "identity", "digest", "title", "data")
_BIGINT, _SHA256 = LENGTH.pack(8), LENGTH.pack(32)


class Lines(Protocol):
    """The form of the lines that rows are copied as.

    `keys` are the fields by which a row is told from the others; none: by all that it says.
    """

    @property
    def keys(self) -> Sequence[str]: ...

    def line(self, position: int, number: int, row: ConvertedRow) -> bytes:
        """The line of the row at a position, which counts from 0; its file counts it so."""


@dataclass(frozen=True, slots=True)
class RecordLines:
    """Rows as records of a new database. `lead` is what all have, `first` the id of the first."""

    lead: bytes
    first: int
    keys: Sequence[str] = ()

    def line(self, position: int, number: int, row: ConvertedRow) -> bytes:
        """A record; it sorts by the position of its row."""
        del number
        return copied_record(self.lead, self.first + position, row.title, to_json(row.data))


class StagedLines:
    """Rows of a run as they are staged.

    The fields `unfilled` have no column, and had one: once they have one again, an empty cell says
    more than it does now.
    """

    def __init__(self, run_id: Id, keys: Sequence[str] = (), unfilled: Sequence[str] = ()) -> None:
        self._lead = copy_format.columns(len(STAGED_COLUMNS)) + copy_format.value(run_id) + _BIGINT
        self.keys = keys
        self._unfilled = to_json(sorted(unfilled)) if unfilled else b""

    def line(self, position: int, number: int, row: ConvertedRow) -> bytes:
        """A staged row: position, row of the file, identity, digest, title, values."""
        values, title = to_json(row.data), row.title.encode()
        said = to_json(row.title) + values
        digest = hashlib.sha256(said + self._unfilled).digest()
        identity = self._identity(row) if self.keys else digest
        if self._unfilled and not self.keys:
            identity = hashlib.sha256(said).digest()
        parts = (
            self._lead,
            position.to_bytes(8),
            _BIGINT,
            number.to_bytes(8),
            _SHA256,
            identity,
            _SHA256,
            digest,
            LENGTH.pack(len(title)),
            title,
            LENGTH_OF_JSON.pack(len(values) + 1, 1),
            values,
        )
        return b"".join(parts)

    def _identity(self, row: ConvertedRow) -> bytes:
        values: list[Any] = [
            row.title if key == TITLE_KEY else row.data.get(key) for key in self.keys
        ]
        return hashlib.sha256(to_json(values)).digest()
