"""A real public table: 406 cars of 1970 to 1982, from the files of the vega-datasets package."""

import importlib.util
import json
from pathlib import Path

from cli.api_client import Json
from cli.supervisor.errors import missing_extra

FIELDS: list[Json] = [
    {"key": "name", "label": "Name", "kind": "text"},
    {"key": "miles_per_gallon", "label": "Miles per gallon", "kind": "number"},
    {"key": "cylinders", "label": "Cylinders", "kind": "number"},
    {"key": "horsepower", "label": "Horsepower", "kind": "number"},
    {"key": "weight_in_lbs", "label": "Weight (lbs)", "kind": "number"},
    {"key": "year", "label": "Year", "kind": "date"},
    {"key": "origin", "label": "Origin", "kind": "text"},
    {"key": "tax", "label": "Tax", "kind": "number"},
]

SUMMARY_FIELDS: list[Json] = [
    {"key": "cars", "label": "Cars", "kind": "number"},
    {"key": "rate", "label": "Rate", "kind": "number"},
    {"key": "note", "label": "Note", "kind": "text"},
]


def cars() -> list[Json]:
    """The rows as record data. Raises StartError when the package is not installed."""
    package = importlib.util.find_spec("vega_datasets")
    if package is None or package.origin is None:
        raise missing_extra("The table of the demo", "demo")
    path = Path(package.origin).parent / "_data" / "cars.json"
    keys = {field["key"] for field in FIELDS}
    rows: list[Json] = []
    for car in json.loads(path.read_text(encoding="utf-8")):
        row = {name.lower(): value for name, value in car.items() if value is not None}
        rows.append({name: value for name, value in row.items() if name in keys})
    return rows
