"""The workspace of a stored reply, which its caller must still be a member of (ADR 0131).

A reply that is there has none: it is given again as long as what its call names is there.
"""

import sqlalchemy as sa
from alembic import op

revision = "0094"
down_revision = "0092"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("idempotency_reply", sa.Column("workspace_id", sa.Uuid(), nullable=True))


def downgrade() -> None:
    op.drop_column("idempotency_reply", "workspace_id")
