"""The fields that the columns of a table fill, and what a run remembers of the table."""

from collections.abc import Collection, Mapping, Sequence

from models.core.base import JsonObject
from models.data.fields.rules.fields import FieldSpecs
from models.data.fields.rules.kinds import FieldKind
from models.sources.data_sources.rules.configs import FieldMapping
from models.sources.tabular.rules.options import MAX_SHEETS


def mapping_of(
    fields: Sequence[JsonObject], described: JsonObject, left_out: Collection[str] = ()
) -> list[FieldMapping]:
    """The mapping that was given, else every column fills the field it suggests."""
    columns = fields or _suggested(described, left_out)
    return [FieldMapping.model_validate(entry) for entry in columns]


def kinds_of(fields: Sequence[JsonObject], known: FieldSpecs | None) -> Mapping[str, FieldKind]:
    """The kinds of the fields that columns are mapped to; a field that is there has its own."""
    return {
        one["sourcePath"]: known[one["fieldKey"]].kind
        if known and one["fieldKey"] in known
        else FieldKind(one["kind"])
        for one in fields
    }


def head_of(described: JsonObject, mapping: Sequence[FieldMapping]) -> JsonObject:
    """The part of the progress that tells of the table and its columns."""
    return {
        "sheetName": described["sheetName"],
        "sheets": described["sheets"][:MAX_SHEETS],
        "mapping": [entry.to_json() for entry in mapping],
        "conventions": described["conventions"],
    }


def _suggested(described: JsonObject, left_out: Collection[str]) -> list[JsonObject]:
    return [
        {
            "sourcePath": column["source_path"],
            "fieldKey": column["suggested_key"],
            "label": column["label"],
            "kind": column["kind"],
        }
        for column in described["columns"]
        if column["suggested_key"] not in left_out
    ]
