"""One open export of a workspace at a time; of several that are open, the oldest goes on.

Revision ID: 0063
Revises: 0062
"""

import sqlalchemy as sa
from alembic import op

revision = "0063"
down_revision = "0062"
branch_labels = None
depends_on = None

OPEN = "family = 'workspace-export' AND status IN ('queued', 'running')"


def upgrade() -> None:
    op.execute(
        "UPDATE job SET status = 'cancelled', completed_at = now()"
        f" WHERE {OPEN} AND EXISTS (SELECT FROM job AS earlier"
        " WHERE earlier.workspace_id = job.workspace_id AND earlier.family = job.family"
        " AND earlier.status IN ('queued', 'running') AND earlier.id < job.id)"
    )
    op.create_index(
        "ix_job_open_workspace_export",
        "job",
        ["workspace_id"],
        unique=True,
        postgresql_where=sa.text(OPEN),
    )


def downgrade() -> None:
    op.drop_index("ix_job_open_workspace_export", table_name="job")
