"""A new table of durable work comes with its trigger, and goes without a trace."""

from collections.abc import Iterator
from enum import StrEnum

import pytest
import sqlalchemy as sa
from alembic import op
from alembic.autogenerate import produce_migrations, render_python_code
from alembic.operations import Operations
from alembic.operations.ops import MigrationScript
from alembic.runtime.migration import MigrationContext
from sqlalchemy.exc import IntegrityError

from models.core.lifecycle.commands import WorkTable
from models.core.lifecycle.rules import Lifecycle
from models.migrations.autogenerate import complete
from runtime.database import driver_url


class Status(StrEnum):
    WANTED = "wanted"
    UNDER_WAY = "under_way"
    DONE = "done"


MOVES = {
    Status.WANTED: frozenset({Status.UNDER_WAY}),
    Status.UNDER_WAY: frozenset({Status.DONE}),
    Status.DONE: frozenset(),
}


@pytest.fixture
def connection(database_url: str) -> Iterator[sa.Connection]:
    engine = sa.create_engine(driver_url(database_url))
    with engine.connect() as connection:
        yield connection
        connection.rollback()
    engine.dispose()


def _script(context: MigrationContext) -> MigrationScript:
    """The migration that makes an invented table of work."""
    metadata = sa.MetaData()
    columns = sa.Column("id", sa.Integer, primary_key=True), sa.Column("status", sa.Text)
    WorkTable(sa.Table("errand", metadata, *columns), Lifecycle(MOVES))
    script = produce_migrations(context, metadata)
    complete(None, None, [script])
    return script


def _run(body: str) -> None:
    """Carry out a function of a migration, as its file has it."""
    exec(f"if True:\n    {body}", {"op": op, "sa": sa})  # noqa: S102  # written by us


def test_the_trigger_of_new_work_takes_the_moves_of_its_lifecycle(
    connection: sa.Connection,
) -> None:
    alone = {"include_name": lambda name, kind, _: kind != "table" or name == "errand"}
    context = MigrationContext.configure(connection, opts=alone)
    script = _script(context)
    with Operations.context(context):
        _run(render_python_code(script.upgrade_ops))
        connection.execute(sa.text("INSERT INTO errand VALUES (1, 'wanted')"))
        move = sa.text("UPDATE errand SET status = :status")
        refused = pytest.raises(IntegrityError, match="errand_status_transition")
        with refused, connection.begin_nested():
            connection.execute(move, {"status": "done"})
        connection.execute(move, {"status": "under_way"})
        connection.execute(move, {"status": "done"})
        _run(render_python_code(script.downgrade_ops))
    left = sa.text("SELECT count(*) FROM pg_proc WHERE proname LIKE 'errand%'")
    assert connection.scalar(left) == 0
