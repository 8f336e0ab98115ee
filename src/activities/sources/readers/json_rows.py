"""JSON and NDJSON: objects are rows, and what is nested in them is reached by dots."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from activities.sources.readers.table import Row, Table, bounded, refuse
from models.core.expressions.rules.errors import BindingError, ExpressionLimitError
from models.core.expressions.rules.json_paths import matches, read_query
from models.sources.tabular.rules.cells import Cell, cell
from models.sources.tabular.rules.options import MAX_COLUMNS, ReadOptions, TableFormat
from models.sources.tabular.rules.problems import ErrorKind

_DEPTH = 4
"""Levels of objects within a row that become columns; what is deeper is one cell."""
_MAX_VISITED = 20_000_000
"""Values that a path may come across in one page."""
_LOOKED_THROUGH = 1_000
"""Values that are looked through for the rows when no path says where they are."""


def read_json(pages: Sequence[Path], options: ReadOptions) -> Table:
    """The table in pages of JSON, one of them in memory at a time. Raises SourceProblem."""
    if options.format is TableFormat.NDJSON:
        return _table(lambda: chain.from_iterable(_lines(page) for page in pages), None)
    first, json_path = rows_in(_whole(pages[0]), options.json_path)

    def objects() -> Iterator[Any]:
        yield from first
        for page in pages[1:]:
            yield from rows_in(_whole(page), json_path)[0]

    return _table(objects, json_path)


def inspect_page(
    page: Path, options: ReadOptions, cursor_path: str | None
) -> tuple[int, str | int | float | None]:
    """How many rows a page has, and its cursor. Raises SourceProblem."""
    if options.format is TableFormat.NDJSON:
        return sum(1 for _ in _lines(page)), None
    value = _whole(page)
    rows, _ = rows_in(value, options.json_path)
    found = matches(read_query(cursor_path), value, _MAX_VISITED) if cursor_path is not None else []
    cursor = found[0] if found else None
    return len(rows), cursor if isinstance(cursor, str | int | float) else None


def _whole(page: Path) -> Any:
    content = page.read_bytes()
    if not content.strip():
        refuse("The file is empty.")
    return _parsed(content)


def rows_in(value: Any, json_path: str | None) -> tuple[list[Any], str]:
    """The rows in a JSON value and where they are: at the path, else the first list of objects.

    Raises SourceProblem.
    """
    if json_path is None:
        return _first_list(value)
    try:
        found = matches(read_query(json_path), value, _MAX_VISITED)
    except (BindingError, ExpressionLimitError) as error:
        refuse(f"{json_path}: {error}", ErrorKind.MAPPING)
    if len(found) == 1 and isinstance(found[0], list):
        return found[0], json_path
    if not found and not _names_a_list(value, json_path):
        refuse(f"Nothing is at {json_path} in the answer.", ErrorKind.MAPPING)
    return found, json_path


def _names_a_list(value: Any, json_path: str) -> bool:
    """Whether an empty list is what the path names."""
    if not json_path.endswith("[*]"):
        return False
    return matches(read_query(json_path[:-3]), value, _MAX_VISITED) == [[]]


def _first_list(value: Any) -> tuple[list[Any], str]:
    """The first list of objects, breadth first; a lone object is one row."""
    level: list[tuple[str, Any]] = [("$", value)]
    seen = 0
    empty: str | None = None
    while level and seen < _LOOKED_THROUGH:
        deeper: list[tuple[str, Any]] = []
        for path, one in level:
            seen += 1
            if isinstance(one, list):
                if any(isinstance(each, dict) for each in one):
                    return one, path
                empty = empty or (path if not one else None)
            elif isinstance(one, dict):
                deeper += [(f"{path}.{key}", inner) for key, inner in one.items()]
        level = deeper
    if empty is not None:
        return [], empty
    if not isinstance(value, dict | list):
        refuse("The answer holds no list of objects. Name where the rows are with jsonPath.")
    return (value if isinstance(value, list) else [value]), "$"


def _table(objects: Callable[[], Iterator[Any]], json_path: str | None) -> Table:
    headers: dict[str, None] = {}
    for one in objects():
        headers.update(dict.fromkeys(flattened(one)))
        if len(headers) > MAX_COLUMNS:
            refuse(f"The rows have more than {MAX_COLUMNS} columns.", ErrorKind.TOO_LARGE)
    names = list(headers)

    def rows() -> Iterator[Row]:
        for one in objects():
            values = flattened(one)
            yield [values.get(name) for name in names]

    return Table(names, lambda: bounded(rows()), json_path=json_path)


def flattened(row: Any) -> Mapping[str, Cell]:
    """The cells of a row by column; a row that is no object has the one column `value`."""
    if not isinstance(row, dict):
        return {"value": cell(row)}
    cells: dict[str, Cell] = {}
    _flatten(row, "", cells, _DEPTH)
    return cells


def _flatten(value: Mapping[str, Any], prefix: str, cells: dict[str, Cell], depth: int) -> None:
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, dict) and inner and depth > 1:
            _flatten(inner, f"{name}.", cells, depth - 1)
        else:
            cells[name[:256]] = cell(inner)


def _lines(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _parsed(line, f"Line {number}")


def _parsed(content: bytes, what: str = "The file") -> Any:
    try:
        return from_json(content.removeprefix(b"\xef\xbb\xbf"), allow_inf_nan=False)
    except ValueError as error:
        refuse(f"{what} is not JSON: {str(error)[:200]}.")
