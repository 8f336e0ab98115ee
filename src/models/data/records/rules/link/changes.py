"""The changes of links when lists of them are written, worked out without the database."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from models.core.base import Id
from models.data.records.rules.link.sides import Side


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
