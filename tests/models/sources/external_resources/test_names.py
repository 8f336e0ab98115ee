"""Names that providers give, and what becomes of them."""

import pytest

from models.sources.external_resources.rules.names import (
    file_name,
    identifier_problem,
    shown_name,
)


@pytest.mark.parametrize(
    ("given", "shown", "saved"),
    [
        ("Plan.md", "Plan.md", "Plan.md"),
        ("../../etc/passwd", "../../etc/passwd", ".._.._etc_passwd"),
        ("a\x00b\nc", "ab c", "ab c"),
        ("\u202egnp.exe", "gnp.exe", "gnp.exe"),
        ("..", "..", "__"),
        (" \u200b ", "Untitled", "Untitled"),
        ("مرحبا", "مرحبا", "مرحبا"),
        ("x" * 300, "x" * 200, "x" * 200),
    ],
)
def test_names_hide_nothing_and_lead_nowhere(given: str, shown: str, saved: str) -> None:
    assert (shown_name(given), file_name(given)) == (shown, saved)


def test_an_identifier_is_text() -> None:
    assert identifier_problem("../x") is None
    assert identifier_problem("a\x00") is not None
