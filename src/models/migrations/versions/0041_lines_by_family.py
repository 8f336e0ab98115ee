"""Lines of the outbox by family.

Revision ID: 0041
Revises: 0040
"""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

URGENCY = sa.text("coalesce(request ->> 'priority', '3')")


def upgrade() -> None:
    op.drop_index("ix_outbox_line", table_name="outbox")
    op.create_index(
        "ix_outbox_line", "outbox", ["workspace_id", "intent", URGENCY, "family", "id"]
    )


def downgrade() -> None:
    op.drop_index("ix_outbox_line", table_name="outbox")
    op.create_index("ix_outbox_line", "outbox", ["workspace_id", "intent", URGENCY, "id"])
