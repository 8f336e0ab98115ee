"""Links as relation fields read them, and what becomes of them when lists are written. Pure.

A link between the records of two fields that are each other's inverse is stored under the older
field; the younger one reads it backwards. A symmetric relation reads its links both ways.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.core.base import Id
from models.core.values import InvalidValueError
from models.data.fields.rules.fields import FieldHints, FieldSpec, FieldSpecs
from models.data.records.rules.values import shown_key
from runtime.errors import Detail
from runtime.ids import parse_id

MAX_LINKS = 1_000
"""Records that one write names in one relation field."""


def read_relations(
    fields: FieldSpecs,
    relations: Mapping[str, Any],
    at: str = "",
    hints: FieldHints | None = None,
) -> tuple[dict[str, list[Id]], list[Detail]]:
    """The records each relation field shall point at, and every problem at `relations.<key>`.

    null empties a field. Where a field holds one record at most, its id does in place of a list.
    Whether the records exist is for the command to ask.
    """
    hints = hints or FieldHints(fields)
    targets: dict[str, list[Id]] = {}
    problems: list[Detail] = []
    for key, value in relations.items():
        try:
            targets[key] = _targets(_relation(key, fields, hints), value)
        except InvalidValueError as problem:
            problems.append(Detail(f"{at}relations.{shown_key(key)}", str(problem)))
    return targets, problems


def _relation(key: str, fields: FieldSpecs, hints: FieldHints) -> FieldSpec:
    spec = fields.get(key)
    if spec is None or not spec.relation:
        raise InvalidValueError(hints.no_relation(key))
    return spec


def _targets(spec: FieldSpec, value: object) -> list[Id]:
    single = spec.settings.get("cardinality") == "one"
    if value is None:
        value = []
    elif single and isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or len(value) > MAX_LINKS:
        raise InvalidValueError(f"must be a list of at most {MAX_LINKS} record ids")
    targets = list(dict.fromkeys(_target(entry) for entry in value))
    if single and len(targets) > 1:
        raise InvalidValueError("must be one record at most")
    return targets


def _target(value: object) -> Id:
    target = parse_id(value) if isinstance(value, str) else None
    if target is None:
        raise InvalidValueError("must be a list of record ids")
    return target


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


@dataclass(frozen=True, slots=True)
class Link:
    """A row of the link table; `kept` ones have an end in the trash that no list shows."""

    field_id: Id
    record_id: Id
    target_id: Id
    position: int
    target_position: int
    kept: bool = False

    @property
    def key(self) -> tuple[Id, Id, Id]:
        return (self.field_id, self.record_id, self.target_id)


class Links:
    """The links around the written records, changed list by list as if one came after the other."""

    def __init__(self, present: Iterable[Link]) -> None:
        self._before = {link.key: link for link in present}
        self._links = dict(self._before)
        self._around: dict[tuple[Id, Id], set[tuple[Id, Id, Id]]] = defaultdict(set)
        for link in self._links.values():
            self._remember(link)

    def replace(self, side: Side, own: Id, other_ids: Sequence[Id], now: int, alone: bool) -> None:
        """Make a side of one record show exactly these others, in this order.

        `alone`: each of them may have one link on its own side, so that an older one ends.
        `now` (milliseconds) places a new link behind the others of the list it appears in.
        """
        wanted = set(other_ids)
        for link in self._of(side, own):
            stays = link.kept and not (side.one and wanted)
            if self._other(link, own) not in wanted and not stays:
                self._remove(link)
        for place, other in enumerate(other_ids):
            if alone:
                self._end_others(side, own, other)
            self._put(side, own, other, place, now)

    def count(self, side: Side, own: Id) -> int:
        """The links a side of one record shows."""
        return sum(not link.kept for link in self._of(side, own))

    @property
    def removed(self) -> list[Link]:
        """Links that were there and are no longer."""
        return [link for key, link in self._before.items() if key not in self._links]

    @property
    def written(self) -> list[Link]:
        """Links that are new or stand in another place."""
        return [link for key, link in self._links.items() if self._before.get(key) != link]

    def _end_others(self, side: Side, own: Id, other_id: Id) -> None:
        for link in self._of(side, other_id, reverse=True):
            if self._other(link, other_id) != own:
                self._remove(link)

    def _put(self, side: Side, own: Id, other_id: Id, place: int, now: int) -> None:
        record_id, target_id = side.oriented(own, other_id)
        present = self._links.get((side.field_id, record_id, target_id))
        position = present.position if present else now
        target_position = present.target_position if present else now
        # A record that is linked to itself stands at both ends: each side has its own place there.
        if side.forward and record_id == own:
            position = place
        if side.backward and target_id == own:
            target_position = place
        kept = present is not None and present.kept
        link = Link(side.field_id, record_id, target_id, position, target_position, kept)
        self._links[link.key] = link
        self._remember(link)

    def _of(self, side: Side, record: Id, *, reverse: bool = False) -> list[Link]:
        """The links a record has on this side, or on the other one."""
        as_record, as_target = side.forward, side.backward
        if reverse:
            as_record, as_target = as_target, as_record
        return [
            self._links[key]
            for key in sorted(self._around[side.field_id, record])
            if (as_record and key[1] == record) or (as_target and key[2] == record)
        ]

    def _other(self, link: Link, own: Id) -> Id:
        return link.target_id if link.record_id == own else link.record_id

    def _remember(self, link: Link) -> None:
        for end in (link.record_id, link.target_id):
            self._around[link.field_id, end].add(link.key)

    def _remove(self, link: Link) -> None:
        del self._links[link.key]
        for end in (link.record_id, link.target_id):
            self._around[link.field_id, end].discard(link.key)
