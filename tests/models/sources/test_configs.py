"""The configs of data sources: what is refused, and what the refusal says to do instead."""

import pytest
from pydantic import TypeAdapter, ValidationError

from models.sources.data_sources.rules.configs import JsonPath

PATHS = TypeAdapter(JsonPath)


@pytest.mark.parametrize(
    "path", ["$", "$.a", "$..rows[*]", "$['a b'][\"c?\"][-1].*", "$.a-b", "$['x * y']"]
)
def test_paths_of_names_indexes_and_wildcards_are_read(path: str) -> None:
    assert PATHS.validate_python(path) == path


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("$.rows[?(@.price > 2)]", "filter them in a view"),
        ("$.rows[?@.name =~ '(a+)+$']", "filter them in a view"),
        ("$.a * 30000000", "formula field"),
        ("$.a + $.b", "formula field"),
        ("$.rows[0:5]", "with [*]"),
        ("$.rows.`len`", "formula field"),
        ("$.rows.length()", "formula field"),
        ("rows", "such as $.data.orders[*]"),
        ("$" + ".a" * 33, "at most 32 steps"),
        ("$.a[", "such as"),
        ("", "such as"),
    ],
)
def test_other_paths_are_refused_with_what_to_do_instead(path: str, advice: str) -> None:
    with pytest.raises(ValidationError, match="must be a JSONPath") as refused:
        PATHS.validate_python(path)
    assert advice in str(refused.value)
