"""Writing very many records into a database that has none, from lines that are copied.

It takes a third of what `bulk` takes for new records: they are where they stay at once, and ids are
counted. What is said there of the records holds here too.
"""

from sqlalchemy import ARRAY, Text, Uuid, bindparam, cast, null, select

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.rules.fields import Schema
from models.data.records.commands.rows import (
    CREATED,
    recording_these,
    titled_values,
    write_parameters,
)
from models.data.records.rules.write.copied import COLUMNS
from models.data.records.tables import record
from runtime.copy_format import HEADER, TRAILER
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement

_COPY = f"COPY {record.name} ({', '.join(COLUMNS)}) FROM STDIN (FORMAT BINARY)"

_COPIED = (
    select(record.c.id, record.c.title, record.c.data, cast(null(), ARRAY(Text)).label("omitted"))
    .where(
        record.c.workspace_id == bindparam("of_workspace", type_=Uuid),
        record.c.database_id == bindparam("of_database", type_=Uuid),
        record.c.id >= bindparam("least", type_=Uuid),
    )
    .order_by(record.c.id)
    .cte("source")
)
# A change gets the id of its record: both come from the database's clock, and to make another one
# takes as long as the rest.
_RECORD_COPIED = PreparedStatement(
    recording_these(_COPIED, CREATED, null(), titled_values(_COPIED), _COPIED.c.id)
)


async def copy_records(
    work: UnitOfWork, actor: Actor, schema: Schema, lines: bytes, first_id: Id
) -> None:
    """Take lines of `copied_record` as new records of a new database, with their history.

    `first_id` is the id of the first of them, and the records that are there have lesser ones.
    """
    driver = await work.driver()
    async with driver.cursor() as cursor, cursor.copy(_COPY) as copy:
        await copy.write(HEADER + lines + TRAILER)
    parameters = {**write_parameters(work, actor, schema), "least": first_id}
    await _RECORD_COPIED.execute(work, parameters)
