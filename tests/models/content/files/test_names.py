"""The names that files are stored under."""

import pytest

from models.content.files.rules import file_name


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("a" * 255, "a" * 255),
        ("a" * 256, "a" * 255),
        ("a" * 255 + ".txt", "a" * 251 + ".txt"),
        ("dir/..\\plan.pdf", "plan.pdf"),
        ("..", "file"),
    ],
    ids=["255", "256", "suffix", "directories", "dots"],
)
def test_a_name_is_one_segment_of_at_most_255_characters(given: str, stored: str) -> None:
    assert file_name(given) == stored
