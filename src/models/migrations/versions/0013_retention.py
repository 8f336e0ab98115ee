"""What the retention finds its rows by.

Revision ID: 0013
Revises: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_record_trash",
        "record",
        ["deleted_at", "id"],
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
    )
    op.create_index(
        "ix_file_private", "file", ["created_at"], postgresql_where=sa.text("private")
    )


def downgrade() -> None:
    op.drop_index("ix_file_private", table_name="file", postgresql_where=sa.text("private"))
    op.drop_index(
        "ix_record_trash", table_name="record", postgresql_where=sa.text("deleted_at IS NOT NULL")
    )
