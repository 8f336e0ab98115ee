"""What a worker holds of a file at a time, however large its rows are."""

from pathlib import Path

from activities.sources.reading import reading
from activities.sources.reading_process import Fill
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.rules.kinds import FieldKind
from models.sources.data_source_runs.commands.staging import StagedBatch
from models.sources.tabular.rules.options import ReadOptions, TableFormat
from runtime.ids import new_id

ROWS, CELL = 400, 30_000


async def test_a_batch_of_large_rows_has_fewer_of_them(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    path.write_text("Note\n" + f"{'x' * CELL}\n" * ROWS)
    note = FieldSpec(id=new_id(), key="note", label="Note", kind=FieldKind.LONG_TEXT)
    batches: list[StagedBatch] = []

    async def stage(batch: StagedBatch) -> None:
        batches.append(batch)

    async with reading([path], ReadOptions(TableFormat.CSV)) as table:
        await table.fill(Fill(["Note"], [note]), stage)
    assert sum(batch.read for batch in batches) == ROWS
    assert max(len(batch.lines) for batch in batches) < 5 * 1024**2
    numbers = [int(line.split(b"\t")[0]) for batch in batches for line in batch.lines.splitlines()]
    assert numbers == [*range(ROWS)]
