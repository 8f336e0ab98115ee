"""JSON and NDJSON: objects are rows, and nested values become columns with dotted names."""

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from itertools import chain
from json import detect_encoding
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from activities.sources.readers import table
from models.core.expressions.rules.errors import BindingError, ExpressionLimitError
from models.core.expressions.rules.json_paths import matches, read_query
from models.core.values import InvalidValueError, exact_number
from models.sources.tabular.rules import options as file_options
from models.sources.tabular.rules.cells import Cell, cell
from models.sources.tabular.rules.options import ErrorKind, ReadOptions, TableFormat
from runtime.content_types import ContentType

_MARK = "\ufeff"
_MANY_DIGITS = re.compile(rb"[1-9][0-9.]{17}|[1-9][.][0-9]{15,}[eE]|[0-9][eE]-[0-9]{3}")
"""A part of a number with more digits, or a smaller one, than a double holds; few have it."""
_LONG = rb"-?[0-9][0-9.]{16,}(?:[eE][+-]?[0-9]+)?|-?[0-9][0-9.]*[eE]-[0-9]{3,}"
_LONG_NUMBER = re.compile(_LONG)
_TEXT_OR_LONG_NUMBER = re.compile(rb'"(?:[^"\\]++|\\.)*+"|' + _LONG, re.DOTALL)
_SURROGATE = re.compile(
    rb"(?:\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""An escaped half of a character without its other half, which is no text, as a group."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ONE_PLACE = re.compile(rf"""\$(?:\.{_NAME.pattern}|\[(?:-?[0-9]+|'[^']*'|"[^"]*")\])*""")
"""A path that leads to one value at most."""
_DEPTH = 4
"""Levels of objects within a row that become columns; a deeper value is one cell."""
_MAX_VISITED = 20_000_000
"""Values that a path may come across in one page."""
_ONE_OBJECT = (
    "The response is one object, not a list, and is read as one row."
    " To read a list inside it, set jsonPath."
)
_NO_COLUMNS = "The rows are empty objects, so there are no columns to read."
_EMPTY_OBJECT = (
    "The response is an empty object, not a list of rows. Check the URL, or set jsonPath."
)
_TOTALS = frozenset(
    {
        *("count", "nbhits", "numfound", "odatacount", "recordstotal", "total", "totalcount"),
        *("totalelements", "totalhits", "totalitems", "totalrecords", "totalresults", "totalrows"),
        *("totalsize",),
    }
)
"""The names under which answers state the number of the rows of all pages, in small letters."""
_ABOUT_PAGES = frozenset({"meta", "metadata", "page", "pageinfo", "pager", "pagination", "paging"})
_CURSORS = "cursor hasmore limit next nextpage offset prev previous"
_NEIGHBOURS = frozenset(_CURSORS.split())
"""The names of members that lead to other pages, in small letters."""
_LISTS = "data docs entries hits items records results rows value"
_USUAL_NAMES = frozenset(_LISTS.split())
"""The names that lists of rows have, in small letters."""
_OTHER_LISTS = (
    "aggregations alerts breadcrumbs columns errors facets fields filters headers included includes"
    " links messages metadata notices pages schema sort sorts warnings"
)
_BESIDE = frozenset(_OTHER_LISTS.split())
"""The names of lists that stand beside the rows of a response, in small letters."""
_FACTS = (
    "code detail details error errors message ok path requestid status statuscode success timestamp"
    " title traceid type"
)
_OF_ERRORS = frozenset(_FACTS.split())
"""The names that an object has which is an error and no row, in small letters."""
_LONGEST_ERROR = 200
_LOOKED_THROUGH = 1_000
"""Values that are looked through for the rows when no path says where they are."""


def read_json(pages: Sequence[Path], options: ReadOptions) -> table.Table:
    """The table in pages of JSON, one of them in memory at a time. Raises SourceProblem."""
    if options.format is TableFormat.NDJSON:
        return _table(lambda: chain.from_iterable(_lines(page, options) for page in pages), None)
    value = _whole(pages[0], options)
    first, json_path = rows_in(value, options)
    note = _ONE_OBJECT if first == [value] else None
    stated = None if note else stated_total(value)
    later = replace(options, usual_path=json_path)
    del value

    def objects() -> Iterator[Any]:
        yield from first
        before, longest = first, len(first)
        for content in map(Path.read_bytes, pages[1:]):
            # Some servers answer nothing behind the last page.
            if content.strip():
                rows, _ = rows_in(_value(content, options, "The file"), later)
                longest = max(longest, len(rows))
                # The longest page may be all that the server gives at once: it lacks no rows.
                size = options.page_size if len(before) < longest else None
                yield from rows[_repeated(before, rows, size or 0) :]
                before = rows

    return replace(_table(objects, json_path, note), stated=stated)


def _repeated(before: list[Any], rows: list[Any], page_size: int) -> int:
    """The number of rows that a page repeats of the end of the page before it.

    They are as many as that page is too short by, or fewer.
    """
    most = min(page_size - len(before), len(before), len(rows))
    sizes = range(most, 0, -1)
    return next((size for size in sizes if before[-size:] == rows[:size]), 0)


def stated_total(value: JsonValue) -> int | None:
    """The number of all rows that an answer states beside those it has; None where it does not."""
    if not isinstance(value, dict):
        return None
    nodes = [value]
    for name, inner in value.items():
        if isinstance(inner, dict) and _plain(name) in _ABOUT_PAGES:
            nodes.append(inner)
    totals = [
        number
        for node in nodes
        for name, number in node.items()
        if type(number) is int and _plain(name) in _TOTALS
    ]
    return max(totals, default=None)


def _plain(name: str) -> str:
    return "".join(filter(str.isalpha, name)).lower()


def inspect_page(
    page: Path, options: ReadOptions, cursor_path: str | None, columns: Sequence[str]
) -> tuple[int, str | int | float | None, list[str], str | None, str, int | None]:
    """The facts of a page: the number of its rows, its cursor, and the columns that it has.

    The path to the rows, their digest, and the stated number of all rows follow. Raises
    SourceProblem.
    """
    if options.format is TableFormat.NDJSON:
        count, present = _surveyed(_lines(page, options), columns)
        with page.open("rb") as file:
            return count, None, present, None, hashlib.file_digest(file, "sha256").hexdigest(), None
    value = _whole(page, options)
    rows, json_path = rows_in(value, options)
    count, present = _surveyed(rows, columns)
    digest = hashlib.sha256(to_json(rows)).hexdigest()
    return count, _cursor(value, cursor_path), present, json_path, digest, stated_total(value)


def _cursor(value: JsonValue, path: str | None) -> str | int | float | None:
    """The value that names the next page; None without one. Raises SourceProblem for an object."""
    found = matches(read_query(path), value, _MAX_VISITED) if path is not None else []
    cursor = found[0] if found else None
    if isinstance(cursor, dict | list) and cursor:
        kind = "a list" if isinstance(cursor, list) else "an object"
        message = f"{path} is {kind} in the response. The cursor of the next page must be a value."
        table.refuse(message, ErrorKind.MAPPING)
    return "true" if cursor is True else cursor or None


def _surveyed(rows: Iterable[Any], columns: Sequence[str]) -> tuple[int, list[str]]:
    """The number of rows, and the columns among these that any of them has."""
    count, missing = 0, set(columns)
    for row in rows:
        count += 1
        if missing:
            missing -= flattened(row).keys()
    return count, [name for name in columns if name not in missing]


def _whole(page: Path, options: ReadOptions) -> JsonValue:
    content = page.read_bytes()
    if not content.strip():
        table.refuse("The file is empty.")
    return _value(content, options, "The file")


def rows_in(value: object, options: ReadOptions) -> tuple[list[Any], str | None]:
    """The rows in a JSON value and the path to their list.

    They are at the path of the options, else in the list where they were before, else in the
    likeliest list of objects; a lone object without a path is one row. Raises SourceProblem, also
    for errors without rows.
    """
    path, usual = options.json_path, options.usual_path
    if path is not None:
        rows = _rows_at(value, path)
    elif usual is not None and _ONE_PLACE.fullmatch(usual):
        path, rows = usual, _usual_rows(value, usual)
    else:
        rows, path = _likely_list(value)
    if not rows:
        _check_is_no_error(value, is_listed=True)
    table.check_count(len(rows))
    return rows, path


def _rows_at(value: object, path: str) -> list[Any]:
    """The rows at a path: a list, an object, or all that matches; null is a list without rows."""
    try:
        matched = matches(read_query(path), value, _MAX_VISITED)
    except (BindingError, ExpressionLimitError) as error:
        table.refuse(f"{path}: {error}", ErrorKind.MAPPING)
    if not matched and not _names_a_list(value, path):
        _check_is_no_error(value)
        table.refuse(f"{path} not found in the response.", ErrorKind.MAPPING)
    if len(matched) == 1 and isinstance(matched[0], list):
        return matched[0]
    if matched and _ONE_PLACE.fullmatch(path) and not isinstance(matched[0], dict):
        if matched[0] is None:
            _check_is_no_error(value)
            return []
        table.refuse(f"{path} is not a list of rows in the response.", ErrorKind.MAPPING)
    return matched


def _usual_rows(value: object, path: str) -> list[Any]:
    """The rows of the list at a path, which is where an earlier page or refresh had one."""
    matched = matches(read_query(path), value, _MAX_VISITED)
    if matched == [None]:
        _check_is_no_error(value)
        return []
    if len(matched) != 1 or not isinstance(matched[0], list):
        _check_is_no_error(value)
        message = f"The response has no list at {path}, where its rows were before."
        _, now = _likely_list(value) if isinstance(value, dict | list) else ([], None)
        where = "" if now is None else f" It has one at {now}."
        table.refuse(f"{message}{where} If they have moved, set jsonPath.", ErrorKind.MAPPING)
    return matched[0]


def _names_a_list(value: object, json_path: str) -> bool:
    """True when the path names the items of a list without any, or of null."""
    if not json_path.endswith("[*]"):
        return False
    return matches(read_query(json_path[:-3]), value, _MAX_VISITED) in ([[]], [None])


def _likely_list(value: object) -> tuple[list[Any], str | None]:
    """The list of rows, breadth first; a lone object is one row, and has no list.

    On a level it is the list with a usual name, be it empty, else the first list of objects.
    Lists that stand beside rows, such as `links`, are rows only where there is no other. Raises
    SourceProblem, also for an error without rows.
    """
    fallbacks: list[_RankedList] = []
    for lists in _lists_by_level(value):
        likeliest = min(lists, key=_first, default=None)
        if likeliest is not None and likeliest[0] <= _OBJECTS:
            return likeliest[1:]
        fallbacks += lists
    if min(map(_first, fallbacks), default=_ERRORS) >= _ERRORS:
        _check_is_no_error(value, is_row=True)
    if fallbacks:
        return min(fallbacks, key=_first)[1:]
    if isinstance(value, list):
        return value, "$"
    if not isinstance(value, dict):
        table.refuse("The response is not a list of objects. Set jsonPath to the rows.")
    null = _null_list(value)
    if null is None:
        return [value], None
    _check_is_no_error(value)
    return [], null


def _null_list(value: Mapping[str, Any]) -> str | None:
    """The path to null in place of a list, in a response that has nothing else to tell."""
    names = {_plain(name): name for name in value}
    lists = names.keys() & _USUAL_NAMES
    if len(lists) != 1 or names.keys() - lists - _OF_ERRORS - _TOTALS - _ABOUT_PAGES - _NEIGHBOURS:
        return None
    name = names[lists.pop()]
    return f"${_step(name)}" if value[name] is None else None


_USUAL, _USUAL_EMPTY, _OBJECTS, _EMPTY, _BESIDE_ROWS, _ERRORS = range(6)
"""Ranks of lists that may have the rows, the likeliest first."""
_first = itemgetter(0)


_RankedList: TypeAlias = tuple[int, list[Any], str]
"""A list that may have the rows, after its rank and before its path."""


def _lists_by_level(value: object) -> Iterator[list[_RankedList]]:
    """The lists that may have the rows, level by level."""
    level: list[tuple[str, str, Any]] = [("$", "", value)]
    seen = 0
    while level and seen < _LOOKED_THROUGH:
        deeper: list[tuple[str, str, Any]] = []
        lists: list[_RankedList] = []
        for path, name, node in level:
            seen += 1
            if isinstance(node, dict):
                deeper += [(path + _step(key), _plain(key), each) for key, each in node.items()]
            elif isinstance(node, list) and (not node or any(map(_is_object, node))):
                lists.append((_rank(name, node), node, path))
        yield lists
        level = deeper


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _rank(name: str, rows: list[Any]) -> int:
    if name in {"", *_USUAL_NAMES}:
        return _USUAL if rows else _USUAL_EMPTY
    if name in _BESIDE:
        return _ERRORS if rows and name == "errors" else _BESIDE_ROWS
    return _OBJECTS if rows else _EMPTY


def _check_is_no_error(value: object, *, is_row: bool = False, is_listed: bool = False) -> None:
    """Refuse a response that states an error, as GraphQL does with the status 200.

    An object that may be a row is one unless all its members tell of an error. Beside a list that
    is empty a text may say just that.
    """
    if not isinstance(value, dict):
        return
    names = {_plain(name): name for name in value}
    errors = value.get(names.get("errors", ""))
    stated = errors[0] if isinstance(errors, list) and errors else None
    if (
        not isinstance(stated, dict)
        and not is_listed
        and not (is_row and names.keys() - _OF_ERRORS)
    ):
        stated = stated or errors or value.get(names.get("error", ""))
    if stated and stated is not True:
        table.refuse(
            f"The response has an error in place of rows: {_said(stated)}."
            " If it has rows, set jsonPath.",
            ErrorKind.MAPPING,
        )


def _said(stated: object) -> str:
    """The text of an error."""
    if isinstance(stated, dict):
        names = ("message", "detail", "title", "description", "code")
        stated = next((stated[name] for name in names if stated.get(name)), stated)
    text = stated if isinstance(stated, str) else to_json(stated).decode()
    return text[:_LONGEST_ERROR].rstrip(". ")


def _step(key: str) -> str:
    """The step of a path to a member of an object (RFC 9535, 2.3.1)."""
    quote = '"' if "'" in key else "'"
    return f".{key}" if _NAME.fullmatch(key) else f"[{quote}{key}{quote}]"


def _table(
    objects: Callable[[], Iterator[Any]], json_path: str | None, note: str | None = None
) -> table.Table:
    columns: dict[str, None] = {}
    number = 0
    for number, item in enumerate(objects(), start=1):
        table.check_count(number)
        columns.update(dict.fromkeys(flattened(item)))
        if len(columns) > file_options.MAX_COLUMNS:
            table.refuse(
                f"The rows have more than {file_options.MAX_COLUMNS} columns.", ErrorKind.TOO_LARGE
            )
    if number and not columns:
        table.refuse(_NO_COLUMNS if note is None else _EMPTY_OBJECT)
    names = list(columns)

    def rows() -> Iterator[table.Row]:
        for item in objects():
            values = flattened(item)
            yield [values.get(name) for name in names]

    headers = table.headers_of(names, len(names))
    return table.Table(headers, lambda: table.bounded(rows()), json_path=json_path, note=note)


def flattened(row: object) -> Mapping[str, Cell]:
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
            # A key may be written as the way to a nested one is.
            cells[table.unique(name, cells)] = cell(inner)


def _lines(path: Path, options: ReadOptions) -> Iterator[Any]:
    """The values of the lines; a list of objects in a line is rows.

    Lines in UTF-16 or UTF-32 are not NDJSON.
    """
    with path.open("rb") as file:
        for number, line in enumerate(table.bounded_lines(file), start=1):
            if line.strip():
                value = _value(line, options, f"Line {number}")
                if isinstance(value, list) and {*map(type, value)} == {dict}:
                    yield from value
                else:
                    yield value


def _value(content: bytes, options: ReadOptions, what: str) -> JsonValue:
    """The value of JSON in UTF-8, or in the charset that is stated. Raises SourceProblem."""
    stated = ContentType("application/json", options.charset)
    if not stated.is_beside_ascii and detect_encoding(content).startswith("utf-8"):
        try:
            # Without a second copy in memory, which nearly all JSON needs not.
            return _parsed(content, what)
        except UnicodeDecodeError:
            pass
    text = stated.decode(content)
    if text is None:
        table.refuse(f"{what} is not written in {stated.charset or 'utf-8'}. JSON must be UTF-8.")
    return _parsed(text, what)


def _with_every_digit(content: bytes) -> bytes:
    """JSON with the fractions that no double holds as texts; integers are read as they are."""
    if not _MANY_DIGITS.search(content) or all(map(_is_held, _LONG_NUMBER.findall(content))):
        return content
    return _TEXT_OR_LONG_NUMBER.sub(_quoted, content)


def _quoted(found: re.Match[bytes]) -> bytes:
    token = found[0]
    return token if token.startswith(b'"') or _is_held(token) else b'"%b"' % token


def _is_held(written: bytes) -> bool:
    """True when reading a number keeps its digits; one that is too large stays infinite."""
    if written.removeprefix(b"-").isdigit():
        return True
    try:
        exact_number(Decimal(written.decode()))
    except (InvalidValueError, InvalidOperation):
        return math.isinf(float(written)) if written.count(b".") < 2 else True
    return True


def _whole_text(written: bytes) -> JsonValue:
    """The value; in texts that were cut within a character, U+FFFD replaces its half."""
    try:
        value: JsonValue = from_json(written, allow_inf_nan=False)
    except ValueError:
        mended = _SURROGATE.sub(lambda found: rb"\ufffd" if found[1] else found[0], written)
        if mended == written:
            raise
        value = from_json(mended, allow_inf_nan=False)
    return value


def _parsed(content: bytes | str, what: str) -> JsonValue:
    """The value. Raises SourceProblem, and UnicodeDecodeError for bytes that are not UTF-8."""
    try:
        written = content.encode() if isinstance(content, str) else content
        exact = _with_every_digit(written.removeprefix(_MARK.encode()))
        value: JsonValue = _whole_text(exact)
    except ValueError as error:
        text = content if isinstance(content, str) else content.decode()
        if file_options.format_of_content(text.encode()) is TableFormat.NDJSON:
            table.refuse(f"{what} has an object in each line. Choose the format ndjson.")
        if text.lstrip(f"{_MARK} \t\r\n").startswith("<"):
            table.refuse(f"{what} is HTML or XML, not JSON. Check its URL and access.")
        table.refuse(f"{what} is not valid JSON: {str(error)[:200]}.")
    except BaseException as error:
        # The library panics where it is refused memory, and a panic is no Exception.
        if isinstance(error, Exception):
            raise
        raise MemoryError from None
    return value
