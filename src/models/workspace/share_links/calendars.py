"""A shared database or view as a calendar (RFC 5545), which other programs subscribe to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from models.content.items.queries import find_item
from models.content.items.rules import ItemKind
from models.content.items.shapes import ItemRow
from models.core.base import JsonObject
from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.data.fields.rules.value_conversion import as_text
from models.data.records.queries import query_records
from models.data.records.shapes import MAX_QUERY_LIMIT, RecordDetail, RecordQuery
from models.workspace.share_links.content import SharedTable, shared_table
from models.workspace.share_links.visitors import Visitor
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, UnsupportedError

MOST_EVENTS = 2_000
"""Events of a calendar: those with the latest dates."""
MOST_DESCRIBED = 20
"""Fields in the description of an event."""
_LONGEST = 500
"""Characters of a value in a description."""
_OCTETS = 75
"""Octets of a line (RFC 5545 section 3.1)."""
_DATED = (FieldKind.DATE, FieldKind.DATETIME)


class NoCalendarError(UnsupportedError):
    """The shared item has no dates."""

    def __init__(self) -> None:
        super().__init__(
            "This link shares no calendar. Share a database or a view whose visitors see a date"
            " field."
        )


async def shared_calendar(
    work: UnitOfWork, keys: KeyRing, visitor: Visitor, start_key: str | None, end_key: str | None
) -> str:
    """The records of a shared database or view as events, by the dates in their fields.

    Without keys, the view names the fields; else it is the first date field. Raises NotFoundError
    and NoCalendarError.
    """
    link = visitor.link
    try:
        item = await find_item(work, link.workspace_id, link.workspace_item_id)
    except NotFoundError:
        raise NotFoundError("share link") from None
    if item.kind not in {ItemKind.DATABASE, ItemKind.VIEW}:
        raise NoCalendarError
    table = await shared_table(work, item)
    dates = _dates(table, start_key, end_key)
    records = await _records(work, keys, item, table, dates.start)
    now = f"{work.now:%Y%m%dT%H%M%SZ}"
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Workspace Platform//Calendar//EN"]
    lines += ["CALSCALE:GREGORIAN", f"X-WR-CALNAME:{escaped(item.title)}"]
    for record in records:
        lines += event_of(record, table.fields, dates, now)
    return "".join(f"{folded(line)}\r\n" for line in [*lines, "END:VCALENDAR"])


@dataclass(frozen=True, slots=True)
class Dates:
    """The field with the begin of an event, and the field with its end if it has one."""

    start: FieldSpec
    end: FieldSpec | None


def _dates(table: SharedTable, start_key: str | None, end_key: str | None) -> Dates:
    """Raises NoCalendarError where the visitor sees no such field."""
    dated = {spec.key: spec for spec in table.fields if spec.kind in _DATED}
    if start_key is None:
        manifest = table.manifest
        start_key = manifest.get("dateFieldKey") or next(iter(dated), "")
        end_key = end_key or manifest.get("endDateFieldKey")
    start, end = dated.get(start_key), dated.get(end_key or "")
    if start is None or (end is None and end_key):
        raise NoCalendarError
    return Dates(start, end if end is not None and end.kind is start.kind else None)


async def _records(
    work: UnitOfWork, keys: KeyRing, item: ItemRow, table: SharedTable, start: FieldSpec
) -> Sequence[RecordDetail]:
    """The records with a date, the latest first, up to MOST_EVENTS."""
    has_date = {"field": start.key, "op": "is_not_empty"}
    filters = [one for one in (table.manifest.get("filter"), has_date) if one]
    query: JsonObject = {
        "filter": {"and": filters},
        "search": table.manifest.get("search"),
        "sorts": [{"field": start.key, "direction": "desc"}],
        "fields": [spec.key for spec in table.fields],
        "limit": MAX_QUERY_LIMIT,
    }
    records: list[RecordDetail] = []
    while len(records) < MOST_EVENTS:
        body = RecordQuery.model_validate(query)
        result = await query_records(work, item.workspace_id, table.database_id, body, keys)
        records += result.records
        if result.cursor is None:
            break
        query["cursor"] = result.cursor
    return records[:MOST_EVENTS]


def event_of(
    record: RecordDetail, fields: Sequence[FieldSpec], dates: Dates, now: str
) -> Iterator[str]:
    """The lines of one event; none for a record whose date can't be read."""
    begin = _moment(record.data.get(dates.start.key))
    if begin is None:
        return
    end = None if dates.end is None else _moment(record.data.get(dates.end.key))
    yield "BEGIN:VEVENT"
    yield f"UID:{record.id}"
    yield f"DTSTAMP:{now}"
    yield f"LAST-MODIFIED:{record.updated_at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    yield f"SUMMARY:{escaped(record.title or 'Untitled')}"
    yield f"DTSTART{_written(begin)}"
    if type(end) is type(begin) and end >= begin:
        # The end of days is the day after the last one.
        is_day = not isinstance(end, datetime)
        yield f"DTEND{_written(end + timedelta(days=1) if is_day and end < date.max else end)}"
    described = "\n".join(_described(record, fields, dates))
    if described:
        yield f"DESCRIPTION:{escaped(described)}"
    yield "END:VEVENT"


def _described(record: RecordDetail, fields: Sequence[FieldSpec], dates: Dates) -> Iterator[str]:
    """The other values of a record, each with the name of its field."""
    left_out = {dates.start.key, None if dates.end is None else dates.end.key}
    shown = [one for one in fields if one.key not in left_out and not one.title]
    for spec in shown[:MOST_DESCRIBED]:
        value = record.data.get(spec.key)
        if value not in (None, "", []):
            yield f"{spec.label}: {as_text(spec, value)[:_LONGEST]}"


def _moment(value: object) -> date | datetime | None:
    """The day or the moment of a stored value."""
    if not isinstance(value, str):
        return None
    try:
        if "T" not in value:
            return date.fromisoformat(value)
        return datetime.fromisoformat(value).astimezone(UTC)
    except ValueError:
        return None


def _written(moment: date | datetime) -> str:
    if isinstance(moment, datetime):
        return f":{moment.year:04}{moment:%m%dT%H%M%SZ}"
    return f";VALUE=DATE:{moment.year:04}{moment:%m%d}"


def escaped(text: str) -> str:
    """A text as a value of a property (RFC 5545 section 3.3.11), without control characters."""
    for sign, written in (("\\", "\\\\"), (";", "\\;"), (",", "\\,"), ("\r\n", "\n"), ("\r", "\n")):
        text = text.replace(sign, written)
    kept = (sign for sign in text if sign == "\n" or sign.isprintable() or sign == "\t")
    return "".join(kept).replace("\n", "\\n")


def folded(line: str) -> str:
    """A line in parts of 75 octets, each but the first after a blank; no character is split."""
    parts: list[list[str]] = [[]]
    size = 0
    for sign in line:
        octets = len(sign.encode())
        if size + octets > _OCTETS:
            parts.append([" "])
            size = 1
        parts[-1].append(sign)
        size += octets
    return "\r\n".join("".join(part) for part in parts)
