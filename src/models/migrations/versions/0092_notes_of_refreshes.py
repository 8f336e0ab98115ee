"""A refresh whose due time a clock change moved says so (ADR 0128)."""

import sqlalchemy as sa
from alembic import op

revision = "0092"
down_revision = "0091"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("data_source_run", sa.Column("note", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("data_source_run", "note")
