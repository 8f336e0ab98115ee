"""Rejects of runs of data sources and imports: cells that did not fit, rows without a record.

A staged row says which row of its file it is, so that one that is skipped later can be named.
"""

import sqlalchemy as sa
from alembic import op

revision = "0091"
down_revision = "0090"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "data_source_run_rejection",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("row_number", sa.BigInteger(), nullable=False),
        sa.Column("column", sa.String(), nullable=True),
        sa.Column("field_key", sa.String(), nullable=True),
        sa.Column("value", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "run_id"],
            ["data_source_run.workspace_id", "data_source_run.id"],
            name=op.f("fk_data_source_run_rejection_workspace_id_data_source_run"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "workspace_id", "run_id", "place", name=op.f("pk_data_source_run_rejection")
        ),
    )
    op.add_column("staged_row", sa.Column("row_number", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("staged_row", "row_number")
    op.drop_table("data_source_run_rejection")
