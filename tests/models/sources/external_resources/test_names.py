"""Names that providers give, and what becomes of them."""

import pytest

from models.sources.external_resources.rules.resources import identifier_problem, shown_name


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Plan.md", "Plan.md"),
        ("../../etc/passwd", "../../etc/passwd"),
        ("a\x00b\nc", "ab c"),
        ("\u202egnp.exe", "gnp.exe"),
        ("..", ".."),
        (" \u200b ", "Untitled"),
        ("مرحبا", "مرحبا"),
        ("x" * 300, "x" * 200),
    ],
)
def test_names_hide_nothing(given: str, shown: str) -> None:
    assert shown_name(given) == shown


def test_an_identifier_is_text() -> None:
    assert identifier_problem("../x") is None
    assert identifier_problem("a\x00") is not None
