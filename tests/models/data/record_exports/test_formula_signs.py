"""Cells of a CSV that a spreadsheet would compute, with invisible characters before their sign."""

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.data.record_exports.rules import csv_cell, csv_text, is_number_of_a_sheet

SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u207a\u207b\u2212"
UNSEEN = [
    *("", " ", "   ", "\u00a0", "\u3000", "\u2009", "\u200b", "\u200c", "\u200d", "\u2060"),
    *("\ufeff", "\u00ad", "\u200e", "\u202e", "\u2066", "\u180e", "\u034f", "\u115f", "\u3164"),
    *("\uffa0", "\u2800", "\ufe0f", "\U000e0020", "\U000e0100", "\x00", "\x07", "\x1b", "\x7f"),
    *("\ue000", " \u200b\u00a0\ufeff "),
]
BREAKS = ["\t", "\r", "\n", "\v", "\f", "\u2028", "\u2029", "\x85", " \t", "\u200b\n"]


@pytest.mark.parametrize("before", UNSEEN)
def test_a_sign_after_what_is_not_seen_begins_a_formula(before: str) -> None:
    for sign in SIGNS:
        text = f"{before}{sign}1+1"
        assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize("before", BREAKS)
def test_a_break_at_the_beginning_may_begin_another_cell(before: str) -> None:
    assert csv_cell(f"{before}Tea") == f"'{before}Tea"


@pytest.mark.parametrize("before", BREAKS)
def test_a_sign_after_a_break_begins_a_formula_unless_it_begins_an_item(before: str) -> None:
    for sign in SIGNS:
        text = f"Tea{before}{sign}1+1"
        assert csv_cell(text) == f"'{text}"
    for text in (f"Tea{before}- milk", f"Tea{before}+ sugar"):
        assert csv_cell(text) == text
    assert csv_cell(f"Tea{before}= 1") == f"'Tea{before}= 1"


@pytest.mark.parametrize(
    "text",
    ["", " ", "\u200b", "Tea", " Tea", "\u200bTea", "a=1", "(-1)", "1-1", "é", "茶", "🙂+1"],
)
def test_other_text_is_written_as_it_is(text: str) -> None:
    assert csv_cell(text) == text


def test_numbers_stay_numbers() -> None:
    assert [csv_cell(one) for one in (-1, -0.5, True, None)] == ["-1", "-0.5", "TRUE", ""]


def test_a_formula_is_escaped_by_one_apostrophe_that_any_reader_can_remove() -> None:
    texts = [f"{before}{sign}1" for before in UNSEEN for sign in SIGNS]
    written = io.StringIO(newline="")
    csv.writer(written).writerows([csv_cell(text)] for text in texts)
    written.seek(0)
    assert [row[0].removeprefix("'") for row in csv.reader(written)] == texts


@pytest.mark.parametrize("marks", ["", "'", "''", "'''", "'''''"])
@pytest.mark.parametrize(
    "text",
    [
        *("=1", "+49 30", "-", "@me", "\t=1", " =1", "=A1&'", "-'", "='a'", "x\n=1", "\u2212 5'"),
        *("", "tis", "quoted'", " ", "- milk\n- tea", "a\n- b'", "\n", "\n'"),
    ],
)
def test_a_text_comes_back_from_its_cell(text: str, marks: str) -> None:
    written = csv_cell(marks + text)
    assert csv_text(written) == marks + text
    assert not written or written[0] not in "=+-@\t\n"


@given(st.text("'=+-@ \n\tax1\u200b\u2212"))
def test_every_text_comes_back_from_its_cell(text: str) -> None:
    assert csv_text(csv_cell(text)) == text


@pytest.mark.parametrize("cell", ["'-'", "'=1'", "'tis", "'quoted'", "'", "''", "' ", "5'"])
def test_an_apostrophe_that_marks_no_formula_stays(cell: str) -> None:
    assert csv_text(cell) == cell


@pytest.mark.parametrize(
    ("cell", "kept"),
    [
        (999999999999999, True),
        (1234567890123456, False),
        (1147386954405658704, False),
        (-1147386954405658704, False),
        (15 * 10**19, True),
        (123456789012345 * 10**3, True),
        (1234567890123456 * 10**3, False),
        (0.30000000000000004, True),
        (True, True),
        (None, True),
    ],
)
def test_a_sheet_has_whole_numbers_of_up_to_15_digits(cell: Any, kept: bool) -> None:
    assert is_number_of_a_sheet(cell) is kept
