"""The value that the reference shows for a kind is one that the kind takes."""

import pytest

from models.core.base import EXAMPLE_ID, Id
from models.data.databases.rules import KIND_NOTES
from models.data.fields.rules.fields import FieldKind, FieldSpec, Option
from models.data.fields.rules.values import KIND_RULES

OPTIONS = tuple(
    Option(id=key, key=key, name=key, color="#000", order=0) for key in ("open", "done")
)


@pytest.mark.parametrize("kind", list(FieldKind))
def test_the_value_shown_for_a_kind_is_one_it_takes(kind: FieldKind) -> None:
    note, check = KIND_NOTES[kind], KIND_RULES[kind].check
    if check is not None:
        field = FieldSpec(id=Id(EXAMPLE_ID), key="x", label="X", kind=kind, options=OPTIONS)
        assert check(field, note.value) == note.value
