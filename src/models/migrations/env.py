"""Run the migrations over the connection of the runner, in one transaction."""

from typing import Literal

from alembic import context
from sqlmodel.sql.sqltypes import AutoString

from models.migrations.runner import LOCK
from models.tables import metadata


def render_item(kind: str, item: object, _context: object) -> str | Literal[False]:
    """SQLModel's string type is written as the plain one it is, so migrations do without it."""
    return "sa.String()" if kind == "type" and isinstance(item, AutoString) else False


connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_item=render_item,
    compare_type=True,
    compare_server_default=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    # Two processes that start together must not both migrate: the second waits, then finds nothing.
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
    context.run_migrations()
