"""What the source of an imported row, and of the blocks of a page, said last.

Revision ID: 0054
Revises: 0053
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("source_row", sa.Column("position", sa.BigInteger()))
    op.add_column("source_row", sa.Column("title", sa.String()))
    op.add_column("source_row", sa.Column("data", postgresql.JSONB(none_as_null=True)))
    op.add_column("imported_resource", sa.Column("blocks", postgresql.JSONB(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("imported_resource", "blocks")
    for name in ("data", "title", "position"):
        op.drop_column("source_row", name)
