"""Pure rules of triggers: what a change is, which trigger matches it, when a date is due.

A change is JSON, for it waits in the database: `record` and `before` are the record as the API
shows it after and before the change (null for a record that was not there), `changedKeys` the keys
of the fields whose values differ, `actor` who made the change, `gone` whether the record is in the
trash now, and `system` whether the platform made the change by itself.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from models.automation.automations.rules.language import filters
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import BindingError
from models.core.schedules.timetables import moment_of
from models.data.fields.rules.fields import DATE_KINDS, FieldKind
from models.data.records.rules.writes import differing_fields

_PAYLOAD = ("record", "before", "changedKeys", "actor")


def payload_of(change: JsonObject) -> JsonObject:
    """The trigger payload of a change (interface.md#triggers)."""
    return {key: change[key] for key in _PAYLOAD}


def kind_of(change: JsonObject) -> TriggerKind | None:
    """The trigger kind of a change; None for a record that was created and deleted.

    A record restored from the trash counts as created.
    """
    if change["gone"]:
        return None if change["before"] is None else TriggerKind.RECORD_DELETED
    return TriggerKind.RECORD_CREATED if change["before"] is None else TriggerKind.RECORD_UPDATED


def merged(first: JsonObject, later: JsonObject) -> JsonObject:
    """Two changes of one record as one: the state before the first, and after the later one."""
    return _with_keys({**later, "before": first["before"]}, first["changedKeys"])


def with_part(change: JsonObject, part: JsonObject) -> JsonObject:
    """A merged change with a change that happened between its first and its last."""
    return _with_keys(change, part["changedKeys"])


def _with_keys(change: JsonObject, keys: Iterable[str]) -> JsonObject:
    touched = sorted({*change["changedKeys"], *keys})
    if change["before"] is not None:
        touched = differing_fields(change["before"], change["record"], touched)
    return {**change, "changedKeys": touched}


def changes_anything(change: JsonObject) -> bool:
    """True when the record differs from before. Merged changes may undo each other."""
    before, record = change["before"], change["record"]
    moved = before is None or bool(change["gone"]) or before["archived"] != record["archived"]
    return moved or bool(change["changedKeys"])


def concerns_change(config: JsonObject, change: JsonObject) -> bool:
    """True when a change is of the kind that a trigger on records waits for."""
    if config["kind"] == TriggerKind.RECORD_MATCHES:
        return not change["gone"]
    if config["kind"] == TriggerKind.RECORD_DATE_REACHED:
        return False
    return config["kind"] == kind_of(change) and changes_anything(change)


def mismatch(config: JsonObject, change: JsonObject, context: filters.Asked) -> JsonObject | None:
    """The term of a trigger that a change of its kind does not meet, with the value it met.

    None when the trigger matches. Raises BindingError when its filter cannot be evaluated.
    """
    if change["system"] and not config.get("includeSystemChanges"):
        return {"term": {"includeSystemChanges": False}, "value": True}
    predicate = config.get("filter")
    if config["kind"] == TriggerKind.RECORD_MATCHES:
        state = {"record": change["record"]}
        if not filters.passes(predicate, filters.STATE, state, context):
            return filters.failed_part(predicate, filters.STATE, state, context)
        if _matched(predicate, change["before"], context):
            return {"term": "The record matched the filter before the change."}
        return None
    if not touches(config, change):
        return {"term": {"fieldKeys": config["fieldKeys"]}, "value": change["changedKeys"]}
    payload = payload_of(change)
    if not filters.passes(predicate, filters.CHANGE, payload, context):
        return filters.failed_part(predicate, filters.CHANGE, payload, context)
    return None


def touches(config: JsonObject, change: JsonObject) -> bool:
    """True when a field changed that `fieldKeys` names; without `fieldKeys`, any field counts."""
    wanted = config.get("fieldKeys")
    return not wanted or not set(wanted).isdisjoint(change["changedKeys"])


def _matched(given: object, before: JsonObject | None, asked: filters.Asked) -> bool:
    """True when a record matched before; if the filter fails on it, it did not."""
    if before is None:
        return False
    try:
        return filters.passes(given, filters.STATE, {"record": before}, asked)
    except BindingError:
        return False


def concerns_event(config: JsonObject, subject_id: Id, payload: JsonObject) -> bool:
    """True when an event that is no change of a record is one that a trigger waits for."""
    match config["kind"]:
        case TriggerKind.BUTTON_PRESSED:
            return bool(payload["fieldKey"] == config["fieldKey"])
        case TriggerKind.AUTOMATION_FAILED:
            wanted = config["automationIds"]
            return wanted == "any" or str(subject_id) in {one.lower() for one in wanted}
        case _:
            return True


def unmet_condition(config: JsonObject, payload: JsonObject) -> JsonObject | None:
    """The condition of a trigger that an event of its kind does not meet, with the value."""
    match config["kind"]:
        case TriggerKind.DATA_SOURCE_FINISHED:
            status = payload["run"]["status"]
            if config["on"] not in ("any", status):
                return {"term": {"on": config["on"]}, "value": status}
        case TriggerKind.TIME_ENTRY_COMPLETED:
            for key in ("targetKind", "databaseId"):
                wanted, value = config.get(key), payload["entry"].get(key)
                if wanted is not None and wanted.lower() != value:
                    return {"term": {key: wanted}, "value": value}
    return None


MOMENT_KINDS = DATE_KINDS | {FieldKind.CREATED_AT, FieldKind.UPDATED_AT}
"""Kinds of fields that hold one day or one moment."""

_MARGIN = timedelta(days=2)
"""More than any zone's distance from UTC, on both sides."""
LONGEST_WINDOW = timedelta(days=400)
"""The farthest a poll looks back for dates. Older dates start no run."""


@dataclass(frozen=True, slots=True)
class DateWatch:
    """The dates that a `record_date_reached` trigger waits for, in a field of this kind.

    A date without a time means midnight of that day in the time zone. Its offset is added in local
    time, so that 540 minutes are nine o'clock on every day of the year. A local time that the
    clocks skip is due right after the skip; one that they repeat is due the first time.
    """

    field_key: str
    kind: FieldKind
    offset: timedelta
    zone: ZoneInfo

    @classmethod
    def of(cls, trigger_config: JsonObject, kind: FieldKind | None) -> "DateWatch | None":
        """The watch of a field of this kind; None when the field is gone, or no date."""
        if kind not in MOMENT_KINDS:
            return None
        offset = timedelta(minutes=trigger_config["offsetMinutes"])
        return cls(trigger_config["fieldKey"], kind, offset, ZoneInfo(trigger_config["timezone"]))

    @property
    def whole_days(self) -> bool:
        return self.kind is FieldKind.DATE

    def due(self, value: object) -> datetime | None:
        """The time this value of the field is due; None without one, or beyond the calendar."""
        if not isinstance(value, str):
            return None
        try:
            if self.whole_days:
                return self._due_on(date.fromisoformat(value))
            return datetime.fromisoformat(value).astimezone(UTC) + self.offset
        except (ValueError, OverflowError):
            return None

    def due_of(self, record: JsonObject | None) -> datetime | None:
        """The time a record as the API shows it is due; None while it is archived."""
        if record is None or record["archived"]:
            return None
        part = "data" if self.kind in DATE_KINDS else "system"
        return self.due(record[part].get(self.field_key))

    def days(self, after: datetime, until: datetime) -> list[date]:
        """The days that become due after one moment and until another, in order."""
        return [day for day in self._near(after, until) if after < self._due_on(day) <= until]

    def next_day(self, after: datetime) -> datetime | None:
        """The time at which the next day becomes due."""
        near = self._near(after, after + _MARGIN)
        return min((due for due in map(self._due_on, near) if due > after), default=None)

    def _near(self, after: datetime, until: datetime) -> Iterator[date]:
        day = (after - self.offset - _MARGIN).date()
        last = (until - self.offset + _MARGIN).date()
        while day <= last:
            yield day
            day += timedelta(days=1)

    def _due_on(self, day: date) -> datetime:
        wall = datetime.combine(day, time()) + self.offset
        return moment_of(wall, self.zone)
