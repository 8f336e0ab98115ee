"""The run that a run of a data source tries again.

Revision ID: 0057
Revises: 0056
"""

import sqlalchemy as sa
from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("data_source_run", sa.Column("retry_of_run_id", sa.Uuid(), nullable=True))


def downgrade() -> None:
    op.drop_column("data_source_run", "retry_of_run_id")
