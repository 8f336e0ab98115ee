"""Lists that take as long with a million rows as with a thousand: runs by state and source. Counters of a month.

Revision ID: 0059
Revises: 0058
"""

import sqlalchemy as sa
from alembic import op

revision = "0059"
down_revision = "0058"
branch_labels = None
depends_on = None

ENDED = sa.text("status IN ('succeeded', 'failed', 'cancelled', 'timed_out')")
ORDER = ["status", "source", "created_at", "id"]
CHANGES = sa.text("method NOT IN ('GET', 'HEAD', 'OPTIONS')")


def upgrade() -> None:
    op.create_index(
        "ix_automation_run_ended", "automation_run", ["workspace_id", *ORDER], postgresql_where=ENDED
    )
    op.create_index(
        "ix_automation_run_ended_of_automation",
        "automation_run",
        ["automation_id", *ORDER],
        postgresql_where=ENDED,
    )
    op.create_index(
        "ix_request_log_changes",
        "request_log",
        ["workspace_id", "created_at", "id"],
        postgresql_where=CHANGES,
    )
    op.create_index("ix_delivery_created_at", "delivery", ["workspace_id", "channel", "created_at"])
    op.create_table(
        "usage_total",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("counter", sa.String(), nullable=False),
        sa.Column("month", sa.DateTime(timezone=True), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("counted_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "counter", name="pk_usage_total"),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspace.id"], name="fk_usage_total_workspace_id_workspace"
        ),
    )
    op.create_index("ix_usage_total_counted_until", "usage_total", ["counted_until"])


def downgrade() -> None:
    op.drop_table("usage_total")
    op.drop_index("ix_delivery_created_at", table_name="delivery")
    op.drop_index("ix_request_log_changes", table_name="request_log")
    op.drop_index("ix_automation_run_ended_of_automation", table_name="automation_run")
    op.drop_index("ix_automation_run_ended", table_name="automation_run")
