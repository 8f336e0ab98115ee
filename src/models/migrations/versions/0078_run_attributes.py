"""Attributes of runs, and the index that finds a run by them (ADR 0095)."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0078"
down_revision = "0077"
branch_labels = None
depends_on = None

INDEX = "ix_automation_run_attributes"


def upgrade() -> None:
    # Of no rows that are there: nothing is rewritten, and the index is made at once.
    op.add_column("automation_run", sa.Column("attributes", postgresql.JSONB(), nullable=True))
    op.create_index(
        INDEX,
        "automation_run",
        ["attributes"],
        postgresql_using="gin",
        postgresql_ops={"attributes": "jsonb_path_ops"},
        postgresql_where=sa.text("attributes IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index(INDEX, table_name="automation_run")
    op.drop_column("automation_run", "attributes")
