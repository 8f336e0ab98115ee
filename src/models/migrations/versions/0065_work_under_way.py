"""Work that is under way: since when, and how much of it a workspace has.

Revision ID: 0065
Revises: 0064
"""

import sqlalchemy as sa
from alembic import op

revision = "0065"
down_revision = "0064"
branch_labels = None
depends_on = None

UNFINISHED = "status IN ('queued', 'running')"
TABLES = (
    ("job", "ix_job_open_line", ["workspace_id", "family"], UNFINISHED),
    (
        "data_source_run",
        "ix_data_source_run_open_workspace_id",
        ["workspace_id"],
        UNFINISHED,
    ),
    ("action_run", "ix_action_run_open_workspace_id", ["workspace_id"], "status = 'started'"),
)


def upgrade() -> None:
    for table, index, columns, is_open in TABLES:
        op.add_column(
            table, sa.Column("dispatched_at", sa.DateTime(timezone=True), nullable=True)
        )
        # What has an execution already is under way.
        op.execute(
            f"UPDATE {table} SET dispatched_at = now() WHERE {is_open} AND NOT EXISTS"
            f" (SELECT FROM outbox WHERE subject_id = {table}.id AND intent = 'start')"
        )
        op.create_index(index, table, columns, postgresql_where=sa.text(is_open))
        op.create_index(
            f"ix_{table}_dispatched",
            table,
            columns,
            postgresql_where=sa.text(f"dispatched_at IS NOT NULL AND {is_open}"),
        )


def downgrade() -> None:
    for table, index, _, _ in TABLES:
        op.drop_index(f"ix_{table}_dispatched", table_name=table)
        op.drop_index(index, table_name=table)
        op.drop_column(table, "dispatched_at")
