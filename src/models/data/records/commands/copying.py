"""Writing very many records into a database that has none, from lines that are copied.

It takes a third of what `bulk` takes for new records: they are where they stay at once, and ids are
counted. What is said there of the records holds here too.
"""

from models.data.records.rules.write.copied import COLUMNS
from models.data.records.tables import record
from runtime.copy_format import HEADER, TRAILER
from runtime.database import UnitOfWork

_COPY = f"COPY {record.name} ({', '.join(COLUMNS)}) FROM STDIN (FORMAT BINARY)"


async def copy_records(work: UnitOfWork, lines: bytes) -> None:
    """Take lines of `copied_record` as new records of a new database."""
    driver = await work.driver()
    async with driver.cursor() as cursor, cursor.copy(_COPY) as copy:
        await copy.write(HEADER + lines + TRAILER)
