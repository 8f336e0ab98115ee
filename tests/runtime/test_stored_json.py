import json

import pytest

from runtime.database import parse_stored_json


@pytest.mark.parametrize(
    "text",
    ["null", "-0.0", "5e-324", "0.1", "12345678901234567890123456789", '"\\ud83d\\ude00"', "[{}]"],
)
def test_reads_what_the_standard_library_reads(text: str) -> None:
    assert repr(parse_stored_json(text.encode())) == repr(json.loads(text))


def test_reads_what_is_nested_deeper_than_its_quick_reader_goes() -> None:
    deep = "[" * 500 + "]" * 500
    assert parse_stored_json(deep.encode()) == json.loads(deep)
