"""Files of other programs, imported as they are and compared with the values that pandas reads."""

import base64
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import vega_datasets
from sqlalchemy import select

from models.data.records.tables import record
from tests.support.client import Client
from tests.support.engine import Engine
from tests.support.spaces import Space

pytestmark = pytest.mark.long

FILES = sorted(
    path
    for path in (Path(vega_datasets.__file__).parent / "_data").iterdir()
    if path.suffix in {".csv", ".json"}
)
NUMBERS = {"number", "percent", "currency"}


def read_by_pandas(path: Path) -> pd.DataFrame:
    if path.suffix == ".csv":
        return pd.read_csv(path, keep_default_na=False, na_values=[""])
    return pd.read_json(path, dtype=False, precise_float=True)


def expected(field: Mapping[str, Any], value: Any) -> Any:
    """What a field holds of a value that pandas read."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or value == "":
        return None
    kind = field["kind"]
    if kind in NUMBERS:
        return float(value)
    if kind == "checkbox":
        return bool(value)
    if kind == "date":
        return pd.Timestamp(value).date().isoformat()
    if kind == "datetime":
        return pd.Timestamp(value).isoformat(timespec="milliseconds") + "Z"
    if kind == "select":
        options = {option["name"]: option["key"] for option in field["options"]}
        return options[str(value)]
    return str(value)


def held(field: Mapping[str, Any], value: Any) -> Any:
    return float(value) if field["kind"] in NUMBERS and value is not None else value


@pytest.mark.takes(seconds=12)
@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
async def test_a_real_file_is_imported_as_pandas_reads_it(
    client: Client, space: Space, engine: Engine, path: Path
) -> None:
    assert engine.database is space.database
    body = {
        "label": path.stem,
        "kind": "inline",
        "format": path.suffix[1:],
        "content": base64.b64encode(path.read_bytes()).decode(),  # noqa: ASYNC240
        "fields": [],
    }
    answer = await client.post(f"{space.path}/data-sources/import-spreadsheet", json=body)
    assert answer.status_code == 200, answer.text
    result = answer.json()["data"]
    frame = read_by_pandas(path)
    assert (result["recordCount"], result["fieldCount"]) == (len(frame), len(frame.columns))
    assert (result["skippedRowCount"], result["skippedCells"]) == (0, 0)
    made = await client.get(f"{space.path}/databases/{result['databaseId']}")
    fields = {field["label"]: field for field in made.json()["data"]["fields"]}
    async with space.database.transaction() as work:
        statement = select(record.c.title, record.c.data).order_by(record.c.id)
        rows = await work.rows(statement.where(record.c.database_id == result["databaseId"]))
    for label, column in frame.items():
        field = fields[str(label)]
        values = [({"title": row.title or None} | row.data).get(field["key"]) for row in rows]
        assert [held(field, value) for value in values] == [
            expected(field, value) for value in column.tolist()
        ], (label, field["kind"])
