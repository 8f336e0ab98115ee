"""The nearest of the known names is first, for any name and number of calls."""

import time

import pytest

from models.core.problems import MOST_SHOWN, nearest_first, nearest_known

NAMES = ["title", "status", "total_price", "amount", "amount_due", "email"]


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("Amount", "amount"),
        ("AMOUNT-DUE", "amount_due"),
        ("totalPrice", "total_price"),
        ("price", "total_price"),
        ("statsu", "status"),
        ("e-mail", "email"),
        ("eamil", "email"),
        ("zzz", "title"),
        (5, "title"),
        ("", "title"),
    ],
)
def test_the_nearest_comes_first(asked: object, first: str) -> None:
    assert nearest_first(asked, NAMES)[0] == first


def test_a_label_leads_to_its_name() -> None:
    assert nearest_first("Grand total", NAMES, {"amount_due": "Grand total"})[0] == "amount_due"


def test_shown_names_are_bounded_and_printable() -> None:
    assert nearest_known("a", []) == "known: none"
    many = nearest_known("a", [f"{'k' * 100}\n{at}" for at in range(5_000)])
    assert many.count(",") == MOST_SHOWN
    assert len(many) < 1_500
    assert many.isprintable()


def test_to_ask_costs_little() -> None:
    names = [f"field_number_{at}_of_a_database_with_names_that_are_long"[:63] for at in range(500)]
    began = time.process_time()
    for _ in range(20):
        nearest_known(f"{names[7]}x" * 1_000, names)
    assert time.process_time() - began < 5
