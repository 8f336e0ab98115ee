"""Lines of deliveries: what waits is a row without an execution.

Revision ID: 0064
Revises: 0063
"""

import sqlalchemy as sa
from alembic import op

revision = "0064"
down_revision = "0063"
branch_labels = None
depends_on = None

LINE = ["workspace_id", "channel", "target_id"]
WAITING = sa.text("status IN ('pending') AND NOT executing")
EXECUTING = sa.text("status IN ('pending') AND executing")


def upgrade() -> None:
    op.create_table(
        "delivery_line",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("target_id", sa.Uuid(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("opened", sa.Integer(), nullable=False),
        sa.Column("retry_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("succeeded_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "channel IN ('push', 'mail', 'webhook')", name=op.f("ck_delivery_line_channel")
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspace.id"], name="fk_delivery_line_workspace_id_workspace"
        ),
        sa.PrimaryKeyConstraint(*LINE, name="pk_delivery_line"),
    )
    # Open ones wait from now on; an execution that they have already attempts nothing any more.
    op.add_column("delivery", sa.Column("executing", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("delivery", sa.Column("executions", sa.Integer(), server_default="0", nullable=False))
    op.add_column("delivery", sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True))
    op.execute("UPDATE delivery SET expires_at = created_at + interval '100 hours'")
    op.alter_column("delivery", "executing", server_default=None)
    op.alter_column("delivery", "executions", server_default=None)
    op.alter_column("delivery", "expires_at", nullable=False)
    op.create_index("ix_delivery_waiting", "delivery", [*LINE, "created_at", "id"], postgresql_where=WAITING)
    op.create_index("ix_delivery_executing", "delivery", LINE, postgresql_where=EXECUTING)
    op.create_index("ix_delivery_expires_at", "delivery", ["expires_at"], postgresql_where=WAITING)


def downgrade() -> None:
    op.drop_index("ix_delivery_expires_at", table_name="delivery")
    op.drop_index("ix_delivery_executing", table_name="delivery")
    op.drop_index("ix_delivery_waiting", table_name="delivery")
    op.drop_column("delivery", "expires_at")
    op.drop_column("delivery", "executions")
    op.drop_column("delivery", "executing")
    op.drop_table("delivery_line")
