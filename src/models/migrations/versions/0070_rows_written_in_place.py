"""Rows of sources that a refresh writes in place: no index moves, and their pages have room.

The rows that are there stay as they are, and move to pages with room when they change.
"""

from alembic import op

revision = "0070"
down_revision = "0069"
branch_labels = None
depends_on = None

TABLES = ("staged_row", "source_row")
ANALYZED = ("run_id", "position", "identity")


def upgrade() -> None:
    op.drop_index("ix_source_row_run_id", "source_row")
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} SET (fillfactor = 50)")
    for column in ANALYZED:
        # A sample of 3,000 rows tells how many there are, and that identities differ.
        op.execute(f"ALTER TABLE staged_row ALTER COLUMN {column} SET STATISTICS 10")


def downgrade() -> None:
    for column in ANALYZED:
        op.execute(f"ALTER TABLE staged_row ALTER COLUMN {column} SET STATISTICS -1")
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} RESET (fillfactor)")
    op.create_index("ix_source_row_run_id", "source_row", ["run_id"])
