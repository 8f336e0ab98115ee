"""The open action runs of an automation run are found by an index.

Revision ID: 0024
Revises: 0023
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_action_run_open_automation_run_id",
        "action_run",
        ["automation_run_id"],
        postgresql_where=sa.text("status = 'started' AND automation_run_id IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_action_run_open_automation_run_id", table_name="action_run")
