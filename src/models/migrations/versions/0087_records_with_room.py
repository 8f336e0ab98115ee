"""Records whose pages have room, so that most changes stay on them and touch no index (ADR 0114).

Pages that are full stay so until they are written anew.
"""

from alembic import op

revision = "0087"
down_revision = "0086"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE record SET (fillfactor = 85)")


def downgrade() -> None:
    op.execute("ALTER TABLE record RESET (fillfactor)")
