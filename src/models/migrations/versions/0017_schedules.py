"""Schedules of automations.

Revision ID: 0017
Revises: 0016
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_automation_version_scheduled",
        "automation_version",
        ["automation_id"],
        unique=False,
        postgresql_where=sa.text("trigger = 'schedule' AND published_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index(
        "ix_automation_version_scheduled",
        table_name="automation_version",
        postgresql_where=sa.text("trigger = 'schedule' AND published_at IS NOT NULL"),
    )
