"""Timer fields of records: the time of their completed entries, and which one runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import aggregate_order_by

from models.core.base import Id
from models.data.fields.field_rows import find_fields
from models.data.fields.rules.fields import Schema
from models.data.fields.rules.kinds import FieldKind
from models.data.records.commands.timers import hold_record, write_timer
from models.data.time_entries.rules.kinds import EntryStatus
from models.data.time_entries.rules.times import counted, milliseconds
from models.data.time_entries.tables import TimeEntry, time_entry
from runtime.database import UnitOfWork

_entry = time_entry.c


@dataclass(frozen=True, slots=True)
class TimerFields:
    """The fields that changed entries stand in, brought up to date at the end of a command.

    Records are held in the order of their ids, so that two people who change places do not wait
    for each other.
    """

    work: UnitOfWork
    touched: dict[tuple[Id, Id], list[TimeEntry]] = field(default_factory=dict)
    latest: dict[Id, TimeEntry] = field(default_factory=dict)

    def touch(self, row: TimeEntry) -> None:
        """An entry, as it was or as it is now, that a field counts."""
        if row.field_id is not None:
            self.latest[row.id] = row
            self.touched.setdefault((row.target_id, row.field_id), []).append(row)

    async def write(self) -> None:
        """Bring the fields up to date; fields that are gone, or are no timers now, are left out."""
        for record_id, field_id in sorted(self.touched):
            entries = self.touched[record_id, field_id]
            workspace_id, database_id = entries[0].workspace_id, entries[0].database_id
            assert database_id is not None, "a field stands in a database"
            fields = await find_fields(self.work, workspace_id, database_id)
            spec = next((one for one in fields.values() if one.id == field_id), None)
            if spec is None or spec.kind is not FieldKind.TIMER:
                continue
            schema = Schema(workspace_id, database_id, fields)
            if not await hold_record(self.work, schema, record_id):
                continue
            await self._count(entries, spec.settings.get("roundToMinutes"))
            total, running = await self._time(workspace_id, record_id, field_id)
            await write_timer(self.work, schema, record_id, spec.key, total, running)

    async def _count(self, entries: Sequence[TimeEntry], round_to_minutes: int | None) -> None:
        """Write what completed entries count for: what the field says now, and for good."""
        for row in entries:
            if row.duration_ms is None or self.latest[row.id] is not row:
                continue
            length = counted(timedelta(milliseconds=row.duration_ms), round_to_minutes)
            this = (_entry.workspace_id == row.workspace_id, _entry.id == row.id)
            await self.work.execute(
                update(time_entry).where(*this).values(counted_ms=milliseconds(length))
            )

    async def _time(self, workspace_id: Id, record_id: Id, field_id: Id) -> tuple[int, Id | None]:
        """Milliseconds of completed entries, and the running one that was started last."""
        is_active = _entry.status == EntryStatus.ACTIVE
        newest = aggregate_order_by(_entry.id, _entry.started_at.desc(), _entry.id.desc())
        (row,) = await self.work.rows(
            select(
                func.coalesce(func.sum(_entry.counted_ms), 0).label("total"),
                func.array_agg(newest).filter(is_active).label("running"),
            ).where(
                _entry.workspace_id == workspace_id,
                _entry.target_id == record_id,
                _entry.field_id == field_id,
            )
        )
        return int(row.total), row.running[0] if row.running else None
