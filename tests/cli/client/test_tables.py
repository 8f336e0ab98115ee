"""Rows in a terminal: columns that fit its width, and nothing that commands it."""

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from cli.client import incidents, runs
from cli.client.output import print_rows, taken

ROWS = [("a" * 36, "failed", "Orders 漢字", "Declined \x1b[2J and more")]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (120, ["failed  Orders 漢字  Declined  [2J and more"]),
        (79, ["failed  Orders 漢字  Declined  [2J and m…"]),
        (74, ["failed  Orders 漢字", "Declined  [2J and more"]),
        (50, ["failed", "Orders 漢字  Declined  [2J and more"]),
        (20, None),
    ],
)
def test_columns_that_have_no_room_continue_below(width: int, shown: list[str] | None) -> None:
    lines = _printed(width, ("ID", "STATUS", "AUTOMATION", "NOTE"), ROWS)
    if shown is None:
        assert "a" * 19 + "…" in lines
    else:
        first, *more = shown
        expected = [f"{ROWS[0][0]}  {first}", *[f"  {line}" for line in more]]
        assert lines[len(expected) :] == expected
    assert not any("\x1b" in line for line in lines)


def _printed(width: int, names: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None)
    print_rows(console, names, rows)
    return [line.rstrip() for line in file.getvalue().splitlines()]


DATE = "2026-11-29 11:36:40"
LISTS: list[tuple[Sequence[str], tuple[object, ...]]] = [
    (
        runs._COLUMNS,
        ("a" * 36, "succeeded", "b" * 40, "webhook", DATE, "59 min 59 s", "x" * 90),
    ),
    (incidents._COLUMNS, ("a" * 36, "closed", "b" * 40, 12345, DATE, DATE, "x" * 90)),
    (incidents._RECORD_COLUMNS, ("a" * 36, "b" * 40, 12345, DATE, "x" * 90)),
]


@pytest.mark.parametrize(("names", "row"), LISTS)
def test_lists_fit_80_columns_with_whole_dates(
    names: Sequence[str], row: tuple[object, ...]
) -> None:
    lines = _printed(80, names, [row])
    assert len(lines) == 4
    assert all(len(line) <= 80 for line in lines)
    printed = "\n".join(lines)
    assert all(name in printed for name in names)
    assert all(str(value)[:20] in printed for value in row)
    assert "a" * 36 in printed


def test_times_are_written_in_two_parts_at_most() -> None:
    day = "2026-01-31T{}.000Z"
    assert taken(None, None) == ""
    ends = {"00:00:04": "4.0 s", "00:03:05": "3 min 05 s", "02:10:00": "2 h 10 min"}
    for end, text in ends.items():
        assert taken(day.format("00:00:00"), day.format(end)) == text
