"""What a worker holds of a file at a time, however large its rows are."""

from pathlib import Path

from activities.sources.reading import reading
from activities.sources.reading_process import Fill
from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.sources.data_source_runs.staging import ReadBatch
from models.sources.tabular.rules.conversion import StagedLines
from models.sources.tabular.rules.options import ReadOptions, TableFormat
from runtime.ids import new_id

ROWS, CELL = 400, 30_000


async def test_a_batch_of_large_rows_has_fewer_of_them(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    path.write_text("Note\n" + f"{'x' * CELL}\n" * ROWS)
    note = FieldSpec(id=new_id(), key="note", label="Note", kind=FieldKind.LONG_TEXT)
    batches: list[ReadBatch] = []

    async def stage(batch: ReadBatch) -> None:
        batches.append(batch)

    async with reading([path], ReadOptions(TableFormat.CSV)) as table:
        await table.fill(Fill(["Note"], [note], StagedLines(new_id())), stage)
    assert sum(batch.read for batch in batches) == ROWS
    assert max(len(batch.lines) for batch in batches) < 5 * 1024**2
    content = b"".join(batch.lines for batch in batches)
    # The position stands behind the count of columns, the run and its own length.
    size = len(content) // ROWS
    starts = range(2 + 4 + 16 + 4, len(content), size)
    assert [int.from_bytes(content[start : start + 8]) for start in starts] == [*range(ROWS)]
