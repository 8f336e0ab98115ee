"""The history of a record in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from api.console.records.cells import words_of
from models.data.fields.rules.fields import FieldSpec
from models.data.record_changes.shapes import RecordChangeShape
from models.data.record_exports.rules import Legend

MOST_VALUES = 12
"""Values shown of one change."""


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A value that a change replaced, in words."""

    label: str
    before: str
    after: str


def in_words(
    changes: Sequence[RecordChangeShape], specs: Sequence[FieldSpec], legend: Legend
) -> Sequence[tuple[RecordChangeShape, Sequence[ChangedValue]]]:
    """Each change with the values that it replaced."""
    known = {spec.key: spec for spec in specs}

    def value(key: str, change: RecordChangeShape) -> ChangedValue:
        spec = known.get(key)
        sides = (change.before or {}).get(key), (change.after or {}).get(key)
        before, after = (words_of(spec, side, legend) for side in sides)
        return ChangedValue(key if spec is None else spec.label, before, after)

    return [(one, [value(key, one) for key in one.changed_keys[:MOST_VALUES]]) for one in changes]
