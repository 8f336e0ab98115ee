"""Rows in a terminal: as many columns as fit, and nothing that commands it."""

import io

import pytest
from rich.console import Console

from cli.client.output import print_rows, taken

ROWS = [("a" * 36, "failed", "Orders 漢字", "Declined \x1b[2J and more")]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (120, "failed  Orders 漢字  Declined  [2J and more"),
        (74, "failed  Orders 漢字  Declined  [2J …"),
        (60, "failed  Orders 漢字"),
        (50, "failed"),
        (20, None),
    ],
)
def test_columns_that_have_no_room_are_left_out(width: int, shown: str | None) -> None:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None)
    print_rows(console, ("ID", "STATUS", "AUTOMATION", "NOTE"), ROWS)
    line = file.getvalue().splitlines()[1].rstrip()
    assert line == ("a" * 19 + "…" if shown is None else f"{ROWS[0][0]}  {shown}")
    assert "\x1b" not in line


def test_times_are_told_in_two_parts_at_most() -> None:
    day = "2026-01-31T{}.000Z"
    assert taken(None, None) == ""
    ends = {"00:00:04": "4.0 s", "00:03:05": "3 min 05 s", "02:10:00": "2 h 10 min"}
    for end, text in ends.items():
        assert taken(day.format("00:00:00"), day.format(end)) == text
