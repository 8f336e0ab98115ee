"""Work that may end its workers is counted.

Revision ID: 0026
Revises: 0025
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "work_suspect",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("lost", sa.Integer(), nullable=False),
        sa.Column("suspected_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_work_suspect")),
    )
    op.create_index("ix_work_suspect_suspected_at", "work_suspect", ["suspected_at"])


def downgrade() -> None:
    op.drop_table("work_suspect")
