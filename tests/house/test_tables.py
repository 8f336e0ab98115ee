"""A noun's tables are its own: the imports by others are listed, and the list only shrinks."""

from collections import Counter

from tests.house.private_tables import IMPORTS, LISTED, faults, found


def test_tables_are_imported_by_their_noun_or_listed() -> None:
    assert faults(found()) == []


def test_a_new_pair_and_a_spare_line_are_seen() -> None:
    counted = Counter(dict.fromkeys(LISTED, 1))
    spare = next(iter(LISTED))
    del counted[spare]
    counted["data.forms", "data.fields"] += IMPORTS - counted.total()
    assert faults(counted) == [
        f"{spare[0]} -> {spare[1]}: take it off",
        "data.forms -> data.fields: is not listed",
    ]
