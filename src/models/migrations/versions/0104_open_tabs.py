"""Tabs of browsers in which something is edited."""

import sqlalchemy as sa
from alembic import op

revision = "0104"
down_revision = "0103"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "open_tab",
        sa.Column("place_id", sa.Uuid(), nullable=False),
        sa.Column("tab_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("place_id", "tab_id", name=op.f("pk_open_tab")),
        prefixes=["UNLOGGED"],
    )


def downgrade() -> None:
    op.drop_table("open_tab")
