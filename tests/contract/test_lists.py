"""Every list answers `data.<noun>[]` and `cursor`, documented arrays aside."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.document import DOCUMENT

ARRAYS = {"list_api_keys", "list_request_logs", "list_action_runs", "list_data_source_runs"}


def _resolved(schema: Any) -> Any:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _answers() -> Iterator[tuple[str, Any]]:
    """The `data` of each operation that answers some."""
    for operations in DOCUMENT["paths"].values():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
                data = _resolved(schema).get("properties", {}).get("data")
                if status.startswith("2") and data is not None:
                    yield operation["operationId"], _resolved(data)


ANSWERS = dict(_answers())


def test_only_documented_lists_are_arrays() -> None:
    assert {name for name, data in ANSWERS.items() if data.get("type") == "array"} == ARRAYS


@pytest.mark.parametrize("name", [one for one in ANSWERS if one.startswith("list_")])
def test_a_list_has_an_array_and_a_cursor(name: str) -> None:
    if name not in ARRAYS:
        properties = ANSWERS[name]["properties"]
        arrays = [key for key, one in properties.items() if _resolved(one).get("type") == "array"]
        assert len(arrays) == 1
        assert set(ANSWERS[name]["required"]) >= {*arrays, "cursor"}
