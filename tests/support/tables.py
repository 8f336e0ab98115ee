"""Real public tables, from files of the vega-datasets package, and how they become databases."""

import csv
import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.client import Client
from tests.support.related import make_database
from tests.support.spaces import Space

Json = dict[str, Any]
BATCH = 500


def rows_of(file: str) -> list[Json]:
    """The rows of a CSV or JSON file of the package."""
    package = importlib.util.find_spec("vega_datasets")
    assert package is not None, "install the extra `demo`"
    assert package.origin is not None
    path = Path(package.origin).parent / "_data" / file
    if path.suffix == ".json":
        rows: list[Json] = json.loads(path.read_text(encoding="utf-8"))
        return rows
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


async def load(
    client: Client,
    space: Space,
    label: str,
    fields: Sequence[Json],
    rows: Sequence[Json],
    record: Callable[[Json], Json],
) -> str:
    """A database with one record per row, written in batches."""
    database_id = await make_database(client, space, label, *fields)
    for start in range(0, len(rows), BATCH):
        some = rows[start : start + BATCH]
        operations = [{"op": "create", **record(row)} for row in some]
        answer = await client.post(
            f"/v1/databases/{database_id}/records/batch", json={"operations": operations}
        )
        assert answer.status_code == 200, answer.text
        assert answer.json()["data"]["created"] == len(some)
    return database_id
