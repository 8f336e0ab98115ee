"""Links as relation fields read them: one row per link, whichever of its fields shows it.

A link between the records of two fields that are each other's inverse is stored under the older
field; the younger one reads it backwards. A symmetric relation reads its links both ways.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.core.base import Id
from models.data.fields.rules.fields import FieldSpec


@dataclass(frozen=True, slots=True)
class Side:
    """One relation field's view of the links stored under `field_id`."""

    key: str
    field_id: Id
    forward: bool
    backward: bool
    one: bool
    """A record has at most one link here."""

    def reads(self, forward: bool) -> bool:
        """True when it shows links in this direction."""
        return self.forward if forward else self.backward

    def ends(self, record_id: Id, target_id: Id) -> list[tuple[Id, Id]]:
        """Each list that shows a link between these two: its record, and the record it shows."""
        ways = ((self.forward, record_id, target_id), (self.backward, target_id, record_id))
        return [(own, other) for reads, own, other in ways if reads]

    def oriented(self, own_id: Id, other_id: Id) -> tuple[Id, Id]:
        """The record and the target of the row that links these two."""
        if self.forward and self.backward:
            return (own_id, other_id) if own_id <= other_id else (other_id, own_id)
        return (own_id, other_id) if self.forward else (other_id, own_id)


def side_of(spec: FieldSpec) -> Side:
    """The side of a relation field."""
    return make_side(spec.id, spec.key, spec.settings)


def make_side(field_id: Id, key: str, settings: Mapping[str, Any]) -> Side:
    """The side of the relation field with this id, key and settings."""
    single = settings.get("cardinality") == "one"
    inverse_id = Id(settings["inverseFieldId"])
    if inverse_id == field_id:
        return Side(key, field_id, forward=True, backward=True, one=single)
    if inverse_id < field_id:
        return Side(key, inverse_id, forward=False, backward=True, one=single)
    return Side(key, field_id, forward=True, backward=False, one=single)
