"""The fields that the columns of a table fill, and what a run remembers of the table."""

from collections.abc import Sequence

from models.core.base import JsonObject
from models.sources.data_source_runs.rows import SourceRunRow
from models.sources.data_sources.rules.configs import FieldMapping
from models.sources.tabular.rules.options import MAX_SHEETS


def mapping_of(run: SourceRunRow, described: JsonObject) -> list[FieldMapping]:
    """The mapping of a run: its own, else every column fills the field it suggests."""
    columns = run.plan["fields"] or _suggested(run, described)
    return [FieldMapping.model_validate(entry) for entry in columns]


def head_of(described: JsonObject, mapping: Sequence[FieldMapping]) -> JsonObject:
    """The part of the progress that tells of the table and its columns."""
    return {
        "sheetName": described["sheetName"],
        "sheets": described["sheets"][:MAX_SHEETS],
        "mapping": [entry.model_dump(mode="json", by_alias=True) for entry in mapping],
    }


def _suggested(run: SourceRunRow, described: JsonObject) -> list[JsonObject]:
    return [
        {
            "sourcePath": column["source_path"],
            "fieldKey": column["suggested_key"],
            "label": column["label"],
            "kind": column["kind"],
        }
        for column in described["columns"]
        if column["suggested_key"] not in run.plan.get("leftOut", ())
    ]
