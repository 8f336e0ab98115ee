"""What a table suggests of how it is read: only what leaves no other way."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.data.fields.rules.fields import FieldKind
from models.sources.tabular.rules.cells import cell
from models.sources.tabular.rules.columns import profiles
from models.sources.tabular.rules.formats import Conventions, Declared
from models.sources.tabular.rules.proposals import Proposal, header_row, settle

K = FieldKind


def proposed(
    *columns: Sequence[Any],
    kinds: Sequence[FieldKind | None] = (),
    declared: Declared | None = None,
    before: Conventions | None = None,
) -> tuple[Proposal, list[FieldKind]]:
    """The proposal for a table of these columns, and the kinds that its columns then have."""
    headers = [f"c{number}" for number in range(len(columns))]
    asked = declared or Declared()
    found = profiles(headers, zip(*columns, strict=True), asked)
    proposal = settle(headers, found, asked, kinds or [None] * len(columns), before)
    return proposal, [column.kind for column in found]


DATES: list[tuple[list[Any], str | None, FieldKind, str | None]] = [
    (["21/11/2026", "03/04/2026"], "dmy", K.DATE, None),
    (["11/21/2026", "03/04/2026"], "mdy", K.DATE, None),
    (["21-11-2026", "2026-04-03"], "dmy", K.DATE, None),
    (["21/11/2026", "Nov 03, 2026", "2026-01-31", "31.1.2026"], "dmy", K.DATE, None),
    (["21/11/2026 14:30", "03/04/2026 09:00"], "dmy", K.DATETIME, None),
    (["01/02/2026", "03/04/2026"], None, K.TEXT, "ambiguous"),
    (["05/05/2026", "06/06/2026"], None, K.TEXT, "ambiguous"),
    (["21/11/2026", "11/21/2026"], None, K.TEXT, "mixed"),
    (["21/11/2026", "11/21/2026", "01/02/2026"], None, K.TEXT, "mixed"),
    (["21/11/2026", "pending"], None, K.TEXT, None),
    (["31/02/2026", "30/01/2026"], None, K.TEXT, None),
    (["Nov 03, 2026", "3 Nov 2026", "03-Nov-2026"], None, K.DATE, None),
    (["3. März 2026", "3 de noviembre de 2026", "1xy mai 2026"], None, K.TEXT, None),
    (["3. März 2026", "3 de noviembre de 2026", "2 mai 2026"], None, K.DATE, None),
    (["Feb 30, 2026", "Jan 1, 2026"], None, K.TEXT, None),
    (["March 2026", "April 2026"], None, K.TEXT, None),
    (["2026-01-31", "2026-02-01"], None, K.DATE, None),
    (["31.12.2025", "1.2.2026"], None, K.DATE, None),
    (["21/11/26", "22/11/26"], None, K.TEXT, None),
]


@pytest.mark.parametrize(("cells", "order", "kind", "undecided"), DATES)
def test_the_order_of_dates_comes_from_those_with_one_reading(
    cells: list[Any], order: str | None, kind: FieldKind, undecided: str | None
) -> None:
    proposal, [found] = proposed(cells)
    assert (proposal.conventions.date_order, found) == (order, kind)
    assert proposal.undecided.get("dateOrder", (None,))[0] == undecided


NUMBERS: list[tuple[list[Any], str | None, FieldKind, str | None]] = [
    (["2842,61", "7"], ",", K.NUMBER, None),
    (["2842.61", "7"], ".", K.NUMBER, None),
    (["1.234,5", "1.234"], ",", K.NUMBER, None),
    (["1,234.5", "1,234"], ".", K.NUMBER, None),
    (["0,125", "1"], ",", K.NUMBER, None),
    (["12,5%", "7%"], ",", K.PERCENT, None),
    (["€ 7,50", "€ 1.234,00"], ",", K.CURRENCY, None),
    (["1.234.567", "1"], ",", K.NUMBER, None),
    (["12,-", "5,50"], ",", K.NUMBER, None),
    (["1.300,--", "12.500,\u2014"], ",", K.NUMBER, None),
    (["12.-", "1'300.-"], ".", K.NUMBER, None),
    (["12,-- €", "7,- €"], ",", K.CURRENCY, None),
    (["CHF 12.\u2014", "CHF 5.50"], ".", K.CURRENCY, None),
    (["12,-", "5.50"], None, K.TEXT, "mixed"),
    (["1,234", "2,500"], None, K.NUMBER, "ambiguous"),
    (["1.234", "2.500"], None, K.NUMBER, "ambiguous"),
    (["1,5", "2.5"], None, K.TEXT, "mixed"),
    (["1", "2"], None, K.NUMBER, None),
    (["1,5 m", "2,5 m"], None, K.TEXT, None),
    ([1.5, 2], None, K.NUMBER, None),
]


@pytest.mark.parametrize(("cells", "separator", "kind", "undecided"), NUMBERS)
def test_the_decimal_separator_comes_from_numbers_with_one_reading(
    cells: list[Any], separator: str | None, kind: FieldKind, undecided: str | None
) -> None:
    proposal, [found] = proposed(cells)
    assert proposal.conventions.decimal_separator == (separator or ".")
    assert (found, proposal.undecided.get("decimalSeparator", (None,))[0]) == (kind, undecided)


WORDS: list[tuple[list[Any], FieldKind]] = [
    (["Y", "N", "y"], K.CHECKBOX),
    (["ja", "Nein"], K.CHECKBOX),
    (["oui", "NON"], K.CHECKBOX),
    (["sí", "no"], K.CHECKBOX),
    (["да", "нет"], K.CHECKBOX),
    (["yes", "no"], K.CHECKBOX),
    *(
        ([yes, no, yes.lower()], K.CHECKBOX)
        for yes, no in (
            ("VERDADEIRO", "FALSO"),
            ("WAAR", "ONWAAR"),
            ("SANT", "FALSKT"),
            ("SAND", "FALSK"),
            ("TOSI", "EPÄTOSI"),
            ("PRAWDA", "FAŁSZ"),
            ("PRAVDA", "NEPRAVDA"),
            ("IGAZ", "HAMIS"),
            ("ADEVĂRAT", "FALS"),
            ("DOĞRU", "YANLIŞ"),
            ("ИСТИНА", "ЛОЖЬ"),
            ("Sì", "No"),
            ("はい", "いいえ"),
            ("✓", "✗"),
        )
    ),
    (["checked", None, "checked"], K.CHECKBOX),
    (["checked", "unchecked"], K.CHECKBOX),
    (["checked", "later"], K.TEXT),
    (["unchecked", None], K.TEXT),
    (["Y", "N", "Yes"], K.CHECKBOX),
    (["Y", "Y"], K.TEXT),
    (["Y", "N", "?"], K.TEXT),
    (["Y", "nein"], K.TEXT),
    (["ja", "nein", "oui", "non"], K.TEXT),
    (["x", None], K.TEXT),
    (["1", "0"], K.NUMBER),
    (["N", "S"], K.TEXT),
    (["Y", "N", True], K.TEXT),
]


@pytest.mark.parametrize(("cells", "kind"), WORDS)
def test_a_column_says_yes_or_no_with_both_words_of_one_pair(
    cells: list[Any], kind: FieldKind
) -> None:
    assert proposed(cells)[1] == [kind]


def test_declared_conventions_stay() -> None:
    cells = (["21/11/2026", "03/04/2026"], ["2842,61", "7"], ["Y", "N"], ["Nov 3, 2026"] * 2)
    declared = Declared("ymd", ".", (frozenset(), frozenset()))
    proposal, kinds = proposed(*cells, declared=declared)
    assert proposal == Proposal(Conventions())
    assert kinds == [K.TEXT, K.TEXT, K.TEXT, K.DATE]
    yes = Declared(words=(frozenset({"x"}), frozenset()))
    assert proposed(["x", None], declared=yes)[1] == [K.CHECKBOX]


def test_one_column_decides_for_the_others_and_two_may_contradict() -> None:
    sure, open_, other = ["21/11/2026"] * 2, ["01/02/2026"] * 2, ["11/21/2026"] * 2
    proposal, kinds = proposed(sure, open_)
    assert (proposal.conventions.date_order, kinds) == ("dmy", [K.DATE] * 2)
    proposal, kinds = proposed(sure, open_, other)
    assert (proposal.conventions.date_order, kinds) == (None, [K.TEXT] * 3)
    assert proposal.undecided["dateOrder"] == ("mixed", ["c0", "c2"])


def test_a_mapped_column_decides_in_spite_of_other_cells() -> None:
    proposal, _ = proposed(["21/11/2026", "soon"], ["2842,61", "free"], kinds=[K.DATE, K.CURRENCY])
    assert proposal.conventions == Conventions("dmy", ",")
    proposal, _ = proposed(["21/11/2026", "soon"], kinds=[K.TEXT])
    assert proposal.conventions.date_order is None
    proposal, _ = proposed(["21/11/2026", "11/21/2026"], kinds=[K.DATE])
    assert proposal.undecided["dateOrder"] == ("mixed", ["c0"])
    proposal, _ = proposed(["Y", "N", "maybe"], kinds=[K.CHECKBOX])
    assert (proposal.conventions.yes, proposal.conventions.no) == ({"y"}, {"n"})


def test_undecided_conventions_are_those_of_the_last_read() -> None:
    before = Conventions("dmy", ",", frozenset({"y"}), frozenset({"n"}))
    proposal, kinds = proposed(["01/02/2026"], ["1.234"], before=before)
    assert (proposal.conventions, kinds) == (before, [K.DATE, K.NUMBER])
    proposal, _ = proposed(["11/21/2026"], ["1.5"], before=before)
    assert (proposal.conventions.date_order, proposal.conventions.decimal_separator) == ("mdy", ".")


CELLS = st.sampled_from(
    [
        *("21/11/2026", "11/21/2026", "01/02/2026", "2026-01-31", "31.1.2026", "Nov 3, 2026", None),
        *("1,5", "1.5", "1.234", "1,234", "1.234,5", "7", "€7,50", "5%", "5,5%", "Y", "N", "ja"),
        *("nein", "yes", "a@b.example", "x", 7, 1.5, True),
    ]
)


@given(columns=st.lists(st.lists(CELLS, min_size=4, max_size=4), min_size=1, max_size=4))
def test_the_options_that_are_proposed_read_the_table_in_the_same_way(columns: Any) -> None:
    columns = [[cell(each) for each in column] for column in columns]
    proposal, kinds = proposed(*columns)
    shown = proposal.shown()
    words = shown.get("booleanWords")
    declared = Declared(
        shown.get("dateOrder"),
        shown.get("decimalSeparator"),
        words and (frozenset(words["true"]), frozenset(words["false"])),
    )
    again, same_kinds = proposed(*columns, declared=declared)
    assert (again.conventions, same_kinds) == (proposal.conventions, kinds)


TITLES: list[tuple[list[list[Any]], int]] = [
    ([["Name", "Qty"], ["a", 1]], 1),
    ([["Sales report 2026"], ["Name", "Qty"], ["a", 1]], 2),
    ([["Sales report 2026", None, None], ["Name", "Qty", "Price"], ["a", 1, 2]], 2),
    ([[None, "Sales", None], ["Name", "Qty", "Price"], ["a", 1, 2]], 2),
    ([["Sales"], ["As of May"], [], ["Name", "Qty", "Price"], ["a", 1, 2]], 4),
    ([["Report", "Sales"], ["Year", 2026], ["A", "B", "C", "D"], [1, 2, 3, 4]], 3),
    ([["Sales"], ["Region", "2025", "2026"], ["North", "1", "2"]], 2),
    ([[], [None, None], ["Name", "Qty"], ["a", 1]], 3),
    ([["Sales"], ["Name", "Qty"]], 1),
    ([["Sales"], ["Name", "Qty"], ["total"]], 1),
    ([["Name"], ["a"], ["b"]], 1),
    ([["Name", None, None], ["a", 1, 2]], 1),
    ([["Name", None], ["a", "b"], ["c", "d"]], 1),
    ([[None, "Name"], ["a", "Anna"], ["b", "Bert"]], 1),
    ([["Sales"], ["Qty", "Qty"], [1, 2]], 1),
    ([["Sales"], ["Day", "Total", "Cur", "Sum", "Cur"], ["2.3.2026", 1, "EUR", 2, "EUR"]], 2),
    ([["Sales"], ["Name", 2026], ["a", 1]], 1),
    ([["Name", "Qty", None], ["a", 1, "x"], ["b", 2, "y"]], 1),
    ([["a", "b", "c"], ["d", "e", "f"]], 1),
    ([], 1),
]


@pytest.mark.parametrize(("rows", "expected"), TITLES)
def test_a_header_is_the_first_row_but_for_a_title(rows: list[list[Any]], expected: int) -> None:
    assert header_row(rows) == expected
