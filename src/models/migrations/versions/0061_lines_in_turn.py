"""Lines of the outbox in turn: by family, and by weight inside each.

Revision ID: 0061
Revises: 0060
"""

import sqlalchemy as sa
from alembic import op

revision = "0061"
down_revision = "0060"
branch_labels = None
depends_on = None

URGENCY = sa.text("coalesce(request ->> 'priority', '3')")
WEIGHT = sa.text("coalesce(request ->> 'weight', '1')")


def upgrade() -> None:
    op.drop_index("ix_outbox_line", table_name="outbox")
    op.create_index("ix_outbox_line", "outbox", ["workspace_id", "intent", "family", WEIGHT, "id"])


def downgrade() -> None:
    op.drop_index("ix_outbox_line", table_name="outbox")
    op.create_index(
        "ix_outbox_line", "outbox", ["workspace_id", "intent", URGENCY, "family", "id"]
    )
