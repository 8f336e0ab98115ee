"""The rows of a JSON answer: the list that has them, and errors that are none."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.sources.readers.opening import open_table
from models.sources.tabular.rules.options import (
    ErrorKind,
    ReadOptions,
    SourceProblem,
    TableFormat,
    read_options,
)

ROW = {"n": 1}
BESIDE = {"n": 7}


def read(path: Path, answer: Any, **options: Any) -> tuple[list[dict[str, Any]], str | None]:
    path.write_text(json.dumps(answer))
    table = open_table([path], ReadOptions(TableFormat.JSON, **options))
    return [dict(zip(table.headers, row, strict=True)) for row in table.rows()], table.json_path


@pytest.mark.parametrize(
    ("answer", "json_path"),
    [
        ({"included": [BESIDE], "data": [ROW]}, "$.data"),
        ({"links": [BESIDE], "items": [ROW]}, "$.items"),
        ({"columns": [BESIDE], "rows": [ROW]}, "$.rows"),
        ({"fields": [BESIDE], "records": [ROW]}, "$.records"),
        ({"facets": [BESIDE], "response": {"docs": [ROW]}}, "$.response.docs"),
        ({"warnings": [BESIDE], "orders": [ROW]}, "$.orders"),
        ({"users": [BESIDE], "results": [ROW]}, "$.results"),
        ({"orders": [ROW], "users": [BESIDE]}, "$.orders"),
        ({"errors": [{"message": "in part"}], "data": {"orders": [ROW]}}, "$.data.orders"),
        ({"data": [ROW], "errors": [], "error": None}, "$.data"),
        ({"Links": [BESIDE], "Value": [ROW]}, "$.Value"),
        ({"links": [ROW]}, "$.links"),
        ({"tags": [], "orders": [ROW]}, "$.orders"),
        ({"features": [], "products": [ROW]}, "$.products"),
    ],
)
def test_the_list_of_rows_is_known_among_others(
    tmp_path: Path, answer: Any, json_path: str
) -> None:
    assert read(tmp_path / "answer", answer) == ([ROW], json_path)


@pytest.mark.parametrize(
    ("answer", "json_path"),
    [
        ({"results": [], "messages": [BESIDE]}, "$.results"),
        ({"data": [], "included": [BESIDE]}, "$.data"),
        ({"tickets": [], "links": [BESIDE]}, "$.tickets"),
        ({"items": [], "users": [BESIDE], "count": 0}, "$.items"),
        ({"results": None, "count": 0, "next": None}, "$.results"),
        ({"data": None}, "$.data"),
        ({"data": [], "error": "No more results."}, "$.data"),
    ],
)
def test_no_rows_are_none(tmp_path: Path, answer: Any, json_path: str) -> None:
    assert read(tmp_path / "answer", answer) == ([], json_path)


@pytest.mark.parametrize("options", [{}, {"json_path": "$.data.orders"}])
@pytest.mark.parametrize(
    "answer",
    [
        {"errors": [{"message": "denied"}]},
        {"errors": [{"message": "denied"}], "data": None},
        {"data": {"orders": None}, "errors": [{"message": "denied", "path": ["orders"]}]},
        {"data": {"orders": []}, "errors": [{"message": "denied"}]},
        {"ok": False, "error": "denied"},
        {"error": {"code": 190, "message": "denied"}},
        {"data": None, "error": "denied"},
        {"status": "error", "errors": ["denied"]},
    ],
)
def test_an_error_is_no_row_and_does_not_empty_a_table(
    tmp_path: Path, answer: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(SourceProblem, match="an error in place of rows: denied") as refused:
        read(tmp_path / "answer", answer, **options)
    assert refused.value.kind is ErrorKind.MAPPING


@pytest.mark.parametrize(
    "answer",
    [
        {"id": 1, "name": "a", "error": "boom"},
        {"status": "success", "message": "ok"},
        {"id": 1, "data": None},
        {"error": False, "n": 1},
    ],
)
def test_an_object_with_more_than_an_error_is_a_row(tmp_path: Path, answer: Any) -> None:
    [row], json_path = read(tmp_path / "answer", answer)
    assert json_path is None
    assert row == answer


def test_lines_of_objects_name_their_format(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text('{"n": 1}\n{"n": 2}\n')
    with pytest.raises(SourceProblem, match="Choose the format ndjson"):
        open_table([path], ReadOptions(TableFormat.JSON))


def offset_pages(visible: Sequence[bool], limit: int) -> Iterator[list[dict[str, Any]]]:
    """The pages of a server that leaves rows out after it has cut a page."""
    offset = 0
    while page := [
        {"n": number}
        for number, shown in enumerate(visible[offset : offset + limit], start=offset)
        if shown
    ]:
        yield page
        offset += len(page)


def read_pages(directory: Path, pages: Sequence[Any], page_size: int | None) -> list[Any]:
    files = [directory / f"page-{number}" for number in range(len(pages))]
    for file, page in zip(files, pages, strict=True):
        file.write_text(json.dumps(page))
    table = open_table(files, ReadOptions(TableFormat.JSON, page_size=page_size))
    return [row[0] for row in table.rows()]


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 9))
def test_a_row_that_the_next_page_repeats_is_read_once(visible: list[bool], limit: int) -> None:
    """Once a page was full, which tells that the server gives as many as are asked for."""
    pages = [*offset_pages([True] * limit + visible, limit)]
    with TemporaryDirectory() as directory:
        read = read_pages(Path(directory), pages, limit)
    seen = {row["n"] for page in pages for row in page}
    assert read == sorted(seen)


@pytest.mark.parametrize("pages", [[[1, 2], [2, 3], [3]], [[1, 2], [2]]])
def test_equal_rows_are_kept_where_a_server_gives_fewer_than_a_page(
    tmp_path: Path, pages: list[list[int]]
) -> None:
    assert read_pages(tmp_path, pages, 5) == [row for page in pages for row in page]


@pytest.mark.parametrize("page_size", [2, None])
def test_equal_rows_of_full_pages_are_kept(tmp_path: Path, page_size: int | None) -> None:
    pages = [[{"n": 1}, {"n": 2}], [{"n": 2}, {"n": 2}], [{"n": 2}]]
    assert read_pages(tmp_path, pages, page_size) == [1, 2, 2, 2, 2]


def test_only_pages_by_offset_overlap() -> None:
    for kind, page_size in [("offset", 5), ("page", None), ("cursor", None)]:
        config = {"pagination": {"type": kind, "param": "p", "pageSize": 5}}
        assert read_options(config, TableFormat.JSON).page_size == page_size
